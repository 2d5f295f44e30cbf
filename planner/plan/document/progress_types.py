"""How much of the change the plan does: its end, the plan it resumes, its budget, what it leaves undone."""

from __future__ import annotations

from typing import Annotated

from planner.plan.document.field_types import (
    BrokerId,
    Count,
    Positive,
    Section,
    Sha256,
    TopicName,
    UtcTime,
    WindowName,
    doc,
)


class ValiditySection(Section, frozen=True, kw_only=True):
    """When the state was captured, and until when the plan may be carried out."""

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


class BudgetLimits(Section, frozen=True, kw_only=True):
    """What each step may spend; null means no limit."""

    bytes_moved: Annotated[Count | None, doc("Bytes copied between brokers.")]
    replicas_moved: Annotated[Count | None, doc("Replicas copied.")]
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes.")]


class UnfinishedBrokerRow(Section, frozen=True, kw_only=True):
    """One broker that leaves and still holds something."""

    id: BrokerId
    replicas: Annotated[Count, doc("Replicas that it still holds.")]
    leaders: Annotated[Count, doc("Partitions that it still leads.")]
    size_bytes: Annotated[Count | None, doc("Bytes that it still holds, null where sizes are unknown.")]


class UnfinishedSection(Section, frozen=True, kw_only=True):
    """What a plan within a budget leaves for later steps."""

    limits: Annotated[BudgetLimits, doc("What each step may spend.")]
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

    limits: Annotated[BudgetLimits, doc("What may be spent.")]
    spent: Annotated[Spent, doc("What the plan spends.")]
    undone: Annotated[UndoneSection, doc("What stays undone, and what a second step that does it would move.")]
