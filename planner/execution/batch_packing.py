"""Packs loads into batches: as few as the rules allow, in order of risk, with even bytes over each batch's brokers.

A batch takes as long as its busiest broker, and the next batch waits for it. So all batches take the least time if the
plan's busiest broker is the busiest one in each batch, and no other broker delays it. Every batch gets a cap on the
bytes of one side of a broker, and the caps add up to the bytes of the busiest broker. Each load, large ones first, goes
where it fills the caps most evenly.
"""

from collections.abc import Sequence

import numpy as np

from planner.execution.batch_exchanges import CLOSE_ENOUGH, bring_forward, few_enough, polish
from planner.execution.batch_filling import BYTES, NOWHERE, BatchFilling, BatchLoads
from planner.model.problem import FloatArray
from planner.model.spec import BatchRules

AT_RISK = 0

_NO_SHARE = 1e-6
# What is tried if loads are few: batches above the fewest, and whether the first ones are filled completely.
_TRIES = ((0, False), (1, False), (2, False))
_TRIES_AT_RISK = ((0, True), (1, False))


def pack(loads: BatchLoads, rules: BatchRules) -> list[int]:
    """The batch of each load, from 0 without gaps. Each load must fit into an empty batch, except for its bytes.

    Risks are packed one after the other. A less risky load goes into a batch of riskier ones only if the batch gets no
    longer. A load at risk goes into the first of the batches at risk that has room, after the loads that precede it.
    """
    if (rules.bytes, rules.moves_per_broker, rules.bytes_per_broker, rules.elections) == (None,) * 4:
        # Without limits each load goes into the batch right after the loads that precede it.
        by_round: list[int] = []
        for after in loads.after:
            by_round.append(max((1 + by_round[other] for other in after), default=0))
        return by_round
    filling = BatchFilling(loads, rules)
    for risk in sorted(set(loads.risks)):
        members = [load for load, load_risk in enumerate(loads.risks) if load_risk == risk]
        # Long paths first, because they have the least choice, by round; then by size, because small loads fill gaps.
        members.sort(key=lambda load: (-loads.rounds[load][1], loads.rounds[load][0], -loads.largest[load], load))
        filling = _add_loads(filling, members, at_risk=risk == AT_RISK)
    batches: list[int] = np.unique(filling.batch_of, return_inverse=True)[1].tolist()
    return batches


def _add_loads(filling: BatchFilling, members: Sequence[int], at_risk: bool) -> BatchFilling:
    """The batches with all loads of one risk: the best of several packings if the loads are few."""
    first = filling.count
    unplaced = [load for load in members if not _fill_up(filling, load, first)]
    if not unplaced:
        return filling
    goal_bytes = CLOSE_ENOUGH * filling.loads.busiest_bytes(unplaced)
    best: BatchFilling | None = None
    for extra, to_the_brim in _TRIES_AT_RISK if at_risk else _TRIES:
        packed = _pack_anew(filling.copy(), unplaced, extra, to_the_brim, at_risk)
        if best is None or packed.length_bytes(first) < best.length_bytes(first):
            best = packed
        if best.length_bytes(first) <= goal_bytes or not few_enough(filling, unplaced):
            break
    return best or filling


def _fill_up(filling: BatchFilling, load: int, end: int) -> bool:
    """Puts a load into one of the first `end` batches if that makes none longer; False if there is no such batch.

    If later loads of its partition follow, into the first such batch; else into the one with the most room.
    """
    if not end or any(filling.batch_of[other] == NOWHERE for other in filling.loads.after[load]):
        return False
    first = filling.not_before(load)
    if first >= end:
        return False
    peaks, busiest = filling.peaks(load, first, end), filling.busiest[first:end]
    room = (peaks <= busiest) & filling.has_room(load, first, end)
    if not room.any():
        return False
    round_, rounds = filling.loads.rounds[load]
    emptiest = np.where(room, peaks / np.maximum(busiest, 1), np.inf).argmin()
    filling.put(load, first + int(room.argmax() if round_ + 1 < rounds else emptiest))
    return True


def _pack_anew(
    filling: BatchFilling, members: Sequence[int], extra: int, to_the_brim: bool, at_risk: bool
) -> BatchFilling:
    """Packs the loads into new batches after the existing ones: `extra` above the fewest that the rules allow."""
    first, loads, limit = filling.count, filling.loads, filling.rules.bytes
    needed = -(loads.totals(members) // -filling.limits)
    if limit is not None:
        sizes = loads.bytes_moved(members)
        needed[BYTES] = (sizes > limit).sum() - sizes[sizes <= limit].sum() // -limit
    batches = max(int(needed.max()), *(loads.rounds[load][1] for load in members)) + extra
    filling.open(batches)
    packing = _Packing(filling, members, first, _shares(filling, members, batches, to_the_brim), at_risk)
    for load in members:
        packing.place(load)
    polish(filling, members, first, move=not at_risk)
    return bring_forward(filling, members, first) if at_risk else filling


def _shares(filling: BatchFilling, members: Sequence[int], batches: int, to_the_brim: bool) -> FloatArray:
    """(batches,) the share of all bytes planned for each batch: equal shares, or full batches first."""
    limit, of_broker = filling.rules.bytes, filling.rules.bytes_per_broker
    total, busiest = int(filling.loads.totals(members)[BYTES]), filling.loads.busiest_bytes(members)
    full = [1.0] if not total else [each / amount for each, amount in ((limit, total), (of_broker, busiest)) if each]
    if not to_the_brim or not total or not full:
        return np.full(batches, 1 / batches)
    share = min(full)
    return np.array([max(min(share, 1 - index * share), _NO_SHARE) for index in range(batches)])


class _Packing:
    """The batches from `first` on, each with a cap: its planned share, or the bytes it holds if that is more."""

    def __init__(
        self, filling: BatchFilling, members: Sequence[int], first: int, shares: FloatArray, at_risk: bool
    ) -> None:
        self.filling, self.first, self.shares, self.at_risk = filling, first, shares, at_risk
        self.least = max(filling.loads.busiest_bytes(members), 1)
        self.caps = self._level()
        # If only moves are limited, a broker with few moves is done early, because its loads needn't wait.
        in_bytes = filling.rules.bytes or filling.rules.bytes_per_broker
        only_moves = filling.rules.moves_per_broker is not None and not in_bytes
        self.batches_of = -(filling.loads.totals(members) // -filling.limits) if only_moves else None

    def place(self, load: int) -> None:
        """Puts a load into the best batch of its part of the batches, else of all batches, else into a new one."""
        first, end = self._part(load)
        earliest = max(self.filling.not_before(load), self.first)
        batch, over = self._best(load, max(first, earliest), end)
        if over and (first, end) != (self.first, self.filling.count):
            other = self._best(load, earliest, self.filling.count)
            batch, over = min((batch, over), other, key=lambda option: option[1])
        if batch == NOWHERE:
            # A new batch, for which no bytes were planned.
            self.filling.open(1)
            self.shares = np.append(self.shares, _NO_SHARE)
            self.caps, batch = self._level(), self.filling.count - 1
        self.filling.put(load, batch)
        if self.filling.busiest[batch] > self.caps[batch - self.first]:
            self.caps = self._level()

    def _part(self, load: int) -> tuple[int, int]:
        """The range of batches to try first: a part for each round, or the early ones if data is at risk."""
        (round_, rounds), count = self.filling.loads.rounds[load], len(self.shares)
        if rounds == 1 and self.at_risk and self.batches_of is not None:
            rows, _ = self.filling.loads.entries(load)
            of_moves = rows[rows >= self.filling.loads.moves.start]
            return self.first, self.first + int(self.batches_of[of_moves].max())
        first, end = round_ * count // rounds, (round_ + 1) * count // rounds
        return self.first + first, self.first + end

    def _best(self, load: int, first: int, end: int) -> tuple[int, float]:
        """The batch that the load fills most evenly, and the bytes above its cap; NOWHERE and infinity if none fits."""
        if first >= end:
            return NOWHERE, np.inf
        caps = self.caps[first - self.first : end - self.first]
        peaks = self.filling.peaks(load, first, end)
        levels = peaks / caps
        index = int(levels.argmin())
        if levels[index] <= 1 and self.filling.fits(load, first + index):
            return first + index, 0.0  # The usual case; no need to check the rules for other batches.
        room = self.filling.has_room(load, first, end)
        levels = np.where(room, levels, np.inf)
        index = int(levels.argmin())
        if levels[index] <= 1:
            return first + index, 0.0
        over = np.where(room, peaks - caps, np.inf)
        index = int(over.argmin())
        return (first + index, max(float(over[index]), 0.0)) if room[index] else (NOWHERE, np.inf)

    def _level(self) -> FloatArray:
        """(batches,) caps: the busiest broker's remaining bytes, divided by share among the batches that hold less."""
        busiest = self.filling.busiest[self.first : self.filling.count]
        order = np.argsort(-busiest / self.shares, kind="stable")
        already = np.cumsum(busiest[order]) - busiest[order]
        levels = (self.least - already) / np.cumsum(self.shares[order][::-1])[::-1]
        reached = np.flatnonzero(busiest[order] <= levels * self.shares[order])
        level = levels[reached[0]] if len(reached) else 0.0
        return np.maximum(np.maximum(busiest, level * self.shares), _NO_SHARE)
