"""Reads `terraform show -json` of a state or a plan, and compares the topics declared there with today's.

Reads only resources that declare topics, and those that describe the brokers of Amazon MSK: `aws_msk_cluster`, the data
source `aws_msk_broker_nodes` and `aws_subnet`. A state's resources are under `values`, a plan's changes under
`resource_changes`. Everything else is ignored, because it may have secrets. A plan that replaces a topic is refused,
because applying it deletes the topic's data.
Source: Terraform's JSON output format, major version 1; providers Mongey/kafka, hashicorp/aws, confluentinc/confluent.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from planner.inputs.importers.state_parts import (
    TOPIC_NAME,
    RegisteredBroker,
    StatePart,
    TopicTarget,
    begins_object,
    items,
    read_alone,
    shown,
    sound,
)
from planner.model.cluster import Config, a_few
from planner.model.errors import Finding, ImportStateError, Place
from planner.model.file_reading import json_value


class _Keys(NamedTuple):
    """The names of a topic's attributes in a type of resource; empty if it has no such attribute."""

    name: str = "name"
    partitions: str = "partitions"
    replication_factor: str = "replication_factor"
    config: str = "config"


_TYPES = {
    "kafka_topic": _Keys(),
    "aws_msk_topic": _Keys(partitions="partition_count", config="configs"),
    # Confluent Cloud sets the replication factor itself.
    "confluent_kafka_topic": _Keys("topic_name", "partitions_count", ""),
}
_COUNT = "number_of_broker_nodes"
_FEWER = "with fewer partitions than they have: Kafka takes none away"
_CONFIG_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)


class _TopicResource(NamedTuple):
    """A topic's address, its values as Terraform has applied them, and its declared values; see `_resources`.

    `because` are the attributes whose change makes the plan replace the topic, if it is `replaced`. A topic that is
    `forgotten` stays in the cluster, but Terraform won't manage it any more.
    """

    address: str
    keys: _Keys
    applied: Any
    declared: Any
    destroyed: bool = False
    replaced: bool = False
    because: tuple[str, ...] = ()
    forgotten: bool = False


def recognizes(text: str) -> bool:
    """True for a JSON object with Terraform's version."""
    return begins_object(text) and '"format_version"' in text and '"terraform_version"' in text


def read_part(text: str, file: str) -> StatePart:
    """The topics as declared; for a plan, as they will be. ImportStateError names each bad resource.

    The configurations are those that Terraform has already applied. The provider stores only what topics set
    themselves, and nothing that they inherit.
    """
    value, place = read_alone(text, file)
    version = value.get("format_version")
    if not isinstance(version, str) or version.split(".")[0] != "1":
        message = f"{shown(version)} isn't a version that is known here; allowed: 1 and its minor versions"
        raise ImportStateError([Finding(place, "format_version", message)])
    targets: dict[str, TopicTarget] = {}
    deleted_topics: list[str] = []
    configs: dict[str, Config] = {}
    findings: list[Finding] = []
    for resource in _resources(value):
        address, keys, applied = resource.address, resource.keys, resource.applied
        if has_name := isinstance(applied, dict) and isinstance(applied.get(keys.name), str):
            configs[applied[keys.name]] = _config(applied.get(keys.config)) or ()
        if resource.destroyed:
            deleted_topics += [applied[keys.name]] if has_name and not resource.forgotten else []
            continue
        target = _target(resource, place)
        if isinstance(target, Finding):
            findings.append(target)
        elif target.topic in targets:
            findings.append(Finding(place, address, f"{target.topic} is declared twice; allowed: each topic once"))
        else:
            targets[target.topic] = target
    note = f"deletes {a_few(deleted_topics)}, which count until then: apply it first, and capture the state again"
    deleted = (f"{file} {note}",) if deleted_topics else ()
    msk = _Msk.from_json(value)
    brokers = tuple(sound([*findings, *msk.brokers(place)]))
    return StatePart(
        "terraform show -json",
        file,
        targets=tuple(targets.values()),
        configs=configs,
        brokers=brokers,
        platform=msk.platform,
        notes=(*deleted, *msk.notes(file, len(brokers)), *_resized(value, file)),
    )


def _resources(value: dict[str, Any]) -> Iterator[_TopicResource]:
    """The topics of a plan, or of a state's root module and the modules inside it, without data sources."""
    if isinstance(value.get("resource_changes"), list):
        for item in items(value, "resource_changes"):
            if isinstance(item, dict) and str(item.get("type")) in _TYPES and isinstance(item.get("change"), dict):
                change, keys = item["change"], _TYPES[item["type"]]
                before, after = change.get("before"), change.get("after")
                actions = {*map(str, items(change, "actions"))}
                replaced, forgotten = {"create", "delete"} <= actions, actions == {"forget"}
                paths = [path for path in items(change, "replace_paths") if isinstance(path, list)]
                because = tuple(".".join(map(str, path))[:200] for path in paths)
                address = str(item.get("address"))[:200]
                yield _TopicResource(address, keys, before, after, after is None, replaced, because, forgotten)
        return
    for item in _state_resources(value):
        if str(item.get("type")) in _TYPES and item.get("mode") == "managed":
            values, keys = item.get("values"), _TYPES[item["type"]]
            yield _TopicResource(str(item.get("address"))[:200], keys, values, values)


def _state_resources(value: Any) -> Iterator[dict[str, Any]]:
    """The resources and data sources of a state, in the root module and the modules inside it."""
    values = value.get("values") if isinstance(value, dict) else None
    modules = [values.get("root_module")] if isinstance(values, dict) else []
    while modules:
        module = modules.pop(0)
        modules += items(module, "child_modules")
        yield from (item for item in items(module, "resources") if isinstance(item, dict))


@dataclass(frozen=True)
class _Msk:
    """The number of MSK clusters; the values of the first and of its nodes; the zone of each subnet.

    Only `aws_msk_broker_nodes` has brokers' ids and subnets. A broker's rack follows from its subnet, because MSK sets
    `broker.rack` to the id of the availability zone. The cluster has the size of the volumes and the type of brokers.
    """

    count: int
    cluster: dict[str, Any] | None
    nodes: dict[str, Any] | None
    zones: dict[str, Any]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The MSK clusters of a state, or of the state before a plan."""
        resources = _state_resources(value if "values" in value else value.get("prior_state"))
        typed = [(str(each.get("type")), each["values"]) for each in resources if isinstance(each.get("values"), dict)]
        clusters = [each for kind, each in typed if kind == "aws_msk_cluster" and "broker_node_group_info" in each]
        nodes = [each for kind, each in typed if kind == "aws_msk_broker_nodes"]
        return cls(
            len({str(each.get("arn")) for each in clusters} | {str(each.get("cluster_arn")) for each in nodes}),
            next(iter(clusters), None),
            next(iter(nodes), None),
            {str(each.get("id")): each.get("availability_zone_id") for kind, each in typed if kind == "aws_subnet"},
        )

    @property
    def platform(self) -> str:
        """The brokers' type under its name in `cluster.profile`: `msk.m7g.large` for `kafka.m7g.large`."""
        instance = _first_block(self.cluster, "broker_node_group_info").get("instance_type")
        return f"msk.{instance.removeprefix('kafka.')}" if isinstance(instance, str) and self.count == 1 else ""

    def brokers(self, place: Place) -> Iterator[RegisteredBroker | Finding]:
        """Each broker whose rack is known. Others are left out, so that an unknown rack doesn't look like no rack."""
        # Terraform gives the volume size in GiB; Express brokers have none.
        storage = _first_block(_first_block(self.cluster, "broker_node_group_info"), "storage_info")
        gib = _first_block(storage, "ebs_storage_info").get("volume_size")
        disk = gib << 30 if type(gib) is int and 0 < gib < 1 << 20 else None
        for node in items(self.nodes if self.count == 1 else None, "node_info_list"):
            number = node.get("broker_id") if isinstance(node, dict) else None
            # In Python, JSON's true is a number, and `in range(2**31)` would compare a float with each number.
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**31 or number % 1:
                message = f"{shown(number)} isn't possible here; allowed: the id of a broker"
                yield Finding(place, "aws_msk_broker_nodes.node_info_list.broker_id", message)
            elif isinstance(zone := self.zones.get(str(node.get("client_subnet"))), str):
                yield RegisteredBroker(place, int(number), zone, "", disk)

    def notes(self, file: str, with_rack: int) -> Iterator[str]:
        """Notes about what isn't known of the brokers; `with_rack` is the number of those whose rack is known."""
        if self.count > 1:
            yield f"{file} has {self.count} MSK clusters: their brokers aren't read from it"
            return
        declared = self.cluster.get(_COUNT) if self.cluster else None
        if self.cluster and self.nodes is None:
            yield (
                f"{file} has an aws_msk_cluster of {shown(declared)} brokers, but not their ids and racks; the data "
                "source aws_msk_broker_nodes tells the ids, aws_subnet the availability zones"
            )
        listed = items(self.nodes, "node_info_list")
        if with_rack < len(listed):
            yield (
                f"{file} doesn't say in which availability zone {len(listed) - with_rack} of {len(listed)} MSK brokers "
                "are: they aren't read from it; aws_subnet tells the zone"
            )
        if self.nodes is not None and declared not in (None, len(listed)):
            yield f"{file} has {shown(declared)} brokers in aws_msk_cluster, {len(listed)} in aws_msk_broker_nodes"


def _resized(value: dict[str, Any], file: str) -> Iterator[str]:
    for each in items(value, "resource_changes"):
        change = each.get("change") if isinstance(each, dict) and each.get("type") == "aws_msk_cluster" else None
        versions = [change.get(key) for key in ("before", "after")] if isinstance(change, dict) else []
        counts = [shown(version.get(_COUNT)) for version in versions if isinstance(version, dict)]
        if len(set(counts)) > 1:
            yield (
                f"{file} changes {_COUNT} from {counts[0]} to {counts[1]}: which ids join or leave isn't known before "
                "it was applied"
            )


def _first_block(value: Any, key: str) -> dict[str, Any]:
    """The first block in the list under a key, because Terraform writes blocks as lists; empty if there is none."""
    block = next(iter(items(value, key)), None)
    return block if isinstance(block, dict) else {}


def _target(resource: _TopicResource, place: Place) -> TopicTarget | Finding:
    address, keys, declared = resource.address, resource.keys, resource.declared
    if not isinstance(declared, dict):
        return Finding(place, address, f"{shown(declared)} isn't possible here; allowed: a topic's values")
    name = declared.get(keys.name)
    if not isinstance(name, str) or not TOPIC_NAME.fullmatch(name):
        return Finding(place, f"{address}.{keys.name}", f"{shown(name)} isn't a topic's name; allowed: one of Kafka's")
    if resource.replaced:
        because = f" for its {' and '.join(resource.because)}" if resource.because else ""
        allowed = "a plan that changes it in place: change the replicas here first, then declare what there is"
        lost = shown(resource.applied.get(keys.name) if isinstance(resource.applied, dict) else name)
        message = f"Terraform would replace topic {lost}{because}, which deletes its data; allowed: {allowed}"
        return Finding(place, address, message)
    counts = [declared.get(key) for key in (keys.partitions, keys.replication_factor)]
    for key, count in zip((keys.partitions, keys.replication_factor), counts, strict=True):
        # A plan leaves out values that are known only after it is applied.
        if count is not None and not (type(count) is int and 1 <= count < 2**31):
            return Finding(place, f"{address}.{key}", f"{shown(count)} isn't possible here; allowed: 1, 2, 3 …")
    config = _config(declared.get(keys.config))
    if config is None:
        return Finding(place, f"{address}.{keys.config}", "it isn't the JSON text of a map; allowed: jsonencode({…})")
    return TopicTarget(name, counts[0], counts[1], config)


def _config(config: Any) -> Config | None:
    """The topic's declared configuration, without values that aren't known yet. None if it is no map of such values.

    jsonencode writes numbers and truth values as such; Kafka's configurations are texts.
    """
    if isinstance(config, str):
        try:
            config = json_value(config)
        except ValueError:
            return None
    if config is None:
        return ()
    if not isinstance(config, dict) or any(isinstance(value, list | dict) for value in config.values()):
        return None
    pairs = {key: value for key, value in config.items() if value is not None and _CONFIG_KEY.fullmatch(key)}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in pairs.items()}
    return tuple(sorted(texts.items()))


@dataclass(frozen=True)
class Targets:
    """The changes that make the topics as declared.

    `factors` are (topic, replication factor), `partitions` (topic, partitions afterwards), `new` topics to be created.
    `fewer` are topics declared with fewer partitions than they have; no change can do that.
    """

    factors: tuple[tuple[str, int], ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    new: tuple[TopicTarget, ...] = ()
    fewer: tuple[str, ...] = ()


def targets(factors: Mapping[str, Sequence[int]], declared: Sequence[TopicTarget]) -> Targets:
    """How the declared topics differ from those with these replication factors, in the order of declaration.

    `factors` has one for each partition, by topic: today's to find what must change, or those after `changes` to find
    what `changes` doesn't cover.
    """
    existing = [(each.topic, factors[each.topic], each) for each in declared if each.topic in factors]
    counts = [(name, len(each), count) for name, each, target in existing if (count := target.partitions) is not None]
    return Targets(
        tuple(
            (name, to)
            for name, each, target in existing
            if (to := target.replication_factor) is not None and {to} != {*each}
        ),
        tuple((name, count) for name, today_count, count in counts if count > today_count),
        tuple(each for each in declared if each.topic not in factors),
        tuple(name for name, today_count, count in counts if count < today_count),
    )


def left_out(changes: Targets, declared_by: str) -> Iterator[str]:
    """Notes on topics declared in the file `declared_by` for which an import writes no change."""
    unstated = [each.topic for each in changes.new if not (each.partitions and each.replication_factor)]
    if unstated:
        yield (
            f"{declared_by} declares {a_few(unstated)}, which the cluster doesn't have, without the number of "
            "partitions or the replication factor: add it to changes.create_topics"
        )
    if changes.fewer:
        yield f"{declared_by} declares {a_few(changes.fewer)} {_FEWER}"


def target_notes(changes: Targets, declared_by: str) -> Iterator[str]:
    """Notes where the file `declared_by` differs from the topics after the plan, with the key of `changes` to set."""
    leaves = "than this plan leaves: change it there, or in changes"
    for names, difference in (
        ([name for name, _ in changes.factors], f"with another replication factor {leaves}.set_replication_factor"),
        ([name for name, _ in changes.partitions], f"with more partitions {leaves}.add_partitions"),
        (
            [each.topic for each in changes.new],
            "which the cluster doesn't have: add it to changes.create_topics, or it stays as it is",
        ),
        (list(changes.fewer), _FEWER),
    ):
        if names:
            yield f"{declared_by} declares {a_few(names)} {difference}"
