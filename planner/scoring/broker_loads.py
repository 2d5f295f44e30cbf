"""The load of an assignment on each broker: replicas, leaders, bytes and network traffic; and the traffic across racks.

Every replica of a partition receives what producers write to it: the leader from the producers, a follower by its
fetches. The leader sends that to each follower, and sends consumers what they read.
"""

from __future__ import annotations  # scipy.sparse in an annotation would import it

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.document_fields import PPM
from planner.model.growth_forecast import compounded
from planner.model.load_history import HOURS_OF_WEEK
from planner.model.problem import FloatArray, IntArray, LongArray, Problem

MEASURES = ("replicas", "leaders", "size_bytes", "network_in", "network_out")
# Measures if no rate is known: traffic would be zeros that a sweep adds up millions of times.
_WITHOUT_RATES = 3


def measure_count(problem: Problem) -> int:
    """The number of MEASURES, counted from the first, that aren't all 0 in this problem."""
    has_rates = bool(problem.bytes_in_per_sec.any() or problem.bytes_out_per_sec.any())
    return len(MEASURES) if has_rates else _WITHOUT_RATES


def leaders_after(problem: Problem, assignment: IntArray) -> IntArray:
    """(P,): the leaders once an assignment (P, W) is carried out, -1 for none.

    If the plan may choose the leader, it is the preferred one: an election is held if another broker leads today. The
    other partitions keep today's leader, or none. A broker that is in no ISR isn't elected while today's leader keeps
    its replica.
    """
    first, anew = assignment[:, 0], problem.may_lead_anew
    if problem.out_of_sync is not None:
        keeps_leader = (assignment == problem.leaders[:, None]).any(axis=1) & (problem.leaders >= 0)
        anew = anew & ~(np.append(problem.out_of_sync, False)[first] & keeps_leader)
    return np.where(anew, first, problem.leaders)


def loads(problem: Problem, assignment: IntArray, leaders: IntArray | None = None) -> LongArray:
    """(3, Bt): bytes, bytes/s in and bytes/s out of each target broker under an assignment (P, W).

    Leaders are those of `leaders_after`, unless others (P,) are given, -1 for none.
    """
    leading = leaders_after(problem, assignment) if leaders is None else leaders
    measures = by_group(problem, assignment, leading, np.zeros_like(problem.topic_of), 1, len(MEASURES))
    return measures[0, 2:]


def disks_at_least(problem: Problem, assignment: IntArray) -> LongArray:
    """(B,): the disk limits, raised to the bytes that an assignment (P, W) puts on a broker; -1 without a limit."""
    limits, bytes_on = problem.disk_limit_bytes.copy(), loads(problem, assignment)[0]
    limits[problem.targets] = np.where(limits[problem.targets] < 0, -1, np.maximum(limits[problem.targets], bytes_on))
    return limits


def on_all_brokers(problem: Problem, replicas: IntArray, leaders: IntArray) -> LongArray:
    """(5, B): MEASURES of every broker of the problem, including those that leave."""
    columns = np.arange(len(problem.broker_ids), dtype=np.int32)
    return _sums(problem, replicas, leaders, np.zeros_like(problem.topic_of), (1, len(MEASURES), columns))[0]


def by_group(
    problem: Problem, replicas: IntArray, leaders: IntArray, groups: IntArray, count: int, measures: int
) -> LongArray:
    """(count, measures, Bt): the first MEASURES of each group of partitions (P,) on each target broker.

    Replicas and leaders on other brokers aren't counted.
    """
    return _sums(problem, replicas, leaders, groups, (count, measures, target_numbers(problem)))


def counts_by_group(problem: Problem, replicas: IntArray, groups: IntArray, count: int) -> LongArray:
    """(count, Bt): how many replicas (N, K), -1: none, each group of rows (N,) has on each target broker."""
    return _sums(problem, replicas, replicas[:, 0], groups, (count, 1, target_numbers(problem)))[:, 0]


def target_numbers(problem: Problem) -> IntArray:
    """(B,): the number of each broker among the target brokers, -1 if it isn't one."""
    return np.where(problem.targets, np.cumsum(problem.targets) - 1, -1).astype(np.int32)


# A divisor of the hours of a week. With 18 brokers, sums over so many take 0.6 of the time of all hours at once.
_HOURS_AT_ONCE = 42
# The values of `Week.judged`. `worst_hour` is the higher one of the next two.
HOURS = ("worst_hour", "worst_hour_in", "worst_hour_out", "p99_hour_in", "p99_hour_out", "hours_above_capacity")


@dataclass(frozen=True, eq=False)
class Week:
    """The hours of the week of a problem, kept because thousands of assignments are replayed over them.

    hours (N, 2P, 168 / N): bytes/s that each replica of a partition receives, then those that its consumers read, in N
    runs of hours, so that the sums of a run fit a core's first cache. They are whole numbers as floats, whose sums are
    exact up to 2^53.
    """

    problem: Problem
    hours: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> Self | None:
        """The hours of a problem; None if they aren't known."""
        if problem.week is None:
            return None
        parts = problem.week.reshape(2 * problem.rows, HOURS_OF_WEEK // _HOURS_AT_ONCE, _HOURS_AT_ONCE)
        return cls(problem, np.ascontiguousarray(parts.swapaxes(0, 1), dtype=np.float64))

    def loads(self, assignment: IntArray, leaders: IntArray) -> LongArray:
        """(2, B, 168): bytes/s in and out of every broker of the problem under an assignment (P, W) and its leaders."""
        carried = _Traffic.of(self.problem, assignment, leaders)
        return np.concatenate([carried.loads(hours) for hours in self.hours], axis=2)

    def judged(self, assignment: IntArray, leaders: IntArray | None = None) -> tuple[int, ...]:
        """HOURS of an assignment (P, W): bytes/s, and the number of brokers' hours above capacity, -1 if no broker
        states one. A p99 is the lowest value that 99 % of all hours of the target brokers don't exceed.
        """
        problem = self.problem
        loads = self.loads(assignment, leaders_after(problem, assignment) if leaders is None else leaders)
        worst = loads.max(axis=(1, 2), initial=0)
        of_targets = loads[:, problem.targets].reshape(2, -1)
        rank = -(-99 * of_targets.shape[1] // 100) - 1
        p99 = np.partition(of_targets, rank, axis=1)[:, rank]
        return int(worst.max()), *worst.tolist(), *p99.tolist(), self.above_capacity(loads)

    def above_capacity(self, loads: LongArray) -> int:
        """Brokers' hours with more traffic (2, B, 168), in or out, than the stated capacity; -1 if none is stated."""
        limits = self.problem.network_limit
        if limits is None or not (limits >= 0).any():
            return -1
        return int(((loads > limits[:, None]) & (limits >= 0)[:, None]).any(axis=0).sum())

    def in_months(
        self, growth: FloatArray, months: int, states: Sequence[tuple[IntArray, IntArray]]
    ) -> tuple[LongArray, LongArray]:
        """(months + 1, states) each: bytes/s of the worst hour of any broker, and hours above capacity, -1 if no broker
        states one; for assignments (P, W) with leaders (P,), if topics grow by these fractions (T,) each month.

        Month 0 is now. Rates are cut so that the sum over all replicas still fits 64 bits.
        """
        worst = np.zeros((months + 1, len(states)), dtype=np.int64)
        above = np.zeros_like(worst)
        most = 2**62 // max(1, self.hours.size // 2 * (self.problem.width + 1))
        factors = compounded(growth, months).T
        carried = [_Traffic.of(self.problem, *state) for state in states]
        for month, factor in enumerate(np.tile(factors[:, self.problem.topic_of, None], (1, 2, 1))):
            for hours in self.hours:
                grown = np.rint(np.minimum(hours * factor, most))
                for index, each in enumerate(carried):
                    loads = each.loads(grown)
                    worst[month, index] = max(worst[month, index], loads.max(initial=0))
                    above[month, index] += self.above_capacity(loads)
        return worst, np.maximum(above, -1)


@dataclass(frozen=True, eq=False)
class _Traffic:
    """The traffic of each partition on brokers, (3B, 2P): a row per broker for what it receives, then for what
    followers fetch from it, then for what consumers fetch, in `total_parts` parts; a column per partition for what is
    written, then for what is read.
    """

    times: scipy.sparse.csc_array
    total_parts: int

    @classmethod
    def of(cls, problem: Problem, assignment: IntArray, leaders: IntArray) -> Self:
        """The traffic of an assignment (P, W) with leaders (P,)."""
        count, replicas = len(problem.broker_ids), assignment.T
        sources, parts, total_parts = read_from(problem, assignment, leaders)
        followers = np.maximum((replicas >= 0).sum(axis=0) - 1, 0)
        leader_rows = np.where(leaders < 0, -1, count + leaders)
        written = np.vstack([replicas, leader_rows]), np.vstack([np.ones_like(replicas), followers])
        cells, ends = [], [np.zeros(1, dtype=np.int64)]
        for rows, times in (written, (np.where(sources < 0, -1, 2 * count + sources), parts)):
            is_carried = (rows >= 0) & (times > 0)
            ends.append(is_carried.sum(axis=0))
            # All rows of a column together.
            by_column = np.ascontiguousarray(is_carried.T)
            cells.append((times.T[by_column], rows.T[by_column]))
        data, rows = (np.concatenate(each) for each in zip(*cells, strict=True))
        starts = np.concatenate(ends).cumsum()
        arrays = data.astype(np.float64), rows.astype(np.int32), starts.astype(np.int32)
        return cls(scipy.sparse.csc_array(arrays, shape=(3 * count, 2 * problem.rows)), total_parts)

    def loads(self, hours: FloatArray) -> LongArray:
        """(2, B, n): bytes/s in and out of every broker in these hours (2P, n)."""
        received, followed, consumed = (self.times @ hours).reshape(3, -1, hours.shape[1])
        return np.stack([received, followed + np.floor(consumed / self.total_parts)]).astype(np.int64)


def read_from(problem: Problem, replicas: IntArray, leaders: IntArray) -> tuple[IntArray, LongArray, int]:
    """The brokers that consumers read from, for replicas (P, W) and leaders (P,), -1: none: the leader, then the
    replicas (W + 1, P); how many parts of the read bytes they fetch from each, and how many parts are all of them.

    Consumers of a rack fetch from the leader if it is there, else from the first replica there (with KIP-392 Kafka
    takes the one that lags least), else from the leader. Consumers whose rack has no broker fetch from the leader, too.
    """
    sources = np.vstack([leaders, replicas.T])
    parts = np.zeros(sources.shape, dtype=np.int64)
    if problem.read_in_racks is None:
        parts[0] = leaders >= 0
        return sources, parts, 1
    unit = int(np.gcd.reduce(problem.read_in_racks, initial=PPM))
    # The last one is for replicas on no broker, or in no rack.
    racks, of_racks = np.append(problem.broker_racks, -1)[sources], np.append(problem.read_in_racks // unit, 0)
    for position in range(1, len(racks)):
        parts[position] = of_racks[racks[position]] * (racks[:position] != racks[position]).all(axis=0)
    total_parts = PPM // unit
    parts[0] = total_parts - parts[1:].sum(axis=0)
    parts[:, leaders < 0] = 0
    return sources, parts, total_parts


def replicated_across_racks(problem: Problem, replicas: IntArray, leaders: IntArray) -> int:
    """Bytes/s that followers fetch from leaders in other racks, for replicas (P, W) and leaders (P,); -1 is none."""
    racks = problem.broker_racks
    crossing = ((replicas >= 0) & (racks[replicas] != racks[leaders][:, None])).sum(axis=1)
    return int((np.where(leaders >= 0, crossing, 0) * problem.bytes_in_per_sec).sum())


def read_across_racks(problem: Problem, replicas: IntArray, leaders: IntArray, rack: str, *, nearest: bool) -> int:
    """Bytes/s that come from other racks if all consumers are in this one, for replicas (P, W) and leaders (P,).

    They read from leaders; with `nearest`, from a replica in their rack if there is one (KIP-392).
    """
    rack_number = problem.rack_names.index(rack) if rack in problem.rack_names else -2
    is_local = problem.broker_racks[leaders] == rack_number
    if nearest:
        is_local |= ((replicas >= 0) & (problem.broker_racks[replicas] == rack_number)).any(axis=1)
    return int(problem.bytes_out_per_sec[(leaders >= 0) & ~is_local].sum())


def _sums(
    problem: Problem, replicas: IntArray, leaders: IntArray, groups: IntArray, shape: tuple[int, int, IntArray]
) -> LongArray:
    """(count, measures, columns): the sums. `shape`: count, measures, and each broker's column or -1."""
    count, measures, column_of = shape
    columns = int(column_of.max(initial=-1)) + 1
    first = groups.astype(np.int64) * columns
    sums = np.zeros((measures, count * columns), dtype=np.int64)
    of_replicas = (problem.size_bytes, problem.bytes_in_per_sec)
    for position in replicas.T:
        rows, cells = _cells(position, first, column_of)
        sums[0] += np.bincount(cells, minlength=count * columns)
        for total, values in zip(sums[2:4], of_replicas, strict=False):
            # Exact, unlike a weighted count of floats.
            np.add.at(total, cells, values[rows])
    if measures > 1:
        rows, cells = _cells(leaders, first, column_of)
        sums[1] = np.bincount(cells, minlength=count * columns)
    if measures > _WITHOUT_RATES:
        followers = np.maximum((np.asfortranarray(replicas) >= 0).sum(axis=1) - 1, 0)
        sent_by_leader = problem.bytes_in_per_sec * followers + problem.bytes_out_per_sec
        np.add.at(sums[4], cells, sent_by_leader[rows])
    return sums.reshape(measures, count, columns).transpose(1, 0, 2)


def _cells(brokers: IntArray, first: LongArray, column_of: IntArray) -> tuple[LongArray | slice, LongArray]:
    """The partitions whose broker (P,) has a column, and the flat (group, column) of each."""
    columns = column_of[brokers]
    if brokers.min(initial=0) < 0:
        columns[brokers < 0] = -1
    if columns.min(initial=0) >= 0:
        return slice(None), first + columns
    rows = np.flatnonzero(columns >= 0)
    return rows, first[rows] + columns[rows]


def rack_leaders(problem: Problem, leaders: LongArray) -> LongArray:
    """(C,): leaders in the rack that has most, from the leaders (C, Bt) on each target broker; 0 without racks."""
    racks = problem.broker_racks[problem.targets]
    in_rack = (racks[:, None] == np.arange(len(problem.rack_names))).astype(np.int64)
    return (leaders @ in_rack).max(axis=1, initial=0)
