"""Reads another tool's reassignment, and finds what of it a cluster doesn't have.

Formats: Kafka's reassignment JSON (also topicmappr's, and written by hand), the whole output of `--generate`, Cruise
Control's proposals, and this planner's plans (plan.json, or its folder).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.inputs.importers import cruise_control, reassign_partitions
from planner.inputs.importers.state_parts import AssignmentEntry, StatePart, replica_findings
from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.cluster import Partition, PartitionKey
from planner.model.errors import Finding, ImportStateError, Place, did_you_mean
from planner.model.formats import ranges
from planner.model.problem import Problem
from planner.plan import plan_file

_ALLOWED = (
    "allowed: a reassignment JSON, what kafka-reassign-partitions --generate prints, Cruise Control's proposals, "
    "or a plan.json"
)


@dataclass(frozen=True)
class GivenReassignment:
    """A reassignment. `file` is its path for messages; `name` and `sha256` identify it in the plan.

    `title` is the format's name for people; `targets` has each partition of the file with its new replicas;
    `replicas_before` has the partitions' replicas from when the file was made, if the format contains them.
    """

    file: str
    name: str
    sha256: str
    title: str
    targets: tuple[AssignmentEntry, ...]
    replicas_before: Mapping[PartitionKey, tuple[int, ...]]


def read(path: Path) -> GivenReassignment:
    """The reassignment in a file, or in a plan's folder.

    ImportStateError names each bad entry with its place; PlannerError if the file can't be read, or if it is a plan
    that was changed.
    """
    file = path / "plan.json" if path.is_dir() else path
    data = file_reading.read_bytes(file, file_reading.PLAN)
    label = file.as_posix()
    text = decode(data, label)
    before: StatePart | None
    # Kafka's reassignment JSON has "partitions", as a plan.json does; only a plan has this key.
    if reassign_partitions.is_reassignment(text) and '"plan_id"' in text:
        target, before = _read_plan(file, label)
    elif cruise_control.is_proposals(text):
        target, before = cruise_control.read_proposals(text, label)
    elif reassign_partitions.is_reassignment(text):
        target, before = reassign_partitions.read_proposed(text, label)
    else:
        first_line = text.strip().split("\n")[0][:60]
        start = f"begins with {first_line!r}" if first_line else "is empty"
        raise ImportStateError([Finding(Place(label, 1, 1), "", f"not a reassignment: the file {start}; {_ALLOWED}")])
    lists = {(each.topic, each.partition.id): each.partition.replicas for each in (before.entries if before else ())}
    name = f"{path.name}/{file.name}" if file is not path and path.name else file.name
    return GivenReassignment(label, name, file_reading.digest(data), target.title, target.entries, lists)


def _read_plan(path: Path, label: str) -> tuple[StatePart, StatePart]:
    """From a plan of this planner: the new replicas of changed, elected and created partitions; then their old ones."""
    plan, place = plan_file.read(path), Place(label)
    rows = [(row.topic, row.partition, row.replicas, row.replicas_before) for row in plan.partitions]
    for new in plan.new_topics:
        rows += [(new.topic, index, replicas, ()) for index, replicas in enumerate(new.replicas, new.partitions_before)]

    def part(lists: Iterator[tuple[str, int, tuple[int, ...]]]) -> StatePart:
        entries = (
            AssignmentEntry(place, f"{topic}-{number}", topic, Partition(number, replicas, replicas[0]))
            for topic, number, replicas in lists
        )
        return StatePart("a plan of this planner", label, entries=tuple(entries))

    return (
        part((topic, number, replicas) for topic, number, replicas, _ in rows),
        part((topic, number, before) for topic, number, _, before in rows if before),
    )


def findings(given: GivenReassignment, problem: Problem) -> Iterator[Finding]:
    """Findings on topics, partitions and brokers that the spec lacks, on duplicates, and on invalid replica lists."""
    rows, brokers, topics = problem.row_of, set(problem.broker_ids.tolist()), set(problem.topic_names)
    counts = dict(zip(problem.topic_names, np.bincount(problem.topic_of).tolist(), strict=True))
    first_entries: dict[PartitionKey, AssignmentEntry] = {}
    for entry in given.targets:
        key, number = (entry.topic, entry.partition.id), entry.partition.id
        first = first_entries.setdefault(key, entry)
        message = ""
        if entry.topic not in topics:
            close = did_you_mean(entry.topic, topics)
            message = f"topic {entry.topic!r} isn't in the spec's cluster; {close}allowed: its topics"
        elif key not in rows:
            message = f"partition {number} of {entry.topic} doesn't exist; allowed: 0 to {counts[entry.topic] - 1}"
        elif first is not entry:
            message = f"partition {number} of {entry.topic} is here twice, first at {first.place}; allowed: once"
        if message:
            yield Finding(entry.place, entry.key, message)
        yield from replica_findings(entry)
        for broker in dict.fromkeys(entry.partition.replicas):
            if broker not in brokers and broker >= 0:
                message = f"broker {broker} isn't in the spec's cluster; allowed: {ranges(brokers)}"
                yield Finding(entry.place, f"{entry.key}.replicas", message)
