"""Places new partitions as evenly as possible, because none of their bytes are copied.

The optimum's flow only knows how far counts are outside their windows. It would fill brokers that are far below them,
for example new ones, one after the other. Here a min-cost flow fills all of them evenly: each further replica on a
broker, and each further one of a topic there, costs more than the last. Existing partitions stay where the plan puts
them. Costs rank how far brokers are outside their windows before how far topics on brokers are, and that before how
much brokers hold within their windows. Leaders are chosen among the replicas in the same way.

A limit of bytes on a disk is a side constraint that a flow can't express, but a limit on the number of replicas of one
size is an arc's capacity. With one size, that is exact. With several, a broker that is too full has at least one
replica less of one of these sizes in every placement within the limits, so there is a case for each of them. The
cheapest case comes first, so the first placement within the limits is the most even one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple, Self

import numpy as np

from planner.model.errors import InfeasibleError
from planner.model.problem import BoolArray, FloatArray, IntArray, LongArray, Problem, may_be_elected
from planner.scoring import broker_loads
from planner.scoring.fair_shares import disk_weights, network_weights, rack_rule
from planner.scoring.growth_scenarios import scenarios
from planner.scoring.windows import OPEN_BYTES, Windows, byte_excess, excess_of_brokers, excess_of_topics
from planner.strategies import leaders
from planner.strategies.flow import min_cost_flow
from planner.strategies.work_limits import DISK_FLOWS, LEVEL_CELLS

# Which of the four kinds of evenness count; the last ones are left out if the costs of all four are too large.
_Kinds = tuple[int, int, int, int]
_KINDS: tuple[_Kinds, ...] = ((1, 1, 1, 1), (1, 1, 1, 0), (1, 1, 0, 0), (1, 0, 0, 0))


class Placing(NamedTuple):
    """The cost of a placement of N rows, and (N, B) True if a row has a replica on the broker."""

    cost: int
    on: BoolArray


# The cheapest placement with at most so many replicas of each size on each broker (K, B); None if there is none.
Place = Callable[[LongArray], Placing | None]


@dataclass(frozen=True, eq=False)
class DiskRoom:
    """Bytes of N rows to place on B brokers, and what the brokers hold without them.

    sizes (K,) different sizes, largest first · size_of (N,) index of each row's size, -1: empty · bytes_on (B,)
    room (B,) bytes until a disk is at its limit, OPEN_BYTES without a limit
    """

    sizes: LongArray
    size_of: IntArray
    bytes_on: LongArray
    room: LongArray

    @classmethod
    def of(cls, problem: Problem, assignment: IntArray, rows: IntArray) -> Self | None:
        """The room for rows (n,) with all others placed by an assignment (P, W); None if they are empty."""
        of_rows = problem.size_bytes[rows]
        sizes = np.unique(of_rows[of_rows > 0])[::-1]
        if not len(sizes):
            return None
        others = assignment.copy()
        others[rows] = -1
        bytes_on, limits = broker_loads.loads(problem, others)[0], problem.disk_limit_bytes[problem.targets]
        size_of = np.where(of_rows > 0, np.searchsorted(-sizes, -of_rows), -1)
        return cls(sizes, size_of, bytes_on, np.where(limits < 0, OPEN_BYTES, np.maximum(limits - bytes_on, 0)))

    def counts(self, is_on: BoolArray) -> LongArray:
        """(K, B): replicas of each size on each broker."""
        return np.stack([is_on[self.size_of == size_index].sum(axis=0) for size_index in range(len(self.sizes))])

    def too_full(self, is_on: BoolArray) -> IntArray:
        """The brokers whose disks a placement (N, B) fills above their limits."""
        return np.flatnonzero(self.sizes @ self.counts(is_on) > self.room)

    def within(self, placed: Placing, place: Place) -> BoolArray | None:
        """(N, B): the cheapest placement within the limits, if `placed` is the cheapest without limits.

        After a number of flows, the largest replicas are placed first, which may not be the cheapest. None if there is
        no placement within the limits, or if none was found.
        """
        if int(self.sizes @ self.counts(placed.on).sum(axis=1)) > sum(self.room.tolist()):
            return None
        root = np.minimum(self.room // self.sizes[:, None], len(self.size_of))
        queue, tried_limits, cases = list[tuple[int, int, LongArray, BoolArray]](), set[bytes](), [root]
        flows = min(DISK_FLOWS, 1 + LEVEL_CELLS // placed.on.size)
        while cases or queue:
            for limits in cases:
                if len(tried_limits) < flows and limits.tobytes() not in tried_limits:
                    tried_limits.add(limits.tobytes())
                    if (placing := place(limits)) is not None:
                        heappush(queue, (placing.cost, len(tried_limits), limits, placing.on))
            cases = []
            if queue:
                _, _, limits, is_on = heappop(queue)
                if not len(full := self.too_full(is_on)):
                    return is_on
                counts = self.counts(is_on)[:, full[0]]
                for size_index in np.flatnonzero(counts):
                    cases.append(limits.copy())
                    cases[-1][size_index, full[0]] = counts[size_index] - 1
        return self._largest_first(root, place) if len(tried_limits) == flows else None

    def _largest_first(self, limits: LongArray, place: Place) -> BoolArray | None:
        """A placement within the limits: each size where those larger than it leave room."""
        limits, is_on = limits.copy(), None
        for size_index in range(len(self.sizes)):
            room = self.room - self.sizes[:size_index] @ limits[:size_index]
            limits[size_index:] = np.minimum(limits[size_index:], room // self.sizes[size_index:, None])
            if (placing := place(limits)) is None:
                return None
            is_on = placing.on
            limits[size_index] = self.counts(is_on)[size_index]
        return is_on


@dataclass(frozen=True, eq=False)
class Filling:
    """N rows, sorted by topic (0 to T - 1), and the replicas that the B brokers hold without them.

    topics, factors (N,) · allowed (N, B) · racks (B,) · least, most (N, R) in each rack · cells (T, B) replicas of each
    topic · counts (B,) of all topics · topic_windows (2, T, B) · windows (2, B) · weights (B,) of shares · caps (B,)
    most replicas of all topics, None: any number · disks: room for the rows' bytes, None: they are empty
    """

    topics: IntArray
    factors: IntArray
    allowed: BoolArray
    racks: IntArray
    least: IntArray
    most: IntArray
    cells: LongArray
    counts: LongArray
    topic_windows: LongArray
    windows: LongArray
    weights: LongArray
    caps: LongArray | None
    disks: DiskRoom | None = None

    @classmethod
    def of_replicas(cls, problem: Problem, assignment: IntArray, windows: Windows, rows: IntArray) -> Self:
        """Replicas of these rows (n,), on brokers that may take new ones."""
        rule, targets, usable = rack_rule(problem), np.flatnonzero(problem.targets), problem.open_targets
        everywhere = np.ones((len(rows), len(targets)), dtype=bool)
        topics, cells, counts = _counts_of_others(problem, assignment, rows)
        topic_numbers = np.unique(problem.topic_of[rows])
        return cls(
            topics=topics,
            factors=problem.replication_factors[rows],
            allowed=everywhere if usable is None else usable[problem.topic_of[rows]],
            racks=rule.rack_of,
            least=rule.least[rule.kinds[rows]],
            most=rule.most[rule.kinds[rows]],
            cells=cells,
            counts=counts,
            topic_windows=windows.topic_replicas[:, topic_numbers],
            windows=windows.replicas,
            weights=disk_weights(problem),
            caps=None if windows.caps is None else windows.caps[0],
            disks=DiskRoom.of(problem, assignment, rows),
        )

    @classmethod
    def of_leaders(cls, problem: Problem, assignment: IntArray, windows: Windows, rows: IntArray) -> Self:
        """Leaders on each row's own brokers; if no window limits topics' leaders, as few of a topic per broker as can
        be.
        """
        leading = broker_loads.leaders_after(problem, assignment)[:, None]
        topics, cells, counts = _counts_of_others(problem, leading, rows)
        leader_counts = broker_loads.counts_by_group(problem, leading, np.zeros_like(problem.topic_of), 1)[0]
        topic_numbers = np.unique(problem.topic_of[rows])
        ones = np.ones((len(rows), 1), dtype=np.int32)
        candidates = np.where(may_be_elected(problem, assignment, rows), assignment[rows], -1)
        no_windows = np.zeros((2, *cells.shape), dtype=np.int64)
        return cls(
            topics=topics,
            factors=ones[:, 0],
            allowed=broker_loads.counts_by_group(problem, candidates, np.arange(len(rows)), len(rows)) > 0,
            racks=np.zeros(cells.shape[1], dtype=np.int32),
            least=ones,
            most=ones,
            cells=cells,
            counts=counts,
            topic_windows=no_windows if windows.topic_leaders is None else windows.topic_leaders[:, topic_numbers],
            windows=windows.leaders,
            weights=network_weights(problem),
            # While a broker is out of sync, others may lead more than their caps.
            caps=None if windows.caps is None else np.maximum(windows.caps[1], leader_counts),
        )


def levelled(problem: Problem, assignment: IntArray, windows: Windows) -> IntArray:
    """The assignment (P, W) with the new partitions placed and led most evenly; all others keep their replicas.

    It is returned unchanged if that would fill disks further above their limits, or else take bytes or counts further
    outside the windows of the problem's balance, or if no leaders of such a placement keep their caps.
    """
    rows = np.flatnonzero(problem.is_new)
    if len(rows) * int(problem.targets.sum()) > LEVEL_CELLS:
        return assignment
    lists = assignment.copy()
    is_on = filled(Filling.of_replicas(problem, assignment, windows, rows))
    index, brokers = np.nonzero(is_on)
    lists[rows] = -1
    lists[rows[index], np.arange(len(index)) - np.searchsorted(index, index)] = np.flatnonzero(problem.targets)[brokers]
    lists = leaders.leadable(problem, lists, windows)
    try:
        ordered = leaders.choose_leaders(problem, lists, windows, scenarios(problem))
    except InfeasibleError:
        return assignment
    leads = filled(Filling.of_leaders(problem, ordered, windows, rows))
    # The leader first, and the others in cyclic order after it: the next one in the list takes over from a leader, and
    # in ascending lists that would always be the same broker.
    first, of_rows = np.flatnonzero(problem.targets)[leads.argmax(axis=1)], ordered[rows]
    largest = np.iinfo(np.int32).max
    turns = np.where(of_rows >= first[:, None], of_rows, of_rows + (largest >> 1))
    order = np.argsort(np.where(of_rows < 0, largest, turns), axis=1, kind="stable")
    ordered[rows] = np.take_along_axis(of_rows, order, axis=1)
    before, after = (_total_excess(problem, each, windows) for each in (assignment, ordered))
    moved = (np.sort(ordered) != np.sort(assignment))[~problem.is_new].any()
    return assignment if moved or after > before else ordered


def filled(filling: Filling) -> BoolArray:
    """(N, B): True if a row has a replica on the broker; within the limits of disks, if such a placement is found."""
    for kinds in _KINDS:
        try:
            placed = _cheapest(filling, kinds)
            assert placed is not None, "the rows have a placement already"
            if filling.disks is None or not len(filling.disks.too_full(placed.on)):
                return placed.on
            within_limits = filling.disks.within(placed, partial(_cheapest, filling, kinds))
            return placed.on if within_limits is None else within_limits
        except min_cost_flow.CostRangeError:
            continue
    raise AssertionError("ranks alone always fit")


def _cheapest(filling: Filling, kinds: _Kinds, limits: LongArray | None = None) -> Placing | None:
    """The cheapest placement, with at most so many replicas of each size on each broker (K, B); None if there is none.

    CostRangeError if the costs of these kinds of evenness are too large.
    """
    plain, supplies = _network(filling, kinds, limits)
    solved = min_cost_flow.solve(plain, (), supplies)
    if solved is None:
        return None
    rows, brokers = np.nonzero(filling.allowed)
    chosen = solved.units[: len(rows)] > 0
    is_on = np.zeros(filling.allowed.shape, dtype=bool)
    is_on[rows[chosen], brokers[chosen]] = True
    return Placing(solved.cost, is_on)


def _total_excess(problem: Problem, assignment: IntArray, windows: Windows) -> tuple[int, int]:
    """Bytes above disks' limits; the weight of everything outside the windows, with today's loads and in scenarios."""
    leading, topics = broker_loads.leaders_after(problem, assignment), len(problem.topic_names)
    loads = broker_loads.by_group(problem, assignment, leading, problem.topic_of, topics, len(broker_loads.MEASURES))
    in_all, limits = loads.sum(axis=0), problem.disk_limit_bytes[problem.targets]
    above = np.maximum(in_all[broker_loads.MEASURES.index("size_bytes")] - limits, 0)[limits >= 0].sum()
    growth = [byte_excess(each.windows, broker_loads.loads(each.problem, assignment)) for each in scenarios(problem)]
    of_brokers = excess_of_brokers(windows, problem.balance, in_all, in_all[2:])
    of_topics = excess_of_topics(windows, problem.balance, loads)
    return int(above), sum(int(each.sum()) for each in (of_topics, of_brokers, *growth))


def _counts_of_others(problem: Problem, replicas: IntArray, rows: IntArray) -> tuple[IntArray, LongArray, LongArray]:
    """The topics of the rows, numbered from 0 (N,), and how many of the other rows' replicas (P, …) target brokers
    hold: of those topics (T, B), and of all topics (B,).
    """
    numbers, topics = np.unique(problem.topic_of[rows], return_inverse=True)
    others = np.flatnonzero(~problem.is_new)
    counts = broker_loads.counts_by_group(problem, replicas[others], problem.topic_of[others], len(problem.topic_names))
    return topics.astype(np.int32), counts[numbers], counts.sum(axis=0)


def _network(filling: Filling, kinds: _Kinds, limits: LongArray | None) -> tuple[min_cost_flow.Arcs, LongArray]:
    """Row → (row, rack) → (topic, broker) → broker → sink; the first arcs are those of `allowed`, row by row.

    With `limits` (K, B), a topic whose replicas have a size goes through (size, broker) before the broker.
    """
    count, brokers = filling.allowed.shape
    racks, topics = filling.most.shape[1], len(filling.cells)
    first_cell = count * (1 + racks)
    first_size = first_cell + topics * brokers
    first_broker = first_size + (0 if limits is None else limits.size)
    sink = first_broker + brokers
    rows, columns = np.nonzero(filling.allowed)
    in_topic, in_all, on_disk = _costs(filling, kinds, min_cost_flow.largest_cost(sink + 1))
    cells, numbers = (axis.ravel() for axis in np.indices((topics, brokers)))
    each_row, each_rack = (axis.ravel() for axis in np.indices((count, racks)))
    broker_arcs = _rising_arcs(first_broker + np.arange(brokers), np.full(brokers, sink), in_all)
    if filling.caps is not None:
        has_room = (filling.caps - filling.counts)[:, None] > np.arange(in_all.shape[1])
        broker_arcs = replace(broker_arcs, capacities=has_room.ravel().astype(np.int64))
    after_cell, of_sizes = first_broker + numbers, list[min_cost_flow.Arcs]()
    if limits is not None and filling.disks is not None:
        # All new partitions of a topic have the same size.
        size = filling.disks.size_of[np.unique(filling.topics, return_index=True)[1]][cells]
        after_cell = np.where(size < 0, after_cell, first_size + size * brokers + numbers)
        size_nodes = np.arange(limits.size)
        of_sizes = [min_cost_flow.arcs(first_size + size_nodes, first_broker + size_nodes % brokers, limits.ravel(), 0)]
    plain = min_cost_flow.join(
        min_cost_flow.arcs(
            count + rows * racks + filling.racks[columns],
            first_cell + filling.topics[rows] * brokers + columns,
            1,
            on_disk[rows, columns],
        ),
        min_cost_flow.arcs(
            each_row, count + each_row * racks + each_rack, filling.most.ravel(), 0, filling.least.ravel()
        ),
        _rising_arcs(first_cell + cells * brokers + numbers, after_cell, in_topic),
        *of_sizes,
        broker_arcs,
    )
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[:count] = filling.factors
    supplies[sink] = -int(filling.factors.sum())
    return plain, supplies


def _rising_arcs(tails: IntArray, heads: IntArray, costs: LongArray) -> min_cost_flow.Arcs:
    """An arc for each further unit, at its cost (K, units)."""
    units = costs.shape[1]
    return min_cost_flow.arcs(np.repeat(tails, units), np.repeat(heads, units), 1, costs.ravel())


def _costs(filling: Filling, kinds: _Kinds, largest: int) -> tuple[LongArray, LongArray, LongArray]:
    """The cost of each further replica: of a topic on a broker (T × B, most of a topic), on a broker (B, N), and of
    each row's replica on a broker's disk (N, B).

    Each kind of evenness outweighs all units of the next one. Costs are ranks, because only their order matters.
    """
    total = int(filling.factors.sum())
    most = int(np.bincount(filling.topics).max())
    on_disk: LongArray = np.zeros(filling.allowed.shape, dtype=np.int64)
    if (disks := filling.disks) is not None:
        # The larger a row, the more it matters how full a disk is.
        by_size = np.where(disks.size_of < 0, 0, len(disks.sizes) - disks.size_of)
        on_disk = np.outer(by_size, _ranks(disks.bytes_on / filling.weights)) * kinds[3]
    # A broker's replicas with each further one, divided by its weight.
    with_each = filling.counts[:, None] + np.arange(1, len(filling.topics) + 1)
    evenness = _ranks(with_each * int(filling.weights.max()) // filling.weights[:, None]) * kinds[2]
    of_topics = _ranks(_distance(filling.cells.reshape(-1, 1) + np.arange(most), filling.topic_windows)) * kinds[1]
    outside = _ranks(_distance(filling.counts[:, None] + np.arange(len(filling.topics)), filling.windows)) * kinds[0]
    disk_price = 1 + total * int(on_disk.max())
    topic_price = disk_price * (1 + total * int(evenness.max()))
    broker_price = topic_price * (1 + total * int(of_topics.max()))
    if broker_price * (1 + int(outside.max())) > largest:
        return np.full_like(of_topics, largest + 1), outside, on_disk
    return of_topics * topic_price, outside * broker_price + evenness * disk_price, on_disk


def _distance(counts: LongArray, windows: LongArray) -> LongArray:
    """How far outside its window (2, …) a further unit is, after so many (K, units): negative below, 0 within."""
    low, high = (bound.reshape(-1, 1) for bound in windows)
    return np.minimum(counts - low, 0) + np.maximum(counts - high + 1, 0)


def _ranks(values: LongArray | FloatArray) -> LongArray:
    """The rank of each value among the distinct values."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int64)
