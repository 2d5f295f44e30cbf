"""Makes a plan from another tool's reassignment: checks, scores and bounds it, and cuts it into batches.

The bound is for the balance that the plan reaches: the spec's windows, widened if the reassignment misses them. If no
plan of our own is found that keeps the rules, the reassignment is adopted without a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from msgspec import structs

from planner.approval import given_reassignment
from planner.approval.given_reassignment import Given
from planner.model import build_problem
from planner.model.balance import Balance
from planner.model.errors import Finding, ImportStateError, InfeasibleError, Place, UnsafePlanError, capped
from planner.model.formats import counted
from planner.model.problem import BoolArray, IntArray, Problem
from planner.model.rack_spread import uneven_racks
from planner.model.spec import Budget, Spec
from planner.plan import bound_json, build
from planner.plan.build import Planned
from planner.plan.comparison_sections import Goal, comparison
from planner.plan.document.comparison_types import DO_NOTHING
from planner.plan.document.request_types import AdoptedSection
from planner.scoring import independent_check, score
from planner.scoring.broker_loads import disks_at_least, leaders_after
from planner.scoring.missed_targets import OF_REPLICAS, missed, reached
from planner.scoring.score import ScoringBasis
from planner.strategies.optimum import UNKNOWN, Proposal
from planner.sweep import apart_sides, budget_steps, choice, evaluate, sweep_result
from planner.sweep.candidates import (
    ADOPTED,
    ALL_SCENARIOS,
    NO_SCENARIOS,
    Candidate,
    CandidateRun,
    Candidates,
    generated,
    prove,
)
from planner.sweep.choice import BASE, BestCandidate, Chosen, Row, Swept
from planner.sweep.sweep_result import SCORE_SCHEMA


@dataclass(frozen=True, eq=False)
class AdoptedAssignment:
    """A problem, and the reassignment as an assignment (P, W) that keeps every rule of the problem.

    `named` (P,): the partitions that the reassignment names. `held` (P,): partitions that it doesn't name, although a
    plan would change their leader or racks; `problem` doesn't let them move. `free` lets them, and those that aren't
    spread over the racks may stay so: the bound is for all its plans, of which this is one.
    """

    problem: Problem
    assignment: IntArray
    named: BoolArray
    held: BoolArray
    free: Problem


def place(given: Given, problem: Problem, spec_file: str) -> AdoptedAssignment:
    """The problem of a spec, and the given reassignment as an assignment of it.

    ImportStateError for topics, partitions and brokers that the spec doesn't have, with their places; InfeasibleError
    with every entry that breaks a hard rule of the spec.
    """
    if wrong := list(given_reassignment.unknown(given, problem)):
        raise ImportStateError(wrong)
    rows = problem.row_of
    entries = {rows[each.topic, each.partition.id]: each for each in given.wanted}
    factors = problem.replication_factors.tolist()
    broken = [
        Finding(
            entry.place,
            f"{entry.topic}-{entry.partition.id}",
            f"replication factor: replicas {list(entry.partition.replicas)}; allowed: exactly {factors[row]} replicas",
        )
        for row, entry in entries.items()
        if len(entry.partition.replicas) > problem.width
    ]
    # Replica lists that are too long are cut, so that the check also finds their other faults.
    lists = {(each.topic, each.partition.id): each.partition.replicas[: problem.width] for each in given.wanted}
    assignment = build_problem.assigned(problem, lists)
    placed = _held(problem, assignment, np.isin(np.arange(problem.rows), list(entries)))
    for violation in independent_check.check(placed.problem, assignment, at_most=problem.rows):
        stated = entries.get(rows[violation.topic, violation.partition])
        key, message = f"{violation.topic}-{violation.partition}", f"{violation.rule}: {violation.message}"
        if stated is None:
            broken.append(Finding(Place(spec_file), key, f"{given.file} doesn't name it, so it stays: {message}"))
        elif len(stated.partition.replicas) <= problem.width:
            broken.append(Finding(stated.place, key, message))
    if broken:
        raise InfeasibleError(
            f"{given.file} can't be adopted, it breaks rules of {spec_file}:", *capped(sorted(broken))
        )
    return placed


def _held(problem: Problem, assignment: IntArray, named: BoolArray) -> AdoptedAssignment:
    """The assignment (P, W), with partitions that aren't named (P,) held where they are, even if a plan would change
    their leader or spread them over the racks.
    """
    elects = leaders_after(problem, assignment) != problem.leaders
    broken = dict(independent_check.broken_rules(problem, assignment))
    uneven, others = broken.pop("rack spread"), np.any([*broken.values()], axis=0)
    rests = ~problem.forced | (uneven & ~others)
    held: BoolArray = ~named & ~problem.is_new & rests & (elects | uneven)
    if not held.any():
        return AdoptedAssignment(problem, assignment, named, held, problem)
    free = replace(problem, forced=problem.forced & ~held)
    fixed = replace(free, movable=problem.movable & ~held)
    free = replace(free, racks_as_today=problem.racks_as_today or bool((held & uneven).any()))
    return AdoptedAssignment(fixed, assignment, named, held, free)


SAME_BALANCE = "fewest bytes at this balance"


@dataclass(frozen=True)
class Adopted:
    """The plan with its bound's file, and the scores of all candidates that it was compared with."""

    planned: Planned
    rows: pa.Table


@dataclass(frozen=True, eq=False)
class Proven:
    """The optimum for `run.balance`: its run in the sweep, and the assignment with its certificate."""

    run: CandidateRun
    proposal: Proposal


def adopted(given: Given, spec: Spec, spec_file: str) -> Adopted:
    """The plan of a given reassignment.

    ImportStateError and InfeasibleError as in `place`; UnsafePlanError if a limit or the budget is exceeded.
    """
    whole = replace(spec, budget=Budget())
    if spec.apart:
        # The sides follow from the reassignment. It is placed in a problem without sides and leader racks first.
        free = replace(build_problem.build(replace(whole, leader_racks=())), rebalance="all")
        whole = apart_sides.sides_of(whole, free, place(given, free, spec_file).assignment)
    placed = place(given, build_problem.build(whole), spec_file)
    solved = proven(placed)
    own = row_of(placed, solved)
    _require_budget(spec, own)
    swept = _swept(whole, placed, solved, own)
    chosen = Chosen(0, swept.result.scores.to_pylist()[-1], f"adopted from {given.name}", (BestCandidate(own, None),))
    proposal = Proposal(placed.assignment)
    if solved and (placed.assignment != build_problem.today(placed.problem)).any():
        # Doing nothing needs no proof.
        proposal = solved[-1].proposal._replace(assignment=placed.assignment)
    planned = build.of_choice([swept], chosen, proposal)
    plan, bound = planned.plan, planned.plan.bound
    fewest = swept.result.scores.slice(len(solved), min(len(solved), 1)).to_pylist()
    enough = fewest[0] if solved and as_even(placed, solved[-1]) else None
    this, compared = plan.own_row, (comparison(SAME_BALANCE, each, Goal.of(swept)) for each in fewest)
    others = tuple(row for row in plan.compared if row is not this and row.label != DO_NOTHING)
    named, uneven = int(placed.named.sum()), placed.held & uneven_racks(placed.problem, placed.problem.replicas)
    there = named - len({row.key for row in plan.partitions} & {(e.topic, e.partition.id) for e in given.wanted})
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
            partitions_uneven=int(uneven.sum()) or None,
        ),
        compared=(plan.compared[0], this, *compared, *others),
        warnings=(*_warnings(given, spec, placed), *plan.warnings),
    )
    return Adopted(Planned(build.finished(made), planned.bound), choice.scores([swept]))


def proven(placed: AdoptedAssignment) -> tuple[Proven, ...]:
    """The optimum for the balance asked for. If its bound doesn't hold for the given assignment, also the optimum for
    the balance that the assignment reaches, on disks that may be as full as the assignment makes them.

    Empty if no bound is found: the search places replicas before it chooses leaders, and may find no plan at all.
    """
    problem = placed.free
    first = _prove(problem, problem.balance, ALL_SCENARIOS if problem.scenario_names else NO_SCENARIOS)
    if problem.rebalance != "all" or any(_covered(placed, each.proposal) for each in first):
        return first
    # A fuller disk crosses a limit, so the plan will be refused, but with a bound that it can't be below.
    roomy = replace(problem, disk_limit_bytes=disks_at_least(problem, placed.assignment))
    last = _prove(roomy, _reached(placed), NO_SCENARIOS)
    return (*first, *last) if last else ()


def _reached(placed: AdoptedAssignment) -> Balance:
    """The balance that the assignment reaches: of replicas also if partitions that aren't named may move."""
    free = reached(placed.free, placed.assignment)
    replicas = replace(placed.problem.balance, **{window: getattr(free, window) for window in OF_REPLICAS})
    return reached(replace(placed.problem, balance=replicas), placed.assignment)


def _prove(problem: Problem, balance: Balance, which: str) -> tuple[Proven, ...]:
    """The optimum for a balance; empty if no plan is found that keeps every rule."""
    wanted = evaluate.planned_for(replace(problem, balance=balance), which)
    try:
        proposal = prove(wanted, Candidate("optimum", 0, -1, -1, balance))
    except InfeasibleError:
        return ()
    return (Proven(CandidateRun("optimum", 1, balance, which), proposal),)


def _covered(placed: AdoptedAssignment, found: Proposal) -> bool:
    """True if the optimum's bound also holds for the given assignment, because the assignment is as even."""
    problem = placed.free
    given = score.score(ScoringBasis.of(placed.problem), placed.assignment)
    least = score.score(ScoringBasis.of(problem), found.assignment)
    if given.excess[0] > least.excess[0] or given.scenario_excess[0] > least.scenario_excess[0]:
        return False
    certificate = found.certificate
    if certificate is None or certificate.outside is None:
        within = set(OF_REPLICAS).isdisjoint(missed(problem, placed.assignment))
        return within and not given.scenario_excess[0]
    rows = zip(problem.partition_keys, placed.assignment, strict=True)
    return bound_json.covers(certificate, {key: problem.broker_ids[row[row >= 0]].tolist() for key, row in rows})


def as_even(placed: AdoptedAssignment, solved: Proven) -> bool:
    """True if the optimum is as even as the given assignment; only then its bytes are enough for that balance."""
    pairs = (placed.free, solved.proposal.assignment), (placed.problem, placed.assignment)
    bases = ((ScoringBasis.of(replace(each, balance=solved.run.balance)), made) for each, made in pairs)
    found, given = (score.score(*each) for each in bases)
    # Shares may be others if uneven partitions may stay so.
    own = replace(placed.problem, balance=reached(placed.problem, placed.assignment))
    less_even = placed.held.any() and set(OF_REPLICAS) & set(missed(own, solved.proposal.assignment))
    return bool(found.violations[0] == 0 and found.excess[0] <= given.excess[0] and not less_even)


def row_of(placed: AdoptedAssignment, solved: Sequence[Proven]) -> Row:
    """The given assignment as a row of SCORE_SCHEMA, without its candidate number."""
    problem, balance, which = placed.problem, placed.problem.balance, NO_SCENARIOS
    if solved:
        balance, which = solved[-1].run.balance, solved[-1].run.scenarios
    elif problem.rebalance == "all":
        balance = _reached(placed)
    touched, arrivals = score.ties(problem, placed.assignment)
    return {
        **evaluate.row_of_given(ADOPTED, problem, placed.assignment, balance, which),
        "partitions_touched": touched,
        "arrivals_squared": arrivals,
        "least_bytes": solved[-1].proposal.least_bytes if solved else UNKNOWN,
        "unproven": int(not solved),
    }


def _swept(spec: Spec, placed: AdoptedAssignment, solved: tuple[Proven, ...], own: Row) -> Swept:
    """The candidates: do nothing, optima, Kafka's placements, the given assignment."""
    problem = placed.problem
    placements = generated(problem, spec.sweep).runs if problem.rebalance == "all" else ()
    every = Candidates((CandidateRun("unchanged", 1, problem.balance), *(each.run for each in solved), *placements))
    made = {number: each.proposal for number, each in enumerate(solved, 1)}
    numbers = np.arange(len(every), dtype=np.int64)
    ours = (numbers > 0) & (numbers <= len(solved))
    # In plans of our own, partitions that the file doesn't name may move.
    parts = [evaluate.scored(each, every, numbers[of], made) for each, of in ((placed.free, ours), (problem, ~ours))]
    tried = sweep_result.rows(every, np.concatenate(parts, axis=1))
    last = pa.Table.from_pylist([{"candidate": len(every), **own}], schema=SCORE_SCHEMA)
    proposals = {len(every): each.proposal for each in solved}
    result = sweep_result.result(problem, pa.concat_tables([tried, last]), {**every.by_strategy, ADOPTED: 1}, proposals)
    return Swept(BASE, spec, problem, result)


def _require_budget(spec: Spec, row: Row) -> None:
    """UnsafePlanError names each term of the spec's budget that the reassignment exceeds."""
    lines = []
    for term in budget_steps.TERMS:
        allowed = getattr(spec.budget, term)
        if allowed is not None and row[term] > allowed:
            found, most = budget_steps.amounts(term, row[term], allowed)
            lines.append(f"budget.{term}: the reassignment takes {found}, allowed by the budget: {most}")
    if lines:
        raise UnsafePlanError("nothing was written: the reassignment doesn't keep within the budget:", *lines)


def _warnings(given: Given, spec: Spec, placed: AdoptedAssignment) -> Iterator[str]:
    """Warns of partitions changed since the reassignment was made, and of unnamed partitions that stay as they are."""
    today = {(topic.name, each.id): each.replicas for topic in spec.cluster.topics for each in topic.partitions}
    if moved := sum(today.get(key) != replicas for key, replicas in given.found.items()):
        yield (
            f"{given.name} was made from another state: {counted(moved, 'partition')} had other replicas then; the "
            "targets are the same, from where the partitions are now"
        )
    if held := int(placed.held.sum()):
        yield (
            f"{counted(held, 'partition')} that {given.name} doesn't name could be spread over racks more evenly or be "
            "led by the preferred replica; they stay as they are"
        )
