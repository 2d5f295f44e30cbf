"""What was approved is what runs: a plan's folder held against its digests, the clock, and the cluster as it is now.

Files and the clock are touched here; what counts as changed, expired or stale is said by `manifest`, `validity` and
`staleness`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner import manifest, output_folder, staleness, validity, workflow
from planner.errors import SetupError, StalePlanError
from planner.render import files as rendered
from planner.resume import remaining as resume_plan
from planner.staleness import Fit
from planner.state.sources import Sources, read_now

Plan = Mapping[str, Any]

_SHOWN = 20


@dataclass(frozen=True)
class Approved:
    """A plan that may be carried out; `files` is how many its folder has, 0 where a plan.json alone was given.

    `own` are the operator's files in it; `fit` is None where no state was given.
    """

    plan: Plan
    files: int
    own: tuple[str, ...]
    fit: Fit | None


@dataclass(frozen=True)
class Resumed:
    """What is left of a plan, as a document, and the paths written."""

    plan: Plan
    files: tuple[str, ...]


def check(path: Path, sources: Sources, now: datetime | None = None) -> Approved:
    """The plan of a folder, or a plan.json, unchanged, not expired, and fit for the cluster of `sources` where given.

    StalePlanError with everything that is otherwise, the first ones one by one, the rest counted. `now` is the clock's
    time where it isn't given.
    """
    plan = workflow.read_plan(path)
    found, count = _files(path, plan) if path.is_dir() else (manifest.Found(), 0)
    if not found.as_made:
        _refuse(f"{path}: not as it was made (plan {plan['plan_id'][:12]})", found.sentences(), _MEND)
    validity.require_valid(plan, now or datetime.now(UTC))
    fit = staleness.fit(plan, read_now(sources)) if sources.any else None
    if fit is not None and fit.stale:
        _refuse(
            f"{path}: plan {plan['plan_id'][:12]} doesn't fit the cluster as it is now",
            tuple(map(str, fit.stale)),
            "capture the state again and plan anew, or finish what was begun with planner resume",
        )
    return Approved(plan, count, found.own, fit)


_MEND = "planner render writes the files of a plan.json again"


def listed(lines: tuple[str, ...]) -> Iterator[str]:
    """The first lines, and how many more there are."""
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"and {len(lines) - _SHOWN:,} more"


def parse_now(text: str | None) -> datetime | None:
    """The moment of an option, None where it isn't given; SetupError for anything else."""
    try:
        return None if text is None else validity.parse_moment(text)
    except ValueError:
        raise SetupError(f"{text!r} isn't a moment; allowed: {validity.ALLOWED}") from None


def _refuse(what: str, lines: tuple[str, ...], remedy: str) -> None:
    raise StalePlanError("\n".join([f"{what}:", *(f"  {line}" for line in listed(lines)), f"{remedy}"]))


def _files(folder: Path, plan: Plan) -> tuple[manifest.Found, int]:
    """How a plan's folder differs from its digests, and how many files it has; and from what plan.json says."""
    file = folder / manifest.FILE
    try:
        made = manifest.listed(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError):
        raise StalePlanError(f"{file} can't be read: the folder isn't as it was made; {_MEND}") from None
    now = manifest.digests(folder)
    found = manifest.compare(made, now)
    if found.as_made:
        _require_said(folder, plan)
    return found, len(now)


def _require_said(folder: Path, plan: Plan) -> None:
    """The files that Kafka's tools take say what plan.json says, whatever the digests are: those may be made anew."""
    kafka = {path: content for path, content in rendered(plan).items() if _is_kafkas(path)}
    other = tuple(path for path, content in kafka.items() if _json(folder / path) != json.loads(content))
    if other:
        lines = tuple(f"{path} doesn't say what plan.json says" for path in other)
        _refuse(f"{folder}: not as it was made (plan {plan['plan_id'][:12]})", lines, _MEND)


def _is_kafkas(path: str) -> bool:
    return path.endswith(".json") and not path.startswith("terraform/")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def resume(path: Path, sources: Sources, out: Path, captured_at: str | None, *, leave_moved: bool) -> Resumed:
    """Write what is left of a plan, from the cluster as `sources` show it, as a whole plan's folder.

    StalePlanError where the plan was changed, or the cluster isn't on its way; UnsafePlanError where a gate is crossed.
    A plan that has expired may be resumed: what is left is a plan of its own, to be approved anew.
    """
    if not sources.any:
        raise SetupError("nothing to resume from; allowed: --state, --bootstrap-servers, or both")
    parse_now(captured_at)
    approved = check(path, Sources(), datetime.min.replace(tzinfo=UTC)).plan
    output_folder.check(out)
    named = any("log_dirs" in row for row in approved["partitions"])
    now = read_now(sources, with_log_dirs=named)
    document = resume_plan.resumed(approved, now, captured_at=captured_at, leave_moved=leave_moved)
    return Resumed(document, workflow.write_plan(out, document, {}))
