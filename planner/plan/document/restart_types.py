"""A rolling restart as `planner restart` writes it: steps of brokers, and what each step does to partitions."""

import hashlib
from typing import Annotated, Final, Literal, Self

import msgspec
from msgspec import structs

from planner.model.generated_text import canonical_json
from planner.plan.document.cluster_types import InputRow
from planner.plan.document.field_types import (
    BrokerId,
    Count,
    PartitionId,
    Positive,
    Section,
    Sentence,
    Sha256,
    TopicName,
    doc,
)

FORMAT_VERSION: Final = "1.1"
# Its own file, at the top of the folder and in the role; and the replica lists that the steps were made for.
FILE, STATES = "restart.json", "states.json"


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
    apart: Annotated[Sentence | None, doc("Why the rack's brokers don't all restart together; null where they do.")]
    leaders_moved: Annotated[Count, doc("Partitions that another broker leads during the step.")]
    writes_refused: Annotated[
        Partitions, doc("Partitions that refuse writes with acks=all during the step, not today; offline ones too.")
    ]
    offline: Annotated[Partitions, doc("Partitions that have no leader during the step, and have one today.")]
    unclean: Annotated[Partitions, doc("Partitions that a replica out of sync leads then: records are lost.")]
    one_from_refused: Annotated[
        Partitions, doc("Partitions that refuse writes with acks=all if another broker fails during the step.")
    ]
    one_from_offline: Annotated[
        Partitions, doc("Partitions that have no leader if another broker fails during the step.")
    ]
    elect: Annotated[Partitions, doc("Partitions whose preferred leader is elected after the step: it leads today.")]
    left_with_others: Annotated[
        Count, doc("Partitions led by one of these that isn't the preferred leader: another leads afterwards.")
    ]


class RestartDocument(Section, frozen=True, kw_only=True):
    """The steps of a rolling restart, in order, and what they rest on."""

    format_version: Annotated[Literal["1.1"], doc("Version of this format, major.minor.")]
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
    steps: Annotated[tuple[RestartStepRow, ...], doc("The steps, in order.")]
    notes: Annotated[tuple[Sentence, ...], doc("What the figures rest on.")]

    def identified(self) -> Self:
        """The same with its id."""
        unnamed = canonical_json(msgspec.to_builtins(structs.replace(self, restart_id="")))
        return structs.replace(self, restart_id=hashlib.sha256(unnamed.encode()).hexdigest())

    def encoded(self) -> bytes:
        """The bytes of restart.json."""
        return canonical_json(msgspec.to_builtins(self)).encode()

    @property
    def refusing(self) -> tuple[RestartStepRow, ...]:
        """The steps in which partitions refuse writes, have no leader, or lose records."""
        return tuple(step for step in self.steps if step.writes_refused or step.offline or step.unclean)
