"""The output of `planner consumers`: one document, and its view for people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from msgspec import structs

from planner.model import document_fields
from planner.model.build_problem import brokers_after
from planner.model.cluster import PartitionKey, keyed_partitions
from planner.model.document_fields import TopicPartition
from planner.model.formats import amount, counted, first_lines, first_names, number, percent, ranges
from planner.model.spec import Spec
from planner.plan import headline
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
from planner.report.view import (
    Column,
    Joined,
    Lines,
    Name,
    Quantity,
    Sentence,
    Table,
    Value,
    View,
    ViewSection,
    visible,
)
from planner.whatif import assignors, group_events_and_keys
from planner.whatif.consumers_sweep import ConsumersSweep, SweptCombination, SweptGroup
from planner.whatif.group_events_and_keys import BrokerRacks, Group, PartitionLoads, ReplicasOf, spread
from planner.whatif.own_assignors import Ownership

_IN_BROKER = (*assignors.SERVER_ASSIGNORS, assignors.SHARE_ASSIGNOR)
_NAMES_SHOWN = 6
_EVENTS_SHOWN = 12
_MEMBERS_SHOWN = 32
_LONGEST_SENTENCE = 1_000


@dataclass(frozen=True)
class ConsumersQuestion:
    """The question: the spec, its groups, partition counts beyond those of its changes, keys to follow, the plan."""

    spec: Spec
    groups: tuple[Group, ...]
    grown: Mapping[str, int]
    keys: tuple[str, ...] = ()
    plan: Plan | None = None


@dataclass(frozen=True)
class _GroupFacts:
    """The facts against which all groups are evaluated."""

    loads: PartitionLoads
    today: tuple[ReplicasOf, BrokerRacks]
    racks_after: Mapping[PartitionKey, frozenset[str]]
    moving: frozenset[PartitionKey]
    seen_by_brokers: frozenset[PartitionKey]
    grown: Mapping[str, int]


class KeyRow(document_fields.Section, frozen=True, kw_only=True):
    """The partition of a record's key, today and with more partitions."""

    key: str
    before: int
    after: int


class GrownTopicRow(PartitionCountRow, frozen=True, kw_only=True):
    """One topic that gets more partitions, with the keys that were asked about."""

    keys: tuple[KeyRow, ...]  # type: ignore[assignment]  # a plan's has none


class ConsumersDocument(ConsumersSection, frozen=True, kw_only=True):
    """The document of `planner consumers`: the section of a plan, with keys, and its cluster."""

    cluster: str
    first_step: str | None
    partition_counts: tuple[GrownTopicRow, ...]
    sweep: ConsumersSweep | None = None


def document(question: ConsumersQuestion) -> ConsumersDocument:
    """The whole document: the section of a plan, and where the keys that were asked about go."""
    plan_section = section(question)
    # A shell may pass bytes that aren't text.
    encoded = {key: key.encode("utf-8", "surrogateescape") for key in question.keys}
    grown_rows, partition_of = list[GrownTopicRow](), group_events_and_keys.partition_of
    for row in plan_section.partition_counts:
        keys = tuple(
            KeyRow(key=key, before=partition_of(encoded_key, row.before), after=partition_of(encoded_key, row.after))
            for key, encoded_key in encoded.items()
        )
        grown_rows.append(GrownTopicRow(**structs.asdict(row) | {"keys": keys}))
    return ConsumersDocument(
        **structs.asdict(plan_section) | {"partition_counts": tuple(grown_rows)},
        cluster=question.spec.cluster.name,
        first_step=(headline.first_step(question.plan) if question.plan else "") or None,
    )


def section(question: ConsumersQuestion) -> ConsumersSection:
    """A plan's section on consumer groups. Loads are whole numbers of `unit`: bytes/s, else bytes, else partitions.

    New partitions have the load that the spec's changes state for them, else none.
    """
    spec = question.spec
    unit = group_events_and_keys.load_unit(spec.cluster)
    replicas = {key: each.replicas for key, each in keyed_partitions(spec.cluster.topics)}
    today = replicas, {broker.id: broker.rack for broker in spec.cluster.brokers}
    moved = {row.key: row.replicas for row in question.plan.partitions} if question.plan else {}
    after = {**replicas, **moved}, {each.id: each.rack for each in brokers_after(spec)}
    grown = {**{new.topic: new.count for new in spec.changes.new_partitions if new.first}, **question.grown}
    loads = group_events_and_keys.loads(spec.cluster.topics, unit, spec.changes.new_partitions)
    if unit == "partitions":
        loads |= {(topic, number): 1 for topic, count in grown.items() for number in range(count)}
    seen_by_brokers = group_events_and_keys.seen_by_brokers(today, after)
    racks_after = {key: group_events_and_keys.racks_of(each, after[1]) for key, each in after[0].items()}
    changed = group_events_and_keys.changed(today, after)
    facts = _GroupFacts(loads, today, racks_after, changed, seen_by_brokers, grown)
    return ConsumersSection(
        unit=unit,
        groups=tuple(_group_row(group, facts) for group in question.groups),
        partition_counts=tuple(_partition_counts(spec, grown)),
    )


def _group_row(group: Group, facts: _GroupFacts) -> GroupRow:
    def in_order(owners: Ownership) -> dict[str, list[PartitionKey]]:
        return {member: sorted(partitions) for member, partitions in owners.items()}

    shared = group.assignor == assignors.SHARE_ASSIGNOR
    member_loads = group_events_and_keys.loads_by_member(group.owners, facts.loads)
    names = dict.fromkeys((group.assignor,) if shared else (*assignors.ASSIGNORS, group.assignor))
    return GroupRow(
        group=group.name,
        assignor=group.assignor,
        observed=group.observed,
        as_assigned=in_order(group_events_and_keys.reassigned(group).owners) == in_order(group.owners),
        topics=dict(group.counts),
        differing=group_events_and_keys.differing_text(group),
        members=tuple(_member_row(group, member, member_loads.get(member, 0), facts) for member in group.members),
        spread=spread(group.owners, facts.loads),
        events=group_events_and_keys.events(group, facts.grown, facts.loads),
        assignors=tuple(_assignor_row(group, name, facts.loads) for name in names),
        rebalances=_rebalances(group, facts),
    )


def _member_row(group: Group, member: str, load: int, facts: _GroupFacts) -> MemberRow:
    partitions = sorted(group.owners.get(member, ()))
    return MemberRow(
        id=member,
        rack=group.racks.get(member),
        topics=tuple(group.members[member]),
        partitions=len(partitions),
        load=load,
        read_in_rack=group_events_and_keys.read_in_rack(group, member, *facts.today),
        owns=tuple(
            OwnedRow(topic=topic, partitions=tuple(partition for _, partition in of_topic))
            for topic, of_topic in groupby(partitions, key=lambda each: each[0])
        ),
    )


def _assignor_row(group: Group, name: str, loads: PartitionLoads) -> AssignorRow:
    """The group under another assignor, from the start: how even it is, and what its worst event moves."""
    owners = group_events_and_keys.assigned(group, name, None)
    alternative = replace(group, assignor=name, owners=owners, observed=False)
    events = group_events_and_keys.member_events(alternative, loads)
    return AssignorRow(
        assignor=name,
        spread=spread(owners, loads),
        most_moved=max((each.moved for each in events), default=0),
        most_paused=max((each.paused for each in events), default=0),
        cooperative=name in group_events_and_keys.COOPERATIVE,
    )


def _rebalances(group: Group, facts: _GroupFacts) -> RebalancesSection:
    """Whether the spec's changes make the group rebalance, and why."""
    candidates = facts.seen_by_brokers if group.assignor in _IN_BROKER else facts.moving if group.racks else ()
    moving = sorted(each for each in candidates if each[0] in group.counts)
    grown = group_events_and_keys.added_to(group, facts.grown)
    changed = group_events_and_keys.with_partitions(replace(group, partition_racks=facts.racks_after), grown)
    after = group_events_and_keys.reassigned(changed)
    return RebalancesSection(
        partitions_in_other_racks=tuple(TopicPartition(topic=topic, partition=number) for topic, number in moving),
        topics_with_more_partitions=tuple(sorted(grown)),
        rebalances=bool(moving or grown),
        paused=group_events_and_keys.count_paused(group, after.owners) if moving or grown else 0,
    )


def _partition_counts(spec: Spec, grown: Mapping[str, int]) -> Iterator[PartitionCountRow]:
    """How more partitions change the partitions of keys, topic by topic."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    for topic in sorted(topic for topic, count in grown.items() if count != counts.get(topic, count)):
        before, after = counts[topic], grown[topic]
        moved = round(float(100 * group_events_and_keys.moved_share(before, after)), 3)
        yield PartitionCountRow(topic=topic, before=before, after=after, keys_moved_percent=moved, keys=())


def view(document: ConsumersDocument, *, planned: bool = True) -> View:
    """A view of a plan's groups and keys, then of the sweep of members; `planned` as in `view_sections`."""
    swept = document.sweep
    sections = view_sections(document, planned=planned)
    sections += tuple(_sweep_section(group, swept.scenarios, document.unit) for group in swept.groups) if swept else ()
    return View(f"Consumers of {document.cluster}", sections, (document.first_step or "",))


def view_sections(consumers: ConsumersSection, *, planned: bool = True) -> tuple[ViewSection, ...]:
    """Each group with its members, its events, and other assignors; then keys.

    `planned`: True if it is known which partitions change racks.
    """
    unit = consumers.unit
    sections = []
    for group in consumers.groups:
        partitions = counted(sum(group.topics.values()), "partition")
        group_size = f", {counted(len(group.members), 'member')}, {partitions} of {counted(len(group.topics), 'topic')}"
        title = Joined((Name(group.group), ": ", group.assignor, group_size))
        state = _sentences([*_state_sentences(group, unit), _rebalance_sentence(group, planned)])
        blocks = visible(state, _member_table(group, unit), _event_table(group, unit), _assignor_table(group, unit))
        sections.append(ViewSection(title, blocks))
    if consumers.partition_counts:
        lines = [line for count in consumers.partition_counts for line in _key_sentences(count)]
        sections.append(ViewSection("", (_sentences(lines),)))
    return tuple(sections)


def _sentences(lines: Sequence[str]) -> Lines:
    return Lines(tuple(Sentence(line, _LONGEST_SENTENCE) for line in lines))


def _state_sentences(group: GroupRow, unit: str) -> Iterator[str]:
    """How even the group is, and anything unusual about it."""
    spread = group.spread
    load = "neither rates nor sizes are known, so partitions are counted"
    if unit != "partitions":
        least, most = (amount(each, unit) for each in (spread.fewest_load, spread.most_load))
        load = f"{least} to {most} each; the most loaded is {percent(spread.above_share_percent)} above its share"
    yield f"{_partition_range(spread)} per member; {load}."
    idle = sum(not member.partitions for member in group.members)
    if idle:
        crowded = ": more members than partitions to read" if len(group.members) > sum(group.topics.values()) else ""
        yield f"{counted(idle, 'member')} without any partition{crowded}."
    owns = (each for member in group.members for each in member.owns if each.topic in group.topics)
    owned = {(each.topic, partition) for each in owns for partition in each.partitions}
    if unowned_count := sum(group.topics.values()) - len(owned):
        yield f"No member owns {counted(unowned_count, 'partition')}."
    if group.differing:
        yield f"Subscriptions differ: {group.differing}."
    if group.observed and not group.as_assigned:
        yield f"This is what the cluster reports; at the next rebalance {group.assignor} would assign differently."


def _rebalance_sentence(group: GroupRow, planned: bool) -> str:
    """Whether the spec's changes make the group rebalance, why, and what pauses; without a plan, as far as known."""
    rebalance, in_broker = group.rebalances, group.assignor in _IN_BROKER
    moving, grown_topics = rebalance.partitions_in_other_racks, rebalance.topics_with_more_partitions
    reasons = []
    if moving:
        names, count = first_names([each.name for each in moving], _NAMES_SHOWN), counted(len(moving), "partition")
        if in_broker:
            reasons.append(f"the coordinator sees the racks of {count} change, during a copy or for good: {names}")
        else:
            reasons.append(f"replicas of {count} move to other racks, and it has client.rack: {names}")
    if grown_topics:
        reasons.append(f"topics get more partitions: {first_names(grown_topics, _NAMES_SHOWN)}")
    if reasons:
        pause = f" Nobody reads {counted(rebalance.paused, 'partition')} meanwhile." if rebalance.paused else ""
        unpaused = " All partitions are read meanwhile." if in_broker and not rebalance.paused else ""
        return f"The changes make it rebalance: {'; '.join(reasons)}.{pause or unpaused}"
    if not planned and (in_broker or any(each.rack is not None for each in group.members)):
        return "Partitions that move to other racks would make it rebalance, too: --plan PLAN says whether any do."
    return "The changes don't make it rebalance."


def _partition_range(row: MemberSpread | SweptCombination) -> str:
    fewest, most = row.fewest_partitions, row.most_partitions
    return counted(most, "partition") if fewest == most else f"{number(fewest)} to {counted(most, 'partition')}"


def _member_table(group: GroupRow, unit: str) -> Table[MemberRow]:
    column = Column[MemberRow]

    def owned(row: MemberRow) -> Value:
        topics = [Joined((Name(each.topic), f" {ranges(each.partitions)}")) for each in row.owns]
        return Joined(tuple(first_lines(topics, _NAMES_SHOWN, "topic")), "; ") if topics else None

    def in_rack(row: MemberRow) -> Value:
        return None if row.rack is None else f"{number(row.read_in_rack or 0)} of {number(row.partitions)}"

    of_racks = (
        column("Rack", lambda row: None if row.rack is None else Name(row.rack), numeric=False),
        column("Read in\nown rack", in_rack),
    )
    columns = (
        column("Member", lambda row: Name(row.id), numeric=False),
        *(of_racks if any(member.rack is not None for member in group.members) else ()),
        column("Partitions", lambda row: row.partitions),
        column(f"Load ({unit})", lambda row: Quantity(row.load, unit)),
        column("Owns", owned, numeric=False),
    )
    return Table("member", group.members, columns, most=_MEMBERS_SHOWN)


def _event_table(group: GroupRow, unit: str) -> Table[GroupEventRow]:
    """The events, the costliest first among the many members that may leave."""
    column = Column[GroupEventRow]
    columns = (
        column("What if", lambda row: row.what, numeric=False),
        column("Partitions\nmoved", lambda row: row.moved),
        column("From staying members", lambda row: row.from_staying, narrow="from members\nthat stay"),
        column("Load\nmoved", lambda row: Quantity(row.moved_load, unit)),
        column("New\npartitions", lambda row: row.new),
        column("Partitions\npaused", lambda row: row.paused),
        column("Then a member has", lambda row: _partition_range(row.spread), numeric=False),
        column("Above\nshare", lambda row: Quantity(row.spread.above_share_percent, "%")),
    )
    leaving = [event for event in group.events if event.what.endswith(" leaves")]
    others = [event for event in group.events if not event.what.endswith(" leaves")]

    def costliest(_: Sequence[GroupEventRow], most: int) -> Sequence[GroupEventRow]:
        return [*sorted(leaving, key=lambda event: -event.moved)[: max(0, most - len(others))], *others][:most]

    return Table("event", [*leaving, *others], columns, few=costliest, most=_EVENTS_SHOWN + len(others))


def _assignor_table(group: GroupRow, unit: str) -> Table[AssignorRow]:
    column = Column[AssignorRow]
    columns = (
        column("If everything is assigned again by", lambda row: row.assignor, numeric=False),
        column("A member has", lambda row: _partition_range(row.spread), numeric=False),
        column("Least\nload", lambda row: Quantity(row.spread.fewest_load, unit)),
        column("Most\nload", lambda row: Quantity(row.spread.most_load, unit)),
        column("Above\nshare", lambda row: Quantity(row.spread.above_share_percent, "%")),
        column("Most\nmoved", lambda row: row.most_moved),
        column("Most\npaused", lambda row: row.most_paused),
    )
    return Table("assignor", group.assignors, columns)


def _key_sentences(count: PartitionCountRow) -> Iterator[str]:
    yield (
        f"{count.topic} from {number(count.before)} to {counted(count.after, 'partition')}: "
        f"{percent(count.keys_moved_percent)} of all keys go to another partition (murmur2 of the key, modulo the "
        "count). Records of one key from before and after the change are then in two partitions, and their order is "
        "lost; this breaks whatever relies on a key's partition (joins, state by key, compaction)."
    )
    for key in count.keys if isinstance(count, GrownTopicRow) else ():
        goes = f"goes from partition {number(key.before)} to" if key.before != key.after else "stays in partition"
        yield f"Key {key.key} {goes} {number(key.after)}."


def _sweep_section(group: SweptGroup, scenarios: Sequence[str], unit: str) -> ViewSection:
    column = Column[SweptCombination]
    best = group.best
    verdict = (
        f"Least spread of {counted(group.tried, 'combination')}: {counted(best.members, 'member')} with "
        f"{best.assignor}, {amount(best.widest_spread, unit)} between the most and the least loaded at worst "
        f"({scenarios[best.widest_in]}), {percent(best.above_share_percent)} above a member's share."
    )
    columns = (
        column("Members", lambda row: row.members),
        column("Best assignor", lambda row: row.assignor, numeric=False),
        column("A member has", _partition_range, numeric=False),
        column("Widest\nspread", lambda row: Quantity(row.widest_spread, unit)),
        column("In", lambda row: scenarios[row.widest_in], numeric=False),
        column("Most\nload", lambda row: Quantity(row.most_load, unit)),
        column("Above\nshare", lambda row: Quantity(row.above_share_percent, "%")),
    )
    table = Table("number of members", group.by_members, columns)
    return ViewSection(Joined((Name(group.group), ": how many members")), (_sentences([verdict]), table))
