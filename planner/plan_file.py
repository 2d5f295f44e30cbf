"""Reads a plan.json, or the one in a plan's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner import plan
from planner.errors import PlannerError


def read(path: Path) -> dict[str, Any]:
    """The document; PlannerError where it isn't one of ours or was changed."""
    file = path / "plan.json" if path.is_dir() else path
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlannerError(f"{file}: can't be read as a plan: {error}") from error
    plan.check_document(document, str(file))
    return dict(document)
