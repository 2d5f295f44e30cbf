"""What is carried out: partitions that change, in which batches and how fast, and partitions that are created."""

from typing import Annotated

from msgspec import Meta

from planner.model.cluster import ANY, Reason
from planner.model.document_fields import (
    BrokerId,
    Count,
    DerivedRow,
    LogDirPaths,
    Positive,
    Replicas,
    Section,
    TopicConfig,
    TopicName,
    TopicPartition,
    doc,
)
from planner.model.spec import BatchRules


class StepRow(TopicPartition, frozen=True, kw_only=True):
    """One reassignment of one batch."""

    replicas_before: Annotated[Replicas, doc("Replicas before, preferred leader first.")]
    replicas: Annotated[Replicas, doc("Replicas after, preferred leader first.")]
    log_dirs_before: Annotated[
        LogDirPaths | None,
        doc(
            "For the way back, the log dir of each of replicas_before that goes or moves to another log dir of "
            "its broker; any for the others. Only where log dirs are planned."
        ),
    ] = None
    log_dirs: Annotated[
        LogDirPaths | None,
        doc(
            "The log dir of each of replicas that comes to it; any where it stays, or Kafka chooses. Only where "
            "log dirs are planned."
        ),
    ] = None

    @property
    def added(self) -> frozenset[int]:
        """The brokers that copy the partition."""
        return frozenset(self.replicas).difference(self.replicas_before)

    @property
    def dropped(self) -> frozenset[int]:
        """The brokers that hold it no longer afterwards."""
        return frozenset(self.replicas_before).difference(self.replicas)

    @property
    def reassigned(self) -> bool:
        """True where Kafka has to be told: the replica list differs, be it only in its order, or log dirs do."""
        return self.replicas != self.replicas_before or any(path != ANY for path in self.log_dirs or ())


class PartitionRow(StepRow, frozen=True, kw_only=True):
    """One partition that changes, from today to the end of the plan.

    The two replica lists are equal where only its leader is elected, or only its log dirs change.
    """

    leader_before: Annotated[BrokerId | None, doc("Today's leader; null without one.")]
    size_bytes: Annotated[Count, doc("Bytes of one replica.")]
    reason: Annotated[Reason, doc("Why it changes: the first reason that applies.")]
    bytes_in_per_sec: Annotated[
        Positive | None,
        doc("Bytes per second that producers write to it, which take their part of the throttle; only where known."),
    ] = None

    @property
    def elects(self) -> bool:
        """True where the preferred leader isn't the one that leads today, unless only log dirs change."""
        return self.leader_before != self.replicas[0] and self.reason is not Reason.BALANCE_LOG_DIRS


class ExecutionSection(Section, frozen=True, kw_only=True):
    """How the plan is applied."""

    throttle_bytes_per_sec: Annotated[Positive | None, doc("Bytes per second on each broker; null without a throttle.")]
    seconds_at_throttle: Annotated[
        Count | None,
        doc("The least seconds that copying takes, all batches one after the other; null without a throttle or sizes."),
    ]
    kafka_bin_dir: Annotated[str, doc("Folder of Kafka's tools on the admin host.")]
    batches: Annotated[BatchRules, doc("What one batch may hold.")]
    derived: Annotated[
        tuple[DerivedRow, ...], doc("The settings that the YAML leaves out, with the values that they take.")
    ]


class FullestBroker(Section, frozen=True, kw_only=True):
    """The broker with the fullest disk while a batch runs.

    By its share of disk_bytes where any broker states that, else by bytes.
    """

    id: BrokerId
    peak_size_bytes: Annotated[Count, doc("Bytes that it holds then.")]
    disk_bytes: Annotated[Positive | None, doc("Bytes that its log dirs have room for; null where not stated.")]


class BatchRow(Section, frozen=True, kw_only=True):
    """One batch: reassignments that run together, then preferred leader elections."""

    number: Annotated[Positive, doc("Number of the batch, from 1.")]
    partitions: Annotated[
        tuple[StepRow, ...], doc("Reassignments, by topic and partition; a partition may take several batches.")
    ]
    elect: Annotated[
        tuple[TopicPartition, ...],
        doc("Partitions whose preferred leader is elected when the reassignments are complete."),
    ]
    bytes_moved: Annotated[Count, doc("Bytes copied between brokers.")]
    replicas_moved: Annotated[Count, doc("Replicas that a broker has to copy.")]
    seconds_at_throttle: Annotated[
        Count | None,
        doc(
            "The least seconds that copying takes, with what producers write meanwhile where that is known; null "
            "without a throttle or sizes."
        ),
    ]
    fullest_broker: Annotated[
        FullestBroker | None, doc("The broker with the fullest disk while the batch runs; null without sizes.")
    ]
    leaderless: Annotated[
        bool,
        doc(
            "True where it holds partitions without a leader: nothing of them can be copied until one of their "
            "replicas is back."
        ),
    ]


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


class PlacementRow(Section, frozen=True):
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
