"""What people are shown on a page: report.html, one file that needs no network, and its plots as files of their own.

Sections become what the template `report.html.j2` takes, every text escaped; no name from the cluster gets into the
script. Each plot has its numbers as a table beside it, and the long tables can be searched and sorted.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2
from markupsafe import Markup, escape

from planner.model import formats
from planner.model.file_reading import resource
from planner.model.formats import counted, number, printable, size
from planner.model.generated_text import environment
from planner.plan import bound_words, headline
from planner.plan.document.plan_types import Plan
from planner.report import cluster_tables, plan_view, plot_values, plots, verdict
from planner.report.plan_view import SOURCE
from planner.report.plot_svg import STYLE, Plot
from planner.report.view import (
    Column,
    Facts,
    Lines,
    Section,
    Table,
    Value,
    View,
    Writer,
    left_out_here,
    sort_key,
    written,
)

# A page opens at once with that many rows; whoever needs all of them has their source.
MOST_ROWS = 500
_MOST_LINES = 100
MOST_TOPICS, MOST_MOVES = 3_000, 10_000
_INPUTS_SHOWN = 20
# Of another command's page, which a cluster of many groups makes long.
_SECTIONS_SHOWN = 60


def _plain(value: str, longest: int) -> str:
    """A name or text escaped, on one line and without control characters; no line ends before a unit."""
    return escape(_UNITS.sub("\u00a0", printable(value, longest)))


_WRITER = Writer(_plain, _plain, lambda written: f"<b>{written}</b>")
# What is to be typed is told from the sentence around it, whose full stop is no part of it.
_TYPED = replace(_WRITER, name=lambda value, longest: f"<code>{_plain(value, longest)}</code>")
# Where a line of running text may not break: between a number and its unit.
_UNITS = re.compile(r"(?<=\d) (?=(?:[kMGTPE]?B(?:/s)?|%)(?!\w))")


@dataclass(frozen=True)
class HtmlCell:
    """A cell, its text escaped; `key` is what its column is sorted by, None where the order stays."""

    text: Markup
    numeric: bool
    key: str | float | None


@dataclass(frozen=True)
class HtmlTable:
    """Headings, each with whether it is of numbers, rows, which of them stand out, and what is said of the rest."""

    name: str
    caption: str
    headings: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    strong: frozenset[int]
    left_out: str
    kind: str = "table"


@dataclass(frozen=True)
class HtmlLines:
    """Paragraphs, or the items of a list."""

    lines: tuple[Markup, ...]
    kind: str


@dataclass(frozen=True)
class HtmlFacts:
    """Labels and what they are of."""

    facts: tuple[tuple[str, Markup], ...]
    kind: str = "facts"


@dataclass(frozen=True)
class HtmlSection:
    """A part of the page with its plot, if it has one, in whose place a reader can unfold the tables."""

    name: str
    title: Markup
    blocks: tuple[HtmlTable | HtmlLines | HtmlFacts, ...]
    plot: Any = None


def line(value: Value, writer: Writer = _WRITER) -> Markup:
    """A value as HTML."""
    return Markup(written(value, writer))


def section(of: Section, name: str, source: str, plot: Any = None) -> HtmlSection:
    """A section under a name of the page's."""
    blocks = list[HtmlTable | HtmlLines | HtmlFacts]()
    for block in of.blocks:
        match block:
            case Lines():
                writer = _TYPED if block.line == "command" else _WRITER
                shown = tuple(line(each, writer) for each in block.lines[:_MOST_LINES])
                rest = len(block.lines) - len(shown)
                more = (Markup(escape(left_out_here(counted(rest, block.line), source))),) if rest else ()
                blocks.append(HtmlLines((*shown, *more), "list" if block.bulleted else "paragraphs"))
            case Facts(facts):
                blocks.append(HtmlFacts(tuple((label, line(value)) for label, value in facts)))
            case _:
                blocks.append(table(block, source))
    return HtmlSection(name, line(of.title), tuple(blocks), plot)


def table(of: Table[Any], source: str, most_rows: int = MOST_ROWS) -> HtmlTable:
    """A table of at most so many rows, and what is said of the rest."""
    shown = of.shown(most_rows)
    left_out = of.left_out(shown)

    def cell(column: Column[Any], row: Any) -> HtmlCell:
        value = column.value(row)
        return HtmlCell(line(value), column.numeric, sort_key(value) if of.sortable and column.numeric else None)

    return HtmlTable(
        of.name,
        of.title,
        tuple((column.heading, column.numeric) for column in of.columns),
        tuple(tuple(cell(column, row) for column in of.columns) for row in shown),
        frozenset(at for at, row in enumerate(shown) if of.strong and of.strong(row)),
        left_out_here(left_out, source) if left_out else "",
    )


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
    searched = [("topics", "Topics", table(cluster_tables.topics(plan), SOURCE, MOST_TOPICS))]
    if plan.partitions:
        moves = table(cluster_tables.partitions(plan), SOURCE, MOST_MOVES)
        searched.insert(0, ("moves", "Every change, partition by partition", moves))
    return _template("report.html.j2").render(
        # Everything above the first plot.
        cluster=printable(plan.cluster.name),
        first_step=headline.first_step(plan),
        headline=headline.headline(plan),
        verdict=verdict.verdict(plan),
        clear=headline.calm(plan) and not headline.refused(plan),
        figures=_figures(plan),
        plan_id=plan.plan_id,
        inputs=[(printable(file.path), file.sha256) for file in plan.inputs[:_INPUTS_SHOWN]],
        sections=[section(each, each.name, SOURCE, drawn.get(each.plot)) for each in sections],
        pages=[_html_page(page, f"page-{at}") for at, page in enumerate(pages, start=1)],
        searched=searched,
        style=STYLE + _shipped("report.css"),
        script=script,
        # No other script runs, whatever a name from the cluster might have smuggled in.
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )


def view_page(view: View, drawn: Mapping[str, Plot]) -> bytes:
    """A page of its own for another command's view, with its sections' plots and without a script."""
    sections = [section(each, each.name, view.source, drawn.get(each.plot)) for each in view.sections]
    style = STYLE + _shipped("report.css")
    return _template("view.html.j2").render(title=line(view.title), sections=sections, style=style).encode()


def _html_page(page: View, name: str) -> HtmlPage:
    """The first sections of another command's page."""
    shown = page.sections[:_SECTIONS_SHOWN]
    rest = len(page.sections) - len(shown)
    left_out = left_out_here(counted(rest, "section"), page.source) if rest else ""
    sections = tuple(section(each, f"{name}-{at}", page.source) for at, each in enumerate(shown, start=1))
    return HtmlPage(name, line(page.title), sections, left_out)


@cache
def _template(name: str) -> jinja2.Template:
    return environment().overlay(autoescape=True).get_template(name)


@cache
def _shipped(name: str) -> str:
    return resource("templates", name).read_text(encoding="utf-8")


def _figures(plan: Plan) -> list[tuple[str, str]]:
    """The few numbers that a reviewer asks for first."""
    bound, known = plan.bound, plan.cluster.sizes_known
    some = bool(plan.cluster.partitions_without_size)
    seconds = plan.execution.seconds_at_throttle
    return [
        ("copied, at least" if some else "copied", size(bound.bytes_moved) if known else formats.UNKNOWN),
        (
            "the least for this" if some or plan.unfinished or bound_words.looser(plan) else "the proven minimum",
            size(bound.least_bytes_moved) if known else formats.UNKNOWN,
        ),
        ("replicas copied", number(sum(batch.replicas_moved for batch in plan.batches))),
        ("leaders elected", number(sum(len(batch.elect) for batch in plan.batches))),
        ("batches", number(len(plan.batches))),
        ("duration, at least", formats.duration(seconds) if known else formats.UNKNOWN),
    ]
