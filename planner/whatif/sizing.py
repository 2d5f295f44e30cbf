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
from planner.strategies.work_limits import SIZED
from planner.whatif.brokers_for_growth import COPIED, CaseRow, GrowthCase, case_of, copied, free_ids


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
    sizing, found = sizing_of(spec), dict[tuple[tuple[Broker, ...], tuple[int, ...]], Combination]()
    for of in sizing.classes:
        for per_rack in range(sizing.per_rack[0], sizing.per_rack[1] + 1):
            for keeps in (True, False):
                added, removed = changed = _changed(spec, of, per_rack, keeps)
                staying = (each for each in spec.cluster.brokers if each.id not in removed)
                others = any(each.capacity != of.broker(each.id, each.rack).capacity for each in staying)
                found.setdefault(changed, Combination(len(found) + 1, of.name, per_rack, others, added, removed))
    return tuple(found.values())


def _changed(spec: Spec, of: BrokerClass, per_rack: int, keeps: bool) -> tuple[tuple[Broker, ...], tuple[int, ...]]:
    """The brokers to be added, and the ids of those to be removed; if the class has too many, its last ones go."""
    brokers = sorted(spec.cluster.brokers, key=lambda each: each.id)
    names = {broker.rack for broker in brokers if broker.rack is not None}
    racks: list[str | None] = [*(sizing_of(spec).racks or sorted(names))] or [None]
    ids = free_ids({broker.id for broker in brokers})
    added, stay = list[Broker](), set[int]()
    for rack in racks:
        here = [broker for broker in brokers if broker.rack == rack]
        alike = [broker.id for broker in here if broker.capacity == of.broker(broker.id, rack).capacity]
        stay.update(alike[:per_rack])
        stay.update(broker.id for broker in here if keeps and broker.id not in alike)
        added += [of.broker(next(ids), rack) for _ in range(per_rack - len(alike))]
    return tuple(added), tuple(broker.id for broker in brokers if broker.id not in stay)


def spec_of(spec: Spec, combination: Combination, *, capped: bool = False) -> Spec:
    """The spec that turns today's cluster into this combination; other changes of partitions stay.

    `capped`: `replicas_per_broker` is a cap of each broker.
    """
    most = sizing_of(spec).replicas_per_broker if capped else None

    def brokers(of: Iterable[Broker]) -> tuple[Broker, ...]:
        return tuple(replace(each, max_replicas=min(most, each.max_replicas or most)) if most else each for each in of)

    cluster = replace(spec.cluster, brokers=brokers(spec.cluster.brokers))
    changes = Changes(
        add_brokers=brokers(combination.added),
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


def as_it_is(spec: Spec) -> CaseRow:
    """The row of today's cluster; nothing moves."""
    question = _SizingQuestion.of(SizingStudy.of(spec), _NOTHING)
    problem = question.problem
    return _lasting(question.first(problem.replicas, problem.leaders))


def questions(spec: Spec, wanted: Iterable[Combination]) -> list[Callable[[], CaseRow]]:
    """The functions that give the combinations' rows."""
    study = SizingStudy.of(spec)
    return [partial(evaluate, study, each) for each in wanted]


def evaluate(study: SizingStudy, combination: Combination) -> CaseRow:
    """A combination's row: whether it lasts, which limit it reaches first, and what its plan copies.

    If there is no plan, because none is possible or all brokers together are too small, the copied amounts are None.
    """
    question = _SizingQuestion.of(study, combination)
    problem = question.problem
    row = {"number": combination.number, "brokers": int(problem.targets.sum())}
    together = question.together()
    if together and together.month == 0:
        return {**row, **_lasting((together, None)), **dict.fromkeys(_OF_PLANS)}
    leaving = (problem.replicas >= 0) & ~problem.targets[problem.replicas]
    stuck = bool((leaving.any(axis=1) & ~problem.movable).any())
    # If all brokers together are too small at the end, a plan for the end isn't worth its time.
    tried = [] if stuck else list(_plans(question, 1 if together else 2))
    if not tried:
        caps = "" if problem.caps is None else " and caps"
        few = f"too few brokers or racks for the replication factors{caps}"
        none = Limit(0, None, "partitions that may not move are on brokers that leave" if stuck else few)
        return {**row, **_lasting((none, None)), **dict.fromkeys(_OF_PLANS)}
    months = question.sizing.months + 1
    first, solved = max(tried, key=lambda each: (each[0][0].month if each[0][0] else months, -each[1]["bytes_moved"]))
    return {**row, **_lasting(first), **solved}


# Columns of a plan: what it takes, and the least that any plan with the same balance copies.
_OF_PLANS = (*COPIED, "least_bytes")
# The first limit that a plan reaches, and the largest used part of any limit (None if there are no limits).
_First = tuple[Limit | None, float | None]


def _lasting(first: _First) -> CaseRow:
    limit, used = first
    reached = limit._asdict() if limit else dict.fromkeys(Limit._fields)
    return {"holds": limit is None, **reached, "used_percent": None if used is None else round(100 * used, 1)}


def _plans(question: "_SizingQuestion", most: int) -> Iterator[tuple[_First, CaseRow]]:
    """At most `most` plans, each with its first limit; none after the first that lasts."""
    problem, basis = question.problem, ScoringBasis.of(without(question.problem))
    balance, end = problem.balance, question.case.forecast.problem
    names = (*end.scenario_names, *problem.scenario_names)
    with_end = replace(problem, scenario_names=names, scenario_ppm=end.scenario_ppm)
    tries = ((problem, balance), (with_end, replace(balance, disk=NO_TOLERANCE)))
    for each, even in tries[:most]:
        try:
            solution = optimum.solve(replace(each, balance=even), even, worth=SIZED)
        except InfeasibleError:
            continue
        first = question.first(solution.assignment, leaders_after(problem, solution.assignment))
        # More windows never make a plan cheaper, so the first problem's bound also holds for the second one.
        yield first, {**copied(basis, solution.assignment), "least_bytes": solution.least_bytes}
        if first[0] is None:
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
        built = replace(without(case.forecast.problem), scenario_names=study.hour_names, scenario_hours=study.hours)
        months = [case.forecast.at(month) for month in range(sizing.months + 1)]
        sizes = np.stack([each.size_bytes for each in months], axis=1)
        ways = []
        for way, name in enumerate(("bytes_in_per_sec", "bytes_out_per_sec")):
            rates = np.stack([getattr(each, name) for each in months], axis=1)[:, :, None]
            if built.scenario_hours is not None:
                factors = case.forecast.factors(sizing.months)[built.topic_of][:, :, None]
                hours = np.rint(built.scenario_hours[:, way].T[:, None, :] * factors).astype(np.int64)
                rates = np.concatenate([rates, hours], axis=2)
            ways.append(rates.reshape(len(rates), -1))
        return cls(sizing, case, built, sizes, *ways)

    def together(self) -> Limit | None:
        """The first limit that all brokers together reach, with any plan."""
        targets, factors = self.problem.targets, self.problem.replication_factors.astype(np.int64)
        caps = self.problem.caps
        if caps is not None and int(factors.sum()) > int(caps[0, targets].sum()):
            return Limit(0, None, "replicas")
        found = []
        for what, room, held in (
            ("disk", self.case.disk_limit_bytes, factors @ self.sizes),
            ("network", self.case.network_limit, factors @ self.bytes_in),
            ("network", self.case.network_limit, (factors - 1).clip(0) @ self.bytes_in + self.bytes_out.sum(axis=0)),
        ):
            above = held.reshape(self.sizing.months + 1, -1).max(axis=1) > int(room[targets].sum())
            if (room[targets] >= 0).all() and above.any():
                found.append(Limit(int(above.argmax()), None, what))
        return min(found, default=None)

    def first(self, assignment: IntArray, leaders: IntArray) -> _First:
        """The first limit that an assignment (P, W) with leaders (P,) reaches, and the largest part used of any."""
        problem, found, used = self.problem, list[Limit](), list[float]()
        counts = np.bincount(assignment[assignment >= 0], minlength=len(problem.broker_ids))
        if problem.caps is not None and (above := counts - problem.caps[0]).max() > 0:
            found.append(Limit(0, int(problem.broker_ids[above.argmax()]), "replicas"))
        disks = _matrix(assignment, len(problem.broker_ids)) @ self.sizes
        self._held("disk", disks, self.case.disk_limit_bytes, found, used)
        for words, down in self._failures():
            alive = (assignment >= 0) & ~np.append(down, True)[assignment]
            living = np.where(alive, assignment, -1)
            # More brokers don't help a partition with a single replica, and new partitions don't exist yet.
            offline = ~alive.any(axis=1) & (assignment[:, 0] >= 0)
            if (offline & (problem.replication_factors > 1)).any():
                found.append(Limit(0, None, f"partitions offline{words}"))
            # A live leader stays, else the next replica takes over.
            stays = (leaders >= 0) & ~np.append(down, True)[leaders]
            heirs = np.where(alive.any(axis=1), assignment[np.arange(len(alive)), alive.argmax(axis=1)], -1)
            leading = np.where(stays | (leaders < 0), leaders, heirs)
            followers = (alive.sum(axis=1) - 1).clip(0)[:, None]
            written = _matrix(living, len(problem.broker_ids)) @ self.bytes_in
            sent = _matrix(leading[:, None], len(problem.broker_ids)) @ (self.bytes_in * followers + self.bytes_out)
            self._held(f"network{words}", np.maximum(written, sent), self.case.network_limit, found, used)
        return min(found, key=lambda each: each.month, default=None), max(used, default=None)

    def _failures(self) -> Iterator[tuple[str, BoolArray]]:
        """No failure, then each broker or rack whose failure must be survived: its words, and (B,) the brokers down."""
        problem = self.problem
        yield "", np.zeros(len(problem.broker_ids), dtype=bool)
        if self.sizing.survive == "rack":
            for number, rack in enumerate(problem.rack_names):
                yield f" without rack {rack}", problem.broker_racks == number
        elif self.sizing.survive == "broker":
            for at in np.flatnonzero(problem.targets).tolist():
                yield f" without broker {problem.broker_ids[at]}", np.arange(len(problem.broker_ids)) == at

    def _held(self, what: str, loads: LongArray, room: LongArray, found: list[Limit], used: list[float]) -> None:
        """Notes the first month in which loads (B, M or M × H) exceed the room (B,), and the largest part used."""
        highest = loads.reshape(len(loads), self.sizing.months + 1, -1).max(axis=2)
        stated = np.flatnonzero(room > 0)
        above = highest[stated] > room[stated, None]
        if len(stated):
            used.append(float((highest[stated] / room[stated, None]).max()))
        if above.any():
            month = int(above.any(axis=0).argmax())
            broker = stated[int(above[:, month].argmax())]
            found.append(Limit(month, int(self.problem.broker_ids[broker]), what))


def _matrix(brokers: IntArray, count: int) -> scipy.sparse.csr_array:
    """(count, P): 1 if a partition (a row of (P, K), -1: none) is on a broker."""
    rows, columns = np.nonzero(brokers >= 0)
    ones = np.ones(len(rows), dtype=np.int64)
    return scipy.sparse.csr_array((ones, (brokers[rows, columns], rows)), shape=(count, len(brokers)))
