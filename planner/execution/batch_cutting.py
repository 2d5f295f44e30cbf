"""A plan's changes cut into batches that are executed one after the other, each with its own rollback.

Risk goes first: what breaks the rack rule or sits on a leaving broker, then new replication factors, then balance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest

from planner.execution.batch_filling import BatchLoads
from planner.execution.batch_packing import AT_RISK, pack
from planner.execution.election_batches import evenly
from planner.execution.log_dir_batches import deal, of_step
from planner.execution.reassignment_paths import replica_lists
from planner.model.cluster import ANY
from planner.model.partition_changes import PartitionChange, Reason
from planner.model.spec import BatchRules

_AT_RISK = (Reason.RACK_RULE, Reason.BROKER_LEAVES)


@dataclass(frozen=True)
class Step:
    """One reassignment of one partition; broker ids, preferred leader first.

    `size_bytes` is that of one replica. `source` is the broker that is copied from: the one that leads today, while it
    holds a replica. `bytes_in_per_sec` is what producers write to the partition. `log_dirs_before` and `log_dirs` are
    parallel to `before` and `after`, ANY where Kafka isn't told one; empty where log dirs aren't planned. `elects` is
    True for the last step of a partition that gets its preferred leader by an election.
    """

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int
    source: int
    bytes_in_per_sec: int = 0
    log_dirs_before: tuple[str, ...] = ()
    log_dirs: tuple[str, ...] = ()
    elects: bool = False

    @cached_property
    def adding(self) -> tuple[int, ...]:
        """Brokers that copy the partition in this step."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def dir_moves(self) -> tuple[int, ...]:
        """Brokers that keep the partition and move it to another of their log dirs in this step."""
        kept = zip(self.after, self.log_dirs, strict=False)
        return tuple(broker for broker, path in kept if path != ANY and broker in self.before)

    @property
    def bytes_moved(self) -> int:
        """Bytes that this step copies between brokers."""
        return self.size_bytes * len(self.adding)


@dataclass(frozen=True)
class Batch:
    """Steps to run at once, sorted by (topic, partition), then the partitions to elect a preferred leader for.

    `leaderless` is True where none of them has a leader: nothing can be copied until a replica in sync is back.
    """

    number: int
    steps: tuple[Step, ...]
    elect: tuple[tuple[str, int], ...]
    bytes_moved: int
    replicas_moved: int
    leaderless: bool = False


def split(
    changes: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str] | None = None
) -> tuple[Batch, ...]:
    """Batches that, run in order, turn every change's `before` into its `after`; undone in reverse, they turn it back.

    A batch moves at most `rules.bytes` bytes, and keeps each broker busy for `rules.seconds` at most, unless one
    replica alone takes more: that one moves alone, or alone on its brokers. In a batch at most `rules.moves_per_broker`
    replicas are copied to a broker, and as many from it; a partition adds at most `rules.replicas_per_partition`; at
    most `rules.elections` leaders are elected. Larger changes take several batches, through lists that never have
    fewer or more replicas than the smaller and the larger of both ends. `racks` (broker id → rack) lets those lists
    stay as spread over the racks as possible. Rules are at least 1 where given.

    Partitions whose replication factor changes stay together by topic where one batch has room for the topic, since
    Terraform can't read a topic with two replication factors. What is at risk is done as early as the rules let it;
    what can wait fills up batches without making them longer (unless neither bytes nor moves are limited: then nothing
    waits). Bytes are dealt so that the bytes of the batches' busiest brokers, which is what they take one after the
    other, sum up to little more than those of the plan's busiest broker. The order of `changes` makes no difference.

    Partitions without a leader come last, in batches of their own: nothing of them can be copied until one of their
    replicas is back, and the others don't wait for that. A batch holds those whose replicas are on the same brokers.
    """
    led, *leaderless = _by_leader(change for change in changes if change.reassigned or change.elects)
    groups = [_split(group, rules, racks or {}) for group in (led, *leaderless)]
    batches = [replace(batch, leaderless=at > 0) for at, group in enumerate(groups) for batch in group]
    return tuple(replace(batch, number=number) for number, batch in enumerate(batches, 1))


def _by_leader(changes: Iterable[PartitionChange]) -> list[list[PartitionChange]]:
    """The changes of partitions with a leader, then those without one by the brokers that they wait for."""
    led: list[PartitionChange] = []
    waiting: defaultdict[tuple[int, ...], list[PartitionChange]] = defaultdict(list)
    for change in sorted(changes, key=_name):
        group = led if change.leader_before is not None else waiting[tuple(sorted(change.before))]
        group.append(change)
    return [led, *(waiting[brokers] for brokers in sorted(waiting))]


def _split(changes: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str]) -> tuple[Batch, ...]:
    """The batches of changes sorted by (topic, partition), numbered from 1."""
    moving = [change for change in changes if set(change.before) != set(change.after)]
    loads, of_loads = _loads(moving, rules, racks)
    batch_of = pack(loads, rules)
    batches = _Batches(max(batch_of, default=0 if changes else -1) + 1)
    for steps, index in zip(of_loads, batch_of, strict=True):
        batches.add(index, steps)
    others = [change for change in changes if set(change.before) == set(change.after)]
    inside = [change for change in others if change.dir_moves]
    batches.deal(inside, deal(inside, rules, batches.elections))
    reorders = [change for change in others if change.reassigned and not change.dir_moves]
    batches.deal(reorders, evenly(len(reorders), batches.elections, rules.elections))
    elected = [change for change in others if not change.reassigned]
    batches.deal(elected, evenly(len(elected), batches.elections, rules.elections))
    return batches.closed()


class _Batches:
    """Batches that are being filled: steps, and the partitions to elect a preferred leader for."""

    def __init__(self, count: int) -> None:
        self.steps: list[list[Step]] = [[] for _ in range(count)]
        self.elect: list[list[tuple[str, int]]] = [[] for _ in range(count)]

    @property
    def elections(self) -> list[int]:
        """How many partitions each batch elects a leader for."""
        return [len(names) for names in self.elect]

    def add(self, index: int, steps: Iterable[Step]) -> None:
        """Put steps into a batch, with their elections; missing batches are appended."""
        self._append(index)
        for step in steps:
            self.steps[index].append(step)
            self.elect[index] += [_name(step)] if step.elects else []

    def deal(self, changes: Sequence[PartitionChange], indices: Sequence[int]) -> None:
        """Put changes of one step, or of an election alone, into batches."""
        for change, index in zip(changes, indices, strict=True):
            if change.reassigned:
                self.add(index, [_step(change, change.before, change.after)])
            else:
                self._append(index)
                self.elect[index].append(_name(change))

    def closed(self) -> tuple[Batch, ...]:
        """The batches, numbered from 1."""
        return tuple(
            Batch(
                number=number,
                steps=tuple(sorted(steps, key=_name)),
                elect=tuple(sorted(names)),
                bytes_moved=_bytes(steps),
                replicas_moved=sum(len(step.adding) for step in steps),
            )
            for number, (steps, names) in enumerate(zip(self.steps, self.elect, strict=True), 1)
        )

    def _append(self, index: int) -> None:
        while len(self.steps) <= index:
            self.steps.append([])
            self.elect.append([])


def busiest_bytes(steps: Iterable[Step]) -> int:
    """Bytes that the busiest broker receives, or sends, while these steps run; Kafka throttles both (KIP-73)."""
    received: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for step in steps:
        for broker in step.adding:
            received[broker] += step.size_bytes
        sent[step.source] += step.bytes_moved
    return max(chain(received.values(), sent.values()), default=0)


def _name(change: PartitionChange | Step) -> tuple[str, int]:
    return change.topic, change.partition


def _risk(change: PartitionChange) -> int:
    """0 where data is at risk today, 1 for another replication factor, 2 for balance."""
    if change.reason in _AT_RISK:
        return AT_RISK
    return 1 if len(change.before) != len(change.after) else 2


def _loads(
    moving: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str]
) -> tuple[BatchLoads, list[Sequence[Step]]]:
    """Every step that copies, as loads with the steps of each: one a step, or all of a topic that may stay together."""
    brokers = set[int]().union(*(change.before for change in moving), *(change.after for change in moving))
    lanes = {broker: 2 * index for index, broker in enumerate(sorted(brokers))}
    loads, of_loads = BatchLoads(2 * len(brokers)), list[Sequence[Step]]()
    for group in _groups(moving):
        paths = [steps_of(change, rules, racks) for change in group]
        risk, rounds = min(map(_risk, group)), max(map(len, paths))
        last: list[tuple[int, ...]] = [()] * len(paths)
        for number, steps, rows in _together(paths, lanes, rules):
            after = last[rows[0]] if len(rows) == 1 else tuple(sorted({load for row in rows for load in last[row]}))
            entries, elections = _entries(steps, lanes, rules), sum(step.elects for step in steps)
            load = loads.add(entries, _bytes(steps), risk, after, (number, rounds), elections)
            of_loads.append(steps)
            for row in rows:
                last[row] = (load,)
    return loads, of_loads


def _groups(changes: Iterable[PartitionChange]) -> Iterable[list[PartitionChange]]:
    """The changes that stay together: those of a topic that change its replication factor."""
    groups: defaultdict[tuple[str, int], list[PartitionChange]] = defaultdict(list)
    for change in changes:
        whole_topic = len(change.before) != len(change.after)
        groups[change.topic, -1 if whole_topic else change.partition].append(change)
    return groups.values()


def _together(
    paths: Sequence[Sequence[Step]], lanes: Mapping[int, int], rules: BatchRules
) -> Iterator[tuple[int, Sequence[Step], Sequence[int]]]:
    """Each round's number, the steps that stay together, and the rows of their paths: all where a batch has room."""
    if len(paths) == 1:
        yield from ((number, (step,), (0,)) for number, step in enumerate(paths[0]))
        return
    for number, round_ in enumerate(zip_longest(*paths)):
        rows = [row for row, step in enumerate(round_) if step is not None]
        steps = [step for step in round_ if step is not None]
        if len(steps) > 1 and _fits(steps, lanes, rules):
            yield number, steps, range(len(paths))
        else:
            yield from ((number, (step,), (row,)) for row, step in zip(rows, steps, strict=True))


def _fits(steps: Sequence[Step], lanes: Mapping[int, int], rules: BatchRules) -> bool:
    """True where an empty batch has room for all of them."""
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
    """Lanes with the bytes and replicas on them: a broker receives on its lane, and sends on the one behind it.

    Where batches are limited in time, what producers write meanwhile counts as bytes, too: it takes as much of the
    throttle, on the leader's side once for each follower.
    """
    if len(steps) == 1:  # By far the most; Counters cost several times as much.
        step = steps[0]
        adding, size = step.adding, step.size_bytes
        added, written = len(adding), step.bytes_in_per_sec * (rules.seconds or 0)
        sending = lanes[step.source] + 1
        read = written * (len(step.before) - 1 + added)
        return (
            (*(lanes[broker] for broker in adding), sending),
            (size + written,) * added + (size * added + read,),
            (1,) * added + (added,),
        )
    sizes, moves = Counter[int](), Counter[int]()
    for step in steps:
        for lane, size, replicas in zip(*_entries((step,), lanes, rules), strict=True):
            sizes[lane] += size
            moves[lane] += replicas
    return tuple(sizes), tuple(sizes.values()), tuple(moves.values())


def steps_of(change: PartitionChange, rules: BatchRules, racks: Mapping[int, str]) -> list[Step]:
    """The change as steps of as many replicas as one batch lets one partition add, as all come from one broker."""
    fitting = None if rules.bytes is None else max(rules.bytes // max(change.size_bytes, 1), 1)
    limits = (rules.replicas_per_partition, rules.moves_per_broker, fitting)
    at_most = min((limit for limit in limits if limit is not None), default=None)
    return [_step(change, before, after) for before, after in replica_lists(change, at_most, racks)]


def _step(change: PartitionChange, before: tuple[int, ...], after: tuple[int, ...]) -> Step:
    leader = change.leader_before
    source = leader if leader is not None and leader in before else before[0]
    rate, dirs, elects = (
        change.bytes_in_per_sec,
        of_step(change, before, after),
        change.elects and after == change.after,
    )
    return Step(change.topic, change.partition, before, after, change.size_bytes, source, rate, *dirs, elects)
