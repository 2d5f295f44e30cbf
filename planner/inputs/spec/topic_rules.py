"""The rules of a spec that concern today's topics: brokers, replication factors, which may move, and patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from fnmatch import fnmatchcase

from planner.inputs.importers.state_parts import Assignment, AssignmentEntry, replica_findings
from planner.inputs.spec.build_spec import (
    TARGET_KEYS,
    brokers_today,
    config_defaults,
    created_topics,
    leaving_brokers,
    replication_factor_changes,
    target_brokers,
    topic_filter,
    topic_rates,
    variants,
)
from planner.inputs.spec.consumers_section import group_findings
from planner.inputs.spec.consumers_section import patterns as consumers_patterns
from planner.inputs.spec.new_topic_rules import (
    NEW_TOPIC_RULES,
    altered,
    in_force_least,
    inherited_configs,
    origin,
    todays_configs,
)
from planner.inputs.spec.sections import growth
from planner.inputs.yaml_source import Document, Path
from planner.model.build_problem import may_move
from planner.model.cluster import Topic
from planner.model.effective_config import MIN_INSYNC
from planner.model.errors import Finding, did_you_mean
from planner.model.spec import TopicFilter

PatternRule = Callable[[Document, Assignment], Iterator[Finding]]
_Pattern = tuple[Path, str]

_SHOWN = 10


def _factors(document: Document) -> Iterator[_Pattern]:
    for at, change in enumerate(replication_factor_changes(document)):
        yield ("changes", "set_replication_factor", at, "topics"), change.topics


def _filter(document: Document) -> Iterator[_Pattern]:
    for key in ("include", "exclude"):
        for at, pattern in enumerate(document.get("topics", key) or ()):
            yield ("topics", key, at), pattern


def _rates(document: Document) -> Iterator[_Pattern]:
    for at, (pattern, _) in enumerate(topic_rates(document)):
        yield ("cluster", "rates", at, "topics"), pattern


def _scenarios(document: Document) -> Iterator[_Pattern]:
    for at, scenario in enumerate(growth(document)):
        yield ("sweep", "scenarios", "growth", at, "topics"), scenario.topics


def _monthly(document: Document) -> Iterator[_Pattern]:
    for at, item in enumerate(document.get("growth") or ()):
        yield ("growth", at, "topics"), item["topics"]


def _rule(
    patterns: Callable[[Document], Iterator[_Pattern]], *, with_created: bool = False, first_counts: bool = False
) -> PatternRule:
    """A finding for each of the patterns that matches no topic; `with_created`: those of create_topics count too.

    `first_counts`: where the first pattern that matches a topic counts, also for one that comes too late for any.
    """

    def rule(document: Document, assignment: Assignment) -> Iterator[Finding]:
        names = [topic.name for topic in assignment.topics]
        names += _created(document) if with_created else []
        known, left = set(names), set(names)
        for path, pattern in patterns(document):
            if not _matching(pattern, known):
                yield document.finding(path, _message(pattern, names))
            elif first_counts and not (taken := _matching(pattern, left)):
                yield document.finding(path, _too_late(pattern))
            elif first_counts:
                left -= taken

    return rule


def _matching(pattern: str, names: Set[str]) -> set[str]:
    """Most patterns of long lists are names."""
    if not any(sign in pattern for sign in "*?["):
        return {pattern} & names
    return {name for name in names if fnmatchcase(name, pattern)}


def _too_late(pattern: str) -> str:
    return (
        f"{pattern!r} matches only topics that entries above it match, and the first one counts; "
        "allowed: this entry above those, or none"
    )


def _created(document: Document) -> list[str]:
    """The topics that the changes make, or those of any variant."""
    views = (document, *(view for _, view in variants(document)))
    return [new.topic for view in views for new in created_topics(view)]


def _message(pattern: str, names: Sequence[str]) -> str:
    some = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
    guess = did_you_mean(pattern, names)
    return f"{pattern!r} matches no topic; {guess}allowed: a pattern that matches some of {some}"


_CREATED = ("changes.create_topics", "sweep.variants")

PATTERN_RULES: tuple[tuple[tuple[str, ...], PatternRule], ...] = (
    (("changes.set_replication_factor",), _rule(_factors)),
    (("topics",), _rule(_filter)),
    (("cluster.rates",), _rule(_rates, first_counts=True)),
    (("sweep.scenarios", *_CREATED), _rule(_scenarios, with_created=True)),
    (("growth", *_CREATED), _rule(_monthly, with_created=True, first_counts=True)),
    (("consumers",), _rule(consumers_patterns)),
)


TopicRule = Callable[[Document, Assignment], Iterator[Finding]]

LARGEST_TOTAL = 2**63 - 1


def _topics_once(document: Document, _: Assignment) -> Iterator[Finding]:
    seen: set[str] = set()
    for at, topic in enumerate(document.get("cluster", "topics") or ()):
        name = topic["name"]
        if name in seen:
            path = ("cluster", "topics", at, "name")
            yield document.finding(path, f"{name!r} is here twice; allowed: each topic once")
        seen.add(name)


def _inline_partitions(document: Document, assignment: Assignment) -> Iterator[Finding]:
    if document.get("cluster", "topics"):
        for entry in assignment.entries:
            yield from replica_findings(entry)


def known_brokers(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """One finding for each unknown broker, at the first of its partitions: there may be thousands."""
    known = {broker.id for broker in brokers_today(document)}
    holders: dict[int, list[AssignmentEntry]] = {}
    for entry in assignment.entries:
        for broker in entry.partition.replicas:
            if broker not in known:
                holders.setdefault(broker, []).append(entry)
    listed = ", ".join(str(broker) for broker in sorted(known))
    for broker, entries in holders.items():
        more = f" (as {len(entries) - 1} more partitions do)" if len(entries) > 1 else ""
        message = f"has a replica on broker {broker}, which isn't in cluster.brokers{more}; allowed: {listed}"
        yield Finding(entries[0].place, entries[0].key, message)


def _total_size(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Sums of bytes are 64-bit numbers later on."""
    rows = [partition for topic in assignment.topics for partition in topic.partitions]
    targets = len(target_brokers(document))
    total = sum(row.size_bytes * max(len(row.replicas), targets) for row in rows)
    if total > LARGEST_TOTAL:
        where = ("cluster", "state", "sizes") if document.get("cluster", "state") else ("cluster", "topics")
        yield document.finding(where, f"all replicas together have {total} bytes; allowed: {LARGEST_TOTAL}")
    for at, scenario in enumerate(growth(document)):
        if total * scenario.factor > LARGEST_TOTAL:
            message = f"all replicas together would have more than {LARGEST_TOTAL} bytes; allowed: a smaller factor"
            yield document.finding(("sweep", "scenarios", "growth", at, "factor"), message)


def _total_rates(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """So are sums of traffic, in which each replica counts; a topic's rate is the sum of its partitions'."""
    dealt = [sum(rates.values()) for _, rates in topic_rates(document)]
    own = [row.bytes_in_per_sec + row.bytes_out_per_sec for topic in assignment.topics for row in topic.partitions]
    most = max((scenario.factor for scenario in growth(document)), default=1)
    total = (max(dealt, default=0) * len(assignment.topics) + sum(own)) * len(target_brokers(document)) * max(most, 1)
    if total > LARGEST_TOTAL:
        key = "rates" if dealt else "topics"
        message = f"all traffic together may be more than {LARGEST_TOTAL} bytes/s; allowed: rates of real clusters"
        yield document.finding(("cluster", key), message)


def _factors_possible(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Factors asked for: enough brokers, not below min.insync.replicas, no two for one topic."""
    targets = len(target_brokers(document))
    chosen: dict[str, int] = {}
    for at, change in enumerate(replication_factor_changes(document)):
        path = ("changes", "set_replication_factor", at, "replication_factor")
        factor = change.replication_factor
        if factor > targets:
            message = f"{factor} replicas need {factor} brokers; allowed: at most the {targets} that stay or join"
            yield document.finding(path, message)
        for topic in assignment.topics:
            if fnmatchcase(topic.name, change.topics):
                yield from _factor_of(document, path, topic, factor, chosen.setdefault(topic.name, factor))


def _factor_of(document: Document, path: Path, topic: Topic, factor: int, first: int) -> Iterator[Finding]:
    defaults = config_defaults(document)
    least = in_force_least(topic, defaults)
    if factor < least:
        message = (
            f"{factor} is below min.insync.replicas of {topic.name} ({least}, {origin(topic, defaults, MIN_INSYNC)}): "
            f"writes with acks=all would be refused; allowed: {least} or more; or lower min.insync.replicas first, "
            f"{altered(topic.name, MIN_INSYNC, factor)}, and capture the state anew"
        )
        yield document.finding(path, message)
    if factor != first:
        message = f"{factor} for {topic.name}, which another entry gives {first}; allowed: one factor for each topic"
        yield document.finding(path, message)


def _factors_kept(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Topics that keep a replication factor for which the brokers that remain are too few."""
    targets = len(target_brokers(document))
    changes = replication_factor_changes(document)
    kept = [topic for topic in assignment.topics if not any(fnmatchcase(topic.name, each.topics) for each in changes)]
    needs = {topic.name: max(len(partition.replicas) for partition in topic.partitions) for topic in kept}
    wide = [name for name, replicas in needs.items() if replicas > targets]
    if wide and targets:
        key = "remove_brokers" if document.get("changes", "remove_brokers") else "replace_brokers"
        message = (
            f"{targets} brokers that stay or join are too few for {max(needs[name] for name in wide)} replicas "
            f"of {_some(wide)}; "
            "allowed: fewer brokers that leave, more that join, or a smaller set_replication_factor"
        )
        yield document.finding(("changes", key), message)


def _fixed_topics_can_stay(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Topics that may not move, and don't have to."""
    chosen = topic_filter(document)
    fixed = [topic for topic in assignment.topics if not may_move(chosen, topic.name)]
    leaving = leaving_brokers(document)
    stuck = [topic.name for topic in fixed if any(leaving & set(partition.replicas) for partition in topic.partitions)]
    if stuck:
        message = f"{_some(stuck)} may not move, with replicas on brokers that leave; allowed: let them move"
        yield document.finding(_filter_path(chosen, stuck[0]), message)
    for at, change in enumerate(replication_factor_changes(document)):
        factor = change.replication_factor
        resized = [
            topic.name
            for topic in fixed
            if fnmatchcase(topic.name, change.topics)
            and any(len(partition.replicas) != factor for partition in topic.partitions)
        ]
        if resized:
            message = f"{_some(resized)} may not move by the filter in topics; allowed: a pattern of topics that may"
            yield document.finding(("changes", "set_replication_factor", at, "topics"), message)


def _deleted_can_stay(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Topics that are being deleted stay as they are until they are gone, so no broker of theirs can be emptied."""
    leaving = leaving_brokers(document)
    stuck = [
        topic.name
        for topic in assignment.topics
        if topic.deleting and any(leaving & set(partition.replicas) for partition in topic.partitions)
    ]
    if stuck:
        key = "remove_brokers" if document.get("changes", "remove_brokers") else "replace_brokers"
        message = f"{_some(stuck)} marked for deletion, with replicas on brokers that leave; allowed: once it is gone"
        yield document.finding(("changes", key), message)


def _filter_path(chosen: TopicFilter, name: str) -> Path:
    """The pattern that keeps a topic from moving."""
    for at, pattern in enumerate(chosen.exclude):
        if fnmatchcase(name, pattern):
            return ("topics", "exclude", at)
    return ("topics", "include")


def _some(names: list[str]) -> str:
    """Up to three names, and how many more there are."""
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{'topic' if len(names) == 1 else 'topics'} {', '.join(names[:3])}{rest}"


_FACTORS = "changes.set_replication_factor"

TOPIC_RULES: tuple[tuple[tuple[str, ...], TopicRule], ...] = (
    ((), _topics_once),
    ((), _inline_partitions),
    (("cluster.brokers",), known_brokers),
    ((), todays_configs),
    (("cluster.config_defaults",), inherited_configs),
    ((*TARGET_KEYS, "sweep.scenarios"), _total_size),
    ((*TARGET_KEYS, "cluster.rates", "sweep.scenarios"), _total_rates),
    ((*TARGET_KEYS, _FACTORS, "cluster.config_defaults"), _factors_possible),
    ((*TARGET_KEYS, _FACTORS), _factors_kept),
    ((*TARGET_KEYS, _FACTORS, "topics"), _fixed_topics_can_stay),
    (TARGET_KEYS, _deleted_can_stay),
    *NEW_TOPIC_RULES,
    (("consumers",), group_findings),
)
