"""Partitions that are being reassigned, as they will be when that is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.inputs.importers.assignment_entries import AssignmentEntry
from planner.inputs.importers.state_parts import RunningReassignment
from planner.model.cluster import Partition

Key = tuple[str, int]


def reassigned(
    entries: Iterable[AssignmentEntry], moving: Mapping[Key, RunningReassignment]
) -> tuple[list[AssignmentEntry], tuple[str, ...]]:
    """The entries with the targets of what is moving in the place of what they have meanwhile, and a note of it."""
    if not moving:
        return list(entries), ()
    moved = [_arrived(entry, moving.get((entry.topic, entry.partition.id))) for entry in entries]
    known = {(entry.topic, entry.partition.id) for entry in moved}
    missing = [f"{topic}-{number}" for topic, number in moving if (topic, number) not in known]
    count = len(moving) - len(missing)
    are = "partition is" if count == 1 else "partitions are"
    notes = [f"{count:,} {are} being reassigned: the plan starts from the target{'s'[: count > 1]}"] if count else []
    if missing:
        notes.append(f"{missing[0]} is being reassigned ({len(missing)} such), but isn't in the assignment")
    return moved, tuple(notes)


def target(partition: Partition, moving: RunningReassignment) -> tuple[int, ...]:
    """The replicas that will stay: Kafka lists the target's first, those that go behind (KIP-455)."""
    now = moving.replicas or partition.replicas
    both = (*now, *(broker for broker in moving.adding if broker not in now))
    return tuple(broker for broker in both if broker not in moving.removing)


def _arrived(entry: AssignmentEntry, moving: RunningReassignment | None) -> AssignmentEntry:
    """A partition when its reassignment is done: what is added is in sync, and who goes no longer leads."""
    if moving is None:
        return entry
    partition = entry.partition
    replicas = target(partition, moving)
    leader = partition.leader if partition.leader in replicas else next(iter(replicas), None)
    isr = partition.isr
    in_sync = None if isr is None else tuple(each for each in replicas if each in isr or each in moving.adding)
    return replace(entry, partition=replace(partition, replicas=replicas, leader=leader, isr=in_sync))
