"""How the rules of a spec are listed and run. Rules check what a schema can't: how parts of a spec depend on others.

Each rule names the keys that it reads, and doesn't run if one of them already has an error. So one mistake gives one
finding, without those that follow from it. Rules that need only the YAML run first, then those that also need today's
topics. A module of rules may have both.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from planner.inputs.importers.state_parts import AssignmentEntry
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding, key_text
from planner.model.cluster import Broker
from planner.model.errors import Finding, did_you_mean
from planner.model.spec import matches_any

Rule = Callable[[SpecDocument], Iterator[PathFinding | Finding]]

# Keys that several modules of rules read: of brokers, of topics, and all that say where replicas may be.
BROKERS, ADDED, DEMOTED = "cluster.brokers", "changes.add_brokers", "changes.demote_brokers"
CREATED, GROWN, FACTORS = "changes.create_topics", "changes.add_partitions", "changes.set_replication_factor"
PLACED = (*TARGET_KEYS, "broker_sets", "placement")


class RuleList(list[tuple[tuple[str, ...], Rule]]):
    """Rules in the order in which they run, each as a pair: the keys that it reads, and the rule."""

    def reads(self, *keys: str) -> Callable[[Rule], Rule]:
        """A decorator that adds a rule to the list."""

        def add(rule: Rule) -> Rule:
            self.append((keys, rule))
            return rule

        return add


class Rules(NamedTuple):
    """The rules that need only the YAML, and those that also need today's topics."""

    of_document: Iterable[tuple[tuple[str, ...], Rule]]
    of_topics: Iterable[tuple[tuple[str, ...], Rule]]


def rule_findings(document: SpecDocument, broken: Iterable[Finding], rules: Rules) -> list[Finding]:
    """The findings of every rule whose keys have no errors.

    Rules that read `changes` also check each of `sweep.variants`, as if it were `changes`.
    """
    bad_keys = {finding.key for finding in broken}
    findings = _findings(document, bad_keys, rules)
    of_changes = Rules(
        [rule for rule in rules.of_document if _reads_changes(rule[0])],
        [rule for rule in rules.of_topics if _reads_changes(rule[0])],
    )
    for _, view in document.variants:
        variant_key = key_text(view.path_in_file(("changes",)))
        for finding in _findings(view, {_as_changes(key, variant_key) for key in bad_keys}, of_changes):
            if finding in findings:
                continue
            # A finding at another key also comes from the variant's changes, so the message says so.
            within = _touches(finding.key, variant_key)
            findings.append(finding if within else replace(finding, message=f"{finding.message} (in {variant_key})"))
    return findings


def _findings(document: SpecDocument, bad_keys: set[str], rules: Rules) -> list[Finding]:
    # A broker's capacity may come from its class, and its caps from the profile.
    if any(_touches(bad, key) for bad in bad_keys for key in ("cluster.broker_classes", "cluster.profile")):
        bad_keys = {*bad_keys, BROKERS, ADDED}

    def sound(*reads: str) -> bool:
        return not any(_touches(bad, key) for bad in bad_keys for key in reads)

    document_findings = (each for reads, rule in rules.of_document if sound(*reads) for each in rule(document))
    findings = list(document.with_places(document_findings))
    # An unknown broker, or one that isn't listed, makes every count of target brokers wrong.
    bad_keys = bad_keys | {finding.key for finding in findings}
    joining = document.joining_brokers if sound(BROKERS, ADDED, "changes.replace_brokers") else ()
    if sound(BROKERS) and (unlisted := list(_unlisted_brokers(document, joining))):
        findings += unlisted
        bad_keys = bad_keys | {BROKERS}
    for reads, rule in rules.of_topics:
        findings += document.with_places(rule(document)) if sound(*reads) else ()
    return findings


def _unlisted_brokers(document: SpecDocument, joining: Iterable[Broker]) -> Iterator[Finding]:
    """One finding for each unlisted broker with replicas, at its first partition, because it may have thousands.

    Brokers of `joining` have joined since the YAML was written, for example with a first step.
    """
    listed_ids, joined = {broker.id for broker in document.brokers_today}, {broker.id for broker in joining}
    holders: dict[int, list[AssignmentEntry]] = {}
    for entry in document.assignment.entries:
        for broker in entry.partition.replicas:
            if broker not in listed_ids:
                holders.setdefault(broker, []).append(entry)
    for broker, entries in holders.items():
        extra = len(entries) - 1
        more_text = f" (as {extra} more {'partition does' if extra == 1 else 'partitions do'})" if extra else ""
        allowed = f"move {broker} there from changes, because it has joined" if broker in joined else listed(listed_ids)
        message = f"has a replica on broker {broker}, which isn't in cluster.brokers{more_text}; allowed: {allowed}"
        yield Finding(entries[0].place, entries[0].key, message)


def _reads_changes(reads: tuple[str, ...]) -> bool:
    return any(key.startswith("changes.") for key in reads)


def _as_changes(key: str, variant_key: str) -> str:
    """The name of a key if the value at `variant_key` is in the place of `changes`."""
    if key == variant_key or key.startswith((f"{variant_key}.", f"{variant_key}[")):
        return "changes" + key[len(variant_key) :]
    if variant_key.startswith((f"{key}.", f"{key}[")):
        return "changes"
    return "" if _touches(key, "changes") else key


def _touches(key: str, other_key: str) -> bool:
    """True if the keys are equal, or one is inside the other."""
    short, long = sorted((key, other_key), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def repeated(values: Iterable[tuple[Path, object]], allowed: str) -> Iterator[PathFinding]:
    """A finding for each repeated value."""
    seen: set[object] = set()
    for path, value in values:
        if value in seen:
            yield path, f"{value!r} is here twice; allowed: {allowed}"
        seen.add(value)


def unknown(path: Path, name: str, parent: str, names: Collection[str]) -> PathFinding:
    """The finding that a name isn't among the names under the key `parent`."""
    allowed = ", ".join(names) or f"none, as {parent} is empty"
    return path, f"{name!r} isn't in {parent}; {did_you_mean(name, names)}allowed: {allowed}"


def listed(ids: Iterable[int]) -> str:
    """Broker ids for a message."""
    return ", ".join(map(str, sorted(ids)))


def leaving_path(document: SpecDocument) -> Path:
    """The path of the key in `changes` that makes brokers leave."""
    return ("changes", "remove_brokers" if document.get("changes", "remove_brokers") else "replace_brokers")


def excluded_by(document: SpecDocument, topic: str) -> Path:
    """The path in `topics` that keeps a topic, or one of its partitions, from moving."""
    excluded = (path for path, pattern in document.items("topics", "exclude") if fnmatchcase(topic, pattern))
    included = matches_any(topic, document.get("topics", "include") or "*")
    return next(excluded, ("topics", "on_brokers" if included else "include"))


def place_of(document: SpecDocument, path: Path) -> str:
    """A key and its place in the file, for a message about another key."""
    place = document.place(path)
    return f"{key_text(path)} ({place.line}:{place.column})"
