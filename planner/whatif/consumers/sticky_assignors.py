"""Kafka's sticky assignors: as even as the subscriptions allow, and as much as possible stays where it is.

Where all members subscribe to the same topics, the owners follow from counting: everyone keeps up to the share that is
even, the rest is dealt. Else partitions move, one at a time, from members with more to members with less, as long as
any move makes two members more alike. Source: Kafka 4.1, AbstractStickyAssignor (KIP-54, KIP-341).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from planner.strategies.java_random import utf16_key

TopicPartition = tuple[str, int]
Owners = dict[str, list[TopicPartition]]


def assign(
    counts: Mapping[str, int], members: Mapping[str, Sequence[str]], owned: Mapping[str, Iterable[TopicPartition]]
) -> Owners:
    """Each member's partitions, sorted: `counts` are partitions by topic, `members` each one's topics.

    What is `owned` today counts only where member and partition are still there, the member subscribes to the topic,
    and nobody else claims it.
    """
    claims = Counter(partition for member in members for partition in set(owned.get(member, ())))
    kept = {
        member: sorted(
            {each for each in owned.get(member, ()) if claims[each] == 1 and _exists(each, counts)}, key=_key
        )
        for member in sorted(members, key=utf16_key)
    }
    if len({frozenset(topics) for topics in members.values()}) <= 1:
        return _alike(counts, kept)
    general = _General(counts, members, kept)
    general.balance()
    return {member: sorted(general.owners[member], key=_key) for member in members}


def _exists(partition: TopicPartition, counts: Mapping[str, int]) -> bool:
    topic, number = partition
    return 0 <= number < counts.get(topic, 0)


def _key(partition: TopicPartition) -> tuple[bytes, int]:
    return utf16_key(partition[0]), partition[1]


def _all_partitions(counts: Mapping[str, int]) -> list[TopicPartition]:
    topics = sorted(counts, key=utf16_key)
    return [(topic, partition) for topic in topics for partition in range(counts[topic])]


def _alike(counts: Mapping[str, int], kept: Mapping[str, Sequence[TopicPartition]]) -> Owners:
    """All members subscribe to the same: shares differ by one at most, and the larger ones go to who owns that much."""
    partitions = _all_partitions(counts)
    least, larger = divmod(len(partitions), max(len(kept), 1))
    owners: Owners = {}
    for member, held in kept.items():
        most = least + 1 if larger > 0 and len(held) > least else least
        larger -= most > least
        owners[member] = list(held[:most])
    taken = {each for held in owners.values() for each in held}
    _deal([each for each in partitions if each not in taken], owners, least, larger)
    return {member: sorted(held, key=_key) for member, held in owners.items()}


def _deal(partitions: Iterable[TopicPartition], owners: Owners, least: int, larger: int) -> None:
    """Deal what is left in turn to those below `least`; then one more to `larger` of those that have no more."""
    rest = iter(partitions)
    while short := [member for member, held in owners.items() if len(held) < least]:
        for member in short:
            owners[member].append(next(rest))
    full = [member for member, held in owners.items() if len(held) == least]
    for member, partition in zip(full[:larger], rest, strict=True):
        owners[member].append(partition)


class _General:
    """Members with different subscriptions: the state of the balancing, changed one move at a time."""

    def __init__(
        self, counts: Mapping[str, int], members: Mapping[str, Sequence[str]], kept: Mapping[str, list[TopicPartition]]
    ) -> None:
        self.counts = counts
        self.subscribers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member in kept:
            for topic in members[member]:
                self.subscribers[topic].append(member)
        # Topics that few can read come first.
        topics = sorted(counts, key=lambda topic: (len(self.subscribers[topic]), utf16_key(topic)))
        self.partitions = [(topic, number) for topic in topics for number in range(counts[topic])]
        self.owners = {member: {each for each in held if each[0] in members[member]} for member, held in kept.items()}
        self.members = members
        # A subscription that ended takes its partitions with it: then all may move at once.
        self.revoking = any(len(self.owners[member]) < len(held) for member, held in kept.items())
        self.owner = {each: member for member, held in self.owners.items() for each in held}
        self.moved: dict[TopicPartition, tuple[str, str]] = {}
        self.moves: defaultdict[tuple[str, str, str], dict[TopicPartition, None]] = defaultdict(dict)

    def balance(self) -> None:
        """Assign what nobody owns, then even out; what the evening doesn't improve is undone."""
        fresh = not any(self.owners.values())
        unowned = [each for each in self.partitions if each not in self.owner and self.subscribers[each[0]]]
        for partition in unowned:
            self._give(partition, self._least(partition[0], self.owners))
        movable = [each for each in self.partitions if len(self.subscribers[each[0]]) > 1]
        before, owner_before = {member: set(held) for member, held in self.owners.items()}, dict(self.owner)
        members = {member: None for member in self.owners if self._takes_part(member)}
        if not self.revoking:
            self._even([each for each in unowned if len(self.subscribers[each[0]]) > 1], members)
        if self._even(movable, members) and not fresh and self._score(members) >= _score(before, members):
            self.owners, self.owner = before, owner_before

    def _least(self, topic: str, members: Collection[str]) -> str:
        """The subscriber with the fewest partitions; of several the first by id."""
        return min((m for m in self.subscribers[topic] if m in members), key=lambda member: len(self.owners[member]))

    def _takes_part(self, member: str) -> bool:
        """Whether a member may give or get anything."""
        if len(self.owners[member]) < sum(self.counts[topic] for topic in self.members[member]):
            return True
        return any(len(self.subscribers[topic]) > 1 for topic, _ in self.owners[member])

    def _even(self, partitions: Sequence[TopicPartition], members: Collection[str]) -> bool:
        """Move partitions to members with at least two fewer until there are none; whether any moved."""
        moved_any, again = False, bool(partitions)
        while again:
            again = False
            for partition in partitions:
                count = len(self.owners[self.owner[partition]])
                target = self._least(partition[0], members)
                if count > len(self.owners[target]) + 1:
                    self._move(partition, target)
                    moved_any = again = True
        return moved_any

    def _move(self, partition: TopicPartition, target: str) -> None:
        """Move a partition of the topic from its owner to the target: rather one that moved the other way before."""
        topic, source = partition[0], self.owner[partition]
        origin = self.moved[partition][0] if partition in self.moved else source
        back = self.moves.get((topic, target, origin))
        actual = next(iter(back)) if back else partition
        source = self.owner[actual]
        self.owners[source].remove(actual)
        self._record(actual, source, target)
        self._give(actual, target)

    def _record(self, partition: TopicPartition, source: str, target: str) -> None:
        """Remember where a partition came from; one that came back has not moved."""
        if partition in self.moved:
            origin, last = self.moved.pop(partition)
            del self.moves[partition[0], origin, last][partition]
            source = origin
        if source != target:
            self.moved[partition] = source, target
            self.moves[partition[0], source, target][partition] = None

    def _give(self, partition: TopicPartition, member: str) -> None:
        self.owners[member].add(partition)
        self.owner[partition] = member

    def _score(self, members: Collection[str]) -> int:
        return _score(self.owners, members)


def _score(owners: Mapping[str, Collection[TopicPartition]], members: Collection[str]) -> int:
    """How uneven: the differences in partitions of every two members, added up."""
    return sum(abs(len(owners[one]) - len(owners[other])) for one, other in combinations(members, 2))
