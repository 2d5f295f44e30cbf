"""Reads ZooKeeper's znodes; the file's path says which znode it is."""

from __future__ import annotations

import json

import pytest
from folders import TESTS
from state_texts import read_topics

from planner.inputs.importers.state_parts import RegisteredBroker, RunningReassignment
from planner.inputs.state.merge import merge
from planner.inputs.state.state_files import files_in, read_file, read_part
from planner.model.cluster import Partition
from planner.model.errors import ImportStateError

DATA = TESTS / "data" / "zookeeper-3.9"
TOPIC = '{"version":3,"partitions":{"0":[1,2],"1":[2,1]},"topic_id":"x","adding_replicas":{},"removing_replicas":{}}'
BROKER = '{"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"host":"h","port":9092,"version":4,"timestamp":"1"}'
STATE = '{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2]}'


def test_a_folder_of_captures_is_a_cluster() -> None:
    """A folder of captured znodes gives brokers with racks, and the same assignment as kafka-topics at that time."""
    files = [path for path in files_in(DATA) if path.suffix == ".json"]
    merged = merge([read_file(path, path.name) for path in files])
    described = read_topics((DATA / "kafka-topics-describe.txt").read_text(encoding="utf-8"), "d.txt")
    assert [(topic.name, [row.replicas for row in topic.partitions]) for topic in described] == [
        (topic.name, [row.replicas for row in topic.partitions]) for topic in merged.assignment.topics
    ]
    assert [(0, "rack0"), (1, "rack1"), (2, "rack0"), (3, "rack1")] == [(each.id, each.rack) for each in merged.brokers]
    assert () == merged.notes


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("zk/brokers/topics/orders", "orders"),
        ("brokers/topics/orders.json", "orders"),
        ("brokers/topics/orders/data", "orders"),
        ("znode-brokers-topics-a-1.json", "a-1"),
        ("kafka/brokers/topics/x-brokers-topics-y", "x-brokers-topics-y"),
        ("znode-brokers-topics-dump/brokers/topics/a.b", "a.b"),
    ],
)
def test_the_path_names_the_topic(path: str, topic: str) -> None:
    """A topic's name is read from the znode's path, with slashes or with hyphens instead."""
    part = read_part(TOPIC, path)
    assert [(topic, Partition(0, (1, 2), 1)), (topic, Partition(1, (2, 1), 2))] == [
        (entry.topic, entry.partition) for entry in part.entries
    ]


@pytest.mark.parametrize(
    ("path", "topic", "number"),
    [
        ("brokers/topics/orders/partitions/3/state", "orders", 3),
        ("znode-brokers-topics-a-partitions-0-state-partitions-12-state.json", "a-partitions-0-state", 12),
    ],
)
def test_the_path_names_the_partition_of_a_state(path: str, topic: str, number: int) -> None:
    """In the path of a partition's state, the last number is the partition's."""
    assert {(topic, number): (2, (2,))} == read_part(STATE, path).leaders


@pytest.mark.parametrize("text", [TOPIC, BROKER, STATE])
def test_a_name_that_tells_nothing_is_refused(text: str) -> None:
    """A file whose name doesn't say its znode is refused, because the content doesn't say it either."""
    with pytest.raises(ImportStateError, match="the file's name doesn't say which znode it is; allowed: a path that"):
        read_part(text, "dump.json")


def test_brokers_have_racks_or_none() -> None:
    """A broker's rack is read, or is None if the broker has none."""
    (without,) = read_part(BROKER, "brokers/ids/2147483647").brokers
    (within,) = read_part(BROKER.replace('"host"', '"rack":"a b","host"'), "brokers-ids-3.txt").brokers
    assert RegisteredBroker(without.place, 2147483647, None) == without
    assert RegisteredBroker(within.place, 3, "a b") == within


@pytest.mark.parametrize("number", [2147483648, 9999999999])
def test_brokers_that_cannot_exist_are_refused(number: int) -> None:
    """A broker id above 2147483647 is refused, because Kafka's ids have 32 bits."""
    parts = [read_part(BROKER, f"brokers/ids/{number}"), read_part(TOPIC, "brokers/topics/a")]
    with pytest.raises(ImportStateError, match=f"broker {number} can't exist; allowed: ids from 0 to 2147483647"):
        merge(parts)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_versions_of_topics_are_read(version: int) -> None:
    """Topic znodes of versions 1 to 3 are read."""
    text = json.dumps({"version": version, "partitions": {"1": [0, 1], "0": [1, 0]}})
    assert [(1, 0), (0, 1)] == [entry.partition.replicas for entry in read_part(text, "brokers/topics/a").entries]


def test_adding_and_removing_replicas_are_a_reassignment() -> None:
    """Adding or removing replicas are a running reassignment; empty lists are none."""
    text = json.dumps(
        {
            "version": 3,
            "partitions": {"0": [3, 1, 2], "1": [1, 2]},
            "adding_replicas": {"0": [3], "1": []},
            "removing_replicas": {"0": [2]},
        }
    )
    (moving,) = read_part(text, "brokers/topics/a").moving
    assert RunningReassignment(moving.place, "a", 0, (3,), (2,), (3, 1, 2), "partitions.0") == moving


def test_states_give_leaders_and_isrs() -> None:
    """States give each partition's leader, None for -1, and its ISR."""
    parts = [
        read_part(TOPIC, "brokers/topics/a"),
        read_part(STATE, "brokers/topics/a/partitions/0/state"),
        read_part(STATE.replace('"leader":2', '"leader":-1'), "brokers/topics/a/partitions/1/state"),
    ]
    assert (Partition(0, (1, 2), 2, (2,)), Partition(1, (2, 1), None, (2,))) == merge(parts).assignment.topics[
        0
    ].partitions


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("brokers/topics/a", TOPIC.replace('"version":3', '"version":4'), "4 isn't a version of /brokers/topics/a"),
        ("brokers/topics/a", TOPIC.replace("[1,2]", '["1"]'), r"partitions\.0: \['1'\] isn't possible here"),
        ("brokers/topics/a", TOPIC.replace('"0"', '"00"'), r"partitions\.00"),
        ("brokers/topics/a", '{"version":1,"partitions":{}}', "at least one partition"),
        ("brokers/ids/1", BROKER.replace('"host"', '"rack":5,"host"'), "5 isn't a rack"),
        ("brokers/topics/a/partitions/0/state", STATE.replace("[2]", "null"), "None isn't possible here"),
        ("brokers/topics/a/partitions/0/state", STATE.replace('"leader":2', '"leader":"x"'), "'x' isn't a broker"),
        ("brokers/topics/a", TOPIC + TOPIC, "something follows the JSON"),
    ],
)
def test_bad_znodes_are_named(path: str, text: str, message: str) -> None:
    """An invalid znode is refused with its key or what is allowed."""
    with pytest.raises(ImportStateError, match=message):
        read_part(text, path)


@pytest.mark.parametrize("config", ['{"a b":"1"}', '{"a":1}'])
def test_a_configuration_that_kafka_would_not_keep_is_refused(config: str) -> None:
    """A configuration with an impossible key, or a value that isn't text, is refused."""
    with pytest.raises(ImportStateError, match="allowed: a JSON object of configuration keys and texts"):
        read_part(f'{{"version":1,"config":{config}}}', "config/topics/a")
