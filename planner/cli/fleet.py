"""Several specs at once: their files, the folder of each plan, the errors of all, and the summary.

Either every cluster of a fleet gets its plan, or none does.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from planner.model import formats
from planner.model.errors import PlannerError, SetupError, SpecError, UnsafePlanError
from planner.plan import headline
from planner.plan.document.plan_types import Plan
from planner.report.view import GAP, Column, Lines, Name, Quantity, Sentence, Table, View, ViewSection

T = TypeVar("T")

_LONGEST_NAME = 40
_LONGEST_VERDICT = 400


@dataclass(frozen=True)
class FleetJob:
    """A spec's file, and the folder of its plan."""

    spec: Path
    folder: Path


@dataclass(frozen=True)
class FleetPlan:
    """A finished job: the plan, and the paths of the written files."""

    job: FleetJob
    plan: Plan
    files: tuple[str, ...]


def is_fleet(arguments: Sequence[Path]) -> bool:
    """True for several specs, and for any pattern, so that folders don't depend on how many files it matches."""
    return len(arguments) != 1 or _is_pattern(arguments[0])


def specs(arguments: Sequence[Path]) -> tuple[Path, ...]:
    """The files that the command line names, directly or by shell-style patterns; SetupError if a pattern matches none.

    A pattern's files are sorted by name; `**` includes folders inside.
    """
    found: list[Path] = []
    for argument in arguments:
        if not _is_pattern(argument):
            found.append(argument)
            continue
        names = glob(str(argument), recursive=True)  # noqa: PTH207  pathlib's takes hidden files, which no shell does
        files = [path for path in map(Path, sorted(names)) if path.is_file()]
        if not files:
            raise SetupError(
                f"{argument}: no file matches; allowed: spec files, or a pattern such as 'clusters/*.yaml'"
            )
        found += files
    return tuple(found)


def jobs(arguments: Sequence[Path], out: Path | None) -> tuple[FleetJob, ...]:
    """The specs, each with its folder: the spec's path with `.plan`; with `out`, that folder, or for a fleet one in it.

    SetupError if a pattern matches nothing, or if two specs have the same folder.
    """
    fleet = is_fleet(arguments)
    found: dict[str, FleetJob] = {}
    for spec in specs(arguments):
        folder = spec.with_suffix(".plan") if out is None else out / spec.stem if fleet else out
        job = FleetJob(spec, folder)
        other = found.setdefault(os.path.realpath(folder), job)
        if other is not job:
            raise SetupError(
                f"{other.spec} and {spec} would both be written to {folder}; allowed: one spec a folder, "
                "so specs of different names, each named once"
            )
    return tuple(found.values())


def each(found: Sequence[Path], step: Callable[[int], T]) -> tuple[T, ...]:
    """The result of `step` for each spec, by number; if any is refused, one error with all errors."""
    made: list[T] = []
    refused: list[tuple[Path, PlannerError]] = []
    for number, spec in enumerate(found):
        try:
            made.append(step(number))
        except PlannerError as error:
            refused.append((spec, error))
    if refused:
        raise refused[0][1] if len(found) == 1 else _all_refused(refused, len(found))
    return tuple(made)


def summary(planned: FleetPlan) -> dict[str, Any]:
    """The row of a cluster: verdict, what moves, the gap to the bound in percent, and the plan's folder."""
    plan, own = planned.plan, planned.plan.own_row
    known = plan.cluster.sizes_known
    return {
        "cluster": plan.cluster.name,
        "spec": str(planned.job.spec),
        "verdict": _verdict(plan),
        "complete": plan.complete,
        "bytes_moved": own.bytes_moved if known else None,
        "replicas_moved": own.replicas_moved,
        "leaders_changed": own.leaders_changed,
        "least_bytes_moved": plan.bound.least_bytes_moved if known else None,
        "gap_percent": plan.bound.gap_percent,
        "candidates": plan.candidates.evaluated,
        "folder": str(planned.job.folder),
        "plan_id": plan.plan_id,
    }


def view(rows: Sequence[dict[str, Any]]) -> View:
    """The summary for people."""
    column = Column[dict[str, Any]]
    columns = (
        column("Cluster", lambda row: Sentence(row["cluster"], _LONGEST_NAME), numeric=False),
        column("Verdict", lambda row: Sentence(row["verdict"], _LONGEST_VERDICT), numeric=False),
        column("Copied", lambda row: Quantity(row["bytes_moved"], "bytes")),
        column("Replicas", itemgetter("replicas_moved")),
        column("Leaders", itemgetter("leaders_changed")),
        column("Above the minimum", _above_least),
        column("Candidates tried", itemgetter("candidates")),
        column("Folder", lambda row: Name(row["folder"]), numeric=False),
    )
    following = "Next: read report.html in each folder, then cd FOLDER/ansible && ansible-playbook apply.yml --check"
    plans = Counter(row["cluster"] for row in rows)
    again = [
        Sentence(f"{name} has {count} plans, each made as if the others weren't: apply one of them", _LONGEST_VERDICT)
        for name, count in plans.items()
        if count > 1
    ]
    return View("", (ViewSection("", (Table("cluster", rows, columns), Lines((*again, following)))),))


def _above_least(row: dict[str, Any]) -> Quantity:
    """How far above the proven minimum, in percent; unknown if bytes are, or if the plan leaves something to do."""
    moved = row["bytes_moved"]
    known = row["complete"] and moved is not None
    return Quantity(formats.above_bound(moved or 0, row["least_bytes_moved"]) if known else None, GAP)


def _is_pattern(argument: Path) -> bool:
    """True for a pattern. A path that exists is a file, even if its name looks like a pattern."""
    return any(sign in str(argument) for sign in "*?[") and not argument.exists()


def _all_refused(refused: Sequence[tuple[Path, PlannerError]], count: int) -> PlannerError:
    """All errors as one. The exit code is that of an exceeded limit only if all errors are of this kind."""
    errors = [error for _, error in refused]
    if all(isinstance(error, SpecError) for error in errors):
        return SpecError(finding for error in errors if isinstance(error, SpecError) for finding in error.findings)
    kind = UnsafePlanError if all(isinstance(error, UnsafePlanError) for error in errors) else PlannerError
    lines: list[str] = []
    for spec, error in refused:
        # Findings already name their files.
        lines += error.lines if isinstance(error, SpecError) else (f"{spec}: {error.lines[0]}", *error.lines[1:])
    which = "one of them is" if len(refused) == 1 else f"{len(refused)} of them are"
    return kind(f"no plan was written for any of the {count} specs, as {which} refused:", *lines)


def _verdict(plan: Plan) -> str:
    """A few words: whether there is something to do, and what needs attention."""
    done = (plan.changes.rebalance != "none" and headline.balance_missed(plan)) or "as asked"
    parts: Iterable[str] = (
        headline.first_step_lead(plan) or (done if plan.has_something_to_do else "nothing to do"),
        *headline.racks(plan),
        formats.counted(len(plan.warnings), "warning") if plan.warnings else "",
    )
    return ", ".join(filter(None, parts))
