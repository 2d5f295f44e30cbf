"""The rules of a spec about partitions to be made, and about configurations that Kafka would refuse later."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase

from planner.inputs.spec.checks import CREATED, FACTORS, GROWN, RuleList
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument
from planner.inputs.yaml_source import Path, PathFinding
from planner.model.amounts import LARGEST
from planner.model.cluster import MIN_INSYNC, Config, Topic, in_force, min_insync_replicas
from planner.model.errors import Finding, did_you_mean
from planner.model.spec import NewPartitions

NEW_TOPIC_RULES = RuleList()
_reads = NEW_TOPIC_RULES.reads

# The controller's own log, and topics whose number of partitions clients use to find their partition.
_METADATA = "__cluster_metadata"
_NUMBERED = ("__consumer_offsets", "__transaction_state", "__share_group_state", _METADATA)
# The most partitions that Kafka's controller makes in one request, and the longest command argument on Linux.
_MOST_AT_ONCE, _LONGEST_ARGUMENT_BYTES = 10_000, 131_071
# The least value of each configuration that the planner uses.
_LEAST = {
    "min.insync.replicas": 1,
    "retention.ms": -1,
    "retention.bytes": -1,
    "local.retention.ms": -2,
    "local.retention.bytes": -2,
    "segment.ms": 1,
    "segment.bytes": 1,
}
# Finds names that differ from one of these by a letter or two. No two names in Kafka are so similar.
_CLOSE = 0.9
# What happens with fewer replicas than min.insync.replicas. Source: KAFKA-15583.
BELOW_LEAST = "before Kafka 3.7, writes with acks=all are refused; since then, whenever a replica isn't in sync"
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)


@_reads()
def _todays_configs(document: SpecDocument) -> Iterator[PathFinding | Finding]:
    """Findings for configurations of today's topics, at the place of the configuration."""
    inline = {topic["name"]: index for index, topic in enumerate(document.get("cluster", "topics") or ())}
    first_entries = {entry.topic: entry for entry in reversed(document.assignment.entries)}
    for topic in document.assignment.topics:
        own_keys = {key for key, _ in topic.config}
        for key, message in _config_faults(topic.config + topic.effective_config):
            if topic.name in inline:
                section = "config" if key in own_keys else "effective_config"
                yield ("cluster", "topics", inline[topic.name], section, key), message
            else:
                # For a state file, the place is that of the topic's first partition.
                entry = first_entries[topic.name]
                yield Finding(entry.place, entry.key, message)


@_reads("cluster.config_defaults")
def _inherited_configs(document: SpecDocument) -> Iterator[PathFinding]:
    for key, message in _config_faults(document.config_defaults):
        yield ("cluster", "config_defaults", key), message


def in_force_least(topic: Topic, defaults: Config) -> int:
    """The `min.insync.replicas` in force for a topic; 0 if it isn't a number, because another rule reports that."""
    try:
        return min_insync_replicas(in_force(topic, defaults))
    except ValueError:
        return 0


def origin(topic: Topic, defaults: Config, key: str) -> str:
    """Where the value in force comes from, for a message."""
    if key in dict(topic.config):
        return "its own"
    if key in dict(topic.effective_config):
        return "its own or inherited"
    return "inherited from the brokers" if key in dict(defaults) else "Kafka's default"


def altered(topic: str, min_insync: object) -> str:
    """The command that changes a topic's min.insync.replicas, because no plan does that."""
    setting = f"{MIN_INSYNC}={min_insync}"
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}, or Terraform"


@_reads(CREATED)
def _new_configs(document: SpecDocument) -> Iterator[PathFinding]:
    """Findings for configurations of topics to be created. Another rule checks min.insync.replicas."""
    for index, new in enumerate(document.created_topics):
        for key, message in _config_faults(new.config):
            if key != MIN_INSYNC:
                yield ("changes", "create_topics", index, "config", key), message


def _config_faults(config: Config) -> Iterator[tuple[str, str]]:
    """Each key with a value that Kafka would refuse, or with a misspelled name, and a message."""
    for key, value in config:
        if (least := _LEAST.get(key)) is not None:
            if not (_WHOLE.fullmatch(value) and int(value) >= least):
                yield key, f"{key} is {value!r}; allowed: a whole number from {least}"
            continue
        # A topic's `segment.bytes` is `log.segment.bytes` for brokers.
        plain = key.lower().replace("_", ".").removeprefix("log.")
        for meant in get_close_matches(plain, _LEAST, n=1, cutoff=_CLOSE):
            message = f"Kafka has no topic configuration of this name; did you mean {meant!r}?"
            yield key, f"{message} allowed: the names that it has"


@_reads(CREATED)
def _created_names(document: SpecDocument) -> Iterator[PathFinding]:
    """A new topic's name must not be in use, even if dots are written as underscores, because metrics do that."""
    existing = {topic.name for topic in document.assignment.topics}
    in_use = dict.fromkeys(existing, "a topic of the cluster already; allowed: another name, or changes.add_partitions")
    by_metric: dict[str, set[str]] = {}
    for existing_name in existing:
        by_metric.setdefault(_metric(existing_name), set()).add(existing_name)
    for item_path, item in document.items("changes", "create_topics"):
        path, name = (*item_path, "name"), item["name"]
        same_metric = by_metric.setdefault(_metric(name), set())
        alike = sorted(same_metric - {name})
        if name == _METADATA:
            yield path, f"{name!r} is the controller's own; allowed: another name"
        elif name in in_use:
            yield path, f"{name!r} is {in_use[name]}"
        elif alike:
            message = f"{name!r} collides with topic {alike[0]!r}: metrics write dots as underscores"
            yield path, f"{message}; allowed: a name that differs otherwise too"
        in_use[name] = "here twice; allowed: each topic once"
        same_metric.add(name)


@_reads(GROWN)
def _added_names(document: SpecDocument) -> Iterator[PathFinding]:
    existing = [topic.name for topic in document.assignment.topics]
    deleting = {topic.name for topic in document.assignment.topics if topic.deleting}
    seen: set[str] = set()
    for item_path, item in document.items("changes", "add_partitions"):
        path, name = (*item_path, "topic"), item["topic"]
        if name not in existing:
            allowed = "allowed: a topic that exists, or changes.create_topics"
            yield path, f"{name!r} isn't a topic of the cluster; {did_you_mean(name, existing)}{allowed}"
        elif name in _NUMBERED:
            message = f"{name!r} is Kafka's own, and clients find their partition by their number"
            yield path, f"{message}; allowed: other topics"
        elif name in deleting:
            yield path, f"{name!r} is marked for deletion; allowed: topics that aren't"
        elif name in seen:
            yield path, f"{name!r} is here twice; allowed: each topic once"
        seen.add(name)


@_reads(GROWN)
def _more_than_today(document: SpecDocument) -> Iterator[PathFinding]:
    """The number of partitions must grow, because Kafka never removes one."""
    counts = {topic.name: len(topic.partitions) for topic in document.assignment.topics}
    for item_path, item in document.items("changes", "add_partitions"):
        today, count = counts.get(item["topic"]), item["partitions"]
        if today is not None and count <= today:
            message = f"{count} partitions, {item['topic']} has {today} today; allowed: {today + 1} or more"
            yield (*item_path, "partitions"), message


@_reads(*TARGET_KEYS, CREATED, "cluster.config_defaults")
def _created_factors(document: SpecDocument) -> Iterator[PathFinding]:
    targets = len(document.target_brokers)
    for index, new in enumerate(document.created_topics):
        path = ("changes", "create_topics", index)
        if targets < new.replication_factor:
            message = f"{new.replication_factor} replicas need {new.replication_factor} brokers"
            yield (*path, "replication_factor"), f"{message}; allowed: at most the {targets} that stay or join"
        least = dict(new.config).get(MIN_INSYNC)
        if least is None:
            inherited = in_force_least(Topic(new.topic, ()), document.config_defaults)
            if new.replication_factor < inherited:
                message = (
                    f"{new.replication_factor} is below the min.insync.replicas of {inherited} that topics inherit "
                    f"from the brokers: {BELOW_LEAST}; allowed: {inherited} or more, or config "
                    "with a min.insync.replicas of its own"
                )
                yield (*path, "replication_factor"), message
        elif not least.isascii() or not least.isdigit() or not 1 <= int(least) <= new.replication_factor:
            allowed = f"a whole number from 1 to {new.replication_factor}, the topic's replication_factor"
            message = f"{MIN_INSYNC} is {least!r}; allowed: {allowed}; above it, {BELOW_LEAST}"
            yield (*path, "config", MIN_INSYNC), message


@_reads(GROWN, FACTORS, "cluster.config_defaults")
def _added_factors(document: SpecDocument) -> Iterator[PathFinding]:
    """New partitions have the replication factor of the topic's first one, because they are made before any move."""
    topics = {topic.name: topic for topic in document.assignment.topics}
    for item_path, item in document.items("changes", "add_partitions"):
        if (topic := topics.get(item["topic"])) is None:
            continue
        path, factor = (*item_path, "topic"), len(topic.partitions[0].replicas)
        changes = document.replication_factor_changes
        new_factors = {each.replication_factor for each in changes if fnmatchcase(topic.name, each.topics)}
        if new_factors - {factor}:
            message = (
                f"{topic.name} gets another replication factor too, and Kafka adds partitions with today's {factor}"
            )
            yield path, f"{message}; allowed: one of the two at a time"
        least = in_force_least(topic, document.config_defaults)
        if factor < least:
            message = f"{topic.name} has {factor} replicas a partition, below its min.insync.replicas of {least}"
            yield path, f"{message}: {BELOW_LEAST}; allowed: a topic with at least as many"


@_reads(*TARGET_KEYS, CREATED, GROWN)
def _fits_one_request(document: SpecDocument) -> Iterator[PathFinding]:
    """At most as many partitions as the controller makes at once, with a replica list that fits a command line."""
    longest = max((len(str(broker.id)) for broker in document.target_brokers), default=1)
    replica_counts = {
        topic.name: sum(len(each.replicas) for each in topic.partitions) for topic in document.assignment.topics
    }
    for path, new in _new_partitions(document):
        added = new.count - new.first
        replicas = replica_counts.get(new.topic, 0) + added * new.replication_factor
        if added > _MOST_AT_ONCE:
            yield path, f"{added} new partitions; allowed: at most {_MOST_AT_ONCE}, which is what Kafka makes at once"
        elif replicas * (longest + 1) > _LONGEST_ARGUMENT_BYTES:
            message = f"the list of {replicas} replicas is longer than a command line may hold"
            yield path, f"{message}; allowed: about {_LONGEST_ARGUMENT_BYTES // (longest + 1)} replicas"


@_reads(CREATED, GROWN, "cluster.rates", "cluster.state")
def _loads_are_comparable(document: SpecDocument) -> Iterator[PathFinding]:
    """Expected sizes and rates need known ones of the other partitions for comparison."""
    requirements = {
        "size": (document.knows_sizes, "cluster.state.sizes, or size in cluster.topics"),
        "bytes_in": (document.knows_traffic("network_in"), "cluster.rates, or bytes_in in cluster.topics"),
        "bytes_out": (document.knows_traffic("network_out"), "cluster.rates, or bytes_out in cluster.topics"),
    }
    for list_name in ("create_topics", "add_partitions"):
        for item_path, item in document.items("changes", list_name):
            for key, (others_too, source) in requirements.items():
                if key in item and not others_too:
                    message = f"{item[key]!r} can't be compared with the other partitions; allowed: with {source}"
                    yield (*item_path, key), message


@_reads(*TARGET_KEYS, CREATED, GROWN)
def _total_load(document: SpecDocument) -> Iterator[PathFinding]:
    """Sums of bytes and of traffic must fit into 64 bits."""
    targets = len(document.target_brokers)
    total = sum(each.size_bytes for topic in document.assignment.topics for each in topic.partitions) * targets
    for path, new in _new_partitions(document):
        load = max(new.size_bytes, new.bytes_in_per_sec + new.bytes_out_per_sec)
        total += load * min(new.count - new.first, _MOST_AT_ONCE) * targets
        if total > LARGEST:
            yield path, f"all replicas together would have more than {LARGEST} bytes; allowed: less of them"
            return


def _new_partitions(document: SpecDocument) -> Iterator[tuple[Path, NewPartitions]]:
    """Every item of the two lists, with the path of its number of partitions."""
    for index, new in enumerate(document.created_topics):
        yield ("changes", "create_topics", index, "partitions"), new
    places = {item["topic"]: path for path, item in document.items("changes", "add_partitions")}
    for new in document.added_partitions:
        yield (*places[new.topic], "partitions"), new


def _metric(name: str) -> str:
    return name.replace(".", "_")
