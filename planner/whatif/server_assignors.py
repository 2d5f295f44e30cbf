"""Who owns which partition under the assignors that run in the broker: `uniform` (KIP-848), and `simple` for share
groups (KIP-932). The broker's `range` gives what `range` gives with static members first.

They start from the group's target assignment, so what members own counts. Their results also depend on the order of
member ids and topic ids in Java's hash maps. Kafka's output doesn't show the order of keys that share a bucket of a
hash map; the code assumes a group whose members joined in the order of their ids. It also assumes that a bucket holds
fewer than nine keys once the map has 64 buckets (with more, Java makes the bucket a tree). Source: Kafka 4.3.1,
org.apache.kafka.coordinator.group.assignor.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import ceil
from operator import itemgetter

from planner.model.cluster import PartitionKey
from planner.strategies.java_random import JavaHashMap, string_hash, utf16_key
from planner.whatif.own_assignors import Ownership

# Rounds to even out a group whose members read different topics (MAX_ITERATION_COUNT).
_ROUNDS = 16


class ServerGroup:
    """A group as the coordinator passes it to an assignor: members and topics in the order of Java's hash maps.

    `counts` are partition counts, `members` the topics of each member, `owned` each member's target assignment. Without
    `topic_ids` (as `kafka-topics --describe` prints them), topics are assumed to have ids in the order of their names.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        members: Mapping[str, Sequence[str]],
        owned: Mapping[str, Iterable[PartitionKey]],
        topic_ids: Mapping[str, str],
    ) -> None:
        names = sorted(counts, key=utf16_key)
        self.counts, self.members = counts, members
        self.ids = {name: (0, index) for index, name in enumerate(names)}
        for name in topic_ids.keys() & self.ids.keys():
            id_bytes = urlsafe_b64decode(f"{topic_ids[name]}==")
            # Kafka compares topic ids by their two signed halves.
            self.ids[name] = int.from_bytes(id_bytes[:8], signed=True), int.from_bytes(id_bytes[8:], signed=True)
        # A subscription is a HashSet of names.
        self.topics = [*JavaHashMap.of(names, string_hash, 4 * len(names) // 3 + 1)]
        self.order = [*JavaHashMap.of(sorted(members, key=utf16_key), string_hash)]
        self.owned = {member: self._in_map_order(owned.get(member, ())) for member in self.order}
        self.alike = len({frozenset(topics) for topics in members.values()}) <= 1

    def _in_map_order(self, owned: Iterable[PartitionKey]) -> dict[str, list[int]]:
        """A member's partitions by topic, both in the order of the coordinator's hash maps."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(set(owned), key=lambda each: (utf16_key(each[0]), each[1])):
            if 0 <= partition < self.counts.get(topic, 0):
                by_topic.setdefault(topic, []).append(partition)
        topics = JavaHashMap.of(by_topic, self.topic_hash)
        return {topic: [*JavaHashMap.of(by_topic[topic], int, 4 * len(by_topic[topic]) // 3 + 1)] for topic in topics}

    def topic_hash(self, topic: str) -> int:
        """`Uuid.hashCode` of the topic's id."""
        folded = self.ids[topic][0] ^ self.ids[topic][1]
        return (folded >> 32 ^ folded) & 0xFFFFFFFF

    def partition_hash(self, partition: PartitionKey) -> int:
        """`TopicIdPartition.hashCode`."""
        return 31 * self.topic_hash(partition[0]) + partition[1]


def uniform(group: ServerGroup) -> Ownership:
    """UniformAssignor: as even as the subscriptions allow; partitions stay with their owner if possible.

    If all members read the same topics, members with too many partitions give up their last ones, and others get them.
    """
    if not group.alike:
        return _Heterogeneous(group).balanced()
    assigned = {(topic, each) for by_topic in group.owned.values() for topic in by_topic for each in by_topic[topic]}
    topics = JavaHashMap.of(group.topics, group.topic_hash, 4 * len(group.topics) // 3 + 1)
    free = [(topic, each) for topic in topics for each in range(group.counts[topic]) if (topic, each) not in assigned]
    least, larger = divmod(sum(group.counts.values()), max(len(group.order), 1))
    owners: Ownership = {}
    quotas: list[int] = []
    for index, member in enumerate(group.order):
        gets_extra = larger > 0
        quota = least + gets_extra
        owners[member] = []
        for topic, partitions in group.owned[member].items():
            kept = partitions[:quota]
            quota -= len(kept)
            owners[member] += [(topic, each) for each in kept]
            free += [(topic, each) for each in partitions[len(kept) :]]
        # A later member gets the extra partition, as long as enough members are left to take all extra partitions.
        if quota > 0 and gets_extra and len(group.order) - index > larger:
            quota, gets_extra = quota - 1, False
        larger -= gets_extra
        quotas.append(quota)
    remaining = iter(free)
    for member, quota in zip(group.order, quotas, strict=True):
        owners[member] += islice(remaining, quota)
    return owners


class _Heterogeneous:
    """UniformHeterogeneousAssignmentBuilder: each topic to its least loaded readers; then topics are evened out."""

    def __init__(self, group: ServerGroup) -> None:
        counts, members = group.counts, group.members
        self.members = group.order
        self.readers = {t: [index for index, member in enumerate(group.order) if t in members[member]] for t in counts}
        self.owner_lists = {topic: [-1] * count for topic, count in counts.items()}
        self.sizes = [0] * len(group.order)
        for index, member in enumerate(group.order):
            for topic, partitions in group.owned[member].items():
                if topic in members[member]:
                    self.sizes[index] += len(partitions)
                    for partition in partitions:
                        self.owner_lists[topic][partition] = index
        # Topics with the most partitions per reader come first.
        self.topics = sorted(
            counts, key=lambda t: (-counts[t] / len(self.readers[t]), len(self.readers[t]), group.ids[t])
        )

    def balanced(self) -> Ownership:
        """The owners after unowned partitions are assigned and members with most have given to those with fewest."""
        for topic in self.topics:
            levels = _Levels(self.readers[topic], self.sizes)
            for partition, owner in enumerate(self.owner_lists[topic]):
                if owner < 0:
                    self._give(topic, partition, levels.next_least())
        movable = [topic for topic in self.topics if len(self.readers[topic]) > 1]
        last_moved = -1
        for index, topic in list(enumerate(movable)) * _ROUNDS:
            if index == last_moved:
                break
            if self._even_out(topic) or last_moved < 0:
                last_moved = index
        owners: Ownership = {member: [] for member in self.members}
        for topic, owner_list in self.owner_lists.items():
            for partition, owner in enumerate(owner_list):
                owners[self.members[owner]].append((topic, partition))
        return owners

    def _even_out(self, topic: str) -> bool:
        """Moves the topic's partitions among its readers as long as this makes them more equal; True if any moved."""
        levels = _Levels(self.readers[topic], self.sizes)
        if levels.most - levels.least <= 3:  # sizes differ by at most 1: each level is one beyond them
            return False
        by_owner: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owner_lists[topic]):
            by_owner.setdefault(owner, []).append(partition)
        has_moved = False
        while levels.most - levels.least > 1:
            source = levels.next_most()
            while source >= 0 and not by_owner.get(source):
                levels.exclude_most()
                source = levels.next_most()
            if source < 0:
                break
            partition = by_owner[source].pop()
            target = levels.next_least()
            if levels.most - levels.least <= 1:
                break
            self._give(topic, partition, target)
            has_moved = True
        return has_moved

    def _give(self, topic: str, partition: int, member: int) -> None:
        before = self.owner_lists[topic][partition]
        if before >= 0:
            self.sizes[before] -= 1
        self.owner_lists[topic][partition] = member
        self.sizes[member] += 1


class _Levels:
    """MemberAssignmentBalancer: a topic's readers sorted by size. The range of the least loaded grows from the left,
    the range of the most loaded from the right. Each member handed out changes its size by one meanwhile.
    """

    def __init__(self, readers: Sequence[int], sizes: Sequence[int]) -> None:
        self.sizes, self.readers = sizes, sorted(readers, key=lambda member: (sizes[member], member))
        self.least, self.most = sizes[self.readers[0]] - 1, sizes[self.readers[-1]] + 1
        self.least_end = self.next_low = 0
        self.most_start = self.most_end = len(readers)
        self.next_high = len(readers) - 1

    def next_least(self) -> int:
        """The next member to get a partition."""
        if self.next_low >= self.least_end:
            self.least += 1
            while self.least_end < len(self.readers) and self.sizes[self.readers[self.least_end]] == self.least:
                self.least_end += 1
            self.next_low = 0
        self.next_low += 1
        return self.readers[self.next_low - 1]

    def next_most(self) -> int:
        """The next member to give up a partition; -1 if nobody is left."""
        if self.next_high < self.most_start:
            if self.most_end <= self.most_start and self.most_start > 0:
                self.most = self.sizes[self.readers[self.most_start - 1]]
            else:
                self.most -= 1
            while self.most_start > 0 and self.sizes[self.readers[self.most_start - 1]] == self.most:
                self.most_start -= 1
            self.next_high = self.most_end - 1
        if self.next_high < 0:
            return -1
        self.next_high -= 1
        return self.readers[self.next_high + 1]

    def exclude_most(self) -> None:
        """Takes the member of the last `next_most` out of the range, because it has no partition to give up."""
        position, self.most_end = self.next_high + 1, self.most_end - 1
        self.readers[position], self.readers[self.most_end] = self.readers[self.most_end], self.readers[position]


def simple(group: ServerGroup) -> Ownership:
    """SimpleAssignor of share groups: if there are more members than partitions, several members share each one."""
    owners: Ownership = {member: [] for member in group.order}
    # Members that read the same topics are dealt all partitions at once; other members topic after topic.
    for topics in [group.topics] if group.alike else [[topic] for topic in group.topics]:
        sharing = _Sharing(group, topics)
        sharing.take_away()
        sharing.deal()
        for member, partitions in zip(group.order, sharing.owned, strict=True):
            owners[member] += partitions
    return owners


class _Sharing:
    """SimpleHomogeneousAssignmentBuilder, or SimpleHeterogeneousAssignmentBuilder for one topic.

    Each partition gets the same number of readers; each member, by number, gets an equal share of these places.
    """

    def __init__(self, group: ServerGroup, topics: Sequence[str]) -> None:
        self.partitions = [(topic, each) for topic in topics for each in range(group.counts[topic])]
        self.readers = [i for i, member in enumerate(group.order) if not {*topics}.isdisjoint(group.members[member])]
        self.readers_each = -(-len(self.readers) // max(len(self.partitions), 1))
        mean_quota = self.readers_each * len(self.partitions) / max(len(self.readers), 1)
        self.quotas = [0] * len(group.order)
        for index, member in enumerate(self.readers):
            self.quotas[member] = ceil(mean_quota * (index + 1)) - ceil(mean_quota * index)
        hasher = group.partition_hash if group.alike else itemgetter(1)
        self.shared = JavaHashMap[PartitionKey, JavaHashMap[int, None]](hasher, 4 * (len(self.partitions) + 1) // 3 + 1)
        self.owned = [JavaHashMap[PartitionKey, None](hasher) for _ in group.order]
        for index, name in enumerate(group.order):
            for topic, numbers in group.owned[name].items():
                for partition in [(topic, each) for each in numbers if topic in topics]:
                    self.shared.compute_if_absent(partition, JavaHashMap(int))[index] = None
                    self.owned[index][partition] = None

    def take_away(self) -> None:
        """Takes partitions from members above their share, then from partitions with too many readers."""
        for member, owned in enumerate(self.owned):
            for partition in [*owned][: max(len(owned) - self.quotas[member], 0)]:
                del owned[partition], self.shared[partition][member]
        for partition, readers in self.shared.items():
            for member in [*readers][: max(len(readers) - self.readers_each, 0)]:
                del self.owned[member][partition], readers[member]

    def deal(self) -> None:
        """Deals partitions with too few readers to the members below their share, in turn."""
        for partition in self.partitions:
            self.shared.compute_if_absent(partition, JavaHashMap(int))
        unfilled = [member for member in self.readers if len(self.owned[member]) < self.quotas[member]]
        turn, has_given = 0, False
        for partition, readers in self.shared.items():
            missing = self.readers_each - len(readers)
            while missing > 0 and unfilled:
                if turn == len(unfilled):
                    if not has_given:
                        break
                    turn, has_given = 0, False
                member = unfilled[turn]
                turn += 1
                if member not in readers:
                    # Kafka doesn't add the member to the readers here, so it may get the same partition again.
                    self.owned[member][partition] = None
                    missing, has_given = missing - 1, True
                    if len(self.owned[member]) >= self.quotas[member]:
                        turn -= 1
                        del unfilled[turn]
