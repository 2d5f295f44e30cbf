"""Windows of loads that can't all hold: the least outside of them, and then the fewest bytes.

First the placement is brought as close to its windows as can be found. What it is outside of them then, in sum and of
its worst broker, is what every further placement may be, whichever brokers carry it: of those the cheapest is looked
for. Prices come from linear programs that may use up as much outside of windows, by cases of where the largest
partitions lie; other prices show how little any placement is outside.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.problem import LongArray
from planner.scoring.window_excess import Allowed
from planner.strategies.bounds import GRAIN, Case
from planner.strategies.flow.layout import windowed
from planner.strategies.flow.placement import on_brokers
from planner.strategies.load_windows import byte_prices
from planner.strategies.load_windows.allowed_plans import reached
from planner.strategies.load_windows.branch_and_bound import branchings
from planner.strategies.load_windows.local_search import polish, repair
from planner.strategies.load_windows.local_search_state import MostOutside, Placement
from planner.strategies.load_windows.proof import (
    Best,
    Bound,
    BranchedProof,
    PlacedPlan,
    Proof,
    Task,
    at_prices,
    chosen_of,
    in_parts,
    of_proof,
)
from planner.strategies.load_windows.share_program import Fits, rounded
from planner.strategies.work_limits import FAIR, SHARE_OF_CLOSEST, SHARE_OF_RELAXED


def relaxed(task: Task, none: Allowed, plan: PlacedPlan, bound: Bound) -> tuple[Best, Case | None]:
    """The cheapest placement with the least outside, and cases that prove how much is outside at least.

    `none` are the windows, with nothing allowed outside of them; the plan is outside of them, the bound any at all.
    """
    base = bound.proof.base if isinstance(bound.proof, BranchedProof) else bound.proof
    task = replace(task, effort=None if task.effort is None else task.effort.part(SHARE_OF_RELAXED))
    closest, of_loads = _closest(task, none, base, plan)
    no_cases = task.effort is not None and of_loads is None and closest.outside
    prices = None
    if no_cases and not _is_best(task, none, closest, base):
        # Those of a program that may leave as much outside as the plan does.
        close = byte_prices.solve(task.layout, task.wanted, task.loads, closest.outside)
        prices = None if close is None else in_parts(task, close)
    if prices is not None:
        closest = _closer(task, closest, prices)
    most = reached(task.layout, none, task.loads, chosen_of(task, closest.placement))
    assert most.furthest is not None
    room = MostOutside(most.loads, most.furthest)
    within = replace(task, most=most, search=replace(task.search, most_outside=room))
    best = Best(_polished(within, closest.placement.on, 0), of_proof(within, base))
    if prices is not None and (found := at_prices(within, prices)) is not None:
        best = best.but(None, found.bound)
    if task.effort is not None:
        for proven, shares in branchings(task.about, _fits(task, most), base, task.effort):
            made = None
            if shares is not None:
                on = on_brokers(task.layout, rounded(task.problem, task.layout, task.wanted, shares))
                made = _polished(within, on, of_proof(within, proven).least)
            best = best.but(made, of_proof(within, proven))
            if best.within(FAIR):
                break
    return best, of_loads


def _is_best(task: Task, none: Allowed, plan: PlacedPlan, base: Proof) -> bool:
    """True where no plan is less outside, and the bound says that none of those copies much less."""
    if plan.outside > task.loads.surely_outside(task.layout.factors):
        return False
    most = reached(task.layout, none, task.loads, chosen_of(task, plan.placement))
    return plan.cost - of_proof(replace(task, most=most), base).least <= FAIR * plan.cost


def _closer(task: Task, plan: PlacedPlan, prices: LongArray) -> PlacedPlan:
    """The plan, or that made from the flow at these prices."""
    if (found := at_prices(task, prices)) is None:
        return plan
    placement = Placement(task.search, on_brokers(task.layout, found.placed.chosen))
    repair(placement, prices / GRAIN)
    polish(placement)
    return min(plan, PlacedPlan.of(placement), key=lambda each: (each.outside, each.cost))


def _closest(task: Task, none: Allowed, base: Proof, plan: PlacedPlan) -> tuple[PlacedPlan, Case | None]:
    """The placement with the least outside, the cheapest of several, and what proves that."""
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
        placement = Placement(task.search, on_brokers(task.layout, chosen))
        repair(placement, 0.0 * task.loads.windows[:, 0], nearly=True)
        polish(placement)
        plan = min(plan, PlacedPlan.of(placement), key=lambda each: (each.outside, each.cost))
    return plan, case


def _polished(task: Task, on: np.ndarray, enough: int) -> PlacedPlan | None:
    """The placement repaired until it is no more outside than it may, and made cheaper; None where it isn't."""
    placement = Placement(task.search, on.copy())
    if not placement.settled():
        repair(placement, 0.0 * task.loads.windows[:, 0], nearly=True)
    if not placement.settled():
        return None
    polish(placement, enough)
    return PlacedPlan.of(placement)._replace(outside=0)


def _fits(task: Task, most: Allowed, *, only_loads: bool = False) -> Fits:
    """The windows as the flow has them, which replicas that may not move are outside of at no cost."""
    topics, brokers = windowed(task.layout, task.wanted)
    by_topic = np.stack([topics.low, topics.high]).reshape(2, task.layout.topic_count, -1)
    in_all = np.stack([brokers.low, brokers.high])
    return Fits(by_topic, in_all, task.loads.windows, task.loads.scales, most, only_loads)
