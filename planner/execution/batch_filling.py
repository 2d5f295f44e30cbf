"""Loads, which go into batches as one piece, and batches while they are filled: their bytes, replicas and room."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from planner.model.problem import BoolArray, LongArray, sums_at
from planner.model.spec import BatchRules


@dataclass(eq=False)
class BatchLoads:
    """N loads: steps, or the steps of a topic that stay together. Add all loads before you read any array.

    A lane is one side of a broker: what it receives, or what it sends; lanes are numbered from 0 to `lane_count`.

    risks        of each load, 0 is the highest
    bytes_moved  of each load
    after        the loads, all added before, that must be in earlier batches
    elections    of each load, preferred leaders to elect when it is complete
    rounds       (round from 0, number of rounds) of the load's partitions
    bounds       first and end of a load's entries in `lanes`, `sizes` and `moves` (M,): bytes and replicas on lanes
    """

    lane_count: int
    risks: list[int] = field(default_factory=list)
    bytes_moved: list[int] = field(default_factory=list)
    after: list[tuple[int, ...]] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    elections: list[int] = field(default_factory=list)
    bounds: list[tuple[int, int]] = field(default_factory=list)
    _flat: tuple[list[int], list[int], list[int]] = field(default_factory=lambda: ([], [], []))

    def __len__(self) -> int:
        return len(self.risks)

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
        lanes, sizes, moves = self._flat
        first = len(lanes)
        lanes += entries[0]
        sizes += entries[1]
        moves += entries[2]
        self.bounds.append((first, len(lanes)))
        self.risks.append(risk)
        self.bytes_moved.append(bytes_moved)
        self.after.append(after)
        self.rounds.append(round_)
        self.elections.append(elections)
        return len(self.risks) - 1

    @cached_property
    def lanes(self) -> LongArray:
        """(M,) the lane of each entry."""
        return np.array(self._flat[0], dtype=np.int64)

    @cached_property
    def sizes(self) -> LongArray:
        """(M,) the bytes of each entry."""
        return np.array(self._flat[1], dtype=np.int64)

    @cached_property
    def moves(self) -> LongArray:
        """(M,) the replicas of each entry."""
        return np.array(self._flat[2], dtype=np.int64)

    @cached_property
    def largest(self) -> list[int]:
        """The most bytes that each load puts on one lane."""
        firsts = [first for first, _ in self.bounds]
        largest: list[int] = np.maximum.reduceat(self.sizes, firsts).tolist() if firsts else []
        return largest

    def entries(self, load: int) -> tuple[LongArray, LongArray, LongArray]:
        """A load's lanes, sizes and moves."""
        first, end = self.bounds[load]
        return self.lanes[first:end], self.sizes[first:end], self.moves[first:end]

    def listed(self, load: int) -> Iterator[tuple[int, int, int]]:
        """A load's (lane, size, replicas) one by one; for a few lanes this is faster than arrays."""
        first, end = self.bounds[load]
        lanes, sizes, moves = self._flat
        return zip(lanes[first:end], sizes[first:end], moves[first:end], strict=True)

    def sizes_of(self, members: Sequence[int]) -> LongArray:
        """(lanes,) the total bytes of some loads."""
        return self._sum(members, self.sizes)

    def moves_of(self, members: Sequence[int]) -> LongArray:
        """(lanes,) the total replicas of some loads."""
        return self._sum(members, self.moves)

    def dense(self, members: Sequence[int]) -> tuple[LongArray, LongArray]:
        """(n, lanes) sizes and moves of some loads, 0 on lanes that they don't use."""
        sizes, moves = (np.zeros((len(members), self.lane_count), dtype=np.int64) for _ in range(2))
        for row, load in enumerate(members):
            lanes, own_sizes, own_moves = self.entries(load)
            sizes[row, lanes], moves[row, lanes] = own_sizes, own_moves
        return sizes, moves

    def _sum(self, members: Sequence[int], of: LongArray) -> LongArray:
        chosen = np.zeros(len(self), dtype=bool)
        chosen[list(members)] = True
        entries = np.repeat(chosen, [end - first for first, end in self.bounds])
        return sums_at(self.lane_count, self.lanes[entries], of[entries])


NOWHERE = -1
_FIRST_CAPACITY = 16


@dataclass(eq=False)
class BatchFilling:
    """K batches, in arrays with room for more; `count` is K.

    sizes, moves (lanes, K): bytes and, if they are limited, replicas; bytes_moved, elections (K,); busiest (K,): the
    most bytes on a lane; batch_of: the batch of each load, -1 if it has none yet.
    """

    loads: BatchLoads
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

    def copy(self) -> "BatchFilling":
        """A copy of the batches, to be filled in another way."""
        other = BatchFilling(self.loads, self.rules, self.count)
        other.sizes, other.moves = self.sizes.copy(), self.moves.copy()
        other.bytes_moved, other.elections = self.bytes_moved.copy(), self.elections.copy()
        other.busiest = self.busiest.copy()
        other.batch_of = list(self.batch_of)
        return other

    def open(self, batches: int) -> None:
        """Appends empty batches."""
        self.count += batches
        missing = self.count - len(self.busiest)
        if missing > 0:
            more = max(missing, len(self.busiest))
            self.sizes, self.moves = (np.pad(each, ((0, 0), (0, more))) for each in (self.sizes, self.moves))
            self.bytes_moved, self.elections, self.busiest = (
                np.pad(each, (0, more)) for each in (self.bytes_moved, self.elections, self.busiest)
            )

    def put(self, load: int, batch: int) -> None:
        """Puts a load that has no batch yet into a batch."""
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
        """Takes a load out of its batch."""
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
        """(end - first,) bytes on the busiest of the load's lanes in each of these batches, with the load added."""
        lanes, sizes, _ = self.loads.entries(load)
        taken = self.sizes.take(lanes, axis=0)[:, first:end]
        return np.asarray(np.maximum.reduce(taken + sizes[:, None], axis=0))

    def has_room(self, load: int, first: int, end: int) -> BoolArray:
        """(end - first,) True for the batches to which the rules let the load be added.

        A partition larger than the limit may start a batch; then only loads without bytes may join it. A load that
        keeps a broker busy for longer than the limit excludes all other loads of this broker.
        """
        lanes, sizes, moves = self.loads.entries(load)
        bytes_moved, elections = (np.array([of[load]]) for of in (self.loads.bytes_moved, self.loads.elections))
        held_sizes, held_moves = (each.take(lanes, axis=0)[:, first:end] for each in (self.sizes, self.moves))
        held = Amounts(self.bytes_moved[first:end], self.elections[first:end], held_sizes, held_moves)
        return allowed(self.rules, held, Amounts(bytes_moved, elections, sizes[:, None], moves[:, None]))

    def fits(self, load: int, batch: int) -> bool:
        """True if the load may be added to one batch: `has_room` without arrays, which are slower for one batch."""
        rules, size = self.rules, self.loads.bytes_moved[load]
        held = self.bytes_moved[batch]
        if rules.bytes is not None and size and held and held + size > rules.bytes:
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
        """The first batch after the batches of the loads that precede this one."""
        after = self.loads.after[load]
        return 1 + max(self.batch_of[other] for other in after) if after else 0

    def length_bytes(self, first: int) -> int:
        """The sum, over the batches from `first` on, of the bytes on each one's busiest lane: their total length."""
        return int(self.busiest[first : self.count].sum())

    def places(self, members: Sequence[int]) -> LongArray:
        """The batches of some loads."""
        return np.array([self.batch_of[load] for load in members], dtype=np.int64)


class Amounts(NamedTuple):
    """The amounts in some batches, or of some loads: bytes_moved, elections (n,); sizes, moves (lanes, n)."""

    bytes_moved: LongArray
    elections: LongArray
    sizes: LongArray
    moves: LongArray

    def without(self, others: Self) -> "Amounts":
        """These amounts minus others."""
        return Amounts(*(own - other for own, other in zip(self, others, strict=True)))


def allowed(rules: BatchRules, held: Amounts, added: Amounts) -> BoolArray:
    """(n,) True if the rules let `added` join `held`. A limit on bytes doesn't apply if either has no bytes."""
    room = np.ones_like(held.bytes_moved + added.bytes_moved, dtype=bool)
    if rules.bytes is not None:
        room &= _within(held.bytes_moved, added.bytes_moved, rules.bytes)
    if rules.moves_per_broker is not None:
        room &= np.maximum.reduce(held.moves + added.moves, axis=0) <= rules.moves_per_broker
    if rules.bytes_per_broker is not None:
        room &= _within(held.sizes, added.sizes, rules.bytes_per_broker).all(axis=0)
    if rules.elections is not None:
        room &= (added.elections == 0) | (held.elections + added.elections <= rules.elections)
    return room


def _within(held: LongArray, added: LongArray, limit: int) -> BoolArray:
    return np.asarray((held == 0) | (added == 0) | (held + added <= limit))
