"""The plan of a spec with a budget, and the spec of the next step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.model.cluster import Partition
from planner.model.spec import Spec
from planner.plan import build as plan
from planner.plan.document.codec import as_json
from planner.sweep import choice
from planner.sweep.evaluate import run


def planned(asked: Spec) -> dict[str, Any]:
    """The plan of a spec, swept in this process."""
    tried = choice.alternatives(asked)
    done = choice.swept(tried, [run(each.problem, each.candidates) for each in tried])
    return as_json(plan.planned(done).plan)


def carried_out(asked: Spec, document: dict[str, Any]) -> Spec:
    """The spec with the cluster as it is after the plan."""
    lists = {(each["topic"], each["partition"]): tuple(each["replicas"]) for each in document["partitions"]}
    topics = tuple(
        replace(topic, partitions=tuple(_moved(each, lists.get((topic.name, each.id))) for each in topic.partitions))
        for topic in asked.cluster.topics
    )
    return replace(asked, cluster=replace(asked.cluster, topics=topics))


def _moved(partition: Partition, replicas: tuple[int, ...] | None) -> Partition:
    return partition if replicas is None else replace(partition, replicas=replicas, leader=replicas[0])
