"""What breaks if brokers fail, today, during each batch and afterwards."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from planner.plan.document.field_types import BrokerId, Count, Number, Section, Sentence, TopicName, doc


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
    leaders_moved: Annotated[Count, doc("Partitions that get another leader.")]
    leaders_most: Annotated[Count | None, doc("Leaders of the living broker that has most; null where none lives.")]
    leaders_most_broker: Annotated[Count | None, doc("That broker; null where none lives.")]
    network_in_most: Annotated[
        Count | None, doc("The most bytes a second that are written to a living broker; null without rates.")
    ]
    network_out_most: Annotated[
        Count | None, doc("The most bytes a second that a living broker sends; null without rates.")
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
    notes: Annotated[tuple[Sentence, ...], doc("What the numbers rest on.")]
