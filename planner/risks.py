"""What a plan puts at risk while it runs, as numbers for plan.json: writes that are refused, batch by batch.

A reassignment takes no replica out of sync: until it is complete the old replicas stay, afterwards the new ones are
in sync (KIP-455). So writes with acks=all are refused only where too few are in sync today, or too few are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.batches.cutting import Batch, Step
from planner.model import Partition, Spec
from planner.problem import min_insync_of


def section(spec: Spec, batches: Iterable[Batch]) -> dict[str, Any]:
    """The `risks` of plan.json: partitions of each batch with fewer replicas in sync than min.insync.replicas.

    `isr_known` is False where a source doesn't say which replicas are in sync: then all of that partition's count.
    """
    least = {topic.name: min_insync_of(spec, topic) for topic in spec.cluster.topics}
    today = {(topic.name, part.id): part for topic in spec.cluster.topics for part in topic.partitions}

    def under(step: Step) -> bool:
        part = today[step.topic, step.partition]
        return min(_in_sync(part), len(step.after)) < least[step.topic]

    return {
        "isr_known": all(part.isr is not None for part in today.values()),
        "under_min_isr": [sum(map(under, batch.steps)) for batch in batches],
    }


def _in_sync(part: Partition) -> int:
    return len(part.replicas if part.isr is None else part.isr)
