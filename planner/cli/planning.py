"""`planner whatif`, `adopt`, `validate`, `render`, `external` and `spark warm`: make plans, and write their files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from planner.approval import adopted_plan
from planner.cli import fleet, workflow
from planner.cli.shown import (
    Format,
    detail_options,
    echo_json,
    echo_line,
    format_option,
    reads_plan,
    say,
    show,
    show_view,
    shows_refused,
)
from planner.cli.shown import show as show_plan
from planner.cli.workflow import engine_options
from planner.export import output_folder, terraform_external
from planner.inputs.spec import reading
from planner.model.errors import PlannerError
from planner.model.file_reading import SHORT
from planner.plan import bound_file, headline
from planner.report.terminal import Detail
from planner.sweep import candidates_file
from planner.whatif import in_plan
from planner.whatif.assignors import importable

_SPEC = click.Path(path_type=Path, dir_okay=False)
_PLAN = click.Path(path_type=Path)
_specs = click.argument("specs", metavar="SPEC...", type=_SPEC, nargs=-1, required=True)


@click.command()
@_specs
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write; with several specs, the parent of their folders. [default: SPEC's name with .plan]",
)
@click.option(
    "--candidates", type=click.IntRange(min=2), help="Candidates to evaluate. [default: by the cluster's size]"
)
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), help="Seed of all random choices.")
@engine_options("spark")
@format_option
@detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if the plan changes something.")
@shows_refused
def whatif(
    specs: tuple[Path, ...], form: Format, detail: Detail | None, detailed_exitcode: bool, **options: Any
) -> int:
    """Choose the best plan for each SPEC, and write its folder.

    Sweeps candidates, Kafka's own placements among them.

    Several SPECs, or a quoted pattern of them, are a fleet: one sweep for all, a folder each, and a summary.
    """
    planned = workflow.whatif_fleet(specs, workflow.WhatifOptions(**options), Console(stderr=True))
    if not fleet.is_fleet(specs):
        (only,) = planned
        show_plan(only.plan, form, detail, only.job.folder, len(only.files))
    elif form == "json":
        echo_json({"clusters": fleet.summary(planned)})
    else:
        show_view(fleet.view(planned), form)
    todo = any(headline.has_something_to_do(each.plan) for each in planned)
    return 2 if detailed_exitcode and todo else 0


@click.command()
@_specs
def validate(specs: tuple[Path, ...]) -> int:
    """Check each SPEC and the files it names; write nothing.

    Reports every fault at once."""
    for spec in workflow.validate(specs):
        echo_line(f"{spec}: valid")
    return 0


@click.command()
@click.argument("plan", type=_PLAN)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write.")
@reads_plan
def render(plan: Path, out: Path) -> int:
    """Write PLAN's files again, the same bytes."""
    for name in workflow.render(plan, out, say):
        echo_line(name)
    return 0


@click.command()
@reads_plan
def external() -> int:
    """Answer Terraform's `external` data source.

    Reads a query from stdin; writes a flat JSON object of strings to stdout.

    The query is {"plan": PATH} for a plan.json or its folder, or {"spec": PATH} for the plan beside a YAML, which is
    refused where a file that it was made from has changed since. Nothing is planned or written.

    \b
    data "external" "plan" {
      program = ["planner", "external"]
      query   = { plan = "${path.module}/../expand.plan" }
    }
    """
    try:
        text = sys.stdin.read(SHORT.most_bytes + 1)  # it may have no end
    except UnicodeDecodeError:
        raise PlannerError("stdin: isn't text in UTF-8; allowed: a query as Terraform sends it") from None
    if len(text) > SHORT.most_bytes:
        raise PlannerError(f"stdin: has more than {SHORT.most_bytes:,} characters; allowed: a query, which is short")
    echo_json(terraform_external.answer(text))
    return 0


@click.group()
def spark() -> None:
    """Prepare this machine for Spark."""


@spark.command()
def warm() -> int:
    """Make the class data archive that halves the start of local Spark sessions.

    Run it once on each machine."""
    echo_line(str(workflow.warm_spark(Console(stderr=True))))
    return 0


@click.command()
@click.argument("reassignment", type=click.Path(path_type=Path))
@click.argument("spec", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write. [default: REASSIGNMENT without its ending, with .adopted.plan, in the current folder]",
)
@format_option
@detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where the plan has something to do.")
@reads_plan
@shows_refused
def adopt(
    reassignment: Path, spec: Path, out: Path | None, form: Format, detail: Detail | None, detailed_exitcode: bool
) -> int:
    """Make a plan of a REASSIGNMENT that another tool made.

    REASSIGNMENT is Kafka's JSON, what --generate prints, Cruise Control's proposals, or an older plan. Nothing of it is
    changed: what it doesn't name stays where it is.

    SPEC says what the cluster is, and what a plan must keep. A REASSIGNMENT that breaks a rule is refused with exit
    code 1; one that is beyond a limit with exit code 3. How much more than needed it copies is reported.
    """
    folder = out if out is not None else Path(f"{reassignment.stem}.adopted.plan")
    wish = reading.load(spec)
    output_folder.check(folder)
    made = adopted_plan.adopted(adopted_plan.read(reassignment), wish, spec.as_posix())
    plan, bound = made.planned
    with importable(spec.resolve().parent, wish.consumers):
        plan = in_plan.added(wish, plan)
    others = {candidates_file.FILE: candidates_file.encoded(made.rows)}
    if bound is not None:
        others[bound_file.FILE] = bound
    files = workflow.write_plan(folder, plan, others, say)
    show(plan, form, detail, folder, len(files))
    return 2 if detailed_exitcode and headline.has_something_to_do(plan) else 0
