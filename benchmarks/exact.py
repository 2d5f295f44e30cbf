"""An exact solver as a judge: the least excess over windows, then the fewest bytes, of all plans of a small cluster.

It knows only the rules, not how plans are made: the sets of brokers that the rack rule allows, the windows asked for,
and the weight of being outside of them. CP-SAT does the rest. The module uses nothing of `strategies`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from planner.model.balance import Tolerance
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.fair_shares import disk_weights, fair_shares
from planner.scoring.window_excess import BROKER_PRICE, EXCESS_STEPS, TOPIC_PRICE
from planner.scoring.windows import windows

# The limit is work, not time, so that the result is the same on every machine. It takes half a minute at most.
_MOST_WORK = 10.0
# An upper bound of this or more means that no window is asked for.
_OPEN = 1 << 61


@dataclass(frozen=True)
class Outside:
    """How far a plan is outside of its windows: the weight of replicas; the sum of loads, each unit weighted by its
    worth in bytes; and for each load, how far the worst broker is outside.
    """

    replicas: int
    loads: int
    furthest: tuple[int, ...]


@dataclass(frozen=True)
class Least:
    """The minimum of an amount over all plans: at least `proven`; `best` is the best plan's, None if there is none."""

    proven: int
    best: int | None

    @property
    def exact(self) -> int | None:
        """The minimum, None if it isn't known."""
        return self.best if self.best == self.proven else None


@dataclass(frozen=True, eq=False)
class _CountWindow:
    """A window of counts: (2, Bt) bounds of held replicas of `rows`, the `starts` where it may begin, its spread."""

    rows: tuple[int, ...]
    bounds: LongArray
    price: int
    starts: range
    spread: int


@dataclass(frozen=True, eq=False)
class _LoadWindow:
    """A window (2, Bt) of a load; `weights` has the load of a replica of each row; a unit outside weighs `scale`."""

    bounds: LongArray
    weights: LongArray
    scale: int


class Judge:
    """Judges all plans of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.targets = np.flatnonzero(problem.targets).tolist()
        self._counts = tuple(_count_windows(problem))
        self._loads = tuple(_load_windows(problem))

    def outside(self, assignment: IntArray) -> Outside:
        """How far a plan (P, W) is outside of its windows."""
        is_on = np.array([[(row == broker).any() for broker in self.targets] for row in assignment])
        replica_weight = sum(min(self._weights(count, is_on[list(count.rows)].sum(axis=0))) for count in self._counts)
        excess = [_excess(load.bounds, load.weights @ is_on) for load in self._loads]
        loads = sum(int(each.sum()) * load.scale for each, load in zip(excess, self._loads, strict=True))
        return Outside(replica_weight, loads, tuple(int(each.max(initial=0)) for each in excess))

    def copied(self, assignment: IntArray) -> int:
        """Bytes that a plan (P, W) copies."""
        sizes = self.problem.size_bytes.tolist()
        rows = [set(row) - {-1} for row in assignment.tolist()]
        return sum(
            len(brokers - set(_replicas_today(self.problem, row))) * sizes[row] for row, brokers in enumerate(rows)
        )

    def least_replicas(self) -> Least:
        """The least weight of replicas outside of windows."""
        model = _Model(self)
        return model.least(model.replicas)

    def least_loads(self, replicas: int) -> Least:
        """The least excess of loads, of plans whose weight of replicas outside is at most `replicas`."""
        model = _Model(self)
        model.solver.add(model.replicas <= replicas)
        return model.least(model.loads)

    def least_bytes(self, most: Outside | None) -> Least:
        """The fewest bytes of all plans that are outside by at most `most`; None: of all plans."""
        model = _Model(self)
        if most is not None:
            model.solver.add(model.replicas <= most.replicas)
            model.solver.add(model.loads <= most.loads)
            for broker_excess, furthest in zip(model.excess, most.furthest, strict=True):
                for each in broker_excess:
                    model.solver.add(each <= furthest)
        return model.least(model.bytes)

    def _weights(self, count: _CountWindow, counts: LongArray) -> Iterator[int]:
        yield sum(_weight(int(units), count.price) for units in _excess(count.bounds, counts))
        for low in count.starts:
            yield sum(_weight(max(low - n, n - low - count.spread, 0), count.price) for n in counts.tolist())

    @property
    def counts(self) -> tuple[_CountWindow, ...]:
        """All windows of counts."""
        return self._counts

    @property
    def loads(self) -> tuple[_LoadWindow, ...]:
        """All windows of loads."""
        return self._loads


class _Model:
    """A model of all plans, with expressions for how far they are outside, and for the bytes that they copy."""

    def __init__(self, judge: Judge) -> None:
        self.solver = cp_model.CpModel()
        problem = judge.problem
        self._is_on: list[dict[int, Any]] = []
        copied: list[Any] = []
        for row in range(problem.rows):
            sets = options(problem, row)
            chosen = [self.solver.new_bool_var("") for _ in sets]
            self.solver.add_exactly_one(chosen)
            is_on = {b: sum(v for v, each in zip(chosen, sets, strict=True) if b in each) for b in judge.targets}
            self._is_on.append(is_on)
            size, today = int(problem.size_bytes[row]), set(_replicas_today(problem, row))
            copied += [v * (size * len(set(each) - today)) for v, each in zip(chosen, sets, strict=True)]
        self.bytes = sum(copied)
        self.replicas = sum(self._count(count, judge.targets) for count in judge.counts)
        self.excess = [self._load(load, judge.targets) for load in judge.loads]
        self.loads = sum(
            load.scale * each for load, excesses in zip(judge.loads, self.excess, strict=True) for each in excesses
        )

    def least(self, expression: Any) -> Least:
        """The minimum of an expression."""
        self.solver.minimize(expression)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = _MOST_WORK
        # With presolving, release 9.15 of the solver calls some of these models infeasible although they aren't.
        solver.parameters.cp_model_presolve = False
        status = solver.solve(self.solver)
        proven = round(solver.best_objective_bound) if status != cp_model.INFEASIBLE else 1 << 62
        best = round(solver.objective_value) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
        return Least(best if status == cp_model.OPTIMAL and best is not None else proven, best)

    def _count(self, count: _CountWindow, brokers: Sequence[int]) -> Any:
        """The weight of counts outside of a window, which may begin at any of its starts."""
        total = []
        edges = self._edges(count)
        for index, broker in enumerate(brokers):
            replica_count = sum(self._is_on[row][broker] for row in count.rows)
            for sign in (1, -1):
                steps = [self.solver.new_int_var(0, min(units, 10**6), "") for units, _ in EXCESS_STEPS]
                edge = edges[index][0] if sign > 0 else -edges[index][1]
                self.solver.add(sign * replica_count + sum(steps) >= edge)
                pairs = zip(steps, EXCESS_STEPS, strict=True)
                total += [units * (step * count.price) for units, (_, step) in pairs]
        return sum(total)

    def _edges(self, count: _CountWindow) -> list[tuple[Any, Any]]:
        """The edges of a window on each broker: as asked for, or from one start that is the same on all brokers."""
        bounds = [(int(low), int(high)) for low, high in count.bounds.T]
        if not count.starts:
            return bounds
        is_start = [self.solver.new_bool_var("") for _ in range(1 + len(count.starts))]
        self.solver.add_exactly_one(is_start)
        start = sum(low * each for low, each in zip(count.starts, is_start[1:], strict=True))
        anywhere = start, start + sum(count.spread * each for each in is_start[1:])
        return [(low * is_start[0] + anywhere[0], high * is_start[0] + anywhere[1]) for low, high in bounds]

    def _load(self, load: _LoadWindow, brokers: Sequence[int]) -> list[Any]:
        """How far outside of the window each broker is."""
        excesses = []
        for index, broker in enumerate(brokers):
            load_on = sum(int(weight) * is_on[broker] for weight, is_on in zip(load.weights, self._is_on, strict=True))
            low, high = load.bounds[:, index].tolist()
            excess = self.solver.new_int_var(0, int(load.weights.sum()) + max(low, 0), "")
            self.solver.add(load_on + excess >= low)
            if high < _OPEN:
                self.solver.add(load_on - excess <= high)
            excesses.append(excess)
        return excesses


def options(problem: Problem, row: int) -> list[tuple[int, ...]]:
    """The sets of brokers that a partition may be on: today's if it may not move, else those most even over racks."""
    free = problem.movable[row] and (problem.forced[row] or problem.rebalance == "all")
    if not free:
        return [_replicas_today(problem, row)]
    usable = problem.targets if problem.allowed is None else problem.targets & problem.allowed[problem.topic_of[row]]
    sets = list(combinations(np.flatnonzero(usable).tolist(), int(problem.replication_factors[row])))
    if not problem.racks_matter:
        return sets
    crowding = [sum(n * n for n in Counter(problem.broker_racks[list(each)].tolist()).values()) for each in sets]
    return [each for each, crowd in zip(sets, crowding, strict=True) if crowd == min(crowding)]


def _replicas_today(problem: Problem, row: int) -> tuple[int, ...]:
    return tuple(broker for broker in problem.replicas[row].tolist() if broker >= 0)


def _count_windows(problem: Problem) -> Iterator[_CountWindow]:
    target_windows, balance, fair = windows(problem, problem.balance), problem.balance, fair_shares(problem)
    are_alike = bool(np.ptp(disk_weights(problem)) == 0)
    all_rows = tuple(range(problem.rows))
    for topic in range(len(problem.topic_names)):
        rows = tuple(np.flatnonzero(problem.topic_of == topic).tolist())
        share = fair.topic_replicas.count[topic] / fair.topic_replicas.parts[topic]
        bounds = target_windows.topic_replicas[:, topic]
        everywhere = problem.allowed_targets is None or bool(problem.allowed_targets[topic].all())
        starts = _starts(problem, balance.topic_replicas, rows, share, bounds, are_alike and everywhere, 2)
        yield _CountWindow(rows, bounds, TOPIC_PRICE, starts, int(balance.topic_replicas.value))
    share = fair.replicas.count[0] / fair.replicas.parts[0]
    starts = _starts(problem, balance.replicas, all_rows, share, target_windows.replicas, are_alike, 1)
    yield _CountWindow(all_rows, target_windows.replicas, BROKER_PRICE, starts, int(balance.replicas.value))


def _starts(
    problem: Problem,
    tolerance: Tolerance,
    rows: tuple[int, ...],
    share: Any,
    bounds: LongArray,
    are_alike: bool,
    least: int,
) -> range:
    """Where a spread's window may begin: at each start with which brokers alike can hold all replicas within it."""
    if tolerance.kind != "spread" or tolerance.value < least:
        return range(0)
    spread, brokers = int(tolerance.value), int(problem.targets.sum())
    are_same = bool((bounds == bounds[:, :1]).all())
    # With a spread of one, brokers with other shares have other windows, and those stay as they are.
    fits = are_alike and spread > 1 and int(np.floor(share.max())) - int(np.ceil(share.min())) <= spread
    if not (are_same or fits):
        return range(0)
    targets = problem.targets
    may_move = problem.movable & (problem.forced | (problem.rebalance == "all"))
    replica_count = sum(
        int(problem.replication_factors[row])
        if may_move[row]
        else sum(bool(targets[broker]) for broker in _replicas_today(problem, row))
        for row in rows
    )
    return range(max(-(-replica_count // brokers) - spread, 0), replica_count // brokers + 1)


def _load_windows(problem: Problem) -> Iterator[_LoadWindow]:
    target_windows = windows(problem, problem.balance)
    may_move = problem.movable & (problem.forced | (problem.rebalance == "all"))
    size = (problem.size_bytes * problem.replication_factors)[may_move].sum()
    for bounds, weights in (
        (target_windows.disk, problem.size_bytes),
        (target_windows.network_in, problem.bytes_in_per_sec),
    ):
        if bounds is not None:
            total = int((weights * problem.replication_factors)[may_move].sum())
            yield _LoadWindow(bounds, weights, max(1, int(size) // total) if total else 1)


def _excess(bounds: LongArray, amounts: LongArray) -> LongArray:
    return np.maximum(bounds[0] - amounts, 0) + np.maximum(amounts - bounds[1], 0)


def _weight(units: int, price: int) -> int:
    total = 0
    for count, step in EXCESS_STEPS:
        counted = min(units, count)
        total += counted * step * price
        units -= counted
    return total
