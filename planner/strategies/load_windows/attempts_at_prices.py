"""Attempts to bring loads into their windows at prices: each gives a plan, a bound, or both. `Best` keeps the best.

A flow at prices becomes a proof in the terms of `lagrangian_bound`, which are facts that anyone can check, and prices.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from planner.model.problem import FloatArray, IntArray, LongArray, Problem
from planner.scoring.fair_shares import ExactArray, rack_rule
from planner.scoring.window_excess import Allowed
from planner.scoring.windows import Windows
from planner.strategies import lagrangian_bound
from planner.strategies.flow.min_cost_flow import CostRangeError, potentials
from planner.strategies.flow.placement import Placed, matrix, on_brokers, place
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import GRAIN, BoundFacts, Certificate, Prices
from planner.strategies.load_windows.allowed_plans import with_slack
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.local_search_state import MostOutside, SearchPlacement, SearchState
from planner.strategies.load_windows.lp_relaxation import integer_program
from planner.strategies.work_limits import LARGE_PLACEMENT, NEARLY_EVEN, Effort

# Prices above this many times the worth of a byte would exceed the solver's arithmetic.
_STEEPEST = 3
# Prices up to this fit 64 bits with room to spare; larger ones are rounded to coarser units, by so many bits at most.
_MOST, _MOST_BITS = 1 << 60, GRAIN.bit_length() - 1


def facts_of(problem: Problem, layout: Layout, loads: ByteLoads) -> BoundFacts:
    """The facts of a layout, in the layout's order of brokers."""
    rule = rack_rule(problem)
    in_bytes = bool(layout.copy_bytes.any())
    costs = layout.copy_bytes if in_bytes else (~layout.is_new).astype(np.int64)
    return BoundFacts(
        measure="bytes" if in_bytes else "replicas",
        broker_ids=problem.broker_ids[layout.targets],
        racks=layout.racks,
        least=rule.least,
        most=rule.most,
        kinds=layout.kinds,
        forbidden=layout.forbidden,
        topics=layout.topics,
        factors=layout.factors,
        costs=costs,
        home=layout.home,
        home_costs=np.where(layout.replaced, costs[:, None], 0),
        loads=loads.weights,
        load_names=loads.names,
    )


def proof(
    facts: BoundFacts,
    layout: Layout,
    placed: Placed,
    loads: tuple[LongArray, LongArray] | None = None,
    *,
    of_excess: bool = False,
) -> Certificate:
    """The proof that a placement gives. `loads`: the prices of loads (D, Bt) at which it was made, in 1 / GRAIN per
    unit, and the windows of loads (D, 2, Bt); None: it was made without prices.

    With `of_excess`, its costs were weights of units outside of windows.
    """
    network = placed.network
    duals = potentials(network.arcs, placed.windowed, network.supplies, placed.solved)
    cells = duals[layout.first_cell : layout.first_broker].reshape(layout.topic_count, -1)
    brokers = duals[layout.first_broker : layout.sink]
    cell_prices = cells - brokers
    if layout.forbidden is not None:
        cell_prices = np.where(layout.forbidden & (layout.home_cells == 0), 0, cell_prices)
    # If no load has a price, costs aren't in units of 1 / GRAIN yet.
    grain = 1 if loads is not None and loads[0].any() else GRAIN
    unit, scale = (layout.cost_unit_bytes, layout.tie_scale) if layout.copy_bytes.any() and not of_excess else (1, 1)
    topic_window, broker_window = placed.windowed
    exact = [in_units(each, grain * unit, unit, scale) for each in (cell_prices, brokers - duals[layout.sink])]
    # If units outside of windows are dear, prices must be coarser by some bits to be far within 64 bits.
    overflow = max(int(np.abs(each).max(initial=0)) // _MOST for each in exact)
    shift = min(overflow.bit_length(), _MOST_BITS)
    coarse_cells, coarse_brokers = ((each >> shift).clip(-_MOST, _MOST).astype(np.int64) for each in exact)
    unpriced = lagrangian_bound.none_priced(facts)
    prices = Prices(
        lagrangian_bound.price_at_edges(coarse_cells, topic_window.bounds.reshape(2, *cells.shape)),
        lagrangian_bound.price_at_edges(coarse_brokers, broker_window.bounds),
        unpriced.loads if loads is None else tuple(map(lagrangian_bound.price_at_edges, loads[0] >> shift, loads[1])),
        GRAIN >> shift,
    )
    return Certificate(facts, prices)


def in_units(prices: LongArray, factor: int, unit: int, scale: int) -> ExactArray:
    """Prices times `factor` / scale, rounded to multiples of `unit`: tie-breaks don't count."""
    largest = int(np.abs(prices).max(initial=0)) * factor // scale
    exact = prices.astype(object) if largest >= _MOST else prices
    # np.divmod takes no Python integers.
    quotients, remainders = exact // scale, exact % scale
    return (quotients * (factor // unit) + (remainders * (factor // unit) + scale // 2) // scale) * unit


@dataclass(frozen=True, eq=False)
class Task:
    """The input of every attempt. `effort`: the work that may be done, None: only that of `balanced_placement._quick`.
    `slack`: how far outside of their windows plans may be, None: not at all. `reachable`: the windows; those of counts
    are widened if they can't all hold.
    """

    problem: Problem
    layout: Layout
    windows: Windows
    loads: ByteLoads
    facts: BoundFacts
    search: SearchState
    effort: Effort | None
    slack: Allowed | None
    reachable: Windows

    def placement(self, chosen: IntArray) -> SearchPlacement:
        """Rows of replicas (M, W), as brokers of the problem, as the start of a local search."""
        return SearchPlacement(self.search, on_brokers(self.layout, chosen))

    @property
    def is_large(self) -> bool:
        """True if there are so many rows × brokers that exchanges take long."""
        return len(self.layout.rows) * len(self.layout.targets) > LARGE_PLACEMENT

    def is_far(self, placement: SearchPlacement) -> bool:
        """True if more bytes are outside of their windows than exchanges of replicas alone can bring into them.

        Loads other than bytes on disk count with their worth in bytes.
        """
        total = int((self.loads.weights * self.loads.scales[:, None] * self.layout.factors).sum())
        return bool(placement.outside().sum() > NEARLY_EVEN * total)


class PlacedPlan(NamedTuple):
    """A placement, the bytes outside its windows, and its cost."""

    placement: SearchPlacement
    outside: int
    cost: int

    @classmethod
    def of(cls, placement: SearchPlacement) -> Self:
        """The placement as it is now."""
        return cls(placement, int(placement.outside().sum()), placement.cost)


class Bound(NamedTuple):
    """A proof, possibly with cases, and the least bytes that it proves."""

    proof: Certificate
    least: int


class Best(NamedTuple):
    """The best plan and the best bound so far."""

    plan: PlacedPlan | None = None
    bound: Bound | None = None

    def within(self, part: float) -> bool:
        """True if the plan keeps its windows and is within this part of its bound."""
        if self.plan is None or self.bound is None or self.plan.outside:
            return False
        return self.plan.cost - self.bound.least <= part * self.plan.cost

    def copy(self) -> Self:
        """A copy whose placement can be changed separately."""
        plan = self.plan
        return self if plan is None else self._replace(plan=plan._replace(placement=plan.placement.copy()))

    def updated(self, plan: PlacedPlan | None, bound: Bound | None) -> "Best":
        """The better plan and the better bound of these and the given ones."""
        plans, bounds = (self.plan, plan), (self.bound, bound)
        return Best(
            min(filter(None, plans), key=lambda each: (each.outside, each.cost), default=None),
            max(filter(None, bounds), key=lambda each: each.least, default=None),
        )


class PricedFlow(NamedTuple):
    """The cheapest placement at some prices, and the bound that it proves."""

    placed: Placed
    bound: Bound


def by_program(task: Task, room: MostOutside, *, of_loads: bool = False) -> PlacedPlan | None:
    """A small cluster's cheapest placement with at most `room` outside, or that least outside, by an integer program;
    None: none is known.
    """
    if task.effort is None:
        return None
    is_on = integer_program(task.layout, task.windows, task.loads, task.effort, room=room, of_loads=of_loads)
    placement = None if is_on is None else SearchPlacement(replace(task.search, most_outside=room), is_on)
    return PlacedPlan.of(placement) if placement is not None and placement.within_windows() else None


def whole_prices(task: Task, prices: FloatArray) -> LongArray:
    """Prices (D, Bt) in bytes per unit as whole numbers of 1 / GRAIN, none too steep for the solver's arithmetic."""
    steepest = _STEEPEST * task.loads.scales[:, None]
    return np.rint(prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)


def at_prices(task: Task, prices: LongArray) -> PricedFlow | None:
    """The flow at prices (D, Bt) in 1 / GRAIN per unit; None if they exceed the solver's arithmetic."""
    try:
        layout = priced(task.layout, task.loads, prices)
        placed = place(task.problem, layout, task.windows)
    except CostRangeError:
        return None
    return PricedFlow(placed, bound_of(task, proof(task.facts, layout, placed, (prices, task.loads.windows))))


def unpriced_bound(task: Task, placed: Placed) -> Bound:
    """The bound of a placement that was made without prices."""
    return bound_of(task, proof(task.facts, task.layout, placed))


def bound_of(task: Task, proven: Certificate) -> Bound:
    """The bound of a proof for all plans that are no further outside than allowed."""
    return Bound(proven, lagrangian_bound.lower_bound(proven if task.slack is None else with_slack(proven, task.slack)))


def replicas_of(task: Task, placement: SearchPlacement) -> IntArray:
    """Replicas of the rows (M, W), as brokers of the problem."""
    return matrix(task.layout, np.stack(np.nonzero(placement.on)), task.problem.width)
