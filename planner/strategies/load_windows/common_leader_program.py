"""The fewest bytes with a common broker for all partitions of each slot of `together`, by linear and integer programs.

The program of shares (see `lp_relaxation`) gets a column for each slot and broker: all partitions of the slot have a
replica there. With split shares, a solution takes milliseconds, and nearly all of it is whole. An integer program
decides the rest, or everything if the cluster is small. At the prices of the linear program, a slot's cheapest common
broker is found by trying all brokers (see `lagrangian_bound`), so anyone can check what they prove.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.problem import BoolArray, IntArray, Problem
from planner.scoring.windows import Windows
from planner.strategies.flow.placement import matrix
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import FINE, BoundFacts, Prices, price_at_edges
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.lp_relaxation import Fits, WholeProgram, is_split, whole_program
from planner.strategies.load_windows.price_program import Program, ProgramRows, Solution, solve
from planner.strategies.work_limits import (
    TOGETHER_CELLS,
    TOGETHER_CLOSE,
    TOGETHER_COLUMNS,
    TOGETHER_NODES,
    TOGETHER_RANKS,
    TOGETHER_SIMPLEX_COLUMNS,
    TOGETHER_STEPS,
    TOGETHER_WHOLE,
)


def slots_of(problem: Problem, layout: Layout) -> IntArray:
    """(M,): the number of each row's slot, -1 for rows that share their slot with no other row of the layout."""
    slots = problem.slot_of[layout.rows]
    _, found, sizes = np.unique(slots, return_inverse=True, return_counts=True)
    shared = (slots >= 0) & (sizes[found] > 1)
    numbers = np.full(len(slots), -1, dtype=np.int32)
    numbers[shared] = np.unique(slots[shared], return_inverse=True)[1]
    return numbers


def with_slots(problem: Problem, layout: Layout, about: BoundFacts) -> BoundFacts:
    """The facts with the rows' slots and who may lead; without them if computing the bound would take too long."""
    slots = slots_of(problem, layout)
    tries = int((slots >= 0).sum()) * len(layout.targets) ** 2
    if not 0 < tries <= TOGETHER_CELLS:
        return about
    ranks = problem.leader_ranks
    # While a broker is out of sync, another one than that of the lowest rank may lead.
    if ranks is None or problem.out_of_sync is not None or tries > TOGETHER_CELLS // TOGETHER_RANKS:
        return replace(about, together=slots)
    return replace(about, together=slots, leader_ranks=ranks[:, layout.targets])


@dataclass(frozen=True, eq=False)
class CommonLeaderProgram:
    """The program of S slots: columns of M rows × Bt brokers, then of S slots × Bt brokers. `slots` as `slots_of`.

    `asked`: the balance was asked for, which is worth more work.
    """

    problem: Problem
    layout: Layout
    whole: WholeProgram
    program: Program
    slots: IntArray
    asked: bool

    @classmethod
    def of(cls, problem: Problem, layout: Layout, wanted: Windows, loads: ByteLoads, *, asked: bool) -> Self | None:
        """The program of a layout within its windows; None if it has no slots or is too large."""
        slots, shape = slots_of(problem, layout), (len(layout.rows), len(layout.targets))
        columns, count = shape[0] * shape[1], int(slots.max(initial=-1)) + 1
        if not count or columns > TOGETHER_COLUMNS[not asked] or problem.rebalance != "all" or problem.is_new.any():
            return None
        whole, table = whole_program(layout, wanted, loads), ProgramRows()
        of_slots = columns + np.arange(count * shape[1])
        brokers, numbers = np.tile(np.arange(shape[1]), count), np.repeat(np.arange(count), shape[1])
        # Every slot has one common broker, where each of its rows has a replica.
        table.add(np.ones((2, count)), (numbers, of_slots, 1.0))
        rows = np.flatnonzero(slots >= 0)
        on_broker, by_slot = (each[:, None] * shape[1] + np.arange(shape[1]) for each in (rows, slots[rows]))
        every = np.arange(on_broker.size)
        ends = np.stack([np.zeros(every.size), np.full(every.size, np.inf)])
        table.add(ends, (every, on_broker.ravel(), 1.0), (every, columns + by_slot.ravel(), -1.0))
        # A broker leads no more partitions of slots than its windows of leaders allow, in all and of each topic, and no
        # fewer of a topic whose partitions are all in slots.
        most = np.stack([np.full(shape[1], -np.inf), wanted.leaders[1, layout.order]])
        table.add(most, (brokers, of_slots, np.bincount(slots[rows])[numbers].astype(np.float64)))
        if wanted.topic_leaders is not None:
            cells = layout.topics[rows, None] * shape[1] + np.arange(shape[1])
            low, high = wanted.topic_leaders[:, :, layout.order].astype(np.float64)
            of_topic, led = (np.bincount(each, minlength=len(low)) for each in (problem.topic_of, layout.topics[rows]))
            low[of_topic > led] = -np.inf
            table.add(np.stack([low, high]), (cells.ravel(), columns + by_slot.ravel(), 1.0))
        reach = np.ones(shape, dtype=bool) if layout.reachable is None else layout.reachable
        upper = np.concatenate([reach.ravel(), cls._able(problem, layout, slots).ravel()])
        added = table.program(np.concatenate([whole.program.costs, np.zeros(len(of_slots))]), upper.astype(np.float64))
        wide = scipy.sparse.csr_matrix((len(whole.program.low), len(of_slots)))
        program = replace(
            added,
            matrix=scipy.sparse.vstack([added.matrix, scipy.sparse.hstack([whole.program.matrix, wide])]).tocsr(),
            low=np.concatenate([added.low, whole.program.low]),
            high=np.concatenate([added.high, whole.program.high]),
        )
        return cls(problem, layout, whole, program, slots, asked)

    @staticmethod
    def _able(problem: Problem, layout: Layout, slots: IntArray) -> BoolArray:
        """(S, Bt): True if the broker may lead all partitions of the slot."""
        rows = np.flatnonzero(slots >= 0)
        able = np.ones((int(slots.max(initial=-1)) + 1, len(layout.targets)), dtype=bool)
        if problem.out_of_sync is not None:
            able &= ~problem.out_of_sync[layout.targets]
        if problem.leader_ranks is not None:
            ranks = problem.leader_ranks[:, layout.targets]
            best = ranks == ranks.min(axis=1, keepdims=True)
            np.logical_and.at(able, slots[rows], best[layout.topics[rows]])
        # A partition that may not move keeps its preferred leader.
        number_of = dict(zip(problem.slot_of[layout.rows[rows]].tolist(), slots[rows].tolist(), strict=True))
        others = (problem.slot_of >= 0) & ~np.isin(np.arange(problem.rows), layout.rows)
        for row in np.flatnonzero(others).tolist():
            if (slot := number_of.get(int(problem.slot_of[row]))) is not None:
                able[slot] &= layout.targets == problem.replicas[row, 0]
        return able

    def _split(self) -> Solution | None:
        """The optimum with split shares; None if there is none, or if it takes too many steps."""
        simplex = len(self.program.costs) <= TOGETHER_SIMPLEX_COLUMNS
        return solve(self.program, "highs-ds" if simplex else "highs-ipm", TOGETHER_STEPS)

    def cheapest(self) -> IntArray | None:
        """The replicas of the rows (M, W) that copy the fewest bytes, or nearly; None if none are found."""
        width = len(self.layout.targets)
        columns = len(self.slots) * width
        least, most = self.program.least, self.program.most
        if columns > TOGETHER_WHOLE[not self.asked]:
            if (solved := self._split()) is None:
                return None
            # Rows of a slot are decided together with it.
            split = is_split(solved.values).reshape(-1, width).any(axis=1)
            rows, slots = np.split(split, [len(self.slots)])
            rows |= (self.slots >= 0) & np.append(slots, False)[self.slots]
            free = np.repeat(np.concatenate([rows, slots]), width)
            least, most = (np.where(free, each, solved.values.round()) for each in (least, most))
        solved = scipy.optimize.milp(
            self.program.costs,
            integrality=np.ones(len(self.program.costs)),
            bounds=scipy.optimize.Bounds(least, most),
            constraints=scipy.optimize.LinearConstraint(self.program.matrix, self.program.low, self.program.high),
            options={"node_limit": TOGETHER_NODES[not self.asked], "mip_rel_gap": TOGETHER_CLOSE[not self.asked]},
        )
        if solved.x is None:
            return None
        on = solved.x[:columns].reshape(-1, width).round() > 0
        return matrix(self.layout, np.stack(np.nonzero(on)), self.problem.width)

    def prices(self, fits: Fits) -> Prices | None:
        """The prices of the linear program, at the edges of these windows; None if it has no solution."""
        if (solved := self._split()) is None:
            return None
        width, worth = len(self.layout.targets), self.whole.worth_of_loads
        counts = len(self.program.low) - worth.size - (self.layout.topic_count + 1) * width
        cells, loads = np.split(solved.prices[counts:], [(self.layout.topic_count + 1) * width])
        cells = np.rint(cells.reshape(-1, width) * self.whole.worth * FINE).astype(np.int64)
        loads = np.rint(loads.reshape(worth.shape) * worth * FINE).astype(np.int64)
        *topics, brokers = cells
        tables = tuple(map(price_at_edges, loads, fits.loads))
        return Prices(
            price_at_edges(np.array(topics), fits.topics), price_at_edges(brokers, fits.brokers), tables, FINE
        )
