"""The certificate of a plan: a lower bound on the bytes moved by any plan that is no further outside of its windows.

A window that may begin anywhere has a price on each of its edges. The further it moves against the sum of its prices,
the less it proves, so its first or its last start proves the least. The certificate has the edges of that start, and
its bound holds for all plans with that spread. If that leaves a gap, the topics' windows get other prices for each of
their starts, at the prices of brokers that the plan has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from planner.model.balance import Balance
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.window_excess import Allowed, CountWindows, numbered
from planner.scoring.windows import Windows, alike, opened, starting
from planner.strategies import lagrangian_bound, work_limits
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.placement import copied, place
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import (
    BoundFacts,
    Case,
    Certificate,
    Lows,
    Outside,
    Part,
    Prices,
    Starting,
    TopicStart,
    changed,
    least,
    none_priced,
)
from planner.strategies.load_windows.allowed_plans import (
    Begins,
    allowed,
    at_price,
    closed,
    excess_and_cost_of_topics,
    reached,
    within,
)
from planner.strategies.load_windows.attempts_at_prices import facts, proof
from planner.strategies.load_windows.branch_and_bound import branchings
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.common_leader_program import CommonLeaderProgram, with_slots
from planner.strategies.load_windows.lp_relaxation import Fits
from planner.strategies.load_windows.window_positions import BestPosition, Started, WideWindows

# Prices of topics that can't begin at a start have at most so many bits: they far exceed all others, and the bound is
# still computed in 64 bits.
_STEEP_BITS = 50


@dataclass(frozen=True, eq=False)
class Question:
    """The question: the problem with its layout and balance, and the loads that have windows. `exactly`: a gap is worth
    prices for each start of a topic's window.
    """

    problem: Problem
    layout: Layout
    balance: Balance
    loads: ByteLoads
    exactly: bool

    def moved(self, assignment: IntArray) -> int:
        """What a plan (P, W) copies, in bytes, or in replicas if no sizes are known."""
        layout = self.layout
        if not layout.copy_bytes.any():
            layout = replace(layout, copy_bytes=(~layout.new).astype(np.int64))
        return copied(self.problem, layout, assignment[layout.rows])


def certified(question: Question, found: BestPosition, assignment: IntArray, *, exactly: bool = False) -> Certificate:
    """The best known certificate of a plan (P, W), for all plans that are no further outside than it is.

    `exactly`: a gap is worth more cases. With `together`, it is for plans with a common broker for each slot.
    """
    problem, layout, loads = question.problem, question.layout, question.loads
    made = _of_any_leaders(question, found, assignment, exactly=exactly)
    about = with_slots(problem, layout, made.facts)
    if about.together is None:
        return made
    made = replace(made, facts=about, others=tuple(replace(other, facts=about) for other in made.others))
    most, wanted = _reached(question, found, assignment), found.best.wanted
    program = CommonLeaderProgram.of(problem, layout, wanted, loads, asked=question.exactly)
    prices = None if program is None or not most.none else program.prices(Fits.of(layout, wanted, loads))
    if prices is None:
        return made
    return max(made, _best([Certificate(about, prices)], most, Anywhere(most)), key=least)


def _of_any_leaders(question: Question, found: BestPosition, assignment: IntArray, *, exactly: bool) -> Certificate:
    """The best known certificate without regard to `together`."""
    evened = found.best.evened
    if question.problem.rebalance != "all":
        # Bytes come first: the forced bytes don't depend on windows.
        if evened is not None:
            return evened.certificate
        about = facts(question.problem, question.layout, question.loads)
        unpriced = Certificate(about, none_priced(about))
        if question.problem.caps is None:
            return unpriced
        # The prices of the cheapest flow within the caps, whatever the windows of counts.
        placed, network = found.best.placed, found.best.placed.network
        windowed = min_cost_flow.opened(placed.windowed[0]), min_cost_flow.opened(placed.windowed[1])
        solved = min_cost_flow.solve(network.arcs, windowed, network.supplies)
        assert solved is not None, "the flow that was found is within the caps"
        capped = proof(about, question.layout, replace(placed, windowed=windowed, solved=solved))
        return max(unpriced, capped, key=least)
    most = _reached(question, found, assignment)
    if found.relaxed is None:
        made = _closed(question, found, most)
    else:
        made = _open(question, found, found.relaxed, most, question.moved(assignment))
    if exactly and question.loads.names:
        made = _by_cases(question, made, most, assignment)
    return made if most.none else _with_proofs(question, found, made, most)


def outside_more(question: Question, found: BestPosition, assignment: IntArray) -> bool:
    """True if a plan (P, W) is further outside its windows of counts than the flow that gives its bound."""
    return _reached(question, found, assignment).replicas > found.lowest.placed.excess


def _reached(question: Question, found: BestPosition, assignment: IntArray) -> Allowed:
    """The windows, with as much allowed outside as a plan (P, W) is."""
    layout, loads, relaxed = question.layout, question.loads, found.relaxed
    anywhere = relaxed.anywhere if relaxed else closed(question.problem, question.balance, layout.topic_count)
    return reached(layout, allowed(layout, found.best.wanted, anywhere, loads), loads, assignment[layout.rows])


def _of(question: Question, started: Started) -> Certificate:
    if started.evened is not None:
        return started.evened.certificate
    return proof(facts(question.problem, question.layout, question.loads), question.layout, started.placed)


def _closed(question: Question, found: BestPosition, most: Allowed) -> Certificate:
    """The best known certificate for a plan whose windows begin in one place, or one of two if they can't hold."""
    source, held = _of(question, found.best), Anywhere(most)
    if most.none:
        return source
    proven = _best((source,), most, held)
    if found.at is None:
        return proven
    starts = [(range(low, low + 1), _of(question, found.at(low))) for low in found.lows]
    return _better(proven, [_best((source, there), most, held.within(lows)) for lows, there in starts])


def _open(question: Question, found: BestPosition, relaxed: WideWindows, most: Allowed, moved: int) -> Certificate:
    """The best known certificate for a plan that copies `moved` bytes or replicas, if windows may begin anywhere."""
    there = _of(question, relaxed.started)
    sources = [there] if found.best is relaxed.started else [there, _of(question, found.best)]
    held = Anywhere(most)
    worth = question.exactly and len(question.layout.rows) * len(question.layout.targets) <= work_limits.AT_STARTS
    if worth and most.none and moved - least(_best(sources, most, held)) > work_limits.FAIR * moved:
        sources += filter(None, [_at_each_start(question, found.best, relaxed.anywhere.topics, sources[-1].prices)])
    proven = _best(sources, most, held)
    if relaxed.low is None or not relaxed.by_cases or (most.none and least(proven) >= least(there)):
        return proven
    # The window of all replicas begins at its cheapest start, or below, or above: each case has its own prices.
    (here, _), *others = relaxed.cases
    cases = [_best(sources, most, held.within(here))]
    for lows, nearest in others:
        cases.append(_best([there, _of(question, relaxed.at(nearest))], most, held.within(lows)))
    return _better(proven, cases)


def _at_each_start(question: Question, started: Started, begins: Begins, known: Prices) -> Certificate | None:
    """The certificate with prices of topics' replicas for each start of their windows, at known prices of brokers.

    At these, topics are separate: a flow for each start finds the prices of all topics. None if there are too many
    starts, or if prices exceed the solver's arithmetic.
    """
    layout, wanted = question.layout, started.wanted
    if (begins.last - begins.first)[begins.open].max(initial=0) >= work_limits.MOST_STARTS:
        return None
    prices, loads = known.of_brokers(len(layout.targets)), question.loads.with_counts(layout, wanted)
    try:
        made = [
            (topics, _prices_at(question, replace(wanted, topic_replicas=window), (prices, loads)))
            for topics, window in _starts_of_topics(wanted.topic_replicas, begins)
        ]
    except min_cost_flow.CostRangeError:
        return None
    starts = tuple(TopicStart(topics, each.topic_replicas) for topics, each in made[1:])
    return Certificate(facts(question.problem, layout, question.loads), replace(made[0][1], starts=starts))


def _starts_of_topics(asked: LongArray, begins: Begins) -> Iterator[tuple[IntArray, LongArray]]:
    """Topics (T',) whose windows may begin somewhere, and windows (2, T, Bt) that begin there; first those of all."""
    for step in range(int((begins.last - begins.first)[begins.open].max(initial=0)) + 1):
        lows = np.minimum(begins.first + step, begins.last)[:, None]
        there = np.flatnonzero(begins.open & (begins.first + step <= begins.last))
        yield there, np.where(begins.open[:, None], np.stack([lows, lows + begins.spread]), asked)
    if (unlike := begins.open & ~alike(asked)).any():
        yield np.flatnonzero(unlike), asked


def _prices_at(question: Question, wanted: Windows, priced_at: tuple[LongArray, ByteLoads]) -> Prices:
    """The prices of the flow within windows of topics, at prices of brokers."""
    prices, loads = priced_at
    layout = priced(question.layout, loads, prices) if prices.any() else question.layout
    alone, window = replace(wanted, replicas=opened(wanted.replicas), caps=None), wanted.topic_replicas
    placed = place(question.problem, layout, alone)
    about = facts(question.problem, layout, loads)
    made = proof(about, layout, placed, (prices, loads.windows)).prices
    never = excess_and_cost_of_topics(layout, alone, placed.chosen)[0] > 0
    cells = made.topic_replicas
    if never.any():
        # Topics that can't begin there have steep and coarse prices; those of others are made without them.
        mine = cells[:, never[cells[0]]]
        exact = mine[2].astype(object) * (lagrangian_bound.GRAIN // made.grain)
        mine[2] = exact >> max(int(np.abs(exact).max(initial=0)).bit_length() - _STEEP_BITS, 0)
        window = np.where(never[:, None], opened(window), window)
        others = place(question.problem, layout, replace(alone, topic_replicas=window))
        made = proof(about, layout, others, (prices, loads.windows)).prices
        cells = np.concatenate([made.topic_replicas[:, ~never[made.topic_replicas[0]]], mine], axis=1)
    return Prices(cells, made.loads[0], made.loads[1:], made.grain)


def _by_cases(question: Question, made: Certificate, most: Allowed, assignment: IntArray) -> Certificate:
    """The certificate; if a small cluster's plan (P, W) is far above it, the best one of cases for just these plans.

    The cases that helped to make the plan are for other plans if any are outside of windows, or begin elsewhere.
    """
    layout, held = question.layout, Anywhere(most)
    moved = copied(question.problem, layout, assignment[layout.rows])
    known = most.none and made.parts and not (most.topics.open.any() or most.brokers.open.any())
    large = work_limits.WHOLE_WORTH * len(layout.rows) * len(layout.targets) > work_limits.ASKED.columns
    if known or large or moved - least(made) <= work_limits.WHOLE_GAP * moved:
        return made
    lows = range(int(most.brokers.first[0]), int(most.brokers.last[0]) + 1)
    by_start = most.covered([(low, low) for low in lows])
    helds = [held.within(range(low, low + 1)) for low in lows] if by_start else [held]
    base, cases = Certificate(made.facts, none_priced(made.facts)), []
    for each in helds:
        effort, fits = work_limits.Effort(work_limits.PROOF_COLUMNS // len(helds)), Fits.anywhere(each.windows)
        found = branchings(made.facts, fits, base, effort, work_limits.WHOLE_SOLVES, moved)
        cases.append(_best([base, *(proven for proven, _ in found)], most, each))
    return _better(made, cases)


def _better(proven: Certificate, cases: Sequence[Certificate]) -> Certificate:
    """A certificate for every start of the window, or the cases that cover all starts: whichever proves more."""
    others = tuple(replace(case, outside=None) for case in cases[1:])
    return max(proven, replace(cases[0], others=others), key=least)


def _best(sources: Iterable[Certificate], most: Allowed, held: Anywhere) -> Certificate:
    """The best of these certificates, each at the edges that prove the least."""
    made = map(held.certificate, sources)
    return max((each if most.none else within(each, most) for each in made), key=least)


def _with_proofs(question: Question, found: BestPosition, certificate: Certificate, most: Allowed) -> Certificate:
    """The certificate with the proof of how far outside every plan is, and with the names of the partitions."""
    source, held = found.lowest, Anywhere(most)
    nothing = none_priced(certificate.facts)
    of_loads: Case = replace(nothing, of_loads=nothing.grain)
    if source.evened is not None and source.evened.least_outside is not None:
        of_loads = changed(source.evened.least_outside, lambda prices: at_price(held.prices(prices), most))
    outside = Outside(
        most,
        tuple(_least_replicas(question, found, certificate.facts, most, held)),
        (Starting(of_loads),),
        question.problem.topic_names,
        question.problem.partition_ids[question.layout.rows],
    )
    return replace(certificate, outside=outside)


def _least_replicas(
    question: Question, found: BestPosition, about: BoundFacts, most: Allowed, held: Anywhere
) -> Iterator[Starting]:
    """Prices at which flows with the least excess prove that no plan has less, wherever windows begin."""
    if most.replicas <= most.certain:
        yield Starting(replace(none_priced(about), of_replicas=lagrangian_bound.GRAIN))
        return
    problem, layout, source = question.problem, question.layout, found.lowest
    if found.relaxed is not None:
        cases = found.relaxed.cases
    else:
        cases = [(range(low, low + 1), low) for low in found.lows] if len(found.lows) > 1 else []
    spread = int(question.balance.replicas.value)
    # Placements, each with the starts of the window of all replicas that it covers; together they cover all.
    there = ((place(problem, layout, starting(source.wanted, low, spread)), held.within(lows)) for lows, low in cases)
    for placed, edges in there if cases else [(source.placed, held)]:
        # The flow with the least excess, whatever it costs.
        full = placed.network.layout
        free = replace(full, keep_costs=np.zeros_like(full.keep_costs), enter_costs=np.zeros_like(full.enter_costs))
        network = replace(placed.network, layout=free)
        solved = min_cost_flow.solve(network.arcs, placed.windowed, network.supplies, excess_factor=1)
        prices = none_priced(about)
        if solved is not None:
            of_excess = replace(placed, network=network, solved=solved)
            prices = proof(about, layout, of_excess, of_excess=True).prices
        yield Starting(replace(edges.prices(prices), of_replicas=prices.grain), edges.lows)


@dataclass(frozen=True, eq=False)
class Anywhere:
    """Makes a certificate hold for all starts of these windows; of the window of all replicas, for `lows`."""

    windows: Allowed
    lows: Lows = None

    @cached_property
    def by_cell(self) -> tuple[LongArray, ...]:
        """The edges (2, T, Bt) of topics' windows at each start."""
        return tuple(_edges(self.windows.topics))

    @cached_property
    def in_all(self) -> tuple[LongArray, ...]:
        """The edges (2, 1, Bt) of the window of all replicas at each start."""
        return tuple(_edges(self.windows.brokers, as_asked=self.lows is None))

    def within(self, lows: range) -> Anywhere:
        """The same, with the window of all replicas limited to these starts."""
        ends = lows[0], lows[-1]
        return Anywhere(self.windows.beginning(ends), ends)

    def certificate(self, certificate: Certificate) -> Certificate:
        """The certificate with the edges that prove the least."""
        racks = certificate.facts.racks
        parts = [
            Part(part.racks, changed(part.case, partial(self.prices, here=np.isin(racks, part.racks))))
            for part in certificate.parts
        ]
        prices = self.prices(certificate.prices)
        return Certificate(certificate.facts, prices, tuple(parts), lows=self.lows)

    def prices(self, prices: Prices, here: BoolArray | None = None) -> Prices:
        """The prices with the edges that prove the least, by the brokers `here` (Bt,), None: by all."""
        topics, brokers = self.windows.topics, self.windows.brokers
        here = np.ones(brokers.fixed.shape[1], dtype=bool) if here is None else here
        cells = prices.topic_replicas
        cells = cells if prices.starts else _least(cells, self.by_cell, topics.open, here)
        in_all = _least(numbered(prices.replicas), self.in_all, brokers.open, here)
        return replace(prices, topic_replicas=cells, replicas=in_all[1:])


def _edges(windows: CountWindows, *, as_asked: bool = True) -> Iterator[LongArray]:
    """The edges of windows, minus the replicas of rows that may not move: at every start, and `as_asked`.

    Edges are from 0 to the number of all movable replicas. If there are too many starts, only the first and the last
    are used, with lower edges as they are: then no other start proves less.
    """
    several = int((windows.last - windows.first).max(initial=0))
    every = several <= work_limits.MOST_STARTS
    for step in range(several + 1) if every else (0, several):
        low = np.minimum(windows.first + step, windows.last)[:, None] - windows.fixed
        ends = np.stack([low.clip(min=0) if every else low, (low + windows.spread).clip(min=0)])
        yield ends.clip(max=windows.movable.sum())
    if as_asked:
        yield windows.left(windows.bounds)


def _least(table: LongArray, edges: tuple[LongArray, ...], is_open: BoolArray, here: BoolArray) -> LongArray:
    """The table (window, broker, price, edge) with the edges, of several (2, K, Bt), that prove the least."""
    at, brokers, prices = table[:3]
    tried = [np.where(prices > 0, each[0][at, brokers], each[1][at, brokers]) for each in edges]
    # Python's integers, because prices times edges may exceed 64 bits.
    sums = np.zeros((len(tried), len(is_open)), dtype=object)
    for total, found in zip(sums, tried, strict=True):
        np.add.at(total, at[here[brokers]], prices[here[brokers]].astype(object) * found[here[brokers]])
    best = np.stack(tried)[sums.argmin(axis=0)[at], np.arange(len(at))]
    return np.stack([at, brokers, prices, np.where(is_open[at], best, table[3])])
