"""The plan's section on its budget: what was spent, what stays undone, and what that would still cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner.budget import TERMS, asked
from planner.figures import counted, size
from planner.loads import leaders_after
from planner.model import BoolArray, IntArray, Problem, Spec
from planner.problem import build
from planner.relaxed import relaxed
from planner.score import Yardstick, score
from planner.strategies import optimum


def section(spec: Spec, problem: Problem, assignment: IntArray, spent: Mapping[str, int]) -> dict[str, Any] | None:
    """The `budget` of plan.json: what was allowed and spent, and what stays undone with its cost; None without one.

    `problem` is what was planned: the spec's, or the first step of it (see `stages`).
    """
    if not asked(spec.budget):
        return None
    return {
        "limits": {term: getattr(spec.budget, term) for term in TERMS},
        "spent": {term: spent[term] for term in TERMS},
        "undone": _undone(spec, problem, assignment),
    }


def warnings(budget: Mapping[str, Any] | None) -> list[str]:
    """That the changes are not all done, where partitions wait for a later step; nothing else needs a warning."""
    if budget is None or not budget["undone"]["partitions"]:
        return []
    undone = budget["undone"]
    brokers = ", ".join(map(str, undone["brokers"]))
    kept = f", on brokers that leave ({brokers})" if brokers else ""
    cost = f"{counted(undone['replicas_moved'], 'replica')}, {size(undone['bytes_moved'])}"
    return [
        f"only a first step: the budget leaves {counted(undone['partitions'], 'partition')} that must change for later"
        f"{kept}: {cost} to go; plan again once this is done"
    ]


def _undone(spec: Spec, problem: Problem, assignment: IntArray) -> dict[str, Any]:
    """What this step leaves undone, partitions that wait and windows left open, and what doing that would take."""
    waiting = np.zeros(problem.rows, dtype=bool) if problem.deferred is None else problem.deferred
    windows = sorted({each.window for each in relaxed(Yardstick.of(problem), assignment)})
    held = np.unique(problem.replicas[waiting])
    left = [broker for broker in held.tolist() if broker >= 0 and not problem.targets[broker]]
    undone = {
        "windows": windows,
        "partitions": int(waiting.sum()),
        "brokers": problem.broker_ids[left].tolist(),
    }
    if not waiting.any() and (not windows or problem.rebalance != "all"):
        return {**undone, **dict.fromkeys(TERMS, 0)}
    # Only the step's own problem knows whom it elects.
    led = leaders_after(problem, assignment)
    rest = after(build(spec) if waiting.any() else problem, assignment, waiting, led)
    cost = score(Yardstick.of(rest), optimum.solve(rest, problem.balance).assignment)
    return {**undone, **{term: int(getattr(cost, term)[0]) for term in TERMS}}


def after(problem: Problem, assignment: IntArray, waiting: BoolArray, leaders: IntArray) -> Problem:
    """What is left of a problem once an assignment (P, W) with these leaders (P,) is carried out; some (P,) wait."""
    return replace(
        problem,
        replicas=assignment,
        leaders=leaders,
        replacements=problem.replacements if waiting.any() else np.full_like(problem.replacements, -1),
        forced=problem.forced & waiting,
    )
