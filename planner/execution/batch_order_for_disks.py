"""Orders batches, and cuts them finer, so that disks have room for them.

A replica that leaves a broker is deleted when its batch is complete, so a batch that fills a disk may fit only after
one that frees space there. Batches are packed only by time and risk. Most plans have room for both copies and keep this
order. If no order of whole batches fits, batches are cut finer.
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
    """The batches in an order in which no broker (id → bytes) exceeds its maximum; unchanged if no such order is found.

    The first batch that fits is next, so the order stays the same if that keeps within the maximum. If no whole batch
    fits, the part of one that fits is next, and keeps every rule that the batch keeps. A partition's steps keep their
    order, partitions of a topic that changes its replication factor stay together, and batches without leaders stay
    last. `held_bytes`: today's bytes of every broker, at most its maximum.
    """
    order, found = _Order(batches, held_bytes, most_bytes), list[Batch]()
    while order.left:
        if (part := order.next_part()) is None:
            return tuple(batches)
        found.append(replace(part, number=len(found) + 1))
    return tuple(found)


class _Order:
    """The state so far: what is left of each batch, the bytes on brokers, and each partition's replicas."""

    def __init__(self, batches: Sequence[Batch], held_bytes: Mapping[int, int], most_bytes: Mapping[int, int]) -> None:
        self.batches, self.held, self.most = batches, Counter(held_bytes), most_bytes
        self.left: dict[int, list[_Unit]] = {}
        for at, batch in enumerate(batches):
            # A unit for each partition, or for a topic if its replication factor changes.
            resized = {step.topic for step in batch.steps if len(step.before) != len(step.after)}
            units = defaultdict[PartitionKey, list[Step]](list)
            for step in batch.steps:
                units[(step.topic, -1) if step.topic in resized else step.key].append(step)
            self.left[at] = list(units.values())
        self.replicas: dict[PartitionKey, tuple[int, ...]] = {}
        for batch in reversed(batches):
            self.replicas |= {step.key: step.before for step in batch.steps}

    def fits(self, steps: Iterable[Step], running: Counter[int] | None = None) -> bool:
        """True if disks have room for the steps beside those `running`, and the earlier steps are complete."""
        steps, running = list(steps), running or Counter()
        added, _ = added_and_removed(steps)
        return all(self.replicas[step.key] == step.before for step in steps) and not any(
            more and broker in self.most and self.held[broker] + running[broker] + more > self.most[broker]
            for broker, more in added.items()
        )

    def next_part(self) -> Batch | None:
        """The first batch that fits as a whole, else what fits of the first that fits in part; None if nothing fits."""
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
        """The units, in their order, that can run at once now."""
        running, found = Counter[int](), list[_Unit]()
        for unit in units:
            if self.fits(unit, running):
                running.update(added_and_removed(unit)[0])
                found.append(unit)
        return found

    def _taken(self, at: int, units: Sequence[_Unit]) -> Batch:
        """A batch of these units, taken as done. Elections of other partitions go with the batch's first part."""
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
