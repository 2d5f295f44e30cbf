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

from planner.model.problem import DEMOTED, BoolArray, IntArray, Problem
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
    _, indices, sizes = np.unique(slots, return_inverse=True, return_counts=True)
    shared = (slots >= 0) & (sizes[indices] > 1)
    numbers = np.full(len(slots), -1, dtype=np.int32)
    numbers[shared] = np.unique(slots[shared], return_inverse=True)[1]
    return numbers


def with_slots(problem: Problem, layout: Layout, facts: BoundFacts) -> BoundFacts:
    """The facts with the rows' slots and who may lead; without them if computing the bound would take too long."""
    slots = slots_of(problem, layout)
    tries = int((slots >= 0).sum()) * len(layout.targets) ** 2
    if not 0 < tries <= TOGETHER_CELLS:
        return facts
    ranks = problem.leader_ranks
    # While a broker is out of sync, another one than that of the lowest rank may lead.
    if ranks is None or problem.out_of_sync is not None or tries > TOGETHER_CELLS // TOGETHER_RANKS:
        return replace(facts, together=slots)
    return replace(facts, together=slots, leader_ranks=ranks[:, layout.targets])


@dataclass(frozen=True, eq=False)
class CommonLeaderProgram:
    """The program of S slots: columns of M rows × Bt brokers, then of S slots × Bt brokers. `slots` as `slots_of`.

    `exactly`: the balance was asked for, which is worth more work.
    """

    problem: Problem
    layout: Layout
    base: WholeProgram
    program: Program
    slots: IntArray
    exactly: bool

    @classmethod
    def of(cls, problem: Problem, layout: Layout, windows: Windows, loads: ByteLoads, *, exactly: bool) -> Self | None:
        """The program of a layout within its windows; None if it has no slots or is too large."""
        slots, shape = slots_of(problem, layout), (len(layout.rows), len(layout.targets))
        columns, count = shape[0] * shape[1], int(slots.max(initial=-1)) + 1
        if not count or columns > TOGETHER_COLUMNS[not exactly] or problem.rebalance != "all" or problem.is_new.any():
            return None
        base, table = whole_program(layout, windows, loads), ProgramRows()
        of_slots = columns + np.arange(count * shape[1])
        brokers, numbers = np.tile(np.arange(shape[1]), count), np.repeat(np.arange(count), shape[1])
        # Every slot has one common broker, where each of its rows has a replica.
        table.add(np.ones((2, count)), (numbers, of_slots, 1.0))
        rows = np.flatnonzero(slots >= 0)
        on_broker, by_slot = (each[:, None] * shape[1] + np.arange(shape[1]) for each in (rows, slots[rows]))
        indices = np.arange(on_broker.size)
        bounds = np.stack([np.zeros(indices.size), np.full(indices.size, np.inf)])
        table.add(bounds, (indices, on_broker.ravel(), 1.0), (indices, columns + by_slot.ravel(), -1.0))
        # A broker leads no more partitions of slots than its windows of leaders allow, in all and of each topic, and no
        # fewer of a topic whose partitions are all in slots.
        leader_windows = np.stack([np.full(shape[1], -np.inf), windows.leaders[1, layout.order]])
        table.add(leader_windows, (brokers, of_slots, np.bincount(slots[rows])[numbers].astype(np.float64)))
        if windows.topic_leaders is not None:
            cells = layout.topics[rows, None] * shape[1] + np.arange(shape[1])
            low, high = windows.topic_leaders[:, :, layout.order].astype(np.float64)
            of_topic, in_slots = (
                np.bincount(each, minlength=len(low)) for each in (problem.topic_of, layout.topics[rows])
            )
            low[of_topic > in_slots] = -np.inf
            table.add(np.stack([low, high]), (cells.ravel(), columns + by_slot.ravel(), 1.0))
        reachable = np.ones(shape, dtype=bool) if layout.reachable is None else layout.reachable
        later = cls._later(problem, layout, slots)
        if later is not None:
            cls._add_ranks(table, slots, later)
        may_lead = cls._may_lead(problem, layout, slots, lowest_only=later is None)
        upper = np.concatenate([reachable.ravel(), may_lead.ravel()])
        extended = table.program(
            np.concatenate([base.program.costs, np.zeros(len(of_slots))]), upper.astype(np.float64)
        )
        zeros = scipy.sparse.csr_matrix((len(base.program.low), len(of_slots)))
        program = replace(
            extended,
            matrix=scipy.sparse.vstack([extended.matrix, scipy.sparse.hstack([base.program.matrix, zeros])]).tocsr(),
            low=np.concatenate([extended.low, base.program.low]),
            high=np.concatenate([extended.high, base.program.high]),
        )
        return cls(problem, layout, base, program, slots, exactly)

    @staticmethod
    def _may_lead(problem: Problem, layout: Layout, slots: IntArray, *, lowest_only: bool) -> BoolArray:
        """(S, Bt): True if the broker may lead all partitions of the slot; `lowest_only`: only one of lowest rank."""
        rows = np.flatnonzero(slots >= 0)
        may_lead = np.ones((int(slots.max(initial=-1)) + 1, len(layout.targets)), dtype=bool)
        if problem.out_of_sync is not None:
            may_lead &= ~problem.out_of_sync[layout.targets]
        if problem.leader_ranks is not None:
            ranks = problem.leader_ranks[:, layout.targets]
            able = ranks == ranks.min(axis=1, keepdims=True)
            if not lowest_only:
                able |= ranks < DEMOTED
            np.logical_and.at(may_lead, slots[rows], able[layout.topics[rows]])
        # A partition that may not move keeps its preferred leader.
        number_of = dict(zip(problem.slot_of[layout.rows[rows]].tolist(), slots[rows].tolist(), strict=True))
        others = (problem.slot_of >= 0) & ~np.isin(np.arange(problem.rows), layout.rows)
        for row in np.flatnonzero(others).tolist():
            if (slot := number_of.get(int(problem.slot_of[row]))) is not None:
                may_lead[slot] &= layout.targets == problem.replicas[row, 0]
        return may_lead

    @staticmethod
    def _later(problem: Problem, layout: Layout, slots: IntArray) -> BoolArray | None:
        """(R, Bt, Bt): for each row of a slot, True if the second broker should lead only without the first; None where
        all brokers of each topic that may lead have one rank, and if that is too much for a program.
        """
        rows = np.flatnonzero(slots >= 0)
        if problem.leader_ranks is None or len(rows) * len(layout.targets) ** 2 > TOGETHER_CELLS // TOGETHER_RANKS:
            return None
        ranks = problem.leader_ranks[:, layout.targets][layout.topics[rows]]
        later: BoolArray = (ranks[:, :, None] < ranks[:, None, :]) & (ranks[:, None, :] < DEMOTED)
        return later if later.any() else None

    @staticmethod
    def _add_ranks(table: ProgramRows, slots: IntArray, later: BoolArray) -> None:
        """A broker leads a slot only if none of its rows has a replica on a broker that should lead before it."""
        width = later.shape[1]
        rows, first, second = np.nonzero(later)
        rows = np.flatnonzero(slots >= 0)[rows]
        on_first, indices = np.unique(rows * width + first, return_inverse=True)
        bounds = np.stack([np.full(len(on_first), -np.inf), np.ones(len(on_first))])
        leads = slots.size * width + slots[rows] * width + second
        table.add(bounds, (np.arange(len(on_first)), on_first, 1.0), (indices, leads, 1.0))

    def _solve_split(self) -> Solution | None:
        """The optimum with split shares; None if there is none, or if it takes too many steps."""
        simplex = len(self.program.costs) <= TOGETHER_SIMPLEX_COLUMNS
        return solve(self.program, "highs-ds" if simplex else "highs-ipm", TOGETHER_STEPS)

    def cheapest(self) -> IntArray | None:
        """The replicas of the rows (M, W) that copy the fewest bytes, or nearly; None if none are found."""
        width = len(self.layout.targets)
        columns = len(self.slots) * width
        least, most = self.program.least, self.program.most
        if columns > TOGETHER_WHOLE[not self.exactly]:
            if (solved := self._solve_split()) is None:
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
            options={"node_limit": TOGETHER_NODES[not self.exactly], "mip_rel_gap": TOGETHER_CLOSE[not self.exactly]},
        )
        if solved.x is None:
            return None
        is_on = solved.x[:columns].reshape(-1, width).round() > 0
        return matrix(self.layout, np.stack(np.nonzero(is_on)), self.problem.width)

    def prices(self, fits: Fits) -> Prices | None:
        """The prices of the linear program, at the edges of these windows; None if it has no solution."""
        solved = self._solve_split()
        return None if solved is None else prices_of(self.layout, self.base, solved, fits)


def prices_of(layout: Layout, base: WholeProgram, solved: Solution, fits: Fits) -> Prices:
    """The prices of a solution, at the edges of these windows; the last rows are those of the program `base`."""
    width, load_worth = len(layout.targets), base.worth_of_loads
    counts = len(solved.prices) - load_worth.size - (layout.topic_count + 1) * width
    cells, loads = np.split(solved.prices[counts:], [(layout.topic_count + 1) * width])
    cells = np.rint(cells.reshape(-1, width) * base.worth * FINE).astype(np.int64)
    loads = np.rint(loads.reshape(load_worth.shape) * load_worth * FINE).astype(np.int64)
    *topics, brokers = cells
    tables = tuple(map(price_at_edges, loads, fits.loads))
    return Prices(price_at_edges(np.array(topics), fits.topics), price_at_edges(brokers, fits.brokers), tables, FINE)
