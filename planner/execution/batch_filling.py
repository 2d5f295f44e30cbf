"""Loads, which go into batches as one piece, and batches while they are filled: what they hold, and their room.

Everything that a batch may hold only so much of is one row of a table: its bytes, its elections, the bytes of each
lane, the replicas of each lane. A lane is one side of a broker: what it receives, or what it sends.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray, sums_at
from planner.model.spec import BatchRules

# The first two rows. The lanes' bytes follow, then the lanes' replicas.
BYTES, ELECTIONS, _LANES = 0, 1, 2
_NO_LIMIT = 1 << 62


@dataclass(eq=False)
class BatchLoads:
    """N loads: steps, or the steps of a topic that stay together. Add all loads before you read any array.

    risks    of each load, 0 is the highest
    after    the loads, all added before, that must be in earlier batches
    rounds   (round from 0, number of rounds) of the load's partitions
    largest  the most bytes that each load puts on one lane
    ends     where each load's entries end in `_flat`, which has the row and the amount of each entry
    """

    lane_count: int
    risks: list[int] = field(default_factory=list)
    after: list[tuple[int, ...]] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    largest: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    _flat: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(
        self,
        entries: tuple[Sequence[int], Sequence[int], Sequence[int]],
        bytes_moved: int,
        risk: int = 0,
        after: tuple[int, ...] = (),
        round_: tuple[int, int] = (0, 1),
        elections: int = 0,
    ) -> int:
        """Appends a load; `entries` are its lanes (at least one, each once) with their sizes and moves."""
        lanes, sizes, moves = entries
        rows, amounts = self._flat
        rows += (BYTES, ELECTIONS, *(_LANES + lane for lane in lanes))
        rows += (_LANES + self.lane_count + lane for lane in lanes)
        amounts += (bytes_moved, elections, *sizes, *moves)
        self.ends.append(len(rows))
        self.risks.append(risk)
        self.after.append(after)
        self.rounds.append(round_)
        self.largest.append(max(sizes))
        return len(self.risks) - 1

    @property
    def sizes(self) -> slice:
        """The rows of the lanes' bytes."""
        return slice(_LANES, _LANES + self.lane_count)

    @property
    def moves(self) -> slice:
        """The rows of the lanes' replicas."""
        return slice(_LANES + self.lane_count, _LANES + 2 * self.lane_count)

    @cached_property
    def _entries(self) -> LongArray:
        return np.array(self._flat, dtype=np.int64)

    def entries(self, load: int) -> tuple[IntArray, LongArray]:
        """A load's rows and the amount of each."""
        rows, amounts = self._entries[:, self.ends[load] : self.ends[load + 1]]
        return rows, amounts

    def listed(self, load: int) -> Iterator[tuple[int, int]]:
        """A load's (row, amount) one by one; for a few rows this is faster than arrays."""
        rows, amounts = (each[self.ends[load] : self.ends[load + 1]] for each in self._flat)
        return zip(rows, amounts, strict=True)

    def sizes_of(self, load: int) -> tuple[IntArray, LongArray]:
        """The rows of a load's bytes on its lanes, and these bytes."""
        rows, amounts = self.entries(load)
        end = _LANES + (len(rows) - _LANES) // 2
        return rows[_LANES:end], amounts[_LANES:end]

    def bytes_moved(self, members: Sequence[int]) -> LongArray:
        """(n,) the bytes that each of some loads moves."""
        return self._entries[1, np.array(self.ends)[list(members)]]

    def busiest_bytes(self, members: Sequence[int]) -> int:
        """The most bytes that some loads put on one lane in all."""
        return int(self.totals(members)[self.sizes].max())

    def totals(self, members: Sequence[int]) -> LongArray:
        """(rows,) the total amounts of some loads."""
        is_chosen = np.zeros(len(self.risks), dtype=bool)
        is_chosen[list(members)] = True
        rows, amounts = self._entries[:, np.repeat(is_chosen, np.diff(self.ends))]
        return sums_at(self.moves.stop, rows, amounts)

    def dense(self, members: Sequence[int]) -> LongArray:
        """(rows, n) the amounts of some loads, 0 in rows that they don't use."""
        table = np.zeros((self.moves.stop, len(members)), dtype=np.int64)
        for column, load in enumerate(members):
            rows, amounts = self.entries(load)
            table[rows, column] = amounts
        return table


NOWHERE = -1
_FIRST_CAPACITY = 16


@dataclass(eq=False)
class BatchFilling:
    """K batches, in arrays with room for more; `count` is K.

    held (rows, K): the amounts in each batch; busiest (K,): the most bytes on a lane; batch_of: the batch of each load,
    -1 if it has none yet. limits (rows,): the most that a batch may hold; limited: the rows that have a limit; of_bytes
    (rows,): True for bytes.
    """

    loads: BatchLoads
    rules: BatchRules
    count: int = 0
    held: LongArray = field(init=False)
    busiest: LongArray = field(init=False)
    batch_of: list[int] = field(init=False)
    limits: LongArray = field(init=False)
    limited: IntArray = field(init=False)
    of_bytes: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        rules, lanes = self.rules, self.loads.lane_count
        of_lanes = [rules.bytes_per_broker] * lanes + [rules.moves_per_broker] * lanes
        limits = [_NO_LIMIT if limit is None else limit for limit in (rules.bytes, rules.elections, *of_lanes)]
        self.limits = np.array([min(limit, _NO_LIMIT) for limit in limits], dtype=np.int64)
        self.limited = np.flatnonzero(self.limits < _NO_LIMIT)
        self.of_bytes = np.zeros(len(limits), dtype=bool)
        self.of_bytes[BYTES] = self.of_bytes[self.loads.sizes] = True
        self.held = np.zeros((len(limits), _FIRST_CAPACITY), dtype=np.int64)
        self.busiest = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.batch_of = [NOWHERE] * len(self.loads.risks)

    def copy(self) -> Self:
        """A copy of the batches, to be filled in another way."""
        other = copy(self)
        other.held, other.busiest, other.batch_of = self.held.copy(), self.busiest.copy(), list(self.batch_of)
        return other

    def open(self, batches: int) -> None:
        """Appends empty batches."""
        self.count += batches
        missing = self.count - len(self.busiest)
        if missing > 0:
            room = max(missing, len(self.busiest))
            self.held, self.busiest = np.pad(self.held, ((0, 0), (0, room))), np.pad(self.busiest, (0, room))

    def put(self, load: int, batch: int) -> None:
        """Puts a load that has no batch yet into a batch."""
        busiest, lanes = int(self.busiest[batch]), self.loads.sizes
        for row, amount in self.loads.listed(load):
            total = int(self.held[row, batch]) + amount
            self.held[row, batch] = total
            if lanes.start <= row < lanes.stop:
                busiest = max(busiest, total)
        self.busiest[batch] = busiest
        self.batch_of[load] = batch

    def take(self, load: int) -> None:
        """Takes a load out of its batch."""
        batch = self.batch_of[load]
        rows, amounts = self.loads.entries(load)
        self.held[rows, batch] -= amounts
        self.busiest[batch] = self.held[self.loads.sizes, batch].max()
        self.batch_of[load] = NOWHERE

    def peaks(self, load: int, first: int, end: int) -> LongArray:
        """(end - first,) bytes on the busiest of the load's lanes in each of these batches, with the load added."""
        rows, sizes = self.loads.sizes_of(load)
        amounts = self.held.take(rows, axis=0)[:, first:end]
        return np.asarray(np.maximum.reduce(amounts + sizes[:, None], axis=0))

    def has_room(self, load: int, first: int, end: int) -> BoolArray:
        """(end - first,) True for the batches to which the rules let the load be added.

        A partition larger than the limit may start a batch; then only loads without bytes may join it. A load that
        keeps a broker busy for longer than the limit excludes all other loads of this broker.
        """
        rows, added = self.loads.entries(load)
        return self.allowed(rows, self.held.take(rows, axis=0)[:, first:end], added[:, None])

    def allowed(self, rows: IntArray, present: LongArray, added: LongArray) -> BoolArray:
        """(n,) True if the rules let amounts of these rows (rows, n) join what is `present` (rows, n).

        A limit on bytes doesn't apply if either has no bytes.
        """
        is_free = self.of_bytes[rows, None] & ((present == 0) | (added == 0))
        return np.asarray((is_free | (present + added <= self.limits[rows, None])).all(axis=0))

    def fits(self, load: int, batch: int) -> bool:
        """True if the load may be added to one batch: `has_room` without arrays, which are slower for one batch."""
        for row, added in self.loads.listed(load):
            present = self.held[row, batch]
            if present + added > self.limits[row] and not (self.of_bytes[row] and (present == 0 or added == 0)):
                return False
        return True

    def not_before(self, load: int) -> int:
        """The first batch after the batches of the loads that precede this one."""
        after = self.loads.after[load]
        return 1 + max(self.batch_of[other] for other in after) if after else 0

    def length_bytes(self, first: int) -> int:
        """The sum, over the batches from `first` on, of the bytes on each one's busiest lane: their total length."""
        return int(self.busiest[first : self.count].sum())

    def places(self, members: Sequence[int]) -> LongArray:
        """The batches of some loads."""
        return np.array([self.batch_of[load] for load in members], dtype=np.int64)
