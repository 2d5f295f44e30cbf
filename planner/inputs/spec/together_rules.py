"""The rules of a spec about `together`: topics of a group have equally many partitions, and brokers that may lead all.

A message names the other place of the file that takes part, as `key (line:column)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.build_spec import TARGET_KEYS, added_partitions, apart, created_topics, together, topic_filter
from planner.inputs.spec.placement_rules import filter_of, usable_brokers
from planner.inputs.spec.rules import RuleList, TopicRule, place_of
from planner.inputs.yaml_source import Document, Path
from planner.model.build_problem import may_move
from planner.model.errors import Finding

TOGETHER_RULES: RuleList[TopicRule] = RuleList()

_BROKERS = (*TARGET_KEYS, "broker_sets", "placement", "changes.demote_brokers")
_NEW = ("changes.create_topics", "changes.add_partitions")


class _Member(NamedTuple):
    """A topic of a group: the path of the pattern that matches it, and the group's number."""

    name: str
    path: Path
    group: int


def _members(document: Document, assignment: Assignment) -> list[_Member]:
    """The topics of each group, each with the first pattern that matches it, in the patterns' order, then by name."""
    names = {topic.name for topic in assignment.topics if not topic.deleting}
    names |= {new.topic for new in created_topics(document)}
    found = dict[tuple[int, str], _Member]()
    for group, (path, patterns) in enumerate(together(document)):
        for at, pattern in enumerate(patterns):
            for name in sorted(name for name in names if fnmatchcase(name, pattern)):
                found.setdefault((group, name), _Member(name, (*path, at), group))
    return list(found.values())


def _pairs(members: list[_Member]) -> Iterator[tuple[_Member, _Member]]:
    """Each topic of a group beside the group's first."""
    first = dict[int, _Member]()
    for member in members:
        if member.group in first:
            yield first[member.group], member
        first.setdefault(member.group, member)


def _both(document: Document, one: _Member, other: _Member) -> str:
    return f"{other.name!r} and {one.name!r} of {place_of(document, one.path)}"


@TOGETHER_RULES.reads("together", *_NEW)
def _groups_are_of_topics_alike(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Two topics or more, each in one group only, with equally many partitions after the change."""
    members = _members(document, assignment)
    counts = {topic.name: len(topic.partitions) for topic in assignment.topics}
    counts |= {
        new.topic: new.count for new in (*created_topics(document), *added_partitions(document, assignment.topics))
    }
    seen = dict[str, _Member]()
    for group, (path, patterns) in enumerate(together(document)):
        mine = [member for member in members if member.group == group]
        if len(mine) == 1 and all(fnmatchcase(mine[0].name, pattern) for pattern in patterns):
            message = f"matches one topic, {mine[0].name!r}; allowed: patterns that match two topics or more"
            yield document.finding(path, message)
            continue
        for member in mine:
            if (other := seen.setdefault(member.name, member)) is not member:
                message = f"{member.name!r} is in the group of {place_of(document, other.path)}, too"
                yield document.finding(member.path, f"{message}; allowed: one group for each topic")
                break
    for one, other in _pairs(members):
        if counts[one.name] != counts[other.name]:
            message = (
                f"{_both(document, one, other)} have {counts[other.name]} and {counts[one.name]} partitions; allowed: "
                "equally many, for example by changes.add_partitions"
            )
            yield document.finding(other.path, message)


@TOGETHER_RULES.reads("together", "apart", *_NEW)
def _not_apart(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """No two topics of a group are apart, in whatever way: then no broker may lead both."""
    for one, other in _pairs(_members(document, assignment)):
        for path, rule in apart(document):
            sides = [[fnmatchcase(each.name, pattern) for pattern in rule.topics] for each in (one, other)]
            if all(map(any, sides)) and sides[0] != sides[1]:
                message = f"{_both(document, one, other)} are kept apart by {place_of(document, path)}"
                yield document.finding(other.path, f"{message}; allowed: one of the two rules")


@TOGETHER_RULES.reads("together", *_BROKERS, "leader_racks", *_NEW)
def _some_broker_may_lead(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """The topics of a group may use a common broker that isn't demoted, and prefer the same rack first."""
    demoted = set(document.get("changes", "demote_brokers") or ())
    usable = dict[int, set[int]]()
    first_racks = [(rule["topics"], rule["prefer"][0]) for rule in document.get("leader_racks") or ()]
    for one, other in _pairs(_members(document, assignment)):
        common = usable.get(one.group, set(usable_brokers(document, one.name))) & usable_brokers(document, other.name)
        usable[one.group] = common
        if not common - demoted:
            key: Path = ("placement",) if not common else ("changes", "demote_brokers")
            message = (
                f"{_both(document, one, other)} have no broker in common that {place_of(document, key)} lets lead both"
            )
            yield document.finding(other.path, f"{message}; allowed: sets with a common broker that isn't demoted")
            return
        racks = [
            next(((at, rack) for at, (topics, rack) in enumerate(first_racks) if fnmatchcase(each.name, topics)), None)
            for each in (one, other)
        ]
        if racks[0] and racks[1] and racks[0][1] != racks[1][1]:
            rules = " and ".join(place_of(document, ("leader_racks", each[0])) for each in (racks[1], racks[0]))
            message = f"{_both(document, one, other)} are to be led in {racks[1][1]} and {racks[0][1]} by {rules}"
            yield document.finding(other.path, f"{message}; allowed: the same first rack for both")


@TOGETHER_RULES.reads("together", *_BROKERS, "topics", *_NEW)
def _fixed_partitions_agree(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Partitions that may not move and have one number have one leader, which may lead the others, too."""
    chosen, here = topic_filter(document), set(topic_filter(document).on_brokers)
    topics = {topic.name: topic for topic in assignment.topics}
    demoted = set(document.get("changes", "demote_brokers") or ())
    members = [member for member in _members(document, assignment) if member.name in topics]
    fixed = dict[tuple[int, int], tuple[_Member, int]]()
    for member in members:
        for row in topics[member.name].partitions:
            if may_move(chosen, member.name) and (not here or here.intersection(row.replicas)):
                continue
            one, leader = fixed.setdefault((member.group, row.id), (member, row.replicas[0]))
            where = place_of(document, filter_of(document))
            if leader != row.replicas[0]:
                message = (
                    f"{member.name}-{row.id} and {one.name}-{row.id} of {place_of(document, one.path)} are led by "
                    f"{row.replicas[0]} and {leader}, and {where} lets neither move; allowed: let one of them move"
                )
                yield document.finding(member.path, message)
                return
    for other in members:
        may = usable_brokers(document, other.name) - demoted
        for (group, number), (member, leader) in fixed.items():
            if group == other.group and leader not in may and member.name != other.name:
                where = place_of(document, filter_of(document))
                message = (
                    f"{other.name}-{number} may not be led by {leader}, which leads {member.name}-{number} of "
                    f"{place_of(document, member.path)}, and {where} doesn't let that move"
                )
                yield document.finding(other.path, f"{message}; allowed: let it move")
                return
