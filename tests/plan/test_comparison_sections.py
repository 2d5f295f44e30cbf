"""The sections that compare: doing nothing, the plan, Kafka's placements, the Pareto front, alternatives, counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import plan_documents
import pytest
from clusters import balance_of, no_racks, spec_of, specs
from hypothesis import given
from msgspec import structs
from properties import examples

from planner.model.build_problem import today
from planner.model.cluster import Broker
from planner.model.spec import Changes, Choice, Execution, Growth, Spec, Sweep, Variant
from planner.plan import comparison_sections
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import UNKNOWN, Proposal
from planner.sweep.candidates import of_row, prove
from planner.sweep.choice import Chosen, Swept, alternatives, choose, swept
from planner.sweep.evaluate import run

ROWS = {"x": [(1, 2), (2, 3), (3, 1), (1, 2)], "y": [(1, 2), (1, 3)]}
SIZES = {"x": [10, 20, 30, 40], "y": [5, 6]}
ADD_4 = Changes(add_brokers=(Broker(4),))
ADD_5 = Changes(add_brokers=(Broker(4), Broker(5)))


def spec(*variants: Changes, count: int = 60, rule: Choice | None = None, **rest: Any) -> Spec:
    """Three brokers become four; the variants are named a, b."""
    named = tuple(Variant(name, each) for name, each in zip("ab", variants, strict=False))
    sweep = Sweep(count, choice=rule or Choice(), variants=named)
    return spec_of(no_racks(1, 2, 3), ROWS, sizes=SIZES, **{"changes": ADD_4, "sweep": sweep, **rest})


def made(asked: Spec) -> tuple[tuple[Swept, ...], Chosen, Proposal]:
    """The alternatives, swept in this process, the choice among them, and its proposal."""
    tried = alternatives(asked)
    done = swept(tried, [run(each.problem, each.candidates) for each in tried])
    chosen = choose(done)
    return done, chosen, prove(done[chosen.row_index].problem, of_row(chosen.row))


@pytest.mark.slow
def test_compared_with_nothing_and_kafka() -> None:
    """Doing nothing costs nothing; the best of Kafka's placements copies no more than the median."""
    done, chosen, _ = made(spec())
    rows = comparison_sections.compared(done[0], chosen.row)
    kafka = sum(name.startswith("kafka") for name in done[0].result.scores["strategy"].to_pylist())
    assert [
        "do nothing",
        "this plan",
        f"Kafka --generate, best of {kafka}",
        f"Kafka --generate, median of {kafka}",
    ] == [row.label for row in rows]
    assert [0, chosen.row["bytes_moved"]] == [row.bytes_moved for row in rows[:2]]
    assert rows[1].bytes_moved < rows[2].bytes_moved <= rows[3].bytes_moved
    bytes_moved = sorted(
        row["bytes_moved"] for row in done[0].result.scores.to_pylist() if row["strategy"].startswith("kafka")
    )
    assert bytes_moved[(kafka - 1) // 2] == rows[3].bytes_moved


def test_kafkas_own_is_beside_every_plan() -> None:
    """If the sweep has none of Kafka's placements, because nothing may be placed anew, 100 are made to compare."""
    still = spec(changes=Changes(rebalance="leaders"))
    done, chosen, _ = made(still)
    labels = [row.label for row in comparison_sections.compared(done[0], chosen.row)]
    kafka = ["Kafka --generate, best of 100", "Kafka --generate, median of 100"]
    assert ["do nothing", "this plan", *kafka] == labels


@pytest.mark.slow
def test_do_nothing_is_today_as_it_is() -> None:
    """For doing nothing, leaders count where they lead today, preferred or not."""
    done, chosen, _ = made(spec_of(no_racks(1, 2), {"x": [(1, 2), (2, 1)]}, leaders={"x": [1, 1]}))
    nothing = comparison_sections.compared(done[0], chosen.row)[0]
    assert (2, 0, 0) == (nothing.leader_spread, nothing.replica_spread, nothing.bytes_moved)


@pytest.mark.slow
def test_the_front_falls() -> None:
    """Along the front, more bytes mean less imbalance, except for the plan itself, which is there once and marked."""
    asked = spec(ADD_5, balance=balance_of(1, 1, 1, "none", "50%"))
    points = comparison_sections.pareto(*made(asked))
    assert [True] == [point.chosen for point in points if point.label == "this plan"]
    others = [point for point in points if not point.chosen]
    for before, after in pairwise(others):
        assert before.bytes_moved < after.bytes_moved
        assert before.imbalance_percent > after.imbalance_percent


@pytest.mark.slow
def test_points_say_their_bound_and_their_time() -> None:
    """The plan's point has the bound of its certificate; it has seconds only with a throttle."""
    done, chosen, proposal = made(spec())
    better = proposal._replace(least_bytes=proposal.least_bytes - 1)
    mine = next(point for point in comparison_sections.pareto(done, chosen, better) if point.chosen)
    assert (proposal.least_bytes - 1, None) == (mine.least_bytes_moved, mine.seconds_at_throttle)
    assert 0 < mine.gap_percent
    slow = made(spec(execution=Execution(throttle_bytes_per_sec=chosen.row["busiest_bytes"] - 1)))
    timed = next(point for point in comparison_sections.pareto(*slow) if point.chosen)
    assert 2 == timed.seconds_at_throttle


@pytest.mark.slow
def test_without_a_proof_there_is_no_gap() -> None:
    """If neither the proposal nor the row has a proven bound, the point has no bound and no gap."""
    done, chosen, proposal = made(spec())
    row = {**chosen.row, "least_bytes": UNKNOWN}
    bare = chosen._replace(row=row)
    mine = next(
        point for point in comparison_sections.pareto(done, bare, Proposal(proposal.assignment)) if point.chosen
    )
    assert (None, None) == (mine.least_bytes_moved, mine.gap_percent)


@pytest.mark.slow
def test_alternatives_side_by_side() -> None:
    """Without variants there is no section; else each row has its brokers, its best plan, and whether it is chosen."""
    assert () == comparison_sections.variants(*made(spec()))
    rows = comparison_sections.variants(*made(spec(ADD_5)))
    assert [("changes", 4, True, "this plan"), ("a", 5, False, "optimum")] == [
        (row.name, row.brokers, row.chosen, row.label) for row in rows
    ]
    assert [[4], [4, 5]] == [[each.id for each in row.changes.add_brokers] for row in rows]


@pytest.mark.slow
def test_counts_of_all_alternatives() -> None:
    """All candidates of all alternatives are counted by strategy; the winner's row and digest reproduce the plan."""
    done, chosen, proposal = made(spec(ADD_5))
    counted = comparison_sections.candidates_section(done, chosen)
    assert (60, 60) == (counted.evaluated, sum(counted.by_strategy.values()))
    assert 2 == counted.by_strategy["unchanged"]
    assert of_row(chosen.row) == of_row(structs.asdict(counted.winner))
    rebuilt = score(ScoringBasis.of(done[0].problem), proposal.assignment)
    assert f"{int(rebuilt.digest[0]) % 2**64:016x}" == counted.digest


@pytest.mark.slow
def test_choice_names_rule_and_amount() -> None:
    """The choice has its rule, and an amount only if the rule has one."""
    done, chosen, _ = made(spec(ADD_5))
    assert ("asked", None, "changes", chosen.reason) == structs.astuple(comparison_sections.choice(done, chosen))
    done, chosen, _ = made(spec(ADD_5, rule=Choice("most_even_within_bytes", 10**6)))
    assert ("most_even_within_bytes", 10**6) == structs.astuple(comparison_sections.choice(done, chosen))[:2]


@pytest.mark.slow
@examples(10)
@given(specs())
def test_no_point_is_better_than_the_plan_in_both(whole: Spec) -> None:
    """Of the proven points at the balance asked for, none moves fewer bytes; today stands where nothing moves."""
    asked = replace(whole, sweep=Sweep(30))
    done, chosen, proposal = made(asked)
    points = comparison_sections.pareto(done, chosen, proposal)
    assert sorted(point.bytes_moved for point in points) == [point.bytes_moved for point in points]
    mine = next(point for point in points if point.chosen)
    for point in points:
        same = point.balance == mine.balance and point.least_bytes_moved is not None
        assert not same or point.bytes_moved >= mine.bytes_moved or point.label == "unchanged"
    still = np.array_equal(proposal.assignment, today(done[0].problem))
    assert not still or mine.bytes_moved == 0


def test_scenarios_are_judged_by_the_balance_asked_for() -> None:
    """A plan that was made for other windows, as a rule chose it, misses those asked for in the scenarios too."""
    rule, growth = Choice("most_even_within_bytes", 10), (Growth("twice", "t", 2.0),)
    asked = spec_of(
        no_racks(1, 2),
        {"t": [(1,), (1,), (1,), (1,), (2,)]},
        sizes={"t": [30, 20, 10, 10, 10]},
        balance=balance_of(1, 1, "none", "none", "10%"),
        sweep=Sweep(24, choice=rule, growth=growth),
    )
    (tried,) = alternatives(asked)
    plan = plan_documents.planned(asked, tried.problem, run(tried.problem, tried.candidates))
    assert ("none", "10%") == (plan["balance"]["wanted"]["disk"], plan["balance"]["asked"]["disk"])
    assert [("twice", False)] == [(each["name"], each["feasible"]) for each in plan["scenarios"]]
    assert [1] == [row["scenarios_missed"] for row in plan["pareto"] if row["chosen"]]
