"""`planner diff`: what changed between two plans, on a terminal and as Markdown for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planner.approval import plan_diff
from planner.cli.shown import Format, echo_json, echo_page, format_option, reads_plan, screen
from planner.model.markup import code
from planner.plan import plan_file
from planner.plan.templates import environment


def show(difference: dict[str, Any], console: Console) -> None:
    """Print a `plan_diff.diff`: the verdict, the figures that differ, and a list of each kind."""
    for line in plan_diff.first_steps(difference):
        console.print(f"[bold red]{escape(line)}[/]", highlight=False, soft_wrap=True)
    console.print(escape(plan_diff.verdict(difference)), highlight=False)
    rows = plan_diff.figure_rows(difference)
    if rows:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        for title, justify in (("", "left"), ("before", "right"), ("after", "right"), ("unit", "left")):
            table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table, highlight=False)
    for title, _, lines in plan_diff.sections(difference):
        console.print(f"[bold]{title}[/]", highlight=False)
        for line in lines:
            console.print(f"  {escape(line)}", highlight=False)


def markdown(difference: dict[str, Any]) -> str:
    """The same as Markdown; names from the cluster are code, so that none is taken for markup."""
    return (
        environment()
        .get_template("plan-diff.md.j2")
        .render(
            first_steps=plan_diff.first_steps(difference),
            verdict=plan_diff.verdict(difference),
            figures=plan_diff.figure_rows(difference),
            sections=[
                (title, count, [code(line) for line in lines]) for title, count, lines in plan_diff.sections(difference)
            ],
        )
    )


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
    difference = plan_diff.diff(plan_file.read(before), plan_file.read(after))
    match form:
        case "json":
            echo_json(difference)
        case "markdown":
            echo_page(markdown(difference))
        case _:
            show(difference, screen(100))
    return 2 if detailed_exitcode and not difference["equal"] else 0
