"""Consumer groups with their owners, and what moves if a member leaves or joins, or if partitions or racks change.

If partitions are added, also the share of keys that get another partition, as Kafka's default partitioner hashes them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm
from typing import Literal

from planner.model.cluster import Cluster, PartitionKey, Topic, keyed_partitions
from planner.model.formats import counted
from planner.model.spec import ConsumerGroup, DescribedGroup, NewPartitions, matches_any
from planner.plan.document.whatif_types import GroupEventRow, MemberSpread
from planner.whatif import assignors
from planner.whatif.own_assignors import Ownership

LoadUnit = Literal["bytes/s", "bytes", "partitions"]
PartitionLoads = Mapping[PartitionKey, int]

DEFAULT_ASSIGNOR = "range"
_KNOWN = (*assignors.ASSIGNORS, assignors.SHARE_ASSIGNOR)


@dataclass(frozen=True)
class Group:
    """A group. `counts`: the partitions of the topics that it reads. `members`: the topics of each member.

    `racks`: the members with a `client.rack`. `partition_racks`: the racks of each partition's replicas today, if any
    member has one. `instances`: the `group.instance.id` of static members. `topic_ids`: the
    topics' ids as far as known. `owners`: who owns what now, read from the cluster if `observed` is True, else what the
    assignor gives to a new group.
    """

    name: str
    assignor: str
    counts: Mapping[str, int]
    members: Mapping[str, tuple[str, ...]]
    owners: Ownership
    racks: Mapping[str, str] = field(default_factory=dict)
    observed: bool = False
    instances: Mapping[str, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    partition_racks: Mapping[PartitionKey, frozenset[str]] = field(default_factory=dict)


def load_unit(cluster: Cluster) -> LoadUnit:
    """The unit of a partition's load on its consumer: bytes/s written if known, else bytes stored, else 1 each."""
    if any(partition.bytes_in_per_sec for _, partition in keyed_partitions(cluster.topics)):
        return "bytes/s"
    return "bytes" if cluster.sizes_known else "partitions"


def loads(topics: Iterable[Topic], unit: LoadUnit, added: Iterable[NewPartitions] = ()) -> dict[PartitionKey, int]:
    """The load of each partition, including new ones: a whole number of the unit."""
    partition_loads = {
        key: _weight(unit, each.bytes_in_per_sec, each.size_bytes) for key, each in keyed_partitions(topics)
    }
    for new in added:
        weight = _weight(unit, new.bytes_in_per_sec, new.size_bytes)
        partition_loads |= {(new.topic, number): weight for number in range(new.first, new.count)}
    return partition_loads


def _weight(unit: LoadUnit, bytes_per_sec: int, size_bytes: int) -> int:
    return {"bytes/s": bytes_per_sec, "bytes": size_bytes, "partitions": 1}[unit]


def resolve_groups(declared: Sequence[ConsumerGroup], cluster: Cluster) -> tuple[Group, ...]:
    """The groups by name: declared with members, or as their state files describe them.

    What is declared for a member overrides what is found. Members own only partitions of the cluster.
    """
    counts = {topic.name: len(topic.partitions) for topic in cluster.topics}
    racks = dict[PartitionKey, frozenset[str]]()
    if any(member.rack is not None for group in declared for member in group.members):
        rack_of = {broker.id: broker.rack for broker in cluster.brokers}
        racks = {key: racks_of(each.replicas, rack_of) for key, each in keyed_partitions(cluster.topics)}
    groups = list[Group]()
    for group in declared:
        if group.described:
            groups.append(_described_group(group, group.described, counts, racks))
            continue
        members = {member.id: _subscribed(member.topics, counts) for member in group.members}
        groups.append(_with_owners(group, group.assignor or DEFAULT_ASSIGNOR, counts, members, racks))
    return tuple(sorted(groups, key=lambda group: group.name))


def _with_owners(
    declared: ConsumerGroup,
    assignor: str,
    counts: Mapping[str, int],
    members: Mapping[str, tuple[str, ...]],
    partition_racks: Mapping[PartitionKey, frozenset[str]],
) -> Group:
    """The group with the owners that the assignor gives to a new group."""
    racks = {each.id: each.rack for each in declared.members if each.rack is not None and each.id in members}
    instances = {each.id: each.instance for each in declared.members if each.instance is not None}
    ids = dict(declared.topic_ids)
    read_counts = _read_counts(counts, members)
    group = Group(declared.name, assignor, read_counts, members, {}, racks, False, instances, ids, partition_racks)
    return replace(group, owners=assigned(group, assignor, None))


def assigned(group: Group, assignor: str, owners: Ownership | None) -> Ownership:
    """Who owns what under an assignor that starts from the current owners; None for a new group."""
    ids, instances, racks = group.topic_ids, group.instances, assignors.Racks(group.racks, group.partition_racks)
    return assignors.assign(
        assignor, group.counts, group.members, owners, topic_ids=ids, instances=instances, racks=racks
    )


def _described_group(
    group: ConsumerGroup,
    described: DescribedGroup,
    counts: Mapping[str, int],
    racks: Mapping[PartitionKey, frozenset[str]],
) -> Group:
    """A group of a state file. Kafka doesn't report subscriptions: each member reads the YAML's topics of the group, or
    else all those that somebody owns.
    """
    declared = {member.id: member.topics for member in group.members if member.topics}
    topics = _subscribed(group.topics, counts) or tuple(topic for topic in described.topics if topic in counts)
    members = {
        member: _subscribed(declared[member], counts) if member in declared else topics for member in described.members
    }
    assignor = group.assignor or (described.assignor if described.assignor in _KNOWN else DEFAULT_ASSIGNOR)
    owners = {member: list(partitions) for member, partitions in described.members.items()}
    assigned_group = _with_owners(group, assignor, counts, members, racks)
    return replace(assigned_group, owners=owners, observed=True) if any(owners.values()) else assigned_group


def _subscribed(patterns: Iterable[str], counts: Mapping[str, int]) -> tuple[str, ...]:
    """The topics that shell-style patterns match, by name."""
    all_patterns = list(patterns)
    return tuple(topic for topic in sorted(counts) if matches_any(topic, all_patterns))


def _read_counts(counts: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The partition counts of the topics that any member subscribes to."""
    topics = {topic for listed in members.values() for topic in listed}
    return {topic: counts[topic] for topic in sorted(topics)}


# The assignors whose members continue to read the partitions that they keep.
COOPERATIVE = ("cooperative-sticky", *assignors.SERVER_ASSIGNORS)
# Each leaver takes a full assignment, and the members of a large group are similar.
_MOST_LEAVERS = 32


def spread(owners: Ownership, loads: PartitionLoads) -> MemberSpread:
    """How even ownership is: the most and the fewest partitions, and the most and the least load, of any member."""
    counts = [len(each) for each in owners.values()] or [0]
    member_loads = [*loads_by_member(owners, loads).values()] or [0]
    total = sum(member_loads)
    return MemberSpread(
        most_partitions=max(counts),
        fewest_partitions=min(counts),
        most_load=max(member_loads),
        fewest_load=min(member_loads),
        total_load=total,
        above_share_percent=round(100 * (max(member_loads) * len(owners) / total - 1) if total else 0.0, 3),
    )


def loads_by_member(owners: Ownership, loads: PartitionLoads) -> dict[str, int]:
    """The load of each member; members that share a partition each carry an equal part of its load."""
    owner_counts = Counter(partition for each in owners.values() for partition in each)
    return {
        member: sum(loads.get(one, 0) // owner_counts[one] for one in partitions)
        for member, partitions in owners.items()
    }


def events(group: Group, grown: Mapping[str, int], loads: PartitionLoads) -> tuple[GroupEventRow, ...]:
    """What may happen to a group, one event at a time, compared with the current owners.

    Each member leaves (in a large group, some); one joins; topics get `grown` partitions; all members read all topics,
    if they don't already.
    """
    changes = [*_comings_and_goings(group)]
    if counts_after := added_to(group, grown):
        description = ", ".join(
            f"{topic} {group.counts[topic]} → {count} partitions" for topic, count in sorted(counts_after.items())
        )
        changes.append((description, with_partitions(group, counts_after)))
    if len(set(group.members.values())) > 1:
        every_topic = dict.fromkeys(group.members, tuple(sorted(group.counts)))
        changes.append(("all members read all topics", _with_members(group, every_topic)))
    return tuple(_event(event, group, changed, loads) for event, changed in changes)


def added_to(group: Group, grown: Mapping[str, int]) -> dict[str, int]:
    """The topics of a group that get more partitions, with how many they then have."""
    return {topic: count for topic, count in grown.items() if count > group.counts.get(topic, count)}


def with_partitions(group: Group, counts_after: Mapping[str, int]) -> Group:
    """The group if topics get more partitions; their racks, if unknown, are those of the topic's others in turn."""
    known_racks = group.partition_racks
    racks = {
        (topic, number): known_racks.get((topic, number % group.counts[topic]), frozenset[str]())
        for topic, count in counts_after.items()
        for number in range(group.counts[topic], count)
    }
    return replace(group, counts={**group.counts, **counts_after}, partition_racks={**racks, **known_racks})


def member_events(group: Group, loads: PartitionLoads) -> tuple[GroupEventRow, ...]:
    """Only the events in which a member leaves or joins."""
    return tuple(_event(event, group, changed, loads) for event, changed in _comings_and_goings(group))


def reassigned(group: Group) -> Group:
    """The group with the owners that its assignor gives, starting from the current owners."""
    return replace(group, owners=assigned(group, group.assignor, group.owners), observed=False)


def _comings_and_goings(group: Group) -> Iterator[tuple[str, Group]]:
    """Each member that leaves or joins, in words, and the group without or with it; owners are still the old ones."""
    leavers, count = list(group.members), len(group.members)
    if count > _MOST_LEAVERS:
        in_order = sorted(group.members)
        leavers = [in_order[index * (count - 1) // (_MOST_LEAVERS - 1)] for index in range(_MOST_LEAVERS)]
    for member in leavers if count > 1 else []:
        staying = {each: topics for each, topics in group.members.items() if each != member}
        yield f"{member} leaves", _with_members(group, staying)
    if group.members:
        usual_topics = Counter(group.members.values()).most_common(1)[0][0]
        yield "a member joins", _with_members(group, {**group.members, f"{max(group.members)}+": usual_topics})


def _with_members(group: Group, members: Mapping[str, tuple[str, ...]]) -> Group:
    owners = {member: partitions for member, partitions in group.owners.items() if member in members}
    return replace(group, counts=_read_counts(group.counts, members), members=members, owners=owners)


def _event(description: str, group: Group, changed_group: Group, loads: PartitionLoads) -> GroupEventRow:
    """What the rebalance of a changed group moves and pauses, compared with the owners before."""
    after = reassigned(changed_group)
    pairs_before, pairs_after = _owner_pairs(group.owners), _owner_pairs(after.owners)
    owned_before = {each for each, _ in pairs_before}
    moved = [each for each, _ in pairs_after - pairs_before if each in owned_before]
    sharing = Counter(each for each, _ in pairs_after)
    return GroupEventRow(
        what=description,
        moved=len(moved),
        moved_load=sum(loads.get(each, 0) // sharing[each] for each in moved),
        from_staying=sum(each[0] in after.members.get(member, ()) for each, member in pairs_before - pairs_after),
        paused=count_paused(group, after.owners),
        new=len({each for each, _ in pairs_after} - owned_before),
        spread=spread(after.owners, loads),
    )


def count_paused(group: Group, after: Ownership) -> int:
    """How many partitions nobody reads while the group changes to the owners `after`.

    Share groups don't pause: a member gets a partition without waiting until another gives it up (KIP-932).
    """
    if group.assignor == assignors.SHARE_ASSIGNOR:
        return 0
    pairs_before, pairs_after = _owner_pairs(group.owners), _owner_pairs(after)
    pausing = pairs_after - pairs_before if group.assignor in COOPERATIVE else pairs_after
    return len({each for each, _ in pausing} & {each for each, _ in pairs_before})


def _owner_pairs(owners: Mapping[str, Sequence[PartitionKey]]) -> set[tuple[PartitionKey, str]]:
    return {(partition, member) for member, partitions in owners.items() for partition in partitions}


def differing_text(group: Group) -> str:
    """A sentence about members that don't read all of the group's topics; empty if all do."""
    partial_readers = [member for member, topics in group.members.items() if len(topics) < len(group.counts)]
    if not partial_readers:
        return ""
    return f"{counted(len(partial_readers), 'member')} of {len(group.members)} without some of the group's topics"


_SEED, _MULTIPLIER, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition that the Java client's default partitioner gives to a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 that Kafka uses, unsigned."""
    value = (_SEED ^ len(data)) & _MASK
    full_length = len(data) // 4 * 4
    for offset in range(0, full_length, 4):
        word = int.from_bytes(data[offset : offset + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ word
    if tail := data[full_length:]:
        value = (value ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def moved_share(before: int, after: int) -> Fraction:
    """The share of all keys that change partition if a topic has `after` partitions instead of `before`.

    A key stays if its hash has the same remainder for both counts. In every range as long as the least common multiple
    of both counts, this holds for as many hashes as the smaller count.
    """
    return 1 - Fraction(min(before, after), lcm(before, after))


ReplicasOf = Mapping[PartitionKey, Collection[int]]
BrokerRacks = Mapping[int, str | None]


def changed(before: tuple[ReplicasOf, BrokerRacks], after: tuple[ReplicasOf, BrokerRacks]) -> frozenset[PartitionKey]:
    """The partitions whose replicas are in another set of racks."""
    return frozenset(
        partition
        for partition, replicas in after[0].items()
        if racks_of(replicas, after[1]) != racks_of(before[0].get(partition, ()), before[1])
    )


def seen_by_brokers(
    before: tuple[ReplicasOf, BrokerRacks], after: tuple[ReplicasOf, BrokerRacks]
) -> frozenset[PartitionKey]:
    """The partitions for which the group coordinator sees the replicas' racks change, even if only for a while.

    It counts the racks of all replicas, including those being added; the members' racks and the leader don't matter.
    Source: Kafka 4.3, org.apache.kafka.coordinator.group.Utils.computeTopicHash (KIP-1101).
    """
    partitions = []
    for partition, replicas in after[0].items():
        replicas_before = before[0].get(partition, ())
        comes_or_goes = any(after[1].get(broker) is not None for broker in {*replicas} ^ {*replicas_before})
        if comes_or_goes or any(before[1].get(broker) != after[1].get(broker) for broker in replicas):
            partitions.append(partition)
    return frozenset(partitions)


def racks_of(replicas: Collection[int], racks: BrokerRacks) -> frozenset[str]:
    """The racks of a partition's replicas; brokers without a rack don't count."""
    return frozenset(rack for rack in map(racks.get, replicas) if rack is not None)


def read_in_rack(group: Group, member: str, replicas: ReplicasOf, racks: BrokerRacks) -> int | None:
    """How many of a member's partitions have a replica in its rack to read from (KIP-392); None without a rack."""
    rack = group.racks.get(member)
    if rack is None:
        return None
    return sum(rack in racks_of(replicas.get(each, ()), racks) for each in group.owners.get(member, ()))
