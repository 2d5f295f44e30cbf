"""The tables on the cluster: brokers, racks, log dirs, topics, partitions, hours, and what each batch copies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from planner.model import formats
from planner.model.document_fields import LogDirMoveRow, LogDirRow
from planner.model.formats import counted, printable, replica_assignment, size
from planner.plan.document.cluster_types import BrokerRow, MonthOfGrowthRow, RackRow, TopicRow, WorstHourRow
from planner.plan.document.partition_types import BatchRow, NewPartitionsRow, PartitionRow
from planner.plan.document.plan_types import Plan
from planner.report import plot_movement, sentences
from planner.report.plot_movement import Movement
from planner.report.sentences import plan_size
from planner.report.view import SECONDS, Change, Column, Joined, Name, Quantity, Strong, Table, Value

_LONGEST_RACK = 60
_LONGEST_LISTS = 4_000
# The longest name in a sentence on rows that are left out.
_LONGEST_NAMED = 60
_LISTS_SHOWN = 100


def _today_and_plan(value: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """The function of a column that shows a value of what a row holds, today → plan."""
    return lambda row: Change(value(row.before), value(row.after))


def _loads(plan: Plan) -> tuple[Column[Any], ...]:
    """The load of a broker or rack, today → plan."""
    return (
        Column("\nReplicas", _today_and_plan(lambda load: load.replicas)),
        Column("\nLeaders", _today_and_plan(lambda load: load.leaders)),
        Column("\nSize", _today_and_plan(lambda load: plan_size(plan, load.size_bytes))),
    )


def _traffic(plan: Plan) -> tuple[Column[Any], ...]:
    """Traffic today → plan; no columns if rates are unknown."""
    if not sentences.states_traffic(plan):
        return ()
    return (
        Column("Network\nin", _today_and_plan(lambda load: Quantity(load.network_in, "bytes/s"))),
        Column("Network\nout", _today_and_plan(lambda load: Quantity(load.network_out, "bytes/s"))),
    )


def _rack(name: str | None) -> Value:
    return None if name is None else Name(name, _LONGEST_RACK)


def brokers(plan: Plan) -> Table[BrokerRow]:
    """Every broker before and after, what it copies, and how full it becomes."""
    column = Column[BrokerRow]

    def rest(rows: Sequence[BrokerRow]) -> str:
        ids = formats.ranges(row.id for row in rows)
        return f"{counted(len(rows), 'broker')} neither among the fullest nor the emptiest ({ids})"

    role = column("\n", lambda row: "" if row.role == "stays" else Strong(row.role), numeric=False)
    peak = column("\nPeak disk", sentences.broker_peak)
    columns = (
        column("Broker", lambda row: str(row.id), narrow="\nBroker"),
        column("\nRack", lambda row: _rack(row.rack), numeric=False),
        *((role,) if any(row.role != "stays" for row in plan.brokers) else ()),
        *_loads(plan),
        column("\nCopies in", lambda row: plan_size(plan, row.bytes_in)),
        column("Copies out", lambda row: plan_size(plan, row.bytes_out), narrow="\nout"),
        *((peak,) if sentences.states_disks(plan) else ()),
        *_traffic(plan),
    )
    title, few = "Brokers, today → plan", sentences.fullest_and_emptiest
    return Table("broker", plan.brokers, columns, "brokers-table", title, few=few, rest=rest)


def racks(plan: Plan) -> Table[RackRow]:
    """Every rack before and after."""
    columns = (
        Column[RackRow]("Rack", lambda row: _rack(row.rack), numeric=False),
        Column[RackRow]("Brokers", lambda row: Change(row.brokers_before, row.brokers_after)),
        *_loads(plan),
        *_traffic(plan),
    )
    return Table("rack", plan.racks, columns, "racks-table", "Racks, today → plan")


def batches(plan: Plan) -> Table[BatchRow]:
    """The batches in their order."""
    column = Column[BatchRow]
    sizes_known = plan.cluster.sizes_known
    columns = (
        column("Batch", lambda row: str(row.number)),
        column("Partitions", lambda row: len(row.partitions)),
        column("Elections", lambda row: len(row.elect)),
        column("Replicas copied", lambda row: row.replicas_moved),
        column("Copied", lambda row: plan_size(plan, row.bytes_moved)),
        column("At least", lambda row: Quantity(row.seconds_at_throttle if sizes_known else None, SECONDS)),
        column("Peak disk", sentences.peak_disk),
    )

    def rest(rows: Sequence[BatchRow]) -> str:
        copied = sentences.known_size(plan, sum(row.bytes_moved for row in rows))
        return f"{counted(len(rows), 'batch')}, {rows[0].number} to {rows[-1].number}, that copy {copied},"

    return Table("batch", plan.batches, columns, "batches-table", "Batches, in this order", rest=rest)


def new_partitions(plan: Plan) -> Table[NewPartitionsRow]:
    """The topics that are created or get new partitions."""
    column = Column[NewPartitionsRow]

    def config(row: NewPartitionsRow) -> Value:
        return Joined(tuple(Name(f"{key}={value}") for key, value in sorted(row.config.items())), ", ")

    columns = (
        column("Topic", lambda row: Name(row.topic), numeric=False),
        column("Partitions", lambda row: Change(row.partitions_before, row.partitions)),
        column("Replication factor", lambda row: row.replication_factor),
        column("Configuration", lambda row: config(row) if row.config else None, numeric=False),
    )
    return Table("topic", plan.new_topics, columns, "new-partitions", "New partitions", rest=_named_topics)


def _named_topics(rows: Sequence[NewPartitionsRow]) -> str:
    return _first_to_last([row.topic for row in rows], "topic")


def _first_to_last(names: Sequence[str], row: str) -> str:
    """`3 topics, a to c,`: how many rows, with the first and the last name."""
    first, last = (printable(names[index], _LONGEST_NAMED) for index in (0, -1))
    return f"{counted(len(names), row)}{f', {first} to {last},' if len(names) > 1 else ''}"


def new_lists(plan: Plan) -> Table[NewPartitionsRow]:
    """The replicas of the new partitions, in the format of `kafka-topics --replica-assignment`."""
    column = Column[NewPartitionsRow]

    def lists(row: NewPartitionsRow) -> Value:
        return Name(replica_assignment(row.replicas), _LONGEST_LISTS)

    columns = (
        column("Topic", lambda row: Name(row.topic), numeric=False),
        column("From partition", lambda row: str(row.partitions_before)),
        column("Replicas of each", lists, numeric=False),
    )
    title = "Replicas of the new partitions, preferred leader first"
    return Table("topic", plan.new_topics, columns, "new-lists", title, rest=_named_topics, most=_LISTS_SHOWN)


_BrokersLogDir = tuple[int, LogDirRow]


def log_dirs(plan: Plan) -> Table[_BrokersLogDir]:
    """The log dirs; if they don't all fit, those with replicas that arrive or leave, then the fullest of the rest."""
    column = Column[_BrokersLogDir]

    def allowed(row: LogDirRow) -> Value:
        if row.error:
            return Strong(row.error.rpartition(".")[2])
        if row.most_bytes is None:
            return "cordoned"
        return f"{size(row.least_bytes)} to {size(row.most_bytes)}"

    def few(rows: Sequence[_BrokersLogDir], at_most: int) -> Sequence[_BrokersLogDir]:
        return sorted(rows[:at_most], key=lambda row: (row[0], row[1].path))

    columns = (
        column("Log dir", lambda row: Name(row[1].path), numeric=False),
        column("Broker", lambda row: str(row[0])),
        column("Replicas", lambda row: Change(row[1].before.replicas, row[1].after.replicas)),
        column(
            "Size", lambda row: Change(*(Quantity(side.size_bytes, "bytes") for side in (row[1].before, row[1].after)))
        ),
        column("Allowed", lambda row: allowed(row[1])),
        column("Comes in", lambda row: Quantity(row[1].bytes_in, "bytes"), narrow="comes in"),
        column("Goes to others", lambda row: Quantity(row[1].bytes_out, "bytes"), narrow="goes out"),
    )
    ordered = sentences.log_dirs(plan)
    return Table("log dir", ordered, columns, "log-dirs", "Log dirs, today → plan", few=few)


def log_dir_moves(plan: Plan) -> Table[LogDirMoveRow]:
    """The replicas that move to another log dir of their broker."""
    column = Column[LogDirMoveRow]
    columns = (
        column("Partition", lambda row: Name(row.name), numeric=False),
        column("Broker", lambda row: str(row.broker)),
        column("Log dir", lambda row: Change(Name(row.log_dir_before), Name(row.log_dir)), numeric=False),
        column("Size", lambda row: Quantity(row.size_bytes, "bytes")),
    )
    rows = plan.log_dirs.moves if plan.log_dirs else ()
    return Table("replica", rows, columns, "log-dir-moves", "Moves between log dirs of one broker")


def largest_log_dir_moves(plan: Plan, at_most: int) -> list[Value]:
    """The largest moves between log dirs, as `orders-3 /d1 → /d2 on broker 4`."""
    moves = sorted(plan.log_dirs.moves if plan.log_dirs else (), key=lambda row: -(row.size_bytes or 0))
    shown = ((row, Change(Name(row.log_dir_before, 60), Name(row.log_dir, 60))) for row in moves[:at_most])
    return [Joined((Name(row.name, 60), " ", path, f" on broker {row.broker}")) for row, path in shown]


def topics(plan: Plan, *, changed: bool = False) -> Table[TopicRow]:
    """All topics, or with `changed` only those that change, by bytes copied, most first."""
    column = Column[TopicRow]

    def factor(row: TopicRow) -> Value:
        before = "/".join(map(str, row.replication_factor_before)) or None
        return Change(before, "mixed" if row.replication_factor is None else str(row.replication_factor))

    columns = (
        column("Topic", lambda row: Name(row.name), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("Changed", lambda row: row.partitions_changed),
        column("Replication factor", factor),
        column("Replicas copied", lambda row: row.replicas_moved),
        column("Copied", lambda row: plan_size(plan, row.bytes_moved)),
    )

    def rest(rows: Sequence[TopicRow]) -> str:
        copied = sentences.known_size(plan, sum(row.bytes_moved for row in rows))
        return f"{counted(len(rows), 'topic')} that copy less, {copied} in all,"

    rows = [row for row in plan.topics if row.partitions_changed or not changed]
    rows.sort(key=lambda row: (-row.bytes_moved, -row.replicas_moved, row.name))
    title = "Moves by topic" if changed else "Topics"
    return Table("topic", rows, columns, "topics-table", title, rest=rest, sortable=True)


def partitions(plan: Plan) -> Table[PartitionRow]:
    """Every partition that changes."""
    column = Column[PartitionRow]

    def rest(rows: Sequence[PartitionRow]) -> str:
        return _first_to_last([row.name for row in rows], "partition")

    def leaders(row: PartitionRow) -> Value:
        leader = "none" if row.leader_before is None else str(row.leader_before)
        return Change(leader, leader if row.reason == "balance_log_dirs" else str(row.replicas[0]))

    def lists(row: PartitionRow) -> Value:
        return Change(*(", ".join(map(str, replicas)) for replicas in (row.replicas_before, row.replicas)))

    columns = (
        column("Partition", lambda row: Name(row.name), numeric=False),
        column("Replicas, preferred leader first", lists, numeric=False),
        column("Leader", leaders),
        column("Size", lambda row: plan_size(plan, row.size_bytes)),
        column("Reason", lambda row: formats.words(row.reason), numeric=False),
    )
    return Table("partition", plan.partitions, columns, "partitions", "Partition changes", rest=rest, sortable=True)


def _plot_amount(plan: Plan, value: int) -> Quantity:
    """A plot's amount: bytes, or replicas if sizes are unknown."""
    return Quantity(value, "bytes" if plan.cluster.sizes_known else "replicas")


def copied_pairs(plan: Plan, moved: Movement) -> Table[tuple[int, int, int]]:
    """How much each pair of brokers copies, most first."""
    column = Column[tuple[int, int, int]]
    columns = (
        column("From broker", lambda row: str(row[0]), numeric=False),
        column("To broker", lambda row: str(row[1]), numeric=False),
        column("Copied", lambda row: _plot_amount(plan, row[2])),
    )
    rows = list(plot_movement.copied_pairs(moved))
    return Table("pair", rows, columns, "movement-table", "What each pair of brokers copies")


def copies(plan: Plan, moved: Movement) -> Table[tuple[int, int]]:
    """How much each broker copies in each batch, in the order of batches."""
    column = Column[tuple[int, int]]
    columns = (
        column("Batch", lambda row: str(row[0] + 1), numeric=False),
        column("Broker", lambda row: str(moved.brokers[row[1]]), numeric=False),
        column("Copies in", lambda row: _plot_amount(plan, int(moved.received[row]))),
        column("Copies out", lambda row: _plot_amount(plan, int(moved.sent[row]))),
    )
    rows = [(batch, broker) for batch, broker in np.argwhere(moved.received + moved.sent).tolist()]
    return Table("row", rows, columns, "copies-table", "What each broker copies, batch by batch")


def stored(plan: Plan, moved: Movement) -> Table[int]:
    """How much each broker holds today, at its peak, and afterwards."""
    column = Column[int]
    key, _ = plot_movement.measure(plan)
    rows = {broker.id: broker for broker in plan.brokers}
    peaks, peaks_in = moved.stored.max(axis=0).tolist(), moved.stored.argmax(axis=0).tolist()

    def amount(index: int, name: str) -> Value:
        broker = rows.get(moved.brokers[index])
        return _plot_amount(plan, getattr(getattr(broker, name), key) if broker else 0)

    columns = (
        column("Broker", lambda index: str(moved.brokers[index]), numeric=False),
        column("Fullest in", lambda index: f"batch {peaks_in[index]}" if peaks_in[index] else "today", numeric=False),
        column("Today", lambda index: amount(index, "before")),
        column("At most", lambda index: _plot_amount(plan, peaks[index])),
        column("Afterwards", lambda index: amount(index, "after")),
    )
    title = "What each broker stores while the plan runs"
    return Table("broker", range(len(moved.brokers)), columns, "held-table", title)


def worst_hours(plan: Plan) -> Table[tuple[str, str, WorstHourRow]]:
    """The worst hour in and out, today and with the plan, and the topics with the most traffic in it."""
    hours = plan.hours
    states = () if hours is None else (("today", hours.today), ("plan", hours.plan))
    rows = [(when, flow, getattr(state, f"network_{flow}")) for when, state in states for flow in ("in", "out")]
    column = Column[tuple[str, str, WorstHourRow]]

    def topics(row: WorstHourRow) -> str:
        topic_rates = ((printable(each.topic, _LONGEST_NAMED), each.bytes_per_sec) for each in row.topics)
        return ", ".join(f"{topic} {formats.amount(rate, 'bytes/s')}" for topic, rate in topic_rates)

    columns = (
        column("Worst hour", lambda row: f"{row[0]}, {row[1]}", numeric=False),
        column("Hour", lambda row: row[2].name, numeric=False),
        column("Broker", lambda row: row[2].broker),
        column("Traffic", lambda row: Quantity(row[2].bytes_per_sec, "bytes/s")),
        column("Most of it", lambda row: topics(row[2]), numeric=False),
    )
    return Table("hour", [row for row in rows if row[2].bytes_per_sec], columns, "worst-hours", "Worst hours")


def months_of_hours(plan: Plan) -> Table[MonthOfGrowthRow]:
    """The worst hour and the hours above capacity, now and in each coming month, of today's assignment and the plan."""
    rows = plan.hours.months if plan.hours else ()
    column = Column[MonthOfGrowthRow]
    columns = [
        column("Month", lambda row: f"in {counted(row.month, 'month')}" if row.month else "now", numeric=False),
        column(
            "Worst hour of any broker",
            lambda row: Change(*(Quantity(each.bytes_per_sec, "bytes/s") for each in (row.today, row.plan))),
        ),
    ]
    if rows and rows[0].plan.above_capacity is not None:
        above = column("Hours above capacity", lambda row: Change(row.today.above_capacity, row.plan.above_capacity))
        columns.append(above)
    return Table("month", rows, tuple(columns), "months-of-hours", "Worst hours with each month's growth")
