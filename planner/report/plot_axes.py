"""Draws the axes, bars, headings and legends of all plots. Sizes are in points, 1/72 inch; a plot is 720 wide.

Lines and labels are a few artists in all. Matplotlib's own ticks, of five artists each, would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from planner.model.problem import FloatArray, LongArray
from planner.report.plot_svg import COLOR, FONT_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 720
LEFT, RIGHT = 64, 12
_ABOVE, _BELOW, _NAME = 24, 22, 13
_CHARACTER = 5.0
# The distance between lines of text at points.
_LINES_APART = 9
# The heading and the legend need this width side by side above a panel.
_NARROWEST = 240
_SMALL = 7.5


def panels(
    count: int,
    height: float,
    labels: Sequence[str] = (),
    *,
    widest: float = WIDTH,
    name: str = "",
    left: float = LEFT,
    right: float = RIGHT,
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of `height`, one above the other.

    `labels` are written under the lowest panel at x = 0, 1, 2 …, at most `widest` apart, and `name` below them. Without
    labels, room is left for numbers and their name. `left` and `right` are the room beside the panels.
    """
    from matplotlib.figure import Figure

    most_width = WIDTH - left - right
    width = min(most_width, max(_NARROWEST, widest * len(labels))) if labels else most_width
    is_upright = max(map(len, labels), default=0) * _CHARACTER * len(labels) > width
    label_height = 12 + _CHARACTER * max(map(len, labels)) if is_upright else _BELOW
    below = label_height + (_NAME if name or not labels else 0)
    total = _ABOVE + count * (height + _ABOVE) - _ABOVE + below
    figure = Figure(figsize=(WIDTH / 72, total / 72), frameon=False)
    bottoms = [total - index * (height + _ABOVE) - height - _ABOVE for index in range(count)]
    all_axes = [figure.add_axes((left / WIDTH, b / total, width / WIDTH, height / total)) for b in bottoms]
    for axes in all_axes:
        axes.set_axis_off()
        axes.set_xlim(-0.5, max(len(labels), width / widest) - 0.5)
    style: Any = {"rotation": 90, "fontsize": _SMALL} if is_upright else {}
    under_axis(all_axes[-1], list(enumerate(labels)), **style)
    if name:
        name_below(all_axes[-1], name, label_height)
    return figure, all_axes


def _size(axes: Axes) -> tuple[float, float]:
    """Width and height of a panel."""
    box, figure = axes.get_position(), axes.figure
    return box.width * WIDTH, box.height * figure.get_figheight() * 72  # type: ignore[union-attr]


def under_axis(axes: Axes, labels: Sequence[tuple[float, str]], **style: Any) -> None:
    """Writes each text of (x, text) below the panel at its x."""
    placement = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top", "color": COLOR["quiet"]}
    for x, text in labels:
        axes.text(x, -6 / _size(axes)[1], text, **{**placement, **style})


def beside_axis(axes: Axes, labels: Sequence[tuple[float, str]]) -> None:
    """Writes each text of (y, text) left of the panel at its y."""
    placement: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "color": COLOR["quiet"]}
    for y, text in labels:
        axes.text(-6 / _size(axes)[0], y, text, **placement)


def label_width(labels: Sequence[str]) -> float:
    """The room for texts on the left of a panel, at least as much as numbers need."""
    return max(LEFT, 8 + _CHARACTER * max(map(len, labels), default=0))


def name_below(axes: Axes, name: str, label_height: float = _BELOW) -> None:
    """Writes the name of the x axis, below the labels."""
    placement: Any = {"transform": axes.transAxes, "ha": "center", "va": "top", "color": COLOR["quiet"]}
    axes.text(0.5, (4 - label_height) / _size(axes)[1], name, **placement)


def name_left(axes: Axes, name: str) -> None:
    """Writes the name of the y axis, on the far left."""
    placement: Any = {"transform": axes.transAxes, "ha": "left", "va": "center", "color": COLOR["quiet"]}
    axes.text(-(LEFT - 2) / _size(axes)[0], 0.5, name, rotation=90, **placement)


def bars(axes: Axes, gid: str, values: Sequence[float], offset: float, color: str) -> None:
    """A bar of width 0.38 for each value, at its index + `offset`."""
    lefts = np.arange(len(values)) + offset
    boxes(axes, gid, [(left, left + 0.38, 0, value) for left, value in zip(lefts, values, strict=True)], color)


def boxes(
    axes: Axes, gid: str, corners: Sequence[tuple[float, float, float, float]], color: str, alpha: Any = None
) -> None:
    """Rectangles (left, right, bottom, top) as one artist; `alpha` has the opacity of each."""
    from matplotlib.collections import PolyCollection

    outlines = [[(left, low), (left, high), (right, high), (right, low)] for left, right, low, high in corners]
    collection = PolyCollection(outlines, facecolor=color, linewidth=0, alpha=alpha, clip_on=False)
    collection.set_gid(gid)
    axes.add_collection(collection, autolim=False)


def strokes(axes: Axes, runs: Sequence[tuple[float, float, float]], color: str, alpha: float, points: float) -> None:
    """Horizontal strokes (y, left, right) of one look, `points` thick, as one path beneath all boxes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not runs:
        return
    corners = [(x, y) for y, left, right in runs for x in (left, right)]
    path = Path(corners, [Path.MOVETO, Path.LINETO] * len(runs))
    style: Any = {"edgecolor": color, "facecolor": "none", "linewidth": points, "alpha": alpha, "capstyle": "butt"}
    axes.add_patch(PathPatch(path, clip_on=False, zorder=0.5, **style))


def lines(axes: Axes, gid: str, courses: Sequence[LongArray] | Sequence[FloatArray], colors: Sequence[str]) -> None:
    """Lines through (x, y) points (N, 2) as one artist, each with its color."""
    from matplotlib.collections import LineCollection

    collection = LineCollection(courses, colors=colors, linewidths=1.4, clip_on=False)
    collection.set_gid(gid)
    axes.add_collection(collection, autolim=False)


def label_points(
    axes: Axes, points: Sequence[tuple[float, float, str]], *, beside: float = 0, outside: bool = False
) -> None:
    """Texts at (x, y) that don't overlap; a text right of 60 % of the width is on the left of its point.

    `beside` is the distance between a text and its point. A text without room moves up by at most three lines, with a
    thin line to its point, or is left out. With `outside`, all texts are small and on the right of their points.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    width, height = _size(axes)
    occupied: list[tuple[float, float, float]] = []
    for x, y, text in sorted(points, key=lambda each: (each[1], each[0], each[2])):
        x_points, y_points = (x - left) / (right - left) * width, (y - low) / (high - low) * height
        is_left = not outside and x_points > 0.6 * width
        text_width = _CHARACTER * len(text)
        start = x_points - beside - text_width if is_left else x_points + beside
        free_raises = (
            raised
            for raised in (0, _LINES_APART, 2 * _LINES_APART, 3 * _LINES_APART)
            if all(
                start + text_width <= begin or end <= start or abs(y_points + raised - line) >= _LINES_APART
                for begin, end, line in occupied
            )
        )
        raised = next(free_raises, None)
        if raised is None:
            continue
        occupied.append((start, start + text_width, y_points + raised))
        place: Any = {"xytext": (-beside if is_left else beside, raised), "textcoords": "offset points"}
        sides: Any = {"ha": "right" if is_left else "left", "va": "center" if beside else "bottom"}
        size = FONT_SIZE if beside and not outside else _SMALL
        leader: Any = {"arrowstyle": "-", "color": COLOR["quiet"], "linewidth": 0.6, "shrinkA": 1, "shrinkB": 3}
        leader |= {"relpos": (1 if is_left else 0, 0.5)}
        axes.annotate(text, (x, y), fontsize=size, arrowprops=leader if beside and raised else None, **place, **sides)


def level(axes: Axes, value: float, text: str) -> None:
    """A dashed horizontal line at a value, and its text."""
    axes.axhline(value, color=COLOR["out"], linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    placement: Any = {"transform": axes.get_yaxis_transform(), "ha": "left", "va": "bottom", "color": COLOR["text"]}
    axes.text(0.01, value, text, fontsize=_SMALL, **placement)


def draw_amounts(axes: Axes, side: Literal["x", "y"], as_text: Callable[[int], str]) -> None:
    """At most five whole amounts with their units along the axis, and a grid line at each."""
    from matplotlib.ticker import MaxNLocator

    least, most = axes.get_xlim() if side == "x" else axes.get_ylim()
    values = [float(each) for each in MaxNLocator(4, integer=True).tick_values(least, most) if least <= each <= most]
    labels = [(value, as_text(round(value))) for value in values]
    if side == "x":
        under_axis(axes, labels)
    else:
        beside_axis(axes, labels)
    _grid(axes, side, values)


def _grid(axes: Axes, side: Literal["x", "y"], values: Sequence[float]) -> None:
    from matplotlib.collections import LineCollection

    transform = axes.get_xaxis_transform() if side == "x" else axes.get_yaxis_transform()
    segments = [((value, 0.0), (value, 1.0)) if side == "x" else ((0.0, value), (1.0, value)) for value in values]
    grid = LineCollection(segments, colors=COLOR["line"], linewidths=0.6, transform=transform, zorder=0, clip_on=False)
    axes.add_collection(grid, autolim=False)


def time(axes: Axes, seconds_known: bool) -> None:
    """The time axis, from 0 seconds, named, with round numbers of its largest unit; of batches if times are unknown."""
    most = axes.get_xlim()[1]
    unit, name = next((each for each in _UNITS if most >= 2 * each[0]), _UNITS[-1]) if seconds_known else (1, "batches")
    # The step is one of 1, 2, 5, 10, 20 …, so that there are at most six or seven labels.
    round_steps = (step * 10**power for power in range(16) for step in (1, 2, 5))
    step = next(each for each in round_steps if each >= most / unit / 6)
    values = [index * step * unit for index in range(int(most / unit / step) + 1)]
    under_axis(axes, [(value, f"{value / unit:g}") for value in values])
    _grid(axes, "x", values)
    name_below(axes, f"{name} at the throttle, at least" if seconds_known else name)


_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


def heading(axes: Axes, text: str) -> None:
    """Writes what a panel shows, above its upper left corner."""
    axes.text(0, 1 + 6 / _size(axes)[1], text, weight="bold", transform=axes.transAxes)


def legend(axes: Axes, entries: Sequence[tuple[str, str]]) -> None:
    """Writes (role, text) on one line above the upper right corner: a square in the role's color before each text."""
    width, height = _size(axes)
    x, y = 1.0, 1 + 6 / height
    for role, text in reversed(entries):
        axes.text(x, y, text, ha="right", transform=axes.transAxes)
        x -= (_CHARACTER * len(text) + FONT_SIZE) / width
        axes.text(x, y, "■", ha="right", color=COLOR[role], transform=axes.transAxes)
        x -= 20 / width
