"""Kafka's reassignment JSON, alone or in what `kafka-reassign-partitions --generate` and `--execute` print.

`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`; of the tool's two assignments the current
one is taken. Source: `org.apache.kafka.tools.reassign.ReassignPartitionsCommand`.
"""

from __future__ import annotations

import re
from itertools import chain, repeat
from typing import Any

from planner.inputs.importers.assignment_entries import Assignment, AssignmentEntry, assignment
from planner.inputs.importers.json_text import item_positions, place_of, read_object, shown
from planner.inputs.importers.state_parts import StatePart
from planner.model.cluster import Partition, Topic
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "a reassignment JSON"
CURRENT = "Current partition replica assignment"


def recognises(text: str) -> bool:
    """True for the tool's heading, or for a JSON object with a `partitions` list whose items name a topic."""
    return CURRENT in text[:4000] or bool(re.match(r"\s*\{", text) and re.search(r'"topic"\s*:', text))


def parse(text: str, file: str) -> tuple[Topic, ...]:
    """The topics, by name, each partition led by its first replica. ImportStateError names each bad entry."""
    return read(text, file).topics


def read(text: str, file: str) -> Assignment:
    """As `parse`, with the place of each partition."""
    return assignment(read_part(text, file).entries, {})


def read_part(text: str, file: str) -> StatePart:
    """The partitions listed, of which a topic may have more. ImportStateError names each bad entry."""
    heading = text.find(CURRENT)
    start = max(text.find("{", max(heading, 0)), 0)
    value, end = read_object(text, start, file)
    rest = text[end:].lstrip()
    if heading < 0 and rest:
        message = "something follows the JSON; allowed: one reassignment, alone"
        raise ImportStateError([Finding(place_of(text, len(text) - len(rest), file), "", message)])
    if value.get("version", 1) != 1 or not isinstance(value.get("partitions"), list) or not value["partitions"]:
        message = 'not a reassignment; allowed: {"version":1,"partitions":[…]} with at least one partition'
        raise ImportStateError([Finding(place_of(text, start, file), "", message)])
    return StatePart(TITLE, file, entries=_entries(value["partitions"], text, start, file))


def _entries(items: list[Any], text: str, start: int, file: str) -> tuple[AssignmentEntry, ...]:
    # Positions are for messages only; where they run out, the whole JSON is the place.
    positions = chain(item_positions(text, "partitions", start), repeat(start))
    read_items = [
        _entry(item, f"partitions[{number}]", place_of(text, position, file))
        for number, (item, position) in enumerate(zip(items, positions, strict=False))
    ]
    findings = [item for item in read_items if isinstance(item, Finding)]
    if findings:
        raise ImportStateError(findings)
    return tuple(item for item in read_items if isinstance(item, AssignmentEntry))


def _entry(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    if not isinstance(item, dict):
        return Finding(place, key, 'isn\'t a partition; allowed: {"topic":"t","partition":0,"replicas":[1,2]}')
    topic, number, replicas = item.get("topic"), item.get("partition"), item.get("replicas")
    if not isinstance(topic, str):
        return Finding(place, f"{key}.topic", f"{shown(topic)} isn't a topic; allowed: text")
    if type(number) is not int or not 0 <= number < 2**31:
        return Finding(place, f"{key}.partition", f"{shown(number)} isn't a partition's id; allowed: 0, 1, 2 …")
    if not isinstance(replicas, list) or any(type(broker) is not int for broker in replicas):
        return Finding(place, f"{key}.replicas", f"{shown(replicas)} aren't replicas; allowed: a list of brokers' ids")
    leader = replicas[0] if replicas else None
    return AssignmentEntry(place, key, topic, Partition(number, tuple(replicas), leader))
