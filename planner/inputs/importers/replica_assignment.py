"""The string that `kafka-topics --create --replica-assignment` takes: `0:1,1:0,0:1`, brokers of a partition by colons.

It doesn't name its topic: whoever reads it has to. Source: `org.apache.kafka.tools.TopicCommand`,
`parseReplicaAssignment`.
"""

from __future__ import annotations

import re

from planner.inputs.importers.assignment_entries import AssignmentEntry
from planner.inputs.importers.json_text import place_of
from planner.inputs.importers.state_parts import StatePart
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError

TITLE = "a replica assignment"
_STRING = re.compile(r"\s*\"?[0-9]{1,10}(?::[0-9]{1,10})*(?:,[0-9]{1,10}(?::[0-9]{1,10})*)*\"?\s*", re.ASCII)


def recognises(text: str) -> bool:
    """True for brokers' ids with colons and commas between them, and nothing else."""
    return _STRING.fullmatch(text) is not None


def read_part(text: str, file: str, topic: str | None) -> StatePart:
    """The partitions of `topic`, each led by its first replica. ImportStateError where no topic is given."""
    start = len(text) - len(text.lstrip(' \t\r\n"'))
    if topic is None:
        message = "a replica assignment doesn't say of which topic; allowed: with the topic's name (topic in "
        raise ImportStateError(
            [Finding(place_of(text, start, file), "", f"{message}cluster.state.files, --topic of planner import)")]
        )
    entries = []
    for number, brokers in enumerate(text.strip(' \t\r\n"').split(",")):
        replicas = tuple(map(int, brokers.split(":")))
        place = place_of(text, start, file)
        entries.append(AssignmentEntry(place, f"{topic}-{number}", topic, Partition(number, replicas, replicas[0])))
        start += len(brokers) + 1
    return StatePart(TITLE, file, entries=tuple(entries), whole=True)
