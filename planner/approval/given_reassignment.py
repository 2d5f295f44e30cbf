"""A reassignment from elsewhere: read from any format, and checked against a spec.

Formats: Kafka's reassignment JSON (also topicmappr's, and written by hand), all that `--generate` prints, Cruise
Control's proposals, and a plan of our own (plan.json, or its folder).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.inputs.importers import cruise_control, reassign_partitions
from planner.inputs.importers.state_parts import AssignmentEntry, StatePart, replica_findings
from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.build_problem import today
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError, InfeasibleError, Place, capped, did_you_mean
from planner.model.formats import ranges
from planner.model.problem import BoolArray, IntArray, Problem
from planner.plan import plan_file
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after

Key = tuple[str, int]

# Kafka's reassignment JSON has "partitions", as a plan.json does; only a plan has this key.
_PLAN_KEY = '"plan_id"'
_ALLOWED = (
    "allowed: a reassignment JSON, what kafka-reassign-partitions --generate prints, Cruise Control's proposals, "
    "or a plan.json"
)


@dataclass(frozen=True)
class Given:
    """A reassignment. `file` is its path for messages; `name` and `sha256` identify it in the plan.

    `title` is the format's name for people; `wanted` has each partition of the file with its new replicas; `found` has
    the replicas that they had when it was made, where the format says so.
    """

    file: str
    name: str
    sha256: str
    title: str
    wanted: tuple[AssignmentEntry, ...]
    found: Mapping[Key, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Placed:
    """A problem, and the reassignment as an assignment (P, W) of it that keeps every rule.

    `named` (P,): the partitions that the reassignment names. `held` (P,): those that it doesn't name, and of which a
    plan would change the leader or the racks; `problem` doesn't let them move.
    """

    problem: Problem
    assignment: IntArray
    named: BoolArray
    held: BoolArray


def read(path: Path) -> Given:
    """The reassignment in a file, or in a plan's folder.

    ImportStateError names each bad entry with its place; PlannerError if the file can't be read, or is a plan that was
    changed.
    """
    file = path / "plan.json" if path.is_dir() else path
    try:
        data = file_reading.read_bytes(file, file_reading.PLAN)
    except OSError as error:
        raise file_reading.unreadable(file, error) from None
    shown = file.as_posix()
    text = decode(data, shown)
    found: StatePart | None
    if reassign_partitions.is_reassignment(text) and _PLAN_KEY in text:
        wanted, found = _own(file, shown)
    elif cruise_control.is_proposals(text):
        wanted, found = cruise_control.read_proposals(text, shown)
    elif reassign_partitions.is_reassignment(text):
        wanted, found = reassign_partitions.read_proposed(text, shown)
    else:
        raise ImportStateError([Finding(Place(shown, 1, 1), "", f"not a reassignment; {_ALLOWED}")])
    lists = {(each.topic, each.partition.id): each.partition.replicas for each in (found.entries if found else ())}
    name = f"{path.name}/{file.name}" if file is not path and path.name else file.name
    return Given(shown, name, hashlib.sha256(data).hexdigest(), wanted.title, wanted.entries, lists)


def _own(path: Path, shown: str) -> tuple[StatePart, StatePart]:
    """A plan of ours: the partitions that it changes, elections included, and those that it creates."""
    plan, place = plan_file.read(path), Place(shown)
    rows = [(row.topic, row.partition, row.replicas, row.replicas_before) for row in plan.partitions]
    for new in plan.new_topics:
        rows += [(new.topic, at, replicas, ()) for at, replicas in enumerate(new.replicas, new.partitions_before)]

    def part(lists: Iterator[tuple[str, int, tuple[int, ...]]]) -> StatePart:
        entries = (
            AssignmentEntry(place, f"{topic}-{number}", topic, Partition(number, replicas, replicas[0]))
            for topic, number, replicas in lists
        )
        return StatePart("a plan of this planner", shown, entries=tuple(entries))

    return (
        part((topic, number, replicas) for topic, number, replicas, _ in rows),
        part((topic, number, before) for topic, number, _, before in rows if before),
    )


def place(given: Given, problem: Problem, spec_file: str) -> Placed:
    """The problem of a spec, and the given reassignment as an assignment of it.

    ImportStateError for topics, partitions and brokers that the spec doesn't have, with their places; InfeasibleError
    with everything that breaks a hard rule of the spec.
    """
    rows = {key: row for row, key in enumerate(problem.partition_keys)}
    if wrong := list(_strange(given, problem, rows)):
        raise ImportStateError(wrong)
    entries = {rows[each.topic, each.partition.id]: each for each in given.wanted}
    factors = problem.replication_factors.tolist()
    broken = [
        Finding(
            entry.place,
            f"{entry.topic}-{entry.partition.id}",
            f"replication factor: replicas {list(entry.partition.replicas)}; allowed: exactly {factors[row]} replicas",
        )
        for row, entry in entries.items()
        if len(entry.partition.replicas) > problem.width
    ]
    at = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}
    # Lists that are too long are cut here, so that the check finds their other faults too.
    assignment = today(problem)
    for row, entry in entries.items():
        brokers = [at[broker] for broker in entry.partition.replicas][: problem.width]
        assignment[row] = -1
        assignment[row, : len(brokers)] = brokers
    is_named = np.isin(np.arange(problem.rows), list(entries))
    placed = _held(problem, assignment, is_named)
    for violation in independent_check.check(placed.problem, assignment, at_most=problem.rows):
        stated = entries.get(rows[violation.topic, violation.partition])
        key, message = f"{violation.topic}-{violation.partition}", f"{violation.rule}: {violation.message}"
        if stated is None:
            broken.append(Finding(Place(spec_file), key, f"{given.file} doesn't name it, so it stays: {message}"))
        elif len(stated.partition.replicas) <= problem.width:
            broken.append(Finding(stated.place, key, message))
    if broken:
        raise InfeasibleError(
            f"{given.file} can't be adopted, it breaks rules of {spec_file}:", *capped(sorted(broken))
        )
    return placed


def _held(problem: Problem, assignment: IntArray, named: BoolArray) -> Placed:
    """Fix the partitions that aren't named and of which a plan would change the leader or the racks."""
    elects = leaders_after(problem, assignment) != problem.leaders
    uneven = independent_check.broken_rules(problem, assignment)["rack spread"]
    held: BoolArray = ~named & ~problem.forced & ~problem.is_new & (elects | uneven)
    fixed = replace(problem, movable=problem.movable & ~held) if held.any() else problem
    return Placed(fixed, assignment, named, held)


def _strange(given: Given, problem: Problem, rows: Mapping[Key, int]) -> Iterator[Finding]:
    """Findings on topics, partitions and brokers that the spec lacks, on duplicates, and on invalid replica lists."""
    brokers, topics = set(problem.broker_ids.tolist()), set(problem.topic_names)
    counts = dict(zip(problem.topic_names, np.bincount(problem.topic_of).tolist(), strict=True))
    seen: dict[Key, AssignmentEntry] = {}
    for entry in given.wanted:
        key, number = (entry.topic, entry.partition.id), entry.partition.id
        first = seen.setdefault(key, entry)
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
