"""The whole of plan.json; and of restart.json, a rolling restart as `planner restart` writes it."""

from typing import Annotated, Final, Literal, Self

import msgspec
from msgspec import structs

from planner.execution.batch_costs_and_risks import RisksSection
from planner.execution.limits_and_safety import LimitRow
from planner.model.document_fields import (
    BrokerId,
    Count,
    InputRow,
    NameText,
    PartitionId,
    Positive,
    Section,
    SentenceText,
    Sha256,
    TopicName,
    doc,
)
from planner.model.file_reading import digest
from planner.model.generated_text import canonical_json
from planner.plan.document import cluster_types, comparison_types, partition_types, request_types
from planner.plan.document.whatif_types import ConsumersSection, FailuresSection, GrowthSection


class Plan(Section, frozen=True, kw_only=True):
    """A plan for an Apache Kafka cluster: what changes, why, in which batches, and what it was compared with.

    Bytes and seconds are integers; broker ids are Kafka's.
    """

    format_version: Annotated[Literal["2.0"], doc("Version of this format; a planner reads its own only.")]
    plan_id: Annotated[Sha256, doc("SHA-256 of the canonical JSON of this document without plan_id.")]
    planner_version: Annotated[
        NameText, doc("Version of the planner that made the plan; it derives the same files from it again.")
    ]
    headline: Annotated[
        NameText,
        doc("What every output begins with: what the plan moves, or that it is only a first step and what is left."),
    ]
    cluster: Annotated[cluster_types.ClusterSection, doc("The cluster.")]
    state: Annotated[
        cluster_types.StateSection,
        doc("The state when the plan was made, from which `planner check` tells what has changed since."),
    ]
    inputs: Annotated[tuple[InputRow, ...], doc("The files the plan was made from, the YAML first.")]
    changes: Annotated[request_types.ChangesSection, doc("The change that was asked for.")]
    spec: Annotated[request_types.SpecSection, doc("What else the YAML asks for, as far as planner resume needs it.")]
    validity: Annotated[
        request_types.ValiditySection | None,
        doc("When the state was captured, and until when the plan may be applied; only if the YAML says so."),
    ] = None
    resumes: Annotated[
        request_types.ResumesSection | None, doc("The interrupted plan that this one finishes; only in such a plan.")
    ] = None
    adopted: Annotated[
        request_types.AdoptedSection | None,
        doc("The reassignment of other origin that this plan carries out; only in a plan made with planner adopt."),
    ] = None
    rack_aware: Annotated[bool, doc("Whether the rack rule was enforced.")]
    complete: Annotated[
        bool, doc("True where the plan does all that is asked for; false where it is only a first step.")
    ]
    unfinished: Annotated[
        request_types.UnfinishedSection | None,
        doc("What a plan within a budget leaves for later steps; null where the plan is complete."),
    ]
    brokers: Annotated[tuple[cluster_types.BrokerRow, ...], doc("Every broker, before and after.")]
    racks: Annotated[
        tuple[cluster_types.RackRow, ...],
        doc("Every rack, before and after, each the sum of its brokers; empty where no broker has one."),
    ]
    topics: Annotated[tuple[cluster_types.TopicRow, ...], doc("Every topic, by name.")]
    partitions: Annotated[
        tuple[partition_types.PartitionRow, ...], doc("The partitions that change, by topic and partition.")
    ]
    new_partitions: Annotated[
        partition_types.NewPartitionsSection | None,
        doc("The partitions that the plan creates before anything is reassigned; null where it creates none."),
    ]
    balance: Annotated[comparison_types.BalanceSection, doc("How even the plan is.")]
    log_dirs: Annotated[
        cluster_types.LogDirsSection | None, doc("The brokers' log dirs; only where balance.log_dirs asks for them.")
    ] = None
    hours: Annotated[
        cluster_types.HoursSection | None,
        doc("The hours of the week, before and after; only where cluster.load has all of them."),
    ] = None
    cross_rack: Annotated[
        cluster_types.CrossRackSection | None,
        doc("Traffic between racks, before and after; only where rates are known and every broker has a rack."),
    ] = None
    terms: Annotated[
        tuple[comparison_types.TermRow, ...],
        doc("What the plan is judged by, in raw units; each term is measured alike in all columns."),
    ]
    bound: Annotated[comparison_types.BoundSection, doc("How near the plan is to the least possible.")]
    choice: Annotated[comparison_types.ChoiceSection, doc("Which plan was chosen, and why.")]
    compared: Annotated[
        tuple[comparison_types.ComparedRow, ...], doc("The plan beside doing nothing and Kafka's own placement.")
    ]
    variants: Annotated[
        tuple[comparison_types.VariantRow, ...],
        doc("The alternatives, changes first, each with its best plan by the rule; empty where there is only one."),
    ]
    pareto: Annotated[
        tuple[comparison_types.ParetoRow, ...],
        doc(
            "This plan, and the valid candidates of all variants that no other beats in both bytes moved and "
            "imbalance; by bytes moved."
        ),
    ]
    budget: Annotated[
        request_types.BudgetSection | None, doc("The budget and what the plan spends of it; null without one.")
    ]
    scenarios: Annotated[
        tuple[comparison_types.ScenarioRow, ...], doc("What the plan is like in each of sweep.scenarios.")
    ]
    candidates: Annotated[comparison_types.CandidatesSection, doc("The sweep that the plan was chosen from.")]
    limits: Annotated[tuple[LimitRow, ...], doc("The limits of the YAML and of disks; what is written keeps all.")]
    risks: Annotated[RisksSection, doc("Which writes are refused while the plan runs.")]
    warnings: Annotated[tuple[SentenceText, ...], doc("What a reviewer should know.")]
    unsafe: Annotated[
        tuple[SentenceText, ...] | None, doc("Why it can't be applied safely; such a plan is shown, and never written.")
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
    execution: Annotated[partition_types.ExecutionSection, doc("How the plan is applied.")]
    batches: Annotated[
        tuple[partition_types.BatchRow, ...],
        doc("The batches in the order to run them; together they are `partitions`."),
    ]

    @property
    def refused(self) -> bool:
        """True where a limit is exceeded or the plan can't be applied safely: it is shown, and not written."""
        return bool(self.unsafe) or any(row.crossed for row in self.limits)

    @property
    def has_something_to_do(self) -> bool:
        """True if the plan changes or creates any partition."""
        return bool(self.partitions or self.new_partitions)

    @property
    def replicas_copied(self) -> int:
        """How many replicas are copied to another broker."""
        return sum(len(row.added) for row in self.partitions)

    @property
    def brokers_down(self) -> list[int]:
        """The brokers that stay and seem to be down: the playbooks start only once all that stay are live."""
        return [broker.id for broker in self.brokers if broker.seems_down and broker.role == "stays"]

    @property
    def new_topics(self) -> tuple[partition_types.NewPartitionsRow, ...]:
        """The topics that get partitions, new ones among them."""
        return self.new_partitions.topics if self.new_partitions else ()

    @property
    def replica_lists(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The replicas of the partitions that it changes or makes, by topic and partition."""
        new_lists = {
            (new.topic, number): replicas
            for new in self.new_topics
            for number, replicas in enumerate(new.replicas, new.partitions_before)
        }
        return {row.key: row.replicas for row in self.partitions} | new_lists

    @property
    def declared_topics(self) -> dict[str, cluster_types.DeclaredTopic]:
        """The topics that Terraform can declare, as they are after the plan, by name."""
        return {topic.name: declared for topic in self.topics if (declared := topic.declared)}

    @property
    def terms_by_name(self) -> dict[str, comparison_types.TermRow]:
        """The terms, each under its name."""
        return {term.name: term for term in self.terms}

    @property
    def own_row(self) -> comparison_types.ComparedRow:
        """The plan itself among those that it is compared with."""
        return next(row for row in self.compared if row.label == comparison_types.THIS_PLAN)

    @property
    def valid_until(self) -> str | None:
        """The moment, in UTC, from which the plan is refused; None where it never is."""
        return self.validity.valid_until if self.validity else None


RESTART_VERSION: Final = "1.2"
# Its own file, at the top of the folder and in the role; and the replica lists that the steps were made for.
RESTART_FILE, STATES_FILE = "restart.json", "states.json"


class TopicPartitions(Section, frozen=True, kw_only=True):
    """Some partitions of one topic."""

    topic: TopicName
    partitions: Annotated[tuple[PartitionId, ...], doc("Partition ids, ascending.")]

    @property
    def names(self) -> tuple[str, ...]:
        """As Kafka's tools print them."""
        return tuple(f"{self.topic}-{each}" for each in self.partitions)


Partitions = tuple[TopicPartitions, ...]


class RestartStepRow(Section, frozen=True, kw_only=True):
    """Brokers that restart together, and the partitions that feel it."""

    number: Annotated[Positive, doc("Its place in the order.")]
    rack: Annotated[str | None, doc("Rack of these brokers; null where a broker has none.")]
    brokers: Annotated[tuple[BrokerId, ...], doc("The brokers that restart together.")]
    apart: Annotated[SentenceText | None, doc("Why the rack's brokers don't all restart together; null where they do.")]
    leaders_moved: Annotated[Count, doc("Partitions that another broker leads during the step.")]
    writes_refused: Annotated[
        Partitions, doc("Partitions that refuse writes with acks=all during the step, not before; offline ones too.")
    ]
    offline: Annotated[Partitions, doc("Partitions that have no leader during the step, and have one before.")]
    unclean: Annotated[Partitions, doc("Partitions that a replica out of sync leads then: records are lost.")]
    one_from_refused: Annotated[
        Partitions,
        doc(
            "Partitions of these brokers that refuse writes with acks=all if another broker fails during the step, by "
            "today's replicas in sync or with all in sync."
        ),
    ]
    one_from_offline: Annotated[
        Partitions,
        doc(
            "Partitions of these brokers that have no leader if another broker fails during the step, by today's "
            "replicas in sync or with all in sync."
        ),
    ]
    elect: Annotated[Partitions, doc("Partitions whose preferred leader is elected after the step: it leads today.")]
    left_with_others: Annotated[
        Count, doc("Partitions led by one of these that isn't the preferred leader: another leads afterwards.")
    ]


class RestartDocument(Section, frozen=True, kw_only=True):
    """The steps of a rolling restart, in order, and what they rest on."""

    format_version: Annotated[Literal["1.2"], doc("Version of this format, major.minor.")]
    planner_version: Annotated[str, doc("Version of the planner that made it.")]
    restart_id: Annotated[Sha256, doc("SHA-256 of all else.")]
    cluster: Annotated[str, doc("Name of the cluster.")]
    bootstrap_servers: Annotated[tuple[str, ...], doc("Brokers to ask first.")]
    kafka_bin_dir: Annotated[str, doc("Folder of Kafka's tools on the admin host.")]
    inputs: Annotated[tuple[InputRow, ...], doc("The files that it was made from.")]
    at_most: Annotated[Positive | None, doc("The most brokers in a step; null for no limit.")]
    partitions: Annotated[Count, doc("Partitions of the cluster.")]
    states_sha256: Annotated[Sha256, doc("SHA-256 of the role's states.json: the replica lists of today.")]
    min_insync_unknown: Annotated[
        tuple[TopicName, ...], doc("Topics whose min.insync.replicas no input states: 1, Kafka's default, counts.")
    ]
    leaderless: Annotated[Partitions, doc("Partitions without a leader today. They don't keep the run from starting.")]
    steps: Annotated[tuple[RestartStepRow, ...], doc("The steps, in order.")]
    notes: Annotated[tuple[SentenceText, ...], doc("What the figures rest on.")]

    def identified(self) -> Self:
        """The same with its id."""
        unnamed = canonical_json(msgspec.to_builtins(structs.replace(self, restart_id="")))
        return structs.replace(self, restart_id=digest(unnamed.encode()))

    def encoded(self) -> bytes:
        """The bytes of restart.json."""
        return canonical_json(msgspec.to_builtins(self)).encode()

    @property
    def refusing(self) -> tuple[RestartStepRow, ...]:
        """The steps in which partitions refuse writes, have no leader, or lose records."""
        return tuple(step for step in self.steps if step.writes_refused or step.offline or step.unclean)
