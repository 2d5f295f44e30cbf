"""Min-cost flow with windows, against brute force on small bipartite networks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.scoring.window_excess import excess
from planner.strategies.flow import min_cost_flow


def bipartite(costs: list[list[int]]) -> tuple[min_cost_flow.Arcs, np.ndarray]:
    """Sends one unit from each left node to a right node at these costs; the sink is the last node."""
    left, right = len(costs), len(costs[0])
    tails, heads = (axis.ravel() for axis in np.indices((left, right)))
    supplies = np.zeros(left + right + 1, dtype=np.int64)
    supplies[:left], supplies[-1] = 1, -left
    return min_cost_flow.arcs(tails, heads + left, 1, np.array(costs).ravel()), supplies


def windows_of(left: int, bounds: list[tuple[int, int]], price: int) -> min_cost_flow.Windowed:
    """A window on the units that each right node sends to the sink."""
    nodes = np.arange(len(bounds)) + left
    return min_cost_flow.window(nodes, np.full_like(nodes, left + len(bounds)), np.array(bounds).T, left, price)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Costs (left, right) and a window for each right node."""
    left, right = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 9), min_size=right, max_size=right)
    lows = draw(st.lists(st.integers(-2, 7), min_size=right, max_size=right))
    bounds = [(low, low + draw(st.integers(0, 3))) for low in lows]
    return draw(st.lists(row, min_size=left, max_size=left)), bounds


def judged(
    costs: list[list[int]], bounds: list[tuple[int, int]], price: int, heads: tuple[int, ...]
) -> tuple[int, int]:
    """The priced excess and the cost, if each left node sends its unit to the given right node."""
    counts = np.bincount(heads, minlength=len(bounds))
    return int(excess(np.array(bounds).T, counts, price)), sum(costs[at][head] for at, head in enumerate(heads))


@examples(200)
@given(networks(), st.sampled_from([1, 100]), st.booleans())
def test_elastic_windows(
    network: tuple[list[list[int]], list[tuple[int, int]]], price: int, excess_first: bool
) -> None:
    """Least excess, then least cost, or the other way round; also for windows below 0 or above all there is."""
    costs, bounds = network
    plain, supplies = bipartite(costs)
    solve = min_cost_flow.solve_excess_first if excess_first else min_cost_flow.solve_cost_first
    solved = solve(plain, (windows_of(len(costs), bounds, price),), supplies)
    assert solved is not None
    chosen = tuple(solved.units.reshape(len(costs), -1).argmax(axis=1).tolist())
    prices = [judged(costs, bounds, price, heads) for heads in product(range(len(bounds)), repeat=len(costs))]
    best = min(prices, key=lambda pair: pair if excess_first else pair[::-1])
    assert best == judged(costs, bounds, price, chosen)
    assert best[1] == solved.cost


def test_costs_that_leave_no_room_for_prices() -> None:
    """If the prices of excess are too large for the solver, the first of the two aims still reaches its minimum."""
    dear = min_cost_flow.largest_cost(23) // 64
    costs, bounds = [[0, dear]] * 20, [(0, 0), (0, 0)]
    plain, supplies = bipartite(costs)
    even = min_cost_flow.solve_excess_first(plain, (windows_of(20, bounds, 100),), supplies)
    cheap = min_cost_flow.solve_cost_first(plain, (windows_of(20, bounds, 100),), supplies)
    assert even is not None
    assert cheap is not None
    heads = even.units.reshape(20, 2).argmax(axis=1)
    assert excess(np.array(bounds).T, np.array([10, 10]), 100) == judged(costs, bounds, 100, tuple(heads.tolist()))[0]
    assert 0 == cheap.cost


def test_costs_beyond_the_solvers_limit_are_said() -> None:
    """Costs that would overflow raise an error; they don't count as "no flow"."""
    plain, supplies = bipartite([[0, min_cost_flow.largest_cost(4) + 1]])
    with pytest.raises(min_cost_flow.CostRangeError):
        min_cost_flow.solve(plain, (), supplies)


@examples(100)
@given(networks())
def test_hard_windows_hold_or_there_is_no_flow(network: tuple[list[list[int]], list[tuple[int, int]]]) -> None:
    """None exactly where no choice keeps every window; else the cheapest that does."""
    costs, bounds = network
    plain, supplies = bipartite(costs)
    reachable = [(min(max(low, 0), len(costs)), min(max(high, 0), len(costs))) for low, high in bounds]
    solved = min_cost_flow.solve(plain, (windows_of(len(costs), bounds, 1),), supplies)
    kept = [
        sum(costs[at][head] for at, head in enumerate(heads))
        for heads in product(range(len(bounds)), repeat=len(costs))
        if all(low <= heads.count(head) <= high for head, (low, high) in enumerate(reachable))
    ]
    assert (min(kept) if kept else None) == (solved.cost if solved else None)


def test_lower_bounds_on_plain_arcs() -> None:
    """An arc with a lower bound of one unit carries that unit, although it is the more expensive arc."""
    tails, heads = np.array([0, 0]), np.array([1, 1])
    arcs = min_cost_flow.arcs(tails, heads, 2, np.array([1, 5]), np.array([0, 1]))
    solved = min_cost_flow.solve(arcs, (), np.array([2, -2]))
    assert solved is not None
    assert ([1, 1], 6, 0) == (solved.units.tolist(), solved.cost, solved.excess)


def test_excess_is_shared_before_it_grows() -> None:
    """Two units beyond windows of 0 go to two brokers, one each, because a second unit on a broker costs more."""
    plain, supplies = bipartite([[0, 0], [0, 0]])
    solved = min_cost_flow.solve_excess_first(plain, (windows_of(2, [(0, 0), (0, 0)], 10),), supplies)
    assert solved is not None
    assert ([1, 1], 20) == (solved.units.reshape(2, 2).sum(axis=0).tolist(), solved.excess)


def test_no_flow_is_none() -> None:
    """If the plain arcs can't carry the supplies, there is no flow, even if windows are elastic."""
    arcs = min_cost_flow.arcs(np.array([0]), np.array([1]), 1, 0)
    assert min_cost_flow.solve_excess_first(arcs, (), np.array([2, -2])) is None


def steps(
    plain: min_cost_flow.Arcs, windowed: min_cost_flow.Windowed, solved: min_cost_flow.Flow, prices: np.ndarray
) -> list[tuple[int, int]]:
    """The reduced cost of one unit more, and of one unit less, on each arc that has room for it.

    Costs are rounded as for the solver; windows are widened to what the flow sends through them.
    """
    carried = np.concatenate([solved.units, solved.through[0]])
    low = np.concatenate([plain.lows, np.minimum(windowed.low, solved.through[0])])
    high = np.concatenate([plain.capacities, np.maximum(windowed.high, solved.through[0])])
    costs = np.concatenate([plain.costs >> solved.shift << solved.shift, np.zeros_like(windowed.low)])
    tails, heads = (np.concatenate([getattr(plain, end), getattr(windowed, end)]) for end in ("tails", "heads"))
    reduced = costs + prices[tails] - prices[heads]
    more, less = reduced[carried < high].tolist(), (-reduced[carried > low]).tolist()
    return [(step, 0) for step in more] + [(0, step) for step in less]


@examples(150)
@given(networks(), st.sampled_from([1, 100]))
def test_potentials_prove_the_flow(network: tuple[list[list[int]], list[tuple[int, int]]], price: int) -> None:
    """At the nodes' prices no unit can be sent another way for less: neither more over an arc, nor less."""
    costs, bounds = network
    plain, supplies = bipartite(costs)
    windowed = windows_of(len(costs), bounds, price)
    solved = min_cost_flow.solve_excess_first(plain, (windowed,), supplies)
    assert solved is not None
    prices = min_cost_flow.potentials(plain, (windowed,), supplies, solved)
    assert len(supplies) == len(prices)
    assert all(more >= 0 and less >= 0 for more, less in steps(plain, windowed, solved, prices))


def test_potentials_by_hand() -> None:
    """One unit for each of two ends: the end that costs 3 or 5 to reach is worth 3 to 5 more than the one for 0."""
    plain, supplies = bipartite([[0, 5], [0, 3]])
    windowed = windows_of(2, [(1, 1), (1, 1)], 1)
    solved = min_cost_flow.solve(plain, (windowed,), supplies)
    assert solved is not None
    prices = min_cost_flow.potentials(plain, (windowed,), supplies, solved)
    assert 3 <= prices[3] - prices[2] <= 5
    assert 3 == solved.cost


def test_potentials_of_costs_that_were_rounded() -> None:
    """If costs had to be rounded down to fit, the prices are whole numbers that fit the rounded costs."""
    dear = min_cost_flow.largest_cost(23) // 64
    plain, supplies = bipartite([[0, dear + at] for at in range(20)])
    windowed = windows_of(20, [(0, 0), (0, 0)], 100)
    solved = min_cost_flow.solve_excess_first(plain, (windowed,), supplies)
    assert solved is not None
    prices = min_cost_flow.potentials(plain, (windowed,), supplies, solved)
    assert 0 < solved.shift
    assert all(more >= 0 and less >= 0 for more, less in steps(plain, windowed, solved, prices))
    assert dear >> solved.shift << solved.shift == prices[21] - prices[20]


def test_potentials_without_arcs() -> None:
    """Without arcs, all prices are 0."""
    none = np.zeros(0, dtype=np.int64)
    empty = min_cost_flow.arcs(none, none, 1, 0)
    solved = min_cost_flow.Flow(none, 0, 0, ())
    assert [0, 0] == min_cost_flow.potentials(empty, (), np.zeros(2, dtype=np.int64), solved).tolist()


# Two sources with two units each, three arcs from each source, and a sink.
TAILS = np.array([0, 0, 0, 1, 1, 1, 2, 3, 4], dtype=np.int32)
HEADS = np.array([2, 3, 4, 2, 3, 4, 5, 5, 5], dtype=np.int32)
SUPPLIES = np.array([2, 2, 0, 0, 0, -4])


def ways() -> list[tuple[int, ...]]:
    """Every flow of the network: at most one unit on an arc from a source, at most two on an arc to the sink."""
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
    face = min_cost_flow.face_of(arcs, (), solved, 6)
    cheapest = min(int(np.dot(way, first)) for way in ways())
    tied = [way for way in ways() if int(np.dot(way, first)) == cheapest]
    assert all(((face.low <= way) & (way <= face.high)).all() for way in np.array(tied))
    for objective in (second, third):
        face = face.cheapest(np.array(objective))
        cheapest = min(int(np.dot(way, objective)) for way in tied)
        tied = [way for way in tied if int(np.dot(way, objective)) == cheapest]
        assert tuple(face.units.tolist()) in tied


def test_without_ties_nothing_is_free() -> None:
    """If one flow is cheaper than all others, no arc is free to change."""
    arcs = min_cost_flow.arcs(TAILS, HEADS, np.array([1] * 6 + [2] * 3), np.array([0, 1, 4, 9, 3, 2, 0, 0, 0]))
    solved = min_cost_flow.solve(arcs, (), SUPPLIES)
    assert solved is not None
    assert not min_cost_flow.face_of(arcs, (), solved, 6).free[:6].any()


def test_windows_that_are_exceeded_stay_as_far_exceeded() -> None:
    """Two units too many for windows of one: either broker may take the second unit, and none takes a third."""
    arcs = min_cost_flow.arcs(np.array([0, 0]), np.array([1, 2]), 9, 0)
    window = min_cost_flow.window(np.array([1, 2]), np.array([3, 3]), np.array([[0, 0], [1, 1]]), 3, 1)
    supplies = np.array([3, 0, 0, -3])
    solved = min_cost_flow.solve_excess_first(arcs, (window,), supplies)
    assert solved is not None
    face = min_cost_flow.face_of(arcs, (window,), solved, 4)
    assert [1, 2] == face.cheapest(np.array([5, 0, *[0] * (len(face.units) - 2)])).units[:2].tolist()
    assert [2, 1] == face.cheapest(np.array([0, 5, *[0] * (len(face.units) - 2)])).units[:2].tolist()


def test_what_is_fixed_stays() -> None:
    """Arcs that are fixed keep their units."""
    arcs = min_cost_flow.arcs(TAILS, HEADS, np.array([1] * 6 + [2] * 3), 0)
    solved = min_cost_flow.solve(arcs, (), SUPPLIES)
    assert solved is not None
    face = min_cost_flow.face_of(arcs, (), solved, 6).fixed(np.arange(9) < 3)
    again = face.cheapest(np.array([7, 7, 7, 1, 1, 1, 0, 0, 0]) * (1 + face.units))
    assert face.units[:3].tolist() == again.units[:3].tolist()
