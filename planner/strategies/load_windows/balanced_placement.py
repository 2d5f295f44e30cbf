"""Finds placements whose bytes and traffic are within their windows too, and bounds the bytes that these must move.

Windows of bytes are side constraints that a pure flow can't express. A price per byte on each broker replaces them. The
flow at those prices is still exact, and its node potentials and the prices prove a bound (`lagrangian_bound`). Then
exchanges of single replicas bring loads that are near their windows into them. Brokers that the cheapest placement
leaves too empty get the price of a copied byte, which is nearly always the right one. If a gap remains, the prices of a
linear program are tried, and its solution with split replicas, rounded. If single partitions are as large as the
windows, cases decide which brokers have them; see `branch_and_bound`.

If windows can't all hold, the placement is first brought as close to them as possible. Every further placement may be
as far outside as this one, in sum and on the worst broker, on any brokers; the cheapest of those is the plan.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.growth_scenarios import Scenario
from planner.scoring.window_excess import Allowed
from planner.scoring.windows import Windows
from planner.strategies import lagrangian_bound
from planner.strategies.flow import tie_breaking
from planner.strategies.flow.placement import Placed, on_brokers, widened
from planner.strategies.flow.placement_network import Layout, windowed
from planner.strategies.flow.tie_breaking_exchanges import after_flows, settle, ties
from planner.strategies.lagrangian_bound import GRAIN, Case, Certificate
from planner.strategies.load_windows import price_program
from planner.strategies.load_windows.allowed_plans import allowed, closed, reached
from planner.strategies.load_windows.attempts_at_prices import (
    Best,
    Bound,
    PlacedPlan,
    Priced,
    Task,
    at_prices,
    by_program,
    chosen_of,
    facts,
    in_parts,
    of_proof,
    without_prices,
)
from planner.strategies.load_windows.branch_and_bound import branchings
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.column_generation import mixtures
from planner.strategies.load_windows.local_search import at_edges, polish, repair
from planner.strategies.load_windows.local_search_state import MostOutside, SearchPlacement, of_layout
from planner.strategies.load_windows.lp_relaxation import Fits, rounded, roundings
from planner.strategies.work_limits import (
    CASE_SOLVES,
    CLOSE,
    CLOSE_BY_CASES,
    FAIR,
    LARGE_PLACEMENT,
    NEARLY_EVEN,
    POLISHED,
    SHARE_OF_CASES,
    SHARE_OF_CLOSEST,
    SHARE_OF_RELAXED,
    WHOLE_GAP,
    WHOLE_SOLVES,
    Effort,
)


def relaxed(task: Task, none: Allowed, plan: PlacedPlan, bound: Bound) -> tuple[Best, Case | None]:
    """The cheapest placement with the least outside, and cases that prove how much is outside at least.

    `none`: the windows, with nothing allowed outside of them. The plan is outside of them; the bound may be any bound.
    """
    base = replace(bound.proof, parts=())
    some_too_large, effort = task.loads.too_large(), task.effort
    task = replace(task, effort=effort and effort.part(SHARE_OF_RELAXED))
    closest, least_outside = _closest(task, none, base, plan)
    made = by_program(task, MostOutside(closest.outside, task.loads.weights @ task.layout.factors), of_loads=True)
    closest = min((closest, made or closest), key=lambda each: (each.outside, each.cost))
    no_cases = task.effort is not None and (least_outside is None or some_too_large) and closest.outside
    prices = None
    if no_cases and not _is_best(task, none, closest, base):
        # The prices of a program that may leave as much outside as the plan does.
        close = price_program.byte_prices(task.layout, task.wanted, task.loads, closest.outside)
        prices = None if close is None else in_parts(task, close)
    if prices is not None and (found := at_prices(task, prices)) is not None:
        nearer = _finished(task, task.placement(found.placed.chosen), prices, None)
        closest = min(closest, nearer, key=lambda each: (each.outside, each.cost))
    most = reached(task.layout, none, task.loads, chosen_of(task, closest.placement))
    assert most.furthest is not None
    room = MostOutside(most.loads, most.furthest)
    within = replace(task, most=most, search=replace(task.search, most_outside=room))
    best = Best(_polished(within, closest.placement.on, 0), of_proof(within, base)).but(by_program(within, room), None)
    if prices is not None and (found := at_prices(within, prices)) is not None:
        best = best.but(None, found.bound)
    # If a replica is larger than every window, cases within the windows were skipped: their work is spent here.
    cases, solves = (
        (effort.part(SHARE_OF_CASES), WHOLE_SOLVES) if effort and some_too_large else (task.effort, CASE_SOLVES)
    )
    if cases is not None:
        for proven, shares in branchings(task.about, _fits(task, most), base, cases, solves):
            made = None
            if shares is not None:
                on = on_brokers(task.layout, rounded(task.problem, task.layout, task.wanted, shares))
                made = _polished(within, on, of_proof(within, proven).least)
            best = best.but(made, of_proof(within, proven))
            if best.within(FAIR):
                break
    return best, least_outside


def _is_best(task: Task, none: Allowed, plan: PlacedPlan, base: Certificate) -> bool:
    """True if no plan is less outside, and the bound proves that none as little outside copies much less."""
    if plan.outside > task.loads.surely_outside(task.layout.factors):
        return False
    most = reached(task.layout, none, task.loads, chosen_of(task, plan.placement))
    return plan.cost - of_proof(replace(task, most=most), base).least <= FAIR * plan.cost


def _closest(task: Task, none: Allowed, base: Certificate, plan: PlacedPlan) -> tuple[PlacedPlan, Case | None]:
    """The placement with the least outside (of several, the cheapest), and the case that proves that none has less."""
    if task.effort is None or not plan.outside:
        return plan, None
    most = reached(task.layout, none, task.loads, chosen_of(task, plan.placement))
    case = None
    for proven, shares in branchings(
        task.about, _fits(task, most, only_loads=True), base, task.effort.part(SHARE_OF_CLOSEST)
    ):
        case = proven.parts[0].case
        if shares is None:
            continue
        chosen = rounded(task.problem, task.layout, task.wanted, shares)
        made = _finished(task, task.placement(chosen), None, None, nearly=True)
        plan = min(plan, made, key=lambda each: (each.outside, each.cost))
    return plan, case


def _polished(task: Task, on: BoolArray, enough: int) -> PlacedPlan | None:
    """The placement, repaired until it is no further outside than allowed, and made cheaper; None if repair fails."""
    placement = SearchPlacement(task.search, on.copy())
    if not placement.within_windows():
        repair(placement, nearly=True)
    if not placement.within_windows():
        return None
    polish(placement, enough)
    return PlacedPlan.of(placement)._replace(outside=0)


def _fits(task: Task, most: Allowed, *, only_loads: bool = False) -> Fits:
    """The windows as the flow has them; replicas that may not move cost nothing outside of them."""
    topics, brokers = windowed(task.layout, task.wanted)
    by_topic = topics.bounds.reshape(2, task.layout.topic_count, -1)
    return Fits(by_topic, brokers.bounds, task.loads.windows, task.loads.scales, most, only_loads)


_Found = Iterator[tuple[PlacedPlan | None, Bound | None]]
_Attempts = Callable[[Task, Placed, Best], _Found]


class Evened(NamedTuple):
    """Replicas of the rows that may move (M, W), the certificate of the fewest bytes, the bytes outside windows, and
    those moved. `begun`: the result of little work, if more work is of use. `least_outside`: the proof of how many
    bytes are outside at least, if some are.
    """

    chosen: IntArray
    certificate: Certificate
    outside: int
    moved: int
    begun: Best | None
    least_outside: Case | None = None


def even(
    problem: Problem,
    layout: Layout,
    wanted: Windows,
    placed: Placed,
    grown: Sequence[Scenario] = (),
    effort: Effort | None = None,
    begun: Best | None = None,
) -> Evened | None:
    """The placement brought into the windows of bytes and traffic in; None if no such window is asked for.

    `effort` is the work that it may do. None: little work, enough to compare placements, and the bound proves less.
    `begun`: the result of that little work, to continue from.
    """
    loads = byte_loads(problem, layout, wanted, grown)
    if not loads.names:
        return None
    about, held, tied = facts(problem, layout, loads), wanted, None
    if problem.rebalance != "all":
        tied = tie_breaking.ties_broken(problem, layout, wanted, placed)
        held = widened(layout, wanted, tied)
    none = allowed(layout, wanted, closed(problem, problem.balance, layout.topic_count), loads)
    of_counts = reached(layout, none, loads, placed.chosen).replicas
    most = replace(none, replicas=of_counts) if of_counts else None
    task = Task(problem, layout, wanted, loads, about, of_layout(layout, held, about.costs, loads), effort, most)
    if tied is not None:
        return _for_nothing(task, task.placement(tied.chosen))
    best, as_it_is = _without_prices(task, placed) if begun is None else (begun, False)
    least_outside = None
    if not best.within(CLOSE):
        best, as_it_is = _search(task, placed, begun or Best(), _ATTEMPTS[0 if begun is None else 1 :]), False
    if best.plan is None:
        best = best.but(_finished(task, task.placement(placed.chosen), None, None), None)
    # A copy, because ties are broken in place.
    found = best.copy() if effort is None and not best.within(CLOSE) else None
    if best.plan is not None and best.bound is not None and (best.plan.outside or (most and not best.within(FAIR))):
        best, least_outside = relaxed(task, none, best.plan, best.bound)
    if best.plan is None or best.bound is None:
        raise AssertionError("an attempt without prices is always made")
    if (by := ties(problem, layout)) is not None:
        settle(best.plan.placement, after_flows(problem, by) if as_it_is else by)
    return _evened(task, best.plan.placement, best.bound.proof, found, least_outside)


def _without_prices(task: Task, placed: Placed) -> tuple[Best, bool]:
    """The best placement by counts alone, brought into the windows by moves that cost nothing, with its bound; and True
    if it needed no move. Large clusters whose placement is far outside of its windows are left out: such a placement
    never gets into its windows for free, and finding that out takes long.
    """
    if _is_large(task) and _is_far(task, task.placement(placed.chosen)):
        return Best(), False
    tied = tie_breaking.ties_broken(task.problem, task.layout, task.wanted, placed)
    by_counts = task.placement(tied.chosen)
    as_it_is = not by_counts.outside().any()
    repair(by_counts, for_nothing=True, or_not_at_all=_is_large(task))
    if by_counts.outside().any():
        return Best(), False
    return Best(PlacedPlan(by_counts, 0, by_counts.cost), without_prices(task, placed)), as_it_is


def _search(task: Task, placed: Placed, best: Best, ways: Sequence[tuple[_Attempts, float]]) -> Best:
    """The best of all attempts until one is close enough to its bound; below caps, the first, of fewest moves."""
    for attempts, enough in ways:
        if best.within(enough) or (task.effort is None and attempts is not _quick):
            return best
        for plan, bound in attempts(task, placed, best):
            best = best.but(None if task.search.only_caps and best.but(None, bound).within(CLOSE) else plan, bound)
            if best.within(enough):
                return best
    return best


def _quick(task: Task, placed: Placed, best: Best) -> _Found:
    """Attempts without prices, and with prices on the brokers that are left too empty then."""
    first = task.placement(placed.chosen)
    # The worth of a byte per second can't be guessed.
    disks = np.array([name == "disk" for name in task.loads.names]) & (task.about.measure == "bytes")
    too_empty = (first.load < task.loads.windows[:, 0]) & disks[:, None]
    may_fit = not task.loads.surely_outside(task.layout.factors)
    near = not (may_fit and _is_far(task, first))
    bound = without_prices(task, placed)
    plan = _finished(task, first, None, bound) if near or not (too_empty.any() or best.plan) else None
    del first  # unless the plan has it: a large cluster's is large
    yield plan, bound
    if too_empty.any() and may_fit:
        # Far from the windows the guess was wrong; with much to exchange, a program's prices take less time.
        guessed = _attempt(task, GRAIN * too_empty.astype(np.int64), only_near=_is_large(task))
        yield guessed
        if not (guessed[0] or plan or _is_large(task)):
            yield _finished(task, task.placement(placed.chosen), None, bound), None


def _by_cases(task: Task, _: Placed, best: Best, solves: int = CASE_SOLVES) -> _Found:
    """For partitions as large as the windows: cases decide which brokers have them."""
    if task.effort is None or best.bound is None or best.bound.proof.parts or task.loads.too_large():
        return
    fits = Fits.of(task.layout, task.wanted, task.loads)
    for proven, shares in branchings(task.about, fits, best.bound.proof, task.effort.part(SHARE_OF_CASES), solves):
        bound = of_proof(task, proven)
        if shares is None:
            yield None, bound
            continue
        chosen = rounded(task.problem, task.layout, task.wanted, shares)
        # Without prices, because the decisions contradict them.
        yield _finished(task, task.placement(chosen), None, bound, nearly=True), bound


def _exactly(task: Task, placed: Placed, best: Best) -> _Found:
    """For few partitions: the cheapest placement of all, and as many cases as prove that."""
    nothing = MostOutside(0, np.zeros_like(task.loads.scales))
    made = None if best.within(WHOLE_GAP) else by_program(task, nothing)
    yield made, None
    best = best.but(made, None)
    if made is not None and best.bound is not None and not best.within(FAIR):
        anew = Bound(replace(best.bound.proof, parts=()), best.bound.least)
        yield from _by_cases(task, placed, best._replace(bound=anew), WHOLE_SOLVES)


def _thorough(task: Task, _: Placed, best: Best) -> _Found:
    """Attempts with the prices of a linear program, and rounded from its solution with split replicas."""
    by_cases = best.bound is not None and bool(best.bound.proof.parts)
    if task.effort is None or (by_cases and best.within(CLOSE_BY_CASES)):
        return
    prices = None
    for exact, chosen in roundings(task.problem, task.layout, task.wanted, task.loads, task.effort):
        if prices is None:
            prices = in_parts(task, exact)
            proven = at_prices(task, prices)
            best = best.but(None, proven and proven.bound)
        yield _finished(task, task.placement(chosen), prices, best.bound), best.bound
    if prices is not None or task.effort.spent:
        return
    if (close := price_program.byte_prices(task.layout, task.wanted, task.loads)) is None:
        return
    prices = in_parts(task, close)
    if (found := at_prices(task, prices)) is None:
        return
    plan = _finished(task, task.placement(found.placed.chosen), prices, found.bound)
    yield plan, found.bound
    # If exchanges can't bring it into its windows, some partition is too large for them.
    if not plan.outside:
        yield _at_edges(plan, prices, found.bound), None
        yield from _by_topics(task, prices, found)


def _by_topics(task: Task, prices: LongArray, first: Priced) -> _Found:
    """Attempts from mixed plans of whole topics, at better prices; `first` is the flow at `prices`."""
    made = list[PlacedPlan]()
    for mixed in mixtures(task, prices, first):
        plan, prices = None, mixed.prices
        if mixed.chosen is not None:
            plan = _finished(task, task.placement(mixed.chosen), prices, mixed.bound)
            made.append(plan)
        yield plan, mixed.bound
    if made:
        yield _at_edges(min(made, key=lambda each: (each.outside, each.cost)), prices, first.bound), None


def _at_edges(plan: PlacedPlan, prices: LongArray, bound: Bound) -> PlacedPlan | None:
    return None if plan.outside else PlacedPlan.of(at_edges(plan.placement, prices / GRAIN, bound.least))


def _attempt(task: Task, prices: LongArray, *, only_near: bool = False) -> tuple[PlacedPlan | None, Bound | None]:
    """The flow at these prices (D, Bt), in 1 / GRAIN per unit, brought into the windows if it is near enough."""
    if (found := at_prices(task, prices)) is None:
        return None, None
    placement = task.placement(found.placed.chosen)
    if only_near and _is_far(task, placement):
        return None, found.bound
    return _finished(task, placement, prices, found.bound), found.bound


def _finished(
    task: Task, placement: SearchPlacement, prices: LongArray | None, bound: Bound | None, *, nearly: bool = False
) -> PlacedPlan:
    """The placement brought into the windows at these prices, and polished until it is as cheap as its bound allows.

    `nearly`: it is nearly within them already (see `repair`).
    """
    repair(placement, None if prices is None else prices / GRAIN, nearly=nearly)
    near = POLISHED if _is_large(task) else 0.0
    polish(placement, 0 if bound is None else bound.least + int(near * bound.least))
    return PlacedPlan.of(placement)


# The attempts to bring loads into their windows; each is made until a plan is this close to its bound.
_ATTEMPTS: Sequence[tuple[_Attempts, float]] = ((_quick, CLOSE), (_by_cases, FAIR), (_thorough, FAIR), (_exactly, FAIR))


def _for_nothing(task: Task, by_counts: SearchPlacement) -> Evened:
    """If bytes come first: only replicas that are copied anyway are spread more evenly. The bound needs no prices."""
    search, pinned = task.search, task.layout.pinned
    if pinned is not None:
        # A replacement keeps the replicas that it takes over.
        free = ~pinned.any(axis=1, keepdims=True)
        allowed: BoolArray = np.broadcast_to(free, pinned.shape)
        search = replace(search, allowed=allowed if search.allowed is None else allowed & search.allowed)
    # An empty partition's replicas stay, too, although copying one costs no bytes.
    placement = SearchPlacement(replace(search, costs=np.maximum(search.costs, 1)), by_counts.on)
    repair(placement, for_nothing=True)
    placement = SearchPlacement(task.search, placement.on)
    return _evened(task, placement, Certificate(task.about, lagrangian_bound.none_priced(task.about)))


def _evened(
    task: Task,
    placement: SearchPlacement,
    certificate: Certificate,
    begun: Best | None = None,
    least_outside: Case | None = None,
) -> Evened:
    outside = int(placement.outside().sum())
    return Evened(chosen_of(task, placement), certificate, outside, placement.cost, begun, least_outside)


def _is_large(task: Task) -> bool:
    """True if there are so many rows × brokers that exchanges take long."""
    return len(task.layout.rows) * len(task.layout.targets) > LARGE_PLACEMENT


def _is_far(task: Task, placement: SearchPlacement) -> bool:
    """True if more bytes are outside of their windows than exchanges of replicas alone can bring into them.

    Loads other than bytes on disk count with their worth in bytes.
    """
    total = int((task.loads.weights * task.loads.scales[:, None] * task.layout.factors).sum())
    return bool(placement.outside().sum() > NEARLY_EVEN * total)
