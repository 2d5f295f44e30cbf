"""Sentences and cells about a plan that the terminal, report.md and report.html share.

This module knows neither Markdown nor terminals: the code that prints a text escapes it for its output.
"""

from collections import Counter
from collections.abc import Sequence

from planner.model import formats
from planner.model.balance import BYTE_WINDOWS
from planner.model.document_fields import LogDirRow
from planner.model.formats import UNKNOWN, amount, as_stated, counted, number, percent, printable, size, words
from planner.plan import bound_section, headline
from planner.plan.document.cluster_types import BrokerRow, HoursSection, WorstHourRow
from planner.plan.document.comparison_types import CandidateFigures, FrontFigures, ParetoRow, ScenarioRow, VariantRow
from planner.plan.document.partition_types import BatchRow, PartitionRow, PlacementRow
from planner.plan.document.plan_types import Plan
from planner.report.view import Quantity
from planner.scoring.missed_targets import RelaxedRow


def log_dirs(plan: Plan) -> list[tuple[int, LogDirRow]]:
    """(broker id, log dir) of planned log dirs: first those that replicas move to or from, then the fullest."""
    brokers = plan.log_dirs.brokers if plan.log_dirs else ()
    rows = [(broker.id, log_dir) for broker in brokers for log_dir in broker.log_dirs]
    return sorted(rows, key=lambda row: (not (row[1].bytes_in or row[1].bytes_out), -row[1].after.size_bytes))


def known_size(plan: Plan, size_bytes: int | None) -> str:
    """A size as text; unknown if the plan counts replicas."""
    return size(size_bytes) if plan.cluster.sizes_known else UNKNOWN


def plan_size(plan: Plan, size_bytes: int | None) -> Quantity:
    """A size as a value; unknown if the plan counts replicas."""
    return Quantity(size_bytes if plan.cluster.sizes_known else None, "bytes")


def completes(plan: Plan, row: CandidateFigures) -> str:
    """Whether a row does all that is asked: `yes`, `20 left`, `not even`, `moves more`.

    `nearest` is as even as possible, if no plan tried meets the targets.
    """
    left_count = row.left_to_change
    if row.moves_unforced:
        return "moves more"
    if left_count:
        return f"{number(left_count)} left"
    if not row.balance_kept:
        return "not even"
    # The plan's missed targets say nothing about other variants. Windows of log dirs don't count: each is one broker's.
    plan_variant = plan.choice.variant
    variant = row.variant if isinstance(row, ParetoRow) else row.name if isinstance(row, VariantRow) else plan_variant
    if isinstance(row, FrontFigures) and variant != plan_variant:
        return "nearest" if row.targets_missed else "yes"
    return "nearest" if any(each.window != "log_dirs" for each in plan.balance.relaxed) else "yes"


def above_share(row: CandidateFigures) -> str:
    """How far the broker furthest above its share is above it, and of what: `+25.9 % leaders`."""
    measure = {"size_bytes": "bytes"}.get(row.imbalance_measure, words(row.imbalance_measure))
    return f"+{percent(row.imbalance_percent)} {measure}".strip() if row.imbalance_percent else percent(0)


def searched(plan: Plan) -> str:
    """How many candidates were tried, by kind: `5,000 candidates (22 solved, 4,978 of Kafka's placements)`."""
    counts = plan.candidates.by_strategy
    solved = counts.get("optimum", 0) + counts.get("part_of_optimum", 0)
    drawn = sum(rows for name, rows in counts.items() if name.startswith("kafka"))
    kinds = [(solved, "solved"), (drawn, "of Kafka's placements")]
    kinds_text = ", ".join(f"{number(rows)} {noun}" for rows, noun in kinds if rows)
    return counted(plan.candidates.evaluated, "candidate") + (f" ({kinds_text})" if kinds_text else "")


def scenario(row: ScenarioRow) -> str:
    """Whether the plan meets its targets in a scenario; if not, the first brokers outside of their targets."""
    if row.feasible:
        return f"{printable(row.name, 60)}: all targets for bytes and traffic are met, and no disk is too full"
    shown = list[str]()
    for each in row.outside:
        unit = "bytes/s" if each.window.startswith("network") else "bytes"
        value, least, most = (amount(bound, unit) for bound in (each.value, each.least, each.most))
        bound, end = ("at least", least) if each.value < each.least else ("at most", most)
        target = "just outside the target:" if value == end else "target:"
        shown.append(f"{words(each.window)} {value} on broker {each.broker} ({target} {bound} {end})")
    return f"{printable(row.name, 60)}: {'; '.join(formats.first_lines(shown, 3))}"


def hours(plan: Plan) -> tuple[str, ...]:
    """The hours planned for, the worst of all 168 hours today and with the plan, and a plan for the mean alone."""
    if plan.hours is None:
        return ()
    section = plan.hours
    planned = ", ".join(row.name for row in section.planned)
    if not max(row.bytes_per_sec for row in (section.today.network_in, section.today.network_out)):
        return ("no partition has traffic in any hour",)
    ways = (
        ("in", section.today.network_in, section.plan.network_in),
        ("out", section.today.network_out, section.plan.network_out),
    )
    worst = ", ".join(
        f"{direction} {_worst_hour(before, other=(after.broker, after.name))} → {_worst_hour(after)}"
        for direction, before, after in ways
    )
    hours_today, hours_planned = section.today.above_capacity or 0, section.plan.above_capacity or 0
    above_text = (
        f"; hours of brokers above capacity: {number(hours_today)} → {number(hours_planned)}"
        if hours_today or hours_planned
        else ""
    )
    lines = [f"planned for the mean and for {planned}"] if planned else []
    lines += [f"worst broker in the worst of 168 hours, today → plan: {worst}{above_text}", *_first_months(section)]
    if mean := section.of_mean:
        extra_bytes = section.plan.bytes_moved - mean.bytes_moved
        comparison = f"{size(abs(extra_bytes))} {'less' if extra_bytes > 0 else 'more'}" if extra_bytes else "as much"
        received, sent = (amount(row.bytes_per_sec, "bytes/s") for row in (mean.network_in, mean.network_out))
        lines.append(f"a plan for the mean alone copies {comparison}; in its worst hour: in {received}, out {sent}")
    return tuple(lines)


def _worst_hour(row: WorstHourRow, other: tuple[int, str] | None = None) -> str:
    """`44.8 MB/s (broker 53, Saturday 21:00 UTC)`; without the parenthesis if `other` has the same broker and hour."""
    where = "" if other == (row.broker, row.name) else f" (broker {row.broker}, {row.name})"
    return f"{amount(row.bytes_per_sec, 'bytes/s')}{where}"


def _first_months(section: HoursSection) -> tuple[str, ...]:
    """When the first hour is above a capacity as topics grow; empty if none grows or no broker states a capacity."""
    if not section.months or section.plan.above_capacity is None:
        return ()
    today, planned = (
        "none" if month is None else f"in {counted(month, 'month')}" if month else "now"
        for month in (section.today.months_until_above_capacity, section.plan.months_until_above_capacity)
    )
    horizon = counted(section.months[-1].month, "month")
    return (
        f"with the growth of the next {horizon}, the first hour above a capacity, today → plan: {today} → {planned}",
    )


def disk(size_bytes: int, disk_bytes: int | None) -> str:
    """Bytes held and, if the disk's size is known, how full the disk is: `3.20 TB, 72.8 %`."""
    return size(size_bytes) if disk_bytes is None else f"{size(size_bytes)}, {percent(100 * size_bytes / disk_bytes)}"


def states_disks(plan: Plan) -> bool:
    """True if sizes are known, and the disk size of at least one broker."""
    return plan.cluster.sizes_known and any(broker.disk_bytes for broker in plan.brokers)


def states_traffic(plan: Plan) -> bool:
    """True if rates are known, so that brokers have traffic."""
    return any(broker.before.network_in is not None for broker in plan.brokers)


def target(requested: str, *, by_share: bool = False, shares: str = "") -> str:
    """What a target allows. `by_share`: around each broker's share. `shares`: `shares of 31 to 72`, if they differ."""
    if requested == "none":
        return "no target"
    if requested.endswith("%"):
        return f"within {requested.removesuffix('%')} % of {shares or 'share'}"
    if by_share:
        return f"within {requested} of {shares or 'its share'}"
    return f"differ by at most {requested}"


def windows_by_capacity(plan: Plan) -> set[str]:
    """The windows of counts with different shares because brokers differ in disk or network, whether met or missed."""
    staying = [broker for broker in plan.brokers if broker.role != "removed"]
    capacities = {
        "replicas": {broker.disk_bytes for broker in staying},
        "leaders": {broker.network_bytes_per_sec for broker in staying},
    }
    return {window for window, values in capacities.items() if len(values) > 1 and None not in values}


def reached_text(row: RelaxedRow) -> str:
    """What a missed window reached: `differ by 3`; for bytes and traffic, the worst broker: `12.5 % off share`."""
    around_share = row.window in (*BYTE_WINDOWS, "log_dirs")
    return f"{percent(row.reached)} off share" if around_share else f"differ by {number(row.reached)}"


def missed_in_hours(rows: Sequence[RelaxedRow]) -> str:
    """`missed: 20.2 % off share on Monday 09:00 UTC`, of one window's rows; empty if the mean rates miss it too."""
    if not rows or any(row.hour is None for row in rows):
        return ""
    worst = max(rows, key=lambda row: row.reached)
    return f"missed: {reached_text(worst)} on {worst.hour}"


def not_met(plan: Plan) -> tuple[str, ...]:
    """The balance targets that aren't met, by reason: `replicas, topic replicas of 6 topics (racks differ …)`.

    Empty for a first step: the verdict names its missed targets, and their reasons say nothing about later steps. With
    `rebalance: none`, only log dirs are balanced.
    """
    if plan.unfinished or bound_section.looser(plan):
        return ()
    by_reason: dict[str, dict[str, list[str]]] = {}
    for row in plan.balance.relaxed:
        if plan.changes.rebalance == "none" and row.window != "log_dirs":
            continue
        topics = by_reason.setdefault(row.why, {}).setdefault(row.window, [])
        topics += [] if row.topic is None else [printable(row.topic, 60)]
    parts = []
    for reason, of_windows in by_reason.items():
        windows_text = (
            headline.target_name(window)
            + (f" of {names[0] if len(names) == 1 else counted(len(names), 'topic')}" if names else "")
            for window, names in of_windows.items()
        )
        parts.append(f"{', '.join(windows_text)} ({reason})")
    return tuple(parts)


def broker_peak(broker: BrokerRow) -> str:
    """A broker's peak in bytes and in percent of its disk; `–` if no disk is stated."""
    disk_bytes = broker.disk_bytes
    return UNKNOWN if disk_bytes is None else disk(broker.peak_size_bytes, disk_bytes)


def peak_disk(batch: BatchRow) -> str:
    """The fullest broker while a batch runs: `3.20 TB, 72.8 %, broker 7`; `–` without sizes."""
    row = batch.fullest_broker
    return UNKNOWN if row is None else f"{disk(row.peak_size_bytes, row.disk_bytes)}, broker {row.id}"


def origin(plan: Plan, point: ParetoRow) -> str:
    """Where a point of the front comes from: the windows that differ from the plan's, `disk 5%`, or its strategy.

    Only the solver reads windows; Kafka's own strategies are even by chance. If there are variants, the point's variant
    comes first.
    """
    prefix = f"{point.variant}: " if plan.variants else ""
    if point.strategy != "optimum":
        return printable(prefix + words(point.strategy))
    unlike = [f"{words(name)} {value}" for name, value in point.balance.unlike(plan.balance.wanted).items()]
    if plan.scenarios and point.scenarios != plan.candidates.winner.scenarios:
        unlike.append(f"scenarios {point.scenarios}")
    same = bound_section.targets(plan).replace("the targets", "the same targets")
    return printable(prefix + (", ".join(unlike) or same))


def new_placements(plan: Plan) -> Sequence[PlacementRow]:
    """How even the cluster is with new partitions, placed by this plan and by Kafka's own rules; empty without any."""
    return plan.new_partitions.compared if plan.new_partitions else ()


def fullest_and_emptiest(brokers: Sequence[BrokerRow], at_most: int) -> list[BrokerRow]:
    """At most `at_most` brokers, sorted by id: added and removed ones, then in turn the fullest and the emptiest."""
    by_load = sorted(brokers, key=lambda b: (-b.after.size_bytes, -b.after.replicas, b.id))
    comes_or_leaves = [broker for broker in by_load if broker.role != "stays"][: at_most // 2]
    ends = [broker for pair in zip(by_load, reversed(by_load), strict=True) for broker in pair]
    distinct = {broker.id: broker for broker in (*comes_or_leaves, *ends)}
    return sorted(list(distinct.values())[:at_most], key=lambda broker: broker.id)


def spread_out(points: Sequence[ParetoRow], at_most: int) -> list[ParetoRow]:
    """At most `at_most` (≥ 2) points of the front in its order: both ends, the chosen one, the rest evenly between."""
    if len(points) <= at_most:
        return list(points)
    indices = {round(step * (len(points) - 1) / (at_most - 1)) for step in range(at_most)}
    chosen = [index for index, point in enumerate(points) if point.chosen]
    for index in chosen[:1]:
        inner = [other for other in indices if 0 < other < len(points) - 1] or sorted(indices)[1:]
        indices = (
            indices
            if index in indices
            else indices - {min(inner, key=lambda other: (abs(other - index), other))} | {index}
        )
    return [points[index] for index in sorted(indices)]


def pace(plan: Plan) -> str:
    """The number of batches, and the least time that they take at the throttle."""
    batches, throttle = plan.batches, plan.execution.throttle_bytes_per_sec
    waiting = sum(batch.leaderless for batch in batches)
    skipped = "the last is" if waiting == 1 else f"the last {number(waiting)} are"
    batches_text = counted(len(batches), "batch") + (f" ({skipped} skipped without leaders)" if waiting else "")
    if not any(row.replicas_moved for row in batches) and not (plan.log_dirs and plan.log_dirs.moves):
        most_elections = max((len(row.elect) for row in batches), default=0)
        of_each = f" of at most {counted(most_elections, 'election')}" if most_elections and len(batches) > 1 else ""
        return f"{batches_text}{of_each}, nothing to copy"
    if throttle is None:
        return f"{batches_text}, not throttled"
    rate = f"{as_stated(throttle)}/s per broker"
    if not plan.cluster.sizes_known:
        return f"{batches_text}, time unknown without sizes; throttled to {rate}"
    known_seconds = [batch.seconds_at_throttle for batch in batches if batch.seconds_at_throttle is not None]
    if len(known_seconds) < len(batches):
        return f"{batches_text}; never complete at {rate}"
    return f"{batches_text}, at least {formats.duration(sum(known_seconds))} at {rate}"


def derived(plan: Plan) -> str:
    """Defaults of settings that the YAML leaves out, with the reasons: `execution.throttle: 50MB/s (…); …`."""
    return "; ".join(f"{row.key}: {row.value} ({row.why})" for row in plan.execution.derived)


_REASONS = {
    "broker_leaves": "to empty removed brokers",
    "placement": "to put topics on the brokers that they may use",
    "replication_factor": "to change the replication factor",
    "together": "to be led together",
    "rack_rule": "to spread replicas over racks",
    "balance_replicas": "to balance replicas or bytes",
    "leader_rule": "to move leaders as asked",
    "balance_leaders": "only to balance leaders",
    "balance_log_dirs": "to balance log dirs",
}


def reasons(plan: Plan) -> str:
    """How many partitions change for which reason, most first: `12 partitions to empty removed brokers, 3 …`."""
    counts = Counter(row.reason for row in plan.partitions)
    # Another rule than `asked` may choose a plan that is more even than asked.
    is_even = bound_section.asks_for_balance(plan) or plan.choice.rule != "asked"
    replaced = {} if is_even else {"balance_replicas": "to keep the caps"}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(
        f"{number(rows) if index else counted(rows, 'partition')} {replaced.get(reason) or _REASONS[reason]}"
        for index, (reason, rows) in enumerate(ordered)
    )


def elections(plan: Plan) -> str:
    """How many preferred leaders are elected, and why: `12 elected: 9 because the leader's replica moves away, 3 …`."""
    elected = {each.key for batch in plan.batches for each in batch.elect}
    counts = Counter(_election_reason(row) for row in plan.partitions if row.key in elected)
    parts = [f"{number(rows)} {reason}" for reason, rows in sorted(counts.items(), key=lambda item: -item[1])]
    if len(parts) == 1 and counts.total() == len(elected):
        return f"{number(len(elected))} elected, {parts[0].partition(' ')[2]}"
    return f"{number(len(elected))} elected: {', '.join(parts)}" if counts else ""


def _election_reason(row: PartitionRow) -> str:
    if row.leader_before is None:
        return "because there is no leader today"
    if row.leader_before not in row.replicas:
        return "because the leader's replica moves away"
    if row.reason in ("leader_rule", "together"):
        return _REASONS[row.reason]
    if row.leader_before == row.replicas_before[0]:
        return "to balance leaders"
    return "because today's leader isn't the preferred one"
