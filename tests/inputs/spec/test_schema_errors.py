"""What the schema refuses, one sentence for each fault, and the schema itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bad_balance_specs import BALANCE_CASES
from bad_change_specs import CAPACITIES, CHANGE_CASES
from bad_cluster_specs import CLUSTER_CASES, assert_only_finding, each, findings, line
from bad_new_topic_specs import NEW_TOPIC_CASES
from jsonschema import Draft202012Validator

from planner.model.file_reading import resource

CASES = CLUSTER_CASES + CHANGE_CASES + BALANCE_CASES + NEW_TOPIC_CASES


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)


def test_quotes_are_advised_only_where_they_help(tmp_path: Path) -> None:
    """The message doesn't advise quotes for a number instead of a percentage, because quotes wouldn't help."""
    found = findings(tmp_path, line(4, CAPACITIES) + "limits: {disk_used: 80}\n")
    assert ["80 isn't possible here; allowed: a percentage above 0% and up to 100%, such as 80%"] == [
        finding.message for finding in found
    ]


def schema() -> dict[str, Any]:
    """The schema that is installed."""
    loaded: dict[str, Any] = json.loads(resource("schemas", "spec.schema.json").read_text(encoding="utf-8"))
    return loaded


def keys(part: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key in the schema, with its part of the schema."""
    if isinstance(part, dict):
        for name, inner in part.get("properties", {}).items():
            yield f"{path}.{name}", inner
        for name, inner in part.items():
            yield from keys(inner, f"{path}.{name}")


def test_the_schema_describes_each_key() -> None:
    """Each key of the schema has a description that is a sentence."""
    found = dict(keys(schema(), ""))
    assert 75 < len(found)
    assert [] == [name for name, part in found.items() if not part.get("description", "").endswith(".")]


def test_the_schema_allows_no_unknown_keys() -> None:
    """No mapping accepts unknown keys, except maps of names."""

    def mappings(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            if part.get("type") == "object":
                yield part
            for inner in part.values():
                yield from mappings(inner)

    found = list(mappings(schema()))
    assert 20 < len(found)
    assert [] == [part for part in found if part["additionalProperties"] is not False and "propertyNames" not in part]


def test_the_schema_is_valid() -> None:
    """The schema is valid JSON Schema of draft 2020-12, and its own defaults and examples satisfy it."""
    Draft202012Validator.check_schema(schema())
    rules = Draft202012Validator(schema())

    def stated(part: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(part, dict):
            yield from (
                (part, value) for value in (*part.get("examples", ()), *[part[k] for k in ("default",) if k in part])
            )
            for inner in part.values():
                yield from stated(inner)

    found = list(stated(schema()))
    assert 20 < len(found)
    bare = [({key: value for key, value in part.items() if key != "$id"}, value) for part, value in found]
    assert [] == [(part, value) for part, value in bare if not rules.evolve(schema=part).is_valid(value)]
