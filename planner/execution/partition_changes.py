"""What an assignment changes, partition by partition, each with its reason, and the reassignments that carry it out.

The reassignments are steps that take a partition from today's replicas to the plan's: several steps if a batch may add
fewer replicas than the partition needs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.model.build_problem import today
from planner.model.cluster import ANY, PartitionChange, Reason, ReplicaLists
from planner.model.problem import IntArray, LongArray, Problem, badly_led, sums_at
from planner.model.spec import BatchRules
from planner.model.together import without_common_broker
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after
from planner.scoring.score import added_replicas


def changes(problem: Problem, assignment: IntArray) -> tuple[PartitionChange, ...]:
    """The partitions whose replica list an assignment (P, W) changes, or whose leader needs an election.

    Sorted by topic and partition, without new partitions (see `new_partitions_section`).
    """
    before = today(problem)
    elects = problem.may_lead_anew & (problem.leaders != leaders_after(problem, assignment))
    rows = np.flatnonzero(~problem.is_new & ((before != assignment).any(axis=1) | elects))
    leaves = ((before >= 0) & ~problem.targets[before]).any(axis=1)
    broken = independent_check.broken_rules(problem, before)
    uneven, outside = broken["rack spread"], broken["placement"]
    resized = (before >= 0).sum(axis=1) != problem.replication_factors
    moved = (np.sort(before, axis=1) != np.sort(assignment, axis=1)).any(axis=1)
    # In the order of Reason: the first that applies is the reason.
    otherwise = np.ones(problem.rows, dtype=bool)
    together = without_common_broker(problem) | (broken["together"] & ~moved)
    wrong_leader = broken["leader"] | badly_led(problem, before, problem.leaders)
    applies = [leaves, outside & moved, uneven & moved, resized, together, moved, wrong_leader, otherwise]
    reasons, names = np.argmax(np.stack(applies), axis=0), tuple(Reason)
    ids = problem.broker_ids.tolist()
    lists = zip(rows.tolist(), before[rows].tolist(), assignment[rows].tolist(), strict=True)
    changed = (
        PartitionChange(
            topic=problem.topic_names[problem.topic_of[row]],
            partition=int(problem.partition_ids[row]),
            before=_broker_ids(ids, old),
            after=_broker_ids(ids, new),
            leader_before=ids[problem.leaders[row]] if problem.leaders[row] >= 0 else None,
            size_bytes=int(problem.size_bytes[row]),
            reason=names[reasons[row]],
        )
        for row, old, new in lists
    )
    return with_down(changed, problem)


def with_down(changed: Iterable[PartitionChange], problem: Problem) -> tuple[PartitionChange, ...]:
    """The changes, each with the brokers that the partition leaves and that are down today."""
    down = frozenset[int](() if problem.out_of_sync is None else problem.broker_ids[problem.out_of_sync].tolist())
    return tuple(replace(each, down=down.intersection(each.removing)) if down else each for each in changed)


def bytes_in_and_out(problem: Problem, assignment: IntArray) -> tuple[LongArray, LongArray]:
    """Bytes that each broker (B,) copies in, and bytes that others copy from it as today's leader."""
    rows, slots = np.nonzero(added_replicas(problem, assignment))
    count, copied = len(problem.broker_ids), problem.size_bytes[rows]
    return sums_at(count, assignment[rows, slots], copied), sums_at(count, problem.copied_from[rows], copied)


def _broker_ids(ids: list[int], brokers: list[int]) -> tuple[int, ...]:
    return tuple(ids[broker] for broker in brokers if broker >= 0)


@dataclass(frozen=True)
class Step(ReplicaLists):
    """One reassignment of one partition.

    `size_bytes`: one replica's size. `source`: the broker to copy from, which is today's leader while it holds a
    replica. `bytes_in_per_sec`: what producers write to the partition. `elects`: True for the last step of a partition
    whose preferred leader takes an election.
    """

    size_bytes: int
    source: int
    bytes_in_per_sec: int = 0
    elects: bool = False

    @property
    def bytes_moved(self) -> int:
        """Bytes that this step copies between brokers."""
        return self.size_bytes * len(self.adding)

    @property
    def followers_meanwhile(self) -> int:
        """To how many replicas the source sends what producers write, while this step runs."""
        return len(self.before) - 1 + len(self.adding)


def steps_of(change: PartitionChange, rules: BatchRules, racks: Mapping[int, str]) -> list[Step]:
    """The change as steps that each add as many replicas as a batch allows per partition; all copy from one broker."""
    fitting = None if rules.bytes is None else max(rules.bytes // max(change.size_bytes, 1), 1)
    # What producers write meanwhile counts, too: the source sends it to each follower of today and to each new replica.
    written = change.bytes_in_per_sec * (rules.seconds or 0)
    sending = None
    if rules.bytes_per_broker is not None:
        room = rules.bytes_per_broker - written * (len(change.before) - 1)
        sending = max(room // max(change.size_bytes + written, 1), 1)
    limits = (rules.replicas_per_partition, rules.moves_per_broker, fitting, sending)
    at_most = min((limit for limit in limits if limit is not None), default=None)
    return [step_between(change, before, after) for before, after in replica_lists(change, at_most, racks)]


def step_between(change: PartitionChange, before: tuple[int, ...], after: tuple[int, ...]) -> Step:
    """The step of a change from one of its replica lists to another."""
    leader = change.leader_before
    dirs_before, dirs_after = _log_dirs(change, before, after)
    return Step(
        topic=change.topic,
        partition=change.partition,
        before=before,
        after=after,
        size_bytes=change.size_bytes,
        source=leader if leader is not None and leader in before else before[0],
        bytes_in_per_sec=change.bytes_in_per_sec,
        log_dirs_before=dirs_before,
        log_dirs=dirs_after,
        elects=change.elects and after == change.after,
    )


def _log_dirs(
    change: PartitionChange, before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The log dirs of a step, parallel to its lists before and after; empty if none are planned.

    A new replica gets its log dir at once; a removed replica keeps its old one, for the rollback. A replica that stays
    on its broker moves between log dirs in the last step.
    """
    if not change.log_dirs:
        return (), ()
    old = dict(zip(change.before, change.log_dirs_before, strict=True))
    new = dict(zip(change.after, change.log_dirs, strict=True))
    moves = {broker for broker in change.before if broker in new} if after == change.after else set()
    come, go = set(after) - set(before), set(before) - set(after)
    return (
        tuple(old.get(broker, ANY) if broker in go or broker in moves else ANY for broker in before),
        tuple(new.get(broker, ANY) if broker in come or broker in moves else ANY for broker in after),
    )


def replica_lists(
    change: PartitionChange, at_most: int | None, racks: Mapping[int, str]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of lists from `change.before` to exactly `change.after` that add `at_most` replicas each.

    No list has fewer replicas than the shorter end or more than the longer one. `racks` (broker id → rack) keeps the
    lists in between as spread as possible. Kafka's tool refuses a list with a broker that isn't live, so `down` brokers
    leave in the first step, which may add more than `at_most` replicas to replace them.
    """
    size, fewest = at_most or len(change.adding) or 1, min(len(change.before), len(change.after))
    current, reached = change.before, tuple(broker for broker in change.before if broker not in change.down)
    while len({*change.after} - {*reached}) > (count := max(size, fewest - len(reached))):
        for _ in range(count):
            reached = _one_replica_on(reached, change, racks)
        yield current, reached
        current = reached
    yield current, change.after


def _one_replica_on(current: tuple[int, ...], change: PartitionChange, racks: Mapping[int, str]) -> tuple[int, ...]:
    """`current` with one more broker of `change.after`, which replaces a leaving broker if there is no room.

    The first broker stays: a leaving leader is preferred until the last step, so that clients move only once.
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
