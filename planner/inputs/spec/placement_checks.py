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
from planner.model.cluster import LEADERS, Apart, some
from planner.model.errors import did_you_mean
from planner.model.formats import counted
from planner.model.spec import matching

SET_RULES = RuleList()
PLACEMENT_RULES = RuleList()

# The keys that set a topic's number of replicas.
OF_REPLICAS = (CREATED, FACTORS)


@SET_RULES.reads(*TARGET_KEYS, "broker_sets", "cluster.broker_classes")
def _sets_have_brokers(document: SpecDocument) -> Iterator[PathFinding]:
    known = {broker.id for broker in (*document.brokers_today, *document.joining_brokers)}
    for name, written in (document.get("broker_sets") or {}).items():
        path: Path = ("broker_sets", name)
        if isinstance(written, list):
            for at, broker in enumerate(written):
                if broker not in known:
                    message = f"{broker} is neither a broker of the cluster nor added; allowed: {listed(known)}"
                    yield (*path, at), message
        elif not document.broker_set(name):
            key, value = next(iter(written.items()))
            there = document.target_racks if key == "rack" else set(document.get("cluster", "broker_classes") or {})
            guess = did_you_mean(value, there)
            allowed = ", ".join(sorted(there)) or "a list of ids, as there is none"
            yield (*path, key), f"no broker that stays or joins has the {key} {value!r}; {guess}allowed: {allowed}"


@SET_RULES.reads(*TARGET_KEYS, "changes.rebalance", "rack_aware")
def _racks_to_repair(document: SpecDocument) -> Iterator[PathFinding]:
    if document.get("changes", "rebalance") != "racks":
        return
    path, rest = ("changes", "rebalance"), "allowed: all, leaders, none"
    where = place_of(document, ("rack_aware",))
    if not document.rack_aware:
        yield path, f"'racks' repairs what breaks the rack rule, which {where} disables; {rest}"
    elif document.get("rack_aware") == "as_today":
        yield path, f"'racks' repairs what {where} as_today leaves as it is; {rest}"
    elif not document.target_racks:
        yield path, f"'racks' repairs what breaks the rack rule, and no broker that stays or joins has a rack; {rest}"


@SET_RULES.reads("broker_sets", "placement")
def _sets_are_used(document: SpecDocument) -> Iterator[PathFinding]:
    sets = document.get("broker_sets") or {}
    named = [(path, item["brokers"]) for path, item in document.items("placement")]
    for path, name in named:
        if name not in sets:
            yield unknown((*path, "brokers"), name, "broker_sets", sets)
    used = {name for _, name in named}
    for name in (each for each in sets if each not in used):
        yield ("broker_sets", name), "no entry of placement names this set; allowed: sets that placement uses"


@SET_RULES.reads(*PLACED, "cluster.broker_classes")
def _exclusive_sets_are_apart(document: SpecDocument) -> Iterator[PathFinding]:
    """An exclusive set must have no broker in common with another set of `placement`."""
    rules = document.placement
    reported: set[frozenset[str]] = set()
    for mine, rule in enumerate(rules):
        for other, alone in enumerate(rules):
            pair = frozenset((rule.broker_set, alone.broker_set))
            common = set(rule.brokers) & set(alone.brokers)
            if not alone.exclusive or len(pair) == 1 or not common or pair in reported:
                continue
            reported.add(pair)
            message = (
                f"{rule.broker_set!r} and {alone.broker_set!r} have broker {listed(common)} in common, and "
                f"{place_of(document, ('placement', other))} keeps {alone.broker_set!r} for its own topics; "
                "allowed: sets without a common broker, or exclusive: false"
            )
            yield ("placement", mine, "brokers"), message


@PLACEMENT_RULES.reads(*PLACED, CREATED)
def _one_set_for_each_topic(document: SpecDocument) -> Iterator[PathFinding]:
    rules = document.placement
    names = [*(topic.name for topic in document.assignment.topics), *(new.topic for new in document.created_topics)]
    for later, rule in enumerate(rules):
        for earlier, first in enumerate(rules[:later]):
            both = [name for name in names if fnmatchcase(name, rule.topics) and fnmatchcase(name, first.topics)]
            if both and rule.broker_set != first.broker_set:
                message = (
                    f"{some(both)} would be on {rule.broker_set!r}, and on {first.broker_set!r} by "
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
    every = set(racks.values())
    for need in _needs(document):
        most = max(need.replicas.values(), default=0)
        wide = [name for name, replicas in need.replicas.items() if replicas > len(need.usable)]
        there = {racks[broker] for broker in need.usable}
        wanted = min(most, len(every))
        if wide:
            message = (
                f"{need.name} {len(need.usable)} of the brokers that stay or join, too few for "
                f"{counted(most, 'replica')} of {some(wide)}; allowed: {counted(most, 'broker')} or more, or a smaller "
                "changes.set_replication_factor"
            )
            yield need.path, message
        elif document.rack_aware and None not in every and len(there) < wanted:
            spread = [name for name, replicas in need.replicas.items() if min(replicas, len(every)) > len(there)]
            message = (
                f"{need.name} brokers in {len(there)} of {len(every)} racks, too few for the rack rule and {most} "
                f"replicas of {some(spread)}; allowed: brokers in {wanted} racks or more, or rack_aware: disabled"
            )
            yield need.path, message


@PLACEMENT_RULES.reads(*PLACED, "cluster.broker_classes", *OF_REPLICAS, "topics")
def _fixed_topics_are_in_place(document: SpecDocument) -> Iterator[PathFinding]:
    """Topics that may not move must have no replica outside the brokers that they may use."""
    held = {topic.name: {b for row in topic.partitions for b in row.replicas} for topic in document.assignment.topics}
    chosen = document.topic_filter
    fixed = {topic.name for topic in document.assignment.topics if not chosen.moves(topic.name) and not topic.deleting}
    for need in _needs(document):
        if stuck := [name for name in need.replicas if name in fixed and held[name] - set(need.usable)]:
            other = place_of(document, excluded_by(document, stuck[0]))
            message = (
                f"{some(stuck)} may not move by {other}, with replicas on brokers that this doesn't let them use; "
                "allowed: let them move, or a pattern that doesn't match them"
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
    factors, chosen = document.replicas_after, document.topic_filter
    racks = document.racks_after
    demoted = document.demoted_brokers
    for path, rule in document.apart:
        sides, led = [], rule.by.endswith(LEADERS)
        for number, pattern in enumerate(rule.topics):
            side = _ApartSide((*path, number), "", {}, {})
            for name in sorted(matching(factors.keys(), pattern)):
                usable = document.usable_brokers(name) - (demoted if led else set())
                needed = (1 if led else factors[name], name)
                side.needs[usable] = max(side.needs.get(usable, (0, "")), needed, key=lambda e: e[0])
            for topic in document.assignment.topics:
                if topic.deleting or not fnmatchcase(topic.name, pattern):
                    continue
                for row in topic.partitions:
                    if chosen.keeps(topic.name, row.replicas):
                        kept = set(row.replicas[: 1 if led else None])
                        if rule.by.startswith("rack"):
                            there = {racks.get(broker) for broker in kept}
                            kept |= {broker for broker, rack in racks.items() if rack in there}
                        side.stuck.update(dict.fromkeys(kept, f"{topic.name}-{row.id}"))
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
                both = [n for n in names if fnmatchcase(n, patterns[later]) and fnmatchcase(n, patterns[earlier])]
                if both:
                    message = f"{patterns[later]!r} matches {min(both)!r}, as {other.name[:-1]} does"
                    yield side.path, f"{message}; allowed: patterns without a common topic"
                elif common := sorted(side.stuck.keys() & other.stuck.keys()):
                    led = "led " if rule.by.endswith(LEADERS) else ""
                    where = f"{led}{'in the rack of' if rule.by.startswith('rack') else 'on'} broker {common[0]}"
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
    every = set(racks.values()) if document.rack_aware and None not in racks.values() else {""}
    for path, rule, sides in _sides(document):
        unit, led = rule.by.removesuffix(LEADERS), rule.by.endswith(LEADERS)
        if unit == "rack" and None in racks.values():
            without = listed(broker for broker, rack in racks.items() if rack is None)
            message = f"no rack has two sides, and {place_of(document, ('cluster', 'brokers'))} has brokers without one"
            yield (
                (*path[:-1], "by"),
                f"{message}, {without}; allowed: a rack for each, or by: {rule.by.replace(unit, 'broker')}",
            )
            continue
        short = partial(_lack_of, racks, {""} if led else every, unit)
        usable = frozenset().union(*(brokers for side in sides for brokers in side.needs))
        if lack := short(usable, [side.most for side in sides]):
            what, needed, there = lack
            of_each = " and ".join(f"{side.most} for {side.name[:-1]}" for side in sides)
            where = place_of(document, ("placement",) if document.get("placement") else ("cluster", "brokers"))
            why = f"{where} leaves {there}, as no {unit} {'leads' if led else 'has'} two sides"
            message = f"needs {needed} {what}, {of_each}; {why}"
            spread = ", rack_aware: disabled" if unit == "rack" and not led and len(every) > 1 else ""
            yield path, f"{message}; allowed: more {unit}s{spread}, or fewer replicas"
            continue
        for later, side in enumerate(sides):
            for other in sides[:later]:
                yield from _pair(document, side, other, short)


def _lack_of(
    racks: Mapping[int, str | None], every: Set[str | None], by: str, brokers: Set[int], needed: Sequence[int]
) -> _Lack | None:
    """What these brokers lack for sides that need these numbers of replicas, if no broker, or no rack, may have two
    sides. Each side must use `every` rack.
    """
    here = Counter(racks[broker] if len(every) > 1 or by == "rack" else "" for broker in brokers)
    if by == "rack":
        room = list(accumulate(sorted(here.values(), reverse=True)))
        wanted = sum(max(min(each, len(every)), 1 + bisect_left(room, each)) for each in needed)
        return ("rack" if wanted == 1 else "racks", wanted, len(room)) if len(room) < wanted else None
    if sum(needed) > len(brokers):
        return "brokers", sum(needed), len(brokers)
    pairs = sum(min(each, len(needed)) for each in here.values())
    wanted = sum(min(each, len(every)) for each in needed)
    return ("brokers in different racks", wanted, pairs) if pairs < wanted else None


def _pair(
    document: SpecDocument,
    side: _ApartSide,
    other: _ApartSide,
    short: Callable[[Set[int], Sequence[int]], _Lack | None],
) -> Iterator[PathFinding]:
    """One finding if `placement` rules or fixed partitions leave two sides too few brokers."""
    for (mine, (most, name)), (theirs, (others, another)) in product(side.needs.items(), other.needs.items()):
        if lack := short(mine | theirs, (most, others)):
            what, needed, there = lack
            message = (
                f"{name!r} and {another!r} of {other.name} need {needed} {what}, and "
                f"{place_of(document, ('placement',))} leaves them {there}; allowed: larger broker_sets, or others"
            )
            yield side.path, message
            return
    if side.stuck.keys() & other.stuck.keys():
        return  # `_sides_differ` reports it
    for one, two in ((side, other), (other, side)):
        for brokers, (most, name) in one.needs.items():
            if two.stuck and (lack := short(brokers - two.stuck.keys(), (most,))):
                what, needed, there = lack
                topics = place_of(document, ("topics",))
                message = (
                    f"{name!r} of {one.name} needs {needed} {what}, and {min(two.stuck.values())} of {two.name} and "
                    f"others that {topics} doesn't let move leave it {there}; allowed: let them move"
                )
                yield one.path, message
                return


def _needs(document: SpecDocument) -> Iterator[_Need]:
    """The needs of each rule's topics; then those of all other topics, on the brokers outside exclusive sets."""
    rules, targets = document.placement, [broker.id for broker in document.target_brokers]
    left = dict(document.replicas_after)
    for at, rule in enumerate(rules):
        mine = {name: left.pop(name) for name in sorted(matching(left.keys(), rule.topics))}
        usable = tuple(broker for broker in targets if broker in rule.brokers)
        where = place_of(document, ("broker_sets", rule.broker_set))
        yield _Need(("placement", at, "brokers"), f"{rule.broker_set!r}, {where}, has", usable, mine)
    if alone := [(at, rule) for at, rule in enumerate(rules) if rule.exclusive]:
        reserved = {broker for _, rule in alone for broker in rule.brokers}
        usable = tuple(broker for broker in targets if broker not in reserved)
        sets = {rule.broker_set: place_of(document, ("broker_sets", rule.broker_set)) for _, rule in alone}
        named = ", ".join(f"{name!r}, {where}," for name, where in sets.items())
        yield _Need(("placement", alone[0][0], "exclusive"), f"{named} leaves all other topics", usable, left)
