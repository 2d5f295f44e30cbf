"""The golden plans of tests/cases as plans of this format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from planner.model.quoting import canonical_json

GOLDEN = sorted((Path(__file__).parent / "cases").glob("*/plan.json"))


def golden(path: Path) -> dict[str, Any]:
    """A golden plan as JSON."""
    return with_id(json.loads(path.read_bytes()) | {"format_version": "2.0"})


def with_id(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the id of its content, worked out without the codec."""
    body = {key: value for key, value in document.items() if key != "plan_id"}
    return {"plan_id": hashlib.sha256(canonical_json(body).encode()).hexdigest(), **body}


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value in a place; `...` takes the key away."""
    copy = deepcopy(document)
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy
