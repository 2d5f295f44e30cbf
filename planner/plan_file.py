"""Reads a plan.json, or the one in a plan's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner import file_reading, plan
from planner.errors import PlannerError, StalePlanError
from planner.file_reading import UnreadableError
from planner.plan_consistency import contradictions


def read(path: Path) -> dict[str, Any]:
    """The document; PlannerError where it isn't one of ours, was changed, or says two things of one."""
    try:
        file = path / "plan.json" if path.is_dir() else path
        document = file_reading.json_value(file_reading.read_bytes(file, file_reading.PLAN))
    except OSError as error:
        raise file_reading.unreadable(path, error) from None
    except UnreadableError as error:
        raise UnreadableError(f"{path}: can't be read as a plan: {error}") from None
    except ValueError as error:
        raise PlannerError(f"{path}: can't be read as a plan: {error}; allowed: a plan.json as it was made") from None
    try:
        plan.check_document(document, str(file))
        wrong = next(contradictions(document), None)
    except RecursionError:
        raise PlannerError(
            f"{file}: can't be read as a plan: it is nested too deeply; allowed: as it was made"
        ) from None
    except KeyError as error:  # of an older format, which may lack what came later, but not all
        raise StalePlanError(f"{file}: the key {error} is missing; allowed: a plan.json as it was made") from None
    if wrong is not None:
        raise StalePlanError(f"{file}: {wrong}: the plan was changed after it was made")
    return dict(document)
