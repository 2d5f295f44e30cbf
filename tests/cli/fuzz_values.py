"""A spec and a plan in which values are replaced by wrong ones of any type or size; for test_fuzz."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from plan_documents import plan_id

Path = tuple[str | int, ...]
_DISK = {"disk": "2TB", "network": "100MB/s"}
_LOG_DIRS = [{"path": path, "size": "1TB"} for path in ("/d1", "/d2")]
_ORDERS = [
    {"replicas": [1, 2], "size": "12GiB", "leader": 2, "isr": [2], "bytes_in": "3MB/s", "log_dirs": ["/d1", "/d2"]},
    {"replicas": [2, 3], "size": 5, "leader": "none", "isr": [], "bytes_out": "1MB/s", "log_dirs": ["/d2", "/d1"]},
]
SPEC: dict[str, Any] = {
    "version": 1,
    "cluster": {
        "name": "n",
        "bootstrap_servers": ["k:9092"],
        "captured_at": "2026-01-01T00:00:00Z",
        "brokers": [
            {"id": 1, "rack": "a", "class": "big", "log_dirs": _LOG_DIRS},
            {"id": 2, "rack": "b", "capacity": _DISK, "log_dirs": ["/d1", "/d2"]},
            {"id": 2147483646, "rack": "c", "capacity": _DISK, "log_dirs": ["/d1"]},
            {"id": 3, "rack": "c", "capacity": _DISK, "log_dirs": ["/d1"]},
        ],
        "broker_classes": {"big": {"disk": "4TiB", "network": "1Gbit/s"}, "bare": {}},
        "rates": [{"topics": "o*", "bytes_in": "3MB/s", "bytes_out": "1MB/s"}],
        "topics": [
            {"name": "orders", "config": {"min.insync.replicas": 1, "retention.ms": 1000}, "partitions": _ORDERS},
            {"name": "logs", "partitions": [{"replicas": [1], "size": 7, "log_dirs": ["/d1"]}]},
        ],
    },
    "changes": {
        "add_brokers": [{"id": 7, "rack": "c", "capacity": {"disk": "2TB"}}],
        "remove_brokers": [1],
        "replace_brokers": {2: 9},
        "set_racks": {3: "b"},
        "set_replication_factor": [{"topics": "ord*", "replication_factor": 2}],
        "create_topics": [{"name": "new", "partitions": 2, "replication_factor": 2, "size": "1GB"}],
        "rebalance": "all",
    },
    "topics": {"include": ["*"]},
    "rack_aware": "disabled",
    "balance": {"replicas": "5%", "leaders": 2, "topic_replicas": "none", "disk": "20%", "log_dirs": "20%"},
    "budget": {"bytes_moved": "1TiB"},
    "limits": {"bytes_moved": "2TiB", "replicas_moved": 500, "eta": "60h", "disk_used": "90%", "gap": "50%"},
    "sweep": {
        "candidates": 8,
        "seed": 7,
        "balance": {"replicas": [1, "5%"], "disk": ["2%", "none"]},
        "variants": [{"name": "v", "changes": {"add_brokers": [{"id": 8, "rack": "a", "class": "big"}]}}],
        "scenarios": {"growth": [{"topics": "o*", "factor": 2.0, "name": "y"}]},
    },
    "execution": {"throttle": "50MB/s", "batches": {"bytes": "500GiB", "moves_per_broker": 4}},
    "resilience": {"survive": "broker"},
    "growth": [{"topics": "o*", "per_month": "8%"}],
    "consumers": [
        {"group": "g", "assignor": "range", "members": [{"id": "c1", "topics": ["o*"], "rack": "a"}], "topics": ["*"]}
    ],
    "report": {"failures": ["brokers", "racks"], "growth": {"months": 3}, "consumers": True},
    "valid_for": "7d",
}
TYPES: tuple[Any, ...] = (None, True, False, 1.5, "", "oops", "none", "*", "[", [], {}, [[]], [None], ["x"], [0], [{}])
SIZES: tuple[Any, ...] = (-1, 0, 1, 2**31 - 1, 2**31, 2**63, 10**30, 1e15, "0", "-1", "1e999", "9" * 30 + "TB")
TEXTS: tuple[Any, ...] = ("9" * 90 + "%", "0.0001%", "1s", "9999999999d", "a" * 300, "\u2028x", "9999-12-31T23:59:59Z")
MAPPINGS: tuple[Any, ...] = ({"a": 1}, {"id": 1}, {2147483647: 2147483647}, [2**31 - 1], "2026-02-30T00:00:00Z")


def spec_with_a_wrong_value(rng: random.Random) -> str:
    """The spec as JSON, which is YAML too, with one value replaced or left out."""
    spec = copy.deepcopy(SPEC)
    *above, last = rng.choice(list(_paths(spec)))
    inner = _at(spec, above)
    if rng.random() < 0.1:
        del inner[last]
    else:
        inner[last] = rng.choice((*TYPES, *SIZES, *TEXTS, *MAPPINGS))
    return json.dumps(spec)


def plan_with_wrong_values(plan: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A plan document with one to three values replaced by others of the same type, and with the matching id."""
    changed = copy.deepcopy(plan)
    paths = list(_paths(plan))
    for _ in range(rng.randint(1, 3)):
        *above, last = rng.choice(paths)
        try:
            inner = _at(changed, above)
            inner[last] = _another(inner[last], plan, paths, rng)
        except (LookupError, TypeError):  # an earlier replacement removed this path
            continue
    return {**changed, "plan_id": plan_id(changed)}


def _another(value: Any, plan: dict[str, Any], paths: list[Path], rng: random.Random) -> Any:
    """A value of the same type: slightly different, large, shorter, longer, or from elsewhere in the plan."""
    elsewhere = [other for path in rng.sample(paths, 40) if type(other := _at(plan, path)) is type(value)]
    match value:
        case bool():
            return not value
        case int():
            return rng.choice([value + 1, value * 1000, 0, 2**40, 2**62, *elsewhere])
        case str():
            return rng.choice([f"{value}x", "", value[:-1], *elsewhere])
        case list():
            return rng.choice([value[:1], value + value[:1], value[::-1], [], *elsewhere])
        case _:
            return rng.choice([value, *elsewhere])


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of each value; of long lists only those of the first eight items."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value[:8]):
            yield from _paths(each, (*path, at))


def _at(value: Any, path: Any) -> Any:
    for step in path:
        value = value[step]
    return value
