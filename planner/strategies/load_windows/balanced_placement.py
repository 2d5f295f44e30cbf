"""Finds placements whose bytes and traffic are within their windows too, and bounds the bytes that these must move.

Windows of bytes are side constraints that a pure flow can't express. A price per byte on each broker replaces them. The
flow at those prices is still exact, and its node potentials and the prices prove a bound (`lagrangian_bound`). Then
exchanges of single replicas bring loads that are near their windows into them. Brokers that the cheapest placement
leaves too empty get the price of a copied byte, which is nearly always the right one. If a gap remains, the prices of a
linear program are tried, and its solution with split replicas, rounded. If single partitions are as large as the
windows, cases decide which brokers have them; see `branch_and_bound`. At last, few brokers at a time are placed anew.

If windows can't all hold, the placement is first brought as close to them as possible. Every further placement may be
as far outside as this one, in sum and on the worst broker, on any brokers; the cheapest of those is the plan.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.growth_scenarios import Scenario
from planner.scoring.window_excess import Allowed
from planner.scoring.windows import Windows
from planner.strategies.flow import tie_breaking
from planner.strategies.flow.placement import Placed, on_brokers, widened
from planner.strategies.flow.placement_network import Layout, windowed
from planner.strategies.flow.tie_breaking_exchanges import after_flows, break_ties, ties
from planner.strategies.lagrangian_bound import GRAIN, Case, Certificate, none_priced
from planner.strategies.load_windows import price_program
from planner.strategies.load_windows.allowed_plans import no_open_windows, no_slack, slack_of
from planner.strategies.load_windows.attempts_at_prices import (
    Best,
    Bound,
    PlacedPlan,
    PricedFlow,
    Task,
    at_prices,
    bound_of,
    by_program,
    facts_of,
    replicas_of,
    unpriced_bound,
    whole_prices,
)
from planner.strategies.load_windows.branch_and_bound import branchings, sizes_in_windows
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.column_generation import mixtures
from planner.strategies.load_windows.large_neighborhood_search import by_few_brokers
from planner.strategies.load_windows.local_search import at_edges, polish, repair
from planner.strategies.load_windows.local_search_state import MostOutside, SearchPlacement, of_layout
from planner.strategies.load_windows.lp_relaxation import Fits, rounded, roundings
from planner.strategies.work_limits import (
    CASE_SOLVES,
    CLOSE,
    CLOSE_BY_CASES,
    FAIR,
    NEIGHBORHOOD_GAP,
    POLISHED,
    SHARE_OF_AS_CLOSE,
    SHARE_OF_CASES,
    SHARE_OF_CLOSEST,
    SHARE_OF_RELAXED,
    SMALL_CASES,
    SMALL_CASES_GAP,
    WHOLE_GAP,
    WHOLE_SOLVES,
    Effort,
)


def relax_windows(task: Task, none_outside: Allowed, plan: PlacedPlan, bound: Bound) -> tuple[Best, Case | None]:
    """The cheapest placement with the least outside of its windows, and cases that prove how much must be outside."""
    base = replace(bound.proof, parts=())
    some_too_large, effort = task.loads.too_large(), task.effort
    task = replace(task, effort=effort and effort.part(SHARE_OF_RELAXED))
    closest, least_outside = _closest(task, none_outside, base, plan)
    exact = by_program(task, MostOutside(closest.outside, task.loads.weights @ task.layout.factors), of_loads=True)
    closest = min((closest, exact or closest), key=lambda each: (each.outside, each.cost))
    no_cases = task.effort is not None and (least_outside is None or some_too_large) and closest.outside
    prices = None
    if no_cases and not _is_best(task, none_outside, closest, base):
        # The prices of a program that may leave as much outside as the plan does.
        close_prices = price_program.byte_prices(task.layout, task.reachable, task.loads, closest.outside)
        prices = None if close_prices is None else whole_prices(task, close_prices)
    if prices is not None and (priced := at_prices(task, prices)) is not None:
        nearer = _finish(task, task.placement(priced.placed.chosen), prices, None)
        closest = min(closest, nearer, key=lambda each: (each.outside, each.cost))
    slack = slack_of(task.layout, none_outside, task.loads, replicas_of(task, closest.placement))
    assert slack.furthest is not None
    room = MostOutside(slack.loads, slack.furthest)
    loose = replace(task, slack=slack, search=replace(task.search, most_outside=room))
    best = Best(_polished(loose, closest.placement.on, 0), bound_of(loose, base)).updated(by_program(loose, room), None)
    if prices is not None and (priced := at_prices(loose, prices)) is not None:
        best = best.updated(None, priced.bound)
    # If a replica is larger than every window, cases within the windows were skipped: their work is spent here.
    solves = WHOLE_SOLVES if some_too_large else CASE_SOLVES
    if effort is not None:
        case_effort = effort.part(SHARE_OF_CASES) if some_too_large else effort.renewed().part(SHARE_OF_AS_CLOSE)
        for proven, shares in branchings(task.facts, _fit_windows(task, slack), base, case_effort, solves):
            case_plan = None
            if shares is not None:
                is_on = on_brokers(task.layout, rounded(task.problem, task.layout, task.windows, shares))
                case_plan = _polished(loose, is_on, bound_of(loose, proven).least)
            best = best.updated(case_plan, bound_of(loose, proven))
            if best.within(FAIR):
                break
    return best, least_outside


def _is_best(task: Task, none_outside: Allowed, plan: PlacedPlan, base: Certificate) -> bool:
    """True if no plan is less outside, and the bound proves that none as little outside copies much less."""
    if plan.outside > task.loads.surely_outside(task.layout.factors):
        return False
    slack = slack_of(task.layout, none_outside, task.loads, replicas_of(task, plan.placement))
    return plan.cost - bound_of(replace(task, slack=slack), base).least <= FAIR * plan.cost


def _closest(task: Task, none_outside: Allowed, base: Certificate, plan: PlacedPlan) -> tuple[PlacedPlan, Case | None]:
    """The placement with the least outside (of several, the cheapest), and the case that proves that none has less."""
    if task.effort is None or not plan.outside:
        return plan, None
    slack = slack_of(task.layout, none_outside, task.loads, replicas_of(task, plan.placement))
    case = None
    for proven, shares in branchings(
        task.facts, _fit_windows(task, slack, only_loads=True), base, task.effort.part(SHARE_OF_CLOSEST)
    ):
        case = proven.parts[0].case
        if shares is None:
            continue
        chosen = rounded(task.problem, task.layout, task.windows, shares)
        candidate = _finish(task, task.placement(chosen), None, None, nearly=True)
        plan = min(plan, candidate, key=lambda each: (each.outside, each.cost))
    return plan, case


def _polished(task: Task, is_on: BoolArray, goal: int) -> PlacedPlan | None:
    """The placement, repaired until it is no further outside than allowed, and made cheaper; None if repair fails."""
    placement = SearchPlacement(task.search, is_on.copy())
    if not placement.within_windows():
        repair(placement, nearly=True)
    if not placement.within_windows():
        return None
    polish(placement, goal)
    return PlacedPlan.of(placement)._replace(outside=0)


def _fit_windows(task: Task, slack: Allowed, *, only_loads: bool = False) -> Fits:
    """The windows as the flow has them; replicas that may not move cost nothing outside of them."""
    topics, brokers = windowed(task.layout, task.windows)
    by_topic = topics.bounds.reshape(2, task.layout.topic_count, -1)
    return Fits(by_topic, brokers.bounds, task.loads.windows, task.loads.scales, slack, only_loads)


_PlansAndBounds = Iterator[tuple[PlacedPlan | None, Bound | None]]
_Attempts = Callable[[Task, Placed, Best], _PlansAndBounds]


class BalancedPlan(NamedTuple):
    """Replicas of the rows that may move (M, W), the certificate of the fewest bytes, the bytes outside windows, and
    those moved. `best_so_far`: the result of little work, if more is of use. `least_outside`: the proof of how many
    bytes are outside at least, if some are.
    """

    chosen: IntArray
    certificate: Certificate
    outside: int
    moved: int
    best_so_far: Best | None
    least_outside: Case | None = None


def balance_loads(
    problem: Problem,
    layout: Layout,
    windows: Windows,
    placed: Placed,
    scenarios: Sequence[Scenario] = (),
    effort: Effort | None = None,
    best_so_far: Best | None = None,
) -> BalancedPlan | None:
    """The placement brought into the windows of bytes and traffic in; None if no such window is asked for.

    `effort` is the work that it may do. None: little work, enough to compare placements, and the bound proves less.
    `best_so_far`: the result of that little work, to continue from.
    """
    loads = byte_loads(problem, layout, windows, scenarios)
    if not loads.names:
        return None
    facts, bounds, tied = facts_of(problem, layout, loads), windows, None
    if problem.rebalance != "all":
        tied = tie_breaking.ties_broken(problem, layout, windows, placed)
        bounds = widened(layout, windows, tied)
    none_outside = no_slack(layout, windows, no_open_windows(problem, problem.balance, layout.topic_count), loads)
    replicas_outside = slack_of(layout, none_outside, loads, placed.chosen).replicas
    slack = replace(none_outside, replicas=replicas_outside) if replicas_outside else None
    search = of_layout(layout, bounds, facts.costs, loads)
    task = Task(problem, layout, windows, loads, facts, search, effort, slack, widened(layout, windows, placed))
    if tied is not None:
        return _spread_for_free(task, task.placement(tied.chosen))
    best, as_is = _without_prices(task, placed) if best_so_far is None else (best_so_far, False)
    least_outside = None
    if not best.within(CLOSE):
        best, as_is = _search(task, placed, best_so_far or Best(), _ATTEMPTS[0 if best_so_far is None else 1 :]), False
    if best.plan is None:
        best = best.updated(_finish(task, task.placement(placed.chosen), None, None), None)
    # A copy, because ties are broken in place.
    to_continue = best.copy() if effort is None and not best.within(CLOSE) else None
    if best.plan is not None and best.bound is not None and (best.plan.outside or (slack and not best.within(FAIR))):
        best, least_outside = relax_windows(task, none_outside, best.plan, best.bound)
    if best.plan is None or best.bound is None:
        raise AssertionError("an attempt without prices is always made")
    if (preferences := ties(problem, layout)) is not None:
        break_ties(best.plan.placement, after_flows(problem, preferences) if as_is else preferences)
    return _evened(task, best.plan.placement, best.bound.proof, to_continue, least_outside)


def _without_prices(task: Task, placed: Placed) -> tuple[Best, bool]:
    """The best placement by counts alone, brought into the windows by moves that cost nothing, with its bound; and True
    if it needed no move. Large clusters whose placement is far outside of its windows are left out: such a placement
    never gets into its windows for free, and finding that out takes long.
    """
    if task.is_large and task.is_far(task.placement(placed.chosen)):
        return Best(), False
    tied = tie_breaking.ties_broken(task.problem, task.layout, task.windows, placed)
    by_counts = task.placement(tied.chosen)
    as_it_is = not by_counts.outside().any()
    repair(by_counts, for_nothing=True, or_not_at_all=task.is_large)
    if by_counts.outside().any():
        return Best(), False
    return Best(PlacedPlan(by_counts, 0, by_counts.cost), unpriced_bound(task, placed)), as_it_is


def _search(task: Task, placed: Placed, best: Best, ways: Sequence[tuple[_Attempts, float]]) -> Best:
    """The best of all attempts until one is close enough to its bound; below caps, the first, of fewest moves."""
    for attempts, gap in ways:
        if best.within(gap) or (task.effort is None and attempts is not _quick):
            return best
        for plan, bound in attempts(task, placed, best):
            is_near = task.search.only_caps and best.updated(None, bound).within(CLOSE)
            if (best := best.updated(None if is_near else plan, bound)).within(gap):
                return best
    return best


def _quick(task: Task, placed: Placed, best: Best) -> _PlansAndBounds:
    """Attempts without prices, and with prices on the brokers that are left too empty then."""
    placement = task.placement(placed.chosen)
    # The worth of a byte per second can't be guessed.
    disks = np.array([name == "disk" for name in task.loads.names]) & (task.facts.measure == "bytes")
    too_empty = (placement.load < task.loads.windows[:, 0]) & disks[:, None]
    may_fit = not task.loads.surely_outside(task.layout.factors)
    is_near = not (may_fit and task.is_far(placement))
    bound = unpriced_bound(task, placed)
    plan = _finish(task, placement, None, bound) if is_near or not (too_empty.any() or best.plan) else None
    del placement  # unless the plan has it: a large cluster's is large
    yield plan, bound
    if too_empty.any() and may_fit:
        # Far from the windows the guess was wrong; with much to exchange, a program's prices take less time.
        guessed = _attempt(task, GRAIN * too_empty.astype(np.int64), only_near=task.is_large)
        yield guessed
        if not (guessed[0] or plan or task.is_large):
            yield _finish(task, task.placement(placed.chosen), None, bound), None


def _by_cases(
    task: Task, _: Placed, best: Best, solves: int = CASE_SOLVES, largest: tuple[float, float] = (1.0, np.inf)
) -> _PlansAndBounds:
    """For partitions as large as the windows: cases decide which brokers have them. `largest`: the range of the largest
    partition, as a part of the narrowest window; others have no cases.
    """
    if task.effort is None or best.bound is None or best.bound.proof.parts or task.loads.too_large():
        return
    fits = Fits.of(task.layout, task.windows, task.loads)
    if not largest[0] <= sizes_in_windows(task.facts, fits).max(initial=0) < largest[1]:
        return
    for proven, shares in branchings(task.facts, fits, best.bound.proof, task.effort.part(SHARE_OF_CASES), solves):
        bound = bound_of(task, proven)
        if shares is None:
            yield None, bound
            continue
        chosen = rounded(task.problem, task.layout, task.windows, shares)
        # Without prices, because the decisions contradict them.
        yield _finish(task, task.placement(chosen), None, bound, nearly=True), bound


def _exactly(task: Task, placed: Placed, best: Best) -> _PlansAndBounds:
    """For few partitions: the cheapest placement of all, and as many cases as prove that."""
    none_outside = MostOutside(0, np.zeros_like(task.loads.scales))
    plan = None if best.within(WHOLE_GAP) else by_program(task, none_outside)
    yield plan, None
    best = best.updated(plan, None)
    if plan is not None and best.bound is not None and not best.within(FAIR):
        bound = Bound(replace(best.bound.proof, parts=()), best.bound.least)
        yield from _by_cases(task, placed, best._replace(bound=bound), WHOLE_SOLVES)


def _thorough(task: Task, _: Placed, best: Best) -> _PlansAndBounds:
    """Attempts with the prices of a linear program, and rounded from its solution with split replicas."""
    by_cases = best.bound is not None and bool(best.bound.proof.parts)
    if task.effort is None or (by_cases and best.within(CLOSE_BY_CASES)):
        return
    prices = None
    by_shares = roundings(task.problem, task.layout, task.windows, task.loads, task.effort, task.reachable)
    for exact_prices, chosen in by_shares:
        if prices is None:
            prices = whole_prices(task, exact_prices)
            priced = at_prices(task, prices)
            best = best.updated(None, priced and priced.bound)
        yield _finish(task, task.placement(chosen), prices, best.bound), best.bound
    if prices is not None or task.effort.spent:
        return
    if (close_prices := price_program.byte_prices(task.layout, task.reachable, task.loads)) is None:
        return
    prices = whole_prices(task, close_prices)
    if (priced := at_prices(task, prices)) is None:
        return
    plan = _finish(task, task.placement(priced.placed.chosen), prices, priced.bound)
    yield plan, priced.bound
    # If exchanges can't bring it into its windows, some partition is too large for them.
    if not plan.outside:
        yield _at_edges(plan, prices, priced.bound), None
        yield from _by_topics(task, prices, priced)


def _by_topics(task: Task, prices: LongArray, first_flow: PricedFlow) -> _PlansAndBounds:
    """Attempts from mixed plans of whole topics, at better prices; `first_flow` is the flow at `prices`."""
    plans = list[PlacedPlan]()
    for mixed in mixtures(task, prices, first_flow):
        plan, prices = None, mixed.prices
        if mixed.chosen is not None:
            plan = _finish(task, task.placement(mixed.chosen), prices, mixed.bound)
            plans.append(plan)
        yield plan, mixed.bound
    if plans:
        yield _at_edges(min(plans, key=lambda each: (each.outside, each.cost)), prices, first_flow.bound), None


def _at_edges(plan: PlacedPlan, prices: LongArray, bound: Bound) -> PlacedPlan | None:
    return None if plan.outside else PlacedPlan.of(at_edges(plan.placement, prices / GRAIN, bound.least))


def _attempt(task: Task, prices: LongArray, *, only_near: bool = False) -> tuple[PlacedPlan | None, Bound | None]:
    """The flow at these prices (D, Bt), in 1 / GRAIN per unit, brought into the windows if it is near enough."""
    if (priced := at_prices(task, prices)) is None:
        return None, None
    placement = task.placement(priced.placed.chosen)
    if only_near and task.is_far(placement):
        return None, priced.bound
    return _finish(task, placement, prices, priced.bound), priced.bound


def _finish(
    task: Task, placement: SearchPlacement, prices: LongArray | None, bound: Bound | None, *, nearly: bool = False
) -> PlacedPlan:
    """The placement brought into the windows at these prices, and polished until it is as cheap as its bound allows.

    `nearly`: it is nearly within them already (see `repair`).
    """
    repair(placement, None if prices is None else prices / GRAIN, nearly=nearly)
    tolerance = POLISHED if task.is_large else 0.0
    polish(placement, 0 if bound is None else bound.least + int(tolerance * bound.least))
    return PlacedPlan.of(placement)


# The attempts to bring loads into their windows; each is made until a plan is this close to its bound.
_ATTEMPTS: Sequence[tuple[_Attempts, float]] = (
    (_quick, CLOSE),
    (_by_cases, FAIR),
    (_thorough, FAIR),
    (_exactly, FAIR),
    (partial(_by_cases, largest=(SMALL_CASES, 1.0)), SMALL_CASES_GAP),
    (lambda task, _, best: iter([(by_few_brokers(task, best), None)]), NEIGHBORHOOD_GAP),
)


def _spread_for_free(task: Task, by_counts: SearchPlacement) -> BalancedPlan:
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
    return _evened(task, placement, Certificate(task.facts, none_priced(task.facts)))


def _evened(
    task: Task,
    placement: SearchPlacement,
    certificate: Certificate,
    best_so_far: Best | None = None,
    least_outside: Case | None = None,
) -> BalancedPlan:
    outside = int(placement.outside().sum())
    return BalancedPlan(replicas_of(task, placement), certificate, outside, placement.cost, best_so_far, least_outside)
