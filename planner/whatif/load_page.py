"""A load profile as an HTML page: plots of the week, of the busiest topics and of growth, each with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model import formats
from planner.model.load_history import HOURS_OF_WEEK, About, hour_name, topic_growth
from planner.model.problem import FloatArray
from planner.report import html, plot_axes, plot_svg
from planner.report.plot_svg import COLOUR, Drawing, Mark, Plot
from planner.report.view import Column, Name, Quantity, Section, Table, View
from planner.whatif import load_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many topics have a panel with their week, and how many a row with their trend.
_WEEKS, _TRENDS = 5, 10
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONGEST_LABEL, _LONGEST_NAME = 11, 60
# Growth beyond this is drawn at the edge, in percent a month; the table has the number.
_LEAST_SHOWN, _MOST_SHOWN = -100.0, 1000.0
_rate = partial(formats.amount, unit="bytes/s")


@dataclass(frozen=True)
class TopicTrend:
    """Growth per month of what is written to a topic, and its 95 % interval, as fractions.

    Each is the mean of the partitions' values, weighted by their rates.
    """

    topic: str
    growth: float
    low: float
    high: float


def page(rows: pa.Table, about: About) -> bytes:
    """The page of a profile's rows (PROFILE_SCHEMA), the same bytes each time."""
    summary = load_view.summary(rows, about)
    names = [each.topic for each in summary.topics if each.mean_in or each.mean_out]
    known = trends(rows, names[:_TRENDS])
    with plot_svg.settings():
        drawings = [("week", _week(rows)), ("topics", _topics(rows, names[:_WEEKS]))] if names else []
        drawings += [("growth", _trends(known))] if known else []
        drawn = {name: plot_svg.finished(name, drawing) for name, drawing in drawings}
    return html.view_page(_view(summary, known, drawn), drawn)


def _view(summary: load_view.LoadSummary, known: Sequence[TopicTrend], drawn: dict[str, Plot]) -> View:
    facts, hours, topics = load_view.blocks(summary)
    sections = [Section("History", facts, "history")]
    for name, title, table in (("week", "Busiest hours", hours), ("topics", "Busiest topics", topics)):
        named = replace(table, title=title.lower())
        sections += [Section(title, (named,), name, name)] if name in drawn else []
    if known:
        sections.append(Section("Growth", (_trend_table(known),), "growth", "growth"))
    return View("Load profile", tuple(sections))


def trends(rows: pa.Table, topics: Sequence[str]) -> tuple[TopicTrend, ...]:
    """The trends of those of these topics whose growth is known, in the same order."""
    encoded = rows["topic"].combine_chunks().dictionary_encode()
    of, names = np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary.to_pylist()
    growth, low, high, rates = (
        np.asarray(rows[name].cast("double").fill_null(np.nan))
        for name in ("growth_per_month", "growth_low", "growth_high", "bytes_in_per_sec_mean")
    )
    ends = (np.where(np.isnan(end), growth, end) for end in (low, high))
    means = [topic_growth(of, len(names), each, rates).tolist() for each in (growth, *ends)]
    found = {name: TopicTrend(name, *each) for name, *each in zip(names, *means, strict=True) if not isnan(each[0])}
    return tuple(found[topic] for topic in topics if topic in found)


def _weeks(rows: pa.Table, name: str, topic: str | None = None) -> FloatArray:
    """(168,): bytes/s of all topics or of one in each hour of the week, unknown ones as 0."""
    of = rows if topic is None else rows.filter(pc.equal(rows["topic"], topic))
    flat = np.asarray(of[name].combine_chunks().flatten().fill_null(0), dtype=np.float64)
    total: FloatArray = flat.reshape(-1, HOURS_OF_WEEK).sum(axis=0)
    return total


def _week(rows: pa.Table) -> Drawing:
    figure, (axes,) = plot_axes.panels(1, 160)
    ways = (("in", "written", _weeks(rows, "hours_in")), ("out", "read", _weeks(rows, "hours_out")))
    marks = {}
    for role, words, week in ways:
        plot_axes.lines(axes, role, [_points(week)], [COLOUR[role]])
        marks[role] = [Mark(role, f"all topics, {words}: {_in_words(week)}")]
    _set_scale(axes, max(float(week.max()) for _, _, week in ways))
    _name_days(axes)
    plot_axes.heading(axes, "all topics")
    plot_axes.legend(axes, (("in", "written"), ("out", "read")))
    return Drawing(figure, "The week, hour by hour", f"What is written and read in each hour. {_IN_WORDS}", marks)


_IN_WORDS = "An hour is the mean of the same hour of all weeks of the history; the week begins on Monday, 00:00 UTC."


def _topics(rows: pa.Table, topics: Sequence[str]) -> Drawing:
    """A panel for each topic."""
    figure, panels = plot_axes.panels(len(topics), 60)
    marks = {}
    for at, (axes, topic) in enumerate(zip(panels, topics, strict=True), start=1):
        week = _weeks(rows, "hours_in", topic)
        plot_axes.lines(axes, f"topic{at}", [_points(week)], [COLOUR["in"]])
        marks[f"topic{at}"] = [Mark(f"topic-{at}", f"{formats.printable(topic, _LONGEST_NAME)}: {_in_words(week)}")]
        _set_scale(axes, float(week.max()))
        plot_axes.heading(axes, formats.printable(topic, _LONGEST_NAME))
    _name_days(panels[-1])
    words = f"What is written to the busiest topics in each hour; each has a scale of its own. {_IN_WORDS}"
    return Drawing(figure, "The week of the busiest topics", words, marks)


def _points(week: FloatArray) -> FloatArray:
    return np.column_stack([np.arange(HOURS_OF_WEEK) + 0.5, week])


def _in_words(week: FloatArray) -> str:
    hour = hour_name(int(week.argmax()))
    return f"{_rate(float(week.mean()))} on average, {_rate(float(week.max()))} on {hour}"


def _set_scale(axes: Axes, most: float) -> None:
    axes.set_xlim(0, HOURS_OF_WEEK)
    axes.set_ylim(0, 1.08 * max(1.0, most))
    plot_axes.amounts(axes, "y", _rate)


def _name_days(axes: Axes) -> None:
    plot_axes.under_axis(axes, [(24 * day + 12, name) for day, name in enumerate(_DAYS)])


def _trends(known: Sequence[TopicTrend]) -> Drawing:
    """A row for each topic, with the estimate inside its interval."""
    figure, (axes,) = plot_axes.panels(1, 18 * len(known))
    shown = 100 * np.array([(each.low, each.growth, each.high) for each in known])
    shown = shown.clip(_LEAST_SHOWN, _MOST_SHOWN)
    least, most = min(-1.0, float(shown.min())), max(1.0, float(shown.max()))
    # The least width of an interval, and half of an estimate's, so that both are seen.
    stroke = (most - least) / 300
    intervals = [(low, max(high, low + stroke), at - 0.1, at + 0.1) for at, (low, _, high) in enumerate(shown.tolist())]
    plot_axes.boxes(axes, "interval", intervals, COLOUR["before"])
    estimates = [(mid - stroke, mid + stroke, at - 0.35, at + 0.35) for at, (_, mid, _) in enumerate(shown.tolist())]
    plot_axes.boxes(axes, "estimate", estimates, COLOUR["after"])
    axes.set_xlim(least - 3 * stroke, most + 3 * stroke)
    axes.set_ylim(len(known) - 0.5, -0.5)
    plot_axes.beside_axis(axes, [(at, formats.printable(each.topic, _LONGEST_LABEL)) for at, each in enumerate(known)])
    plot_axes.amounts(axes, "x", formats.percent)
    plot_axes.heading(axes, "growth per month")
    titles = [_trend_in_words(each) for each in known]
    marks = {
        gid: [Mark(f"{gid}-{at}", title) for at, title in enumerate(titles, 1)] for gid in ("interval", "estimate")
    }
    return Drawing(figure, "The trend of the busiest topics", _TREND_IN_WORDS, marks)


_TREND_IN_WORDS = (
    "How much more is written a month later. The bar is the 95 % interval, the mark the estimate: both are the means "
    "of the topic's partitions, weighted by what is written to them."
)


def _trend_in_words(of: TopicTrend) -> str:
    growth, low, high = (formats.percent(round(100 * each, 1)) for each in (of.growth, of.low, of.high))
    return f"{formats.printable(of.topic, _LONGEST_NAME)}: {growth} per month, {low} to {high}"


def _trend_table(known: Sequence[TopicTrend]) -> Table[TopicTrend]:
    column = Column[TopicTrend]
    columns = (
        column("Topic", lambda row: Name(row.topic, _LONGEST_NAME), numeric=False),
        column("Growth per month", lambda row: Quantity(round(100 * row.growth, 1), "%")),
        column("at least", lambda row: Quantity(round(100 * row.low, 1), "%")),
        column("at most", lambda row: Quantity(round(100 * row.high, 1), "%")),
    )
    return Table("", "growth per month", "topic", known, columns)
