"""The topics-to-move JSON of `kafka-reassign-partitions --topics-to-move-json-file`: names, which restrict what moves.

Source: `org.apache.kafka.tools.reassign.ReassignPartitionsCommand`, `parseTopicsData`.
"""

from __future__ import annotations

import re

from planner.inputs.importers.assignment_entries import TOPIC_NAME
from planner.inputs.importers.json_text import read_alone, shown
from planner.inputs.importers.state_parts import StatePart
from planner.model.errors import Finding, ImportStateError

TITLE = "a topics-to-move JSON"
_HINT = 'allowed: {"version":1,"topics":[{"topic":"t"}]} with at least one topic'


def recognises(text: str) -> bool:
    """True for a JSON object with a list of topics and no partitions."""
    return bool(re.match(r"\s*\{", text) and re.search(r'"topics"\s*:\s*\[', text)) and '"partition' not in text


def read_part(text: str, file: str) -> StatePart:
    """The topics that may move, in the file's order. ImportStateError names each bad entry."""
    value, place = read_alone(text, file)
    items = value.get("topics")
    if value.get("version", 1) != 1 or not isinstance(items, list) or not items:
        raise ImportStateError([Finding(place, "", f"not a list of topics to move; {_HINT}")])
    names = [item.get("topic") if isinstance(item, dict) else None for item in items]
    findings = [
        Finding(place, f"topics[{at}].topic", f"{shown(name)} isn't a topic; {_HINT}")
        for at, name in enumerate(names)
        if not (isinstance(name, str) and TOPIC_NAME.fullmatch(name))
    ]
    if findings:
        raise ImportStateError(findings)
    return StatePart(TITLE, file, only_topics=tuple(dict.fromkeys(str(name) for name in names)))
