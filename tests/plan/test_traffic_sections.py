"""What the plan says about the hours of the week and traffic between racks, with every figure calculated by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import assignment_of, balance_of, no_racks, spec_of

from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.document_fields import SpecLimits
from planner.model.errors import UnsafePlanError
from planner.model.formats import as_stated, size
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad
from planner.model.spec import Changes, Choice, Monthly, RackTraffic, Rate, ReportSections, Spec, Sweep
from planner.plan.build import RefusedPlanError, planned
from planner.plan.document.cluster_types import CrossRackSection, PlannedHourRow, TopicOfHourRow, WorstHourRow
from planner.plan.traffic_sections import cross_rack
from planner.report import cluster_tables, plan_sections_and_next_steps, plots, sentences, verdict
from planner.report.plot_movement import movement
from planner.scoring.missed_targets import relaxed
from planner.scoring.score import ScoringBasis, score
from planner.sweep import evaluate
from planner.sweep.choice import Swept, alternatives


def asked(network: int | None = None) -> Spec:
    """Two brokers with four partitions each; topic x peaks on Monday 09:00 UTC, topic y on Sunday 23:00 UTC.

    On average all partitions are equal, and nobody reads. All of x is on broker 1, all of y on broker 2.
    """
    hours = np.full((2, 8, HOURS_OF_WEEK), 100.0)
    hours[0, :4, 9] = 1000
    hours[0, 4:, 167] = 1000
    hours[1] = 0
    keys = [(topic, number) for topic in "xy" for number in range(4)]
    week = WeekOfLoad({key: at for at, key in enumerate(keys)}, hours.mean(axis=2), hours, "Europe/Berlin")
    balance = replace(balance_of("1", "1", "none"), network_in=Tolerance("percent", 10))
    rows = {"x": [(1,)] * 4, "y": [(2,)] * 4}
    spec = spec_of(no_racks(1, 2), rows, sizes=50, balance=balance, week=week, sweep=Sweep(candidates=20))
    topics = tuple(
        replace(each, partitions=tuple(replace(row, bytes_in_per_sec=105) for row in each.partitions))
        for each in spec.cluster.topics
    )
    brokers = tuple(replace(each, network_bytes_per_sec=network) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, topics=topics, brokers=brokers))


def tried(spec: Spec) -> list[Swept]:
    """A sweep in this process."""
    return [
        Swept(each.name, each.spec, each.problem, evaluate.run(each.problem, each.candidates))
        for each in alternatives(spec)
    ]


def plan_of(spec: Spec):
    """The plan of a sweep in this process."""
    return planned(tried(spec)).plan


def test_without_busiest_hours_there_is_no_section() -> None:
    """Without busiest hours, there is no section and no line on the screen."""
    plan = plan_of(replace(asked(), week=None))
    assert (None, ()) == (plan.hours, sentences.hours(plan))


def test_the_plan_is_even_in_the_hours_that_bind() -> None:
    """Doing nothing is even on average, but in both hours one broker has ten times the other's traffic."""
    plan = plan_of(asked(network=3000))
    of = plan.hours
    assert of is not None
    # Rates are 105, and the profile's mean is 105.36: 9.1 of 10 hours keep 100, and the peak is 997.
    peak, rest = round(1000 * 105 / (100 + 900 / 168)), round(100 * 105 / (100 + 900 / 168))
    hours = (PlannedHourRow(hour=9, name="Monday 10:00 Europe/Berlin"), PlannedHourRow(hour=167, name=MIDNIGHT))
    assert hours == of.planned
    x_alone = (TopicOfHourRow(topic="x", bytes_per_sec=4 * peak),)
    both = tuple(TopicOfHourRow(topic=name, bytes_per_sec=2 * rate) for name, rate in (("x", peak), ("y", rest)))
    at_nine = {"broker": 1, "hour": 9, "name": hours[0].name}
    assert WorstHourRow(**at_nine, bytes_per_sec=4 * peak, topics=x_alone) == of.today.network_in
    assert WorstHourRow(**at_nine, bytes_per_sec=2 * (peak + rest), topics=both) == of.plan.network_in
    # In ninths of the highest, rounded up: 4 × 100 of 4 × 1000 is one, half of the peaks plus half of the rest is five.
    assert 4 * peak == of.highest
    weeks = [(f"{'1' * 9}9{'1' * 158}", f"{'1' * 9}5{'1' * 157}5"), (f"{'1' * 167}9", f"{'1' * 9}5{'1' * 157}5")]
    assert [(1, *weeks[0]), (2, *weeks[1])] == [(row.id, row.today, row.plan) for row in of.brokers]
    assert (2, 0) == (of.today.above_capacity, of.plan.above_capacity)
    # Two partitions move each way; the plan for the mean moves nothing.
    assert (200, 0) == (of.plan.bytes_moved, of.of_mean.bytes_moved if of.of_mean else None)
    assert of.of_mean is not None
    assert of.today == of.of_mean
    assert ((), ()) == (plan.balance.missed, plan.scenarios)
    assert (200, 200) == (plan.bound.bytes_moved, plan.bound.least_bytes_moved)
    assert (
        "planned for the mean and for Monday 10:00 Europe/Berlin, Monday 00:00 Europe/Berlin",
        "worst broker in the worst of 168 hours, today → plan: in 3.99 kB/s → 2.19 kB/s (broker 1, Monday 10:00 "
        "Europe/Berlin), out 0 B/s → 0 B/s (broker 1, Monday 01:00 Europe/Berlin); hours of brokers above capacity: "
        "2 → 0",
        "a plan for the mean alone copies 200 B less; in its worst hour: in 3.99 kB/s, out 0 B/s",
    ) == sentences.hours(plan)


MIDNIGHT = "Monday 00:00 Europe/Berlin"


def test_capacity_that_nobody_states_is_not_judged() -> None:
    """If no broker states a capacity, hours above it are null, not 0."""
    of = plan_of(asked()).hours
    assert of is not None
    assert (None, None) == (of.today.above_capacity, of.plan.above_capacity)


@pytest.mark.slow
def test_today_and_the_plan_are_held_over_the_coming_months() -> None:
    """x doubles each month, y stays the same. Today's peak hour is above the capacity of 9000 in two months;
    with the plan, which has half of x on each broker, in three.
    """
    spec = replace(asked(network=9000), growth=Monthly((Rate("x", 1_000_000), Rate("*", 0))))
    of = plan_of(spec).hours
    assert of is not None
    peak, rest = round(1000 * 105 / (100 + 900 / 168)), round(100 * 105 / (100 + 900 / 168))
    assert list(range(13)) == [row.month for row in of.months]
    for row in of.months:
        now, plan = 4 * peak * 2**row.month, 2 * peak * 2**row.month + 2 * rest
        assert (now, plan) == (row.today.bytes_per_sec, row.plan.bytes_per_sec)
    # In the fifth month all of x is above it for 168 hours: 4 × 100 × 32; in the sixth month, half of x is too.
    above = [(row.today.above_capacity, row.plan.above_capacity) for row in of.months[:8]]
    assert [(0, 0), (0, 0), (1, 0), (1, 2), (1, 2), (168, 2), (168, 336), (168, 336)] == above
    assert (2, 3) == (of.today.months_until_above_capacity, of.plan.months_until_above_capacity)
    assert of.of_mean is not None
    assert 2 == of.of_mean.months_until_above_capacity
    plan = plan_of(replace(spec, report=ReportSections(growth_months=2)))
    assert (
        "with the growth of the next 2 months, the first hour above a capacity, today → plan: in 2 months → none"
        in sentences.hours(plan)
    )
    table = cluster_tables.months_of_hours(plan)
    assert ["now", "in 1 month", "in 2 months"] == [table.columns[0].value(row) for row in table.rows]
    assert ["Month", "Worst hour of any broker", "Hours above capacity"] == [each.heading for each in table.columns]


@pytest.mark.slow
def test_without_growth_or_capacities_months_say_less() -> None:
    """Without growth there are no months; without capacities, no month and no column about hours above them."""
    of = plan_of(asked(network=3000)).hours
    assert of is not None
    assert ((), 0, None) == (of.months, of.today.months_until_above_capacity, of.plan.months_until_above_capacity)
    plan = plan_of(replace(asked(), growth=Monthly((Rate("x", 500_000),))))
    assert plan.hours is not None
    assert {None} == {row.plan.above_capacity for row in plan.hours.months}
    assert None is plan.hours.today.months_until_above_capacity
    assert 2 == len(cluster_tables.months_of_hours(plan).columns)
    assert not any("growth" in line for line in sentences.hours(plan))


def test_windows_of_hours_that_are_missed_are_told_with_the_hour() -> None:
    """A missed window of an hour is named with its hour, counts in the excess, and is part of the balance asked for."""
    problem = build(asked())
    still = assignment_of(problem, [(1,)] * 4 + [(2,)] * 4)
    basis = ScoringBasis.of(problem)
    found = relaxed(basis, still)
    assert ["network_in", "network_in"] == [each.window for each in found]
    assert all(each.reached == pytest.approx(81.8, abs=0.1) for each in found)
    assert list(problem.scenario_names) == [each.hour for each in found]
    assert all(each.why.startswith(f"on {each.hour}: ") for each in found)
    scores = score(basis, still)
    assert scores.excess[0] > 0
    assert (0, 0) == (scores.scenario_excess[0], scores.scenarios_missed[0])


def test_every_candidate_is_replayed_as_the_plan_is() -> None:
    """The winner's row has the plan's hours, and the row for doing nothing has today's."""
    spec = asked(network=3000)
    (swept,) = tried(spec)
    plan = planned([swept]).plan
    rows = {row["candidate"]: row for row in swept.result.scores.to_pylist()}
    assert plan.hours is not None
    for row, state in ((rows[plan.candidates.winner.candidate], plan.hours.plan), (rows[0], plan.hours.today)):
        figures = (state.network_in.bytes_per_sec, state.network_out.bytes_per_sec, state.above_capacity)
        assert figures == (row["worst_hour_in"], row["worst_hour_out"], row["hours_above_capacity"])
        assert row["worst_hour"] == max(figures[:2])
    chosen = next(row for row in plan.pareto if row.chosen)
    assert (plan.hours.plan.network_in.bytes_per_sec, 0) == (chosen.worst_hour, chosen.hours_above_capacity)
    assert {"kafka_classic", "kafka_striped", "optimum"} < {row["strategy"] for row in rows.values()}
    assert all(row["worst_hour"] > 0 for row in rows.values())


def test_for_the_mean_hours_are_judged_and_not_planned_for() -> None:
    """A plan for the mean moves nothing; the columns and the section about hours are there all the same."""
    spec = asked(network=3000)
    assert spec.week is not None
    plan = plan_of(replace(spec, week=replace(spec.week, planned_for=False)))
    assert plan.hours is not None
    assert ((), None, 0, 2) == (
        plan.hours.planned,
        plan.hours.of_mean,
        plan.hours.plan.bytes_moved,
        plan.hours.plan.above_capacity,
    )
    assert sentences.hours(plan)[0].startswith("worst broker in the worst of 168 hours, today → plan: in 3.99 kB/s → ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "moved"),
    [
        (Choice("lowest_worst_hour_within_bytes", 1000), 200),
        (Choice("lowest_worst_hour_within_bytes", 0), 0),
        (Choice("fewest_bytes_within_worst_hour", 3000), 200),
        (Choice("fewest_bytes_within_worst_hour", 4000), 0),
    ],
    ids=lambda each: f"{each.rule}-{each.value}" if isinstance(each, Choice) else None,
)
def test_the_hours_choose(choice: Choice, moved: int) -> None:
    """A choice by hours: the lowest worst hour within some bytes, or the fewest bytes within some worst hour."""
    spec = asked(network=3000)
    plan = plan_of(replace(spec, sweep=replace(spec.sweep, choice=choice)))
    assert (choice.rule, choice.value, moved) == (plan.choice.rule, plan.choice.value, plan.bound.bytes_moved)
    assert "in or out of any broker in any hour of the week" in plan.choice.why


def test_an_hour_that_no_plan_tried_keeps_is_refused_with_its_unit() -> None:
    """The error states the lowest rate that works, for people and in the form that the YAML takes."""
    spec = asked(network=3000)
    told = r"1 B/s is below what each plan tried needs; allowed: at least 2\.19 kB/s \(2194 bytes/s\)"
    with pytest.raises(UnsafePlanError, match=told):
        plan_of(replace(spec, sweep=replace(spec.sweep, choice=Choice("fewest_bytes_within_worst_hour", 1))))


@pytest.mark.slow
def test_hours_above_capacity_are_a_gate() -> None:
    """A plan with two hours above capacity exceeds a limit of 1; without hours or capacities, it can't be judged."""
    of_mean = replace(asked(network=3000), limits=SpecLimits(hours_above_capacity=1))
    assert of_mean.week is not None
    of_mean = replace(of_mean, week=replace(of_mean.week, planned_for=False))
    with pytest.raises(UnsafePlanError, match="the plan comes to 2 hours, allowed: at most 1 hour"):
        plan_of(of_mean)
    (kept,) = plan_of(replace(of_mean, limits=SpecLimits(hours_above_capacity=2))).limits
    assert ("limits.hours_above_capacity", 2, 2, False) == (kept.key, kept.limit, kept.value, kept.crossed)
    unknown = (replace(asked(), limits=of_mean.limits), replace(of_mean, week=None))
    for each in unknown:
        with pytest.raises(UnsafePlanError, match="hours_above_capacity can't be judged, the hours of the week"):
            plan_of(each)


@pytest.mark.slow
def test_the_worst_hour_and_the_p99_of_all_hours_are_gates() -> None:
    """Above the limit the plan is refused, with a rate that works; at that rate it passes."""
    peak, rest = round(1000 * 105 / (100 + 900 / 168)), round(100 * 105 / (100 + 900 / 168))
    spec = asked()
    assert spec.week is not None
    # The plan for the mean moves nothing: each broker has one hour of peaks in its 168 hours.
    spec = replace(spec, week=replace(spec.week, planned_for=False))
    needed = {"worst_hour": 4 * peak, "p99_hour": 4 * rest}
    for name, value in needed.items():
        kept = replace(spec, limits=SpecLimits(**{f"{name}_bytes_per_sec": value}))
        plan = plan_of(kept)
        (row,) = plan.limits
        assert (f"limits.{name}", value, value) == (row.key, row.limit, row.value)
        assert value == getattr(plan.spec.limits, f"{name}_bytes_per_sec")
        crossed = replace(spec, limits=SpecLimits(**{f"{name}_bytes_per_sec": value - 1}))
        with pytest.raises(RefusedPlanError) as refused:
            plan_of(crossed)
        exact = "" if value < 1000 else f" ({value} bytes/s)"
        line = f"limits.{name}: the plan comes to {size(value)}/s{exact}, allowed: at most {as_stated(value - 1)}/s"
        assert line in str(refused.value)
        assert f"raise limits.{name} to " in plan_sections_and_next_steps.if_refused(refused.value.plan)
        with pytest.raises(UnsafePlanError, match=f"limits.{name} can't be judged, the hours of the week are unknown"):
            plan_of(replace(kept, week=None))


def across(traffic: RackTraffic) -> CrossRackSection | None:
    """Three brokers; x-0 is led in rack a and followed in b, x-1 is only in a; the plan makes 2 lead x-0 and have x-1.

    x-0 is written at 100 bytes/s and read at 60, x-1 at 10 and 5. The plan copies 5 GiB between racks.
    """
    spec = spec_of(dict(zip((1, 2, 3), "aba", strict=True)), {"x": [(1, 2), (1, 3)]}, traffic=traffic)
    (topic,) = spec.cluster.topics
    rates = ((100, 60), (10, 5))
    rows = [
        replace(row, bytes_in_per_sec=way_in, bytes_out_per_sec=out)
        for row, (way_in, out) in zip(topic.partitions, rates, strict=True)
    ]
    spec = replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=tuple(rows)),)))
    problem = build(spec)
    return cross_rack(spec, problem, assignment_of(problem, [(2, 1), (1, 2)]), 5 << 30)


def test_traffic_between_racks_is_counted_and_priced() -> None:
    """Followers in other racks fetch all writes; consumers read from leaders, wherever those are."""
    consumers = {"a": 250_000, "b": 750_000}
    found = across(RackTraffic(consumers, cross_rack_per_gib_millionths=1_000_000_000))
    assert found is not None
    # Today consumers in b read everything from a; with the plan, all read x-0 from b and x-1 from a.
    today, plan = 3600 * 65 * 3 // 4, 3600 * (60 + 5 * 3) // 4
    assert (360_000, today) == (found.today.replication, found.today.consumers)
    assert (396_000, plan) == (found.plan.replication, found.plan.consumers)
    money = [round(730.5 * each * 1000 / 2**30, 6) for each in (360_000 + today, 396_000 + plan)]
    assert money == [found.today.money_per_month, found.plan.money_per_month]
    assert ("leader", 5000.0) == (found.fetch_from, found.money_once)


def test_consumers_may_fetch_from_the_nearest_replica() -> None:
    """Consumers in b read locally if b has a replica; consumers in a rack without brokers read all across racks."""
    found = across(RackTraffic({"b": 1_000_000}, "nearest replica"))
    assert found is not None
    assert (3600 * 5, 0) == (found.today.consumers, found.plan.consumers)
    assert (None, None, None) == (found.today.money_per_month, found.plan.money_per_month, found.money_once)
    assert "nearest replica" == found.fetch_from
    elsewhere = across(RackTraffic({"z": 1_000_000}, "nearest replica"))
    assert elsewhere is not None
    assert (3600 * 65, 3600 * 65) == (elsewhere.today.consumers, elsewhere.plan.consumers)


def test_todays_hours_are_those_of_todays_racks() -> None:
    """Consumers in b read from broker 2 until it is in rack a; then they read from the leader, which sends it all."""
    week = WeekOfLoad({("x", 0): 0}, np.array([[10.0], [100.0]]), np.full((2, 1, HOURS_OF_WEEK), [[[10.0]], [[100.0]]]))
    changes = Changes(set_racks=((2, "a"),), rebalance="none")
    spec = spec_of({1: "a", 2: "b"}, {"x": [(1, 2)]}, sizes=50, week=week, changes=changes, sweep=Sweep(candidates=4))
    (topic,) = spec.cluster.topics
    rated = replace(topic, partitions=(replace(topic.partitions[0], bytes_in_per_sec=10, bytes_out_per_sec=100),))
    traffic, growth = RackTraffic({"b": 1_000_000}, "nearest replica"), Monthly((Rate("x", 1_000_000),))
    found = plan_of(replace(spec, cluster=replace(spec.cluster, topics=(rated,)), traffic=traffic, growth=growth)).hours

    assert found is not None
    most = [(each.network_out.broker, each.network_out.bytes_per_sec) for each in (found.today, found.plan)]
    assert [(2, 100), (1, 110)] == most
    assert (200, 220) == (found.months[1].today.bytes_per_sec, found.months[1].plan.bytes_per_sec)


def test_what_consumers_read_across_racks_is_unknown_where_nobody_says_where_they_are() -> None:
    """If nobody says where consumers are, only replication is known; without racks or rates there is no section."""
    found = across(RackTraffic(cross_rack_per_gib_millionths=20_000))
    assert found is not None
    assert (360_000, None) == (found.today.replication, found.today.consumers)
    assert (round(730.5 * 396_000 * 0.02 / 2**30, 6), 0.1) == (found.plan.money_per_month, found.money_once)
    assert found.plan.money_per_month == pytest.approx(0.005388)
    racked = spec_of({1: "a", 2: "b"}, {"x": [(1, 2)]})
    problem = build(racked)
    assert cross_rack(racked, problem, problem.replicas, 0) is None
    assert plan_of(asked()).cross_rack is None


def test_traffic_between_racks_is_told_on_the_screen_where_it_is_asked_about() -> None:
    """If prices or consumers' racks are stated, traffic between racks is on the screen too, else only in reports."""
    spec = spec_of({1: "a", 2: "b"}, {"x": [(1, 2)], "y": [(2, 1)]}, sweep=Sweep(candidates=2))
    rated = tuple(
        replace(topic, partitions=tuple(replace(row, bytes_in_per_sec=10**6) for row in topic.partitions))
        for topic in spec.cluster.topics
    )
    spec = replace(spec, cluster=replace(spec.cluster, topics=rated))
    plan = plan_of(spec)
    said = "from rack to rack, today → plan: replication 7.20 GB → 7.20 GB an hour"
    assert ((said,), ()) == (verdict.cross_rack(plan), verdict.cross_rack(plan, stated=True))
    plan = plan_of(replace(spec, traffic=RackTraffic({"a": 1_000_000}, "nearest replica", 20_000)))
    costs = f"{730.5 * 7.2e9 * 0.02 / 2**30:.2f}"
    assert verdict.cross_rack(plan, stated=True) == (
        f"{said}; consumers (from the nearest replica) 0 B → 0 B an hour; cost {costs} → {costs} a month, "
        "in the currency of prices; 0.00 once for the copies",
        "reads count at the leader for balance.network_out and network out per broker",
    )


@pytest.mark.slow
def test_the_week_is_drawn_and_its_worst_hours_are_told() -> None:
    """The plot has a row for each broker, today and with the plan; a table has the topics of the worst hours."""
    plan = plan_of(asked(network=3000))
    (drawn,) = (each for each in plots.draw(plan, movement(plan)) if each.name == "hours")
    assert 4 == drawn.marks
    # The mouse points at the mark, not at the line below it.
    mark = drawn.svg.index('id="hours-today-1"')
    assert drawn.svg.index("stroke-heat") < mark
    assert 'fill="none"' not in drawn.svg[mark : drawn.svg.index(">", mark)]
    assert "broker 1, today: at most 3.99 kB/s, first on Monday 10:00 Europe/Berlin" in drawn.svg
    assert "broker 2, plan: at most 2.21 kB/s, first on Monday 10:00 Europe/Berlin" in drawn.svg
    assert "hour of the week, Europe/Berlin" in drawn.svg
    table = cluster_tables.worst_hours(plan)
    assert ["today, in", "plan, in"] == [table.columns[0].value(row) for row in table.rows]
    assert ["x 3.99 kB/s", "x 1.99 kB/s, y 200 B/s"] == [table.columns[-1].value(row) for row in table.rows]
    unknown = plan_of(replace(asked(), week=None))
    assert "hours" not in {each.name for each in plots.draw(unknown, movement(unknown))}
    assert not cluster_tables.worst_hours(unknown).rows
