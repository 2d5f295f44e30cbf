"""A plan from a reassignment made elsewhere: checked, scored, bounded and cut into batches like one of ours.

Its bound is for the balance that it reaches: the spec's windows, widened where the reassignment misses them. The plan
states how many of its bytes aren't needed for that balance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import structs

from planner.approval.given_reassignment import Given, Placed, place
from planner.model import build_problem
from planner.model.balance import Balance
from planner.model.errors import UnsafePlanError
from planner.model.formats import counted, exactly, stated
from planner.model.problem import Problem
from planner.model.spec import NO_BUDGET, Spec
from planner.plan import bound_file, build, pareto_front
from planner.plan.build import Planned
from planner.plan.document.request_types import AdoptedSection
from planner.scoring import score
from planner.scoring.missed_windows import OF_REPLICAS, missed, reached
from planner.scoring.score import ScoringBasis
from planner.strategies.catalog import Candidate, Proposal, prove
from planner.sweep import budget_steps, evaluate, sweep_result, variants
from planner.sweep.candidates import ALL_SCENARIOS, KNOBS, NO_SCENARIOS, Candidates, Run, generated
from planner.sweep.choice import BestCandidate, Chosen
from planner.sweep.sweep_result import SCORE_SCHEMA
from planner.sweep.variants import BASE, Swept

STRATEGY = "adopted"
SAME_BALANCE = "fewest bytes at this balance"

Row = dict[str, Any]


@dataclass(frozen=True)
class Adopted:
    """The plan with its bound's file, and the scores of all candidates that it was compared with."""

    planned: Planned
    rows: pa.Table


@dataclass(frozen=True, eq=False)
class Proven:
    """The optimum for `run.balance`: its run of the sweep, and the assignment with its certificate."""

    run: Run
    proposal: Proposal


def adopted(given: Given, spec: Spec, spec_file: str) -> Adopted:
    """The plan of a given reassignment.

    ImportStateError and InfeasibleError as in `place`; UnsafePlanError if a gate or the budget is crossed.
    """
    whole = replace(spec, budget=NO_BUDGET)
    placed = place(given, build_problem.build(whole), spec_file)
    solved = proven(placed)
    own = row_of(placed, solved[-1])
    _require_budget(spec, own)
    swept, fewest = _swept(whole, placed, solved, own)
    chosen = Chosen(0, swept.result.scores.to_pylist()[-1], f"adopted from {given.name}", (BestCandidate(own, None),))
    proposal = solved[-1].proposal._replace(assignment=placed.assignment)
    if (placed.assignment == build_problem.today(placed.problem)).all():
        # Doing nothing needs no proof.
        proposal = Proposal(placed.assignment)
    planned = build.of_choice([swept], chosen, proposal)
    plan, bound = planned.plan, planned.plan.bound
    enough = fewest if as_even(placed, solved[-1]) else None
    this, compared = plan.own_row, pareto_front.comparison(SAME_BALANCE, fewest, pareto_front.Goal.of(swept))
    others = tuple(row for row in plan.compared if row is not this and row.label != "do nothing")
    named = int(placed.named.sum())
    there = named - len({row.key for row in plan.partitions} & {(e.topic, e.partition.id) for e in given.wanted})
    held = int(placed.held.sum())
    of = f"; of all plans that leave {counted(held, 'partition')} as found, which the reassignment doesn't name"
    made = structs.replace(
        plan,
        adopted=AdoptedSection(
            file=given.name,
            sha256=given.sha256,
            format=given.title,
            partitions=named,
            partitions_there=there,
            enough_bytes_moved=None if enough is None else min(enough["bytes_moved"], bound.bytes_moved),
            enough_replicas_moved=None if enough is None else enough["replicas_moved"],
        ),
        bound=structs.replace(bound, proof=f"{bound.proof}{of}") if held else bound,
        compared=(plan.compared[0], this, compared, *others),
        warnings=(*_warnings(given, spec, placed), *plan.warnings),
    )
    return Adopted(Planned(build.finished(made), planned.bound), variants.scores([swept]))


def proven(placed: Placed) -> tuple[Proven, ...]:
    """The optimum for the balance asked for and, where its bound doesn't hold for the given assignment, the optimum for
    the balance that the assignment reaches.
    """
    problem = placed.problem
    first = _prove(problem, problem.balance, ALL_SCENARIOS if problem.scenario_names else NO_SCENARIOS)
    if problem.rebalance != "all" or _covered(placed, first.proposal):
        return (first,)
    return first, _prove(problem, reached(problem, placed.assignment), NO_SCENARIOS)


def _prove(problem: Problem, balance: Balance, which: str) -> Proven:
    wanted = evaluate.planned_for(replace(problem, balance=balance), which)
    proposal = prove(wanted, Candidate("optimum", 0, -1, -1, balance))
    return Proven(Run("optimum", 1, balance, which), proposal)


def _covered(placed: Placed, found: Proposal) -> bool:
    """True if the optimum's bound holds for the given assignment too, because that is as even."""
    problem, basis = placed.problem, ScoringBasis.of(placed.problem)
    given, least = (score.score(basis, each) for each in (placed.assignment, found.assignment))
    if given.excess[0] > least.excess[0] or given.scenario_excess[0] > least.scenario_excess[0]:
        return False
    certificate = found.certificate
    if certificate is None or certificate.outside is None:
        within = set(OF_REPLICAS).isdisjoint(missed(problem, placed.assignment))
        return within and not given.scenario_excess[0]
    rows = zip(problem.partition_keys, placed.assignment, strict=True)
    return bound_file.covers(certificate, {key: problem.broker_ids[row[row >= 0]].tolist() for key, row in rows})


def as_even(placed: Placed, solved: Proven) -> bool:
    """True if the optimum is as even as the given assignment; only then are its bytes what that balance needs."""
    basis = ScoringBasis.of(replace(placed.problem, balance=solved.run.balance))
    found, given = (score.score(basis, each) for each in (solved.proposal.assignment, placed.assignment))
    return bool(found.violations[0] == 0 and found.excess[0] <= given.excess[0])


def row_of(placed: Placed, solved: Proven) -> Row:
    """The given assignment as a row of SCORE_SCHEMA, without its candidate number."""
    problem, balance = placed.problem, solved.run.balance
    found = score.score(ScoringBasis.of(problem), placed.assignment)
    touched, arrivals = score.ties(problem, placed.assignment)
    return {
        "strategy": STRATEGY,
        "seed": 0,
        "start_index": -1,
        "next_replica_shift": -1,
        **{knob: str(getattr(balance, knob)) for knob in KNOBS},
        "scenarios": solved.run.scenarios,
        **{field.name: int(getattr(found, field.name)[0]) for field in fields(found)},
        "partitions_touched": touched,
        "arrivals_squared": arrivals,
        "least_bytes": solved.proposal.least_bytes,
        "unproven": 0,
    }


def _swept(spec: Spec, placed: Placed, solved: tuple[Proven, ...], own: Row) -> tuple[Swept, Row]:
    """The candidates (do nothing, optima, Kafka's placements, last the given assignment); the last optimum's row."""
    problem = placed.problem
    placements = generated(problem, spec.sweep).runs if problem.rebalance == "all" else ()
    every = Candidates((Run("unchanged", 1, problem.balance), *(each.run for each in solved), *placements))
    made = {number: each.proposal for number, each in enumerate(solved, 1)}
    numbers = np.arange(len(every), dtype=np.int64)
    tried = sweep_result.rows(every, evaluate.scored(problem, every, numbers, made))
    last = pa.Table.from_pylist([{"candidate": len(every), **own}], schema=SCORE_SCHEMA)
    result = sweep_result.result(
        problem, pa.concat_tables([tried, last]), {**every.by_strategy, STRATEGY: 1}, {len(every): solved[-1].proposal}
    )
    return Swept(BASE, spec, problem, result), tried.slice(len(solved), 1).to_pylist()[0]


def _require_budget(spec: Spec, row: Row) -> None:
    """UnsafePlanError names each term of the spec's budget that the reassignment exceeds."""
    lines = []
    for term in budget_steps.TERMS:
        allowed = getattr(spec.budget, term)
        if allowed is not None and row[term] > allowed:
            found, most = str(row[term]), str(allowed)
            if term == "bytes_moved":
                found, most = exactly(row[term]), stated(allowed)
            lines.append(f"budget.{term}: the reassignment takes {found}, allowed by the budget: {most}")
    if lines:
        raise UnsafePlanError("nothing was written: the reassignment doesn't keep within the budget:", *lines)


def _warnings(given: Given, spec: Spec, placed: Placed) -> Iterator[str]:
    """Partitions that have changed since the reassignment was made, and partitions that the plan leaves uneven."""
    today = {(topic.name, each.id): each.replicas for topic in spec.cluster.topics for each in topic.partitions}
    moved = sum(today.get(key) != replicas for key, replicas in given.found.items())
    if moved:
        yield (
            f"{given.name} was made from another state: {counted(moved, 'partition')} had other replicas then; the "
            "targets are the same, from where the partitions are now"
        )
    held = int(placed.held.sum())
    if held:
        yield (
            f"{counted(held, 'partition')} that {given.name} doesn't name could be spread over racks more evenly or be "
            "led by the preferred replica, and stay as found"
        )
