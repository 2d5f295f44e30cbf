"""What importers share: `StatePart`, which is what one source says about a cluster, and reading JSON with places.

If sources differ, the one of the first rank counts, and within a rank the first source: see
`planner.inputs.state.merge`. `assignment` makes topics from the partitions that were read.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import groupby, repeat
from typing import Any, Self, TypeGuard, TypeVar

from planner.model.cluster import Config, LogDirs, Partition, PartitionKey, Topic
from planner.model.document_fields import LARGEST_ID
from planner.model.errors import Finding, ImportStateError, Place
from planner.model.file_reading import no_number

TOPIC_NAME = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}", re.ASCII)
OF_TOPIC_NAME = "1 to 249 of the characters a-z, A-Z, 0-9, dot, underscore and hyphen"


@dataclass(frozen=True, slots=True)
class AssignmentEntry:
    """One partition, with its place in the file and its key there for messages."""

    place: Place
    key: str
    topic: str
    partition: Partition


class Rank(IntEnum):
    """The precedence of sources: first brokers' answers, then ZooKeeper's data, then documents."""

    CLUSTER = 0
    ZNODES = 1
    DOCUMENT = 2


@dataclass(frozen=True, slots=True)
class RunningReassignment:
    """A partition that is being reassigned now.

    `replicas` are all its replicas during the reassignment, including those to be removed; None if the source lists
    only adding and removing replicas.
    """

    place: Place
    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...] | None = None
    key: str = ""


# A partition's leader, None without one, and its ISR, None if not known.
LeaderAndIsr = tuple[int | None, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A registered broker, with its `broker.rack`, None without one; `source` is the file, as written.

    `disk_bytes` is what it may store, None if the source doesn't say it. `answers` is False if it gave Kafka's tool an
    error.
    """

    place: Place
    id: int
    rack: str | None
    source: str = ""
    disk_bytes: int | None = None
    answers: bool = True


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """The declared values of a topic; None if not known."""

    topic: str
    partitions: int | None
    replication_factor: int | None
    config: Config = ()


@dataclass(frozen=True)
class StatePart:
    """The state according to one source. `title` names this kind of source, `file` is its path as written. Notes use
    `file`, because places may have a path of the machine. `sha256` is the file's digest, empty for a running cluster.

    `entries` are partitions. If `leaders_known` is False, their first replicas count as leaders. If not `complete`, the
    source may list only some of a topic's partitions. `only_topics` are the topics that may move, None if not
    known.

    `configs` are topics' own. `effective_configs` are also in force, but the source doesn't say whether the topic sets
    or inherits them. Any other key has Kafka's default or an inherited value. `config_defaults` is what brokers and the
    cluster set for all topics. `cordoned` are each broker's log dirs that get no new replica, `*` for all
    (`cordoned.log.dirs`, KIP-1066). `platform` is the brokers' provider and type, for example `msk.m7g.large`.
    `sizes` are of `size_replicas`, the partitions of each broker, if the source says whose they are; the `idle` brokers
    have none. `log_dirs` reads each replica's log dir, only if called: few plans need them, and ImportStateError names
    each bad entry.
    `shows_inherited`: the topics' configurations have all that isn't Kafka's default.
    """

    title: str
    file: str
    rank: Rank = Rank.DOCUMENT
    entries: tuple[AssignmentEntry, ...] = ()
    configs: Mapping[str, Config] = field(default_factory=dict)
    deleting: frozenset[str] = frozenset()
    leaders_known: bool = False
    complete: bool = False
    leaders: Mapping[PartitionKey, LeaderAndIsr] = field(default_factory=dict)
    moving: tuple[RunningReassignment, ...] = ()
    brokers: tuple[RegisteredBroker, ...] = ()
    sizes: Mapping[PartitionKey, int] | None = None
    size_replicas: Mapping[int, tuple[PartitionKey, ...]] = field(default_factory=dict)
    idle: tuple[int, ...] = ()
    only_topics: tuple[str, ...] | None = None
    targets: tuple[TopicTarget, ...] = ()
    notes: tuple[str, ...] = ()
    effective_configs: Mapping[str, Config] = field(default_factory=dict)
    config_defaults: Config = ()
    cordoned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    platform: str = ""
    log_dirs: Callable[[], LogDirs] | None = None
    shows_inherited: bool = False
    sha256: str = ""


def largest_sizes(replicas: Iterable[tuple[PartitionKey, int]]) -> dict[PartitionKey, int]:
    """The bytes of each partition's largest replica; `replicas` are ((topic, partition), bytes)."""
    sizes: dict[PartitionKey, int] = {}
    for key, size_bytes in replicas:
        sizes[key] = max(size_bytes, sizes.get(key, 0))
    return sizes


def moving_finding(moving: RunningReassignment) -> Finding:
    """The finding that refuses a state with this reassignment in progress."""
    label, brokers = ("Adding", moving.adding) if moving.adding else ("Removing", moving.removing)
    detail = f" ({label} Replicas: {', '.join(map(str, brokers))})" if brokers else ""
    message = (
        f"partition {moving.partition} of {moving.topic} is being reassigned{detail}; "
        "allowed: a state without reassignments in progress; wait for them, or cancel them"
    )
    return Finding(moving.place, moving.key, message)


@dataclass(frozen=True)
class Assignment:
    """Today's topics, by name, and the entries that they were made from."""

    topics: tuple[Topic, ...] = ()
    entries: tuple[AssignmentEntry, ...] = ()

    def with_partitions(self, change: Callable[[str, Partition], Partition]) -> Self:
        """The topics with each partition replaced by `change(topic, partition)`; the entries stay as they were read."""
        topics = (
            replace(topic, partitions=tuple(change(topic.name, each) for each in topic.partitions))
            for topic in self.topics
        )
        return replace(self, topics=tuple(topics))


def assignment(
    entries: Iterable[AssignmentEntry],
    configs: Mapping[str, Config],
    deleting: Collection[str],
    effective: Mapping[str, Config],
) -> Assignment:
    """The entries as topics. ImportStateError names every error in them.

    `configs` are the topics' own; `effective` is also in force, but of unknown origin.
    """
    ordered = sorted(entries, key=lambda entry: (entry.topic, entry.partition.id))
    sound(entry_findings(ordered))
    topics = []
    for name, group in groupby(ordered, key=lambda entry: entry.topic):
        partitions = tuple(entry.partition for entry in group)
        topics.append(Topic(name, partitions, configs.get(name, ()), name in deleting, effective.get(name, ())))
    return Assignment(tuple(topics), tuple(ordered))


def entry_findings(ordered: Iterable[AssignmentEntry]) -> Iterator[Finding]:
    """Errors in entries, sorted by topic and partition, that can be found without knowing the cluster."""
    for name, group in groupby(ordered, key=lambda entry: entry.topic):
        entries = list(group)
        if not TOPIC_NAME.fullmatch(name):
            message = f"{name!r} can't be a topic's name; allowed: {OF_TOPIC_NAME}"
            yield Finding(entries[0].place, entries[0].key, message)
        yield from _numbering_findings(entries)
        for entry in entries:
            yield from replica_findings(entry)


def _numbering_findings(entries: list[AssignmentEntry]) -> Iterator[Finding]:
    by_number: dict[int, AssignmentEntry] = {}
    for entry in entries:
        number = entry.partition.id
        first_entry = by_number.setdefault(number, entry)
        if first_entry is not entry:
            earlier, later = sorted((first_entry, entry), key=lambda each: each.place)
            message = f"partition {number} of {entry.topic} is here twice, first at {earlier.place}; allowed: once"
            yield Finding(later.place, later.key, message)
    for expected, number in enumerate(sorted(by_number)):
        if expected != number:
            entry = by_number[number]
            message = (
                f"partition {expected} of {entry.topic} is missing before {number}; allowed: 0, 1, 2 … without gap"
            )
            yield Finding(entry.place, entry.key, message)
            return


def replica_findings(entry: AssignmentEntry) -> Iterator[Finding]:
    """Findings for empty or repeated replicas, ids out of range, and a leader or ISR outside the replicas."""
    replicas, leader = entry.partition.replicas, entry.partition.leader
    strangers = [broker for broker in entry.partition.isr or () if broker not in replicas]
    leads_elsewhere = leader is not None and leader not in replicas
    messages: list[str] = []
    if not replicas:
        messages.append("has no replicas; allowed: at least one broker")
    elif len(set(replicas)) < len(replicas) or not 0 <= min(replicas) <= max(replicas) <= LARGEST_ID:
        for broker, times in Counter(replicas).items():
            if times > 1:
                messages.append(f"broker {broker} is {times} times in replicas; allowed: once")
            if not 0 <= broker <= LARGEST_ID:
                messages.append(f"broker {broker} can't exist; allowed: ids from 0 to {LARGEST_ID}")
    if strangers or leads_elsewhere:
        listed = ", ".join(map(str, replicas))
        if leads_elsewhere:
            messages.append(f"leader {leader} isn't a replica; allowed: none, {listed}")
        messages += [f"broker {broker} of the ISR isn't a replica; allowed: {listed}" for broker in strangers]
    yield from (Finding(entry.place, entry.key, message) for message in messages)


_T = TypeVar("_T")


def decoder(of_object: Callable[[dict[str, Any]], object] = lambda value: value) -> json.JSONDecoder:
    """A decoder that refuses repeated keys. `of_object` replaces each object by a value, innermost objects first."""

    def unique(pairs: list[tuple[str, Any]]) -> object:
        value = dict(pairs)
        if len(value) == len(pairs):
            return of_object(value)
        keys = Counter(key for key, _ in pairs)
        twice = next(key for key, times in keys.items() if times > 1)
        raise ValueError(f"the key {twice[:60]!r} is here twice among {', '.join(value)[:200]}")

    return json.JSONDecoder(object_pairs_hook=unique, parse_constant=no_number)


DECODER = decoder()
_BETWEEN = re.compile(r"[\s,]*")
_ALLOWED = "allowed: the complete JSON as Kafka's tool prints it"


def places(text: str, file: str) -> Callable[[int], Place]:
    """A function that gives the line and the column of any position in a text."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(position: int) -> Place:
        line = bisect_right(starts, position)
        return Place(file, line, position - starts[line - 1] + 1)

    return place


def place_of(text: str, position: int, file: str) -> Place:
    """The line and the column of one position in a text."""
    return places(text, file)(position)


def begins_object(text: str) -> bool:
    """True if the text may begin with a JSON object."""
    return re.match(r"\s*\{", text) is not None


def read_object(text: str, start: int, file: str, parser: json.JSONDecoder = DECODER) -> tuple[dict[str, Any], int]:
    """The JSON object at `start`, and where it ends. ImportStateError if there is none."""
    position = start
    try:
        value, end = parser.raw_decode(text, start)
        if isinstance(value, dict):
            return value, end
        message = "a JSON object is needed here"
    except json.JSONDecodeError as error:
        position, message = error.pos, f"not JSON: {error.msg}; {_ALLOWED}"
    except RecursionError:
        message = f"not usable JSON: it is nested too deeply; {_ALLOWED}"
    except ValueError as error:
        # Python's own message about its limit is advice for programmers.
        many_digits = str(error).startswith("Exceeds the limit")
        message = f"not usable JSON: {'a number has thousands of digits' if many_digits else error}; {_ALLOWED}"
    raise ImportStateError([Finding(place_of(text, position, file), "", message)])


def refuse_rest(text: str, end: int, file: str, allowed: str) -> None:
    """Raises ImportStateError if anything but whitespace follows the JSON that ends at `end`."""
    if remainder := text[end:].lstrip():
        message = f"something follows the JSON; {allowed}"
        raise ImportStateError([Finding(place_of(text, len(text) - len(remainder), file), "", message)])


def read_alone(text: str, file: str) -> tuple[dict[str, Any], Place]:
    """The only JSON object of a text, and where it begins. ImportStateError for anything else."""
    start = len(text) - len(text.lstrip())
    value, end = read_object(text, start, file)
    refuse_rest(text, end, file, "allowed: one JSON object, alone")
    return value, place_of(text, start, file)


def item_places(text: str, key: str, start: int, file: str) -> Iterator[Place]:
    """The place of each item in the list under `key`, in valid JSON at `start` whose first `key` is that list; then
    the place of `start` without end, because a list under a repeated `key` may have more items.
    """
    place = places(text, file)
    head = re.compile(rf'"{re.escape(key)}"\s*:\s*\[').search(text, start)
    position = _past_separators(text, head.end()) if head else len(text)
    while position < len(text) and text[position] != "]":
        yield place(position)
        position = _past_separators(text, DECODER.raw_decode(text, position)[1])
    yield from repeat(place(start))


def _past_separators(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def items(value: Any, key: str) -> list[Any]:
    """The list under a key of an object; empty if `value` isn't an object or has no list there."""
    values = value.get(key) if isinstance(value, dict) else None
    return values if isinstance(values, list) else []


def sound(results: Iterable[_T | Finding]) -> list[_T]:
    """The values that were read. ImportStateError with all findings, if there are any."""
    all_results = list(results)
    if findings := [each for each in all_results if isinstance(each, Finding)]:
        raise ImportStateError(findings)
    return [each for each in all_results if not isinstance(each, Finding)]


def shown(value: Any) -> str:
    """A value for a message, cut after 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_id(value: Any) -> TypeGuard[int]:
    """True for a whole number that can be an id in Kafka."""
    return type(value) is int and 0 <= value < 2**31


def is_ids(value: Any) -> bool:
    """True for a list of brokers' ids."""
    return isinstance(value, list) and all(is_id(each) for each in value)
