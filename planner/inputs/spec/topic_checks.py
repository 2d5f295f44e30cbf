"""The rules of a spec that need today's topics: patterns, replication factors, fixed topics, consumer groups."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from planner.inputs.importers.consumer_groups import SHARED
from planner.inputs.importers.state_parts import replica_findings
from planner.inputs.spec.build_spec import Described, growth
from planner.inputs.spec.checks import CREATED, FACTORS, Rule, RuleList, excluded_by, leaving_path, repeated
from planner.inputs.spec.new_topic_checks import BELOW_LEAST, altered, in_force_least, origin
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding
from planner.model.amounts import LARGEST
from planner.model.cluster import MIN_INSYNC, a_few
from planner.model.errors import Finding, did_you_mean
from planner.model.formats import first_names
from planner.model.spec import first_rule, matching

# Rules about patterns are separate: if a state file can't be read, it is unknown whether a pattern matches a topic.
TOPIC_RULES = RuleList()
PATTERN_RULES = RuleList()
_reads = TOPIC_RULES.reads

_SHOWN = 10
_CREATED = (CREATED, "sweep.variants")


def _items_match(*path: str, with_created: bool = False, first_counts: bool = False) -> Rule:
    """A rule that the patterns in a list must match topics. Each pattern is the key `topics` of an item."""

    def rule(document: SpecDocument) -> Iterator[PathFinding]:
        patterns = (((*item_path, "topics"), item["topics"]) for item_path, item in document.items(*path))
        return _unmatched(document, patterns, with_created=with_created, first_counts=first_counts)

    return rule


PATTERN_RULES += [
    ((FACTORS,), _items_match("changes", "set_replication_factor")),
    (("placement", *_CREATED), _items_match("placement", with_created=True)),
    (("leader_racks", *_CREATED), _items_match("leader_racks", with_created=True, first_counts=True)),
    (("cluster.rates",), _items_match("cluster", "rates", first_counts=True)),
    (("sweep.scenarios", *_CREATED), _items_match("sweep", "scenarios", "growth", with_created=True)),
    (("growth", *_CREATED), _items_match("growth", with_created=True, first_counts=True)),
]


@PATTERN_RULES.reads("topics")
def _filter_matches(document: SpecDocument) -> Iterator[PathFinding]:
    patterns = (each for key in ("include", "exclude") for each in document.items("topics", key))
    return _unmatched(document, patterns)


@PATTERN_RULES.reads("apart", "together", *_CREATED)
def _groups_match(document: SpecDocument) -> Iterator[PathFinding]:
    groups = (*((path, rule.topics) for path, rule in document.apart), *document.together)
    patterns = (((*path, index), each) for path, topics in groups for index, each in enumerate(topics))
    return _unmatched(document, patterns, with_created=True)


@PATTERN_RULES.reads("consumers")
def _consumers_match(document: SpecDocument) -> Iterator[PathFinding]:
    return _unmatched(document, group_patterns(document))


def _unmatched(
    document: SpecDocument,
    patterns: Iterable[tuple[Path, str]],
    *,
    with_created: bool = False,
    first_counts: bool = False,
) -> Iterator[PathFinding]:
    """A finding for each pattern that matches no topic. `with_created`: topics that changes create count too.

    `first_counts`: only the first pattern that matches a topic counts, so a pattern is also a finding if earlier
    patterns match all its topics.
    """
    names = [topic.name for topic in document.assignment.topics]
    if with_created:
        views = (document, *(view for _, view in document.variants))
        names += [new.topic for view in views for new in view.created_topics]
    all_names, unmatched = set(names), set(names)
    for path, pattern in patterns:
        if not matching(all_names, pattern):
            guess = did_you_mean(pattern, names)
            examples = first_names(names, _SHOWN)
            yield path, f"{pattern!r} matches no topic; {guess}allowed: a pattern that matches some of {examples}"
        elif first_counts:
            matched = matching(unmatched, pattern)
            unmatched -= matched
            if not matched:
                message = f"{pattern!r} matches only topics that entries above it match, and the first match counts"
                yield path, f"{message}; allowed: this entry above those, or leave it out"


@_reads()
def _topics_once(document: SpecDocument) -> Iterator[PathFinding]:
    names = (((*path, "name"), topic["name"]) for path, topic in document.items("cluster", "topics"))
    return repeated(names, "each topic once")


@_reads()
def _inline_partitions(document: SpecDocument) -> Iterator[Finding]:
    if document.get("cluster", "topics"):
        for entry in document.assignment.entries:
            yield from replica_findings(entry)


@_reads(*TARGET_KEYS, "sweep.scenarios")
def _total_size(document: SpecDocument) -> Iterator[PathFinding]:
    """Sums of bytes must fit into 64 bits."""
    rows = [partition for topic in document.assignment.topics for partition in topic.partitions]
    targets = len(document.target_brokers)
    total = sum(row.size_bytes * max(len(row.replicas), targets) for row in rows)
    if total > LARGEST:
        path = ("cluster", "state", "sizes") if document.get("cluster", "state") else ("cluster", "topics")
        yield path, f"all replicas together have {total} bytes if every broker gets one of each; allowed: {LARGEST}"
    for index, scenario in enumerate(growth(document)):
        if total * scenario.factor > LARGEST:
            message = f"all replicas together would have more than {LARGEST} bytes; allowed: a smaller factor"
            yield ("sweep", "scenarios", "growth", index, "factor"), message


@_reads(*TARGET_KEYS, "cluster.rates", "sweep.scenarios")
def _total_rates(document: SpecDocument) -> Iterator[PathFinding]:
    """Sums of traffic over all replicas must fit into 64 bits. A topic's rate is the sum of its partitions' rates."""
    of_topics = (each for each in document.stated_rates if each.partition is None)
    topic_rates = [(each.bytes_in_per_sec or 0) + (each.bytes_out_per_sec or 0) for each in of_topics]
    topics = document.assignment.topics
    inline_rates = [row.bytes_in_per_sec + row.bytes_out_per_sec for topic in topics for row in topic.partitions]
    most = max((scenario.factor for scenario in growth(document)), default=1)
    of_one_replica = max(topic_rates, default=0) * len(topics) + sum(inline_rates)
    total = of_one_replica * len(document.target_brokers) * max(most, 1)
    if total > LARGEST:
        key = "rates" if topic_rates else "topics"
        message = f"all traffic together may be more than {LARGEST} bytes/s; allowed: rates of real clusters"
        yield ("cluster", key), message


@_reads(*TARGET_KEYS, FACTORS, "cluster.config_defaults")
def _factors_possible(document: SpecDocument) -> Iterator[PathFinding]:
    """A new factor needs enough brokers, must not be below min.insync.replicas, and must be the only one of a topic."""
    targets, defaults = len(document.target_brokers), document.config_defaults
    new_factors: dict[str, int] = {}
    for index, change in enumerate(document.replication_factor_changes):
        path = ("changes", "set_replication_factor", index, "replication_factor")
        factor = change.replication_factor
        if factor > targets:
            yield path, f"{factor} replicas need {factor} brokers; allowed: at most the {targets} that stay or join"
        for topic in document.assignment.topics:
            if not fnmatchcase(topic.name, change.topics):
                continue
            if factor < (least := in_force_least(topic, defaults)):
                message = (
                    f"{factor} is below min.insync.replicas of {topic.name} ({least}, "
                    f"{origin(topic, defaults, MIN_INSYNC)}): {BELOW_LEAST}; allowed: {least} or more; or lower "
                    f"min.insync.replicas first, {altered(topic.name, factor)}, and capture the state again"
                )
                yield path, message
            if factor != (other_factor := new_factors.setdefault(topic.name, factor)):
                message = f"{factor} for {topic.name}, which another entry gives {other_factor}"
                yield path, f"{message}; allowed: one factor for each topic"


@_reads(*TARGET_KEYS, FACTORS)
def _factors_kept(document: SpecDocument) -> Iterator[PathFinding]:
    """There must be enough target brokers for topics that keep their replication factor."""
    targets = len(document.target_brokers)
    changes = document.replication_factor_changes
    unchanged = [topic for topic in document.assignment.topics if first_rule(topic.name, changes) is None]
    needs = {topic.name: max(len(partition.replicas) for partition in topic.partitions) for topic in unchanged}
    wide = [name for name, replicas in needs.items() if replicas > targets]
    if wide and targets:
        who = "broker that stays or joins is" if targets == 1 else "brokers that stay or join are"
        message = (
            f"{targets} {who} too few for {max(needs[name] for name in wide)} replicas "
            f"of {a_few(wide)}; "
            "allowed: fewer brokers that leave, more that join, or a smaller set_replication_factor"
        )
        yield leaving_path(document), message


@_reads(*TARGET_KEYS, FACTORS, "topics")
def _fixed_topics_can_stay(document: SpecDocument) -> Iterator[PathFinding]:
    """Topics and partitions that may not move must not need to: for leaving brokers or a new replication factor."""
    topic_filter, leaving = document.topic_filter, document.leaving_brokers
    fixed = {
        topic.name: [row.replicas for row in topic.partitions if not (moves and topic_filter.is_near(row.replicas))]
        for topic, moves in ((each, topic_filter.moves(each.name)) for each in document.assignment.topics)
    }
    if stuck := [name for name, rows in fixed.items() if any(leaving & set(replicas) for replicas in rows)]:
        message = f"brokers that leave have replicas of {a_few(stuck)}, which may not move; allowed: let them move"
        yield excluded_by(document, stuck[0]), message
    for index, change in enumerate(document.replication_factor_changes):
        resized = [
            name
            for name, rows in fixed.items()
            if fnmatchcase(name, change.topics) and any(len(each) != change.replication_factor for each in rows)
        ]
        if resized:
            message = f"{a_few(resized)} may not move by the filter in topics; allowed: a pattern of topics that may"
            yield ("changes", "set_replication_factor", index, "topics"), message


@_reads(*TARGET_KEYS)
def _deleted_can_stay(document: SpecDocument) -> Iterator[PathFinding]:
    """A broker with replicas of a topic that is being deleted can't leave until Kafka has deleted the topic."""
    stuck = [
        topic.name
        for topic in document.assignment.topics
        if topic.deleting and any(document.leaving_brokers & set(partition.replicas) for partition in topic.partitions)
    ]
    if stuck:
        message = f"{a_few(stuck)} marked for deletion, with replicas on brokers that leave; allowed: once it is gone"
        yield leaving_path(document), message


@_reads("consumers")
def _groups_sound(document: SpecDocument) -> Iterator[PathFinding]:
    """Groups and members must be unique, each member must have topics, and `topic_ids` must name existing topics."""
    topic_names = {topic.name for topic in document.assignment.topics}
    names = (((*path, "group"), item["group"]) for path, item in document.items("consumers"))
    yield from repeated(names, "each group once")
    for path, item in document.items("consumers"):
        if "members" not in item and "state" not in item:
            yield path, "has neither members nor state; allowed: at least one of them"
        topic_ids = item.get("topic_ids") or {}
        id_values = (((*path, "topic_ids", name), each) for name, each in topic_ids.items())
        yield from repeated(id_values, "another id for each topic")
        for name in sorted(topic_ids.keys() - topic_names):
            message = f"topic {name!r} doesn't exist; {did_you_mean(name, topic_names)}allowed: topics of the cluster"
            yield (*path, "topic_ids", name), message
        if isinstance(item.get("members"), int):
            if "topics" not in item:
                yield path, "has a number of members and no topics; allowed: topics that all of them read"
            continue
        members = list(document.items(*path, "members"))
        ids = (((*member_path, "id"), member["id"]) for member_path, member in members)
        yield from repeated(ids, "each member once")
        static = ((*member_path, "instance") for member_path, member in members if "instance" in member)
        yield from repeated(((key, document.get(*key)) for key in static), "each static member once")
        for member_path, member in members:
            if not {"topics"} & {*member, *item} and "state" not in item:
                yield member_path, "has no topics, nor has its group; allowed: topics of the member, or of the group"


def described_findings(document: SpecDocument, described: Described) -> Iterator[PathFinding]:
    """Findings for groups and members missing in their state files, and for partitions there that don't exist.

    `described` lacks files that couldn't be read, because these already have findings.
    """
    counts = {topic.name: len(topic.partitions) for topic in document.assignment.topics}
    for path, item in document.items("consumers"):
        groups = described.get(item.get("state", ""))
        if groups is None:
            continue
        group = next((each for each in groups if each.name == item["group"]), None)
        if group is None:
            names = [each.name for each in groups]
            guess = did_you_mean(item["group"], names)
            yield (*path, "group"), f"{item['group']!r} isn't in {item['state']!r}; {guess}allowed: {', '.join(names)}"
            continue
        if group.assignor == SHARED and (assignor := item.get("assignor", SHARED)) != SHARED:
            message = f"{assignor!r} isn't possible here, as {item['group']!r} is a share group in {item['state']!r}"
            yield (*path, "assignor"), f"{message}; allowed: {SHARED}, or no assignor"
        for member_path, member in document.items(*path, "members"):
            if member["id"] not in group.members:
                examples = ", ".join(sorted(group.members)[:_SHOWN])
                guess = did_you_mean(member["id"], group.members)
                message = f"{member['id']!r} isn't a member in {item['state']!r}"
                yield (*member_path, "id"), f"{message}; {guess}allowed: members such as {examples}"
        owned = [(member, *each) for member, partitions in group.members.items() for each in partitions]
        for member, topic, partition in owned:
            if partition >= counts.get(topic, 0):
                message = f"{member!r} of {item['state']!r} owns {topic}-{partition}, which the cluster doesn't have"
                yield (*path, "state"), f"{message}; allowed: groups of the same cluster"


def group_patterns(document: SpecDocument) -> Iterator[tuple[Path, str]]:
    """Every pattern of every group and member, with its path."""
    for path, _ in document.items("consumers"):
        yield from document.items(*path, "topics")
        for member_path, _ in document.items(*path, "members"):
            yield from document.items(*member_path, "topics")
