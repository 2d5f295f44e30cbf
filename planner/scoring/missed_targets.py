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
from planner.scoring.windows import Windows, alike, byte_window, excess_anywhere, spread, windows

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
class _Judged:
    """A window's name, the wanted tolerance, its bounds (2, K, Bt), what is held (K, Bt), and the fair shares of that.

    `usable` (K, Bt): the brokers that may hold any of it; None: all of them.
    """

    name: WindowKey
    wanted: Tolerance
    bounds: LongArray
    held: LongArray
    fair: Shares
    usable: BoolArray | None = None

    @property
    def outside(self) -> BoolArray:
        """(K,): True if some broker is outside."""
        return ((self.held < self.bounds[0]) | (self.held > self.bounds[1])).any(axis=1)

    @property
    def spread(self) -> LongArray:
        """(K,): most minus fewest, on the brokers that may hold any."""
        return spread(self.held, self.usable)

    @property
    def of_topics(self) -> bool:
        """True if there is a window for each topic."""
        return self.name.startswith("topic_")

    @property
    def missed(self) -> bool:
        """True if some broker is outside, unless all have the same window and differ by no more than its spread."""
        return bool(excess_anywhere(self.bounds, self.held, 1, self.wanted).any())


def relaxed(basis: ScoringBasis, assignment: IntArray) -> tuple[RelaxedRow, ...]:
    """The windows that an assignment (P, W) misses: those of the whole cluster first, then those of topics."""
    found, problem = list[RelaxedRow](), basis.problem
    for each in _judged(problem, basis.windows, assignment):
        if each.name not in BYTE_WINDOWS:
            found += _named(problem, each)
        # A disk's limit isn't a window: it is left out, and a window that it cuts gets its own upper end back.
        elif (around := byte_window(each.fair, each.wanted)) is not None:
            low, high = each.bounds
            found += _named(problem, replace(each, bounds=np.stack([low, np.maximum(high, around[1])])))
    found += (
        structs.replace(row, why=f"on {hour.name}: {row.why}", hour=hour.name)
        for hour in basis.scenarios
        if hour.of_hour
        for each in _of_bytes(hour.problem, hour.windows, assignment)
        for row in _named(hour.problem, each)
    )
    return tuple(sorted(found, key=lambda row: row.topic is not None))


def _judged(problem: Problem, windows: Windows, assignment: IntArray) -> Iterator[_Judged]:
    """All windows of `problem.balance` with what an assignment (P, W) holds."""
    wanted, fair, usable = problem.balance, fair_shares(problem), problem.allowed_targets
    leaders = leaders_after(problem, assignment)
    of_topics = by_group(problem, assignment, leaders, problem.topic_of, len(problem.topic_names), 2)
    replicas, leaders = of_topics.swapaxes(0, 1)
    of_all = replicas.sum(axis=0, keepdims=True), leaders.sum(axis=0, keepdims=True)
    yield _Judged("replicas", wanted.replicas, windows.replicas[:, None], of_all[0], fair.replicas)
    yield _Judged("leaders", wanted.leaders, windows.leaders[:, None], of_all[1], fair.leaders)
    yield from _of_bytes(problem, windows, assignment)
    bounds = windows.topic_replicas
    yield _Judged("topic_replicas", wanted.topic_replicas, bounds, replicas, fair.topic_replicas, usable)
    if windows.topic_leaders is not None:
        bounds = windows.topic_leaders
        yield _Judged("topic_leaders", wanted.topic_leaders, bounds, leaders, fair.topic_leaders, usable)


def _of_bytes(problem: Problem, windows: Windows, assignment: IntArray) -> Iterator[_Judged]:
    """The windows of bytes and traffic."""
    fair = fair_shares(problem)
    for name, bounds, held in zip(BYTE_WINDOWS, windows.of_bytes, loads(problem, assignment), strict=True):
        if bounds is not None:
            asked = getattr(problem.balance, name)
            yield _Judged(name, asked, bounds[:, None], held[None], getattr(fair, name))


def relaxed_of_mode(problem: Problem, assignment: IntArray) -> list[RelaxedRow]:
    """The missed windows that count: if only leaders may change, those of replicas and bytes don't."""
    of_leaders = problem.rebalance == "leaders" and not problem.forced.any()
    found = relaxed(ScoringBasis.of(problem), assignment)
    return [each for each in found if not of_leaders or each.window in _OF_LEADERS]


def _named(problem: Problem, window: _Judged) -> Iterable[RelaxedRow]:
    """The entries for a window that is missed: at most one, or one for each topic."""
    # Brokers of unlike capacity may differ by more than the spread, and are still as asked.
    weights = network_weights(problem) if window.name.endswith("leaders") else disk_weights(problem)
    by_spread = window.wanted.kind == "spread" and (weights == weights[0]).all()
    broken = window.spread > window.wanted.value if by_spread else window.outside
    rules = (problem.allowed, problem.leader_ranks, problem.caps, problem.cordoned)
    if by_spread and any(each is not None for each in rules):
        # With such rules shares may be unlike: brokers are then as asked within their own windows.
        broken = np.where(alike(window.bounds), broken, window.outside)
    if not broken.any():
        return
    reached: NDArray[Any] = window.spread
    if window.name in BYTE_WINDOWS:
        share = (window.fair.count / window.fair.parts).astype(np.float64)
        unit = np.where(share == 0, share.mean(axis=1, keepdims=True), share)
        reached = np.round(100 * (np.abs(window.held - share) / unit).max(axis=1), 2)
    for at in np.flatnonzero(broken):
        topic, why = problem.topic_names[at] if window.of_topics else None, _why(problem, window, int(at))
        yield RelaxedRow(window.name, topic, str(window.wanted), reached[at].item(), why)


def _why(problem: Problem, window: _Judged, at: int) -> str:
    if not window.outside[at]:
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
        kept = "partitions without a leader" if leaderless else "partitions that the YAML's topics key excludes"
        return f"no plan tried meets this target while {kept} keep their replicas"
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
    used = [at for at, size in enumerate(sizes.tolist()) if size]
    fewest, most = int(sizes[used].min()), int(sizes.max())
    if fewest == most:
        return ""
    names = [printable(problem.rack_names[at], 60) for at in used if sizes[at] == fewest]
    holds = counted(fewest, "broker")
    racks, each = ("rack", f"has {holds}") if len(names) == 1 else ("racks", f"have {holds} each")
    others = "the other rack" if len(used) - len(names) == 1 else "other racks up to"
    return f": {racks} {first_names(names)} {each}, {others} {most}"


def _why_not_led(problem: Problem) -> str:
    off = problem.out_of_sync
    if off is not None and (off & problem.targets).any():
        return f"{brokers(problem.broker_ids[off & problem.targets].tolist())} can't lead: in no ISR"
    rules = "" if problem.leader_ranks is None else ", and the rules on who leads"
    within = "" if problem.budget.leaders_changed is None else " within the budget,"
    if problem.rebalance == "leaders":
        return f"not reached{within} with the replicas where they are{rules}"
    if within:
        return f"not reached{within} with the replicas that are placed{rules}"
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


def missed(problem: Problem, assignment: IntArray) -> tuple[str, ...]:
    """The windows of `problem.balance` that an assignment (P, W) misses, by their keys."""
    judged = _judged(problem, windows(problem, problem.balance), assignment)
    return tuple(each.name for each in judged if each.wanted.kind != "none" and each.missed)


def reached(problem: Problem, assignment: IntArray) -> Balance:
    """`problem.balance` with each window that an assignment (P, W) misses widened just enough for the assignment.

    A window that is missed at any width, because a broker's share is 0, becomes `none`.
    """
    widened = {name: _widened(problem, assignment, name) for name in missed(problem, assignment)}
    return replace(problem.balance, **widened)


def _widened(problem: Problem, assignment: IntArray, name: str) -> Tolerance:
    """The narrowest tolerance of a window, of the same kind, that the assignment keeps."""
    asked = getattr(problem.balance, name)
    unit = _HUNDREDTHS if asked.kind == "percent" else 1

    def keeps(width: int) -> bool:
        wider = replace(problem.balance, **{name: Tolerance(asked.kind, width / unit)})
        return name not in missed(replace(problem, balance=wider), assignment)

    # Doubled until it holds, then bisected: it is missed at `below` and holds at `above`.
    below = int(asked.value * unit)
    above = 2 * below + 1
    while not keeps(above):
        if above > _WIDEST * unit:
            return NO_TOLERANCE
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if keeps(middle) else (middle, above)
    return Tolerance(asked.kind, above / unit)
