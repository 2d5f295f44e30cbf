"""The rules of a spec about leaders: `demote_brokers`, `leader_racks` and `together`.

Demoted brokers stay and keep their replicas. A partition keeps a demoted leader if it has no replica elsewhere. Topics
of a group of `together` must have equally many partitions, and brokers that may lead all. A message names the other key
that takes part, as `key (line:column)`.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import combinations, groupby, product
from typing import NamedTuple

from planner.inputs.spec.checks import CREATED, DEMOTED, GROWN, PLACED, RuleList, listed, place_of
from planner.inputs.spec.placement_checks import OF_REPLICAS, filter_of
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding
from planner.model.cluster import a_few
from planner.model.document_fields import LEADERS
from planner.model.errors import did_you_mean
from planner.model.spec import first_rule, matching

LEADER_RULES = RuleList()
LEADER_TOPIC_RULES = RuleList()


@LEADER_RULES.reads(*TARGET_KEYS, DEMOTED)
def _demoted_stay(document: SpecDocument) -> Iterator[PathFinding]:
    targets = {broker.id for broker in document.target_brokers}
    demoted = list(document.items("changes", "demote_brokers"))
    for path, broker in demoted:
        if broker not in targets:
            yield path, f"{broker} doesn't stay in the cluster; allowed: {listed(targets)}"
    if demoted and targets <= {broker for _, broker in demoted}:
        yield ("changes", "demote_brokers"), "no broker is left to lead; allowed: some of the brokers that stay or join"


@LEADER_RULES.reads(*TARGET_KEYS, "leader_racks")
def _racks_have_brokers(document: SpecDocument) -> Iterator[PathFinding]:
    racks = document.target_racks
    for path, item in document.items("leader_racks"):
        for index, rack in enumerate(item["prefer"]):
            if rack not in racks:
                allowed = ", ".join(sorted(racks)) or "no rack, as no broker has one"
                message = f"no broker that stays or joins has the rack {rack!r}; {did_you_mean(rack, racks)}"
                yield (*path, "prefer", index), f"{message}allowed: {allowed}"


def _leader_rule(document: SpecDocument, topic: str) -> tuple[int, tuple[str, ...]] | None:
    """The index of the first rule of `leader_racks` that matches a topic, and the racks that it prefers."""
    rules = document.leader_racks
    rule = first_rule(topic, rules)
    return None if rule is None else (rules.index(rule), rule.prefer)


@LEADER_TOPIC_RULES.reads(*TARGET_KEYS, DEMOTED, "topics")
def _others_may_lead(document: SpecDocument) -> Iterator[PathFinding]:
    """A demoted broker must not lead a fixed partition that another replica could lead. Without one, the plan warns."""
    demoted, topic_filter = document.demoted_brokers, document.topic_filter
    fixed = [
        f"{topic.name}-{row.id}"
        for topic in document.assignment.topics
        if not topic.deleting and not topic_filter.moves(topic.name)
        for row in topic.partitions
        if row.replicas and row.replicas[0] in demoted and not demoted.issuperset(row.replicas)
    ]
    if fixed:
        path = ("changes", "demote_brokers")
        message = f"one of these leads {a_few(fixed, 'partition')}, which may not change by topics.include or "
        yield path, f"{message}topics.exclude; allowed: topics that let them change"


# All ways to split racks are tried, up to this number.
_MOST_WAYS = 40_000


@LEADER_TOPIC_RULES.reads(*TARGET_KEYS, "apart", "leader_racks", *OF_REPLICAS)
def _sides_prefer_racks_of_their_own(document: SpecDocument) -> Iterator[PathFinding]:
    """Topics that share no racks must be able to divide them so that a preferred rack leads each topic."""
    names = sorted(document.replicas_after)
    all_racks = document.target_racks
    for path, rule in document.apart:
        preferred = dict[tuple[int, tuple[str, ...]], tuple[str, int]]()
        for side, pattern in enumerate(rule.topics if rule.by.startswith("rack") else ()):
            for name in (name for name in names if fnmatchcase(name, pattern)):
                if (leader_rule := _leader_rule(document, name)) is not None:
                    preferred.setdefault((side, leader_rule[1]), (name, leader_rule[0]))
        racks = sorted({rack for _, prefer in preferred for rack in prefer})
        if not preferred or len(all_racks) < len(rule.topics) or len(rule.topics) ** len(racks) > _MOST_WAYS:
            continue
        ways = (dict(zip(racks, each, strict=True)) for each in product(range(len(rule.topics)), repeat=len(racks)))
        if any(
            len(rule.topics) - len(set(side_of.values())) <= len(all_racks - set(racks))
            and all(any(side_of[rack] == side for rack in prefer) for side, prefer in preferred)
            for side_of in ways
        ):
            continue
        pairs = sorted(combinations(sorted(preferred), 2), key=lambda pair: not set(pair[0][1]) & set(pair[1][1]))
        key, other_key = next((pair for pair in pairs if pair[0][0] != pair[1][0]), pairs[0])
        (topic, rule_index), (other_topic, other_index) = preferred[key], preferred[other_key]
        where = " and ".join(place_of(document, ("leader_racks", index)) for index in sorted({rule_index, other_index}))
        message = f"{topic!r} and {other_topic!r} prefer racks by {where} that can't be split between them, as no rack "
        message += f"{'leads' if rule.by.endswith(LEADERS) else 'has'} both"
        yield path, f"{message}; allowed: other racks in leader_racks, or by: broker_leaders"


class _Member(NamedTuple):
    """A topic of a group: its name, the path of the pattern that matches it, and the group's number."""

    name: str
    path: Path
    group: int


def _members(document: SpecDocument) -> list[_Member]:
    """The topics of each group, each with the first pattern that matches it, in the patterns' order, then by name."""
    names = {topic.name for topic in document.assignment.topics if not topic.deleting}
    names |= {new.topic for new in document.created_topics}
    members = dict[tuple[int, str], _Member]()
    for group, (path, patterns) in enumerate(document.together):
        for index, pattern in enumerate(patterns):
            for name in sorted(matching(names, pattern)):
                members.setdefault((group, name), _Member(name, (*path, index), group))
    return list(members.values())


def _pairs(members: list[_Member]) -> Iterator[tuple[_Member, _Member]]:
    """Pairs of each group's first topic and each of its other topics."""
    first_members = dict[int, _Member]()
    for member in members:
        if member.group in first_members:
            yield first_members[member.group], member
        first_members.setdefault(member.group, member)


def _names(document: SpecDocument, first: _Member, other: _Member) -> str:
    return f"{other.name!r} and {first.name!r} of {place_of(document, first.path)}"


@LEADER_TOPIC_RULES.reads("together", CREATED, GROWN)
def _groups_are_of_topics_alike(document: SpecDocument) -> Iterator[PathFinding]:
    """A group must have at least two topics, with equally many partitions after the change, and in no other group."""
    members = _members(document)
    counts = {topic.name: len(topic.partitions) for topic in document.assignment.topics}
    counts |= {new.topic: new.count for new in (*document.created_topics, *document.added_partitions)}
    first_members = dict[str, _Member]()
    for group, (path, patterns) in enumerate(document.together):
        of_group = [member for member in members if member.group == group]
        if len(of_group) == 1 and all(fnmatchcase(of_group[0].name, pattern) for pattern in patterns):
            yield path, f"matches one topic, {of_group[0].name!r}; allowed: patterns that match two topics or more"
            continue
        for member in of_group:
            if (earlier := first_members.setdefault(member.name, member)) is not member:
                message = f"{member.name!r} is in the group of {place_of(document, earlier.path)}, too"
                yield member.path, f"{message}; allowed: one group for each topic"
                break
    uneven = [pair for pair in _pairs(members) if counts[pair[0].name] != counts[pair[1].name]]
    for path, pairs in groupby(uneven, lambda pair: pair[1].path):
        (first, other), *more_pairs = pairs
        more = f" (other topics of this pattern that differ: {len(more_pairs)})" if more_pairs else ""
        message = (
            f"{_names(document, first, other)} have {counts[other.name]} and {counts[first.name]} partitions{more}; "
            "allowed: equally many, for example by changes.add_partitions"
        )
        yield path, message


@LEADER_TOPIC_RULES.reads("together", "apart", CREATED, GROWN)
def _not_apart(document: SpecDocument) -> Iterator[PathFinding]:
    """No two topics of a group may be on different sides of `apart`, because then no broker may lead both."""
    reported = set[int]()
    for first, other in _pairs(_members(document)):
        for path, rule in document.apart:
            sides = [[fnmatchcase(each.name, pattern) for pattern in rule.topics] for each in (first, other)]
            if first.group not in reported and all(map(any, sides)) and sides[0] != sides[1]:
                reported.add(first.group)
                message = f"{_names(document, first, other)} are kept apart by {place_of(document, path)}"
                yield other.path, f"{message}; allowed: one of the two rules"


@LEADER_TOPIC_RULES.reads("together", *PLACED, DEMOTED, "leader_racks", CREATED, GROWN)
def _some_broker_may_lead(document: SpecDocument) -> Iterator[PathFinding]:
    """The topics of a group must have a common usable broker that isn't demoted, and the same first preferred rack."""
    usable = dict[int, set[int]]()
    for first, other in _pairs(_members(document)):
        common = usable.get(first.group, set(document.usable_brokers(first.name))) & document.usable_brokers(other.name)
        usable[first.group] = common
        if not common - document.demoted_brokers:
            key: Path = ("placement",) if not common else ("changes", "demote_brokers")
            message = (
                f"{_names(document, first, other)} have no broker in common that {place_of(document, key)} lets "
                "lead both"
            )
            yield other.path, f"{message}; allowed: sets with a common broker that isn't demoted"
            return
        other_lead, first_lead = (_leader_rule(document, each.name) for each in (other, first))
        if other_lead and first_lead and other_lead[1][0] != first_lead[1][0]:
            rules = " and ".join(place_of(document, ("leader_racks", index)) for index, _ in (other_lead, first_lead))
            message = (
                f"{_names(document, first, other)} are to be led in {other_lead[1][0]} and {first_lead[1][0]} by "
                f"{rules}"
            )
            yield other.path, f"{message}; allowed: the same first rack for both"


@LEADER_TOPIC_RULES.reads("together", *PLACED, DEMOTED, "topics", CREATED, GROWN)
def _fixed_partitions_agree(document: SpecDocument) -> Iterator[PathFinding]:
    """Fixed partitions of the same number must have one preferred leader, which must be able to lead the others."""
    topics = {topic.name: topic for topic in document.assignment.topics}
    members = [member for member in _members(document) if member.name in topics]
    place = place_of(document, filter_of(document))
    fixed = dict[tuple[int, int], tuple[_Member, int]]()
    for member in members:
        for row in topics[member.name].partitions:
            if not document.topic_filter.keeps(member.name, row.replicas):
                continue
            earlier, leader = fixed.setdefault((member.group, row.id), (member, row.replicas[0]))
            if leader != row.replicas[0]:
                message = (
                    f"{member.name}-{row.id} and {earlier.name}-{row.id} of {place_of(document, earlier.path)} are "
                    f"led by {row.replicas[0]} and {leader}, and {place} lets neither move; "
                    "allowed: let one of them move"
                )
                yield member.path, message
                return
    for other in members:
        may_lead = document.usable_brokers(other.name) - document.demoted_brokers
        for (group, number), (member, leader) in fixed.items():
            if group == other.group and leader not in may_lead and member.name != other.name:
                message = (
                    f"{other.name}-{number} may not be led by {leader}, which leads {member.name}-{number} of "
                    f"{place_of(document, member.path)}, and {place} doesn't let that move"
                )
                yield other.path, f"{message}; allowed: let it move"
                return
