"""The placement that KRaft's controller gives new topics: org.apache.kafka.metadata.placement.StripedReplicaPlacer.

Each partition starts one rack further than the last one, and within a rack one broker further; fenced brokers come last
and never lead. After as many partitions as there are unfenced brokers, racks and brokers are shuffled and a new round
begins. One java.util.Random makes all draws.

`fits` reads a placement backwards. The draws can't be recovered, but their results can: where the racks and each rack's
brokers begin, and their orders after each shuffle. Each result is taken from the first replica that shows it; all later
replicas must agree.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from planner.model.build_problem import rows_to_place, today
from planner.model.errors import InfeasibleError
from planner.model.problem import IntArray, Problem
from planner.strategies.java_random import JavaRandom, hash_map_order, utf16_key
from planner.strategies.kafka_classic import Brokers, require_placeable


def place(
    brokers: Sequence[tuple[int, str | None, bool]],
    partitions: int,
    replication_factor: int,
    *,
    java_random_seed: int,
    start_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Replica lists of `partitions` partitions of one topic, preferred leader first.

    `brokers` are (id, rack, fenced); all brokers without a rack count as one rack. `start_partition`, the id of the
    first partition, doesn't change the placement, because Kafka's placer ignores it. InfeasibleError if Kafka refuses:
    nothing to place, a replication factor below 1 or above the number of brokers (fenced ones count), no unfenced
    broker.

    Source: Kafka 4.1, StripedReplicaPlacer.place.
    """
    require_placeable(len(brokers), partitions, replication_factor)
    if start_partition < 0:
        raise InfeasibleError(f"start partition is {start_partition}: partition ids begin at 0")
    if all(fenced for _, _, fenced in brokers):
        raise InfeasibleError(f"all {len(brokers)} brokers are fenced: a partition's leader needs an unfenced one")
    stripes = _Stripes(JavaRandom(java_random_seed), brokers)
    return [tuple(stripes.next_partition(replication_factor)) for _ in range(partitions)]


def assign(problem: Problem, seed: int) -> IntArray:
    """KRaft's placement of every topic that may move, as an assignment (P, W) of broker indices padded with -1.

    One java.util.Random of this seed serves the topics in the order of their names, as if the controller created them
    one after the other on the target brokers, none fenced. Rows that may not move keep today's replicas; a topic that
    has only such rows takes no draw. A topic with several replication factors is placed like one topic per factor,
    because the placer takes one factor per topic. InfeasibleError if a factor exceeds the number of brokers.
    """
    targets, names = np.flatnonzero(problem.targets).tolist(), problem.topic_names
    racks = [problem.rack_names[problem.broker_racks[broker]] if problem.racks_matter else None for broker in targets]
    brokers = [(broker, rack, False) for broker, rack in zip(targets, racks, strict=True)]
    to_place = rows_to_place(problem)
    random = JavaRandom(seed)
    assignment = today(problem)
    firsts = np.searchsorted(problem.topic_of, np.arange(len(names) + 1)).tolist()
    for topic in sorted(range(len(names)), key=lambda topic: utf16_key(names[topic])):
        rows = np.arange(firsts[topic], firsts[topic + 1])
        if not to_place[rows].any():
            continue
        for factor in np.unique(problem.replication_factors[rows]).tolist():
            require_placeable(len(brokers), len(rows), factor)
            same_factor = rows[problem.replication_factors[rows] == factor]
            stripes = _Stripes(random, brokers)
            lists = np.array([stripes.next_partition(factor) for _ in same_factor], dtype=np.int32)
            lists = np.pad(lists, ((0, 0), (0, problem.width - factor)), constant_values=-1)
            assignment[same_factor] = np.where(to_place[same_factor, None], lists, assignment[same_factor])
    return assignment


class _Ring:
    """Brokers of one rack, taken in turn; each epoch (one partition) begins one broker further than the last."""

    __slots__ = ("brokers", "epoch", "offset", "taken")

    def __init__(self, brokers: Iterable[int]) -> None:
        self.brokers = sorted(brokers)
        self.epoch = self.offset = self.taken = 0

    def start_anywhere(self, random: JavaRandom) -> None:
        """Draw the broker to begin with; an empty ring takes no draw."""
        if self.brokers:
            self.offset = random.next_int(len(self.brokers))

    def next_broker(self, epoch: int) -> int:
        """The next broker of this epoch, or -1 once each has been taken."""
        size = len(self.brokers)
        if self.epoch != epoch:
            self.epoch, self.taken, self.offset = epoch, 0, self.offset + 1
        if self.taken >= size:
            return -1
        broker = self.brokers[(self.taken + self.offset) % size]
        self.taken += 1
        return broker


class _Rack:
    """A rack's unfenced and fenced brokers. Kafka draws for the fenced ones first."""

    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: Sequence[tuple[int, bool]], random: JavaRandom) -> None:
        self.fenced = _Ring(broker for broker, fenced in brokers if fenced)
        self.unfenced = _Ring(broker for broker, fenced in brokers if not fenced)
        self.fenced.start_anywhere(random)
        self.unfenced.start_anywhere(random)

    def next_broker(self, epoch: int) -> int:
        """The next unfenced broker, else the next fenced one, else -1."""
        broker = self.unfenced.next_broker(epoch)
        return broker if broker >= 0 else self.fenced.next_broker(epoch)


class _Stripes:
    """The state that is kept from partition to partition of one topic."""

    def __init__(self, random: JavaRandom, brokers: Sequence[tuple[int, str | None, bool]]) -> None:
        members: dict[str | None, list[tuple[int, bool]]] = {}
        for broker, rack, fenced in brokers:
            members.setdefault(rack, []).append((broker, fenced))
        self._random = random
        # Racks draw in the order in which Java's map of racks iterates.
        self._by_hash = {rack: _Rack(members[rack], random) for rack in hash_map_order(members)}
        self._racks = [self._by_hash[rack] for rack in _in_order(members)]
        self._offset = random.next_int(len(self._racks))
        self._round = sum(not fenced for _, _, fenced in brokers)
        self._epoch = 0

    def next_partition(self, replication_factor: int) -> list[int]:
        """The next partition's replicas, preferred leader first."""
        # With one unfenced broker, a reset after each partition would leave that broker taken for good.
        if self._epoch == self._round and self._round > 1:
            self._shuffle()
            self._epoch = 0
        self._offset %= len(self._racks)
        leader, leader_rack = self._leader()
        replicas = [leader, *self._followers(replication_factor - 1, leader_rack)]
        self._epoch += 1
        self._offset += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        """The next unfenced broker of the first rack that has one, from the offset on; and that rack."""
        rack = self._offset
        while (broker := self._racks[rack].unfenced.next_broker(self._epoch)) < 0:
            rack = (rack + 1) % len(self._racks)
        return broker, rack

    def _followers(self, count: int, leader_rack: int) -> list[int]:
        """One broker of each rack in turn, from the offset on; the leader's rack is skipped once."""
        followers: list[int] = []
        racks, epoch, rack, passed_over = self._racks, self._epoch, self._offset, False
        while len(followers) < count:
            if rack == leader_rack and not passed_over:
                passed_over = True
            elif (broker := racks[rack].next_broker(epoch)) >= 0:
                followers.append(broker)
            rack = rack + 1 if rack + 1 < len(racks) else 0
        return followers

    def _shuffle(self) -> None:
        """Shuffles the racks, and the brokers of each rack."""
        self._random.shuffle(self._racks)
        for rack in self._by_hash.values():
            self._random.shuffle(rack.fenced.brokers)
            self._random.shuffle(rack.unfenced.brokers)


def _in_order(racks: Iterable[str | None]) -> list[str | None]:
    """No rack first, then by name as Java compares strings (Kafka's OptionalStringComparator)."""
    return sorted(racks, key=lambda rack: (rack is not None, utf16_key(rack or "")))


def fits(brokers: Brokers, lists: Sequence[Sequence[int]]) -> bool:
    """True if StripedReplicaPlacer can give these replica lists with these brokers (id, rack), none of them fenced.

    `lists` are those of partitions 0, 1, … of one topic, preferred leader first. For two partitions or fewer the result
    says little, because it depends on chance.
    """
    broker_ids = {broker for broker, _ in brokers}
    if not lists or any(broker not in broker_ids for replicas in lists for broker in replicas):
        return False
    if len({len(replicas) for replicas in lists}) > 1 or not all(lists):
        return False
    stripes = _SeenStripes(brokers)
    return all(stripes.takes(replicas) for replicas in lists)


class _SeenRing:
    """One rack's brokers in turn; `places`: the places whose broker is known."""

    def __init__(self, brokers: Sequence[int]) -> None:
        self.brokers = sorted(brokers)
        self.places: dict[int, int] | None = None
        self.epoch = self.offset = self.taken = 0

    def begin(self, epoch: int) -> bool:
        """Starts or continues an epoch; False if it has used all brokers."""
        if self.epoch != epoch:
            self.epoch, self.taken, self.offset = epoch, 0, self.offset + 1
        return self.taken < len(self.brokers)

    def takes(self, broker: int) -> bool:
        """True if the next broker can be this one."""
        if self.places is None:
            # In the first round the brokers are sorted by id, so the first one seen tells where they begin.
            self.offset = self.brokers.index(broker) - self.taken
            self.places = dict(enumerate(self.brokers))
        place = (self.taken + self.offset) % len(self.brokers)
        self.taken += 1
        if place not in self.places and broker in self.places.values():
            return False
        return self.places.setdefault(place, broker) == broker


class _SeenStripes:
    """The placer's state from partition to partition, as far as the replicas show it."""

    def __init__(self, brokers: Brokers) -> None:
        names = _in_order({rack for _, rack in brokers})
        self._rack_of = {broker: names.index(rack) for broker, rack in brokers}
        self._rings = [_SeenRing([broker for broker, rack in brokers if rack == name]) for name in names]
        self._racks = {place: place for place in range(len(names))}
        self._offset: int | None = None
        self._round, self._epoch = len(brokers), 0

    def takes(self, replicas: Sequence[int]) -> bool:
        """True if the next partition can have these replicas."""
        if self._epoch == self._round > 1:
            self._shuffle()
        if self._offset is None:
            self._offset = self._rack_of[replicas[0]]
        leader_rack = self._offset = self._offset % len(self._rings)
        # A rack has no broker left when an epoch begins, if it was last used in the same epoch of the round before.
        if any(ring.epoch == self._epoch and ring.taken >= len(ring.brokers) for ring in self._rings):
            is_taken = self._takes_in_rings(replicas)
        else:
            is_taken = self._takes_at(leader_rack, replicas[0]) and self._followers(replicas[1:], leader_rack)
        self._epoch += 1
        self._offset += 1
        return is_taken

    def _takes_in_rings(self, replicas: Sequence[int]) -> bool:
        """If used-up racks are skipped, the racks' places are unknown; checks only the order of each rack's brokers."""
        rings = [(self._rings[self._rack_of[broker]], broker) for broker in replicas]
        return all(ring.begin(self._epoch) and ring.takes(broker) for ring, broker in rings)

    def _followers(self, replicas: Sequence[int], leader_rack: int) -> bool:
        """One broker of each rack in turn; skips racks that have none left and, once, the leader's rack."""
        place = (leader_rack + 1) % len(self._rings)
        for broker in replicas:
            while place in self._racks and not self._rings[self._racks[place]].begin(self._epoch):
                place = (place + 1) % len(self._rings)
            if not self._takes_at(place, broker):
                return False
            place = (place + 1) % len(self._rings)
        return True

    def _takes_at(self, place: int, broker: int) -> bool:
        """True if this broker's rack can be at this place, and the broker can be the rack's next one."""
        rack = self._rack_of[broker]
        if place not in self._racks and rack in self._racks.values():
            return False
        ring = self._rings[rack]
        return self._racks.setdefault(place, rack) == rack and ring.begin(self._epoch) and ring.takes(broker)

    def _shuffle(self) -> None:
        self._racks, self._epoch = {}, 0
        for ring in self._rings:
            ring.places = {}
