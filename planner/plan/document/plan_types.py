"""The whole of plan.json."""

from typing import Annotated, Literal

from planner.plan.document.cluster_types import (
    BrokerRow,
    ClusterSection,
    CrossRackSection,
    DeclaredTopic,
    HoursSection,
    InputRow,
    LogDirsSection,
    RackRow,
    StateSection,
    TopicRow,
)
from planner.plan.document.comparison_types import (
    BalanceSection,
    BoundSection,
    CandidatesSection,
    ChoiceSection,
    ComparedRow,
    LimitRow,
    ParetoRow,
    RisksSection,
    ScenarioRow,
    TermRow,
    VariantRow,
)
from planner.plan.document.field_types import Name, Section, Sentence, Sha256, doc
from planner.plan.document.partition_types import (
    BatchRow,
    ExecutionSection,
    NewPartitionsRow,
    NewPartitionsSection,
    PartitionRow,
)
from planner.plan.document.request_types import (
    AdoptedSection,
    BudgetSection,
    ChangesSection,
    ResumesSection,
    SpecSection,
    UnfinishedSection,
    ValiditySection,
)
from planner.plan.document.whatif_types import ConsumersSection, FailuresSection, GrowthSection


class Plan(Section, frozen=True, kw_only=True):
    """A plan for an Apache Kafka cluster: what changes, why, in which batches, and what it was compared with.

    Bytes and seconds are integers; broker ids are Kafka's.
    """

    format_version: Annotated[Literal["2.0"], doc("Version of this format; a planner reads its own only.")]
    plan_id: Annotated[Sha256, doc("SHA-256 of the canonical JSON of this document without plan_id.")]
    planner_version: Annotated[
        Name, doc("Version of the planner that made the plan; it derives the same files from it again.")
    ]
    headline: Annotated[
        Name,
        doc("What every output begins with: what the plan moves, or that it is only a first step and what is left."),
    ]
    cluster: Annotated[ClusterSection, doc("The cluster.")]
    state: Annotated[
        StateSection, doc("The state when the plan was made, from which `planner check` tells what has changed since.")
    ]
    inputs: Annotated[tuple[InputRow, ...], doc("The files the plan was made from, the YAML first.")]
    changes: Annotated[ChangesSection, doc("The change that was asked for.")]
    spec: Annotated[SpecSection, doc("What else the YAML asks for, as far as planner resume needs it.")]
    validity: Annotated[
        ValiditySection | None,
        doc("When the state was captured, and until when the plan may be applied; only if the YAML says so."),
    ] = None
    resumes: Annotated[
        ResumesSection | None, doc("The interrupted plan that this one finishes; only in such a plan.")
    ] = None
    adopted: Annotated[
        AdoptedSection | None,
        doc("The reassignment of other origin that this plan carries out; only in a plan made with planner adopt."),
    ] = None
    rack_aware: Annotated[bool, doc("Whether the rack rule was enforced.")]
    complete: Annotated[
        bool, doc("True where the plan does all that is asked for; false where it is only a first step.")
    ]
    unfinished: Annotated[
        UnfinishedSection | None,
        doc("What a plan within a budget leaves for later steps; null where the plan is complete."),
    ]
    brokers: Annotated[tuple[BrokerRow, ...], doc("Every broker, before and after.")]
    racks: Annotated[
        tuple[RackRow, ...],
        doc("Every rack, before and after, each the sum of its brokers; empty where no broker has one."),
    ]
    topics: Annotated[tuple[TopicRow, ...], doc("Every topic, by name.")]
    partitions: Annotated[tuple[PartitionRow, ...], doc("The partitions that change, by topic and partition.")]
    new_partitions: Annotated[
        NewPartitionsSection | None,
        doc("The partitions that the plan creates before anything is reassigned; null where it creates none."),
    ]
    balance: Annotated[BalanceSection, doc("How even the plan is.")]
    log_dirs: Annotated[
        LogDirsSection | None, doc("The brokers' log dirs; only where balance.log_dirs asks for them.")
    ] = None
    hours: Annotated[
        HoursSection | None, doc("The hours of the week, before and after; only where cluster.load has all of them.")
    ] = None
    cross_rack: Annotated[
        CrossRackSection | None,
        doc("Traffic between racks, before and after; only where rates are known and every broker has a rack."),
    ] = None
    terms: Annotated[
        tuple[TermRow, ...],
        doc("What the plan is judged by, in raw units; each term is measured alike in all columns."),
    ]
    bound: Annotated[BoundSection, doc("How near the plan is to the least possible.")]
    choice: Annotated[ChoiceSection, doc("Which plan was chosen, and why.")]
    compared: Annotated[tuple[ComparedRow, ...], doc("The plan beside doing nothing and Kafka's own placement.")]
    variants: Annotated[
        tuple[VariantRow, ...],
        doc("The alternatives, changes first, each with its best plan by the rule; empty where there is only one."),
    ]
    pareto: Annotated[
        tuple[ParetoRow, ...],
        doc(
            "This plan, and the valid candidates of all variants that no other beats in both bytes moved and "
            "imbalance; by bytes moved."
        ),
    ]
    budget: Annotated[BudgetSection | None, doc("The budget and what the plan spends of it; null without one.")]
    scenarios: Annotated[tuple[ScenarioRow, ...], doc("What the plan is like in each of sweep.scenarios.")]
    candidates: Annotated[CandidatesSection, doc("The sweep that the plan was chosen from.")]
    limits: Annotated[tuple[LimitRow, ...], doc("The limits of the YAML; the plan keeps all of them.")]
    risks: Annotated[RisksSection, doc("Which writes are refused while the plan runs.")]
    warnings: Annotated[tuple[Sentence, ...], doc("What a reviewer should know.")]
    unsafe: Annotated[
        tuple[Sentence, ...] | None, doc("Why it can't be applied safely; such a plan is shown, and never written.")
    ] = None
    failures: Annotated[
        FailuresSection | None,
        doc("What breaks if brokers fail, as planner failures shows it; only where report.failures asks for it."),
    ] = None
    growth: Annotated[
        GrowthSection | None,
        doc("When brokers reach their limits, as planner growth shows it; only where report.growth asks for it."),
    ] = None
    consumers: Annotated[
        ConsumersSection | None,
        doc("Consumer groups, as planner consumers shows them; only where report.consumers asks for it."),
    ] = None
    execution: Annotated[ExecutionSection, doc("How the plan is applied.")]
    batches: Annotated[
        tuple[BatchRow, ...], doc("The batches in the order to run them; together they are `partitions`.")
    ]

    @property
    def new_topics(self) -> tuple[NewPartitionsRow, ...]:
        """The topics that get partitions, new ones among them."""
        return self.new_partitions.topics if self.new_partitions else ()

    @property
    def replica_lists(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The replicas of the partitions that it changes or makes, by topic and partition."""
        made = {
            (new.topic, number): replicas
            for new in self.new_topics
            for number, replicas in enumerate(new.replicas, new.partitions_before)
        }
        return {row.key: row.replicas for row in self.partitions} | made

    @property
    def declared_topics(self) -> dict[str, DeclaredTopic]:
        """The topics that Terraform can declare, as they are after the plan, by name."""
        return {topic.name: declared for topic in self.topics if (declared := topic.declared)}

    @property
    def terms_by_name(self) -> dict[str, TermRow]:
        """The terms, each under its name."""
        return {term.name: term for term in self.terms}

    @property
    def own_row(self) -> ComparedRow:
        """The plan itself among those that it is compared with."""
        return next(row for row in self.compared if row.label == "this plan")

    @property
    def valid_until(self) -> str | None:
        """The moment, in UTC, from which the plan is refused; None where it never is."""
        return self.validity.valid_until if self.validity else None
