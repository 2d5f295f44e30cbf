"""Fewest partitions touched and even arrivals: what flows and each of the programs find and prove alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from clusters import balance_of, problem_of

from benchmarks import cases
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring.score import added_replicas
from planner.scoring.windows import windows
from planner.strategies.flow import fewest_changed_partitions, tie_breaking
from planner.strategies.flow.placement import place
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.flow.tie_breaking_exchanges import ties_broken
from planner.strategies.optimum import UNKNOWN, solve

SEEDS = ("public", "b", "c", "d")


@cache
def expanded(seed: str) -> Problem:
    """A hundred or more partitions with two replicas that could leave; nearly all of a topic have the same size."""
    return build(cases.to_spec(cases.make("expand-small", seed)))


def after_bytes(problem: Problem) -> tuple[int, int, bool]:
    """The partitions that change, the sum of squared arrivals, and whether both are proven."""
    solution = solve(problem, problem.balance)
    arriving = added_replicas(problem, solution.assignment)
    squares = int((np.bincount(solution.assignment[arriving]) ** 2).sum())
    return int(arriving.any(axis=1).sum()), squares, solution.ties_proven


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("without", ["by_flows", "_all_or_none", "_least_squares"])
def test_any_part_alone_finds_and_proves_the_same(monkeypatch: pytest.MonkeyPatch, seed: str, without: str) -> None:
    """Flows, small programs and the bound on arrivals only save time: the result is the same without each of them."""
    every = after_bytes(expanded(seed))
    assert every[2]
    nothing = {
        "by_flows": (fewest_changed_partitions.OpenTies, lambda ties: ties.charged.units),
        "_all_or_none": (fewest_changed_partitions, lambda ties, part: (None, False)),
        "_least_squares": (tie_breaking, lambda network, face: UNKNOWN),
    }
    module, instead = nothing[without]
    monkeypatch.setattr(module, without, instead)
    monkeypatch.setattr(fewest_changed_partitions, "PROGRAM_NODES", 10_000)
    assert every == after_bytes(expanded(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_flows_alone_come_close(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    """More steps touch no more partitions; after six steps, at most an eighth more than the fewest are touched."""
    problem = expanded(seed)
    fewest, touched = after_bytes(problem)[0], []
    monkeypatch.setattr(fewest_changed_partitions, "PROGRAM_ARCS", 0)
    for steps in range(7):
        monkeypatch.setattr(fewest_changed_partitions, "TOUCHED_FLOWS", steps)
        found = after_bytes(problem)
        touched.append(found[0])
        assert found[0] >= fewest
        assert found[2] <= (found[0] == fewest)
    assert sorted(touched, reverse=True) == touched
    assert touched[-1] <= 1.125 * fewest < touched[0]


def test_a_row_that_must_lose_a_replica_is_not_charged() -> None:
    """Every partition gets a replica in the new rack from one of two brokers: all are touched, so no row is open."""
    rows = [(1, 2), (2, 1)] * 4
    problem = problem_of(
        {1: "a", 2: "a"},
        {"t": rows},
        sizes=10,
        changes=Changes(add_brokers=(Broker(3, "b"), Broker(4, "b"))),
        balance=balance_of("none", "none", "none"),
    )
    asked: list[np.ndarray] = []
    fewest = fewest_changed_partitions.touching_fewest

    def seen(ties: fewest_changed_partitions.OpenTies, *, exactly: bool) -> object:
        asked.append(ties.open_rows)
        return fewest(ties, exactly=exactly)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tie_breaking, "touching_fewest", seen)
        assert after_bytes(problem)[::2] == (len(rows), True)
    assert not asked[0].any()


@pytest.mark.parametrize(("seed", "proven"), [("public", 1), ("b", 1), ("c", 0)])
def test_small_programs_prove_what_charges_cannot(monkeypatch: pytest.MonkeyPatch, seed: str, proven: int) -> None:
    """Six partitions whose replicas leave in threes can't all lose two: four are touched, not three."""
    found, small = [], fewest_changed_partitions._all_or_none
    monkeypatch.setattr(
        fewest_changed_partitions, "_all_or_none", lambda ties, part: found.append(small(ties, part)) or found[-1]
    )
    monkeypatch.setattr(fewest_changed_partitions, "TOUCHED_FLOWS", 0)
    assert after_bytes(expanded(seed))[2]
    assert proven == sum(none for _, none in found)
    assert all(units is None for units, none in found if none)


def test_without_programs_nothing_is_said_to_be_proven() -> None:
    """For a balance other than the one asked for, flows alone settle ties, and nothing is called proven."""
    problem = expanded("public")
    layout = lay_out(problem, 0)
    wanted = windows(problem, problem.balance)
    assert not ties_broken(problem, layout, wanted, place(problem, layout, wanted))[1]
