"""`planner diff`: what changed between two plans, on a terminal and as Markdown for a pull request."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from planner.approval import plan_diff
from planner.cli.shown import Format, echo_json, format_option, reads_plan, show_view
from planner.model.formats import number
from planner.plan import plan_file
from planner.report.view import Column, Lines, Name, Section, Table, View, told

_LONGEST_LINE = 400


def view(difference: dict[str, Any]) -> View:
    """A `plan_diff.diff` as people are shown it: the verdict, the figures that differ, and a list of each kind."""
    figure = Column[tuple[str, str, str, str]]
    columns = (
        figure("", itemgetter(0), numeric=False),
        figure("before", itemgetter(1)),
        figure("after", itemgetter(2)),
        figure("", itemgetter(3), numeric=False),
    )
    figures = Table("", "", "figure", plan_diff.figure_rows(difference), columns)
    lists = (
        # Names from the cluster stand within these lines, so that all of a line is one.
        Section(f"{title} ({number(count)})", (Lines([Name(line, _LONGEST_LINE) for line in lines]),), folded=True)
        for title, count, lines in plan_diff.sections(difference)
    )
    sections = (Section("", told(figures)), *lists)
    return View(plan_diff.verdict(difference), sections, tuple(plan_diff.first_steps(difference)))


_PLAN = click.Path(path_type=Path)


@click.command("diff")
@click.argument("before", type=_PLAN)
@click.argument("after", type=_PLAN)
@format_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where the plans differ.")
@reads_plan
def diff(before: Path, after: Path, form: Format, detailed_exitcode: bool) -> int:
    """Show what changed from the plan BEFORE to the plan AFTER.

    Each is a plan.json or its folder.

    Figures before and after, gates, inputs, what was asked for, brokers, partitions that only one of them changes or
    that go elsewhere, and warnings. Lists are bounded, what is left out is counted.

    \b
    planner diff main/expand.plan expand.plan --format markdown
    """
    difference = plan_diff.diff(plan_file.read(before), plan_file.read(after))
    match form:
        case "json":
            echo_json(difference)
        case _:
            show_view(view(difference), form)
    return 2 if detailed_exitcode and not difference["equal"] else 0
