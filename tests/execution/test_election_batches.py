"""Elections over batches: even, within a limit with those that are there, in more batches where there is no room."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.execution.election_batches import evenly


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
    """Batches are appended only where the others have no room left."""
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
