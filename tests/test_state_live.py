"""A running cluster's state: through a client that answers from memory, and through Confluent's own mock cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from planner import state_live
from planner.errors import SetupError
from planner.model import Partition, Topic
from planner.state_live import read_cluster, read_live
from planner.state_merge import merge


def done(value: Any) -> Future[Any]:
    """A future that is done."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def partition(leader: int, replicas: list[int], isrs: list[int]) -> SimpleNamespace:
    """A partition's metadata."""
    return SimpleNamespace(leader=leader, replicas=replicas, isrs=isrs)


class Client:
    """Answers as an AdminClient does."""

    def __init__(self, error: Any = None) -> None:
        self.error = error

    def list_topics(self, timeout: float) -> Any:
        """Two topics, one of them without a leader."""
        a = SimpleNamespace(error=self.error, partitions={0: partition(1, [2, 1], [1]), 1: partition(-1, [2], [2])})
        b = SimpleNamespace(error=None, partitions={0: partition(2, [2], [2])})
        return SimpleNamespace(topics={"b": b, "a": a})

    def describe_cluster(self, request_timeout: float) -> Any:
        """Two brokers, one with a rack."""
        return done(SimpleNamespace(nodes=[SimpleNamespace(id=2, rack=""), SimpleNamespace(id=1, rack="r1")]))

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Any]:
        """One setting of the topic's own and one that it inherits."""
        own = SimpleNamespace(name="min.insync.replicas", value="2", source=1)
        inherited = SimpleNamespace(name="retention.ms", value="5", source=5)
        return {each: done({"x": own, "y": inherited}) for each in resources}


def resource(_: str, name: str) -> ConfigResource:
    """A topic's ConfigResource."""
    return ConfigResource("TOPIC", name)


def test_a_cluster_is_what_its_client_tells() -> None:
    """Topics, leaders, ISRs, racks, and the configuration that topics set themselves."""
    merged = merge([read_cluster(Client(), resource, "k:9092")])
    config = (("min.insync.replicas", "2"),)
    assert (
        Topic("a", (Partition(0, (2, 1), 1, (1,)), Partition(1, (2,), None, (2,))), config),
        Topic("b", (Partition(0, (2,), 2, (2,)),), config),
    ) == merged.assignment.topics
    assert [(1, "r1"), (2, None)] == [(broker.id, broker.rack) for broker in merged.brokers]
    assert "add the output of kafka-reassign-partitions --list" in merged.notes[0]


def test_a_topic_that_cannot_be_read_is_refused() -> None:
    """Otherwise it would be missing from the plan."""
    error = SimpleNamespace(str=lambda: "no access")
    with pytest.raises(SetupError, match="topic a can't be read: no access"):
        read_cluster(Client(error), resource, "k:9092")


def test_confluents_client_answers_in_this_way() -> None:
    """librdkafka's own mock cluster, for what it can: brokers and topics."""
    mock = {"test.mock.num.brokers": 3}
    producer = Producer({**mock, "allow.auto.create.topics": True})
    producer.list_topics("made", timeout=10)
    address = ",".join(str(broker) for broker in _addresses(producer))
    admin = AdminClient({"bootstrap.servers": address})
    names: Callable[..., dict[Any, Any]] = lambda asked, request_timeout: {each: done({}) for each in asked}  # noqa: E731
    client = SimpleNamespace(
        list_topics=admin.list_topics,
        describe_cluster=lambda request_timeout: done(
            SimpleNamespace(nodes=[SimpleNamespace(id=each, rack=None) for each in admin.list_topics().brokers])
        ),
        describe_configs=names,
    )
    part = read_cluster(client, resource, address)
    assert {"made"} == {entry.topic for entry in part.entries}
    assert [1, 2, 3] == [broker.id for broker in part.brokers]
    assert all(set(entry.partition.replicas) <= {1, 2, 3} for entry in part.entries)


def _addresses(producer: Any) -> list[str]:
    return [f"{broker.host}:{broker.port}" for broker in producer.list_topics(timeout=10).brokers.values()]


def test_a_cluster_out_of_reach_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what librdkafka says."""
    monkeypatch.setattr(state_live, "TIMEOUT_SECONDS", 1.0)
    with pytest.raises(SetupError, match=r"127\.0\.0\.1:1: the cluster can't be read: "):
        read_live("127.0.0.1:1", {"socket.timeout.ms": "1000", "client.id": "x"})


def test_settings_that_make_no_sense_are_one_error() -> None:
    """librdkafka judges its settings itself."""
    with pytest.raises(SetupError, match=r"security\.protocol"):
        read_live("127.0.0.1:1", {"security.protocol": "NONE"})


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "confluent_kafka.admin", None)
    with pytest.raises(SetupError, match=r"allowed: pip install 'kafka-planner\[live\]'"):
        read_live("127.0.0.1:1", {})
