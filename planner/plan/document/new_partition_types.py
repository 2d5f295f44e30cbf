"""The partitions that the plan creates."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from planner.plan.document.field_types import Count, Positive, Replicas, Section, TopicConfig, TopicName, doc


class NewPartitionsRow(Section, frozen=True, kw_only=True):
    """One topic that gets partitions."""

    topic: TopicName
    partitions_before: Annotated[Count, doc("Partitions that it has today; 0 for a topic to be created.")]
    partitions: Annotated[Positive, doc("Number of partitions afterwards.")]
    replication_factor: Annotated[Positive, doc("Replicas of each new partition.")]
    config: Annotated[TopicConfig, doc("Topic configuration that differs from the brokers' defaults.")]
    replicas: Annotated[
        tuple[Replicas, ...], Meta(min_length=1), doc("The replicas of each new partition, by partition id.")
    ]
    replica_assignment: Annotated[
        str,
        Meta(pattern="^[0-9]+([:,][0-9]+)*$"),
        doc(
            "The replicas of all partitions, those of today included, in the form of kafka-topics --replica-assignment."
        ),
    ]


class PlacementRow(Section, frozen=True, kw_only=True):
    """One placement of the new partitions; spreads are the most minus the fewest on a broker."""

    label: Annotated[str, doc("What made the placement.")]
    placements: Annotated[Positive, doc("How many placements of this kind were made.")]
    replica_spread: Annotated[Count, doc("Spread of replicas.")]
    leader_spread: Annotated[Count, doc("Spread of preferred leaders.")]
    topic_replica_spread: Annotated[Count, doc("Spread of replicas within a topic, for the worst of these topics.")]
    topic_leader_spread: Annotated[
        Count, doc("Spread of preferred leaders within a topic, for the worst of these topics.")
    ]


class NewPartitionsSection(Section, frozen=True, kw_only=True):
    """The partitions that the plan creates before anything is reassigned."""

    topics: Annotated[tuple[NewPartitionsRow, ...], Meta(min_length=1), doc("The topics, by name.")]
    compared: Annotated[
        tuple[PlacementRow, ...],
        Meta(min_length=1),
        doc("How even the cluster is with this plan's placement, and with those of Kafka's own rules."),
    ]
