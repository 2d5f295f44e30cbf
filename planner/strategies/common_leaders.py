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

OVER_CAPS = "together: no choice of common leaders keeps max_leaders (rebalance: all moves more); allowed: a higher cap"


def led_together(problem: Problem, assignment: IntArray, windows: Windows) -> tuple[IntArray, IntArray]:
    """Replicas (P, W) with a common broker for each slot, and the leader (P,) of each slot's partitions.

    If each slot has a common broker, the replicas don't change. The leader is -1 for partitions of no slot.
    InfeasibleError if a slot can't have a common broker.
    """
    slot_of, kept = problem.slot_of, kept_leaders(problem, assignment)
    assignment, leaders = assignment.copy(), _choose_leaders(problem, assignment, windows, kept)
    lacking = np.flatnonzero((slot_of >= 0) & (leaders < 0))
    if len(lacking):
        lacking = lacking[np.argsort(slot_of[lacking], kind="stable")]
        moves = _Moves.of(problem, assignment, windows, leaders, kept)
        for rows in np.split(lacking, np.flatnonzero(np.diff(slot_of[lacking])) + 1):
            moves.bring_together(rows)
        leaders = _choose_leaders(problem, assignment, windows, kept)
        if ((slot_of >= 0) & (leaders < 0)).any():
            raise InfeasibleError(OVER_CAPS)
    return assignment, leaders


def _choose_leaders(problem: Problem, assignment: IntArray, windows: Windows, kept: IntArray) -> IntArray:
    """(P,): the leader of each slot that has a common broker, as even as possible, with the fewest changes; -1: none.

    If a slot's leader is kept (S,), no other broker leads it.
    """
    leaders, free = np.full(problem.rows, -1, dtype=assignment.dtype), problem.may_lead_anew
    slot, broker = common_brokers(problem, assignment)
    together = problem.slot_of
    members = np.bincount(together[together >= 0], minlength=1)
    open_slots = np.isin(np.arange(len(members)), together[free])
    settled = (together >= 0) & ~open_slots[together]
    leaders[settled] = assignment[settled, 0]
    counted = np.where(free, leaders, problem.leaders)[:, None]
    fixed = counts_by_group(problem, counted, np.zeros(problem.rows, dtype=np.int32), 1)[0]
    may_lead = open_slots[slot] & ((kept[slot] < 0) | (kept[slot] == broker))
    if problem.out_of_sync is not None:
        # A broker out of sync can't be elected, but stays preferred if nothing changes.
        changed = (assignment != today(problem)).any(axis=1) | led_by_several(problem, assignment)
        preferred = np.full(len(members), -1)
        preferred[together[together >= 0]] = assignment[together >= 0, 0]
        may_lead &= ~problem.out_of_sync[broker] | ((preferred[slot] == broker) & ~np.isin(slot, together[changed]))
    slot, broker = slot[may_lead], broker[may_lead]
    # Slots with the most partitions first: smaller ones even out the rest.
    for size in sorted(set(members[slot].tolist()), reverse=True):
        of_size = members[slot] == size
        numbers, places = np.unique(slot[of_size], return_inverse=True)
        chosen = _even_out(problem, windows, fixed, _Slots(size, numbers, places.astype(np.int32), broker[of_size]))
        of_slot = np.full(len(members), -1, dtype=assignment.dtype)
        of_slot[numbers] = chosen
        in_slots = (together >= 0) & (of_slot[together] >= 0)
        leaders[in_slots] = of_slot[together[in_slots]]
        fixed = fixed + size * np.bincount(target_numbers(problem)[chosen[chosen >= 0]], minlength=len(fixed))
    return leaders


class _Slots(NamedTuple):
    """Slots (S,) by number, with `size` partitions each, and each choice (K,): the slot's place and a broker."""

    size: int
    slots: IntArray
    slot: IntArray
    brokers: IntArray


def _even_out(problem: Problem, windows: Windows, fixed: LongArray, units: _Slots) -> IntArray:
    """(S,): the leaders of slots, which all have a choice, in addition to the fixed leaders (Bt,); -1 above a cap."""
    targets, numbers = np.flatnonzero(problem.targets).astype(np.int32), target_numbers(problem)
    # The windows are of all leaders; these slots get their part of them.
    total = int(fixed.sum()) + units.size * len(units.slots)
    share = (windows.leaders * total // max(problem.rows, 1) - fixed) // units.size
    bounds = np.stack([share[0], np.maximum(share[0], share[1])])
    caps = None if windows.caps is None else (windows.caps[1] - fixed) // units.size
    costs = np.zeros(len(units.slot), dtype=np.int64)
    for current, cost in zip(led_now(problem).T, (2, 1), strict=True):
        keys, counts = np.unique(_keys(problem.slot_of, current, len(numbers)), return_counts=True)
        wanted_keys = _keys(units.slots[units.slot], units.brokers, len(numbers))
        places = np.searchsorted(keys, wanted_keys).clip(max=len(keys) - 1)
        costs += cost * (units.size - np.where(keys[places] == wanted_keys, counts[places], 0))
    zeros = np.zeros((1, len(targets)), dtype=np.int64)
    choices = Choices(
        units.slot, np.zeros_like(units.slot), numbers[units.brokers], targets, costs, len(units.slots), zeros
    )
    even = replace(windows, leaders=bounds, topic_leaders=None, caps=None if caps is None else np.stack([caps, caps]))
    solve = min_cost_flow.solve_cost_first if problem.forced_only else min_cost_flow.solve_excess_first
    solved = solve(*network(choices, even)) or solve(*network(choices, least_above_caps(choices, even)))
    assert solved is not None, "every slot has a choice"
    is_leader = solved.units > 0
    leaders = np.full(len(units.slots), -1, dtype=np.int32)
    leaders[units.slot[is_leader]] = units.brokers[is_leader]
    if caps is not None and not problem.lifts_leader_caps:
        for broker, cap in zip(targets, caps.clip(0), strict=True):
            leaders[np.flatnonzero(leaders == broker)[cap:]] = -1
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
    other_row: int
    from_broker: int


@dataclass(eq=False)
class _Moves:
    """Replicas that move so that slots have a common broker.

    placed (P, W) · on, had (B, P) True if a broker will hold, or holds today, a partition · leaders (P,) of slots with
    one · loads (M, B) of the M kinds of bytes with windows (2, M, B), row_loads (M, P) of each partition, prices (M,)
    of a unit · caps as `caps_of_slots` · cells (T + 1, B) replicas of topics, then of all; cell_windows (2, T + 1, B)
    steps (2, T + 1, B) how much further outside these are with a replica less, and more · in_racks: `limits_in_racks`
    """

    problem: Problem
    placed: IntArray
    on: BoolArray
    had: BoolArray
    leaders: IntArray
    kept: IntArray
    may_move: BoolArray
    racks: IntArray
    sizes: LongArray
    loads: LongArray
    windows: LongArray
    row_loads: LongArray
    prices: FloatArray
    cells: LongArray
    steps: LongArray
    cell_windows: LongArray
    leader_counts: LongArray
    most_leaders: FloatArray
    caps: LongArray
    likely_partners: dict[int, IntArray]
    in_racks: LongArray | None

    @classmethod
    def of(cls, problem: Problem, assignment: IntArray, windows: Windows, leaders: IntArray, kept: IntArray) -> Self:
        """The state before any replica moves."""
        brokers, targets = len(problem.targets), problem.targets
        of_bytes = zip((windows.disk, windows.network_in), (problem.size_bytes, problem.bytes_in_per_sec), strict=True)
        measures = [(window, weights) for window, weights in of_bytes if window is not None]
        row_loads = np.array([weights for _, weights in measures], dtype=np.int64).reshape(len(measures), problem.rows)
        load_windows = np.zeros((2, len(measures), brokers), dtype=np.int64)
        for index, (window, _) in enumerate(measures):
            load_windows[:, index, targets] = window
        cell_windows = np.zeros((2, len(problem.topic_names) + 1, brokers), dtype=np.int64)
        cell_windows[:, :-1, targets], cell_windows[:, -1, targets] = windows.topic_replicas, windows.replicas
        is_on, had = np.zeros((2, brokers, problem.rows), dtype=bool)
        loads, cells = np.zeros_like(load_windows[0]), np.zeros_like(cell_windows[0])
        for each, mask in ((assignment, is_on), (problem.replicas, had)):
            rows, columns = np.nonzero(each >= 0)
            mask[each[rows, columns], rows] = True
        broker_of, rows = np.nonzero(is_on)
        np.add.at(cells, (problem.topic_of[rows], broker_of), 1)
        cells[-1] = is_on.sum(axis=1)
        np.add.at(loads.T, broker_of, row_loads[:, rows].T)
        most_leaders = np.full(brokers, np.inf)
        most_leaders[targets] = windows.leaders[1] * np.count_nonzero(problem.slot_of >= 0) / max(problem.rows, 1)
        return cls(
            problem=problem,
            placed=assignment,
            on=is_on,
            had=had,
            leaders=leaders,
            kept=kept,
            may_move=rows_to_place(problem),
            racks=problem.broker_racks if problem.racks_matter else np.zeros_like(problem.broker_racks),
            sizes=np.where(problem.is_new, 0, problem.size_bytes if problem.sizes_known else 1),
            loads=loads,
            windows=load_windows,
            row_loads=row_loads,
            prices=BROKER_PRICE / np.maximum(row_loads.mean(axis=1), 1e-9),
            cells=cells,
            steps=_steps(cells, cell_windows),
            cell_windows=cell_windows,
            leader_counts=np.bincount(leaders[leaders >= 0], minlength=brokers),
            most_leaders=most_leaders,
            caps=caps_of_slots(problem),
            likely_partners={},
            in_racks=limits_in_racks(problem),
        )

    def bring_together(self, rows: IntArray) -> None:
        """Move a slot's rows to a common broker, which becomes their leader; InfeasibleError without one."""
        targets, slot = self.problem.targets, self.problem.slot_of[rows[0]]
        all_targets, near = np.flatnonzero(targets), self.kept[[slot]]
        if self.kept[slot] < 0:
            near = np.flatnonzero(targets & (self.on[:, rows] | self.had[:, rows]).any(axis=1))
        while True:
            best = self._best_broker(rows, near)
            if best is None or best[0][0] > 0 or (best[0][1] > 0 and self.problem.rebalance == "all"):
                best = self._best_broker(rows, all_targets)
            if best is None:
                raise InfeasibleError(self._refusal(rows))
            broker = best[1]
            moved: list[tuple[int, int, int]] = []
            if all(self._give_replica(row, broker, moved) for row in rows.tolist()):
                break
            # One row took the place that another needs: all go back, and other brokers are tried.
            for row, from_broker, to_broker in reversed(moved):
                self._move(row, to_broker, from_broker)
            near, all_targets = (brokers[brokers != broker] for brokers in (near, all_targets))
        self.leaders[rows] = broker
        if self.kept[slot] >= 0:
            self.kept[slot] = broker
        self.leader_counts[broker] += len(rows)

    def _refusal(self, rows: IntArray) -> str:
        capped = self.caps[1].min() < self.problem.rows
        self.caps[1] = self.problem.rows
        if capped and self._best_broker(rows, np.flatnonzero(self.problem.targets)) is not None:
            return OVER_CAPS
        names = " and ".join("{}-{}".format(*self.problem.partition_keys[row]) for row in rows[:2].tolist())
        return (
            f"together: {names} can't have a replica on one broker that may lead both; "
            "allowed: leave one of the topics out, or let them move"
        )

    def _give_replica(self, row: int, broker: int, moved: list[tuple[int, int, int]]) -> bool:
        """Give a row a replica on a broker, and add what moves to `moved`; False if there is no way."""
        way = self._best_way(row, broker)
        if way is not None and way.from_broker != broker:
            moves = (row, way.from_broker, broker), (way.other_row, broker, way.from_broker)
            for move in moves[: 2 if way.other_row >= 0 else 1]:
                self._move(*move)
                moved.append(move)
        return way is not None

    def _best_broker(self, rows: IntArray, brokers: IntArray) -> tuple[tuple[float, ...], int] | None:
        """The cost and number of the best of these brokers for a slot's rows, demoted ones last; None if none can."""
        best, ranks = None, self.problem.leader_ranks
        for broker in brokers.tolist():
            ways = [way for row in rows.tolist() if (way := self._best_way(row, broker)) is not None]
            if len(ways) == len(rows) and self.leader_counts[broker] + len(rows) <= self.caps[1, broker]:
                above = np.maximum(self.leader_counts[broker] + np.array([0, len(rows)]) - self.most_leaders[broker], 0)
                outside = sum(way.outside for way in ways) + BROKER_PRICE * float(above[1] - above[0])
                total = _Way(outside, sum(way.copied for way in ways), int(self.leader_counts[broker]), broker)
                demoted = 0.0 if ranks is None else float((ranks[self.problem.topic_of[rows], broker] >= DEMOTED).any())
                candidate = (demoted, *self._sort_key(total)), broker
                best = min(best or candidate, candidate)
        return best

    def _sort_key(self, way: _Way) -> tuple[float, ...]:
        """A sort key, less is better: windows come first if everything may move."""
        return way if self.problem.rebalance == "all" else (way.copied, way.outside, *way[2:])

    def _best_way(self, row: int, target: int) -> _Way | None:
        """The best way for a row to get a replica there; None if there is none."""
        replicas = self.placed[row]
        if target in replicas or not self.may_move[row]:
            may_lead = self._may_lead(row, replicas, target) if self.problem.movable[row] else replicas[0] == target
            return _Way(0, 0, -1, target) if may_lead else None
        if not may_hold(self.problem, row, target)[0]:
            return None
        brokers = replicas[replicas >= 0]
        racks, rack = self.racks[brokers].tolist(), self.racks[target]
        # As spread over racks as now. Python lists, because arrays take several times as long for so few brokers.
        near = [
            broker
            for broker, broker_rack in zip(brokers.tolist(), racks, strict=True)
            if broker_rack == rack or racks.count(rack) < racks.count(broker_rack)
        ]
        if self.in_racks is not None:
            near = [broker for broker in near if self._keeps_spread(np.array([row]), broker, target)[0]]
        ways = [way for broker in near for way in self._ways_from(row, broker, target)]
        return min(ways, key=self._sort_key, default=None)

    def _ways_from(self, row: int, source: int, target: int) -> Iterator[_Way]:
        """The best way that moves the replica on `source`, if there is one."""
        problem = self.problem
        replicas = self.placed[row]
        if not self._may_lead(row, np.where(replicas == source, target, replicas), target):
            return
        others = self._partners(row, target)
        is_allowed = self.may_move[others] & (self.leaders[others] != target)
        is_allowed &= problem.slot_of[others] != problem.slot_of[row]
        others = others[is_allowed & ~self.on[source, others]]
        topics = problem.topic_of[others]
        is_allowed = self._keeps_spread(others, target, source)
        is_allowed &= may_hold(problem, others, source)
        if problem.leader_ranks is not None:
            is_allowed &= problem.leader_ranks[topics, source] == problem.leader_ranks[topics, target]
        full = self.cells[-1, target] >= self.caps[0, target]
        others = np.concatenate([others[is_allowed], [] if full else [-1]]).astype(np.int64)
        if not len(others):
            return
        copied_back = np.where(
            others < 0, 0, self.sizes[others] * (self.had[target, others].astype(np.int64) - self.had[source, others])
        )
        copied = copied_back + self.sizes[row] * (int(self.had[source, row]) - int(self.had[target, row]))
        outside = self._excess_change(row, others, source, target)
        best = np.arange(len(others))
        for key in (outside, copied, others) if problem.rebalance == "all" else (copied, outside, others):
            best = best[key[best] == key[best].min()]
        index = best[0]
        yield _Way(float(outside[index]), int(copied[index]), int(others[index]), source)

    def _partners(self, row: int, broker: int) -> IntArray:
        """(n,): partitions on a broker: those of the row's topic, and those that may move and copied least at first."""
        if broker not in self.likely_partners:
            rows = np.flatnonzero(self.on[broker] & self.may_move)
            order = np.lexsort((rows, np.where(self.had[broker, rows], self.sizes[rows], 0)))
            self.likely_partners[broker] = np.sort(rows[order[:COMMON_LEADER_PARTNERS]])
        topic, likely = self.problem.topic_of[row], self.likely_partners[broker]
        first, last = np.searchsorted(self.problem.topic_of, [topic, topic + 1])
        before, after = np.searchsorted(likely, [first, last])
        candidates = np.concatenate([likely[:before], np.arange(first, last), likely[after:]])
        return candidates[self.on[broker, candidates]]

    def _may_lead(self, row: int, replicas: IntArray, broker: int) -> bool:
        ranks, out_of_sync = self.problem.leader_ranks, self.problem.out_of_sync
        if out_of_sync is not None and out_of_sync[broker]:
            return False
        if ranks is None:
            return broker in replicas
        topic_ranks = ranks[self.problem.topic_of[row]]
        lowest = min(topic_ranks[replicas[replicas >= 0]].min(), DEMOTED)
        return broker in replicas and bool(topic_ranks[broker] <= lowest)

    def _keeps_spread(self, rows: IntArray, source: int, target: int) -> BoolArray:
        """(n,): True if rows stay as spread over racks when their replicas on `source` move to `target`."""
        old_rack, new_rack = self.racks[[source, target]]
        if old_rack == new_rack:
            return np.ones(len(rows), dtype=bool)
        racks = np.where(self.placed[rows] >= 0, self.racks[self.placed[rows]], -1)
        in_old, in_new = ((racks == rack).sum(axis=1) for rack in (old_rack, new_rack))
        is_allowed: BoolArray = in_new < in_old
        if self.in_racks is not None:
            is_allowed &= (self.in_racks[0, old_rack, rows] < in_old) & (in_new < self.in_racks[1, new_rack, rows])
        return is_allowed

    def _excess_change(self, row: int, others: IntArray, source: int, target: int) -> FloatArray:
        """(n,): how much more is outside windows if a row moves between brokers and one of the others moves back."""
        topic, topics = self.problem.topic_of[row], self.problem.topic_of[others]
        no_other = others < 0
        alone = no_other | (topics != topic)
        less, more = self.steps
        total = BROKER_PRICE * no_other * float(more[-1, target] + less[-1, source])
        total += TOPIC_PRICE * alone * (more[topic, target] + less[topic, source])
        total += TOPIC_PRICE * (alone & ~no_other) * (less[topics, target] + more[topics, source])
        if len(self.loads):
            shift = self.row_loads[:, [row]] - np.where(no_other, 0, self.row_loads[:, others])
            for broker, sign in ((target, 1), (source, -1)):
                load, window = self.loads[:, [broker]], self.windows[:, :, [broker]]
                total += self.prices @ (distance(window, load + sign * shift) - distance(window, load))
        return total

    def _move(self, row: int, source: int, target: int) -> None:
        self.placed[row, self.placed[row] == source] = target
        cells = np.array([self.problem.topic_of[row], -1])
        for broker, sign in ((source, -1), (target, 1)):
            self.on[broker, row] = sign > 0
            self.loads[:, broker] += sign * self.row_loads[:, row]
            self.cells[cells, broker] += sign
            self.steps[:, cells, broker] = _steps(self.cells[cells, broker], self.cell_windows[:, cells, broker])


def _steps(cells: LongArray, windows: LongArray) -> LongArray:
    """(2, …): how much further outside of windows (2, …) cells (…) are with a replica less, and with one more."""
    distance_now = distance(windows, cells)
    return np.stack([distance(windows, cells - 1) - distance_now, distance(windows, cells + 1) - distance_now])
