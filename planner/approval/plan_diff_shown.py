"""The difference of two plans on a terminal, and as Markdown for a comment on a pull request."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planner.approval import plan_diff
from planner.model.markup import code
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
