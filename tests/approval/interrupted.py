"""Helpers for tests of plans that were applied in part: a spec, its plan, and the cluster after some batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import plan_documents
from clusters import no_racks, spec_of
from plan_documents import typed

from planner.approval import resumed_plan
from planner.approval.changes_since_plan import ClusterNow
from planner.model.build_problem import build
from planner.model.cluster import Broker, Partition, Topic
from planner.model.spec import BatchRules, Changes, Execution, Spec
from planner.plan.document.codec import as_json
from planner.sweep.budget_steps import first_step
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

ROWS = {"x": [(1, 2), (2, 3), (3, 1), (1, 2), (2, 3), (3, 1)], "y": [(1, 2), (1, 3), (2, 1)]}

Key = tuple[str, int]
Plan = dict[str, Any]


def plan_of(spec: Spec, count: int = 3) -> Plan:
    """The plan of a spec; the sweep runs in this process."""
    problem = first_step(build(spec))
    return plan_documents.planned(
        spec, problem, run(problem, candidates(problem, replace(spec.sweep, candidates=count)))
    )


def found(spec: Spec, *, racks: Mapping[int, str | None] | None = None) -> ClusterNow:
    """The cluster of a spec, as it was when the plan was made."""
    sizes = {(topic.name, each.id): each.size_bytes for topic in spec.cluster.topics for each in topic.partitions}
    topics = {topic.name: topic for topic in spec.cluster.topics}
    return ClusterNow(topics, racks=racks, sizes=sizes if spec.cluster.sizes_known else None)


def after_batches(plan: Plan, now: ClusterNow, count: int) -> ClusterNow:
    """The cluster after the first `count` batches; new partitions are made before the first batch."""
    if count:
        now = with_new_partitions(plan, now)
    for batch in plan["batches"][:count]:
        for step in batch["partitions"]:
            now = moved(now, (step["topic"], step["partition"]), step["replicas"])
        for each in batch["elect"]:
            key = each["topic"], each["partition"]
            now = led(now, key, partition(now, key).replicas[0])
    return now


def with_new_partitions(plan: Plan, now: ClusterNow) -> ClusterNow:
    """The cluster with the plan's new partitions made."""
    topics = dict(now.topics)
    for new in (plan["new_partitions"] or {"topics": ()})["topics"]:
        before = topics.get(new["topic"], Topic(new["topic"], ()))
        made = tuple(
            Partition(at, tuple(replicas), replicas[0])
            for at, replicas in enumerate(new["replicas"], new["partitions_before"])
        )
        topics[new["topic"]] = replace(before, partitions=before.partitions + made)
    return replace(now, topics=topics)


def partition(now: ClusterNow, key: Key) -> Partition:
    """One partition of the cluster."""
    return now.topics[key[0]].partitions[key[1]]


def moved(now: ClusterNow, key: Key, replicas: list[int] | tuple[int, ...]) -> ClusterNow:
    """The cluster with a partition on other brokers; its leader stays if it has a replica, else the first one leads."""
    old = partition(now, key)
    leader = old.leader if old.leader in replicas else replicas[0]
    return _with(now, key, replace(old, replicas=tuple(replicas), leader=leader, isr=None))


def led(now: ClusterNow, key: Key, leader: int | None) -> ClusterNow:
    """The cluster with another leader of a partition."""
    return _with(now, key, replace(partition(now, key), leader=leader))


def without_topic(now: ClusterNow, name: str) -> ClusterNow:
    """The cluster without a topic."""
    return replace(now, topics={key: topic for key, topic in now.topics.items() if key != name})


def _with(now: ClusterNow, key: Key, wanted: Partition) -> ClusterNow:
    topic = now.topics[key[0]]
    partitions = tuple(wanted if each.id == key[1] else each for each in topic.partitions)
    return replace(now, topics={**now.topics, key[0]: replace(topic, partitions=partitions)})


def keys(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """The topic and the number of each partition in these rows."""
    return {(row["topic"], row["partition"]) for row in rows}


def resumed(plan: dict[str, Any], now: ClusterNow, **options: Any) -> dict[str, Any]:
    """What `resumed_plan` makes of a plan; both plans are JSON values."""
    return as_json(resumed_plan.resume(typed(plan), now, **options))


def expansion(**rest: Any) -> Spec:
    """A spec that expands three brokers to five, with one move per broker in a batch."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, sizes={"x": [10, 20, 30, 40, 50, 60], "y": [5, 6, 7]})
    changes = Changes(add_brokers=(Broker(4), Broker(5)))
    execution = Execution(throttle_bytes_per_sec=5, batches=BatchRules(moves_per_broker=1))
    return replace(spec, changes=changes, execution=execution, **rest)
