"""Even arrivals: of flows alike in all else, the one with the least sum of squares of what arrives at each broker.

What arrives at a broker goes through a node of its own, and on by arcs that cost 1, 3, 5 and so on: their sum is the
square. A topic's window on a broker is about what stays there and what arrives. Where it limits nothing that the other
objectives left open, both go past it; else what stays is as it is, and what arrives has the rest of the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.scoring.windows import EXCESS_STEPS
from planner.strategies.flow import min_cost_flow, optimal_face
from planner.strategies.flow.layout import Layout
from planner.strategies.flow.network import Network
from planner.strategies.flow.optimal_face import Face
from planner.strategies.work_limits import ARRIVAL_STEPS


def spread(layout: Layout, network: Network, face: Face) -> LongArray:
    """Units on the network's plain arcs (K,) with the most even arrivals of all flows of the face."""
    units = face.units[: len(network.arcs.tails)]
    cells = _Cells.of(layout, network, face)
    ends = _ends(network)
    free = face.free[: len(units)]
    if not free[ends[1] : ends[3]].any():
        return units
    # Kept replicas go to the broker past windows that limit nothing; the others stay as they are.
    keeps = np.flatnonzero(free[: ends[0]])
    keeps = keeps[cells.slack[cells.of_keep[keeps]]]
    others = np.flatnonzero(free[ends[0] :]) + ends[0]
    into, carried = _into_cells(layout, cells, face)
    steps, stepped = _steps(layout, cells, len(network.supplies))
    out, leaving = _out(layout, cells)
    kept = _arcs(face, keeps, layout.first_broker + network.keep[1][keeps])
    plain = _arcs(face, others, face.heads[others])
    known = np.concatenate([units[keeps], units[others], carried, stepped, leaving])
    solved = optimal_face.cheapest(min_cost_flow.join(kept, plain, into, steps, out), known)
    best = units.copy()
    best[keeps] = solved[: len(keeps)]
    best[others] = solved[len(keeps) : len(keeps) + len(others)]
    return best


@dataclass(frozen=True, eq=False)
class _Cells:
    """What (topic, broker) and brokers hold: T·Bt cells, flat, and Bt brokers.

    of_keep (K,) cell of each keep arc · slack (T·Bt,) True where the window limits nothing
    low, high, now (T·Bt,) what may arrive and what does · broker_low, broker_high, held (Bt,) in all
    """

    of_keep: IntArray
    slack: BoolArray
    low: LongArray
    high: LongArray
    now: LongArray
    broker_low: LongArray
    broker_high: LongArray
    held: LongArray

    @staticmethod
    def of(layout: Layout, network: Network, face: Face) -> _Cells:
        """Of all flows of the face."""
        count, brokers = layout.topic_count * len(layout.targets), len(layout.targets)
        of_keep = layout.topics[network.keep[0]].astype(np.int64) * brokers + network.keep[1]
        of_own = layout.topics[network.own[0]].astype(np.int64) * brokers + network.own[1]
        ends = _ends(network)

        def arriving(column: LongArray) -> LongArray:
            total = _summed(of_own, column[ends[1] : ends[2]], count)
            return total + column[ends[2] : ends[3]]

        def staying(column: LongArray) -> LongArray:
            return _summed(of_keep, column[: ends[0]], count)

        through_low, through_high, broker_low, broker_high = _windows(face, len(network.arcs.tails), count, brokers)
        slack = through_low <= arriving(face.low) + staying(face.low)
        slack &= through_high >= arriving(face.high) + staying(face.high)
        stays, now = staying(face.units), arriving(face.units)
        return _Cells(
            of_keep=of_keep,
            slack=slack,
            low=np.maximum(arriving(face.low), np.where(slack, 0, through_low - stays)),
            high=np.minimum(arriving(face.high), np.where(slack, now + arriving(face.high), through_high - stays)),
            now=now,
            broker_low=broker_low,
            broker_high=broker_high,
            held=(stays + now).reshape(-1, brokers).sum(axis=0),
        )


def _windows(face: Face, plain: int, cells: int, brokers: int) -> tuple[LongArray, ...]:
    """What may go through each cell and through each broker: inside the windows, and beyond them."""
    steps = len(EXCESS_STEPS)
    low, high = face.low[plain:], face.high[plain:]
    inside = cells + brokers
    found = []
    for first, count, beyond in ((0, cells, inside), (cells, brokers, inside + 2 * steps * cells)):
        least, most = low[first : first + count].copy(), high[first : first + count].copy()
        if len(low) > inside:
            ends = slice(beyond, beyond + 2 * steps * count)
            up_low, down_low = low[ends].reshape(2, steps, count).sum(axis=1)
            up_high, down_high = high[ends].reshape(2, steps, count).sum(axis=1)
            least, most = least + up_low - down_high, most + up_high - down_low
        found += [least, most]
    return tuple(found)


def _arcs(face: Face, at: IntArray, heads: IntArray) -> min_cost_flow.Arcs:
    return min_cost_flow.arcs(face.tails[at], heads, face.high[at], 0, face.low[at])


def _into_cells(layout: Layout, cells: _Cells, face: Face) -> tuple[min_cost_flow.Arcs, LongArray]:
    """From the cells to the nodes of what arrives at their brokers, and what goes there."""
    brokers = len(layout.targets)
    every = np.arange(len(cells.now), dtype=np.int32)
    at = every[cells.high > 0]
    tails, heads = layout.first_cell + at, layout.sink + 1 + at % brokers
    return min_cost_flow.arcs(tails, heads, cells.high[at], 0, cells.low[at]), cells.now[at]


def _steps(layout: Layout, cells: _Cells, first: int) -> tuple[min_cost_flow.Arcs, LongArray]:
    """Arcs of rising cost from what arrives at a broker to the broker, and what they carry."""
    least, most, now = (
        each.reshape(-1, len(layout.targets)).sum(axis=0) for each in (cells.low, cells.high, cells.now)
    )
    width = np.maximum(1, -(-(most - least) // ARRIVAL_STEPS))
    counts = 1 + -(-(most - least) // width)
    brokers = np.repeat(np.arange(len(least)), counts)
    number = np.arange(len(brokers)) - np.repeat(np.cumsum(counts) - counts, counts) - 1
    # The first arc of each is for what arrives in any case.
    begin = np.where(number < 0, 0, least[brokers] + number * width[brokers])
    end = np.where(number < 0, least[brokers], np.minimum(begin + width[brokers], most[brokers]))
    carried = (now[brokers] - begin).clip(0, end - begin)
    arcs = min_cost_flow.arcs(
        (first + brokers).astype(np.int32), (layout.first_broker + brokers).astype(np.int32), end - begin, begin + end
    )
    return arcs, carried


def _out(layout: Layout, cells: _Cells) -> tuple[min_cost_flow.Arcs, LongArray]:
    """From the brokers to the sink."""
    brokers = np.arange(layout.first_broker, layout.sink, dtype=np.int32)
    return (
        min_cost_flow.arcs(brokers, np.full_like(brokers, layout.sink), cells.broker_high, 0, cells.broker_low),
        cells.held,
    )


def _ends(network: Network) -> IntArray:
    """Where the runs of keep, enter, own and arrive arcs end."""
    return np.cumsum([run.shape[1] for run in (network.keep, network.enter, network.own, network.arrive)])


def _summed(at: IntArray, values: LongArray, count: int) -> LongArray:
    """(count,): sums of values by where they are."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, at, values)
    return sums
