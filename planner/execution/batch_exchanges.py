"""Local search on packed batches: moves single loads and exchanges pairs of loads to make the batches shorter.

It serves plans whose partitions are few or very unequal; with many loads, packing leaves little to gain.
"""

from collections.abc import Sequence

import numpy as np

from planner.execution.batch_filling import BatchFilling
from planner.model.problem import BoolArray, FloatArray, LongArray

CLOSE_ENOUGH = 1.02

# Work is bounded by counts, never by the clock; these allow about a third of a second each time.
_MOST_ENTRIES, _MOST_WORK, _MOST_ROUNDS = 200_000, 6_000_000, 4
_LEAST_GAIN = 1e-6


def few_enough(filling: BatchFilling, members: Sequence[int]) -> bool:
    """True if there are few enough loads to examine every pair."""
    return len(members) * filling.loads.lane_count <= _MOST_ENTRIES


def polish(filling: BatchFilling, members: Sequence[int], first: int, move: bool) -> None:
    """Exchanges loads (and with `move` moves them) among the batches from `first` on, while that shortens the batches.

    Every rule and the order of a partition's loads are kept. Does nothing if there are too many loads.
    """
    if few_enough(filling, members) and filling.count - first > 1:
        table = _LoadTable(filling, members, first)
        while table.work < _MOST_WORK and table.worth_it() and table.sweep(move):
            pass


def bring_forward(filling: BatchFilling, members: Sequence[int], first: int) -> BatchFilling:
    """Puts each load into the first batch that has room for it: from `first` on, after the loads that precede it."""
    if not few_enough(filling, members):
        # In the order of the batches, so that no batch gets room again for a load that was examined before.
        places = filling.places(members)
        for row in np.argsort(places, kind="stable").tolist():
            load, batch = members[row], int(places[row])
            earliest = max(filling.not_before(load), first)
            room = filling.has_room(load, earliest, batch) if earliest < batch else np.zeros(0, dtype=bool)
            if room.any():
                filling.take(load)
                filling.put(load, earliest + int(room.argmax()))
        return filling
    best = _pulled(filling, members, first)
    goal_bytes = CLOSE_ENOUGH * filling.loads.busiest_bytes(members)
    for _ in range(_MOST_ROUNDS):
        if best.length_bytes(first) <= goal_bytes:
            break
        candidate = best.copy()
        polish(candidate, members, first, move=False)
        candidate = _pulled(candidate, members, first)
        if candidate.length_bytes(first) >= best.length_bytes(first):
            break
        best = candidate
    return best


def _pulled(filling: BatchFilling, members: Sequence[int], first: int) -> BatchFilling:
    """Fills one batch after the other with the load that lengthens the batches the least."""
    table = _LoadTable(filling, members, first)
    for batch in range(len(table.lengths)):
        while table.pull(batch):
            pass
    return filling


class _LoadTable:
    """The loads and batches as dense arrays: n loads, K batches, one column per lane.

    amounts (limited, n): the loads' amounts in the rows that have a limit; scaled (n, lanes): their bytes, as parts of
    the busiest lane's bytes; batches (K, lanes): bytes in the same unit; lengths (K,): what the search minimizes;
    places (n,): each load's batch; bounds (n, 2): the batches it must stay between, to keep the order of a partition's
    loads; rows: each load's row.
    """

    def __init__(self, filling: BatchFilling, members: Sequence[int], first: int) -> None:
        self.filling, self.members, self.first, self.work = filling, members, first, 0
        amounts = filling.loads.dense(members)
        sizes = amounts[filling.loads.sizes].T
        self.amounts = amounts[filling.limited]
        self.scaled = sizes / max(int(sizes.sum(axis=0).max()), 1)
        self.places = filling.places(members) - first
        self.batches = np.zeros((filling.count - first, sizes.shape[1]))
        np.add.at(self.batches, self.places, self.scaled)
        self.lengths = _length(self.batches)
        self.rows = {load: row for row, load in enumerate(members)}
        # The loads that precede each load, and the rows of the loads that follow it.
        self.before = [filling.loads.after[load] for load in members]
        self.after: list[list[int]] = [[] for _ in members]
        for row, loads in enumerate(self.before):
            for load in loads:
                if load in self.rows:
                    self.after[self.rows[load]].append(row)
        self.bounds = np.array([self._bounds(row) for row in range(len(members))], dtype=np.int64)

    def worth_it(self) -> bool:
        """True while the batches take longer than the plan's busiest broker needs."""
        return bool(self.batches.max(axis=1).sum() > CLOSE_ENOUGH)

    def sweep(self, move: bool) -> bool:
        """Tries to shorten every batch, the longest first; True if one was shortened."""
        shortened = [self._shorten(int(batch), move) for batch in np.argsort(-self.lengths, kind="stable")]
        return any(shortened)

    def _shorten(self, batch: int, move: bool) -> bool:
        """Applies the best move or exchange of a load on the batch's busiest side, until none is left."""
        shortened = False
        while self.work < _MOST_WORK:
            busiest = int(self.batches[batch].argmax())
            rows = np.flatnonzero((self.places == batch) & (self.scaled[:, busiest] > 0)).tolist()
            options = [self._best_exchange(row) for row in rows] + [self._best_move(row) for row in rows if move]
            best = min((option for option in options if option), default=None)
            if best is None or best[0] > -_LEAST_GAIN:
                return shortened
            self._apply(*best[1:])
            shortened = True
        return shortened

    def _best_move(self, row: int) -> tuple[float, int, int, int] | None:
        """The best batch to move a load into: (change of the lengths, row, batch, -1)."""
        filling, load, source = self.filling, self.members[row], int(self.places[row])
        room = filling.has_room(load, self.first, filling.count) & self._in_order(row, np.arange(len(self.lengths)))
        room[source] = False
        targets = np.flatnonzero(room)
        if not len(targets):
            return None
        changes = _length(self.batches[targets] + self.scaled[row]) - self.lengths[targets]
        change = _length(self.batches[source] - self.scaled[row]) - self.lengths[source]
        self.work += self.batches.size
        best = int(changes.argmin())
        return float(changes[best] + change), row, int(targets[best]), -1

    def _best_exchange(self, row: int) -> tuple[float, int, int, int] | None:
        """The best load to exchange this one for: (change of the lengths, row, batch of the other load, its row)."""
        source = int(self.places[row])
        self.work += self.scaled.size
        may_come = (self.bounds[:, 0] < source) & (source < self.bounds[:, 1])
        others = np.flatnonzero(
            (self.places != source) & self._in_order(row, self.places) & may_come & self._fits_exchanged(row)
        )
        if not len(others):
            return None
        targets = self.places[others]
        changes = _length(self.batches[source] - self.scaled[row] + self.scaled[others]) - self.lengths[source]
        changes += _length(self.batches[targets] - self.scaled[others] + self.scaled[row]) - self.lengths[targets]
        best = int(changes.argmin())
        return float(changes[best]), row, int(targets[best]), int(others[best])

    def pull(self, batch: int) -> bool:
        """Moves one load of later batches into this one: the one that lengthens batches least. False if none fits."""
        fits = self.filling.allowed(self.filling.limited, self._amounts_in(np.array([batch])), self.amounts)
        rows = np.flatnonzero((self.places > batch) & (self.bounds[:, 0] < batch) & fits)
        if not len(rows):
            return False
        sources = self.places[rows]
        changes = _length(self.batches[batch] + self.scaled[rows]) - self.lengths[batch]
        changes += _length(self.batches[sources] - self.scaled[rows]) - self.lengths[sources]
        self._apply(int(rows[changes.argmin()]), batch, -1)
        return True

    def _amounts_in(self, batches: LongArray) -> LongArray:
        """(limited, n): the amounts in these batches (n,)."""
        return self.filling.held[np.ix_(self.filling.limited, batches + self.first)]

    def _fits_exchanged(self, row: int) -> BoolArray:
        """(n,) True for the loads that may trade batches with this load by the rules."""
        allowed, loads, load = self.filling.allowed, self.amounts, self.amounts[:, row : row + 1]
        batch, others = self._amounts_in(self.places[row : row + 1]), self._amounts_in(self.places)
        return allowed(self.filling.limited, batch - load, loads) & allowed(self.filling.limited, others - loads, load)

    def _in_order(self, row: int, batches: LongArray) -> BoolArray:
        """True for the batches after all loads that precede this one and before all loads that follow it."""
        low, high = self.bounds[row]
        return np.asarray((batches > low) & (batches < high))

    def _bounds(self, row: int) -> tuple[int, int]:
        """The last batch of the loads that precede this one, and the first batch of those that follow it."""
        batch_of = self.filling.batch_of
        low = max((int(batch_of[load]) for load in self.before[row]), default=-1)
        high = min((int(batch_of[self.members[other]]) for other in self.after[row]), default=self.filling.count)
        return low - self.first, high - self.first

    def _apply(self, row: int, batch: int, other: int) -> None:
        source = int(self.places[row])
        self._put(row, batch)
        if other >= 0:
            self._put(other, source)
        for neighbor in self._neighbors(row) | (self._neighbors(other) if other >= 0 else set()):
            self.bounds[neighbor] = self._bounds(neighbor)
        for changed in (source, batch):
            self.lengths[changed] = _length(self.batches[changed])

    def _neighbors(self, row: int) -> set[int]:
        """The rows of the loads directly before and after this one."""
        return {self.rows[load] for load in self.before[row] if load in self.rows} | set(self.after[row])

    def _put(self, row: int, batch: int) -> None:
        self.filling.take(self.members[row])
        self.filling.put(self.members[row], self.first + batch)
        self.batches[self.places[row]] -= self.scaled[row]
        self.batches[batch] += self.scaled[row]
        self.places[row] = batch


def _length(batches: FloatArray) -> FloatArray:
    """(rows,) each batch's busiest side, plus a little if other sides are nearly as busy: those limit the next gain."""
    power = batches
    for _ in range(4):
        power = power * power
    root = power.sum(axis=-1)
    for _ in range(4):
        root = np.sqrt(root)
    return np.asarray(0.9 * batches.max(axis=-1) + 0.1 * root)
