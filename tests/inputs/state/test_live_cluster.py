"""Reads a running cluster with kafka-python, and turns a Java client's properties into kafka-python's settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import IncompatibleBrokerVersion
from kafka.structs import TopicPartition

from planner.inputs.state import live_cluster
from planner.inputs.state.live_cluster import kafka_python_settings, read_cluster, read_live
from planner.inputs.state.merge import Merged, merge
from planner.model.cluster import MIN_INSYNC, Partition, Topic
from planner.model.errors import SetupError, SpecError


def partition(number: int, leader: int, replicas: list[int], isr: list[int]) -> dict[str, Any]:
    """The metadata of one partition."""
    return {"partition_index": number, "leader_id": leader, "replica_nodes": replicas, "isr_nodes": isr}


STATIC, CLUSTER_WIDE = "STATIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"


def entry(value: str, source: str) -> dict[str, str]:
    """A configuration value with its source."""
    return {"value": value, "config_source": source}


class Client:
    """Stands in for a KafkaAdminClient, with fixed answers."""

    def __init__(self, error: int = 0, moving: dict[Any, Any] | None = None, old: bool = False) -> None:
        self.error = error
        self.moving = moving or {}
        self.old = old
        self.least = {"1": "2", "2": "2"}
        self.hidden = False
        self.cordoned = ""

    def describe_topics(self) -> list[dict[str, Any]]:
        """Two topics; one partition has no leader."""
        a = [partition(1, -1, [2], [2]), partition(0, 1, [2, 1], [1])]
        return [
            {"name": "b", "error_code": 0, "partitions": [partition(0, 2, [2], [2])]},
            {"name": "a", "error_code": self.error, "partitions": a},
        ]

    def describe_cluster(self) -> dict[str, Any]:
        """Two live brokers, one of them with a rack, and a fenced one."""
        brokers = [(2, "", False), (1, "r1", False), (3, "r3", True)]
        return {
            "brokers": [{"broker_id": number, "rack": rack, "is_fenced": fenced} for number, rack, fenced in brokers]
        }

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        """An own setting of the topic, two inherited ones and a default; the brokers may disagree."""
        if resources[0].resource_type is ConfigResourceType.BROKER:
            least = {each.name: {MIN_INSYNC: entry(self.least[each.name], STATIC)} for each in resources}
            least["1"]["cordoned.log.dirs"] = entry(self.cordoned, "DYNAMIC_BROKER_CONFIG")
            return {"broker": least}
        own = {"cleanup.policy": entry("compact", "DYNAMIC_TOPIC_CONFIG"), "retention.ms": entry("5", "DEFAULT_CONFIG")}
        inherited = {MIN_INSYNC: entry(self.least["1"], STATIC), "segment.bytes": entry("9", CLUSTER_WIDE)}
        return {"topic": {each.name: {} if self.hidden else own | inherited for each in resources}}

    def describe_log_dirs(self) -> list[dict[str, Any]]:
        """Broker 2 has a replica and, elsewhere, a future one, which doesn't count; the log dir of broker 1 failed."""
        if self.old:
            raise IncompatibleBrokerVersion
        whole = {"partition_index": 0, "partition_size": 70, "is_future_key": False}
        copy = {"partition_index": 0, "partition_size": 90, "is_future_key": True}
        ok = {"error_code": 0, "log_dir": "/d1", "topics": [{"name": "a", "partitions": [whole]}]}
        other = {"error_code": 0, "log_dir": "/d2", "topics": [{"name": "a", "partitions": [copy]}]}
        return [
            {"broker": 2, "log_dirs": [ok, other]},
            {"broker": 1, "log_dirs": [{"error_code": 56, "log_dir": "/d1", "topics": []}]},
        ]

    def list_partition_reassignments(self) -> dict[Any, Any]:
        """The running reassignments."""
        if self.old:
            raise IncompatibleBrokerVersion
        return self.moving


def resource(kind: str, name: str) -> ConfigResource:
    """The ConfigResource of a topic or a broker."""
    return ConfigResource(ConfigResourceType[kind.upper()], name)


def merged(client: Client, *, to_targets: bool = False) -> Merged:
    """The state that is read from the client."""
    return merge([read_cluster(client, resource, IncompatibleBrokerVersion, "k:9092")], to_targets=to_targets)


def test_a_cluster_is_what_its_client_tells() -> None:
    """Topics, leaders, ISRs, sizes, racks and topics' own configurations are read from the client's answers."""
    found = merged(Client())
    config = (("cleanup.policy", "compact"),)
    assert (
        Topic("a", (Partition(0, (2, 1), 1, (1,)), Partition(1, (2,), None, (2,))), config),
        Topic("b", (Partition(0, (2,), 2, (2,)),), config),
    ) == found.assignment.topics
    assert [(1, "r1"), (2, None)] == [(broker.id, broker.rack) for broker in found.brokers]
    assert {("a", 0): 70} == found.sizes


def test_what_topics_inherit_is_no_configuration_of_theirs() -> None:
    """Settings of the cluster and of brokers' files are inherited, and Kafka's defaults are left out."""
    assert ((MIN_INSYNC, "2"), ("segment.bytes", "9")) == merged(Client()).config_defaults


@pytest.mark.parametrize(("setting", "expected"), [("", {}), ("*", {1: ("*",)}), ("/d1,/d2", {1: ("/d1", "/d2")})])
def test_cordoned_log_dirs_are_read(setting: str, expected: dict[int, tuple[str, ...]]) -> None:
    """Each broker's cordoned.log.dirs is read."""
    client = Client()
    client.cordoned = setting
    assert expected == merged(client).cordoned


def test_brokers_that_disagree_are_told_of() -> None:
    """If brokers differ in min.insync.replicas, the largest counts, because any broker may lead; a note says so."""
    client = Client()
    client.least = {"1": "1", "2": "3"}
    found = merged(client)
    assert (MIN_INSYNC, "3") in found.config_defaults
    note = "brokers don't agree on the min.insync.replicas that topics inherit (1, 3): 3 counts here"
    assert note in found.notes


def test_a_configuration_that_cannot_be_read_is_refused() -> None:
    """A configuration that can't be read is refused, not taken as empty."""
    client = Client()
    client.hidden = True
    with pytest.raises(SetupError, match="the configuration of topic a can't be read; allowed: with the permission"):
        merged(client)


def test_a_fenced_broker_does_not_live() -> None:
    """A note says that a fenced broker is down."""
    assert "broker 3 is fenced: it is down, or not yet up" in merged(Client()).notes


def test_running_reassignments_are_told_and_planned_from_where_asked() -> None:
    """A running reassignment is refused, or planned from its target if asked."""
    running = {TopicPartition("a", 0): {"replicas": [1, 2], "adding_replicas": [1], "removing_replicas": [2]}}
    with pytest.raises(Exception, match=r"partition 0 of a is being reassigned \(Adding Replicas: 1\)"):
        merged(Client(moving=running))
    assert (1,) == merged(Client(moving=running), to_targets=True).assignment.topics[0].partitions[0].replicas


def test_old_brokers_tell_less() -> None:
    """Old brokers don't report sizes and running reassignments, and a note says so for each."""
    found = merged(Client(old=True))
    assert None is found.sizes
    assert ["the brokers are too old to tell sizes", "the brokers are too old to tell running reassignments"] == [
        note.partition(":")[0] for note in found.notes if "too old" in note
    ]


def test_a_topic_that_cannot_be_read_is_refused() -> None:
    """A topic that can't be read is refused, because otherwise the plan would lack it."""
    with pytest.raises(SetupError, match="topic a can't be read: Kafka's error 29"):
        merged(Client(error=29))


@pytest.mark.slow
def test_a_cluster_out_of_reach_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """If the cluster can't be reached, there is one error with the client's reason, and no log output."""
    monkeypatch.setattr(live_cluster, "TIMEOUT_MS", 1000)
    with pytest.raises(SetupError, match=r"127\.0\.0\.1:1: the cluster can't be read: "):
        read_live("127.0.0.1:1", {"client_id": "x"})
    assert ("", "") == capfd.readouterr()


def test_a_certificate_that_is_not_there_is_one_error() -> None:
    """A missing certificate file is one error at once, before the client's timeout."""
    with pytest.raises(SetupError, match=r"^/nowhere\.pem: can't be read: No such file or directory; allowed: a file"):
        read_live("127.0.0.1:1", {"security_protocol": "SSL", "ssl_cafile": "/nowhere.pem"})


@pytest.mark.parametrize("key", ["ssl_cafile", "ssl_certfile"])
def test_a_file_without_a_certificate_is_one_error(tmp_path: Path, key: str) -> None:
    """A file without a PEM certificate, for example a Java truststore, is one error."""
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(SetupError, match=r"store\.jks: can't be used: .*; allowed: certificates in PEM"):
        read_live("127.0.0.1:1", {"security_protocol": "SSL", key: str(tmp_path / "store.jks")})


def test_a_missing_client_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without kafka-python the error says how to install it."""
    monkeypatch.setitem(sys.modules, "kafka.admin", None)
    with pytest.raises(SetupError, match=r"allowed: pip install 'kafka-planner\[live\]'"):
        read_live("127.0.0.1:1", {})


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_tls_with_a_password() -> None:
    """SASL over TLS with a PEM truststore is translated, with all notations that a properties file allows."""
    text = (
        "# comment\n! another\n\nsecurity.protocol = SASL_SSL\r\n"
        "sasl.mechanism: SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM} \\\n   username="al\\"ice" \\\n   password=\'p w;\';\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=/etc/ca.pem\nssl.endpoint.identification.algorithm=\n"
        "retries=5\nrequest.timeout.ms 1000\n"
    )
    expected = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": 'al"ice',
        "sasl_plain_password": "p w;",
        "ssl_cafile": "/etc/ca.pem",
        "ssl_check_hostname": False,
        "request_timeout_ms": 1000,
    }
    # The properties format removes one backslash, so the quote needs two.
    assert expected == kafka_python_settings(text.replace('\\"ice', '\\\\"ice'), "c.properties")


def test_a_certificate_of_ones_own() -> None:
    """A PEM keystore gives the client's certificate and key."""
    pem = "ssl.keystore.type=PEM\nssl.keystore.location=/k.pem\nssl.key.password=x\n"
    assert {"ssl_certfile": "/k.pem", "ssl_keyfile": "/k.pem", "ssl_password": "x"} == kafka_python_settings(pem, "c")


def test_kerberos_needs_no_password() -> None:
    """Kerberos needs no password, because its tickets are on the machine."""
    text = "sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=k\nsasl.jaas.config=x.Krb5LoginModule required;\n"
    assert {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "k"} == kafka_python_settings(text, "c")


@pytest.mark.parametrize(
    ("text", "where", "allowed"),
    [
        ("\nssl.truststore.location=/a.jks", "c:2:1: ssl.truststore.location", "allowed: ssl.truststore.type=PEM"),
        ("ssl.keystore.location=/a", "c:1:1: ssl.keystore.location", "allowed: ssl.keystore.type=PEM"),
        ("security.protocol=NONE", "c:1:1: security.protocol", "allowed: PLAINTEXT, SSL"),
        ("sasl.mechanism=OAUTHBEARER", "c:1:1: sasl.mechanism", "allowed: PLAIN, SCRAM-SHA-256"),
        ("request.timeout.ms=soon", "c:1:1: request.timeout.ms", "allowed: such as 30000"),
        ("sasl.login.class=x", "c:1:1: sasl.login.class", "isn't known here; allowed: sasl.jaas.config"),
        (
            "sasl.jaas.config=x.TokenLoginModule required;",
            "c:1:1: sasl.jaas.config",
            "allowed: one of PlainLoginModule",
        ),
        ("sasl.jaas.config=", "c:1:1: sasl.jaas.config", "allowed: one of PlainLoginModule"),
        (f"sasl.jaas.config={SCRAM} username=x;", "c:1:1: sasl.jaas.config", "with username and password"),
    ],
)
def test_what_the_client_cannot_do_is_refused(text: str, where: str, allowed: str) -> None:
    """Settings that kafka-python doesn't support are refused with line and key, never with the value."""
    with pytest.raises(SpecError) as caught:
        kafka_python_settings(text, "c")
    assert str(caught.value).startswith(where)
    assert allowed in str(caught.value)
    assert text.partition("=")[2] not in str(caught.value) or not text.partition("=")[2]
