"""A placement that replicas, or leaders, are moved about in one by one, and what limits such moves: see `exchanges`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.model import BoolArray, IntArray, LongArray
from planner.strategies.byte_loads import ByteLoads
from planner.strategies.layout import Layout
from planner.strategies.network import windowed
from planner.windows import Windows


@dataclass(frozen=True, eq=False)
class MostOutside:
    """How much may be outside of windows of loads: in all, by what units are worth, and of one broker, (D,)."""

    total: int
    furthest: LongArray


@dataclass(frozen=True, eq=False)
class Arena:
    """What may be moved, and what it costs: M rows sorted by topic, B brokers, T topics, R racks, D loads.

    topics (M,) · costs (M,) of a row, times `levels` (M, B) of where it lies · allowed (M, B) or None: anywhere
    racks (B,) · least, most (M, R) of a row in a rack
    loads (D, M) of a row · scales (D,) bytes that a unit of load is worth · load_windows (D, 2, B)
    cell_windows (2, T, B) · broker_windows (2, B)
    most_outside: None where no move may take any load further outside
    """

    topics: IntArray
    costs: LongArray
    levels: IntArray
    allowed: BoolArray | None
    racks: IntArray
    least: IntArray
    most: IntArray
    loads: LongArray
    scales: LongArray
    load_windows: LongArray
    cell_windows: LongArray
    broker_windows: LongArray
    most_outside: MostOutside | None = None


def of_layout(layout: Layout, wanted: Windows, costs: LongArray, loads: ByteLoads | None) -> Arena:
    """The arena of a layout's rows with these costs (M,), within windows of counts, and of loads where any are."""
    levels = np.ones((len(layout.rows), len(layout.targets)), dtype=np.int8, order="F")
    rows, slots = np.nonzero((layout.home >= 0) & ~layout.replaced)
    levels[rows, layout.home[rows, slots]] = 0
    topics, brokers = windowed(layout, wanted)
    none = np.zeros((0, len(layout.rows)), dtype=np.int64)
    return Arena(
        topics=layout.topics,
        costs=costs,
        levels=levels,
        allowed=None,
        racks=layout.racks,
        least=layout.least,
        most=layout.most,
        loads=none if loads is None else loads.weights,
        scales=none[:, 0] if loads is None else loads.scales,
        load_windows=np.zeros((0, 2, len(layout.targets)), dtype=np.int64) if loads is None else loads.windows,
        cell_windows=np.stack([topics.low, topics.high]).reshape(2, layout.topic_count, -1),
        broker_windows=np.stack([brokers.low, brokers.high]),
    )


@dataclass(eq=False)
class Placement:
    """Where rows lie, `on` (M, B), with what follows from it; changed by every move.

    in_rack (M, R) of each row · load (D, B) · cells (T, B) and held (B,) counts · changes (B,) moves so far
    """

    arena: Arena
    on: BoolArray
    in_rack: IntArray = field(init=False)
    load: LongArray = field(init=False)
    cells: LongArray = field(init=False)
    held: LongArray = field(init=False)
    changes: LongArray = field(init=False)

    def __post_init__(self) -> None:
        arena = self.arena
        rows, brokers = np.nonzero(self.on)
        self.in_rack = np.zeros(arena.least.shape, dtype=np.int32)
        self.load = np.zeros((len(arena.loads), self.on.shape[1]), dtype=np.int64)
        self.cells = np.zeros(arena.cell_windows.shape[1:], dtype=np.int64)
        np.add.at(self.in_rack, (rows, arena.racks[brokers]), 1)
        np.add.at(self.cells, (arena.topics[rows], brokers), 1)
        for load, of in zip(self.load, arena.loads, strict=True):
            np.add.at(load, brokers, of[rows])
        self.held = self.cells.sum(axis=0)
        self.changes = np.zeros(len(self.held), dtype=np.int64)
        # Columns are what is looked at.
        self.on = np.asfortranarray(self.on)

    def copy(self) -> Placement:
        """The same, to be changed by itself."""
        return Placement(self.arena, self.on.copy())

    @property
    def cost(self) -> int:
        """What the placement costs."""
        return int(self.arena.costs @ (self.on * self.arena.levels).sum(axis=1, dtype=np.int64))

    def outside(self) -> LongArray:
        """(B,): bytes' worth that each broker is outside its windows."""
        low, high = self.arena.load_windows.transpose(1, 0, 2)
        beyond = np.maximum(low - self.load, 0) + np.maximum(self.load - high, 0)
        return (beyond * self.arena.scales[:, None]).sum(axis=0)

    def racks_allow(self, rows: IntArray, source: int | IntArray, target: int | IntArray) -> BoolArray:
        """True where a row may go from one broker to another, by what each rack must and may hold of it."""
        arena = self.arena
        old, new = arena.racks[source], arena.racks[target]
        leaves = self.in_rack[rows, old] > arena.least[rows, old]
        allowed: BoolArray = (old == new) | (leaves & (self.in_rack[rows, new] < arena.most[rows, new]))
        return allowed

    def move(self, row: int, source: int, target: int) -> None:
        """One replica of a row from one broker to another."""
        arena = self.arena
        self.on[row, [source, target]] = False, True
        for broker, sign in ((source, -1), (target, 1)):
            self.in_rack[row, arena.racks[broker]] += sign
            self.load[:, broker] += sign * arena.loads[:, row]
            self.cells[arena.topics[row], broker] += sign
            self.held[broker] += sign
            self.changes[broker] += 1

    def settled(self) -> bool:
        """True where no more is outside of windows than may be."""
        most = self.arena.most_outside
        if most is None:
            return not self.outside().any()
        if self.outside().sum() > most.total:
            return False
        low, high = self.arena.load_windows.transpose(1, 0, 2)
        beyond = np.maximum(low - self.load, 0) + np.maximum(self.load - high, 0)
        return bool((beyond <= most.furthest[:, None]).all())


Brokers = Sequence[int] | IntArray


def outward(placement: Placement, brokers: Brokers, shifts: LongArray) -> BoolArray:
    """(K,): True where shifts (N, D, K) of the loads of brokers, N or (N, K), take more outside of windows than may be.

    Nothing more of any load may; or, where so much may be outside in all, more than that, or one broker further.
    """
    arena, most, worse = placement.arena, placement.arena.most_outside, np.zeros(shifts.shape[2], dtype=bool)
    total = np.zeros(shifts.shape[2], dtype=np.int64)
    for load, scale in enumerate(arena.scales.tolist()):
        sums = np.zeros_like(total)
        for broker, shift in zip(brokers, shifts[:, load], strict=True):
            sums += further(placement, load, broker, shift)
            if most is not None:
                worse |= _beyond(placement, load, broker, shift) > most.furthest[load]
        if most is None:
            worse |= sums > 0
        total += scale * sums
    if most is not None and len(arena.scales):
        worse |= total > most.total - int(placement.outside().sum())
    return worse


def further(placement: Placement, load: int, broker: int | IntArray, shifts: LongArray) -> LongArray:
    """By how much each shift takes a broker's load further outside its window; negative: nearer."""
    return _beyond(placement, load, broker, shifts) - _beyond(placement, load, broker, 0)


def _beyond(placement: Placement, load: int, broker: int | IntArray, shifts: LongArray | int) -> LongArray:
    """How far outside its window each shift takes a broker's load."""
    low, high = placement.arena.load_windows[load][:, broker]
    after = placement.load[load, broker] + shifts
    outside: LongArray = np.maximum(low - after, 0) + np.maximum(after - high, 0)
    return outside
