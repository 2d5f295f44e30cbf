"""The windows that a plan misses: what was asked for, what the plan reaches and why; and the balance it reaches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from planner.model.balance import BYTE_WINDOWS, NO_TOLERANCE, Balance, Tolerance
from planner.model.document_fields import Count, NotNegative, Section, Window, doc
from planner.model.formats import brokers, counted, first_names, printable
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.broker_loads import by_group, leaders_after, loads
from planner.scoring.fair_shares import Shares, disk_weights, fair_shares, network_weights, sent_by_leader
from planner.scoring.score import ScoringBasis
from planner.scoring.windows import Windows, byte_window, equal_for_all, excess_anywhere, spread, windows

WindowKey = Literal[
    "replicas", "leaders", "topic_replicas", "topic_leaders", "disk", "network_in", "network_out", "log_dirs"
]
SharedWindow = Literal["replicas", "leaders", "disk", "network_in", "network_out"]


# The windows that depend on where replicas are. A bound on bytes holds for these; changes of leaders copy nothing.
OF_REPLICAS = ("replicas", "topic_replicas", "disk", "network_in")
_OF_LEADERS = ("leaders", "topic_leaders", "network_out")
# Percentages are widened in hundredths of a percent.
_HUNDREDTHS = 100
# No cluster needs a million replicas or percent: a window that is missed even then holds at no width.
_WIDEST = 1 << 20


class RelaxedRow(Section, frozen=True):
    """One window that is not met."""

    window: Annotated[WindowKey, doc("Which window.")]
    topic: Annotated[str | None, doc("The topic; null where the window is over all topics.")]
    wanted: Annotated[Window, doc("What is asked for: a spread (1), a percentage around the fair share (5%), or none.")]
    reached: Annotated[
        NotNegative,
        doc(
            "The spread reached. For disk, network_in and network_out: how far the farthest broker is from its "
            "share, in percent of it, or of the brokers' mean share where its own is 0; for log_dirs the same of a "
            "broker's log dirs."
        ),
    ]
    why: Annotated[str, doc("Why it is not met.")]
    hour: Annotated[str | None, doc("The busiest hour in which it is not met; absent for the mean rates.")] = None


@dataclass(frozen=True)
class _CheckedWindow:
    """A window's name, the wanted tolerance, its bounds (2, K, Bt), what is held (K, Bt), and the fair shares of that.

    `usable` (K, Bt): the brokers that may hold any of it; None: all of them.
    """

    name: WindowKey
    tolerance: Tolerance
    bounds: LongArray
    amounts: LongArray
    shares: Shares
    usable: BoolArray | None = None

    @property
    def outside(self) -> BoolArray:
        """(K,): True if some broker is outside."""
        return ((self.amounts < self.bounds[0]) | (self.amounts > self.bounds[1])).any(axis=1)

    @property
    def spread(self) -> LongArray:
        """(K,): most minus fewest, on the brokers that may hold any."""
        return spread(self.amounts, self.usable)

    @property
    def of_topics(self) -> bool:
        """True if there is a window for each topic."""
        return self.name.startswith("topic_")

    @property
    def missed(self) -> bool:
        """True if some broker is outside, unless all have the same window and differ by no more than its spread."""
        return bool(excess_anywhere(self.bounds, self.amounts, 1, self.tolerance).any())


def relaxed(basis: ScoringBasis, assignment: IntArray) -> tuple[RelaxedRow, ...]:
    """The windows that an assignment (P, W) misses: those of the whole cluster first, then those of topics."""
    rows, problem = list[RelaxedRow](), basis.problem
    for each in _checked_windows(problem, basis.windows, assignment):
        if each.name not in BYTE_WINDOWS:
            rows += _relaxed_rows(problem, each)
        # A disk's limit isn't a window: it is left out, and a window that it cuts gets its own upper end back.
        elif (around := byte_window(each.shares, each.tolerance)) is not None:
            low, high = each.bounds
            rows += _relaxed_rows(problem, replace(each, bounds=np.stack([low, np.maximum(high, around[1])])))
    rows += (
        structs.replace(row, why=f"on {hour.name}: {row.why}", hour=hour.name)
        for hour in basis.scenarios
        if hour.of_hour
        for each in _of_bytes(hour.problem, hour.windows, assignment)
        for row in _relaxed_rows(hour.problem, each)
    )
    return tuple(sorted(rows, key=lambda row: row.topic is not None))


def _checked_windows(problem: Problem, windows: Windows, assignment: IntArray) -> Iterator[_CheckedWindow]:
    """All windows of `problem.balance` with what an assignment (P, W) holds."""
    balance, fair, usable = problem.balance, fair_shares(problem), problem.allowed_targets
    leaders = leaders_after(problem, assignment)
    of_topics = by_group(problem, assignment, leaders, problem.topic_of, len(problem.topic_names), 2)
    replicas, leaders = of_topics.swapaxes(0, 1)
    of_all = replicas.sum(axis=0, keepdims=True), leaders.sum(axis=0, keepdims=True)
    yield _CheckedWindow("replicas", balance.replicas, windows.replicas[:, None], of_all[0], fair.replicas)
    yield _CheckedWindow("leaders", balance.leaders, windows.leaders[:, None], of_all[1], fair.leaders)
    yield from _of_bytes(problem, windows, assignment)
    bounds = windows.topic_replicas
    yield _CheckedWindow("topic_replicas", balance.topic_replicas, bounds, replicas, fair.topic_replicas, usable)
    if windows.topic_leaders is not None:
        bounds = windows.topic_leaders
        yield _CheckedWindow("topic_leaders", balance.topic_leaders, bounds, leaders, fair.topic_leaders, usable)


def _of_bytes(problem: Problem, windows: Windows, assignment: IntArray) -> Iterator[_CheckedWindow]:
    """The windows of bytes and traffic."""
    fair = fair_shares(problem)
    for name, bounds, amounts in zip(BYTE_WINDOWS, windows.of_bytes, loads(problem, assignment), strict=True):
        if bounds is not None:
            tolerance = getattr(problem.balance, name)
            yield _CheckedWindow(name, tolerance, bounds[:, None], amounts[None], getattr(fair, name))


def relaxed_of_mode(problem: Problem, assignment: IntArray) -> list[RelaxedRow]:
    """The missed windows that count: if only leaders may change, those of replicas and bytes don't."""
    of_leaders = problem.rebalance == "leaders" and not problem.forced.any()
    rows = relaxed(ScoringBasis.of(problem), assignment)
    return [each for each in rows if not of_leaders or each.window in _OF_LEADERS]


def _relaxed_rows(problem: Problem, window: _CheckedWindow) -> Iterable[RelaxedRow]:
    """The entries for a window that is missed: at most one, or one for each topic."""
    # Brokers of unlike capacity may differ by more than the spread, and are still as asked.
    weights = network_weights(problem) if window.name.endswith("leaders") else disk_weights(problem)
    by_spread = window.tolerance.kind == "spread" and (weights == weights[0]).all()
    is_missed = window.spread > window.tolerance.value if by_spread else window.outside
    rules = (problem.allowed, problem.leader_ranks, problem.caps, problem.cordoned)
    if by_spread and any(each is not None for each in rules):
        # With such rules shares may be unlike: brokers are then as asked within their own windows.
        is_missed = np.where(equal_for_all(window.bounds), is_missed, window.outside)
    if not is_missed.any():
        return
    reached: NDArray[Any] = window.spread
    if window.name in BYTE_WINDOWS:
        share = (window.shares.count / window.shares.parts).astype(np.float64)
        unit = np.where(share == 0, share.mean(axis=1, keepdims=True), share)
        reached = np.round(100 * (np.abs(window.amounts - share) / unit).max(axis=1), 2)
    for index in np.flatnonzero(is_missed):
        topic, reason = problem.topic_names[index] if window.of_topics else None, _why(problem, window, int(index))
        yield RelaxedRow(window.name, topic, str(window.tolerance), reached[index].item(), reason)


def _why(problem: Problem, window: _CheckedWindow, index: int) -> str:
    if not window.outside[index]:
        return f"brokers in smaller racks hold more{_smallest_racks(problem)}"
    if problem.rebalance == "leaders" and window.name in _OF_LEADERS:
        return _why_not_led(problem)
    if problem.rebalance != "all":
        or_racks = " or breaks the rack rule" if problem.rebalance == "racks" else ""
        return f"rebalance: {problem.rebalance} moves only what has to move{or_racks}"
    if problem.deferred is not None:
        return "partitions that the budget leaves for a later step keep their replicas"
    if not problem.movable.all():
        leaderless = (problem.leaders[~problem.movable] < 0).all()
        staying = "partitions without a leader" if leaderless else "partitions that the YAML's topics key excludes"
        return f"no plan tried meets this target while {staying} keep their replicas"
    if window.name in BYTE_WINDOWS:
        columns = (problem.size_bytes, problem.bytes_in_per_sec, sent_by_leader(problem))
        largest = dict(zip(BYTE_WINDOWS, columns, strict=True))[window.name]
        if int(largest.max(initial=0)) > int(window.bounds[1].max()):
            return "a single partition is larger than the target allows"
    if window.name.endswith("leaders"):
        return _why_not_led(problem)
    rules = {"placement": problem.allowed, "the cordons": problem.cordoned}
    others = ", ".join(["the racks", *(name for name, stated in rules.items() if stated is not None)])
    return f"no plan tried meets this target together with the other targets, {others}, and the replication factors"


def _smallest_racks(problem: Problem) -> str:
    """`: rack c has 1 broker, other racks up to 3`, of the brokers that stay."""
    sizes = np.bincount(problem.broker_racks[problem.targets].clip(min=0), minlength=len(problem.rack_names))
    used = [rack for rack, size in enumerate(sizes.tolist()) if size]
    fewest, most = int(sizes[used].min()), int(sizes.max())
    if fewest == most:
        return ""
    names = [printable(problem.rack_names[rack], 60) for rack in used if sizes[rack] == fewest]
    holds = counted(fewest, "broker")
    racks, verb = ("rack", f"has {holds}") if len(names) == 1 else ("racks", f"have {holds} each")
    others = "the other rack" if len(used) - len(names) == 1 else "other racks up to"
    return f": {racks} {first_names(names)} {verb}, {others} {most}"


def _why_not_led(problem: Problem) -> str:
    out_of_sync = problem.out_of_sync
    if out_of_sync is not None and (out_of_sync & problem.targets).any():
        return f"{brokers(problem.broker_ids[out_of_sync & problem.targets].tolist())} can't lead: in no ISR"
    rules = "" if problem.leader_ranks is None else ", and the rules on who leads"
    in_budget = "" if problem.budget.leaders_changed is None else " within the budget,"
    if problem.rebalance == "leaders":
        return f"not reached{in_budget} with the replicas where they are{rules}"
    if in_budget:
        return f"not reached{in_budget} with the replicas that are placed{rules}"
    return f"impossible with the replicas placed for the fewest bytes{rules}"


class SharesRow(Section, frozen=True):
    """The fair shares of one window, where brokers have unlike ones: by racks, capacities, caps or rules."""

    window: Annotated[SharedWindow, doc("Which window.")]
    least: Annotated[Count, doc("The lowest fair share of a broker: replicas, leaders, bytes, or bytes per second.")]
    most: Annotated[Count, doc("The highest fair share of a broker, in the same unit.")]


def unlike_shares(problem: Problem) -> Iterator[SharesRow]:
    """The windows over brokers whose fair shares differ by more than one, and by more than a hundredth."""
    fair = fair_shares(problem)
    shared: tuple[SharedWindow, ...] = ("replicas", "leaders", *BYTE_WINDOWS)
    for name in shared:
        share: Shares = getattr(fair, name)
        rounded = (2 * share.count + share.parts) // (2 * share.parts)
        least, most = int(rounded.min()), int(rounded.max())
        if most - least > max(1, most // 100):
            yield SharesRow(name, least, most)


def missed_windows(problem: Problem, assignment: IntArray) -> tuple[str, ...]:
    """The windows of `problem.balance` that an assignment (P, W) misses, by their keys."""
    checked = _checked_windows(problem, windows(problem, problem.balance), assignment)
    return tuple(each.name for each in checked if each.tolerance.kind != "none" and each.missed)


def widened_to_reach(problem: Problem, assignment: IntArray) -> Balance:
    """`problem.balance` with each window that an assignment (P, W) misses widened just enough for the assignment.

    A window that is missed at any width, because a broker's share is 0, becomes `none`.
    """
    widened = {name: _widened(problem, assignment, name) for name in missed_windows(problem, assignment)}
    return replace(problem.balance, **widened)


def _widened(problem: Problem, assignment: IntArray, name: str) -> Tolerance:
    """The narrowest tolerance of a window, of the same kind, that the assignment keeps."""
    tolerance = getattr(problem.balance, name)
    unit = _HUNDREDTHS if tolerance.kind == "percent" else 1

    def keeps(width: int) -> bool:
        wider = replace(problem.balance, **{name: Tolerance(tolerance.kind, width / unit)})
        return name not in missed_windows(replace(problem, balance=wider), assignment)

    # Doubled until it holds, then bisected: it is missed at `below` and holds at `above`.
    below = int(tolerance.value * unit)
    above = 2 * below + 1
    while not keeps(above):
        if above > _WIDEST * unit:
            return NO_TOLERANCE
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if keeps(middle) else (middle, above)
    return Tolerance(tolerance.kind, above / unit)
