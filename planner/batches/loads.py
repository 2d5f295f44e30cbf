"""What is placed into batches as one: how many bytes and moves each load puts on each broker, in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.model import LongArray

FloatArray = NDArray[np.float64]


@dataclass(eq=False)
class Loads:
    """N loads: steps, or the steps of a topic that stay together. Add them all before anything else is asked.

    A lane is one side of a broker: what it receives, or what it sends; they are numbered from 0 to `lane_count`.

    risks        of each load, 0 is the highest
    bytes_moved  of each load
    after        the loads, all added before, that must be in earlier batches
    elections    of each load, preferred leaders that are elected when it is complete
    rounds       (which round from 0, of how many) that the load's partitions go through
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
        """Append a load; `entries` are its lanes, at least one and each once, with their sizes and moves."""
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
        """A load's (lane, size, replicas) one by one, which for a few is quicker than arrays are."""
        first, end = self.bounds[load]
        lanes, sizes, moves = self._flat
        return zip(lanes[first:end], sizes[first:end], moves[first:end], strict=True)

    def sizes_of(self, members: Sequence[int]) -> LongArray:
        """(lanes,) the bytes of some loads together."""
        return self._sum(members, self.sizes)

    def moves_of(self, members: Sequence[int]) -> LongArray:
        """(lanes,) the replicas of some loads together."""
        return self._sum(members, self.moves)

    def dense(self, members: Sequence[int]) -> tuple[LongArray, LongArray]:
        """(n, lanes) sizes and moves of some loads, with 0 for the lanes that they don't use."""
        sizes, moves = (np.zeros((len(members), self.lane_count), dtype=np.int64) for _ in range(2))
        for row, load in enumerate(members):
            lanes, own_sizes, own_moves = self.entries(load)
            sizes[row, lanes], moves[row, lanes] = own_sizes, own_moves
        return sizes, moves

    def _sum(self, members: Sequence[int], of: LongArray) -> LongArray:
        chosen = np.zeros(len(self), dtype=bool)
        chosen[list(members)] = True
        entries = np.repeat(chosen, [end - first for first, end in self.bounds])
        totals = np.zeros(self.lane_count, dtype=np.int64)
        np.add.at(totals, self.lanes[entries], of[entries])
        return totals
