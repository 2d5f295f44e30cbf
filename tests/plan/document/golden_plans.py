"""The golden plans of tests/cases, and changed copies of them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from folders import TESTS

GOLDEN = sorted((TESTS / "cases").glob("*/plan.json"))


def golden(path: Path) -> dict[str, Any]:
    """A golden plan as JSON."""
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at this path; `...` removes the key."""
    copy = deepcopy(document)
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy
