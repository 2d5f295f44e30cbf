"""Two answers of Cruise Control: `kafka_cluster_state?json=true&verbose=true`, and proposals (`json=true`).

The first is a whole state only with verbose=true; otherwise it lists the partitions with a problem. Of a proposal the
old replicas are taken: it lists the partitions that it would change.
Source: ClusterPartitionState and ExecutionProposal of Cruise Control 2.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.inputs.importers.assignment_entries import AssignmentEntry
from planner.inputs.importers.json_text import is_id, is_ids, read_alone, shown
from planner.inputs.importers.state_parts import StatePart
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError, Place

STATE = "Cruise Control's kafka_cluster_state"
PROPOSALS = "Cruise Control's proposals"
_PROBLEMS = ("offline", "urp", "with-offline-replicas", "under-min-isr")


def recognises(text: str) -> bool:
    """True for the JSON of either answer."""
    return bool(re.match(r"\s*\{", text)) and (
        '"KafkaPartitionState"' in text or ('"proposals"' in text and '"oldReplicas"' in text)
    )


def read_part(text: str, file: str) -> StatePart:
    """The partitions of either answer. ImportStateError names each bad one."""
    value, place = read_alone(text, file)
    if "KafkaPartitionState" in value:
        return _state(value["KafkaPartitionState"], place)
    entries = _sound(_proposal(item, f"proposals[{at}]", place) for at, item in enumerate(_items(value, "proposals")))
    return StatePart(PROPOSALS, file, entries=tuple(entries), leaders_known=True)


def _state(value: Any, place: Place) -> StatePart:
    """A partition may be in several lists, each time alike."""
    found: dict[tuple[str, int], AssignmentEntry] = {}
    for key in (*_PROBLEMS, "other"):
        for entry in _sound(
            _partition(item, f"KafkaPartitionState.{key}[{at}]", place) for at, item in enumerate(_items(value, key))
        ):
            found.setdefault((entry.topic, entry.partition.id), entry)
    whole = isinstance(value, dict) and isinstance(value.get("other"), list)
    if not whole:
        message = "the partitions without problems are left out; allowed: the answer with verbose=true"
        raise ImportStateError([Finding(place, "KafkaPartitionState.other", message)])
    return StatePart(STATE, place.file, entries=tuple(found.values()), leaders_known=True, whole=True)


def _items(value: Any, key: str) -> list[Any]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _sound(items: Iterator[AssignmentEntry | Finding]) -> list[AssignmentEntry]:
    read_items = list(items)
    findings = [item for item in read_items if isinstance(item, Finding)]
    if findings:
        raise ImportStateError(findings)
    return [item for item in read_items if isinstance(item, AssignmentEntry)]


def _partition(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    if not isinstance(item, dict):
        return Finding(place, key, f"{shown(item)} isn't a partition; allowed: what Cruise Control answers")
    isr = item.get("in-sync")
    if not is_ids(isr):
        return Finding(place, f"{key}.in-sync", f"{shown(isr)} isn't possible here; allowed: a list of brokers' ids")
    return _entry(item, (item.get("topic"), item.get("partition")), ("leader", "replicas"), (key, place), isr)


def _proposal(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    about = item.get("topicPartition") if isinstance(item, dict) else None
    match about:
        case dict():
            named = (about.get("topic"), about.get("partition"))
        case str() if re.fullmatch(r".+-[0-9]{1,10}", about, re.ASCII):
            topic, _, number = about.rpartition("-")
            named = (topic, int(number))
        case _:
            message = f"{shown(about)} isn't a partition; allowed: topic-partition"
            return Finding(place, f"{key}.topicPartition", message)
    return _entry(item, named, ("oldLeader", "oldReplicas"), (key, place), None)


def _entry(
    item: dict[str, Any], named: tuple[Any, Any], keys: tuple[str, str], where: tuple[str, Place], isr: Any
) -> AssignmentEntry | Finding:
    (topic, number), (key, place) = named, where
    leader, replicas = (item.get(each) for each in keys)
    if not isinstance(topic, str) or not is_id(number):
        return Finding(place, key, f"{shown(topic)}, {shown(number)} isn't a partition; allowed: a topic and an id")
    if leader not in (-1, None) and not is_id(leader):
        return Finding(place, f"{key}.{keys[0]}", f"{shown(leader)} isn't a broker; allowed: an id, or -1")
    if not is_ids(replicas) or not replicas:
        return Finding(place, f"{key}.{keys[1]}", f"{shown(replicas)} aren't replicas; allowed: a list of brokers' ids")
    known = None if isr is None else tuple(isr)
    partition = Partition(number, tuple(replicas), None if leader == -1 else leader, known)
    return AssignmentEntry(place, key, topic, partition)
