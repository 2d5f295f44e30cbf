"""How values from a cluster get into generated text: always through one of these, never pasted.

Topic names, cluster names and addresses are data that others wrote. Each function returns text that its format's
parser reads back as exactly the value given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml


def canonical_json(value: Any) -> str:
    """The one way to write `value` as JSON on disk: keys sorted, indent 1, UTF-8 as it is, final newline.

    ValueError for NaN and infinity, which JSON doesn't have.
    """
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def yaml_text(text: str) -> str:
    """`text` as a double-quoted YAML scalar, tagged `!unsafe` where Ansible would take it for a template."""
    scalar = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).rstrip("\n")
    return f"!unsafe {scalar}" if "{" in text else scalar


def kafka_replica_lists(partitions: Iterable[tuple[str, int, Iterable[int], Sequence[str]]]) -> str:
    """(topic, partition, broker ids, log dirs) as the rows of Kafka's reassignment JSON, without the brackets.

    One row a line; where there are no log dirs the row doesn't name any.
    """
    names = _QuotedNames()
    return ",\n".join(
        f' {{"topic":{names[topic]},"partition":{partition},"replicas":[{",".join(map(str, replicas))}]'
        f"{_log_dirs(log_dirs, names)}}}"
        for topic, partition, replicas, log_dirs in partitions
    )


def _log_dirs(log_dirs: Sequence[str], names: _QuotedNames) -> str:
    return f',"log_dirs":[{",".join(names[path] for path in log_dirs)}]' if log_dirs else ""


def kafka_partitions(partitions: Iterable[tuple[str, int]]) -> str:
    """(topic, partition) as the rows of Kafka's leader election JSON, one a line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]},"partition":{partition}}}' for topic, partition in partitions)


def kafka_topics(topics: Iterable[str]) -> str:
    """Topic names as the rows of Kafka's topics-to-move JSON, one a line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]}}}' for topic in topics)


FILTERS: Mapping[str, Any] = {
    function.__name__: function
    for function in (canonical_json, yaml_text, kafka_replica_lists, kafka_partitions, kafka_topics)
}


class _QuotedNames(dict[str, str]):
    """Name or path → JSON string, quoted once: a plan has a million rows and a few thousand names."""

    def __missing__(self, name: str) -> str:
        self[name] = quoted = json.dumps(name, ensure_ascii=False)
        return quoted
