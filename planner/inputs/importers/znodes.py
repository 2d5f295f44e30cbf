"""Reads Kafka's znodes: `/brokers/topics/T` (versions 1 to 3), `/brokers/ids/N`,
`/brokers/topics/T/partitions/N/state`, `/config/topics/T` and `/config/brokers/<default>`.

Only a znode's path says what it describes, so a file is named after it: a folder with the znodes' own paths, with a
topic's data in `brokers/topics/T`, `T.json` or `T/data`; or a name with hyphens, `znode-brokers-topics-T.json`. Source:
`kafka.zk.ZkData` (TopicZNode, BrokerIdZNode, TopicPartitionStateZNode, ConfigEntityZNode).
"""

import re
from typing import Any, Literal

from planner.inputs.importers.brokers_and_configs import as_topics_inherit
from planner.inputs.importers.state_parts import (
    AssignmentEntry,
    Rank,
    RegisteredBroker,
    RunningReassignment,
    StatePart,
    begins_object,
    is_id,
    is_ids,
    read_alone,
    shown,
    sound,
)
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "a znode"
_TOPIC = re.compile(r"(?:.*?[/-])?brokers[/-]topics[/-]([^/]+?)(?:/data)?")
_BROKER = re.compile(r"(?:.*?[/-])?brokers[/-]ids[/-]([0-9]{1,10})(?:/data)?", re.ASCII)
_STATE = re.compile(r"(?:.*?[/-])?brokers[/-]topics[/-]([^/]+)[/-]partitions[/-]([0-9]{1,10})[/-]state", re.ASCII)
_CONFIG = re.compile(r"(?:.*?[/-])?config[/-](topics|brokers)[/-]([^/]+?)(?:/data)?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


def recognizes(text: str) -> bool:
    """True for the JSON of one of these kinds of znodes."""
    return begins_object(text) and _kind(text) is not None


def _kind(text: str) -> Literal["topic", "state", "config", "broker"] | None:
    if re.search(r'"partitions"\s*:\s*\{', text):
        return "topic"
    if '"leader_epoch"' in text and '"isr"' in text:
        return "state"
    if re.search(r'"config"\s*:\s*\{', text) and '"version"' in text:
        return "config"
    if '"jmx_port"' in text or ('"host"' in text and '"port"' in text and '"version"' in text):
        return "broker"
    return None


def read_part(text: str, file: str, topic: str | None = None) -> StatePart:
    """The state in a znode. `topic` is its topic if the path doesn't name one. ImportStateError for each error."""
    value, place = read_alone(text, file)
    match _kind(text):
        case "topic":
            return _topic(value, place, topic or _path_parts(_TOPIC, place, "brokers/topics/TOPIC")[0])
        case "state":
            name, number = _path_parts(_STATE, place, "brokers/topics/TOPIC/partitions/N/state")
            leader, isr = value.get("leader"), value.get("isr")
            if leader != -1 and not is_id(leader):
                message = f"{shown(leader)} isn't a broker; allowed: an id, or -1"
                raise ImportStateError([Finding(place, "leader", message)])
            if not is_ids(isr):
                message = f"{shown(isr)} isn't possible here; allowed: a list of ids"
                raise ImportStateError([Finding(place, "isr", message)])
            leader_and_isr = None if leader == -1 else leader, tuple(isr or ())
            return StatePart(TITLE, file, Rank.ZNODES, leaders={(topic or name, int(number)): leader_and_isr})
        case "config":
            kind, name = _path_parts(_CONFIG, place, "config/topics/TOPIC or config/brokers/<default>")
            return _config(value, place, kind, name)
    broker, rack = int(_path_parts(_BROKER, place, "brokers/ids/N")[0]), value.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ImportStateError([Finding(place, "rack", f"{shown(rack)} isn't a rack; allowed: text")])
    return StatePart(TITLE, file, Rank.ZNODES, brokers=(RegisteredBroker(place, broker, rack or None),))


def _path_parts(pattern: re.Pattern[str], place: Place, layout: str) -> tuple[str, ...]:
    ending = next((each for each in (".json", ".txt") if place.file.endswith(each)), "")
    match = pattern.fullmatch(place.file.removesuffix(ending))
    if match is None:
        allowed = f"a path that ends in {layout}, or with hyphens in the place of slashes (and .json, if you like)"
        message = f"the file's name doesn't say which znode it is; allowed: {allowed}"
        raise ImportStateError([Finding(place, "", message)])
    return match.groups()


def _topic(value: dict[str, Any], place: Place, topic: str) -> StatePart:
    version = value.get("version")
    if version not in (1, 2, 3):
        message = f"{shown(version)} isn't a version of /brokers/topics/{topic}; allowed: 1, 2, 3"
        raise ImportStateError([Finding(place, "version", message)])
    keys = ("partitions", "adding_replicas", "removing_replicas")
    replicas, adding, removing = (_lists(value.get(key, {}), key, place) for key in keys)
    if not replicas:
        raise ImportStateError([Finding(place, "partitions", "is empty; allowed: at least one partition")])
    entries = tuple(
        AssignmentEntry(
            place, f"partitions.{number}", topic, Partition(number, brokers, brokers[0] if brokers else None)
        )
        for number, brokers in sorted(replicas.items())
    )
    numbers = sorted({number for each in (adding, removing) for number, brokers in each.items() if brokers})
    moving = tuple(
        RunningReassignment(
            place, topic, each, adding.get(each, ()), removing.get(each, ()), replicas.get(each), f"partitions.{each}"
        )
        for each in numbers
    )
    return StatePart(TITLE, place.file, Rank.ZNODES, entries, complete=True, moving=moving)


def _lists(value: Any, key: str, place: Place) -> dict[int, tuple[int, ...]]:
    if not isinstance(value, dict):
        raise ImportStateError([Finding(place, key, f"{shown(value)} isn't possible here; allowed: a JSON object")])
    sound(
        Finding(place, f"{key}.{number[:20]}", f"{shown(brokers)} isn't possible here; allowed: a list of brokers' ids")
        for number, brokers in value.items()
        if not _NUMBER.fullmatch(number) or not is_ids(brokers)
    )
    return {int(number): tuple(brokers) for number, brokers in value.items()}


def _config(value: dict[str, Any], place: Place, kind: str, name: str) -> StatePart:
    """A topic's own configuration, or what brokers set for all topics. Ignores the configuration of a single broker."""
    pairs = value.get("config")
    if not isinstance(pairs, dict) or not all(_KEY.fullmatch(key) and isinstance(pairs[key], str) for key in pairs):
        message = f"{shown(pairs)} isn't possible here; allowed: a JSON object of configuration keys and texts"
        raise ImportStateError([Finding(place, "config", message)])
    config = tuple(sorted(pairs.items()))
    if kind == "topics":
        return StatePart(TITLE, place.file, Rank.ZNODES, configs={name: config})
    if name != "<default>":
        return StatePart(TITLE, place.file, Rank.ZNODES)
    return StatePart(TITLE, place.file, Rank.ZNODES, config_defaults=as_topics_inherit(dict(config)))
