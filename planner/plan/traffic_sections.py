"""The plan's sections on traffic: the hours of the week (those planned for, and the worst of all 168, before and
after), and the traffic between racks.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from planner.model import build_problem
from planner.model.balance import WINDOWS
from planner.model.build_problem import today
from planner.model.document_fields import PPM
from planner.model.growth_forecast import months_ahead, per_month_ppm
from planner.model.load_history import HOUR_SECONDS, busiest_hours, hour_name
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import RackTraffic, Spec
from planner.plan.document.cluster_types import (
    BrokerHoursRow,
    CrossRackSection,
    CrossRackState,
    HoursSection,
    HoursState,
    MonthOfGrowthRow,
    PlannedHourRow,
    StateOfMonth,
    TopicOfHourRow,
    WorstHourRow,
)
from planner.scoring.broker_loads import Week, leaders_after, read_across_racks, read_from, replicated_across_racks
from planner.scoring.score import added_replicas
from planner.strategies.optimum import UNKNOWN
from planner.sweep.candidates import NO_SCENARIOS, STRATEGIES, of_row
from planner.sweep.evaluate import planned_for
from planner.sweep.sweep_result import SweepResult

# How many topics are named for a worst hour.
_TOPICS_NAMED = 3


@dataclass(frozen=True, eq=False)
class _WeekJudge:
    """The week over which placements are replayed, each partition's `hours` (2, P, 168) of traffic, in and out, and
    the time zone of the hours' names.
    """

    week: Week
    hours: LongArray
    zone: str

    def state(self, assignment: IntArray, leaders: IntArray, above_in: LongArray) -> HoursState:
        """The state over all hours with replicas (P, W) and leaders (P,), and the bytes copied to get there.

        above_in (M,): hours above capacity in each month; month 0 is now.
        """
        problem, loads = self.week.problem, self.week.loads(assignment, leaders)
        first = np.flatnonzero(above_in > 0)
        moved = added_replicas(problem, assignment).sum(axis=1) * problem.size_bytes
        at_worst = [[int(index) for index in np.unravel_index(table.argmax(), table.shape)] for table in loads]
        worst = [
            WorstHourRow(
                broker=int(problem.broker_ids[broker]),
                hour=hour,
                name=hour_name(hour, self.zone),
                bytes_per_sec=int(loads[way][broker, hour]),
                topics=self.topics(way, assignment, leaders, (broker, hour)),
            )
            for way, (broker, hour) in enumerate(at_worst)
        ]
        return HoursState(
            bytes_moved=int(moved.sum()),
            network_in=worst[0],
            network_out=worst[1],
            above_capacity=_none_if_unknown(above_in[0]),
            months_until_above_capacity=int(first[0]) if len(first) else None,
        )

    def topics(
        self, way: int, assignment: IntArray, leaders: IntArray, broker_hour: tuple[int, int]
    ) -> tuple[TopicOfHourRow, ...]:
        """The topics with the most traffic at a broker in an hour; `way` is 0: in, 1: out."""
        (broker, hour), names = broker_hour, self.week.problem.topic_names
        received, read = self.hours[:, :, hour]
        followers = np.maximum((assignment >= 0).sum(axis=1) - 1, 0)
        sources, parts, total = read_from(self.week.problem, assignment, leaders)
        sent = received * followers * (leaders == broker) + read * (parts * (sources == broker)).sum(axis=0) / total
        rates = sent if way else received * (assignment == broker).any(axis=1)
        of_topics = np.bincount(self.week.problem.topic_of, weights=rates, minlength=len(names)).astype(np.int64)
        most = np.argsort(-of_topics, kind="stable")[:_TOPICS_NAMED].tolist()
        return tuple(
            TopicOfHourRow(topic=names[topic], bytes_per_sec=int(of_topics[topic]))
            for topic in most
            if of_topics[topic]
        )


def spec_fields(spec: Spec) -> dict[str, Any]:
    """By names in `spec`: `traffic` with its price, rates, and the topics' growth if hours or a limit need it."""
    growth = dict[str, int]()
    if spec.week is not None or spec.limits.months_until_full is not None:
        names = [topic.name for topic in build_problem.topics_after(spec)]
        growth = {name: ppm for name, ppm in zip(names, per_month_ppm(spec.growth.rates, names), strict=True) if ppm}
    traffic = None if spec.traffic == RackTraffic() else spec.traffic
    return {"traffic": traffic, "rates": spec.cluster.rates or None, "growth_ppm": growth or None}


# As in planner growth and planner size, a month is a twelfth of a year.
_HOURS_PER_MONTH = Fraction(8766, 12)


def cross_rack(spec: Spec, problem: Problem, assignment: IntArray, copied: int) -> CrossRackSection | None:
    """The key `cross_rack` of plan.json; None if no rate is known, or if a broker has no rack today or afterwards.

    `copied` are the bytes that the plan copies from rack to rack.
    """
    now = build_problem.problem_today(spec)
    rates = bool(problem.bytes_in_per_sec.any() or problem.bytes_out_per_sec.any())
    if not rates or any((each.broker_racks < 0).any() for each in (now, problem)):
        return None
    price = spec.traffic.cross_rack_per_gib_millionths
    return CrossRackSection(
        fetch_from=spec.traffic.fetch_from,
        today=_across(spec.traffic, now, now.replicas, now.leaders),
        plan=_across(spec.traffic, problem, assignment, leaders_after(problem, assignment)),
        money_once=None if price is None or not spec.cluster.sizes_known else _money(copied, price),
    )


def _across(traffic: RackTraffic, problem: Problem, replicas: IntArray, leaders: IntArray) -> CrossRackState:
    written = HOUR_SECONDS * replicated_across_racks(problem, replicas, leaders)
    read = None
    if traffic.consumers:
        by_rack = (
            share * read_across_racks(problem, replicas, leaders, rack, nearest=traffic.nearest)
            for rack, share in traffic.consumers.items()
        )
        read = HOUR_SECONDS * sum(by_rack) // PPM
    price = traffic.cross_rack_per_gib_millionths
    money = None if price is None else _money(_HOURS_PER_MONTH * (written + (read or 0)), price)
    return CrossRackState(replication=written, consumers=read, money_per_month=money)


def _money(size_bytes: Fraction | int, per_gib: int) -> float:
    """The cost of `size_bytes`, rounded to millionths; `per_gib` is the price of a GiB in millionths."""
    return float(round(Fraction(size_bytes) * per_gib / (PPM << 30), 6))


def hours(spec: Spec, problem: Problem, assignment: IntArray, swept: SweepResult | None) -> HoursSection | None:
    """The key `hours` of plan.json; None unless a load profile has all hours of the week.

    The plan for the mean is the sweep's plan at the same balance; it is made again to get its hours.
    """
    week = Week.of(problem)
    if spec.week is None or week is None or problem.week is None:
        return None
    judge = _WeekJudge(week, problem.week.astype(np.int64), spec.week.time_zone)
    before = replace(judge, week=_in_todays_racks(spec, week))
    states = [(today(problem), problem.leaders), (assignment, leaders_after(problem, assignment))]
    higher = [each.week.loads(*pair).max(axis=0) for each, pair in zip((before, judge), states, strict=True)]
    highest = int(max(each.max() for each in higher))
    # Levels are 0 to 9, rounded up, so that 0 means no traffic at all.
    levels = [["".join(map(str, row)) for row in (-(-9 * each // max(highest, 1))).tolist()] for each in higher]
    of_leaders = build_problem.hours_of_brokers(problem, judge.hours, *states[0])
    chosen = busiest_hours(of_leaders) if spec.week.planned_for else ()
    if swept and chosen and (mean := _of_mean(problem, swept)) is not None:
        states.append((mean, leaders_after(problem, mean)))
    growth = np.array(per_month_ppm(spec.growth.rates, problem.topic_names), dtype=np.int64) / PPM
    months = months_ahead(spec) if growth.any() else 0
    results = (each.week.in_months(growth, months, pair) for each, pair in ((before, states[:1]), (judge, states[1:])))
    worst, above = (np.concatenate(each, axis=1) for each in zip(*results, strict=True))
    of_months = (
        [StateOfMonth(bytes_per_sec=most, above_capacity=_none_if_unknown(hours)) for most, hours in ways]
        for ways in np.stack([worst, above], axis=2).tolist()
    )
    hourly = [each.state(*pair, now) for each, pair, now in zip((before, judge, judge), states, above.T, strict=False)]
    return HoursSection(
        time_zone=spec.week.time_zone,
        planned=tuple(PlannedHourRow(hour=hour, name=hour_name(hour, spec.week.time_zone)) for hour in chosen),
        today=hourly[0],
        plan=hourly[1],
        of_mean=hourly[2] if len(hourly) > 2 else None,
        highest=highest,
        brokers=tuple(
            BrokerHoursRow(id=broker, today=now, plan=then)
            for broker, now, then in zip(problem.broker_ids.tolist(), *levels, strict=True)
        ),
        months=tuple(
            MonthOfGrowthRow(month=month, today=now, plan=then)
            for month, (now, then, *_) in enumerate(of_months)
            if months
        ),
    )


def _in_todays_racks(spec: Spec, week: Week) -> Week:
    """The week judged by today's racks, because the racks decide which replicas consumers read from."""
    if not spec.changes.set_racks:
        return week
    problem_today = build_problem.build(replace(spec, changes=replace(spec.changes, set_racks=())))
    racks = {name: getattr(problem_today, name) for name in ("rack_names", "broker_racks", "read_in_racks")}
    return replace(week, problem=replace(week.problem, **racks))


def _none_if_unknown(above: int) -> int | None:
    return None if above == UNKNOWN else int(above)


def _of_mean(problem: Problem, swept: SweepResult) -> IntArray | None:
    # The sweep's valid row of strategy optimum at the problem's balance, without a scenario.
    values: dict[str, str | int] = {window: str(getattr(problem.balance, window)) for window in WINDOWS}
    values |= {"strategy": "optimum", "scenarios": NO_SCENARIOS, "violations": 0}
    row = next((each for each in swept.scores.to_pylist() if values.items() <= each.items()), None)
    if row is None:
        return None
    return STRATEGIES["optimum"](planned_for(problem, NO_SCENARIOS), of_row(row)).assignment
