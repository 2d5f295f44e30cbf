"""The partitions that a plan changes, and its batches, as plan.json has them."""

from __future__ import annotations

from collections.abc import Iterable

from planner.execution.batch_costs import Costs, Peak
from planner.execution.batch_cutting import Step
from planner.model.partition_changes import PartitionChange
from planner.plan.document.partition_types import BatchRow, FullestBroker, PartitionRow, StepRow, TopicPartition


def partition_rows(changed: Iterable[PartitionChange]) -> tuple[PartitionRow, ...]:
    """The `partitions` of plan.json."""
    return tuple(
        PartitionRow(
            topic=change.topic,
            partition=change.partition,
            replicas_before=change.before,
            replicas=change.after,
            log_dirs_before=change.log_dirs_before or None,
            log_dirs=change.log_dirs or None,
            leader_before=change.leader_before,
            size_bytes=change.size_bytes,
            reason=change.reason.value,
            bytes_in_per_sec=change.bytes_in_per_sec or None,
        )
        for change in changed
    )


def batch_rows(costs: Costs) -> tuple[BatchRow, ...]:
    """The `batches` of plan.json."""
    return tuple(
        BatchRow(
            number=batch.number,
            partitions=tuple(map(_step, batch.steps)),
            elect=tuple(TopicPartition(topic=topic, partition=partition) for topic, partition in batch.elect),
            bytes_moved=batch.bytes_moved,
            replicas_moved=batch.replicas_moved,
            seconds_at_throttle=seconds,
            fullest_broker=_fullest(peak),
            leaderless=batch.leaderless,
        )
        for batch, seconds, peak in zip(costs.batches, costs.seconds, costs.fullest, strict=True)
    )


def _step(step: Step) -> StepRow:
    return StepRow(
        topic=step.topic,
        partition=step.partition,
        replicas_before=step.before,
        replicas=step.after,
        log_dirs_before=step.log_dirs_before or None,
        log_dirs=step.log_dirs or None,
    )


def _fullest(peak: Peak | None) -> FullestBroker | None:
    if peak is None:
        return None
    return FullestBroker(id=peak.broker, peak_size_bytes=peak.size_bytes, disk_bytes=peak.disk_bytes)
