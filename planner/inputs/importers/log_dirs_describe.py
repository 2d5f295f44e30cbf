"""Reads `kafka-log-dirs --describe`: two headings and one line of JSON, or only the JSON.

Source: `org.apache.kafka.tools.LogDirsCommand`; KIP-827 names the fields for a log dir's room. Log dirs with an error,
and brokers that didn't answer, list no partitions; sizes then come from the other replicas.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from json import JSONDecoder
from typing import Any

from planner.inputs.importers.state_parts import (
    DECODER,
    Rank,
    StatePart,
    decoder,
    is_id,
    items,
    place_of,
    read_object,
    refuse_rest,
    shown,
    sound,
)
from planner.model.cluster import ANY, NUMBER, LogDir, LogDirs, PartitionKey, ReplicaDir, merge_log_dirs, partition_name
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "kafka-log-dirs --describe"
_HINT = f"allowed: what {TITLE} prints"
# The JSON begins a line; log messages before it may have braces too.
_BEGIN = re.compile(r"^[ \t]*\{", re.MULTILINE)


def recognizes(text: str) -> bool:
    """True if the JSON lists brokers with their log dirs."""
    return '"brokers"' in text and '"logDirs"' in text


def read_part(text: str, file: str) -> StatePart:
    """The sizes, (topic, partition) to the bytes of its largest replica, and notes on log dirs with an error.

    Replicas moving between log dirs (`isFuture`) are incomplete, so left out. ImportStateError names each bad entry.
    """
    sizes: dict[PartitionKey, int] = {}
    keys: dict[PartitionKey, PartitionKey] = {}

    def counted(value: dict[str, Any]) -> object:
        # There may be millions of replicas, so a well-formed one is counted as soon as it is decoded; its key is kept.
        replica = _replica(value, "", Place(file)) if tuple(value) == _KEYS else None
        if replica is None or isinstance(replica, Finding):
            return value
        key, size_bytes, moving = replica
        if moving:
            return _MOVING
        sizes[key] = max(size_bytes, sizes.get(key, 0))
        return keys.setdefault(key, key)

    value, place = _document(text, file, decoder(counted))
    # `items` treats a value that should be a list and isn't as an empty one.
    replicas = sound(
        _replica(item, f"brokers[{broker_index}].logDirs[{dir_index}].partitions[{index}]", place)
        for broker_index, broker in enumerate(items(value, "brokers"))
        for dir_index, log_dir in enumerate(items(broker, "logDirs"))
        for index, item in enumerate(items(log_dir, "partitions"))
        if item is not _MOVING and not isinstance(item, tuple)
    )
    for key, size_bytes, moving in replicas:
        if not moving:
            sizes[key] = max(size_bytes, sizes.get(key, 0))
    failed = (
        f"log dir {shown(log_dir.get('logDir'))} of broker {shown(broker.get('broker'))} has an error "
        f"({log_dir['error'].rpartition('.')[2][:80]}): its replicas stay out of sync until it is repaired"
        for broker in items(value, "brokers")
        for log_dir in items(broker, "logDirs")
        if isinstance(log_dir, dict) and isinstance(log_dir.get("error"), str)
    )
    read_log_dirs = partial(places, text, file)
    by_broker, notes = _replicas_by_broker(value), tuple(failed)
    listed = {broker["broker"] for broker in items(value, "brokers") if is_id(broker.get("broker"))}
    idle = tuple(sorted(listed - by_broker.keys()))
    return StatePart(
        TITLE, file, Rank.CLUSTER, sizes=sizes, size_replicas=by_broker, idle=idle, notes=notes, log_dirs=read_log_dirs
    )


def _replicas_by_broker(value: object) -> dict[int, tuple[PartitionKey, ...]]:
    """The partitions that each broker with replicas holds, of those whose keys were kept."""
    return {
        broker["broker"]: tuple(
            each for log_dir in dirs for each in items(log_dir, "partitions") if type(each) is tuple
        )
        for broker in items(value, "brokers")
        for dirs in [items(broker, "logDirs")]
        if any(items(log_dir, "partitions") for log_dir in dirs) and is_id(broker.get("broker"))
    }


_KEYS = ("partition", "size", "offsetLag", "isFuture")
_MOVING = object()


def places(text: str, file: str) -> LogDirs:
    """The log dirs of each broker that answered, and each replica's log dir. ImportStateError names each bad entry.

    A replica that is moving between log dirs counts, with its current size, in the log dir that it moves to.
    """
    value, place = _document(text, file)
    entries = [entry for item in items(value, "brokers") for entry in items(item, "logDirs")]
    if entries and not any("logDir" in entry for entry in entries):
        message = "no log dir has a path: planner import writes sizes only"
        allowed = "in cluster.state, the file itself that kafka-log-dirs --describe printed"
        raise ImportStateError([Finding(place, "brokers", f"{message}; allowed: {allowed}")])
    brokers: dict[int, tuple[LogDir, ...]] = {}
    replicas: list[ReplicaDir] = []
    findings: list[Finding] = []
    for index, item in enumerate(items(value, "brokers")):
        key = f"brokers[{index}]"
        broker = item.get("broker") if isinstance(item, dict) else None
        if not is_id(broker):
            findings.append(Finding(place, f"{key}.broker", f"{broker!r} isn't a broker's id; {_HINT}"))
            continue
        if broker in brokers:
            findings.append(Finding(place, f"{key}.broker", f"{broker} is here twice; allowed: once"))
        dirs, broker_replicas = dict[str, LogDir](), dict[PartitionKey, ReplicaDir]()
        findings += _add_log_dirs(item, key, place, broker, dirs, broker_replicas)
        brokers[broker] = tuple(dirs[path] for path in sorted(dirs))
        replicas += broker_replicas.values()
    if findings:
        raise ImportStateError(findings)
    return merge_log_dirs([LogDirs(tuple(brokers.items()), tuple(replicas))])


def _document(text: str, file: str, parser: JSONDecoder = DECODER) -> tuple[dict[str, Any], Place]:
    begin = _BEGIN.search(text)
    start = begin.end() - 1 if begin else max(text.find("{"), 0)
    value, end = read_object(text, start, file, parser)
    refuse_rest(text, end, file, f"{_HINT} for all brokers at once")
    place = place_of(text, start, file)
    # null and a missing list count as empty.
    below: Iterable[tuple[str, Any]] = [("", value)]
    for key in ("brokers", "logDirs", "partitions"):
        entries = list(below)
        sound(
            Finding(place, prefix[:-1], f"{shown(node)} isn't an object; {_HINT}")
            for prefix, node in entries
            if type(node) is not dict
        )
        lists = [(f"{prefix}{key}", entry[key]) for prefix, entry in entries if entry.get(key) is not None]
        sound(
            Finding(place, name, f"{shown(listed)} isn't a list; {_HINT}")
            for name, listed in lists
            if type(listed) is not list
        )
        below = ((f"{name}[{index}].", entry) for name, listed in lists for index, entry in enumerate(listed))
    return value, place


def _add_log_dirs(
    item: Any, key: str, place: Place, broker: int, dirs: dict[str, LogDir], replicas: dict[PartitionKey, ReplicaDir]
) -> Iterator[Finding]:
    """Adds a broker's log dirs to `dirs` and its replicas to `replicas`; yields findings for bad entries."""
    moving: dict[PartitionKey, str] = {}
    for index, entry in enumerate(items(item, "logDirs")):
        dir_key = f"{key}.logDirs[{index}]"
        log_dir = _log_dir(entry, dir_key, place)
        if isinstance(log_dir, Finding) or log_dir.path in dirs:
            twice = Finding(place, f"{dir_key}.logDir", "is here twice for this broker; allowed: each log dir once")
            yield log_dir if isinstance(log_dir, Finding) else twice
            continue
        dirs[log_dir.path] = log_dir
        for number, each in enumerate(items(entry, "partitions")):
            replica = _replica(each, f"{dir_key}.partitions[{number}]", place)
            if isinstance(replica, Finding):
                yield replica
            elif replica[2]:
                moving[replica[0]] = log_dir.path
            elif earlier := replicas.get(replica[0]):
                message = (
                    f"broker {broker} has {partition_name(*replica[0])} in {earlier.path!r} too; allowed: one log dir"
                )
                yield Finding(place, f"{dir_key}.partitions[{number}]", message)
            else:
                replicas[replica[0]] = ReplicaDir(*replica[0], broker, log_dir.path, replica[1])
    replicas |= {
        name: replace(replicas[name], path=path, moving=True) for name, path in moving.items() if name in replicas
    }


def _log_dir(entry: Any, key: str, place: Place) -> LogDir | Finding:
    path = entry.get("logDir") if isinstance(entry, dict) else None
    if not isinstance(path, str) or path in ("", ANY):
        return Finding(place, f"{key}.logDir", f"{path!r} isn't the path of a log dir; {_HINT}")
    error = entry.get("error")
    if error is not None and not isinstance(error, str):
        return Finding(place, f"{key}.error", f"{error!r} isn't the name of an error; {_HINT}")
    return LogDir(path, _room(entry, "totalBytes"), _room(entry, "usableBytes"), error or None)


def _room(entry: dict[str, Any], key: str) -> int | None:
    """Bytes, or None if unknown: Kafka writes -1 then."""
    value = entry.get(key)
    return value if type(value) is int and 0 <= value < 2**63 else None


def _replica(item: Any, key: str, place: Place) -> tuple[PartitionKey, int, bool] | Finding:
    """The replica's partition, its bytes, and whether it is moving to this log dir."""
    if not isinstance(item, dict) or not isinstance(item.get("partition"), str):
        return Finding(place, key, f"has no partition; {_HINT}")
    # Topic names may have hyphens, so only the last one separates.
    topic, _, number = item["partition"].rpartition("-")
    if not topic or not NUMBER.fullmatch(number):
        return Finding(place, f"{key}.partition", f"{item['partition']!r} isn't topic-partition; {_HINT}")
    size_bytes = item.get("size")
    if type(size_bytes) is not int or not 0 <= size_bytes < 2**63:
        return Finding(place, f"{key}.size", f"{size_bytes!r} isn't a number of bytes; {_HINT}")
    return (sys.intern(topic), int(number)), size_bytes, bool(item.get("isFuture"))
