"""Leaders whose traffic out is within its window too: exchanges between the replicas that could lead.

What a leader sends follows it, so traffic out is a window on leaders, not on replicas. The flow of `leaders` makes
their counts even at the fewest changes; here leaders are exchanged until the bytes they send fit as well, each at the
cost that the flow gives it. Nothing is copied for that.
"""

from __future__ import annotations

import numpy as np

from planner.model.build_problem import taken_over
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.fair_shares import sent_by_leader
from planner.scoring.windows import Windows
from planner.strategies.load_windows.local_search import Placement, SearchState, polish, repair

# More leaders than any broker has.
_ENDLESS = 1 << 40


def even_out(problem: Problem, placed: IntArray, leaders: IntArray, free: BoolArray, wanted: Windows) -> IntArray:
    """The leaders (P,), -1 for none, those of the free rows exchanged until `network_out` fits, as far as it can."""
    if wanted.network_out is None or not free.any():
        return leaders
    targets = np.flatnonzero(problem.targets)
    here = np.full(len(problem.broker_ids), -1, dtype=np.int64)
    here[targets] = np.arange(len(targets))
    rows = np.flatnonzero(free)
    on = np.zeros((len(rows), len(targets)), dtype=bool)
    on[np.arange(len(rows)), here[leaders[rows]]] = True
    placement = Placement(_search(problem, placed, leaders, here, rows, wanted, on), on)
    repair(placement, np.zeros(placement.load.shape))
    polish(placement)
    chosen = leaders.copy()
    chosen[rows] = targets[placement.on.argmax(axis=1)]
    return chosen


def _search(
    problem: Problem,
    placed: IntArray,
    leaders: IntArray,
    here: LongArray,
    rows: IntArray,
    wanted: Windows,
    on: BoolArray,
) -> SearchState:
    sent = sent_by_leader(problem)
    weights = sent[rows]
    fixed = np.setdiff1d(np.flatnonzero((leaders >= 0) & (here[leaders] >= 0)), rows)
    fixed_cells = np.zeros((len(problem.topic_names), on.shape[1]), dtype=np.int64)
    fixed_sent = np.zeros(on.shape[1], dtype=np.int64)
    np.add.at(fixed_cells, (problem.topic_of[fixed], here[leaders[fixed]]), 1)
    np.add.at(fixed_sent, here[leaders[fixed]], sent[fixed])
    allowed = _members(placed[rows], here, on.shape[1])
    by_topic = np.zeros_like(fixed_cells)
    np.add.at(by_topic, problem.topic_of[rows], on)
    window = wanted.network_out
    assert window is not None
    return SearchState(
        topics=problem.topic_of[rows],
        costs=np.full(len(rows), max(1, int(weights.mean())), dtype=np.int64),
        levels=_levels(problem, rows, here, on.shape[1]),
        allowed=allowed,
        racks=np.zeros(on.shape[1], dtype=np.int64),
        least=np.ones((len(rows), 1), dtype=np.int64),
        most=np.ones((len(rows), 1), dtype=np.int64),
        loads=weights[None],
        scales=np.ones(1, dtype=np.int64),
        load_windows=(window - fixed_sent)[None],
        cell_windows=_topic_windows(wanted, fixed_cells, by_topic),
        broker_windows=_as_wide(wanted.leaders - fixed_cells.sum(axis=0), by_topic.sum(axis=0)),
    )


def _topic_windows(wanted: Windows, fixed: LongArray, held: LongArray) -> LongArray:
    if wanted.topic_leaders is None:
        return np.stack([np.zeros_like(held), np.full_like(held, _ENDLESS)])
    return _as_wide(wanted.topic_leaders - fixed, held)


def _as_wide(window: LongArray, held: LongArray) -> LongArray:
    """The window, as wide as what is held already."""
    return np.stack([np.minimum(window[0], held), np.maximum(window[1], held)])


def _members(replicas: IntArray, here: LongArray, brokers: int) -> BoolArray:
    """(M, Bt): True where a row has a replica."""
    members = np.zeros((len(replicas), brokers), dtype=bool, order="F")
    rows, slots = np.nonzero(replicas >= 0)
    members[rows, here[replicas[rows, slots]]] = True
    return members


def _levels(problem: Problem, rows: IntArray, here: LongArray, brokers: int) -> IntArray:
    """(M, Bt): two where it isn't today's preferred leader, and one more where it doesn't lead at this moment."""
    levels = np.full((len(rows), brokers), 3, dtype=np.int8, order="F")
    led = taken_over(problem, np.stack([problem.replicas[:, 0], problem.leaders], axis=1))[rows]
    for todays, worth in zip(led.T, (2, 1), strict=True):
        at = np.where(todays >= 0, here[todays], -1)
        stays = np.flatnonzero(at >= 0)
        levels[stays, at[stays]] -= worth
    return levels
