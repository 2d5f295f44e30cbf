"""Draws the plots of report.html and `plots/*.svg` from plan.json: the front, loads before and after, and movement.

The number of marks in a plot is bounded for plans of any size, and the same plan gives the same bytes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from planner.model import formats
from planner.model.load_history import DAYS, HOURS_OF_WEEK, hour_name, hours_ahead
from planner.model.problem import FloatArray
from planner.plan.document.cluster_types import BrokerRow, HoursSection, RackRow
from planner.plan.document.comparison_types import DO_NOTHING, THIS_PLAN
from planner.plan.document.plan_types import Plan
from planner.report import plot_axes, plot_movement, plot_svg, sentences
from planner.report.plot_movement import OTHERS, Movement
from planner.report.plot_svg import COLOR, Drawing, Mark, Plot

LoadRows = Sequence[BrokerRow] | Sequence[RackRow]

_POINTS_SHOWN = 60
_BARS_SHOWN = 60
# From this many brokers on, bars are too thin to compare.
_MANY_BROKERS = 50
_COLUMNS_SHOWN = 240
_IDS_SHOWN = 12
_ROW_POINTS = 15
# The faintest cell still differs visibly from an empty one.
_FAINTEST, _STRONGEST = 0.1, 0.9
# The scale has a minimum, so that a balanced cluster doesn't show one replica of difference in the strongest color.
_LEAST_SCALE, _MOST_SCALE = 0.05, 1.0
_SIDES = (("before", "today"), ("after", "plan"))
_LONGEST_NAME = 16
_PANEL_POINTS, _WIDEST_PAIR = 84, 90
_TRAFFIC = ("network_in", "network_out")
_WORDS = {
    "size_bytes": "bytes stored",
    "replicas": "replicas",
    "leaders": "leaders",
    "network_in": "network in",
    "network_out": "network out",
}
_UNITS = {"size_bytes": "bytes", **dict.fromkeys(_TRAFFIC, "bytes/s")}


def draw(plan: Plan, moved: Movement) -> tuple[Plot, ...]:
    """Every plot that has content for a plan.json document: without racks no plot of racks, without moves no map."""
    with plot_svg.settings():
        return tuple(plot_svg.as_svg(name, drawing) for name, drawing in _drawings(plan, moved))


def _drawings(plan: Plan, moved: Movement) -> Iterator[tuple[str, Drawing]]:
    if len(plan.pareto) > 1:
        yield "front", _front(plan)
    if len(plan.brokers) >= _MANY_BROKERS:
        yield "brokers", _heat_map(plan)
    elif plan.brokers:
        yield "brokers", _bars(plan, plan.brokers, "broker", [f"{_SIGNS[row.role]}{row.id}" for row in plan.brokers])
    if plan.racks:
        names = ["none" if row.rack is None else formats.printable(row.rack, _LONGEST_NAME) for row in plan.racks]
        yield "racks", _bars(plan, plan.racks, "rack", names)
    if plan.hours is not None:
        yield "hours", hours(plan.hours)
    if moved.copied.any():
        yield "movement", plot_movement.pairs(plan, moved)
        yield "batches", plot_movement.batches(plan, moved)
        yield "held", plot_movement.stored(plan, moved)


_SIGNS = {"stays": "", "added": "+", "removed": "−"}


@dataclass(frozen=True)
class _PlotPoint:
    """A point of the front, or an alternative outside it: its values on both axes, its name and its marker."""

    x: int
    y: float
    name: str
    marker: str
    role: str
    is_named: bool
    above: str


def _front(plan: Plan) -> Drawing:
    """The amount copied (x) and how far the broker furthest above its share is above it (y); lower left is better."""
    key, as_text = ("bytes_moved", formats.size) if plan.cluster.sizes_known else ("replicas_moved", formats.number)
    points = list(_points(plan, key))
    figure, (axes,) = plot_axes.panels(1, 190)
    for index, point in enumerate(points):
        style: Any = {"ms": 11 if point.marker == "D" else 6, "mew": 1.8, "mec": COLOR[point.role], "clip_on": False}
        fill = COLOR[point.role] if point.marker == "o" else "none"
        (line,) = axes.plot([point.x], [point.y], point.marker, mfc=fill, **style)
        line.set_gid(f"point{index}")
    most = max(point.x for point in points) or 1
    axes.set_xlim(-0.02 * most, 1.05 * most)
    lowest, highest = (pick(0.0, *(point.y for point in points)) for pick in (min, max))
    margin = 0.06 * ((highest - lowest) or 1)
    axes.set_ylim(lowest - margin, highest + margin)
    plot_axes.label_points(axes, [(point.x, point.y, point.name) for point in points if point.is_named], beside=11)
    plot_axes.draw_amounts(axes, "x", as_text)
    plot_axes.draw_amounts(axes, "y", formats.percent)
    plot_axes.name_below(axes, "copied" if key == "bytes_moved" else "replicas copied")
    plot_axes.heading(axes, "imbalance: how far the worst broker is above its share")
    titles = [f"{point.name}: {as_text(point.x)} copied, {point.above} above share" for point in points]
    marks = {f"point{index}": [Mark(f"point-{index + 1}", title)] for index, title in enumerate(titles)}
    return Drawing(figure, "What copying less or more would give", _FRONT_IN_WORDS, marks)


_FRONT_IN_WORDS = (
    "Each point is a plan. Horizontal: what it copies. Vertical: how far the broker furthest above its share is above "
    "it, of replicas, leaders, bytes or traffic. Lower left is better. The diamond is this plan; triangles are Kafka's "
    "own placements."
)


def _points(plan: Plan, key: str) -> Iterator[_PlotPoint]:
    """Kafka's own placements, which aren't on the front; then the points of the front."""
    for other in plan.compared:
        if other.label not in (THIS_PLAN, DO_NOTHING):
            name = formats.printable(other.label, 40)
            yield _PlotPoint(
                getattr(other, key), other.imbalance_percent, name, "^", "out", True, sentences.above_share(other)
            )
    for row in sentences.spread_out(plan.pareto, _POINTS_SHOWN):
        is_unchanged = row.strategy == "unchanged"
        name = THIS_PLAN if row.chosen else DO_NOTHING if is_unchanged else sentences.origin(plan, row)
        role, marker = ("after", "D") if row.chosen else ("quiet", "o")
        is_named = row.chosen or is_unchanged
        yield _PlotPoint(
            getattr(row, key), row.imbalance_percent, name, marker, role, is_named, sentences.above_share(row)
        )


def _bars(plan: Plan, rows: LoadRows, noun: str, all_labels: Sequence[str]) -> Drawing:
    """A panel for each measure with two bars for each broker or rack: before, and after."""
    keys = _measures(plan)
    # Shows all rows; if they are too many, added and removed brokers, the rows largest before or after, and OTHERS.
    largest_amounts = [max(getattr(row.before, keys[0]), getattr(row.after, keys[0])) for row in rows]
    comes_or_leaves = [isinstance(row, BrokerRow) and row.role != "stays" for row in rows]
    indices = plot_movement.largest(np.array(largest_amounts, dtype=np.int64), _BARS_SHOWN, comes_or_leaves)
    labels = ["others" if index == OTHERS else all_labels[index] for index in indices]
    figure, panels = plot_axes.panels(len(keys), _PANEL_POINTS, labels, widest=_WIDEST_PAIR)
    marks = {}

    def heights(side: str, key: str) -> list[int]:
        """The amount of each kept row, and the mean of the others, because their sum would dwarf the largest row."""
        amounts = [getattr(getattr(row, side), key) for row in rows]
        others = [amounts[index] for index in sorted(set(range(len(rows))) - set(indices))]
        return [round(sum(others) / len(others)) if index == OTHERS else amounts[index] for index in indices]

    for axes, key in zip(panels, keys, strict=True):
        both_sides = [heights(side, key) for side, _ in _SIDES]
        as_text = partial(formats.amount, unit=_UNITS.get(key, key))
        for offset, (side, when), values in zip((-0.4, 0.02), _SIDES, both_sides, strict=True):
            gid = f"{key}-{side}"
            plot_axes.bars(axes, gid, values, offset, COLOR[side])
            marks[gid] = [
                Mark(f"{gid}-{index}", f"{noun} {name}, {when}: {as_text(value)} {_WORDS[key]}")
                for index, (name, value) in enumerate(zip(labels, values, strict=True), 1)
            ]
        axes.set_ylim(0, 1.08 * max(1, *both_sides[0], *both_sides[1]))
        plot_axes.draw_amounts(axes, "y", as_text)
        plot_axes.heading(axes, _WORDS[key])
    plot_axes.legend(panels[0], _SIDES)
    words = f"Two bars per {noun}: today and after the plan."
    words += " A + marks a broker that joins, a − one that leaves." if noun == "broker" else ""
    words += f" The last pair is the mean of the other {len(rows) - len(indices) + 1}." if OTHERS in indices else ""
    return Drawing(figure, f"Today and after the plan, by {noun}", words, marks)


def _measures(plan: Plan) -> list[str]:
    size = ["size_bytes"] if plan.cluster.sizes_known else []
    return [*size, "replicas", "leaders", *(_TRAFFIC if sentences.states_traffic(plan) else ())]


def _heat_map(plan: Plan) -> Drawing:
    """The plot for many brokers: two rows a measure, today and plan; a broker's cell is its distance from the mean."""
    columns, measures = _columns(plan.brokers), _measures(plan)
    figure, (axes,) = plot_axes.panels(1, _ROW_POINTS * 2 * len(measures))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(2 * len(measures) - 0.5, -0.5)
    values = [_means(columns, side, key) for key in measures for side, _ in _SIDES]
    from_mean = []
    for row in values:
        mean = float(np.nanmean(row)) if not np.isnan(row).all() else 0.0
        from_mean.append(row / mean - 1 if mean else np.where(np.isnan(row), np.nan, 0.0))
    scale = min(_MOST_SCALE, max(_LEAST_SCALE, *(float(np.nanmax(np.abs(row), initial=0)) for row in from_mean)))
    cells: dict[str, list[tuple[tuple[float, float, float, float], float, Mark]]] = {"out": [], "heat": []}
    for index, (row, offsets) in enumerate(zip(values, from_mean, strict=True)):
        key, (side, when) = measures[index // 2], _SIDES[index % 2]
        words, as_text = _WORDS[key], partial(formats.amount, unit=_UNITS.get(key, key))
        for column in np.flatnonzero(~np.isnan(offsets)).tolist():
            role = "out" if offsets[column] > 0 else "heat"
            top = index - 0.4 - 0.1 * (index % 2)
            opacity = _FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, abs(float(offsets[column])) / scale)
            name = columns[column][0]
            percent, direction = (
                formats.percent(round(100 * abs(offsets[column]), 2)),
                "above" if offsets[column] > 0 else "below",
            )
            comparison = f"{percent} {direction} the mean" if offsets[column] else "at the mean"
            title = f"{name}, {when}: {as_text(round(float(row[column])))} {words}, {comparison}"
            mark = Mark(f"{key}-{side}-{column + 1}", title)
            cells[role].append(((column - 0.5, column + 0.5, top, top + 0.9), round(opacity, 3), mark))
    marks = {}
    for role, role_cells in cells.items():
        if role_cells:
            corners, opacities, marks[role] = zip(*role_cells, strict=True)
            plot_axes.boxes(axes, role, corners, COLOR[role], opacities)
    plot_axes.beside_axis(axes, [(2 * index + 0.5, _WORDS[key]) for index, key in enumerate(measures)])
    named_indices = range(0, len(columns), -(-len(columns) // _IDS_SHOWN))
    plot_axes.under_axis(axes, [(index, columns[index][0].removeprefix("broker ")) for index in named_indices])
    plot_axes.name_below(axes, "broker")
    plot_axes.heading(axes, "distance from the mean: upper rows today, lower rows plan")
    plot_axes.legend(axes, (("heat", "below the mean"), ("out", "above the mean")))
    other_count = len(plan.brokers) - len(columns) + 1
    note = f" The last column is the mean of the other {other_count}." if other_count > 1 else ""
    words = _HEAT_IN_WORDS.format(scale=formats.percent(100 * scale))
    return Drawing(figure, "Today and after the plan, by broker", words + note, marks)


_HEAT_IN_WORDS = (
    "One column per broker, ordered by id, and two rows per measure: today and after the plan. "
    "The stronger the color, the farther the broker is from the mean of all brokers; the strongest is {scale} or more. "
    "An empty cell is a broker that is not in the cluster then."
)


def _columns(brokers: Sequence[BrokerRow]) -> list[tuple[str, Sequence[BrokerRow]]]:
    """(name, brokers) of each column: one broker each, with preference for added and removed ones; last, the rest."""
    replica_counts = np.array([max(row.before.replicas, row.after.replicas) for row in brokers], dtype=np.int64)
    indices = plot_movement.largest(replica_counts, _COLUMNS_SHOWN, [row.role != "stays" for row in brokers])
    columns: list[tuple[str, Sequence[BrokerRow]]] = [
        (f"broker {brokers[index].id}", (brokers[index],)) for index in indices if index != OTHERS
    ]
    others = [row for index, row in enumerate(brokers) if index not in indices]
    return [*columns, ("the others", others)] if others else columns


def _means(columns: Sequence[tuple[str, Sequence[BrokerRow]]], side: str, key: str) -> FloatArray:
    """(columns,) the mean amount of each column's brokers; NaN if none of them is in the cluster at that time."""
    absent_role = "added" if side == "before" else "removed"
    amounts = [[getattr(getattr(row, side), key) for row in rows if row.role != absent_role] for _, rows in columns]
    return np.array([np.mean(each) if each else np.nan for each in amounts])


def hours(section: HoursSection) -> Drawing:
    """A panel for today, and below it one for the plan: a row for each broker, a column for each hour of the week."""
    peaks = np.array([max(map(int, row.today + row.plan)) for row in section.brokers], dtype=np.int64)
    rows = [section.brokers[index] for index in plot_movement.largest(peaks, _WEEKS_SHOWN) if index != OTHERS]
    figure, panels = plot_axes.panels(2, _WEEK_POINTS * len(rows))
    marks = {}

    def peak(week: str) -> str:
        """The first of a broker's highest hours, and its traffic then, at most."""
        level = max(map(int, week))
        traffic = formats.amount(section.highest * level // 9, "bytes/s")
        return (
            f"at most {traffic}, first on {hour_name(week.index(str(level)), section.time_zone)}"
            if level
            else "no traffic"
        )

    for axes, side in zip(panels, ("today", "plan"), strict=True):
        weeks = [getattr(row, side) for row in rows]
        axes.set_xlim(0, HOURS_OF_WEEK)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        for level in range(1, 10):
            # Consecutive hours of the same level are one stroke.
            runs = [(index, *run.span()) for index, week in enumerate(weeks) for run in re.finditer(f"{level}+", week)]
            strength = _FAINTEST + (_STRONGEST - _FAINTEST) * (level - 1) / 8
            plot_axes.strokes(axes, runs, COLOR["heat"], round(strength, 3), _WEEK_POINTS - 2)
        # A tooltip is about a broker's whole week.
        corners = [(0.0, float(HOURS_OF_WEEK), index - 0.5, index + 0.5) for index in range(len(rows))]
        # A box without any fill shows no tooltip.
        plot_axes.boxes(axes, side, corners, COLOR["heat"], [0.001] * len(rows))
        marks[side] = [
            Mark(f"{side}-{index + 1}", f"broker {row.id}, {side}: {peak(week)}")
            for index, (row, week) in enumerate(zip(rows, weeks, strict=True))
        ]
        plot_axes.beside_axis(axes, [(index, str(row.id)) for index, row in enumerate(rows)])
        plot_axes.heading(axes, "today" if side == "today" else "with the plan")
    # Columns are hours of UTC, so a day of another zone begins in another column.
    noons = [((24 * day + 12 - hours_ahead(section.time_zone)) % HOURS_OF_WEEK, name) for day, name in enumerate(DAYS)]
    plot_axes.under_axis(panels[-1], noons)
    plot_axes.name_below(panels[-1], f"hour of the week, {section.time_zone}")
    hidden_count = len(section.brokers) - len(rows)
    note = f" {hidden_count} brokers with lower peaks aren't shown." if hidden_count else ""
    return Drawing(figure, "The week, hour by hour, of each broker", _HOURS_IN_WORDS + note, marks)


# The most brokers with a row, and the height of a row.
_WEEKS_SHOWN, _WEEK_POINTS = 24, 11
_HOURS_IN_WORDS = (
    "One row per broker, one column per hour of the week: traffic in or out, whichever is more. The strongest color is "
    "the most that any broker has in any hour, today or with the plan."
)
