"""The values of a plan that the Ansible role's templates need: counts, brokers, and the content of the role's files.

`templated_files` renders them. Partitions and replica lists are written as Kafka's tools print them: `topic-0`, `1,2`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from planner.execution.limits_and_safety import most_while_running
from planner.model.cluster import ANY, PartitionKey
from planner.model.document_fields import TopicPartition
from planner.plan import headline
from planner.plan.document.partition_types import PartitionRow, StepRow
from planner.plan.document.plan_types import Plan


class Directions(NamedTuple):
    """The partitions of apply.yml (`apply`), and those of rollback.yml (`rollback`)."""

    apply: list[TopicPartition]
    rollback: list[TopicPartition]

    def counts(self) -> dict[str, int]:
        """The number of partitions of each direction."""
        return {"apply": len(self.apply), "rollback": len(self.rollback)}


def batch_names(plan: Plan) -> list[str]:
    """`01`, `02` …: as wide as the last number, so that the order of names is the order of execution."""
    width = max(2, len(str(len(plan.batches))))
    return [f"{batch.number:0{width}}" for batch in plan.batches]


def moves(steps: Iterable[StepRow]) -> list[StepRow]:
    """The steps that Kafka has to reassign."""
    return [step for step in steps if step.reassigned]


def elections(plan: Plan) -> Directions:
    """The partitions whose preferred leader is elected.

    The rollback restores a leader this way only if the preferred leader led; `unpreferred` has the other partitions.
    """
    elected = [row for row in plan.partitions if row.elects]
    return Directions([*elected], [row for row in elected if row.leader_before == row.replicas_before[0]])


def batch_elections(plan: Plan) -> list[Directions]:
    """The elections of each batch."""
    back = {row.key for row in elections(plan).rollback}
    return [Directions([*batch.elect], [row for row in batch.elect if row.key in back]) for batch in plan.batches]


def unpreferred(plan: Plan) -> list[PartitionRow]:
    """Partitions with a leader today that isn't the preferred one, except those whose log dirs alone change."""
    return [
        row
        for row in plan.partitions
        if row.leader_before not in (None, row.replicas_before[0]) and row.reason != "balance_log_dirs"
    ]


def leaders(plan: Plan) -> dict[str, dict[str, list[str]] | list[str]]:
    """`topic partition leader` after each direction's elections, by batch; and for `unpreferred` partitions."""
    before = {row.key: row.leader_before for row in plan.partitions}
    preferred = {row.key: row.replicas[0] for row in plan.partitions}
    by_name = list(zip(batch_names(plan), batch_elections(plan), strict=True))

    def leader_lines(elected: Sequence[TopicPartition], leader: Mapping[PartitionKey, int | None]) -> list[str]:
        return [f"{each.topic} {each.partition} {leader[each.key]}" for each in elected]

    return {
        "apply": {name: leader_lines(elect.apply, preferred) for name, elect in by_name if elect.apply},
        "rollback": {name: leader_lines(elect.rollback, before) for name, elect in by_name if elect.rollback},
        "unpreferred": leader_lines(unpreferred(plan), before),
    }


def states(plan: Plan) -> dict[PartitionKey, list[tuple[int, ...]]]:
    """By topic and partition, every replica list that the partition passes through, from today's to the planned one."""
    passed = {row.key: [row.replicas_before] for row in plan.partitions}
    for batch in plan.batches:
        for step in moves(batch.partitions):
            passed[step.key].append(step.replicas)
    return {key: lists for key, lists in passed.items() if len(lists) > 1}


def leaderless(plan: Plan) -> dict[str, list[str]]:
    """By batch name, the partitions of each batch for partitions without a leader."""
    return {
        name: sorted({row.name for row in (*moves(batch.partitions), *batch.elect)})
        for name, batch in zip(batch_names(plan), plan.batches, strict=True)
        if batch.leaderless
    }


def values(plan: Plan) -> dict[str, object]:
    """The variables of the role's templates. They name no topic: the role knows only files, counts and digests."""
    return {
        "plan_id": plan.plan_id,
        "valid_until": plan.valid_until or "",
        "kafka_bin_dir": plan.execution.kafka_bin_dir,
        "throttle_bytes_per_sec": plan.execution.throttle_bytes_per_sec or 0,
        "bootstrap_servers": plan.cluster.bootstrap_servers,
        "partitions": len(moves(plan.partitions)),
        "elections": elections(plan).counts(),
        "unpreferred": len(unpreferred(plan)),
        "new_topics": len(plan.new_topics),
        "first_step": headline.first_step(plan),
        "brokers_of_direction": staying(plan),
        "leaving_in_direction": leaving(plan),
        "emptied": [row.id for row in plan.brokers if row.role == "removed" and not row.after.replicas],
        "racks_of_broker": racks(plan),
        "disk_limits": disk_limits(plan),
        "log_dirs": log_dirs(plan),
        "derived": plan.execution.derived,
        "batches": _batches(plan),
    }


_LEAVES = {"apply": "removed", "rollback": "added"}


def staying(plan: Plan) -> dict[str, list[int]]:
    """The brokers that may hold replicas after each direction."""
    return {way: [broker.id for broker in plan.brokers if broker.role != role] for way, role in _LEAVES.items()}


def leaving(plan: Plan) -> dict[str, list[int]]:
    """The brokers that each direction takes out of the cluster; they may be down by then."""
    return {way: [broker.id for broker in plan.brokers if broker.role == role] for way, role in _LEAVES.items()}


def racks(plan: Plan) -> dict[int, str]:
    """The rack of each broker that has one, without brokers of `set_racks`, which may restart at any time."""
    moved = set(map(int, plan.changes.set_racks))
    return {broker.id: broker.rack for broker in plan.brokers if broker.rack is not None and broker.id not in moved}


def disk_limits(plan: Plan) -> dict[int, int]:
    """The bytes that each broker with a stated disk may hold while the playbook runs."""
    limits = plan.spec.limits
    most_bytes = {
        broker.id: most_while_running(limits, broker.disk_bytes, broker.before.size_bytes) for broker in plan.brokers
    }
    return {broker: most for broker, most in most_bytes.items() if most is not None}


def log_dirs(plan: Plan) -> dict[str, dict[int, list[str]]]:
    """The log dirs that each direction uses, by broker; empty if none are planned."""
    ways = {
        "apply": [zip(row.replicas, row.log_dirs or (), strict=False) for row in plan.partitions],
        "rollback": [zip(row.replicas_before, row.log_dirs_before or (), strict=False) for row in plan.partitions],
    }
    dirs: dict[str, dict[int, list[str]]] = {}
    for way, rows in ways.items():
        for broker, path in sorted({each for row in rows for each in row if each[1] != ANY}):
            dirs.setdefault(way, {}).setdefault(broker, []).append(path)
    return dirs


def _batches(plan: Plan) -> list[dict[str, object]]:
    batch_moves = [moves(batch.partitions) for batch in plan.batches]
    steps = Counter(move.key for batch in batch_moves for move in batch)
    sizes = {row.key: row.size_bytes * plan.cluster.sizes_known for row in plan.partitions}
    return [
        {
            "number": name,
            "partitions": len(moved),
            "elections": elect.counts(),
            "bytes": {
                "apply": batch.bytes_moved if plan.cluster.sizes_known else 0,
                "rollback": sum(sizes[move.key] * len(move.dropped) for move in moved),
            },
            "seconds": batch.seconds_at_throttle or 0,
            "keeps_replication_factor": all(len(move.replicas) == len(move.replicas_before) for move in moved),
            "stepwise": any(steps[move.key] > 1 for move in moved),
            "leaderless": batch.leaderless,
        }
        for name, batch, moved, elect in zip(
            batch_names(plan), plan.batches, batch_moves, batch_elections(plan), strict=True
        )
    ]
