"""`log_dirs` of a document as values: those of each broker, those of inline replicas, and how even they have to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.inputs.yaml_source import Document
from planner.model.amounts import parse_bytes
from planner.model.balance import NO_TOLERANCE, Tolerance
from planner.model.cluster import LogDir, LogDirs, ReplicaDir


def tolerance(document: Document) -> Tolerance:
    """`balance.log_dirs`; without it log dirs aren't touched."""
    asked = document.get("balance", "log_dirs")
    return NO_TOLERANCE if asked is None else Tolerance.parse(asked)


def of_broker(item: Mapping[str, Any]) -> tuple[LogDir, ...]:
    """A broker's `log_dirs`, each a path or a mapping of path and size, in the file's order."""
    return tuple(_log_dir(each) for each in item.get("log_dirs", ()))


def inline(document: Document) -> LogDirs:
    """What `cluster.topics` says of log dirs; each broker's are those that it lists, or that its replicas lie in."""
    replicas = sorted(_inline(document), key=lambda each: (each.topic, each.partition, each.broker))
    used: dict[int, set[str]] = {}
    for replica in replicas:
        used.setdefault(replica.broker, set()).add(replica.path)
    brokers = []
    for item in document.get("cluster", "brokers"):
        listed = of_broker(item) or tuple(LogDir(path) for path in used.get(item["id"], ()))
        if listed:
            brokers.append((item["id"], tuple(sorted(listed, key=lambda log_dir: log_dir.path))))
    return LogDirs(tuple(sorted(brokers)), tuple(replicas))


def _inline(document: Document) -> Iterator[ReplicaDir]:
    for topic in document.get("cluster", "topics") or ():
        for number, item in enumerate(topic["partitions"]):
            size_bytes = parse_bytes(item.get("size", 0))
            for broker, path in zip(item["replicas"], item.get("log_dirs", ()), strict=False):
                yield ReplicaDir(topic["name"], number, broker, path, size_bytes)


def _log_dir(item: str | Mapping[str, Any]) -> LogDir:
    if isinstance(item, str):
        return LogDir(item)
    size = item.get("size")
    return LogDir(item["path"], None if size is None else parse_bytes(size))
