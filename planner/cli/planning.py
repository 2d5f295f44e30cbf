"""`planner whatif`, `adopt`, `validate`, `render`, `external` and `spark warm`: make plans, write files."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from planner.approval import adopted_plan, given_reassignment, plan_check
from planner.cli import one_spec, output, whatif_fleet
from planner.cli.engine import EngineOptions, engine_options
from planner.cli.output import Format
from planner.export import output_folder, terraform_data_source
from planner.export.folder_check import FolderEntry
from planner.model.errors import PlannerError, StalePlanError
from planner.model.file_reading import BOUND, SHORT, digest, read_bytes
from planner.plan import bound_json, plan_file
from planner.report.terminal import Detail
from planner.sweep import candidates_file

_specs = click.argument("specs", metavar="SPEC...", type=output.FILE, nargs=-1, required=True)


@click.command()
@_specs
@click.option(
    "--out",
    type=output.FOLDER,
    help="Folder to write; with several specs, the parent of their folders. [default: SPEC's name with .plan]",
)
@click.option(
    "--candidates", type=click.IntRange(min=2), help="Candidates to evaluate. [default: by the cluster's size]"
)
@click.option("--seed", type=output.SEED, help="Seed of all random choices.")
@engine_options("spark")
@output.format_option
@output.detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if the plan changes something.")
@output.shows_refused
def whatif(
    specs: tuple[Path, ...],
    engine: EngineOptions,
    form: Format,
    detail: Detail | None,
    detailed_exitcode: bool,
    **options: Any,
) -> int:
    """Choose the best plan for each SPEC, and write its folder.

    Many candidate plans are compared, Kafka's own placements among them.

    Several SPECs, or a quoted pattern of them, are a fleet: one sweep for all, a folder each, and a summary.
    """
    settings, errors = whatif_fleet.WhatifOptions(**vars(engine), **options), Console(stderr=True)
    if not whatif_fleet.is_fleet(specs):
        only = whatif_fleet.whatif(specs[0], settings, errors)
        output.show(only.plan, form, detail, only.job.folder, len(only.files))
        todo = only.plan.has_something_to_do
    else:
        if detail is not None:
            raise click.UsageError("--quiet and --verbose are for one plan; allowed: a single SPEC")
        rows = whatif_fleet.whatif_fleet(specs, settings, errors, whatif_fleet.summary)
        todo = any(row["has_something_to_do"] for row in rows)
        output.show_found(form, lambda: {"clusters": rows}, lambda: whatif_fleet.view(rows))
    return 2 if detailed_exitcode and todo else 0


@click.command()
@_specs
def validate(specs: tuple[Path, ...]) -> int:
    """Check each SPEC and the files it names; write nothing.

    Reports every fault at once."""
    files = whatif_fleet.specs_of(specs)

    def checked(number: int) -> None:
        one_spec.load_spec(files[number])
        output.echo_line(f"{files[number]}: valid")

    whatif_fleet.each_of(files, checked)
    return 0


@click.command()
@click.argument("plan", type=output.PATH)
@click.option("--out", type=output.FOLDER, required=True, help="Folder to write.")
@output.reads_plan
def render(plan: Path, out: Path) -> int:
    """Write all files of PLAN again, byte for byte."""
    document, folder = plan_file.read(plan), plan_file.folder_of(plan)
    paths = {name: folder / name for name in (bound_json.FILE, candidates_file.FILE) if (folder / name).is_file()}
    entries = {name: FolderEntry.read(file) for name, file in paths.items()}
    digests = plan_check.bound_by_digest(folder, document, entries)
    other_files = {name: read_bytes(file, BOUND) for name, file in paths.items()}
    for name, content in other_files.items():
        if digest(content) != digests.get(name):
            raise StalePlanError(f"{paths[name]}: isn't the file that was made; allowed: that file, or none")
    for path in output_folder.write(out, one_spec.files_of(document, other_files), output.say):
        output.echo_line(path)
    return 0


@click.command()
@output.reads_plan
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
        text = sys.stdin.read(SHORT.most_bytes + 1)  # limited, because stdin may never end
    except UnicodeDecodeError:
        raise PlannerError("stdin: isn't text in UTF-8; allowed: a query as Terraform sends it") from None
    if len(text) > SHORT.most_bytes:
        raise PlannerError(f"stdin: has more than {SHORT.most_bytes:,} characters; allowed: a query, which is short")
    output.echo_json(terraform_data_source.answer(text))
    return 0


@click.group()
def spark() -> None:
    """Prepare this machine for Spark."""


@spark.command()
def warm() -> int:
    """Make local Spark start in half the time.

    Makes an archive of its classes.

    Run it once on each machine."""
    from spark_jobs import jvm_class_archive  # imported here, because only this command needs Spark

    with Console(stderr=True).status("starting Spark to record which classes it loads"):
        output.echo_line(jvm_class_archive.warm())
    return 0


@click.command()
@click.argument("reassignment", type=output.PATH)
@click.argument("path", metavar="SPEC", type=output.FILE)
@click.option(
    "--out",
    type=output.FOLDER,
    help="Folder to write. [default: REASSIGNMENT without its ending, with .adopted.plan, in the current folder]",
)
@output.format_option
@output.detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where the plan has something to do.")
@output.reads_plan
@output.shows_refused
def adopt(
    reassignment: Path, path: Path, out: Path | None, form: Format, detail: Detail | None, detailed_exitcode: bool
) -> int:
    """Make a plan of a REASSIGNMENT that another tool made.

    REASSIGNMENT is Kafka's JSON, what --generate prints, Cruise Control's proposals, or an older plan. It is adopted
    as it is; partitions that it doesn't name stay where they are.

    SPEC says what the cluster is, and what a plan must keep. A REASSIGNMENT that breaks a rule is refused with exit
    code 1; one that is beyond a limit with exit code 3. The report says how much more than necessary it copies.
    """
    folder = out if out is not None else Path(f"{reassignment.stem}.adopted.plan")
    spec = one_spec.load_spec(path)
    output_folder.check(folder)
    planned, rows = adopted_plan.adopt(given_reassignment.read(reassignment), spec, path.as_posix())
    plan, files = one_spec.plan_files(one_spec.with_report_sections(path, spec, planned), rows)
    output.show(plan, form, detail, folder, len(output_folder.write(folder, files, output.say)))
    return 2 if detailed_exitcode and plan.has_something_to_do else 0
