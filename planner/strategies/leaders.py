"""Who leads: a flow over replicas that are already chosen, so that leaders are even at the fewest changes.

Partition → (topic, broker), where leaders are to be even within topics → broker → sink. Today's preferred leader costs
nothing; another replica costs two, and one more where it isn't the one that leads at this moment: an election that
restores the preferred leader is cheaper than a new replica order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.build_problem import taken_over, today
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.broker_loads import leaders_after
from planner.scoring.windows import BROKER_PRICE, TOPIC_PRICE, Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.leader_loads import even_out


def order(problem: Problem, placed: IntArray, wanted: Windows) -> IntArray:
    """The same replicas (P, W) with the preferred leader first, then today's replicas in their order, then new ones.

    A broker that replaces another stands where that one does.
    """
    free = problem.may_lead_anew
    leaders = leaders_after(problem, placed)
    if free.any():
        leaders[free] = _choose(problem, _Choices.of(problem, placed, free), wanted)
        leaders = even_out(problem, placed, leaders, free, wanted)
    # What may not change is where it was, in its order; that of a replaced broker's partition may have to wait.
    return np.where(free[:, None], _in_order(problem, placed, leaders), placed)


@dataclass(frozen=True)
class _Choices:
    """Every replica that could lead one of the free rows (M): parallel arrays (K,) of row, topic and target broker.

    `brokers` are numbered within the target brokers, `fixed` (T, Bt) counts the leaders that are settled.
    """

    at: IntArray
    topics: IntArray
    brokers: IntArray
    targets: IntArray
    costs: LongArray
    rows: int
    fixed: LongArray

    @staticmethod
    def of(problem: Problem, placed: IntArray, free: BoolArray) -> _Choices:
        """The choices for the rows of the mask."""
        rows = np.flatnonzero(free)
        at, slots = np.nonzero(placed[rows] >= 0)
        brokers, of = placed[rows[at], slots], rows[at]
        targets = np.flatnonzero(problem.targets).astype(np.int32)
        here = np.full(len(problem.broker_ids), -1, dtype=np.int32)
        here[targets] = np.arange(len(targets))
        led = taken_over(problem, np.stack([problem.replicas[:, 0], problem.leaders], axis=1))[of]
        costs = 2 * (led[:, 0] != brokers) + (led[:, 1] != brokers)
        settled = ~free & (problem.leaders >= 0) & (here[problem.leaders] >= 0)
        fixed = np.zeros((len(problem.topic_names), len(targets)), dtype=np.int64)
        np.add.at(fixed, (problem.topic_of[settled], here[problem.leaders[settled]]), 1)
        return _Choices(
            at.astype(np.int32), problem.topic_of[of], here[brokers], targets, costs.astype(np.int64), len(rows), fixed
        )


def _choose(problem: Problem, choices: _Choices, wanted: Windows) -> IntArray:
    """The leader of each free row, as a broker of the problem."""
    solved = _solve(problem, choices, wanted)
    leads = solved.units > 0
    chosen = np.empty(choices.rows, dtype=np.int32)
    chosen[choices.at[leads]] = choices.targets[choices.brokers[leads]]
    return chosen


def _solve(problem: Problem, choices: _Choices, wanted: Windows) -> min_cost_flow.Flow:
    plain, windowed, nodes = _network(choices, wanted)
    supplies = np.zeros(nodes, dtype=np.int64)
    supplies[: choices.rows] = 1
    supplies[-1] = -choices.rows
    # Where nothing may change that need not, few changes come before even leaders.
    solve = min_cost_flow.solve_cost_first if problem.rebalance == "none" else min_cost_flow.solve_excess_first
    solved = solve(plain, windowed, supplies)
    if solved is None:
        raise AssertionError("every partition has a replica that can lead it")
    return solved


def _network(choices: _Choices, wanted: Windows) -> tuple[min_cost_flow.Arcs, tuple[min_cost_flow.Windowed, ...], int]:
    """Arcs, windows, and the number of nodes; the sink is the last."""
    topics, count = choices.fixed.shape
    cells = topics * count if wanted.topic_leaders is not None else 0
    brokers = np.arange(count, dtype=np.int32) + choices.rows + cells
    sink = choices.rows + cells + count
    fixed = choices.fixed.sum(axis=0)
    windowed = [
        min_cost_flow.window(brokers, np.full_like(brokers, sink), wanted.leaders - fixed, choices.rows, BROKER_PRICE)
    ]
    heads = brokers[choices.brokers]
    if wanted.topic_leaders is not None:
        heads = choices.rows + choices.topics * count + choices.brokers
        nodes = np.arange(cells, dtype=np.int32) + choices.rows
        bounds = (wanted.topic_leaders - choices.fixed).reshape(2, -1)
        windowed.append(min_cost_flow.window(nodes, np.tile(brokers, topics), bounds, choices.rows, TOPIC_PRICE))
    return min_cost_flow.arcs(choices.at, heads.astype(np.int32), 1, choices.costs), tuple(windowed), sink + 1


def _in_order(problem: Problem, placed: IntArray, leaders: IntArray) -> IntArray:
    """Rows sorted by: the leader, today's position, then the broker; what is absent goes last."""
    today = taken_over(problem, problem.replicas)
    match = (placed[:, :, None] == today[:, None, :]) & (placed[:, :, None] >= 0)
    position = np.where(match.any(axis=2), match.argmax(axis=2), today.shape[1] + placed)
    key = np.where(placed == leaders[:, None], -1, position)
    key = np.where(placed < 0, np.iinfo(np.int32).max, key)
    return np.take_along_axis(placed, np.argsort(key, axis=1, kind="stable"), axis=1)


def led_in_sync(problem: Problem, assignment: IntArray) -> IntArray:
    """The assignment (P, W) with a broker in front that can lead, where a broker that is in no ISR would be.

    That is today's leader where it stays, else the first that may be elected. Partitions that nothing else changes keep
    their order: the broker may come back, and until then nobody elects it (see `broker_loads.leaders_after`).
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
