"""The JSON Schemas are made from the types, and the files in the repository are up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plan_schemas
import pytest
from golden_plans import GOLDEN, golden
from jsonschema import Draft202012Validator

from planner.model.document_fields import Section
from planner.plan.document.plan_types import Plan, RestartDocument


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a JSON value, the value included."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(child)


@pytest.mark.parametrize(
    ("file", "document"), [(plan_schemas.FILE, Plan), (plan_schemas.RESTART_FILE, RestartDocument)]
)
def test_the_files_are_up_to_date(file: Path, document: type[Section], pytestconfig: pytest.Config) -> None:
    """The schema files are as the types make them; `--update-goldens` writes them."""
    if pytestconfig.getoption("--update-goldens"):
        file.write_bytes(plan_schemas.written(document))
    assert plan_schemas.written(document) == file.read_bytes()


def test_it_is_a_schema() -> None:
    """The schema is valid for the draft that it names."""
    Draft202012Validator.check_schema(plan_schemas.schema())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_the_golden_plans_fit(path: Path) -> None:
    """All golden plans fit the schema."""
    assert [] == [error.message for error in Draft202012Validator(plan_schemas.schema()).iter_errors(golden(path))]


def test_every_property_is_described() -> None:
    """Every property has a description, and every object says which keys it may have."""
    found = [*nodes(plan_schemas.schema())]
    properties = [each for node in found for each in node.get("properties", {}).items()]

    assert 350 < len(properties)
    assert [] == [name for name, value in properties if not value.get("description", "").endswith(".")]
    assert [] == [node for node in found if node.get("type") == "object" and "additionalProperties" not in node]


def test_an_optional_key_is_left_out_and_never_null() -> None:
    """An optional key without a value is left out, and is never null."""
    growth = plan_schemas.schema()["properties"]["growth"]

    assert "#/$defs/GrowthSection" == growth["$ref"]
    assert "growth" not in plan_schemas.schema()["required"]
