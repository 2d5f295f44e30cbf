"""What was asked for and how much of it the plan does: changes, settings, validity, budget, what is left."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from planner.model.document_fields import (
    LARGEST,
    Apart,
    BrokerId,
    BrokerKey,
    Count,
    LeaderRacksRow,
    PlacementRuleRow,
    Positive,
    ReplicationFactorRow,
    Section,
    Sha256,
    SpecLimits,
    StatedRateRow,
    TopicConfig,
    TopicName,
    UtcTime,
    WindowName,
    doc,
)
from planner.model.spec import Aim, Budget, RackTraffic, Rebalance, Survive


class AddBrokerRow(Section, frozen=True, kw_only=True):
    """One broker to add."""

    id: BrokerId
    rack: Annotated[str | None, doc("Its broker.rack; null without one.")]


class CreateTopicRow(Section, frozen=True, kw_only=True):
    """One topic to create; a key that the YAML doesn't state is left out."""

    name: TopicName
    partitions: Annotated[Positive, doc("Number of partitions.")]
    replication_factor: Annotated[Positive, doc("Replicas of each partition.")]
    config: Annotated[TopicConfig | None, doc("Topic configuration that differs from the brokers' defaults.")] = None
    size: Annotated[Count | None, doc("Expected bytes of one replica of each partition.")] = None
    bytes_in: Annotated[Count | None, doc("Expected bytes per second written to each partition.")] = None
    bytes_out: Annotated[Count | None, doc("Expected bytes per second read from each partition.")] = None


class AddPartitionsRow(Section, frozen=True, kw_only=True):
    """One topic that gets more partitions; a key that the YAML doesn't state is left out."""

    topic: TopicName
    partitions: Annotated[int, Meta(ge=2, le=LARGEST), doc("Number of partitions afterwards, those of today included.")]
    size: Annotated[Count | None, doc("Expected bytes of one replica of each new partition.")] = None
    bytes_in: Annotated[Count | None, doc("Expected bytes per second written to each new partition.")] = None
    bytes_out: Annotated[Count | None, doc("Expected bytes per second read from each new partition.")] = None


class ChangesSection(Section, frozen=True, kw_only=True):
    """The change that was asked for."""

    add_brokers: Annotated[tuple[AddBrokerRow, ...], doc("Brokers to add.")]
    remove_brokers: Annotated[tuple[BrokerId, ...], doc("Brokers to empty.")]
    replace_brokers: Annotated[
        Mapping[BrokerKey, BrokerId], doc("The id of a broker to the id of the one that takes over its replicas.")
    ]
    set_racks: Annotated[Mapping[BrokerKey, str], doc("The id of a broker to its new rack.")]
    set_replication_factor: Annotated[tuple[ReplicationFactorRow, ...], doc("New replication factors.")]
    create_topics: Annotated[tuple[CreateTopicRow, ...], doc("Topics to create.")]
    add_partitions: Annotated[tuple[AddPartitionsRow, ...], doc("Topics that get more partitions.")]
    rebalance: Annotated[
        Rebalance,
        doc(
            "What may change although no other change forces it to: all, only leaders, only partitions that break the "
            "rack rule (racks), or none."
        ),
    ]
    demote_brokers: Annotated[
        tuple[BrokerId, ...] | None, doc("Brokers that lead no partition afterwards; left out without any.")
    ] = None


class SpecTopics(Section, frozen=True, kw_only=True):
    """Which topics may move."""

    include: Annotated[tuple[str, ...], doc("Shell-style patterns of the topics whose replicas may move.")]
    exclude: Annotated[tuple[str, ...], doc("Shell-style patterns of topics that stay although included.")]
    on_brokers: Annotated[
        tuple[BrokerId, ...] | None, doc("Only partitions with a replica on one of these may change.")
    ] = None


class SpecSection(Section, frozen=True, kw_only=True):
    """What else the YAML asks for, as far as the rest of an interrupted plan is made from it (`planner resume`)."""

    topics: Annotated[SpecTopics, doc("Which topics may move.")]
    survive: Annotated[Survive, doc("What may fail without a partition going offline, where that can be.")]
    aims: Annotated[tuple[Aim, ...], doc("What comes after bytes among equally cheap plans, most important first.")]
    limits: Annotated[SpecLimits, doc("The limits, as the YAML sets them.")]
    placement: Annotated[
        tuple[PlacementRuleRow, ...] | None, doc("Which brokers topics may use; left out without such rules.")
    ] = None
    leader_racks: Annotated[
        tuple[LeaderRacksRow, ...] | None, doc("Racks that topics are led in; left out without such rules.")
    ] = None
    apart: Annotated[
        tuple[Apart, ...] | None, doc("Topics that share no broker, or no rack; left out without such rules.")
    ] = None
    together: Annotated[
        tuple[tuple[str, ...], ...] | None,
        doc("Patterns of topics whose partitions with one number have one leader; left out without such rules."),
    ] = None
    racks_as_today: Annotated[
        bool | None, doc("True where partitions may stay spread over racks as they are; left out where not.")
    ] = None
    racks_before: Annotated[
        Mapping[BrokerKey, str | None] | None,
        doc("Today's broker.rack of the brokers that changes.set_racks names, null without one; left out without any."),
    ] = None
    traffic: Annotated[
        RackTraffic | None, doc("Where consumers read, and what that costs; left out if not stated.")
    ] = None
    rates: Annotated[
        tuple[StatedRateRow, ...] | None, doc("The rates that the YAML states; left out where it states none.")
    ] = None
    growth_ppm: Annotated[
        Mapping[TopicName, int] | None,
        doc("Topics that grow, by so many millionths a month; left out unless hours of the week or a limit need it."),
    ] = None


class ValiditySection(Section, frozen=True, kw_only=True):
    """When the state was captured, and until when the plan may be applied."""

    captured_at: Annotated[UtcTime, doc("When the state was captured, in UTC.")]
    valid_for_seconds: Annotated[
        Positive | None, doc("Seconds after that until the plan expires; null where it never does.")
    ]
    valid_until: Annotated[
        UtcTime | None, doc("The moment, in UTC, from which the plan is refused; null where it never is.")
    ]


class DroppedRow(Section, frozen=True, kw_only=True):
    """A partition or a topic of the interrupted plan that is not done any more."""

    topic: TopicName
    partition: Annotated[Count | None, doc("Partition id; null for the new partitions of a topic.")]
    why: Annotated[str, doc("Why it is not done any more.")]


class ResumesSection(Section, frozen=True, kw_only=True):
    """The interrupted plan that this one finishes: same target, from the state that the interrupted run left."""

    plan_id: Annotated[Sha256, doc("The plan_id of that plan.")]
    partitions_there: Annotated[Count, doc("How many of its partitions are already where it wants them.")]
    dropped: Annotated[tuple[DroppedRow, ...], doc("What of it is not done any more, by topic and partition.")]


class AdoptedSection(Section, frozen=True, kw_only=True):
    """The reassignment that this plan carries out, which somebody else made."""

    file: Annotated[str, doc("Name of its file.")]
    sha256: Annotated[Sha256, doc("SHA-256 of its file.")]
    format: Annotated[str, doc("What it is: a reassignment JSON, what --generate prints, proposals, or a plan.")]
    partitions: Annotated[Count, doc("Partitions that it names.")]
    partitions_there: Annotated[Count, doc("How many of them are already as it wants them.")]
    enough_bytes_moved: Annotated[
        Count | None, doc("Bytes that a plan as even as this one copies; null where none was found that is as even.")
    ]
    enough_replicas_moved: Annotated[Count | None, doc("Replicas that that plan copies; null where there is none.")]
    partitions_uneven: Annotated[
        Positive | None,
        doc(
            "Partitions that it doesn't name and that could be spread over the racks more evenly: they stay, and the "
            "bound is for all plans in which such partitions may stay as uneven as they are; left out without any."
        ),
    ] = None


class UnfinishedBrokerRow(Section, frozen=True, kw_only=True):
    """One broker that leaves and still holds something."""

    id: BrokerId
    replicas: Annotated[Count, doc("Replicas that it still holds.")]
    leaders: Annotated[Count, doc("Partitions that it still leads.")]
    size_bytes: Annotated[Count | None, doc("Bytes that it still holds, null where sizes are unknown.")]


class UnfinishedSection(Section, frozen=True, kw_only=True):
    """What a plan within a budget leaves for later steps."""

    limits: Annotated[Budget, doc("What each step may spend.")]
    partitions: Annotated[Count, doc("Partitions that are not yet as the changes ask after this plan.")]
    brokers: Annotated[tuple[UnfinishedBrokerRow, ...], doc("Brokers that leave and are not empty after this plan.")]
    windows: Annotated[tuple[WindowName, ...], doc("Windows asked for that do not hold yet.")]
    bytes_moved: Annotated[
        Count | None, doc("Bytes that doing the rest in one step would copy, null where sizes are unknown.")
    ]
    replicas_moved: Annotated[Count, doc("Replicas that it would copy.")]
    leaders_changed: Annotated[Count, doc("Partitions whose leader it would change.")]
    steps_at_least: Annotated[Positive, doc("The least number of further steps within this budget.")]
    too_large: Annotated[
        Count, doc("How many of the partitions take more than the budget by themselves: no step can move them.")
    ]


class Spent(Section, frozen=True, kw_only=True):
    """What the plan spends of its budget."""

    bytes_moved: Annotated[Count, doc("Bytes copied between brokers.")]
    replicas_moved: Annotated[Count, doc("Replicas copied.")]
    leaders_changed: Annotated[Count, doc("Partitions whose leader changes.")]


class UndoneSection(Section, frozen=True, kw_only=True):
    """What stays undone, and what a second step that does it would move."""

    windows: Annotated[tuple[WindowName, ...], doc("Windows asked for that do not hold yet.")]
    partitions: Annotated[Count, doc("Partitions that a change asks to move and that wait for a later step.")]
    brokers: Annotated[tuple[BrokerId, ...], doc("Brokers that leave, but hold some of those partitions until then.")]
    bytes_moved: Annotated[Count, doc("Bytes that a second step would copy.")]
    replicas_moved: Annotated[Count, doc("Replicas that it would copy.")]
    leaders_changed: Annotated[Count, doc("Partitions whose leader it would change.")]


class BudgetSection(Section, frozen=True, kw_only=True):
    """The budget, and what the plan spends of it."""

    limits: Annotated[Budget, doc("What may be spent.")]
    spent: Annotated[Spent, doc("What the plan spends.")]
    undone: Annotated[UndoneSection, doc("What stays undone, and what a second step that does it would move.")]
