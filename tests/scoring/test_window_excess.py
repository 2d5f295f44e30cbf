"""Excess over windows: its weight, and what it subtracts from a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.scoring.window_excess import Allowed, CountWindows, Loads, beyond, excess, weight

NOTHING = np.zeros(1, dtype=np.int64)


def counts(
    low: int, high: int, fixed: tuple[int, ...] = (0, 0), *, starts: range = range(0), price: int = 1
) -> CountWindows:
    """A window of replicas, the same on every broker, with nine replicas that may move."""
    bounds = np.array([[[low] * len(fixed)], [[high] * len(fixed)]], dtype=np.int64)
    ends = (starts[0], starts[-1]) if starts else (0, 0)
    return CountWindows(
        bounds=bounds,
        fixed=np.array([fixed], dtype=np.int64),
        movable=np.array([9]),
        price=price,
        open=np.array([bool(starts)]),
        first=np.array([ends[0]]),
        last=np.array([ends[1]]),
        spread=high - low,
    )


def allowed(windows: CountWindows, load: tuple[int, int]) -> Allowed:
    """This window for one topic and for all topics, and a window of one load on each broker."""
    bounds = np.array([[[load[0]] * windows.fixed.shape[1], [load[1]] * windows.fixed.shape[1]]], dtype=np.int64)
    return Allowed(windows, replace(windows, price=100), Loads(bounds, np.array([2])), furthest=NOTHING)


def test_further_units_weigh_more() -> None:
    """The first unit counts once, the next three count three times each, others ten times."""
    assert [0, 1, 4, 7, 10, 20, 30] == weight(np.arange(7), 1).tolist()
    assert [400, 100] == weight(np.array([2, 1]), 100).tolist()


def test_beyond_is_below_and_above() -> None:
    """How far a window is missed, below and above."""
    window = np.array([[2, 2, 2], [4, 4, 4]])
    assert [[1, 0, 0], [0, 0, 3]] == beyond(window, np.array([1, 3, 7])).tolist()
    assert 1 + 7 == excess(window, np.array([1, 3, 7]), 1)


def test_open_windows_begin_where_it_suits() -> None:
    """If a window may begin anywhere, an amount within one of its starts isn't outside."""
    held = np.array([[5, 7]])
    assert 4 + 4 == counts(1, 3, (0, 0)).weigh(np.array([[5, 5]]))
    assert 0 == counts(1, 3, starts=range(1, 6)).weigh(held)
    assert 1 == counts(1, 3, starts=range(1, 5)).weigh(held)


def test_certain_units_are_outside_whatever_a_plan_does() -> None:
    """Replicas that may not move can exceed a window by themselves."""
    assert [[[0, 0]], [[2, 0]]] == counts(1, 3, (5, 0)).certain().tolist()
    assert 4 + 400 == allowed(counts(1, 3, (5, 0)), (0, 9)).certain


def test_what_a_plan_reaches() -> None:
    """Counts are weighted, loads are summed by the worth of a unit, and the furthest broker is kept."""
    none = allowed(counts(1, 3), (10, 20))
    found = none.reached(np.array([[5, 2]]), np.array([[25, 4]]))
    assert (4 + 400, 2 * (5 + 6), [6]) == (found.replicas, found.loads, found.furthest.tolist())
    assert found.holds(found)
    assert not found.holds(none.reached(np.array([[5, 2]]), np.array([[25, 3]])))
    assert found.holds(none.reached(np.array([[4, 2]]), np.array([[20, 4]])))
    assert none.none
    assert not found.none


@given(
    st.lists(st.integers(-3000, 3000), min_size=2, max_size=2),
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.lists(st.integers(0, 40), min_size=2, max_size=2),
    st.integers(0, 30),
    st.integers(0, 900),
    st.lists(st.integers(0, 4), min_size=2, max_size=2),
)
def test_prices_never_take_too_little(
    prices: list[int], held: list[int], load: list[int], of_loads: int, of_replicas: int, fixed: list[int]
) -> None:
    """For any prices, price × held is at least price × edge less what is taken off, for a plan at its limit."""
    none = allowed(counts(2, 4, (fixed[0], fixed[1])), (10, 20))
    most = none.reached(np.array([held]), np.array([load]))
    edges = (none.topics.bounds - none.topics.fixed).clip(0, 9)[:, 0]
    table = [[at, price, int(edges[int(price < 0), at])] for at, price in enumerate(prices) if price]
    counted = np.array(table, dtype=np.int64).reshape(-1, 3).T
    by_topic = np.concatenate([np.zeros_like(counted[:1]), counted])
    loads = np.array([[at, price, 10 if price > 0 else 20] for at, price in enumerate(prices) if price], dtype=np.int64)
    tables = (by_topic, counted, loads.reshape(-1, 3).T)
    value = sum(price * (2 * each + other) for price, each, other in zip(prices, held, load, strict=True))
    at_edges = sum(int((table[-2] * table[-1]).sum()) for table in tables)
    for priced in ((of_replicas, of_loads), most.prices(tables)):
        assert value >= at_edges - most.cost(tables, *priced)
    assert most.cost(tables, *most.prices(tables)) <= most.cost(tables, of_replicas, of_loads) + 100 * 2


def test_a_price_below_one_unit_is_not_rounded_up_to_it() -> None:
    """What is allowed outside is worth nothing where the prices are far below a unit of it."""
    most = allowed(counts(2, 4), (10, 20)).reached(np.array([[0, 0]]), np.array([[0, 0]]))
    tables = np.array([[0], [1], [-1], [4]]), np.array([[1], [-1], [4]]), np.array([[1], [-1], [20]])
    assert (808, 40) == (most.replicas, most.loads)
    assert (0, 0) == most.prices(tables)


def test_without_a_limit_steeper_prices_prove_nothing() -> None:
    """A price steeper than a unit outside has a huge cost, unless there is a limit on how far brokers are outside."""
    none = allowed(counts(0, 9), (10, 20))
    tables = np.zeros((4, 0), dtype=np.int64), np.zeros((3, 0), dtype=np.int64), np.array([[0], [5], [10]])
    assert 3 * 4 == replace(none, loads=4, furthest=np.array([0])).cost(tables, 0, 3)
    assert 1 * 7 == replace(none, furthest=np.array([7])).cost(tables, 0, 2)
    assert replace(none, furthest=None).cost(tables, 0, 2) > 1 << 300
    assert 0 == replace(none, furthest=None).cost(tables, 0, 3)
