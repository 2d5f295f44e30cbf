"""Batches while they are being filled: what each broker's sides copy in them, and where a load has room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.batches.loads import Loads
from planner.model import BatchRules, BoolArray, LongArray

NOWHERE = -1
_FIRST_CAPACITY = 16


@dataclass(eq=False)
class Filling:
    """K batches, in arrays with room for more; `count` is K.

    sizes, moves (lanes, K) bytes, and where they are limited replicas; bytes_moved, elections (K,); busiest (K,) the
    most bytes of a lane; batch_of the batch of each load, -1 for none yet.
    """

    loads: Loads
    rules: BatchRules
    count: int = 0
    sizes: LongArray = field(init=False)
    moves: LongArray = field(init=False)
    bytes_moved: LongArray = field(init=False)
    elections: LongArray = field(init=False)
    busiest: LongArray = field(init=False)
    batch_of: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes, self.moves = (np.zeros((self.loads.lane_count, _FIRST_CAPACITY), dtype=np.int64) for _ in range(2))
        self.bytes_moved, self.elections, self.busiest = (np.zeros(_FIRST_CAPACITY, dtype=np.int64) for _ in range(3))
        self.batch_of = [NOWHERE] * len(self.loads)

    def copy(self) -> Filling:
        """The same batches, to be filled another way."""
        other = Filling(self.loads, self.rules, self.count)
        other.sizes, other.moves = self.sizes.copy(), self.moves.copy()
        other.bytes_moved, other.elections = self.bytes_moved.copy(), self.elections.copy()
        other.busiest = self.busiest.copy()
        other.batch_of = list(self.batch_of)
        return other

    def open(self, batches: int) -> None:
        """Append empty batches."""
        self.count += batches
        missing = self.count - len(self.busiest)
        if missing > 0:
            more = max(missing, len(self.busiest))
            self.sizes, self.moves = (np.pad(each, ((0, 0), (0, more))) for each in (self.sizes, self.moves))
            self.bytes_moved, self.elections, self.busiest = (
                np.pad(each, (0, more)) for each in (self.bytes_moved, self.elections, self.busiest)
            )

    def put(self, load: int, batch: int) -> None:
        """Put a load that is nowhere yet into a batch."""
        busiest, limited = int(self.busiest[batch]), self.rules.moves_per_broker is not None
        for lane, size, replicas in self.loads.listed(load):
            taken = int(self.sizes[lane, batch]) + size
            self.sizes[lane, batch] = taken
            busiest = max(busiest, taken)
            if limited:
                self.moves[lane, batch] += replicas
        self.busiest[batch] = busiest
        self.bytes_moved[batch] += self.loads.bytes_moved[load]
        self.elections[batch] += self.loads.elections[load]
        self.batch_of[load] = batch

    def take(self, load: int) -> None:
        """Take a load out of its batch."""
        batch = self.batch_of[load]
        lanes, sizes, moves = self.loads.entries(load)
        self.sizes[lanes, batch] -= sizes
        if self.rules.moves_per_broker is not None:
            self.moves[lanes, batch] -= moves
        self.bytes_moved[batch] -= self.loads.bytes_moved[load]
        self.elections[batch] -= self.loads.elections[load]
        self.busiest[batch] = self.sizes[:, batch].max()
        self.batch_of[load] = NOWHERE

    def peaks(self, load: int, first: int, end: int) -> LongArray:
        """(end - first,) bytes of the busiest of the load's own lanes, were it in each of these batches too."""
        lanes, sizes, _ = self.loads.entries(load)
        taken = self.sizes.take(lanes, axis=0)[:, first:end]
        return np.asarray(np.maximum.reduce(taken + sizes[:, None], axis=0))

    def has_room(self, load: int, first: int, end: int) -> BoolArray:
        """(end - first,) True for the batches to which the load may be added by the rules.

        A partition larger than any batch may start one, and lets only what moves no byte in beside it; one that keeps
        a broker busy for longer than any batch may, lets nothing else of that broker in.
        """
        size, limit, most = self.loads.bytes_moved[load], self.rules.bytes, self.rules.moves_per_broker
        if limit is None or not size:
            room = np.ones(end - first, dtype=bool)
        else:
            room = np.asarray(self.bytes_moved[first:end] <= max(limit - size, 0))
        lanes, sizes, moves = self.loads.entries(load)
        if most is not None:
            taken = self.moves.take(lanes, axis=0)[:, first:end]
            room &= np.maximum.reduce(taken + moves[:, None], axis=0) <= most
        if self.rules.bytes_per_broker is not None:
            held = self.sizes.take(lanes, axis=0)[:, first:end]
            room &= within(held, sizes[:, None], self.rules.bytes_per_broker).all(axis=0)
        elected = self.loads.elections[load]
        if elected and self.rules.elections is not None:
            room &= self.elections[first:end] + elected <= self.rules.elections
        return room

    def fits(self, load: int, batch: int) -> bool:
        """Whether the load may be added to one batch: `has_room` without arrays, which cost more than they save."""
        rules, size = self.rules, self.loads.bytes_moved[load]
        if rules.bytes is not None and size and self.bytes_moved[batch] > max(rules.bytes - size, 0):
            return False
        elected = self.loads.elections[load]
        if rules.elections is not None and elected and self.elections[batch] + elected > rules.elections:
            return False
        most, of_broker = rules.moves_per_broker, rules.bytes_per_broker
        for lane, added, moves in self.loads.listed(load):
            if most is not None and self.moves[lane, batch] + moves > most:
                return False
            held = self.sizes[lane, batch]
            if of_broker is not None and held and added and held + added > of_broker:
                return False
        return True

    def not_before(self, load: int) -> int:
        """The first batch after those of the loads that come before."""
        after = self.loads.after[load]
        return 1 + max(self.batch_of[other] for other in after) if after else 0

    def length_bytes(self, first: int) -> int:
        """The bytes of the busiest lane of each batch from `first` on, summed: what they take, one after the other."""
        return int(self.busiest[first : self.count].sum())

    def places(self, members: Sequence[int]) -> LongArray:
        """The batches of some loads."""
        return np.array([self.batch_of[load] for load in members], dtype=np.int64)


def within(rest: LongArray, added: LongArray, limit: int) -> BoolArray:
    """True where bytes may join the rest of a batch: within the limit, or one of them is nothing."""
    return np.asarray((rest == 0) | (added == 0) | (rest + added <= limit))
