"""Writes a state as files of Kafka's tools or as the `cluster` of a spec; test_import_round_trips reads both back."""

from __future__ import annotations

import json

import pytest
import yaml

from planner.inputs.importers.state_parts import TopicTarget
from planner.inputs.importers.terraform_show import Targets
from planner.inputs.state.spec_writer import (
    TITLE,
    Imported,
    describe,
    drained,
    log_dirs,
    text,
    topic_configs,
    with_brokers,
)
from planner.inputs.yaml_source import read_yaml
from planner.model.cluster import Broker, Partition, Topic
from planner.model.generated_text import is_as_written

TOPICS = (Topic("a", (Partition(0, (1, 2), 1), Partition(1, (2, 1), None, (1,)))),)
WRITTEN = Imported("prod: 1", (Broker(1, "r"), Broker(2)), TOPICS, {("a", 0): 5})


def test_only_what_differs_from_the_defaults_is_written() -> None:
    """Default values aren't written: the first replica as leader, an unknown ISR, an unknown size."""
    cluster = yaml.safe_load(text(WRITTEN))["cluster"]
    assert ("prod: 1", [{"id": 1, "rack": "r"}, {"id": 2}]) == (cluster["name"], cluster["brokers"])
    partitions = [{"replicas": [1, 2], "size": 5}, {"replicas": [2, 1], "leader": "none", "isr": [1]}]
    assert [{"name": "a", "partitions": partitions}] == cluster["topics"]


def test_what_terraform_declares_is_a_change() -> None:
    """What Terraform declares is written under `changes`; a new topic with unknown numbers is left out."""
    new = (TopicTarget("n", 2, 3, (("x", "1"),)), TopicTarget("m", None, 3))
    declared = Targets((("a", 3),), (("a", 4),), new)
    assert {
        "set_replication_factor": [{"topics": "a", "replication_factor": 3}],
        "add_partitions": [{"topic": "a", "partitions": 4}],
        "create_topics": [{"name": "n", "partitions": 2, "replication_factor": 3, "config": {"x": "1"}}],
    } == yaml.safe_load(text(Imported("x", (), TOPICS, {}, targets=declared)))["changes"]


def test_a_file_that_somebody_has_worked_on_is_told_apart() -> None:
    """The title's digest shows whether somebody edited the file; a later import replaces only an unedited one."""
    written = text(WRITTEN).encode()
    assert is_as_written(written, TITLE)
    for changed in (written.replace(b"size: 5", b"size: 6"), written + b"\n", b"version: 1\n", b"# Mine: " + written):
        assert not is_as_written(changed, TITLE)
    assert not is_as_written(written, "Written by planner drain")


PRINTED = (
    Topic("a", (Partition(0, (1, 2), None, (2,)), Partition(1, (2, 1), 2)), (("x", "1"),), True, (("b", "2"),)),
    Topic("c", (Partition(0, (3,), 3, ()),)),
)


def test_describe_is_what_kafka_prints() -> None:
    """Topics are written as kafka-topics prints them: configuration, no leader, an empty ISR, an unknown ISR."""
    assert (
        "Topic: a\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: b=2,x=1\tMarkedForDeletion: true\n"
        "\tTopic: a\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: 2\tMarkedForDeletion: true\n"
        "\tTopic: a\tPartition: 1\tLeader: 2\tReplicas: 2,1\tMarkedForDeletion: true\n"
        "Topic: c\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: c\tPartition: 0\tLeader: 3\tReplicas: 3\tIsr: \n"
    ) == describe(PRINTED)


def test_topics_without_configurations_of_their_own_are_listed_too() -> None:
    """Topics without own configuration are listed too; a value in force whose origin is unknown isn't listed."""
    assert (
        "Dynamic configs for topic a are:\n  x=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:x=1}\n"
        "Dynamic configs for topic c are:\n"
    ) == topic_configs(PRINTED)


def test_each_size_is_told_once() -> None:
    """Each known size is written once, on the partition's first replica."""
    brokers = json.loads(log_dirs(PRINTED, {("a", 1): 7, ("c", 0): 0}))["brokers"]
    assert [(2, [("a-1", 7)]), (3, [("c-0", 0)])] == [
        (each["broker"], [(row["partition"], row["size"]) for row in each["logDirs"][0]["partitions"]])
        for each in brokers
    ]


SPEC = """# A cluster.
version: 1
changes:
  add_brokers: [{id: 5}]
  set_replication_factor: [{topics: a, replication_factor: 3}]

# What may be bought.
sizing: {brokers_per_rack: 2}

# How even.
balance: {disk: 5%}
"""


def test_brokers_are_exchanged_in_a_text() -> None:
    """`with_brokers` replaces the brokers' changes and drops `sizing`; all other lines stay as they are."""
    changed = with_brokers(SPEC, [Broker(7, "r 1"), Broker(8)], [2, 3], "big one", "75%", "Of eight.")
    assert is_as_written(changed.encode(), "Of eight.")
    assert "\n# A cluster.\nversion: 1\n" in changed
    assert "\n# How even.\nbalance: {disk: 5%}\n" in changed
    assert {
        "version": 1,
        "balance": {"disk": "5%"},
        "limits": {"disk_used": "75%"},
        "changes": {
            "set_replication_factor": [{"topics": "a", "replication_factor": 3}],
            "add_brokers": [{"id": 7, "rack": "r 1", "class": "big one"}, {"id": 8, "class": "big one"}],
            "remove_brokers": [2, 3],
        },
    } == yaml.safe_load(changed)


def test_limits_that_are_stated_stay() -> None:
    """Existing limits stay, also `disk_used`; if no brokers change, the cluster is rebalanced."""
    given = SPEC.replace("balance: {disk: 5%}", "limits: {eta: 3h}")
    changed = yaml.safe_load(with_brokers(given, [], [], "x", "75%", "Of eight."))
    assert {"eta": "3h", "disk_used": "75%"} == changed["limits"]
    fuller = given.replace("{eta: 3h}", "{disk_used: 90%}  # stays")
    assert "limits: {disk_used: 90%}  # stays\n" in with_brokers(fuller, [], [], "x", "75%", "Of eight.")
    assert {"set_replication_factor", "rebalance"} == set(changed["changes"])
    created = SPEC.replace("set_replication_factor: [{topics: a,", "create_topics: [{name: a, partitions: 1,")
    assert "all" == yaml.safe_load(with_brokers(created, [], [], "x", None, "Of it."))["changes"]["rebalance"]


def test_a_file_in_braces_is_not_rewritten() -> None:
    """A spec in braces is refused, because its keys aren't on lines of their own."""
    with pytest.raises(ValueError, match="in braces"):
        with_brokers("{version: 1}", [], [], "x", None, "Of eight.")


def test_values_stay_as_the_planner_reads_them() -> None:
    """Octal and sexagesimal numbers stay text, as in the spec; small numbers get no exponent."""
    config = "{a: 010, b: 1:30, c: 2026-01-01, d: yes, e: 0x10, f: 0.00001}"
    given = SPEC.replace("set_replication_factor: [", f"create_topics: [{{name: 0123, config: {config}}}, ")
    given += "limits: {bytes_moved: 0100000000}\n"
    made = read_yaml(with_brokers(given, [], [], "x", "75%", "Of eight."), "").value
    kept = {"a": "010", "b": "1:30", "c": "2026-01-01", "d": True, "e": "0x10", "f": 0.00001}
    assert {"name": "0123", "config": kept} == made["changes"]["create_topics"][0]
    assert {"bytes_moved": "0100000000", "disk_used": "75%"} == made["limits"]
    priced = "cluster: {brokers: [{id: 4}]}\nprices: {cross_rack_per_gib: 0.00001}\n"
    assert {"cross_rack_per_gib": 0.00001} == read_yaml(drained(priced, 4, 5, "relieved"), "").value["prices"]


@pytest.mark.parametrize(
    "given",
    [
        SPEC.replace("\n", "\n  ").rstrip(" "),
        SPEC + "...\n",
        SPEC.replace("brokers_per_rack: 2", "brokers_per_rack: &two 2").replace("{disk: 5%}", "{leaders: *two}"),
    ],
    ids=["indented", "with an end", "with an alias of what goes"],
)
def test_a_file_that_would_say_something_else_is_not_rewritten(given: str) -> None:
    """A spec is refused if it can't be read, or says something else, without its `changes` and `sizing`."""
    assert read_yaml(given, "").value["sizing"]
    with pytest.raises(ValueError, match=r"without today's changes, sizing, it"):
        with_brokers(given, [Broker(7)], [], "x", None, "Of eight.")


def test_a_drains_broker_sets_keep_todays_brokers() -> None:
    """Broker sets of the relieving spec list the brokers of today, and leave out a broker that joins."""
    given = (
        "cluster:\n  broker_classes: {big: {disk: 1GB}}\n"
        "  brokers: [{id: 1}, {id: 4, class: big}, {id: 5, class: big}]\n"
        "changes: {add_brokers: [{id: 7}]}\n"
        "broker_sets: {of_class: {class: big}, of_ids: [1, 7], of_rack: {rack: r2}}\n"
    )
    written = yaml.safe_load(drained(given, 4, 5, "relieved"))
    assert {"of_class": [4, 5], "of_ids": [1], "of_rack": {"rack": "r2"}} == written["broker_sets"]
    assert {"id": 4, "capacity": {"disk": "1GB", "max_disk": "5B"}} == written["cluster"]["brokers"][1]
