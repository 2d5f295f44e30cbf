"""When brokers reach their disk or network limits as topics grow (see `growth_forecast`), and how many more would help.

A `GrowthCase` is the cluster with some brokers added. `evaluate` plans it and gives a row: the month in which each
broker reaches its disk or network limit. The row is the same here and on Spark's workers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from planner.model.build_problem import brokers_after, build, disk_limit, network_limits, today, topics_after
from planner.model.cluster import Broker
from planner.model.document_fields import LARGEST_ID, PPM
from planner.model.errors import InfeasibleError
from planner.model.formats import counted
from planner.model.growth_forecast import Forecast, at_history_end, forecast
from planner.model.problem import IntArray, LongArray
from planner.model.spec import BrokerClass, Spec
from planner.scoring import score
from planner.scoring.broker_loads import MEASURES, leaders_after, on_all_brokers
from planner.scoring.growth_scenarios import without
from planner.scoring.score import ScoringBasis
from planner.strategies import optimum
from planner.strategies.work_limits import LITTLE_WORK, SPLITS_SOLVED
from planner.sweep.apart_sides import with_sides

PLANNED: Final = "as planned"
# The result of a case: numbers, and lists by broker.
CaseRow = Mapping[str, Any]
# Columns of a row: what a plan takes, and what brokers hold at the end.
COPIED, _ENDS = ("bytes_moved", "replicas_moved", "leaders_changed"), ("size_bytes", "network_in", "network_out")
_SIZE, _IN, _OUT = map(MEASURES.index, _ENDS)
WHEN_REACHED = "a limit is reached in the first month at whose beginning a broker is above it; a month is 30.4 days"
# Growing a cluster to more than this many times its brokers at once is unrealistic, and such plans take long.
MOST_TIMES = 4
# In more racks than this, not every number of brokers is tried, because each is planned.
_MOST_RACKS = 6


@dataclass(frozen=True, eq=False)
class GrowthCase:
    """A future cluster: brokers of a class added, its forecast, and each broker's limits (B,), -1 if it has none."""

    name: str
    broker_class: str
    added: int
    forecast: Forecast
    disk_limit_bytes: LongArray
    network_limit: LongArray
    months: int


def cases(spec: Spec, months: int) -> tuple[GrowthCase, ...]:
    """The changes as they are, then with brokers of each class added, from the fewest that hold all loads."""
    base = case_of(spec, PLANNED, "", 0, months)
    options, problem = [base], base.forecast.problem
    rack_count, broker_count = max(len(problem.rack_names), 1), int(problem.targets.sum())
    # A broker for which no replica is left doesn't help.
    most = min(int(problem.replication_factors.sum()) - broker_count, (MOST_TIMES - 1) * broker_count)
    for broker_class in classes_of(spec):
        # From the fewest that hold all bytes and traffic to the second multiple of the racks.
        least = max(at_least(spec, base, broker_class), 1)
        full = -(-least // rack_count) * rack_count
        counts = (
            range(least, full + rack_count + 1)
            if rack_count <= _MOST_RACKS
            else {least, least + 1, full, full + rack_count}
        )
        for n in sorted(n for n in counts if n <= most):
            options.append(
                case_of(_add_brokers(spec, broker_class, n), f"{n} × {broker_class.name}", broker_class.name, n, months)
            )
    return tuple(options)


def evaluate(case: GrowthCase) -> CaseRow:
    """The row of a plan that is even today. With brokers added, if it doesn't last, the row of a plan that also keeps
    within its disks at the end, if that lasts longer.
    """
    problem, rows = case.forecast.problem, list[CaseRow]()
    # The first plan has only today's windows: more windows never make a plan cheaper.
    for variant in (without(problem), problem) if case.added else (without(problem),):
        with suppress(InfeasibleError):
            # The bound isn't shown, so proving it isn't worth much time.
            rows.append(row_of(case, optimum.solve(variant, problem.balance, work=LITTLE_WORK).assignment))
            if rows[-1]["first"] < 0:
                break
    infeasible = {"case": case.name, "feasible": False}
    return max(rows, key=lambda row: (row["first"] < 0, row["first"], -row["bytes_moved"]), default=infeasible)


def row_of(case: GrowthCase, assignment: IntArray) -> CaseRow:
    """The row of an assignment (P, W)."""
    problem = case.forecast.problem
    reached = _reached(case, assignment, leaders_after(problem, assignment))
    return {"case": case.name, "feasible": True, **copy_costs(ScoringBasis.of(without(problem)), assignment), **reached}


def copy_costs(basis: ScoringBasis, assignment: IntArray) -> dict[str, int]:
    """What an assignment (P, W) takes, by the names of the scores."""
    scores = score.score(basis, assignment)
    return {name: int(getattr(scores, name)[0]) for name in COPIED}


def today_row(case: GrowthCase) -> CaseRow:
    """The row of today's assignment; nothing moves."""
    problem = case.forecast.problem
    return {"case": "today", "feasible": True, **_reached(case, today(problem), problem.leaders)}


def _reached(case: GrowthCase, assignment: IntArray, leaders: IntArray) -> CaseRow:
    """For each broker, the first month above each limit (-1: not within the months) and its loads at the end; and the
    first such month of any broker.
    """
    loads = np.stack([on_all_brokers(case.forecast.in_month(m), assignment, leaders) for m in range(case.months + 1)])
    disk = _first_above(loads[:, _SIZE], case.disk_limit_bytes)
    network = _first_above(np.maximum(loads[:, _IN], loads[:, _OUT]), case.network_limit)
    months = [month for month in (*disk.tolist(), *network.tolist()) if month >= 0]
    return {
        "first": min(months, default=-1),
        "disk_month": disk.tolist(),
        "network_month": network.tolist(),
        **{name: loads[-1, column].tolist() for name, column in zip(_ENDS, (_SIZE, _IN, _OUT), strict=True)},
    }


def _first_above(loads: LongArray, limit: LongArray) -> LongArray:
    """(B,): the first month in which loads (M, B) are above the limit (B,); -1 if there is none."""
    above = (limit >= 0) & (loads > limit)
    return np.where(above.any(axis=0), above.argmax(axis=0), -1)


def case_of(spec: Spec, name: str, class_name: str, added: int, months: int) -> GrowthCase:
    """The case; its plan has the end of the months as a scenario."""
    # Several cases are made, so each compares only a few splits of the brokers among topics that are apart. Months are
    # compared with mean rates, so the week is left out, because each score would replay it. The months are left out
    # too, because the forecast has them.
    spec = at_history_end(spec)
    constant = replace(spec, week=None, growth=replace(spec.growth, rates=()))
    problem = without(build(with_sides(constant, SPLITS_SOLVED[0])))
    future = forecast(spec, problem, topics_after(spec))
    at_end = future.in_month(months)
    ppm = np.full(problem.rows, PPM, dtype=np.int64)
    has_size = problem.size_bytes > 0
    # No more than a millionfold, so that a product with a size stays below 2^63.
    ppm[has_size] = np.minimum(at_end.size_bytes[has_size] * (PPM / problem.size_bytes[has_size]), PPM**2)
    future = replace(
        future, problem=replace(problem, scenario_names=(f"in {months} months",), scenario_ppm=ppm[None, :])
    )
    return GrowthCase(name, class_name, added, future, problem.disk_limit_bytes, network_limits(spec), months)


def classes_of(spec: Spec) -> tuple[BrokerClass, ...]:
    """The classes of brokers that may be added: the YAML's, else the different capacities of today's brokers."""
    if spec.growth.classes:
        return spec.growth.classes
    classes: dict[tuple[int | None, ...], BrokerClass] = {}
    for each in sorted(spec.cluster.brokers, key=lambda broker: broker.id):
        if each.disk_bytes is not None or each.network_bytes_per_sec is not None:
            classes.setdefault(each.capacity, BrokerClass(f"like broker {each.id}", *each.capacity))
    return tuple(classes.values())


def at_least(spec: Spec, base: GrowthCase, added_class: BrokerClass) -> int:
    """The fewest brokers of a class with which no total load is above the sum of all brokers' limits."""
    problem = base.forecast.problem
    factors, needed = problem.replication_factors.astype(np.int64), 0
    for month in range(base.months + 1):
        at_month = base.forecast.in_month(month)
        sent = (factors - 1).clip(0) @ at_month.bytes_in_per_sec + at_month.bytes_out_per_sec.sum()
        for load, limits, added_limit in (
            (factors @ at_month.size_bytes, base.disk_limit_bytes, disk_limit(spec, added_class)),
            (factors @ at_month.bytes_in_per_sec, base.network_limit, added_class.network_bytes_per_sec),
            (sent, base.network_limit, added_class.network_bytes_per_sec),
        ):
            present_limits = limits[problem.targets]
            if added_limit and (present_limits >= 0).all():
                needed = max(needed, -(-(int(load) - int(present_limits.sum())) // added_limit))
    return needed


def _add_brokers(spec: Spec, broker_class: BrokerClass, count: int) -> Spec:
    """The spec with more brokers of a class, each in the rack that has the fewest brokers by then."""
    brokers = brokers_after(spec)
    leaving = spec.changes.leaving
    racks = [broker.rack for broker in brokers if broker.id not in leaving]
    rack_names = sorted({rack for rack in racks if rack is not None})
    added = list[Broker]()
    for number in islice(free_ids({broker.id for broker in brokers}), count):
        rack = min(rack_names, key=lambda name: (racks.count(name), name)) if rack_names else None
        racks.append(rack)
        added.append(broker_class.broker(number, rack))
    changes = replace(spec.changes, add_brokers=(*spec.changes.add_brokers, *added))
    return replace(spec, changes=changes)


def free_ids(used: set[int]) -> Iterator[int]:
    """Unused ids: first those above the largest, then, if these run out, the smallest."""
    yield from range(max(used) + 1, LARGEST_ID + 1)
    yield from (number for number in range(LARGEST_ID + 1) if number not in used)


def caveats(spec: Spec) -> tuple[str, ...]:
    """What makes today's sizes and rates less than they are."""
    empty = (
        f"{counted(spec.cluster.unsized, 'partition')} without a size, counted as empty: brokers hold more than shown"
    )
    return (*([empty] if spec.cluster.unsized else []), *spec.cluster.outgrown)


def questions(cases: Iterable[GrowthCase]) -> list[Callable[[], CaseRow]]:
    """The functions that give the cases' rows."""
    return [partial(evaluate, case) for case in cases]


def fewest_by_class(cases: Sequence[GrowthCase], rows: Sequence[CaseRow]) -> dict[str, str]:
    """For each class, the case with the fewest brokers that lasts all months."""
    names_by_class: dict[str, str] = {}
    pairs = sorted(zip(cases, rows, strict=True), key=lambda pair: pair[0].added)
    for case, row in pairs:
        if row["feasible"] and row["first"] < 0 and case.broker_class:
            names_by_class.setdefault(case.broker_class, case.name)
    return names_by_class
