"""Which partition gets which of the brokers that its topic and rack were given by the flow.

Every way of dealing moves the same bytes. Partitions are dealt largest first, each to the broker of its pool that then
holds the fewest bytes, so the brokers' disks come out as even as they can for nothing.
"""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow

from planner.model import BoolArray, IntArray, LongArray
from planner.strategies.layout import Layout


def deal(
    layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray, width: int
) -> tuple[IntArray, BoolArray]:
    """Replicas (M, width) as brokers of the problem, padded with -1, and the rows that got too few (M,).

    decided (2, K): (row, broker) pairs that are settled; entered (M, G): newcomers a row has in each group;
    arriving (T, Bt): newcomers of a topic that each broker takes.
    """
    kept = np.zeros_like(entered)
    np.add.at(kept, (decided[0], layout.groups[decided[1]]), 1)
    several = bool(((entered > 0) & (entered + kept > 1)).any())
    dealt = (
        _deal_by_flow(layout, decided, entered, arriving)
        if several
        else _deal_evenly(layout, decided, entered, arriving)
    )
    pairs = np.concatenate([decided, dealt], axis=1)
    counts = np.bincount(pairs[0], minlength=len(layout.rows))
    return matrix(layout, pairs, width), counts < layout.factors


def _deal_evenly(layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray) -> IntArray:
    """One newcomer a (row, group) at most, that holds nothing else of the row: the emptiest of the pool takes it."""
    rows, groups = np.nonzero(entered)
    load = np.bincount(decided[1], weights=layout.size_bytes[decided[0]], minlength=len(layout.targets))
    left = arriving.copy()
    members = [np.flatnonzero(layout.groups == group) for group in range(entered.shape[1])]
    taken = np.empty(len(rows), dtype=np.int32)
    for at in np.lexsort((groups, rows, -layout.size_bytes[rows])):
        row = rows[at]
        brokers = members[groups[at]]
        room = left[layout.topics[row], brokers]
        broker = brokers[np.where(room > 0, load[brokers], np.inf).argmin()]
        taken[at] = broker
        left[layout.topics[row], broker] -= 1
        load[broker] += layout.size_bytes[row]
    return np.stack([rows, taken]).astype(np.int32)


def _deal_by_flow(layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray) -> IntArray:
    """Several replicas a (row, group): a bipartite flow finds different brokers for each, none that the row has."""
    entering = np.flatnonzero(entered.sum(axis=1))
    if not len(entering):
        return np.zeros((2, 0), dtype=np.int32)
    at, brokers = _allowed(layout, decided, entered, arriving, entering)
    groups = entered.shape[1]
    first_cell = 1 + len(entering) * groups
    sink = first_cell + arriving.size
    solver = max_flow.SimpleMaxFlow()
    sources = np.arange(1, first_cell, dtype=np.int32)
    solver.add_arcs_with_capacity(np.zeros_like(sources), sources, entered[entering].ravel().astype(np.int64))
    cells = first_cell + layout.topics[entering[at]] * len(layout.targets) + brokers
    tails = 1 + at * groups + layout.groups[brokers]
    pairs = solver.add_arcs_with_capacity(
        tails.astype(np.int32), cells.astype(np.int32), np.ones(len(at), dtype=np.int64)
    )
    ends = np.arange(first_cell, sink, dtype=np.int32)
    solver.add_arcs_with_capacity(ends, np.full_like(ends, sink), arriving.ravel().astype(np.int64))
    solver.solve(0, sink)
    chosen = solver.flows(pairs) > 0
    return np.stack([entering[at[chosen]], brokers[chosen]]).astype(np.int32)


def _allowed(
    layout: Layout, decided: IntArray, entered: IntArray, arriving: IntArray, entering: IntArray
) -> tuple[LongArray, LongArray]:
    """Pairs (place in `entering`, broker) that may be dealt: a newcomer there, room left, and not on it already."""
    allowed = (entered[entering][:, layout.groups] > 0) & (arriving[layout.topics[entering]] > 0)
    place = np.full(len(layout.rows), -1, dtype=np.int64)
    place[entering] = np.arange(len(entering))
    mine = place[decided[0]] >= 0
    allowed[place[decided[0][mine]], decided[1][mine]] = False
    at, brokers = np.nonzero(allowed)
    return at, brokers


def matrix(layout: Layout, pairs: IntArray, width: int) -> IntArray:
    """(row, broker) pairs as rows of brokers of the problem, ascending."""
    brokers = layout.targets[pairs[1]]
    by_row = np.lexsort((brokers, pairs[0]))
    rows, brokers = pairs[0][by_row], brokers[by_row]
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    matrix = np.full((len(layout.rows), width), -1, dtype=np.int32)
    matrix[rows, slots] = brokers
    return matrix
