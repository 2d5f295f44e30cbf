"""Whether KRaft's own placement, or a plain round robin, can have given an assignment: both read backwards.

KRaft's random draws can't be recovered, but their results can: where the racks and each rack's brokers begin, and their
orders after each shuffle. Each result is taken from the first replica that shows it; all later replicas must agree.
Source: Kafka 4.1, StripedReplicaPlacer.
"""

from collections.abc import Sequence

from planner.model.cluster import Partition
from planner.strategies.java_random import utf16_key
from planner.strategies.kafka_classic import Brokers


def start_of(order: Sequence[int], partitions: Sequence[Partition]) -> int | None:
    """The position in a list of brokers at which partition 0 begins; None if the partitions aren't a round robin."""
    if len({len(partition.replicas) for partition in partitions}) != 1 or partitions[0].replicas[0] not in order:
        return None
    start = (order.index(partitions[0].replicas[0]) - partitions[0].id) % len(order)
    is_so = all(
        order[(start + partition.id + distance) % len(order)] == broker
        for partition in partitions
        for distance, broker in enumerate(partition.replicas)
    )
    return start if is_so else None


def fits(brokers: Brokers, lists: Sequence[Sequence[int]]) -> bool:
    """True if StripedReplicaPlacer can give these replica lists with these brokers (id, rack), none of them fenced.

    `lists` are those of partitions 0, 1, … of one topic, preferred leader first. For two partitions or fewer the result
    says little, because it depends on chance.
    """
    known = {broker for broker, _ in brokers}
    if not lists or any(broker not in known for replicas in lists for broker in replicas):
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
        names = sorted({rack for _, rack in brokers}, key=lambda rack: (rack is not None, utf16_key(rack or "")))
        self._rack_of = {broker: names.index(rack) for broker, rack in brokers}
        self._rings = [_SeenRing([broker for broker, rack in brokers if rack == name]) for name in names]
        self._racks = {at: at for at in range(len(names))}
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
            taken = self._anyhow(replicas)
        else:
            taken = self._takes_at(leader_rack, replicas[0]) and self._followers(replicas[1:], leader_rack)
        self._epoch += 1
        self._offset += 1
        return taken

    def _anyhow(self, replicas: Sequence[int]) -> bool:
        """If used-up racks are skipped, the racks' places are unknown; checks only the order of each rack's brokers."""
        rings = [(self._rings[self._rack_of[broker]], broker) for broker in replicas]
        return all(ring.begin(self._epoch) and ring.takes(broker) for ring, broker in rings)

    def _followers(self, replicas: Sequence[int], leader_rack: int) -> bool:
        """One broker of each rack in turn; skips racks that have none left and, once, the leader's rack."""
        at = (leader_rack + 1) % len(self._rings)
        for broker in replicas:
            while at in self._racks and not self._rings[self._racks[at]].begin(self._epoch):
                at = (at + 1) % len(self._rings)
            if not self._takes_at(at, broker):
                return False
            at = (at + 1) % len(self._rings)
        return True

    def _takes_at(self, at: int, broker: int) -> bool:
        """True if this broker's rack can be at this place, and the broker can be the rack's next one."""
        rack = self._rack_of[broker]
        if at not in self._racks and rack in self._racks.values():
            return False
        ring = self._rings[rack]
        return self._racks.setdefault(at, rack) == rack and ring.begin(self._epoch) and ring.takes(broker)

    def _shuffle(self) -> None:
        self._racks, self._epoch = {}, 0
        for ring in self._rings:
            ring.places = {}
