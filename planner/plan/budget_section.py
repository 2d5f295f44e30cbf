"""The plan's sections on its budget: what is spent, what stays undone, its cost, and the number of further steps."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from msgspec import structs

from planner.model.build_problem import build, today
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Budget, Spec
from planner.plan.document import request_types
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after, on_all_brokers
from planner.scoring.missed_targets import relaxed_of_mode
from planner.scoring.score import ScoringBasis, score
from planner.strategies import optimum
from planner.sweep.budget_steps import TERMS


def section(
    spec: Spec, problem: Problem, assignment: IntArray, spent: Mapping[str, int]
) -> request_types.BudgetSection | None:
    """The `budget` of plan.json: what was allowed and spent, what stays undone, and its cost; None without a budget.

    `problem` is the problem that was planned: the spec's, or its first step (see `budget_steps`).
    """
    if spec.budget == Budget():
        return None
    return request_types.BudgetSection(
        limits=spec.budget,
        spent=request_types.Spent(**{term: spent[term] for term in TERMS}),
        undone=_undone(spec, problem, assignment),
    )


def unfinished(
    problem: Problem, full_problem: Problem, assignment: IntArray, budget: request_types.BudgetSection | None
) -> request_types.UnfinishedSection | None:
    """The `unfinished` of plan.json: what a plan within a budget leaves for later steps; None if it leaves nothing.

    `problem` and `budget` are as in `section`; `full_problem` is that of everything asked for. The number of steps is a
    lower bound, from the least that partitions must copy.
    """
    if budget is None or not (budget.undone.partitions or any(getattr(budget.undone, term) for term in TERMS)):
        return None
    undone, limits = budget.undone, {term: getattr(budget.limits, term) for term in TERMS}
    needed = _least_needed(problem, full_problem)
    steps = [-(-int(needed[term].sum()) // limit) for term, limit in limits.items() if limit]
    too_large = np.any([needed[term] > limit for term, limit in limits.items() if limit is not None], axis=0)
    loads = on_all_brokers(problem, assignment, leaders_after(problem, assignment))
    return request_types.UnfinishedSection(
        limits=budget.limits,
        partitions=undone.partitions,
        brokers=tuple(
            request_types.UnfinishedBrokerRow(
                id=int(problem.broker_ids[broker]),
                replicas=int(loads[0, broker]),
                leaders=int(loads[1, broker]),
                size_bytes=int(loads[2, broker]) if problem.sizes_known else None,
            )
            for broker in np.flatnonzero(~problem.targets & (loads[0] > 0)).tolist()
        ),
        windows=undone.windows,
        bytes_moved=undone.bytes_moved if problem.sizes_known else None,
        replicas_moved=undone.replicas_moved,
        leaders_changed=undone.leaders_changed,
        steps_at_least=max([1, *steps]),
        too_large=int(too_large.sum()),
    )


def _least_needed(problem: Problem, full_problem: Problem) -> dict[str, LongArray]:
    """By term, (P,): the least that each waiting partition needs, whatever later steps choose."""
    waiting = problem.waits
    kept_counts = ((problem.replicas >= 0) & problem.targets[problem.replicas]).sum(axis=1)
    rules = independent_check.broken_rules(full_problem, today(full_problem))
    moves = (kept_counts == full_problem.replication_factors) & (rules["rack spread"] | rules["placement"])
    copies = np.where(waiting, (full_problem.replication_factors - kept_counts).clip(min=0) + moves, 0).astype(np.int64)
    elected = waiting & (problem.leaders >= 0) & ~problem.targets[problem.leaders]
    return dict(zip(TERMS, (copies * problem.size_bytes, copies, elected.astype(np.int64)), strict=True))


def _undone(spec: Spec, problem: Problem, assignment: IntArray) -> request_types.UndoneSection:
    """What this step leaves undone (waiting partitions, missed windows), and what the rest would cost."""
    waiting = problem.waits
    windows = sorted({each.window for each in relaxed_of_mode(problem, assignment)})
    holders = np.unique(problem.replicas[waiting])
    left_brokers = [broker for broker in holders.tolist() if broker >= 0 and not problem.targets[broker]]
    undone = request_types.UndoneSection(
        windows=tuple(windows),
        partitions=int(waiting.sum()),
        brokers=tuple(problem.broker_ids[left_brokers].tolist()),
        bytes_moved=0,
        replicas_moved=0,
        leaders_changed=0,
    )
    if not waiting.any() and (not windows or problem.forced_only):
        return undone
    # Only the step's own problem knows which leaders it elects.
    leaders = leaders_after(problem, assignment)
    later = problem_after(build(spec) if waiting.any() else problem, assignment, waiting, leaders)
    basis = ScoringBasis.of(later)
    cost = score(basis, optimum.solve(later, problem.balance).assignment)
    if not waiting.any() and cost.excess[0] >= score(basis, assignment).excess[0]:
        # No later move would bring the balance closer to its targets.
        return undone
    return structs.replace(undone, **{term: int(getattr(cost, term)[0]) for term in TERMS})


def problem_after(problem: Problem, assignment: IntArray, waiting: BoolArray, leaders: IntArray) -> Problem:
    """The problem that is left after an assignment (P, W) with these leaders (P,); `waiting` (P,) partitions wait."""
    return replace(
        problem,
        replicas=assignment,
        leaders=leaders,
        replacements=problem.replacements if waiting.any() else np.full_like(problem.replacements, -1),
        forced=problem.forced & waiting,
    )
