"""Exchanges of replicas between two brokers: how a placement is brought into its windows of bytes, and made cheaper.

An exchange moves one row from a broker to another, one back, or both: within a topic it leaves every count as it was,
across topics counts must have room. `repair` takes those that mend windows of bytes at the least loss against the given
prices; `polish` those that cost less and break nothing. With the prices of the bound a repaired placement is close to
the optimum, and what is left is the size of single partitions.

Everything is counted in whole bytes; the same arena gives the same moves, whatever machine it is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from planner.model import BoolArray, FloatArray, IntArray, LongArray

# What a byte outside its window weighs against a byte copied (less the prices): at first only what costs next to
# nothing mends windows, at last anything.
_WEIGHTS = (0.02, 0.1, 0.5, 2.0, 10.0, 100.0)
# Partners tried before all others: those with the most room for what the broker has too much or too little of.
_FIRST_PARTNERS = 16
# Rows of other topics that are tried against each other.
_SAMPLE = 200
# Rounds of polishing; each costs a look at every pair of brokers.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Arena:
    """What may be exchanged, and what it costs: M rows sorted by topic, B brokers, T topics, R racks, D loads.

    topics (M,) · costs (M,) of a row, times `levels` (M, B) of where it lies · allowed (M, B) or None: anywhere
    racks (B,) · least, most (M, R) of a row in a rack
    loads (D, M) of a row · scales (D,) bytes that a unit of load is worth · load_windows (D, 2, B)
    cell_windows (2, T, B) · broker_windows (2, B)
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


@dataclass(eq=False)
class Placement:
    """Where rows lie, `on` (M, B), with what follows from it; changed by every move."""

    arena: Arena
    on: BoolArray
    in_rack: IntArray = field(init=False)
    load: LongArray = field(init=False)
    cells: LongArray = field(init=False)

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
        # Columns are what is looked at.
        self.on = np.asfortranarray(self.on)

    @property
    def cost(self) -> int:
        """What the placement costs."""
        return int(self.arena.costs @ (self.on * self.arena.levels).sum(axis=1, dtype=np.int64))

    def outside(self) -> LongArray:
        """(B,): bytes' worth that each broker is outside its windows."""
        low, high = self.arena.load_windows.transpose(1, 0, 2)
        beyond = np.maximum(low - self.load, 0) + np.maximum(self.load - high, 0)
        return (beyond * self.arena.scales[:, None]).sum(axis=0)

    def move(self, row: int, source: int, target: int) -> None:
        """One replica of a row from one broker to another."""
        arena = self.arena
        self.on[row, [source, target]] = False, True
        for broker, sign in ((source, -1), (target, 1)):
            self.in_rack[row, arena.racks[broker]] += sign
            self.load[:, broker] += sign * arena.loads[:, row]
            self.cells[arena.topics[row], broker] += sign


class _Exchange(NamedTuple):
    """Rows that go there and back, -1 for none, and what that gains."""

    gain: float
    there: int
    back: int


class _Aim(NamedTuple):
    """What a byte outside its window weighs, and the prices of bytes (D, B) that moves are measured against.

    `strict`: nothing may get further outside than it is.
    """

    weight: float
    prices: FloatArray
    strict: bool


def repair(placement: Placement, prices: FloatArray) -> None:
    """Bring the loads into their windows, as far as exchanges can; prices (D, B) in bytes a unit."""
    for weight in _WEIGHTS:
        _mend(placement, _Aim(weight, prices, strict=False))
        if not placement.outside().any():
            return


def polish(placement: Placement, rounds: int = _ROUNDS) -> None:
    """Take every exchange that costs less and leaves no load further outside its window."""
    aim = _Aim(1.0, np.zeros(placement.load.shape), strict=True)
    for _ in range(rounds):
        if not sum(_drain(placement, pair, aim) for pair in combinations(range(placement.on.shape[1]), 2)):
            return


def _drain(placement: Placement, pair: tuple[int, int], aim: _Aim) -> bool:
    """All exchanges between two brokers that gain; True where there were any."""
    found = _best(placement, *pair, aim)
    any_gain = found is not None
    while found is not None:
        _apply(placement, *pair, found)
        found = _best(placement, *pair, aim)
    return any_gain


def _mend(placement: Placement, aim: _Aim) -> None:
    """The broker furthest outside first, until none can be helped."""
    stuck = np.zeros(placement.on.shape[1], dtype=bool)
    while True:
        outside = np.where(stuck, 0, placement.outside())
        broker = int(outside.argmax())
        if not outside[broker]:
            return
        if (helper := _help(placement, broker, aim)) is None:
            stuck[broker] = True
        else:
            stuck[[broker, helper]] = False


def _help(placement: Placement, broker: int, aim: _Aim) -> int | None:
    """The best exchange for a broker, made; the other broker of it, None where there is none."""
    for partners in _partners(placement, broker):
        found = [(each, partner) for partner in partners if (each := _best(placement, broker, partner, aim))]
        if found:
            exchange, partner = max(found, key=lambda pair: pair[0].gain)
            _apply(placement, broker, partner, exchange)
            return partner
    return None


def _partners(placement: Placement, broker: int) -> Iterator[list[int]]:
    """Other brokers, those with the most room first: few, then the rest."""
    arena = placement.arena
    low, high = arena.load_windows.transpose(1, 0, 2)
    beyond = np.maximum(placement.load - high, 0) - np.maximum(low - placement.load, 0)
    worst = int(np.abs(beyond[:, broker] * arena.scales).argmax())
    middle = (low[worst] + high[worst]) // 2
    room = (middle - placement.load[worst]) * (1 if beyond[worst, broker] > 0 else -1)
    order = [other for other in np.argsort(-room, kind="stable").tolist() if other != broker]
    yield order[:_FIRST_PARTNERS]
    yield order[_FIRST_PARTNERS:]


def _apply(placement: Placement, here: int, there: int, exchange: _Exchange) -> None:
    if exchange.there >= 0:
        placement.move(exchange.there, here, there)
    if exchange.back >= 0:
        placement.move(exchange.back, there, here)


def _best(placement: Placement, here: int, there: int, aim: _Aim) -> _Exchange | None:
    """The exchange between two brokers that gains the most, None where none gains a byte."""
    out, back = _movers(placement, here, there), _movers(placement, there, here)
    pairs = [
        _within_topics(placement, out, back),
        *_with_room(placement, here, there, out, back),
    ]
    found = [_gainful(placement, here, there, aim, rows) for rows in pairs if len(rows[0])]
    return max((each for each in found if each), key=lambda each: each.gain, default=None)


def _movers(placement: Placement, source: int, target: int) -> IntArray:
    """Rows that may go from one broker to the other, as far as racks and other replicas let them."""
    arena, on = placement.arena, placement.on
    free = on[:, source] & ~on[:, target]
    if arena.allowed is not None:
        free &= arena.allowed[:, target]
    rows = np.flatnonzero(free)
    old, new = arena.racks[source], arena.racks[target]
    if old == new:
        return rows
    leaves = placement.in_rack[rows, old] > arena.least[rows, old]
    return rows[leaves & (placement.in_rack[rows, new] < arena.most[rows, new])]


def _within_topics(placement: Placement, out: IntArray, back: IntArray) -> tuple[IntArray, IntArray]:
    """Every pair of rows of one topic."""
    ours, theirs = placement.arena.topics[out], placement.arena.topics[back]
    first = np.searchsorted(theirs, ours, "left")
    counts = np.searchsorted(theirs, ours, "right") - first
    at = np.repeat(np.arange(len(out)), counts)
    within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return out[at], back[np.repeat(first, counts) + within]


def _with_room(
    placement: Placement, here: int, there: int, out: IntArray, back: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows of topics whose counts have room: alone where the brokers' counts have it too, and in pairs."""
    out, back = _roomy(placement, here, there, out), _roomy(placement, there, here, back)
    if _broker_room(placement, here, there):
        yield out, np.full_like(out, -1)
    if _broker_room(placement, there, here):
        yield np.full_like(back, -1), back
    out, back = _sampled(out), _sampled(back)
    yield np.repeat(out, len(back)), np.tile(back, len(out))


def _roomy(placement: Placement, source: int, target: int, rows: IntArray) -> IntArray:
    """The rows whose topics may have one replica less here and one more there."""
    topics, (low, high) = placement.arena.topics[rows], placement.arena.cell_windows
    fewer = placement.cells[topics, source] > low[topics, source]
    return rows[fewer & (placement.cells[topics, target] < high[topics, target])]


def _broker_room(placement: Placement, source: int, target: int) -> bool:
    low, high = placement.arena.broker_windows
    held = placement.cells[:, [source, target]].sum(axis=0)
    return bool(held[0] > low[source] and held[1] < high[target])


def _sampled(rows: IntArray) -> IntArray:
    """Evenly spaced ones where there are too many."""
    return rows if len(rows) <= _SAMPLE else rows[np.arange(_SAMPLE) * len(rows) // _SAMPLE]


def _gainful(
    placement: Placement, here: int, there: int, aim: _Aim, rows: tuple[IntArray, IntArray]
) -> _Exchange | None:
    """The best of these exchanges, None where it doesn't gain a byte."""
    arena, (out, back) = placement.arena, rows
    level = arena.levels
    cost = np.where(out >= 0, arena.costs[out] * (level[out, there].astype(np.int64) - level[out, here]), 0)
    cost += np.where(back >= 0, arena.costs[back] * (level[back, here].astype(np.int64) - level[back, there]), 0)
    gain = -cost.astype(np.float64)
    for load, moving in enumerate(arena.loads):
        shifted = np.where(out >= 0, moving[out], 0) - np.where(back >= 0, moving[back], 0)
        gain += shifted * float(aim.prices[load, there] - aim.prices[load, here])
        nearer = -_further(placement, load, here, -shifted) - _further(placement, load, there, shifted)
        gain += aim.weight * nearer * int(arena.scales[load])
        if aim.strict:
            gain[nearer < 0] = -np.inf
    best = int(gain.argmax())
    return _Exchange(float(gain[best]), int(out[best]), int(back[best])) if gain[best] >= 1 else None


def _further(placement: Placement, load: int, broker: int, shifts: LongArray) -> LongArray:
    """By how much each shift takes a broker's load further outside its window."""
    low, high = placement.arena.load_windows[load, :, broker]
    held = placement.load[load, broker]
    after = held + shifts
    before = max(low - held, 0) + max(held - high, 0)
    outside: LongArray = np.maximum(low - after, 0) + np.maximum(after - high, 0) - before
    return outside
