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
from planner.scoring.windows import Windows, equal_for_all, opened, starting
from planner.strategies import lagrangian_bound, work_limits
from planner.strategies.flow import min_cost_flow
from planner.strategies.flow.placement import copied, place
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import (
    BoundFacts,
    Case,
    Certificate,
    Outside,
    Part,
    Prices,
    StartCase,
    StartRange,
    TopicStart,
    changed,
    lower_bound,
    none_priced,
)
from planner.strategies.load_windows.allowed_plans import (
    OpenWindows,
    Starts,
    at_price,
    excess_and_cost_of_topics,
    no_open_windows,
    no_slack,
    slack_of,
    with_slack,
)
from planner.strategies.load_windows.attempts_at_prices import facts_of, proof
from planner.strategies.load_windows.branch_and_bound import branchings
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.common_leader_program import CommonLeaderProgram, with_slots
from planner.strategies.load_windows.lp_relaxation import Fits
from planner.strategies.load_windows.window_positions import BestPosition, Started, StartProgram, WideWindows

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
            layout = replace(layout, copy_bytes=(~layout.is_new).astype(np.int64))
        return copied(self.problem, layout, assignment[layout.rows])

    def proof_with_starts(self, windows: Windows, openings: OpenWindows) -> Certificate | None:
        """The certificate with the prices of a program with split replicas and starts; None if it is too large."""
        program = StartProgram.of(self.layout, openings.widened(windows), self.loads, openings)
        prices = None if program is None else program.prices(Fits.of(self.layout, windows, self.loads))
        return None if prices is None else Certificate(facts_of(self.problem, self.layout, self.loads), prices)


def certify(question: Question, position: BestPosition, assignment: IntArray, *, exactly: bool = False) -> Certificate:
    """The best known certificate of a plan (P, W), for all plans that are no further outside than it is.

    `exactly`: a gap is worth more cases. With `together`, it is for plans with a common broker for each slot.
    """
    problem, layout, loads = question.problem, question.layout, question.loads
    certificate = _of_any_leaders(question, position, assignment, exactly=exactly)
    facts = with_slots(problem, layout, certificate.facts)
    if facts.together is None:
        return certificate
    certificate = replace(
        certificate, facts=facts, others=tuple(replace(other, facts=facts) for other in certificate.others)
    )
    slack, windows = _slack_of(question, position, assignment), position.best.windows
    program = CommonLeaderProgram.of(problem, layout, windows, loads, exactly=question.exactly)
    prices = None if program is None or not slack.none else program.prices(Fits.of(layout, windows, loads))
    if prices is None:
        return certificate
    return max(certificate, _best([Certificate(facts, prices)], slack, StartSpan(slack)), key=lower_bound)


def _of_any_leaders(question: Question, position: BestPosition, assignment: IntArray, *, exactly: bool) -> Certificate:
    """The best known certificate without regard to `together`."""
    evened = position.best.evened
    if question.problem.rebalance != "all":
        # Bytes come first: the forced bytes don't depend on windows.
        if evened is not None:
            return evened.certificate
        facts = facts_of(question.problem, question.layout, question.loads)
        unpriced = Certificate(facts, none_priced(facts))
        if question.problem.caps is None:
            return unpriced
        # The prices of the cheapest flow within the caps, whatever the windows of counts.
        placed, network = position.best.placed, position.best.placed.network
        windowed = min_cost_flow.opened(placed.windowed[0]), min_cost_flow.opened(placed.windowed[1])
        solved = min_cost_flow.solve(network.arcs, windowed, network.supplies)
        assert solved is not None, "the flow that was found is within the caps"
        capped = proof(facts, question.layout, replace(placed, windowed=windowed, solved=solved))
        return max(unpriced, capped, key=lower_bound)
    slack = _slack_of(question, position, assignment)
    if position.relaxed is None:
        certificate = _of_closed_windows(question, position, slack)
    else:
        certificate = _of_open_windows(question, position, position.relaxed, slack, question.moved(assignment))
    if exactly and question.loads.names:
        certificate = _by_cases(question, certificate, slack, assignment)
    return certificate if slack.none else _with_outside(question, position, certificate, slack)


def is_further_outside(question: Question, position: BestPosition, assignment: IntArray) -> bool:
    """True if a plan (P, W) is further outside its windows of counts than the flow that gives its bound."""
    return _slack_of(question, position, assignment).replicas > position.lowest.placed.excess


def _slack_of(question: Question, position: BestPosition, assignment: IntArray) -> Allowed:
    """The windows, with as much allowed outside as a plan (P, W) is."""
    layout, loads, relaxed = question.layout, question.loads, position.relaxed
    openings = relaxed.openings if relaxed else no_open_windows(question.problem, question.balance, layout.topic_count)
    return slack_of(layout, no_slack(layout, position.best.windows, openings, loads), loads, assignment[layout.rows])


def _proof_of(question: Question, started: Started) -> Certificate:
    if started.evened is not None:
        return started.evened.certificate
    return proof(facts_of(question.problem, question.layout, question.loads), question.layout, started.placed)


def _of_closed_windows(question: Question, position: BestPosition, slack: Allowed) -> Certificate:
    """The best known certificate for a plan whose windows begin in one place, or one of two if they can't hold."""
    certificate, span = _proof_of(question, position.best), StartSpan(slack)
    if slack.none:
        return certificate
    proven = _best((certificate,), slack, span)
    if position.started_at is None:
        return proven
    starts = [(range(low, low + 1), _proof_of(question, position.started_at(low))) for low in position.lows]
    return _better(proven, [_best((certificate, at_start), slack, span.within(lows)) for lows, at_start in starts])


def _of_open_windows(
    question: Question, position: BestPosition, relaxed: WideWindows, slack: Allowed, moved: int
) -> Certificate:
    """The best known certificate for a plan that copies `moved` bytes or replicas, if windows may begin anywhere."""
    of_relaxed = _proof_of(question, relaxed.started)
    sources = [of_relaxed] if position.best is relaxed.started else [of_relaxed, _proof_of(question, position.best)]
    span = StartSpan(slack)
    try_starts = question.exactly and len(question.layout.rows) * len(question.layout.targets) <= work_limits.AT_STARTS
    if try_starts and slack.none and moved - lower_bound(_best(sources, slack, span)) > work_limits.FAIR * moved:
        sources += filter(None, [_start_proof(question, position.best, relaxed.openings.topics, sources[-1].prices)])
        sources += filter(None, [question.proof_with_starts(position.best.windows, relaxed.openings)])
    proven = _best(sources, slack, span)
    if relaxed.low is None or not relaxed.by_cases or (slack.none and lower_bound(proven) >= lower_bound(of_relaxed)):
        return proven
    # The window of all replicas begins at its cheapest start, or below, or above: each case has its own prices.
    (low_starts, _), *others = relaxed.cases
    cases = [_best(sources, slack, span.within(low_starts))]
    for lows, nearest in others:
        cases.append(_best([of_relaxed, _proof_of(question, relaxed.started_at(nearest))], slack, span.within(lows)))
    return _better(proven, cases)


def _start_proof(question: Question, started: Started, ranges: Starts, known_prices: Prices) -> Certificate | None:
    """The certificate with prices of topics' replicas for each start of their windows, at known prices of brokers.

    At these, topics are separate: a flow for each start finds the prices of all topics. None if there are too many
    starts, or if prices exceed the solver's arithmetic.
    """
    layout, windows = question.layout, started.windows
    if (ranges.last - ranges.first)[ranges.open].max(initial=0) >= work_limits.MOST_STARTS:
        return None
    prices, loads = known_prices.of_brokers(len(layout.targets)), question.loads.with_counts(layout, windows)
    try:
        priced_starts = [
            (topics, _prices_at(question, replace(windows, topic_replicas=window), (prices, loads)))
            for topics, window in _starts_of_topics(windows.topic_replicas, ranges)
        ]
    except min_cost_flow.CostRangeError:
        return None
    starts = tuple(TopicStart(topics, each.topic_replicas) for topics, each in priced_starts[1:])
    return Certificate(facts_of(question.problem, layout, question.loads), replace(priced_starts[0][1], starts=starts))


def _starts_of_topics(topic_windows: LongArray, ranges: Starts) -> Iterator[tuple[IntArray, LongArray]]:
    """Topics (T',) whose windows may begin somewhere, and windows (2, T, Bt) that begin there; first those of all."""
    for step in range(int((ranges.last - ranges.first)[ranges.open].max(initial=0)) + 1):
        lows = np.minimum(ranges.first + step, ranges.last)[:, None]
        topics = np.flatnonzero(ranges.open & (ranges.first + step <= ranges.last))
        yield topics, np.where(ranges.open[:, None], np.stack([lows, lows + ranges.spread]), topic_windows)
    if (unlike := ranges.open & ~equal_for_all(topic_windows)).any():
        yield np.flatnonzero(unlike), topic_windows


def _prices_at(question: Question, windows: Windows, priced_at: tuple[LongArray, ByteLoads]) -> Prices:
    """The prices of the flow within windows of topics, at prices of brokers."""
    prices, loads = priced_at
    layout = priced(question.layout, loads, prices) if prices.any() else question.layout
    topics_only, window = replace(windows, replicas=opened(windows.replicas), caps=None), windows.topic_replicas
    placed = place(question.problem, layout, topics_only)
    facts = facts_of(question.problem, layout, loads)
    flow_prices = proof(facts, layout, placed, (prices, loads.windows)).prices
    excluded = excess_and_cost_of_topics(layout, topics_only, placed.chosen)[0] > 0
    cells = flow_prices.topic_replicas
    if excluded.any():
        # Topics that can't begin there have steep and coarse prices; those of others are made without them.
        steep = cells[:, excluded[cells[0]]]
        exact_prices = steep[2].astype(object) * (lagrangian_bound.GRAIN // flow_prices.grain)
        steep[2] = exact_prices >> max(int(np.abs(exact_prices).max(initial=0)).bit_length() - _STEEP_BITS, 0)
        window = np.where(excluded[:, None], opened(window), window)
        others = place(question.problem, layout, replace(topics_only, topic_replicas=window))
        flow_prices = proof(facts, layout, others, (prices, loads.windows)).prices
        cells = np.concatenate([flow_prices.topic_replicas[:, ~excluded[flow_prices.topic_replicas[0]]], steep], axis=1)
    return Prices(cells, flow_prices.loads[0], flow_prices.loads[1:], flow_prices.grain)


def _by_cases(question: Question, certificate: Certificate, slack: Allowed, assignment: IntArray) -> Certificate:
    """The certificate; if a small cluster's plan (P, W) is far above it, the best one of cases for just these plans.

    The cases that helped to make the plan are for other plans if any are outside of windows, or begin elsewhere.
    """
    layout, span = question.layout, StartSpan(slack)
    moved = copied(question.problem, layout, assignment[layout.rows])
    has_cases = slack.none and certificate.parts and not (slack.topics.open.any() or slack.brokers.open.any())
    is_large = work_limits.WHOLE_WORTH * len(layout.rows) * len(layout.targets) > work_limits.FULL_WORK.columns
    if has_cases or is_large or moved - lower_bound(certificate) <= work_limits.WHOLE_GAP * moved:
        return certificate
    lows = range(int(slack.brokers.first[0]), int(slack.brokers.last[0]) + 1)
    by_start = slack.covered([(low, low) for low in lows])
    spans = [span.within(range(low, low + 1)) for low in lows] if by_start else [span]
    base, cases = Certificate(certificate.facts, none_priced(certificate.facts)), []
    for each in spans:
        effort, fits = work_limits.Effort(work_limits.PROOF_COLUMNS // len(spans)), Fits.anywhere(each.windows)
        branched = branchings(certificate.facts, fits, base, effort, work_limits.WHOLE_SOLVES, moved)
        cases.append(_best([base, *(proven for proven, _ in branched)], slack, each))
    return _better(certificate, cases)


def _better(proven: Certificate, cases: Sequence[Certificate]) -> Certificate:
    """A certificate for every start of the window, or the cases that cover all starts: whichever proves more."""
    others = tuple(replace(case, outside=None) for case in cases[1:])
    return max(proven, replace(cases[0], others=others), key=lower_bound)


def _best(sources: Iterable[Certificate], slack: Allowed, span: StartSpan) -> Certificate:
    """The best of these certificates, each at the edges that prove the least."""
    certificates = map(span.certificate, sources)
    return max((each if slack.none else with_slack(each, slack) for each in certificates), key=lower_bound)


def _with_outside(question: Question, position: BestPosition, certificate: Certificate, slack: Allowed) -> Certificate:
    """The certificate with the proof of how far outside every plan is, and with the names of the partitions."""
    lowest, span = position.lowest, StartSpan(slack)
    no_prices = none_priced(certificate.facts)
    of_loads: Case = replace(no_prices, of_loads=no_prices.grain)
    if lowest.evened is not None and lowest.evened.least_outside is not None:
        of_loads = changed(lowest.evened.least_outside, lambda prices: at_price(span.prices(prices), slack))
    outside = Outside(
        slack,
        tuple(_least_replicas(question, position, certificate.facts, slack, span)),
        (StartCase(of_loads),),
        question.problem.topic_names,
        question.problem.partition_ids[question.layout.rows],
    )
    return replace(certificate, outside=outside)


def _least_replicas(
    question: Question, position: BestPosition, facts: BoundFacts, slack: Allowed, span: StartSpan
) -> Iterator[StartCase]:
    """Prices at which flows with the least excess prove that no plan has less, wherever windows begin."""
    if slack.replicas <= slack.certain:
        yield StartCase(replace(none_priced(facts), of_replicas=lagrangian_bound.GRAIN))
        return
    problem, layout, lowest = question.problem, question.layout, position.lowest
    if position.relaxed is not None:
        cases = position.relaxed.cases
    else:
        cases = [(range(low, low + 1), low) for low in position.lows] if len(position.lows) > 1 else []
    spread = int(question.balance.replicas.value)
    # Placements, each with the starts of the window of all replicas that it covers; together they cover all.
    placements = (
        (place(problem, layout, starting(lowest.windows, low, spread)), span.within(lows)) for lows, low in cases
    )
    for placed, edges in placements if cases else [(lowest.placed, span)]:
        # The flow with the least excess, whatever it costs.
        full = placed.network.layout
        free = replace(full, keep_costs=np.zeros_like(full.keep_costs), enter_costs=np.zeros_like(full.enter_costs))
        network = replace(placed.network, layout=free)
        solved = min_cost_flow.solve(network.arcs, placed.windowed, network.supplies, excess_factor=1)
        prices = none_priced(facts)
        if solved is not None:
            of_excess = replace(placed, network=network, solved=solved)
            prices = proof(facts, layout, of_excess, of_excess=True).prices
        yield StartCase(replace(edges.prices(prices), of_replicas=prices.grain), edges.lows)


@dataclass(frozen=True, eq=False)
class StartSpan:
    """Makes a certificate hold for all starts of these windows; of the window of all replicas, for `lows`."""

    windows: Allowed
    lows: StartRange = None

    @cached_property
    def by_cell(self) -> tuple[LongArray, ...]:
        """The edges (2, T, Bt) of topics' windows at each start."""
        return tuple(_edges(self.windows.topics))

    @cached_property
    def in_all(self) -> tuple[LongArray, ...]:
        """The edges (2, 1, Bt) of the window of all replicas at each start."""
        return tuple(_edges(self.windows.brokers, as_requested=self.lows is None))

    def within(self, lows: range) -> StartSpan:
        """The same, with the window of all replicas limited to these starts."""
        ends = lows[0], lows[-1]
        return StartSpan(self.windows.beginning(ends), ends)

    def certificate(self, certificate: Certificate) -> Certificate:
        """The certificate with the edges that prove the least."""
        racks = certificate.facts.racks
        parts = [
            Part(part.racks, changed(part.case, partial(self.prices, in_part=np.isin(racks, part.racks))))
            for part in certificate.parts
        ]
        prices = self.prices(certificate.prices)
        return Certificate(certificate.facts, prices, tuple(parts), lows=self.lows)

    def prices(self, prices: Prices, in_part: BoolArray | None = None) -> Prices:
        """The prices with the edges that prove the least, by the brokers `in_part` (Bt,), None: by all."""
        topics, brokers = self.windows.topics, self.windows.brokers
        in_part = np.ones(brokers.fixed.shape[1], dtype=bool) if in_part is None else in_part
        cells = prices.topic_replicas
        cells = cells if prices.starts else _least_edges(cells, self.by_cell, topics.open, in_part)
        in_all = _least_edges(numbered(prices.replicas), self.in_all, brokers.open, in_part)
        return replace(prices, topic_replicas=cells, replicas=in_all[1:])


def _edges(windows: CountWindows, *, as_requested: bool = True) -> Iterator[LongArray]:
    """The edges of windows, minus the replicas of rows that may not move: at every start, and `as_requested`.

    Edges are from 0 to the number of all movable replicas. If there are too many starts, only the first and the last
    are used, with lower edges as they are: then no other start proves less.
    """
    several = int((windows.last - windows.first).max(initial=0))
    try_all = several <= work_limits.MOST_STARTS
    for step in range(several + 1) if try_all else (0, several):
        low = np.minimum(windows.first + step, windows.last)[:, None] - windows.fixed
        ends = np.stack([low.clip(min=0) if try_all else low, (low + windows.spread).clip(min=0)])
        yield ends.clip(max=windows.movable.sum())
    if as_requested:
        yield windows.movable_part(windows.bounds)


def _least_edges(table: LongArray, edges: tuple[LongArray, ...], is_open: BoolArray, in_part: BoolArray) -> LongArray:
    """The table (window, broker, price, edge) with the edges, of several (2, K, Bt), that prove the least."""
    indices, brokers, prices = table[:3]
    candidates = [np.where(prices > 0, each[0][indices, brokers], each[1][indices, brokers]) for each in edges]
    # Python's integers, because prices times edges may exceed 64 bits.
    sums = np.zeros((len(candidates), len(is_open)), dtype=object)
    for total, edge in zip(sums, candidates, strict=True):
        np.add.at(total, indices[in_part[brokers]], prices[in_part[brokers]].astype(object) * edge[in_part[brokers]])
    best = np.stack(candidates)[sums.argmin(axis=0)[indices], np.arange(len(indices))]
    return np.stack([indices, brokers, prices, np.where(is_open[indices], best, table[3])])
