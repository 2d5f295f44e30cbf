"""The document of `planner consumers` as people are shown it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from planner.model.formats import amount, counted, number, percent, ranges
from planner.plan.document.whatif_types import (
    AssignorRow,
    GroupEventRow,
    GroupRow,
    MemberRow,
    MemberSpread,
    RebalancesSection,
)
from planner.report.view import Column, Joined, Lines, Name, Quantity, Section, Sentence, Table, Value, View, told
from planner.whatif.consumers.consumers_summary import ConsumersDocument, GrownTopicRow
from planner.whatif.consumers.consumers_sweep import Combination, SweptGroup

_NAMES_SHOWN = 6
_EVENTS_SHOWN = 12
_MEMBERS_SHOWN = 32
_LONGEST_SENTENCE = 1_000


def view(document: ConsumersDocument) -> View:
    """Each group with its members, what may happen to it, and other assignors; then keys, and the sweep of members."""
    unit = document.unit
    sections = [_group(group, unit) for group in document.groups]
    if document.partition_counts:
        lines = [line for count in document.partition_counts for line in _keys(count)]
        sections.append(Section("", (_sentences(lines),)))
    if document.sweep:
        sections += [_swept(found, document.sweep.scenarios, unit) for found in document.sweep.groups]
    return View(f"Consumers of {document.cluster}", tuple(sections), (document.first_step or "",))


def _sentences(lines: Sequence[str]) -> Lines:
    return Lines(tuple(Sentence(line, _LONGEST_SENTENCE) for line in lines))


def _group(group: GroupRow, unit: str) -> Section:
    partitions = counted(sum(group.topics.values()), "partition")
    of = f", {counted(len(group.members), 'member')}, {partitions} of {counted(len(group.topics), 'topic')}"
    title = Joined((Name(group.group), ": ", group.assignor, of))
    blocks = told(
        _sentences(list(_state(group, unit))), _members(group, unit), _events(group, unit), _assignors(group, unit)
    )
    return Section(title, blocks)


def _state(group: GroupRow, unit: str) -> Iterator[str]:
    """How even the group is, and whether the changes make it rebalance."""
    yield f"{_partitions(group.spread)} a member; {_loads(group.spread, unit)}."
    idle = sum(not member.partitions for member in group.members)
    if idle:
        yield f"{counted(idle, 'member')} without any partition: more members than partitions to read."
    if group.differing:
        yield f"Subscriptions differ: {group.differing}."
    if group.observed and not group.as_assigned:
        yield f"The owners are the cluster's own; {group.assignor} would change them at the next rebalance."
    yield _why(group.rebalances)


def _why(rebalances: RebalancesSection) -> str:
    moving, more = rebalances.partitions_in_other_racks, rebalances.topics_with_more_partitions
    reasons = []
    if moving:
        named = _some([f"{each.name}" for each in moving])
        reasons.append(f"the racks of {counted(len(moving), 'partition')} change, which its client.rack sees: {named}")
    if more:
        reasons.append(f"topics get more partitions: {_some(more)}")
    if not reasons:
        return "The spec's changes don't make it rebalance."
    return f"The spec's changes make it rebalance: {'; '.join(reasons)}."


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {number(rest)} more" if rest > 0 else "")


def _partitions(found: MemberSpread | Combination) -> str:
    fewest, most = found.fewest_partitions, found.most_partitions
    return counted(most, "partition") if fewest == most else f"{number(fewest)} to {counted(most, 'partition')}"


def _loads(found: MemberSpread, unit: str) -> str:
    """`12 MB/s to 20 MB/s, the most 25 % above its share`."""
    if unit == "partitions":
        return "neither rates nor sizes are known, so partitions are counted"
    fewest, most = (amount(load, unit) for load in (found.fewest_load, found.most_load))
    return f"{fewest} to {most} each, the most {percent(found.above_share_percent)} above its share"


def _members(group: GroupRow, unit: str) -> Table[MemberRow]:
    column = Column[MemberRow]

    def rack(row: MemberRow) -> Value:
        return None if row.rack is None else Name(row.rack)

    def in_rack(row: MemberRow) -> Value:
        return None if row.rack is None else f"{number(row.read_in_rack or 0)} of {number(row.partitions)}"

    racked = any(member.rack is not None for member in group.members)
    columns = (
        column("Member", lambda row: Name(row.id), numeric=False),
        *((column("Rack", rack, numeric=False), column("In rack", in_rack)) if racked else ()),
        column("Partitions", attrgetter("partitions")),
        column(f"Load ({unit})", lambda row: Quantity(row.load, unit)),
        column("Owns", _owned, numeric=False),
    )
    return Table("", "", "member", group.members, columns, most=_MEMBERS_SHOWN)


def _owned(member: MemberRow) -> Value:
    shown = [Joined((Name(each.topic), f" {ranges(each.partitions)}")) for each in member.owns[:_NAMES_SHOWN]]
    rest = len(member.owns) - len(shown)
    more = (f"and {counted(rest, 'more topic')}",) if rest else ()
    return Joined((*shown, *more), "; ") if shown else None


def _events(group: GroupRow, unit: str) -> Table[GroupEventRow]:
    """What if, the costliest first among the many members that may leave."""
    column = Column[GroupEventRow]
    columns = (
        column("What if", attrgetter("what"), numeric=False),
        column("Move", attrgetter("moved")),
        column("From staying", attrgetter("from_staying"), narrow="from\nstaying"),
        column("Load", lambda row: Quantity(row.moved_load, unit)),
        column("New", attrgetter("new")),
        column("Paused", attrgetter("paused")),
        column("Then a member has", lambda row: _partitions(row.spread), numeric=False),
        column("Above share", lambda row: Quantity(row.spread.above_share_percent, "%"), narrow="above\nshare"),
    )
    leaving = [event for event in group.events if event.what.endswith(" leaves")]
    others = [event for event in group.events if not event.what.endswith(" leaves")]
    if len(leaving) > _EVENTS_SHOWN:
        leaving = sorted(leaving, key=lambda event: -event.moved)[:_EVENTS_SHOWN]
    return Table("", "", "event", [*leaving, *others], columns)


def _assignors(group: GroupRow, unit: str) -> Table[AssignorRow]:
    column = Column[AssignorRow]
    columns = (
        column("Assignor, from the beginning", attrgetter("assignor"), numeric=False),
        column("A member has", lambda row: _partitions(row.spread), numeric=False),
        column("Least load", lambda row: Quantity(row.spread.fewest_load, unit), narrow="least\nload"),
        column("Most load", lambda row: Quantity(row.spread.most_load, unit), narrow="most\nload"),
        column("Above share", lambda row: Quantity(row.spread.above_share_percent, "%"), narrow="above\nshare"),
        column("Most move", attrgetter("most_moved"), narrow="most\nmove"),
        column("Most paused", attrgetter("most_paused"), narrow="most\npaused"),
    )
    return Table("", "", "assignor", group.assignors, columns)


def _keys(count: GrownTopicRow) -> Iterator[str]:
    yield (
        f"{count.topic} from {number(count.before)} to {counted(count.after, 'partition')}: "
        f"{percent(count.keys_moved_percent)} of all keys go to another partition (murmur2 of the key, modulo the "
        "count). Records of one key before and after then lie in two partitions, and their order is lost across the "
        "change; whoever counts on a key's partition (joins, state by key, compaction) must know."
    )
    for key in count.keys:
        verb = "stays in" if key.before == key.after else f"goes from {number(key.before)} to"
        yield f"Key {key.key} {verb} partition {number(key.after)}."


def _swept(found: SweptGroup, scenarios: Sequence[str], unit: str) -> Section:
    column = Column[Combination]
    best = found.best
    verdict = (
        f"Least spread of {counted(found.tried, 'combination')}: {counted(best.members, 'member')} with "
        f"{best.assignor}, {amount(best.widest_spread, unit)} between the most and the least loaded at worst "
        f"({scenarios[best.widest_in]}), {percent(best.above_share_percent)} above a member's share."
    )
    columns = (
        column("Members", attrgetter("members")),
        column("Best assignor", attrgetter("assignor"), numeric=False),
        column("A member has", _partitions, numeric=False),
        column("Widest spread", lambda row: Quantity(row.widest_spread, unit), narrow="widest\nspread"),
        column("In", lambda row: scenarios[row.widest_in], numeric=False),
        column("Most load", lambda row: Quantity(row.most_load, unit), narrow="most\nload"),
        column("Above share", lambda row: Quantity(row.above_share_percent, "%"), narrow="above\nshare"),
    )
    table = Table("", "", "number of members", found.by_members, columns)
    return Section(Joined((Name(found.group), ": how many members")), (_sentences([verdict]), table))
