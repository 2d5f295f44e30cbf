"""Plans the rest of an approved plan, from the cluster as an interrupted run left it, with the same target.

Partitions that have reached the target need no change. Partitions that no longer exist are dropped and listed.
Partitions that others have moved are refused, or stay where they are and are listed. The rest gets new batches, and
every limit of the approved plan is checked again with today's sizes. The result is a plan like any other, to be
reviewed before it runs; its rollback restores the state that it was made from.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from planner.approval.changes_since_plan import ClusterNow
from planner.approval.remaining_changes import SHOWN, RemainingChanges, balance_of, changes_left, spec_of, with_traffic
from planner.execution import batch_costs_and_risks, limits_and_safety
from planner.execution.batch_costs_and_risks import Costs
from planner.execution.partition_changes import with_down
from planner.model import build_problem
from planner.model.cluster import partition_name
from planner.model.cordons import only_cordoned
from planner.model.errors import InfeasibleError, StalePlanError
from planner.model.formats import counted
from planner.model.problem import IntArray, Problem
from planner.model.spec import OF_HOURS, Spec
from planner.model.together import without_waiting
from planner.plan import build, cluster_warnings, score_terms, traffic_sections
from planner.plan.comparison_sections import Goal, comparison, point, searched
from planner.plan.document.comparison_types import DO_NOTHING, THIS_PLAN, BalanceSection, BoundSection, ChoiceSection
from planner.plan.document.plan_types import Plan
from planner.plan.document.request_types import ResumesSection
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after
from planner.scoring.missed_targets import relaxed_of_mode
from planner.sweep import evaluate
from planner.sweep.candidates import NO_SCENARIOS
from planner.sweep.choice import BASE

STRATEGY = "resumed"
_MISSED_SINCE = "the approved plan met it; since then partitions were created or dropped, or sizes or rates changed"


def resume(approved: Plan, now: ClusterNow, *, captured_at: str | None = None, leave_moved: bool = False) -> Plan:
    """The plan of what is left of an approved plan; if nothing is left, a plan with nothing to do.

    `captured_at` is when the state was captured; a plan that expires needs it. StalePlanError if partitions are on
    none of the plan's lists (with `leave_moved` they stay there), UnsafePlanError if a limit is exceeded.
    """
    _require_given(approved, now, captured_at)
    rest = changes_left(approved, now, leave_moved=leave_moved)
    spec = with_traffic(spec_of(approved, now, rest, captured_at), approved, now)
    problem, later_problem, assignment = _target_problem(approved, spec, rest)
    if violations := independent_check.check(_as_approved(approved, problem), assignment):
        head = "the approved target breaks rules on the cluster as it is now; plan again:"
        raise InfeasibleError(head, *map(str, violations))
    rest = replace(rest, changes=with_down(rest.changes, problem))
    waiting, costs = approved.unfinished, build.costed(spec, problem, rest.changes)
    waiting_count = waiting.partitions if waiting else 0
    # `left_to_change` already counts partitions that wait for another replication factor.
    uncounted = max(0, waiting_count - score_terms.left_to_change(later_problem, assignment))
    row = evaluate.row_of_given(STRATEGY, problem, assignment, problem.balance, NO_SCENARIOS)
    # The rest is the only candidate, and each copy that is left is needed.
    row |= {"candidate": 0, "least_bytes": row["bytes_moved"]}
    bound = _bound(approved, row)
    outcome = build.outcome_sections(spec, problem, assignment, rest.changes, costs)
    leaders = leaders_after(problem, assignment)
    terms = score_terms.terms(spec, later_problem, assignment, leaders, bool(rest.changes), uncounted)
    plan = Plan(
        **build.request_sections(spec),
        resumes=ResumesSection(plan_id=approved.plan_id, partitions_there=rest.in_place, dropped=rest.dropped),
        # This plan leaves the same changes for later steps as the approved plan.
        complete=waiting is None,
        unfinished=waiting,
        **outcome,
        balance=_balance(approved, problem, assignment),
        hours=traffic_sections.hours(spec, problem, assignment, None),
        cross_rack=traffic_sections.cross_rack(spec, problem, assignment, row["cross_rack_bytes"]),
        terms=terms,
        bound=bound,
        **_compared(approved, spec, problem, row, Goal(waiting_count, row["excess"])),
        budget=None,
        scenarios=(),
        limits=build.limits(spec, row, terms, costs, bound, outcome["brokers"], first_step=waiting is not None),
        warnings=tuple(_warnings(approved, spec, problem, assignment, rest, costs)),
    )
    return build.within_limits(build.finish(plan), spec, costs)


def _target_problem(approved: Plan, spec: Spec, rest: RemainingChanges) -> tuple[Problem, Problem, IntArray]:
    """The problem of the rest, with replication factors and movable partitions fixed to the approved target; the same
    problem with the factors asked for of partitions that wait for a later step, because these factors count for the
    brokers' shares; and the approved target as an assignment (P, W).
    """
    # Racks and shares of replicas are as they were when these brokers got no new replica.
    problem = build_problem.build(only_cordoned(spec, [row.id for row in approved.brokers if row.cordoned]))
    rows = problem.row_of
    targets = rest.targets | rest.to_create
    factors = (problem.replicas >= 0).sum(axis=1).astype(np.int32)
    is_planned, forced = np.zeros((2, problem.rows), dtype=bool)
    for key, replicas in targets.items():
        factors[rows[key]], is_planned[rows[key]] = len(replicas), True
    # Only partitions that change are forced. The approved plan left the others on their brokers, whatever their racks,
    # so they must not count as breaking the rack rule now.
    moved = [each.key for each in rest.changes if set(each.before) != set(each.after)]
    forced[[rows[key] for key in (*rest.to_create, *moved)]] = True
    # With `rebalance: none` and `racks`, the target may also reorder lists and change leaders because of other changes.
    if problem.forced_only:
        problem = replace(problem, rebalance="leaders")
    if approved.unfinished is not None and problem.together is not None:
        problem = replace(problem, together=without_waiting(problem.together, ~is_planned))
    later = factors if approved.unfinished is None else np.where(is_planned, factors, problem.replication_factors)
    problem = replace(problem, replication_factors=factors, movable=is_planned, forced=forced, deferred=~is_planned)
    return problem, replace(problem, replication_factors=later), build_problem.with_replica_lists(problem, targets)


def _as_approved(approved: Plan, problem: Problem) -> Problem:
    """The problem with the brokers that the approved plan knows; those that were down then still need not lead."""
    is_known = np.isin(problem.broker_ids, [row.id for row in approved.brokers if row.role != "removed"])
    is_down = np.isin(problem.broker_ids, [row.id for row in approved.brokers if row.seems_down])
    if problem.out_of_sync is not None:
        is_down |= problem.out_of_sync
    return replace(problem, targets=is_known, out_of_sync=is_down if is_down.any() else None)


def _balance(approved: Plan, problem: Problem, assignment: IntArray) -> BalanceSection:
    """The approved plan's windows, and which of them its target misses on the cluster as it is now.

    The rows on traffic stay as in the approved plan if the state has no rates, or if the plan was made for hours.
    """
    approved_balance = approved.balance
    unjudged = ["log_dirs"]
    if (approved.hours and approved.hours.planned) or not problem.bytes_in_per_sec.any():
        unjudged += ["network_in", "network_out"]
    reasons: dict[tuple[str, str | None], str] = {(row.window, row.topic): row.why for row in approved_balance.relaxed}
    judged = replace(problem, rebalance=approved.changes.rebalance)
    relaxed_rows, missed_rows = (
        [
            structs.replace(row, why=reasons.get((row.window, row.topic), _MISSED_SINCE))
            for row in relaxed_of_mode(replace(judged, balance=balance_of(windows)), assignment)
            if row.window not in unjudged
        ]
        for windows in (approved_balance.wanted, approved_balance.asked)
    )
    relaxed_rows += [row for row in approved_balance.relaxed if row.window in unjudged]
    missed = {row.window for row in missed_rows} | {*approved_balance.missed}.intersection(unjudged)
    return structs.replace(approved_balance, relaxed=tuple(relaxed_rows), missed=tuple(sorted(missed)))


def _bound(approved: Plan, row: Mapping[str, Any]) -> BoundSection:
    """The bound for the approved target: each copy that is left is needed."""
    return BoundSection(
        bytes_moved=row["bytes_moved"],
        least_bytes_moved=row["bytes_moved"],
        least_replicas_moved=row["replicas_moved"],
        gap_percent=0.0,
        method="target",
        proof=f"each copy is needed for the target of plan {approved.plan_id[:12]}, whose bound is its own",
        sha256=None,
    )


def _require_given(approved: Plan, now: ClusterNow, captured_at: str | None) -> None:
    """StalePlanError for an expiry (valid_for) without a capture time, or limits on hours without a load profile."""
    if approved.validity is not None and approved.validity.valid_for_seconds is not None and captured_at is None:
        raise StalePlanError(
            "the plan expires (valid_for), so the time of the new capture is needed; "
            "allowed: --captured-at with a date and time"
        )
    if now.week is None and any(getattr(approved.spec.limits, name) is not None for name in OF_HOURS):
        raise StalePlanError(
            "the plan has limits on hours of the week, so the load profile is needed; "
            "allowed: --load with the profile that cluster.load names, of a week or more"
        )


def _compared(approved: Plan, spec: Spec, problem: Problem, row: Mapping[str, Any], goal: Goal) -> dict[str, Any]:
    """The sections that compare the rest with doing nothing."""
    short = approved.plan_id[:12]
    nothing_row = {**row, "strategy": "unchanged", **score_terms.if_nothing_moves(problem)}
    return {
        "choice": ChoiceSection(rule="asked", value=None, variant=BASE, why=f"what is left of plan {short}"),
        "compared": (comparison(DO_NOTHING, nothing_row, goal), comparison(THIS_PLAN, row, goal)),
        "variants": (),
        "pareto": (point(BASE, spec, row, goal, chosen=True),),
        "candidates": searched(problem, {STRATEGY: 1}, row, None),
    }


def _warnings(
    approved: Plan, spec: Spec, problem: Problem, assignment: IntArray, rest: RemainingChanges, costs: Costs
) -> list[str]:
    """Which plan is resumed and what is dropped, then the warnings that any plan has."""
    in_place = f"{counted(rest.in_place, 'partition')} of {len(approved.partitions):,} in place already"
    dropped = [
        f"{row.topic if row.partition is None else partition_name(row.topic, row.partition)} is dropped: {row.why}"
        for row in rest.dropped
    ]
    of_traffic = (approved.hours or approved.cross_rack) and not problem.bytes_in_per_sec.any()
    unjudged = (
        "the state has no rates: traffic isn't judged again, as the approved plan's was; --load takes a load profile"
    )
    others = [f"{len(dropped) - SHOWN:,} more are dropped, see resumes.dropped"] if len(dropped) > SHOWN else []
    return [
        f"resumes plan {approved.plan_id[:12]}: {in_place}",
        *dropped[:SHOWN],
        *others,
        *rest.notes,
        *rest.between_log_dirs(),
        *([unjudged] if of_traffic else []),
        *cluster_warnings.warnings(spec, problem, rest.changes),
        *cluster_warnings.of_assignment(spec, problem, assignment),
        *limits_and_safety.overfull_today(spec, costs),
        *batch_costs_and_risks.warnings(spec, costs.batches),
    ]
