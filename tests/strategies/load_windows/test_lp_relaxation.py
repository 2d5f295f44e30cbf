"""Placements rounded from split replicas: every count and rack is kept, loads are close to their windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of, problems
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Tolerance
from planner.model.build_problem import today
from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.load_windows import lp_relaxation
from planner.strategies.load_windows.attempts_at_prices import facts_of
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.lp_relaxation import Fits, Rounded, ShareProgram, roundings
from planner.strategies.work_limits import Effort


def rounded(problem: Problem) -> list[Rounded]:
    """All roundings of a problem with windows of bytes."""
    layout, wanted = lay_out(problem, 0, 1024), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    return list(roundings(problem, layout, wanted, loads, Effort(10**12), wanted))


def assignment(problem: Problem, chosen: IntArray) -> IntArray:
    """The replicas of rows that may move, as an assignment of all rows."""
    whole = today(problem)
    whole[lay_out(problem, 0).rows] = chosen
    return whole


def with_disk(problem: Problem, share: int) -> Problem:
    """The problem with a window of bytes."""
    return replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", share)))


def expansion() -> Problem:
    """Two brokers with partitions of 9, 6 and 3 bytes each, and a third broker, which must get 12 of the 36 bytes."""
    problem = problem_of(
        no_racks(1, 2),
        {"a": [(1,), (1,), (1,), (2,), (2,), (2,)]},
        sizes={"a": [9, 6, 3, 9, 6, 3]},
        changes=Changes(add_brokers=(Broker(3),)),
        balance=balance_of("none", "none", "none"),
    )
    return with_disk(problem, 0)


def test_a_whole_solution_ends_it() -> None:
    """If the program splits no replica, there is one rounding, with every load in its window."""
    problem = with_disk(problem_of(no_racks(1, 2), {"a": [(1,)] * 4}, sizes=10), 0)
    (only,) = rounded(problem)
    assert [2, 2] == np.bincount(only.chosen[:, 0]).tolist()
    assert 1 == pytest.approx(only.prices[0, 1] - only.prices[0, 0])


def test_work_is_limited_by_the_number_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that exceeds its limit of work, which depends on the number of columns, is stopped without a result."""
    rows = {"a": [(1 + at % 4,) for at in range(400)]}
    changes = Changes(add_brokers=(Broker(5), Broker(6)))
    sizes = {"a": [1 + at * at % 97 for at in range(400)]}
    problem = with_disk(problem_of(no_racks(1, 2, 3, 4), rows, sizes=sizes, changes=changes), 5)
    layout, wanted = lay_out(problem, 0, 1024), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    about = facts_of(problem, layout, loads), Fits.of(layout, wanted, loads), (0,), layout.rows
    assert ShareProgram(*about).least_cost(()) is not None
    monkeypatch.setattr(lp_relaxation, "_WORK_A_COLUMN", 0)
    assert ShareProgram(*about).least_cost(()) is None


def test_split_rows_are_settled_round_by_round() -> None:
    """A new broker gets 12 of 36 bytes, and the old ones keep 12 each: the program splits replicas and runs again."""
    found = rounded(expansion())
    assert 1 < len(found) <= 8
    held = [np.bincount(each.chosen[:, 0], weights=expansion().size_bytes, minlength=3) for each in found]
    assert 3 >= min(np.abs(each - 12).max() for each in held)
    assert 1 < len({tuple(each.chosen[:, 0].tolist()) for each in found})


@pytest.mark.parametrize("share", [20, 50])
def test_prices_are_those_of_the_program(share: int) -> None:
    """At 50 % a new broker must be filled, at a byte a byte; at 20 % the fuller of two brokers gives to the other."""
    changes = Changes(add_brokers=(Broker(3),)) if share == 50 else Changes()
    rows = [(1,)] * 4 + [(2,)] * 4 if share == 50 else [(1,)] * 6 + [(2,)] * 2
    open_ended = balance_of("none", "none", "none")
    problem = problem_of(no_racks(1, 2), {"a": rows}, sizes=10, changes=changes, balance=open_ended)
    prices = rounded(with_disk(problem, share))[0].prices[0]
    assert 1 == pytest.approx(prices[-1] - prices[0])


def test_no_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No roundings if even split replicas can't keep the windows, or if the program is too large."""
    lone = problem_of({1: "a", 2: "b", 3: "b"}, {"a": [(1, 2), (1, 3)]}, sizes=10)
    layout = lay_out(lone, 0)
    loads = byte_loads(lone, layout, windows(lone, with_disk(lone, 10).balance))
    tight = replace(loads, windows=np.array([[[0, 0, 0], [10, 40, 40]]]))
    wanted = windows(lone, lone.balance)
    assert [] == list(roundings(lone, layout, wanted, tight, Effort(10**12), wanted))
    monkeypatch.setattr(lp_relaxation.work_limits, "FRACTION_COLUMNS", 17)
    assert [] == rounded(expansion())


def test_no_more_rounds_than_their_columns_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round has 18 columns, so a limit of 36 columns allows two rounds."""
    monkeypatch.setattr(lp_relaxation.work_limits, "FRACTION_COLUMNS_IN_ALL", 36)
    assert 2 == len(rounded(expansion()))


@examples(40)
@given(problems(brokers=6, topics=3, partitions=5), st.sampled_from([0, 10, 50]), st.integers(0, 1000))
def test_counts_and_racks_are_kept(problem: Problem, share: int, seed: int) -> None:
    """Every rounding is a plan that may be carried out, within all windows of counts that could hold split."""
    sizes = np.random.default_rng(seed).integers(1, 100, problem.rows)
    asked = with_disk(replace(problem, size_bytes=sizes), share)
    assume(len(lay_out(asked, 0).rows))
    wanted = windows(asked, asked.balance)
    for each in rounded(asked):
        plan = assignment(asked, each.chosen)
        assert () == independent_check.check(asked, plan)
        counts = counted(asked, plan)
        for held, (low, high) in ((counts, wanted.topic_replicas), (counts.sum(axis=0), wanted.replicas)):
            assert ((held >= low) & (held <= high)).all()


@examples(15)
@given(problems(brokers=6, topics=3, partitions=5), st.integers(0, 1000))
def test_the_same_every_time(problem: Problem, seed: int) -> None:
    """Equal problems have equal roundings, one after the other."""
    sizes = np.random.default_rng(seed).integers(1, 100, problem.rows)
    asked = with_disk(replace(problem, size_bytes=sizes), 10)
    assume(len(lay_out(asked, 0).rows))
    first, again = ([(each.prices.tolist(), each.chosen.tolist()) for each in rounded(asked)] for _ in range(2))
    assert first == again


def counted(problem: Problem, plan: IntArray) -> np.ndarray:
    """(T, Bt): replicas of each topic on each target broker."""
    targets = np.flatnonzero(problem.targets).tolist()
    counts = np.zeros((len(problem.topic_names), len(targets)), dtype=np.int64)
    for row, replicas in enumerate(plan.tolist()):
        for broker in replicas:
            if broker in targets:
                counts[problem.topic_of[row], targets.index(broker)] += 1
    return counts
