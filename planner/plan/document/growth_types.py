"""When brokers reach their limits if topics grow."""

from __future__ import annotations

from typing import Annotated, Literal

from planner.plan.document.field_types import BrokerId, Count, Number, Section, Sentence, TopicName, doc


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
    network_in: Annotated[Count, doc("Bytes a second written to it then.")]
    network_out: Annotated[Count, doc("Bytes a second that it sends then.")]


class GrowthBrokerRow(Section, frozen=True, kw_only=True):
    """One broker."""

    id: BrokerId
    rack: Annotated[str | None, doc("Its broker.rack; null without one.")]
    disk_limit_bytes: Annotated[Count | None, doc("The most bytes that it may hold; null where not stated.")]
    network_limit: Annotated[Count | None, doc("The most bytes a second, each way; null where not stated.")]
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
    fewest: Annotated[bool, doc("True for the fewest of the class that last all months.")]
    bytes_moved: Annotated[Count | None, doc("Bytes copied between brokers; null where there is no plan.")]
    replicas_moved: Annotated[Count | None, doc("Replicas copied; null where there is no plan.")]
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes; null where there is no plan.")]
    fullest_percent: Annotated[
        Number | None,
        doc("What the fullest broker holds after all months, in percent of its limit; null where unknown."),
    ]


class GrowthTopicRow(Section, frozen=True, kw_only=True):
    """One topic that grows."""

    topic: TopicName
    per_month_percent: Annotated[Number, doc("Growth a month, in percent.")]
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
    notes: Annotated[tuple[Sentence, ...], doc("What the numbers rest on.")]
