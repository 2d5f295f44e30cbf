"""Plans for the tests of reports: a small one that a person can check by hand, and one far too large for a comment."""

from __future__ import annotations

from typing import Any

from plan_documents import Document, change, document

GB = 10**9


def small(**top: Any) -> Document:
    """Broker 4 joins and gets two replicas of 12 GB each. Another partition only gets its preferred leader back."""
    changes = [
        change("orders", 0, [1, 2], [4, 2], size=12 * GB),
        change("orders", 1, [2, 3], [2, 4], size=12 * GB),
        {**change("__consumer_offsets", 7, [3, 1], [3, 1], leader=1, size=5_000_000), "reason": "balance_leaders"},
    ]
    plan = document(changes, [[changes[0]], changes[1:]])
    for batch, elect in zip(plan["batches"], ([("orders", 0)], [("__consumer_offsets", 7)]), strict=True):
        batch["elect"] = [{"topic": topic, "partition": partition} for topic, partition in elect]
        batch |= {"bytes_moved": 12 * GB, "seconds_at_throttle": 240}
        batch["fullest_broker"] = {"id": 3, "peak_size_bytes": 40 * GB, "disk_bytes": None}
    plan["execution"]["seconds_at_throttle"] = 480
    return plan | _small_sections() | top


def _small_sections() -> Document:
    points = [_alternative("unchanged", 0, 60.0), _alternative("this plan", 24 * GB, 3.25)]
    return {
        "brokers": [
            broker(1, "stays", (40, 20), (39, 19), bytes_out=12 * GB),
            broker(2, "stays", (40, 20), (40, 20), bytes_out=12 * GB),
            broker(3, "stays", (40, 20), (39, 20)),
            broker(4, "added", (0, 0), (2, 1), bytes_in=24 * GB),
        ],
        "terms": [
            term("fairness", "replica_spread", "replicas", 40, 38, 1),
            term("fairness", "leaders_above_share", "%", 33.33, 3.25, None),
            term("safety", "without_leader", "partitions", 0, 0, 0),
            term("movement", "bytes_moved", "bytes", 0, 24 * GB, 30 * GB),
        ],
        "bound": {
            "least_bytes_moved": 24 * GB,
            "bytes_moved": 24 * GB,
            "gap_percent": 0.0,
            "proof": "no plan that keeps these windows moves less",
        },
        "compared": [
            _alternative("do nothing", 0, 33.33),
            _alternative("this plan", 24 * GB, 3.25),
            {
                **_alternative("Kafka --generate, best of 900", 70 * GB, 2.5),
                "strategy": "kafka_classic",
                "left_to_change": 1,
            },
        ],
        "pareto": [
            {**points[0], **_point("1"), "strategy": "unchanged", "least_bytes_moved": None, "gap_percent": None},
            {**points[1], **_point("1"), "chosen": True, "candidate": 1},
            {**_alternative("optimum", 30 * GB, 1.0), **_point("5%"), "gap_percent": 20.0, "candidate": 5},
        ],
        "limits": [{"key": "limits.bytes_moved", "limit": 30 * GB, "value": 24 * GB}],
        "warnings": ["2 partitions under-replicated today: a reassignment waits for a full ISR"],
    }


def huge(topics: int = 4_000, partitions: int = 50) -> Document:
    """200,000 partition changes, 400 brokers, and thousands of everything else. All names are as long as allowed."""
    names = [f"t{number:05}".ljust(249, "_") for number in range(topics)]
    changes = [
        change(name, p, [p % 400, 400 + p], [p % 400, 401 + p], size=GB) for name in names for p in range(partitions)
    ]
    plan = document([])
    topic, batch = small()["topics"][0], small()["batches"][0]
    plan["brokers"] = [
        {**broker(number, "stays", (number, 9), (number + 1, 8)), "rack": "@r|`<\n" * 99} for number in range(400)
    ]
    point = {**_alternative("optimum", GB, 2.0), **_point("5%")}
    return plan | {
        "partitions": changes,
        "topics": [{**topic, "name": name, "partitions": partitions} for name in names],
        "racks": [{**plan["racks"][0], "rack": f"{number}@|" * 90} for number in range(400)],
        "batches": [{**batch, "number": n} for n in range(1, 5_000)],
        "warnings": ["@everyone <b>" * 99] * 900,
        "balance": {
            "wanted": _windows("1"),
            "asked": _windows("1"),
            "missed": ["topic_replicas"],
            "relaxed": [
                {"window": "topic_replicas", "topic": name, "wanted": "1", "reached": 2, "why": "racks"}
                for name in names
            ],
        },
        "changes": {"set_racks": {str(number): "@|" * 90 for number in range(400)}, "rebalance": "all"},
        "pareto": [{**point, "candidate": number, "chosen": number == 77} for number in range(300)],
        "inputs": [{"path": "@" * 400, "sha256": "ab" * 32}] * 90,
    }


def with_disks(disk_bytes: int = 50 * GB) -> Document:
    """The small plan for brokers that state their disk sizes, with limits on duration and disk use."""
    plan = small()
    for row in plan["brokers"]:
        row["disk_bytes"] = disk_bytes
    for batch in plan["batches"]:
        batch["fullest_broker"]["disk_bytes"] = disk_bytes
    plan["limits"] = [
        {"key": "limits.eta", "limit": 3600, "value": 480},
        {"key": "limits.disk_used", "limit": 45 * GB, "value": 40 * GB, "broker": 3},
    ]
    return plan


def with_traffic(rate: int = 1_500_000) -> Document:
    """The small plan of a cluster with known traffic: `rate` bytes/s in for each replica, and out for each leader."""
    plan = small()
    for row in plan["brokers"]:
        for load in (row["before"], row["after"]):
            load |= {"network_in": load["replicas"] * rate, "network_out": load["leaders"] * rate}
    for load in (plan["racks"][0]["before"], plan["racks"][0]["after"]):
        load |= {"network_in": 120 * rate, "network_out": 60 * rate}
    return plan


def broker(
    number: int,
    role: str,
    before: tuple[int, int],
    after: tuple[int, int],
    *,
    bytes_in: int = 0,
    bytes_out: int = 0,
) -> Document:
    """One entry of `brokers`. `before` and `after` are (replicas, leaders); a replica has 1 GB; no disk is stated."""
    loads = [
        {
            "replicas": replicas,
            "leaders": leaders,
            "size_bytes": replicas * GB,
            "network_in": None,
            "network_out": None,
        }
        for replicas, leaders in (before, after)
    ]
    peak = max(load["size_bytes"] for load in loads)
    copies = {"bytes_in": bytes_in, "bytes_out": bytes_out, "disk_bytes": None, "peak_size_bytes": peak}
    return {"id": number, "rack": "a", "role": role, "before": loads[0], "after": loads[1], **copies}


def term(group: str, name: str, unit: str, today: float, plan: float, limit: float | None) -> Document:
    """One entry of `terms`."""
    return {
        "group": group,
        "name": name,
        "unit": unit,
        "today": today,
        "if_nothing_moves": today,
        "plan": plan,
        "limit": limit,
        "meaning": f"what {name} means",
    }


def _windows(value: str) -> Document:
    none = dict.fromkeys(("topic_leaders", "disk", "network_in", "network_out"), "none")
    return {"replicas": value, "leaders": value, "topic_replicas": "1", **none}


def _point(value: str) -> Document:
    """The values that a point of the Pareto front has in addition to those of a comparison."""
    figures = {
        "least_bytes_moved": 24 * GB,
        "gap_percent": 0.0,
        "seconds_at_throttle": 480,
        "scenarios_missed": 0,
        "targets_missed": False,
    }
    return {**figures, "variant": "changes", "balance": _windows(value), "scenarios": "none", "chosen": False}


def with_alternatives() -> Document:
    """The small plan, which a rule chose among three variants. Under one of its two scenarios it misses a window."""
    row = {**_alternative("this plan", 24 * GB, 3.25), **_point("1"), "changes": {"rebalance": "all"}, "why_not": None}
    outside = {"window": "disk", "broker": 4, "value": 48 * GB, "least": 20 * GB, "most": 30 * GB}
    return small() | {
        "choice": {
            "rule": "most_even_within_bytes",
            "value": 30 * GB,
            "variant": "one",
            "why": "the most even of all",
        },
        "variants": [
            {**row, "name": "one", "brokers": 4, "chosen": True, "scenarios_missed": 1},
            {**row, "name": "two_[bold]", "brokers": 5, "scenarios_missed": 1},
            {**row, "name": "three", "brokers": 6, "why_not": "no candidate keeps every rule"},
        ],
        "scenarios": [
            {"name": "orders × 2", "feasible": False, "outside": [outside]},
            {"name": "logs", "feasible": True, "outside": []},
        ],
    }


def _alternative(label: str, bytes_moved: int, imbalance_percent: float) -> Document:
    return {
        "label": label,
        "candidate": {"do nothing": 0, "this plan": 1}.get(label, 2),
        "strategy": "optimum",
        "violations": 0,
        "bytes_moved": bytes_moved,
        "replicas_moved": bytes_moved // (12 * GB),
        "leaders_changed": 2,
        "replica_spread": 38,
        "leader_spread": 19,
        "topic_replica_spread": 1,
        "imbalance_percent": imbalance_percent,
        "imbalance_measure": "leaders",
        "left_to_change": 0,
        "balance_kept": True,
        "moves_unforced": False,
    }
