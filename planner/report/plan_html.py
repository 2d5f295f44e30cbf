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
from markdown_it import MarkdownIt

from planner.model import formats
from planner.model.file_reading import resource
from planner.model.formats import counted, number, printable, size
from planner.model.markup import AT_SIGN
from planner.plan import headline
from planner.plan.bound_file import LONGEST_PROOF
from planner.plan.document.plan_types import Plan
from planner.plan.templates import environment
from planner.report import html_tables, plot_values, plots, sentences
from planner.report.appendix import Page, folds
from planner.report.html_tables import HtmlTable
from planner.report.plot_svg import STYLE, Plot
from planner.report.plot_values import Movement
from planner.report.sentences import derived_why, pace

_LONGEST_TEXT = 300
_WARNINGS_SHOWN = 100
_INPUTS_SHOWN = 20
# Of the pages of other commands: a screen of each for every broker and topic of a large cluster, and no more.
_MOST_PAGES_BYTES = 600_000


@dataclass(frozen=True)
class HtmlSection:
    """A part of the page: its plots, each of which has its numbers folded below, and the tables that stand open."""

    id: str
    title: str
    plots: tuple[Plot, ...] = ()
    folded: tuple[HtmlTable, ...] = ()
    tables: tuple[HtmlTable, ...] = ()


@dataclass(frozen=True)
class Told:
    """What another command's page says, as HTML."""

    id: str
    title: str
    html: str
    left_out: str


def files(plan: Plan, pages: Sequence[Page] = ()) -> dict[str, bytes]:
    """`report.html` and `plots/*.svg` of a plan.json document, relative path → bytes; the same each time.

    `pages` are those of other commands that the plan tells.
    """
    drawn = plots.draw(plan)
    page = _page(plan, {plot.name: plot for plot in drawn}, pages).encode()
    return {"report.html": page, **{f"plots/{plot.name}.svg": plot.file for plot in drawn}}


def _page(plan: Plan, drawn: Mapping[str, Plot], pages: Sequence[Page]) -> str:
    script = _shipped("report.js")
    return _template().render(
        _verdict(plan),
        sections=list(_sections(plan, drawn)),
        pages=list(_told(pages)),
        topics=html_tables.topics(plan),
        style=STYLE + _shipped("report.css"),
        script=script,
        # No other script runs, whatever a name from the cluster might have smuggled in.
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _told(pages: Sequence[Page]) -> Iterator[Told]:
    """Their Markdown escapes what comes from the cluster; HTML in it would be shown as text, too."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    for at, fold in enumerate(folds(pages, _MOST_PAGES_BYTES), start=1):
        lines = "\n".join(fold.lines).replace(AT_SIGN, "@")
        yield Told(f"page-{at}", fold.heading, markdown.render(lines), fold.left_out)


@cache
def _template() -> jinja2.Template:
    return environment().overlay(autoescape=True).get_template("report.html.j2")


@cache
def _shipped(name: str) -> str:
    return resource("templates", name).read_text(encoding="utf-8")


def _verdict(plan: Plan) -> dict[str, Any]:
    """Everything above the first plot."""
    warnings = [printable(text, _LONGEST_TEXT) for text in plan.warnings[:_WARNINGS_SHOWN]]
    more = len(plan.warnings) - len(warnings)
    return {
        "cluster": printable(plan.cluster.name),
        "first_step": headline.first_step(plan),
        "headline": headline.headline(plan),
        "state": headline.state(plan),
        "clear": headline.calm(plan) and not _crossed(plan),
        "figures": _figures(plan),
        "facts": [(name, text) for name, text in _facts(plan) if text],
        "warnings": [*warnings, *([f"{counted(more, 'warning')} left out here: see plan.json."] if more else [])],
        "plan_id": plan.plan_id,
        "inputs": _inputs(plan),
    }


def _crossed(plan: Plan) -> bool:
    return any(row.crossed for row in plan.limits)


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


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "Asked for", sentences.wishes(plan.changes)
    yield "Partitions by reason", sentences.reasons(plan)
    yield "Runs in", pace(plan)
    yield "By default, as the YAML doesn't say", derived_why(plan)
    of_proof = "Proof, of this step alone" if headline.first_step(plan) else "Proof of the least"
    yield of_proof, printable(plan.bound.proof.rstrip("."), LONGEST_PROOF)
    yield "Chosen", headline.chosen(plan)
    yield "Searched", sentences.searched(plan)
    yield "The winner", printable(plan.candidates.rule.rstrip("."), _LONGEST_TEXT)


def _inputs(plan: Plan) -> list[tuple[str, str]]:
    return [(printable(file.path), file.sha256) for file in plan.inputs[:_INPUTS_SHOWN]]


def _sections(plan: Plan, drawn: Mapping[str, Plot]) -> Iterator[HtmlSection]:
    """The parts between the verdict and the topics, in reading order; none that has nothing to show."""
    of_plots = _plotted(plan, drawn)
    gates = tuple(table for table in (html_tables.limits(plan), html_tables.relaxed(plan)) if table.rows)
    if gates:
        yield HtmlSection("gates", "Limits and balance", tables=gates)
    yield from of_plots
    numbers = (html_tables.terms(plan), html_tables.compared(plan))
    yield HtmlSection("terms-and-alternatives", "Every term, and the alternatives", tables=numbers)
    rest = tuple(html_tables.others(plan))
    if rest:
        yield HtmlSection("more", "What else was planned", tables=rest)


def _plotted(plan: Plan, drawn: Mapping[str, Plot]) -> Iterator[HtmlSection]:
    moved = plot_values.movement(plan)
    tables = {
        "front": ("Pareto front", (html_tables.front,)),
        "brokers": ("Brokers", (html_tables.brokers,)),
        "racks": ("Racks", (html_tables.racks,)),
        "movement": ("Movement", (_with(html_tables.movement, moved),)),
        "batches": ("Batches", (html_tables.batches, _with(html_tables.copies, moved))),
        "held": ("Disk meanwhile", (_with(html_tables.held, moved),)),
    }
    for name, (title, makers) in tables.items():
        if name in drawn:
            yield HtmlSection(name, title, (drawn[name],), tuple(make(plan) for make in makers))


def _with(make: Any, moved: Movement) -> Any:
    return lambda plan: make(plan, moved)
