"""Computes and plots how much brokers send to each other in each batch, and how much they hold meanwhile.

Amounts are bytes, or replicas if sizes are unknown. To stay readable, plots of many brokers show the largest ones and
the sum or mean of the others, and plots of many batches show runs of batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.model import formats
from planner.model.problem import LongArray, sums_at
from planner.plan.document.plan_types import Plan
from planner.report import plot_axes
from planner.report.plot_svg import COLOR, Drawing, Mark

OTHERS = -1

# The ids are right of the lines, so that no line is drawn through them.
_HELD_POINTS, _LINE_POINTS, _LONGEST_END, _ENDS_POINTS = 190, 9, 18, 140
# A level above 4 times the highest line isn't drawn, because it would press the lines flat.
_FARTHEST_LEVEL = 4
_LINE = {"stays": "before", "added": "after", "removed": "out"}
_ROLE_WORDS = {"stays": "stay", "added": "added", "removed": "removed"}


@dataclass(frozen=True)
class Movement:
    """The amounts copied between B brokers in N batches, in bytes, or in replicas if sizes are unknown."""

    brokers: tuple[int, ...]  # ids of the brokers, ascending
    copied: LongArray  # (B, B) from the row's broker, the leader, to the column's broker
    received: LongArray  # (N, B) the amount that each broker copies in, in each batch
    sent: LongArray  # (N, B) the amount that each broker sends
    stored: LongArray  # (N + 1, B) the amount it holds: today, then while each batch runs, with old and new replicas


def measure(plan: Plan) -> tuple[str, Callable[[int], str]]:
    """The measure of loads, as a key of `before` and `after`, and the function that writes an amount of it."""
    return ("size_bytes", formats.size) if plan.cluster.sizes_known else ("replicas", formats.number)


def movement(plan: Plan) -> Movement:
    """The copies of all batches, added up. They come from today's leader, or the first replica if it holds none."""
    key, _ = measure(plan)
    copies, removals = _copies_and_removals(plan, key == "size_bytes")
    ids = {broker.id for broker in plan.brokers}
    brokers = np.array(sorted(ids.union(*copies[:, 1:3].T.tolist(), removals[:, 1].tolist())), dtype=np.int64)
    batches, count = len(plan.batches), len(brokers)
    batch, amount = copies[:, 0], copies[:, 3]
    sender, receiver = (np.searchsorted(brokers, copies[:, column]) for column in (1, 2))
    copied = sums_at((count, count), (sender, receiver), amount)
    received, sent = (sums_at((batches, count), (batch, side), amount) for side in (receiver, sender))
    removed = sums_at((batches, count), (removals[:, 0], np.searchsorted(brokers, removals[:, 1])), removals[:, 2])
    before = {broker.id: getattr(broker.before, key) for broker in plan.brokers}
    today = np.array([before.get(broker, 0) for broker in brokers.tolist()], dtype=np.int64)
    # Old replicas are deleted when the batch is complete; until then old and new ones both count.
    completed = np.vstack([np.zeros_like(today)[None], np.cumsum(received - removed, axis=0)])
    stored = np.vstack([today[None], today + completed[:-1] + received])
    return Movement(tuple(brokers.tolist()), copied, received, sent, stored)


def _copies_and_removals(plan: Plan, in_bytes: bool) -> tuple[LongArray, LongArray]:
    """Rows of (batch, sender, receiver, amount) for copies, and of (batch, broker, amount) for removed replicas."""
    changed = {row.key: row for row in plan.partitions}
    copies: list[tuple[int, int, int, int]] = []
    removals: list[tuple[int, int, int]] = []
    for index, batch in enumerate(plan.batches):
        for step in batch.partitions:
            row, before = changed[step.key], step.replicas_before
            amount = row.size_bytes if in_bytes else 1
            source = row.leader_before if row.leader_before in before else before[0]
            copies += [(index, source, broker, amount) for broker in step.replicas if broker not in before]
            removals += [(index, broker, amount) for broker in before if broker not in step.replicas]
    return (np.array(copies, dtype=np.int64).reshape(-1, 4), np.array(removals, dtype=np.int64).reshape(-1, 3))


def largest(amounts: LongArray, at_most: int, is_first: Sequence[bool] = ()) -> list[int]:
    """Indices of all amounts, or of the `at_most` − 1 largest followed by OTHERS; ascending, so in the order of ids.

    Indices marked in `is_first` get up to half of the places before all others, the largest of them if there are more.
    """
    if len(amounts) <= at_most:
        return list(range(len(amounts)))
    order = np.argsort(-amounts, kind="stable").tolist()
    preferred = [index for index in order if is_first and is_first[index]][: at_most // 2]
    others = [index for index in order if index not in preferred]
    return [*sorted([*preferred, *others][: at_most - 1]), OTHERS]


def summed(values: LongArray, indices: Sequence[int]) -> LongArray:
    """(N, K) the kept columns of `values` (N, B); OTHERS is the sum of all columns that aren't kept."""
    shown = [index for index in indices if index != OTHERS]
    others_sum = values.sum(axis=1) - values[:, shown].sum(axis=1)
    columns = [others_sum if index == OTHERS else values[:, index] for index in indices]
    return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0), dtype=np.int64)


@dataclass(frozen=True)
class BatchRun:
    """Consecutive batches shown as one: indices from `first` up to, not including, `end`, and when they run.

    `start` and `seconds` are at the throttle; if the batches' times are unknown, each batch counts as 1.
    """

    first: int
    end: int
    start: float
    seconds: float

    @property
    def name(self) -> str:
        """`batch 3`, or `batches 3 to 7`."""
        return f"batch {self.first + 1}" if self.end - self.first == 1 else f"batches {self.first + 1} to {self.end}"


def _times_known(plan: Plan) -> bool:
    """True if every batch has its time at the throttle, and at least one takes time."""
    seconds = [batch.seconds_at_throttle for batch in plan.batches]
    return plan.cluster.sizes_known and None not in seconds and any(seconds)


def runs(plan: Plan, at_most: int) -> list[BatchRun]:
    """All batches in order, as at most `at_most` runs with about equally many batches."""
    times = [batch.seconds_at_throttle if _times_known(plan) else 1 for batch in plan.batches]
    count = min(at_most, len(times))
    bounds = [round(index * len(times) / count) for index in range(count + 1)] if count else [0]
    starts = np.concatenate([[0], np.cumsum(np.array(times, dtype=np.int64))]).tolist()
    return [BatchRun(first, end, starts[first], starts[end] - starts[first]) for first, end in pairwise(bounds)]


def copied_pairs(moved: Movement) -> Iterator[tuple[int, int, int]]:
    """(sender, receiver, amount) of every pair that copies data, the largest amounts first."""
    rows, columns = np.nonzero(moved.copied)
    amounts = moved.copied[rows, columns]
    for index in np.argsort(-amounts, kind="stable").tolist():
        yield moved.brokers[rows[index]], moved.brokers[columns[index]], int(amounts[index])


if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAP_SIDE = 30
_ROWS_SHOWN = 32
_RUNS_SHOWN = 24
_LINES_SHOWN = 60
_WIDEST_CELL = 64
_ROOM_FOR_TEXT = 46
# Opacities: the faintest cell is still visible, and text on the strongest is still readable.
_FAINTEST, _STRONGEST = 0.14, 0.7


def pairs(plan: Plan, moved: Movement) -> Drawing:
    """A cell for each pair of brokers that copies data: in the sender's row and the receiver's column."""
    _, as_text = measure(plan)
    rows, columns = (_busiest(moved.copied.sum(axis=axis), _MAP_SIDE) for axis in (1, 0))
    amounts = summed(summed(moved.copied, columns).T, rows).T
    senders, receivers = ([_broker_name(moved, index) for index in indices] for indices in (rows, columns))
    figure, (axes,) = plot_axes.panels(
        1, _row_points(senders) * len(senders), receivers, widest=_WIDEST_CELL, name="to broker"
    )
    # The first sender is on top.
    axes.set_ylim(len(senders) - 0.5, -0.5)
    plot_axes.beside_axis(axes, list(enumerate(senders)))
    pairs = [(int(r), int(c), int(amounts[r, c])) for r, c in zip(*np.nonzero(amounts), strict=True)]
    most = _largest_shown(amounts[: len(rows) - (OTHERS in rows)], columns)
    corners = [(c - 0.48, c + 0.48, r - 0.46, r + 0.46) for r, c, _ in pairs]
    plot_axes.boxes(axes, "copies", corners, COLOR["heat"], [_opacity(amount, most) for _, _, amount in pairs])
    if (plot_axes.WIDTH - plot_axes.LEFT) / len(receivers) >= _ROOM_FOR_TEXT:
        for row, column, amount in pairs:
            axes.text(column, row, as_text(amount), ha="center", va="center", fontsize=8)
    plot_axes.name_left(axes, "from broker")
    plot_axes.heading(axes, "copied")
    marks = [
        Mark(f"from-{senders[r]}-to-{receivers[c]}".replace(" ", "-"), f"{senders[r]} to {receivers[c]}: {as_text(n)}")
        for r, c, n in pairs
    ]
    return Drawing(figure, "What each pair of brokers copies", _MAP_IN_WORDS, {"copies": marks})


_MAP_IN_WORDS = (
    "Each cell is a pair of brokers: replicas are copied from the row's broker, which leads them today, to the "
    "column's broker. Darker means more."
)


def _busiest(amounts: LongArray, at_most: int) -> list[int]:
    """Indices of the amounts above 0; if they are too many, of the largest ones, and OTHERS."""
    nonzero = np.flatnonzero(amounts)
    return [OTHERS if index == OTHERS else int(nonzero[index]) for index in largest(amounts[nonzero], at_most)]


def _row_points(labels: Sequence[str]) -> int:
    return 22 if len(labels) <= 12 else 14


def _broker_name(moved: Movement, index: int) -> str:
    return "others" if index == OTHERS else str(moved.brokers[index])


def _largest_shown(amounts: LongArray, columns: Sequence[int]) -> int:
    """The largest amount of a broker shown by itself. The others are left out: their sum may be far larger."""
    return int(amounts[:, : len(columns) - (OTHERS in columns)].max(initial=1))


def _opacity(amount: int, most: int) -> float:
    return round(_FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, amount / most), 3)


def batches(plan: Plan, moved: Movement) -> Drawing:
    """Batches over time; for each, how much brokers copy in (upper half of their row) and out (lower half)."""
    _, as_text = measure(plan)
    batch_runs = runs(plan, _RUNS_SHOWN)
    rows = _busiest((moved.received + moved.sent).sum(axis=0), _ROWS_SHOWN)
    names = [_broker_name(moved, index) for index in rows]
    halves = dict[str, LongArray]()
    for gid, amounts in (("in", moved.received), ("out", moved.sent)):
        by_run = np.stack([amounts[run.first : run.end].sum(axis=0) for run in batch_runs])
        halves[gid] = summed(by_run, rows)
        if OTHERS in rows:
            halves[gid][:, -1] //= _others(amounts, rows)
    most = max(_largest_shown(half, rows) for half in halves.values())
    # Each broker has a row along time; one more row above is for the batches.
    figure, (axes,) = plot_axes.panels(1, _row_points(names) * (len(names) + 1))
    axes.set_ylim(len(names) - 0.5, -1.5)
    plot_axes.beside_axis(axes, list(enumerate(names)))
    plot_axes.name_left(axes, "broker")
    axes.set_xlim(0, _end(batch_runs))
    plot_axes.time(axes, _times_known(plan))
    plot_axes.heading(axes, "batches")
    marks = {"batch": _draw_batches(axes, plan, batch_runs)}
    for (gid, half), words, top in zip(halves.items(), ("copies in", "copies out"), (-0.42, 0.02), strict=True):
        cells = [(int(r), int(c), int(half[r, c])) for r, c in zip(*np.nonzero(half), strict=True)]
        corners = [(*_span(batch_runs, r), c + top, c + top + 0.4) for r, c, _ in cells]
        plot_axes.boxes(axes, gid, corners, COLOR[gid], [_opacity(n, most) for _, _, n in cells])
        marks[gid] = [
            Mark(f"{gid}-{r + 1}-{names[c]}", f"{batch_runs[r].name}, broker {names[c]}: {words} {as_text(n)}")
            for r, c, n in cells
        ]
    plot_axes.legend(axes, (("in", "receives"), ("out", "sends")))
    note = f" Others are the mean of {_others(moved.received + moved.sent, rows)} brokers." if OTHERS in rows else ""
    return Drawing(figure, "Batches over time, and what each broker copies", _BATCHES_IN_WORDS + note, marks)


_BATCHES_IN_WORDS = (
    "Time runs from left to right, batch by batch. Each row is a broker: its upper half is what it receives, its "
    "lower half what it sends. Darker means more."
)


def _others(amounts: LongArray, rows: Sequence[int]) -> int:
    """How many brokers with amounts above 0 are not shown by themselves."""
    return max(1, int(np.count_nonzero(amounts.sum(axis=0))) - len(rows) + 1)


def _end(batch_runs: Sequence[BatchRun]) -> float:
    return batch_runs[-1].start + batch_runs[-1].seconds


def _span(batch_runs: Sequence[BatchRun], index: int) -> tuple[float, float]:
    """Left and right of a run, with a thin gap before the next run, and wide enough to be seen."""
    gap = _end(batch_runs) / 400
    run = batch_runs[index]
    return run.start, run.start + max(run.seconds - gap, gap)


def _draw_batches(axes: Axes, plan: Plan, batch_runs: Sequence[BatchRun]) -> list[Mark]:
    """The batches as a row of boxes, with a number if there is room; their marks say what they do, and how long."""
    plot_axes.boxes(
        axes, "batch", [(*_span(batch_runs, index), -1.4, -0.66) for index in range(len(batch_runs))], COLOR["line"]
    )
    marks = []
    for index, run in enumerate(batch_runs, start=1):
        label = str(run.first + 1)
        if run.seconds / _end(batch_runs) * plot_axes.WIDTH * 0.85 > 7 * len(label):
            axes.text(run.start + run.seconds / 2, -1.03, label, ha="center", va="center", fontsize=8)
        run_batches = plan.batches[run.first : run.end]
        facts = [formats.counted(sum(batch.replicas_moved for batch in run_batches), "replica")]
        facts += [formats.size(sum(batch.bytes_moved for batch in run_batches))] if plan.cluster.sizes_known else []
        facts.append(formats.counted(sum(len(batch.elect) for batch in run_batches), "election"))
        facts += [formats.duration(round(run.seconds))] if _times_known(plan) else []
        marks.append(Mark(f"batch-{index}", f"{run.name}: {', '.join(facts)}"))
    return marks


def stored(plan: Plan, moved: Movement) -> Drawing:
    """A line for each broker: how much it holds today, at most in each batch, and afterwards."""
    _, as_text = measure(plan)
    batch_runs = runs(plan, 2 * _RUNS_SHOWN)
    comes_or_leaves = [role != "stays" for role in _roles(plan, moved, range(len(moved.brokers)))]
    rows = largest(moved.stored.max(axis=0), _LINES_SHOWN, comes_or_leaves)
    values, roles = _stored_by_run(plan, moved, batch_runs, rows), _roles(plan, moved, rows)
    figure, (axes,) = plot_axes.panels(1, _HELD_POINTS, right=_ENDS_POINTS)
    edges = np.array(
        [-0.04 * _end(batch_runs), *(run.start for run in batch_runs), _end(batch_runs), 1.04 * _end(batch_runs)]
    )
    x_values = np.repeat(edges, 2)[1:-1]
    lines = [np.column_stack([x_values, np.repeat(column, 2)]) for column in values.T]
    plot_axes.lines(axes, "lines", lines, [COLOR[_LINE[role]] for role in roles])
    axes.set_xlim(-0.04 * _end(batch_runs), 1.04 * _end(batch_runs))
    most = max(1, int(values.max(initial=1)))
    levels = [(value, text) for value, text in _levels(plan) if value <= _FARTHEST_LEVEL * most]
    axes.set_ylim(0, 1.06 * max(most, *(value for value, _ in levels), 1))
    for value, text in levels:
        plot_axes.level(axes, value, text)
    ends = [(float(edges[-1]), value, text) for value, text in _ends(moved, rows, values[-1], axes)]
    plot_axes.label_points(axes, ends, beside=5, outside=True)
    plot_axes.draw_amounts(axes, "y", as_text)
    plot_axes.time(axes, _times_known(plan))
    plot_axes.heading(axes, "stored on each broker")
    plot_axes.legend(axes, [(_LINE[role], _ROLE_WORDS[role]) for role in _LINE if role in roles])
    marks = []
    for index, column in zip(rows, values.T.tolist(), strict=True):
        course = f"{as_text(column[0])} today, at most {as_text(max(column))}, {as_text(column[-1])} afterwards"
        marks.append(Mark(f"broker-{_broker_name(moved, index)}", f"broker {_broker_name(moved, index)}: {course}"))
    note = ' "Others" is the mean of the remaining brokers.' if OTHERS in rows else ""
    return Drawing(figure, "What each broker stores while the plan runs", _HELD_IN_WORDS + note, {"lines": marks})


_HELD_IN_WORDS = (
    "One line per broker, with its id at the right: the bytes that it stores today, the most in each batch (old and "
    "new replicas), and afterwards. Dashed: the disk of every broker, and limits.disk_used, where they are set."
)


def _ends(moved: Movement, rows: Sequence[int], after: LongArray, axes: Axes) -> Iterator[tuple[float, str]]:
    """The ends of lines and their brokers' ids: `1–6` for lines that end too near to each other for separate texts."""
    least_distance = axes.get_ylim()[1] * _LINE_POINTS / _HELD_POINTS
    groups: list[list[tuple[int, int]]] = []
    for value, index in sorted(zip(after.tolist(), rows, strict=True)):
        if not groups or value - groups[-1][0][0] > least_distance:
            groups.append([])
        groups[-1].append((value, index))
    for group in groups:
        ids = sorted(moved.brokers[index] for _, index in group if index != OTHERS)
        others = ["others"] if any(index == OTHERS for _, index in group) else []
        fit_count = next((n for n in range(len(ids), 1, -1) if len(formats.ranges(ids[:n])) <= _LONGEST_END), len(ids))
        more_text = f" and {len(ids) - fit_count} more" if fit_count < len(ids) else ""
        yield group[-1][0], ", ".join([*([formats.ranges(ids[:fit_count]) + more_text] if ids else []), *others])


def _levels(plan: Plan) -> Iterator[tuple[int, str]]:
    """The size of the disks and the limit on how full they may be; nothing if disks differ or sizes are unknown."""
    disks = {broker.disk_bytes for broker in plan.brokers}
    disk = disks.pop() if len(disks) == 1 else None
    if disk is None or not plan.cluster.sizes_known:
        return
    yield disk, f"disk {formats.size(disk)}"
    for row in plan.limits:
        if row.key == "limits.disk_used" and row.limit != disk:
            yield row.limit, f"limits.disk_used {formats.size(row.limit)}"


def _stored_by_run(plan: Plan, moved: Movement, batch_runs: Sequence[BatchRun], rows: Sequence[int]) -> LongArray:
    """(runs + 2, rows): today, the most in each run, afterwards; OTHERS is the mean of the other brokers."""
    key, _ = measure(plan)
    after = {broker.id: getattr(broker.after, key) for broker in plan.brokers}
    final = np.array([after.get(broker, 0) for broker in moved.brokers], dtype=np.int64)
    peaks = [moved.stored[run.first + 1 : run.end + 1].max(axis=0) for run in batch_runs]
    values = summed(np.stack([moved.stored[0], *peaks, final]), rows)
    if OTHERS in rows:
        values[:, -1] //= len(moved.brokers) - len(rows) + 1
    return values


def _roles(plan: Plan, moved: Movement, rows: Sequence[int]) -> list[str]:
    roles = {broker.id: broker.role for broker in plan.brokers}
    return ["stays" if index == OTHERS else roles.get(moved.brokers[index], "stays") for index in rows]
