"""The document of `planner consumers` for people: sections of sentences and tables, as text or as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.model.formats import UNKNOWN, amount, counted, number, percent, printable, ranges
from planner.model.markup import code
from planner.model.markup import text as escaped
from planner.plan.document.consumer_types import GroupRow, MemberRow, MemberSpread, RebalancesSection
from planner.plan.templates import environment
from planner.report import terminal_tables
from planner.whatif.consumers.consumers_summary import ConsumersDocument, GrownTopicRow
from planner.whatif.consumers.consumers_sweep import Combination, SweptGroup

_NAMES_SHOWN = 6
_EVENTS_SHOWN = 12
_MEMBERS_SHOWN = 32


@dataclass(frozen=True)
class ReportSection:
    """A heading (empty for none), sentences, and a table (empty for none)."""

    heading: str
    lines: tuple[str, ...] = ()
    table: str = ""


@dataclass(frozen=True)
class _Style:
    """How names and sentences are made safe, and how tables are drawn."""

    name: Callable[[str], str]
    say: Callable[[str], str]
    table: Callable[..., str]


_TEXT = _Style(printable, lambda sentence: printable(sentence, 1000), terminal_tables.aligned)
_MARKDOWN = _Style(code, lambda sentence: escaped(sentence, 1000), terminal_tables.markdown)


def text(document: ConsumersDocument) -> str:
    """For a terminal."""
    first_step = document.first_step
    parts = [f"{_TEXT.say(first_step)}\n"] if first_step else []
    for section in _sections(document, _TEXT):
        lines = [section.heading] if section.heading else []
        parts.append("".join(f"{line}\n" for line in (*lines, *section.lines)) + section.table)
    return "\n".join(parts)


def markdown(document: ConsumersDocument) -> str:
    """For a pull request."""
    sections = list(_sections(document, _MARKDOWN))
    page = (
        environment()
        .get_template("consumers.md.j2")
        .render(
            first_step=escaped(document.first_step or "", 600),
            cluster=escaped(document.cluster),
            sections=sections,
        )
    )
    return page.rstrip() + "\n"


def _sections(document: ConsumersDocument, style: _Style) -> Iterator[ReportSection]:
    unit = document.unit
    for group in document.groups:
        yield ReportSection(_heading(group, style), tuple(style.say(line) for line in _sentences(group, unit)))
        yield ReportSection("", table=_members(group, unit, style))
        yield ReportSection("", table=_events(group, unit, style))
        yield ReportSection("", table=_assignors(group, unit, style))
    for count in document.partition_counts:
        yield ReportSection("", tuple(style.say(line) for line in _keys(count)))
    if document.sweep:
        for found in document.sweep.groups:
            yield _swept(found, document.sweep.scenarios, unit, style)


def _heading(group: GroupRow, style: _Style) -> str:
    partitions = sum(group.topics.values())
    of = f"{counted(partitions, 'partition')} of {counted(len(group.topics), 'topic')}"
    members = counted(len(group.members), "member")
    return f"{style.name(group.group)}: {style.say(group.assignor)}, {members}, {of}"


def _sentences(group: GroupRow, unit: str) -> Iterator[str]:
    """How even the group is, and whether the changes make it rebalance."""
    found = group.spread
    yield f"{_partitions(found)} a member; {_loads(found, unit)}."
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
    fewest, most = _load(found.fewest_load, unit), _load(found.most_load, unit)
    return f"{fewest} to {most} each, the most {percent(found.above_share_percent)} above its share"


def _load(value: int, unit: str) -> str:
    return amount(value, unit) if unit != "partitions" else number(value)


def _members(group: GroupRow, unit: str, style: _Style) -> str:
    racked = any(member.rack is not None for member in group.members)
    header = ("Member", *(("Rack", "In rack") if racked else ()), "Partitions", f"Load ({unit})", "Owns")
    rows = [
        (
            style.name(member.id),
            *(_rack(member, style) if racked else ()),
            number(member.partitions),
            _load(member.load, unit),
            _owned(member, style),
        )
        for member in group.members[:_MEMBERS_SHOWN]
    ]
    rest = len(group.members) - len(rows)
    if rest:
        rows.append((f"and {number(rest)} more", *[""] * (len(header) - 1)))
    return style.table(header, rows, right=(2, 3, 4) if racked else (1, 2))


def _rack(member: MemberRow, style: _Style) -> tuple[str, str]:
    if member.rack is None:
        return UNKNOWN, UNKNOWN
    return style.name(member.rack), f"{number(member.read_in_rack or 0)} of {number(member.partitions)}"


def _owned(member: MemberRow, style: _Style) -> str:
    shown = [f"{style.name(each.topic)} {ranges(each.partitions)}" for each in member.owns[:_NAMES_SHOWN]]
    rest = len(member.owns) - len(shown)
    return "; ".join(shown) + (f"; and {counted(rest, 'more topic')}" if rest else "") if shown else UNKNOWN


def _events(group: GroupRow, unit: str, style: _Style) -> str:
    """What if, the costliest first among the many members that may leave."""
    header = ("What if", "Move", "From staying", "Load", "New", "Paused", "Then a member has", "Above share")
    leaving = [event for event in group.events if event.what.endswith(" leaves")]
    others = [event for event in group.events if not event.what.endswith(" leaves")]
    shown = sorted(leaving, key=lambda event: -event.moved)[:_EVENTS_SHOWN] if len(leaving) > _EVENTS_SHOWN else leaving
    rows = [
        (
            style.say(event.what),
            number(event.moved),
            number(event.from_staying),
            _load(event.moved_load, unit),
            number(event.new),
            number(event.paused),
            _partitions(event.spread),
            percent(event.spread.above_share_percent),
        )
        for event in (*shown, *others)
    ]
    return style.table(header, rows, right=(1, 2, 3, 4, 5, 7)) if rows else ""


def _assignors(group: GroupRow, unit: str, style: _Style) -> str:
    header = (
        "Assignor, from the beginning",
        "A member has",
        "Least load",
        "Most load",
        "Above share",
        "Most move",
        "Most paused",
    )
    rows = [
        (
            style.say(each.assignor),
            _partitions(each.spread),
            _load(each.spread.fewest_load, unit),
            _load(each.spread.most_load, unit),
            percent(each.spread.above_share_percent),
            number(each.most_moved),
            number(each.most_paused),
        )
        for each in group.assignors
    ]
    return style.table(header, rows, right=(2, 3, 4, 5, 6))


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


def _swept(found: SweptGroup, scenarios: Sequence[str], unit: str, style: _Style) -> ReportSection:
    best = found.best
    verdict = (
        f"Least spread of {counted(found.tried, 'combination')}: {counted(best.members, 'member')} with "
        f"{best.assignor}, {_load(best.widest_spread, unit)} between the most and the least loaded at worst "
        f"({scenarios[best.widest_in]}), {percent(best.above_share_percent)} above a member's share."
    )
    header = ("Members", "Best assignor", "A member has", "Widest spread", "In", "Most load", "Above share")
    rows = [
        (
            number(each.members),
            style.say(each.assignor),
            _partitions(each),
            _load(each.widest_spread, unit),
            style.say(scenarios[each.widest_in]),
            _load(each.most_load, unit),
            percent(each.above_share_percent),
        )
        for each in found.by_members
    ]
    heading = f"{style.name(found.group)}: how many members"
    return ReportSection(heading, (style.say(verdict),), style.table(header, rows, right=(0, 3, 5, 6)))
