"""Windows that may begin anywhere: the bound holds for every plan with the spreads asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest
from brute_force import as_plan, counts, moved, options
from clusters import balance_of, no_racks, problem_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import NO_TOLERANCE
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes, TopicFilter
from planner.plan import bound_json
from planner.scoring.score import ScoringBasis, score
from planner.scoring.windows import windows
from planner.strategies import lagrangian_bound, work_limits
from planner.strategies.load_windows import window_positions
from planner.strategies.optimum import solve

MOST_PLANS = 400


def keeps_spreads(problem: Problem, plan: tuple[tuple[int, ...], ...]) -> bool:
    """True if brokers differ by at most the spreads of replicas and of topics, and disks are within their windows."""
    cells, disk = counts(problem, plan, problem.size_bytes)
    bounds_of_disk = windows(problem, problem.balance).disk
    if bounds_of_disk is not None and ((disk < bounds_of_disk[0]) | (disk > bounds_of_disk[1])).any():
        return False
    asked = problem.balance.topic_replicas, problem.balance.replicas
    return all(
        tolerance.kind == "none" or int(np.ptp(held, axis=-1).max()) <= tolerance.value
        for tolerance, held in zip(asked, (cells, cells.sum(axis=0)), strict=True)
    )


def least_by_brute_force(problem: Problem) -> int | None:
    """The fewest bytes of all plans that keep the spreads."""
    plans = (plan for plan in product(*options(problem)) if keeps_spreads(problem, plan))
    return min((moved(problem, plan)[0] for plan in plans), default=None)


def few(problem: Problem) -> bool:
    """True if there are few enough plans to try them all."""
    return prod(len(sets) for sets in options(problem)) <= MOST_PLANS


@st.composite
def spread_problems(draw: st.DrawFn, disk: str = "none") -> Problem:
    """Two to four brokers, sometimes with a new one, few partitions, and spreads of one to three."""
    brokers = draw(st.integers(2, 4))
    old = draw(st.integers(max(1, brokers - 1), brokers))
    racked = draw(st.sampled_from((False, False, True)))
    racks = {each: draw(st.sampled_from("ab")) if racked else None for each in range(1, brokers + 1)}
    rows, sizes = {}, {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        factor = draw(st.integers(1, min(2, old)))
        one = st.lists(st.integers(1, old), min_size=factor, max_size=factor, unique=True).map(tuple)
        rows[name] = draw(st.lists(one, min_size=1, max_size=3 if brokers == 4 or name == "b" else 6))
        sizes[name] = draw(st.lists(st.integers(1, 100), min_size=len(rows[name]), max_size=len(rows[name])))
    spread = st.sampled_from(("1", "2", "2", "3", "none"))
    return problem_of(
        {each: racks[each] for each in range(1, old + 1)},
        rows,
        sizes=sizes,
        changes=Changes(add_brokers=tuple(Broker(each, racks[each]) for each in range(old + 1, brokers + 1))),
        balance=balance_of(draw(spread), "none", draw(spread), "none", disk),
    )


@examples(80)
@given(spread_problems().filter(few), st.integers(0, 3))
def test_no_plan_with_these_spreads_is_below_the_least(problem: Problem, seed: int) -> None:
    """Neither with a certificate nor without; what is found keeps the spreads where that can be."""
    least = least_by_brute_force(problem)
    for certify in (False, True):
        solution = solve(problem, problem.balance, seed, certify=certify)
        mine = as_plan(solution.assignment)
        assert solution.least_bytes <= moved(problem, mine)[0]
        if least is not None:
            assert solution.least_bytes <= least
            assert not keeps_spreads(problem, tuple(mine)) or least <= moved(problem, mine)[0]
        if solution.certificate is not None:
            again = bound_json.from_document(bound_json.to_document(solution.certificate))
            assert solution.least_bytes == lagrangian_bound.lower_bound(again)


@pytest.mark.slow
@examples(40)
@given(st.sampled_from(("1000%", "60%", "20%")).flatmap(lambda disk: spread_problems(disk=disk)).filter(few))
def test_nor_with_windows_of_bytes(problem: Problem) -> None:
    """Disks that may hold anything, or little more than their share."""
    solution, least = solve(problem, problem.balance), least_by_brute_force(problem)
    assert solution.least_bytes <= moved(problem, as_plan(solution.assignment))[0]
    assert least is None or solution.least_bytes <= least


@examples(40)
@given(spread_problems().filter(few))
def test_the_start_of_all_brokers_window_is_proven(problem: Problem) -> None:
    """Where topics may lie anyhow, the fewest bytes of all starts are found and proven, by cases where need be."""
    assume(not problem.racks_matter)
    problem = replace(problem, balance=replace(problem.balance, topic_replicas=NO_TOLERANCE))
    solution = solve(problem, problem.balance, certify=True)
    assert (least_by_brute_force(problem), solution.least_bytes) == (
        moved(problem, as_plan(solution.assignment))[0],
    ) * 2


def test_a_topic_begins_where_the_fewest_bytes_move() -> None:
    """Four large partitions, three small ones and one more: one small partition moves; the bound is at most that."""
    problem = problem_of(
        no_racks(1, 2, 3),
        {"t": [(1,)] * 4 + [(2,)] * 3 + [(3,)]},
        sizes={"t": [100] * 4 + [1] * 4},
        balance=balance_of("none", "none", 2),
    )
    for certify in (False, True):
        solution = solve(problem, problem.balance, certify=certify)
        assert 1 == moved(problem, as_plan(solution.assignment))[0]
        assert solution.least_bytes <= 1


@pytest.mark.parametrize(("spread", "bytes_moved"), [(1, 10), (2, 9), (3, 8), (4, 8), (5, 7)])
def test_two_brokers_become_three(spread: int, bytes_moved: int) -> None:
    """Two brokers with fifteen partitions each, and a new one: the fewest moves for each spread, proven."""
    problem = problem_of(
        no_racks(1, 2),
        {"a": [(1,)] * 15 + [(2,)] * 15},
        changes=Changes(add_brokers=(Broker(3),)),
        balance=balance_of(spread, "none", "none"),
    )
    solution = solve(problem, problem.balance, certify=True)
    assert (bytes_moved, bytes_moved) == (moved(problem, as_plan(solution.assignment))[0], solution.least_bytes)


@examples(40)
@given(spread_problems().filter(few))
def test_the_starts_of_topics_windows_are_proven(problem: Problem) -> None:
    """Where only topics' spreads count, the fewest bytes of all starts are found and proven: topics are separate."""
    problem = replace(problem, balance=replace(problem.balance, replicas=NO_TOLERANCE))
    least = least_by_brute_force(problem)
    assume(least is not None)
    solution = solve(problem, problem.balance, certify=True)
    assert (least, least) == (moved(problem, as_plan(solution.assignment))[0], solution.least_bytes)


@pytest.mark.slow
@examples(40)
@given(st.sampled_from(("none", "60%", "20%")).flatmap(lambda disk: spread_problems(disk=disk)).filter(few))
def test_prices_for_each_start_claim_nothing_false(problem: Problem) -> None:
    """They are tried whatever the gap is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_limits, "FAIR", -1)
        solution, least = solve(problem, problem.balance, certify=True), least_by_brute_force(problem)
    assert solution.least_bytes <= moved(problem, as_plan(solution.assignment))[0]
    assert least is None or solution.least_bytes <= least


def wide(seed: int) -> Problem:
    """Eight brokers and two new ones, replicas of topics that may differ by 2, sizes with heavy tails."""
    random = Random(seed)
    rows = {f"t{at}": [tuple(random.sample(range(1, 9), 2)) for _ in range(11)] for at in range(8)}
    sizes = {name: [int(1e6 * random.lognormvariate(0, 1)) for _ in lists] for name, lists in rows.items()}
    changes = Changes(add_brokers=(Broker(9), Broker(10)))
    return problem_of(no_racks(*range(1, 9)), rows, sizes=sizes, changes=changes, balance=balance_of(1, 1, 2))


def test_each_start_of_a_topics_window_has_prices_of_its_own() -> None:
    """With one set of prices for all starts, this plan was 4.8 % above its bound."""
    problem = wide(0)
    solution = solve(problem, problem.balance, certify=True)
    assert solution.certificate is not None
    assert lagrangian_bound.lower_bound(solution.certificate) == moved(problem, as_plan(solution.assignment))[0]


def test_starts_at_the_prices_of_a_plan_save_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's prices of brokers tell which topics' windows should begin elsewhere."""
    monkeypatch.setattr(window_positions, "START_WHOLE_COLUMNS", 0)
    problem, copied = wide(9), []
    for rounds in (0, work_limits.START_ROUNDS):
        monkeypatch.setattr(window_positions, "START_ROUNDS", rounds)
        copied.append(moved(problem, as_plan(solve(problem, problem.balance).assignment))[0])
    assert copied[1] < copied[0]


@pytest.mark.parametrize("kept", ["a", "z"])
def test_a_topic_that_stays_has_starts_too(kept: str) -> None:
    """Its counts are within its window only where racks of unlike sizes move it; its number may be the highest."""
    random, racks = Random(0), {at: "a" if at <= 3 else "b" for at in range(1, 8)}
    in_b = [4] * 12 + [5] * 13 + [6] * 14 + [7] * 14
    random.shuffle(in_b)
    rows = {kept: list(zip([1] * 17 + [2] * 18 + [3] * 18, in_b, strict=True))}
    sizes = {kept: [1000] * 53}
    for name in "mno":
        rows[name] = [(random.choice((1, 1, 1, 2, 3)), random.choice((4, 4, 4, 5, 6, 7))) for _ in range(20)]
        sizes[name] = [int(1e6 * random.lognormvariate(0, 1)) for _ in range(20)]
    exclude = TopicFilter(exclude=(kept,))
    problem = problem_of(racks, rows, sizes=sizes, topics=exclude, balance=balance_of("none", "none", 3))
    solution = solve(problem, problem.balance, certify=True)
    assert solution.least_bytes == moved(problem, as_plan(solution.assignment))[0]


def test_prices_beyond_the_solvers_arithmetic_are_not_tried() -> None:
    """Many empty partitions leave no room for them: tie-breaks take it."""
    random = Random(0)
    rows = {f"t{at}": [tuple(random.sample(range(1, 9), 2)) for _ in range(11)] for at in range(8)}
    rows["empty"] = [tuple(random.sample(range(1, 9), 2)) for _ in range(600)]
    sizes = {name: [int(1e10 * random.lognormvariate(0, 1)) for _ in lists] for name, lists in rows.items()}
    sizes["empty"] = [0] * 600
    changes = Changes(add_brokers=(Broker(9), Broker(10)))
    problem = problem_of(no_racks(*range(1, 9)), rows, sizes=sizes, changes=changes, balance=balance_of(1, 1, 2))
    solution = solve(problem, problem.balance, certify=True)
    assert 0 < solution.least_bytes <= moved(problem, as_plan(solution.assignment))[0]


def test_windows_that_few_replicas_can_not_reach_prove_no_more_than_the_plan() -> None:
    """Edges end at the number of replicas that may move: the bound was 314 bytes, and the plan copies 33."""
    rows, sizes = {"t": [(1,)] * 3 + [(2,)] * 6 + [(3,)] * 28 + [(4,)] * 2}, {"t": [180] * 37 + [18, 15]}
    problem = problem_of(
        no_racks(1, 2, 3, 4, 5),
        rows,
        sizes=sizes,
        changes=Changes(remove_brokers=(4,)),
        topics=TopicFilter(on_brokers=(4,)),
        balance=balance_of("none", "none", 4),
    )
    solution = solve(problem, problem.balance, 1, certify=True)
    assert solution.certificate is not None
    again = bound_json.from_document(bound_json.to_document(solution.certificate))
    assert lagrangian_bound.lower_bound(again) <= moved(problem, as_plan(solution.assignment))[0]


@pytest.mark.parametrize(("seed", "least", "most"), [(3, 140_000, 144_889), (9, 194_000, 198_565)])
def test_small_clusters_with_a_spread_of_two(seed: int, least: int, most: int) -> None:
    """A program with split replicas and starts proves 3.5 to 9 % more than without, and its whole starts save bytes."""
    rng = np.random.default_rng(seed)
    held = [tuple((3 * rng.integers(0, 3, 3) + rng.permutation(3) + 1).tolist()) for _ in range(48)]
    sizes = np.rint(1e4 * np.repeat(rng.lognormal(0, 1, 4), 12) * rng.uniform(0.5, 1.5, 48)).astype(int).tolist()
    rows, of_rows = ({name: each[12 * at :][:12] for at, name in enumerate("abcd")} for each in (held, sizes))
    racks = {broker: f"r{broker % 3}" for broker in range(1, 10)}
    problem = problem_of(racks, rows, sizes=of_rows, balance=balance_of(2, 2, 2, "none", "10%"))
    solution = solve(problem, problem.balance, certify=True)
    copied = int(score(ScoringBasis.of(problem), solution.assignment).bytes_moved[0])
    assert least <= solution.least_bytes <= copied <= most
    assert solution.certificate is not None
    assert solution.least_bytes == lagrangian_bound.lower_bound(solution.certificate)
