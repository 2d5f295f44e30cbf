"""Changes to cut into batches: one from given lists, or a random plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from hypothesis import strategies as st

from planner.execution.batch_cutting import Batch
from planner.execution.partition_changes import Step
from planner.model.cluster import PartitionChange, Reason
from planner.model.spec import BatchRules


def change(
    partition: int,
    before: tuple[int, ...],
    after: tuple[int, ...],
    *,
    topic: str = "t",
    size_bytes: int = 10,
    leader: int | None = -1,
    reason: Reason = Reason.BALANCE_REPLICAS,
) -> PartitionChange:
    """A change of one partition; with `leader` -1 the preferred leader leads today."""
    return PartitionChange(topic, partition, before, after, before[0] if leader == -1 else leader, size_bytes, reason)


def busiest_bytes(steps: Iterable[Step]) -> int:
    """The most bytes that any broker receives or sends in these steps; Kafka throttles both directions (KIP-73)."""
    received, sent = Counter[int](), Counter[int]()
    for step in steps:
        received.update(dict.fromkeys(step.adding, step.size_bytes))
        sent[step.source] += step.bytes_moved
    return max(chain(received.values(), sent.values()), default=0)


def steps(batches: tuple[Batch, ...]) -> list[list[tuple[str, int]]]:
    """The partitions of each batch, as (topic, partition)."""
    return [[(step.topic, step.partition) for step in batch.steps] for batch in batches]


replica_lists = st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True).map(tuple)


limits = st.none() | st.integers(1, 4)


# The seconds that a batch may take, at one byte a second.
times = st.none() | st.integers(1, 300)


rules = st.builds(BatchRules, st.none() | st.integers(1, 300), limits, limits, times, st.just(1), limits)


limiting = rules.filter(lambda given_rules: given_rules.bytes or given_rules.moves_per_broker)


@st.composite
def plans(draw: st.DrawFn, leaderless: bool = True) -> list[PartitionChange]:
    """Random changes of different partitions."""
    names = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), unique=True, max_size=25))
    return [
        change(
            partition,
            draw(replica_lists),
            draw(replica_lists),
            topic=topic,
            size_bytes=draw(st.integers(0, 200)),
            leader=draw(st.integers(0, 8) | st.none() if leaderless else st.integers(0, 8)),
            reason=draw(st.sampled_from(Reason)),
        )
        for topic, partition in names
    ]
