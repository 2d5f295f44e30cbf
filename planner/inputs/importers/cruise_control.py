"""Reads two answers of Cruise Control: `kafka_cluster_state?json=true&verbose=true`, and proposals (`json=true`).

The first has all partitions only with verbose=true; otherwise it lists only partitions with a problem. Proposals list
only the partitions that they would change; as a state, their old replicas are used.
Source: ClusterPartitionState and ExecutionProposal of Cruise Control 2.5.
"""

import re
from dataclasses import replace
from typing import Any

from planner.inputs.importers.state_parts import (
    AssignmentEntry,
    StatePart,
    begins_object,
    is_id,
    is_ids,
    item_places,
    items,
    read_alone,
    shown,
    sound,
)
from planner.model.cluster import Partition, PartitionKey
from planner.model.errors import Finding, ImportStateError, Place

# The lists of `KafkaPartitionState`: partitions with a problem, and the others.
_LISTS = ("offline", "urp", "with-offline-replicas", "under-min-isr", "other")
_PROPOSALS = re.compile(r'"proposals"\s*:')


def recognizes(text: str) -> bool:
    """True for the JSON of either answer."""
    return begins_object(text) and (
        '"KafkaPartitionState"' in text or ('"proposals"' in text and '"oldReplicas"' in text)
    )


def read_part(text: str, file: str) -> StatePart:
    """The partitions of either answer. ImportStateError names each bad one."""
    value, place = read_alone(text, file)
    if "KafkaPartitionState" not in value:
        proposals = items(value, "proposals")
        entries = sound(_proposal(item, f"proposals[{index}]", place) for index, item in enumerate(proposals))
        return StatePart("Cruise Control's proposals", file, entries=tuple(entries), leaders_known=True)
    state = value["KafkaPartitionState"]
    # A partition may be in several lists, with the same values.
    by_partition: dict[PartitionKey, AssignmentEntry] = {}
    for name in _LISTS:
        key = f"KafkaPartitionState.{name}"
        for entry in sound(_partition(item, f"{key}[{index}]", place) for index, item in enumerate(items(state, name))):
            by_partition.setdefault((entry.topic, entry.partition.id), entry)
    if not isinstance(state, dict) or not isinstance(state.get("other"), list):
        message = "the partitions without problems are left out; allowed: the answer with verbose=true"
        raise ImportStateError([Finding(place, "KafkaPartitionState.other", message)])
    title = "Cruise Control's kafka_cluster_state"
    return StatePart(title, file, entries=tuple(by_partition.values()), leaders_known=True, complete=True)


def is_proposals(text: str) -> bool:
    """True for a JSON object with a list of proposals, also an empty one; a topic may have that name, too."""
    return begins_object(text) and _PROPOSALS.search(text) is not None and '"KafkaPartitionState"' not in text


def read_proposals(text: str, file: str) -> tuple[StatePart, StatePart]:
    """The partitions as the proposals would leave them, and as they are now. ImportStateError names each bad one."""
    value, place = read_alone(text, file)
    proposals = items(value, "proposals")
    if "partitions" in value:
        raise ImportStateError([Finding(place, "partitions", "is beside proposals; allowed: one of the two lists")])
    if not proposals:
        message = "no proposals; allowed: what proposals?json=true answers, with at least one"
        raise ImportStateError([Finding(place, "proposals", message)])
    today = read_part(text, file)
    with_places = zip(proposals, today.entries, item_places(text, "proposals", 0, file), strict=False)
    problem = "aren't replicas; allowed: a list of brokers' ids"
    # A partition is led by the first of its new replicas.
    entries = sound(
        AssignmentEntry(
            place, entry.key, entry.topic, Partition(entry.partition.id, tuple(new_replicas), new_replicas[0])
        )
        if is_ids(new_replicas := item.get("newReplicas")) and new_replicas
        else Finding(place, f"{entry.key}.newReplicas", f"{shown(new_replicas)} {problem}")
        for item, entry, place in with_places
    )
    return replace(today, entries=tuple(entries)), today


def _partition(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    if not isinstance(item, dict):
        return Finding(place, key, f"{shown(item)} isn't a partition; allowed: what Cruise Control answers")
    isr = item.get("in-sync")
    if not is_ids(isr):
        return Finding(place, f"{key}.in-sync", f"{shown(isr)} isn't possible here; allowed: a list of brokers' ids")
    return _entry(item, (item.get("topic"), item.get("partition")), ("leader", "replicas"), (key, place), isr)


def _proposal(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    topic_partition = item.get("topicPartition") if isinstance(item, dict) else None
    match topic_partition:
        case dict():
            partition_key = (topic_partition.get("topic"), topic_partition.get("partition"))
        case str() if re.fullmatch(r".+-[0-9]{1,10}", topic_partition, re.ASCII):
            topic, _, number = topic_partition.rpartition("-")
            partition_key = (topic, int(number))
        case _:
            message = f"{shown(topic_partition)} isn't a partition; allowed: topic-partition"
            return Finding(place, f"{key}.topicPartition", message)
    return _entry(item, partition_key, ("oldLeader", "oldReplicas"), (key, place), None)


def _entry(
    item: dict[str, Any], partition_key: tuple[Any, Any], keys: tuple[str, str], location: tuple[str, Place], isr: Any
) -> AssignmentEntry | Finding:
    """The partition `partition_key` (topic, id), whose leader and replicas are under `keys`."""
    (topic, number), (key, place) = partition_key, location
    leader, replicas = (item.get(each) for each in keys)
    if not isinstance(topic, str) or not is_id(number):
        return Finding(place, key, f"{shown(topic)}, {shown(number)} isn't a partition; allowed: a topic and an id")
    if leader not in (-1, None) and not is_id(leader):
        return Finding(place, f"{key}.{keys[0]}", f"{shown(leader)} isn't a broker; allowed: an id, or -1")
    if not is_ids(replicas) or not replicas:
        return Finding(place, f"{key}.{keys[1]}", f"{shown(replicas)} aren't replicas; allowed: a list of brokers' ids")
    in_sync = None if isr is None else tuple(isr)
    partition = Partition(number, tuple(replicas), None if leader == -1 else leader, in_sync)
    return AssignmentEntry(place, key, topic, partition)
