"""Prices of bytes on brokers from a linear program, for where simpler guesses leave a gap.

The program relaxes the placement: replicas may be split, and what enters a broker of a rack is known by topic alone, as
a count and as bytes between the smallest and the largest partition's a replica. That keeps it at partitions × (factor +
racks) columns. Only the prices of its windows of loads are used; whatever they are, the bound made with them holds.
Where windows can't all hold, so much may be outside of them as some plan is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.problem import FloatArray, IntArray, LongArray
from planner.scoring.windows import Windows
from planner.strategies.flow.layout import Layout, bounds
from planner.strategies.load_windows import linear_program
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.linear_program import Program, Rows
from planner.strategies.work_limits import EXACT_PRICE_COLUMNS, PRICE_COLUMNS


def solve(layout: Layout, wanted: Windows, loads: ByteLoads, most: int | None = None) -> FloatArray | None:
    """(D, Bt) prices in bytes a unit of load; None where the program is too large or has no solution.

    `most`: what may be outside of the windows of loads in sum, None: nothing.
    """
    if not layout.copy_bytes.any():
        return None
    if most is None and not loads.fit(layout.factors):
        return None
    program = _program(layout, wanted, loads, most)
    columns = len(program.costs)
    if columns > PRICE_COLUMNS:
        return None
    if columns <= EXACT_PRICE_COLUMNS:
        solved = linear_program.solve(program, "highs-ipm")
        prices = None if solved is None else solved.prices
    else:
        prices = linear_program.first_order_prices(program)
    if prices is None:
        return None
    return prices[-loads.windows[:, 0].size :].reshape(len(loads.names), -1) * loads.scales[:, None]


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns: replicas that stay, rows that enter a rack, and what arrives at each (topic, broker)."""

    keep: IntArray
    enter: IntArray
    cells: IntArray

    @staticmethod
    def of(layout: Layout) -> _Columns:
        """Rows and slots of today's replicas, rows and racks, topics and brokers; each (2, K)."""
        topics, brokers = np.unique(layout.topics), np.arange(len(layout.targets))
        return _Columns(
            np.stack(np.nonzero(layout.home >= 0)),
            np.stack(np.nonzero(layout.most > 0)),
            np.stack([np.repeat(topics, len(brokers)), np.tile(brokers, len(topics))]),
        )

    def starts(self, kinds: int) -> IntArray:
        """First column of: keep, enter, arriving counts, and arriving loads of each kind; and their number."""
        runs = (self.keep.shape[1], self.enter.shape[1], *[self.cells.shape[1]] * (1 + kinds))
        return np.concatenate([[0], np.cumsum(runs)])


def _program(layout: Layout, wanted: Windows, loads: ByteLoads, allowed: int | None) -> Program:
    """The program; its last D × Bt rows are the loads'."""
    columns = _Columns.of(layout)
    unit = layout.copy_bytes.sum() / len(layout.rows)
    worth = loads.weights * loads.scales[:, None] / unit
    rows = Rows()
    _add_rows(rows, layout, columns)
    for kind in range(len(worth)):
        _add_arrivals(rows, layout, columns, worth, kind)
    _add_windows(rows, layout, columns, wanted)
    windows = loads.windows * (loads.scales[:, None, None] / unit)
    starts = columns.starts(len(worth))
    # Below and above each window, so many columns more.
    outside = np.arange(0 if allowed is None else 2 * windows[:, 0].size).reshape(-1, 2, windows.shape[2]) + starts[-1]
    costs, most = np.zeros(starts[-1] + outside.size), np.full(starts[-1] + outside.size, np.inf)
    if allowed is not None:
        each = np.zeros(outside.size, dtype=np.int64)
        rows.add(np.array([[0.0], [allowed / unit]]), (each, outside.ravel(), 1.0))
    for kind, window in enumerate(windows):
        _add_loads(rows, layout, columns, worth, kind, (window, outside[kind : kind + 1]))
    sizes = layout.copy_bytes / unit
    kept, slots = columns.keep
    costs[: starts[1]] = np.where(layout.replaced[kept, slots], sizes[kept], 0)
    costs[starts[1] : starts[2]] = sizes[columns.enter[0]]
    most[: starts[1]] = 1
    most[starts[1] : starts[2]] = layout.most[columns.enter[0], columns.enter[1]]
    return rows.program(costs, most)


def _add_rows(rows: Rows, layout: Layout, columns: _Columns) -> None:
    """Every row has its replicas, and in each rack as many as the rack rule lets it have."""
    (kept, slots), (entering, racks), starts = columns.keep, columns.enter, columns.starts(0)
    keep, enter = np.arange(starts[1]), np.arange(starts[1], starts[2])
    rows.add(np.stack([layout.factors] * 2), (kept, keep, 1.0), (entering, enter, 1.0))
    count = layout.most.shape[1]
    places, at = np.unique(
        np.concatenate([kept * count + layout.racks[layout.home[kept, slots]], entering * count + racks]),
        return_inverse=True,
    )
    bounds = np.stack([layout.least.ravel()[places], layout.most.ravel()[places]])
    rows.add(bounds, (at, np.concatenate([keep, enter]), 1.0))


def _add_arrivals(rows: Rows, layout: Layout, columns: _Columns, worth: FloatArray, kind: int) -> None:
    """What enters a rack arrives on its brokers: as a count, and as bytes that fit that count."""
    (entering, racks), (topics, brokers), starts = columns.enter, columns.cells, columns.starts(len(worth))
    count = layout.most.shape[1]
    out, into = layout.topics[entering] * count + racks, topics * count + layout.racks[brokers]
    none = np.zeros((2, layout.topic_count * count))
    enter, counts = np.arange(starts[1], starts[2]), np.arange(starts[2], starts[3])
    arriving = np.arange(starts[3 + kind], starts[4 + kind])
    if kind == 0:
        rows.add(none, (out, enter, 1.0), (into, counts, -1.0))
    rows.add(none, (out, enter, worth[kind][entering]), (into, arriving, -1.0))
    least, most = np.full(layout.topic_count, np.inf), np.zeros(layout.topic_count)
    np.minimum.at(least, layout.topics, worth[kind])
    np.maximum.at(most, layout.topics, worth[kind])
    each, zeros, endless = np.arange(len(topics)), np.zeros(len(topics)), np.full(len(topics), np.inf)
    rows.add(np.stack([zeros, endless]), (each, arriving, 1.0), (each, counts, -least[topics]))
    rows.add(np.stack([-endless, zeros]), (each, arriving, 1.0), (each, counts, -most[topics]))


def _add_windows(rows: Rows, layout: Layout, columns: _Columns, wanted: Windows) -> None:
    """The windows of counts, of each (topic, broker) and of each broker."""
    (kept, slots), (topics, brokers), starts = columns.keep, columns.cells, columns.starts(0)
    keep, arriving = np.arange(starts[1]), np.arange(starts[2], starts[3])
    homes, width = layout.home[kept, slots], len(layout.targets)
    by_topic, in_all = (_opened(window, int(layout.factors.sum())) for window in bounds(layout, wanted))
    rows.add(by_topic, (layout.topics[kept] * width + homes, keep, 1.0), (topics * width + brokers, arriving, 1.0))
    rows.add(in_all, (homes, keep, 1.0), (brokers, arriving, 1.0))


def _add_loads(
    rows: Rows, layout: Layout, columns: _Columns, worth: FloatArray, kind: int, window: tuple[FloatArray, IntArray]
) -> None:
    """The window (2, Bt) of one kind of load, and the columns (1 or 0, 2, Bt) of what is below and above it."""
    (kept, slots), (_, brokers), starts = columns.keep, columns.cells, columns.starts(len(worth))
    arriving = np.arange(starts[3 + kind], starts[4 + kind])
    opened = _opened(window[0], float(worth[kind] @ layout.factors))
    entries = [(layout.home[kept, slots], np.arange(starts[1]), worth[kind][kept]), (brokers, arriving, 1.0)]
    every = np.arange(len(layout.targets))
    for below, above in window[1]:
        entries += [(every, below, 1.0), (every, above, -1.0)]
    rows.add(opened, *entries)


def _opened(window: LongArray | FloatArray, most: float) -> FloatArray:
    """The window (2, ...) without upper ends that nothing reaches: a first-order method measures its tolerance by the
    largest bound, and beside such ones all others are met by doing nothing.
    """
    low, high = window
    return np.stack([low.astype(np.float64), np.where(high >= most, np.inf, high)])
