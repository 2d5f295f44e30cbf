"""Reads `kafka-consumer-groups --describe`: offsets, `--members` (with `--verbose` or without), and `--state`.

Also reads `kafka-share-groups --describe`, in which several members may have the same partition. One file may have
several outputs, one after the other. Columns are found by their headings, because versions differ: up to 3.9, an
assignment is `orders(0,1), payments(2)`, from 4.0 on `orders:0,1;payments:2`.
Source: org.apache.kafka.tools.consumer.group.ConsumerGroupCommand and ShareGroupCommand.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.model.cluster import NUMBER, PartitionKey
from planner.model.document_fields import LARGEST_ID
from planner.model.errors import Finding, ImportStateError, Place
from planner.model.spec import DescribedGroup

_HEADING = re.compile(r"^GROUP\s+(?:TOPIC|CONSUMER-ID|COORDINATOR)\b")
_OLD = re.compile(r"([^\s,;:()]+)\(([0-9,]*)\)")
_NEW = re.compile(r"([^\s,;:()]+):([0-9,]+)(?:;|$)")
# Kafka's messages about a group on stderr and above its tables.
_CHATTER = re.compile(
    r"^(?:Consumer group '|Share group '|Warning: |\s*$"
    r"|Error: (?:The consumer|Consumer|Share) group '.*' does not exist)"
)
_ERROR = "Error: "
_HINT = "allowed: what kafka-consumer-groups --describe prints, with --members --verbose or without"
# The only assignor of share groups (KIP-932).
SHARED = "simple"
MISSING = "-"


@dataclass
class _GroupLines:
    """A group as described by the lines that were read so far."""

    assignor: str = ""
    owned: dict[str, set[PartitionKey]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)


def parse(text: str, file: str) -> tuple[DescribedGroup, ...]:
    """The groups, by name. ImportStateError names each line that can't be read."""
    group_lines: dict[str, _GroupLines] = {}
    findings: list[Finding] = []
    columns: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _HEADING.match(line):
            columns = line.replace("COORDINATOR (ID)", "COORDINATOR ID").split()
            findings += [Finding(Place(file, number, 1), "", f"{each}; {_HINT}") for each in _lacking(columns)]
        elif line.startswith(_ERROR) and not _CHATTER.match(line):
            # Alone, because a stack trace may follow.
            message = f"{line[:160]!r}: what the tool printed may be incomplete; allowed: its output without an error"
            raise ImportStateError([Finding(Place(file, number, 1), "", message)])
        elif not _CHATTER.match(line) and not [*_lacking(columns)]:
            try:
                _add_row(_cells(columns, line), group_lines)
            except ValueError as error:
                findings.append(Finding(Place(file, number, 1), "", f"{error}; {_HINT}"))
    findings += [*_owned_twice(group_lines, file)]
    if not group_lines and not findings:
        findings.append(Finding(Place(file, 1, 1), "", f"no group is described; {_HINT}"))
    if findings:
        raise ImportStateError(findings)
    groups = []
    for name, group in sorted(group_lines.items()):
        members = {member: tuple(sorted(owned)) for member, owned in sorted(group.owned.items())}
        groups.append(DescribedGroup(name, group.assignor, members, tuple(sorted(group.topics))))
    return tuple(groups)


def _lacking(columns: Sequence[str]) -> Iterator[str]:
    """Messages about columns that a heading lacks, so that the lines below it can't be read."""
    if not columns or "COORDINATOR" in columns or "START-OFFSET" in columns:
        return
    for name in ("CONSUMER-ID", *(("PARTITION",) if "TOPIC" in columns else ())):
        if name not in columns:
            yield f"the heading {' '.join(columns)[:60]!r} has no column {name}"


def _is_share(columns: Sequence[str]) -> bool:
    """True for a heading of kafka-share-groups. Old versions of kafka-consumer-groups have the same one for members."""
    if "CONSUMER-ID" not in columns:
        return "START-OFFSET" in columns or ("COORDINATOR" in columns and "ASSIGNMENT-STRATEGY" not in columns)
    return "ASSIGNMENT" in columns and "GROUP-INSTANCE-ID" not in columns


def _cells(columns: Sequence[str], line: str) -> dict[str, str]:
    """The line's words by their columns. The last column may have spaces: an assignment in the old form."""
    if not columns:
        raise ValueError(f"{line[:60]!r} stands under no heading")
    words = line.split(None, len(columns) - 1)
    if len(words) == len(columns) - 1 and _is_share(columns):
        words.append("")  # the assignment of a member without partitions
    if len(words) < len(columns):
        raise ValueError(f"{line[:60]!r} has {len(words)} of {len(columns)} columns")
    cells = dict(zip(columns, words, strict=True))
    # Otherwise, members whose client.id has a space would seem to be one.
    if not (host := cells.get("HOST", MISSING)).startswith(("/", MISSING)):
        raise ValueError(f"{line[:60]!r} has the host {host[:60]!r}; names with spaces can't be read")
    return cells


def _add_row(cells: Mapping[str, str], group_lines: dict[str, _GroupLines]) -> None:
    group = group_lines.setdefault(cells["GROUP"], _GroupLines())
    # Old versions of kafka-consumer-groups may have the same heading, but their assignments have no colon.
    if _is_share([*cells]) and (":" in (assigned := cells.get("ASSIGNMENT", "")) or not assigned):
        group.assignor = SHARED
        if "CONSUMER-ID" not in cells:
            group.topics |= {cells["TOPIC"]} if "TOPIC" in cells else set()
            return
    if "ASSIGNMENT-STRATEGY" in cells:
        group.assignor = "" if cells["ASSIGNMENT-STRATEGY"] == MISSING else cells["ASSIGNMENT-STRATEGY"]
        return
    topic, member = cells.get("TOPIC"), cells["CONSUMER-ID"].strip()
    if topic is None:
        assignment = cells.get("CURRENT-ASSIGNMENT", cells.get("ASSIGNMENT"))
        owned = set() if assignment is None else set(_assigned(assignment.strip()))
        # The end of a long line gets lost where it is cut off.
        if assignment is not None and (count := cells.get("#PARTITIONS", "")).isdecimal() and int(count) != len(owned):
            raise ValueError(f"member {member[:60]!r} has {count} in #PARTITIONS, and an assignment of {len(owned)}")
        group.owned.setdefault(cells["CONSUMER-ID"], set()).update(owned)
        group.topics |= {name for name, _ in owned}
        return
    # Kafka prints - as the topic of a group without offsets, and as the member of a partition without an owner.
    if topic != MISSING:
        group.topics.add(topic)
    if member != MISSING:
        owned = {(topic, _partition(cells["PARTITION"]))} if topic != MISSING else set()
        group.owned.setdefault(member, set()).update(owned)


def _assigned(text: str) -> Iterator[PartitionKey]:
    if text in ("", MISSING):
        return
    form = _OLD if "(" in text else _NEW
    if form.sub("", text).strip(" ,"):
        raise ValueError(f"assignment {text[:60]!r} isn't topics with their partitions")
    for topic, numbers in form.findall(text):
        for number in filter(None, numbers.split(",")):
            yield topic, _partition(number)


def _partition(text: str) -> int:
    if not NUMBER.fullmatch(text) or int(text) > LARGEST_ID:
        raise ValueError(f"{text[:60]!r} isn't a partition's id")
    return int(text)


def _owned_twice(group_lines: Mapping[str, _GroupLines], file: str) -> Iterator[Finding]:
    """Findings for partitions that two members of a group own, because the file has two states of the group."""
    for name in sorted(name for name, group in group_lines.items() if group.assignor != SHARED):
        owner: dict[PartitionKey, str] = {}
        for member, owned in sorted(group_lines[name].owned.items()):
            for topic, partition in sorted(owned):
                first_member = owner.setdefault((topic, partition), member)
                if first_member != member:
                    message = f"{topic}-{partition} of group {name} is owned by {first_member!r} and by {member!r}"
                    yield Finding(Place(file), name, f"{message}; allowed: one state of each group")
