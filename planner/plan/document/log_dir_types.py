"""The brokers' log dirs before and after."""

from __future__ import annotations

from typing import Annotated

from planner.plan.document.field_types import (
    BrokerId,
    Count,
    NotNegative,
    PartitionId,
    Percentage,
    Section,
    TopicName,
    doc,
)


class LogDirLoad(Section, frozen=True, kw_only=True):
    """What a log dir holds."""

    replicas: Annotated[Count, doc("Replicas.")]
    size_bytes: Annotated[Count, doc("Bytes of all replicas.")]


class LogDirRow(Section, frozen=True, kw_only=True):
    """One log dir of a broker."""

    path: Annotated[str, doc("Absolute path.")]
    error: Annotated[
        str | None,
        doc("Kafka's name for what is wrong with it; null where nothing is. A log dir with an error gets nothing."),
    ]
    disk_bytes: Annotated[Count | None, doc("Bytes that it has room for; null where not stated.")]
    least_bytes: Annotated[Count | None, doc("The least bytes that it should hold; null with an error.")]
    most_bytes: Annotated[Count | None, doc("The most bytes that it should hold; null with an error.")]
    before: Annotated[LogDirLoad, doc("What it holds today.")]
    after: Annotated[LogDirLoad, doc("What it holds after the plan.")]
    bytes_in: Annotated[Count, doc("Bytes that come to it from other log dirs and other brokers.")]
    bytes_out: Annotated[Count, doc("Bytes that go from it to other log dirs.")]


class LogDirsBrokerRow(Section, frozen=True, kw_only=True):
    """One broker whose log dirs are planned."""

    id: BrokerId
    bytes_moved: Annotated[Count, doc("Bytes that it moves between its log dirs.")]
    least_bytes_moved: Annotated[Count, doc("The least bytes that any packing as near to the windows moves.")]
    within: Annotated[bool, doc("True where every log dir is within its window.")]
    log_dirs: Annotated[tuple[LogDirRow, ...], doc("Its log dirs, by path.")]


class LeftOutRow(Section, frozen=True, kw_only=True):
    """One broker whose log dirs are not planned."""

    id: BrokerId
    why: Annotated[str, doc("Why its log dirs are not planned.")]


class LogDirMoveRow(Section, frozen=True, kw_only=True):
    """One replica that moves between log dirs of its broker."""

    topic: TopicName
    partition: PartitionId
    broker: Annotated[BrokerId, doc("The broker that keeps it.")]
    log_dir_before: Annotated[str, doc("Today's log dir.")]
    log_dir: Annotated[str, doc("The log dir after the plan.")]
    size_bytes: Annotated[Count, doc("Bytes of the replica on this broker.")]


class LogDirsSection(Section, frozen=True, kw_only=True):
    """The brokers' log dirs."""

    wanted: Annotated[Percentage, doc("The percentage around each log dir's share of its broker's bytes.")]
    bytes_moved: Annotated[Count, doc("Bytes that brokers move between their log dirs, not over the network.")]
    least_bytes_moved: Annotated[Count, doc("The least bytes that any packing as near to the windows moves.")]
    gap_percent: Annotated[NotNegative, doc("How far bytes_moved is above that, in percent.")]
    replicas_moved: Annotated[Count, doc("Replicas that move between log dirs of one broker.")]
    brokers: Annotated[tuple[LogDirsBrokerRow, ...], doc("Every broker whose log dirs are planned, by id.")]
    left_out: Annotated[tuple[LeftOutRow, ...], doc("The brokers whose log dirs are not planned.")]
    moves: Annotated[
        tuple[LogDirMoveRow, ...],
        doc("The replicas that move between log dirs of one broker, by topic, partition and broker."),
    ]
