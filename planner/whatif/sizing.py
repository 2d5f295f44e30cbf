"""How many brokers in all: every class and number of brokers that `sizing` allows, planned and compared with the loads.

A combination is a cluster with a number of brokers of one class in each rack, with today's other brokers or without. It
is planned with proof: even today and, if that doesn't last, with no disk above its limit at the end. Its plan must hold
in every month: disks, the network on average and in the busiest hours of the week, and the same while a broker or a
rack is down. A combination is not planned if all brokers together are too small even today.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse  # for sums of whole numbers, which are the same on every machine

from planner.model.balance import NO_TOLERANCE
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import SpecLimits
from planner.model.errors import InfeasibleError, SetupError
from planner.model.growth_forecast import at_history_end
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import BrokerClass, Budget, Changes, Sizing, Spec
from planner.scoring.broker_loads import leaders_after
from planner.scoring.growth_scenarios import without
from planner.scoring.score import ScoringBasis
from planner.strategies import optimum
from planner.strategies.work_limits import NO_WORK
from planner.whatif.brokers_for_growth import COPIED, CaseRow, GrowthCase, case_of, copy_costs, free_ids


@dataclass(frozen=True)
class Combination:
    """A number of brokers of a class in each rack; `keeps`: brokers of other classes, which are there today, stay too.

    `added` and `removed`: the changes to today's brokers. `number` counts from 1, in the order of the YAML.
    """

    number: int
    broker_class: str
    per_rack: int
    keeps: bool
    added: tuple[Broker, ...]
    removed: tuple[int, ...]


class Limit(NamedTuple):
    """A limit that a plan reaches: the first month, the broker (an id; None: all together), and which limit."""

    month: int
    broker: int | None
    limit: str


def sizing_of(spec: Spec) -> Sizing:
    """The spec's `sizing`. SetupError if it is missing, or beside placement, leader_racks, apart or together."""
    if spec.sizing is None:
        raise SetupError("the key sizing is missing; allowed: sizing, with at least brokers_per_rack")
    if spec.placement or spec.leader_racks or spec.apart or spec.together:
        keys = "placement, leader_racks, apart or together"
        raise SetupError(f"brokers can't be sized with {keys}; allowed: a spec without these keys")
    return spec.sizing


def combinations(spec: Spec) -> tuple[Combination, ...]:
    """Every combination that `sizing` allows; each cluster once."""
    sizing, unique = sizing_of(spec), dict[tuple[tuple[Broker, ...], tuple[int, ...]], Combination]()
    for broker_class in sizing.classes:
        for per_rack in range(sizing.per_rack[0], sizing.per_rack[1] + 1):
            for keeps in (True, False):
                added, removed = changed = _broker_changes(spec, broker_class, per_rack, keeps)
                staying = (each for each in spec.cluster.brokers if each.id not in removed)
                keeps_others = any(
                    each.capacity != broker_class.broker(each.id, each.rack).capacity for each in staying
                )
                unique.setdefault(
                    changed, Combination(len(unique) + 1, broker_class.name, per_rack, keeps_others, added, removed)
                )
    return tuple(unique.values())


def _broker_changes(
    spec: Spec, broker_class: BrokerClass, per_rack: int, keeps: bool
) -> tuple[tuple[Broker, ...], tuple[int, ...]]:
    """The brokers to be added, and the ids of those to be removed; if the class has too many, its last ones go."""
    brokers = sorted(spec.cluster.brokers, key=lambda each: each.id)
    names = {broker.rack for broker in brokers if broker.rack is not None}
    racks: list[str | None] = [*(sizing_of(spec).racks or sorted(names))] or [None]
    ids = free_ids({broker.id for broker in brokers})
    added, staying_ids = list[Broker](), set[int]()
    for rack in racks:
        in_rack = [broker for broker in brokers if broker.rack == rack]
        alike = [broker.id for broker in in_rack if broker.capacity == broker_class.broker(broker.id, rack).capacity]
        staying_ids.update(alike[:per_rack])
        staying_ids.update(broker.id for broker in in_rack if keeps and broker.id not in alike)
        added += [broker_class.broker(next(ids), rack) for _ in range(per_rack - len(alike))]
    return tuple(added), tuple(broker.id for broker in brokers if broker.id not in staying_ids)


def spec_of(spec: Spec, combination: Combination, *, capped: bool = False) -> Spec:
    """The spec that turns today's cluster into this combination; other changes of partitions stay.

    `capped`: `replicas_per_broker` is a cap of each broker.
    """
    most = sizing_of(spec).replicas_per_broker if capped else None

    def cap_brokers(brokers: Iterable[Broker]) -> tuple[Broker, ...]:
        return tuple(
            replace(each, max_replicas=min(most, each.max_replicas or most)) if most else each for each in brokers
        )

    cluster = replace(spec.cluster, brokers=cap_brokers(spec.cluster.brokers))
    changes = Changes(
        add_brokers=cap_brokers(combination.added),
        remove_brokers=combination.removed,
        set_replication_factor=spec.changes.set_replication_factor,
        new_partitions=spec.changes.new_partitions,
    )
    sweep = replace(spec.sweep, growth=(), variants=())
    limits = SpecLimits(disk_used_ppm=sizing_of(spec).disk_used_ppm)
    return replace(spec, cluster=cluster, changes=changes, limits=limits, sweep=sweep, budget=Budget())


@dataclass(frozen=True, eq=False)
class SizingStudy:
    """What all combinations of a spec share: the spec without its week, and the busiest hours of that week, found on
    today's cluster, with their rates (S, 2, P); None if there are none.
    """

    spec: Spec
    hour_names: tuple[str, ...]
    hours: LongArray | None

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """The study of a spec with `sizing`."""
        spec = at_history_end(spec)
        problem = build(spec_of(spec, _NOTHING))
        return cls(replace(spec, week=None), problem.scenario_names, problem.scenario_hours)


# Spark's tasks for each slot: a plan takes far longer than starting a task, and some take many times as long as others.
TASKS_EACH = 8
_NOTHING = Combination(0, "", 0, True, (), ())


def today_row(spec: Spec) -> CaseRow:
    """The row of today's cluster; nothing moves."""
    question = _SizingQuestion.of(SizingStudy.of(spec), _NOTHING)
    problem = question.problem
    return _limit_columns(question.first_limit(problem.replicas, problem.leaders))


def questions(spec: Spec, candidates: Iterable[Combination]) -> list[Callable[[], CaseRow]]:
    """The functions that give the combinations' rows."""
    study = SizingStudy.of(spec)
    return [partial(evaluate, study, each) for each in candidates]


def evaluate(study: SizingStudy, combination: Combination) -> CaseRow:
    """A combination's row: whether it lasts, which limit it reaches first, and what its plan copies.

    If there is no plan, because none is possible or all brokers together are too small, the copied amounts are None.
    """
    question = _SizingQuestion.of(study, combination)
    problem = question.problem
    row = {"number": combination.number, "brokers": int(problem.targets.sum())}
    joint_limit = question.joint_limit()
    if joint_limit and joint_limit.month == 0:
        return {**row, **_limit_columns((joint_limit, None)), **dict.fromkeys(_OF_PLANS)}
    leaving = (problem.replicas >= 0) & ~problem.targets[problem.replicas]
    is_stuck = bool((leaving.any(axis=1) & ~problem.movable).any())
    # If all brokers together are too small at the end, a plan for the end isn't worth its time.
    plans = [] if is_stuck else list(_plans(question, 1 if joint_limit else 2))
    if not plans:
        caps = "" if problem.caps is None else " and caps"
        too_few = f"too few brokers or racks for the replication factors{caps}"
        no_plan = Limit(0, None, "partitions that may not move are on brokers that leave" if is_stuck else too_few)
        return {**row, **_limit_columns((no_plan, None)), **dict.fromkeys(_OF_PLANS)}
    months = question.sizing.months + 1
    first, plan_row = max(plans, key=lambda each: (each[0][0].month if each[0][0] else months, -each[1]["bytes_moved"]))
    return {**row, **_limit_columns(first), **plan_row}


# Columns of a plan: what it takes, and the least that any plan with the same balance copies.
_OF_PLANS = (*COPIED, "least_bytes")
# The first limit that a plan reaches, and the largest used part of any limit (None if there are no limits).
_FirstLimit = tuple[Limit | None, float | None]


def _limit_columns(first: _FirstLimit) -> CaseRow:
    limit, used = first
    reached = limit._asdict() if limit else dict.fromkeys(Limit._fields)
    return {"holds": limit is None, **reached, "used_percent": None if used is None else round(100 * used, 1)}


def _plans(question: "_SizingQuestion", most: int) -> Iterator[tuple[_FirstLimit, CaseRow]]:
    """At most `most` plans, each with its first limit; none after the first that lasts."""
    problem, basis = question.problem, ScoringBasis.of(without(question.problem))
    balance, end = problem.balance, question.case.forecast.problem
    names = (*end.scenario_names, *problem.scenario_names)
    with_end = replace(problem, scenario_names=names, scenario_ppm=end.scenario_ppm)
    variants = ((problem, balance), (with_end, replace(balance, disk=NO_TOLERANCE)))
    for variant, variant_balance in variants[:most]:
        try:
            solution = optimum.solve(replace(variant, balance=variant_balance), variant_balance, work=NO_WORK)
        except InfeasibleError:
            continue
        first_limit = question.first_limit(solution.assignment, leaders_after(problem, solution.assignment))
        # More windows never make a plan cheaper, so the first problem's bound also holds for the second one.
        yield first_limit, {**copy_costs(basis, solution.assignment), "least_bytes": solution.least_bytes}
        if first_limit[0] is None:
            return


@dataclass(frozen=True, eq=False)
class _SizingQuestion:
    """A future cluster and its loads: `sizes` (P, M), rates in and out (P, M × H): by month, on average and in hours.

    `case` has the forecast and the limits; `problem` has the busiest hours of the week as scenarios.
    """

    sizing: Sizing
    case: GrowthCase
    problem: Problem
    sizes: LongArray
    bytes_in: LongArray
    bytes_out: LongArray

    @classmethod
    def of(cls, study: SizingStudy, combination: Combination) -> Self:
        """The loads of a combination in all months."""
        sizing = sizing_of(study.spec)
        case = case_of(spec_of(study.spec, combination, capped=True), "", "", 0, sizing.months)
        problem = replace(without(case.forecast.problem), scenario_names=study.hour_names, scenario_hours=study.hours)
        months = [case.forecast.in_month(month) for month in range(sizing.months + 1)]
        sizes = np.stack([each.size_bytes for each in months], axis=1)
        flows = []
        for direction, name in enumerate(("bytes_in_per_sec", "bytes_out_per_sec")):
            rates = np.stack([getattr(each, name) for each in months], axis=1)[:, :, None]
            if problem.scenario_hours is not None:
                factors = case.forecast.factors(sizing.months)[problem.topic_of][:, :, None]
                hours = np.rint(problem.scenario_hours[:, direction].T[:, None, :] * factors).astype(np.int64)
                rates = np.concatenate([rates, hours], axis=2)
            flows.append(rates.reshape(len(rates), -1))
        return cls(sizing, case, problem, sizes, *flows)

    def joint_limit(self) -> Limit | None:
        """The first limit that all brokers together reach, with any plan."""
        targets, factors = self.problem.targets, self.problem.replication_factors.astype(np.int64)
        caps = self.problem.caps
        if caps is not None and int(factors.sum()) > int(caps[0, targets].sum()):
            return Limit(0, None, "replicas")
        limits = []
        for limit_name, broker_limits, loads in (
            ("disk", self.case.disk_limit_bytes, factors @ self.sizes),
            ("network", self.case.network_limit, factors @ self.bytes_in),
            ("network", self.case.network_limit, (factors - 1).clip(0) @ self.bytes_in + self.bytes_out.sum(axis=0)),
        ):
            above = loads.reshape(self.sizing.months + 1, -1).max(axis=1) > int(broker_limits[targets].sum())
            if (broker_limits[targets] >= 0).all() and above.any():
                limits.append(Limit(int(above.argmax()), None, limit_name))
        return min(limits, default=None)

    def first_limit(self, assignment: IntArray, leaders: IntArray) -> _FirstLimit:
        """The first limit that an assignment (P, W) with leaders (P,) reaches, and the largest part used of any."""
        problem, limits, used = self.problem, list[Limit](), list[float]()
        counts = np.bincount(assignment[assignment >= 0], minlength=len(problem.broker_ids))
        if problem.caps is not None and (above := counts - problem.caps[0]).max() > 0:
            limits.append(Limit(0, int(problem.broker_ids[above.argmax()]), "replicas"))
        disks = _matrix(assignment, len(problem.broker_ids)) @ self.sizes
        self._note_limit("disk", disks, self.case.disk_limit_bytes, limits, used)
        for failure_text, is_down in self._failures():
            is_alive = (assignment >= 0) & ~np.append(is_down, True)[assignment]
            live_assignment = np.where(is_alive, assignment, -1)
            # More brokers don't help a partition with a single replica, and new partitions don't exist yet.
            offline = ~is_alive.any(axis=1) & (assignment[:, 0] >= 0)
            if (offline & (problem.replication_factors > 1)).any():
                limits.append(Limit(0, None, f"partitions offline{failure_text}"))
            # A live leader stays, else the next replica takes over.
            leader_stays = (leaders >= 0) & ~np.append(is_down, True)[leaders]
            heirs = np.where(is_alive.any(axis=1), assignment[np.arange(len(is_alive)), is_alive.argmax(axis=1)], -1)
            new_leaders = np.where(leader_stays | (leaders < 0), leaders, heirs)
            followers = (is_alive.sum(axis=1) - 1).clip(0)[:, None]
            written = _matrix(live_assignment, len(problem.broker_ids)) @ self.bytes_in
            sent = _matrix(new_leaders[:, None], len(problem.broker_ids)) @ (self.bytes_in * followers + self.bytes_out)
            self._note_limit(f"network{failure_text}", np.maximum(written, sent), self.case.network_limit, limits, used)
        return min(limits, key=lambda each: each.month, default=None), max(used, default=None)

    def _failures(self) -> Iterator[tuple[str, BoolArray]]:
        """No failure, then each broker or rack whose failure must be survived: its words, and (B,) the brokers down."""
        problem = self.problem
        yield "", np.zeros(len(problem.broker_ids), dtype=bool)
        if self.sizing.survive == "rack":
            for rack_index, rack in enumerate(problem.rack_names):
                yield f" without rack {rack}", problem.broker_racks == rack_index
        elif self.sizing.survive == "broker":
            for index in np.flatnonzero(problem.targets).tolist():
                yield f" without broker {problem.broker_ids[index]}", np.arange(len(problem.broker_ids)) == index

    def _note_limit(
        self, limit_name: str, loads: LongArray, broker_limits: LongArray, limits: list[Limit], used_parts: list[float]
    ) -> None:
        """Notes the first month in which loads (B, M or M × H) exceed the room (B,), and the largest part used."""
        highest = loads.reshape(len(loads), self.sizing.months + 1, -1).max(axis=2)
        limited = np.flatnonzero(broker_limits > 0)
        above = highest[limited] > broker_limits[limited, None]
        if len(limited):
            used_parts.append(float((highest[limited] / broker_limits[limited, None]).max()))
        if above.any():
            month = int(above.any(axis=0).argmax())
            broker = limited[int(above[:, month].argmax())]
            limits.append(Limit(month, int(self.problem.broker_ids[broker]), limit_name))


def _matrix(brokers: IntArray, count: int) -> scipy.sparse.csr_array:
    """(count, P): 1 if a partition (a row of (P, K), -1: none) is on a broker."""
    rows, columns = np.nonzero(brokers >= 0)
    ones = np.ones(len(rows), dtype=np.int64)
    return scipy.sparse.csr_array((ones, (brokers[rows, columns], rows)), shape=(count, len(brokers)))
