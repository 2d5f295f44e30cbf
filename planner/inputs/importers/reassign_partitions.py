"""Reads input and output of `kafka-reassign-partitions`, and the string of `kafka-topics --replica-assignment`.

- A reassignment JSON, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`, alone or in the
  output of `--generate` and `--execute`; of the two assignments there, the current one is used.
- The running reassignments from `--list`: `topic-0: replicas: 1,2,4,3. adding: 4. removing: 3.`, one line per
  partition, or a message that there are none.
- The topics-to-move JSON of `--topics-to-move-json-file`: the topics that may move.
- A replica assignment, `0:1,1:0,0:1`: commas separate partitions, colons separate brokers. It doesn't name its
  topic.

Source: `org.apache.kafka.tools.reassign.ReassignPartitionsCommand` (`curReassignmentsToString`, `parseTopicsData`);
`org.apache.kafka.tools.TopicCommand`, `parseReplicaAssignment`.
"""

import re
from typing import Any

from planner.inputs.importers.state_parts import (
    TOPIC_NAME,
    AssignmentEntry,
    Rank,
    RunningReassignment,
    StatePart,
    begins_object,
    is_id,
    item_places,
    place_of,
    places,
    read_alone,
    read_object,
    refuse_rest,
    shown,
    sound,
)
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError, Place

_LIST = "kafka-reassign-partitions --list"
_CURRENT = "Current partition replica assignment"
_PROPOSED = "Proposed partition reassignment configuration"
_NONE_RUN = "No partition reassignments found."
_SOME_RUN = "Current partition reassignments:"
_IDS = r"[0-9]{1,10}(?:,[0-9]{1,10})*"
_RUNNING = re.compile(
    rf"(\S+)-([0-9]{{1,10}}): replicas: ({_IDS})\.(?: adding: ({_IDS})\.)?(?: removing: ({_IDS})\.)?", re.ASCII
)
_REPLICA_ASSIGNMENT = re.compile(
    r"\s*\"?[0-9]{1,10}(?::[0-9]{1,10})*(?:,[0-9]{1,10}(?::[0-9]{1,10})*)*\"?\s*", re.ASCII
)
_TO_MOVE = 'allowed: {"version":1,"topics":[{"topic":"t"}]} with at least one topic'
# The tools' headings are within so many first characters; log messages may come before them.
_HEAD_CHARACTERS = 4000


def is_reassignment(text: str) -> bool:
    """True for the tool's heading, or for a JSON object with a `partitions` list whose items name a topic."""
    return _CURRENT in text[:_HEAD_CHARACTERS] or (begins_object(text) and re.search(r'"topic"\s*:', text) is not None)


def read_reassignment(text: str, file: str) -> StatePart:
    """The listed partitions; their topics may have more. ImportStateError names each bad entry."""
    entries, end = _partitions_after(text, text.find(_CURRENT), file)
    if _CURRENT not in text:
        refuse_rest(text, end, file, "allowed: one reassignment, alone")
    return StatePart("a reassignment JSON", file, entries=entries)


def read_proposed(text: str, file: str) -> tuple[StatePart, StatePart | None]:
    """The partitions as a reassignment would leave them, and as `--generate` found them (None: not in the file).

    ImportStateError names each bad entry, and refuses the output of `--execute`: it has only the current assignment.
    """
    if _CURRENT not in text:
        return read_reassignment(text, file), None
    heading = text.find(_PROPOSED)
    if heading < 0:
        message = f"no {_PROPOSED!r} follows the current one; allowed: all that --generate prints, or one reassignment"
        raise ImportStateError([Finding(place_of(text, text.find(_CURRENT), file), "", message)])
    entries, end = _partitions_after(text, heading, file)
    refuse_rest(text, end, file, "allowed: all that --generate prints, alone")
    return StatePart("what --generate prints", file, entries=entries), read_reassignment(text[:heading], file)


def _partitions_after(text: str, heading: int, file: str) -> tuple[tuple[AssignmentEntry, ...], int]:
    """The partitions of the first JSON after the position `heading` (below 0: no heading), and where that JSON ends."""
    start = max(text.find("{", max(heading, 0)), 0)
    value, end = read_object(text, start, file)
    version, listed = value.get("version", 1), value.get("partitions")
    if version is True or version != 1 or not isinstance(listed, list) or not listed:
        problem = f"not a reassignment: version is {shown(version)}, partitions {shown(listed)}"
        message = problem + '; allowed: {"version":1,"partitions":[…]} with at least one partition'
        raise ImportStateError([Finding(place_of(text, start, file), "", message)])
    with_places = zip(listed, item_places(text, "partitions", start, file), strict=False)
    entries = sound(
        _partition_entry(item, f"partitions[{index}]", place) for index, (item, place) in enumerate(with_places)
    )
    return tuple(entries), end


def _partition_entry(item: Any, key: str, place: Place) -> AssignmentEntry | Finding:
    if not isinstance(item, dict):
        return Finding(place, key, 'isn\'t a partition; allowed: {"topic":"t","partition":0,"replicas":[1,2]}')
    topic, number, replicas = item.get("topic"), item.get("partition"), item.get("replicas")
    if not isinstance(topic, str):
        return Finding(place, f"{key}.topic", f"{shown(topic)} isn't a topic; allowed: text")
    if not is_id(number):
        return Finding(place, f"{key}.partition", f"{shown(number)} isn't a partition's id; allowed: 0, 1, 2 …")
    if not isinstance(replicas, list) or any(type(broker) is not int for broker in replicas):
        return Finding(place, f"{key}.replicas", f"{shown(replicas)} aren't replicas; allowed: a list of brokers' ids")
    return AssignmentEntry(place, key, topic, Partition(number, tuple(replicas), replicas[0] if replicas else None))


def is_list(text: str) -> bool:
    """True if one of the two headings of `--list` is near the beginning."""
    return any(words in text[:_HEAD_CHARACTERS] for words in (_NONE_RUN, _SOME_RUN))


def read_list(text: str, file: str) -> StatePart:
    """The partitions that are being reassigned, if any. ImportStateError names each bad line."""
    moving: list[RunningReassignment | Finding] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.strip()
        if not words or words in (_NONE_RUN, _SOME_RUN):
            continue
        place = Place(file, number, len(line) - len(line.lstrip()) + 1)
        match = _RUNNING.fullmatch(words)
        if match is None:
            excerpt = words if len(words) <= 60 else f"{words[:57]}..."
            moving.append(Finding(place, "", f"{excerpt!r} isn't a reassignment; allowed: what {_LIST} prints"))
            continue
        topic, partition, *lists = match.groups()
        replicas, adding, removing = (tuple(map(int, ids.split(","))) if ids else () for ids in lists)
        key = f"{topic}-{partition}"
        moving.append(RunningReassignment(place, topic, int(partition), adding, removing, replicas, key))
    return StatePart(_LIST, file, Rank.CLUSTER, moving=tuple(sound(moving)))


def is_topics_to_move(text: str) -> bool:
    """True for a JSON object with a list of topics and no partitions."""
    return begins_object(text) and re.search(r'"topics"\s*:\s*\[', text) is not None and '"partition' not in text


def read_topics_to_move(text: str, file: str) -> StatePart:
    """The topics that may move, in the file's order. ImportStateError names each bad entry."""
    value, place = read_alone(text, file)
    version, listed = value.get("version", 1), value.get("topics")
    if version is True or version != 1 or not isinstance(listed, list) or not listed:
        raise ImportStateError([Finding(place, "", f"not a list of topics to move; {_TO_MOVE}")])
    names = [item.get("topic") if isinstance(item, dict) else None for item in listed]
    topics = sound(
        name
        if isinstance(name, str) and TOPIC_NAME.fullmatch(name)
        else Finding(place, f"topics[{index}].topic", f"{shown(name)} isn't a topic; {_TO_MOVE}")
        for index, name in enumerate(names)
    )
    return StatePart("a topics-to-move JSON", file, only_topics=tuple(dict.fromkeys(topics)))


def is_replica_assignment(text: str) -> bool:
    """True for brokers' ids with colons and commas between them, and nothing else."""
    return _REPLICA_ASSIGNMENT.fullmatch(text) is not None


def read_replica_assignment(text: str, file: str, topic: str | None) -> StatePart:
    """The partitions of `topic`, each led by its first replica. ImportStateError if no topic is given."""
    start = len(text) - len(text.lstrip(' \t\r\n"'))
    if topic is None:
        message = (
            "a replica assignment doesn't say of which topic; allowed: with the topic's name (topic in "
            "cluster.state.files), or the YAML that planner import --topic NAME makes of it"
        )
        raise ImportStateError([Finding(place_of(text, start, file), "", message)])
    entries, place = [], places(text, file)
    for number, brokers in enumerate(text.strip(' \t\r\n"').split(",")):
        replicas = tuple(map(int, brokers.split(":")))
        partition = Partition(number, replicas, replicas[0])
        entries.append(AssignmentEntry(place(start), f"{topic}-{number}", topic, partition))
        start += len(brokers) + 1
    return StatePart("a replica assignment", file, entries=tuple(entries), complete=True)
