"""What `planner failures`, `planner growth` and `planner consumers` say of a plan, in its own document and report.

`added` puts into plan.json what the YAML's key `report` asks for; `pages` are made of that alone, so that a plan is
rendered to the same bytes wherever it is.
"""

from msgspec import structs

from planner.model.build_problem import assigned
from planner.model.formats import counted
from planner.model.spec import ReportSections, Spec
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import FailuresSection, GrowthSection
from planner.report.view import View
from planner.sweep.choice import chosen
from planner.whatif import consumers_report, failure_rows, failures_report, group_events, growth_forecast, growth_report
from planner.whatif.cluster_states import PLANNED, TODAY
from planner.whatif.consumers_report import ConsumersDocument, ConsumersQuestion
from planner.whatif.failing_brokers import MOST
from planner.whatif.failures_report import FailuresDocument, Subject
from planner.whatif.growth_report import GrowthDocument


def added(spec: Spec, plan: Plan) -> Plan:
    """The plan with the sections that its spec's `report` asks for, and a new id; unchanged where it asks for none.

    Modules with assignors of the user's own must be importable.
    """
    if spec.report == ReportSections():
        return plan
    asked, changed = spec.report, chosen(spec, plan.choice.variant)
    consumers = None
    if asked.consumers:
        groups = group_events.resolve(changed.consumers, changed.cluster.topics)
        question = ConsumersQuestion(changed, groups, {}, replicas_after=consumers_report.replicas_of(plan))
        consumers = consumers_report.section(question)
    told = structs.replace(
        plan,
        failures=_failures(changed, plan) if asked.failures else None,
        growth=_growth(changed, plan, asked.growth_months) if asked.growth_months is not None else None,
        consumers=consumers,
    )
    return codec.identified(told)


def pages(plan: Plan) -> tuple[View, ...]:
    """The pages to fold into the report of a plan, in this order: failures, growth, consumers."""
    found, cluster = list[View](), plan.cluster.name
    if plan.failures:
        shown = failures_report.view(FailuresDocument.of(plan.failures, cluster, plan)).sections
        kinds = ", ".join(failures_report.kind_name(kind.of) for kind in plan.failures.kinds)
        found.append(View(f"What breaks if brokers fail ({kinds})", shown, source="planner failures"))
    if plan.growth:
        shown = growth_report.view(GrowthDocument.of(plan.growth, cluster)).sections
        months = counted(plan.growth.months, "month")
        found.append(View(f"How long the cluster lasts ({months})", shown, source="planner growth"))
    if plan.consumers:
        shown = consumers_report.view(ConsumersDocument.of(plan.consumers, cluster)).sections
        groups = counted(len(plan.consumers.groups), "group")
        found.append(View(f"Consumers ({groups})", shown, source="planner consumers"))
    return tuple(found)


def _failures(spec: Spec, plan: Plan) -> FailuresSection:
    """The document of `planner failures`; of single brokers and racks without each batch, which could be thousands."""
    subject = Subject.of(spec, plan)
    wanted = failure_rows.all_scenarios(subject.problem, spec.report.failures, MOST, spec.sweep.seed)
    study = failure_rows.study(subject.spec, subject.problem, subject.batches, wanted)
    section = failures_report.section(subject, wanted, failure_rows.run(study, wanted))
    both = [
        structs.replace(row, states=tuple(each for each in row.states if each.state in (TODAY, PLANNED)))
        for row in section.scenarios
    ]
    return structs.replace(section, scenarios=tuple(both))


def _growth(spec: Spec, plan: Plan, months: int) -> GrowthSection:
    """The document of `planner growth`, with the plan's own assignment as the planned one.

    Where that lasts, no more brokers are tried.
    """
    base, *others = growth_forecast.cases(spec, months)
    planned = growth_forecast.given(base, assigned(base.forecast.problem, plan.replica_lists))
    cases = [base] if planned["first"] < 0 else [base, *others]
    rows = [planned, *growth_forecast.run(cases[1:])]
    return growth_report.section(spec, cases, growth_forecast.as_it_is(base), rows)
