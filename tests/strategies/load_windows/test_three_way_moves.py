"""Rings over three brokers, one by one: what makes one, and what forbids it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters import problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Tolerance
from planner.scoring.windows import windows
from planner.strategies.flow.layout import lay_out
from planner.strategies.flow.placement import on_brokers, place, widened
from planner.strategies.load_windows import three_way_moves
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.local_search_state import Arena, Placement, of_layout
from planner.strategies.load_windows.three_way_moves import take_rings


def arena(homes: list[int], weights: list[int], **rest: Any) -> Arena:
    """Rows of one topic on brokers of one rack: a row costs its weight but at home, and loads stay what they are."""
    rows, brokers = len(homes), max(homes) + 1
    levels = np.ones((rows, brokers), dtype=np.int8)
    levels[np.arange(rows), homes] = 0
    made = Arena(
        topics=np.zeros(rows, dtype=np.int64),
        costs=np.array(weights, dtype=np.int64),
        levels=levels,
        allowed=None,
        racks=np.zeros(brokers, dtype=np.int64),
        least=np.ones((rows, 1), dtype=np.int64),
        most=np.ones((rows, 1), dtype=np.int64),
        loads=np.array([weights], dtype=np.int64),
        scales=np.ones(1, dtype=np.int64),
        load_windows=np.array([[[0] * brokers, [100] * brokers]], dtype=np.int64),
        cell_windows=np.ones((2, 1, brokers), dtype=np.int64),
        broker_windows=np.ones((2, brokers), dtype=np.int64),
    )
    return replace(made, **rest)


def placed(of: Arena, brokers: list[int]) -> Placement:
    """One replica of each row, on these brokers."""
    on = np.zeros((len(brokers), of.levels.shape[1]), dtype=bool)
    on[np.arange(len(brokers)), brokers] = True
    return Placement(of, on)


def lies(placement: Placement) -> list[int]:
    """The broker of each row's replica."""
    return [int(broker) for broker in placement.on.argmax(axis=1)]


def test_all_three_go_home() -> None:
    """Each of three rows lies where the next is at home."""
    placement = placed(arena([1, 2, 0], [5, 3, 4]), [0, 1, 2])
    assert (True, [1, 2, 0], 0) == (take_rings(placement), lies(placement), placement.cost)


def test_a_ring_may_cost_on_the_way() -> None:
    """The third row leaves its home for it, and that is still cheaper: 5 and 3 saved, 1 paid."""
    placement = placed(arena([1, 2, 2], [5, 3, 1]), [0, 1, 2])
    assert (True, [1, 2, 0], 1) == (take_rings(placement), lies(placement), placement.cost)


def test_no_ring_where_none_saves() -> None:
    """Rows that are at home stay."""
    placement = placed(arena([0, 1, 2], [5, 3, 4]), [0, 1, 2])
    assert (False, [0, 1, 2]) == (take_rings(placement), lies(placement))


def test_rings_stay_within_a_topic() -> None:
    """A ring of rows of two topics would change the counts of both: it is none."""
    windows_of_two = np.array([np.zeros((2, 3)), np.ones((2, 3))], dtype=np.int64)
    of = arena([1, 2, 0], [5, 3, 4], topics=np.array([0, 0, 1]), cell_windows=windows_of_two)
    assert not take_rings(placed(of, [0, 1, 2]))


@pytest.mark.parametrize("row", [0, 1, 2])
def test_brokers_that_a_row_may_not_go_to(row: int) -> None:
    """Whichever of the three may not go on, there is no ring."""
    allowed = np.ones((3, 3), dtype=bool)
    allowed[row, (row + 1) % 3] = False
    assert not take_rings(placed(arena([1, 2, 0], [5, 3, 4], allowed=allowed), [0, 1, 2]))


@pytest.mark.parametrize("row", [0, 1, 2])
def test_racks_that_may_not_do_without_a_row(row: int) -> None:
    """Whichever of the three may not leave its rack, there is no ring; where all may, there is."""
    least, most = np.zeros((3, 3), dtype=np.int64), np.ones((3, 3), dtype=np.int64)
    racks = np.arange(3)
    free = arena([1, 2, 0], [5, 3, 4], racks=racks, least=least, most=most)
    bound = replace(free, least=np.where((np.arange(3) == row)[:, None] & np.eye(3, dtype=bool), 1, least))
    assert (True, False) == (take_rings(placed(free, [0, 1, 2])), take_rings(placed(bound, [0, 1, 2])))


def test_loads_may_come_nearer_to_their_windows_but_not_further() -> None:
    """Nine bytes would leave broker 0 too empty; where another gains as much by it, the sum decides."""
    low, high = [9, 0, 0], [9, 9, 9]
    away = arena([1, 2, 0], [9, 3, 4], load_windows=np.array([[low, high]]))
    mended = replace(away, load_windows=np.array([[[9, 9, 0], [9, 9, 9]]]))
    assert (False, True) == (take_rings(placed(away, [0, 1, 2])), take_rings(placed(mended, [0, 1, 2])))


@pytest.mark.parametrize(("weights", "expected"), [([50, 3, 2, 1], [1, 2, 2, 0]), ([50, 3, 1, 2], [1, 2, 0, 2])])
def test_the_ring_that_saves_the_most_comes_first(weights: list[int], expected: list[int]) -> None:
    """Row 0 gets home with either partner; the one that is cheaper to push aside goes."""
    of = arena([1, 2, 2, 2], weights, cell_windows=np.array([[[1, 1, 2]], [[1, 1, 2]]]))
    placement = placed(of, [0, 1, 2, 2])
    assert take_rings(placement)
    assert expected == lies(placement)


def test_nobody_goes_where_they_are() -> None:
    """Row 1 has a replica on broker 2 already, so it doesn't make place by going there."""
    twice = arena([1, 2, 0], [5, 3, 4], least=np.array([[1], [2], [1]]), most=np.array([[1], [2], [1]]))
    placement = placed(twice, [0, 1, 2])
    placement.on[1, 2] = True
    held = Placement(twice, placement.on)
    assert (False, [1, 2, 1]) == (take_rings(held), held.on.sum(axis=1).tolist())


def test_of_too_many_rings_some_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three at once are enough to find the only one there is."""
    monkeypatch.setattr(three_way_moves, "_MOST_RINGS", 3)
    placement = placed(arena([1, 2, 0], [5, 3, 4]), [0, 1, 2])
    assert (True, 0) == (take_rings(placement), placement.cost)


@examples(60)
@given(problems(brokers=6, topics=3, partitions=6), st.integers(0, 1000))
def test_every_count_is_left_as_it_was(problem: Any, seed: int) -> None:
    """From anywhere: counts and racks stay, bytes copied go down by the ring, no load is further outside in sum."""
    rng = np.random.default_rng(seed)
    balance = replace(problem.balance, disk=Tolerance("percent", 10))
    sized = replace(problem, size_bytes=rng.integers(1, 50, problem.rows), balance=balance)
    layout, wanted = lay_out(sized, 0), windows(sized, sized.balance)
    assume(len(layout.rows))
    flowed = place(sized, layout, wanted)
    of = of_layout(layout, widened(layout, wanted, flowed), layout.size_bytes, byte_loads(sized, layout, wanted))
    # Homes that have nothing to do with where rows lie: then there are rings.
    of = replace(of, levels=rng.integers(0, 2, of.levels.shape).astype(np.int8))
    placement = Placement(of, on_brokers(layout, flowed.chosen))
    cells, cost, outside = placement.cells.tolist(), placement.cost, placement.outside().sum()
    replicas = placement.on.sum(axis=1).tolist()
    any_ring = take_rings(placement)
    assert (cells, any_ring) == (placement.cells.tolist(), placement.cost < cost)
    assert placement.outside().sum() <= outside
    assert (replicas, cells) == (placement.on.sum(axis=1).tolist(), Placement(of, placement.on.copy()).cells.tolist())
    assert ((placement.in_rack >= of.least) & (placement.in_rack <= of.most)).all()
