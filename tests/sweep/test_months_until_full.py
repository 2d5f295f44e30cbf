"""The months until a disk is full, for every candidate: as in `planner growth`, as a rule and as a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import balance_of, no_racks, spec_of

from planner.model.build_problem import topics_after
from planner.model.document_fields import SpecLimits
from planner.model.errors import UnsafePlanError
from planner.model.growth_forecast import forecast
from planner.model.problem import IntArray, Problem
from planner.model.spec import Choice, Monthly, Rate, ReportSections, Spec, Sweep
from planner.plan.build import RefusedPlanError, planned
from planner.plan.document.plan_types import Plan
from planner.report import plan_sections_and_next_steps, summary
from planner.report.view import Quantity
from planner.sweep import evaluate
from planner.sweep.choice import Swept, alternatives
from planner.whatif import brokers_for_growth


def asked(*rates: Rate, disk: int | None = 1000, **rest: object) -> Spec:
    """Two brokers with four partitions of 50 bytes each; topic x doubles each month, topic y stays the same.

    All of x is on broker 1, and all of y on broker 2: 200 × 2³ exceeds the disk of 1000; with half of x on each broker,
    100 × 2⁴ + 100 does.
    """
    rows = {"x": [(1,)] * 4, "y": [(2,)] * 4}
    sweep = Sweep(candidates=40, choice=rest.pop("choice", Choice()))
    spec = spec_of(no_racks(1, 2), rows, sizes=50, balance=balance_of("1", "1", "none"), sweep=sweep, **rest)
    brokers = tuple(replace(each, disk_bytes=disk) for each in spec.cluster.brokers)
    growth = Monthly(rates or (Rate("x", 1_000_000), Rate("*", 0)))
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers), growth=growth)


def tried(spec: Spec) -> list[Swept]:
    """A sweep in this process."""
    return [
        Swept(each.name, each.spec, each.problem, evaluate.run(each.problem, each.candidates))
        for each in alternatives(spec)
    ]


def plan_of(spec: Spec) -> Plan:
    """The plan of a sweep in this process."""
    return planned(tried(spec)).plan


def slowly(spec: Spec, problem: Problem, assignment: IntArray, months: int) -> int:
    """The first month with a broker that is too full, counted replica by replica."""
    ahead = forecast(spec, problem, topics_after(spec))
    for month in range(months + 1):
        sizes, held = ahead.in_month(month).size_bytes.tolist(), [0] * len(problem.broker_ids)
        for size, brokers in zip(sizes, assignment.tolist(), strict=True):
            for broker in brokers:
                held[broker] += size if broker >= 0 else 0
        limits = problem.disk_limit_bytes.tolist()
        if any(0 <= limit < bytes_held for bytes_held, limit in zip(held, limits, strict=True)):
            return month
    return months + 1


@pytest.mark.slow
@pytest.mark.parametrize("months", [None, 2, 30])
def test_every_candidate_lasts_as_long_as_growth_says(months: int | None) -> None:
    """Months are the same as counted one by one and as in `planner growth`, for every strategy."""
    spec = asked(report=ReportSections(growth_months=months))
    ahead = months or 12
    (alternative,) = alternatives(spec)
    problem, every = alternative.problem, alternative.candidates
    rows = evaluate.run(problem, every).scores.to_pylist()
    (case, *_) = brokers_for_growth.cases(spec, ahead)
    assert {"unchanged", "kafka_classic", "kafka_striped", "optimum"} < {row["strategy"] for row in rows}
    for row in rows:
        assignment = evaluate.propose(problem, every, row["candidate"]).assignment
        first = brokers_for_growth.row_of(case, assignment)["first"]
        assert (ahead + 1 if first < 0 else first) == row["months_until_full"]
        assert slowly(spec, problem, assignment, ahead) == row["months_until_full"]
    assert min(3, ahead + 1) == rows[0]["months_until_full"]
    assert min(4, ahead + 1) == max(row["months_until_full"] for row in rows)


@pytest.mark.slow
def test_without_growth_sizes_or_disks_months_are_unknown() -> None:
    """Without growth, sizes or disks, months are -1 in the table and null in the plan."""
    spec = asked()
    unsized = replace(spec.cluster, sizes_known=False)
    for each in (replace(spec, growth=Monthly()), asked(disk=None), replace(spec, cluster=unsized)):
        (swept,) = tried(each)
        assert {-1} == set(swept.result.scores["months_until_full"].to_pylist())
        assert {None} == {row.months_until_full for row in planned([swept]).plan.compared}


def test_the_plan_tells_months_beside_what_it_is_compared_with() -> None:
    """Doing nothing fills a disk in the third month, the best placement in the fourth."""
    plan = plan_of(asked())
    months = {row.label: row.months_until_full for row in plan.compared}
    assert (3, 4) == (months["do nothing"], max(each or 0 for each in months.values()))


@pytest.mark.parametrize(
    ("choice", "moved", "why"),
    [
        (Choice("most_months_within_bytes", 1000), 200, "the first disk is full in month 4"),
        (Choice("most_months_within_bytes", 100), 0, "the first disk is full in month 3"),
        (Choice("fewest_bytes_lasting_months", 4), 200, "with no disk full before month 4: 200 B, the first"),
        (Choice("fewest_bytes_lasting_months", 3), 0, "with no disk full before month 3: 0 B, the first"),
    ],
)
def test_the_months_choose(choice: Choice, moved: int, why: str) -> None:
    """A choice by months: the most months within some bytes, or the fewest bytes that last some months."""
    plan = plan_of(asked(choice=choice))
    assert (choice.rule, choice.value, moved) == (plan.choice.rule, plan.choice.value, plan.bound.bytes_moved)
    assert why in plan.choice.why


def test_disks_that_last_are_told_and_what_is_too_much_is_refused() -> None:
    """A rule may look further ahead than the report; a number of months that no plan reaches is refused."""
    slow = asked(Rate("*", 0), choice=Choice("fewest_bytes_lasting_months", 20))
    assert "no disk is full within 20 months" in plan_of(slow).choice.why
    with pytest.raises(UnsafePlanError, match="plans tried have a full disk before month 20; allowed: at most 4"):
        plan_of(asked(choice=Choice("fewest_bytes_lasting_months", 20)))


@pytest.mark.slow
def test_months_are_a_gate() -> None:
    """The limit on months is a minimum: the error suggests a lower one, not a higher one."""
    plan = plan_of(asked(limits=SpecLimits(months_until_full=3)))
    kept = next(row for row in plan.limits if row.key == "limits.months_until_full")
    assert (3, 3, False) == (kept.limit, kept.value, kept.crossed)
    row = next(row for row in summary.measures(plan).rows if row.name == "months until a disk is full")
    assert (Quantity(3, "months"), "3", "at least 3", "") == (row.today, row.plan, row.allowed, row.remark)
    with pytest.raises(RefusedPlanError) as refused:
        plan_of(asked(limits=SpecLimits(months_until_full=4, replicas_moved=100)))
    assert "limits.months_until_full: the plan lasts 3 months, allowed: at least 4 months" in str(refused.value)
    assert "written: lower limits.months_until_full to 3, or ask" in plan_sections_and_next_steps.if_refused(
        refused.value.plan
    )
    unknown = (replace(asked(), growth=Monthly()), asked(disk=None))
    for each in unknown:
        with pytest.raises(UnsafePlanError, match="months_until_full can't be judged, how topics grow or a broker's"):
            plan_of(replace(each, limits=SpecLimits(months_until_full=4)))


@pytest.mark.slow
def test_a_shrinking_topic_may_be_too_large_for_now_alone() -> None:
    """Each month counts: a topic that shrinks, but is too large today, is full in month 0."""
    (swept,) = tried(asked(Rate("*", -500_000), disk=150))
    months = np.asarray(swept.result.scores["months_until_full"])
    assert {0} == set(months.tolist())
