"""The log dir of each replica after a plan: every broker's replicas packed into its log dirs.

A replica that stays counts with its size on its broker; one that the broker adds counts with the leader's size, because
it is copied from the leader. Replicas are not moved if they are in no log dir that answered, are moving between log
dirs, or are kept in place by the topic filter.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple, Self

import numpy as np

from planner.execution.log_dir_packing import MOST_WORK, Dirs, Packed, pack
from planner.model.balance import Tolerance
from planner.model.build_problem import today
from planner.model.cluster import ANY, LogDir, PartitionChange, PartitionKey, Reason, ReplicaDir, brokers_holding
from planner.model.document_fields import LogDirLoad, LogDirMoveRow, LogDirRow
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import Spec

# CP-SAT's work for all brokers together, in its units: a plan of many brokers must not wait for minutes.
_WORK_OF_ALL = 40.0
# Kafka moves a replica through a folder `topic-partition.<32 digits>-future`, and refuses names above 255 characters.
_LONGEST_MOVABLE = 214


@dataclass(frozen=True)
class BrokerDirs:
    """One broker's log dirs, by path, and how its replicas were packed.

    `room`: the free bytes of each log dir today, by path, if its broker or the YAML says so. `largest_bytes`: the size
    of its largest replica; `unplaced`: replicas in no known log dir; `moving`: replicas that are moving between two
    log dirs.
    """

    broker: int
    dirs: tuple[LogDirRow, ...]
    room: Mapping[str, int]
    packed: Packed
    largest_bytes: int
    unplaced: int
    moving: int


@dataclass(frozen=True)
class DirPlan:
    """The log dirs of all brokers that hold replicas afterwards.

    `left_out`: brokers whose log dirs aren't planned, with the reason. `new_dirs`: (topic, partition, broker) → the log
    dir that a replica comes to. `old_dirs`: (topic, partition, broker) → the replica's log dir today.
    """

    wanted: Tolerance
    brokers: tuple[BrokerDirs, ...]
    left_out: tuple[tuple[int, str], ...]
    moves: tuple[LogDirMoveRow, ...]
    new_dirs: Mapping[tuple[str, int, int], str]
    old_dirs: Mapping[tuple[str, int, int], str]


def plan(spec: Spec, problem: Problem, assignment: IntArray) -> DirPlan | None:
    """The log dirs for an assignment (P, W), packed broker by broker; None unless the spec asks for them."""
    if spec.log_dirs.kind == "none":
        return None
    dirs_now = {(each.topic, each.partition, each.broker): each for each in spec.cluster.log_dirs.replicas}
    replicas, dirs_of = _replicas_held(problem, assignment, dirs_now), _dirs_of(spec)
    work = min(MOST_WORK, _WORK_OF_ALL / max(len(replicas), 1))
    usable = {broker for broker, dirs in dirs_of.items() if any(log_dir.error is None for log_dir in dirs)}
    before = _loads(((each.broker, each.path), each.size_bytes) for each in dirs_now.values())
    packed = [
        _PackedBroker.of(spec, broker, dirs_of[broker], replicas[broker], work)
        for broker in sorted(replicas.keys() & usable)
    ]
    left_out = []
    for broker in sorted(replicas.keys() - usable):
        errors = sorted({log_dir.error or "" for log_dir in dirs_of.get(broker, ())})
        reason = f"each log dir there has an error ({', '.join(errors)})"
        left_out.append((broker, reason if errors else "the log dirs there aren't known"))
    moves = (
        LogDirMoveRow(replica.topic, replica.partition, each.broker, replica.home, path, replica.size_bytes)
        for each in packed
        for replica, path in each.placed()
        if replica.home is not None and replica.home != path
    )
    return DirPlan(
        spec.log_dirs,
        tuple(_described(each, before) for each in packed),
        tuple(left_out),
        tuple(sorted(moves, key=lambda move: (move.topic, move.partition, move.broker))),
        {each.key(replica): path for each in packed for replica, path in each.placed() if replica.home != path},
        {key: each.path for key, each in dirs_now.items()},
    )


def with_log_dirs(
    changed: Sequence[PartitionChange], planned: DirPlan | None, problem: Problem
) -> tuple[PartitionChange, ...]:
    """The changes with their log dirs, and changes of log dirs only; sorted by topic and partition."""
    if planned is None:
        return tuple(changed)
    dirs_only = {(move.topic, move.partition) for move in planned.moves} - {change.key for change in changed}
    all_changes = (*changed, *(_only_dirs(dirs_only, problem) if dirs_only else ()))
    return tuple(_with_dirs(change, planned) for change in sorted(all_changes, key=lambda change: change.key))


class _Replica(NamedTuple):
    """A replica that a broker holds afterwards; `home` is today's log dir, None if it has none or it is unknown.

    `comes`: the broker adds it. `free`: it may be in any log dir.
    """

    topic: str
    partition: int
    size_bytes: int
    home: str | None
    comes: bool
    free: bool
    moving: bool


class _PackedBroker(NamedTuple):
    """A broker's replicas in its log dirs: the free ones, packed into the usable dirs, and the others."""

    broker: int
    dirs: tuple[LogDir, ...]
    usable: list[str]
    free: list[_Replica]
    others: list[_Replica]
    problem: Dirs
    packed: Packed

    def key(self, replica: _Replica) -> tuple[str, int, int]:
        """A replica's key in a `DirPlan`."""
        return replica.topic, replica.partition, self.broker

    def placed(self) -> list[tuple[_Replica, str]]:
        """The free replicas with their log dirs."""
        return [(each, self.usable[index]) for each, index in zip(self.free, self.packed.places.tolist(), strict=True)]

    @classmethod
    def of(cls, spec: Spec, broker: int, dirs: tuple[LogDir, ...], replicas: Sequence[_Replica], work: float) -> Self:
        """Packs a broker's replicas into its log dirs. Those in cordoned log dirs stay there."""
        cordoned = next(each.cordoned_log_dirs for each in spec.all_brokers if each.id == broker)
        working = [log_dir for log_dir in dirs if log_dir.error is None]
        usable = [log_dir for log_dir in working if not {log_dir.path, "*"}.intersection(cordoned)]
        if not usable and any(each.comes for each in replicas):
            # A plan that copies to a cordoned broker is refused, and its refusal names the log dir.
            usable, replicas = working, [each if each.comes else each._replace(free=False) for each in replicas]
        paths = {log_dir.path: index for index, log_dir in enumerate(usable)}
        free = [each for each in replicas if each.free and (each.comes or each.home in paths)]
        others = [each for each in replicas if not (each.free and (each.comes or each.home in paths))]
        fixed_loads = _loads((each.home, each.size_bytes) for each in others)
        fixed_bytes = np.array([fixed_loads[path].size_bytes for path in paths], dtype=np.int64)
        total = sum(each.size_bytes for each in free) + int(fixed_bytes.sum())
        dirs_problem = Dirs(
            np.array([each.size_bytes for each in free], dtype=np.int64),
            np.array([paths[each.home] if each.home is not None else -1 for each in free], dtype=np.int64),
            fixed_bytes,
            _window(spec, total, usable),
        )
        return cls(broker, dirs, list(paths), free, others, dirs_problem, pack(dirs_problem, work))


def _dirs_of(spec: Spec) -> dict[int, tuple[LogDir, ...]]:
    """The log dirs of each broker by path: those it reports, with the YAML's sizes, else those that the YAML lists.

    A current broker that holds replicas and didn't answer has none, because its replicas' log dirs are unknown.
    """
    reported, holding = dict(spec.cluster.log_dirs.brokers), brokers_holding(spec.cluster.topics)
    by_broker: dict[int, tuple[LogDir, ...]] = {}
    for broker in spec.all_brokers:
        sizes = {log_dir.path: log_dir.disk_bytes for log_dir in broker.log_dirs}
        dirs = reported.get(broker.id, () if broker.id in holding else broker.log_dirs)
        sized = (replace(each, disk_bytes=sizes.get(each.path) or each.disk_bytes) for each in dirs)
        by_broker[broker.id] = tuple(sorted(sized, key=lambda each: each.path))
    return by_broker


def _replicas_held(
    problem: Problem, assignment: IntArray, dirs_now: Mapping[tuple[str, int, int], ReplicaDir]
) -> dict[int, list[_Replica]]:
    """Every replica that a broker holds afterwards, by broker and in the order of partitions, without new partitions.

    New partitions are created with kafka-topics, which can't be told a log dir.
    """
    rows, slots = np.nonzero((assignment >= 0) & ~problem.is_new[:, None])
    brokers = assignment[rows, slots]
    stays = (problem.replicas[rows] == brokers[:, None]).any(axis=1)
    ids = problem.broker_ids.tolist()
    replicas_of: defaultdict[int, list[_Replica]] = defaultdict(list)
    for row, broker, is_kept in zip(rows.tolist(), brokers.tolist(), stays.tolist(), strict=True):
        topic, partition = problem.topic_names[problem.topic_of[row]], int(problem.partition_ids[row])
        entry = dirs_now.get((topic, partition, ids[broker])) if is_kept else None
        size_bytes = int(problem.size_bytes[row])
        if entry is None and problem.leaders[row] >= 0:
            # A new replica is copied from the leader's; if its size is unknown, the largest replica's size counts.
            leader_entry = dirs_now.get((topic, partition, ids[problem.leaders[row]]))
            size_bytes = leader_entry.size_bytes if leader_entry else size_bytes
        movable = len(topic) + len(str(partition)) <= _LONGEST_MOVABLE
        replicas_of[ids[broker]].append(
            _Replica(
                topic,
                partition,
                entry.size_bytes if entry else size_bytes,
                entry.path if entry else None,
                not is_kept,
                movable and (not is_kept or (entry is not None and not entry.moving and bool(problem.movable[row]))),
                entry is not None and entry.moving,
            )
        )
    return replicas_of


def _window(spec: Spec, total: int, dirs: Sequence[LogDir]) -> LongArray:
    """(2, K): least and most bytes of each log dir: a percentage around its share, in whole bytes.

    Shares follow the log dirs' sizes if all are known; then none may hold more than `limits.disk_used` allows.
    """
    disks = [log_dir.disk_bytes for log_dir in dirs if log_dir.disk_bytes]
    weights = disks if len(disks) == len(dirs) else [1] * len(dirs)
    width, total_weight = Fraction(str(spec.log_dirs.value)) / 100, sum(weights)
    shares = [Fraction(total * weight, total_weight) for weight in weights]
    most = [max(floor(share * (1 + width)), ceil(share)) for share in shares]
    if weights is disks:
        most = [min(at_most, spec.limits.on_disk(disk)) for at_most, disk in zip(most, disks, strict=True)]
    low = max(1 - width, Fraction(0))
    least = [min(ceil(share * low), floor(share), top) for share, top in zip(shares, most, strict=True)]
    return np.array([least, most], dtype=np.int64)


def _loads(sizes: Iterable[tuple[object, int]]) -> defaultdict[object, LogDirLoad]:
    """The replicas and bytes of each key, from (key, bytes) of single replicas."""
    loads: defaultdict[object, LogDirLoad] = defaultdict(lambda: LogDirLoad(0, 0))
    for key, size_bytes in sizes:
        loads[key] = LogDirLoad(loads[key].replicas + 1, loads[key].size_bytes + size_bytes)
    return loads


def _described(packed: _PackedBroker, before: Mapping[object, LogDirLoad]) -> BrokerDirs:
    placed = packed.placed()
    after = _loads(
        [(path, each.size_bytes) for each, path in placed] + [(each.home, each.size_bytes) for each in packed.others]
    )
    arriving, leaving = Counter[str](), Counter[str]()
    for each, path in placed:
        arriving[path] += each.size_bytes if each.home != path else 0
        if each.home is not None and each.home != path:
            leaving[each.home] += each.size_bytes
    windows = dict(zip(packed.usable, zip(*packed.problem.window.tolist(), strict=True), strict=True))
    empty, rows, room = LogDirLoad(0, 0), list[LogDirRow](), dict[str, int]()
    for log_dir in packed.dirs:
        load_before = before.get((packed.broker, log_dir.path), empty)
        least, most = windows.get(log_dir.path, (None, None))
        rows.append(
            LogDirRow(
                path=log_dir.path,
                error=log_dir.error,
                disk_bytes=log_dir.disk_bytes,
                least_bytes=least,
                most_bytes=most,
                before=load_before,
                after=after.get(log_dir.path, empty),
                bytes_in=arriving[log_dir.path],
                bytes_out=leaving[log_dir.path],
            )
        )
        if log_dir.free_bytes is not None:
            room[log_dir.path] = log_dir.free_bytes
        elif log_dir.disk_bytes is not None:
            room[log_dir.path] = max(log_dir.disk_bytes - load_before.size_bytes, 0)
    return BrokerDirs(
        packed.broker,
        tuple(rows),
        room,
        packed.packed,
        max((each.size_bytes for each in (*packed.free, *packed.others)), default=0),
        sum(each.home is None for each in packed.others),
        sum(each.moving for each in packed.others),
    )


def _with_dirs(change: PartitionChange, planned: DirPlan) -> PartitionChange:
    """The change with its log dirs: for replicas that come or go, and for those that move within their broker."""

    def key(broker: int) -> tuple[str, int, int]:
        return change.topic, change.partition, broker

    leaving = set(change.removing)
    before = (
        planned.old_dirs.get(key(broker), ANY) if broker in leaving or key(broker) in planned.new_dirs else ANY
        for broker in change.before
    )
    after = (planned.new_dirs.get(key(broker), ANY) for broker in change.after)
    return replace(change, log_dirs_before=tuple(before), log_dirs=tuple(after))


def _only_dirs(names: set[PartitionKey], problem: Problem) -> Iterable[PartitionChange]:
    """Changes of partitions of which only the log dirs change."""
    ids = problem.broker_ids.tolist()
    for row, (key, replicas) in enumerate(zip(problem.partition_keys, today(problem).tolist(), strict=True)):
        if key in names:
            brokers = tuple(ids[broker] for broker in replicas if broker >= 0)
            leader = ids[problem.leaders[row]] if problem.leaders[row] >= 0 else None
            size_bytes = int(problem.size_bytes[row])
            yield PartitionChange(*key, brokers, brokers, leader, size_bytes, Reason.BALANCE_LOG_DIRS)
