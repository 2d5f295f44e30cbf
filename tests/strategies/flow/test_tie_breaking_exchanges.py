"""Equally cheap placements: leaders stay and copies stay within racks, in the order of the aims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters import balance_of, ids_of, no_racks, problem_of, problems
from hypothesis import given
from properties import examples

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import AIMS, Changes
from planner.scoring.score import ScoringBasis, score
from planner.strategies.flow import tie_breaking_exchanges
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.flow.tie_breaking_exchanges import Ties, break_ties, ties
from planner.strategies.load_windows.local_search_state import SearchPlacement, SearchState
from planner.strategies.optimum import solve

NO_WINDOWS = balance_of("none", "none", "none")


def search(levels: list[list[int]], weights: list[int], **rest: Any) -> SearchState:
    """Rows of one topic cost their weight if the level is 1; brokers 0 and 1 are in rack 0, broker 2 is in rack 1."""
    rows, brokers = len(levels), len(levels[0])
    made = SearchState(
        topics=np.zeros(rows, dtype=np.int64),
        costs=np.array(weights),
        levels=np.array(levels, dtype=np.int8),
        allowed=None,
        racks=np.array([0, 0, 1])[:brokers],
        least=np.zeros((rows, 2), dtype=np.int64),
        most=np.ones((rows, 2), dtype=np.int64),
        loads=np.array([weights]),
        scales=np.ones(1, dtype=np.int64),
        load_windows=np.array([[[0] * brokers, [1000] * brokers]]),
        cell_windows=np.array([np.zeros((1, brokers)), np.full((1, brokers), 9)], dtype=np.int64),
        broker_windows=np.array([[0] * brokers, [9] * brokers]),
    )
    return replace(made, **rest)


def settled(of: SearchState, brokers: list[int], by: Ties) -> list[int]:
    """The broker of each row's one replica at the end."""
    on = np.zeros(of.levels.shape, dtype=bool)
    on[np.arange(len(brokers)), brokers] = True
    placement = SearchPlacement(of, on)
    break_ties(placement, by)
    return [int(broker) for broker in placement.on.argmax(axis=1)]


def by(leaders: list[int], racks: list[int], *, per_leader: float = 1.0, per_byte: float = 0.001) -> Ties:
    """Ties for rows of 10 bytes; brokers 0 and 1 are in rack 0, broker 2 is in rack 1."""
    return Ties(
        np.array(leaders), np.array(racks), np.array([0, 0, 1]), np.full(len(leaders), 10), per_leader, per_byte
    )


def test_a_row_goes_to_its_leader_for_nothing() -> None:
    """Two rows that cost the same on either broker change places, if then a leader keeps its replica."""
    free = search([[1, 1], [1, 1]], [10, 10])
    assert [1, 0] == settled(free, [0, 1], by([1, -1], [-1, -1]))
    assert [0, 1] == settled(free, [0, 1], by([0, -1], [-1, -1]))


def test_a_byte_is_too_much_for_it() -> None:
    """An exchange that costs or saves anything is no tie."""
    assert [0, 1] == settled(search([[0, 1], [1, 1]], [10, 10]), [0, 1], by([1, -1], [-1, -1]))
    assert [0, 1] == settled(search([[1, 0], [1, 1]], [10, 10]), [0, 1], by([1, -1], [-1, -1]))


def test_replicas_without_a_size_are_still_replicas() -> None:
    """An exchange that would copy an empty partition's replica is no tie either."""
    assert [0, 1] == settled(search([[0, 1], [1, 1]], [0, 0]), [0, 1], by([1, -1], [-1, -1]))


def test_bytes_are_copied_within_the_rack_they_are_in() -> None:
    """Two rows, each copied from the rack where the other one lies, change places, if they are copied at all."""
    free = search([[1, 1, 1], [1, 1, 1]], [10, 10])
    assert [2, 0] == settled(free, [0, 2], by([-1, -1], [1, 0]))
    assert [0, 2] == settled(free, [0, 2], by([-1, -1], [0, 1]))
    nothing_copied = search([[0, 0, 0], [0, 0, 0]], [10, 10])
    assert [0, 2] == settled(nothing_copied, [0, 2], by([-1, -1], [1, 0]))


@pytest.mark.parametrize(("per_leader", "expected"), [(10.0, [2, 0]), (0.001, [0, 2])])
def test_what_is_worth_more_decides(per_leader: float, expected: list[int]) -> None:
    """A leader in the other rack is weighed against 20 bytes copied between racks."""
    free = search([[1, 1, 1], [1, 1, 1]], [10, 10])
    assert expected == settled(free, [0, 2], by([2, -1], [0, 1], per_leader=per_leader, per_byte=0.1))


def test_no_load_goes_further_outside() -> None:
    """A row of 9 bytes doesn't change places with one of 5, if broker 1 would then exceed its 8 bytes."""
    of = search([[1, 1], [1, 1]], [9, 5], load_windows=np.array([[[0, 0], [10, 8]]]))
    even = replace(of, costs=np.array([9, 9]))
    assert [0, 1] == settled(even, [0, 1], by([1, -1], [-1, -1]))
    roomy = replace(even, load_windows=np.array([[[0, 0], [10, 9]]]))
    assert [1, 0] == settled(roomy, [0, 1], by([1, -1], [-1, -1]))


def test_exchanges_stay_within_topics() -> None:
    """Rows of different topics don't change places, because both topics' counts would change."""
    wide = np.array([np.zeros((2, 2)), np.full((2, 2), 9)], dtype=np.int64)
    of = search([[1, 1], [1, 1]], [10, 10], topics=np.array([0, 1]), cell_windows=wide)
    assert [0, 1] == settled(of, [0, 1], by([1, -1], [-1, -1]))


@pytest.mark.slow
@pytest.mark.parametrize("copies_only", [False, True])
@pytest.mark.parametrize("per_touched", [0.0, 1.0])
def test_pairs_of_brokers_that_are_passed_over_have_nothing_to_exchange(
    monkeypatch: pytest.MonkeyPatch, copies_only: bool, per_touched: float
) -> None:
    """Pairs of brokers that are skipped have nothing to exchange: looking at every pair gives the same result."""
    random, moved = np.random.default_rng(4), 0
    for _ in range(60):
        rows, brokers = int(random.integers(4, 30)), int(random.integers(3, 7))
        levels = random.integers(0, 2, (rows, brokers))
        of = search(
            levels.tolist(),
            [10] * rows,
            topics=random.integers(0, 2, rows),
            racks=np.arange(brokers) % 2,
            most=np.full((rows, 2), 2),
            load_windows=np.array([[[0] * brokers, [1000] * brokers]]),
            cell_windows=np.array([np.zeros((2, brokers)), np.full((2, brokers), 99)], dtype=np.int64),
            broker_windows=np.array([[0] * brokers, [99] * brokers]),
        )
        leaders, racks = random.integers(-1, brokers, rows), random.integers(0, 2, rows)
        sizes = np.full(rows, 10)
        of_rows = Ties(leaders, racks, np.arange(brokers) % 2, sizes, 1.0, 0.01, None, per_touched, copies_only)
        begun = random.permuted(np.tile(np.arange(brokers) < 2, (rows, 1)), axis=1)
        quick, close = SearchPlacement(of, begun.copy()), SearchPlacement(of, begun.copy())
        break_ties(quick, of_rows)
        with monkeypatch.context() as patched:
            patched.setattr(
                tie_breaking_exchanges, "_gainful", lambda placement, _: np.ones((placement.on.shape[1],) * 2, bool)
            )
            break_ties(close, of_rows)
        assert np.array_equal(quick.on, close.on)
        moved += not np.array_equal(quick.on, begun)
    assert moved > 30


def expansion(*aims: str, **rest: Any) -> Problem:
    """Brokers 1 and 2 are in different racks; brokers 3 and 4 join them."""
    problem = problem_of(
        {1: "a", 2: "b"},
        {"t": [(1,), (1,), (2,), (2,)]},
        sizes=10,
        changes=Changes(add_brokers=(Broker(3, "a"), Broker(4, "b"))),
        balance=balance_of(1, 1, 1),
    )
    return replace(problem, aims=aims, **rest)


def test_ties_of_a_layout() -> None:
    """Each row's leader and the rack it is copied from, numbered as in the flow; -1 stands for none."""
    problem = expansion(*AIMS, leaders=np.array([0, -1, 1, 1]))
    found = ties(problem, lay_out(problem, 0))
    assert found is not None
    assert ([0, 0, 1, 1], [0, 0, 1, 1], [10] * 4) == (
        found.leaders.tolist(),
        found.racks.tolist(),
        found.size_bytes.tolist(),
    )
    assert found.per_leader > 40 * found.per_byte > 0


def test_a_broker_that_leaves_is_copied_from_within_its_rack() -> None:
    """A broker that leaves leads nothing afterwards, but copies of its replicas come from its rack."""
    racks = {1: "a", 2: "b", 3: "b", 4: "a"}
    drain = Changes(remove_brokers=(1, 2))
    problem = problem_of(racks, {"t": [(1,), (2,), (1,), (2,)]}, sizes=10, changes=drain, rack_aware=False)
    found = ties(problem, lay_out(problem, 0))
    assert found is not None
    assert ([-1] * 4, [0, 1, 0, 1], [1, 0]) == (
        found.leaders.tolist(),
        found.racks.tolist(),
        found.broker_racks.tolist(),
    )
    assert 0 == crossing(problem)


def test_the_first_aim_outweighs_all_of_the_other() -> None:
    """Aims count in the order of `sweep.aims`; an aim that isn't named is worth nothing."""
    leaders, racks = (worth(expansion(*aims)) for aims in (AIMS[:2], AIMS[1::-1]))
    assert leaders[0] > leaders[1] * 40
    assert racks[1] > racks[0]
    assert (0, True) == (worth(expansion("cross_rack_bytes"))[0], worth(expansion("cross_rack_bytes"))[1] > 0)


def worth(problem: Problem) -> tuple[float, float]:
    """What one leader and one byte are worth."""
    found = ties(problem, lay_out(problem, 0))
    assert found is not None
    return found.per_leader, found.per_byte


def test_no_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no ties if neither aim is named, if nothing may move, or if the placement is too large."""
    assert ties(expansion("makespan"), lay_out(expansion("makespan"), 0)) is None
    still = problem_of(no_racks(1, 2), {"t": [(1,)]}, changes=Changes(rebalance="none"))
    assert ties(still, lay_out(still, 0)) is None
    monkeypatch.setattr(tie_breaking_exchanges, "TIE_CELLS", 15)
    assert ties(expansion(*AIMS), lay_out(expansion(*AIMS), 0)) is None


def test_the_optimum_copies_within_racks() -> None:
    """Two of four partitions go to new brokers, each to the new broker in its own rack."""
    assert 0 == crossing(expansion(*AIMS))


def test_the_optimum_takes_the_leader_along() -> None:
    """Each of two brokers gives a follower's replica to a new broker, so that all leaders stay."""
    rows = [(1, 2), (1, 2), (2, 1), (2, 1)]
    problem = problem_of(no_racks(1, 2), {"t": rows}, sizes=10, changes=Changes(add_brokers=(Broker(3),)))
    lists = ids_of(problem, solve(problem, replace(problem.balance, leaders=Tolerance("none"))).assignment)
    assert [row[0] for row in rows] == [row[0] for row in lists]


def crossing(problem: Problem) -> int:
    """Bytes that the optimum copies from one rack to another."""
    return int(score(ScoringBasis.of(problem), solve(problem, problem.balance).assignment).cross_rack_bytes[0])


@examples(20)
@given(problems(rebalance=("all",)))
def test_ties_cost_nothing_and_keep_the_windows(problem: Problem) -> None:
    """An aim changes neither bytes, replicas nor the excess, and never means more bytes copied between racks."""
    plain = replace(problem, aims=("makespan",))
    for aim in ("leaders_changed", "cross_rack_bytes"):
        with_aim, without = (solve(each, each.balance).assignment for each in (replace(problem, aims=(aim,)), plain))
        assert cost(problem, with_aim) == cost(problem, without)
        if aim == "cross_rack_bytes" and problem.balance.leaders.kind == "none":
            assert kept(problem, with_aim, aim) <= kept(problem, without, aim)


def cost(problem: Problem, assignment: IntArray) -> tuple[int, int, int]:
    """Bytes and replicas moved, and the excess over the windows."""
    scores = score(ScoringBasis.of(problem), assignment)
    return int(scores.bytes_moved[0]), int(scores.replicas_moved[0]), int(scores.excess[0])


def kept(problem: Problem, assignment: IntArray, aim: str) -> int:
    """The aim's score."""
    return int(getattr(score(ScoringBasis.of(problem), assignment), aim)[0])
