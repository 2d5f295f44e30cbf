"""What `kafka-log-dirs --describe` prints: two headings and one line of JSON, or that JSON alone.

Source: `org.apache.kafka.tools.LogDirsCommand`. Log dirs with an error, and brokers that didn't answer, hold no
partitions here; the other replicas tell the size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.errors import Finding, ImportStateError, Place
from planner.importers.json_text import place_of, read_object

_HINT = "allowed: what kafka-log-dirs --describe prints"
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)


def recognises(text: str) -> bool:
    """True where the JSON lists brokers with their log dirs."""
    return '"brokers"' in text and '"logDirs"' in text


def parse(text: str, file: str) -> dict[tuple[str, int], int]:
    """(topic, partition) to the bytes of its largest replica. ImportStateError names each bad entry.

    Replicas that are on their way between log dirs (`isFuture`) aren't complete and don't count.
    """
    start = max(text.find("{"), 0)
    value, end = read_object(text, start, file)
    rest = text[end:].lstrip()
    if rest:
        message = f"something follows the JSON; {_HINT} for all brokers at once"
        raise ImportStateError([Finding(place_of(text, len(text) - len(rest), file), "", message)])
    sizes: dict[tuple[str, int], int] = {}
    findings: list[Finding] = []
    for key, item in _replicas(value):
        found = _size(item, key, place_of(text, start, file))
        if isinstance(found, Finding):
            findings.append(found)
        elif not item.get("isFuture"):
            partition, size_bytes = found
            sizes[partition] = max(size_bytes, sizes.get(partition, 0))
    if findings:
        raise ImportStateError(findings)
    return sizes


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
