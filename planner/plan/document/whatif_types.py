"""Failing brokers, growing topics and consumer groups; each section exists only where `report` asks for it."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from planner.model.document_fields import (
    BrokerId,
    Count,
    Number,
    PartitionId,
    Section,
    SentenceText,
    TopicName,
    TopicPartition,
    doc,
)


class FailedTopicRow(Section, frozen=True, kw_only=True):
    """What the worst failure does to one topic."""

    topic: TopicName
    offline: Annotated[Count, doc("Partitions without a leader.")]
    writes_refused: Annotated[Count, doc("Partitions that refuse writes.")]
    lost: Annotated[Count, doc("Partitions whose data is gone if the disks are.")]


class FailureFigures(Section, frozen=True, kw_only=True):
    """What a failure does to the cluster."""

    offline: Annotated[Count, doc("Partitions without a leader.")]
    unclean: Annotated[Count, doc("Partitions led by a replica that was behind.")]
    writes_refused: Annotated[
        Count, doc("Partitions with fewer live in-sync replicas than min.insync.replicas, offline ones among them.")
    ]
    at_risk: Annotated[Count, doc("Partitions with one live in-sync replica left.")]
    lost: Annotated[Count, doc("Partitions whose data is gone if the disks of what failed are.")]
    lost_bytes: Annotated[Count | None, doc("Bytes of one copy of each of those; null where sizes are unknown.")]
    leaders_moved: Annotated[Count, doc("Partitions that get a different leader.")]
    leaders_most: Annotated[Count | None, doc("Leaders of the living broker that has most; null where none lives.")]
    leaders_most_broker: Annotated[Count | None, doc("That broker; null where none lives.")]
    network_in_most: Annotated[
        Count | None, doc("The most bytes per second that are written to a living broker; null without rates.")
    ]
    network_out_most: Annotated[
        Count | None, doc("The most bytes per second that a living broker sends; null without rates.")
    ]
    size_bytes_most: Annotated[Count | None, doc("The most bytes on a living broker; null where sizes are unknown.")]
    over_capacity: Annotated[
        Count | None,
        doc("Living brokers that have more than their stated disk or network can take; null where none is stated."),
    ]


class WorstFailure(FailureFigures, frozen=True, kw_only=True):
    """The worst set of brokers that can fail together."""

    failed: Annotated[str, doc("Name of the set.")]
    brokers: Annotated[tuple[BrokerId, ...], doc("The brokers that fail.")]
    topics: Annotated[
        tuple[FailedTopicRow, ...], doc("The topics that it hits; empty where batches are looked at together.")
    ]


class FailureStateRow(Section, frozen=True, kw_only=True):
    """All sets of one kind, in one state of the cluster."""

    state: Annotated[
        str, doc("today, batch N, batches (the worst of all batches, for sets of several brokers), or planned.")
    ]
    with_offline: Annotated[Count, doc("Sets that take partitions offline.")]
    with_writes_refused: Annotated[Count, doc("Sets after which writes are refused.")]
    with_lost: Annotated[Count, doc("Sets that lose data, if the disks are gone.")]
    with_over_capacity: Annotated[Count, doc("Sets that leave some broker with more than it can take.")]
    worst: Annotated[WorstFailure, doc("The worst set.")]
    scenarios: Annotated[
        Count | None, doc("Sets that were looked at of brokers that are there in this state; null where not told.")
    ] = None


class FailureKindRow(Section, frozen=True, kw_only=True):
    """One kind of failure."""

    of: Annotated[
        str,
        Meta(pattern="^(brokers|racks|pairs|[0-9]+)$"),
        doc("What fails together: brokers, racks, pairs, or a number of brokers."),
    ]
    scenarios: Annotated[Count, doc("Sets of brokers that were looked at.")]
    possible: Annotated[Count, doc("Sets of brokers that there are.")]
    drawn: Annotated[bool, doc("True where the sets were drawn at random.")]
    confidence: Annotated[
        Number | None, doc("The confidence with which worse_at_most holds; null where nothing was drawn.")
    ]
    worse_at_most: Annotated[Number, doc("The largest share of all sets that may be worse than the worst one seen.")]
    explained: Annotated[str, doc("The same in words.")]
    states: Annotated[tuple[FailureStateRow, ...], doc("Today, each batch, and after the plan.")]


class MovedToRow(Section, frozen=True, kw_only=True):
    """One broker that leads more partitions after a failure."""

    broker: BrokerId
    leaders: Annotated[Count, doc("How many more partitions it leads.")]


class FailureEffectRow(FailureFigures, frozen=True, kw_only=True):
    """One failure in one state of the cluster."""

    state: Annotated[str, doc("today, or planned.")]
    moved_to: Annotated[tuple[MovedToRow, ...], doc("The brokers that lead more partitions then.")]


class FailureRow(Section, frozen=True, kw_only=True):
    """One broker or rack that fails."""

    of: Annotated[Literal["brokers", "racks"], doc("What fails.")]
    failed: Annotated[str, doc("Name of the broker or rack.")]
    brokers: Annotated[tuple[BrokerId, ...], doc("The brokers that fail.")]
    states: Annotated[tuple[FailureEffectRow, ...], doc("Today and after the plan.")]


class FailuresSection(Section, frozen=True, kw_only=True):
    """What breaks if brokers fail, as `planner failures` shows it."""

    batches: Annotated[Count, doc("How many batches of the plan were looked at.")]
    kinds: Annotated[tuple[FailureKindRow, ...], doc("The kinds of failures, in the order asked for.")]
    scenarios: Annotated[
        tuple[FailureRow, ...], doc("Every single broker and rack that can fail, where those were asked for.")
    ]
    notes: Annotated[tuple[SentenceText, ...], doc("What the numbers rest on.")]


class FirstLimit(Section, frozen=True, kw_only=True):
    """Which broker reaches a limit first, and when."""

    month: Annotated[
        Count | None, doc("The first month that begins with a broker above its limit; null where none does.")
    ]
    broker: Annotated[Count | None, doc("The broker that reaches its limit first; null where none does.")]
    limit: Annotated[str | None, doc("Which limit: disk or network; null where none is reached.")]


class GrowthAssignmentRow(FirstLimit, frozen=True, kw_only=True):
    """Today's assignment or the plan's."""

    assignment: Annotated[Literal["today", "as planned"], doc("Which assignment.")]
    feasible: Annotated[bool, doc("True: both keep every rule.")]
    bytes_moved: Annotated[Count, doc("Bytes that it copies.")]


class GrowthLoad(Section, frozen=True, kw_only=True):
    """What a broker holds at the end of all months, and when it reaches its limits."""

    disk_month: Annotated[
        Count | None, doc("The first month that begins with its disk above the limit; null where none does.")
    ]
    network_month: Annotated[
        Count | None, doc("The first month that begins with its network above the limit; null where none does.")
    ]
    size_bytes: Annotated[Count, doc("Bytes after all months.")]
    network_in: Annotated[Count, doc("Bytes per second written to it then.")]
    network_out: Annotated[Count, doc("Bytes per second that it sends then.")]


class GrowthBrokerRow(Section, frozen=True, kw_only=True):
    """One broker."""

    id: BrokerId
    rack: Annotated[str | None, doc("Its broker.rack; null without one.")]
    disk_limit_bytes: Annotated[Count | None, doc("The most bytes that it may hold; null where not stated.")]
    network_limit: Annotated[Count | None, doc("The most bytes per second, each way; null where not stated.")]
    today: Annotated[GrowthLoad | None, doc("With today's assignment; null where the broker is not in it.")]
    planned: Annotated[GrowthLoad | None, doc("With the plan's assignment; null where the broker is not in it.")]


class BrokerClassRow(Section, frozen=True, kw_only=True, rename={"broker_class": "class"}):
    """One class of brokers that could be added."""

    broker_class: Annotated[str, doc("Name of the class.")]
    at_least: Annotated[Count, doc("How many of them all bytes and traffic together take at the least.")]


class GrowthOptionRow(FirstLimit, frozen=True, kw_only=True, rename={"broker_class": "class"}):
    """One option: so many more brokers of a class."""

    option: Annotated[str, doc("Name of the option.")]
    broker_class: Annotated[str, doc("Their class.")]
    added: Annotated[Count, doc("Brokers added.")]
    brokers: Annotated[Count, doc("Brokers in all.")]
    feasible: Annotated[bool, doc("True where a plan keeps every rule.")]
    holds: Annotated[bool, doc("True where they last all months.")]
    fewest: Annotated[bool, doc("True for the fewest of the class that last all months, of those tried.")]
    bytes_moved: Annotated[Count | None, doc("Bytes copied between brokers; null where there is no plan.")]
    replicas_moved: Annotated[Count | None, doc("Replicas copied; null where there is no plan.")]
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes; null where there is no plan.")]
    fullest_percent: Annotated[
        Number | None,
        doc("What the fullest broker holds after all months, in percent of its limit; null where unknown."),
    ]


class SizeRow(FirstLimit, frozen=True, kw_only=True, rename={"broker_class": "class"}):
    """One cluster that could be bought."""

    number: Annotated[Count, doc("Its number, for planner size --row.")]
    broker_class: Annotated[str, doc("The class of brokers.")]
    per_rack: Annotated[Count, doc("How many brokers of the class each rack has.")]
    keeps_others: Annotated[bool, doc("True where today's brokers of other classes stay.")]
    brokers: Annotated[Count, doc("Brokers in all.")]
    added: Annotated[Count, doc("Brokers added.")]
    removed: Annotated[Count, doc("Brokers removed.")]
    price: Annotated[Number | None, doc("Money a month for all brokers; null where the price of any is unknown.")]
    holds: Annotated[bool, doc("True where no limit is reached in all months.")]
    used_percent: Annotated[
        Number | None,
        doc("The largest part of a limit of disk or network that is ever used, in percent; null without a plan."),
    ]
    bytes_moved: Annotated[Count | None, doc("Bytes that its plan copies; null where there is no plan.")]
    least_bytes: Annotated[
        Count | None, doc("Bytes that any plan of the same balance must copy; null where there is no plan.")
    ]
    replicas_moved: Annotated[Count | None, doc("Replicas copied; null where there is no plan.")]
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes; null where there is no plan.")]
    on_front: Annotated[
        bool, doc("True where no other cluster that holds costs less, has more headroom and copies fewer bytes.")
    ]


class HorizonRow(Section, frozen=True, kw_only=True):
    """What it takes to last so long."""

    months: Annotated[Count, doc("Months to last.")]
    number: Annotated[Count | None, doc("The cluster with the lowest price that does; null where none does.")]


class SizesDocument(Section, frozen=True, kw_only=True):
    """What `planner size` shows."""

    format_version: str
    cluster: str
    months: Annotated[Count, doc("How many months the cluster has to last.")]
    today: Annotated[FirstLimit, doc("What today's brokers and assignment reach first.")]
    sizes: Annotated[tuple[SizeRow, ...], doc("Every cluster that could be bought, in the order of the YAML.")]
    chosen: Annotated[Count | None, doc("The one with the lowest price that holds; null where none does.")]
    horizons: Annotated[tuple[HorizonRow, ...], doc("The cheapest cluster for each number of months.")]
    notes: Annotated[tuple[SentenceText, ...], doc("What the numbers rest on.")]


class GrowthTopicRow(Section, frozen=True, kw_only=True):
    """One topic that grows."""

    topic: TopicName
    per_month_percent: Annotated[Number | None, doc("Growth a month, in percent; null where unknown, counted as none.")]
    size: Annotated[str, doc("What its size follows: its traffic, its retention and so on.")]
    size_bytes: Annotated[Count, doc("Bytes of one copy today.")]
    size_bytes_then: Annotated[Count, doc("Bytes of one copy after all months.")]


class GrowthSection(Section, frozen=True, kw_only=True):
    """When brokers reach their limits, as `planner growth` shows it."""

    months: Annotated[Count, doc("How many months ahead it looks.")]
    assignments: Annotated[tuple[GrowthAssignmentRow, ...], doc("Today's assignment and the plan's.")]
    brokers: Annotated[tuple[GrowthBrokerRow, ...], doc("Every broker, by id.")]
    classes: Annotated[tuple[BrokerClassRow, ...], doc("Classes of brokers that could be added.")]
    options: Annotated[tuple[GrowthOptionRow, ...], doc("Plans with more brokers of a class.")]
    topics: Annotated[tuple[GrowthTopicRow, ...], doc("Every topic, by name.")]
    notes: Annotated[tuple[SentenceText, ...], doc("What the numbers rest on.")]


class OwnedRow(Section, frozen=True, kw_only=True):
    """What a member owns of one topic."""

    topic: TopicName
    partitions: Annotated[tuple[PartitionId, ...], doc("Partition ids.")]


class MemberRow(Section, frozen=True, kw_only=True):
    """One member of a group."""

    id: Annotated[str, doc("Its member id.")]
    rack: Annotated[str | None, doc("Its client.rack; null without one.")]
    topics: Annotated[tuple[TopicName, ...], doc("The topics that it subscribes to.")]
    partitions: Annotated[Count, doc("How many partitions it owns.")]
    load: Annotated[Count, doc("What it reads, in the section's unit.")]
    read_in_rack: Annotated[Count | None, doc("How many of those have a replica in its rack; null without a rack.")]
    owns: Annotated[tuple[OwnedRow, ...], doc("The partitions that it owns, by topic.")]


class MemberSpread(Section, frozen=True, kw_only=True):
    """How even a group's members are loaded, in the section's unit."""

    most_partitions: Annotated[Count, doc("Partitions of the member with most.")]
    fewest_partitions: Annotated[Count, doc("Partitions of the member with fewest.")]
    most_load: Annotated[Count, doc("Load of the member with most.")]
    fewest_load: Annotated[Count, doc("Load of the member with least.")]
    total_load: Annotated[Count, doc("Load of all members.")]
    above_share_percent: Annotated[Number, doc("How far the most is above an equal share, in percent.")]


class GroupEventRow(Section, frozen=True, kw_only=True):
    """What one event, such as a member that leaves, does to a group."""

    what: Annotated[str, doc("What happens.")]
    moved: Annotated[Count, doc("Partitions that get another owner.")]
    moved_load: Annotated[Count, doc("Their load.")]
    from_staying: Annotated[Count, doc("Partitions among those that are taken from members that stay.")]
    paused: Annotated[Count, doc("Partitions that nobody reads meanwhile.")]
    new: Annotated[Count, doc("Partitions that nobody owned before.")]
    spread: Annotated[MemberSpread, doc("How even it is then.")]


class AssignorRow(Section, frozen=True, kw_only=True):
    """The group under one assignor, from its beginning."""

    assignor: Annotated[str, doc("Name of the assignor.")]
    spread: Annotated[MemberSpread, doc("How even it is.")]
    most_moved: Annotated[Count, doc("The most partitions that one member leaving or joining moves.")]
    most_paused: Annotated[Count, doc("The most partitions that one member leaving or joining pauses.")]
    cooperative: Annotated[bool, doc("True where only partitions that move are paused.")]


class RebalancesSection(Section, frozen=True, kw_only=True):
    """Whether the plan makes the group rebalance, and why."""

    partitions_in_other_racks: Annotated[
        tuple[TopicPartition, ...],
        doc(
            "The partitions whose racks change: seen by its members with a client.rack (KIP-881), or, in a group "
            "that the broker assigns, by the coordinator, which also sees replicas that are being added (KIP-1101)."
        ),
    ]
    topics_with_more_partitions: Annotated[tuple[TopicName, ...], doc("Its topics that get more partitions.")]
    rebalances: Annotated[bool, doc("True where it does.")]
    paused: Annotated[Count, doc("Partitions that nobody reads meanwhile.")]


class GroupRow(Section, frozen=True, kw_only=True):
    """One consumer group."""

    group: Annotated[str, doc("Its group.id.")]
    assignor: Annotated[str, doc("Name of its assignor.")]
    observed: Annotated[bool, doc("True where a state file says who owns what.")]
    as_assigned: Annotated[bool, doc("True where its assignor would change nothing.")]
    topics: Annotated[Mapping[str, Count], doc("Topic name to the number of its partitions.")]
    differing: Annotated[str, doc("How subscriptions differ; empty where they do not.")]
    members: Annotated[tuple[MemberRow, ...], doc("Its members.")]
    spread: Annotated[MemberSpread, doc("How even it is.")]
    events: Annotated[tuple[GroupEventRow, ...], doc("What happens if members leave or join.")]
    assignors: Annotated[tuple[AssignorRow, ...], doc("The group under each assignor, from its beginning.")]
    rebalances: Annotated[RebalancesSection, doc("Whether the plan makes the group rebalance.")]


class PartitionCountRow(Section, frozen=True, kw_only=True):
    """One topic that gets more partitions."""

    topic: TopicName
    before: Annotated[Count, doc("Partitions today.")]
    after: Annotated[Count, doc("Partitions after the plan.")]
    keys_moved_percent: Annotated[Number, doc("How many of all keys go to another partition, in percent.")]
    keys: Annotated[tuple[str, ...], Meta(max_length=0), doc("Keys that were asked about: none in a plan.")]


class ConsumersSection(Section, frozen=True, kw_only=True):
    """Consumer groups, as `planner consumers` shows them."""

    unit: Annotated[
        Literal["bytes/s", "bytes", "partitions"], doc("What a partition weighs, and so the unit of every load here.")
    ]
    groups: Annotated[tuple[GroupRow, ...], doc("The groups, by name.")]
    partition_counts: Annotated[tuple[PartitionCountRow, ...], doc("Topics that get more partitions.")]
