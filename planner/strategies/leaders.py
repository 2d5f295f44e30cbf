"""Chooses the preferred leaders among the replicas that are placed already, evenly and with the fewest changes.

A min-cost flow evens out their numbers: partition → (topic, broker), if leaders must be even within topics → broker →
sink. Today's preferred leader costs 0, another replica 2. A replica that doesn't lead now costs 1 more: an election
that restores the preferred leader is cheaper than a new replica order.

The traffic that a leader sends moves with it, so traffic out is a window on leaders, not on replicas. If it has a
window, a local search exchanges leaders until the bytes that they send fit too, on average and in every scenario. Each
leader costs as much as in the flow. No data is copied for that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from planner.model.balance import NO_TOLERANCE, WINDOWS, Balance
from planner.model.build_problem import led_now, rows_to_place, today, with_replacements
from planner.model.cordons import may_hold
from planner.model.errors import InfeasibleError
from planner.model.problem import (
    DEMOTED,
    NEVER_LEADS,
    UNCAPPED,
    BoolArray,
    IntArray,
    LongArray,
    Problem,
    leaderless,
    may_be_elected,
    may_lead,
    replica_ranks,
    without_leader,
)
from planner.scoring.broker_loads import counts_by_group, leaders_after, target_numbers
from planner.scoring.fair_shares import sent_by_leader
from planner.scoring.growth_scenarios import Scenario
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE
from planner.scoring.windows import OPEN_BYTES, Windows, windows, within_windows
from planner.strategies.flow import min_cost_flow
from planner.strategies.load_windows.local_search import polish, repair
from planner.strategies.load_windows.local_search_state import SearchPlacement, of_leaders
from planner.strategies.work_limits import EXCHANGE_PARTNERS


def choose_leaders(
    problem: Problem, lists: IntArray, windows: Windows, growth: Sequence[Scenario] = (), must: IntArray | None = None
) -> IntArray:
    """The same replicas (P, W) with the preferred leader first, then today's replicas in their order, then new ones.

    A broker that replaces another takes its position. `must` (P,): the broker that must lead, -1: any of the replicas.
    """
    lacking = leaderless(problem, lists) & rows_to_place(problem)
    lists = _with_leaders(problem, lists, lacking, NEVER_LEADS, windows)
    free, all_rows = problem.may_lead_anew, np.arange(problem.rows)
    leaders, can_lead = leaders_after(problem, lists), may_lead(problem, lists, all_rows)
    must = np.full(problem.rows, -1) if must is None else must
    # Today's leader leads as long as the broker that must lead is out of sync.
    must_now = must if problem.out_of_sync is None else np.where(problem.out_of_sync[must], problem.leaders, must)
    is_allowed = can_lead & ((must[:, None] < 0) | (lists == must[:, None]))
    electable = may_be_elected(problem, lists, all_rows) & ((must[:, None] < 0) | (lists == must_now[:, None]))
    electable = np.where(electable.any(axis=1, keepdims=True), electable, is_allowed)
    if free.any():
        choices = Choices.of(problem, lists, free, electable)
        # If only forced changes are allowed, fewer changes come before more even leaders.
        solve = min_cost_flow.solve_cost_first if problem.forced_only else min_cost_flow.solve_excess_first
        solved = solve(*network(choices, windows))
        if solved is None and solve(*network(Choices.of(problem, lists, free, can_lead), windows)):
            # Caps hold once all brokers are back in sync; until then, the others lead as little above them as can be.
            solved = solve(*network(choices, least_above_caps(choices, windows)))
        if solved is None and windows.caps is not None:
            reason = "no choice of leaders among the replicas that are placed keeps max_leaders"
            rules = "other rules on who leads (leader_racks, demote_brokers, apart)"
            others = (problem.leader_ranks is not None, rules), (problem.rebalance != "all", "rebalance: all")
            allowed = ", or ".join(["a higher max_leaders", *(text for applies, text in others if applies)])
            raise InfeasibleError(f"{reason}; allowed: {allowed}")
        assert solved is not None, "every partition has a replica that can lead it"
        is_chosen = solved.units > 0
        leaders[np.flatnonzero(free)[choices.indices[is_chosen]]] = choices.targets[choices.brokers[is_chosen]]
        leaders = even_out(problem, lists, leaders, free & (must < 0), windows, growth)
    # Partitions whose leader may not change keep their order, even on a replaced broker: they may have to wait.
    return np.where(free[:, None], _in_order(problem, lists, leaders, must), lists)


def leadable(problem: Problem, lists: IntArray, target_windows: Windows, must: IntArray | None = None) -> IntArray:
    """The same replicas (P, W) if some choice of leaders keeps `max_leaders`; otherwise exchanged until one does.

    Two partitions of a topic exchange two brokers, as spread over racks as before; else one goes where windows have
    room, or where caps and disks have; else two of any topics exchange brokers. Each time it is what copies least, so
    that one more partition has a leader. If nothing helps, exchanges so far stay. `must` (P,): who must lead, -1: any.

    Before that, a partition that gets its replicas only on demoted brokers gets one elsewhere, if there is a way.
    """
    lacking = without_leader(problem, lists, DEMOTED) & rows_to_place(problem) & (True if must is None else must < 0)
    lacking &= (np.sort(lists) != np.sort(with_replacements(problem, today(problem)))).any(axis=1)
    lists = _with_leaders(problem, lists, lacking, DEMOTED, target_windows, must)
    if target_windows.caps is None or (target_windows.caps[1] >= UNCAPPED).all():
        return lists
    lists, numbers = lists.copy(), target_numbers(problem)
    free = problem.may_lead_anew & (True if must is None else must < 0)
    # A leader that may not change can be on a broker that isn't a target: no cap counts it.
    settled_leaders = np.where(problem.may_lead_anew, -1 if must is None else must, problem.leaders)
    leading = np.where(free | (settled_leaders < 0), -1, numbers[settled_leaders])
    room = target_windows.caps[1] - np.bincount(leading[leading >= 0], minlength=len(target_windows.caps[1]))
    targets, looser = np.flatnonzero(problem.targets), windows(problem, Balance(*[NO_TOLERANCE] * len(WINDOWS)))
    tries = (target_windows, problem.topic_of), (looser, problem.topic_of), (looser, np.zeros_like(problem.topic_of))
    while (matched := _matched_leaders(problem, lists, free, room)) is not None:
        exchanges = (_cheapest_exchange(problem, lists, *each, matched, room) for each in tries)
        if (exchange := next(filter(None, exchanges), None)) is None:
            return lists
        row, other_row, from_broker, to_broker = *exchange[:2], *targets[list(exchange[2:])]
        lists[row, lists[row] == from_broker] = to_broker
        if other_row >= 0:
            lists[other_row, lists[other_row] == to_broker] = from_broker
    return lists


def _matched_leaders(problem: Problem, lists: IntArray, free: BoolArray, room: LongArray) -> IntArray | None:
    """(P,): the target brokers that lead as many partitions as what is left of the caps (Bt,) allows; -1: no leader.

    -2: the leader may not change. None if all partitions have a leader.
    """
    rows, numbers = np.flatnonzero(free), target_numbers(problem)
    indices, slots = np.nonzero(may_lead(problem, lists, rows) & (numbers[lists[rows]] >= 0))
    brokers, ones = numbers[lists[rows[indices], slots]], np.ones(len(indices), dtype=np.int64)
    is_matched = min_cost_flow.largest_flow(np.ones(len(rows), dtype=np.int64), (indices, brokers, ones), room) > 0
    if np.count_nonzero(is_matched) == len(rows):
        return None
    leaders = np.where(free, -1, -2)
    leaders[rows[indices[is_matched]]] = brokers[is_matched]
    return leaders


def _cheapest_exchange(
    problem: Problem, lists: IntArray, windows: Windows, kinds: IntArray, leaders: IntArray, room: LongArray
) -> tuple[int, int, int, int] | None:
    """Two partitions of a kind (P,) (the second -1: only the first moves), and the target brokers that they exchange.

    The first has no leader, or its leader could lead one that has none. The second broker, which then leads it, leads
    less than is left of its cap, or could give up one. The second partition keeps its leader. None if there are none.
    """
    all_rows, ways = np.arange(problem.rows), list[tuple[bool, int, int, int, int, int]]()
    may_move, brokers = rows_to_place(problem), np.flatnonzero(problem.targets)
    racks = problem.broker_racks[brokers] if problem.racks_matter else 0 * brokers
    is_on, todays = (counts_by_group(problem, each, all_rows, problem.rows) > 0 for each in (lists, problem.replicas))
    ranks = 0 * is_on if problem.leader_ranks is None else problem.leader_ranks[problem.topic_of][:, brokers]
    held_ranks = np.where(is_on, ranks, np.iinfo(np.int16).max)
    lowest, second = np.sort(held_ranks, axis=1)[:, [0, int(held_ranks.shape[1] > 1)]].T
    can_lead, free, stuck = is_on & (ranks == lowest[:, None]), may_move & (leaders >= -1), leaders == -1
    full, spare = np.zeros(len(room), dtype=bool), np.bincount(leaders[leaders >= 0], minlength=len(room)) < room
    for _ in room:
        full |= can_lead[stuck].any(axis=0)
        stuck |= (leaders >= 0) & full[leaders.clip(0)]
        hands_over = (leaders >= 0) & (can_lead & spare).any(axis=1)
        spare |= np.bincount(leaders[hands_over], minlength=len(room)) > 0
    in_racks = is_on.astype(np.int64) @ (racks[:, None] == racks)
    size_kinds = np.unique(np.stack([kinds, problem.size_bytes]), axis=1, return_inverse=True)[1].reshape(-1)
    for source, target in zip(*np.nonzero(is_on[stuck].any(axis=0)[:, None] & spare), strict=True):
        may_come, may_go = (
            may_hold(problem, all_rows, brokers[at])
            & ((racks[source] == racks[target]) | (in_racks[:, at] < in_racks[:, of]))
            for at, of in ((source, target), (target, source))
        )
        rank_left = np.where(held_ranks[:, source] == lowest, second, lowest)
        may_go &= ranks[:, target] <= rank_left.clip(max=DEMOTED - (lowest < DEMOTED))
        may_come &= ranks[:, source] >= lowest
        movers = np.flatnonzero(free & stuck & is_on[:, source] & ~is_on[:, target] & may_go)
        others = np.flatnonzero(free & ~stuck & is_on[:, target] & ~is_on[:, source] & (leaders != target) & may_come)
        # The bytes copied in addition (negative: saved) if a partition goes from the first broker to the second.
        extra = problem.size_bytes * (todays[:, source].astype(np.int64) - todays[:, target])
        pair = _cheapest_of_a_kind(kinds, (movers, extra[movers]), (others, -extra[others]))
        # Partitions of one size leave each disk as full as it is.
        if pair and _overfills(problem, windows, is_on, (int(source), int(target)), pair[1:]):
            pair = _cheapest_of_a_kind(size_kinds, (movers, extra[movers]), (others, -extra[others]))
        if pair is None and len(alone := within_windows(problem, windows, is_on, movers, source, target)):
            pair = int(extra[alone].min()), int(alone[extra[alone].argmin()]), -1
        ways += [(pair[2] < 0, *pair, int(source), int(target))] if pair else []
    return min(ways, key=lambda way: way[:2])[2:] if ways else None


def _overfills(
    problem: Problem, windows: Windows, is_on: BoolArray, brokers: tuple[int, int], rows: tuple[int, int]
) -> bool:
    """True if two rows that exchange these brokers fill a disk above its window. `on` (P, Bt): all rows' replicas."""
    if windows.disk is None:
        return False
    columns, (first_size, second_size) = list(brokers), problem.size_bytes[list(rows)]
    extra = np.array([second_size - first_size, first_size - second_size])
    return bool(((extra > 0) & (problem.size_bytes @ is_on[:, columns] + extra > windows.disk[1, columns])).any())


def _cheapest_of_a_kind(
    kinds: IntArray, first: tuple[IntArray, LongArray], second: tuple[IntArray, LongArray]
) -> tuple[int, int, int] | None:
    """The least sum of costs of two rows of one kind (P,), one of each side, and these rows; None if there are none."""
    least = np.full((2, int(kinds.max(initial=0)) + 1), OPEN_BYTES // 2)
    for of_kind, (rows, costs) in zip(least, (first, second), strict=True):
        np.minimum.at(of_kind, kinds[rows], costs)
    kind = least.sum(axis=0).argmin()
    left, right = (
        rows[(kinds[rows] == kind) & (costs == of_kind[kind])]
        for of_kind, (rows, costs) in zip(least, (first, second), strict=True)
    )
    return (int(least[:, kind].sum()), int(left[0]), int(right[0])) if len(left) and len(right) else None


def _with_leaders(
    problem: Problem, lists: IntArray, lacking: BoolArray, rank: int, windows: Windows, must: IntArray | None = None
) -> IntArray:
    """The same replicas (P, W), except of `lacking` partitions (P,): each gets one on a broker of a lower rank. It
    exchanges brokers with a replica in the same rack, of its topic, else of the smallest partitions; or it moves.

    InfeasibleError if `apart` asks for it (NEVER_LEADS) and neither is possible. `must` (P,): who must lead, -1: any.
    """
    if not lacking.any():
        return lists
    # Counted once, because there may be tens of thousands of such partitions.
    lists, is_replica = lists.copy(), lists >= 0
    sizes = np.repeat(problem.size_bytes, is_replica.sum(axis=1))
    totals = np.zeros((2, len(problem.targets)), dtype=np.int64)
    np.add.at(totals[0], lists[is_replica], 1)
    np.add.at(totals[1], lists[is_replica], sizes)
    may_move = rows_to_place(problem) & (problem.rebalance == "all") & (True if must is None else must < 0)
    by_topic = np.argsort(problem.topic_of, kind="stable")
    ends = np.searchsorted(problem.topic_of[by_topic], np.arange(len(problem.topic_names) + 1))
    small = np.flatnonzero(may_move)[np.argsort(problem.size_bytes[may_move], kind="stable")[:EXCHANGE_PARTNERS]]
    for row in np.flatnonzero(lacking).tolist():
        alike = by_topic[ends[problem.topic_of[row]] : ends[problem.topic_of[row] + 1]]
        for others in (alike[may_move[alike]], small):
            best = min(_ways_to_lead(problem, lists, row, others, rank, totals, windows), default=None)
            if rank == NEVER_LEADS or (best is not None and best[0] == 0):
                break
        if best is None and rank == NEVER_LEADS:
            name = "{}-{}".format(*problem.partition_keys[row])
            raise InfeasibleError(f"apart: no replica of {name} can be moved to where it may be led")
        if best is not None:
            *_, other, source, target = best
            lists[other, lists[other] == target] = source
            lists[row, lists[row] == source] = target
            delta = (int(other == row), problem.size_bytes[row] - (0 if other == row else problem.size_bytes[other]))
            totals[:, target] += delta
            totals[:, source] -= delta
    return lists


def _ways_to_lead(
    problem: Problem, lists: IntArray, row: int, others: LongArray, rank: int, totals: LongArray, windows: Windows
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Ways to a replica that leads a row with less than this rank: 1 if counts change, bytes copied in addition,
    replicas on the new broker, the row that takes the old place (the row itself: none), and both brokers. The new one
    is in the old one's rack, or in a rack that the row lacks. Only ways for `apart` may fill a disk above its limit.

    others (K,): rows that may exchange brokers with it; totals (2, B): replicas and bytes on each broker.
    """
    assert problem.leader_ranks is not None
    ranks, brokers = problem.leader_ranks, lists[row][lists[row] >= 0]
    can_lead = problem.targets & (ranks[problem.topic_of[row]] < rank)
    can_lead &= may_hold(problem, row, np.arange(len(can_lead)))
    racks = problem.broker_racks if problem.racks_matter else np.zeros_like(problem.broker_racks)
    full, size = np.zeros(len(can_lead), dtype=bool), problem.size_bytes[row]
    if windows.caps is not None:
        full[problem.targets] = totals[0, problem.targets] >= windows.caps[0]
    unlimited = (problem.disk_limit_bytes < 0) | (rank == NEVER_LEADS)
    room = np.where(unlimited, OPEN_BYTES, problem.disk_limit_bytes - totals[1])

    def copied(row: int, coming: int, going: int) -> int:
        return int(problem.size_bytes[row]) * ((going in problem.replicas[row]) - (coming in problem.replicas[row]))

    # They keep another replica that leads.
    others = others[(replica_ranks(problem, ranks, lists[others], others) < rank).sum(axis=1) > 1]
    other_lists, todays, sizes = lists[others], problem.replicas[others], problem.size_bytes[others]
    for source in brokers.tolist():
        absent, returns = ~(other_lists == source).any(axis=1), (todays == source).any(axis=1)
        for target in np.flatnonzero(can_lead & ((racks == racks[source]) | ~np.isin(racks, racks[brokers]))).tolist():
            if not full[target] and size <= room[target]:
                yield 1, copied(row, target, source), int(totals[0, target]), row, source, target
            extra = size - sizes
            trades = ((extra <= 0) | (extra <= room[target])) & ((extra >= 0) | (-extra <= room[source])) & absent
            trades &= (other_lists == target).any(axis=1) & (racks[source] == racks[target])
            trades &= may_hold(problem, others, source)
            trading = np.flatnonzero(trades)
            if len(trading):
                costs = sizes[trading] * ((todays[trading] == target).any(axis=1).astype(np.int64) - returns[trading])
                cost = copied(row, target, source) + int(costs.min())
                yield 0, cost, int(totals[0, target]), int(others[trading[costs.argmin()]]), source, target


@dataclass(frozen=True)
class Choices:
    """Every replica that could lead one of the free rows (M): parallel arrays (K,) of row, topic and target broker.

    `brokers` are numbered within the target brokers; `fixed` (T, Bt) counts the leaders that are settled.
    """

    indices: IntArray
    topics: IntArray
    brokers: IntArray
    targets: IntArray
    costs: LongArray
    rows: int
    fixed: LongArray

    @classmethod
    def of(cls, problem: Problem, lists: IntArray, free: BoolArray, electable: BoolArray) -> Self:
        """The choices for the rows of the mask `free`, among the replicas that are able to lead (P, W)."""
        rows = np.flatnonzero(free)
        index, slots = np.nonzero(electable[rows])
        brokers, row = lists[rows[index], slots], rows[index]
        targets, numbers = np.flatnonzero(problem.targets).astype(np.int32), target_numbers(problem)
        current = led_now(problem)[row]
        costs = 2 * (current[:, 0] != brokers) + (current[:, 1] != brokers)
        settled = np.where(free, -1, problem.leaders)[:, None]
        fixed = counts_by_group(problem, settled, problem.topic_of, len(problem.topic_names))
        index, topics = index.astype(np.int32), problem.topic_of[row]
        return cls(index, topics, numbers[brokers], targets, costs.astype(np.int64), len(rows), fixed)


def network(
    choices: Choices, windows: Windows
) -> tuple[min_cost_flow.Arcs, tuple[min_cost_flow.Windowed, ...], LongArray]:
    """Arcs, windows and the nodes' supplies; the first arcs are those of the choices, the last node is the sink."""
    topics, count = choices.fixed.shape
    cells = topics * count if windows.topic_leaders is not None else 0
    brokers = np.arange(count, dtype=np.int32) + choices.rows + cells
    sink = choices.rows + cells + count
    fixed, ends = choices.fixed.sum(axis=0), np.full_like(brokers, sink)
    caps = None if windows.caps is None else windows.caps[1] - fixed
    windowed = [min_cost_flow.window(brokers, ends, windows.leaders - fixed, choices.rows, BROKER_PRICE, caps)]
    heads = brokers[choices.brokers]
    if windows.topic_leaders is not None:
        heads = choices.rows + choices.topics * count + choices.brokers
        nodes = np.arange(cells, dtype=np.int32) + choices.rows
        bounds = (windows.topic_leaders - choices.fixed).reshape(2, -1)
        windowed.append(min_cost_flow.window(nodes, np.tile(brokers, topics), bounds, choices.rows, TOPIC_PRICE))
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[: choices.rows], supplies[sink] = 1, -choices.rows
    return min_cost_flow.arcs(choices.indices, heads.astype(np.int32), 1, choices.costs), tuple(windowed), supplies


def least_above_caps(choices: Choices, windows: Windows) -> Windows:
    """The windows with caps raised to what brokers lead if leaders are above the caps by as little as can be."""
    assert windows.caps is not None
    replicas, caps = windows.caps
    capped = replace(windows, leaders=np.stack([np.zeros_like(caps), caps]), topic_leaders=None, caps=None)
    solved = min_cost_flow.solve_excess_first(*network(choices, capped))
    assert solved is not None, "without caps, every choice of leaders is possible"
    leader_counts = choices.fixed.sum(axis=0) + np.bincount(choices.brokers[solved.units > 0], minlength=len(caps))
    return replace(windows, caps=np.stack([replicas, np.maximum(caps, leader_counts)]))


def _in_order(problem: Problem, lists: IntArray, leaders: IntArray, must: IntArray) -> IntArray:
    """Each row's replicas sorted: the leader first, then by today's position, then by broker; -1 goes last.

    Where replicas and leader stay, a preferred leader in no ISR stays first, unless another (P,) must lead: it may come
    back, and until then it isn't elected (see `broker_loads.leaders_after`).
    """
    if problem.out_of_sync is not None:
        current = today(problem)
        stays = (leaders == problem.leaders) & (np.sort(lists) == np.sort(current)).all(axis=1)
        stays &= np.append(problem.out_of_sync, False)[current[:, 0]] & ((must < 0) | (must == current[:, 0]))
        stays &= may_lead(problem, current, np.arange(problem.rows))[:, 0]
        leaders = np.where(stays, current[:, 0], leaders)
    todays = with_replacements(problem, problem.replicas)
    match = (lists[:, :, None] == todays[:, None, :]) & (lists[:, :, None] >= 0)
    position = np.where(match.any(axis=2), match.argmax(axis=2), todays.shape[1] + lists)
    key = np.where(lists == leaders[:, None], -1, position)
    key = np.where(lists < 0, np.iinfo(np.int32).max, key)
    return np.take_along_axis(lists, np.argsort(key, axis=1, kind="stable"), axis=1)


def even_out(
    problem: Problem,
    lists: IntArray,
    leaders: IntArray,
    free: BoolArray,
    target_windows: Windows,
    growth: Sequence[Scenario] = (),
) -> IntArray:
    """The leaders (P,), -1 for none, with those of the free rows (P,) exchanged until `network_out` fits best."""
    if target_windows.network_out is None or not free.any():
        return leaders
    targets, numbers, rows = np.flatnonzero(problem.targets), target_numbers(problem), np.flatnonzero(free)
    is_on = np.zeros((len(rows), len(targets)), dtype=bool)
    is_on[np.arange(len(rows)), numbers[leaders[rows]]] = True
    # Windows (D, 2, Bt) of bytes that leaders send, and bytes of each partition (D, P): on average, and by scenario.
    windowed = [(target_windows.network_out, problem)]
    windowed += [(each.windows.network_out, each.problem) for each in growth if each.windows.network_out is not None]
    windows, sent = np.stack([window for window, _ in windowed]), np.stack([sent_by_leader(of) for _, of in windowed])
    placement = SearchPlacement(
        of_leaders(problem, lists, leaders, numbers, rows, (target_windows, windows, sent), is_on), is_on
    )
    # If only forced changes are allowed, no leader changes for this window alone.
    repair(placement, for_nothing=problem.forced_only)
    polish(placement)
    new_leaders = leaders.copy()
    new_leaders[rows] = targets[placement.on.argmax(axis=1)]
    return new_leaders
