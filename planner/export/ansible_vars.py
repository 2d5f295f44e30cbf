"""What the Ansible role needs to know of a plan, as plain values: counts, brokers, and the lists of its own files.

Rendering them is `kafka_files`'s business. A partition is named as Kafka's tools print it, `topic-partition`; replica
lists are written as they print them, `1,2,3`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner.model.cluster import ANY
from planner.model.partition_changes import Reason
from planner.plan import headline

Plan = Mapping[str, Any]
Named = dict[str, dict[str, int]]


def batch_names(plan: Plan) -> list[str]:
    """`01`, `02` …: as wide as the last one needs, so that sorting by name is the order of execution."""
    numbers = [batch["number"] for batch in plan["batches"]]
    width = max(2, len(str(max(numbers, default=0))))
    return [f"{number:0{width}}" for number in numbers]


def moves(partitions: Iterable[Plan]) -> list[Plan]:
    """The partitions that Kafka has to be told about: their list changes, be it only in its order, or log dirs do."""
    return [p for p in partitions if list(p["replicas"]) != list(p["replicas_before"]) or _names_dirs(p)]


def _names_dirs(partition: Plan) -> bool:
    return any(path != ANY for path in partition.get("log_dirs", ()))


def elections(plan: Plan) -> dict[str, list[Plan]]:
    """The partitions to elect a preferred leader for, by direction.

    Going back, that gives a leader back only where the preferred one led; for the others see `unpreferred`.
    """
    elected = [p for p in _led(plan) if p["leader_before"] != p["replicas"][0]]
    return {"apply": elected, "rollback": [p for p in elected if p["leader_before"] == p["replicas_before"][0]]}


def batch_elections(plan: Plan) -> list[dict[str, list[Plan]]]:
    """The same for each batch."""
    back = {_name(p) for p in elections(plan)["rollback"]}
    return [
        {"apply": batch["elect"], "rollback": [p for p in batch["elect"] if _name(p) in back]}
        for batch in plan["batches"]
    ]


def unpreferred(plan: Plan) -> list[Plan]:
    """The partitions that another than their preferred leader led when the plan was made."""
    return [p for p in _led(plan) if p["leader_before"] not in (None, p["replicas_before"][0])]


def _led(plan: Plan) -> Iterator[Plan]:
    """The partitions whose leader the plan has a say in: not those of which only log dirs change."""
    return (p for p in plan["partitions"] if p.get("reason") != Reason.BALANCE_LOG_DIRS)


def led_first(partition: Plan) -> list[int]:
    """The replica list from before with the leader from before in front: electing it takes that order for a moment."""
    leader = partition["leader_before"]
    return [leader, *(broker for broker in partition["replicas_before"] if broker != leader)]


def leaders(plan: Plan) -> dict[str, Any]:
    """Who leads at the end of each direction what its batches elect, by batch; and who has to be put first for that.

    A partition with its leader reads as the tools' words for both, `topic partition leader`.
    """
    rows = {_name(p): p for p in plan["partitions"]}
    named = list(zip(batch_names(plan), batch_elections(plan), strict=True))

    def led(elected: Sequence[Plan], leader: Callable[[Plan], int]) -> list[str]:
        return [f"{p['topic']} {p['partition']} {leader(rows[_name(p)])}" for p in elected]

    return {
        "apply": {name: led(elect["apply"], lambda p: p["replicas"][0]) for name, elect in named if elect["apply"]},
        "rollback": {
            name: led(elect["rollback"], lambda p: p["leader_before"]) for name, elect in named if elect["rollback"]
        },
        "unpreferred": led(unpreferred(plan), lambda p: p["leader_before"]),
    }


def states(plan: Plan) -> dict[str, list[str]]:
    """Every replica list that a partition passes through, from the one it was found with to the planned one."""
    passed = {_name(p): [_text(p["replicas_before"])] for p in plan["partitions"]}
    for batch in plan["batches"]:
        for step in moves(batch["partitions"]):
            passed[_name(step)].append(_text(step["replicas"]))
    return {name: lists for name, lists in passed.items() if len(lists) > 1}


def leaderless(plan: Plan) -> dict[str, list[str]]:
    """The partitions without a leader of each batch that holds such, by the batch's name."""
    return {
        name: sorted({_name(p) for p in (*moves(batch["partitions"]), *batch["elect"])})
        for name, batch in zip(batch_names(plan), plan["batches"], strict=True)
        if batch.get("leaderless")
    }


def new_partitions(plan: Plan) -> dict[str, dict[str, Any]]:
    """What the role makes, by topic: the replicas of the new partitions by number, and what kafka-topics is given."""
    topics = (plan.get("new_partitions") or {"topics": ()})["topics"]
    return {
        topic["topic"]: {
            "partitions_before": topic["partitions_before"],
            "partitions": topic["partitions"],
            "replicas": {
                str(number): _text(replicas)
                for number, replicas in enumerate(topic["replicas"], topic["partitions_before"])
            },
            "replica_assignment": topic["replica_assignment"],
            "config_options": [
                word for key, value in sorted(topic["config"].items()) for word in ("--config", f"{key}={value}")
            ],
        }
        for topic in topics
    }


def values(plan: Plan) -> dict[str, Any]:
    """What the role's templates name. No topic is among it: the role knows files, counts and digests only."""
    return {
        "plan_id": plan["plan_id"],
        "valid_until": plan.get("validity", {}).get("valid_until") or "",
        "kafka_bin_dir": plan["execution"]["kafka_bin_dir"],
        "throttle_bytes_per_sec": plan["execution"]["throttle_bytes_per_sec"] or 0,
        "bootstrap_servers": plan["cluster"]["bootstrap_servers"],
        "partitions": len(moves(plan["partitions"])),
        "elections": _counts(elections(plan)),
        "unpreferred": len(unpreferred(plan)),
        "new_topics": len(new_partitions(plan)),
        "first_step": headline.first_step(plan),
        "brokers_of_direction": _brokers(plan["brokers"], staying=True),
        "leaving_in_direction": _brokers(plan["brokers"], staying=False),
        "racks_of_broker": _racks(plan),
        "log_dirs": _log_dirs(plan),
        "derived": plan["execution"].get("derived", []),
        "batches": _batches(plan),
    }


def _brokers(brokers: Sequence[Plan], *, staying: bool) -> dict[str, list[int]]:
    """Who holds replicas after each direction, or who doesn't: a broker that leaves may be dead by then."""
    leaving = {"apply": "removed", "rollback": "added"}
    return {
        way: [broker["id"] for broker in brokers if (broker["role"] != role) == staying]
        for way, role in leaving.items()
    }


def _racks(plan: Plan) -> dict[int, str]:
    """The rack of each broker that has one; not where `set_racks` changes it, as nobody knows when that restart is."""
    moved = {int(broker) for broker in plan["changes"].get("set_racks", {})}
    brokers = [broker for broker in plan["brokers"] if broker["rack"] is not None and broker["id"] not in moved]
    return {broker["id"]: broker["rack"] for broker in brokers}


def _log_dirs(plan: Plan) -> dict[str, dict[int, list[str]]]:
    """The log dirs that each direction names, by broker; empty where none are planned."""
    found: dict[str, dict[int, set[str]]] = {"apply": {}, "rollback": {}}
    for way, lists in (("apply", ("replicas", "log_dirs")), ("rollback", ("replicas_before", "log_dirs_before"))):
        for partition in plan["partitions"]:
            for broker, path in zip(partition[lists[0]], partition.get(lists[1], ()), strict=False):
                if path != ANY:
                    found[way].setdefault(broker, set()).add(path)
    return {
        way: {broker: sorted(paths) for broker, paths in sorted(dirs.items())} for way, dirs in found.items() if dirs
    }


def _batches(plan: Plan) -> list[dict[str, Any]]:
    own = [moves(batch["partitions"]) for batch in plan["batches"]]
    steps = Counter(_name(move) for batch in own for move in batch)
    return [
        {
            "number": name,
            "partitions": len(moved),
            "elections": _counts(elect),
            "seconds": batch["seconds_at_throttle"] or 0,
            "keeps_replication_factor": all(len(m["replicas"]) == len(m["replicas_before"]) for m in moved),
            "stepwise": any(steps[_name(move)] > 1 for move in moved),
            "leaderless": batch.get("leaderless", False),
        }
        for name, batch, moved, elect in zip(
            batch_names(plan), plan["batches"], own, batch_elections(plan), strict=True
        )
    ]


def _counts(lists: Mapping[str, Sequence[Plan]]) -> dict[str, int]:
    return {direction: len(partitions) for direction, partitions in lists.items()}


def _name(partition: Plan) -> str:
    return f"{partition['topic']}-{partition['partition']}"


def _text(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
