"""Placements whose bytes and traffic are within their windows too, and how few bytes those could do with.

Windows of bytes are side constraints that no pure flow has. A price a byte on each broker takes their place: the flow
at those prices is still exact, its node potentials and the prices prove a bound (see `planner.bounds`), and exchanges
of single replicas bring the loads from near their windows into them. Brokers that the cheapest placement leaves too
empty get the price of a copied byte, which is nearly always the right one; where the gap stays open, the prices of a
linear program are tried, and what it would do if replicas could be split, rounded. Where single partitions are as large
as the windows, that goes by cases of where those lie; see `branching`.

Where windows can't all hold, the placement that is the least outside of them says how wide they are, and is then made
as cheap as those allow, with a bound for those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner import bounds
from planner.bounds import GRAIN, Certificate, Facts
from planner.flow import CostRangeError
from planner.model import FloatArray, IntArray, LongArray, Problem
from planner.scenarios import Scenario
from planner.strategies import byte_prices, second_objectives
from planner.strategies.arena import Arena, Placement, of_layout
from planner.strategies.branching import BranchedProof, branchings
from planner.strategies.byte_loads import ByteLoads, byte_loads, priced
from planner.strategies.dealing import matrix
from planner.strategies.exchanges import polish, repair
from planner.strategies.fractional import rounded, roundings
from planner.strategies.layout import Layout
from planner.strategies.network import bounds as count_windows
from planner.strategies.part_program import Fits
from planner.strategies.placing import Placed, on_brokers, place, widened
from planner.strategies.proof import Proof, facts, proof
from planner.strategies.tie_breaks import after_flows, settle, ties
from planner.windows import Windows

# A plan within this part of its bound is as good as the bound; beyond the other, linear programs are worth their time.
_CLOSE, _FAIR = 1e-5, 1e-4
# What cases have brought this close isn't brought closer by programs that know no cases.
_BY_CASES = 5e-4
# Without prices only loads that are nearly even are mended: this part of all bytes may be outside the windows.
_NEARLY = 0.02
# Where windows can't hold, they are made wider than they must be by this part of that.
_SLACK = 10
# Prices beyond this many times what a byte is worth would leave the solver's arithmetic.
_STEEPEST = 3


class Evened(NamedTuple):
    """Replicas of the rows that may move (M, W), what proves how few bytes do, the bytes outside windows, and those
    moved.
    """

    chosen: IntArray
    certificate: Certificate
    outside: int
    moved: int


@dataclass(frozen=True, eq=False)
class _Task:
    """What every attempt is about; windows of counts are as wide as can be kept. `cases`: they are worth their time."""

    problem: Problem
    layout: Layout
    wanted: Windows
    loads: ByteLoads
    about: Facts
    arena: Arena
    cases: bool


class _Plan(NamedTuple):
    """A placement with the bytes outside its windows, and what it costs."""

    placement: Placement
    outside: int
    cost: int


class _Bound(NamedTuple):
    """A proof, and the least bytes by it."""

    proof: Proof | BranchedProof
    least: int


class _Best(NamedTuple):
    """The best plan and the best bound so far."""

    plan: _Plan | None = None
    bound: _Bound | None = None

    def within(self, part: float) -> bool:
        """True where the plan keeps its windows and is within this part of its bound."""
        if self.plan is None or self.bound is None or self.plan.outside:
            return False
        return self.plan.cost - self.bound.least <= part * self.plan.cost

    def but(self, plan: _Plan | None, bound: _Bound | None) -> _Best:
        """The better ones of these and others."""
        plans = [each for each in (self.plan, plan) if each is not None]
        found = [each for each in (self.bound, bound) if each is not None]
        return _Best(
            min(plans, key=lambda each: (each.outside, each.cost), default=None),
            max(found, key=lambda each: each.least, default=None),
        )


def even(
    problem: Problem,
    layout: Layout,
    wanted: Windows,
    placed: Placed,
    grown: Sequence[Scenario] = (),
    *,
    cases: bool = True,
) -> Evened | None:
    """The placement brought into the windows of bytes and traffic in; None where no such window is asked for.

    Without `cases` it is faster, a plan next to the same, with a bound that proves less.
    """
    loads = byte_loads(problem, layout, wanted, grown)
    if loads is None:
        return None
    tied = second_objectives.settled(problem, layout, wanted, placed)
    held = widened(layout, wanted, placed if problem.rebalance == "all" else tied)
    about = facts(problem, layout, loads)
    task = _Task(problem, layout, held, loads, about, of_layout(layout, held, about.costs, loads), cases)
    by_counts = Placement(task.arena, on_brokers(layout, tied.chosen))
    if problem.rebalance != "all":
        return _for_nothing(task, by_counts)
    as_it_is = not by_counts.outside().any()
    best = _without_prices(task, placed, by_counts)
    if not best.within(_CLOSE):
        best, as_it_is = _search(task, placed, _Best()), False
    if best.plan is not None and best.plan.outside:
        best = _search(_as_reached(task, best.plan), placed, _Best(best.plan._replace(outside=0)))
    if best.plan is None or best.bound is None:
        raise AssertionError("an attempt without prices is always made")
    if (by := ties(problem, layout)) is not None:
        settle(best.plan.placement, after_flows(problem, by) if as_it_is else by)
    return _evened(task, best.plan.placement, best.bound.proof.certificate(about, _reached(loads, best.plan.placement)))


def _without_prices(task: _Task, placed: Placed, by_counts: Placement) -> _Best:
    """The best placement by counts alone, brought into the windows by what costs nothing, with the bound of that."""
    nothing = np.zeros(task.loads.windows[:, 0].shape, dtype=np.int64)
    repair(by_counts, nothing.astype(np.float64), for_nothing=True)
    if by_counts.outside().any():
        return _Best()
    return _Best(_Plan(by_counts, 0, by_counts.cost), _bound(task, task.layout, placed, nothing))


def _search(task: _Task, placed: Placed, best: _Best) -> _Best:
    """The best of all attempts, until one is as good as its bound."""
    for attempts, enough in ((_quick, _CLOSE), (_by_cases, _FAIR), (_thorough, _FAIR)):
        if best.within(enough):
            return best
        for plan, bound in attempts(task, placed, best):
            best = best.but(plan, bound)
            if best.within(enough):
                return best
    return best


def _quick(task: _Task, placed: Placed, best: _Best) -> Iterator[tuple[_Plan | None, _Bound | None]]:
    """Without prices, and with those of the brokers that are left too empty then."""
    nothing = np.zeros(task.loads.windows[:, 0].shape, dtype=np.int64)
    first = Placement(task.arena, on_brokers(task.layout, placed.chosen))
    # What a byte a second is worth can't be guessed.
    disks = np.array([name == "disk" for name in task.loads.names]) & (task.about.measure == "bytes")
    too_empty = (first.load < task.loads.windows[:, 0]) & disks[:, None]
    near = first.outside().sum() <= _NEARLY * _total(task)
    bound = _bound(task, task.layout, placed, nothing)
    plan = _finished(task, first, nothing, bound) if near or not (too_empty.any() or best.plan) else None
    yield plan, bound
    if too_empty.any():
        guessed = _attempt(task, GRAIN * too_empty.astype(np.int64))
        yield guessed if guessed[0] or plan else (_finished(task, first, nothing, bound), None)


def _by_cases(task: _Task, _: Placed, best: _Best) -> Iterator[tuple[_Plan | None, _Bound | None]]:
    """Where partitions are as large as the windows: by cases of where those lie."""
    if not task.cases or best.bound is None or isinstance(best.bound.proof, BranchedProof):
        return
    by_topic, in_all = count_windows(task.layout, task.wanted)
    fits = Fits(by_topic, in_all, task.loads.windows, task.loads.scales)
    for proven, shares in branchings(task.about, fits, best.bound.proof):
        certificate = proven.certificate(task.about, task.loads.windows)
        bound = _Bound(proven, bounds.least(certificate))
        chosen = rounded(task.problem, task.layout, task.wanted, shares)
        placement = Placement(task.arena, on_brokers(task.layout, chosen))
        # Prices are of no use here: what has been decided goes against them.
        repair(placement, 0.0 * task.loads.windows[:, 0], nearly=True)
        polish(placement, bound.least)
        yield _Plan(placement, int(placement.outside().sum()), placement.cost), bound


def _thorough(task: _Task, _: Placed, best: _Best) -> Iterator[tuple[_Plan | None, _Bound | None]]:
    """With the prices of a linear program, and rounded from what it would do with split replicas."""
    if best.bound is not None and isinstance(best.bound.proof, BranchedProof) and best.within(_BY_CASES):
        return
    prices = None
    for exact, chosen in roundings(task.problem, task.layout, task.wanted, task.loads):
        if prices is None:
            prices = _rounded(task, exact)
            best = best.but(None, _proven(task, prices))
        yield _finished(task, Placement(task.arena, on_brokers(task.layout, chosen)), prices, best.bound), best.bound
    if prices is None and (close := byte_prices.solve(task.layout, task.wanted, task.loads)) is not None:
        yield _attempt(task, _rounded(task, close))


def _rounded(task: _Task, prices: FloatArray) -> LongArray:
    """Prices (D, Bt) in bytes a unit as whole parts of GRAIN, none too steep for the solver's arithmetic."""
    steepest = _STEEPEST * task.loads.scales[:, None]
    return np.rint(prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)


def _proven(task: _Task, prices: LongArray) -> _Bound | None:
    """The bound at these prices (D, Bt), in parts of GRAIN; None where they are beyond the solver's arithmetic."""
    try:
        layout = priced(task.layout, task.loads, prices)
        return _bound(task, layout, place(task.problem, layout, task.wanted), prices)
    except CostRangeError:
        return None


def _attempt(task: _Task, prices: LongArray) -> tuple[_Plan | None, _Bound | None]:
    """The flow at these prices (D, Bt), in parts of GRAIN a unit, brought into the windows."""
    try:
        layout = priced(task.layout, task.loads, prices)
        placed = place(task.problem, layout, task.wanted)
    except CostRangeError:
        return None, None
    bound = _bound(task, layout, placed, prices)
    return _finished(task, Placement(task.arena, on_brokers(layout, placed.chosen)), prices, bound), bound


def _bound(task: _Task, layout: Layout, placed: Placed, prices: LongArray) -> _Bound:
    proven = proof(layout, placed, prices)
    return _Bound(proven, bounds.least(proven.certificate(task.about, task.loads.windows)))


def _finished(task: _Task, placement: Placement, prices: LongArray, bound: _Bound | None) -> _Plan:
    """The placement brought into the windows at these prices, and polished as far as the bound lets it be."""
    repair(placement, prices / GRAIN)
    polish(placement, 0 if bound is None else bound.least)
    return _Plan(placement, int(placement.outside().sum()), placement.cost)


def _for_nothing(task: _Task, by_counts: Placement) -> Evened:
    """Bytes come first: only what must be copied anyway is dealt more evenly. The bound needs no prices."""
    nothing: FloatArray = np.zeros(task.loads.windows[:, 0].shape)
    arena, pinned = task.arena, task.layout.pinned
    if pinned is not None:
        # What a replacement takes over stays with it.
        free = ~pinned.any(axis=1, keepdims=True)
        arena = replace(arena, allowed=np.broadcast_to(free, pinned.shape))
    placement = Placement(arena, by_counts.on)
    repair(placement, nothing, for_nothing=True)
    return _evened(task, placement, Certificate(task.about, bounds.none_priced(task.about)))


def _evened(task: _Task, placement: Placement, certificate: Certificate) -> Evened:
    chosen = matrix(task.layout, np.stack(np.nonzero(placement.on)), task.problem.width)
    low, high = task.loads.windows.transpose(1, 0, 2)
    outside = np.maximum(low - placement.load, 0) + np.maximum(placement.load - high, 0)
    return Evened(chosen, certificate, int(outside.sum()), placement.cost)


def _as_reached(task: _Task, plan: _Plan) -> _Task:
    """The task with windows of loads as wide as the plan has made them, and a little wider, or nothing could move."""
    load, (low, high) = plan.placement.load, task.loads.windows.transpose(1, 0, 2)
    under, over = np.maximum(low - load, 0), np.maximum(load - high, 0)
    windows = np.stack([low - under - under // _SLACK, high + over + over // _SLACK], axis=1)
    return replace(task, loads=replace(task.loads, windows=windows), arena=replace(task.arena, load_windows=windows))


def _reached(loads: ByteLoads, placement: Placement) -> LongArray:
    """(D, 2, Bt): the windows, as wide as the placement has made them where they couldn't all hold."""
    low, high = loads.windows.transpose(1, 0, 2)
    return np.stack([np.minimum(low, placement.load), np.maximum(high, placement.load)], axis=1)


def _total(task: _Task) -> int:
    """All bytes, with the other loads at what they are worth."""
    return int((task.loads.weights * task.loads.scales[:, None] * task.layout.factors).sum())
