"""The change that was asked for, in the YAML's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from planner.plan.document.field_types import (
    LARGEST,
    BrokerId,
    BrokerKey,
    Count,
    Positive,
    Section,
    TopicConfig,
    TopicName,
    doc,
)


class AddBrokerRow(Section, frozen=True, kw_only=True):
    """One broker to add."""

    id: BrokerId
    rack: Annotated[str | None, doc("Its broker.rack; null without one.")]


class ReplicationFactorRow(Section, frozen=True, kw_only=True):
    """One rule that sets a replication factor."""

    topics: Annotated[str, doc("Shell-style pattern of topic names.")]
    replication_factor: Annotated[Positive, doc("Replicas of each partition.")]


class CreateTopicRow(Section, frozen=True, kw_only=True):
    """One topic to create; a key that the YAML doesn't state is left out."""

    name: TopicName
    partitions: Annotated[Positive, doc("Number of partitions.")]
    replication_factor: Annotated[Positive, doc("Replicas of each partition.")]
    config: Annotated[TopicConfig | None, doc("Topic configuration that differs from the brokers' defaults.")] = None
    size: Annotated[Count | None, doc("Expected bytes of one replica of each partition.")] = None
    bytes_in: Annotated[Count | None, doc("Expected bytes a second written to each partition.")] = None
    bytes_out: Annotated[Count | None, doc("Expected bytes a second read from each partition.")] = None


class AddPartitionsRow(Section, frozen=True, kw_only=True):
    """One topic that gets more partitions; a key that the YAML doesn't state is left out."""

    topic: TopicName
    partitions: Annotated[int, Meta(ge=2, le=LARGEST), doc("Number of partitions afterwards, those of today included.")]
    size: Annotated[Count | None, doc("Expected bytes of one replica of each new partition.")] = None
    bytes_in: Annotated[Count | None, doc("Expected bytes a second written to each new partition.")] = None
    bytes_out: Annotated[Count | None, doc("Expected bytes a second read from each new partition.")] = None


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
        Literal["all", "leaders", "none"],
        doc("Which replicas may move although no change forces them to: all, those that even out leaders, or none."),
    ]
