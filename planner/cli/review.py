"""`planner show`, `diff`, `check` and `resume`: show a plan, and compare it with another plan or with the cluster."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click

from planner.approval import plan_check, plan_diff, resumed_plan
from planner.approval.changes_since_plan import Sources, read_now, with_load
from planner.approval.plan_check import CheckOptions, CheckResult
from planner.cli import one_spec, output
from planner.cli.failures_restart_consumers import rendered
from planner.cli.output import Format
from planner.cli.output import show as show_plan
from planner.export import output_folder
from planner.export.folder_check import FolderCheck
from planner.model.errors import PlannerError, SetupError, StalePlanError
from planner.model.file_reading import BOUND, read_bytes
from planner.model.formats import above_bound, first_lines, gap_shown, number
from planner.plan import bound_json, bound_section, headline, plan_file
from planner.plan.document.plan_types import RESTART_FILE, Plan
from planner.report import run_journal
from planner.report.terminal import Detail
from planner.report.view import Column, Lines, Name, Table, View, ViewSection, visible

_LONGEST_LINE = 400


def _source_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options for the sources of the cluster's state. The command gets them as one `sources`."""
    help_text = "Today's output of Kafka's tools, or a folder; any format that planner import reads. May be repeated."

    @click.option("--state", "files", metavar="FILE", type=output.PATH, multiple=True, help=help_text)
    @output.live_options
    @wraps(command)
    def with_sources(
        files: tuple[Path, ...], bootstrap_servers: str | None, command_config: Path | None, **other_options: Any
    ) -> int:
        return command(sources=Sources(files, bootstrap_servers, command_config), **other_options)

    return with_sources


@click.command()
@click.argument("plan", type=output.PATH, required=False)
@click.option("--journal", type=output.FILE, help="Show the journal of a playbook run instead of a plan.")
@output.format_option
@output.detail_options
@output.reads_plan
def show(plan: Path | None, journal: Path | None, form: Format, detail: Detail | None) -> int:
    """Show PLAN, a plan.json or its folder.

    Or what a run of its playbooks did."""
    if (plan is None) == (journal is None):
        raise click.UsageError("show takes a PLAN or --journal FILE, one of them")
    if journal is not None and detail is not None:
        raise click.UsageError("--quiet and --verbose are for a PLAN; allowed: without --journal")
    if plan is not None:
        show_plan(plan_file.read(plan), form, detail, plan_file.folder_of(plan))
        return 0
    assert journal is not None
    entries = run_journal.entries(read_bytes(journal, run_journal.JOURNAL), journal.as_posix())
    output.show_found(form, lambda: run_journal.document(entries), lambda: run_journal.view(journal.name, entries))
    return 0


def diff_view(difference: dict[str, Any]) -> View:
    """The result of `plan_diff.diff` as a view: the verdict, the figures that differ, and the lists of differences."""
    figure = Column[tuple[str, str, str, str]]
    columns = (
        figure("", lambda row: row[0], numeric=False),
        figure("before", lambda row: row[1]),
        figure("after", lambda row: row[2]),
        figure("", lambda row: row[3], numeric=False),
    )
    figures = Table("figure", plan_diff.figure_rows(difference), columns)
    lists = (
        # A line has names from the cluster, so all of it is escaped like a name.
        ViewSection(f"{title} ({number(count)})", (Lines([Name(line, _LONGEST_LINE) for line in lines]),), folded=True)
        for title, count, lines in plan_diff.sections(difference)
    )
    sections = (ViewSection("", visible(figures)), *lists)
    return View(plan_diff.verdict(difference), sections, tuple(plan_diff.first_steps(difference)))


@click.command("diff")
@click.argument("before", type=output.PATH)
@click.argument("after", type=output.PATH)
@output.format_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if the plans differ.")
@output.reads_plan
def diff(before: Path, after: Path, form: Format, detailed_exitcode: bool) -> int:
    """Show what changed from the plan BEFORE to the plan AFTER.

    Each is a plan.json or its folder.

    Figures before and after, limits, inputs, what was asked for, brokers, partitions that only one of them changes or
    that they move to different brokers, warnings, and every other setting that differs. Long lists are cut, and the
    rest is counted.
    """
    difference = plan_diff.diff(plan_file.read(before), plan_file.read(after))
    output.show_found(form, lambda: difference, lambda: diff_view(difference))
    return 2 if detailed_exitcode and not difference["equal"] else 0


@click.command()
@click.argument("plan", type=output.PATH)
@_source_options
@click.option("--plan-id", metavar="ID", help="The plan_id that was approved; any other plan is refused.")
@click.option("--strict", is_flag=True, help="Refuse your own files in the folder instead of listing them.")
@click.option("--strict-state", is_flag=True, help="Also refuse if the cluster changed outside the plan.")
@click.option("--now", metavar="MOMENT", help="The time to compare valid_for with. [default: now]")
@click.option("--bound", is_flag=True, help="Verify the bound in bound.json by arithmetic, without a solver.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What stdout shows.")
@output.reads_plan
def check(
    plan: Path,
    sources: Sources,
    plan_id: str | None,
    strict: bool,
    strict_state: bool,
    now: str | None,
    bound: bool,
    form: Literal["text", "json"],
) -> int:
    """Check that PLAN is unchanged and fits the cluster.

    PLAN may also be a restart's folder.

    Every file of the folder is made again from plan.json and compared byte for byte, whatever SHA256SUMS says; no other
    file may be there. Your own files (inventory, variables, what Terraform keeps) can't be judged: each is listed with
    what it could do. With --state or --bootstrap-servers, the plan is also compared with the cluster as it is now:
    every partition must be where the plan found it, or where one of its batches puts it. Others are listed, and the
    exit code is 1.
    """
    if strict and not plan.is_dir():
        raise click.UsageError(f"--strict judges the files of a folder, and {plan} isn't one; allowed: its folder")
    options = CheckOptions(plan_check.parse_plan_id(plan_id), strict, strict_state, plan_check.parse_now(now))
    if plan.name == RESTART_FILE or ((plan / RESTART_FILE).is_file() and not (plan / "plan.json").exists()):
        of_plans = {"--state or --bootstrap-servers": sources.any, "--strict-state": strict_state, "--bound": bound}
        return check_restart(plan, options, form, {**of_plans, "--now": now is not None})
    checked = plan_check.check(plan, sources, one_spec.rendered_files, options)
    _show_checked(checked, form, _approved_lines(plan, checked))
    if bound:
        show = output.say if form == "json" else output.echo_line
        show(f"{plan}: {_bound_proof(plan, checked.plan_or_restart)}")
    return 0


def _bound_proof(path: Path, plan: Plan) -> str:
    """What the plan's bound proves. PlannerError if the plan has none, if it doesn't hold, or if the plan states other
    figures than its own partitions give.
    """
    for key, stated, recounted in bound_section.recount(plan):
        if stated != recounted:
            raise StalePlanError(f"{path}: $.{key} is {stated:,}; counted again from $.partitions: {recounted:,}")
    if plan.headline != (line := headline.first_line(plan)):
        raise StalePlanError(f"{path}: $.headline is {plan.headline!r}; the plan's sections say {line!r}")
    if plan.bound.sha256 is None:
        if plan.resumes:
            rest_of = plan.resumes.plan_id[:12]
            raise PlannerError(f"{path}: the plan finishes plan {rest_of}, whose bound is to be checked")
        if plan.replicas_copied:
            raise PlannerError(f"{path}: the plan has no bound to check: {plan.bound.proof}")
        return "it copies nothing between brokers, and no plan copies less"
    file = plan_file.folder_of(path) / bound_json.FILE
    try:
        proof = bound_json.check(plan, read_bytes(file, BOUND), str(file))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise PlannerError(f"{file}: can't be read as the bound of a plan: {error}") from error
    share = f", {gap_shown(above_bound(proof.moved, proof.least))}" if proof.least else ""
    above = "as few" if proof.moved == proof.least else f"{proof.moved - proof.least:,} more{share}"
    return (
        f"no plan{bound_section.covered(plan)} copies fewer than {proof.least:,} {proof.measure}, verified from "
        f"{proof.prices:,} prices and {proof.partitions:,} partitions; this one copies {proof.moved:,}: {above}"
    )


def check_restart(
    path: Path, options: CheckOptions, form: Literal["text", "json"], of_plans: Mapping[str, bool]
) -> int:
    """Checks a restart's folder by its restart.json, and prints the result. UsageError for options only for plans."""
    if plan_options := [name for name, is_given in of_plans.items() if is_given]:
        live = of_plans["--state or --bootstrap-servers"]
        hint = "; restart.yml compares the cluster with the steps before anything restarts" if live else ""
        raise click.UsageError(f"{plan_options[0]} is for plans, and {path} is a restart{hint}")
    checked = plan_check.check_restart(path, rendered, options)
    _show_checked(checked, form, unchanged(path, f"restart {checked.plan_or_restart.restart_id[:12]}", checked.folder))
    return 0


def _show_checked(checked: CheckResult[Any], form: Literal["text", "json"], approved: Iterator[str]) -> None:
    """Prints what was checked, and raises an error for refusals. JSON includes them, so it is printed before that."""
    if form == "json":
        output.echo_json(plan_check.document(checked))
    plan_check.require_none(checked.refusals)
    if form == "text":
        for line in approved:
            output.echo_line(line)


def unchanged(path: Path, name: str, folder_check: FolderCheck | None) -> Iterator[str]:
    """Lines about what was checked of a plan or restart and its folder, and about files that can't be checked."""
    of_files = f", with all of its {folder_check.files} files" if folder_check else ""
    yield f"{path}: {name} is unchanged{of_files}"
    if folder_check and folder_check.own:
        yield f"not checked: {len(folder_check.own)} of the folder's files are your own; each could change what runs:"
        yield from (f"  {line}" for line in first_lines([*map(str, folder_check.own)], plan_check.LINES_SHOWN))


def _approved_lines(path: Path, checked: CheckResult[Plan]) -> Iterator[str]:
    """The lines that `check` prints about an approved plan: what was checked, and what couldn't be checked."""
    plan = checked.plan_or_restart
    step = headline.first_step(plan)
    yield from [step] if step else []
    yield from unchanged(path, f"plan {plan.plan_id[:12]}", checked.folder)
    yield from [f"valid until {plan.valid_until}"] if plan.valid_until else []
    if checked.fit is not None:
        yield f"fits the cluster now: {checked.fit.progress()}"
        if not checked.fit.brokers_known:
            yield "not checked: which brokers are live and in which racks (no source says)"
        yield from (f"note: {line}" for line in first_lines([*map(str, checked.fit.notes)], plan_check.LINES_SHOWN))
    yield from checked.since.sentences() if checked.since is not None else ()


@click.command()
@click.argument("plan", type=output.PATH)
@_source_options
@click.option("--out", type=output.FOLDER, required=True, help="Folder to write.")
@click.option("--captured-at", metavar="MOMENT", help="When the state was captured; a plan with valid_for needs it.")
@click.option(
    "--load",
    type=output.FILE,
    help="Load profile: the rates and the hours of the week; a plan with limits on these hours needs it.",
)
@click.option(
    "--leave-moved", is_flag=True, help="Leave partitions that others have moved where they are, and list them."
)
@output.format_option
@output.detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if something is left to do.")
@output.reads_plan
@output.shows_refused
def resume(
    plan: Path,
    sources: Sources,
    out: Path,
    captured_at: str | None,
    load: Path | None,
    leave_moved: bool,
    form: Format,
    detail: Detail | None,
    detailed_exitcode: bool,
) -> int:
    """Plan the rest of a partly applied PLAN.

    The same target, in new batches, from the cluster as it is now.

    Partitions that are in place already are left out; so are those that no longer exist, with a warning. Partitions
    that somebody else has moved are refused, with exit code 1. PLAN's limits are checked again; if one is exceeded,
    nothing is written, and the exit code is 3.
    """
    if not sources.any:
        raise SetupError("the cluster's state is missing; allowed: --state, --bootstrap-servers, or both")
    plan_check.require_past(captured_at, "--captured-at")
    if out.resolve() == plan_file.folder_of(plan).resolve():
        raise SetupError(
            f"--out {out}: has the rollback of what is applied already; allowed: another folder than {plan}'s"
        )
    # An expired plan may be resumed, because the rest is a new plan that needs its own approval.
    checked = plan_check.check(
        plan, Sources(), one_spec.rendered_files, CheckOptions(now=datetime.min.replace(tzinfo=UTC))
    )
    plan_check.require_none(checked.refusals)
    output_folder.check(out)
    state_now = read_now(sources, with_log_dirs=any(row.log_dirs for row in checked.plan_or_restart.partitions))
    if load is not None:
        state_now = with_load(state_now, load)
    new_plan = resumed_plan.resume(checked.plan_or_restart, state_now, captured_at=captured_at, leave_moved=leave_moved)
    files = output_folder.write(out, one_spec.files_of(new_plan, {}), output.say)
    show_plan(new_plan, form, detail, out, len(files))
    return 2 if detailed_exitcode and new_plan.has_something_to_do else 0
