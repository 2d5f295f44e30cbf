"""What every importer of an assignment gives: partitions, and where each of them was read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from planner.model.cluster import Config as Config
from planner.model.cluster import Partition, Topic
from planner.model.errors import Finding, ImportStateError, Place

LARGEST_ID = 2**31 - 1
TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AssignmentEntry:
    """One partition, with its place in the file and what people call it there."""

    place: Place
    key: str
    topic: str
    partition: Partition


@dataclass(frozen=True)
class Assignment:
    """Today's topics, by name, and the entries that they were made of."""

    topics: tuple[Topic, ...]
    entries: tuple[AssignmentEntry, ...]


def assignment(
    entries: Iterable[AssignmentEntry],
    configs: Mapping[str, Config],
    findings: Iterable[Finding] = (),
    deleting: Collection[str] = (),
    effective: Mapping[str, Config] | None = None,
) -> Assignment:
    """The entries as topics. Raises ImportStateError with the given findings and all of the entries' own.

    `configs` are the topics' own; `effective` is what is in force beside them, of unknown origin.
    """
    unsourced = effective or {}
    ordered = sorted(entries, key=lambda entry: (entry.topic, entry.partition.id))
    wrong = [*findings, *entry_findings(ordered)]
    if wrong:
        raise ImportStateError(wrong)
    topics = tuple(
        Topic(
            name,
            tuple(entry.partition for entry in group),
            configs.get(name, ()),
            name in deleting,
            unsourced.get(name, ()),
        )
        for name, group in groupby(ordered, key=lambda entry: entry.topic)
    )
    return Assignment(topics, tuple(ordered))


def entry_findings(ordered: Iterable[AssignmentEntry]) -> Iterator[Finding]:
    """What is wrong with entries, sorted by topic and partition, without knowing the cluster."""
    for name, group in groupby(ordered, key=lambda entry: entry.topic):
        entries = list(group)
        if not TOPIC_NAME.fullmatch(name):
            allowed = "1 to 249 of the characters a-z, A-Z, 0-9, dot, underscore and hyphen"
            yield Finding(entries[0].place, entries[0].key, f"{name!r} can't be a topic's name; allowed: {allowed}")
        yield from _numbering(entries)
        for entry in entries:
            yield from replica_findings(entry)


def _numbering(entries: list[AssignmentEntry]) -> Iterator[Finding]:
    """Partitions of one topic that are there twice, and the first gap in their ids."""
    seen: dict[int, AssignmentEntry] = {}
    for entry in entries:
        number = entry.partition.id
        first = seen.setdefault(number, entry)
        if first is not entry:
            earlier, later = sorted((first, entry), key=lambda each: each.place)
            message = f"partition {number} of {entry.topic} is here twice, first at {earlier.place}; allowed: once"
            yield Finding(later.place, later.key, message)
    for wanted, number in enumerate(sorted(seen)):
        if wanted != number:
            entry = seen[number]
            message = f"partition {wanted} of {entry.topic} is missing before {number}; allowed: 0, 1, 2 … without gap"
            yield Finding(entry.place, entry.key, message)
            return


def replica_findings(entry: AssignmentEntry) -> Iterator[Finding]:
    """Empty or repeated replicas, ids out of range, and a leader or ISR outside the replicas."""
    partition = entry.partition
    replicas = partition.replicas
    if not replicas:
        yield Finding(entry.place, entry.key, "has no replicas; allowed: at least one broker")
    if len(set(replicas)) < len(replicas) or (replicas and not 0 <= min(replicas) <= max(replicas) <= LARGEST_ID):
        yield from _bad_replicas(entry)
    if partition.leader is not None and partition.leader not in replicas:
        listed = ", ".join(map(str, replicas))
        yield Finding(entry.place, entry.key, f"leader {partition.leader} isn't a replica; allowed: none, {listed}")
    for broker in partition.isr or ():
        if broker not in replicas:
            listed = ", ".join(map(str, replicas))
            yield Finding(entry.place, entry.key, f"broker {broker} of the ISR isn't a replica; allowed: {listed}")


def _bad_replicas(entry: AssignmentEntry) -> Iterator[Finding]:
    for broker, times in Counter(entry.partition.replicas).items():
        if times > 1:
            yield Finding(entry.place, entry.key, f"broker {broker} is {times} times in replicas; allowed: once")
        if not 0 <= broker <= LARGEST_ID:
            yield Finding(entry.place, entry.key, f"broker {broker} can't exist; allowed: ids from 0 to {LARGEST_ID}")
