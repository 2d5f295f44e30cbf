"""Batches in an order, and as fine, as disks have room for.

What leaves a broker is deleted when its batch is complete, so a batch that fills a disk may fit only behind one that
frees it. Batches are packed by time and risk alone; most plans have room for both copies, and keep that order. Where no
order of whole batches fits, they are cut finer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from planner.execution.batch_cutting import Batch, added_and_removed
from planner.execution.partition_changes import Step
from planner.model.cluster import PartitionKey

# Steps of a batch that stay together.
_Unit = Sequence[Step]


def within_disks(
    batches: Sequence[Batch], held_bytes: Mapping[int, int], most_bytes: Mapping[int, int]
) -> tuple[Batch, ...]:
    """The batches in an order in which no broker (id → bytes) holds more than its most; as they are if none is found.

    The first batch that fits is next, so the same order comes out where that keeps within it. Where no whole batch
    fits, it is as much as fits of one, and keeps every rule that the batch keeps. A partition's steps keep
    their order, partitions of a topic that changes its replication factor stay together, and batches without leaders
    stay last. `held_bytes` are today's, of every broker, and no more than its most.
    """
    order, found = _Order(batches, held_bytes, most_bytes), list[Batch]()
    while order.left:
        if (part := order.next_part()) is None:
            return tuple(batches)
        found.append(replace(part, number=len(found) + 1))
    return tuple(found)


class _Order:
    """What is left of each batch, what brokers hold, and the replicas of each partition, by now."""

    def __init__(self, batches: Sequence[Batch], held_bytes: Mapping[int, int], most_bytes: Mapping[int, int]) -> None:
        self.batches, self.held, self.most = batches, Counter(held_bytes), most_bytes
        self.left = {at: _units(batch.steps) for at, batch in enumerate(batches)}
        self.replicas: dict[PartitionKey, tuple[int, ...]] = {}
        for batch in reversed(batches):
            self.replicas |= {step.key: step.before for step in batch.steps}

    def fits(self, steps: Iterable[Step], running: Counter[int] | None = None) -> bool:
        """True where disks have room for the steps beside what is `running`, and earlier ones are complete."""
        steps, running = list(steps), running or Counter()
        added, _ = added_and_removed(steps)
        return all(self.replicas[step.key] == step.before for step in steps) and not any(
            more and broker in self.most and self.held[broker] + running[broker] + more > self.most[broker]
            for broker, more in added.items()
        )

    def next_part(self) -> Batch | None:
        """The first batch all of which fits, or what fits of the first of which anything does; None where none does."""
        leaderless = self.batches[min(self.left)].leaderless
        open_ = [at for at in self.left if self.batches[at].leaderless == leaderless]
        for at in open_:
            if self.fits(step for unit in self.left[at] for step in unit):
                return self._taken(at, self.left[at])
        for at in open_:
            if units := self._fitting(self.left[at]):
                return self._taken(at, units)
        return None

    def _fitting(self, units: Sequence[_Unit]) -> list[_Unit]:
        """Those of the units, in their order, that may run at once now."""
        running, found = Counter[int](), list[_Unit]()
        for unit in units:
            if self.fits(unit, running):
                running.update(added_and_removed(unit)[0])
                found.append(unit)
        return found

    def _taken(self, at: int, units: Sequence[_Unit]) -> Batch:
        """A batch of these units, complete; elections of other partitions go with the first part of their batch."""
        batch, steps = self.batches[at], [step for unit in units for step in unit]
        added, removed = added_and_removed(steps)
        self.held.update(added)
        self.held.subtract(removed)
        self.replicas |= {step.key: step.after for step in steps}
        own, every = {step.key for step in steps}, {step.key for step in batch.steps}
        first = len(every) == sum(map(len, self.left[at]))
        self.left[at] = [unit for unit in self.left[at] if unit[0].key not in own]
        if not self.left[at]:
            del self.left[at]
        return replace(
            batch,
            steps=tuple(sorted(steps, key=attrgetter("key"))),
            elect=tuple(key for key in batch.elect if key in own or (first and key not in every)),
        )


def _units(steps: Sequence[Step]) -> list[_Unit]:
    """The steps of a batch by partition, or by topic where its replication factor changes."""
    resized = {step.topic for step in steps if len(step.before) != len(step.after)}
    groups: defaultdict[PartitionKey, list[Step]] = defaultdict(list)
    for step in steps:
        groups[(step.topic, -1) if step.topic in resized else step.key].append(step)
    return list(groups.values())
