"""`planner adopt`: a reassignment that another tool made, as a plan: checked, gated and carried out like ours."""

from __future__ import annotations

from pathlib import Path

import click

from planner.approval import adopted_plan
from planner.cli import workflow
from planner.cli.shown import Format, detail_options, format_option, reads_plan, say, show
from planner.export import output_folder
from planner.inputs.spec import reading
from planner.plan import bound_file, headline
from planner.report.terminal import Detail
from planner.sweep import candidates_file
from planner.whatif import in_plan
from planner.whatif.assignors import importable


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
