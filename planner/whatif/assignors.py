"""Who owns which partition in a consumer group: Kafka's assignors, and a user's own function.

The entry point is `assign`. Topics are given as names with partition counts, members as ids. Of Kafka's assignors,
`range` and the sticky ones prefer partitions with a replica in a member's rack, if racks are given (KIP-881).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, cycle, islice
from typing import NamedTuple

from planner.model.cluster import PartitionKey
from planner.strategies.java_random import JavaHashMap, hash_map_order, partition_hash, utf16_key
from planner.whatif import server_assignors
from planner.whatif.own_assignors import Owned, Ownership, assigned_by, load
from planner.whatif.server_assignors import ServerGroup


class Racks(NamedTuple):
    """The `client.rack` of members that state one, and the racks of each partition's replicas."""

    of_members: Mapping[str, str]
    of_partitions: Mapping[PartitionKey, Collection[str]]

    def matter(self, members: Iterable[str], partitions: Iterable[PartitionKey]) -> bool:
        """True if members share a rack with partitions, and not every partition has replicas in all racks.

        Source: `AbstractPartitionAssignor.useRackAwareAssignment`.
        """
        rack_sets = [frozenset(self.of_partitions.get(each, ())) for each in partitions]
        all_racks = frozenset[str]().union(*rack_sets)
        return not all_racks.isdisjoint(self.of_members.get(each, "") for each in members) and any(
            each != all_racks for each in rack_sets
        )

    def match(self, member: str, partition: PartitionKey) -> bool:
        """True if the partition has a replica in the member's rack, or the member states none."""
        return member not in self.of_members or self.of_members[member] in self.of_partitions.get(partition, ())


NO_RACKS = Racks({}, {})
# The first run in the broker (group.protocol=consumer), where `server-range` is `range`; others in clients (classic).
SERVER_ASSIGNORS = ("uniform", "server-range")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", *SERVER_ASSIGNORS)
# The assignor of share groups, whose members may own the same partition.
SHARE_ASSIGNOR = "simple"


def assign(
    assignor: str,
    topics: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    owned: Owned | None = None,
    *,
    topic_ids: Mapping[str, str] | None = None,
    instances: Mapping[str, str] | None = None,
    racks: Racks = NO_RACKS,
) -> Ownership:
    """Each member's partitions, (topic, partition), under one of ASSIGNORS, `simple`, or a user's `module:function`.

    `topics` are partition counts, `subscriptions` the topics of each member. Topics without a subscriber or without a
    count are left out. `owned` is what members own now; the sticky assignors keep it if they can, but a partition that
    two members claim counts for neither. `cooperative-sticky` gives the owners at its end: in the first of its two
    rounds, nobody owns what moves between members. A user's own function gets the three mappings and returns one like
    this function's. PlannerError for an unknown assignor, and for an invalid result of a user's own.

    Only the broker's assignors use `topic_ids` (`kafka-topics --describe`). Only `range`, `roundrobin` and
    `server-range` use `instances`, the `group.instance.id` of static members. Only `range` and the sticky assignors use
    `racks`. Source: Kafka 4.3, RangeAssignor, RoundRobinAssignor, AbstractStickyAssignor (KIP-54, KIP-429, KIP-881);
    for the broker's, KIP-848 and KIP-932.
    """
    subscribed = {topic for listed in subscriptions.values() for topic in listed}
    counts = {topic: count for topic, count in topics.items() if topic in subscribed}
    members = {member: sorted(set(listed) & counts.keys(), key=utf16_key) for member, listed in subscriptions.items()}
    static = instances or {}
    # Static members come first (AbstractPartitionAssignor.MemberInfo).
    order = sorted(members, key=lambda each: (each not in static, utf16_key(static.get(each, each))))
    match assignor:
        case "range" | "server-range":
            return _range(counts, members, order, racks if assignor == "range" else NO_RACKS)
        case "roundrobin":
            return _round_robin(counts, members, order)
        case "sticky" | "cooperative-sticky":
            return _sticky(counts, members, _undisputed(members, owned or {}), racks)
        case "uniform":
            undisputed = _undisputed(members, owned or {})
            return server_assignors.uniform(ServerGroup(counts, members, undisputed, topic_ids or {}))
        case "simple":
            return server_assignors.simple(ServerGroup(counts, members, owned or {}, topic_ids or {}))
    return assigned_by(load(assignor, (*ASSIGNORS, SHARE_ASSIGNOR)), counts, members, owned or {}, assignor)


def _range(
    counts: Mapping[str, int], members: Mapping[str, Sequence[str]], order: Iterable[str], racks: Racks
) -> Ownership:
    """Each topic in ranges of neighbors; if the partitions can't be divided evenly, the first members get one more.

    If racks matter, members first get what has a replica in their rack; of topics with equal counts and the same
    members, all partitions with one number.
    """
    subscribers: defaultdict[str, list[str]] = defaultdict(list)
    for member in order:
        for topic in members[member]:
            subscribers[topic].append(member)
    owners: Ownership = {member: [] for member in members}
    # Kafka iterates over its hash map of topics, which affects only the order of each member's list.
    names = [topic for topic in hash_map_order(counts) if topic is not None]
    topics = [_TopicRanges(name, counts[name], subscribers[name], owners) for name in names]
    rack_aware = [each for each in topics if racks.matter(each.readers, each.partitions)]
    same_readers: defaultdict[tuple[frozenset[str], int], list[_TopicRanges]] = defaultdict(list)
    for each in topics if rack_aware else ():
        has_rack = any(member in racks.of_members for member in each.readers)
        same_readers[frozenset(each.readers), counts[each.name] if has_rack else 0].append(each)
    for (_, count), alike in same_readers.items():
        if len(alike) > 1:
            _co_partitioned(alike, count, racks)
        elif alike[0] in rack_aware:
            alike[0].deal(racks.match)
    for each in topics:
        each.deal()
    return {member: sorted(share, key=_sort_key) if rack_aware else share for member, share in owners.items()}


class _TopicRanges:
    """A topic whose partitions are dealt to its readers, who are in order; `unowned` have no owner yet."""

    def __init__(self, name: str, count: int, readers: Sequence[str], owners: Ownership) -> None:
        self.name, self.readers, self.owners = name, readers, owners
        self.partitions = [(name, number) for number in range(count)]
        self.unowned = dict.fromkeys(self.partitions)
        self.counts = Counter[str]()
        self.least, self.larger = divmod(count, max(len(readers), 1))

    def room(self, member: str) -> int:
        """How many more partitions the member may have."""
        return max(0, self.least + (self.larger > 0) - self.counts[member])

    def give(self, member: str, partitions: Sequence[PartitionKey]) -> None:
        """Makes the member the owner of these partitions."""
        self.owners[member] += partitions
        self.counts[member] += len(partitions)
        self.larger -= self.counts[member] > self.least
        for each in partitions:
            del self.unowned[each]

    def deal(self, is_allowed: Callable[[str, PartitionKey], bool] | None = None) -> None:
        """Gives each reader the first partitions that it may have (None: all), as many as it has room for."""
        unowned = iter([*self.unowned])
        for member in self.readers:
            allowed = unowned if is_allowed is None else (each for each in self.unowned if is_allowed(member, each))
            if share := list(islice(allowed, self.room(member))):
                self.give(member, share)


def _co_partitioned(topics: Sequence[_TopicRanges], count: int, racks: Racks) -> None:
    """Gives all partitions with one number to the first member with room in whose rack each of them has a replica."""
    remaining = [*topics[0].readers]
    for number in range(count):
        for member in remaining:
            if all(racks.match(member, (each.name, number)) and each.room(member) > 0 for each in topics):
                for each in topics:
                    each.give(member, [(each.name, number)])
                if not any(each.room(member) for each in topics):
                    remaining.remove(member)
                break


def _round_robin(counts: Mapping[str, int], members: Mapping[str, Sequence[str]], order: Iterable[str]) -> Ownership:
    """All partitions, topic by topic, to the members in turn; skips members that don't subscribe to the topic."""
    owners: Ownership = {member: [] for member in members}
    turns = cycle(order)
    for topic in sorted(counts, key=utf16_key):
        for partition in range(counts[topic]):
            member = next(each for each in turns if topic in members[each])
            owners[member].append((topic, partition))
    return owners


def _undisputed(members: Iterable[str], owned: Owned) -> dict[str, set[PartitionKey]]:
    """What each member owns, without the partitions that two members claim."""
    claims = Counter(partition for member in members for partition in set(owned.get(member, ())))
    return {member: {each for each in owned.get(member, ()) if claims[each] == 1} for member in members}


def _sticky(
    counts: Mapping[str, int],
    members: Mapping[str, Sequence[str]],
    owned: Mapping[str, Iterable[PartitionKey]],
    racks: Racks,
) -> Ownership:
    """As even as the subscriptions allow, with as few moves as possible; each member's partitions are sorted.

    What is `owned` today counts only if member and partition still exist, the member subscribes to the topic and, if
    racks matter, the partition has a replica in its rack.
    Source: Kafka 4.3, AbstractStickyAssignor (KIP-54, KIP-341, KIP-881).
    """
    partitions = [(topic, number) for topic in sorted(counts, key=utf16_key) for number in range(counts[topic])]
    racks = racks if racks.matter(members, partitions) else NO_RACKS
    still_owned = dict[str, list[PartitionKey]]()
    for member in sorted(members, key=utf16_key):
        existing = [each for each in owned[member] if 0 <= each[1] < counts.get(each[0], 0)]
        # What a member keeps of several topics are its first partitions of each, not its first topics.
        still_owned[member] = sorted(existing, key=lambda each: _sort_key(each)[::-1])
    if len({frozenset(topics) for topics in members.values()}) <= 1:
        return _constrained(partitions, still_owned, racks)
    general = _GeneralAssignment(counts, members, still_owned, racks)
    general.balance()
    return {member: sorted(general.owners[member], key=_sort_key) for member in members}


def _sort_key(partition: PartitionKey) -> tuple[bytes, int]:
    return utf16_key(partition[0]), partition[1]


def _constrained(
    partitions: Sequence[PartitionKey], still_owned: Mapping[str, Sequence[PartitionKey]], racks: Racks
) -> Ownership:
    """The sticky assignment of members that all subscribe to the same topics.

    Shares differ by at most one; members that own enough get the larger ones first. The rest is dealt out in turn,
    first to members in the racks of its replicas.
    """
    least, larger = divmod(len(partitions), max(len(still_owned), 1))
    owners: Ownership = {member: [] for member in still_owned}
    # Kafka iterates over its hash map of members.
    for member in map(str, hash_map_order(still_owned)):
        in_rack = [each for each in still_owned[member] if racks.match(member, each)]
        most = least + 1 if larger > 0 and len(in_rack) > least else least
        larger -= most > least
        owners[member] = in_rack[:most]
    assigned = {each for share in owners.values() for each in share}
    short = [member for member, share in owners.items() if len(share) < least]
    full = [member for member, share in owners.items() if len(share) == least] if larger else []
    unowned = [each for each in partitions if each not in assigned]
    if racks.of_members:
        unowned = _WaitingMembers(short, full, least, larger).deal(unowned, owners, racks)
    while short:
        for member in [*short]:
            owners[member].append(unowned.pop(0))
            if len(owners[member]) == least:
                short.remove(member)
                full.append(member)
    for member, partition in zip(full, unowned, strict=False):
        owners[member].append(partition)
    return {member: sorted(share, key=_sort_key) for member, share in owners.items()}


class _WaitingMembers(NamedTuple):
    """Members with less than the least share, who are served in turn, and those with exactly it; how many get more."""

    short: list[str]
    full: list[str]
    least: int
    larger: int

    def deal(self, unowned: Sequence[PartitionKey], owners: Ownership, racks: Racks) -> list[PartitionKey]:
        """Deals partitions to members in the racks of their replicas; returns those for which no such member waits.

        Partitions that the fewest members have in their rack come first.
        """
        in_rack = Counter(racks.of_members.get(member) for member in owners)
        reader_counts = {each: sum(in_rack[rack] for rack in {*racks.of_partitions.get(each, ())}) for each in unowned}
        turn, unserved, larger = 0, list[PartitionKey](), self.larger

        def next_index(members: Sequence[str], begin: int, partition: PartitionKey) -> int | None:
            turns = ((begin + step) % len(members) for step in range(len(members)))
            near = (i for i in turns if members[i] in racks.of_members and racks.match(members[i], partition))
            return next(near, None)

        for partition in sorted(unowned, key=reader_counts.__getitem__):
            index, queue = next_index(self.short, turn, partition), self.short
            if index is None:
                index, queue = next_index(self.full, 0, partition), self.full
            if index is None:
                unserved.append(partition)
                continue
            member = queue[index]
            owners[member].append(partition)
            if queue is self.full:
                larger -= 1
                del queue[index]
                if not larger:
                    queue.clear()
                continue
            if len(owners[member]) >= self.least:
                del queue[index]
                if larger:
                    self.full.append(member)
            else:
                index += 1
            turn = index % len(queue) if queue else 0
        return unserved


class _GeneralAssignment:
    """The sticky assignment of members with different subscriptions, changed one move at a time.

    Partitions move from members with more to members with fewer, as long as a move makes two members more equal.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        members: Mapping[str, Sequence[str]],
        still_owned: Mapping[str, list[PartitionKey]],
        racks: Racks,
    ) -> None:
        self.counts, self.racks = counts, racks
        self.subscribers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member in still_owned:
            for topic in members[member]:
                self.subscribers[topic].append(member)
        # Topics with few subscribers come first.
        topics = sorted(counts, key=lambda topic: (len(self.subscribers[topic]), utf16_key(topic)))
        self.partitions = [(topic, number) for topic in topics for number in range(counts[topic])]
        self.owners = {
            member: {each for each in partitions if each[0] in members[member] and racks.match(member, each)}
            for member, partitions in still_owned.items()
        }
        self.members = members
        # If a member lost partitions with an ended subscription, all partitions may move at once.
        self.revoking = any(len(self.owners[member]) < len(partitions) for member, partitions in still_owned.items())
        self.owner_of = {each: member for member, partitions in self.owners.items() for each in partitions}
        self.moved: dict[PartitionKey, tuple[str, str]] = {}
        self.moves: dict[tuple[str, str, str], JavaHashMap[PartitionKey, None]] = {}

    def balance(self) -> None:
        """Assigns partitions without an owner, then evens out; undoes moves that don't make the group more even."""
        starts_empty = not any(self.owners.values())
        unowned = [each for each in self.partitions if each not in self.owner_of and self.subscribers[each[0]]]
        for partition in unowned if self.racks.of_members else ():
            if near_members := [each for each in self.subscribers[partition[0]] if self.racks.match(each, partition)]:
                self._give(partition, self._least_loaded(near_members))
        for partition in [each for each in unowned if each not in self.owner_of]:
            self._give(partition, self._least_loaded(self.subscribers[partition[0]]))
        movable = [each for each in self.partitions if len(self.subscribers[each[0]]) > 1]
        before, owner_before = {member: set(each) for member, each in self.owners.items()}, dict(self.owner_of)
        members = {member: None for member in self.owners if self._takes_part(member)}
        if not self.revoking:
            self._even_out([each for each in unowned if len(self.subscribers[each[0]]) > 1], members)
        has_moved = self._even_out(movable, members) and not starts_empty
        if has_moved and _unevenness(self.owners, members) >= _unevenness(before, members):
            self.owners, self.owner_of = before, owner_before

    def _least_loaded(self, members: Iterable[str]) -> str:
        """The member with the fewest partitions; of several, the first by id."""
        return min(members, key=lambda member: len(self.owners[member]))

    def _takes_part(self, member: str) -> bool:
        """True if a member can give or get a partition."""
        if len(self.owners[member]) < sum(self.counts[topic] for topic in self.members[member]):
            return True
        return any(len(self.subscribers[topic]) > 1 for topic, _ in self.owners[member])

    def _even_out(self, partitions: Sequence[PartitionKey], members: Collection[str]) -> bool:
        """Moves partitions to members with at least two fewer until there are none; True if any moved."""
        moved_any, again = False, bool(partitions)
        while again:
            again = False
            for partition in partitions:
                count = len(self.owners[self.owner_of[partition]])
                target = self._least_loaded(each for each in self.subscribers[partition[0]] if each in members)
                if count > len(self.owners[target]) + 1:
                    self._move(partition, target)
                    moved_any = again = True
        return moved_any

    def _move(self, partition: PartitionKey, target: str) -> None:
        """Moves a partition of the topic from its owner to the target; prefers one that moved the other way before."""
        topic, source = partition[0], self.owner_of[partition]
        origin = self.moved[partition][0] if partition in self.moved else source
        moves_back = self.moves.get((topic, target, origin))
        actual = next(iter(moves_back)) if moves_back else partition
        source = self.owner_of[actual]
        self.owners[source].remove(actual)
        self._record(actual, source, target)
        self._give(actual, target)

    def _record(self, partition: PartitionKey, source: str, target: str) -> None:
        """Remembers where a partition came from; a partition that came back has not moved."""
        if partition in self.moved:
            origin, last_target = self.moved.pop(partition)
            moves_back = self.moves[partition[0], origin, last_target]
            del moves_back[partition]
            if not moves_back:
                del self.moves[partition[0], origin, last_target]
            source = origin
        if source != target:
            self.moved[partition] = source, target
            self.moves.setdefault((partition[0], source, target), JavaHashMap(partition_hash))[partition] = None

    def _give(self, partition: PartitionKey, member: str) -> None:
        self.owners[member].add(partition)
        self.owner_of[partition] = member


def _unevenness(owners: Mapping[str, Collection[PartitionKey]], members: Collection[str]) -> int:
    """The sum, over all pairs of members, of the difference in their numbers of partitions."""
    return sum(abs(len(owners[one]) - len(owners[other])) for one, other in combinations(members, 2))
