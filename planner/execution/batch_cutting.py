"""Cuts a plan's changes into batches that run one after the other, each with its own rollback.

Risk goes first: partitions that break the rack rule or leave a broker, then new replication factors, then balance.
Batches are packed only by time and risk. Where disks have no room for both copies of what a batch moves, `within_disks`
orders the batches anew, and cuts them finer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import attrgetter

import numpy as np

from planner.execution.batch_filling import ELECTIONS, BatchFilling, BatchLoads
from planner.execution.batch_packing import AT_RISK, pack
from planner.execution.partition_changes import Step, step_between, steps_of
from planner.model.cluster import PartitionChange, PartitionKey, Reason
from planner.model.spec import BatchRules

_AT_RISK = (Reason.RACK_RULE, Reason.BROKER_LEAVES)
# Kafka's tool lists the throttled replicas in settings of their topic, which have at most 32,767 bytes. This limit is
# lower, so that a part's last partition also fits.
_LIST_BYTES = 32_000

# Steps of a batch that stay together.
_Unit = Sequence[Step]


@dataclass(frozen=True)
class Batch:
    """Steps to run at once, sorted by (topic, partition), and the partitions to elect a preferred leader for.

    `leaderless`: none of the partitions has a leader, so nothing can be copied until a replica in sync is back.
    """

    number: int
    steps: tuple[Step, ...]
    elect: tuple[PartitionKey, ...]
    leaderless: bool = False

    @property
    def bytes_moved(self) -> int:
        """Bytes that the batch copies between brokers."""
        return _bytes(self.steps)

    @property
    def replicas_moved(self) -> int:
        """How many replicas the batch copies between brokers."""
        return sum(len(step.adding) for step in self.steps)


def split(
    changes: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str] | None = None
) -> tuple[Batch, ...]:
    """Batches that turn every change's `before` into its `after` if run in order, and back if undone in reverse order.

    A batch copies at most `rules.bytes` bytes and keeps each broker busy for at most `rules.seconds`. A replica that
    exceeds this by itself is copied alone, or alone on its brokers. Per batch, each broker receives and sends at most
    `rules.moves_per_broker` replicas, a partition adds at most `rules.replicas_per_partition`, and at most
    `rules.elections` leaders are elected. Rules are at least 1 if given. A larger change takes several batches. Its
    lists in between have no fewer replicas than the shorter end, no more than the longer one, and are spread over
    `racks` (broker id → rack) as widely as possible.

    Partitions whose replication factor changes stay together by topic if one batch has room for the topic, because
    Terraform can't read a topic with two replication factors. Partitions at risk are done as early as the rules allow.
    The rest fills up batches without making them longer; it doesn't wait if neither bytes nor moves are limited. The
    bytes of each batch's busiest broker add up to little more than the bytes of the plan's busiest broker. The order of
    `changes` makes no difference.

    Partitions without a leader come last, in separate batches, one for each set of brokers: nothing can be copied until
    one of their replicas is back, and other partitions don't wait for that.
    """
    with_leader: list[PartitionChange] = []
    waiting: defaultdict[tuple[int, ...], list[PartitionChange]] = defaultdict(list)
    for change in sorted((each for each in changes if each.reassigned or each.elects), key=attrgetter("key")):
        group = with_leader if change.leader_before is not None else waiting[tuple(sorted(change.before))]
        group.append(change)
    leaderless = [waiting[brokers] for brokers in sorted(waiting)]
    groups = [_split(group, rules, racks or {}) for group in (with_leader, *leaderless)]
    batches = [replace(batch, leaderless=index > 0) for index, group in enumerate(groups) for batch in group]
    return tuple(replace(batch, number=number) for number, batch in enumerate(batches, 1))


def _split(changes: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str]) -> tuple[Batch, ...]:
    """The batches of changes sorted by (topic, partition), numbered from 1."""
    moving = [change for change in changes if set(change.before) != set(change.after)]
    others = [change for change in changes if set(change.before) == set(change.after)]
    inside = [change for change in others if change.dir_moves]
    reordered = [change for change in others if change.reassigned and not change.dir_moves]
    elected = [change for change in others if not change.reassigned]
    steps, elect = defaultdict[int, list[Step]](list), defaultdict[int, list[PartitionKey]](list)
    loads, of_loads = _loads(moving, rules, racks)
    for load_steps, index in zip(of_loads, pack(loads, rules), strict=True):
        steps[index] += load_steps
        elect[index] += [step.key for step in load_steps if step.elects]
    for group in (inside, reordered, elected):
        counts = [len(elect[index]) for index in range(max(elect, default=-1) + 1)]
        indices = (
            log_dir_batches(group, rules, counts) if group is inside else evenly(len(group), counts, rules.elections)
        )
        for change, index in zip(group, indices, strict=True):
            steps[index] += [step_between(change, change.before, change.after)] if change.reassigned else []
            elect[index] += [change.key] if change.elects else []
    return tuple(
        Batch(index + 1, tuple(sorted(steps[index], key=attrgetter("key"))), tuple(sorted(elect[index])))
        for index in range(max(elect, default=-1) + 1)
    )


def _loads(
    moving: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str]
) -> tuple[BatchLoads, list[Sequence[Step]]]:
    """Every step that copies, as loads with their steps: one step, or a round of a topic that may stay together."""
    brokers = set[int]().union(*(change.before for change in moving), *(change.after for change in moving))
    lanes = {broker: 2 * index for index, broker in enumerate(sorted(brokers))}
    loads, of_loads = BatchLoads(2 * len(brokers)), list[Sequence[Step]]()
    # A topic that changes its replication factor stays together.
    groups: defaultdict[tuple[str, int], list[PartitionChange]] = defaultdict(list)
    for change in moving:
        resized = len(change.before) != len(change.after)
        groups[change.topic, -1 if resized else change.partition].append(change)
    for group in groups.values():
        paths = [steps_of(change, rules, racks) for change in group]
        # Data at risk comes first, then new replication factors, then balance.
        levels = (1 if len(change.before) != len(change.after) else 2 for change in group)
        risk = AT_RISK if any(change.reason in _AT_RISK for change in group) else min(levels)
        rounds = max(map(len, paths))
        last: list[tuple[int, ...]] = [()] * len(paths)
        for number, steps, rows in _together(paths, lanes, rules):
            after = tuple(sorted({load for row in rows for load in last[row]}))
            entries, elections = _entries(steps, lanes, rules), sum(step.elects for step in steps)
            load = loads.add(entries, _bytes(steps), risk, after, (number, rounds), elections)
            of_loads.append(steps)
            for row in rows:
                last[row] = (load,)
    return loads, of_loads


def _together(
    paths: Sequence[Sequence[Step]], lanes: Mapping[int, int], rules: BatchRules
) -> Iterator[tuple[int, Sequence[Step], Sequence[int]]]:
    """Each round's number, its steps that stay together, and their paths' rows; all steps if a batch has room."""
    for number, round_ in enumerate(zip_longest(*paths)):
        present = [(row, step) for row, step in enumerate(round_) if step is not None]
        steps = [step for _, step in present]
        if len(steps) > 1 and _fits(steps, lanes, rules):
            yield number, steps, range(len(paths))
        else:
            yield from ((number, (step,), (row,)) for row, step in present)


def _fits(steps: Sequence[Step], lanes: Mapping[int, int], rules: BatchRules) -> bool:
    """True if an empty batch has room for all of the steps."""
    _, sizes, moves = _entries(steps, lanes, rules)
    needed = (
        (_bytes(steps), rules.bytes),
        (max(sizes), rules.bytes_per_broker),
        (max(moves), rules.moves_per_broker),
        (sum(step.elects for step in steps), rules.elections),
    )
    return all(limit is None or amount <= limit for amount, limit in needed)


def _bytes(steps: Iterable[Step]) -> int:
    return sum(step.bytes_moved for step in steps)


def _entries(
    steps: Sequence[Step], lanes: Mapping[int, int], rules: BatchRules
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Lanes with their bytes and replicas: a broker receives on its lane and sends on the next one.

    If batches are limited in time, what producers write meanwhile counts as bytes too, because it takes as much of the
    throttle: on the leader's side once for each follower.
    """
    sizes, moves = Counter[int](), Counter[int]()
    for step in steps:
        written, sending = step.bytes_in_per_sec * (rules.seconds or 0), lanes[step.source] + 1
        for broker in step.adding:
            sizes[lanes[broker]] += step.size_bytes + written
            moves[lanes[broker]] += 1
        sizes[sending] += step.bytes_moved + written * step.followers_meanwhile
        moves[sending] += len(step.adding)
    return tuple(sizes), tuple(sizes.values()), tuple(moves.values())


def evenly(count: int, elections: Sequence[int], most: int | None) -> list[int]:
    """The batches of `count` elections, ascending: spread evenly over batches that hold some elections already.

    Elections copy nothing, but many at once would flood the controller and every client that looks for its leader. A
    batch gets at most `most` elections, with those that it holds. Batches are added if there is no room left.
    """
    if not count:
        return []
    counts = list(elections) or [0]
    while most is not None and sum(max(most - each, 0) for each in counts) < count:
        counts.append(0)
    rooms = [count if most is None else max(most - each, 0) for each in counts]
    planned = Counter(index * len(counts) // count for index in range(count))
    added = [min(planned[batch], room) for batch, room in enumerate(rooms)]
    remaining = count - sum(added)
    for batch, room in enumerate(rooms):
        extra = min(remaining, room - added[batch])
        added[batch] += extra
        remaining -= extra
    return [batch for batch, number in enumerate(added) for _ in range(number)]


def log_dir_batches(changes: Sequence[PartitionChange], rules: BatchRules, elections: Sequence[int]) -> list[int]:
    """The batch of each change whose replicas only move between log dirs of the same broker.

    Such moves have a separate throttle (KIP-113), so they are counted apart from copies between brokers: a batch moves
    at most `rules.bytes` bytes, each broker at most what it moves in `rules.seconds` (unless one partition alone is
    larger), and at most `rules.moves_per_broker` replicas. Without such rules the changes are spread evenly.
    `elections`: the number of elections in each existing batch. Batches are added as needed.
    """
    if (rules.bytes, rules.moves_per_broker, rules.bytes_per_broker) == (None, None, None):
        return evenly(len(changes), elections, rules.elections)
    lanes = {
        broker: lane for lane, broker in enumerate(sorted({each for change in changes for each in change.dir_moves}))
    }
    loads = BatchLoads(len(lanes))
    for change in changes:
        count = len(change.dir_moves)
        # What producers write meanwhile counts too, if time is limited.
        moved = change.size_bytes + change.bytes_in_per_sec * (rules.seconds or 0)
        entries = [lanes[broker] for broker in change.dir_moves], [moved] * count, [1] * count
        loads.add(entries, change.size_bytes * count, elections=int(change.elects))
    filling = BatchFilling(loads, rules)
    filling.open(len(elections))
    filling.held[ELECTIONS, : len(elections)] = elections
    for load in range(len(changes)):
        room = np.flatnonzero(filling.has_room(load, 0, filling.count))
        if not len(room):
            filling.open(1)
        filling.put(load, int(room[0]) if len(room) else filling.count - 1)
    return filling.batch_of


def added_and_removed(steps: Iterable[Step]) -> tuple[Counter[int], Counter[int]]:
    """Bytes that brokers (by id) get while these steps run, and bytes that they delete when all steps are complete."""
    added, removed = Counter[int](), Counter[int]()
    for step in steps:
        for broker in (*step.adding, *step.dir_moves):
            added[broker] += step.size_bytes
        for broker in (*set(step.before).difference(step.after), *step.dir_moves):
            removed[broker] += step.size_bytes
    return added, removed


def listable(batches: Iterable[Batch]) -> tuple[Batch, ...]:
    """The batches, cut if a topic's list of throttled replicas, `partition:broker,...`, is too long for Kafka.

    The list names the brokers of `before` when a batch is applied, and those of `after` when it is rolled back.
    """
    cut: list[Batch] = []
    for batch in batches:
        used: Counter[str] = Counter()
        part_of: dict[PartitionKey, int] = {}
        # An estimate first: nearly all lists are far shorter, and a plan may have a million replicas.
        entries = Counter(step.topic for step in batch.steps for _ in max(step.before, step.after, key=len))
        long_topics = {topic for topic, count in entries.items() if count * len("2147483647:2147483647,") > _LIST_BYTES}
        for step in (step for step in batch.steps if step.topic in long_topics):
            lists = [sum(len(f"{step.partition}:{broker},") for broker in end) for end in (step.before, step.after)]
            part_of[step.key] = used[step.topic] // _LIST_BYTES
            used[step.topic] += max(lists)
        for part in range(max(part_of.values(), default=0) + 1):
            steps = tuple(step for step in batch.steps if part_of.get(step.key, 0) == part)
            elect = tuple(key for key in batch.elect if part_of.get(key, 0) == part)
            cut.append(replace(batch, number=len(cut) + 1, steps=steps, elect=elect))
    return tuple(cut)


def within_disks(
    batches: Sequence[Batch], held_bytes: Mapping[int, int], most_bytes: Mapping[int, int]
) -> tuple[Batch, ...]:
    """The batches in an order in which no broker (id → bytes) exceeds its maximum; unchanged if no such order is found.

    A replica that leaves a broker is deleted when its batch is complete, so a batch that fills a disk may fit only
    after one that frees space there. The first batch that fits is next, so the order stays the same if that keeps
    within the maximum. If no whole batch fits, the part of one that fits is next, and keeps every rule that the batch
    keeps. A partition's steps keep their order, partitions of a topic that changes its replication factor stay
    together, and batches without leaders stay last. `held_bytes`: today's bytes of every broker, at most its maximum.
    """
    order, ordered = _OrderForDisks(batches, held_bytes, most_bytes), list[Batch]()
    while order.remaining:
        if (part := order.next_part()) is None:
            return tuple(batches)
        ordered.append(replace(part, number=len(ordered) + 1))
    return tuple(ordered)


class _OrderForDisks:
    """The state so far: what is left of each batch, the bytes on brokers, and each partition's replicas."""

    def __init__(self, batches: Sequence[Batch], held_bytes: Mapping[int, int], most_bytes: Mapping[int, int]) -> None:
        self.batches, self.bytes_on, self.most = batches, Counter(held_bytes), most_bytes
        self.remaining: dict[int, list[_Unit]] = {}
        for index, batch in enumerate(batches):
            # A unit for each partition, or for a topic if its replication factor changes.
            resized = {step.topic for step in batch.steps if len(step.before) != len(step.after)}
            units = defaultdict[PartitionKey, list[Step]](list)
            for step in batch.steps:
                units[(step.topic, -1) if step.topic in resized else step.key].append(step)
            self.remaining[index] = list(units.values())
        self.replicas: dict[PartitionKey, tuple[int, ...]] = {}
        for batch in reversed(batches):
            self.replicas |= {step.key: step.before for step in batch.steps}

    def fits(self, steps: Iterable[Step], running: Counter[int] | None = None) -> bool:
        """True if disks have room for the steps beside those `running`, and the earlier steps are complete."""
        steps, running = list(steps), running or Counter()
        added, _ = added_and_removed(steps)
        return all(self.replicas[step.key] == step.before for step in steps) and not any(
            size and broker in self.most and self.bytes_on[broker] + running[broker] + size > self.most[broker]
            for broker, size in added.items()
        )

    def next_part(self) -> Batch | None:
        """The first batch that fits as a whole, else what fits of the first that fits in part; None if nothing fits."""
        leaderless = self.batches[min(self.remaining)].leaderless
        open_ = [index for index in self.remaining if self.batches[index].leaderless == leaderless]
        for index in open_:
            if self.fits(step for unit in self.remaining[index] for step in unit):
                return self._take(index, self.remaining[index])
        for index in open_:
            if units := self._fitting(self.remaining[index]):
                return self._take(index, units)
        return None

    def _fitting(self, units: Sequence[_Unit]) -> list[_Unit]:
        """The units, in their order, that can run at once now."""
        running, fitting = Counter[int](), list[_Unit]()
        for unit in units:
            if self.fits(unit, running):
                running.update(added_and_removed(unit)[0])
                fitting.append(unit)
        return fitting

    def _take(self, index: int, units: Sequence[_Unit]) -> Batch:
        """A batch of these units, taken as done. Elections of other partitions go with the batch's first part."""
        batch, steps = self.batches[index], [step for unit in units for step in unit]
        added, removed = added_and_removed(steps)
        self.bytes_on.update(added)
        self.bytes_on.subtract(removed)
        self.replicas |= {step.key: step.after for step in steps}
        done, batch_keys = {step.key for step in steps}, {step.key for step in batch.steps}
        is_first = len(batch_keys) == sum(map(len, self.remaining[index]))
        self.remaining[index] = [unit for unit in self.remaining[index] if unit[0].key not in done]
        if not self.remaining[index]:
            del self.remaining[index]
        return replace(
            batch,
            steps=tuple(sorted(steps, key=attrgetter("key"))),
            elect=tuple(key for key in batch.elect if key in done or (is_first and key not in batch_keys)),
        )
