"""What `kafka-topics --describe` prints, in every layout from Kafka 0.8.1 to 4.x.

A heading a topic (`Topic: … PartitionCount: …`), then a line a partition. Fields are told by their labels, since
older versions write `Topic:x` without a blank and copies from a terminal lose the tabs.
Source: `org.apache.kafka.tools.TopicCommand` (kafka.admin.TopicCommand before 3.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from planner.errors import Finding, Place
from planner.importers.entries import Assignment, Config, Entry, assignment
from planner.model import Partition, Topic

_LABELS = (
    "Topic|TopicId|PartitionCount|ReplicationFactor|Configs|MarkedForDeletion|Partition|Leader|Replicas|Isr|"
    "Adding Replicas|Removing Replicas|Elr|LastKnownElr|Observers|Offline|Live"
)
_FIELD = re.compile(rf"(?:^|(?<=\s))({_LABELS}):")
_CONFIG = re.compile(r"(?:^|,)([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+|preallocate)=")
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_NO_LEADER = ("none", "-1", "")
_HINT = "allowed: what kafka-topics --describe prints, headings included and without filters"


@dataclass(frozen=True)
class Heading:
    """A topic's first line: its name, the number of partitions that follow, its configuration."""

    place: Place
    topic: str
    partitions: int
    config: Config


class _LineError(ValueError):
    """Why one line can't be read."""


def recognises(text: str) -> bool:
    """True where any line starts as this format does; what stands around it is refused with its own line."""
    return re.search(r"^\s*Topic:", text, re.MULTILINE) is not None


def parse(text: str, file: str) -> tuple[Topic, ...]:
    """The topics, by name. ImportStateError names each bad line of `file`; so does a reassignment in progress."""
    return read(text, file).topics


def read(text: str, file: str) -> Assignment:
    """As `parse`, with the line of each partition."""
    headings: list[Heading] = []
    entries: list[Entry] = []
    findings: list[Finding] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        place = Place(file, number, len(line) - len(line.lstrip()) + 1)
        try:
            match _line(line.strip(), place):
                case Heading() as heading:
                    headings.append(heading)
                case Entry() as entry:
                    entries.append(entry)
        except _LineError as error:
            findings.append(Finding(place, "", str(error)))
    findings += [*_count_findings(headings, entries)] if not findings else []
    return assignment(entries, {heading.topic: heading.config for heading in headings}, findings)


def _line(line: str, place: Place) -> Heading | Entry:
    fields = _fields(line)
    if "Topic" not in fields:
        raise _LineError(f"{_short(line)} isn't a topic or a partition; {_HINT}")
    if "Partition" in fields:
        return _entry(fields, place)
    config = _config(fields.get("Configs", ""))
    return Heading(place, fields["Topic"], _number(fields, "PartitionCount"), config)


def _fields(line: str) -> dict[str, str]:
    """Label to value; a value reaches to the next label."""
    return {label: value.strip() for label, value in _between(line, list(_FIELD.finditer(line)))}


def _between(text: str, marks: list[re.Match[str]]) -> list[tuple[str, str]]:
    """Each mark's name and the text from it to the next mark."""
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    return [(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]


def _entry(fields: dict[str, str], place: Place) -> Entry:
    topic, number = fields["Topic"], _number(fields, "Partition")
    for label in ("Adding Replicas", "Removing Replicas"):
        if fields.get(label):
            raise _LineError(
                f"partition {number} of {topic} is being reassigned ({label}: {fields[label]}); "
                "allowed: a state without reassignments in progress; wait for them, or cancel them"
            )
    leader = fields.get("Leader")
    if leader is None or "Replicas" not in fields:
        raise _LineError(f"partition {number} of {topic} has no Leader or no Replicas; {_HINT}")
    partition = Partition(
        id=number,
        replicas=_brokers(fields, "Replicas"),
        leader=None if leader in _NO_LEADER else _number(fields, "Leader"),
        isr=_brokers(fields, "Isr") if "Isr" in fields else None,
    )
    return Entry(place, f"{topic}-{number}", topic, partition)


def _number(fields: dict[str, str], label: str) -> int:
    value = fields.get(label, "")
    if not _NUMBER.fullmatch(value):
        raise _LineError(f"{label} is {_short(value)}; allowed: a whole number")
    return int(value)


def _brokers(fields: dict[str, str], label: str) -> tuple[int, ...]:
    words = [word.strip() for word in fields[label].split(",")] if fields[label] else []
    for word in words:
        if not _NUMBER.fullmatch(word):
            raise _LineError(f"{label} has {_short(word)}; allowed: brokers' ids with commas between them")
    return tuple(int(word) for word in words)


def _config(text: str) -> Config:
    """`a.b=1,c.d=x,y` as sorted pairs; a comma is part of a value unless a key and `=` come after it."""
    marks = list(_CONFIG.finditer(text))
    if text and (not marks or marks[0].start()):
        raise _LineError(f"Configs is {_short(text)}; allowed: key=value with commas between them")
    return tuple(sorted(_between(text, marks)))


def _count_findings(headings: Iterable[Heading], entries: Iterable[Entry]) -> Iterable[Finding]:
    """Topics without a heading, twice, or with another number of partitions: an output that was filtered or cut."""
    by_topic: dict[str, list[Entry]] = {}
    for entry in entries:
        by_topic.setdefault(entry.topic, []).append(entry)
    seen: set[str] = set()
    for heading in headings:
        found = len(by_topic.pop(heading.topic, ()))
        if heading.topic in seen:
            yield Finding(heading.place, heading.topic, f"the topic is here twice; {_HINT}")
        elif found != heading.partitions:
            message = f"PartitionCount is {heading.partitions}, but {found} partitions follow; {_HINT}"
            yield Finding(heading.place, heading.topic, message)
        seen.add(heading.topic)
    for topic, alone in by_topic.items():
        if topic not in seen:
            yield Finding(alone[0].place, topic, f"the topic has no heading with its PartitionCount; {_HINT}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
