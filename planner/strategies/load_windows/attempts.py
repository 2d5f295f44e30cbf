"""What an attempt to bring loads into their windows is about, what it comes to, and the best of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.model.problem import FloatArray, IntArray, LongArray, Problem
from planner.scoring.window_excess import Allowed
from planner.scoring.windows import Windows
from planner.strategies import bounds
from planner.strategies.bounds import GRAIN, Facts
from planner.strategies.flow.layout import Layout
from planner.strategies.flow.min_cost_flow import CostRangeError
from planner.strategies.flow.placement import Placed, matrix, place
from planner.strategies.load_windows.allowed_excess import within
from planner.strategies.load_windows.branch_and_bound import BranchedProof
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.local_search_state import Placement, SearchState
from planner.strategies.load_windows.proof import Proof, proof
from planner.strategies.work_limits import Effort

# Prices beyond this many times what a byte is worth would leave the solver's arithmetic.
_STEEPEST = 3


class Priced(NamedTuple):
    """The cheapest placement at some prices, and the bound that it proves."""

    placed: Placed
    bound: Bound


def in_parts(task: Task, prices: FloatArray) -> LongArray:
    """Prices (D, Bt) in bytes a unit as whole parts of GRAIN, none too steep for the solver's arithmetic."""
    steepest = _STEEPEST * task.loads.scales[:, None]
    return np.rint(prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)


def at_prices(task: Task, prices: LongArray) -> Priced | None:
    """The flow at prices (D, Bt) in parts of GRAIN a unit; None where they are beyond the solver's arithmetic."""
    try:
        layout = priced(task.layout, task.loads, prices)
        placed = place(task.problem, layout, task.wanted)
    except CostRangeError:
        return None
    return Priced(placed, of_proof(task, proof(layout, placed, prices)))


def without_prices(task: Task, placed: Placed) -> Bound:
    """The bound of a placement that was made without prices."""
    nothing = np.zeros(task.loads.windows[:, 0].shape, dtype=np.int64)
    return of_proof(task, proof(task.layout, placed, nothing))


@dataclass(frozen=True, eq=False)
class Task:
    """What every attempt is about. `effort`: the work that may be done, None: as little as there is. `most`: what plans
    may be outside of their windows, None: nothing.
    """

    problem: Problem
    layout: Layout
    wanted: Windows
    loads: ByteLoads
    about: Facts
    search: SearchState
    effort: Effort | None
    most: Allowed | None


class PlacedPlan(NamedTuple):
    """A placement with the bytes outside its windows, and what it costs."""

    placement: Placement
    outside: int
    cost: int


class Bound(NamedTuple):
    """A proof, and the least bytes by it."""

    proof: Proof | BranchedProof
    least: int


class Best(NamedTuple):
    """The best plan and the best bound so far."""

    plan: PlacedPlan | None = None
    bound: Bound | None = None

    def within(self, part: float) -> bool:
        """True where the plan keeps its windows and is within this part of its bound."""
        if self.plan is None or self.bound is None or self.plan.outside:
            return False
        return self.plan.cost - self.bound.least <= part * self.plan.cost

    def but(self, plan: PlacedPlan | None, bound: Bound | None) -> Best:
        """The better ones of these and others."""
        plans = [each for each in (self.plan, plan) if each is not None]
        found = [each for each in (self.bound, bound) if each is not None]
        return Best(
            min(plans, key=lambda each: (each.outside, each.cost), default=None),
            max(found, key=lambda each: each.least, default=None),
        )


def of_proof(task: Task, proven: Proof | BranchedProof) -> Bound:
    """What a proof comes to for all plans that are no more outside than they may."""
    certificate = proven.certificate(task.about, task.loads.windows)
    return Bound(proven, bounds.least(certificate if task.most is None else within(certificate, task.most)))


def chosen_of(task: Task, placement: Placement) -> IntArray:
    """Replicas of the rows (M, W), as brokers of the problem."""
    return matrix(task.layout, np.stack(np.nonzero(placement.on)), task.problem.width)
