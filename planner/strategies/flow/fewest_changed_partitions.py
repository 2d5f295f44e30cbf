"""Finds the flows of a face that touch the fewest rows, and among these the flows with the most even arrivals.

A row is touched once, however many of its replicas leave; a flow's costs can't express that. So flows look for few
touched rows, and integer programs for fewer, or for a proof that no flow touches fewer. Free arcs and rows that share
no nodes are separate parts. Each part has its own proof, and programs are solved for parts without one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, lcm
from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used

from planner.model.problem import BoolArray, IntArray, LongArray, draw_numbers, sums_at
from planner.strategies.flow.min_cost_flow import Arcs, Face, cheapest
from planner.strategies.work_limits import PROGRAM_ARCS, PROGRAM_NODES, TOUCHED_FLOWS, TOUCHED_SHARES

# A row's whole charge, divided by the number of replicas that may leave; by more than TOUCHED_SHARES, rounded down.
SHARED = lcm(*range(1, TOUCHED_SHARES + 1))
# SciPy's status if a program is solved, and if it has no solution. Columns this near to whole numbers are whole.
_BEST, _NONE, _WHOLE = 0, 2, 1e-6


@dataclass(frozen=True, eq=False)
class OpenTies:
    """The flows of a face, whose first K0 arcs keep replicas where they are, and the rows (M,) that they may touch.

    rows (K0,), open_rows (M,) row of each keep arc; True for rows that could stay as they are
    shares (M,)     most replicas that leave an open row, at least 1; each is charged SHARED // shares
    charged         the face of the flows with the least charges
    """

    face: Face
    rows: IntArray
    open_rows: BoolArray
    shares: LongArray
    charged: Face

    def leaving(self, units: LongArray) -> LongArray:
        """(M,): replicas that leave each of the rows that could stay."""
        counts = np.bincount(self.rows, weights=1 - units[: len(self.rows)], minlength=len(self.open_rows))
        return np.where(self.open_rows, counts, 0).astype(np.int64)

    def count_touched(self, units: LongArray) -> int:
        """How many of the rows that could stay lose a replica."""
        return int(np.count_nonzero(self.leaving(units)))

    @cached_property
    def charges(self) -> LongArray:
        """(M,): each row's charge in the cheapest flow. No flow of a part touches fewer rows than their sum says."""
        return self.leaving(self.charged.units) * (SHARED // self.shares)

    @cached_property
    def parts(self) -> tuple[IntArray, IntArray, int]:
        """The part of each arc (K,), the part of each row (M,), and the number of parts."""
        face, free = self.face, np.flatnonzero(self.face.free)
        first, keeps = int(max(face.tails.max(initial=0), face.heads.max(initial=0))) + 1, free[free < len(self.rows)]
        keeps = keeps[self.open_rows[self.rows[keeps]]]
        tails = np.concatenate([face.tails[free], face.tails[keeps]])
        heads = np.concatenate([face.heads[free], first + self.rows[keeps]])
        count = first + len(self.open_rows)
        graph = scipy.sparse.coo_matrix((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(count, count))
        parts, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
        return part[face.tails], part[first:], parts

    def improvable(self, units: LongArray, extra: LongArray | int = 0) -> BoolArray:
        """True for parts where fewer rows may be touched, if every flow touches `extra` rows than the charges say."""
        _, of_rows, parts = self.parts
        charges, touched = (
            np.bincount(of_rows, each, parts).astype(np.int64) for each in (self.charges, self.leaving(units) > 0)
        )
        improved: BoolArray = touched > -(-charges // SHARED) + extra
        return improved

    def within(self, face: Face, units: LongArray, parts: BoolArray) -> Face:
        """The flows of the face that equal these units (K,) outside of these parts."""
        return replace(face, units=units).fixed(~parts[self.parts[0]])

    def keeping(self, face: Face, keeps_all: BoolArray) -> LongArray:
        """Units (K,) of a flow of the face that keeps all replicas of these rows (M,)."""
        low = face.low.copy()
        low[: len(self.rows)][keeps_all[self.rows]] = 1
        return _cheapest_flow(face, np.zeros_like(low), low)

    def as_few(self, units: LongArray) -> tuple[Face, Face, bool]:
        """All flows that could touch as few rows as these units, some that surely do, and True if both are the same.

        If the charges prove that no flow touches fewer, all flows that touch as few are among the cheapest.
        """
        touched, several = self.leaving(units) > 0, self.open_rows & (self.shares > 1)
        if self.charges.sum() == SHARED * np.count_nonzero(touched):
            fixed = np.zeros(len(units), dtype=bool)
            fixed[: len(self.rows)] = several[self.rows]
            charged = replace(self.charged, units=units)
            return charged, charged.fixed(fixed), not several.any()
        face, low = replace(self.face, units=units), self.face.low.copy()
        low[: len(self.rows)][(self.open_rows & ~touched)[self.rows]] = 1
        return face, replace(face, low=low), False

    def by_flows(self) -> LongArray:
        """Units (K,) of a flow that touches few rows: each step charges for further rows that it would touch.

        If one replica leaves a row, each step draws whether its others are charged or may leave for nothing. No other
        touched row is charged, so no step touches more rows if at most two replicas of a row could leave.
        """
        units, rows = self.charged.units, self.rows
        for step in range(TOUCHED_FLOWS):
            improvable = self.improvable(units)
            if not improvable.any():
                break
            leaving = self.leaving(units)
            stays = draw_numbers(np.array([step], dtype=np.uint64), len(leaving), 2)[0] > 0
            costs = np.zeros(len(units), dtype=np.int64)
            costs[: len(rows)] = -(self.open_rows & ((leaving == 0) | ((leaving == 1) & stays)))[rows].astype(np.int64)
            face = self.within(self.face, units, improvable)
            step_units = _cheapest_flow(face, costs, face.low)
            units = step_units if self.count_touched(step_units) <= self.count_touched(units) else units
        return units


def touching_fewest(ties: OpenTies, *, exactly: bool) -> tuple[LongArray, bool]:
    """Units (K,) of a flow that touches few rows, and whether it is known that none touches fewer.

    `exactly`: if flows don't prove that, integer programs look for fewer, with at most PROGRAM_ARCS free arcs and
    PROGRAM_NODES nodes of branch and bound.
    """
    units = ties.by_flows()
    improvable = ties.improvable(units)
    if not exactly or not improvable.any():
        return units, not improvable.any()
    if np.count_nonzero(ties.face.free & improvable[ties.parts[0]]) > PROGRAM_ARCS:
        return units, False
    extra = np.zeros(len(improvable), dtype=np.int64)
    for part in np.flatnonzero(improvable).tolist():
        part_units, extra[part] = _all_or_none(ties, np.arange(len(improvable)) == part)
        units = units if part_units is None else np.where(ties.parts[0] == part, part_units, units)
    improvable = ties.improvable(units, extra)
    if not improvable.any():
        return units, True
    program = TieProgram.of_face(ties, ties.within(ties.face, units, improvable))
    fewer, proven = program.touching_fewer()
    return units if fewer is None else fewer, proven


def _all_or_none(ties: OpenTies, part: BoolArray) -> tuple[LongArray | None, bool]:
    """Units (K,) of a flow that touches as few rows of the part as the charges say, and True if there is none.

    Such a flow is among the cheapest, and a row that could lose several replicas loses all or none of them. So one
    column per row is enough, a far smaller program. If rows may lose only some replicas, the answer isn't known.
    """
    (of_arcs, of_rows, _), rows, row_count = ties.parts, ties.rows, len(ties.open_rows)
    keeps = np.flatnonzero((ties.face.free & part[of_arcs])[: len(rows)] & (ties.open_rows & (ties.shares > 1))[rows])
    several = np.bincount(rows[keeps], minlength=row_count)
    if int(ties.charges[part[of_rows]].sum()) % SHARED or ((several > 0) & (several != ties.shares)).any():
        return None, False
    face = ties.within(ties.charged, ties.charged.units, part)
    free, low, high = np.flatnonzero(face.free), face.low.copy(), face.high.copy()
    # The first arc of each row stands for all of them.
    first, column = np.full(row_count, len(low)), np.arange(len(low))
    np.minimum.at(first, rows[keeps], keeps)
    column[keeps] = first[rows[keeps]]
    np.maximum.at(low, column[keeps], face.low[keeps])
    np.minimum.at(high, column[keeps], face.high[keeps])
    if (low > high).any():
        return None, True
    arcs, columns = np.unique(column[free], return_inverse=True)
    merged = scipy.sparse.coo_matrix((np.ones(len(free), dtype=np.int64), (np.arange(len(free)), columns.ravel())))
    balance, is_row = _balance(face, free), np.isin(arcs, keeps)
    balances = balance @ face.units[free]
    solved = _solve(balance @ merged, balances, balances, low[arcs], high[arcs], np.zeros(len(arcs)), is_row)
    if solved.x is None:
        return None, solved.status == _NONE
    keeps_all = (several > 0) & (low[first.clip(0, len(low) - 1)] > 0)
    keeps_all[rows[arcs[is_row]]] = np.rint(solved.x[is_row]) > 0
    return ties.keeping(face, keeps_all), False


@dataclass(frozen=True, eq=False)
class TieProgram:
    """The flows of a face as an integer program: columns are free arcs (n), then open rows (m), 1 if touched.

    arcs (n,)       the free arcs
    open_rows (m,)  rows that could stay as they are
    matrix (r, n + m) equations and inequalities, from `least` to `most` (r,)
    """

    ties: OpenTies
    face: Face
    arcs: IntArray
    open_rows: IntArray
    matrix: Any
    least: LongArray
    most: LongArray

    @staticmethod
    def of_face(ties: OpenTies, face: Face) -> TieProgram:
        """The balance of each node is fixed, and a row is touched unless each of its replicas is kept."""
        arcs = np.flatnonzero(face.free)
        balance = _balance(face, arcs)
        keeps = np.flatnonzero(ties.open_rows[ties.rows] & face.free[: len(ties.rows)])
        open_rows, places = np.unique(ties.rows[keeps], return_inverse=True)
        ones, numbers = np.ones(len(keeps), dtype=np.int64), np.arange(len(keeps))
        kept = scipy.sparse.coo_matrix((ones, (numbers, np.searchsorted(arcs, keeps))), shape=(len(keeps), len(arcs)))
        touched = scipy.sparse.coo_matrix((ones, (numbers, places.ravel())), shape=(len(keeps), len(open_rows)))
        matrix = scipy.sparse.bmat([[balance, None], [kept, touched]], format="csr")
        balances = balance @ face.units[arcs]
        most = np.concatenate([balances, np.full(len(keeps), len(arcs))])
        return TieProgram(ties, face, arcs, open_rows, matrix, np.concatenate([balances, ones]), most)

    @property
    def is_row(self) -> LongArray:
        """(n + m,): 1 for the columns of rows."""
        return np.repeat([0, 1], [len(self.arcs), len(self.open_rows)])

    def touching_fewer(self) -> tuple[LongArray | None, bool]:
        """Units that touch the fewest rows (None: none touch fewer), and False if that isn't known.

        Only the columns of rows have to be whole numbers: once they are decided, the rest is a flow.
        """
        touched_before = int(np.count_nonzero(self.ties.leaving(self.face.units)[self.open_rows]))
        solved = self.solve(self.matrix, self.least, self.most, self.is_row, touched_before - 1, self.is_row)
        if solved.x is None:
            return None, solved.status == _NONE
        keeps_all = np.zeros(len(self.ties.open_rows), dtype=bool)
        keeps_all[self.open_rows] = np.rint(solved.x[len(self.arcs) :]) == 0
        return self.ties.keeping(self.face, keeps_all), solved.status == _BEST

    def more_even(self, arrivals: Arrivals, touched: int, most_squares: int) -> tuple[LongArray | None, bool]:
        """Units that touch no more rows, with the least sum of squared arrivals (None: none has less), True if proven.

        Most often the linear program's solution is whole, or there is none, so that no integer program is needed.
        """
        face, count = self.face, self.matrix.shape[1]
        entering = np.flatnonzero(arrivals.entering[self.arcs[self.arcs < len(arrivals.entering)]])
        brokers = arrivals.brokers[self.arcs[entering]]
        certain = arrivals.counted(np.where(face.free, 0, face.units))
        low, high = (
            certain + np.bincount(brokers, weights=each[self.arcs[entering]], minlength=len(certain)).astype(np.int64)
            for each in (face.low, face.high)
        )
        # No broker gets more replicas than the square root of the sum.
        further = (np.minimum(high, isqrt(most_squares)) - low).clip(0)
        owners = np.repeat(np.arange(len(certain)), further)
        ranks = np.arange(len(owners)) - np.repeat(np.cumsum(further) - further, further)
        arriving = scipy.sparse.coo_matrix(
            (np.ones(len(entering), dtype=np.int64), (brokers, entering)), shape=(len(certain), count)
        )
        steps = scipy.sparse.coo_matrix(
            (-np.ones(len(owners), dtype=np.int64), (owners, np.arange(len(owners)))), shape=(len(certain), len(owners))
        )
        matrix = scipy.sparse.bmat([[self.matrix, None], [arriving, steps], [self.is_row[None], None]], format="csr")
        costs = np.concatenate([np.zeros(count, dtype=np.int64), 2 * (low[owners] + ranks) + 1])
        program = (
            matrix,
            np.concatenate([self.least, low - certain, [0]]),
            np.concatenate([self.most, low - certain, [touched]]),
            costs,
            most_squares - 1 - int((low**2).sum()),
        )
        is_arc = np.arange(len(costs)) < len(self.arcs)
        solved = self.solve(*program, np.zeros_like(costs))
        if solved.x is not None and np.abs(solved.x - np.rint(solved.x))[is_arc].max() > _WHOLE:
            solved = self.solve(*program, is_arc)
        if solved.x is None:
            return None, solved.status == _NONE
        units = face.units.copy()
        units[self.arcs] = np.rint(solved.x[is_arc])
        return (units, solved.status == _BEST) if self.holds(units) else (None, False)

    def holds(self, units: LongArray) -> bool:
        """True if units (K,) are a flow of the face, in case the solver's rounding made them none."""
        face, change = self.face, units - self.face.units
        count = int(max(face.tails.max(initial=0), face.heads.max(initial=0))) + 1
        net = sums_at(count, face.tails, change) - sums_at(count, face.heads, change)
        return not (net.any() or (units < face.low).any() or (units > face.high).any())

    def solve(
        self, rows: Any, least: LongArray, most: LongArray, costs: LongArray, limit: int, integral: IntArray | BoolArray
    ) -> Any:
        """SciPy's result for the cheapest solution that costs at most `limit`, with whole numbers in some columns."""
        low, high = np.zeros(len(costs)), np.ones(len(costs))
        low[: len(self.arcs)], high[: len(self.arcs)] = (self.face.low[self.arcs], self.face.high[self.arcs])
        below = scipy.optimize.LinearConstraint(costs[None], -np.inf, limit)
        return _solve(rows, least, most, low, high, costs, integral, below)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Plain arcs (K,): `entering` is True if a replica arrives at a broker by the arc; `brokers` are these brokers."""

    entering: BoolArray
    brokers: IntArray

    def counted(self, units: LongArray) -> LongArray:
        """(Bt,): the replicas that arrive at each broker, from units on these arcs and possibly more."""
        entering = np.flatnonzero(self.entering)
        counts = np.bincount(self.brokers[entering], units[entering], minlength=int(self.brokers.max(initial=0)) + 1)
        return counts.astype(np.int64)


def _cheapest_flow(face: Face, costs: LongArray, low: LongArray) -> LongArray:
    """Units (K,) of a flow of the face, at least `low` (K,), with the least total of these costs (K,) per unit."""
    free, units = np.flatnonzero(face.free), face.units.copy()
    units[free] = cheapest(
        Arcs(face.tails[free], face.heads[free], face.high[free], costs[free], low[free]), units[free]
    )
    return units


def _balance(face: Face, free: IntArray) -> Any:
    """(nodes, n): each node's units out minus units in, for each of these arcs (n,)."""
    nodes, numbers_ = np.unique(np.concatenate([face.tails[free], face.heads[free]]), return_inverse=True)
    arcs, signs = np.tile(np.arange(len(free)), 2), np.repeat([1, -1], len(free))
    return scipy.sparse.coo_matrix((signs, (numbers_.ravel(), arcs)), shape=(len(nodes), len(free))).tocsr()


def _solve(
    matrix: Any, least: LongArray, most: LongArray, low: Any, high: Any, costs: Any, integral: Any, *further: Any
) -> Any:
    """SciPy's result for a program with rows from least to most, and columns from low to high."""
    return scipy.optimize.milp(
        costs,
        integrality=integral,
        bounds=scipy.optimize.Bounds(low, high),
        constraints=[scipy.optimize.LinearConstraint(matrix, least, most), *further],
        options={"node_limit": PROGRAM_NODES, "mip_rel_gap": 0},
    )
