"""`planner diff`: what changed between two plans."""

from __future__ import annotations

from pathlib import Path

import click

from planner.approval import plan_diff
from planner.approval.plan_diff_shown import markdown, show
from planner.cli import workflow
from planner.cli.shown import Format, echo_json, echo_page, format_option, reads_plan, screen

_PLAN = click.Path(path_type=Path)


@click.command("diff")
@click.argument("before", type=_PLAN)
@click.argument("after", type=_PLAN)
@format_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where the plans differ.")
@reads_plan
def diff(before: Path, after: Path, form: Format, detailed_exitcode: bool) -> int:
    """Show what changed from the plan BEFORE to the plan AFTER, each a plan.json or its folder.

    Figures before and after, gates, inputs, what was asked for, brokers, partitions that only one of them changes or
    that go elsewhere, and warnings. Lists are bounded, what is left out is counted.

    \b
    planner diff main/expand.plan expand.plan --format markdown
    """
    difference = plan_diff.diff(workflow.read_plan(before), workflow.read_plan(after))
    match form:
        case "json":
            echo_json(difference)
        case "markdown":
            echo_page(markdown(difference))
        case _:
            show(difference, screen(100))
    return 2 if detailed_exitcode and not difference["equal"] else 0
