"""plan.json → the plots of report.html and `plots/*.svg`: the front, loads before and after, who sends to whom, when.

Every plot has a bounded number of marks however large the plan, and the same plan gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.model import formats
from planner.plan.document.cluster_types import BrokerRow, RackRow
from planner.plan.document.comparison_types import ParetoRow
from planner.plan.document.plan_types import Plan
from planner.report import plot_axes, plot_heat, plot_matrix, plot_svg, plot_values, sentences
from planner.report.plot_svg import COLOUR, Drawing, Mark, Plot
from planner.report.plot_values import OTHERS, Movement

Rows = Sequence[BrokerRow] | Sequence[RackRow]

_POINTS_SHOWN = 60
_BARS_SHOWN = 60
_LONGEST_NAME = 16
_PANEL_POINTS, _WIDEST_PAIR = 84, 90
_TRAFFIC = ("network_in", "network_out")
_WORDS = {
    "size_bytes": "bytes held",
    "replicas": "replicas",
    "leaders": "leaders",
    "network_in": "network in",
    "network_out": "network out",
}


def draw(plan: Plan, moved: Movement) -> tuple[Plot, ...]:
    """Every plot that says anything about a plan.json document: without racks none of them, without moves no map.

    `moved` is the plan's movement.
    """
    with plot_svg.settings():
        return tuple(plot_svg.finished(name, drawing) for name, drawing in _drawings(plan, moved))


def _drawings(plan: Plan, moved: Movement) -> Iterator[tuple[str, Drawing]]:
    if len(plan.pareto) > 1:
        yield "front", _front(plan)
    if len(plan.brokers) >= plot_heat.BROKERS:
        yield "brokers", plot_heat.loads(plan, [(key, _WORDS[key], _written(key)) for key in _measures(plan)])
    elif plan.brokers:
        yield "brokers", _loads(plan, plan.brokers, "broker", [f"{_SIGNS[row.role]}{row.id}" for row in plan.brokers])
    if plan.racks:
        yield "racks", _loads(plan, plan.racks, "rack", [_rack(row.rack) for row in plan.racks])
    if moved.copied.any():
        yield "movement", plot_matrix.movement(plan, moved)
        yield "batches", plot_matrix.batches(plan, moved)
        yield "held", plot_matrix.held(plan, moved)


def _rack(name: str | None) -> str:
    return "none" if name is None else formats.printable(name, _LONGEST_NAME)


_SIGNS = {"stays": "", "added": "+", "removed": "−"}


@dataclass(frozen=True)
class _Point:
    """A point of the front, or an alternative that is none; both axes' values, and how it is named and marked."""

    across: int
    up: float
    name: str
    marker: str
    role: str
    told: bool
    above: str


def points(plan: Plan) -> Sequence[ParetoRow]:
    """The points of the front that are drawn, in the front's order."""
    return sentences.spread_out(plan.pareto, _POINTS_SHOWN)


def _front(plan: Plan) -> Drawing:
    """What is copied against how far the broker furthest above its share is above it; lower left is better."""
    key, shown = ("bytes_moved", formats.size) if plan.cluster.sizes_known else ("replicas_moved", formats.number)
    drawn = [*_seeds(plan, key), *_points(plan, key)]
    figure, (axes,) = plot_axes.panels(1, 190)
    for at, point in enumerate(drawn):
        look: Any = {"ms": 11 if point.marker == "D" else 6, "mew": 1.8, "mec": COLOUR[point.role], "clip_on": False}
        fill = COLOUR[point.role] if point.marker == "o" else "none"
        (line,) = axes.plot([point.across], [point.up], point.marker, mfc=fill, **look)
        line.set_gid(f"point{at}")
    most = max(point.across for point in drawn) or 1
    axes.set_xlim(-0.02 * most, 1.05 * most)
    axes.set_ylim(*_window([point.up for point in drawn]))
    plot_axes.names(axes, [(point.across, point.up, point.name) for point in drawn if point.told], beside=11)
    plot_axes.amounts(axes, "x", shown)
    plot_axes.amounts(axes, "y", formats.percent)
    plot_axes.name_below(axes, "copied" if key == "bytes_moved" else "replicas copied")
    plot_axes.heading(axes, "imbalance: how far the worst broker is above its share")
    titles = [f"{point.name}: {shown(point.across)} copied, {point.above} above share" for point in drawn]
    marks = {f"point{at}": [Mark(f"point-{at + 1}", title)] for at, title in enumerate(titles)}
    return Drawing(figure, "What less, or more, movement would give", _FRONT_IN_WORDS, marks)


_FRONT_IN_WORDS = (
    "Each point is a plan: across what it copies, up how far a broker is above its share of replicas, leaders, bytes "
    "or traffic, whichever is furthest. Lower left is better. The diamond is this plan; triangles are Kafka's own "
    "placements."
)


def _points(plan: Plan, key: str) -> Iterator[_Point]:
    for row in points(plan):
        nothing = row.strategy == "unchanged"
        name = "this plan" if row.chosen else "do nothing" if nothing else sentences.origin(plan, row)
        role, marker = ("after", "D") if row.chosen else ("quiet", "o")
        told = row.chosen or nothing
        yield _Point(getattr(row, key), row.imbalance_percent, name, marker, role, told, sentences.above(row))


def _seeds(plan: Plan, key: str) -> Iterator[_Point]:
    """Kafka's own placements, which are on no front."""
    for row in plan.compared:
        if row.label not in ("this plan", "do nothing"):
            name = formats.printable(row.label, 40)
            yield _Point(getattr(row, key), row.imbalance_percent, name, "^", "out", True, sentences.above(row))


def _window(values: Sequence[float]) -> tuple[float, float]:
    least, most = min(0.0, *values), max(0.0, *values)
    room = 0.06 * ((most - least) or 1)
    return least - room, most + room


def _loads(plan: Plan, rows: Rows, noun: str, labels_of: Sequence[str]) -> Drawing:
    """A panel for each measure with two bars for each broker or rack: before, and after."""
    keys = _measures(plan)
    kept = shown(rows, keys[0])
    labels = ["others" if at == OTHERS else labels_of[at] for at in kept]
    figure, panels = plot_axes.panels(len(keys), _PANEL_POINTS, labels, widest=_WIDEST_PAIR)
    marks = {}
    for axes, key in zip(panels, keys, strict=True):
        both = [_bars(rows, kept, side, key) for side in ("before", "after")]
        written = _written(key)
        for offset, side, values in zip((-0.4, 0.02), ("before", "after"), both, strict=True):
            gid = f"{key}-{side}"
            plot_axes.bars(axes, gid, values, offset, COLOUR[side])
            marks[gid] = [
                Mark(f"{key}-{side}-{at + 1}", f"{noun} {name}, {side}: {written(value)} {_WORDS[key]}")
                for at, (name, value) in enumerate(zip(labels, values, strict=True))
            ]
        axes.set_ylim(0, 1.08 * max(1, *both[0], *both[1]))
        plot_axes.amounts(axes, "y", written)
        plot_axes.heading(axes, _WORDS[key])
    plot_axes.legend(panels[0], (("before", "before"), ("after", "after")))
    rest = f" The last pair is the mean of the other {len(rows) - len(kept) + 1}." if OTHERS in kept else ""
    words = f"Two bars for each {noun}: what it has before, and after. A + is a broker that comes, a − one that leaves."
    words = words if noun == "broker" else words.split(". A +")[0] + "."
    return Drawing(figure, f"Before and after, by {noun}", words + rest, marks)


def _written(key: str) -> Callable[[int], str]:
    """How an amount of a measure is written."""
    return formats.size if key == "size_bytes" else formats.number if key not in _TRAFFIC else _rate


def _rate(value: int) -> str:
    return formats.amount(value, "bytes/s")


def _measures(plan: Plan) -> list[str]:
    size = ["size_bytes"] if plan.cluster.sizes_known else []
    return [*size, "replicas", "leaders", *(_TRAFFIC if sentences.states_traffic(plan) else ())]


def shown(rows: Rows, key: str) -> list[int]:
    """Which rows have bars: all, or brokers that come or leave and the largest before or after, and OTHERS."""
    most = np.array([max(getattr(row.before, key), getattr(row.after, key)) for row in rows], dtype=np.int64)
    return plot_values.largest(most, _BARS_SHOWN, [isinstance(row, BrokerRow) and row.role != "stays" for row in rows])


def _bars(rows: Rows, kept: Sequence[int], side: str, key: str) -> list[int]:
    """What each kept row has; OTHERS their mean, since their sum would dwarf the largest."""
    rest = [getattr(getattr(row, side), key) for row in (rows[at] for at in sorted(set(range(len(rows))) - set(kept)))]
    return [round(sum(rest) / len(rest)) if at == OTHERS else getattr(getattr(rows[at], side), key) for at in kept]
