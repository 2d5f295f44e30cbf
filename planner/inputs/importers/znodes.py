"""Kafka's znodes: `/brokers/topics/T` (versions 1 to 3), `/brokers/ids/N`, `/brokers/topics/T/partitions/N/state`,
`/config/topics/T` and `/config/brokers/<default>`.

What a znode is about stands in its path alone. So a file is named after it: a folder with the znodes' own paths, where
a topic's data is in `brokers/topics/T`, `T.json` or `T/data`, or one name with hyphens, `znode-brokers-topics-T.json`.
Source: `kafka.zk.ZkData` (TopicZNode, BrokerIdZNode, TopicPartitionStateZNode, ConfigEntityZNode).
"""

from __future__ import annotations

import re
from typing import Any

from planner.inputs.importers.assignment_entries import AssignmentEntry
from planner.inputs.importers.configs_describe import as_topics_inherit
from planner.inputs.importers.json_text import is_id, is_ids, read_alone, shown
from planner.inputs.importers.state_parts import BrokerSeen, Led, Rank, RunningReassignment, StatePart
from planner.model.cluster import Partition
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "a znode"
_TOPIC = re.compile(r"(?:.*?[/-])?brokers[/-]topics[/-]([^/]+?)(?:/data)?")
_BROKER = re.compile(r"(?:.*?[/-])?brokers[/-]ids[/-]([0-9]{1,10})(?:/data)?", re.ASCII)
_STATE = re.compile(r"(?:.*?[/-])?brokers[/-]topics[/-]([^/]+)[/-]partitions[/-]([0-9]{1,10})[/-]state", re.ASCII)
_CONFIG = re.compile(r"(?:.*?[/-])?config[/-](topics|brokers)[/-]([^/]+?)(?:/data)?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_ENDINGS = (".json", ".txt")


def recognises(text: str) -> bool:
    """True for the JSON of one of these kinds of znodes."""
    kinds = (_is_topic, _is_broker, _is_state, _is_config)
    return bool(re.match(r"\s*\{", text)) and any(is_kind(text) for is_kind in kinds)


def _is_topic(text: str) -> bool:
    return re.search(r'"partitions"\s*:\s*\{', text) is not None


def _is_broker(text: str) -> bool:
    return '"jmx_port"' in text or ('"host"' in text and '"port"' in text and '"version"' in text)


def _is_state(text: str) -> bool:
    return '"leader_epoch"' in text and '"isr"' in text


def _is_config(text: str) -> bool:
    return re.search(r'"config"\s*:\s*\{', text) is not None and '"version"' in text


def read_part(text: str, file: str, topic: str | None = None) -> StatePart:
    """What the znode says. `topic` names it where the path doesn't. ImportStateError for each fault."""
    value, place = read_alone(text, file)
    if _is_topic(text):
        return _topic(value, place, topic or _named(_TOPIC, place, "brokers/topics/TOPIC")[0])
    if _is_state(text):
        name, number = _named(_STATE, place, "brokers/topics/TOPIC/partitions/N/state")
        return StatePart(TITLE, file, Rank.ZNODES, led=(_led(value, place, topic or name, int(number)),))
    if _is_config(text):
        kind, name = _named(_CONFIG, place, "config/topics/TOPIC or config/brokers/<default>")
        return _config(value, place, kind, name)
    broker = int(_named(_BROKER, place, "brokers/ids/N")[0])
    return StatePart(TITLE, file, Rank.ZNODES, brokers=(_broker(value, place, broker),))


def _named(pattern: re.Pattern[str], place: Place, layout: str) -> tuple[str, ...]:
    """What the znode's path names, from the path of its file."""
    ending = next((each for each in _ENDINGS if place.file.endswith(each)), "")
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
    lists = {key: _lists(value.get(key, {}), key, place) for key in ("partitions", *_RUNNING)}
    if not lists["partitions"]:
        raise ImportStateError([Finding(place, "partitions", "is empty; allowed: at least one partition")])
    entries = tuple(
        AssignmentEntry(
            place, f"partitions.{number}", topic, Partition(number, replicas, replicas[0] if replicas else None)
        )
        for number, replicas in sorted(lists["partitions"].items())
    )
    return StatePart(TITLE, place.file, Rank.ZNODES, entries, whole=True, moving=_moving(lists, place, topic))


_RUNNING = ("adding_replicas", "removing_replicas")


def _lists(value: Any, key: str, place: Place) -> dict[int, tuple[int, ...]]:
    """Partition id to brokers."""
    if not isinstance(value, dict):
        raise ImportStateError([Finding(place, key, f"{shown(value)} isn't possible here; allowed: a JSON object")])
    findings = [
        Finding(place, f"{key}.{number[:20]}", f"{shown(brokers)} isn't possible here; allowed: a list of brokers' ids")
        for number, brokers in value.items()
        if not _NUMBER.fullmatch(number) or not is_ids(brokers)
    ]
    if findings:
        raise ImportStateError(findings)
    return {int(number): tuple(brokers) for number, brokers in value.items()}


def _moving(lists: dict[str, dict[int, tuple[int, ...]]], place: Place, topic: str) -> tuple[RunningReassignment, ...]:
    adding, removing = (lists[key] for key in _RUNNING)
    numbers = sorted({number for each in (adding, removing) for number, brokers in each.items() if brokers})
    return tuple(
        RunningReassignment(
            place,
            topic,
            number,
            adding.get(number, ()),
            removing.get(number, ()),
            lists["partitions"].get(number),
            f"partitions.{number}",
        )
        for number in numbers
    )


def _led(value: dict[str, Any], place: Place, topic: str, number: int) -> Led:
    leader, isr = value.get("leader"), value.get("isr")
    if leader != -1 and not is_id(leader):
        raise ImportStateError([Finding(place, "leader", f"{shown(leader)} isn't a broker; allowed: an id, or -1")])
    if not is_ids(isr):
        raise ImportStateError([Finding(place, "isr", f"{shown(isr)} isn't possible here; allowed: a list of ids")])
    return Led(place, topic, number, None if leader == -1 else leader, tuple(isr or ()))


def _config(value: dict[str, Any], place: Place, kind: str, name: str) -> StatePart:
    """A topic's own configuration, or what brokers set for all topics; that of one broker alone counts for nothing."""
    found = value.get("config")
    if not isinstance(found, dict) or not all(_KEY.fullmatch(key) and isinstance(found[key], str) for key in found):
        message = f"{shown(found)} isn't possible here; allowed: a JSON object of configuration keys and texts"
        raise ImportStateError([Finding(place, "config", message)])
    config = tuple(sorted(found.items()))
    if kind == "topics":
        return StatePart(TITLE, place.file, Rank.ZNODES, configs={name: config})
    if name != "<default>":
        return StatePart(TITLE, place.file, Rank.ZNODES)
    return StatePart(TITLE, place.file, Rank.ZNODES, config_defaults=as_topics_inherit(dict(config)))


def _broker(value: dict[str, Any], place: Place, broker: int) -> BrokerSeen:
    rack = value.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ImportStateError([Finding(place, "rack", f"{shown(rack)} isn't a rack; allowed: text")])
    return BrokerSeen(place, broker, rack or None)
