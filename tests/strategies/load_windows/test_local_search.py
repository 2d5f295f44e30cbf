"""Repairing and polishing a placement keeps counts and racks, brings loads into their windows, and loses nothing."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from clusters import balance_of, no_racks, problem_of, problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring.windows import windows
from planner.strategies.flow.placement import on_brokers, place, widened
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.load_windows import local_search
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.local_search import polish, repair
from planner.strategies.load_windows.local_search_state import SearchPlacement, SearchState, of_layout

DISKS = st.sampled_from((0.0, 2.0, 10.0, 50.0))


def started(problem: Problem) -> SearchPlacement:
    """The cheapest placement for a problem's counts, not yet within its windows of bytes."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    placed = place(problem, layout, wanted)
    within = widened(layout, wanted, placed)
    loads = byte_loads(problem, layout, wanted)
    search = of_layout(layout, within, layout.size_bytes, loads)
    return SearchPlacement(search, on_brokers(layout, placed.chosen))


@st.composite
def placements(draw: st.DrawFn, **options: object) -> tuple[SearchPlacement, SearchPlacement]:
    """The same placement twice: partitions of different sizes and traffic, with windows of both."""
    problem = draw(problems(**options))
    seed = draw(st.integers(0, 1000))
    sizes, rates = (np.random.default_rng(seed + more).integers(1, 100, problem.rows) for more in (0, 1))
    disk, traffic = (Tolerance("percent", draw(DISKS)) for _ in range(2))
    balance = replace(problem.balance, disk=disk, network_in=traffic if draw(st.booleans()) else Tolerance("none"))
    sized = replace(problem, size_bytes=sizes, bytes_in_per_sec=rates, balance=balance)
    assume(len(lay_out(sized, 0).rows))
    return started(sized), started(sized)


def promises(placement: SearchPlacement, replicas: np.ndarray) -> None:
    """Asserts that rows have their replicas (M,), racks and counts are within windows, and all sums are right."""
    search = placement.search
    assert replicas.tolist() == placement.on.sum(axis=1).tolist()
    assert (placement.in_rack >= search.least).all()
    assert (placement.in_rack <= search.most).all()
    for counts, (low, high) in ((placement.cells, search.cell_windows), (placement.counts, search.broker_windows)):
        assert (counts >= low).all()
        assert (counts <= high).all()
    again = SearchPlacement(search, placement.on.copy())
    for name in ("in_rack", "load", "cells", "counts"):
        assert getattr(again, name).tolist() == getattr(placement, name).tolist()


@examples(80)
@given(placements(brokers=6, topics=3, partitions=6))
def test_counts_and_racks_are_kept(pair: tuple[SearchPlacement, SearchPlacement]) -> None:
    """Whatever is exchanged, no count leaves its window, no rack holds more or less of a row than it may."""
    placement, _ = pair
    replicas = placement.on.sum(axis=1)
    for make in (lambda: repair(placement, np.zeros(placement.load.shape)), lambda: polish(placement)):
        make()
        promises(placement, replicas)


@examples(80)
@given(placements(brokers=6, topics=3, partitions=6))
def test_polishing_never_costs_and_never_breaks(pair: tuple[SearchPlacement, SearchPlacement]) -> None:
    """Polished placements cost no more, and all brokers together are no further outside their windows."""
    placement, _ = pair
    repair(placement, np.zeros(placement.load.shape))
    cost, outside = placement.cost, placement.outside().sum()
    polish(placement)
    assert placement.cost <= cost
    assert placement.outside().sum() <= outside


@examples(80)
@given(placements(brokers=6, topics=3, partitions=6))
def test_several_exchanges_at_once_keep_the_same_promises(pair: tuple[SearchPlacement, SearchPlacement]) -> None:
    """As large placements are polished: no count leaves its window, no load goes further out, and nothing is left."""
    placement, _ = pair
    repair(placement, np.zeros(placement.load.shape))
    replicas, cost, outside = placement.on.sum(axis=1), placement.cost, placement.outside().sum()
    with patch.object(local_search.work_limits, "LARGE_PLACEMENT", 0):
        polish(placement)
    promises(placement, replicas)
    assert placement.cost <= cost
    assert placement.outside().sum() <= outside
    polished = placement.cost
    polish(placement)
    assert polished == placement.cost


def test_enough_is_enough() -> None:
    """Polishing stops as soon as the placement costs no more than was asked for."""
    costs = []
    for enough in (10**9, 12, 0):
        placement = far_from_home(6)
        polish(placement, enough)
        costs.append(placement.cost)
    assert [24, 12, 0] == costs


def far_from_home(pairs: int) -> SearchPlacement:
    """Pairs of rows of one topic: each row has 2 bytes, and is on the home broker of the pair's other row."""
    rows = 2 * pairs
    home = np.arange(rows) % 2
    levels = np.ones((rows, 2), dtype=np.int8)
    levels[np.arange(rows), home] = 0
    search = SearchState(
        topics=np.zeros(rows, dtype=np.int64),
        costs=np.full(rows, 2, dtype=np.int64),
        levels=levels,
        allowed=None,
        racks=np.zeros(2, dtype=np.int64),
        least=np.ones((rows, 1), dtype=np.int64),
        most=np.ones((rows, 1), dtype=np.int64),
        loads=np.full((1, rows), 2, dtype=np.int64),
        scales=np.ones(1, dtype=np.int64),
        load_windows=np.array([[[0, 0], [100, 100]]], dtype=np.int64),
        cell_windows=np.array([[[pairs, pairs]], [[pairs, pairs]]], dtype=np.int64),
        broker_windows=np.array([[pairs, pairs], [pairs, pairs]], dtype=np.int64),
    )
    return SearchPlacement(search, levels.astype(bool))


@examples(80)
@given(placements(brokers=6, topics=3, partitions=6))
def test_for_nothing_costs_nothing(pair: tuple[SearchPlacement, SearchPlacement]) -> None:
    """Where bytes come first, evenness is mended only by replicas that cost no more where they go."""
    placement, before = pair
    repair(placement, np.zeros(placement.load.shape), for_nothing=True)
    levels = placement.search.levels
    assert ((placement.on * levels).sum(axis=1) <= (before.on * levels).sum(axis=1)).all()
    assert placement.outside().sum() <= before.outside().sum()


@examples(40)
@given(placements(brokers=6, topics=3, partitions=6))
def test_deterministic(pair: tuple[SearchPlacement, SearchPlacement]) -> None:
    """Equal placements are repaired and polished alike."""
    for placement in pair:
        repair(placement, np.zeros(placement.load.shape))
        polish(placement)
    first, second = pair
    assert first.on.tolist() == second.on.tolist()


def test_huge_partitions_are_no_reason_to_go_round_in_circles() -> None:
    """Partitions of up to 90 terabytes, with bytes first: costs fit into integers, and repairing ends."""
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"t": [(1, 4), (2, 4), (3, 4), (1, 4), (1, 4)]},
        sizes={"t": [9 * 10**13, 8 * 10**13, 10**13, 7 * 10**13, 10**12]},
        changes=Changes(remove_brokers=(4,), rebalance="none"),
    )
    placement = started(replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", 1))))
    cost = placement.cost
    repair(placement, np.zeros(placement.load.shape), for_nothing=True)
    assert cost == placement.cost


def test_a_broker_too_empty_is_filled_at_the_least_cost() -> None:
    """The flow gives the new broker two partitions of 1 byte; it needs 6 bytes, and gets 5 instead of 1 for one."""
    problem = problem_of(
        no_racks(1, 2),
        {"a": [(1,), (1,), (1,), (2,), (2,), (2,)]},
        sizes={"a": [10, 4, 1, 10, 5, 1]},
        changes=Changes(add_brokers=(Broker(3),)),
        balance=replace(balance_of(1, 1, "none"), disk=Tolerance("percent", 50)),
    )
    placement = started(problem)
    assert (2, [14, 15, 2]) == (placement.cost, placement.load[0].tolist())
    repair(placement, np.zeros(placement.load.shape))
    polish(placement)
    assert (6, [14, 11, 6]) == (placement.cost, placement.load[0].tolist())


def crossed(weights: list[int]) -> SearchPlacement:
    """Two rows of a topic, each on the other row's home broker; a broker may hold 3 to 5 bytes."""
    search = SearchState(
        topics=np.zeros(2, dtype=np.int64),
        costs=np.array(weights, dtype=np.int64),
        levels=np.array([[1, 0], [0, 1]], dtype=np.int8),
        allowed=None,
        racks=np.zeros(2, dtype=np.int64),
        least=np.ones((2, 1), dtype=np.int64),
        most=np.ones((2, 1), dtype=np.int64),
        loads=np.array([weights], dtype=np.int64),
        scales=np.ones(1, dtype=np.int64),
        load_windows=np.array([[[3, 3], [5, 5]]], dtype=np.int64),
        cell_windows=np.ones((2, 1, 2), dtype=np.int64),
        broker_windows=np.ones((2, 2), dtype=np.int64),
    )
    return SearchPlacement(search, np.eye(2, dtype=bool))


def test_two_rows_go_home() -> None:
    """Two rows that are each on the other's home broker change places, and nothing is copied."""
    placement = crossed([5, 3])
    polish(placement)
    assert ([[False, True], [True, False]], 0) == (placement.on.tolist(), placement.cost)


def test_an_exchange_that_would_break_a_window_is_left() -> None:
    """Two rows don't change places, if the row of 9 bytes would take the other broker above its 5 bytes."""
    placement = crossed([9, 3])
    placement.search.load_windows[0, 1, 0] = 9
    polish(placement)
    assert np.eye(2, dtype=bool).tolist() == placement.on.tolist()


def test_polishing_stops_where_it_is_enough() -> None:
    """A placement that costs no more than the bound is left unchanged."""
    placement = crossed([5, 3])
    polish(placement, goal=8)
    assert np.eye(2, dtype=bool).tolist() == placement.on.tolist()
