"""Who leads where the preferred leader couldn't be elected: nobody plans an election for a broker that is in no ISR."""

from __future__ import annotations

import numpy as np

from planner.model import IntArray, Problem
from planner.problem import today


def led_in_sync(problem: Problem, assignment: IntArray) -> IntArray:
    """The assignment (P, W) with a broker in front that can lead, where a broker that is in no ISR would be.

    That is today's leader where it stays, else the first that may be elected. Partitions that nothing else changes keep
    their order: the broker may come back, and until then nobody elects it (see `loads.leaders_after`).
    """
    if problem.out_of_sync is None or not problem.out_of_sync.any():
        return assignment
    ordered, off = assignment.copy(), np.append(problem.out_of_sync, True)
    changed = (assignment != today(problem)).any(axis=1) & (assignment[:, 0] >= 0)
    rows = np.flatnonzero(problem.may_lead_anew & changed & off[assignment[:, 0]])
    for row in rows.tolist():
        brokers = [broker for broker in assignment[row].tolist() if broker >= 0]
        able = sorted((b for b in brokers if not off[b]), key=lambda b: b != problem.leaders[row])
        if able:
            kept = [able[0], *(broker for broker in brokers if broker != able[0])]
            ordered[row, : len(kept)] = kept
    return ordered
