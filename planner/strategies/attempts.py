"""What an attempt to bring loads into their windows is about, what it comes to, and the best of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner import bounds
from planner.bounds import Facts
from planner.excess import Allowed
from planner.model import IntArray, Problem
from planner.strategies.allowing import within
from planner.strategies.arena import Arena, Placement
from planner.strategies.branching import BranchedProof
from planner.strategies.byte_loads import ByteLoads
from planner.strategies.dealing import matrix
from planner.strategies.effort import Effort
from planner.strategies.layout import Layout
from planner.strategies.proof import Proof
from planner.windows import Windows


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
    arena: Arena
    effort: Effort | None
    most: Allowed | None


class Plan(NamedTuple):
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

    plan: Plan | None = None
    bound: Bound | None = None

    def within(self, part: float) -> bool:
        """True where the plan keeps its windows and is within this part of its bound."""
        if self.plan is None or self.bound is None or self.plan.outside:
            return False
        return self.plan.cost - self.bound.least <= part * self.plan.cost

    def but(self, plan: Plan | None, bound: Bound | None) -> Best:
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
