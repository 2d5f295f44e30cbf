"""What is left of an approved plan on the cluster as it is now, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.approval.cluster_now import Now
from planner.approval.staleness import CheckedPartition, Standing, listed, name_of, standing_of_new
from planner.model.cluster import ANY, Partition
from planner.model.errors import StalePlanError
from planner.model.formats import counted, printable
from planner.model.partition_changes import PartitionChange, Reason

Plan = Mapping[str, Any]
Key = tuple[str, int]
Dropped = tuple[str, int | None, str]

_SHOWN = 20


@dataclass(frozen=True)
class Rest:
    """What is left: `changes`, sorted by topic and partition, and `made`, the lists of the partitions still to be made.

    `targets` are the lists of every partition of the plan that exists, those that are there already among them.
    `dropped` are (topic, partition, why), `there` counts the partitions that need nothing more, and `notes` are
    sentences for the operator.
    """

    changes: tuple[PartitionChange, ...]
    targets: dict[Key, tuple[int, ...]]
    made: dict[Key, tuple[int, ...]]
    dropped: tuple[Dropped, ...]
    there: int
    notes: tuple[str, ...]


def rest_of(plan: Plan, now: Now, *, leave_moved: bool = False) -> Rest:
    """The rest of a plan. StalePlanError, with all of them, for partitions that aren't on the plan's way.

    With `leave_moved` these stay where they are, and are among the dropped.
    """
    held = CheckedPartition(plan, now)
    _require_sizes(plan, now)
    _require_live(held)
    strangers = dict(_strangers(held))
    new_strangers = [name for name, new in held.made.items() if standing_of_new(new, now.topics.get(name)) is None]
    _refuse(_foreign(held))
    if not leave_moved:
        _refuse([f"{name_of(key)} {why}" for key, why in strangers.items()])
        _refuse([f"{name} has other partitions than the plan wants to make" for name in new_strangers])
    gone = {key: "it is gone" for key, standing in held.standings.items() if standing is Standing.GONE}
    left = {key: row for key, row in held.rows.items() if key not in gone and key not in strangers}
    changes = [change for key, row in left.items() if _does(change := _change(held, key, row))]
    made, not_made = _unmade(held, new_strangers)
    dropped = [(*key, why) for key, why in sorted((gone | strangers).items())] + not_made
    moving = sum(held.own(key) for key in now.moving)
    wait = f"{counted(moving, 'partition')} of the plan still being reassigned: planned from where they will be"
    return Rest(
        changes=tuple(sorted(changes, key=lambda change: (change.topic, change.partition))),
        targets={key: tuple(row["replicas"]) for key, row in left.items()},
        made=made,
        dropped=tuple(dropped),
        there=len(left) - len(changes),
        notes=(wait,) if moving else (),
    )


def _refuse(lines: Sequence[str]) -> None:
    if not lines:
        return
    shown = [f"  {printable(line)}" for line in lines[:_SHOWN]]
    more = [f"  and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    head = "the cluster isn't on the plan's way, nothing was written:"
    raise StalePlanError(head, *shown, *more, "plan anew" + _OR)


_OR = ", or leave partitions that others have moved where they are (--leave-moved)"


def _require_sizes(plan: Plan, now: Now) -> None:
    if plan["cluster"]["sizes_known"] and now.sizes is None:
        raise StalePlanError(
            "the plan counts bytes, and the state has no sizes; allowed: --state with what kafka-log-dirs --describe "
            "prints too"
        )
    if any("log_dirs" in row for row in plan["partitions"]) and not now.log_dirs.brokers:
        raise StalePlanError(
            "the plan names log dirs, and the state doesn't say what lies in which; allowed: --state with what "
            "kafka-log-dirs --describe prints too"
        )


def _require_live(held: CheckedPartition) -> None:
    """Where the live brokers are known, all that hold replicas in the target are among them."""
    if held.now.racks is None:
        return
    needed = {broker for row in held.plan["partitions"] for broker in row["replicas"]}
    absent = sorted(needed - held.now.racks.keys())
    if absent:
        who = ", ".join(map(str, absent))
        raise StalePlanError(f"not live: broker {who}; the plan's target needs all of its brokers; plan anew")


def _strangers(held: CheckedPartition) -> Iterator[tuple[Key, str]]:
    """The plan's partitions that are elsewhere; the right brokers in another order are on its way."""
    for key, standing in held.standings.items():
        found = held.partition(key)
        if standing is Standing.ELSEWHERE and found is not None:
            lists = " → ".join(dict.fromkeys(held.states[name_of(key)]))
            moving = "is being reassigned to" if key in held.now.moving else "has replicas"
            yield key, f"{moving} {listed(found.replicas)}; the plan's lists are {lists}"


def _foreign(held: CheckedPartition) -> list[str]:
    """Reassignments of partitions that the plan doesn't have."""
    others = sorted(key for key in held.now.moving if key not in held.rows)
    return [f"{name_of(key)} is being reassigned, which isn't the plan's doing; wait for it" for key in others]


def _does(change: PartitionChange) -> bool:
    return change.reassigned or change.elects


def _change(held: CheckedPartition, key: Key, row: Plan) -> PartitionChange:
    """What is left to do of one partition."""
    found = held.partition(key)
    if found is None:
        raise AssertionError(f"{name_of(key)} was judged to exist")
    known = (held.now.sizes or {}).get(key)
    before, after = _log_dirs(held, key, row, found)
    return PartitionChange(
        topic=key[0],
        partition=key[1],
        before=found.replicas,
        after=tuple(row["replicas"]),
        leader_before=found.leader,
        size_bytes=row["size_bytes"] if known is None else known,
        reason=Reason(row["reason"]),
        bytes_in_per_sec=row.get("bytes_in_per_sec", 0),
        log_dirs_before=before,
        log_dirs=after,
    )


def _log_dirs(held: CheckedPartition, key: Key, row: Plan, found: Partition) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The log dirs that are left to be named, of today's list and of the target; empty where none are planned.

    A replica that lies where the plan wants it isn't named any more.
    """
    if "log_dirs" not in row:
        return (), ()
    lies = {broker: path for broker in found.replicas if (path := held.lying.get((*key, broker)))}
    wanted = dict(zip(row["replicas"], row["log_dirs"], strict=True))
    after = {broker: ANY if lies.get(broker) == path else path for broker, path in wanted.items()}
    goes = {broker for broker in found.replicas if after.get(broker) != ANY}
    return (
        tuple(lies.get(broker, ANY) if broker in goes else ANY for broker in found.replicas),
        tuple(after[broker] for broker in row["replicas"]),
    )


def _unmade(held: CheckedPartition, strangers: Sequence[str]) -> tuple[dict[Key, tuple[int, ...]], list[Dropped]]:
    """The new partitions that are still to be made; and topics of which none will be."""
    made: dict[Key, tuple[int, ...]] = {}
    dropped: list[Dropped] = []
    for topic in (held.plan.get("new_partitions") or {"topics": ()})["topics"]:
        name, found = topic["topic"], held.now.topics.get(topic["topic"])
        if name in strangers:
            why = "its new partitions: it is gone" if found is None else "its new partitions: it has others"
            dropped.append((name, None, why))
        elif standing_of_new(held.made[name], found) is Standing.FOUND:
            made |= {(name, at): tuple(each) for at, each in enumerate(topic["replicas"], topic["partitions_before"])}
    return made, dropped
