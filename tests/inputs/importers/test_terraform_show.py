"""Reads topics and MSK brokers from `terraform show -json`, and compares declared topics with today's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.inputs.importers.state_parts import TopicTarget
from planner.inputs.importers.terraform_show import Targets, left_out, target_notes, targets
from planner.inputs.spec.reading import load
from planner.inputs.state.state_files import read_part
from planner.model.errors import ImportStateError, Place


def topic(name: str, partitions: Any, factor: Any, **more: Any) -> dict[str, Any]:
    """The values of a kafka_topic resource."""
    return {"name": name, "partitions": partitions, "replication_factor": factor, "config": {}, "id": name, **more}


def resource(values: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A resource in a state."""
    return {
        "address": f"kafka_topic.x[{values['name']!r}]",
        "mode": "managed",
        "type": "kafka_topic",
        "values": values,
        **more,
    }


def state(*resources: dict[str, Any], inner: Any = ()) -> str:
    """What terraform show prints for a state with these resources."""
    module = {"resources": list(resources), "child_modules": [{"resources": list(inner)}]}
    return json.dumps({"format_version": "1.0", "terraform_version": "1.11.4", "values": {"root_module": module}})


def plan(*changes: tuple[list[str], Any]) -> str:
    """What terraform show prints for a plan with these changes."""
    rows = [
        {"address": f"x[{at}]", "type": "kafka_topic", "change": {"actions": actions, "after": after}}
        for at, (actions, after) in enumerate(changes)
    ]
    rows.append({"address": "s", "type": "aws_secret", "change": {"actions": ["create"], "after": {"name": "hidden"}}})
    return json.dumps(
        {"format_version": "1.2", "terraform_version": "1.11.4", "variables": {}, "resource_changes": rows}
    )


def test_a_state_declares_topics_in_all_modules() -> None:
    """Topics of all modules are read; other resources and data sources are ignored."""
    data = resource(topic("z", 1, 1), mode="data")
    other = resource(topic("y", 1, 1), type="kafka_acl")
    part = read_part(state(resource(topic("a", 4, 3)), data, other, inner=[resource(topic("b", 1, 2))]), "s.json")
    assert [("a", 4, 3), ("b", 1, 2)] == [
        (each.topic, each.partitions, each.replication_factor) for each in part.targets
    ]
    assert () == part.entries


def test_a_plan_declares_what_will_be() -> None:
    """A plan's topics are read as they will be: no destroyed topics, and None for values unknown before the apply."""
    text = plan((["update"], topic("a", 4, 3)), (["delete"], None), (["create"], {"name": "new", "partitions": 2}))
    part = read_part(text, "p.json")
    assert [("a", 4, 3), ("new", 2, None)] == [(x.topic, x.partitions, x.replication_factor) for x in part.targets]


MSK = {"cluster_arn": "arn:aws:kafka:x", "name": "m", "partition_count": 6, "replication_factor": 3}
CLOUD = {"topic_name": "c", "partitions_count": 4, "config": {"retention.ms": "5"}, "kafka_cluster": [{"id": "lkc-1"}]}


def test_topics_of_amazon_msk_and_of_confluent_cloud() -> None:
    """Topics of MSK and Confluent Cloud are read; MSK's configuration is JSON text, Confluent has no factor."""
    configs = {"configs": json.dumps({"retention.ms": "7", "cleanup.policy": "compact"})}
    rows = (
        resource({**MSK, **configs}, type="aws_msk_topic"),
        resource({**CLOUD, "name": "x"}, type="confluent_kafka_topic"),
    )
    part = read_part(state(*rows), "s.json")
    assert [("m", 6, 3), ("c", 4, None)] == [(x.topic, x.partitions, x.replication_factor) for x in part.targets]
    assert (("cleanup.policy", "compact"), ("retention.ms", "7")) == part.configs["m"] == part.targets[0].config
    assert (("retention.ms", "5"),) == part.configs["c"]


@pytest.mark.parametrize(
    ("kind", "values", "name"),
    [
        ("kafka_topic", topic("k", 4, 3), "k"),
        ("aws_msk_topic", MSK, "m"),
        ("confluent_kafka_topic", CLOUD, "c"),
    ],
)
@pytest.mark.parametrize("actions", [["delete", "create"], ["create", "delete"]])
def test_a_plan_that_would_delete_a_topics_data_is_refused(
    kind: str, values: dict[str, Any], name: str, actions
) -> None:
    """A plan that would replace a topic, and so delete its data, is refused with the reason; an update is read."""
    change = {"actions": actions, "before": values, "after": values, "replace_paths": [["replication_factor"]]}
    text = plan_of(kind, change)
    with pytest.raises(ImportStateError, match=f"replace topic {name!r} for its replication_factor, which deletes"):
        read_part(text, "p.json")
    assert [name] == [each.topic for each in read_part(text.replace('"delete"', '"update"'), "p.json").targets]


def plan_of(kind: str, change: dict[str, Any]) -> str:
    """What terraform show prints for a plan with one change."""
    rows = [{"address": "x", "type": kind, "change": change}]
    return json.dumps({"format_version": "1.2", "terraform_version": "1.11.4", "resource_changes": rows})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (state(resource(topic("a", 4, 3))).replace('"1.0"', '"2.0"'), "format_version: '2.0' isn't a version"),
        (state(resource(topic("a", 0, 3))), r"kafka_topic\.x\['a'\]\.partitions: 0 isn't possible"),
        (state(resource(topic("a", 1, "3"))), r"replication_factor: '3' isn't possible"),
        (state(resource(topic("{{ x }}", 1, 3))), r"name: '{{ x }}' isn't a topic's name"),
        (state(resource(topic("a", 1, 3)), resource(topic("a", 1, 3))), "a is declared twice"),
        (state(resource({**MSK, "configs": "a=b"}, type="aws_msk_topic")), "configs: it isn't the JSON text of a map"),
        (state(resource({**MSK, "partition_count": 0}, type="aws_msk_topic")), "partition_count: 0 isn't possible"),
    ],
)
def test_bad_declarations_are_named(text: str, message: str) -> None:
    """An invalid declaration is refused with its address."""
    with pytest.raises(ImportStateError, match=message):
        read_part(text, "t.json")


def test_numbers_and_truth_values_of_jsonencode_are_texts() -> None:
    """Terraform writes them as JSON has them. A list can't be a configuration's value, and null isn't known yet."""
    config = {"retention.ms": 604800000, "unclean.leader.election.enable": False, "flush.ms": None, "segment.ms": "7"}
    part = read_part(state(resource({**MSK, "configs": json.dumps(config)}, type="aws_msk_topic")), "s.json")
    expected = (("retention.ms", "604800000"), ("segment.ms", "7"), ("unclean.leader.election.enable", "false"))
    assert expected == part.configs["m"]
    assert () == read_part(state(resource({**MSK, "configs": "null"}, type="aws_msk_topic")), "s.json").configs["m"]
    for wrong in (json.dumps([1]), json.dumps({"retention.ms": [1]}), [1], 5, {"retention.ms": {"a": 1}}):
        text = state(resource({**MSK, "configs": wrong}, type="aws_msk_topic"))
        with pytest.raises(ImportStateError, match="configs: it isn't the JSON text of a map"):
            read_part(text, "s.json")


def test_a_deleted_topic_is_told() -> None:
    """A plan that deletes a topic is read, and a note says that its replicas still count."""
    text = plan_of("kafka_topic", {"actions": ["delete"], "before": topic("a", 4, 3), "after": None})
    said = "p.json deletes topic a, which count until then: apply it first, and capture the state again"
    assert (said,) == read_part(text, "p.json").notes


def test_a_topic_that_terraform_forgets_stays() -> None:
    """A plan that only removes a topic from the state deletes nothing; the topic is declared no more."""
    text = plan_of("kafka_topic", {"actions": ["forget"], "before": topic("a", 4, 3), "after": None})
    part = read_part(text, "p.json")
    assert ((), (), ["a"]) == (part.notes, part.targets, [*part.configs])


def test_declarations_without_a_change_are_told() -> None:
    """An import writes no change for a new topic that isn't declared in full, nor for one with too few partitions."""
    declared = [TopicTarget("b", 1, None, ()), TopicTarget("new", 6, None, ()), TopicTarget("made", 6, 2, ())]
    assert [
        "p.json declares topic new, which the cluster doesn't have, without the number of partitions or the "
        "replication factor: add it to changes.create_topics",
        "p.json declares topic b with fewer partitions than they have: Kafka takes none away",
    ] == list(left_out(targets(FACTORS, declared), "p.json"))


DESCRIBE = """\
Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs:
\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1
Topic: b\tPartitionCount: 2\tReplicationFactor: 1\tConfigs:
\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
\tTopic: b\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1
"""
FACTORS = {"a": [2], "b": [1, 1]}
AT = Place("p.json", 1, 1)


def test_targets_are_what_has_to_change() -> None:
    """New replication factors, more partitions and new topics are targets; fewer partitions only give a note."""
    rows = (TopicTarget("a", 4, 3), TopicTarget("b", 1, 1), TopicTarget("c", 2, 2))
    found = targets(FACTORS, rows)
    assert Targets((("a", 3),), (("a", 4),), (rows[2],), ("b",)) == found
    assert [
        "p.json declares topic a with another replication factor than this plan leaves: change it there, or in "
        "changes.set_replication_factor",
        "p.json declares topic a with more partitions than this plan leaves: change it there, or in "
        "changes.add_partitions",
        "p.json declares topic c which the cluster doesn't have: add it to changes.create_topics, or it stays as it is",
        "p.json declares topic b with fewer partitions than they have: Kafka takes none away",
    ] == list(target_notes(found, "p.json"))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ("rebalance: none", ["a with another replication factor", "a with more partitions", "c which the cluster"]),
        ("set_replication_factor: [{topics: a, replication_factor: 3}]", ["a with more partitions", "c which the"]),
        ("add_partitions: [{topic: a, partitions: 4}]", ["a with another replication factor", "c which the cluster"]),
        (
            "set_replication_factor: [{topics: b, replication_factor: 2}]",
            ["topics a, b with another replication factor", "a with more partitions", "c which the cluster"],
        ),
        (
            "create_topics: [{name: c, partitions: 2, replication_factor: 2}]",
            ["a with another replication factor", "a with more partitions"],
        ),
    ],
)
def test_a_spec_is_told_what_its_changes_leave_otherwise(changes: str, found: list[str], tmp_path: Path) -> None:
    """Notes name the declared values that the spec's changes don't reach, and those that only the spec changes."""
    (tmp_path / "d.txt").write_text(DESCRIBE, encoding="utf-8")
    declared = [resource(topic(*each)) for each in (("a", 4, 3), ("b", 2, 1), ("c", 2, 2))]
    (tmp_path / "p.json").write_text(state(*declared), encoding="utf-8")
    spec = tmp_path / "s.yaml"
    brokers = "[{id: 1}, {id: 2}, {id: 3}]"
    spec.write_text(
        f"version: 1\ncluster: {{name: x, brokers: {brokers}, state: {{files: [d.txt, p.json]}}}}\n"
        f"changes:\n  {changes}\n",
        encoding="utf-8",
    )

    notes = [note for note in load(spec).cluster.notes if "declares" in note]

    assert len(found) == len(notes)
    assert all(said in note for said, note in zip(found, notes, strict=True)), notes


def test_what_is_declared_as_it_is_or_not_known_yet_changes_nothing() -> None:
    """Topics that are as declared, or whose values aren't known yet, give no targets and no notes."""
    rows = (TopicTarget("a", 1, 2), TopicTarget("b", None, None))
    found = targets(FACTORS, rows)
    assert Targets() == found
    assert [] == list(target_notes(found, "p.json"))


ARN = "arn:aws:kafka:eu-west-1:1:cluster/orders/1"


def msk(count: int = 3, **group: Any) -> dict[str, Any]:
    """An aws_msk_cluster resource; `group` adds to the settings of its broker group."""
    volume = [{"ebs_storage_info": [{"provisioned_throughput": [], "volume_size": 1000}]}]
    nodes = {"instance_type": "kafka.m7g.large", "az_distribution": "DEFAULT", "storage_info": volume, **group}
    values = {"arn": ARN, "cluster_name": "orders", "number_of_broker_nodes": count, "broker_node_group_info": [nodes]}
    return {"address": "aws_msk_cluster.orders", "mode": "managed", "type": "aws_msk_cluster", "values": values}


def nodes_of(*ids: Any, arn: str = ARN) -> dict[str, Any]:
    """The data source of its nodes, in three subnets in turn; Terraform writes the ids as decimals."""
    listed = [{"broker_id": number, "client_subnet": f"subnet-{at % 3}"} for at, number in enumerate(ids)]
    values = {"cluster_arn": arn, "node_info_list": listed}
    return {"address": "data.x", "mode": "data", "type": "aws_msk_broker_nodes", "values": values}


SUBNETS = tuple(
    {"mode": mode, "type": "aws_subnet", "values": {"id": f"subnet-{at}", "availability_zone_id": f"euw1-az{at + 1}"}}
    for at, mode in enumerate(("managed", "data", "data"))
)


def test_brokers_of_msk_are_in_their_zones() -> None:
    """An MSK broker's rack is the zone of its subnet, from any module; disk and type are those of the cluster."""
    part = read_part(state(msk(), *SUBNETS[:2], inner=[nodes_of(1.0, 2, 3), SUBNETS[2]]), "s.json")
    assert [(1, "euw1-az1", 1000 << 30), (2, "euw1-az2", 1000 << 30), (3, "euw1-az3", 1000 << 30)] == [
        (each.id, each.rack, each.disk_bytes) for each in part.brokers
    ]
    assert ("msk.m7g.large", ()) == (part.platform, part.notes)


def test_what_is_not_known_of_msk_is_said() -> None:
    """A note names what is unknown: ids, zones, another count, which of two clusters, brokers that a plan adds."""
    expected = (
        ([msk()], "aws_msk_cluster of 3 brokers, but not their ids and racks; the data source aws_msk_broker_nodes"),
        ([msk(), nodes_of(1, 2, 3)], "in which availability zone 3 of 3 MSK brokers are: they aren't read from it"),
        ([msk(6), nodes_of(1, 2, 3), *SUBNETS], "has 6 brokers in aws_msk_cluster, 3 in aws_msk_broker_nodes"),
        ([msk(), nodes_of(1, arn="another"), *SUBNETS], "has 2 MSK clusters: their brokers aren't read from it"),
    )
    for resources, said in expected:
        (note,) = read_part(state(*resources), "s.json").notes
        assert said in note
    change = {"before": {"number_of_broker_nodes": 3}, "after": {"number_of_broker_nodes": 6}}
    changes = [{"address": "a", "type": "aws_msk_cluster", "change": {"actions": ["update"], **change}}]
    before = json.loads(state(msk(), nodes_of(1, 2, 3), *SUBNETS))
    text = {**before, "resource_changes": changes, "prior_state": {"values": before.pop("values")}}
    del text["values"]
    part = read_part(json.dumps(text), "p.json")
    assert [1, 2, 3] == [each.id for each in part.brokers]
    assert (
        "p.json changes number_of_broker_nodes from 3 to 6: which ids join or leave isn't known before it was applied",
    ) == (part.notes)


@pytest.mark.parametrize("number", [None, "1", 1.5, -1, 2**31, True])
def test_an_id_that_no_broker_has(number: Any) -> None:
    """A broker_id that isn't a valid broker id is refused with its key."""
    with pytest.raises(ImportStateError, match=r"aws_msk_broker_nodes.node_info_list.broker_id: .*the id of a broker"):
        read_part(state(msk(), nodes_of(number), *SUBNETS), "s.json")


def test_names_of_another_kind_are_names_that_nothing_has() -> None:
    """A cluster, id or subnet that isn't text matches nothing, and a note says what is missing."""
    odd = {"type": "aws_subnet", "values": {"id": {"a": 1}, "availability_zone_id": "z"}}
    node = nodes_of(1, arn={"a": 1})
    node["values"]["node_info_list"][0]["client_subnet"] = [1]
    part = read_part(state(node, odd), "s.json")
    assert ((), 1) == (part.brokers, len(part.notes))


def test_express_brokers_have_no_volume() -> None:
    """Express brokers have no disk size, but a platform, from which the planner knows that MSK places the replicas."""
    part = read_part(state(msk(instance_type="express.m7g.large", storage_info=[]), nodes_of(1), *SUBNETS), "s.json")
    assert ("msk.express.m7g.large", [None]) == (part.platform, [each.disk_bytes for each in part.brokers])
