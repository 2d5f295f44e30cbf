"""Branch and bound over large partitions: the bound is the best plan's bytes, and the placement is that plan."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from brute_force import as_plan, keeps, moved, plans_within
from clusters import spec_of

from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.problem import Problem
from planner.plan import bound_json, bound_section
from planner.scoring.windows import windows
from planner.strategies import optimum
from planner.strategies.flow.placement import place, widened
from planner.strategies.flow.placement_network import bounds as count_windows
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.lagrangian_bound import Branch, Certificate, lower_bound
from planner.strategies.load_windows.attempts_at_prices import facts_of, proof
from planner.strategies.load_windows.branch_and_bound import branchings
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.lp_relaxation import Duals, Fits, ShareProgram, rounded
from planner.strategies.work_limits import CASE_SOLVES, Effort

RACKS = {
    "racks": {1: "a", 2: "b", 3: "a", 4: "b"},
    "unlike racks": {1: "a", 2: "b", 3: "a", 4: "c"},
    "no racks": {1: None, 2: None, 3: None},
}
ALL_ON_TWO = {"t": [[1, 2], [2, 1], [1, 2]], "u": [[2, 1], [1, 2]]}


def with_huge(racks: str, seed: int) -> Problem:
    """Five partitions on two of the brokers; most of them are larger than the windows of disk are wide."""
    rng = np.random.default_rng(seed)
    sizes = {name: rng.integers(20, 100, len(rows)).tolist() for name, rows in ALL_ON_TWO.items()}
    balance = Balance(disk=Tolerance("percent", int(rng.integers(4, 13))), replicas=Tolerance("spread", 2))
    return replace(build_problem.build(spec_of(RACKS[racks], ALL_ON_TWO, sizes=sizes)), balance=balance)


def last_of(problem: Problem, solves: int = CASE_SOLVES) -> tuple[Certificate, list[tuple[int, ...]]] | None:
    """The certificate and the plan at the end of the search; None if the search isn't made."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    placed = place(problem, layout, wanted)
    wanted = widened(layout, wanted, placed)
    loads = byte_loads(problem, layout, wanted)
    about, (by_topic, in_all) = facts_of(problem, layout, loads), count_windows(layout, wanted)
    base = proof(about, layout, placed)
    fits = Fits(by_topic, in_all, loads.windows, loads.scales)
    found = list(branchings(about, fits, base, Effort(10**12), solves))
    if not found:
        return None
    chosen = rounded(problem, layout, wanted, found[-1].shares)
    return found[-1].proof, as_plan(chosen)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("racks", RACKS)
def test_the_bound_is_what_the_best_plan_moves(racks: str, seed: int) -> None:
    """In the end no partition is split, so the bound is exactly what the best plan moves."""
    problem = with_huge(racks, seed)
    wanted = windows(problem, problem.balance)
    best = min((moved(problem, plan)[0] for plan in plans_within(problem, wanted)), default=None)
    ended = last_of(problem)
    if best is None or ended is None:
        # If even split replicas can't keep all windows, nothing is searched.
        assert best is None
        return
    certificate, plan = ended
    assert (best, best, True) == (
        lower_bound(certificate),
        moved(problem, plan)[0],
        keeps(problem, wanted, plan),
    )


@pytest.mark.slow
def test_some_of_those_can_be_planned() -> None:
    """At least 8 of the cases above have a plan, and prices alone prove too little for at least 4 of them."""
    made = [last_of(with_huge(racks, seed)) for racks in RACKS for seed in range(16)]
    certificates = [each[0] for each in made if each is not None]
    short = [each for each in certificates if lower_bound(replace(each, parts=())) < lower_bound(each)]
    assert len(certificates) >= 8
    assert len(short) >= 4


def test_prices_that_are_no_numbers_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes with very heavy tails can make prices NaN; such a case keeps the bound of the case above it."""
    real, solved = ShareProgram.duals, []

    def duals(program: ShareProgram) -> Duals:
        solved.append(program)
        found = real(program)
        return found if len(solved) == 1 else found._replace(brokers=np.full_like(found.brokers, np.nan))

    problem = with_huge("no racks", 3)
    best = min(moved(problem, plan)[0] for plan in plans_within(problem, windows(problem, problem.balance)))
    monkeypatch.setattr(ShareProgram, "duals", duals)
    with np.errstate(all="raise"):
        ended = last_of(problem)
    assert ended is not None
    assert len(solved) > 1
    assert lower_bound(ended[0]) <= best
    monkeypatch.setattr(ShareProgram, "duals", lambda program: Duals(*(prices * np.nan for prices in real(program))))
    assert last_of(problem) is None


def one_by_cases() -> Certificate:
    """A certificate with more than one case."""
    made = (last_of(with_huge("racks", seed)) for seed in range(12))
    return next(each[0] for each in made if each and any(isinstance(part.case, Branch) for part in each[0].parts))


def test_by_itself_from_its_document() -> None:
    """A certificate written as JSON and read again has the same bound, and says that it has branches."""
    made = one_by_cases()
    again = bound_json.from_document(json.loads(bound_json.encoded(made)))
    assert (lower_bound(made), "branches") == (
        lower_bound(again),
        bound_section.method(again, forced_only=False),
    )


def test_a_case_put_in_place_of_another_shows() -> None:
    """If the cases with and without a replica on a broker are exchanged, the bound changes."""
    document = json.loads(bound_json.encoded(one_by_cases()))
    case = next(part["case"] for part in document["parts"] if "row" in part["case"])
    case["on"], case["off"] = case["off"], case["on"]
    assert lower_bound(bound_json.from_document(document)) != lower_bound(one_by_cases())


@pytest.mark.slow
def test_a_small_budget_proves_less_but_no_wrong() -> None:
    """A search that stops early has a lower bound, which is still true."""
    whole = {seed: last_of(with_huge("racks", seed)) for seed in range(12)}
    early = {seed: last_of(with_huge("racks", seed), 1) for seed in range(12)}
    pairs = [(lower_bound(early[seed][0]), lower_bound(each[0])) for seed, each in whole.items() if each]  # type: ignore[index]
    assert all(before <= after for before, after in pairs)
    assert any(before < after for before, after in pairs)


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_way(seed: int) -> None:
    """If all windows can hold, the planner's solution keeps them with the fewest bytes, and its bound is no higher."""
    problem = with_huge("racks", seed)
    wanted = windows(problem, problem.balance)
    best = min((moved(problem, plan)[0] for plan in plans_within(problem, wanted)), default=None)
    solution = optimum.solve(problem, problem.balance)
    plan = as_plan(solution.assignment)
    assert best is None or (best, True) == (moved(problem, plan)[0], keeps(problem, wanted, plan))
    assert best is None or solution.least_bytes <= best
