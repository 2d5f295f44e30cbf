"""A load profile for people, as text and as a page with plots: the busiest topics and hours, growth, and flaws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model import formats, load_history
from planner.model.formats import counted, number
from planner.model.problem import FloatArray, LongArray
from planner.report import html, plot_axes, plot_svg
from planner.report.plot_svg import COLOR, Drawing, Mark
from planner.report.view import Column, Facts, Lines, Name, Quantity, Table, View, ViewSection, visible

_TOPICS_SHOWN, _HOURS_SHOWN, _UNTRUSTED_SHOWN = 10, 5, 10
_LONGEST_TOPIC = 60
_RATE = "bytes/s"


@dataclass(frozen=True)
class LoadedTopic:
    """The sums over a topic's partitions, rates in bytes/s; growth is a fraction per month.

    Partitions without a value are left out; a sum is None if all are without. `busiest_hour` is the hour of the week
    with the highest mean rate in, 0 for Monday 00:00 UTC; None without rates. `at_end`: the rate in at the end of the
    history, divided by its mean.
    """

    topic: str
    partitions: int
    size_bytes: int | None
    mean_in: float | None
    mean_out: float | None
    busiest_hour: int | None
    busiest_in: float | None
    growth_per_month: float | None
    at_end: float


@dataclass(frozen=True)
class BusyHour:
    """An hour of the week, 0 for Monday 00:00 UTC, and the sums of all topics' mean rates in it, in bytes/s.

    None if no rate is known.
    """

    hour: int
    rate_in: float | None
    rate_out: float | None


@dataclass(frozen=True)
class LoadSummary:
    """A profile summed over the cluster; hours and topics are sorted by their rate in, the busiest first.

    Partitions without a value are left out and counted in `lacking`, by column; a sum is None if all are without.
    """

    about: load_history.HistoryFacts
    partitions: int
    size_bytes: int | None
    mean_in: float | None
    mean_out: float | None
    lacking: Mapping[str, int]
    hours: tuple[BusyHour, ...]
    topics: tuple[LoadedTopic, ...]


def summary(rows: pa.Table, about: load_history.HistoryFacts) -> LoadSummary:
    """The summary of a profile's rows (PROFILE_SCHEMA)."""
    topic_of, names = load_history.topics_of(rows)
    per_month, coverage, *columns = load_history.columns(rows, "growth_per_month", "coverage", *_SUMMED)
    growth = load_history.topic_growth(topic_of, len(names), per_month, columns[1])
    ends = load_history.topic_ends(topic_of, growth, coverage, about.span)
    weeks = load_history.weeks(rows, "hours_in", "hours_out")
    week_in = _sums(weeks[0], topic_of, len(names))
    topic_sums = [_sums(each, topic_of, len(names)) for each in columns]
    by_topic = zip(names, np.bincount(topic_of), *topic_sums, week_in, growth, ends, strict=True)
    topics = [
        LoadedTopic(
            name,
            int(count),
            None if isnan(stored) else int(stored),
            _or_none(rate_in),
            _or_none(rate_out),
            int(np.nanargmax(week)) if np.nan_to_num(week).any() else None,
            None if np.isnan(week).all() else float(np.nanmax(week)),
            _or_none(grows),
            round(end, 6),
        )
        for name, count, stored, rate_in, rate_out, week, grows, end in by_topic
    ]
    one_group = np.zeros_like(topic_of)
    size, mean_in, mean_out = (_sums(each, one_group, 1)[0] for each in columns)
    cluster_hours = zip(*(_sums(each, one_group, 1)[0] for each in weeks), strict=True)
    hours = [BusyHour(hour, *map(_or_none, rates)) for hour, rates in enumerate(cluster_hours)]
    return LoadSummary(
        about,
        len(topic_of),
        None if isnan(size) else int(size),
        _or_none(mean_in),
        _or_none(mean_out),
        {name: int(np.isnan(each).sum()) for name, each in zip(_SUMMED, columns, strict=True)},
        tuple(sorted(hours, key=lambda each: (-(each.rate_in or 0), each.hour))),
        tuple(sorted(topics, key=lambda each: (-(each.mean_in or 0), each.topic))),
    )


_SUMMED = {"size_bytes": "size", "bytes_in_per_sec_mean": "rate of writes", "bytes_out_per_sec_mean": "rate of reads"}


def _sums(values: FloatArray, group_of: LongArray, groups: int) -> FloatArray:
    """(G, ...): the sums of the known values (N, ...) of each group's partitions; NaN if none is known."""
    total: FloatArray = np.zeros((groups, *values.shape[1:]))
    is_known = np.zeros(total.shape, dtype=bool)
    np.add.at(total, group_of, np.nan_to_num(values))
    np.logical_or.at(is_known, group_of, ~np.isnan(values))
    return np.where(is_known, total, np.nan)


def _or_none(value: float) -> float | None:
    return None if isnan(value) else float(value)


def view(profile: LoadSummary) -> View:
    """The output of `planner load --show`."""
    history, hours, topics = blocks(profile)
    return View("Load profile", (ViewSection("", visible(history[0], hours, topics, *history[1:])),))


def blocks(profile: LoadSummary) -> tuple[tuple[Facts, Lines], Table[BusyHour], Table[LoadedTopic]]:
    """The history with its flaws; the busiest hours; the busiest topics."""
    span = profile.about.span
    first, end = (datetime.fromtimestamp(hour * load_history.HOUR_SECONDS, UTC) for hour in (span.first, span.end))
    facts = Facts(
        (
            ("History", f"{first:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({counted(span.hours, 'hour')})"),
            ("Partitions", f"{counted(profile.partitions, 'partition')} of {counted(len(profile.topics), 'topic')}"),
            ("Stored, one copy", Quantity(profile.size_bytes, "bytes")),
            ("Written, mean", Quantity(profile.mean_in, _RATE)),
            ("Read, mean", Quantity(profile.mean_out, _RATE)),
        )
    )
    lacking = (
        f"{counted(count, 'partition')} without a {_SUMMED[name]}, which the sums leave out"
        for name, count in profile.lacking.items()
        if 0 < count < profile.partitions
    )
    times = {topic.topic: topic.at_end for topic in profile.topics}
    flaws = (
        *load_history.history_warnings(span),
        *load_history.outgrown(span, times),
        *lacking,
        *_flaws(profile.about.findings),
    )
    column = Column[BusyHour]
    columns = (
        column("Busiest hours", lambda row: load_history.hour_name(row.hour, profile.about.time_zone), numeric=False),
        column("Written", lambda row: Quantity(row.rate_in, _RATE)),
        column("Read", lambda row: Quantity(row.rate_out, _RATE)),
    )
    busy_hours = [each for each in profile.hours if each.rate_in or each.rate_out]
    hours = Table("hour", busy_hours, columns, most=_HOURS_SHOWN)
    return (facts, Lines(flaws, quiet=True)), hours, _topic_table(profile)


def _topic_table(profile: LoadSummary) -> Table[LoadedTopic]:
    column = Column[LoadedTopic]

    def busiest(row: LoadedTopic) -> str | None:
        return None if row.busiest_hour is None else load_history.hour_name(row.busiest_hour, profile.about.time_zone)

    def growth(row: LoadedTopic) -> Quantity:
        return Quantity(None if row.growth_per_month is None else round(100 * row.growth_per_month, 3), "%")

    columns = (
        column("Busiest topics", lambda row: Name(row.topic, _LONGEST_TOPIC), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("Stored", lambda row: Quantity(row.size_bytes, "bytes")),
        column("Written", lambda row: Quantity(row.mean_in, _RATE)),
        column("Read", lambda row: Quantity(row.mean_out, _RATE)),
        column("Busiest hour", busiest, numeric=False),
        column("Written then", lambda row: Quantity(row.busiest_in, _RATE)),
        column("Growth per month", growth),
    )
    return Table("topic", profile.topics, columns, most=_TOPICS_SHOWN)


_FLAW_NAMES = {
    "unreadable_rows": "row without a valid topic name, partition or time (left out)",
    "repeated_samples": "sample with the same time as another one (their mean counts)",
    "unusable_values": "value below 0, too large or no number (left out)",
    "misdated_samples": "sample more than a week apart from the others, or before 2001, as of a wrong clock (left out)",
    "hours_without_samples": "sample missing (each is one partition in one hour)",
    "appeared_partitions": "partition that appeared after the history began",
    "vanished_partitions": "partition without samples at the end of the history",
    "counter_resets": "counter that began again at 0",
    "gaps_in_counters": "gap of more than six hours in a counter",
    "moved_partitions": "partition that moved to other brokers",
}


def _flaws(findings: load_history.Findings) -> Iterator[str]:
    for key, words in _FLAW_NAMES.items():
        if count := findings.counts.get(key, 0):
            noun, _, rest = words.partition(" ")
            yield f"{number(count)} {noun}{'' if count == 1 else 's'} {rest}"
    for topic, reason in list(findings.untrusted.items())[:_UNTRUSTED_SHOWN]:
        yield f"topic {topic} can't be trusted: {reason}"
    hidden_count = len(findings.untrusted) - _UNTRUSTED_SHOWN
    if hidden_count > 0:
        yield f"{counted(hidden_count, 'more topic')} can't be trusted"


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many topics have a panel with their week, and how many have a row with their trend.
_WEEKS, _TRENDS = 5, 10
_LONGEST_LABEL, _LONGEST_NAME = 36, 60
# Growth beyond these values, in percent a month, is drawn at the edge; the table has the number.
_LEAST_SHOWN, _MOST_SHOWN = -100.0, 1000.0
_rate = partial(formats.amount, unit="bytes/s")


@dataclass(frozen=True)
class TopicTrend:
    """Monthly growth of what is written to a topic, with its 95 % interval, as fractions.

    Each number is the mean of the partitions' values, weighted by their rates.
    """

    topic: str
    growth: float
    low: float
    high: float


def page(rows: pa.Table, about: load_history.HistoryFacts) -> bytes:
    """The page of a profile's rows (PROFILE_SCHEMA); equal rows give equal bytes."""
    profile = summary(rows, about)
    names = [each.topic for each in profile.topics if each.mean_in or each.mean_out]
    known_trends = trends(rows, names[:_TRENDS])
    with plot_svg.settings():
        drawings = [("week", _week_drawing(rows)), ("topics", _topic_drawing(rows, names[:_WEEKS]))] if names else []
        drawings += [("growth", _trend_drawing(known_trends))] if known_trends else []
        plots = {name: plot_svg.as_svg(name, drawing) for name, drawing in drawings}
    facts, hours, topics = blocks(profile)
    sections = [ViewSection("History", facts, "history")]
    for name, title, table in (("week", "Busiest hours", hours), ("topics", "Busiest topics", topics)):
        titled = replace(table, title=title.lower())
        sections += [ViewSection(title, (titled,), name, name)] if name in plots else []
    if known_trends:
        sections.append(ViewSection("Growth", (_trend_table(known_trends),), "growth", "growth"))
    return html.view_page(View("Load profile", tuple(sections)), plots)


def trends(rows: pa.Table, topics: Sequence[str]) -> tuple[TopicTrend, ...]:
    """The trends of these topics, in the same order, without topics whose growth is unknown."""
    topic_of, names = load_history.topics_of(rows)
    names_of_growth = ("growth_per_month", "growth_low", "growth_high")
    growth, low, high, rates = load_history.columns(rows, *names_of_growth, "bytes_in_per_sec_mean")
    bounds = (np.where(np.isnan(end), growth, end) for end in (low, high))
    means = [load_history.topic_growth(topic_of, len(names), each, rates).tolist() for each in (growth, *bounds)]
    by_topic = {name: TopicTrend(name, *each) for name, *each in zip(names, *means, strict=True) if not isnan(each[0])}
    return tuple(by_topic[topic] for topic in topics if topic in by_topic)


def _week_rates(rows: pa.Table, name: str, topic: str | None = None) -> FloatArray:
    """(168,): bytes/s of all topics, or of one, in each hour of the week; 0 if unknown."""
    topic_rows = rows if topic is None else rows.filter(pc.equal(rows["topic"], topic))
    total: FloatArray = np.nansum(load_history.weeks(topic_rows, name)[0], axis=0)
    return total


def _week_drawing(rows: pa.Table) -> Drawing:
    figure, (axes,) = plot_axes.panels(1, 160)
    ways = (("in", "written", _week_rates(rows, "hours_in")), ("out", "read", _week_rates(rows, "hours_out")))
    marks = {}
    for role, words, week in ways:
        plot_axes.lines(axes, role, [_points(week)], [COLOR[role]])
        marks[role] = [Mark(role, f"all topics, {words}: {_in_words(week)}")]
    _set_scale(axes, max(float(week.max()) for _, _, week in ways))
    _name_days(axes)
    plot_axes.heading(axes, "all topics")
    plot_axes.legend(axes, (("in", "written"), ("out", "read")))
    return Drawing(figure, "The week, hour by hour", f"What is written and read in each hour. {_IN_WORDS}", marks)


_IN_WORDS = "An hour is the mean of the same hour of all weeks of the history; the week begins on Monday, 00:00 UTC."


def _topic_drawing(rows: pa.Table, topics: Sequence[str]) -> Drawing:
    """A panel for each topic."""
    figure, panels = plot_axes.panels(len(topics), 60)
    marks = {}
    for n, (axes, topic) in enumerate(zip(panels, topics, strict=True), start=1):
        week = _week_rates(rows, "hours_in", topic)
        plot_axes.lines(axes, f"topic{n}", [_points(week)], [COLOR["in"]])
        marks[f"topic{n}"] = [Mark(f"topic-{n}", f"{formats.printable(topic, _LONGEST_NAME)}: {_in_words(week)}")]
        _set_scale(axes, float(week.max()))
        plot_axes.heading(axes, formats.printable(topic, _LONGEST_NAME))
    _name_days(panels[-1])
    words = f"What is written to the busiest topics in each hour; each has a scale of its own. {_IN_WORDS}"
    return Drawing(figure, "The week of the busiest topics", words, marks)


def _points(week: FloatArray) -> FloatArray:
    return np.column_stack([np.arange(load_history.HOURS_OF_WEEK) + 0.5, week])


def _in_words(week: FloatArray) -> str:
    hour = load_history.hour_name(int(week.argmax()))
    return f"{_rate(float(week.mean()))} on average, {_rate(float(week.max()))} on {hour}"


def _set_scale(axes: Axes, most: float) -> None:
    axes.set_xlim(0, load_history.HOURS_OF_WEEK)
    axes.set_ylim(0, 1.08 * max(1.0, most))
    plot_axes.draw_amounts(axes, "y", _rate)


def _name_days(axes: Axes) -> None:
    plot_axes.under_axis(axes, [(24 * day + 12, name[:3]) for day, name in enumerate(load_history.DAYS)])


def _trend_drawing(topic_trends: Sequence[TopicTrend]) -> Drawing:
    """One row per topic, with the estimate inside its interval."""
    labels = [formats.printable(each.topic, _LONGEST_LABEL) for each in topic_trends]
    figure, (axes,) = plot_axes.panels(1, 18 * len(topic_trends), left=plot_axes.label_width(labels))
    percents = 100 * np.array([(each.low, each.growth, each.high) for each in topic_trends])
    percents = percents.clip(_LEAST_SHOWN, _MOST_SHOWN)
    least, most = min(-1.0, float(percents.min())), max(1.0, float(percents.max()))
    # The least width of an interval, and half the width of an estimate, so that both are visible.
    stroke = (most - least) / 300
    intervals = [(low, max(high, low + stroke), y - 0.1, y + 0.1) for y, (low, _, high) in enumerate(percents.tolist())]
    plot_axes.boxes(axes, "interval", intervals, COLOR["before"])
    estimates = [(mid - stroke, mid + stroke, y - 0.35, y + 0.35) for y, (_, mid, _) in enumerate(percents.tolist())]
    plot_axes.boxes(axes, "estimate", estimates, COLOR["after"])
    axes.set_xlim(least - 3 * stroke, most + 3 * stroke)
    axes.set_ylim(len(topic_trends) - 0.5, -0.5)
    plot_axes.beside_axis(axes, list(enumerate(labels)))
    plot_axes.draw_amounts(axes, "x", formats.percent)
    plot_axes.heading(axes, "growth per month")
    titles = []
    for each in topic_trends:
        growth, low, high = (formats.percent(round(100 * value, 3)) for value in (each.growth, each.low, each.high))
        titles.append(f"{formats.printable(each.topic, _LONGEST_NAME)}: {growth} per month, {low} to {high}")
    marks = {gid: [Mark(f"{gid}-{n}", title) for n, title in enumerate(titles, 1)] for gid in ("interval", "estimate")}
    return Drawing(figure, "The trend of the busiest topics", _TREND_IN_WORDS, marks)


_TREND_IN_WORDS = (
    "How much more is written a month later. The bar is the 95 % interval, the mark the estimate: both are the means "
    "of the topic's partitions, weighted by what is written to them."
)


def _trend_table(topic_trends: Sequence[TopicTrend]) -> Table[TopicTrend]:
    column = Column[TopicTrend]
    columns = (
        column("Topic", lambda row: Name(row.topic, _LONGEST_NAME), numeric=False),
        column("Growth per month", lambda row: Quantity(round(100 * row.growth, 3), "%")),
        column("at least", lambda row: Quantity(round(100 * row.low, 3), "%")),
        column("at most", lambda row: Quantity(round(100 * row.high, 3), "%")),
    )
    return Table("topic", topic_trends, columns, title="growth per month")
