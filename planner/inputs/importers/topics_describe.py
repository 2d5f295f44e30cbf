"""Reads `kafka-topics --describe`, in every layout from Kafka 0.8 to 4.x.

Each topic has a heading (`Topic: … PartitionCount: …`) and one line per partition. Fields are found by their labels,
because older versions write `Topic:x` without a space and copies from a terminal lose the tabs. 0.8.0
(`kafka-list-topic`) has no headings, and its labels are in lower case.

`Configs` has all that isn't Kafka's default, so a topic's own and inherited configurations look the same. If a topic
doesn't show a key, no topic inherits it, because then all would show it. So the key is the own one of each topic that
shows it. If every topic shows a key, its origin isn't known.
With `--zookeeper` (before 3.0), inherited configurations aren't shown. Headings have a `TopicId` only from brokers. The
layout without spaces (before 2.4) without any configuration is therefore no source of configurations.
Source: `org.apache.kafka.tools.TopicCommand` (kafka.admin.TopicCommand before 3.7).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from planner.inputs.importers.state_parts import AssignmentEntry, Rank, RunningReassignment, StatePart, shown
from planner.model.cluster import NUMBER, TOPIC_ONLY, Config, Partition
from planner.model.errors import MOST_SHOWN, Finding, ImportStateError, Place
from planner.model.formats import counted, first_names

TITLE = "kafka-topics --describe"

_LABELS = (
    "Topic|TopicId|PartitionCount|ReplicationFactor|Configs|MarkedForDeletion|Partition|Leader|Replicas|Isr|"
    "Adding Replicas|Removing Replicas|Elr|LastKnownElr|Observers|Offline|Live"
)
_FIELD = re.compile(rf"(?:^|(?<=\s))({_LABELS}):")
_SMALL = {label.lower(): label for label in ("Topic", "Partition", "Leader", "Replicas", "Isr")}
_SMALL_FIELD = re.compile(rf"(?:^|(?<=\s))({'|'.join(_SMALL)}):")
# Matches nearly every line of a long output; `_fields` parses the others.
_USUAL = re.compile(
    r"[\t ]*Topic: (\S+)\tPartition: ([0-9]{1,10})\tLeader: ([0-9]{1,10})\tReplicas: ([0-9]{1,10}(?:,[0-9]{1,10})*)"
    r"\tIsr: ([0-9]{1,10}(?:,[0-9]{1,10})*)(?:\tElr: (?:N/A|[0-9,]*)\tLastKnownElr: (?:N/A|[0-9,]*))?[\t ]*",
    re.ASCII,
)
_CONFIG = re.compile(r"(?:^|,)([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+|preallocate)=")
# The labels at the end of a partition's line. If the output was cut within its last line, some are missing there.
_LAST_LABELS = re.compile(r"(?<=\s)(?:isr|elr|lastknownelr)(?=:)", re.IGNORECASE)
_NO_LEADER = ("none", "-1", "")
_HINT = "allowed: what kafka-topics --describe prints, headings included and without filters"
# Kafka's controllers aim at two million partitions. Output with more than these limits isn't from a real cluster.
_MOST_TOPICS, _MOST_PARTITIONS = 1_000_000, 5_000_000


@dataclass(frozen=True, slots=True)
class Heading:
    """A topic's heading: its name, the number of partitions that follow, its configuration."""

    place: Place
    topic: str
    partitions: int
    config: Config


@dataclass
class _ReadTopics:
    """What is collected line by line."""

    headings: dict[str, Heading] = field(default_factory=dict)
    entries: list[AssignmentEntry] = field(default_factory=list)
    moving: list[RunningReassignment] = field(default_factory=list)
    deleting: set[str] = field(default_factory=set)
    without_headings: set[str] = field(default_factory=set)
    without_spaces: set[str] = field(default_factory=set)
    with_ids: set[str] = field(default_factory=set)
    with_observers: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


class _LineError(ValueError):
    """One line can't be read; the message says why."""


def recognizes(text: str) -> bool:
    """True if any line begins like this format. `read_part` refuses other lines, with their numbers."""
    return re.search(r"^\s*(?:Topic|topic):", text, re.MULTILINE) is not None


def read_part(text: str, file: str) -> StatePart:
    """The topics in the text. ImportStateError names each bad line; after a hundred, it only counts unread lines."""
    collected = _ReadTopics()
    entry_count, line_before, last_line = 0, "", ""
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        entry = _usual_entry(line, number, file)
        if entry is not None:
            collected.entries.append(entry)
        elif line.strip():
            _read_line(line, number, file, collected)
        if len(collected.findings) >= MOST_SHOWN - 1 or _too_many(collected, Place(file, number, 1)):
            if unread := len(lines) - number:
                message = f"too many errors: the other {unread:,} lines weren't read; {_HINT}"
                collected.findings.append(Finding(Place(file, number + 1, 1), "", message))
            raise ImportStateError(collected.findings)
        if len(collected.entries) > entry_count:
            entry_count, line_before, last_line = len(collected.entries), last_line, line
    if findings := collected.findings or [
        *_count_findings(collected),
        *_cut_findings(collected, line_before, last_line),
    ]:
        raise ImportStateError(findings)
    return _part(collected, file)


def _part(collected: _ReadTopics, file: str) -> StatePart:
    """All that was read. The origin of a key that every topic shows is unknown; see the module's docstring."""
    configs = {heading.topic: heading.config for heading in collected.headings.values()}
    staying = [config for topic, config in configs.items() if topic not in collected.deleting] or list(configs.values())
    if collected.without_spaces and not any(configs.values()):
        configs = {}
    keys = [{key for key, _ in config} for config in staying]
    everywhere = (set.intersection(*keys) if keys else set()) - TOPIC_ONLY
    own_configs = {
        topic: tuple(pair for pair in config if pair[0] not in everywhere) for topic, config in configs.items()
    }
    unsourced = {topic: tuple(pair for pair in config if pair[0] in everywhere) for topic, config in configs.items()}
    observed = sorted(collected.with_observers)
    note = (
        f"{counted(len(observed), 'topic')} with Confluent Platform's observers ({first_names(observed)}): they count "
        "as replicas out of sync, and a plan's reassignment names no observers; add the topics to topics.exclude"
    )
    return StatePart(
        TITLE,
        file,
        Rank.CLUSTER,
        tuple(collected.entries),
        own_configs,
        frozenset(collected.deleting),
        leaders_known=True,
        complete=True,
        moving=tuple(collected.moving),
        notes=(note,) if observed else (),
        effective_configs={topic: config for topic, config in unsourced.items() if config},
        shows_inherited=bool(configs) and configs.keys() <= collected.with_ids,
    )


def _usual_entry(line: str, number: int, file: str) -> AssignmentEntry | None:
    """The partition of a line in the usual form; None for other lines."""
    match = _USUAL.fullmatch(line.rstrip("\r"))
    if match is None:
        return None
    topic, partition, leader, replicas, isr = match.groups()
    column = match.start(1) - len("Topic: ") + 1
    row = Partition(int(partition), _ids(replicas), int(leader), _ids(isr))
    return AssignmentEntry(Place(file, number, column), f"{topic}-{partition}", topic, row)


@lru_cache(maxsize=100_000)
def _ids(text: str) -> tuple[int, ...]:
    """Brokers' ids. Cached, because a cluster has many times more partitions than distinct lists."""
    return tuple(map(int, text.split(",")))


def _read_line(line: str, number: int, file: str, collected: _ReadTopics) -> None:
    place = Place(file, number, len(line) - len(line.lstrip()) + 1)
    try:
        fields = _fields(line.strip(), collected)
        if fields.get("MarkedForDeletion") == "true":
            collected.deleting.add(fields["Topic"])
        if "Partition" in fields:
            entry = _entry(fields, place)
            collected.entries.append(entry)
            if fields.get("Observers"):
                collected.with_observers.add(entry.topic)
            # For a while after a reassignment has ended, the labels are still there without values.
            adding, removing = (_brokers(fields, f"{label} Replicas") for label in ("Adding", "Removing"))
            if adding or removing:
                row = entry.partition
                collected.moving.append(RunningReassignment(place, entry.topic, row.id, adding, removing, row.replicas))
        else:
            # `a.b=1,c.d=x,y`: a comma is part of a value unless a key and `=` come after it.
            text = fields.get("Configs", "")
            before, *parts = _CONFIG.split(text)
            if before:
                raise _LineError(f"Configs is {shown(text)}; allowed: key=value with commas between them")
            config = tuple(sorted(zip(parts[0::2], parts[1::2], strict=True)))
            heading = Heading(place, fields["Topic"], _number(fields, "PartitionCount"), config)
            if "TopicId" in fields:
                collected.with_ids.add(heading.topic)
            if collected.headings.setdefault(heading.topic, heading) is not heading:
                collected.findings.append(Finding(place, heading.topic, f"the topic is here twice; {_HINT}"))
    except _LineError as error:
        collected.findings.append(Finding(place, "", str(error)))


def _fields(line: str, collected: _ReadTopics) -> dict[str, str]:
    """Labels and their values. A value ends at the next label."""
    fields = _labeled(_FIELD, line)
    if not fields and line.startswith("topic:"):
        fields = {_SMALL[label]: value for label, value in _labeled(_SMALL_FIELD, line).items()}
        collected.without_headings.add(fields["Topic"])
    if "Topic" not in fields or not fields.keys() & {"Partition", "PartitionCount"}:
        raise _LineError(f"{shown(line)} isn't a topic or a partition; {_HINT}")
    if "PartitionCount" in fields and not line.startswith("Topic: "):
        collected.without_spaces.add(fields["Topic"])
    return fields


def _labeled(label: re.Pattern[str], line: str) -> dict[str, str]:
    _, *parts = label.split(line)
    return dict(zip(parts[0::2], map(str.strip, parts[1::2]), strict=True))


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


def _number(fields: dict[str, str], label: str) -> int:
    value = fields.get(label, "")
    if not NUMBER.fullmatch(value):
        raise _LineError(f"{label} is {shown(value)}; allowed: a whole number from 0")
    return int(value)


def _brokers(fields: dict[str, str], label: str) -> tuple[int, ...]:
    value = fields.get(label, "")
    words = [word.strip() for word in value.split(",")] if value else []
    for word in words:
        if not NUMBER.fullmatch(word):
            raise _LineError(f"{label} has {shown(word)}; allowed: brokers' ids with commas between them")
    return tuple(int(word) for word in words)


def _too_many(collected: _ReadTopics, place: Place) -> bool:
    for noun, count, most in (
        ("topics", len(collected.headings), _MOST_TOPICS),
        ("partitions", len(collected.entries), _MOST_PARTITIONS),
    ):
        if count > most:
            collected.findings.append(Finding(place, "", f"more than {most:,} {noun}; allowed: at most that many"))
            return True
    return False


def _count_findings(collected: _ReadTopics) -> Iterator[Finding]:
    """Findings for topics without a heading or with another number of partitions: the output was filtered or cut."""
    counts = Counter(entry.topic for entry in collected.entries)
    unlike = [each for each in collected.headings.values() if counts[each.topic] != each.partitions]
    for heading in unlike[: MOST_SHOWN - 1]:
        follow = counted(counts[heading.topic], "partition")
        message = f"PartitionCount is {heading.partitions}, but lines of {follow} follow; {_HINT}"
        yield Finding(heading.place, heading.topic, message)
    if unlisted := unlike[MOST_SHOWN - 1 :]:
        message = (
            f"the same in {len(unlisted):,} topics from here on: PartitionCount isn't the number of lines that follow"
        )
        yield Finding(unlisted[0].place, "", message)
        return
    without_heading = counts.keys() - collected.headings.keys() - collected.without_headings
    if not without_heading:
        return
    for entry in collected.entries:
        if entry.topic in without_heading:
            without_heading.discard(entry.topic)
            yield Finding(entry.place, entry.topic, f"the topic has no heading with its PartitionCount; {_HINT}")


def _cut_findings(collected: _ReadTopics, line_before: str, last_line: str) -> Iterator[Finding]:
    """A finding if the last partition's line has fewer labels than the line before; its last number may be cut too.

    Every Kafka prints `Isr`. The labels after it are compared only with a line of the same topic.
    """
    entries = collected.entries[-2:]
    same_topic = len(entries) == 2 and entries[0].topic == entries[1].topic
    labels, usual = (_LAST_LABELS.findall(line) for line in (last_line, line_before))
    expected = usual if same_topic else usual[:1]
    if entries and len(labels) < len(expected):
        message = f"the line ends before {expected[len(labels)]}: the output was cut; {_HINT}"
        yield Finding(entries[-1].place, entries[-1].key, message)
