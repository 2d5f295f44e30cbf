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
from planner.approval.given_reassignment import GivenReassignment
from planner.model import build_problem
from planner.model.balance import Balance
from planner.model.cluster import keyed_partitions
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
from planner.scoring.missed_targets import OF_REPLICAS, missed_windows, widened_to_reach
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

    `is_named` (P,): the partitions that the reassignment names. `is_held` (P,): those that it doesn't name, although a
    plan would change their leader or racks; `problem` doesn't let them move. `free` lets them, and those that aren't
    spread over the racks may stay so: the bound is for all its plans, of which this is one.
    """

    problem: Problem
    assignment: IntArray
    is_named: BoolArray
    is_held: BoolArray
    free: Problem


def place(given: GivenReassignment, problem: Problem, spec_file: str) -> AdoptedAssignment:
    """The problem of a spec, and the given reassignment as an assignment of it.

    ImportStateError for topics, partitions and brokers that the spec doesn't have, with their places; InfeasibleError
    with every entry that breaks a hard rule of the spec.
    """
    if unknown_parts := list(given_reassignment.findings(given, problem)):
        raise ImportStateError(unknown_parts)
    rows = problem.row_of
    entries = {rows[each.topic, each.partition.id]: each for each in given.targets}
    factors = problem.replication_factors.tolist()
    faults = [
        Finding(
            entry.place,
            f"{entry.topic}-{entry.partition.id}",
            f"replication factor: replicas {list(entry.partition.replicas)}; allowed: exactly {factors[row]} replicas",
        )
        for row, entry in entries.items()
        if len(entry.partition.replicas) > problem.width
    ]
    # Replica lists that are too long are cut, so that the check also finds their other faults.
    lists = {(each.topic, each.partition.id): each.partition.replicas[: problem.width] for each in given.targets}
    assignment = build_problem.with_replica_lists(problem, lists)
    adoption = _hold_unnamed(problem, assignment, np.isin(np.arange(problem.rows), list(entries)))
    for violation in independent_check.check(adoption.problem, assignment, at_most=problem.rows):
        given_entry = entries.get(rows[violation.topic, violation.partition])
        key, message = f"{violation.topic}-{violation.partition}", f"{violation.rule}: {violation.message}"
        if given_entry is None:
            faults.append(Finding(Place(spec_file), key, f"{given.file} doesn't name it, so it stays: {message}"))
        elif len(given_entry.partition.replicas) <= problem.width:
            faults.append(Finding(given_entry.place, key, message))
    if faults:
        raise InfeasibleError(
            f"{given.file} can't be adopted, it breaks rules of {spec_file}:", *capped(sorted(faults))
        )
    return adoption


def _hold_unnamed(problem: Problem, assignment: IntArray, is_named: BoolArray) -> AdoptedAssignment:
    """The assignment (P, W), with partitions that aren't named (P,) held where they are, even if a plan would change
    their leader or spread them over the racks.
    """
    changes_leader = leaders_after(problem, assignment) != problem.leaders
    broken_rules = dict(independent_check.broken_rules(problem, assignment))
    is_uneven, other_faults = broken_rules.pop("rack spread"), np.any([*broken_rules.values()], axis=0)
    may_stay = ~problem.forced | (is_uneven & ~other_faults)
    is_held: BoolArray = ~is_named & ~problem.is_new & may_stay & (changes_leader | is_uneven)
    if not is_held.any():
        return AdoptedAssignment(problem, assignment, is_named, is_held, problem)
    free = replace(problem, forced=problem.forced & ~is_held)
    fixed = replace(free, movable=problem.movable & ~is_held)
    free = replace(free, racks_as_today=problem.racks_as_today or bool((is_held & is_uneven).any()))
    return AdoptedAssignment(fixed, assignment, is_named, is_held, free)


SAME_BALANCE = "fewest bytes at this balance"


@dataclass(frozen=True, eq=False)
class ProvenOptimum:
    """The optimum for `run.balance`: its run in the sweep, and the assignment with its certificate."""

    run: CandidateRun
    proposal: Proposal


def adopt(given: GivenReassignment, spec: Spec, spec_file: str) -> tuple[Planned, pa.Table]:
    """The plan of a given reassignment with its bound's file, and the scores of all candidates it was compared with.

    ImportStateError and InfeasibleError as in `place`; UnsafePlanError if a limit or the budget is exceeded.
    """
    unbudgeted = replace(spec, budget=Budget())
    if spec.apart:
        # The sides follow from the reassignment. It is placed in a problem without sides and leader racks first.
        free = replace(build_problem.build(replace(unbudgeted, leader_racks=())), rebalance="all")
        unbudgeted = apart_sides.sides_of(unbudgeted, free, place(given, free, spec_file).assignment)
    adoption = place(given, build_problem.build(unbudgeted), spec_file)
    optima = prove_optimum(adoption)
    row = row_of(adoption, optima)
    _require_budget(spec, row)
    swept = _swept(unbudgeted, adoption, optima, row)
    chosen = Chosen(0, swept.result.scores.to_pylist()[-1], f"adopted from {given.name}", (BestCandidate(row, None),))
    proposal = Proposal(adoption.assignment)
    if optima and (adoption.assignment != build_problem.today(adoption.problem)).any():
        # Doing nothing needs no proof.
        proposal = optima[-1].proposal._replace(assignment=adoption.assignment)
    planned = build.plan_of_choice([swept], chosen, proposal)
    plan, bound = planned.plan, planned.plan.bound
    optimum_rows = swept.result.scores.slice(len(optima), min(len(optima), 1)).to_pylist()
    enough_row = optimum_rows[0] if optima and is_as_even(adoption, optima[-1]) else None
    this_row, compared = plan.own_row, (comparison(SAME_BALANCE, each, Goal.of(swept)) for each in optimum_rows)
    others = tuple(each for each in plan.compared if each is not this_row and each.label != DO_NOTHING)
    named = int(adoption.is_named.sum())
    is_uneven = adoption.is_held & uneven_racks(adoption.problem, adoption.problem.replicas)
    in_place = named - len({each.key for each in plan.partitions} & {(e.topic, e.partition.id) for e in given.targets})
    final_plan = structs.replace(
        plan,
        adopted=AdoptedSection(
            file=given.name,
            sha256=given.sha256,
            format=given.title,
            partitions=named,
            partitions_there=in_place,
            enough_bytes_moved=None if enough_row is None else min(enough_row["bytes_moved"], bound.bytes_moved),
            enough_replicas_moved=None if enough_row is None else enough_row["replicas_moved"],
            partitions_uneven=int(is_uneven.sum()) or None,
        ),
        compared=(plan.compared[0], this_row, *compared, *others),
        warnings=(*_warnings(given, spec, adoption), *plan.warnings),
    )
    return Planned(build.finish(final_plan), planned.bound), choice.scores([swept])


def prove_optimum(adoption: AdoptedAssignment) -> tuple[ProvenOptimum, ...]:
    """The optimum for the balance asked for. If its bound doesn't hold for the given assignment, also the optimum for
    the balance that the assignment reaches, on disks that may be as full as the assignment makes them.

    Empty if no bound is found: the search places replicas before it chooses leaders, and may find no plan at all.
    """
    problem = adoption.free
    first = _prove(problem, problem.balance, ALL_SCENARIOS if problem.scenario_names else NO_SCENARIOS)
    if problem.rebalance != "all" or any(_bound_holds(adoption, each.proposal) for each in first):
        return first
    # A fuller disk crosses a limit, so the plan will be refused, but with a bound that it can't be below.
    roomy = replace(problem, disk_limit_bytes=disks_at_least(problem, adoption.assignment))
    last = _prove(roomy, _reached(adoption), NO_SCENARIOS)
    return (*first, *last) if last else ()


def _reached(adoption: AdoptedAssignment) -> Balance:
    """The balance that the assignment reaches: of replicas also if partitions that aren't named may move."""
    free_balance = widened_to_reach(adoption.free, adoption.assignment)
    replicas = replace(adoption.problem.balance, **{window: getattr(free_balance, window) for window in OF_REPLICAS})
    return widened_to_reach(replace(adoption.problem, balance=replicas), adoption.assignment)


def _prove(problem: Problem, balance: Balance, scenarios: str) -> tuple[ProvenOptimum, ...]:
    """The optimum for a balance; empty if no plan is found that keeps every rule."""
    planned_problem = evaluate.planned_for(replace(problem, balance=balance), scenarios)
    try:
        proposal = prove(planned_problem, Candidate("optimum", 0, -1, -1, balance))
    except InfeasibleError:
        return ()
    return (ProvenOptimum(CandidateRun("optimum", 1, balance, scenarios), proposal),)


def _bound_holds(adoption: AdoptedAssignment, proposal: Proposal) -> bool:
    """True if the optimum's bound also holds for the given assignment, because the assignment is as even."""
    problem = adoption.free
    scores = score.score(ScoringBasis.of(adoption.problem), adoption.assignment)
    optimum = score.score(ScoringBasis.of(problem), proposal.assignment)
    if scores.excess[0] > optimum.excess[0] or scores.scenario_excess[0] > optimum.scenario_excess[0]:
        return False
    certificate = proposal.certificate
    if certificate is None or certificate.outside is None:
        within = set(OF_REPLICAS).isdisjoint(missed_windows(problem, adoption.assignment))
        return within and not scores.scenario_excess[0]
    rows = zip(problem.partition_keys, adoption.assignment, strict=True)
    return bound_json.covers(certificate, {key: problem.broker_ids[row[row >= 0]].tolist() for key, row in rows})


def is_as_even(adoption: AdoptedAssignment, optimum: ProvenOptimum) -> bool:
    """True if the optimum is as even as the given assignment; only then its bytes are enough for that balance."""
    pairs = (adoption.free, optimum.proposal.assignment), (adoption.problem, adoption.assignment)
    bases = ((ScoringBasis.of(replace(each, balance=optimum.run.balance)), assignment) for each, assignment in pairs)
    optimum_score, given_score = (score.score(*each) for each in bases)
    # Shares may be others if uneven partitions may stay so.
    reached_problem = replace(adoption.problem, balance=widened_to_reach(adoption.problem, adoption.assignment))
    less_even = adoption.is_held.any() and set(OF_REPLICAS) & set(
        missed_windows(reached_problem, optimum.proposal.assignment)
    )
    return bool(optimum_score.violations[0] == 0 and optimum_score.excess[0] <= given_score.excess[0] and not less_even)


def row_of(adoption: AdoptedAssignment, optima: Sequence[ProvenOptimum]) -> Row:
    """The given assignment as a row of SCORE_SCHEMA, without its candidate number."""
    problem, balance, scenarios = adoption.problem, adoption.problem.balance, NO_SCENARIOS
    if optima:
        balance, scenarios = optima[-1].run.balance, optima[-1].run.scenarios
    elif problem.rebalance == "all":
        balance = _reached(adoption)
    touched, arrivals = score.ties(problem, adoption.assignment)
    return {
        **evaluate.row_of_given(ADOPTED, problem, adoption.assignment, balance, scenarios),
        "partitions_touched": touched,
        "arrivals_squared": arrivals,
        "least_bytes": optima[-1].proposal.least_bytes if optima else UNKNOWN,
        "unproven": int(not optima),
    }


def _swept(spec: Spec, adoption: AdoptedAssignment, optima: tuple[ProvenOptimum, ...], own_row: Row) -> Swept:
    """The candidates: do nothing, optima, Kafka's placements, the given assignment."""
    problem = adoption.problem
    placements = generated(problem, spec.sweep).runs if problem.rebalance == "all" else ()
    candidates = Candidates(
        (CandidateRun("unchanged", 1, problem.balance), *(each.run for each in optima), *placements)
    )
    proposal_of = {number: each.proposal for number, each in enumerate(optima, 1)}
    numbers = np.arange(len(candidates), dtype=np.int64)
    ours = (numbers > 0) & (numbers <= len(optima))
    # In plans of our own, partitions that the file doesn't name may move.
    scores = [
        evaluate.scored(each, candidates, numbers[mask], proposal_of)
        for each, mask in ((adoption.free, ours), (problem, ~ours))
    ]
    score_rows = sweep_result.rows(candidates, np.concatenate(scores, axis=1))
    own_table = pa.Table.from_pylist([{"candidate": len(candidates), **own_row}], schema=SCORE_SCHEMA)
    proposals = {len(candidates): each.proposal for each in optima}
    result = sweep_result.result(
        problem, pa.concat_tables([score_rows, own_table]), {**candidates.by_strategy, ADOPTED: 1}, proposals
    )
    return Swept(BASE, spec, problem, result)


def _require_budget(spec: Spec, row: Row) -> None:
    """UnsafePlanError names each term of the spec's budget that the reassignment exceeds."""
    lines = []
    for term in budget_steps.TERMS:
        allowed = getattr(spec.budget, term)
        if allowed is not None and row[term] > allowed:
            spent, most = budget_steps.amounts(term, row[term], allowed)
            lines.append(f"budget.{term}: the reassignment takes {spent}, allowed by the budget: {most}")
    if lines:
        raise UnsafePlanError("nothing was written: the reassignment doesn't keep within the budget:", *lines)


def _warnings(given: GivenReassignment, spec: Spec, adoption: AdoptedAssignment) -> Iterator[str]:
    """Warns of partitions changed since the reassignment was made, and of unnamed partitions that stay as they are."""
    today = {key: each.replicas for key, each in keyed_partitions(spec.cluster.topics)}
    if moved := sum(today.get(key) != replicas for key, replicas in given.replicas_before.items()):
        yield (
            f"{given.name} was made from another state: {counted(moved, 'partition')} had other replicas then; the "
            "targets are the same, from where the partitions are now"
        )
    if count := int(adoption.is_held.sum()):
        yield (
            f"{counted(count, 'partition')} that {given.name} doesn't name could be spread over racks more evenly or "
            "be led by the preferred replica; they stay as they are"
        )
