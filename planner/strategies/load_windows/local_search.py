"""Exchanges replicas between two brokers, to bring a placement into its windows of bytes and to make it cheaper.

An exchange moves one row from a broker to another, one back, or both. Within a topic it leaves every count as it was;
across topics, counts must have room. `repair` makes exchanges that bring bytes into their windows at the least loss
against the given prices; `polish` makes exchanges that cost less and break nothing. With the prices of the bound, a
repaired placement is close to the optimum; the gap left is the size of single partitions.

Everything is counted in whole bytes, so the same search makes the same moves on any machine.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from planner.model.problem import FloatArray, IntArray
from planner.strategies import work_limits
from planner.strategies.load_windows.local_search_state import (
    Moving,
    Pairs,
    PartnerRows,
    SearchPlacement,
    can_exchange,
    leaving_rows,
    outward_by,
    pairings,
    returning_rows,
    takes_outward,
)

# The weight of a byte outside its window against a byte copied (minus the prices): at first exchanges into windows may
# cost next to nothing, at last anything.
_WEIGHTS = (0.02, 0.1, 0.5, 2.0, 10.0, 100.0)
# If all windows are caps: at first a few large partitions that fit what is too much, rather than one that is larger; at
# last a broker that is one byte above its cap may give away a terabyte.
_FITTING, _OF_CAPS = 1.001, 1e12


class _Exchange(NamedTuple):
    """Rows that go there and back, -1 for none, and the gain."""

    gain: float
    out_row: int
    back_row: int


# Pairs of brokers without an exchange: both brokers' changes by then, and the weight from which one may exist.
_FruitlessPairs = dict[tuple[int, int], tuple[tuple[int, int], float]]
# Such weights are lowered by this factor, because floating point is inexact.
_EXACT = 1 - 1e-6


class _Aim(NamedTuple):
    """The weight of a byte outside its window, and the prices of bytes (D, B) against which moves are measured.

    `for_nothing`: no replica may go where it costs more. `or_not_at_all`: stop if a broker can't be helped.
    """

    weight: float
    prices: FloatArray | None
    for_nothing: bool
    or_not_at_all: bool


def repair(
    placement: SearchPlacement,
    prices: FloatArray | None = None,
    *,
    for_nothing: bool = False,
    nearly: bool = False,
    or_not_at_all: bool = False,
) -> None:
    """Bring the loads into their windows, as far as exchanges can; prices (D, B) in bytes per unit, if any.

    `for_nothing`: only by replicas that cost no more on their new brokers. `nearly`: the placement is nearly within its
    windows, and isn't taken further outside at any saving. `or_not_at_all`: stop if a broker can't be helped.
    """
    fruitless: _FruitlessPairs = {}
    weights = _WEIGHTS[-1:] if nearly else _WEIGHTS
    if placement.search.only_caps:
        weights = (*sorted([*weights, *([] if nearly else [_FITTING])]), _OF_CAPS)
    for weight in weights:
        _repair_at_weight(placement, _Aim(weight, prices, for_nothing, or_not_at_all), fruitless)
        if placement.within_windows():
            return


def polish(placement: SearchPlacement, goal: int = 0) -> None:
    """Make exchanges that cost less and take no load further outside its window, until the placement costs no more than
    `goal`.
    """
    for _ in range(work_limits.POLISH_ROUNDS):
        if (to_save := placement.cost - goal) <= 0 or not _make_cheaper(placement, to_save):
            return


def at_edges(placement: SearchPlacement, prices: FloatArray, goal: int) -> SearchPlacement:
    """A polished placement with brokers close to those edges of their windows that have prices (D, B).

    With prices, a replica often costs the same on two brokers, and the flow takes either: a broker may give away far
    more than its window asks for.
    """
    search, (low, high) = placement.search, placement.search.load_windows.transpose(1, 0, 2)
    # A narrow window is as wide as the median partition's load.
    width = np.quantile(search.loads, 0.5, axis=1, method="lower")[:, None]
    narrow = np.stack(
        [
            np.where(prices < 0, np.maximum(low, high - width), low),
            np.where(prices > 0, np.minimum(high, low + width), high),
        ],
        axis=1,
    )
    close = SearchPlacement(replace(search, load_windows=narrow), placement.on.copy())
    repair(close, prices)
    polished = SearchPlacement(search, close.on)
    repair(polished, prices, nearly=True)
    polish(polished, goal)
    return polished


def _repair_at_weight(placement: SearchPlacement, aim: _Aim, fruitless: _FruitlessPairs) -> None:
    """Make exchanges for the broker furthest outside, until no broker can be helped."""
    stuck = np.zeros(placement.on.shape[1], dtype=bool)
    while True:
        outside = np.where(stuck, 0, placement.outside())
        broker = int(outside.argmax())
        if not outside[broker] or placement.within_windows():
            return
        helpers = _help_broker(placement, broker, aim, fruitless)
        if aim.or_not_at_all and not helpers:
            return
        stuck[broker] = not helpers
        stuck[helpers] = False


def _help_broker(placement: SearchPlacement, broker: int, aim: _Aim, fruitless: _FruitlessPairs) -> list[int]:
    """Make the best exchanges for a broker with its first partners, or else with the others; return the partners."""
    for partners in _partners(placement, broker):
        pairs = {other: (min(broker, other), max(broker, other)) for other in partners}
        states = {pair: (int(placement.changes[pair[0]]), int(placement.changes[pair[1]])) for pair in pairs.values()}
        # A pair is tried again if one of the two has changed since, or at a weight at which an exchange may exist.
        candidates = [
            other
            for other, pair in pairs.items()
            if (last := fruitless.get(pair)) is None or last[0] != states[pair] or aim.weight >= last[1]
        ]
        exchanges = []
        for partner, each in zip(candidates, _find_best(placement, broker, np.array(candidates), aim), strict=True):
            if isinstance(each, _Exchange):
                exchanges.append((each, partner))
            else:
                fruitless[pairs[partner]] = states[pairs[partner]], each
        if exchanges:
            return _make_best(placement, broker, exchanges, aim)
    return []


def _make_best(placement: SearchPlacement, broker: int, exchanges: list[tuple[_Exchange, int]], aim: _Aim) -> list[int]:
    """Make the best of these exchanges, and further ones while the broker is much further outside than they shift;
    return the partners.
    """
    scales, shifted = placement.search.scales, 0
    helpers: list[int] = []
    for each, partner in sorted(exchanges, key=lambda pair: -pair[0].gain):
        outside, before = int(placement.outside()[broker]), placement.load[:, broker].copy()
        if helpers and (
            outside < work_limits.FAR_OUTSIDE * shifted or not _gains_still(placement, (broker, partner), each, aim)
        ):
            continue
        _make(placement, broker, partner, each)
        shifted = int((np.abs(placement.load[:, broker] - before) * scales).sum())
        helpers.append(partner)
    return helpers


def _gains_still(placement: SearchPlacement, brokers: tuple[int, int], exchange: _Exchange, aim: _Aim) -> bool:
    """True if an exchange is still possible and still gains after others were made."""
    (source, target), zeros = brokers, np.zeros(1, dtype=np.int64)
    if not can_exchange(placement, source, target, exchange.out_row, exchange.back_row):
        return False
    out, back = (np.array([row for row in (each,) if row >= 0], dtype=np.int64) for each in exchange[1:])
    moving = Moving.of(placement, out, source, target), Moving.of(placement, back, target, source)
    (best,) = _best_of_each(placement, (source, np.array([target])), aim, moving, Pairs(zeros, zeros, zeros))
    return isinstance(best, _Exchange)


def _partners(placement: SearchPlacement, broker: int) -> Iterator[list[int]]:
    """The other brokers in two lists: a few with the most room, then the rest."""
    search = placement.search
    low, high = search.load_windows.transpose(1, 0, 2)
    excess = np.maximum(placement.load - high, 0) - np.maximum(low - placement.load, 0)
    worst = int(np.abs(excess[:, broker] * search.scales).argmax())
    middle = (low[worst] + high[worst]) // 2
    room = (middle - placement.load[worst]) * (1 if excess[worst, broker] > 0 else -1)
    order = [other for other in np.argsort(-room, kind="stable").tolist() if other != broker]
    yield order[: work_limits.FIRST_PARTNERS]
    yield order[work_limits.FIRST_PARTNERS :]


def _make(placement: SearchPlacement, source: int, target: int, exchange: _Exchange) -> None:
    if exchange.out_row >= 0:
        placement.move(exchange.out_row, source, target)
    if exchange.back_row >= 0:
        placement.move(exchange.back_row, target, source)


def _find_best(placement: SearchPlacement, broker: int, partners: IntArray, aim: _Aim) -> list[_Exchange | float]:
    """The exchange that gains the most with each of the partners (K,); if none gains a byte, the weight from which one
    may.
    """
    best: list[_Exchange | float] = []
    for start in range(0, len(partners), work_limits.FIRST_PARTNERS):
        chunk = partners[start : start + work_limits.FIRST_PARTNERS]
        out, back = leaving_rows(placement, broker, chunk), returning_rows(placement, broker, chunk)
        moving = (
            Moving.of(placement, out.rows, broker, chunk[out.partners]),
            Moving.of(placement, back.rows, chunk[back.partners], broker),
        )
        best += _best_of_each(placement, (broker, chunk), aim, moving, pairings(placement, broker, chunk, out, back))
    return best


def _best_of_each(
    placement: SearchPlacement, brokers: tuple[int, IntArray], aim: _Aim, moving: tuple[Moving, Moving], pairs: Pairs
) -> list[_Exchange | float]:
    """The best of each partner's exchanges; if none gains a byte, the weight from which one may."""
    (broker, partners), (out, back), (outs, backs, partner_of) = brokers, moving, pairs
    costs, targets = (out.costs[outs], back.costs[backs]), partners[partner_of]
    gain, worse = -(costs[0] + costs[1]).astype(np.float64), np.zeros(len(outs))
    for load, scale in enumerate(placement.search.scales.tolist()):
        shifted = out.loads[load, outs] - back.loads[load, backs]
        if aim.prices is not None and aim.prices[load].any():
            gain += shifted * (aim.prices[load, targets] - aim.prices[load, broker])
        worse += scale * (outward_by(placement, load, broker, -shifted) + outward_by(placement, load, targets, shifted))
    if aim.for_nothing:
        gain[(costs[0] > 0) | (costs[1] > 0)] = -np.inf
    gains, exchanges = gain - aim.weight * worse, list[_Exchange | float]()
    for start, end in pairwise(np.searchsorted(partner_of, np.arange(len(partners) + 1)).tolist()):
        best = start + int(gains[start:end].argmax()) if start < end else -1
        if best >= 0 and gains[best] >= 1:
            exchanges.append(_Exchange(float(gains[best]), int(out.rows[outs[best]]), int(back.rows[backs[best]])))
            continue
        nearer = start + np.flatnonzero(worse[start:end] < 0)
        exchanges.append(_EXACT * float(((1 - gain[nearer]) / -worse[nearer]).min(initial=np.inf)))
    return exchanges


def _make_cheaper(placement: SearchPlacement, to_save: int) -> bool:
    """Make all exchanges that save bytes, until they have saved enough; True if there were any.

    Each exchange sends a row to where it costs less, so only those rows are tried, each with all that could come back.
    In large placements, one search finds several exchanges of two brokers; each is made if it is still possible then.
    """
    rows, sources, targets = _dearer_than_elsewhere(placement)
    width, saved = placement.on.shape[1], 0
    at_once = work_limits.EXCHANGES_AT_ONCE if placement.on.size > work_limits.LARGE_PLACEMENT else 1
    first = np.flatnonzero(np.diff(sources * width + targets, prepend=-1))
    for pair_rows, start in zip(np.split(rows, first[1:]), first.tolist(), strict=False):
        pair = int(sources[start]), int(targets[start])
        while saved < to_save and (exchanges := _savings(placement, *pair, pair_rows, at_once)):
            for index, each in enumerate(exchanges):
                if index == 0 or _is_possible(placement, *pair, each):
                    _make(placement, *pair, each)
                    saved += int(each.gain)
    return saved > 0


def _is_possible(placement: SearchPlacement, source: int, target: int, exchange: _Exchange) -> bool:
    """True if an exchange found before others still keeps every count, and takes no load further outside."""
    if not can_exchange(placement, source, target, exchange.out_row, exchange.back_row):
        return False
    loads = placement.search.loads
    shifted = sum(sign * loads[:, [row]] for row, sign in ((exchange.out_row, 1), (exchange.back_row, -1)) if row >= 0)
    return not takes_outward(placement, (source, target), np.stack([-shifted, shifted]))[0]


def _dearer_than_elsewhere(placement: SearchPlacement) -> tuple[IntArray, IntArray, IntArray]:
    """Rows, their brokers, and the brokers where they would cost less, (K,) each, by brokers and then rows."""
    search, is_on = placement.search, placement.on
    dearest = (is_on * search.levels).max(axis=1, initial=0)
    cheaper = ~is_on & (search.levels < dearest[:, None])
    if search.allowed is not None:
        cheaper &= search.allowed
    rows, targets = np.nonzero(cheaper)
    indices, sources = np.nonzero(is_on[rows] & (search.levels[rows] > search.levels[rows, targets][:, None]))
    rows, targets = rows[indices], targets[indices]
    order = np.lexsort((rows, targets, sources))
    return rows[order], sources[order], targets[order]


def _savings(placement: SearchPlacement, source: int, target: int, rows: IntArray, at_once: int) -> list[_Exchange]:
    """Exchanges that send one of these rows there, save bytes and take no load further outside: at most `at_once`,
    those that save the most, no row in two of them.
    """
    is_on = placement.on
    out_rows = rows[is_on[rows, source] & ~is_on[rows, target]]
    out_rows = out_rows[placement.racks_allow(out_rows, source, target)]
    if not len(out_rows):
        return []
    partners, leaving = np.array([target]), PartnerRows(out_rows, np.zeros_like(out_rows))
    returning = returning_rows(placement, source, partners)
    out, back = Moving.of(placement, out_rows, source, target), Moving.of(placement, returning.rows, target, source)
    outs, backs, _ = pairings(placement, source, partners, leaving, returning)
    saved = -(out.costs[outs] + back.costs[backs])
    saving = np.flatnonzero(saved > 0)
    outs, backs, saved = outs[saving], backs[saving], saved[saving]
    shifted = out.loads[:, outs] - back.loads[:, backs]
    saved[takes_outward(placement, (source, target), np.stack([-shifted, shifted]))] = 0
    exchanges, used_rows = list[_Exchange](), set[int]()
    for each in np.argsort(-saved, kind="stable")[: at_once**2].tolist():
        rows_of = int(out.rows[outs[each]]), int(back.rows[backs[each]])
        if saved[each] > 0 and len(exchanges) < at_once and used_rows.isdisjoint(rows_of):
            exchanges.append(_Exchange(float(saved[each]), *rows_of))
            used_rows.update(row for row in rows_of if row >= 0)
    return exchanges
