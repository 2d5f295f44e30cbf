"""A plan's changes cut into batches that are executed one after the other, each with its own rollback.

Risk goes first: what breaks the rack rule or sits on a leaving broker, then new replication factors, then balance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, zip_longest
from typing import Any

from planner.model import BatchRules, PartitionChange, Reason

# First-fit looks at this many batches from the first that may fit, and as many at the end: a full scan for each
# step would be quadratic, and more of it hardly saves a batch.
LOOK_BACK = 8

_AT_RISK = (Reason.RACK_RULE, Reason.BROKER_LEAVES)


@dataclass(frozen=True)
class Step:
    """One reassignment of one partition; broker ids, preferred leader first. `size_bytes` is that of one replica."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @cached_property
    def adding(self) -> tuple[int, ...]:
        """Brokers that copy the partition in this step."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def bytes_moved(self) -> int:
        """Bytes that this step copies between brokers."""
        return self.size_bytes * len(self.adding)


@dataclass(frozen=True)
class Batch:
    """Steps to run at once, sorted by (topic, partition), then the partitions to elect a preferred leader for.

    `seconds_at_throttle` is the least time the copying takes, None without a throttle.
    """

    number: int
    steps: tuple[Step, ...]
    elect: tuple[tuple[str, int], ...]
    bytes_moved: int
    replicas_moved: int
    seconds_at_throttle: int | None


@dataclass(frozen=True)
class _Load:
    """Steps to place together, with what they cost: bytes, and replicas added by each broker."""

    steps: Sequence[Step]
    bytes_moved: int
    adding: Mapping[int, int]

    @staticmethod
    def of(*steps: Step) -> _Load:
        if len(steps) == 1:  # By far the most; a Counter costs several times a dict here.
            return _Load(steps, steps[0].bytes_moved, dict.fromkeys(steps[0].adding, 1))
        adding = Counter(chain.from_iterable(step.adding for step in steps))
        return _Load(steps, sum(step.bytes_moved for step in steps), adding)


@dataclass
class _Open:
    """A batch while it is being filled."""

    steps: list[Step] = field(default_factory=list)
    bytes_moved: int = 0
    adding: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, load: _Load) -> None:
        self.steps.extend(load.steps)
        self.bytes_moved += load.bytes_moved
        for broker, replicas in load.adding.items():
            self.adding[broker] += replicas


@dataclass
class _Packer:
    """Batches in the making: each load goes into the first batch looked at that has room."""

    rules: BatchRules
    batches: list[_Open] = field(default_factory=list)
    first_free: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def place(self, load: _Load, not_before: int) -> int:
        """Put `load` into one batch, `not_before` or later; the index of that batch."""
        start = max([not_before, *map(self._first_free, load.adding)])
        index = next((i for i in self._looked_at(start) if self._has_room(self.batches[i], load)), len(self.batches))
        if index == len(self.batches):
            self.batches.append(_Open())
        self.batches[index].add(load)
        return index

    def takes_whole(self, load: _Load) -> bool:
        """True where an empty batch has room for all of `load`."""
        within = self.rules.bytes is None or load.bytes_moved <= self.rules.bytes
        return len(load.steps) == 1 or (within and self._has_room(_Open(), load))

    def _looked_at(self, start: int) -> Iterator[int]:
        end = len(self.batches)
        near = min(start + LOOK_BACK, end)
        return chain(range(start, near), range(max(near, end - LOOK_BACK), end))

    def _has_room(self, batch: _Open, load: _Load) -> bool:
        # A partition larger than any batch may start one, and lets only what moves no byte in beside it.
        limit = self.rules.bytes
        shared = load.bytes_moved and batch.bytes_moved
        if limit is not None and shared and batch.bytes_moved + load.bytes_moved > limit:
            return False
        moves = self.rules.moves_per_broker
        return moves is None or all(n + batch.adding.get(broker, 0) <= moves for broker, n in load.adding.items())

    def _first_free(self, broker: int) -> int:
        """The first batch where `broker` may still add a replica; never goes back, since batches only fill."""
        limit = self.rules.moves_per_broker
        if limit is None:
            return 0
        index = self.first_free[broker]
        while index < len(self.batches) and self.batches[index].adding.get(broker, 0) >= limit:
            index += 1
        self.first_free[broker] = index
        return index


def split(
    changes: Sequence[PartitionChange],
    rules: BatchRules,
    throttle_bytes_per_sec: int | None,
    racks: Mapping[int, str] | None = None,
) -> tuple[Batch, ...]:
    """Batches that, run in order, turn every change's `before` into its `after`; undone in reverse, they turn it back.

    A batch moves at most `rules.bytes` bytes, unless one partition alone is larger: that one moves alone. A broker adds
    at most `rules.moves_per_broker` replicas in a batch, a partition at most `rules.replicas_per_partition`: larger
    changes take several batches, through lists that never have fewer or more replicas than the smaller and the larger
    of both ends. `racks` (broker id → rack) lets those lists stay as spread over the racks as possible. Rules are at
    least 1 where given.

    Partitions whose replication factor changes stay together by topic where one batch has room for the topic, since
    Terraform can't read a topic with two replication factors. The throttle is Kafka's (KIP-73): bytes/s per broker.
    """
    changes = [change for change in changes if change.reassigned or change.elects]
    moving = [change for change in changes if set(change.before) != set(change.after)]
    packer = _Packer(rules)
    for group in _groups(moving):
        paths = [_steps(change, rules.replicas_per_partition, racks or {}) for change in group]
        if len(paths) == 1:
            _place_path(packer, paths[0])
        else:
            _place_group(packer, paths)
    reorders = sorted((c for c in changes if c.reassigned and set(c.before) == set(c.after)), key=_name)
    if changes and not packer.batches:
        packer.batches.append(_Open())
    for change, index in zip(reorders, _evenly(len(reorders), len(packer.batches)), strict=True):
        packer.batches[index].steps.append(_step(change, change.before, change.after))
    return _closed(packer.batches, {_name(change): change for change in changes}, throttle_bytes_per_sec)


def to_document(batches: Sequence[Batch]) -> list[dict[str, Any]]:
    """The `batches` of plan.json."""
    return [
        {
            "number": batch.number,
            "partitions": [
                {
                    "topic": step.topic,
                    "partition": step.partition,
                    "replicas_before": list(step.before),
                    "replicas": list(step.after),
                }
                for step in batch.steps
            ],
            "elect": [{"topic": topic, "partition": partition} for topic, partition in batch.elect],
            "bytes_moved": batch.bytes_moved,
            "replicas_moved": batch.replicas_moved,
            "seconds_at_throttle": batch.seconds_at_throttle,
        }
        for batch in batches
    ]


def _name(change: PartitionChange | Step) -> tuple[str, int]:
    return change.topic, change.partition


def _risk(change: PartitionChange) -> int:
    """0 where data is at risk today, 1 for another replication factor, 2 for balance."""
    if change.reason in _AT_RISK:
        return 0
    return 1 if len(change.before) != len(change.after) else 2


def _groups(changes: Iterable[PartitionChange]) -> list[list[PartitionChange]]:
    """The changes in the order to place them; those of a topic that change its replication factor are one group."""
    groups: defaultdict[tuple[str, int], list[PartitionChange]] = defaultdict(list)
    for change in sorted(changes, key=_name):
        whole_topic = len(change.before) != len(change.after)
        groups[change.topic, -1 if whole_topic else change.partition].append(change)
    return [groups[key] for key in sorted(groups, key=lambda key: (min(map(_risk, groups[key])), key))]


def _place_group(packer: _Packer, paths: Sequence[Iterable[Step]]) -> None:
    """Place the first steps of all paths, then the second ones …, each round in one batch where that has room."""
    placed = [-1] * len(paths)
    for round_ in zip_longest(*paths):
        going = [(row, step) for row, step in enumerate(round_) if step is not None]
        together = _Load.of(*(step for _, step in going))
        if packer.takes_whole(together):
            placed = [packer.place(together, 1 + max(placed))] * len(paths)
            continue
        for row, step in going:
            placed[row] = packer.place(_Load.of(step), 1 + placed[row])


def _place_path(packer: _Packer, path: Iterable[Step]) -> None:
    """Place one partition's steps, each in a later batch than the last."""
    placed = -1
    for step in path:
        placed = packer.place(_Load.of(step), 1 + placed)


def _step(change: PartitionChange, before: tuple[int, ...], after: tuple[int, ...]) -> Step:
    return Step(change.topic, change.partition, before, after, change.size_bytes)


def _steps(change: PartitionChange, at_most: int | None, racks: Mapping[int, str]) -> Iterator[Step]:
    """The change as steps that add `at_most` replicas each; the last one ends in exactly `change.after`."""
    adding = len(change.adding)
    size = at_most or adding or 1
    current = change.before
    for _ in range(size, adding, size):
        reached = current
        for _ in range(size):
            reached = _one_replica_on(reached, change, racks)
        yield _step(change, current, reached)
        current = reached
    yield _step(change, current, change.after)


def _one_replica_on(current: tuple[int, ...], change: PartitionChange, racks: Mapping[int, str]) -> tuple[int, ...]:
    """`current` with one more broker of `change.after`, in the place of one that leaves where there is no room.

    The first broker stays: until the last step a leader that leaves stays preferred, so clients move once.
    """
    added = [broker for broker in change.after if broker not in current]
    if len(current) < max(len(change.before), len(change.after)):
        return min(((*current, broker) for broker in added), key=lambda replicas: _crowding(replicas, racks))
    leaving = [slot for slot in range(len(current) - 1, 0, -1) if current[slot] not in change.after]
    options = [(slot, broker) for slot in leaving for broker in added]
    return min(
        ((*current[:slot], broker, *current[slot + 1 :]) for slot, broker in options),
        key=lambda replicas: (_crowding(replicas, racks), change.leader_before not in replicas),
    )


def _crowding(replicas: Sequence[int], racks: Mapping[int, str]) -> int:
    """Grows with every pair of replicas in one rack; a broker without a rack is in none."""
    return sum(number * number for number in Counter(racks[b] for b in replicas if b in racks).values())


def _evenly(items: int, batches: int) -> Iterator[int]:
    """The batch of each item: reorders cost no bytes, but all of them at once would flood the controller."""
    return (item * batches // items for item in range(items))


def _closed(
    batches: Sequence[_Open], changes: Mapping[tuple[str, int], PartitionChange], throttle: int | None
) -> tuple[Batch, ...]:
    """The filled batches, numbered from 1, with the elections: a partition's in the batch that ends its change."""
    elect = [[_name(s) for s in b.steps if _ends_election(s, changes[_name(s)])] for b in batches]
    if elect:
        elect[-1] += [name for name, change in changes.items() if change.elects and not change.reassigned]
    return tuple(
        Batch(
            number=number,
            steps=tuple(sorted(batch.steps, key=_name)),
            elect=tuple(sorted(names)),
            bytes_moved=batch.bytes_moved,
            replicas_moved=sum(batch.adding.values()),
            seconds_at_throttle=_seconds(batch.steps, changes, throttle),
        )
        for number, batch, names in zip(count(1), batches, elect, strict=False)
    )


def _ends_election(step: Step, change: PartitionChange) -> bool:
    return change.elects and step.after == change.after


def _seconds(
    steps: Iterable[Step], changes: Mapping[tuple[str, int], PartitionChange], throttle: int | None
) -> int | None:
    """Seconds until the busiest broker has received, or sent as leader, its bytes at `throttle` bytes/s (KIP-73)."""
    if throttle is None:
        return None
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for step in steps:
        for broker in step.adding:
            received[broker] += step.size_bytes
        leader = changes[_name(step)].leader_before
        source = leader if leader in step.before else step.before[0]
        sent[source] += step.bytes_moved
    busiest = max(chain(received.values(), sent.values()), default=0)
    return -(-busiest // throttle)
