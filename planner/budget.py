"""A budget turned into a search: the most even plan within so many bytes, replicas or leader changes.

A limit only says yes or no. A budget makes the sweep look at ever looser windows, each with its own least cost, and the
tightest that fits wins: the first step of a change in stages. What the windows asked for would still cost from there
is worked out as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.balance import NO_TOLERANCE, Balance, Tolerance
from planner.errors import UnsafePlanError
from planner.model import BoolArray, Budget, IntArray, LongArray, Problem
from planner.relaxed import relaxed
from planner.score import Scores, Yardstick, score
from planner.strategies import optimum

# How far from its fair share each broker may be, in per cent, from one step of the ladder to the next.
LEVELS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_LOOSENED = ("replicas", "leaders", "disk", "network_in", "network_out")


def asked(budget: Budget) -> bool:
    """True where anything is limited."""
    return any(getattr(budget, term) is not None for term in TERMS)


def ladder(balance: Balance) -> tuple[Balance, ...]:
    """Balances from the one asked for to none at all, ever looser.

    Every step as it is, without the windows of single topics, and without those of leaders either.
    """
    steps = [balance, *(_loosened(balance, level) for level in LEVELS)]
    no_topics = {"topic_replicas": NO_TOLERANCE, "topic_leaders": NO_TOLERANCE}
    open_ended = Balance(**dict.fromkeys((*_LOOSENED, "topic_replicas", "topic_leaders"), NO_TOLERANCE))
    found = [
        each
        for step in steps
        for each in (step, replace(step, **no_topics), replace(step, **no_topics, leaders=NO_TOLERANCE))
    ]
    return tuple(dict.fromkeys([*found, open_ended]))


def exceeded(budget: Budget, scores: Scores) -> BoolArray:
    """(C,): True where a candidate spends more than there is."""
    over = np.zeros(len(scores.bytes_moved), dtype=bool)
    for term in TERMS:
        allowed = getattr(budget, term)
        if allowed is not None:
            over |= getattr(scores, term) > allowed
    return over


def refuse(budget: Budget, spent: dict[str, int]) -> None:
    """UnsafePlanError where even the cheapest plan spends more than there is."""
    lines = [
        f"budget.{term}: the changes alone take {spent[term]}, allowed: at most {allowed}"
        for term in TERMS
        if (allowed := getattr(budget, term)) is not None and spent[term] > allowed
    ]
    if lines:
        raise UnsafePlanError("\n".join(["nothing was written, no plan keeps within the budget:", *lines]))


def section(problem: Problem, budget: Budget, assignment: IntArray, spent: dict[str, int]) -> dict[str, Any] | None:
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
    return {"windows": windows, **{term: _one(getattr(cost, term)) for term in TERMS}}


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


def _loosened(balance: Balance, level: int) -> Balance:
    knobs = {knob: _looser(getattr(balance, knob), level) for knob in _LOOSENED}
    return replace(balance, **knobs)


def _looser(tolerance: Tolerance, level: int) -> Tolerance:
    """At least so many per cent; what isn't asked for stays so."""
    if tolerance.kind == "none" or (tolerance.kind == "percent" and tolerance.value >= level):
        return tolerance
    return Tolerance("percent", level)


def _one(column: LongArray) -> int:
    return int(column[0])
