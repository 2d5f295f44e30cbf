"""Each partition is elected once, after its last step, and elections are spread evenly over the batches."""

from __future__ import annotations

from collections import Counter

import pytest
from batch_changes import change, plans, rules, steps
from hypothesis import given
from hypothesis import strategies as st

from planner.execution.batch_cutting import evenly, split
from planner.model.cluster import PartitionChange
from planner.model.spec import BatchRules


@pytest.mark.parametrize(
    ("count", "held", "most", "wanted"),
    [
        (0, [], 5, []),
        (3, [], None, [0, 0, 0]),
        (5, [0, 0], None, [0, 0, 0, 1, 1]),
        (5, [9, 0], None, [0, 0, 0, 1, 1]),
        (4, [2, 0], 3, [0, 1, 1, 1]),
        (4, [3, 3], 3, [2, 2, 2, 3]),
        (1_100, [0], 500, [0] * 367 + [1] * 367 + [2] * 366),
    ],
)
def test_elections_are_spread_within_the_limit(
    count: int, held: list[int], most: int | None, wanted: list[int]
) -> None:
    """Elections are spread evenly; new batches are added only if the others have no room."""
    found = evenly(count, held, most)
    assert Counter(wanted) == Counter(found)
    assert sorted(found) == found


@given(st.integers(0, 60), st.lists(st.integers(0, 9), max_size=6), st.none() | st.integers(1, 9))
def test_each_has_a_batch_and_none_is_over_the_limit(count: int, held: list[int], most: int | None) -> None:
    """What a batch holds already counts, and no more batches are appended than it takes."""
    found = Counter(evenly(count, held, most))
    assert count == found.total()
    if most is not None:
        assert all(number + (held[at] if at < len(held) else 0) <= most for at, number in found.items() if number)
        room = sum(max(most - each, 0) for each in held)
        assert max(found, default=-1) < max(len(held) - (-max(count - room, 0) // most), 1)


@given(plans(leaderless=False), rules)
def test_a_partition_is_elected_once_and_when_its_list_is_final(
    changes: list[PartitionChange], given_rules: BatchRules
) -> None:
    """In the batch of its last step; those whose leader alone is off are spread evenly."""
    batches = split(changes, given_rules)
    last = {(step.topic, step.partition): batch.number for batch in batches for step in batch.steps}
    elected = [(name, batch.number) for batch in batches for name in batch.elect]

    assert sorted((c.topic, c.partition) for c in changes if c.elects) == sorted(name for name, _ in elected)
    assert all(last.get(name, number) == number for name, number in elected)
    alone = Counter(number for name, number in elected if name not in last)
    counts = [alone[batch.number] for batch in batches]
    assert given_rules.elections is not None or max(counts, default=0) - min(counts, default=0) <= 1


def test_leaders_that_are_off_are_elected_evenly_and_not_reassigned() -> None:
    """Partitions that only need an election aren't reassigned, and their elections are spread over the batches."""
    changes = [*(change(p, (1,), (2,)) for p in range(2)), *(change(p, (1, 2), (1, 2), leader=2) for p in range(6, 9))]
    batches = split(changes, BatchRules(moves_per_broker=1))

    assert [[("t", 0)], [("t", 1)]] == steps(batches)
    assert [(("t", 0), ("t", 6), ("t", 7)), (("t", 1), ("t", 8))] == [batch.elect for batch in batches]


def test_elections_alone_need_one_batch() -> None:
    """A plan that only elects leaders has one batch."""
    batches = split([change(p, (1, 2), (1, 2), leader=2) for p in range(3)], BatchRules(bytes=1))

    assert [((), (("t", 0), ("t", 1), ("t", 2)))] == [(batch.steps, batch.elect) for batch in batches]
