"""What `planner failures`, `planner growth` and `planner consumers` say of a plan, in its own document and report.

`added` puts into plan.json what the YAML's key `report` asks for; `pages` are made of that alone, so that a plan is
rendered to the same bytes wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import structs

from planner.model.build_problem import today
from planner.model.formats import counted
from planner.model.problem import IntArray, Problem
from planner.model.spec import ReportSections, Spec
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import ConsumersSection, FailuresSection, GrowthSection
from planner.report.view import View
from planner.sweep.variants import chosen
from planner.whatif.consumers import consumers_summary, consumers_view, group_loads
from planner.whatif.consumers.consumers_summary import ConsumersDocument, ConsumersQuestion
from planner.whatif.failures import failure_rows, failures_summary, failures_view
from planner.whatif.failures.cluster_states import PLANNED, TODAY
from planner.whatif.failures.failing_brokers import MOST
from planner.whatif.failures.failures_summary import FailuresDocument, Subject
from planner.whatif.growth import growth_summary, growth_view, lifetime
from planner.whatif.growth.growth_summary import GrowthDocument


def added(spec: Spec, plan: Plan) -> Plan:
    """The plan with what its spec's `report` asks for, and the id that it has then; as it is where that is nothing.

    Modules with assignors of the user's own must be importable.
    """
    if spec.report == ReportSections():
        return plan
    asked, changed = spec.report, chosen(spec, plan.choice.variant)
    told = structs.replace(
        plan,
        failures=_failures(changed, plan) if asked.failures else None,
        growth=_growth(changed, plan, asked.growth_months) if asked.growth_months is not None else None,
        consumers=_consumers(changed, plan) if asked.consumers else None,
    )
    return codec.identified(told)


def pages(plan: Plan) -> tuple[View, ...]:
    """The pages to fold into the report of a plan."""
    return tuple(_pages(plan))


def _consumers(spec: Spec, plan: Plan) -> ConsumersSection:
    groups = group_loads.resolve(spec.consumers, spec.cluster.topics)
    question = ConsumersQuestion(spec, groups, {}, (), consumers_summary.replicas_of(plan))
    return consumers_summary.section(question)


def _failures(spec: Spec, plan: Plan) -> FailuresSection:
    """The document of `planner failures`; of single brokers and racks without each batch, which could be thousands."""
    subject = Subject.of(spec, plan)
    wanted = failure_rows.all_scenarios(subject.problem, spec.report.failures, MOST, spec.sweep.seed)
    study = failure_rows.study(subject.spec, subject.problem, subject.batches, wanted)
    section = failures_summary.section(subject, wanted, failure_rows.run(study, wanted))
    both = [
        structs.replace(row, states=tuple(each for each in row.states if each.state in (TODAY, PLANNED)))
        for row in section.scenarios
    ]
    return structs.replace(section, scenarios=tuple(both))


def _growth(spec: Spec, plan: Plan, months: int) -> GrowthSection:
    """The document of `planner growth`, with the plan's own assignment as the planned one.

    Where that lasts, no more brokers are tried.
    """
    base, *others = lifetime.cases(spec, months)
    planned = lifetime.given(base, assignment(base.forecast.problem, plan))
    cases = [base] if planned["first"] < 0 else [base, *others]
    rows = [planned, *lifetime.run(cases[1:])]
    return growth_summary.section(spec, cases, lifetime.as_it_is(base), rows)


def assignment(problem: Problem, plan: Plan) -> IntArray:
    """(P, W): where replicas are once a plan is carried out."""
    at = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}
    names = (problem.topic_names[topic] for topic in problem.topic_of.tolist())
    row_of = {key: row for row, key in enumerate(zip(names, problem.partition_ids.tolist(), strict=True))}
    lists = {each.key: each.replicas for each in plan.partitions}
    for new in plan.new_topics:
        lists |= {(new.topic, new.partitions_before + n): each for n, each in enumerate(new.replicas)}
    found = today(problem)
    width = max(found.shape[1], max(map(len, lists.values()), default=1))
    found = np.pad(found, ((0, 0), (0, width - found.shape[1])), constant_values=-1)
    for key, replicas in lists.items():
        found[row_of[key]] = [*(at[broker] for broker in replicas), *[-1] * (width - len(replicas))]
    return found


def _pages(plan: Plan) -> Iterator[View]:
    if plan.failures:
        failures = failures_view.view(FailuresDocument.of(plan.failures, plan.cluster.name, plan))
        kinds = ", ".join(failures_view.kind_name(kind.of) for kind in plan.failures.kinds)
        yield View(f"What breaks if brokers fail ({kinds})", failures.sections, source="planner failures")
    if plan.growth:
        growth = growth_view.view(GrowthDocument.of(plan.growth, plan.cluster.name))
        months = counted(plan.growth.months, "month")
        yield View(f"How long the cluster lasts ({months})", growth.sections, source="planner growth")
    if plan.consumers:
        consumers = consumers_view.view(ConsumersDocument.of(plan.consumers, plan.cluster.name))
        groups = counted(len(plan.consumers.groups), "group")
        yield View(f"Consumers ({groups})", consumers.sections, source="planner consumers")
