"""What `terraform show -json` prints of a state or a plan: what `kafka_topic` resources are declared to be.

A state's resources are under `values`, a plan's changes under `resource_changes`. Everything else in them, which may
hold secrets, is passed over. Source: Terraform's JSON output format, major version 1; Mongey's Kafka provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.inputs.importers.assignment_entries import TOPIC_NAME, Config
from planner.inputs.importers.json_text import read_alone, shown
from planner.inputs.importers.state_parts import StatePart, TopicTarget
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "terraform show -json"
_RESOURCE = "kafka_topic"
_CONFIG_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)


def recognises(text: str) -> bool:
    """True for a JSON object with Terraform's version in it."""
    return bool(re.match(r"\s*\{", text)) and '"format_version"' in text and '"terraform_version"' in text


def read_part(text: str, file: str) -> StatePart:
    """The topics as they are declared, and for a plan as they will be. ImportStateError names each bad resource."""
    value, place = read_alone(text, file)
    version = value.get("format_version")
    if not isinstance(version, str) or version.split(".")[0] != "1":
        message = f"{shown(version)} isn't a version that is known here; allowed: 1 and its minor versions"
        raise ImportStateError([Finding(place, "format_version", message)])
    targets: dict[str, TopicTarget] = {}
    findings: list[Finding] = []
    for address, declared in _declared(value):
        found = _target(address, declared, place)
        if isinstance(found, Finding):
            findings.append(found)
        elif found.topic in targets:
            findings.append(Finding(place, address, f"{found.topic} is declared twice; allowed: each topic once"))
        else:
            targets[found.topic] = found
    if findings:
        raise ImportStateError(findings)
    return StatePart(TITLE, file, targets=tuple(targets.values()), configs=dict(_applied(value)))


def _applied(value: dict[str, Any]) -> Iterator[tuple[str, Config]]:
    """Topic to the configuration that Terraform has set on it: of a plan, what is there before it is applied.

    The provider keeps what topics set themselves, and nothing that they inherit.
    """
    changes = value.get("resource_changes")
    if isinstance(changes, list):
        rows = [each.get("change") for each in changes if isinstance(each, dict) and each.get("type") == _RESOURCE]
        found = [each.get("before") for each in rows if isinstance(each, dict)]
    else:
        found = [values for _, values in _declared(value)]
    for topic in found:
        if isinstance(topic, dict) and isinstance(topic.get("name"), str):
            yield topic["name"], _config(topic.get("config"))


def _declared(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Address and values of each topic; topics that a plan destroys aren't declared any more."""
    changes = value.get("resource_changes")
    if isinstance(changes, list):
        for item in changes:
            if isinstance(item, dict) and item.get("type") == _RESOURCE and isinstance(item.get("change"), dict):
                after = item["change"].get("after")
                if after is not None:
                    yield _address(item), after
        return
    for item in _resources(value):
        if item.get("type") == _RESOURCE and item.get("mode") == "managed":
            yield _address(item), item.get("values")


def _address(item: dict[str, Any]) -> str:
    return str(item.get("address"))[:200]


def _resources(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every resource of the root module and of those inside it."""
    values = value.get("values")
    modules = [values.get("root_module")] if isinstance(values, dict) else []
    while modules:
        module = modules.pop(0)
        if isinstance(module, dict):
            yield from (item for item in _list(module, "resources") if isinstance(item, dict))
            modules += _list(module, "child_modules")


def _list(value: dict[str, Any], key: str) -> list[Any]:
    items = value.get(key)
    return items if isinstance(items, list) else []


def _target(address: str, declared: Any, place: Place) -> TopicTarget | Finding:
    if not isinstance(declared, dict):
        return Finding(place, address, f"{shown(declared)} isn't possible here; allowed: a topic's values")
    name = declared.get("name")
    if not isinstance(name, str) or not TOPIC_NAME.fullmatch(name):
        return Finding(place, f"{address}.name", f"{shown(name)} isn't a topic's name; allowed: one that Kafka takes")
    counts = [declared.get(key) for key in ("partitions", "replication_factor")]
    for key, count in zip(("partitions", "replication_factor"), counts, strict=True):
        # A plan leaves out what is only known after it was applied.
        if count is not None and not (type(count) is int and 1 <= count < 2**31):
            return Finding(place, f"{address}.{key}", f"{shown(count)} isn't possible here; allowed: 1, 2, 3 …")
    return TopicTarget(place, name, counts[0], counts[1], _config(declared.get("config")))


def _config(config: Any) -> Config:
    """What the topic is declared to have set; values that aren't known yet are passed over."""
    items = config.items() if isinstance(config, dict) else ()
    return tuple(sorted((key, value) for key, value in items if isinstance(value, str) and _CONFIG_KEY.fullmatch(key)))
