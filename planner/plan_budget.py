"""The plan's section on its budget: what was spent, what stays undone, and what that would still cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner.budget import TERMS, asked
from planner.model import Budget, IntArray, Problem
from planner.relaxed import relaxed
from planner.score import Yardstick, score
from planner.strategies import optimum


def section(problem: Problem, budget: Budget, assignment: IntArray, spent: Mapping[str, int]) -> dict[str, Any] | None:
    """The `budget` of plan.json: what was allowed and spent, and what stays undone with its cost; None without one."""
    if not asked(budget):
        return None
    return {
        "limits": {term: getattr(budget, term) for term in TERMS},
        "spent": {term: spent[term] for term in TERMS},
        "undone": _undone(problem, assignment),
    }


def _undone(problem: Problem, assignment: IntArray) -> dict[str, Any]:
    """The windows asked for that this step leaves open, and what a second step that closes them would take."""
    yardstick = Yardstick.of(problem)
    windows = sorted({each.window for each in relaxed(yardstick, assignment)})
    if not windows or problem.rebalance != "all":
        return {"windows": windows, **dict.fromkeys(TERMS, 0)}
    rest = after(problem, assignment)
    cost = score(Yardstick.of(rest), optimum.solve(rest, problem.balance).assignment)
    return {"windows": windows, **{term: int(getattr(cost, term)[0]) for term in TERMS}}


def after(problem: Problem, assignment: IntArray) -> Problem:
    """The problem that is left once an assignment (P, W) that keeps all rules has been carried out."""
    nothing = np.zeros(problem.rows, dtype=bool)
    return replace(
        problem,
        replicas=assignment,
        leaders=assignment[:, 0].copy(),
        replacements=np.full_like(problem.replacements, -1),
        forced=nothing,
    )
