"""The windows: how many replicas, leaders, bytes and how much traffic each broker may hold.

A window is the tolerance around a broker's fair share (see `fair_shares`). The strategies aim at the windows, and the
score measures against them, independently of each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from planner.model.balance import BYTE_WINDOWS, Balance, Tolerance
from planner.model.build_problem import today
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.broker_loads import by_group, counts_by_group, leaders_after
from planner.scoring.fair_shares import Shares, fair_shares
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, beyond, distance, excess

# A unit beyond a window of bytes is the broker's fair share divided by this.
_BYTE_UNITS = 1000
# No more units than this are counted, so that their weights can be summed over all brokers.
_MOST_UNITS = 1 << 40
# The upper end of a window of bytes that wasn't asked for.
OPEN_BYTES = 1 << 62


@dataclass(frozen=True)
class Windows:
    """Least and most that a target broker may hold; Bt target brokers, T topics.

    Counts: replicas (2, Bt) · leaders (2, Bt) · topic_replicas (2, T, Bt) · topic_leaders the same, None if not asked
    for. Bytes, and bytes/s: disk, network_in, network_out (2, Bt), None if not asked for; byte_shares (3, Bt) are the
    fair shares of the three, rounded down. `caps` (2, Bt) are the most replicas and leaders that a broker may have
    whatever windows say, None if there are none; windows end there.
    """

    replicas: LongArray
    leaders: LongArray
    topic_replicas: LongArray
    topic_leaders: LongArray | None
    disk: LongArray | None
    network_in: LongArray | None
    network_out: LongArray | None
    byte_shares: LongArray | None
    caps: LongArray | None

    @property
    def of_bytes(self) -> tuple[LongArray | None, ...]:
        """The windows in the order of BYTE_WINDOWS."""
        return self.disk, self.network_in, self.network_out


def windows(problem: Problem, balance: Balance) -> Windows:
    """The windows that a balance asks for on this problem."""
    parts = {name: each for name, each in vars(balance).items() if each.kind == "part"}
    if parts:
        goals = windows(problem, replace(balance, **{name: each.goal for name, each in parts.items()}))
        return _parts_of_the_way(problem, goals, parts)
    fair = fair_shares(problem)
    leaders = leaders_after(problem, problem.replicas)[:, None]
    counts, leader_counts = (
        counts_by_group(problem, each, problem.topic_of, len(problem.topic_names))
        for each in (problem.replicas, leaders)
    )
    replicas, topic_replicas = _of_replicas(problem, balance, counts)
    of_bytes = (fair.disk, fair.network_in, fair.network_out)
    disk, limits = byte_window(fair.disk, balance.disk), problem.disk_limit_bytes[problem.targets]
    if (limits >= 0).any():
        # Cut to the limit of each broker's disk.
        capped = np.where(limits < 0, OPEN_BYTES, limits)
        low, high = (np.zeros_like(capped), capped) if disk is None else (disk[0], np.minimum(disk[1], capped))
        disk = np.stack([np.minimum(low, high), high])
    return Windows(
        replicas=replicas,
        leaders=_capped(
            problem, _around(fair.leaders, balance.leaders, leader_counts.sum(axis=0, keepdims=True))[:, 0], 1
        ),
        topic_replicas=topic_replicas,
        topic_leaders=(
            None
            if balance.topic_leaders.kind == "none"
            else _around(fair.topic_leaders, balance.topic_leaders, leader_counts)
        ),
        disk=disk,
        network_in=byte_window(fair.network_in, balance.network_in),
        network_out=byte_window(fair.network_out, balance.network_out),
        byte_shares=np.stack([(each.count // each.parts)[0].astype(np.int64) for each in of_bytes]),
        caps=None if problem.caps is None else problem.caps[:, problem.targets],
    )


def _parts_of_the_way(problem: Problem, goals: Windows, parts: Mapping[str, Tolerance]) -> Windows:
    """The windows, widened by the part of each broker's way from today that isn't asked, within caps and disks."""
    amounts, limits = held_today(problem), problem.disk_limit_bytes[problem.targets]
    most = {"disk": np.where(limits < 0, OPEN_BYTES, limits)}
    if goals.caps is not None:
        most |= {"replicas": goals.caps[0], "leaders": goals.caps[1]}
    wider = dict[str, Any]()
    for name, part in parts.items():
        if (goal := getattr(goals, name)) is not None:
            below, above = np.floor(beyond(goal, amounts[name]) * (1 - part.value / 100)).astype(np.int64)
            wider[name] = np.stack([goal[0] - below, np.minimum(goal[1] + above, most.get(name, OPEN_BYTES))])
    return replace(goals, **wider)


def held_today(problem: Problem) -> dict[str, LongArray]:
    """(Bt,) each: all that the target brokers hold today of each measure with a window, by the window's name."""
    group = np.zeros_like(problem.topic_of)
    names = ("replicas", "leaders", *BYTE_WINDOWS)
    return dict(zip(names, by_group(problem, today(problem), problem.leaders, group, 1, len(names))[0], strict=True))


def within_windows(
    problem: Problem, windows: Windows, is_on: BoolArray, rows: LongArray, from_broker: int, to_broker: int
) -> LongArray:
    """Those of the rows whose replica may go from one target broker to another by all windows; `is_on` (P, Bt): where
    replicas are.
    """
    topics, fits = problem.topic_of, np.ones(len(rows), dtype=bool)
    loads = (np.ones_like(problem.size_bytes), problem.size_bytes, problem.bytes_in_per_sec)
    for window, load in zip((windows.replicas, windows.disk, windows.network_in), loads, strict=True):
        if window is not None:
            fits &= load[is_on[:, to_broker]].sum() + load[rows] <= window[1, to_broker]
            fits &= load[is_on[:, from_broker]].sum() - load[rows] >= window[0, from_broker]
    from_counts, to_counts = (
        np.bincount(topics[is_on[:, broker]], minlength=len(problem.topic_names)) for broker in (from_broker, to_broker)
    )
    fits &= (from_counts > windows.topic_replicas[0, :, from_broker])[topics[rows]]
    return rows[fits & (to_counts < windows.topic_replicas[1, :, to_broker])[topics[rows]]]


def starts(problem: Problem, tolerance: Tolerance) -> range:
    """The starts at which the window of all replicas contains all brokers' shares.

    Empty if the shares differ, if no spread is asked for, or if a cap would cut a window.
    """
    fair = fair_shares(problem).replicas
    floor = fair.count // fair.parts
    if tolerance.kind != "spread" or (floor != floor[:, :1]).any():
        return range(0)
    ceil = int((-(-fair.count // fair.parts)).max())
    if problem.caps is not None and problem.caps[0, problem.targets].min() < floor[0, 0] + tolerance.value:
        return range(0)
    return range(max(0, ceil - int(tolerance.value)), int(floor[0, 0]) + 1)


def starting(windows: Windows, low: int, spread: int) -> Windows:
    """The windows, with the window of all replicas beginning at `low`."""
    lows = np.full_like(windows.replicas[0], low)
    return replace(windows, replicas=np.stack([lows, lows + spread]))


def nearest_windows(problem: Problem, balance: Balance, windows: Windows, assignment: IntArray) -> Windows:
    """The windows, with those that may begin anywhere set to begin nearest to the counts of an assignment (P, W)."""
    if balance.replicas.kind == "part":
        return windows
    counts = counts_by_group(problem, assignment, problem.topic_of, len(problem.topic_names))
    replicas, topic_replicas = _of_replicas(problem, balance, counts)
    return replace(windows, replicas=replicas, topic_replicas=topic_replicas)


def _of_replicas(problem: Problem, balance: Balance, counts: LongArray) -> tuple[LongArray, LongArray]:
    """The windows of all replicas (2, Bt) and of topics (2, T, Bt), if brokers hold so many of a topic (T, Bt)."""
    fair, allowed = fair_shares(problem), problem.allowed_targets
    in_all = _around(fair.replicas, balance.replicas, counts.sum(axis=0, keepdims=True))[:, 0]
    of_topics = _around(fair.topic_replicas, balance.topic_replicas, counts)
    if allowed is not None:
        # 0 on brokers where a topic may not be; so the windows of such topics have no other start.
        forbidden = np.zeros_like(of_topics)
        if balance.topic_replicas.kind == "none":
            # What can't leave such a broker misses no target, because none is asked for.
            staying = np.where(problem.movable[:, None], -1, problem.replicas)
            forbidden[1] = counts_by_group(problem, staying, problem.topic_of, len(problem.topic_names))
        of_topics = np.where(allowed, of_topics, forbidden)
    return _capped(problem, in_all, 0), of_topics


def _capped(problem: Problem, window: LongArray, kind: int) -> LongArray:
    """The window (2, Bt), cut at the caps on replicas (0) or leaders (1)."""
    return window if problem.caps is None else np.minimum(window, problem.caps[kind, problem.targets])


def equal_for_all(window: LongArray) -> BoolArray:
    """(K,): True if a window (2, K, Bt) is the same for all brokers."""
    same: BoolArray = (window == window[..., :1]).all(axis=(0, -1))
    return same


def spread(counts: LongArray, usable: BoolArray | None) -> LongArray:
    """(K,): most minus fewest (K, Bt), on the brokers that may hold any (K, Bt); None: on all."""
    most = counts.max(axis=1)
    if usable is None:
        return most - counts.min(axis=1)
    return most - np.where(usable, counts, most[:, None]).min(axis=1)


def opened(window: LongArray) -> LongArray:
    """A window (2, …) of this shape that allows everything."""
    return np.stack([np.zeros_like(window[0]), np.full_like(window[1], np.iinfo(np.int32).max)])


def excess_anywhere(bounds: LongArray, counts: LongArray, price: int, tolerance: Tolerance) -> LongArray:
    """As `excess`, but 0 if all brokers have the same window and differ by no more than its spread."""
    outside = excess(bounds, counts, price)
    if tolerance.kind != "spread":
        return outside
    even = counts.max(axis=-1) - counts.min(axis=-1) <= tolerance.value
    return np.where(equal_for_all(bounds) & even, 0, outside)


def byte_excess(windows: Windows, loads: LongArray) -> LongArray:
    """The weight of everything outside the windows of bytes, as `excess`: loads (..., 3, Bt) to (...).

    A unit is a thousandth of the broker's fair share, and weighs a broker's price.
    """
    total = np.zeros(loads.shape[:-2], dtype=np.int64)
    for index, bounds in enumerate(windows.of_bytes):
        if bounds is not None and windows.byte_shares is not None:
            unit = np.maximum(windows.byte_shares[index] // _BYTE_UNITS, 1)
            outside = distance(bounds, loads[..., index, :])
            total = total + np.minimum(-(-outside // unit), _MOST_UNITS).sum(axis=-1) * BROKER_PRICE
    return total


def excess_of_topics(windows: Windows, balance: Balance, counts: LongArray) -> LongArray:
    """(T,): the weight of the topics' replicas, and leaders, (T, 2, Bt) that are outside of their windows."""
    total = excess_anywhere(windows.topic_replicas, counts[:, 0], TOPIC_PRICE, balance.topic_replicas)
    if windows.topic_leaders is not None:
        total = total + excess_anywhere(windows.topic_leaders, counts[:, 1], TOPIC_PRICE, balance.topic_leaders)
    return total


def excess_of_brokers(windows: Windows, balance: Balance, counts: LongArray, loads: LongArray) -> LongArray:
    """The weight outside brokers' windows of replicas and leaders (…, 2, Bt), and of loads (…, 3, Bt)."""
    replicas = excess_anywhere(windows.replicas, counts[..., 0, :], BROKER_PRICE, balance.replicas)
    leaders = excess_anywhere(windows.leaders, counts[..., 1, :], BROKER_PRICE, balance.leaders)
    return replicas + leaders + byte_excess(windows, loads)


def _around(fair: Shares, tolerance: Tolerance, today: LongArray) -> LongArray:
    """The window (2, K, Bt) that a tolerance makes of fair shares; `today` (K, Bt) is what the brokers hold.

    A spread of two and more leaves the window's start open. The fewest replicas have to move at this start (see
    `_begin`); if shares are unlike, each is in the middle. The optimum looks for starts with fewer bytes (see
    `window_positions`).
    """
    count, brokers = fair.count, fair.parts
    floor, ceil = count // brokers, -(-count // brokers)
    match tolerance.kind:
        case "none":
            return opened(np.stack([floor, ceil]))
        case "percent":
            # Rounded first, because 115 % of 100 is 114.99999999999999 in floating point.
            low = np.ceil(np.round(count / brokers * (1 - tolerance.value / 100), 6)).astype(np.int64)
            high = np.floor(np.round(count / brokers * (1 + tolerance.value / 100), 6)).astype(np.int64)
            return np.stack([np.minimum(low, floor).clip(min=0), np.maximum(high, ceil)])
        case _:
            spread = int(tolerance.value)
            # The share is in the window's middle; doubled remainders, unlike doubled counts, stay within 64 bits.
            up = 2 * (count % brokers) >= brokers if spread % 2 == 0 else np.zeros_like(floor)
            low = floor + up - spread // 2
            if spread > 1:
                # Only if shares are equal: with rules of placement, floors may be equal although shares differ.
                is_equal = ((floor == floor[:, :1]) & (brokers == brokers[:, :1])).all(axis=1, keepdims=True)
                low = np.where(is_equal, _begin(fair, today, spread), low)
            return np.stack([low.clip(min=0), np.maximum(low + spread, spread)])


def _begin(fair: Shares, today: LongArray, spread: int) -> LongArray:
    """(K, 1): the start of a window around equal shares at which the fewest replicas move; the lowest of several.

    The higher it begins, the fewer replicas have to leave brokers above it, and the more have to arrive on brokers
    below it. Both numbers are monotonic, so the point where they meet is found by bisection.
    """
    count, brokers = fair.count[:, :1], fair.parts[:, :1]
    missing = count - today.sum(axis=1, keepdims=True)

    def moves(low: LongArray) -> tuple[LongArray, LongArray]:
        leave = np.maximum(today - low - spread, 0).sum(axis=1, keepdims=True)
        return leave + missing, np.maximum(low - today, 0).sum(axis=1, keepdims=True)

    first, last = np.maximum(-(-count // brokers) - spread, 0), count // brokers
    least = first
    while (first < last).any():
        middle = (first + last) // 2
        leave, arrive = moves(middle)
        first, last = np.where(arrive >= leave, (first, middle), (middle + 1, last))
    below = np.maximum(first - 1, least)
    return np.where(np.maximum(*moves(below)) <= np.maximum(*moves(first)), below, first)


def byte_window(fair: Shares, tolerance: Tolerance) -> LongArray | None:
    """The window (2, Bt) of a percentage around shares of bytes, None if none is asked for."""
    if tolerance.kind == "none":
        return None
    width = Fraction(str(tolerance.value)) / 100
    low, high = 1 - width, 1 + width
    count, parts = fair.count[0], fair.parts[0]
    least = -(-count * max(low.numerator, 0) // (parts * low.denominator))
    most = count * high.numerator // (parts * high.denominator)
    # A share that isn't whole has no whole number within 0 % of it.
    return np.stack([np.minimum(least, count // parts), np.maximum(most, -(-count // parts))]).astype(np.int64)
