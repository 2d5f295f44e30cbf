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
from planner.model.build_problem import led_now, rows_to_place, taken_over, today
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


def order(
    problem: Problem, placed: IntArray, wanted: Windows, grown: Sequence[Scenario] = (), led: IntArray | None = None
) -> IntArray:
    """The same replicas (P, W) with the preferred leader first, then today's replicas in their order, then new ones.

    A broker that replaces another takes its position. `led` (P,): the broker that must lead, -1: any of the replicas.
    """
    lacking = leaderless(problem, placed) & rows_to_place(problem)
    placed = _with_leaders(problem, placed, lacking, NEVER_LEADS, wanted)
    free, every = problem.may_lead_anew, np.arange(problem.rows)
    leaders, anyone = leaders_after(problem, placed), may_lead(problem, placed, every)
    led = np.full(problem.rows, -1) if led is None else led
    # Today's leader leads as long as the broker that must lead is out of sync.
    now = led if problem.out_of_sync is None else np.where(problem.out_of_sync[led], problem.leaders, led)
    able = anyone & ((led[:, None] < 0) | (placed == led[:, None]))
    electable = may_be_elected(problem, placed, every) & ((led[:, None] < 0) | (placed == now[:, None]))
    electable = np.where(electable.any(axis=1, keepdims=True), electable, able)
    if free.any():
        choices = Choices.of(problem, placed, free, electable)
        # If only forced changes are allowed, fewer changes come before more even leaders.
        solve = min_cost_flow.solve_cost_first if problem.forced_only else min_cost_flow.solve_excess_first
        solved = solve(*network(choices, wanted))
        if solved is None and solve(*network(Choices.of(problem, placed, free, anyone), wanted)):
            # Caps hold once all brokers are back in sync; until then, the others lead as little above them as can be.
            solved = solve(*network(choices, least_above_caps(choices, wanted)))
        if solved is None and wanted.caps is not None:
            raise InfeasibleError("no choice of leaders among the replicas that are placed keeps max_leaders")
        assert solved is not None, "every partition has a replica that can lead it"
        leads = solved.units > 0
        leaders[np.flatnonzero(free)[choices.at[leads]]] = choices.targets[choices.brokers[leads]]
        leaders = even_out(problem, placed, leaders, free & (led < 0), wanted, grown)
    # Partitions whose leader may not change keep their order, even on a replaced broker: they may have to wait.
    return np.where(free[:, None], _in_order(problem, placed, leaders, led), placed)


def leadable(problem: Problem, placed: IntArray, wanted: Windows, led: IntArray | None = None) -> IntArray:
    """The same replicas (P, W) if some choice of leaders keeps `max_leaders`; otherwise exchanged until one does.

    Two partitions of a topic exchange two brokers, as spread over racks as before; else one goes where windows have
    room, or where caps and disks have; else two of any topics exchange brokers. Each time it is what copies least, so
    that one more partition has a leader. If nothing helps, exchanges so far stay. `led` (P,): who must lead, -1: any.

    Before that, a partition that gets its replicas only on demoted brokers gets one elsewhere, if there is a way.
    """
    lacking = without_leader(problem, placed, DEMOTED) & rows_to_place(problem) & (True if led is None else led < 0)
    lacking &= (np.sort(placed) != np.sort(taken_over(problem, today(problem)))).any(axis=1)
    placed = _with_leaders(problem, placed, lacking, DEMOTED, wanted, led)
    if wanted.caps is None or (wanted.caps[1] >= UNCAPPED).all():
        return placed
    placed, here = placed.copy(), target_numbers(problem)
    free = problem.may_lead_anew & (True if led is None else led < 0)
    # A leader that may not change can be on a broker that isn't a target: no cap counts it.
    settled = np.where(problem.may_lead_anew, -1 if led is None else led, problem.leaders)
    leading = np.where(free | (settled < 0), -1, here[settled])
    left = wanted.caps[1] - np.bincount(leading[leading >= 0], minlength=len(wanted.caps[1]))
    targets, looser = np.flatnonzero(problem.targets), windows(problem, Balance(*[NO_TOLERANCE] * len(WINDOWS)))
    tries = (wanted, problem.topic_of), (looser, problem.topic_of), (looser, np.zeros_like(problem.topic_of))
    while (leads := _most_led(problem, placed, free, left)) is not None:
        found = (_cheapest_exchange(problem, placed, *each, leads, left) for each in tries)
        if (exchange := next(filter(None, found), None)) is None:
            return placed
        row, other_row, one, other = (*exchange[:2], *targets[list(exchange[2:])])
        placed[row, placed[row] == one] = other
        if other_row >= 0:
            placed[other_row, placed[other_row] == other] = one
    return placed


def _most_led(problem: Problem, placed: IntArray, free: BoolArray, left: LongArray) -> IntArray | None:
    """(P,): the target brokers that lead as many partitions as what is left of the caps (Bt,) allows; -1: no leader.

    -2: the leader may not change. None if all partitions have a leader.
    """
    rows, here = np.flatnonzero(free), target_numbers(problem)
    at, slots = np.nonzero(may_lead(problem, placed, rows) & (here[placed[rows]] >= 0))
    brokers, ones = here[placed[rows[at], slots]], np.ones(len(at), dtype=np.int64)
    leads = min_cost_flow.largest_flow(np.ones(len(rows), dtype=np.int64), (at, brokers, ones), left) > 0
    if np.count_nonzero(leads) == len(rows):
        return None
    led = np.where(free, -1, -2)
    led[rows[at[leads]]] = brokers[leads]
    return led


def _cheapest_exchange(
    problem: Problem, placed: IntArray, wanted: Windows, kinds: IntArray, led: IntArray, left: LongArray
) -> tuple[int, int, int, int] | None:
    """Two partitions of a kind (P,) (the second -1: only the first moves), and the target brokers that they exchange.

    The first has no leader, or its leader could lead one that has none. The second broker, which then leads it, leads
    less than is left of its cap, or could give up one. The second partition keeps its leader. None if there are none.
    """
    every, ways = np.arange(problem.rows), list[tuple[bool, int, int, int, int, int]]()
    moves, brokers = rows_to_place(problem), np.flatnonzero(problem.targets)
    racks = problem.broker_racks[brokers] if problem.racks_matter else 0 * brokers
    on, todays = (counts_by_group(problem, each, every, problem.rows) > 0 for each in (placed, problem.replicas))
    ranks = 0 * on if problem.leader_ranks is None else problem.leader_ranks[problem.topic_of][:, brokers]
    held = np.where(on, ranks, np.iinfo(np.int16).max)
    lowest, second = np.sort(held, axis=1)[:, [0, int(held.shape[1] > 1)]].T
    able, free, stuck = on & (ranks == lowest[:, None]), led >= -1, led == -1
    full, spare = np.zeros(len(left), dtype=bool), np.bincount(led[led >= 0], minlength=len(left)) < left
    for _ in left:
        full |= able[stuck].any(axis=0)
        stuck |= (led >= 0) & full[led.clip(0)]
        handing = (led >= 0) & (able & spare).any(axis=1)
        spare |= np.bincount(led[handing], minlength=len(left)) > 0
    in_racks = on.astype(np.int64) @ (racks[:, None] == racks)
    alike = np.unique(np.stack([kinds, problem.size_bytes]), axis=1, return_inverse=True)[1].reshape(-1)
    for here, there in zip(*np.nonzero(on[stuck].any(axis=0)[:, None] & spare), strict=True):
        to_here, to_there = (
            may_hold(problem, every, brokers[at])
            & ((racks[here] == racks[there]) | (in_racks[:, at] < in_racks[:, of]))
            for at, of in ((here, there), (there, here))
        )
        left_first = np.where(held[:, here] == lowest, second, lowest)
        to_there &= ranks[:, there] <= left_first.clip(max=DEMOTED - (lowest < DEMOTED))
        to_here &= ranks[:, here] >= lowest
        one = np.flatnonzero(moves & free & stuck & on[:, here] & ~on[:, there] & to_there)
        other = np.flatnonzero(moves & free & ~stuck & on[:, there] & ~on[:, here] & (led != there) & to_here)
        # The bytes copied in addition (negative: saved) if a partition goes from the first broker to the second.
        more = problem.size_bytes * (todays[:, here].astype(np.int64) - todays[:, there])
        pair = _cheapest_of_a_kind(kinds, (one, more[one]), (other, -more[other]))
        # Partitions of one size leave each disk as full as it is.
        if pair and _overfills(problem, wanted, on, (int(here), int(there)), pair[1:]):
            pair = _cheapest_of_a_kind(alike, (one, more[one]), (other, -more[other]))
        if pair is None and len(alone := within_windows(problem, wanted, on, one, here, there)):
            pair = int(more[alone].min()), int(alone[more[alone].argmin()]), -1
        ways += [(pair[2] < 0, *pair, int(here), int(there))] if pair else []
    return min(ways, key=lambda way: way[:2])[2:] if ways else None


def _overfills(
    problem: Problem, wanted: Windows, on: BoolArray, brokers: tuple[int, int], rows: tuple[int, int]
) -> bool:
    """True if two rows that exchange these brokers fill a disk above its window. `on` (P, Bt): all rows' replicas."""
    if wanted.disk is None:
        return False
    at, (one, other) = list(brokers), problem.size_bytes[list(rows)]
    more = np.array([other - one, one - other])
    return bool(((more > 0) & (problem.size_bytes @ on[:, at] + more > wanted.disk[1, at])).any())


def _cheapest_of_a_kind(
    kinds: IntArray, one: tuple[IntArray, LongArray], other: tuple[IntArray, LongArray]
) -> tuple[int, int, int] | None:
    """The least sum of costs of two rows of one kind (P,), one of each side, and these rows; None if there are none."""
    least = np.full((2, int(kinds.max(initial=0)) + 1), OPEN_BYTES // 2)
    for of, (rows, costs) in zip(least, (one, other), strict=True):
        np.minimum.at(of, kinds[rows], costs)
    kind = least.sum(axis=0).argmin()
    left, right = (
        rows[(kinds[rows] == kind) & (costs == of[kind])] for of, (rows, costs) in zip(least, (one, other), strict=True)
    )
    return (int(least[:, kind].sum()), int(left[0]), int(right[0])) if len(left) and len(right) else None


def _with_leaders(
    problem: Problem, placed: IntArray, lacking: BoolArray, rank: int, wanted: Windows, led: IntArray | None = None
) -> IntArray:
    """The same replicas (P, W), except of `lacking` partitions (P,): each gets one on a broker of a lower rank. It
    exchanges brokers with a replica in the same rack, of its topic, else of the smallest partitions; or it moves.

    InfeasibleError if `apart` asks for it (NEVER_LEADS) and neither is possible. `led` (P,): who must lead, -1: any.
    """
    if not lacking.any():
        return placed
    # Counted once, because there may be tens of thousands of such partitions.
    placed, there = placed.copy(), placed >= 0
    sizes = np.repeat(problem.size_bytes, there.sum(axis=1))
    held = np.zeros((2, len(problem.targets)), dtype=np.int64)
    np.add.at(held[0], placed[there], 1)
    np.add.at(held[1], placed[there], sizes)
    moves = rows_to_place(problem) & (problem.rebalance == "all") & (True if led is None else led < 0)
    by_topic = np.argsort(problem.topic_of, kind="stable")
    ends = np.searchsorted(problem.topic_of[by_topic], np.arange(len(problem.topic_names) + 1))
    small = np.flatnonzero(moves)[np.argsort(problem.size_bytes[moves], kind="stable")[:EXCHANGE_PARTNERS]]
    for row in np.flatnonzero(lacking).tolist():
        alike = by_topic[ends[problem.topic_of[row]] : ends[problem.topic_of[row] + 1]]
        for others in (alike[moves[alike]], small):
            best = min(_ways_to_lead(problem, placed, row, others, rank, held, wanted), default=None)
            if rank == NEVER_LEADS or (best is not None and best[0] == 0):
                break
        if best is None and rank == NEVER_LEADS:
            name = "{}-{}".format(*problem.partition_keys[row])
            raise InfeasibleError(f"apart: no replica of {name} can be moved to where it may be led")
        if best is not None:
            *_, other, one, new = best
            placed[other, placed[other] == new] = one
            placed[row, placed[row] == one] = new
            more = int(other == row), problem.size_bytes[row] - (0 if other == row else problem.size_bytes[other])
            held[:, new] += more
            held[:, one] -= more
    return placed


def _ways_to_lead(
    problem: Problem, placed: IntArray, row: int, others: LongArray, rank: int, held: LongArray, wanted: Windows
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Ways to a replica that leads a row with less than this rank: 1 if counts change, bytes copied in addition,
    replicas on the new broker, the row that takes the old place (the row itself: none), and both brokers. The new one
    is in the old one's rack, or in a rack that the row lacks. Only ways for `apart` may fill a disk above its limit.

    others (K,): rows that may exchange brokers with it; held (2, B): replicas and bytes on each broker.
    """
    assert problem.leader_ranks is not None
    ranks, own = problem.leader_ranks, placed[row][placed[row] >= 0]
    able = problem.targets & (ranks[problem.topic_of[row]] < rank)
    able &= may_hold(problem, row, np.arange(len(able)))
    racks = problem.broker_racks if problem.racks_matter else np.zeros_like(problem.broker_racks)
    full, size = np.zeros(len(able), dtype=bool), problem.size_bytes[row]
    if wanted.caps is not None:
        full[problem.targets] = held[0, problem.targets] >= wanted.caps[0]
    unlimited = (problem.disk_limit_bytes < 0) | (rank == NEVER_LEADS)
    room = np.where(unlimited, OPEN_BYTES, problem.disk_limit_bytes - held[1])

    def copied(of: int, coming: int, going: int) -> int:
        return int(problem.size_bytes[of]) * ((going in problem.replicas[of]) - (coming in problem.replicas[of]))

    # They keep another replica that leads.
    others = others[(replica_ranks(problem, ranks, placed[others], others) < rank).sum(axis=1) > 1]
    now, today, sizes = placed[others], problem.replicas[others], problem.size_bytes[others]
    for here in own.tolist():
        off, left = ~(now == here).any(axis=1), (today == here).any(axis=1)
        for there in np.flatnonzero(able & ((racks == racks[here]) | ~np.isin(racks, racks[own]))).tolist():
            if not full[there] and size <= room[there]:
                yield 1, copied(row, there, here), int(held[0, there]), row, here, there
            more = size - sizes
            trades = ((more <= 0) | (more <= room[there])) & ((more >= 0) | (-more <= room[here])) & off
            trades &= (now == there).any(axis=1) & (racks[here] == racks[there]) & may_hold(problem, others, here)
            trading = np.flatnonzero(trades)
            if len(trading):
                costs = sizes[trading] * ((today[trading] == there).any(axis=1).astype(np.int64) - left[trading])
                cost = copied(row, there, here) + int(costs.min())
                yield 0, cost, int(held[0, there]), int(others[trading[costs.argmin()]]), here, there


@dataclass(frozen=True)
class Choices:
    """Every replica that could lead one of the free rows (M): parallel arrays (K,) of row, topic and target broker.

    `brokers` are numbered within the target brokers; `fixed` (T, Bt) counts the leaders that are settled.
    """

    at: IntArray
    topics: IntArray
    brokers: IntArray
    targets: IntArray
    costs: LongArray
    rows: int
    fixed: LongArray

    @classmethod
    def of(cls, problem: Problem, placed: IntArray, free: BoolArray, able: BoolArray) -> Self:
        """The choices for the rows of the mask `free`, among the replicas that are able to lead (P, W)."""
        rows = np.flatnonzero(free)
        at, slots = np.nonzero(able[rows])
        brokers, of = placed[rows[at], slots], rows[at]
        targets, here = np.flatnonzero(problem.targets).astype(np.int32), target_numbers(problem)
        led = led_now(problem)[of]
        costs = 2 * (led[:, 0] != brokers) + (led[:, 1] != brokers)
        settled = np.where(free, -1, problem.leaders)[:, None]
        fixed = counts_by_group(problem, settled, problem.topic_of, len(problem.topic_names))
        return cls(
            at.astype(np.int32), problem.topic_of[of], here[brokers], targets, costs.astype(np.int64), len(rows), fixed
        )


def network(
    choices: Choices, wanted: Windows
) -> tuple[min_cost_flow.Arcs, tuple[min_cost_flow.Windowed, ...], LongArray]:
    """Arcs, windows and the nodes' supplies; the first arcs are those of the choices, the last node is the sink."""
    topics, count = choices.fixed.shape
    cells = topics * count if wanted.topic_leaders is not None else 0
    brokers = np.arange(count, dtype=np.int32) + choices.rows + cells
    sink = choices.rows + cells + count
    fixed, ends = choices.fixed.sum(axis=0), np.full_like(brokers, sink)
    caps = None if wanted.caps is None else wanted.caps[1] - fixed
    windowed = [min_cost_flow.window(brokers, ends, wanted.leaders - fixed, choices.rows, BROKER_PRICE, caps)]
    heads = brokers[choices.brokers]
    if wanted.topic_leaders is not None:
        heads = choices.rows + choices.topics * count + choices.brokers
        nodes = np.arange(cells, dtype=np.int32) + choices.rows
        bounds = (wanted.topic_leaders - choices.fixed).reshape(2, -1)
        windowed.append(min_cost_flow.window(nodes, np.tile(brokers, topics), bounds, choices.rows, TOPIC_PRICE))
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[: choices.rows], supplies[sink] = 1, -choices.rows
    return min_cost_flow.arcs(choices.at, heads.astype(np.int32), 1, choices.costs), tuple(windowed), supplies


def least_above_caps(choices: Choices, wanted: Windows) -> Windows:
    """The windows with caps raised to what brokers lead if leaders are above the caps by as little as can be."""
    assert wanted.caps is not None
    replicas, most = wanted.caps
    capped = replace(wanted, leaders=np.stack([np.zeros_like(most), most]), topic_leaders=None, caps=None)
    least = min_cost_flow.solve_excess_first(*network(choices, capped))
    assert least is not None, "without caps, every choice of leaders is possible"
    led = choices.fixed.sum(axis=0) + np.bincount(choices.brokers[least.units > 0], minlength=len(most))
    return replace(wanted, caps=np.stack([replicas, np.maximum(most, led)]))


def _in_order(problem: Problem, placed: IntArray, leaders: IntArray, led: IntArray) -> IntArray:
    """Each row's replicas sorted: the leader first, then by today's position, then by broker; -1 goes last.

    Where replicas and leader stay, a preferred leader in no ISR stays first, unless another (P,) must lead: it may come
    back, and until then it isn't elected (see `broker_loads.leaders_after`).
    """
    if problem.out_of_sync is not None:
        lists = today(problem)
        stays = (leaders == problem.leaders) & (np.sort(placed) == np.sort(lists)).all(axis=1)
        stays &= np.append(problem.out_of_sync, False)[lists[:, 0]] & ((led < 0) | (led == lists[:, 0]))
        stays &= may_lead(problem, lists, np.arange(problem.rows))[:, 0]
        leaders = np.where(stays, lists[:, 0], leaders)
    now = taken_over(problem, problem.replicas)
    match = (placed[:, :, None] == now[:, None, :]) & (placed[:, :, None] >= 0)
    position = np.where(match.any(axis=2), match.argmax(axis=2), now.shape[1] + placed)
    key = np.where(placed == leaders[:, None], -1, position)
    key = np.where(placed < 0, np.iinfo(np.int32).max, key)
    return np.take_along_axis(placed, np.argsort(key, axis=1, kind="stable"), axis=1)


def even_out(
    problem: Problem,
    placed: IntArray,
    leaders: IntArray,
    free: BoolArray,
    wanted: Windows,
    grown: Sequence[Scenario] = (),
) -> IntArray:
    """The leaders (P,), -1 for none, with those of the free rows (P,) exchanged until `network_out` fits best."""
    if wanted.network_out is None or not free.any():
        return leaders
    targets, here, rows = np.flatnonzero(problem.targets), target_numbers(problem), np.flatnonzero(free)
    on = np.zeros((len(rows), len(targets)), dtype=bool)
    on[np.arange(len(rows)), here[leaders[rows]]] = True
    # Windows (D, 2, Bt) of bytes that leaders send, and bytes of each partition (D, P): on average, and by scenario.
    windowed = [(wanted.network_out, problem)]
    windowed += [(each.windows.network_out, each.problem) for each in grown if each.windows.network_out is not None]
    windows, sent = np.stack([window for window, _ in windowed]), np.stack([sent_by_leader(of) for _, of in windowed])
    placement = SearchPlacement(of_leaders(problem, placed, leaders, here, rows, (wanted, windows, sent), on), on)
    # If only forced changes are allowed, no leader changes for this window alone.
    repair(placement, for_nothing=problem.forced_only)
    polish(placement)
    chosen = leaders.copy()
    chosen[rows] = targets[placement.on.argmax(axis=1)]
    return chosen
