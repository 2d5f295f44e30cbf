"""Writes report.html, one file that needs no network, its plots as separate files, and other commands' pages.

The templates escape every text, and no name from the cluster gets into the script. Each plot is shown with a table of
its numbers, and the long tables can be searched and sorted.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import jinja2
from markupsafe import Markup, escape

from planner.model import formats
from planner.model.file_reading import resource
from planner.model.formats import counted, number, printable, size
from planner.model.generated_text import environment
from planner.plan import bound_section, headline
from planner.plan.document.plan_types import Plan
from planner.report import cluster_tables, plot_movement, plots, verdict
from planner.report.plan_sections_and_next_steps import SOURCE, sections
from planner.report.plot_svg import STYLE, Plot
from planner.report.view import Lines, Table, Value, View, Writer, left_out_here, sort_key, written

# A page with this many rows opens without delay. All rows are in the source that the page names.
MOST_ROWS = 500
_MOST_LINES = 100
MOST_TOPICS, MOST_MOVES = 3_000, 10_000
_INPUTS_SHOWN = 20
# The most sections on another command's page, which is long for a cluster with many consumer groups.
SECTIONS_SHOWN = 60


def _plain(value: str, longest: int) -> str:
    """A name or text, escaped, on one line, without control characters, and never broken before a unit."""
    return escape(_UNITS.sub("\u00a0", printable(value, longest)))


_WRITER = Writer(_plain, _plain, lambda written: f"<b>{written}</b>")
# A command is marked as code, so that readers don't type the full stop of the sentence around it.
_TYPED = replace(_WRITER, name=lambda value, longest: f"<code>{_plain(value, longest)}</code>")
# Running text must not break between a number and its unit.
_UNITS = re.compile(r"(?<=\d) (?=(?:[kMGTPE]?B(?:/s)?|%)(?!\w))")


def line(value: Value, writer: Writer = _WRITER) -> Markup:
    """A value as HTML."""
    return Markup(written(value, writer))


def lines(block: Lines, source: str) -> list[Markup]:
    """The first lines of a block as HTML, at most 100, and a sentence on the rest."""
    writer = _TYPED if block.line == "command" else _WRITER
    shown = [line(each, writer) for each in block.lines[:_MOST_LINES]]
    hidden_count = len(block.lines) - len(shown)
    return [*shown, escape(left_out_here(counted(hidden_count, block.line), source))] if hidden_count else shown


def files(plan: Plan, pages: Sequence[View] = ()) -> dict[str, bytes]:
    """`report.html` and `plots/*.svg` of a plan.json document, relative path → bytes; deterministic.

    `pages` are the views of other commands that the report includes.
    """
    moved, script = plot_movement.movement(plan), _template_text("report.js")
    drawn_plots = plots.draw(plan, moved)
    searched: list[tuple[str, str, Table[Any], int]] = [("topics", "Topics", cluster_tables.topics(plan), MOST_TOPICS)]
    if plan.partitions:
        moves = cluster_tables.partitions(plan)
        searched.insert(0, ("moves", "Every change, partition by partition", moves, MOST_MOVES))
    page = _template("report.html.j2").render(
        # The part above the first plot.
        cluster=printable(plan.cluster.name),
        first_step=headline.first_step(plan),
        headline=headline.headline(plan),
        verdict=verdict.verdict(plan),
        clear=headline.all_clear(plan) and not plan.refused,
        figures=_figures(plan),
        plan_id=plan.plan_id,
        inputs=[(printable(file.path), file.sha256) for file in plan.inputs[:_INPUTS_SHOWN]],
        sections=sections(plan, moved),
        drawn={plot.name: plot for plot in drawn_plots},
        source=SOURCE,
        pages=pages,
        searched=searched,
        style=STYLE + _template_text("report.css"),
        script=script,
        # The page allows only the script with this digest, so a name from the cluster can't smuggle one in.
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return {"report.html": page.encode(), **{f"plots/{plot.name}.svg": plot.file for plot in drawn_plots}}


def view_page(view: View, svg_plots: Mapping[str, Plot]) -> bytes:
    """A separate page for another command's view, with its sections' plots and without a script."""
    return (
        _template("view.html.j2")
        .render(view=view, drawn=svg_plots, style=STYLE + _template_text("report.css"))
        .encode()
    )


@cache
def _template(name: str) -> jinja2.Template:
    # The functions with which templates write values, and the most rows and sections that they show.
    html = environment().overlay(autoescape=True)
    html.globals = {**html.globals, "MOST_ROWS": MOST_ROWS, "SECTIONS_SHOWN": SECTIONS_SHOWN}
    html.globals |= {each.__name__: each for each in (line, lines, sort_key, counted, left_out_here)}
    return html.get_template(name)


@cache
def _template_text(name: str) -> str:
    return resource("templates", name).read_text(encoding="utf-8")


def _figures(plan: Plan) -> list[tuple[str, str]]:
    """The few numbers that a reviewer looks for first."""
    bound, sizes_known = plan.bound, plan.cluster.sizes_known
    partly = bool(plan.cluster.partitions_without_size)
    seconds = plan.execution.seconds_at_throttle
    return [
        ("copied, at least" if partly else "copied", size(bound.bytes_moved) if sizes_known else formats.UNKNOWN),
        (
            "the minimum for this" if partly or plan.unfinished or bound_section.looser(plan) else "the proven minimum",
            size(bound.least_bytes_moved) if sizes_known else formats.UNKNOWN,
        ),
        ("replicas copied", number(plan.replicas_copied)),
        ("leaders elected", number(sum(len(batch.elect) for batch in plan.batches))),
        ("batches", number(len(plan.batches))),
        ("duration, at least", formats.duration(seconds) if sizes_known else formats.UNKNOWN),
    ]
