"""The cheapest placement if replicas could be split: a linear program over every row and broker, and its rounding.

Its prices of loads are the best there are for the bound. Its shares are nearly all whole: a basic solution splits few
more rows than there are windows of loads. A flow turns them into a placement that keeps all counts and is close to the
windows of loads. With the largest of the split rows settled as that flow has them the program is solved again, which
comes closer still.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.problem import FloatArray, IntArray, LongArray, Problem
from planner.scoring.windows import OPEN_BYTES, Windows
from planner.strategies.flow.layout import Layout, bounds
from planner.strategies.flow.placement import on_brokers, place
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.linear_program import Program, solve
from planner.strategies.work_limits import (
    FRACTION_COLUMNS,
    FRACTION_COLUMNS_IN_ALL,
    FRACTION_ROUNDS,
    FROM_NOTHING,
    Effort,
)

# Shares are whole within this.
_WHOLE = 1e-6
# What a flow pays for a replica where it has no share, and for a second one on the same broker.
_NO_SHARE, _TWICE = 100_000, 10_000_000


class Rounded(NamedTuple):
    """Prices of loads (D, Bt) in bytes a unit, and replicas of the rows (M, W) near what they make cheapest."""

    prices: FloatArray
    chosen: IntArray


def roundings(problem: Problem, layout: Layout, wanted: Windows, loads: ByteLoads, effort: Effort) -> Iterator[Rounded]:
    """Placements near the windows of loads, one after the other with more rows settled, until the effort is spent; none
    where there can't be any, or where the program is too large.
    """
    shape = len(layout.rows), len(layout.targets)
    if shape[0] * shape[1] > FRACTION_COLUMNS:
        return
    program, worth = _program(layout, wanted, loads)
    settled, on = np.zeros(shape[0], dtype=bool), np.zeros(shape, dtype=bool)
    for _ in range(min(FRACTION_ROUNDS, FRACTION_COLUMNS_IN_ALL // max(1, shape[0] * shape[1]))):
        least, most = (np.where(settled[:, None], on, free).ravel() for free in (0, 1))
        if effort.spent or (solved := solve(replace(program, least=least, most=most), "highs-ds")) is None:
            return
        effort.spend(FROM_NOTHING * shape[0] * shape[1])
        shares = solved.values.reshape(shape)
        chosen = rounded(problem, layout, wanted, shares)
        yield Rounded(solved.prices[-worth.size :].reshape(worth.shape) * worth, chosen)
        split = np.flatnonzero(((shares > _WHOLE) & (shares < 1 - _WHOLE)).any(axis=1))
        if not len(split):
            return
        largest = split[np.argsort(-layout.enter_costs[split].max(axis=1), kind="stable")]
        settled[largest[: -(-len(split) // 2)]] = True
        on = np.where(settled[:, None], on_brokers(layout, chosen), on)


def rounded(problem: Problem, layout: Layout, wanted: Windows, shares: FloatArray) -> IntArray:
    """Replicas (M, W) that keep all counts and are the closest to these shares (M, Bt)."""
    return place(problem, _as_shared(layout, shares), wanted).chosen


def _program(layout: Layout, wanted: Windows, loads: ByteLoads) -> tuple[Program, FloatArray]:
    """The program for the shares (M, Bt) as one column, and what a price of its last D × Bt rows, the loads', is in
    bytes a unit (D, Bt).
    """
    count, width = len(layout.rows), len(layout.targets)
    rows, brokers = np.repeat(np.arange(count), width), np.tile(np.arange(width), count)
    racks = layout.most.shape[1]
    by_topic, in_all = bounds(layout, wanted)
    costs = layout.enter_costs[:, layout.groups]
    at, slots = np.nonzero(layout.home >= 0)
    costs[at, layout.home[at, slots]] = layout.keep_costs[at, slots]
    unit, units = max(1.0, float(costs.mean())), np.maximum(loads.weights.mean(axis=1), 1e-9)
    ones = np.ones(len(rows))
    blocks = [
        (rows, ones, np.stack([layout.factors] * 2)),
        (rows * racks + layout.racks[brokers], ones, np.stack([layout.least, layout.most])),
        (layout.topics[rows] * width + brokers, ones, by_topic),
        (brokers, ones, in_all),
    ]
    for weights, window, each in zip(loads.weights, loads.windows, units, strict=True):
        open_ended = np.where(window >= OPEN_BYTES // 2, np.inf, window / each)
        blocks.append((brokers, weights[rows] / each, open_ended))
    every = np.arange(len(rows))
    tables = [
        scipy.sparse.csr_matrix((values, (places, every)), shape=(window[0].size, len(rows)))
        for places, values, window in blocks
    ]
    low, high = (np.concatenate([window[side].ravel() for _, _, window in blocks]).astype(float) for side in (0, 1))
    worth = np.repeat(unit * layout.cost_bytes / units[:, None], width, axis=1)
    matrix = scipy.sparse.vstack(tables).tocsr()
    return Program(costs.ravel() / unit, matrix, low, high, np.zeros(len(rows)), ones), worth


def _as_shared(layout: Layout, shares: FloatArray) -> Layout:
    """The layout where a replica costs the less the more of a share it has there."""
    costs = np.rint(_NO_SHARE * (1 - shares.clip(0, 1))).astype(np.int64)
    rows, slots = np.nonzero(layout.home >= 0)
    homes = layout.home[rows, slots]
    keep: LongArray = np.zeros_like(layout.keep_costs)
    keep[rows, slots] = costs[rows, homes]
    costs[rows, homes] = _TWICE
    brokers = np.arange(len(layout.targets), dtype=np.int32)
    return replace(
        layout,
        enter_costs=costs,
        keep_costs=keep,
        groups=brokers,
        group_racks=layout.racks,
        group_sizes=np.ones_like(brokers),
    )
