"""The plan's section on the hours of the week: which were planned for, and the worst of all 168 before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model import build_problem
from planner.model.build_problem import brokers_after, today
from planner.model.errors import InfeasibleError
from planner.model.load_history import hour_name
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import Spec
from planner.plan.document.cluster_types import (
    HoursSection,
    HoursState,
    PlannedHourRow,
    WorstHourRow,
)
from planner.scoring.broker_loads import leaders_after
from planner.scoring.score import adding
from planner.strategies.catalog import STRATEGIES
from planner.sweep.candidates import KNOBS, NO_SCENARIOS, of_row
from planner.sweep.evaluate import planned_for
from planner.sweep.sweep_result import SweepResult


@dataclass(frozen=True, eq=False)
class _Judge:
    """The hours (2, P, 168) of a problem's partitions, and each broker's network in bytes/s (B,), -1: not stated."""

    problem: Problem
    hours: LongArray
    network: LongArray
    zone: str

    def loads(self, assignment: IntArray, leaders: IntArray) -> LongArray:
        """(2, B, 168): bytes/s in and out of every broker."""
        return build_problem.of_brokers(self.problem, self.hours, assignment, leaders)

    def state(self, loads: LongArray, bytes_moved: int) -> HoursState:
        """All hours of loads (2, B, 168)."""
        limits = self.network[None, :, None]
        above = ((loads > limits) & (limits >= 0)).any(axis=0)
        return HoursState(
            bytes_moved=bytes_moved,
            network_in=self._worst(loads[0]),
            network_out=self._worst(loads[1]),
            above_capacity=int(above.sum()) if (self.network >= 0).any() else None,
        )

    def after(self, assignment: IntArray) -> HoursState:
        """All hours once an assignment (P, W) is carried out."""
        loads = self.loads(assignment, leaders_after(self.problem, assignment))
        moved = adding(self.problem, assignment).sum(axis=1) * self.problem.size_bytes
        return self.state(loads, int(moved.sum()))

    def _worst(self, loads: LongArray) -> WorstHourRow:
        broker, hour = (int(at) for at in np.unravel_index(loads.argmax(), loads.shape))
        return WorstHourRow(
            broker=int(self.problem.broker_ids[broker]),
            hour=hour,
            name=hour_name(hour, self.zone),
            bytes_per_sec=int(loads[broker, hour]),
        )


def section(spec: Spec, problem: Problem, assignment: IntArray, swept: SweepResult) -> HoursSection | None:
    """The key `hours` of plan.json; None unless a load profile has all hours of the week.

    The plan for the mean is the one of the sweep at the same balance; it is made again for its hours.
    """
    if spec.week is None:
        return None
    network = [-1 if each.network_bytes_per_sec is None else each.network_bytes_per_sec for each in brokers_after(spec)]
    hours = build_problem.of_partitions(problem, spec.week)
    judge = _Judge(problem, hours, np.array(network, dtype=np.int64), spec.week.time_zone)
    first = judge.loads(today(problem), problem.leaders)
    chosen = build_problem.chosen(first) if spec.week.planned_for else ()
    return HoursSection(
        time_zone=spec.week.time_zone,
        planned=tuple(PlannedHourRow(hour=hour, name=hour_name(hour, spec.week.time_zone)) for hour in chosen),
        today=judge.state(first, 0),
        plan=judge.after(assignment),
        of_mean=_of_mean(judge, swept) if chosen else None,
    )


def _of_mean(judge: _Judge, swept: SweepResult) -> HoursState | None:
    # A valid optimum at the problem's balance, made for no scenario.
    wanted = {knob: str(getattr(judge.problem.balance, knob)) for knob in KNOBS}
    wanted |= {"strategy": "optimum", "scenarios": NO_SCENARIOS}
    rows = (each for each in swept.scores.to_pylist() if wanted.items() <= each.items() and not each["violations"])
    row = next(rows, None)
    if row is None:
        return None
    try:
        proposal = STRATEGIES["optimum"](planned_for(judge.problem, NO_SCENARIOS), of_row(row))
    except InfeasibleError:
        return None
    return judge.after(proposal.assignment)
