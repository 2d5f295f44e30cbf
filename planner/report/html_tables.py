"""plan.json → the tables of report.html as plain text: what every plot shows in numbers, and what no plot shows.

Nothing here is escaped: the template does that. Names are on one line and without control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import amount, arrow, counted, number, printable, size
from planner.plan.document.batch_types import BatchRow
from planner.plan.document.cluster_types import BrokerRow, RackRow, TopicRow
from planner.plan.document.front_types import ComparedRow, ParetoRow, ScenarioRow, VariantRow
from planner.plan.document.log_dir_types import LogDirRow
from planner.plan.document.new_partition_types import NewPartitionsRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.term_types import LimitRow, RelaxedRow, TermRow
from planner.report import plot_values, plots, sentences
from planner.report.plot_values import Movement
from planner.report.sentences import known_size, limit_of

# A page opens at once with that many rows; whoever needs all of them has plan.json.
_MOST_ROWS = 500
MOST_TOPICS = 3_000
_LONGEST_RACK = 60
_LONGEST_TEXT = 300

Row = tuple[str, ...]


@dataclass(frozen=True)
class HtmlTable:
    """Columns (text left, numbers right), rows, what is said of rows left out, and which rows stand out.

    `keys` has what a column is sorted by for each cell, where a reader may sort; empty where the order stays.
    """

    id: str
    caption: str
    text_columns: Row
    number_columns: Row
    rows: tuple[Row, ...]
    left_out: str = ""
    strong: frozenset[int] = frozenset()
    keys: tuple[tuple[str | int | float, ...], ...] = ()


def _table(
    name: str, caption: str, columns: tuple[Row, Row], rows: Sequence[Any], row: Callable[[Any], Row], noun: str
) -> HtmlTable:
    """A table of the first rows; those behind `_MOST_ROWS` are counted."""
    shown = rows[:_MOST_ROWS]
    rest = f"{counted(len(rows) - len(shown), noun)} left out here: see plan.json." if len(rows) > len(shown) else ""
    strong = frozenset(at for at, each in enumerate(shown) if isinstance(each, ParetoRow | VariantRow) and each.chosen)
    return HtmlTable(name, caption, *columns, tuple(map(row, shown)), rest, strong)


def limits(plan: Plan) -> HtmlTable:
    """The gates, and whether they are kept."""

    def row(each: LimitRow) -> Row:
        return (
            each.key,
            "crossed" if each.crossed else "kept",
            *gate_cells(each.key, each.value, each.limit, each.broker),
        )

    return _table("limits", "Limits", (("Limit", ""), ("Plan", "Allowed")), plan.limits, row, "limit")


def relaxed(plan: Plan) -> HtmlTable:
    """The windows that could not be kept, and why."""

    def row(window: RelaxedRow) -> Row:
        topic = "all" if window.topic is None else printable(window.topic)
        why = printable(window.why, _LONGEST_TEXT)
        return formats.words(window.window), topic, why, printable(window.wanted), sentences.reached(window)

    columns = (("Window", "Topic", "Why"), ("Asked", "Reached"))
    return _table("relaxed", "Balance that could not be kept", columns, plan.balance.relaxed, row, "window")


def front(plan: Plan) -> HtmlTable:
    """The points of the front that are drawn."""

    def row(point: ParetoRow) -> Row:
        return (
            sentences.origin(plan, point),
            "this plan" if point.chosen else "",
            sentences.completes(plan, point),
            *sentences.moves(plan, point),
        )

    columns = ("Copied", "The least for that", "Gap", "Replicas", "Leaders", "Furthest above share")
    texts = ("Windows unlike this plan's, or strategy", "", "As asked")
    return _table(
        "front-table", "Plans with less, or more, movement", (texts, columns), plots.points(plan), row, "point"
    )


def compared(plan: Plan) -> HtmlTable:
    """This plan, doing nothing, and Kafka's own placements."""

    def row(each: ComparedRow) -> Row:
        keys = ("replicas_moved", "leaders_changed", "replica_spread", "leader_spread", "topic_replica_spread")
        counts = (number(getattr(each, key)) for key in keys)
        moved = known_size(plan, each.bytes_moved)
        return printable(each.label), sentences.completes(plan, each), moved, *counts, sentences.above(each)

    spreads = ("Replica spread", "Leader spread", "Topic replica spread")
    columns = ("Copied", "Replicas", "Leaders", *spreads, "Furthest above share")
    return _table("compared", "Beside the alternatives", (("Plan", "As asked"), columns), plan.compared, row, "row")


def terms(plan: Plan) -> HtmlTable:
    """Every term, today and with the plan, with what it means."""

    def row(term: TermRow) -> Row:
        values = (*(amount(value, term.unit) for value in sentences.columns(term)), limit_of(term))
        meaning = printable(term.meaning, _LONGEST_TEXT)
        return printable(term.group), formats.words(term.name), meaning, *values, formats.unit_of(term.unit)

    columns = (("", "Term", "Meaning"), ("Today", "If nothing moves", "Plan", "Limit", "Unit"))
    return _table("terms", "What it costs, and what it gives", columns, plan.terms, row, "term")


def brokers(plan: Plan) -> HtmlTable:
    """Every broker before and after, and what it copies."""

    def row(broker: BrokerRow) -> Row:
        rack = formats.UNKNOWN if broker.rack is None else printable(broker.rack, _LONGEST_RACK)
        copied = (known_size(plan, getattr(broker, key)) for key in ("bytes_in", "bytes_out"))
        peak = (sentences.broker_peak(broker),) if sentences.states_disks(plan) else ()
        return str(broker.id), rack, broker.role, *_load(plan, broker), *copied, *peak

    disks = ("Peak disk",) if sentences.states_disks(plan) else ()
    columns = (("Broker", "Rack", ""), (*_loads(plan), "Copies in", "Copies out", *disks))
    return _table("brokers-table", "Brokers, today → plan", columns, plan.brokers, row, "broker")


def racks(plan: Plan) -> HtmlTable:
    """Every rack before and after."""

    def row(rack: RackRow) -> Row:
        count = arrow(number(rack.brokers_before), number(rack.brokers_after))
        name = formats.UNKNOWN if rack.rack is None else printable(rack.rack, _LONGEST_RACK)
        return name, count, *_load(plan, rack)

    columns = (("Rack",), ("Brokers", *_loads(plan)))
    return _table("racks-table", "Racks, today → plan", columns, plan.racks, row, "rack")


def _loads(plan: Plan) -> Row:
    return "Replicas", "Leaders", "Size", *(("Network in", "Network out") if sentences.states_traffic(plan) else ())


def _load(plan: Plan, row: BrokerRow | RackRow) -> Row:
    before, after = row.before, row.after
    counts = (arrow(number(getattr(before, key)), number(getattr(after, key))) for key in ("replicas", "leaders"))
    held = arrow(known_size(plan, before.size_bytes), known_size(plan, after.size_bytes))
    return *counts, held, *sentences.traffic(plan, row)


def movement(plan: Plan, moved: Movement) -> HtmlTable:
    """Who copies how much from whom, most first."""
    _, written = plot_values.measure(plan)

    def row(pair: tuple[int, int, int]) -> Row:
        return str(pair[0]), str(pair[1]), written(pair[2])

    columns = (("From broker", "To broker"), ("Copied",))
    return _table(
        "movement-table", "Who sends how much to whom", columns, list(plot_values.copied_pairs(moved)), row, "pair"
    )


def batches(plan: Plan) -> HtmlTable:
    """The batches in their order."""

    def row(batch: BatchRow) -> Row:
        known = plan.cluster.sizes_known
        return (
            str(batch.number),
            number(len(batch.partitions)),
            number(len(batch.elect)),
            number(batch.replicas_moved),
            known_size(plan, batch.bytes_moved),
            formats.duration(batch.seconds_at_throttle) if known else formats.UNKNOWN,
            sentences.peak_disk(batch),
        )

    columns = ("Partitions", "Elections", "Replicas copied", "Copied", "At least", "Peak disk")
    return _table("batches-table", "Batches, in this order", (("Batch",), columns), plan.batches, row, "batch")


def copies(plan: Plan, moved: Movement) -> HtmlTable:
    """What each broker copies in each batch, in the order of batches."""
    _, written = plot_values.measure(plan)
    cells = np.argwhere(moved.received + moved.sent).tolist()

    def row(cell: Sequence[int]) -> Row:
        received, sent = (int(side[cell[0], cell[1]]) for side in (moved.received, moved.sent))
        return str(cell[0] + 1), str(moved.brokers[cell[1]]), written(received), written(sent)

    columns = (("Batch", "Broker"), ("Copies in", "Copies out"))
    return _table("copies-table", "What each broker copies, batch by batch", columns, cells, row, "row")


def held(plan: Plan, moved: Movement) -> HtmlTable:
    """What each broker holds today, at most, and afterwards."""
    key, written = plot_values.measure(plan)
    rows = {broker.id: broker for broker in plan.brokers}
    peaks, when = moved.held.max(axis=0).tolist(), moved.held.argmax(axis=0).tolist()

    def row(at: int) -> Row:
        broker = rows.get(moved.brokers[at])
        today, after = (written(getattr(getattr(broker, side), key) if broker else 0) for side in ("before", "after"))
        return str(moved.brokers[at]), f"batch {when[at]}" if when[at] else "today", today, written(peaks[at]), after

    columns = (("Broker", "Fullest in"), ("Today", "At most", "Afterwards"))
    return _table("held-table", "What brokers hold meanwhile", columns, range(len(moved.brokers)), row, "broker")


def topics(plan: Plan) -> HtmlTable:
    """The topics, those first that copy most; to be sorted and searched."""
    ordered = sorted(plan.topics, key=lambda topic: (-topic.bytes_moved, -topic.replicas_moved, topic.name))
    shown = ordered[:MOST_TOPICS]
    left_out = _topics_left_out(plan, ordered[MOST_TOPICS:])
    keys = tuple(
        (topic.name, topic.partitions, topic.partitions_changed, topic.replication_factor or 0,
         topic.replicas_moved, topic.bytes_moved)
        for topic in shown
    )  # fmt: skip
    columns = ("Partitions", "Changed", "Replication factor", "Replicas moved", "Copied")
    rows = tuple(_topic(plan, topic) for topic in shown)
    return HtmlTable("topics-table", "Topics", ("Topic",), columns, rows, left_out, keys=keys)


def _topics_left_out(plan: Plan, rest: Sequence[TopicRow]) -> str:
    if not rest:
        return ""
    copied = known_size(plan, sum(topic.bytes_moved for topic in rest))
    return f"{counted(len(rest), 'topic')} that copy less, {copied} in all, left out here: see plan.json."


def _topic(plan: Plan, topic: TopicRow) -> Row:
    before = "/".join(map(str, topic.replication_factor_before)) or formats.UNKNOWN
    after = "mixed" if topic.replication_factor is None else str(topic.replication_factor)
    counts = (number(topic.partitions), number(topic.partitions_changed), arrow(before, after))
    return printable(topic.name), *counts, number(topic.replicas_moved), known_size(plan, topic.bytes_moved)


def others(plan: Plan) -> Iterator[HtmlTable]:
    """What only some plans have: variants, scenarios, new partitions, log dirs."""
    tables: Iterable[HtmlTable] = (_variants(plan), _scenarios(plan), _new_partitions(plan), _log_dirs(plan))
    yield from (table for table in tables if table.rows)


def _variants(plan: Plan) -> HtmlTable:
    def row(variant: VariantRow) -> Row:
        return (
            printable(variant.name, _LONGEST_RACK),
            sentences.wishes(variant.changes, 3),
            printable(variant.why_not or "", _LONGEST_TEXT) or ("this plan" if variant.chosen else ""),
            sentences.completes(plan, variant),
            number(variant.brokers),
            known_size(plan, variant.bytes_moved),
            sentences.gap(plan, variant),
            number(variant.replicas_moved),
            number(variant.leaders_changed),
            sentences.above(variant),
            formats.duration(variant.seconds_at_throttle),
        )

    columns = ("Brokers", "Copied", "Gap", "Replicas", "Leaders", "Furthest above share", "At least")
    texts = ("Variant", "Asked for", "", "As asked")
    return _table("variants", "Beside the variants", (texts, columns), plan.variants, row, "variant")


def _scenarios(plan: Plan) -> HtmlTable:
    columns: tuple[Row, Row] = (("Scenario and outcome",), ())
    return _table("scenarios", "In the scenarios", columns, plan.scenarios, _scenario, "scenario")


def _scenario(row: ScenarioRow) -> Row:
    return (sentences.scenario(row),)


def _new_partitions(plan: Plan) -> HtmlTable:
    def row(topic: NewPartitionsRow) -> Row:
        config = ", ".join(f"{key}={value}" for key, value in sorted(topic.config.items()))
        partitions = arrow(number(topic.partitions_before), number(topic.partitions))
        shown = printable(config, _LONGEST_TEXT) or formats.UNKNOWN
        return printable(topic.topic), shown, partitions, number(topic.replication_factor)

    columns = (("Topic", "Configuration"), ("Partitions", "Replication factor"))
    return _table("new-partitions", "New partitions", columns, plan.new_topics, row, "topic")


def _log_dirs(plan: Plan) -> HtmlTable:
    def row(of_broker: tuple[int, LogDirRow]) -> Row:
        broker, each = of_broker
        before, after = each.before, each.after
        allowed = "" if each.error else f"{size(each.least_bytes)} to {size(each.most_bytes)}"
        return (
            str(broker),
            printable(each.path),
            printable(each.error or "", _LONGEST_TEXT),
            arrow(number(before.replicas), number(after.replicas)),
            arrow(size(before.size_bytes), size(after.size_bytes)),
            allowed,
            size(each.bytes_in),
            size(each.bytes_out),
        )

    columns = (("Broker", "Log dir", ""), ("Replicas", "Size", "Allowed", "Comes in", "Goes to others"))
    return _table("log-dirs", "Log dirs, today → plan", columns, sentences.log_dirs(plan), row, "log dir")
