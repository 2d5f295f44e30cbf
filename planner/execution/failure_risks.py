"""What a plan puts at risk while it runs: writes that are refused, and partitions that a failure takes offline.

Candidates are ranked by the assignment in the end alone; looking at their batches couldn't choose a better one. The
replica lists in between keep two racks wherever both ends have two (`reassignment_steps`), so a partition that doesn't
survive a failure at some moment doesn't survive it today or in the end. Those of today are the same for every plan.
A plan without others in the end survives every moment as well as any plan can, and the ranking puts it first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from planner.execution.batch_cutting import Batch
from planner.execution.reassignment_steps import Step
from planner.model.build_problem import brokers_after, min_insync_of
from planner.model.formats import counted
from planner.model.spec import Spec


@dataclass(frozen=True)
class RefusedWrites:
    """How many partitions of each batch have fewer replicas in sync than min.insync.replicas.

    `isr_known` is False where a source doesn't say which replicas are in sync: then all of that partition's count.
    """

    isr_known: bool
    under_min_isr: tuple[int, ...]


def refused_writes(spec: Spec, batches: Iterable[Batch]) -> RefusedWrites:
    """The partitions that refuse writes with acks=all, today or once their batch is complete."""
    least = {topic.name: min_insync_of(spec, topic) for topic in spec.cluster.topics}
    today = {(topic.name, part.id): part for topic in spec.cluster.topics for part in topic.partitions}

    def under(step: Step) -> bool:
        part = today[step.topic, step.partition]
        in_sync = part.replicas if part.isr is None else part.isr
        return min(len(in_sync), len(step.after)) < least[step.topic]

    known = all(part.isr is not None for part in today.values())
    return RefusedWrites(known, tuple(sum(map(under, batch.steps)) for batch in batches))


def warnings(spec: Spec, batches: Iterable[Batch]) -> list[str]:
    """A sentence where the plan, or a batch of it, leaves partitions that don't survive what was asked for.

    While a batch copies, the replicas that it adds aren't in sync: a partition survives by its old replicas, and when
    it is complete by the new ones.
    """
    if spec.resilience == "none":
        return []
    today, during, after = _counts(spec, batches)
    worst = max(during, default=0)
    if not max(worst, after):
        return []
    batch = f"{worst:,} in batch {during.index(worst) + 1}, " if during else ""
    return [
        f"resilience.survive: {spec.resilience}: the failure of one {spec.resilience} takes offline "
        f"{counted(today, 'partition')} today, {batch}{after:,} after the plan"
    ]


def _counts(spec: Spec, batches: Iterable[Batch]) -> tuple[int, list[int], int]:
    """Partitions that don't survive today, in each batch at any moment, and in the end."""
    domains: dict[int, Hashable] = {
        broker.id: broker.id if spec.resilience == "broker" else broker.rack for broker in brokers_after(spec)
    }

    def alone(replicas: Sequence[int]) -> bool:
        return len({domains[broker] for broker in replicas}) == 1

    lone = {(topic.name, part.id) for topic in spec.cluster.topics for part in topic.partitions if alone(part.replicas)}
    today, during = len(lone), list[int]()
    for batch in batches:
        after = {_key(step) for step in batch.steps if alone(step.after)}
        during.append(len(lone | after))
        lone = (lone - {_key(step) for step in batch.steps}) | after
    return today, during, len(lone)


def _key(step: Step) -> tuple[str, int]:
    return step.topic, step.partition
