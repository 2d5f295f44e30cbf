"""A heat map of brokers × measures, for clusters whose bars and rows are too many to compare by eye."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.model import formats
from planner.model.problem import FloatArray
from planner.plan.document.cluster_types import BrokerRow
from planner.plan.document.plan_types import Plan
from planner.report import plot_axes, plot_values
from planner.report.plot_svg import COLOUR, Drawing, Mark
from planner.report.plot_values import OTHERS

BROKERS = 50
"""From this many brokers on, bars are too thin to compare."""
_COLUMNS_SHOWN = 240
_IDS_SHOWN = 12
_ROW_POINTS = 15
# The faintest is still to be told from an empty cell.
_FAINTEST, _STRONGEST = 0.1, 0.9
# A balanced cluster would otherwise show the last replica of difference as strongly as another one shows its half.
_LEAST_SCALE, _MOST_SCALE = 0.05, 1.0
_SIDES = (("before", "today"), ("after", "plan"))


def loads(plan: Plan, measures: Sequence[tuple[str, str, Callable[[int], str]]]) -> Drawing:
    """Two rows for each measure, today and plan; a cell for each broker: how far it is from the mean.

    `measures` are a key of `before` and `after`, what it is called, and how an amount of it is written.
    """
    columns = _columns(plan.brokers)
    figure, (axes,) = plot_axes.panels(1, _ROW_POINTS * 2 * len(measures))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(2 * len(measures) - 0.5, -0.5)
    values = [_values(columns, side, key) for key, _, _ in measures for side, _ in _SIDES]
    from_mean = [_from_mean(row) for row in values]
    scale = min(_MOST_SCALE, max(_LEAST_SCALE, *(float(np.nanmax(np.abs(row), initial=0)) for row in from_mean)))
    corners: dict[str, list[tuple[float, float, float, float]]] = {"out": [], "heat": []}
    opacity: dict[str, list[float]] = {"out": [], "heat": []}
    marks: dict[str, list[Mark]] = {"out": [], "heat": []}
    for at, (row, away) in enumerate(zip(values, from_mean, strict=True)):
        key, words, written = measures[at // 2]
        side, when = _SIDES[at % 2]
        for column in np.flatnonzero(~np.isnan(away)).tolist():
            role = "out" if away[column] > 0 else "heat"
            top = at - 0.4 - 0.1 * (at % 2)
            corners[role].append((column - 0.5, column + 0.5, top, top + 0.9))
            part = min(1.0, abs(float(away[column])) / scale)
            opacity[role].append(round(_FAINTEST + (_STRONGEST - _FAINTEST) * part, 3))
            name = columns[column][0]
            title = f"{name}, {when}: {written(round(float(row[column])))} {words}, {_signed(away[column])}"
            marks[role].append(Mark(f"{key}-{side}-{column + 1}", title))
    for role, boxes in corners.items():
        if boxes:
            plot_axes.boxes(axes, role, boxes, COLOUR[role], opacity[role])
    plot_axes.beside_axis(axes, [(2 * at + 0.5, words) for at, (_, words, _) in enumerate(measures)])
    plot_axes.under_axis(axes, _named(columns))
    plot_axes.name_below(axes, "broker")
    plot_axes.heading(axes, "distance from the mean: upper rows today, lower rows plan")
    plot_axes.legend(axes, (("heat", "below the mean"), ("out", "above the mean")))
    more = len(plan.brokers) - len(columns) + 1
    rest = f" The last column is the mean of the other {more}." if more > 1 else ""
    words = _IN_WORDS.format(scale=formats.percent(100 * scale))
    return Drawing(figure, "Before and after, by broker", words + rest, {k: v for k, v in marks.items() if v})


_IN_WORDS = (
    "A column for each broker, in the order of their ids, and two rows for each measure: today, and after the plan. "
    "The stronger the color, the farther the broker is from the mean of all brokers; the strongest is {scale} or more. "
    "An empty cell is a broker that is not in the cluster then."
)


def _columns(brokers: Sequence[BrokerRow]) -> list[tuple[str, Sequence[BrokerRow]]]:
    """(name, brokers) of each column: one broker each, those that come or leave first; the rest is the last one."""
    held = np.array([max(row.before.replicas, row.after.replicas) for row in brokers], dtype=np.int64)
    kept = plot_values.largest(held, _COLUMNS_SHOWN, [row.role != "stays" for row in brokers])
    columns: list[tuple[str, Sequence[BrokerRow]]] = [
        (f"broker {brokers[at].id}", (brokers[at],)) for at in kept if at != OTHERS
    ]
    rest = [row for at, row in enumerate(brokers) if at not in set(kept)]
    return [*columns, ("the others", rest)] if rest else columns


def _values(columns: Sequence[tuple[str, Sequence[BrokerRow]]], side: str, key: str) -> FloatArray:
    """(columns,) what each holds on average; NaN where it is not in the cluster then."""
    absent = "added" if side == "before" else "removed"
    there = [[getattr(getattr(row, side), key) for row in rows if row.role != absent] for _, rows in columns]
    return np.array([np.mean(each) if each else np.nan for each in there])


def _from_mean(values: FloatArray) -> FloatArray:
    """Each value's distance from the mean, as a fraction of it."""
    mean = float(np.nanmean(values)) if not np.isnan(values).all() else 0.0
    return values / mean - 1 if mean else np.where(np.isnan(values), np.nan, 0.0)


def _signed(away: float) -> str:
    if not away:
        return "at the mean"
    return f"{formats.percent(round(100 * abs(away), 2))} {'above' if away > 0 else 'below'} the mean"


def _named(columns: Sequence[tuple[str, Sequence[BrokerRow]]]) -> list[tuple[float, str]]:
    """The ids of some columns, evenly apart."""
    step = -(-len(columns) // _IDS_SHOWN)
    return [(at, columns[at][0].removeprefix("broker ")) for at in range(0, len(columns), step)]
