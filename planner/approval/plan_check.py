"""Checks that the approved plan is the one that would run: its folder against plan.json, the clock and the cluster.

This module reads the files and the clock, and says when a plan has expired. `folder_check` decides what counts as
changed, `plan_against_cluster` what counts as stale.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Generic, TypeVar

from planner import __version__
from planner.approval import plan_against_cluster
from planner.approval.changes_since_plan import ChangesSincePlan, Sources, compare_states, read_now
from planner.approval.plan_against_cluster import Difference, Fit, Standing
from planner.export import folder_check, templated_files
from planner.export.folder_check import SUMS, FolderCheck, FolderEntry
from planner.model import amounts, file_reading
from planner.model.errors import SetupError, StalePlanError
from planner.model.formats import first_lines
from planner.plan import bound_json, headline, plan_file
from planner.plan.document import codec, plan_types
from planner.plan.document.plan_types import Plan, RestartDocument
from planner.sweep import candidates_file, sweep_result

T = TypeVar("T", Plan, RestartDocument)

LINES_SHOWN = 20


@dataclass(frozen=True)
class Refusal:
    """One reason not to carry a plan out: what is wrong, in which places, and what to do."""

    problem: str
    lines: tuple[str, ...] = ()
    remedy: str = ""

    def __str__(self) -> str:
        return "\n".join(self.text_lines())

    def text_lines(self) -> Iterator[str]:
        """The refusal, line by line."""
        yield f"{self.problem}:" if self.lines else self.problem
        yield from (f"  {line}" for line in first_lines(self.lines, LINES_SHOWN))
        yield from self.remedy.split("\n") if self.remedy else ()


@dataclass(frozen=True)
class CheckResult(Generic[T]):
    """A plan or a restart, the reasons not to carry it out, the state of its folder, and how a plan fits the cluster.

    `folder` is None if only its JSON was given; `fit` and `since` are None if no state was given.
    """

    plan_or_restart: T
    refusals: tuple[Refusal, ...]
    folder: FolderCheck | None
    fit: Fit | None = None
    since: ChangesSincePlan | None = None


def require_none(refusals: tuple[Refusal, ...]) -> None:
    """StalePlanError with every refusal, if there is one."""
    if refusals:
        raise StalePlanError(*(line for each in refusals for line in each.text_lines()))


@dataclass(frozen=True)
class CheckOptions:
    """What a check refuses besides changed files, and the time that it uses: the clock's if `now` is None.

    If `plan_id` is given, it refuses any other plan; with `strict`, the operator's own files, which are otherwise only
    listed; with `strict_state`, a cluster that changed outside the plan.
    """

    plan_id: str | None = None
    strict: bool = False
    strict_state: bool = False
    now: datetime | None = None


# Makes the files of a plan's folder from plan.json again: relative path → bytes.
Render = Callable[[Plan], Mapping[str, bytes]]


def check(path: Path, sources: Sources, render: Render, options: CheckOptions = CheckOptions()) -> CheckResult[Plan]:
    """Checks a plan.json, or a plan's folder, against its files, the clock, and the cluster if `sources` are given."""
    plan = plan_file.read(path)
    files = _check_folder(path, plan, render(plan)) if path.is_dir() else None
    if options.strict_state and not sources.any:
        raise SetupError("--strict-state needs the cluster's state; allowed: with --state or --bootstrap-servers")
    now = read_now(sources, with_log_dirs=any(row.log_dirs for row in plan.partitions)) if sources.any else None
    fit = None if now is None else plan_against_cluster.fit(plan, now)
    changes = None if now is None else compare_states(plan, now)
    return CheckResult(plan, tuple(_refusals(path, plan, options, files, fit, changes)), files, fit, changes)


def check_restart(
    path: Path, render: Callable[[RestartDocument], Mapping[str, bytes]], options: CheckOptions = CheckOptions()
) -> CheckResult[RestartDocument]:
    """Checks a restart.json; a restart's folder also against the files that restart.json gives.

    The playbook itself compares the steps with the cluster, before any broker restarts.
    """
    file, data = file_reading.read_plan_file(path, plan_types.RESTART_FILE, "a restart")
    restart = codec.decode_restart(data, str(file))
    files, refusals = None, list[Refusal]()
    if options.plan_id not in (None, restart.restart_id):
        refusals.append(Refusal(f"{path}: is restart {restart.restart_id}, approved was {options.plan_id}"))
    if path.is_dir():
        digests = {name: file_reading.digest(content) for name, content in render(restart).items()}
        # restart.json has only the digest of today's replica lists.
        digests[f"{templated_files.ROLE}/files/{plan_types.STATES_FILE}"] = restart.states_sha256
        digests[SUMS] = file_reading.digest(folder_check.sums(digests))
        files = folder_check.compare_folder(digests, folder_check.entries(path))
        if files.differences:
            refusals.append(_changed_files(path, f"restart {restart.restart_id[:12]}", restart.planner_version, files))
        if options.strict and files.own:
            refusals.append(_own_files(path, files))
    return CheckResult(restart, tuple(refusals), files)


def _refusals(
    path: Path,
    plan: Plan,
    options: CheckOptions,
    files: FolderCheck | None,
    fit: Fit | None,
    changes: ChangesSincePlan | None,
) -> Iterator[Refusal]:
    if options.plan_id not in (None, plan.plan_id):
        yield Refusal(f"{path}: is plan {plan.plan_id}, approved was plan {options.plan_id}")
    if plan.validity is not None and (expiry := expired(plan, options.now or datetime.now(UTC))):
        yield Refusal(
            f"{expiry}: its state was captured at {plan.validity.captured_at}; capture the state again and plan again, "
            "or resume what was begun (planner resume)"
        )
    if files is not None and files.differences:
        yield _changed_files(path, f"plan {plan.plan_id[:12]}", plan.planner_version, files)
    if fit is not None and fit.stale:
        finish = ", or finish what was begun with planner resume" if fit.resumable else ""
        start = "start what isn't live, or " if any(each.kind == "broker" for each in fit.stale) else ""
        yield Refusal(
            f"{path}: plan {plan.plan_id[:12]} doesn't fit the cluster as it is now",
            tuple(str(each) for each in (*fit.notes, *fit.stale) if each.refuses or each.kind == "sources"),
            f"{start}capture the state again and plan again{finish}",
        )
    if options.strict and files is not None and files.own:
        yield _own_files(path, files)
    if options.strict_state and fit is not None and changes is not None:
        outside = (*map(str, fit.notes), *(changes.sentences() if changes.changed else ()))
        if outside:
            yield Refusal(f"{path}: the cluster isn't as it was when the plan was made (--strict-state)", outside)


def _own_files(path: Path, files: FolderCheck) -> Refusal:
    """The refusal of the operator's own files, for --strict."""
    return Refusal(
        f"{path}: contains files of your own, which can't be checked (--strict)",
        tuple(map(str, files.own)),
        "keep your own files outside the folder: ansible-playbook -i INVENTORY PLAYBOOK",
    )


def parse_now(text: str | None, option: str = "--now") -> datetime | None:
    """The moment that an option gives, None without the option; SetupError if the text isn't a moment."""
    try:
        return None if text is None else amounts.parse_moment(text)
    except ValueError:
        raise SetupError(f"{option} {text!r} isn't a moment; allowed: {amounts.MOMENT_ALLOWED}") from None


# Clocks of two machines may differ.
_CLOCKS_APART = timedelta(hours=1)


def require_past(text: str | None, option: str) -> None:
    """SetupError if a state is captured later than now, because its plan would stay valid for too long."""
    moment, now = parse_now(text, option), datetime.now(UTC)
    if moment is not None and moment > now + _CLOCKS_APART:
        raise SetupError(
            f"{option} {text!r} is in the future, now it is {amounts.moment_text(now)}; allowed: a past moment"
        )


_DIGEST = re.compile(r"[0-9a-f]{64}")


def parse_plan_id(text: str | None) -> str | None:
    """The plan id that an option gives, None without the option; SetupError for a partial id, which can be forged."""
    if text is not None and not _DIGEST.fullmatch(text):
        raise SetupError(f"--plan-id is {text[:80]!r}; allowed: all 64 characters of a plan_id, as plan.json has it")
    return text


def _changed_files(path: Path, name: str, made_by: str | None, files: FolderCheck) -> Refusal:
    """The refusal of a folder that was changed, or made by another planner; `name` is like `plan 1a2b`."""
    kind = name.split(maxsplit=1)[0]
    maker = {"plan": "planner render", "restart": "planner restart"}[kind]
    mend = f"{maker} writes the files of a {kind}.json again; another version of the planner may write other files"
    if made_by != __version__:
        # This planner can't render the files, so it compares them only with the folder's own digests.
        return Refusal(
            f"{path}: was made by planner {made_by}; this is planner {__version__}, which makes other files from "
            f"a {kind}.json, so it can't tell whether these were changed",
            tuple(map(str, folder_check.compare_with_list(path).differences)),
            f"check with planner {made_by}, or write the files again with this one ({maker}) and review them",
        )
    # Libraries write these files, and another version of a library may write other bytes.
    drawn = ("report.html", candidates_file.FILE, SUMS)
    only_drawn = all(
        each.what != folder_check.MISSING and (each.path in drawn or each.path.startswith("plots/"))
        for each in files.differences
    )
    remedy = f"{_DRAWN}\n{mend}" if only_drawn else mend
    return Refusal(f"{path}: not as it was made ({name})", tuple(map(str, files.differences)), remedy)


_LIBRARIES = ("matplotlib", "jinja2", "markdown-it-py", "pyarrow")
_DRAWN = (
    f"only plots and pages differ: other versions of {', '.join(_LIBRARIES)} than the plan was made with can cause "
    f"that (here: {', '.join(version(name) for name in _LIBRARIES)}); install the same versions and check again"
)


def _check_folder(folder: Path, plan: Plan, rendered: Mapping[str, bytes]) -> FolderCheck:
    """Compares a plan's folder with the files that its plan.json gives, rendered again or known by their digest."""
    entries, listed_sums = folder_check.entries(folder), folder_check.listed_in(folder)
    digests = {path: file_reading.digest(content) for path, content in rendered.items()}
    sums = dict(digests)
    for path, sha256 in bound_by_digest(folder, plan, entries).items():
        # A folder that was rendered from a plan.json alone has none of these files, and doesn't list them.
        if path in entries or path in listed_sums:
            digests[path] = sha256
            sums[path] = listed_sums.get(path, sha256) if path == candidates_file.FILE else sha256
    digests[SUMS] = file_reading.digest(folder_check.sums(sums))
    return folder_check.compare_folder(digests, entries)


def bound_by_digest(folder: Path, plan: Plan, entries: Mapping[str, FolderEntry]) -> dict[str, str]:
    """The digests of the files that can't be rendered again: the bound's certificate and the table of candidates."""
    digests = {} if plan.bound.sha256 is None else {bound_json.FILE: plan.bound.sha256}
    rows, entry = plan.candidates.rows_sha256, entries.get(candidates_file.FILE)
    if rows is not None:
        digests[candidates_file.FILE] = ""  # matches no file
        if entry is not None and entry.kind == "file":
            content = (folder / candidates_file.FILE).read_bytes()
            if candidates_file.is_of(content, sweep_result.most_rows(plan.candidates.by_strategy), rows):
                digests[candidates_file.FILE] = file_reading.digest(content)
    return digests


FORMAT_VERSION = "1.0"


def document(checked: CheckResult[Plan] | CheckResult[RestartDocument]) -> dict[str, object]:
    """The whole check as JSON values, even of a refused plan; `state` is null if no state was given."""
    files, step, until, state = checked.folder or FolderCheck(), "", None, None
    source = checked.plan_or_restart
    if isinstance(source, RestartDocument):
        checked_id = source.restart_id
    else:
        checked_id, until, step = source.plan_id, source.valid_until, headline.first_step(source)
        state = None if checked.fit is None or checked.since is None else _state(checked.fit, checked.since)
    return {
        "format_version": FORMAT_VERSION,
        "plan_id": checked_id,
        "planner_version": source.planner_version,
        "first_step": step or None,
        "valid_until": until,
        "approved": not checked.refusals,
        "refusals": [str(each) for each in checked.refusals],
        "files": files.files,
        "differences": [asdict(each) for each in files.differences],
        "operators_files": [asdict(each) for each in files.own],
        "state": state,
    }


def _state(fit: Fit, since: ChangesSincePlan) -> dict[str, object]:
    counts = Counter(fit.standings.values())
    return {
        "brokers_known": fit.brokers_known,
        "partitions": {standing.name.lower(): counts[standing] for standing in Standing},
        "moving": fit.moving,
        "stale": [_difference(each) for each in fit.stale],
        "notes": [_difference(each) for each in fit.notes],
        "outside": {
            "partitions_changed": since.partitions,
            "other_replicas": len(since.replicas),
            "another_leader": len(since.leaders),
            "new": since.added,
            "gone": since.removed,
            "topics_new": list(since.topics_new),
            "topics_gone": list(since.topics_gone),
            "size_bytes_before": since.bytes_before,
            "size_bytes_now": since.bytes_now,
            "unnamed": since.unnamed,
            "configs": [each._asdict() for each in since.configs],
        },
    }


def _difference(each: Difference) -> dict[str, str]:
    return {"kind": each.kind, "subject": each.subject, "message": each.message}


def expired(plan: Plan, now: datetime) -> str | None:
    """Says that the plan has expired at this moment; None if it hasn't, or never expires."""
    moment = amounts.moment_text(now)
    if plan.valid_until is None or moment < plan.valid_until:
        return None
    return f"plan {plan.plan_id[:12]} was valid until {plan.valid_until}, now it is {moment}"
