"""The values of topics' configurations that the planner reckons with: whole numbers, as Kafka wants them.

Source: org.apache.kafka.common.config.TopicConfig, LogConfig (the least values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from planner.inputs.importers.assignment_entries import Assignment
from planner.inputs.spec.build_spec import config_defaults, created_topics
from planner.inputs.yaml_source import Document
from planner.model.cluster import Config, Topic
from planner.model.effective_config import in_force, min_insync_replicas
from planner.model.errors import Finding

_LEAST = {
    "min.insync.replicas": 1,
    "retention.ms": -1,
    "retention.bytes": -1,
    "local.retention.ms": -2,
    "local.retention.bytes": -2,
    "segment.ms": 1,
    "segment.bytes": 1,
}
# Names that differ from one of these by a letter or two; Kafka has none that is so close to another.
_CLOSE = 0.9
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


class _Wrong(NamedTuple):
    key: str
    message: str


def todays_configs(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Of topics that are there: told where the configuration is written."""
    inline = {topic["name"]: at for at, topic in enumerate(document.get("cluster", "topics") or ())}
    first = {entry.topic: entry for entry in reversed(assignment.entries)}
    for topic in assignment.topics:
        own = {key for key, _ in topic.config}
        for wrong in _wrong(topic.config + topic.effective_config):
            if topic.name in inline:
                which = "config" if wrong.key in own else "effective_config"
                yield document.finding(("cluster", "topics", inline[topic.name], which, wrong.key), wrong.message)
            else:
                # In a state file, the topic's first partition is near enough.
                entry = first[topic.name]
                yield Finding(entry.place, entry.key, wrong.message)


def inherited_configs(document: Document, _: Assignment) -> Iterator[Finding]:
    """Of what topics inherit, wherever it was written."""
    for wrong in _wrong(config_defaults(document)):
        yield document.finding(("cluster", "config_defaults", wrong.key), wrong.message)


def in_force_least(topic: Topic, defaults: Config) -> int:
    """The `min.insync.replicas` in force for a topic; 0 where it isn't a number, which another rule tells."""
    try:
        return min_insync_replicas(in_force(topic, defaults))
    except ValueError:
        return 0


def origin(topic: Topic, defaults: Config, key: str) -> str:
    """Whose configuration the value in force is."""
    if key in dict(topic.config):
        return "its own"
    if key in dict(topic.effective_config):
        return "its own or inherited"
    return "inherited from the brokers" if key in dict(defaults) else "Kafka's default"


def altered(topic: str, key: str, value: object) -> str:
    """How a topic's configuration is changed, which no plan does."""
    return (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {key}={value}, or Terraform"
    )


def new_configs(document: Document, _: Assignment) -> Iterator[Finding]:
    """Of topics that are to be created; min.insync.replicas has a rule of its own."""
    for at, new in enumerate(created_topics(document)):
        for wrong in _wrong(new.config):
            if wrong.key != "min.insync.replicas":
                yield document.finding(("changes", "create_topics", at, "config", wrong.key), wrong.message)


def _wrong(config: tuple[tuple[str, str], ...]) -> Iterator[_Wrong]:
    for key, value in config:
        least = _LEAST.get(key)
        meant = _meant(key) if least is None else None
        if meant is not None:
            message = (
                f"Kafka has no topic configuration of this name; did you mean {meant!r}? allowed: the names that it has"
            )
            yield _Wrong(key, message)
        if least is not None and not (_WHOLE.fullmatch(value) and int(value) >= least):
            yield _Wrong(key, f"{key} is {value!r}; allowed: a whole number from {least}")


def _meant(key: str) -> str | None:
    """The name that was probably meant, of those that count here: a mistyped one would have no effect."""
    told = key.lower().replace("_", ".")
    # What brokers call a topic's `segment.bytes`.
    close = get_close_matches(told.removeprefix("log."), _LEAST, n=1, cutoff=_CLOSE)
    return close[0] if close else None
