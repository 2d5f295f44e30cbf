"""All cheapest flows of a network at once, and the best of them by a further objective."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.strategies.flow import min_cost_flow, optimal_face

# Two sources with two units each, three ways on from each, and a sink.
TAILS = np.array([0, 0, 0, 1, 1, 1, 2, 3, 4], dtype=np.int32)
HEADS = np.array([2, 3, 4, 2, 3, 4, 5, 5, 5], dtype=np.int32)
SUPPLIES = np.array([2, 2, 0, 0, 0, -4])


def ways() -> list[tuple[int, ...]]:
    """Every flow of the network, each arc of a source with at most one unit, each arc to the sink with two."""
    found = []
    for first in product((0, 1), repeat=6):
        into = [first[at] + first[at + 3] for at in range(3)]
        if sum(first[:3]) == sum(first[3:]) == 2 and max(into) <= 2:
            found.append((*first, *into))
    return found


costs = st.lists(st.integers(0, 2), min_size=9, max_size=9)


@examples(150)
@given(costs, costs, costs)
def test_objectives_in_their_order(first: list[int], second: list[int], third: list[int]) -> None:
    """Of all cheapest flows the cheapest by the second costs, then by the third; its range holds all cheapest ones."""
    arcs = min_cost_flow.arcs(TAILS, HEADS, np.array([1] * 6 + [2] * 3), np.array(first))
    solved = min_cost_flow.solve(arcs, (), SUPPLIES)
    assert solved is not None
    face = optimal_face.of(arcs, (), solved, 6)
    cheapest = min(int(np.dot(way, first)) for way in ways())
    tied = [way for way in ways() if int(np.dot(way, first)) == cheapest]
    assert all(((face.low <= way) & (way <= face.high)).all() for way in np.array(tied))
    for objective in (second, third):
        face = face.cheapest(np.array(objective))
        cheapest = min(int(np.dot(way, objective)) for way in tied)
        tied = [way for way in tied if int(np.dot(way, objective)) == cheapest]
        assert tuple(face.units.tolist()) in tied


def test_without_ties_nothing_is_free() -> None:
    """One way that is cheaper than all others is the only one."""
    arcs = min_cost_flow.arcs(TAILS, HEADS, np.array([1] * 6 + [2] * 3), np.array([0, 1, 4, 9, 3, 2, 0, 0, 0]))
    solved = min_cost_flow.solve(arcs, (), SUPPLIES)
    assert solved is not None
    assert not optimal_face.of(arcs, (), solved, 6).free[:6].any()


def test_windows_that_are_exceeded_stay_as_far_exceeded() -> None:
    """Two units too many for windows of one: either broker may have the second one, and none has three."""
    arcs = min_cost_flow.arcs(np.array([0, 0]), np.array([1, 2]), 9, 0)
    window = min_cost_flow.window(np.array([1, 2]), np.array([3, 3]), np.array([[0, 0], [1, 1]]), 3, 1)
    supplies = np.array([3, 0, 0, -3])
    solved = min_cost_flow.solve_excess_first(arcs, (window,), supplies)
    assert solved is not None
    face = optimal_face.of(arcs, (window,), solved, 4)
    assert [1, 2] == face.cheapest(np.array([5, 0, *[0] * (len(face.units) - 2)])).units[:2].tolist()
    assert [2, 1] == face.cheapest(np.array([0, 5, *[0] * (len(face.units) - 2)])).units[:2].tolist()


def test_what_is_fixed_stays() -> None:
    """The flows that are as now on some arcs."""
    arcs = min_cost_flow.arcs(TAILS, HEADS, np.array([1] * 6 + [2] * 3), 0)
    solved = min_cost_flow.solve(arcs, (), SUPPLIES)
    assert solved is not None
    face = optimal_face.of(arcs, (), solved, 6).fixed(np.arange(9) < 3)
    again = face.cheapest(np.array([7, 7, 7, 1, 1, 1, 0, 0, 0]) * (1 + face.units))
    assert face.units[:3].tolist() == again.units[:3].tolist()
