"""What `planner consumers` says, as one document: canonical JSON, from which text and Markdown are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Self

from msgspec import structs

from planner.model.spec import Spec
from planner.plan.document.field_types import Section
from planner.plan.document.partition_types import TopicPartition as PartitionName
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import (
    AssignorRow,
    ConsumersSection,
    GroupEventRow,
    GroupRow,
    MemberRow,
    MemberSpread,
    OwnedRow,
    PartitionCountRow,
    RebalancesSection,
)
from planner.whatif.consumers import assignors, group_events, group_loads
from planner.whatif.consumers.assignors import TopicPartition
from planner.whatif.consumers.consumers_sweep import ConsumersSweep
from planner.whatif.consumers.group_events import (
    COOPERATIVE,
    Event,
    Racks,
    Replicas,
    Spread,
    differing,
    events,
    moved_share,
    partition_of,
    reassigned,
    spread,
)
from planner.whatif.consumers.group_loads import Group, Loads, Measure


@dataclass(frozen=True)
class ConsumersQuestion:
    """What is asked: the spec, its groups, more partition counts than its changes have, keys to follow, and the plan.

    `replicas_after` are those that the plan changes, as (topic, partition) to brokers.
    """

    spec: Spec
    groups: tuple[Group, ...]
    grown: Mapping[str, int]
    keys: tuple[str, ...] = ()
    replicas_after: Replicas | None = None


def replicas_of(plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that a plan.json gives, of the partitions that it changes."""
    return {row.key: row.replicas for row in plan.partitions}


@dataclass(frozen=True)
class _Facts:
    """What all groups are reckoned against."""

    loads: Loads
    unit: Measure
    today: tuple[Replicas, Racks]
    moving: frozenset[TopicPartition]
    grown: Mapping[str, int]


class KeyRow(Section, frozen=True, kw_only=True):
    """The partition of a record's key, today and with more partitions."""

    key: str
    before: int
    after: int


class GrownTopicRow(PartitionCountRow, frozen=True, kw_only=True):
    """One topic that gets more partitions, with the keys that were asked about."""

    keys: tuple[KeyRow, ...]  # type: ignore[assignment]  # a plan's has none


class ConsumersDocument(ConsumersSection, frozen=True, kw_only=True):
    """What `planner consumers` says: the section of a plan, with keys, and what that is about."""

    cluster: str
    first_step: str | None
    partition_counts: tuple[GrownTopicRow, ...]
    sweep: ConsumersSweep | None = None

    @classmethod
    def of(cls, section: ConsumersSection, cluster: str) -> Self:
        """The section of a plan, of a cluster of this name."""
        counts = tuple(GrownTopicRow(**structs.asdict(row)) for row in section.partition_counts)
        return cls(**{**structs.asdict(section), "partition_counts": counts}, cluster=cluster, first_step=None)


def document(question: ConsumersQuestion, first_step: str | None = None) -> ConsumersDocument:
    """The answer for all groups. Loads are whole numbers of `unit`: bytes/s, bytes, or partitions where none is known.

    Partitions to be made weigh what the spec's changes say of them, else nothing.
    """
    spec = question.spec
    unit = group_loads.measure(spec.cluster)
    today = group_events.replicas_today(spec), group_events.racks_today(spec)
    after = {**today[0], **(question.replicas_after or {})}, group_events.racks_after(spec)
    grown = {**{new.topic: new.count for new in spec.changes.new_partitions if new.first}, **question.grown}
    loads = group_loads.loads(spec.cluster.topics, unit, spec.changes.new_partitions)
    if unit == "partitions":
        loads |= {(topic, number): 1 for topic, count in grown.items() for number in range(count)}
    facts = _Facts(loads, unit, today, group_events.changed(today, after), grown)
    return ConsumersDocument(
        cluster=spec.cluster.name,
        first_step=first_step,
        unit=unit,
        groups=tuple(_group(group, facts) for group in question.groups),
        partition_counts=_partition_counts(spec, grown, question.keys),
    )


def section(question: ConsumersQuestion) -> ConsumersSection:
    """What a plan says of consumer groups: no keys are asked about."""
    found = document(question)
    counts = tuple(PartitionCountRow(**structs.asdict(row)) for row in found.partition_counts)
    return ConsumersSection(unit=found.unit, groups=found.groups, partition_counts=counts)


def _group(group: Group, facts: _Facts) -> GroupRow:
    happened = events(group, facts.grown, facts.loads)
    anew = reassigned(group)
    return GroupRow(
        group=group.name,
        assignor=group.assignor,
        observed=group.observed,
        as_assigned=_sorted(anew) == _sorted(group),
        topics=dict(group.counts),
        differing=differing(group),
        members=tuple(_member(group, member, facts) for member in group.members),
        spread=_spread(spread(group.owners, facts.loads)),
        events=tuple(_event(each, facts.loads) for each in happened),
        assignors=tuple(_assignor(group, name, facts) for name in _assignors(group)),
        rebalances=_rebalances(group, facts),
    )


def _sorted(group: Group) -> dict[str, list[TopicPartition]]:
    return {member: sorted(held) for member, held in group.owners.items()}


def _member(group: Group, member: str, facts: _Facts) -> MemberRow:
    held = sorted(group.owners.get(member, ()))
    return MemberRow(
        id=member,
        rack=group.racks.get(member),
        topics=tuple(group.members[member]),
        partitions=len(held),
        load=sum(facts.loads.get(each, 0) for each in held),
        read_in_rack=group_events.read_in_rack(group, member, *facts.today),
        owns=tuple(
            OwnedRow(topic=topic, partitions=tuple(partition for _, partition in of_topic))
            for topic, of_topic in groupby(held, key=lambda each: each[0])
        ),
    )


def _spread(found: Spread) -> MemberSpread:
    return MemberSpread(
        most_partitions=found.most,
        fewest_partitions=found.fewest,
        most_load=found.most_load,
        fewest_load=found.fewest_load,
        total_load=found.total_load,
        above_share_percent=round(found.above_share_percent, 3),
    )


def _event(event: Event, loads: Loads) -> GroupEventRow:
    return GroupEventRow(
        what=event.what,
        moved=event.moved,
        moved_load=event.moved_load,
        from_staying=event.from_staying,
        paused=event.paused,
        new=event.new,
        spread=_spread(spread(event.after.owners, loads)),
    )


def _assignors(group: Group) -> tuple[str, ...]:
    own = () if group.assignor in assignors.ASSIGNORS else (group.assignor,)
    return (*assignors.ASSIGNORS, *own)


def _assignor(group: Group, name: str, facts: _Facts) -> AssignorRow:
    """The group under another assignor, from its beginning: how even, and what its worst event moves."""
    owners = assignors.assign(name, group.counts, group.members)
    other = replace(group, assignor=name, owners=owners, observed=False)
    happened = [each for each in events(other, {}, facts.loads) if each.what.endswith((" leaves", " joins"))]
    return AssignorRow(
        assignor=name,
        spread=_spread(spread(owners, facts.loads)),
        most_moved=max((each.moved for each in happened), default=0),
        most_paused=max((each.paused for each in happened), default=0),
        cooperative=name == COOPERATIVE,
    )


def _rebalances(group: Group, facts: _Facts) -> RebalancesSection:
    """Whether the spec's changes make the group assign anew, and why."""
    moving = sorted(each for each in facts.moving if each[0] in group.counts) if group.racks else []
    more = sorted(topic for topic, count in facts.grown.items() if count > group.counts.get(topic, count))
    return RebalancesSection(
        partitions_in_other_racks=tuple(PartitionName(topic=topic, partition=number) for topic, number in moving),
        topics_with_more_partitions=tuple(more),
        rebalances=bool(moving or more),
    )


def _partition_counts(spec: Spec, grown: Mapping[str, int], keys: Sequence[str]) -> tuple[GrownTopicRow, ...]:
    """What more partitions do to the partitions of keys."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    return tuple(
        GrownTopicRow(
            topic=topic,
            before=counts[topic],
            after=grown[topic],
            keys_moved_percent=round(float(100 * moved_share(counts[topic], grown[topic])), 3),
            keys=tuple(_key(key, counts[topic], grown[topic]) for key in keys),
        )
        for topic in sorted(topic for topic, count in grown.items() if count != counts.get(topic, count))
    )


def _key(key: str, before: int, after: int) -> KeyRow:
    # What a shell passes on needn't be text.
    data = key.encode("utf-8", "surrogateescape")
    return KeyRow(key=key, before=partition_of(data, before), after=partition_of(data, after))
