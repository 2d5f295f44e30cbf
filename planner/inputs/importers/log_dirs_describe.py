"""What `kafka-log-dirs --describe` prints: two headings and one line of JSON, or that JSON alone.

Source: `org.apache.kafka.tools.LogDirsCommand`; the room of a log dir has the names of KIP-827. Log dirs with an error,
and brokers that didn't answer, hold no partitions here; the other replicas tell the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from planner.inputs.importers.json_text import place_of, read_object
from planner.model.cluster import ANY, LogDir, LogDirs, ReplicaDir
from planner.model.errors import Finding, ImportStateError, Place

_HINT = "allowed: what kafka-log-dirs --describe prints"
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
# The JSON has a line of its own; what a logger prints above may have braces too.
_BEGIN = re.compile(r"^[ \t]*\{", re.MULTILINE)
_LARGEST_ID = 2**31 - 1


def recognises(text: str) -> bool:
    """True where the JSON lists brokers with their log dirs."""
    return '"brokers"' in text and '"logDirs"' in text


def parse(text: str, file: str) -> dict[tuple[str, int], int]:
    """(topic, partition) to the bytes of its largest replica. ImportStateError names each bad entry.

    Replicas that are on their way between log dirs (`isFuture`) aren't complete and don't count.
    """
    value, place = _document(text, file)
    sizes: dict[tuple[str, int], int] = {}
    findings: list[Finding] = []
    for key, item in _replicas(value):
        found = _size(item, key, place)
        if isinstance(found, Finding):
            findings.append(found)
        elif not item.get("isFuture"):
            partition, size_bytes = found
            sizes[partition] = max(size_bytes, sizes.get(partition, 0))
    if findings:
        raise ImportStateError(findings)
    return sizes


def places(text: str, file: str) -> LogDirs:
    """The log dirs of each broker that answered, and which replica lies where. ImportStateError names each bad entry.

    A replica that is on its way between log dirs counts, with its present size, in the one it goes to.
    """
    value, place = _document(text, file)
    brokers: dict[int, tuple[LogDir, ...]] = {}
    replicas: list[ReplicaDir] = []
    findings: list[Finding] = []
    for at, item in enumerate(_items(value, "brokers")):
        found = _broker(item, f"brokers[{at}]", place)
        findings += found.findings
        if found.id in brokers:
            findings.append(Finding(place, f"brokers[{at}].broker", f"{found.id} is here twice; allowed: once"))
        brokers[found.id] = found.dirs
        replicas += found.replicas
    if findings:
        raise ImportStateError(findings)
    ordered = sorted(replicas, key=lambda each: (each.topic, each.partition, each.broker))
    return LogDirs(tuple(sorted(brokers.items())), tuple(ordered))


class _Broker(NamedTuple):
    """One broker's entry, and what is wrong with it."""

    id: int
    dirs: tuple[LogDir, ...]
    replicas: list[ReplicaDir]
    findings: list[Finding]


def _document(text: str, file: str) -> tuple[dict[str, Any], Place]:
    """The JSON behind the headings, and where it begins."""
    begun = _BEGIN.search(text)
    start = begun.end() - 1 if begun else max(text.find("{"), 0)
    value, end = read_object(text, start, file)
    rest = text[end:].lstrip()
    if rest:
        message = f"something follows the JSON; {_HINT} for all brokers at once"
        raise ImportStateError([Finding(place_of(text, len(text) - len(rest), file), "", message)])
    return value, place_of(text, start, file)


def _broker(item: Any, key: str, place: Place) -> _Broker:
    broker = item.get("broker") if isinstance(item, dict) else None
    if type(broker) is not int or not 0 <= broker <= _LARGEST_ID:
        return _Broker(-1, (), [], [Finding(place, f"{key}.broker", f"{broker!r} isn't a broker's id; {_HINT}")])
    dirs: dict[str, LogDir] = {}
    findings: list[Finding] = []
    settled: dict[tuple[str, int], ReplicaDir] = {}
    moving: dict[tuple[str, int], str] = {}
    for at, entry in enumerate(_items(item, "logDirs")):
        there = f"{key}.logDirs[{at}]"
        log_dir = _log_dir(entry, there, place)
        if isinstance(log_dir, Finding) or log_dir.path in dirs:
            twice = Finding(place, f"{there}.logDir", "is here twice for this broker; allowed: each log dir once")
            findings.append(log_dir if isinstance(log_dir, Finding) else twice)
            continue
        dirs[log_dir.path] = log_dir
        findings += _read(entry, there, place, (broker, log_dir.path), settled, moving)
    replicas = [_on_its_way(replica, moving.get(name)) for name, replica in settled.items()]
    return _Broker(broker, tuple(dirs[path] for path in sorted(dirs)), replicas, findings)


def _read(
    entry: Any,
    key: str,
    place: Place,
    where: tuple[int, str],
    settled: dict[tuple[str, int], ReplicaDir],
    moving: dict[tuple[str, int], str],
) -> Iterator[Finding]:
    """Adds a log dir's replicas to those that lie somewhere, or are on their way; what is wrong with them."""
    broker, path = where
    for at, item in enumerate(_items(entry, "partitions")):
        there = f"{key}.partitions[{at}]"
        found = _size(item, there, place)
        if isinstance(found, Finding):
            yield found
            continue
        (topic, number), size_bytes = found
        if item.get("isFuture"):
            moving[topic, number] = path
        elif (topic, number) in settled:
            other = settled[topic, number].path
            yield Finding(place, there, f"broker {broker} has {topic}-{number} in {other!r} too; allowed: one log dir")
        else:
            settled[topic, number] = ReplicaDir(topic, number, broker, path, size_bytes)


def _on_its_way(replica: ReplicaDir, path: str | None) -> ReplicaDir:
    if path is None:
        return replica
    return ReplicaDir(replica.topic, replica.partition, replica.broker, path, replica.size_bytes, True)


def _log_dir(entry: Any, key: str, place: Place) -> LogDir | Finding:
    path = entry.get("logDir") if isinstance(entry, dict) else None
    if not isinstance(path, str) or path in ("", ANY):
        return Finding(place, f"{key}.logDir", f"{path!r} isn't the path of a log dir; {_HINT}")
    error = entry.get("error")
    if error is not None and not isinstance(error, str):
        return Finding(place, f"{key}.error", f"{error!r} isn't the name of an error; {_HINT}")
    return LogDir(path, _room(entry, "totalBytes"), _room(entry, "usableBytes"), error or None)


def _room(entry: dict[str, Any], key: str) -> int | None:
    """Bytes, None where the broker doesn't say: Kafka writes -1 then."""
    value = entry.get(key)
    return value if type(value) is int and 0 <= value < 2**63 else None


def _replicas(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each replica in each log dir, with its path in the JSON; what isn't a list where one belongs holds nothing."""
    for broker_at, broker in enumerate(_items(value, "brokers")):
        for dir_at, log_dir in enumerate(_items(broker, "logDirs")):
            for at, item in enumerate(_items(log_dir, "partitions")):
                yield f"brokers[{broker_at}].logDirs[{dir_at}].partitions[{at}]", item


def _items(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _size(item: Any, key: str, place: Place) -> tuple[tuple[str, int], int] | Finding:
    if not isinstance(item, dict) or not isinstance(item.get("partition"), str):
        return Finding(place, key, f"has no partition; {_HINT}")
    # Topic names may hold hyphens, so only the last one divides.
    topic, _, number = item["partition"].rpartition("-")
    if not topic or not _NUMBER.fullmatch(number):
        return Finding(place, f"{key}.partition", f"{item['partition']!r} isn't topic-partition; {_HINT}")
    size_bytes = item.get("size")
    if type(size_bytes) is not int or not 0 <= size_bytes < 2**63:
        return Finding(place, f"{key}.size", f"{size_bytes!r} isn't a number of bytes; {_HINT}")
    return (topic, int(number)), size_bytes
