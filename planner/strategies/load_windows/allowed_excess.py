"""How far outside of their windows plans may be where those can't all hold, in the terms of `window_excess`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.balance import Balance
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, Allowed, CountWindows, Loads
from planner.scoring.windows import Windows, starts
from planner.strategies import bounds
from planner.strategies.bounds import Branch, Case, Certificate, Outside, Part, Prices, Starting
from planner.strategies.flow.layout import Layout
from planner.strategies.load_windows.byte_loads import ByteLoads
from planner.strategies.load_windows.open_windows import Begins, OpenWindows, cells_of


def closed(problem: Problem, balance: Balance, topics: int) -> OpenWindows:
    """No window that may begin anywhere but that of all replicas where a spread of one leaves two starts."""
    lows = starts(problem, balance.replicas)
    ends = np.array([lows[0]]) if lows else np.zeros(1, dtype=np.int64), np.array([lows[-1] if lows else 0])
    spread = int(balance.replicas.value) if lows else 0
    none = np.zeros(topics, dtype=np.int64)
    return OpenWindows(Begins(none > 0, none, none, 0), Begins(np.array([len(lows) > 1]), *ends, spread), range(0))


def allowed(layout: Layout, wanted: Windows, anywhere: OpenWindows, loads: ByteLoads | None) -> Allowed:
    """The windows asked for, with nothing allowed outside of them yet."""
    fixed, movable = layout.fixed_cells, layout.topic_replicas
    in_all = fixed.sum(axis=0, keepdims=True), movable.sum(keepdims=True)
    width = len(layout.targets)
    return Allowed(
        _counts(wanted.topic_replicas[:, :, layout.order], (fixed, movable), TOPIC_PRICE, anywhere.topics),
        _counts(wanted.replicas[:, None, layout.order], in_all, BROKER_PRICE, anywhere.replicas),
        Loads(np.zeros((0, 2, width), dtype=np.int64), np.zeros(0, dtype=np.int64))
        if loads is None
        else Loads(loads.windows, loads.scales),
        furthest=np.zeros(0 if loads is None else len(loads.scales), dtype=np.int64),
    )


def _counts(window: LongArray, rows: tuple[LongArray, LongArray], price: int, begins: Begins) -> CountWindows:
    fixed, movable = rows
    return CountWindows(window, fixed, movable, price, begins.open, begins.first, begins.last, begins.spread)


def reached(layout: Layout, none: Allowed, loads: ByteLoads | None, chosen: IntArray) -> Allowed:
    """As much as rows of replicas (M, W), as brokers of the problem, are outside."""
    cells, at = cells_of(layout, chosen)
    rows, slots = np.nonzero(at >= 0)
    load = np.zeros((0 if loads is None else len(loads.scales), len(layout.targets)), dtype=np.int64)
    for held, weights in zip(load, () if loads is None else loads.weights, strict=True):
        np.add.at(held, at[rows, slots], weights[rows])
    return none.reached(cells, load)


def within(certificate: Certificate, most: Allowed) -> Certificate:
    """The certificate for all plans that are no more outside than that, at the best prices of what is outside.

    Only parts of all racks are left. Nothing proves yet how much any plan is outside.
    """
    every, there = set(bounds.every_rack(certificate.facts)), most.beginning(certificate.lows)
    parts = tuple(Part(part.racks, priced(part.case, there)) for part in certificate.parts if set(part.racks) == every)
    nothing = (Starting(bounds.none_priced(certificate.facts)),)
    outside = Outside(most, nothing, nothing, (), np.zeros(0, dtype=np.int64))
    others = tuple(replace(within(other, most), outside=None) for other in certificate.others)
    prices = _priced(certificate.prices, there)
    return Certificate(certificate.facts, prices, parts, others, outside, certificate.lows)


def priced(case: Case, most: Allowed) -> Case:
    """The case with the best prices of what is outside."""
    if isinstance(case, Branch):
        return replace(case, off=priced(case.off, most), on=priced(case.on, most))
    return _priced(case, most)


def at_price(case: Case, most: Allowed) -> Case:
    """The case with prices of loads no steeper than that of a unit outside, which is 1; replicas at their best."""
    if isinstance(case, Branch):
        return replace(case, off=at_price(case.off, most), on=at_price(case.on, most))
    clipped = tuple(
        np.stack([table[0], table[1].clip(-scale * case.grain, scale * case.grain), table[2]])
        for table, scale in zip(case.loads, most.windows.scales.tolist(), strict=True)
    )
    gentle = replace(case, loads=clipped)
    return replace(gentle, of_replicas=most.prices(gentle.tables)[0], of_loads=case.grain)


def _priced(prices: Prices, most: Allowed) -> Prices:
    of_replicas, of_loads = most.prices(prices.tables)
    return replace(prices, of_replicas=of_replicas, of_loads=of_loads)
