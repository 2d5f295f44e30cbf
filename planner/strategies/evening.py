"""Placements whose bytes and traffic are within their windows too, and how few bytes those could do with.

Windows of bytes are side constraints that no pure flow has. A price a byte on each broker takes their place: the flow
at those prices is still exact, its node potentials and the prices prove a bound (see `planner.bounds`), and exchanges
of single replicas bring the loads from near their windows into them. Brokers that the cheapest placement leaves too
empty get the price of a copied byte, which is nearly always the right one; where the gap stays open, the prices of a
linear program are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner import bounds
from planner.bounds import GRAIN, Certificate, Facts
from planner.model import BoolArray, IntArray, LongArray, Problem
from planner.strategies import byte_prices
from planner.strategies.byte_loads import ByteLoads, byte_loads, priced
from planner.strategies.dealing import matrix
from planner.strategies.exchanges import Arena, Placement, polish, repair
from planner.strategies.layout import Layout
from planner.strategies.placing import Placed, place
from planner.strategies.proof import Proof, facts, proof, unpriced
from planner.windows import Windows

# A plan within this part of its bound is as good as the bound.
_CLOSE = 1e-5
# Without prices only loads that are nearly even are mended: this part of all bytes may be outside the windows.
_NEARLY = 0.02
# What a byte costs against a byte outside its window where nothing may be copied for evenness alone.
_FOR_NOTHING = 1 << 20


class Evened(NamedTuple):
    """Replicas of the rows that may move (M, W), and what proves how few bytes do."""

    chosen: IntArray
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class _Task:
    """What every attempt is about."""

    problem: Problem
    layout: Layout
    wanted: Windows
    loads: ByteLoads
    about: Facts


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A placement with the bytes outside its windows, what it costs, and its proof with the bound of that.

    `relaxed`: windows of counts couldn't all hold, and the proof is about those that the placement has.
    """

    placement: Placement
    outside: int
    cost: int
    proof: Proof
    bound: int
    relaxed: bool


def even(problem: Problem, layout: Layout, wanted: Windows, placed: Placed) -> Evened | None:
    """The placement brought into the windows of bytes and traffic in; None where no such window is asked for."""
    loads = byte_loads(problem, layout, wanted)
    if loads is None:
        return None
    task = _Task(problem, layout, wanted, loads, facts(problem, layout, loads))
    if problem.rebalance != "all":
        return _for_nothing(task, placed)
    attempts: list[_Attempt] = []
    for attempt in _attempts(task, placed):
        attempts.append(attempt)
        best, bound = _best(attempts)
        if not best.outside and best.cost - bound.bound <= _CLOSE * best.cost:
            break
    return Evened(_chosen(task, best.placement), bound.proof.certificate(task.about, _reached(loads, best.placement)))


def _best(attempts: Sequence[_Attempt]) -> tuple[_Attempt, _Attempt]:
    """The best plan, and the best bound for it; where windows were relaxed each attempt has its own bound."""
    best = min(attempts, key=lambda each: (each.outside, each.cost))
    alike = [best] if best.relaxed else [each for each in attempts if not each.relaxed]
    return best, max(alike, key=lambda each: each.bound)


def _attempts(task: _Task, placed: Placed) -> Iterator[_Attempt]:
    """Without prices, with those of the brokers that are left too empty, and with those of a linear program."""
    loads = task.loads
    nothing = np.zeros(loads.windows[:, 0].shape, dtype=np.int64)
    first = _started(task, placed, nothing)
    outside = int(first[0].outside().sum())
    guess = GRAIN * (first[0].load < loads.windows[:, 0])
    if outside <= _NEARLY * _total(task):
        yield _finished(task, placed, nothing, *first)
    if outside and guess.any():
        yield _attempt(task, guess.astype(np.int64))
    if outside and (solved := byte_prices.solve(task.problem, task.layout, task.wanted, loads)) is not None:
        yield _attempt(task, solved)


def _attempt(task: _Task, steps: LongArray) -> _Attempt:
    """The flow at these prices (D, Bt), in parts of GRAIN, brought into the windows."""
    layout = priced(task.layout, task.loads, steps)
    placed = place(task.problem, layout, task.wanted)
    return _finished(task, placed, steps, *_started(replace(task, layout=layout), placed, steps))


def _started(task: _Task, placed: Placed, steps: LongArray) -> tuple[Placement, Proof]:
    proven = proof(task.layout, placed, task.loads, steps)
    return Placement(_arena(task, proven), _on(task.layout, placed.chosen)), proven


def _finished(task: _Task, placed: Placed, steps: LongArray, placement: Placement, proven: Proof) -> _Attempt:
    repair(placement, steps * task.loads.scales[:, None] / GRAIN)
    polish(placement)
    bound = bounds.least(proven.certificate(task.about, task.loads.windows))
    outside = int(placement.outside().sum())
    return _Attempt(placement, outside, placement.cost, proven, bound, relaxed=placed.solved.excess > 0)


def _for_nothing(task: _Task, placed: Placed) -> Evened:
    """Bytes come first: only what must be copied anyway is dealt more evenly. The bound needs no prices."""
    nothing = np.zeros(task.loads.windows[:, 0].shape)
    proven = unpriced(task.layout, placed, task.loads)
    arena = _arena(task, proven)
    placement = Placement(replace(arena, costs=arena.costs * _FOR_NOTHING), _on(task.layout, placed.chosen))
    repair(placement, nothing)
    return Evened(_chosen(task, placement), Certificate(task.about, bounds.none_priced(task.about)))


def _arena(task: _Task, proven: Proof) -> Arena:
    layout, loads = task.layout, task.loads
    levels = np.ones((len(layout.rows), len(layout.targets)), dtype=np.int8, order="F")
    free = (layout.home >= 0) & ~layout.replaced
    rows, slots = np.nonzero(free)
    levels[rows, layout.home[rows, slots]] = 0
    return Arena(
        topics=layout.topics,
        costs=task.about.costs,
        levels=levels,
        allowed=None,
        racks=layout.racks,
        least=layout.least,
        most=layout.most,
        loads=loads.weights,
        scales=loads.scales,
        load_windows=loads.windows,
        cell_windows=proven.cell_windows,
        broker_windows=proven.broker_windows,
    )


def _on(layout: Layout, chosen: IntArray) -> BoolArray:
    """(M, Bt): True where a row lies on a broker of the flow."""
    here = np.full(int(layout.targets.max()) + 1, -1, dtype=np.int64)
    here[layout.targets] = np.arange(len(layout.targets))
    on = np.zeros((len(chosen), len(layout.targets)), dtype=bool)
    rows, slots = np.nonzero(chosen >= 0)
    on[rows, here[chosen[rows, slots]]] = True
    return on


def _chosen(task: _Task, placement: Placement) -> IntArray:
    return matrix(task.layout, np.stack(np.nonzero(placement.on)), task.problem.width)


def _reached(loads: ByteLoads, placement: Placement) -> LongArray:
    """(D, 2, Bt): the windows, as wide as the placement has made them where they couldn't all hold."""
    low, high = loads.windows.transpose(1, 0, 2)
    return np.stack([np.minimum(low, placement.load), np.maximum(high, placement.load)], axis=1)


def _total(task: _Task) -> int:
    """All bytes, with the other loads at what they are worth."""
    return int((task.loads.weights * task.loads.scales[:, None] * task.layout.factors).sum())
