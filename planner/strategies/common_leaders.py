"""One preferred leader for each slot of `together`: the partitions with the same number of co-partitioned topics.

If a broker has a replica of each partition of a slot, only leaders change: a min-cost flow with slots as units spreads
them evenly. Otherwise replicas move to a common broker or exchange brokers with others, one slot after the other, each
time so that windows are missed least, then the fewest bytes are copied. That is for clusters that are too large for the
programs of `common_leader_program`, and for plans that move only what must. Then all other replicas are placed anew
around those brokers (see `optimum`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from planner.model.build_problem import led_now, rows_to_place, today
from planner.model.cordons import may_hold
from planner.model.errors import InfeasibleError
from planner.model.problem import DEMOTED, BoolArray, FloatArray, IntArray, LongArray, Problem, led_by_several
from planner.model.rack_spread import limits_in_racks
from planner.model.together import caps_of_slots, common_brokers, kept_leaders
from planner.scoring.broker_loads import counts_by_group, target_numbers
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, distance
from planner.scoring.windows import Windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.leaders import Choices, least_above_caps, network
from planner.strategies.work_limits import COMMON_LEADER_PARTNERS

OVER_CAPS = "together: no choice of common leaders keeps max_leaders"


def led_together(problem: Problem, placed: IntArray, wanted: Windows) -> tuple[IntArray, IntArray]:
    """Replicas (P, W) with a common broker for each slot, and the leader (P,) of each slot's partitions.

    If each slot has a common broker, the replicas don't change. The leader is -1 for partitions of no slot.
    InfeasibleError if a slot can't have a common broker.
    """
    slot_of, kept = problem.slot_of, kept_leaders(problem, placed)
    placed, led = placed.copy(), _chosen(problem, placed, wanted, kept)
    lacking = np.flatnonzero((slot_of >= 0) & (led < 0))
    if len(lacking):
        lacking = lacking[np.argsort(slot_of[lacking], kind="stable")]
        moves = _Moves.of(problem, placed, wanted, led, kept)
        for rows in np.split(lacking, np.flatnonzero(np.diff(slot_of[lacking])) + 1):
            moves.bring_together(rows)
        led = _chosen(problem, placed, wanted, kept)
        if ((slot_of >= 0) & (led < 0)).any():
            raise InfeasibleError(OVER_CAPS)
    return placed, led


def _chosen(problem: Problem, placed: IntArray, wanted: Windows, kept: IntArray) -> IntArray:
    """(P,): the leader of each slot that has a common broker, as even as possible, with the fewest changes; -1: none.

    If a slot's leader is kept (S,), no other broker leads it.
    """
    led, free = np.full(problem.rows, -1, dtype=placed.dtype), problem.may_lead_anew
    slot, broker = common_brokers(problem, placed)
    together = problem.slot_of
    members = np.bincount(together[together >= 0], minlength=1)
    open_slots = np.isin(np.arange(len(members)), together[free])
    settled = (together >= 0) & ~open_slots[together]
    led[settled] = placed[settled, 0]
    counted = np.where(free, led, problem.leaders)[:, None]
    fixed = counts_by_group(problem, counted, np.zeros(problem.rows, dtype=np.int32), 1)[0]
    able = open_slots[slot] & ((kept[slot] < 0) | (kept[slot] == broker))
    if problem.out_of_sync is not None:
        # A broker out of sync can't be elected, but stays preferred if nothing changes.
        changed = (placed != today(problem)).any(axis=1) | led_by_several(problem, placed)
        first = np.full(len(members), -1)
        first[together[together >= 0]] = placed[together >= 0, 0]
        able &= ~problem.out_of_sync[broker] | ((first[slot] == broker) & ~np.isin(slot, together[changed]))
    slot, broker = slot[able], broker[able]
    # Slots with the most partitions first: smaller ones even out the rest.
    for size in sorted(set(members[slot].tolist()), reverse=True):
        these = members[slot] == size
        names, at = np.unique(slot[these], return_inverse=True)
        leaders = _evenly(problem, wanted, fixed, _Units(size, names, at.astype(np.int32), broker[these]))
        of_slot = np.full(len(members), -1, dtype=placed.dtype)
        of_slot[names] = leaders
        mine = (together >= 0) & (of_slot[together] >= 0)
        led[mine] = of_slot[together[mine]]
        fixed = fixed + size * np.bincount(target_numbers(problem)[leaders[leaders >= 0]], minlength=len(fixed))
    return led


class _Units(NamedTuple):
    """Slots (S,) by number, with `size` partitions each, and each choice (K,): the slot's place and a broker."""

    size: int
    slots: IntArray
    at: IntArray
    brokers: IntArray


def _evenly(problem: Problem, wanted: Windows, fixed: LongArray, units: _Units) -> IntArray:
    """(S,): the leaders of slots, which all have a choice, in addition to the fixed leaders (Bt,); -1 above a cap."""
    targets, here = np.flatnonzero(problem.targets).astype(np.int32), target_numbers(problem)
    # The windows are of all leaders; these slots get their part of them.
    total = int(fixed.sum()) + units.size * len(units.slots)
    share = (wanted.leaders * total // max(problem.rows, 1) - fixed) // units.size
    bounds = np.stack([share[0], np.maximum(share[0], share[1])])
    caps = None if wanted.caps is None else (wanted.caps[1] - fixed) // units.size
    costs = np.zeros(len(units.at), dtype=np.int64)
    for led, worth in zip(led_now(problem).T, (2, 1), strict=True):
        keys, counts = np.unique(_keys(problem.slot_of, led, len(here)), return_counts=True)
        wanted_keys = _keys(units.slots[units.at], units.brokers, len(here))
        found = np.searchsorted(keys, wanted_keys).clip(max=len(keys) - 1)
        costs += worth * (units.size - np.where(keys[found] == wanted_keys, counts[found], 0))
    none = np.zeros((1, len(targets)), dtype=np.int64)
    choices = Choices(units.at, np.zeros_like(units.at), here[units.brokers], targets, costs, len(units.slots), none)
    even = replace(wanted, leaders=bounds, topic_leaders=None, caps=None if caps is None else np.stack([caps, caps]))
    solve = min_cost_flow.solve_cost_first if problem.forced_only else min_cost_flow.solve_excess_first
    solved = solve(*network(choices, even)) or solve(*network(choices, least_above_caps(choices, even)))
    assert solved is not None, "every slot has a choice"
    leads = solved.units > 0
    leaders = np.full(len(units.slots), -1, dtype=np.int32)
    leaders[units.at[leads]] = units.brokers[leads]
    if caps is not None and not problem.lifts_leader_caps:
        for broker, most in zip(targets, caps.clip(0), strict=True):
            leaders[np.flatnonzero(leaders == broker)[most:]] = -1
    return leaders


def _keys(slots: IntArray, brokers: IntArray, count: int) -> LongArray:
    """A number for each pair of a slot and a broker, -1 for none."""
    return np.where((slots < 0) | (brokers < 0), -1, slots.astype(np.int64) * count + brokers)


class _Way(NamedTuple):
    """How a row gets a replica on a broker: how much more is outside windows and is copied; the row that takes its
    place on the old broker, -1: none; and the old broker.
    """

    outside: float
    copied: int
    other: int
    here: int


@dataclass(eq=False)
class _Moves:
    """Replicas that move so that slots have a common broker.

    placed (P, W) · on, held (B, P) True if a broker will hold, or holds today, a partition · led (P,) leaders of slots
    that have one · loads (M, B) of the M kinds of bytes that have windows (2, M, B), brought (M, P) by each partition,
    prices (M,) of a unit · caps as `caps_of_slots` · cells (T + 1, B) replicas of topics, then of all, with
    cell_windows (2, T + 1, B) · steps (2, T + 1, B) how much further outside these are with a replica less, and with
    one more · in_racks as `limits_in_racks`
    """

    problem: Problem
    placed: IntArray
    on: BoolArray
    held: BoolArray
    led: IntArray
    kept: IntArray
    moves: BoolArray
    racks: IntArray
    sizes: LongArray
    loads: LongArray
    windows: LongArray
    brought: LongArray
    prices: FloatArray
    cells: LongArray
    steps: LongArray
    cell_windows: LongArray
    leading: LongArray
    lead_most: FloatArray
    caps: LongArray
    likely: dict[int, IntArray]
    in_racks: LongArray | None

    @classmethod
    def of(cls, problem: Problem, placed: IntArray, wanted: Windows, led: IntArray, kept: IntArray) -> Self:
        """The state before any replica moves."""
        brokers, targets = len(problem.targets), problem.targets
        of_bytes = zip((wanted.disk, wanted.network_in), (problem.size_bytes, problem.bytes_in_per_sec), strict=True)
        measures = [(window, of) for window, of in of_bytes if window is not None]
        brought = np.array([of for _, of in measures], dtype=np.int64).reshape(len(measures), problem.rows)
        windows = np.zeros((2, len(measures), brokers), dtype=np.int64)
        for at, (window, _) in enumerate(measures):
            windows[:, at, targets] = window
        cell_windows = np.zeros((2, len(problem.topic_names) + 1, brokers), dtype=np.int64)
        cell_windows[:, :-1, targets], cell_windows[:, -1, targets] = wanted.topic_replicas, wanted.replicas
        on, held = np.zeros((2, brokers, problem.rows), dtype=bool)
        loads, cells = np.zeros_like(windows[0]), np.zeros_like(cell_windows[0])
        for each, mask in ((placed, on), (problem.replicas, held)):
            rows, columns = np.nonzero(each >= 0)
            mask[each[rows, columns], rows] = True
        broker_of, rows = np.nonzero(on)
        np.add.at(cells, (problem.topic_of[rows], broker_of), 1)
        cells[-1] = on.sum(axis=1)
        np.add.at(loads.T, broker_of, brought[:, rows].T)
        lead_most = np.full(brokers, np.inf)
        lead_most[targets] = wanted.leaders[1] * np.count_nonzero(problem.slot_of >= 0) / max(problem.rows, 1)
        return cls(
            problem=problem,
            placed=placed,
            on=on,
            held=held,
            led=led,
            kept=kept,
            moves=rows_to_place(problem),
            racks=problem.broker_racks if problem.racks_matter else np.zeros_like(problem.broker_racks),
            sizes=np.where(problem.is_new, 0, problem.size_bytes if problem.sizes_known else 1),
            loads=loads,
            windows=windows,
            brought=brought,
            prices=BROKER_PRICE / np.maximum(brought.mean(axis=1), 1e-9),
            cells=cells,
            steps=_steps(cells, cell_windows),
            cell_windows=cell_windows,
            leading=np.bincount(led[led >= 0], minlength=brokers),
            lead_most=lead_most,
            caps=caps_of_slots(problem),
            likely={},
            in_racks=limits_in_racks(problem),
        )

    def bring_together(self, rows: IntArray) -> None:
        """Move a slot's rows to a common broker, which becomes their leader; InfeasibleError without one."""
        targets, slot = self.problem.targets, self.problem.slot_of[rows[0]]
        every, near = np.flatnonzero(targets), self.kept[[slot]]
        if self.kept[slot] < 0:
            near = np.flatnonzero(targets & (self.on[:, rows] | self.held[:, rows]).any(axis=1))
        while True:
            best = self._best(rows, near)
            if best is None or best[0][0] > 0 or (best[0][1] > 0 and self.problem.rebalance == "all"):
                best = self._best(rows, every)
            if best is None:
                raise InfeasibleError(self._why_not(rows))
            broker = best[1]
            moved: list[tuple[int, int, int]] = []
            if all(self._bring(row, broker, moved) for row in rows.tolist()):
                break
            # One row took the place that another needs: all go back, and other brokers are tried.
            for row, here, there in reversed(moved):
                self._move(row, there, here)
            near, every = (brokers[brokers != broker] for brokers in (near, every))
        self.led[rows] = broker
        if self.kept[slot] >= 0:
            self.kept[slot] = broker
        self.leading[broker] += len(rows)

    def _why_not(self, rows: IntArray) -> str:
        capped = self.caps[1].min() < self.problem.rows
        self.caps[1] = self.problem.rows
        if capped and self._best(rows, np.flatnonzero(self.problem.targets)) is not None:
            return OVER_CAPS
        names = " and ".join("{}-{}".format(*self.problem.partition_keys[row]) for row in rows[:2].tolist())
        return (
            f"together: {names} can't have a replica on one broker that may lead both; "
            "allowed: leave one of the topics out, or let them move"
        )

    def _bring(self, row: int, broker: int, moved: list[tuple[int, int, int]]) -> bool:
        """Give a row a replica on a broker, and add what moves to `moved`; False if there is no way."""
        way = self._way(row, broker)
        if way is not None and way.here != broker:
            both = (row, way.here, broker), (way.other, broker, way.here)
            for each in both[: 2 if way.other >= 0 else 1]:
                self._move(*each)
                moved.append(each)
        return way is not None

    def _best(self, rows: IntArray, brokers: IntArray) -> tuple[tuple[float, ...], int] | None:
        """The cost and number of the best of these brokers for a slot's rows, demoted ones last; None if none can."""
        best, ranks = None, self.problem.leader_ranks
        for broker in brokers.tolist():
            ways = [way for row in rows.tolist() if (way := self._way(row, broker)) is not None]
            if len(ways) == len(rows) and self.leading[broker] + len(rows) <= self.caps[1, broker]:
                over = np.maximum(self.leading[broker] + np.array([0, len(rows)]) - self.lead_most[broker], 0)
                outside = sum(way.outside for way in ways) + BROKER_PRICE * float(over[1] - over[0])
                whole = _Way(outside, sum(way.copied for way in ways), int(self.leading[broker]), broker)
                last = 0.0 if ranks is None else float((ranks[self.problem.topic_of[rows], broker] >= DEMOTED).any())
                found = (last, *self._order(whole)), broker
                best = min(best or found, found)
        return best

    def _order(self, way: _Way) -> tuple[float, ...]:
        """A sort key, less is better: windows come first if everything may move."""
        return way if self.problem.rebalance == "all" else (way.copied, way.outside, *way[2:])

    def _way(self, row: int, there: int) -> _Way | None:
        """The best way for a row to get a replica there; None if there is none."""
        own = self.placed[row]
        if there in own or not self.moves[row]:
            able = self._may_lead(row, own, there) if self.problem.movable[row] else own[0] == there
            return _Way(0, 0, -1, there) if able else None
        if not may_hold(self.problem, row, there)[0]:
            return None
        held = own[own >= 0]
        racks, rack = self.racks[held].tolist(), self.racks[there]
        # As spread over racks as now. Python lists, because arrays take several times as long for so few brokers.
        near = [
            here
            for here, of in zip(held.tolist(), racks, strict=True)
            if of == rack or racks.count(rack) < racks.count(of)
        ]
        if self.in_racks is not None:
            near = [here for here in near if self._spread(np.array([row]), here, there)[0]]
        ways = [way for here in near for way in self._from(row, here, there)]
        return min(ways, key=self._order, default=None)

    def _from(self, row: int, here: int, there: int) -> Iterator[_Way]:
        """The best way that moves the replica on `here`, if there is one."""
        problem = self.problem
        own = self.placed[row]
        if not self._may_lead(row, np.where(own == here, there, own), there):
            return
        others = self._partners(row, there)
        able = self.moves[others] & (self.led[others] != there)
        able &= problem.slot_of[others] != problem.slot_of[row]
        others = others[able & ~self.on[here, others]]
        topics = problem.topic_of[others]
        able = self._spread(others, there, here)
        able &= may_hold(problem, others, here)
        if problem.leader_ranks is not None:
            able &= problem.leader_ranks[topics, here] == problem.leader_ranks[topics, there]
        full = self.cells[-1, there] >= self.caps[0, there]
        others = np.concatenate([others[able], [] if full else [-1]]).astype(np.int64)
        if not len(others):
            return
        back = np.where(
            others < 0, 0, self.sizes[others] * (self.held[there, others].astype(np.int64) - self.held[here, others])
        )
        copied = back + self.sizes[row] * (int(self.held[here, row]) - int(self.held[there, row]))
        outside = self._outside(row, others, here, there)
        least = np.arange(len(others))
        for key in (outside, copied, others) if problem.rebalance == "all" else (copied, outside, others):
            least = least[key[least] == key[least].min()]
        at = least[0]
        yield _Way(float(outside[at]), int(copied[at]), int(others[at]), here)

    def _partners(self, row: int, broker: int) -> IntArray:
        """(n,): partitions on a broker: those of the row's topic, and those that may move and copied least at first."""
        if broker not in self.likely:
            here = np.flatnonzero(self.on[broker] & self.moves)
            order = np.lexsort((here, np.where(self.held[broker, here], self.sizes[here], 0)))
            self.likely[broker] = np.sort(here[order[:COMMON_LEADER_PARTNERS]])
        topic, likely = self.problem.topic_of[row], self.likely[broker]
        first, last = np.searchsorted(self.problem.topic_of, [topic, topic + 1])
        before, after = np.searchsorted(likely, [first, last])
        every = np.concatenate([likely[:before], np.arange(first, last), likely[after:]])
        return every[self.on[broker, every]]

    def _may_lead(self, row: int, replicas: IntArray, broker: int) -> bool:
        ranks, off = self.problem.leader_ranks, self.problem.out_of_sync
        if off is not None and off[broker]:
            return False
        if ranks is None:
            return broker in replicas
        mine = ranks[self.problem.topic_of[row]]
        lowest = min(mine[replicas[replicas >= 0]].min(), DEMOTED)
        return broker in replicas and bool(mine[broker] <= lowest)

    def _spread(self, rows: IntArray, here: int, there: int) -> BoolArray:
        """(n,): True if rows stay as spread over racks when their replicas on `here` move to `there`."""
        left, entered = self.racks[[here, there]]
        if left == entered:
            return np.ones(len(rows), dtype=bool)
        of = np.where(self.placed[rows] >= 0, self.racks[self.placed[rows]], -1)
        more, fewer = ((of == rack).sum(axis=1) for rack in (left, entered))
        able: BoolArray = fewer < more
        if self.in_racks is not None:
            able &= (self.in_racks[0, left, rows] < more) & (fewer < self.in_racks[1, entered, rows])
        return able

    def _outside(self, row: int, others: IntArray, here: int, there: int) -> FloatArray:
        """(n,): how much more is outside windows if a row moves between brokers and one of the others moves back."""
        own, topics = self.problem.topic_of[row], self.problem.topic_of[others]
        none = others < 0
        alone = none | (topics != own)
        less, more = self.steps
        total = BROKER_PRICE * none * float(more[-1, there] + less[-1, here])
        total += TOPIC_PRICE * alone * (more[own, there] + less[own, here])
        total += TOPIC_PRICE * (alone & ~none) * (less[topics, there] + more[topics, here])
        if len(self.loads):
            brought = self.brought[:, [row]] - np.where(none, 0, self.brought[:, others])
            for broker, sign in ((there, 1), (here, -1)):
                load, window = self.loads[:, [broker]], self.windows[:, :, [broker]]
                total += self.prices @ (distance(window, load + sign * brought) - distance(window, load))
        return total

    def _move(self, row: int, here: int, there: int) -> None:
        self.placed[row, self.placed[row] == here] = there
        cells = np.array([self.problem.topic_of[row], -1])
        for broker, sign in ((here, -1), (there, 1)):
            self.on[broker, row] = sign > 0
            self.loads[:, broker] += sign * self.brought[:, row]
            self.cells[cells, broker] += sign
            self.steps[:, cells, broker] = _steps(self.cells[cells, broker], self.cell_windows[:, cells, broker])


def _steps(cells: LongArray, windows: LongArray) -> LongArray:
    """(2, …): how much further outside of windows (2, …) cells (…) are with a replica less, and with one more."""
    now = distance(windows, cells)
    return np.stack([distance(windows, cells - 1) - now, distance(windows, cells + 1) - now])
