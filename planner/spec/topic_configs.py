"""The values of topics' configurations that the planner reckons with: whole numbers, as Kafka wants them.

Source: org.apache.kafka.common.config.TopicConfig, LogConfig (the least values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from planner.errors import Finding
from planner.importers.entries import Assignment
from planner.spec.build import created_topics
from planner.yaml_source import Document

_LEAST = {
    "min.insync.replicas": 1,
    "retention.ms": -1,
    "retention.bytes": -1,
    "local.retention.ms": -2,
    "local.retention.bytes": -2,
    "segment.ms": 1,
    "segment.bytes": 1,
}
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


class _Wrong(NamedTuple):
    key: str
    message: str


def todays_configs(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Of topics that are there: told where the configuration is written."""
    inline = {topic["name"]: at for at, topic in enumerate(document.get("cluster", "topics") or ())}
    first = {entry.topic: entry for entry in reversed(assignment.entries)}
    for topic in assignment.topics:
        for wrong in _wrong(topic.config):
            if topic.name in inline:
                path = ("cluster", "topics", inline[topic.name], "config", wrong.key)
                yield document.finding(path, wrong.message)
            else:
                # In a state file, the topic's first partition is near enough.
                entry = first[topic.name]
                yield Finding(entry.place, entry.key, wrong.message)


def new_configs(document: Document, _: Assignment) -> Iterator[Finding]:
    """Of topics that are to be created; min.insync.replicas has a rule of its own."""
    for at, new in enumerate(created_topics(document)):
        for wrong in _wrong(new.config):
            if wrong.key != "min.insync.replicas":
                yield document.finding(("changes", "create_topics", at, "config", wrong.key), wrong.message)


def _wrong(config: tuple[tuple[str, str], ...]) -> Iterator[_Wrong]:
    for key, value in config:
        least = _LEAST.get(key)
        if least is not None and not (_WHOLE.fullmatch(value) and int(value) >= least):
            yield _Wrong(key, f"{key} is {value!r}; allowed: a whole number from {least}")
