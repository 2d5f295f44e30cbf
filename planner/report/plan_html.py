"""plan.json → report.html, one file that needs no network, and the plots in it as files of their own.

The verdict stands first; each plot has its numbers as a table beside it, and one table can be searched and sorted.
Whatever comes from the cluster is escaped by the template, and none of it gets into the script.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2
from markupsafe import Markup

from planner.model import formats
from planner.model.file_reading import resource
from planner.model.formats import counted, number, printable, size
from planner.plan import headline
from planner.plan.document.plan_types import Plan
from planner.plan.templates import environment
from planner.report import cluster_tables, html, plan_view, plot_values, plots, verdict
from planner.report.html import HtmlSection, HtmlTable
from planner.report.plan_view import SOURCE
from planner.report.plot_svg import STYLE, Plot
from planner.report.view import Section, View, left_out_here

MOST_TOPICS, MOST_MOVES = 3_000, 10_000
_INPUTS_SHOWN = 20
# Of another command's page, which a cluster of many groups makes long.
_SECTIONS_SHOWN = 60


@dataclass(frozen=True)
class HtmlPage:
    """What another command shows of the plan, and a sentence on what isn't shown."""

    name: str
    title: Markup
    sections: tuple[HtmlSection, ...]
    left_out: str


def files(plan: Plan, pages: Sequence[View] = ()) -> dict[str, bytes]:
    """`report.html` and `plots/*.svg` of a plan.json document, relative path → bytes; the same each time.

    `pages` are those of other commands that the plan tells.
    """
    moved = plot_values.movement(plan)
    drawn = plots.draw(plan, moved)
    page = _page(plan_view.sections(plan, moved), plan, {plot.name: plot for plot in drawn}, pages).encode()
    return {"report.html": page, **{f"plots/{plot.name}.svg": plot.file for plot in drawn}}


def _page(sections: Sequence[Section], plan: Plan, drawn: Mapping[str, Plot], pages: Sequence[View]) -> str:
    script = _shipped("report.js")
    return _template().render(
        _verdict(plan),
        sections=[html.section(section, section.name, SOURCE, drawn.get(section.plot)) for section in sections],
        pages=[_told(page, f"page-{at}") for at, page in enumerate(pages, start=1)],
        searched=list(_searched(plan)),
        style=STYLE + _shipped("report.css"),
        script=script,
        # No other script runs, whatever a name from the cluster might have smuggled in.
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _searched(plan: Plan) -> Iterator[tuple[str, str, HtmlTable]]:
    """The long tables that a reader can search and sort: a name, a title, and the table."""
    if plan.partitions:
        yield (
            "moves",
            "Every change, partition by partition",
            html.table(cluster_tables.partitions(plan), SOURCE, MOST_MOVES),
        )
    yield "topics", "Topics", html.table(cluster_tables.topics(plan), SOURCE, MOST_TOPICS)


def _told(page: View, name: str) -> HtmlPage:
    shown = page.sections[:_SECTIONS_SHOWN]
    rest = len(page.sections) - len(shown)
    left_out = left_out_here(counted(rest, "section"), page.source) if rest else ""
    sections = tuple(html.section(each, f"{name}-{at}", page.source) for at, each in enumerate(shown, start=1))
    return HtmlPage(name, html.line(page.title), sections, left_out)


@cache
def _template() -> jinja2.Template:
    return environment().overlay(autoescape=True).get_template("report.html.j2")


@cache
def _shipped(name: str) -> str:
    return resource("templates", name).read_text(encoding="utf-8")


def _verdict(plan: Plan) -> dict[str, Any]:
    """Everything above the first plot."""
    return {
        "cluster": printable(plan.cluster.name),
        "first_step": headline.first_step(plan),
        "headline": headline.headline(plan),
        "verdict": verdict.verdict(plan),
        "clear": headline.calm(plan) and not any(row.crossed for row in plan.limits),
        "figures": _figures(plan),
        "plan_id": plan.plan_id,
        "inputs": [(printable(file.path), file.sha256) for file in plan.inputs[:_INPUTS_SHOWN]],
    }


def _figures(plan: Plan) -> list[tuple[str, str]]:
    """The few numbers that a reviewer asks for first."""
    bound, known = plan.bound, plan.cluster.sizes_known
    some = bool(plan.cluster.partitions_without_size)
    seconds = plan.execution.seconds_at_throttle
    return [
        ("copied, at least" if some else "copied", size(bound.bytes_moved) if known else formats.UNKNOWN),
        (
            "the least for this" if some or plan.unfinished or headline.looser(plan) else "the proven least",
            size(bound.least_bytes_moved) if known else formats.UNKNOWN,
        ),
        ("replicas copied", number(sum(batch.replicas_moved for batch in plan.batches))),
        ("leaders elected", number(sum(len(batch.elect) for batch in plan.batches))),
        ("batches", number(len(plan.batches))),
        ("at least", formats.duration(seconds) if known else formats.UNKNOWN),
    ]
