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
        held = [frozenset(self.of_partitions.get(each, ())) for each in partitions]
        every = frozenset[str]().union(*held)
        return not every.isdisjoint(self.of_members.get(each, "") for each in members) and any(
            each != every for each in held
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
    wanted = {topic for listed in subscriptions.values() for topic in listed}
    counts = {topic: count for topic, count in topics.items() if topic in wanted}
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
            held = _undisputed(members, owned or {})
            return server_assignors.uniform(ServerGroup(counts, members, held, topic_ids or {}))
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
    needing = [each for each in topics if racks.matter(each.readers, each.partitions)]
    alike: defaultdict[tuple[frozenset[str], int], list[_TopicRanges]] = defaultdict(list)
    for each in topics if needing else ():
        stated = any(member in racks.of_members for member in each.readers)
        alike[frozenset(each.readers), counts[each.name] if stated else 0].append(each)
    for (_, count), together in alike.items():
        if len(together) > 1:
            _co_partitioned(together, count, racks)
        elif together[0] in needing:
            together[0].deal(racks.match)
    for each in topics:
        each.deal()
    return {member: sorted(held, key=_key) if needing else held for member, held in owners.items()}


class _TopicRanges:
    """A topic whose partitions are dealt to its readers, who are in order; `left` have no owner yet."""

    def __init__(self, name: str, count: int, readers: Sequence[str], owners: Ownership) -> None:
        self.name, self.readers, self.owners = name, readers, owners
        self.partitions = [(name, number) for number in range(count)]
        self.left = dict.fromkeys(self.partitions)
        self.had = Counter[str]()
        self.least, self.larger = divmod(count, max(len(readers), 1))

    def room(self, member: str) -> int:
        """How many more partitions the member may have."""
        return max(0, self.least + (self.larger > 0) - self.had[member])

    def give(self, member: str, partitions: Sequence[PartitionKey]) -> None:
        """Makes the member the owner of these partitions."""
        self.owners[member] += partitions
        self.had[member] += len(partitions)
        self.larger -= self.had[member] > self.least
        for each in partitions:
            del self.left[each]

    def deal(self, may: Callable[[str, PartitionKey], bool] | None = None) -> None:
        """Gives each reader the first partitions that it may have (None: all), as many as it has room for."""
        every = iter([*self.left])
        for member in self.readers:
            mine = every if may is None else (each for each in self.left if may(member, each))
            if given := list(islice(mine, self.room(member))):
                self.give(member, given)


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
    kept = dict[str, list[PartitionKey]]()
    for member in sorted(members, key=utf16_key):
        held = [each for each in owned[member] if 0 <= each[1] < counts.get(each[0], 0)]
        # What a member keeps of several topics are its first partitions of each, not its first topics.
        kept[member] = sorted(held, key=lambda each: _key(each)[::-1])
    if len({frozenset(topics) for topics in members.values()}) <= 1:
        return _alike(partitions, kept, racks)
    general = _General(counts, members, kept, racks)
    general.balance()
    return {member: sorted(general.owners[member], key=_key) for member in members}


def _key(partition: PartitionKey) -> tuple[bytes, int]:
    return utf16_key(partition[0]), partition[1]


def _alike(partitions: Sequence[PartitionKey], kept: Mapping[str, Sequence[PartitionKey]], racks: Racks) -> Ownership:
    """The sticky assignment of members that all subscribe to the same topics.

    Shares differ by at most one; members that own enough get the larger ones first. The rest is dealt out in turn,
    first to members in the racks of its replicas.
    """
    least, larger = divmod(len(partitions), max(len(kept), 1))
    owners: Ownership = {member: [] for member in kept}
    # Kafka iterates over its hash map of members.
    for member in map(str, hash_map_order(kept)):
        held = [each for each in kept[member] if racks.match(member, each)]
        most = least + 1 if larger > 0 and len(held) > least else least
        larger -= most > least
        owners[member] = held[:most]
    taken = {each for held in owners.values() for each in held}
    short = [member for member, held in owners.items() if len(held) < least]
    full = [member for member, held in owners.items() if len(held) == least] if larger else []
    rest = [each for each in partitions if each not in taken]
    if racks.of_members:
        rest = _Waiting(short, full, least, larger).deal(rest, owners, racks)
    while short:
        for member in [*short]:
            owners[member].append(rest.pop(0))
            if len(owners[member]) == least:
                short.remove(member)
                full.append(member)
    for member, partition in zip(full, rest, strict=False):
        owners[member].append(partition)
    return {member: sorted(held, key=_key) for member, held in owners.items()}


class _Waiting(NamedTuple):
    """Members with less than the least share, who are served in turn, and those with exactly it; how many get more."""

    short: list[str]
    full: list[str]
    least: int
    larger: int

    def deal(self, rest: Sequence[PartitionKey], owners: Ownership, racks: Racks) -> list[PartitionKey]:
        """Deals partitions to members in the racks of their replicas; returns those for which no such member waits.

        Partitions that the fewest members have in their rack come first.
        """
        in_rack = Counter(racks.of_members.get(member) for member in owners)
        readers = {each: sum(in_rack[rack] for rack in {*racks.of_partitions.get(each, ())}) for each in rest}
        turn, left, larger = 0, list[PartitionKey](), self.larger

        def first(members: Sequence[str], begin: int, partition: PartitionKey) -> int | None:
            turns = ((begin + more) % len(members) for more in range(len(members)))
            near = (at for at in turns if members[at] in racks.of_members and racks.match(members[at], partition))
            return next(near, None)

        for each in sorted(rest, key=readers.__getitem__):
            at, to = first(self.short, turn, each), self.short
            if at is None:
                at, to = first(self.full, 0, each), self.full
            if at is None:
                left.append(each)
                continue
            member = to[at]
            owners[member].append(each)
            if to is self.full:
                larger -= 1
                del to[at]
                if not larger:
                    to.clear()
                continue
            if len(owners[member]) >= self.least:
                del to[at]
                if larger:
                    self.full.append(member)
            else:
                at += 1
            turn = at % len(to) if to else 0
        return left


class _General:
    """The sticky assignment of members with different subscriptions, changed one move at a time.

    Partitions move from members with more to members with fewer, as long as a move makes two members more equal.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        members: Mapping[str, Sequence[str]],
        kept: Mapping[str, list[PartitionKey]],
        racks: Racks,
    ) -> None:
        self.counts, self.racks = counts, racks
        self.subscribers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member in kept:
            for topic in members[member]:
                self.subscribers[topic].append(member)
        # Topics with few subscribers come first.
        topics = sorted(counts, key=lambda topic: (len(self.subscribers[topic]), utf16_key(topic)))
        self.partitions = [(topic, number) for topic in topics for number in range(counts[topic])]
        self.owners = {
            member: {each for each in held if each[0] in members[member] and racks.match(member, each)}
            for member, held in kept.items()
        }
        self.members = members
        # If a member lost partitions with an ended subscription, all partitions may move at once.
        self.revoking = any(len(self.owners[member]) < len(held) for member, held in kept.items())
        self.owner = {each: member for member, held in self.owners.items() for each in held}
        self.moved: dict[PartitionKey, tuple[str, str]] = {}
        self.moves: dict[tuple[str, str, str], JavaHashMap[PartitionKey, None]] = {}

    def balance(self) -> None:
        """Assigns partitions without an owner, then evens out; undoes moves that don't make the group more even."""
        fresh = not any(self.owners.values())
        unowned = [each for each in self.partitions if each not in self.owner and self.subscribers[each[0]]]
        for partition in unowned if self.racks.of_members else ():
            if near := [each for each in self.subscribers[partition[0]] if self.racks.match(each, partition)]:
                self._give(partition, self._least(near))
        for partition in [each for each in unowned if each not in self.owner]:
            self._give(partition, self._least(self.subscribers[partition[0]]))
        movable = [each for each in self.partitions if len(self.subscribers[each[0]]) > 1]
        before, owner_before = {member: set(held) for member, held in self.owners.items()}, dict(self.owner)
        members = {member: None for member in self.owners if self._takes_part(member)}
        if not self.revoking:
            self._even([each for each in unowned if len(self.subscribers[each[0]]) > 1], members)
        moved = self._even(movable, members) and not fresh
        if moved and _unevenness(self.owners, members) >= _unevenness(before, members):
            self.owners, self.owner = before, owner_before

    def _least(self, members: Iterable[str]) -> str:
        """The member with the fewest partitions; of several, the first by id."""
        return min(members, key=lambda member: len(self.owners[member]))

    def _takes_part(self, member: str) -> bool:
        """True if a member can give or get a partition."""
        if len(self.owners[member]) < sum(self.counts[topic] for topic in self.members[member]):
            return True
        return any(len(self.subscribers[topic]) > 1 for topic, _ in self.owners[member])

    def _even(self, partitions: Sequence[PartitionKey], members: Collection[str]) -> bool:
        """Moves partitions to members with at least two fewer until there are none; True if any moved."""
        moved_any, again = False, bool(partitions)
        while again:
            again = False
            for partition in partitions:
                count = len(self.owners[self.owner[partition]])
                target = self._least(each for each in self.subscribers[partition[0]] if each in members)
                if count > len(self.owners[target]) + 1:
                    self._move(partition, target)
                    moved_any = again = True
        return moved_any

    def _move(self, partition: PartitionKey, target: str) -> None:
        """Moves a partition of the topic from its owner to the target; prefers one that moved the other way before."""
        topic, source = partition[0], self.owner[partition]
        origin = self.moved[partition][0] if partition in self.moved else source
        back = self.moves.get((topic, target, origin))
        actual = next(iter(back)) if back else partition
        source = self.owner[actual]
        self.owners[source].remove(actual)
        self._record(actual, source, target)
        self._give(actual, target)

    def _record(self, partition: PartitionKey, source: str, target: str) -> None:
        """Remembers where a partition came from; a partition that came back has not moved."""
        if partition in self.moved:
            origin, last = self.moved.pop(partition)
            back = self.moves[partition[0], origin, last]
            del back[partition]
            if not back:
                del self.moves[partition[0], origin, last]
            source = origin
        if source != target:
            self.moved[partition] = source, target
            self.moves.setdefault((partition[0], source, target), JavaHashMap(partition_hash))[partition] = None

    def _give(self, partition: PartitionKey, member: str) -> None:
        self.owners[member].add(partition)
        self.owner[partition] = member


def _unevenness(owners: Mapping[str, Collection[PartitionKey]], members: Collection[str]) -> int:
    """The sum, over all pairs of members, of the difference in their numbers of partitions."""
    return sum(abs(len(owners[one]) - len(owners[other])) for one, other in combinations(members, 2))
