"""What no schema can say: rules that tie one part of a spec to another.

Each rule reads some keys and is left out where those keys are broken already, so that one slip of the pen gives one
finding and not a tail of consequences. Rules about topics need them to have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.build_spec import (
    TARGET_KEYS,
    added_brokers,
    brokers_today,
    joining_brokers,
    leaving_brokers,
    rack_aware,
    replacements,
    set_racks,
    target_brokers,
    variants,
)
from planner.inputs.spec.section_rules import LIMIT_RULES, LOG_DIR_RULES, REPORT_RULES, VALIDITY_RULES
from planner.inputs.spec.sections import BYTES, growth, knows_sizes, knows_traffic
from planner.inputs.spec.topic_rules import PATTERN_RULES, TOPIC_RULES, TopicRule, known_brokers
from planner.inputs.yaml_source import Document, Path, key_text
from planner.model.errors import Finding, did_you_mean

BrokerRule = Callable[[Document], Iterator[Finding]]


def rule_findings(
    document: Document, assignment: Assignment | None, broken: Iterable[Finding], *, partial: bool = False
) -> list[Finding]:
    """The findings of every rule whose keys are sound; `assignment` is None where today's topics aren't known.

    Where it is `partial`, as some state file can't be read, nobody knows whether a pattern matches a topic.

    Each of `sweep.variants` is held against the rules that read `changes`, as if it stood there.
    """
    bad_keys = {finding.key for finding in broken}
    topic_rules = TOPIC_RULES if partial else (*TOPIC_RULES, *PATTERN_RULES)
    found = _findings(document, assignment, bad_keys, _Rules(BROKER_RULES, topic_rules))
    of_changes = _Rules(
        tuple(rule for rule in BROKER_RULES if _reads_changes(rule[0])),
        tuple(rule for rule in topic_rules if _reads_changes(rule[0]) or rule[1] is known_brokers),
    )
    for _, view in variants(document):
        there = key_text(view.written(("changes",)))
        told = _findings(view, assignment, {_as_changes(key, there) for key in bad_keys}, of_changes)
        found += [_of_variant(finding, there) for finding in told if finding not in found]
    return found


def _of_variant(finding: Finding, there: str) -> Finding:
    """A finding that isn't about a key of the variant's changes, but comes from them, says so."""
    return finding if _touches(finding.key, there) else replace(finding, message=f"{finding.message} (in {there})")


class _Rules(NamedTuple):
    """Rules with the keys that they read."""

    brokers: tuple[tuple[tuple[str, ...], BrokerRule], ...]
    topics: tuple[tuple[tuple[str, ...], TopicRule], ...]


def _findings(document: Document, assignment: Assignment | None, bad_keys: set[str], rules: _Rules) -> list[Finding]:
    # A broker's capacity may be that of its class.
    if any(_touches(bad, "cluster.broker_classes") for bad in bad_keys):
        bad_keys = {*bad_keys, _BROKERS, _ADD}

    def sound(reads: tuple[str, ...]) -> bool:
        return not any(_touches(bad, key) for bad in bad_keys for key in reads)

    found = [finding for reads, rule in rules.brokers if sound(reads) for finding in rule(document)]
    if assignment is None:
        return found
    # A broker that isn't known makes every count of target brokers wrong.
    bad_keys = bad_keys | {finding.key for finding in found}
    for reads, rule in rules.topics:
        told = list(rule(document, assignment)) if sound(reads) else []
        found += told
        # So does one that holds replicas and isn't listed.
        if rule is known_brokers and told:
            bad_keys = bad_keys | {_BROKERS}
    return found


def _reads_changes(reads: tuple[str, ...]) -> bool:
    return any(key.startswith("changes.") for key in reads)


def _as_changes(key: str, there: str) -> str:
    """A key as it is called where what is written at `there` stands in the place of `changes`."""
    if key == there or key.startswith((f"{there}.", f"{there}[")):
        return "changes" + key[len(there) :]
    if there.startswith((f"{key}.", f"{key}[")):
        return "changes"
    return "" if _touches(key, "changes") else key


def _touches(one: str, other: str) -> bool:
    """True where a key is the other one, inside it, or around it."""
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def source_findings(document: Document) -> Iterator[Finding]:
    """Today's topics come from exactly one source."""
    cluster = document.get("cluster")
    if not isinstance(cluster, dict):
        return
    if "state" in cluster and "topics" in cluster:
        message = "both state and topics say what the cluster holds; allowed: one of them"
        yield document.finding(("cluster", "topics"), message)
    if "state" not in cluster and "topics" not in cluster:
        message = "neither state nor topics says what the cluster holds; allowed: one of them"
        yield document.finding(("cluster",), message)
    state = cluster.get("state")
    if isinstance(state, dict) and not {"assignment", "files"} & state.keys():
        allowed = "what kafka-topics --describe prints, here or in files"
        yield document.finding(("cluster", "state", "assignment"), f"is missing; allowed: {allowed}")


def _brokers_once(document: Document) -> Iterator[Finding]:
    today: set[int] = set()
    for at, broker in enumerate(brokers_today(document)):
        if broker.id in today:
            yield document.finding(
                ("cluster", "brokers", at, "id"), f"{broker.id} is here twice; allowed: each broker once"
            )
        today.add(broker.id)


def _added_once(document: Document) -> Iterator[Finding]:
    today = {broker.id for broker in brokers_today(document)}
    removed = set(document.get("changes", "remove_brokers") or ())
    added: set[int] = set()
    for at, broker in enumerate(added_brokers(document)):
        path = ("changes", "add_brokers", at, "id")
        if broker.id in today:
            message = f"{broker.id} is a broker of the cluster already; allowed: an id that cluster.brokers doesn't use"
            yield document.finding(path, message)
        elif broker.id in removed:
            yield document.finding(path, f"{broker.id} is removed too; allowed: one of the two")
        elif broker.id in added:
            yield document.finding(path, f"{broker.id} is added twice; allowed: each broker once")
        added.add(broker.id)


def _removed_known(document: Document) -> Iterator[Finding]:
    known = _ids(document)
    added = {broker.id for broker in added_brokers(document)}
    for at, broker in enumerate(document.get("changes", "remove_brokers") or ()):
        if broker not in known and broker not in added:
            message = f"{broker} isn't a broker of the cluster; allowed: {_listed(known)}"
            yield document.finding(("changes", "remove_brokers", at), message)


def _replaced_known(document: Document) -> Iterator[Finding]:
    known = _ids(document)
    leaving = leaving_brokers(document)
    removed = set(document.get("changes", "remove_brokers") or ())
    takers: set[int] = set()
    for old, new in replacements(document):
        path = ("changes", "replace_brokers", str(old))
        if old not in known:
            yield document.finding(path, f"{old} isn't a broker of the cluster; allowed: {_listed(known)}")
        if old in removed:
            yield document.finding(path, f"{old} is removed too; allowed: one of the two")
        if new in leaving:
            yield document.finding(path, f"{new} leaves the cluster itself; allowed: a broker that stays or joins")
        if new in takers:
            yield document.finding(path, f"{new} replaces another broker already; allowed: a broker for each")
        takers.add(new)


def _racks_of_known(document: Document) -> Iterator[Finding]:
    known = _ids(document) | {broker.id for broker in joining_brokers(document)}
    for broker, _ in set_racks(document):
        if broker not in known:
            message = f"{broker} is neither a broker of the cluster nor added; allowed: {_listed(known)}"
            yield document.finding(("changes", "set_racks", str(broker)), message)


def _racks_for_all(document: Document) -> Iterator[Finding]:
    """Kafka refuses rack-aware placement where only some brokers have racks (KIP-36)."""
    targets = target_brokers(document)
    without = [broker.id for broker in targets if broker.rack is None]
    if not rack_aware(document) or len(without) in (0, len(targets)):
        return
    allowed = "a rack for every broker that stays or joins, for none, or rack_aware: disabled"
    for path, who, old in _written(document, set(without)):
        if old is None:
            yield document.finding((*path, "rack"), f"broker {who} has no rack, but others have; allowed: {allowed}")
        else:
            message = f"broker {who} gets no rack from broker {old}, but others have one; allowed: {allowed}"
            yield document.finding(path, message)


def _disks_for_all(document: Document) -> Iterator[Finding]:
    """A share of a disk needs the disk: limits.disk_used can't be judged for a broker without one."""
    if document.get("limits", "disk_used") is None:
        return
    without = {broker.id for broker in target_brokers(document) if broker.disk_bytes is None}
    allowed = "capacity.disk for every broker that stays or joins, or no limits.disk_used"
    for path, who, old in _written(document, without):
        if old is None:
            message = f"broker {who} has no capacity.disk, which limits.disk_used needs; allowed: {allowed}"
            yield document.finding((*path, "capacity"), message)
        else:
            message = f"broker {who} gets no capacity.disk from broker {old}; allowed: {allowed}"
            yield document.finding(path, message)


def _written(document: Document, ids: set[int]) -> Iterator[tuple[Path, int, int | None]]:
    """Where each of these target brokers is written, its id, and whom it replaces where it is named only there."""
    for prefix, brokers in (
        (("cluster", "brokers"), brokers_today(document)),
        (("changes", "add_brokers"), added_brokers(document)),
    ):
        yield from (((*prefix, at), broker.id, None) for at, broker in enumerate(brokers) if broker.id in ids)
    inherited = {broker.id for broker in joining_brokers(document)} - {each.id for each in added_brokers(document)}
    for old, new in replacements(document):
        if new in inherited & ids and old in _ids(document):
            yield ("changes", "replace_brokers", str(old)), new, old


def _classes_known(document: Document) -> Iterator[Finding]:
    """A broker says what it can hold once: by its class, or by itself."""
    classes = document.get("cluster", "broker_classes") or {}
    for prefix in (("cluster", "brokers"), ("changes", "add_brokers")):
        for at, item in enumerate(document.get(*prefix) or ()):
            path = (*prefix, at, "class")
            if "class" in item and "capacity" in item:
                yield document.finding(
                    path, "both class and capacity say what the broker can hold; allowed: one of them"
                )
            if "class" in item and item["class"] not in classes:
                listed = ", ".join(classes) or "none, as cluster.broker_classes is empty"
                guess = did_you_mean(item["class"], classes)
                message = f"{item['class']!r} isn't in cluster.broker_classes; {guess}allowed: {listed}"
                yield document.finding(path, message)


def _bytes_are_known(document: Document) -> Iterator[Finding]:
    """What counts bytes needs sizes, and what counts traffic needs rates."""
    asked: list[tuple[Path, str]] = [(("balance", name), name) for name in BYTES]
    asked += [
        (("sweep", "balance", name, at), name)
        for name in BYTES
        for at in range(len(document.get("sweep", "balance", name) or ()))
    ]
    asked += [(("budget", "bytes_moved"), "disk"), (("sweep", "choose", "most_even_within_bytes"), "disk")]
    asked += [(("balance", "log_dirs"), "disk")]
    for path, name in asked:
        value = document.get(*path)
        if value not in (None, "none") and not _knows(document, name):
            what, allowed = _NEEDS["disk" if name == "disk" else "network"]
            yield document.finding(path, f"{value!r} can't be judged without {what}; allowed: {allowed}")


def _knows(document: Document, name: str) -> bool:
    return knows_sizes(document) if name == "disk" else knows_traffic(document, name)


def _variants_once(document: Document) -> Iterator[Finding]:
    names = [item["name"] for item in document.get("sweep", "variants") or ()]
    yield from _named_once(document, ("sweep", "variants"), names)
    for at, name in enumerate(names):
        if name == "changes":
            message = "'changes' is what changes itself is called beside its variants; allowed: another name"
            yield document.finding(("sweep", "variants", at, "name"), message)


def _growth_once(document: Document) -> Iterator[Finding]:
    path = ("sweep", "scenarios", "growth")
    scenarios = growth(document)
    yield from _named_once(document, path, [scenario.name for scenario in scenarios])
    if scenarios and not knows_sizes(document) and not knows_traffic(document, "network_out"):
        message = "growth can't be judged without sizes or rates; allowed: either of them, or no scenarios"
        yield document.finding(path, message)


def _named_once(document: Document, path: Path, names: Sequence[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            yield document.finding((*path, at, "name"), f"{name!r} is here twice; allowed: a name for each")
        seen.add(name)


def _racks_to_survive(document: Document) -> Iterator[Finding]:
    """A rack's failure needs racks."""
    if document.get("resilience", "survive") == "rack" and all(each.rack is None for each in target_brokers(document)):
        message = "'rack' can't be judged, no broker has a rack; allowed: racks, broker, or none"
        yield document.finding(("resilience", "survive"), message)


def _someone_stays(document: Document) -> Iterator[Finding]:
    if not target_brokers(document):
        path = "remove_brokers" if document.get("changes", "remove_brokers") else "replace_brokers"
        yield document.finding(("changes", path), "no broker is left; allowed: at least one that stays or joins")


def _ids(document: Document) -> set[int]:
    return {broker.id for broker in brokers_today(document)}


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in sorted(ids))


_ADD, _REMOVE, _REPLACE = "changes.add_brokers", "changes.remove_brokers", "changes.replace_brokers"
_BROKERS = "cluster.brokers"
_KNOWN = ("cluster.state", "cluster.topics", "cluster.rates")

_SIZES = "sizes for every partition (cluster.state.sizes, or size in cluster.topics)"
_RATES = "rates (cluster.rates, or bytes_in and bytes_out in cluster.topics)"
_NEEDS = {"disk": ("sizes", f"{_SIZES}, or none"), "network": ("rates", f"{_RATES}, or none")}

BROKER_RULES: tuple[tuple[tuple[str, ...], BrokerRule], ...] = (
    ((_BROKERS,), _brokers_once),
    ((_BROKERS, _ADD, _REMOVE), _added_once),
    ((_BROKERS, _ADD, _REMOVE), _removed_known),
    ((_BROKERS, _REMOVE, _REPLACE), _replaced_known),
    ((_BROKERS, _ADD, _REPLACE, "changes.set_racks"), _racks_of_known),
    ((*TARGET_KEYS, "rack_aware"), _racks_for_all),
    ((*TARGET_KEYS, "limits.disk_used"), _disks_for_all),
    (TARGET_KEYS, _someone_stays),
    ((*TARGET_KEYS, "resilience"), _racks_to_survive),
    ((_BROKERS, _ADD, "cluster.broker_classes"), _classes_known),
    (("balance", "budget", "sweep.balance", "sweep.choose", *_KNOWN), _bytes_are_known),
    (("sweep.variants",), _variants_once),
    (("sweep.scenarios", *_KNOWN), _growth_once),
    *LOG_DIR_RULES,
    *LIMIT_RULES,
    *REPORT_RULES,
    *VALIDITY_RULES,
)
