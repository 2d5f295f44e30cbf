"""State files of Kafka's own tools, text in and values out; the format is told from the content, not from a name."""

from __future__ import annotations

from planner.errors import Finding, ImportStateError, Place
from planner.importers import log_dirs, reassignment_json, topics_describe
from planner.importers.entries import Assignment
from planner.model import Topic


def read_placed_assignment(text: str, file: str) -> Assignment:
    """Today's topics and where each partition was read; ImportStateError where the text is in no known format."""
    if topics_describe.recognises(text):
        return topics_describe.read(text, file)
    if reassignment_json.recognises(text):
        return reassignment_json.read(text, file)
    allowed = "the output of kafka-topics --describe, or a reassignment JSON"
    raise ImportStateError([Finding(Place(file, 1, 1), "", f"no assignment in a known format; allowed: {allowed}")])


def read_assignment(text: str, file: str) -> tuple[Topic, ...]:
    """Today's topics, by name; `file` is only for messages."""
    return read_placed_assignment(text, file).topics


def read_sizes(text: str, file: str) -> dict[tuple[str, int], int]:
    """(topic, partition) to bytes of one replica; ImportStateError where the text is in no known format."""
    if log_dirs.recognises(text):
        return log_dirs.parse(text, file)
    allowed = "the output of kafka-log-dirs --describe"
    raise ImportStateError([Finding(Place(file, 1, 1), "", f"no sizes in a known format; allowed: {allowed}")])
