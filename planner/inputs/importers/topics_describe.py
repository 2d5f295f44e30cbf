"""What `kafka-topics --describe` prints, in every layout from Kafka 0.8 to 4.x.

A heading a topic (`Topic: … PartitionCount: …`), then a line a partition. Fields are told by their labels, since
older versions write `Topic:x` without a blank and copies from a terminal lose the tabs. 0.8.0 (`kafka-list-topic`) has
no headings, and labels in small letters.

`Configs` has all that isn't Kafka's default, so a topic's own configuration and what it inherits look alike. A key that
one of the topics doesn't show is inherited by none of them, or that one would show it too: so it is the topic's own
wherever it stands. Of a key that every topic shows, the origin isn't known.
Source: `org.apache.kafka.tools.TopicCommand` (kafka.admin.TopicCommand before 3.7).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from planner.inputs.importers.assignment_entries import Assignment, AssignmentEntry, Config, assignment
from planner.inputs.importers.state_parts import Rank, RunningReassignment, StatePart, moving_finding
from planner.model.cluster import Partition, Topic
from planner.model.effective_config import TOPIC_ONLY
from planner.model.errors import MOST_SHOWN, Finding, ImportStateError, Place

TITLE = "kafka-topics --describe"

_LABELS = (
    "Topic|TopicId|PartitionCount|ReplicationFactor|Configs|MarkedForDeletion|Partition|Leader|Replicas|Isr|"
    "Adding Replicas|Removing Replicas|Elr|LastKnownElr|Observers|Offline|Live"
)
_FIELD = re.compile(rf"(?:^|(?<=\s))({_LABELS}):")
_SMALL = {label.lower(): label for label in ("Topic", "Partition", "Leader", "Replicas", "Isr")}
_SMALL_FIELD = re.compile(rf"(?:^|(?<=\s))({'|'.join(_SMALL)}):")
# Nearly every line of a long output is one of these; what it doesn't match, `_fields` takes apart.
_USUAL = re.compile(
    r"[\t ]*Topic: (\S+)\tPartition: ([0-9]{1,10})\tLeader: ([0-9]{1,10})\tReplicas: ([0-9]{1,10}(?:,[0-9]{1,10})*)"
    r"\tIsr: ([0-9]{1,10}(?:,[0-9]{1,10})*)(?:\tElr: (?:N/A|[0-9,]*)\tLastKnownElr: (?:N/A|[0-9,]*))?[\t ]*",
    re.ASCII,
)
_CONFIG = re.compile(r"(?:^|,)([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+|preallocate)=")
# What stands at the end of a partition's line: an output that was cut within its last line lacks some of it.
_LAST_LABELS = re.compile(r"(?<=\s)(?:isr|elr|lastknownelr)(?=:)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_NO_LEADER = ("none", "-1", "")
_HINT = "allowed: what kafka-topics --describe prints, headings included and without filters"
# Two million partitions are what Kafka's controllers aim at; beyond these it is no cluster's output.
_MOST_TOPICS, _MOST_PARTITIONS = 1_000_000, 5_000_000


@dataclass(frozen=True, slots=True)
class Heading:
    """A topic's first line: its name, the number of partitions that follow, its configuration."""

    place: Place
    topic: str
    partitions: int
    config: Config


@dataclass
class _Read:
    """What is collected while the lines go by."""

    headings: dict[str, Heading] = field(default_factory=dict)
    entries: list[AssignmentEntry] = field(default_factory=list)
    moving: list[RunningReassignment] = field(default_factory=list)
    deleting: set[str] = field(default_factory=set)
    without_headings: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


class _LineError(ValueError):
    """Why one line can't be read."""


def recognises(text: str) -> bool:
    """True where any line starts as this format does; what stands around it is refused with its own line."""
    return re.search(r"^\s*(?:Topic|topic):", text, re.MULTILINE) is not None


def parse(text: str, file: str) -> tuple[Topic, ...]:
    """The topics, by name. ImportStateError names each bad line of `file`; so does a reassignment in progress."""
    return read(text, file).topics


def read(text: str, file: str) -> Assignment:
    """As `parse`, with the line of each partition."""
    part = read_part(text.split("\n"), file)
    if part.moving:
        raise ImportStateError(map(moving_finding, part.moving))
    return assignment(part.entries, part.configs, (), part.deleting, part.effective_configs)


def read_part(lines: Iterable[str], file: str) -> StatePart:
    """What the lines say, one at a time, so that an output of any length is read in the room that its partitions need.

    ImportStateError names each bad line; after the first hundred the others are only counted.
    """
    found = _Read()
    read, before, last = 0, "", ""
    left = iter(lines)
    for number, line in enumerate(left, start=1):
        entry = _usual_entry(line, number, file)
        if entry is not None:
            found.entries.append(entry)
        elif line.strip():
            _take(line, number, file, found)
        if len(found.findings) >= MOST_SHOWN - 1 or _too_many(found, Place(file, number, 1)):
            raise ImportStateError([*found.findings, *_unread(left, Place(file, number + 1, 1))])
        if len(found.entries) > read:
            read, before, last = len(found.entries), last, line
    findings = found.findings or [*_count_findings(found), *_cut_findings(found, before, last)]
    if findings:
        raise ImportStateError(findings)
    shown = {heading.topic: heading.config for heading in found.headings.values()}
    everywhere = _everywhere(
        [config for topic, config in shown.items() if topic not in found.deleting] or shown.values()
    )
    return StatePart(
        TITLE,
        file,
        Rank.CLUSTER,
        tuple(found.entries),
        {topic: tuple(pair for pair in config if pair[0] not in everywhere) for topic, config in shown.items()},
        frozenset(found.deleting),
        leaders_known=True,
        whole=True,
        moving=tuple(found.moving),
        effective_configs=_of_keys(shown, everywhere),
    )


def _everywhere(configs: Iterable[Config]) -> frozenset[str]:
    """The keys that every topic shows, and may inherit."""
    keys = [{key for key, _ in config} for config in configs]
    return frozenset(set.intersection(*keys) if keys else ()) - TOPIC_ONLY


def _of_keys(configs: Mapping[str, Config], keys: frozenset[str]) -> dict[str, Config]:
    """These keys of each topic's configuration, where it has any."""
    found = {topic: tuple(pair for pair in config if pair[0] in keys) for topic, config in configs.items()}
    return {topic: config for topic, config in found.items() if config}


def _usual_entry(line: str, number: int, file: str) -> AssignmentEntry | None:
    """The partition of a line without anything special, None for all others."""
    match = _USUAL.fullmatch(line.rstrip("\r"))
    if match is None:
        return None
    topic, partition, leader, replicas, isr = match.groups()
    column = match.start(1) - len("Topic: ") + 1
    return AssignmentEntry(
        Place(file, number, column),
        f"{topic}-{partition}",
        topic,
        Partition(int(partition), _ids(replicas), int(leader), _ids(isr)),
    )


@lru_cache(maxsize=100_000)
def _ids(text: str) -> tuple[int, ...]:
    """Brokers' ids; the same list is the same tuple, since a cluster has many times more partitions than lists."""
    return tuple(map(int, text.split(",")))


def _take(line: str, number: int, file: str, found: _Read) -> None:
    """Add what one line says, or what is wrong with it."""
    place = Place(file, number, len(line) - len(line.lstrip()) + 1)
    try:
        fields = _fields(line.strip(), found)
        if fields.get("MarkedForDeletion") == "true":
            found.deleting.add(fields["Topic"])
        if "Partition" in fields:
            found.entries.append(_entry(fields, place))
            found.moving += _moving(fields, place)
        else:
            config = _config(fields.get("Configs", ""))
            heading = Heading(place, fields["Topic"], _number(fields, "PartitionCount"), config)
            if found.headings.setdefault(heading.topic, heading) is not heading:
                found.findings.append(Finding(place, heading.topic, f"the topic is here twice; {_HINT}"))
    except _LineError as error:
        found.findings.append(Finding(place, "", str(error)))


def _fields(line: str, found: _Read) -> dict[str, str]:
    """Label to value; a value reaches to the next label."""
    fields = {label: value.strip() for label, value in _between(line, list(_FIELD.finditer(line)))}
    if not fields and line.startswith("topic:"):
        small = _between(line, list(_SMALL_FIELD.finditer(line)))
        fields = {_SMALL[label]: value.strip() for label, value in small}
        found.without_headings.add(fields["Topic"])
    if "Topic" not in fields:
        raise _LineError(f"{_short(line)} isn't a topic or a partition; {_HINT}")
    return fields


def _between(text: str, marks: list[re.Match[str]]) -> list[tuple[str, str]]:
    """Each mark's name and the text from it to the next mark."""
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    return [(mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]


def _entry(fields: dict[str, str], place: Place) -> AssignmentEntry:
    topic, number = fields["Topic"], _number(fields, "Partition")
    leader = fields.get("Leader")
    if leader is None or "Replicas" not in fields:
        raise _LineError(f"partition {number} of {topic} has no Leader or no Replicas; {_HINT}")
    partition = Partition(
        id=number,
        replicas=_brokers(fields, "Replicas"),
        leader=None if leader in _NO_LEADER else _number(fields, "Leader"),
        isr=_brokers(fields, "Isr") if "Isr" in fields else None,
    )
    return AssignmentEntry(place, f"{topic}-{number}", topic, partition)


def _moving(fields: dict[str, str], place: Place) -> Iterator[RunningReassignment]:
    """The reassignment in progress, if any: its labels are there, empty, for a while after it ended."""
    adding, removing = (_brokers(fields, f"{which} Replicas") for which in ("Adding", "Removing"))
    if adding or removing:
        number = _number(fields, "Partition")
        yield RunningReassignment(place, fields["Topic"], number, adding, removing, _brokers(fields, "Replicas"))


def _number(fields: dict[str, str], label: str) -> int:
    value = fields.get(label, "")
    if not _NUMBER.fullmatch(value):
        raise _LineError(f"{label} is {_short(value)}; allowed: a whole number")
    return int(value)


def _brokers(fields: dict[str, str], label: str) -> tuple[int, ...]:
    value = fields.get(label, "")
    words = [word.strip() for word in value.split(",")] if value else []
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


def _too_many(found: _Read, place: Place) -> bool:
    """Whether there is more than any cluster has; that is a finding too."""
    for what, count, most in (
        ("topics", len(found.headings), _MOST_TOPICS),
        ("partitions", len(found.entries), _MOST_PARTITIONS),
    ):
        if count > most:
            found.findings.append(Finding(place, "", f"more than {most:,} {what}; allowed: at most so many"))
            return True
    return False


def _unread(left: Iterator[str], place: Place) -> Iterator[Finding]:
    """That the rest wasn't looked at, and how long it is."""
    try:
        lines = sum(1 for _ in left)
    except ImportStateError as error:  # a byte that isn't UTF-8
        yield from error.findings
        return
    if lines:
        yield Finding(place, "", f"after so many faults the other {lines:,} lines weren't read; {_HINT}")


def _count_findings(found: _Read) -> Iterator[Finding]:
    """Topics without a heading, or with another number of partitions: an output that was filtered or cut."""
    counts = Counter(entry.topic for entry in found.entries)
    unlike = [each for each in found.headings.values() if counts[each.topic] != each.partitions]
    for heading in unlike[: MOST_SHOWN - 1]:
        message = f"PartitionCount is {heading.partitions}, but {counts[heading.topic]} partitions follow; {_HINT}"
        yield Finding(heading.place, heading.topic, message)
    if rest := unlike[MOST_SHOWN - 1 :]:
        message = f"so it is with {len(rest):,} topics from here on: PartitionCount isn't how many partitions follow"
        yield Finding(rest[0].place, "", message)
        return
    alone = counts.keys() - found.headings.keys() - found.without_headings
    if not alone:
        return
    for entry in found.entries:
        if entry.topic in alone:
            alone.discard(entry.topic)
            yield Finding(entry.place, entry.topic, f"the topic has no heading with its PartitionCount; {_HINT}")


def _cut_findings(found: _Read, before: str, last: str) -> Iterator[Finding]:
    """The last partition's line where it has less than the one before it: the number that it ends in may be cut too.

    Every Kafka prints `Isr`; the labels after it are those of the line before, where that is of the same topic.
    """
    entries = found.entries[-2:]
    same = len(entries) == 2 and entries[0].topic == entries[1].topic
    told, usual = (_LAST_LABELS.findall(line) for line in (last, before))
    wanted = usual if same else usual[:1]
    if entries and len(told) < len(wanted):
        message = f"the line ends before {wanted[len(told)]}: the output was cut; {_HINT}"
        yield Finding(entries[-1].place, entries[-1].key, message)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
