"""Consumer groups as they are reckoned with: members, what they subscribe to, what they own, what partitions weigh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from planner.model.cluster import Cluster, Topic
from planner.model.spec import ConsumerGroup, DescribedGroup, NewPartitions
from planner.whatif import assignors
from planner.whatif.assignors import Ownership, TopicPartition

Measure = Literal["bytes/s", "bytes", "partitions"]
Loads = Mapping[TopicPartition, int]

DEFAULT_ASSIGNOR = "range"


@dataclass(frozen=True)
class Group:
    """A group. `counts` are the partitions of the topics that it reads, `members` the topics of each member.

    `racks` has the members with a `client.rack`. `owners` are who owns what now: read from the cluster where `observed`
    is True, else what the assignor gives to a group that just began.
    """

    name: str
    assignor: str
    counts: Mapping[str, int]
    members: Mapping[str, tuple[str, ...]]
    owners: Ownership
    racks: Mapping[str, str] = field(default_factory=dict)
    observed: bool = False


def measure(cluster: Cluster) -> Measure:
    """What a partition weighs for its consumer: what is written to it, else what it holds, else it counts as one."""
    partitions = [partition for topic in cluster.topics for partition in topic.partitions]
    if any(partition.bytes_in_per_sec for partition in partitions):
        return "bytes/s"
    return "bytes" if cluster.sizes_known else "partitions"


def loads(topics: Iterable[Topic], unit: Measure, added: Iterable[NewPartitions] = ()) -> dict[TopicPartition, int]:
    """What each partition weighs, those to be made included: a whole number of the unit."""
    weighed = {
        (topic.name, each.id): _weight(unit, each.bytes_in_per_sec, each.size_bytes)
        for topic in topics
        for each in topic.partitions
    }
    for new in added:
        weight = _weight(unit, new.bytes_in_per_sec, new.size_bytes)
        weighed |= {(new.topic, number): weight for number in range(new.first, new.count)}
    return weighed


def _weight(unit: Measure, bytes_per_sec: int, size_bytes: int) -> int:
    return {"bytes/s": bytes_per_sec, "bytes": size_bytes, "partitions": 1}[unit]


def resolve(declared: Sequence[ConsumerGroup], topics: Sequence[Topic]) -> tuple[Group, ...]:
    """The groups by name: declared with members, or as their state files describe them.

    What is declared of a member takes precedence over what is found. Members own partitions of the cluster only.
    """
    counts = {topic.name: len(topic.partitions) for topic in topics}
    groups = list[Group]()
    for group in declared:
        if group.described:
            groups.append(_observed(group, group.described, counts))
            continue
        members = {member.id: _subscribed(member.topics, counts) for member in group.members}
        racks = {member.id: member.rack for member in group.members if member.rack is not None}
        groups.append(_with_owners(group.name, group.assignor or DEFAULT_ASSIGNOR, counts, members, racks))
    return tuple(sorted(groups, key=lambda group: group.name))


def _with_owners(
    name: str,
    assignor: str,
    counts: Mapping[str, int],
    members: Mapping[str, tuple[str, ...]],
    racks: Mapping[str, str],
) -> Group:
    read = _read(counts, members)
    return Group(name, assignor, read, members, assignors.assign(assignor, read, members), racks)


def _observed(group: ConsumerGroup, found: DescribedGroup, counts: Mapping[str, int]) -> Group:
    """A group of a state file: Kafka doesn't tell subscriptions, so each member has all topics of the group."""
    declared = {member.id: member for member in group.members}
    topics = tuple(topic for topic in found.topics if topic in counts)
    members = {
        member: _subscribed(declared[member].topics, counts) if member in declared else topics
        for member in found.members
    }
    racks = {member: rack for member in members if member in declared and (rack := declared[member].rack) is not None}
    assignor = group.assignor or (found.assignor if found.assignor in assignors.ASSIGNORS else DEFAULT_ASSIGNOR)
    owners = {member: list(held) for member, held in found.members.items()}
    if not any(owners.values()):
        return _with_owners(found.name, assignor, counts, members, racks)
    return Group(found.name, assignor, _read(counts, members), members, owners, racks, observed=True)


def _subscribed(patterns: Iterable[str], counts: Mapping[str, int]) -> tuple[str, ...]:
    """The topics that shell-style patterns match, by name."""
    wanted = list(patterns)
    return tuple(topic for topic in sorted(counts) if any(fnmatchcase(topic, pattern) for pattern in wanted))


def _read(counts: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The partition counts of the topics that any member subscribes to."""
    wanted = {topic for listed in members.values() for topic in listed}
    return {topic: counts[topic] for topic in sorted(wanted)}
