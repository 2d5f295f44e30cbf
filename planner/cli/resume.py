"""`planner resume`: what is left of a plan after a run that was interrupted, as a plan of its own."""

from __future__ import annotations

from pathlib import Path

import click

from planner.approval.cluster_now import Sources
from planner.cli import sources as cli_sources
from planner.cli import workflow
from planner.cli.shown import Format, detail_options, format_option, reads_plan, say, show
from planner.plan import headline
from planner.report.terminal import Detail


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@cli_sources.options
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write.")
@click.option("--captured-at", metavar="MOMENT", help="When the state was captured; a plan with valid_for needs it.")
@click.option(
    "--leave-moved", is_flag=True, help="Leave partitions that others have moved where they are, and list them."
)
@format_option
@detail_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where there is something left to do.")
@reads_plan
def resume(
    plan: Path,
    sources: Sources,
    out: Path,
    captured_at: str | None,
    leave_moved: bool,
    form: Format,
    detail: Detail | None,
    detailed_exitcode: bool,
) -> int:
    """Plan what is left of PLAN after a run that stopped.

    The same target, in new batches, from the cluster as it is now.

    What is where PLAN wants it drops out; what no longer exists is dropped and listed among the warnings. Partitions
    that aren't on PLAN's way are refused, with exit code 1. PLAN's limits are judged again; beyond one nothing is
    written, and the exit code is 3.

    \b
    planner resume expand.plan --state state/now/ --out expand-rest.plan
    """
    rest, files = workflow.resume(plan, sources, out, captured_at, leave_moved=leave_moved, say=say)
    show(rest, form, detail, out, len(files))
    return 2 if detailed_exitcode and headline.has_something_to_do(rest) else 0
