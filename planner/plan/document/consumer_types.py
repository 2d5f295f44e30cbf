"""What the plan means for consumer groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from planner.plan.document.batch_types import TopicPartition
from planner.plan.document.field_types import Count, Number, PartitionId, Section, TopicName, doc


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
        tuple[TopicPartition, ...], doc("The partitions whose racks change, which it sees by client.rack (KIP-881).")
    ]
    topics_with_more_partitions: Annotated[tuple[TopicName, ...], doc("Its topics that get more partitions.")]
    rebalances: Annotated[bool, doc("True where it does.")]


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
