"""The rules of a spec about `broker_sets`, `placement` and `apart`, and about `rebalance: racks`.

Sets must exist, be large enough and not contradict each other. Topics that share no broker or rack must have enough
brokers. A message names the other key that takes part, as `key (line:column)`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import accumulate, product
from typing import NamedTuple

from planner.inputs.spec.checks import (
    CREATED,
    DEMOTED,
    FACTORS,
    PLACED,
    RuleList,
    excluded_by,
    listed,
    place_of,
    unknown,
)
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding
from planner.model.cluster import a_few
from planner.model.document_fields import LEADERS, Apart
from planner.model.errors import did_you_mean
from planner.model.formats import counted
from planner.model.spec import matching

SET_RULES = RuleList()
PLACEMENT_RULES = RuleList()

# The keys that set a topic's number of replicas.
OF_REPLICAS = (CREATED, FACTORS)


@SET_RULES.reads(*TARGET_KEYS, "broker_sets", "cluster.broker_classes")
def _sets_have_brokers(document: SpecDocument) -> Iterator[PathFinding]:
    broker_ids = {broker.id for broker in (*document.brokers_today, *document.joining_brokers)}
    for name, definition in (document.get("broker_sets") or {}).items():
        path: Path = ("broker_sets", name)
        if isinstance(definition, list):
            for index, broker in enumerate(definition):
                if broker not in broker_ids:
                    message = f"{broker} is neither a broker of the cluster nor added; allowed: {listed(broker_ids)}"
                    yield (*path, index), message
        elif not document.broker_set(name):
            key, value = next(iter(definition.items()))
            existing = document.target_racks if key == "rack" else set(document.get("cluster", "broker_classes") or {})
            guess = did_you_mean(value, existing)
            allowed = ", ".join(sorted(existing)) or "a list of ids, as there is none"
            yield (*path, key), f"no broker that stays or joins has the {key} {value!r}; {guess}allowed: {allowed}"


@SET_RULES.reads(*TARGET_KEYS, "changes.rebalance", "rack_aware")
def _racks_to_repair(document: SpecDocument) -> Iterator[PathFinding]:
    if document.get("changes", "rebalance") != "racks":
        return
    path, allowed = ("changes", "rebalance"), "allowed: all, leaders, none"
    place = place_of(document, ("rack_aware",))
    if not document.rack_aware:
        yield path, f"'racks' repairs what breaks the rack rule, which {place} disables; {allowed}"
    elif document.get("rack_aware") == "as_today":
        yield path, f"'racks' repairs what {place} as_today leaves as it is; {allowed}"
    elif not document.target_racks:
        yield (
            path,
            f"'racks' repairs what breaks the rack rule, and no broker that stays or joins has a rack; {allowed}",
        )


@SET_RULES.reads("broker_sets", "placement")
def _sets_are_used(document: SpecDocument) -> Iterator[PathFinding]:
    sets = document.get("broker_sets") or {}
    references = [(path, item["brokers"]) for path, item in document.items("placement")]
    for path, name in references:
        if name not in sets:
            yield unknown((*path, "brokers"), name, "broker_sets", sets)
    used = {name for _, name in references}
    for name in (each for each in sets if each not in used):
        yield ("broker_sets", name), "no entry of placement names this set; allowed: sets that placement uses"


@SET_RULES.reads(*PLACED, "cluster.broker_classes")
def _exclusive_sets_are_apart(document: SpecDocument) -> Iterator[PathFinding]:
    """An exclusive set must have no broker in common with another set of `placement`."""
    rules = document.placement
    reported: set[frozenset[str]] = set()
    for index, rule in enumerate(rules):
        for other_index, other_rule in enumerate(rules):
            pair = frozenset((rule.broker_set, other_rule.broker_set))
            common = set(rule.brokers) & set(other_rule.brokers)
            if not other_rule.exclusive or len(pair) == 1 or not common or pair in reported:
                continue
            reported.add(pair)
            message = (
                f"{rule.broker_set!r} and {other_rule.broker_set!r} have broker {listed(common)} in common, and "
                f"{place_of(document, ('placement', other_index))} keeps {other_rule.broker_set!r} for its own topics; "
                "allowed: sets without a common broker, or exclusive: false"
            )
            yield ("placement", index, "brokers"), message


@PLACEMENT_RULES.reads(*PLACED, CREATED)
def _one_set_for_each_topic(document: SpecDocument) -> Iterator[PathFinding]:
    rules = document.placement
    names = [*(topic.name for topic in document.assignment.topics), *(new.topic for new in document.created_topics)]
    for later, rule in enumerate(rules):
        for earlier, earlier_rule in enumerate(rules[:later]):
            shared_names = [
                name for name in names if fnmatchcase(name, rule.topics) and fnmatchcase(name, earlier_rule.topics)
            ]
            if shared_names and rule.broker_set != earlier_rule.broker_set:
                message = (
                    f"{a_few(shared_names)} would be on {rule.broker_set!r}, and on {earlier_rule.broker_set!r} by "
                    f"{place_of(document, ('placement', earlier))}; allowed: one set for each topic"
                )
                yield ("placement", later, "brokers"), message


@dataclass(frozen=True)
class _Need:
    """The needs of one rule's topics: the rule's path, the beginning of its message, the brokers that the topics may
    use, and the number of replicas of each topic.
    """

    path: Path
    name: str
    usable: tuple[int, ...]
    replicas: dict[str, int]


@PLACEMENT_RULES.reads(*PLACED, "cluster.broker_classes", *OF_REPLICAS, "rack_aware")
def _sets_are_large_enough(document: SpecDocument) -> Iterator[PathFinding]:
    """A set must have a broker for each replica of its topics, and as many racks as the rack rule needs."""
    racks = document.racks_after
    all_racks = set(racks.values())
    for need in _needs(document):
        most = max(need.replicas.values(), default=0)
        wide = [name for name, replicas in need.replicas.items() if replicas > len(need.usable)]
        usable_racks = {racks[broker] for broker in need.usable}
        needed = min(most, len(all_racks))
        if wide:
            message = (
                f"{need.name} {len(need.usable)} of the brokers that stay or join, too few for "
                f"{counted(most, 'replica')} of {a_few(wide)}; allowed: {counted(most, 'broker')} or more, or a "
                "smaller changes.set_replication_factor"
            )
            yield need.path, message
        elif document.rack_aware and None not in all_racks and len(usable_racks) < needed:
            spread = [
                name for name, replicas in need.replicas.items() if min(replicas, len(all_racks)) > len(usable_racks)
            ]
            message = (
                f"{need.name} brokers in {len(usable_racks)} of {len(all_racks)} racks, too few for the rack rule and "
                f"{most} replicas of {a_few(spread)}; allowed: brokers in {needed} racks or more, "
                "or rack_aware: disabled"
            )
            yield need.path, message


@PLACEMENT_RULES.reads(*PLACED, "cluster.broker_classes", *OF_REPLICAS, "topics")
def _fixed_topics_are_in_place(document: SpecDocument) -> Iterator[PathFinding]:
    """Topics that may not move must have no replica outside the brokers that they may use."""
    brokers_of = {
        topic.name: {b for row in topic.partitions for b in row.replicas} for topic in document.assignment.topics
    }
    topic_filter = document.topic_filter
    fixed = {
        topic.name for topic in document.assignment.topics if not topic_filter.moves(topic.name) and not topic.deleting
    }
    for need in _needs(document):
        if stuck := [name for name in need.replicas if name in fixed and brokers_of[name] - set(need.usable)]:
            filter_key = place_of(document, excluded_by(document, stuck[0]))
            message = (
                f"{a_few(stuck)} may not move by {filter_key}, with replicas on brokers that this doesn't let them "
                "use; allowed: let them move, or a pattern that doesn't match them"
            )
            yield need.path, message


# The missing unit (brokers or racks), how many are needed, and how many exist.
_Lack = tuple[str, int, int]


class _ApartSide(NamedTuple):
    """The topics of a pattern of `apart`: the pattern's path and its name in a message. `needs`: for each set of usable
    brokers, the most replicas of a topic and its name. `stuck`: partitions that may not move, by the brokers that other
    sides can't use because of them: their own brokers, or all of their racks.
    """

    path: Path
    name: str
    needs: dict[frozenset[int], tuple[int, str]]
    stuck: dict[int, str]

    @property
    def most(self) -> int:
        """The most replicas that a partition of this side needs."""
        return max((factor for factor, _ in self.needs.values()), default=0)


def filter_of(document: SpecDocument) -> Path:
    """The path of the key in `topics` that keeps partitions from moving."""
    filters = ("on_brokers", "exclude", "include")
    return ("topics", next((each for each in filters if document.get("topics", each)), "include"))


def _sides(document: SpecDocument) -> Iterator[tuple[Path, Apart, list[_ApartSide]]]:
    factors, topic_filter = document.replicas_after, document.topic_filter
    racks = document.racks_after
    demoted = document.demoted_brokers
    for path, rule in document.apart:
        sides, by_leader = [], rule.by.endswith(LEADERS)
        for number, pattern in enumerate(rule.topics):
            side = _ApartSide((*path, number), "", {}, {})
            for name in sorted(matching(factors.keys(), pattern)):
                usable = document.usable_brokers(name) - (demoted if by_leader else set())
                need = (1 if by_leader else factors[name], name)
                side.needs[usable] = max(side.needs.get(usable, (0, "")), need, key=lambda e: e[0])
            for topic in document.assignment.topics:
                if topic.deleting or not fnmatchcase(topic.name, pattern):
                    continue
                for row in topic.partitions:
                    if topic_filter.keeps(topic.name, row.replicas):
                        blocked = set(row.replicas[: 1 if by_leader else None])
                        if rule.by.startswith("rack"):
                            blocked_racks = {racks.get(broker) for broker in blocked}
                            blocked |= {broker for broker, rack in racks.items() if rack in blocked_racks}
                        side.stuck.update(dict.fromkeys(blocked, f"{topic.name}-{row.id}"))
            sides.append(side._replace(name=f"{pattern!r}, {place_of(document, side.path)},"))
        yield path, rule, sides


@PLACEMENT_RULES.reads("apart", *PLACED, *OF_REPLICAS, "topics", DEMOTED)
def _sides_differ(document: SpecDocument) -> Iterator[PathFinding]:
    """A topic must be on only one side of a group. Fixed partitions of two sides must share no broker or rack."""
    names = document.replicas_after
    for _, rule, sides in _sides(document):
        patterns = rule.topics
        for later, side in enumerate(sides):
            for earlier, other in enumerate(sides[:later]):
                shared_names = [
                    n for n in names if fnmatchcase(n, patterns[later]) and fnmatchcase(n, patterns[earlier])
                ]
                if shared_names:
                    message = f"{patterns[later]!r} matches {min(shared_names)!r}, as {other.name[:-1]} does"
                    yield side.path, f"{message}; allowed: patterns without a common topic"
                elif common := sorted(side.stuck.keys() & other.stuck.keys()):
                    prefix = "led " if rule.by.endswith(LEADERS) else ""
                    where = f"{prefix}{'in the rack of' if rule.by.startswith('rack') else 'on'} broker {common[0]}"
                    message = (
                        f"{side.stuck[common[0]]} and {other.stuck[common[0]]} of {other.name} are both {where}, and "
                        f"{place_of(document, filter_of(document))} lets neither move; "
                        "allowed: let one of them move, or leave one of them out"
                    )
                    yield side.path, message


@PLACEMENT_RULES.reads("apart", *PLACED, "cluster.broker_classes", *OF_REPLICAS, "topics", "rack_aware", DEMOTED)
def _sides_have_brokers(document: SpecDocument) -> Iterator[PathFinding]:
    """All sides together must have enough brokers or racks, because no broker or rack can have two sides."""
    racks = document.racks_after
    all_racks = set(racks.values()) if document.rack_aware and None not in racks.values() else {""}
    for path, rule, sides in _sides(document):
        unit, by_leader = rule.by.removesuffix(LEADERS), rule.by.endswith(LEADERS)
        if unit == "rack" and None in racks.values():
            without = listed(broker for broker, rack in racks.items() if rack is None)
            message = f"no rack has two sides, and {place_of(document, ('cluster', 'brokers'))} has brokers without one"
            yield (
                (*path[:-1], "by"),
                f"{message}, {without}; allowed: a rack for each, or by: {rule.by.replace(unit, 'broker')}",
            )
            continue
        find_lack = partial(_lack_of, racks, {""} if by_leader else all_racks, unit)
        usable = frozenset().union(*(brokers for side in sides for brokers in side.needs))
        if lack := find_lack(usable, [side.most for side in sides]):
            units, needed, available = lack
            of_each = " and ".join(f"{side.most} for {side.name[:-1]}" for side in sides)
            where = place_of(document, ("placement",) if document.get("placement") else ("cluster", "brokers"))
            reason = f"{where} leaves {available}, as no {unit} {'leads' if by_leader else 'has'} two sides"
            message = f"needs {needed} {units}, {of_each}; {reason}"
            spread = ", rack_aware: disabled" if unit == "rack" and not by_leader and len(all_racks) > 1 else ""
            yield path, f"{message}; allowed: more {unit}s{spread}, or fewer replicas"
            continue
        for later, side in enumerate(sides):
            for other in sides[:later]:
                yield from _pair_findings(document, side, other, find_lack)


def _lack_of(
    racks: Mapping[int, str | None], all_racks: Set[str | None], by: str, brokers: Set[int], needed: Sequence[int]
) -> _Lack | None:
    """What these brokers lack for sides that need these numbers of replicas, if no broker, or no rack, may have two
    sides. Each side must use all of `all_racks`.
    """
    rack_sizes = Counter(racks[broker] if len(all_racks) > 1 or by == "rack" else "" for broker in brokers)
    if by == "rack":
        room = list(accumulate(sorted(rack_sizes.values(), reverse=True)))
        required = sum(max(min(each, len(all_racks)), 1 + bisect_left(room, each)) for each in needed)
        return ("rack" if required == 1 else "racks", required, len(room)) if len(room) < required else None
    if sum(needed) > len(brokers):
        return "brokers", sum(needed), len(brokers)
    pairs = sum(min(each, len(needed)) for each in rack_sizes.values())
    required = sum(min(each, len(all_racks)) for each in needed)
    return ("brokers in different racks", required, pairs) if pairs < required else None


def _pair_findings(
    document: SpecDocument,
    side: _ApartSide,
    other: _ApartSide,
    find_lack: Callable[[Set[int], Sequence[int]], _Lack | None],
) -> Iterator[PathFinding]:
    """One finding if `placement` rules or fixed partitions leave two sides too few brokers."""
    for (brokers, (most, name)), (other_brokers, (other_most, other_name)) in product(
        side.needs.items(), other.needs.items()
    ):
        if lack := find_lack(brokers | other_brokers, (most, other_most)):
            units, needed, available = lack
            message = (
                f"{name!r} and {other_name!r} of {other.name} need {needed} {units}, and "
                f"{place_of(document, ('placement',))} leaves them {available}; allowed: larger broker_sets, or others"
            )
            yield side.path, message
            return
    if side.stuck.keys() & other.stuck.keys():
        return  # `_sides_differ` reports it
    for needing, fixed in ((side, other), (other, side)):
        for brokers, (most, name) in needing.needs.items():
            if fixed.stuck and (lack := find_lack(brokers - fixed.stuck.keys(), (most,))):
                units, needed, available = lack
                topics = place_of(document, ("topics",))
                message = (
                    f"{name!r} of {needing.name} needs {needed} {units}, and {min(fixed.stuck.values())} of "
                    f"{fixed.name} and others that {topics} doesn't let move leave it {available}; "
                    "allowed: let them move"
                )
                yield needing.path, message
                return


def _needs(document: SpecDocument) -> Iterator[_Need]:
    """The needs of each rule's topics; then those of all other topics, on the brokers outside exclusive sets."""
    rules, targets = document.placement, [broker.id for broker in document.target_brokers]
    unplaced = dict(document.replicas_after)
    for index, rule in enumerate(rules):
        replicas = {name: unplaced.pop(name) for name in sorted(matching(unplaced.keys(), rule.topics))}
        usable = tuple(broker for broker in targets if broker in rule.brokers)
        place = place_of(document, ("broker_sets", rule.broker_set))
        yield _Need(("placement", index, "brokers"), f"{rule.broker_set!r}, {place}, has", usable, replicas)
    if exclusive_rules := [(index, rule) for index, rule in enumerate(rules) if rule.exclusive]:
        reserved = {broker for _, rule in exclusive_rules for broker in rule.brokers}
        usable = tuple(broker for broker in targets if broker not in reserved)
        sets = {rule.broker_set: place_of(document, ("broker_sets", rule.broker_set)) for _, rule in exclusive_rules}
        set_names = ", ".join(f"{name!r}, {place}," for name, place in sets.items())
        yield _Need(
            ("placement", exclusive_rules[0][0], "exclusive"), f"{set_names} leaves all other topics", usable, unplaced
        )
