"""The rules of a spec about `broker_sets` and `placement`, about `rebalance: racks`, and about who leads.

Sets exist, are large enough and don't contradict each other. Brokers that are demoted stay and keep their replicas; so
each of their partitions needs a replica elsewhere to lead it. A message names the other place of the file that takes
part, as `key (line:column)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.build_spec import (
    TARGET_KEYS,
    added_partitions,
    broker_set,
    brokers_today,
    created_topics,
    joining_brokers,
    leaving_brokers,
    placement,
    rack_aware,
    rebalance,
    replacements,
    replication_factor_changes,
    target_brokers,
    topic_filter,
)
from planner.inputs.spec.rules import DocumentRule, RuleList, TopicRule, listed
from planner.inputs.spec.sections import PROFILES, REFUSED, knows_sizes
from planner.inputs.yaml_source import Document, Path, key_text
from planner.model.amounts import parse_bytes
from planner.model.build_problem import may_move
from planner.model.cluster import some
from planner.model.errors import Finding, did_you_mean

SET_RULES: RuleList[DocumentRule] = RuleList()
PLACEMENT_RULES: RuleList[TopicRule] = RuleList()

_KEYS = (*TARGET_KEYS, "broker_sets", "placement")
# What says how many replicas a topic will have.
_OF_REPLICAS = ("changes.create_topics", "changes.set_replication_factor")


@SET_RULES.reads(*TARGET_KEYS, "broker_sets", "cluster.broker_classes")
def _sets_have_brokers(document: Document) -> Iterator[Finding]:
    known = {broker.id for broker in (*brokers_today(document), *joining_brokers(document))}
    for name, written in (document.get("broker_sets") or {}).items():
        path: Path = ("broker_sets", name)
        if isinstance(written, list):
            for at, broker in enumerate(written):
                if broker not in known:
                    message = f"{broker} is neither a broker of the cluster nor added; allowed: {listed(known)}"
                    yield document.finding((*path, at), message)
        elif not broker_set(document, name):
            key, value = next(iter(written.items()))
            if key == "rack":
                there = {broker.rack for broker in target_brokers(document) if broker.rack is not None}
            else:
                there = set(document.get("cluster", "broker_classes") or {})
            guess = did_you_mean(value, there)
            allowed = ", ".join(sorted(there)) or "a list of ids, as there is none"
            message = f"no broker that stays or joins has the {key} {value!r}; {guess}allowed: {allowed}"
            yield document.finding((*path, key), message)


@SET_RULES.reads(*TARGET_KEYS, "changes.rebalance", "rack_aware")
def _racks_to_repair(document: Document) -> Iterator[Finding]:
    """`rebalance: racks` needs racks that are enforced."""
    if document.get("changes", "rebalance") != "racks":
        return
    path, rest = ("changes", "rebalance"), "allowed: all, leaders, none"
    if not rack_aware(document):
        message = f"'racks' repairs what breaks the rack rule, which {_at(document, ('rack_aware',))} disables; {rest}"
        yield document.finding(path, message)
    elif all(broker.rack is None for broker in target_brokers(document)):
        message = f"'racks' repairs what breaks the rack rule, and no broker that stays or joins has a rack; {rest}"
        yield document.finding(path, message)


@SET_RULES.reads("broker_sets", "placement")
def _sets_are_used(document: Document) -> Iterator[Finding]:
    sets = document.get("broker_sets") or {}
    named = [(path, item["brokers"]) for path, item in document.items("placement")]
    for path, name in named:
        if name not in sets:
            known = ", ".join(sets) or "none, as broker_sets is empty"
            message = f"{name!r} isn't in broker_sets; {did_you_mean(name, sets)}allowed: {known}"
            yield document.finding((*path, "brokers"), message)
    used = {name for _, name in named}
    for name in (each for each in sets if each not in used):
        message = "no entry of placement names this set; allowed: sets that placement uses"
        yield document.finding(("broker_sets", name), message)


@SET_RULES.reads(*_KEYS, "cluster.broker_classes")
def _exclusive_sets_are_apart(document: Document) -> Iterator[Finding]:
    """An exclusive set has no broker in common with another set that topics are placed on."""
    rules = placement(document)
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
                f"{_at(document, ('placement', other))} keeps {alone.broker_set!r} for its own topics; "
                "allowed: sets without a common broker, or exclusive: false"
            )
            yield document.finding(("placement", mine, "brokers"), message)


@PLACEMENT_RULES.reads(*_KEYS, "changes.create_topics")
def _one_set_for_each_topic(document: Document, assignment: Assignment) -> Iterator[Finding]:
    rules = placement(document)
    names = [*(topic.name for topic in assignment.topics), *(new.topic for new in created_topics(document))]
    for later, rule in enumerate(rules):
        for earlier, first in enumerate(rules[:later]):
            both = [name for name in names if fnmatchcase(name, rule.topics) and fnmatchcase(name, first.topics)]
            if both and rule.broker_set != first.broker_set:
                message = (
                    f"{some(both)} would be on {rule.broker_set!r}, and on {first.broker_set!r} by "
                    f"{_at(document, ('placement', earlier))}; allowed: one set for each topic"
                )
                yield document.finding(("placement", later, "brokers"), message)


@dataclass(frozen=True)
class _Need:
    """What the topics of one rule need: the rule's path and its beginning of a message, the brokers that the topics may
    use, and the replication factor of each topic.
    """

    path: Path
    name: str
    usable: tuple[int, ...]
    replicas: dict[str, int]


@PLACEMENT_RULES.reads(*_KEYS, "cluster.broker_classes", *_OF_REPLICAS, "rack_aware")
def _sets_are_large_enough(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """A set has a broker for each replica of its topics, and as many racks as the rack rule needs."""
    racks = {broker.id: broker.rack for broker in target_brokers(document)}
    every = set(racks.values())
    for need in _needs(document, assignment):
        most = max(need.replicas.values(), default=0)
        wide = [name for name, replicas in need.replicas.items() if replicas > len(need.usable)]
        there = {racks[broker] for broker in need.usable}
        wanted = min(most, len(every))
        if wide:
            message = (
                f"{need.name} {len(need.usable)} of the brokers that stay or join, too few for {most} replicas of "
                f"{some(wide)}; allowed: {most} brokers or more, or a smaller changes.set_replication_factor"
            )
            yield document.finding(need.path, message)
        elif rack_aware(document) and None not in every and len(there) < wanted:
            spread = [name for name, replicas in need.replicas.items() if min(replicas, len(every)) > len(there)]
            message = (
                f"{need.name} brokers in {len(there)} of {len(every)} racks, too few for the rack rule and {most} "
                f"replicas of {some(spread)}; allowed: brokers in {wanted} racks or more, or rack_aware: disabled"
            )
            yield document.finding(need.path, message)


@PLACEMENT_RULES.reads(*_KEYS, "cluster.broker_classes", *_OF_REPLICAS, "topics")
def _fixed_topics_are_in_place(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Topics that may not move have no replica outside of the brokers that they may use."""
    chosen = topic_filter(document)
    held = {topic.name: {b for row in topic.partitions for b in row.replicas} for topic in assignment.topics}
    fixed = {topic.name for topic in assignment.topics if not may_move(chosen, topic.name) and not topic.deleting}
    for need in _needs(document, assignment):
        stuck = [name for name in need.replicas if name in fixed and held[name] - set(need.usable)]
        if stuck:
            excluded = (path for path, pattern in document.items("topics", "exclude") if fnmatchcase(stuck[0], pattern))
            other = _at(document, next(excluded, ("topics", "include")))
            message = (
                f"{some(stuck)} may not move by {other}, with replicas on brokers that this doesn't let them use; "
                "allowed: let them move, or a pattern that doesn't match them"
            )
            yield document.finding(need.path, message)


def _needs(document: Document, assignment: Assignment) -> Iterator[_Need]:
    """The needs of each rule's topics; then those of all other topics, on brokers that exclusive sets leave to them."""
    rules, targets = placement(document), [broker.id for broker in target_brokers(document)]
    left = _replicas(document, assignment)
    for at, rule in enumerate(rules):
        mine = {name: left.pop(name) for name in sorted(left) if fnmatchcase(name, rule.topics)}
        usable = tuple(broker for broker in targets if broker in rule.brokers)
        where = _at(document, ("broker_sets", rule.broker_set))
        yield _Need(("placement", at, "brokers"), f"{rule.broker_set!r}, {where}, has", usable, mine)
    alone = [(at, rule) for at, rule in enumerate(rules) if rule.exclusive]
    if alone:
        reserved = {broker for _, rule in alone for broker in rule.brokers}
        usable = tuple(broker for broker in targets if broker not in reserved)
        sets = {rule.broker_set: _at(document, ("broker_sets", rule.broker_set)) for _, rule in alone}
        named = ", ".join(f"{name!r}, {where}," for name, where in sets.items())
        yield _Need(("placement", alone[0][0], "exclusive"), f"{named} leaves all other topics", usable, left)


def _replicas(document: Document, assignment: Assignment) -> dict[str, int]:
    """The most replicas that a partition of each topic will have; without topics that are being deleted."""
    changes = replication_factor_changes(document)
    kept = {
        topic.name: max(len(partition.replicas) for partition in topic.partitions)
        for topic in assignment.topics
        if not topic.deleting
    }
    asked = {name: change.replication_factor for change in changes for name in kept if fnmatchcase(name, change.topics)}
    return kept | asked | {new.topic: new.replication_factor for new in created_topics(document)}


def _at(document: Document, path: Path) -> str:
    """Another place of the file, for a message."""
    place = document.place(path)
    return f"{key_text(path)} ({place.line}:{place.column})"


_CLASSES = ("cluster", "broker_classes")


@SET_RULES.reads("cluster.profile")
def _profile_is_known(document: Document) -> Iterator[Finding]:
    name = document.get("cluster", "profile")
    if name is None or name in PROFILES:
        return
    why = next((why for begins, why in REFUSED.items() if name.startswith(begins)), None)
    allowed = f"allowed: {', '.join(PROFILES)}"
    message = f"{name!r} isn't known; {did_you_mean(name, PROFILES)}{allowed}"
    yield document.finding(("cluster", "profile"), message if why is None else f"{why}: there is nothing to plan")


@SET_RULES.reads("cluster.brokers", "changes.add_brokers", "cluster.broker_classes", "cluster.state", "cluster.load")
def _caps_matter(document: Document) -> Iterator[Finding]:
    """No broker leads more partitions than it holds."""
    classes: list[tuple[Path, Any]] = [
        ((*_CLASSES, name), each) for name, each in (document.get(*_CLASSES) or {}).items()
    ]
    for prefix in (("cluster", "brokers"), ("changes", "add_brokers")):
        classes += [((*path, "capacity"), item.get("capacity") or {}) for path, item in document.items(*prefix)]
    for path, stated in classes:
        replicas, leaders = stated.get("max_replicas"), stated.get("max_leaders")
        if replicas is not None and leaders is not None and leaders >= replicas:
            message = f"{leaders} changes nothing beside {_at(document, (*path, 'max_replicas'))} of {replicas}"
            yield document.finding((*path, "max_leaders"), f"{message}; allowed: less than that, or no max_leaders")
        if (most := stated.get("max_disk")) is not None and not knows_sizes(document):
            message = f"{most!r} can't be kept without sizes; allowed: cluster.state.sizes, or no max_disk"
            yield document.finding((*path, "max_disk"), message)
        elif most is not None and "disk" in stated and parse_bytes(most) >= parse_bytes(stated["disk"]):
            message = f"{most!r} changes nothing beside {_at(document, (*path, 'disk'))} of {stated['disk']!r}"
            yield document.finding((*path, "max_disk"), f"{message}; allowed: less than that, or no max_disk")


@PLACEMENT_RULES.reads(*TARGET_KEYS, *_OF_REPLICAS, "changes.add_partitions", "rack_aware")
def _caps_leave_room(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """All that has to be placed fits under the caps together, in each rack as much as the rack rule puts there."""
    factors, targets = _replicas(document, assignment), target_brokers(document)
    known = {topic.name: len(topic.partitions) for topic in assignment.topics if topic.name in factors}
    more = {new.topic: new.count for new in added_partitions(document, assignment.topics)}
    made = {new.topic: new.count for new in created_topics(document)}
    counts = Counter[int]()
    for name, count in (known | more | made).items():
        counts[factors[name]] += count
    for key, what, total in (
        ("max_replicas", "replicas", sum(factor * count for factor, count in counts.items())),
        ("max_leaders", "leaders", sum(counts.values())),
    ):
        caps = {broker.id: getattr(broker, key) for broker in targets}
        if None not in caps.values() and sum(caps.values()) < total:
            message = f"the brokers that stay or join have room for {sum(caps.values())} {what}, and there are {total}"
            yield _capped(document, min(caps), key, message, "higher caps, or more brokers")
    racks = {broker.rack for broker in targets}
    for rack in sorted(racks - {None}, key=str) if rack_aware(document) and None not in racks else ():
        here = {broker.id: broker.max_replicas for broker in targets if broker.rack == rack}
        needed = sum(min(len(here), factor // len(racks)) * count for factor, count in counts.items())
        room = sum(cap or 0 for cap in here.values())
        if None not in here.values() and room < needed:
            message = (
                f"the brokers of rack {rack!r} have room for {room} replicas, and the rack rule puts {needed} there"
            )
            yield _capped(document, min(here), "max_replicas", message, "higher caps, or more brokers in the rack")


@PLACEMENT_RULES.reads(*TARGET_KEYS, *_OF_REPLICAS, "topics", "changes.rebalance", "placement")
def _caps_hold_what_stays(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """A broker may hold what can't leave it: replicas of fixed topics, or all where nothing moves that needn't."""
    chosen, mode = topic_filter(document), rebalance(document.get("changes") or {})
    unforced = mode in ("leaders", "none") and not any(document.get(*key) for key in _FORCING)
    fixed, every = Counter[int](), Counter[int]()
    leaving = leaving_brokers(document)
    for topic in assignment.topics:
        for row in topic.partitions:
            every.update(row.replicas if not leaving & set(row.replicas) else ())
            fixed.update(row.replicas if topic.deleting or not may_move(chosen, topic.name) else ())
    for broker in target_brokers(document):
        cap = broker.max_replicas
        if cap is not None and fixed[broker.id] > cap:
            other = _at(document, ("topics", "exclude" if document.get("topics", "exclude") else "include"))
            message = f"broker {broker.id} holds {fixed[broker.id]} replicas that may not move by {other}, above {cap}"
            yield _capped(document, broker.id, "max_replicas", message, "a higher cap, or topics that let them move")
        elif cap is not None and unforced and every[broker.id] > cap:
            other = _at(document, ("changes", "rebalance"))
            message = f"broker {broker.id} holds {every[broker.id]} replicas, above {cap}, and {other} lets none leave"
            yield _capped(document, broker.id, "max_replicas", message, "a higher cap, or rebalance: all")


# What makes replicas move, whatever `rebalance` says.
_FORCING = (("changes", "set_replication_factor"), ("changes", "set_racks"), ("placement",))


def _capped(document: Document, broker: int, key: str, message: str, allowed: str) -> Finding:
    """A finding where a broker's cap is written: at itself or whom it replaces, in its class, or in the profile."""
    names = {broker, *(old for old, new in replacements(document) if new == broker)}
    for prefix in (("cluster", "brokers"), ("changes", "add_brokers")):
        for path, item in document.items(*prefix):
            for place in ((*path, "capacity"), (*_CLASSES, item.get("class", ""))):
                if item["id"] in names and key in (document.get(*place) or {}):
                    return document.finding((*place, key), f"{message}; allowed: {allowed}")
    return document.finding(("cluster", "profile"), f"{message}; allowed: {allowed}")


LEADER_RULES: RuleList[DocumentRule] = RuleList()
LEADER_TOPIC_RULES: RuleList[TopicRule] = RuleList()

_DEMOTED = "changes.demote_brokers"


@LEADER_RULES.reads(*TARGET_KEYS, _DEMOTED)
def _demoted_stay(document: Document) -> Iterator[Finding]:
    """Each is a broker that stays or joins, and some broker is left to lead."""
    targets = {broker.id for broker in target_brokers(document)}
    demoted = list(document.items("changes", "demote_brokers"))
    for path, broker in demoted:
        if broker not in targets:
            yield document.finding(path, f"{broker} doesn't stay in the cluster; allowed: {listed(targets)}")
    if demoted and targets <= {broker for _, broker in demoted}:
        message = "no broker is left to lead; allowed: some of the brokers that stay or join"
        yield document.finding(("changes", "demote_brokers"), message)


@LEADER_RULES.reads(*TARGET_KEYS, "leader_racks")
def _racks_have_brokers(document: Document) -> Iterator[Finding]:
    racks = {broker.rack for broker in target_brokers(document) if broker.rack is not None}
    for path, item in document.items("leader_racks"):
        for at, rack in enumerate(item["prefer"]):
            if rack not in racks:
                allowed = ", ".join(sorted(racks)) or "no rack, as no broker has one"
                message = f"no broker that stays or joins has the rack {rack!r}; {did_you_mean(rack, racks)}"
                yield document.finding((*path, "prefer", at), f"{message}allowed: {allowed}")


@LEADER_TOPIC_RULES.reads(*TARGET_KEYS, _DEMOTED, "topics", "changes.set_replication_factor")
def _others_can_lead(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Every partition that a demoted broker leads has a replica elsewhere, and may be led by it."""
    demoted = set(document.get("changes", "demote_brokers") or ())
    if not demoted:
        return
    chosen, alone, fixed = topic_filter(document), list[str](), list[str]()
    more = [
        change.topics for change in replication_factor_changes(document) if change.replication_factor > len(demoted)
    ]
    for topic in (each for each in assignment.topics if not each.deleting):
        grows = any(fnmatchcase(topic.name, pattern) for pattern in more)
        for row in topic.partitions:
            if row.replicas and set(row.replicas) <= demoted and not grows:
                alone.append(f"{topic.name}-{row.id}")
            elif row.replicas and row.replicas[0] in demoted and not may_move(chosen, topic.name):
                fixed.append(f"{topic.name}-{row.id}")
    path = ("changes", "demote_brokers")
    if alone:
        message = (
            f"nobody else can lead {some(alone, 'partition')}, without a replica elsewhere; allowed: other brokers, "
        )
        yield document.finding(path, f"{message}or first a larger changes.set_replication_factor")
    if fixed:
        message = (
            f"{some(fixed, 'partition')} may not change by topics.include or topics.exclude, and is led by one of these"
        )
        yield document.finding(path, f"{message}; allowed: topics that let them change")
