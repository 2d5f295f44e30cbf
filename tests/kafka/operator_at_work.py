"""What an operator does with a cluster: create topics, produce, capture the state, plan, run playbooks."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

import yaml
from click.testing import CliRunner
from cluster import CONTROLLER, Cluster, capture
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Offset
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from playbooks import Playbooks

from planner.cli.commands import commands

Lists = dict[str, list[int]]
RECORD_BYTES = 1_000
CORDONED = "cordoned.log.dirs"
T = TypeVar("T")


@dataclass
class Operator:
    """One test's view of the cluster. Partitions are named as Kafka's tools name them, `topic-partition`."""

    cluster: Cluster
    folder: Path
    produced: dict[str, int] = field(default_factory=dict)

    @cached_property
    def admin(self) -> AdminClient:
        """A client that reads the cluster's state."""
        return AdminClient(self._client())

    def create_topic(self, topic: str, lists: Sequence[Sequence[int]], **config: str) -> None:
        """Create a topic with these replica lists, one for each partition. In a config's name, `_` stands for a dot."""
        assignment = ",".join(":".join(map(str, replicas)) for replicas in lists)
        options = [word for key, value in config.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
        self.cluster.tool("kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment, *options)
        names = {f"{topic}-{number}" for number in range(len(lists))}
        self.await_true(
            lambda: names <= {name for name, leader in self.leaders().items() if leader >= 0}, "its leaders"
        )

    def produce(self, topic: str, partitions: int, records: int) -> None:
        """Produce that many more records of 1 kB to each partition, acknowledged by all replicas in sync.

        It counts acknowledgments, because the queue is also empty after the producer gave up records.
        """
        options = {"acks": "all", "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
        acknowledged, given_up = Counter[str](), list[str]()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged[f"{message.topic()}-{message.partition()}"] += 1
            else:
                given_up.append(str(error))

        producer = Producer(self._client() | options)
        for partition in range(partitions):
            start = self.produced.get(f"{topic}-{partition}", 0)
            for number in range(start, start + records):
                producer.produce(topic, _record(number), partition=partition, on_delivery=delivered)
            self.produced[f"{topic}-{partition}"] = start + records
        assert 0 == producer.flush(120)
        assert ([], {f"{topic}-{number}": records for number in range(partitions)}) == (
            given_up[:10],
            dict(acknowledged),
        )

    def commit(self, group: str, topic: str, partitions: int, offset: int) -> None:
        """Commit an offset for each partition, as if a consumer group had read that many records."""
        consumer = Consumer(self._client() | {"group.id": group})
        offsets = [Offset(topic, number, offset) for number in range(partitions)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    def lost(self) -> dict[str, int]:
        """How many produced records can't be consumed any more, by partition. Empty if none is lost."""
        topics = set(self._metadata().topics)
        kept = {name: count for name, count in self.produced.items() if name.rpartition("-")[0] in topics}
        consumed = self._consumed(kept)
        return {name: count - len(consumed[name]) for name, count in kept.items() if count != len(consumed[name])}

    def _consumed(self, wanted: Mapping[str, int]) -> dict[str, set[int]]:
        """The numbers of the records that each partition returns up to its end. Only complete records count.

        Records beyond the end that Kafka reports are lost. If no record arrives for three minutes before the end, this
        fails, because such a reader can't tell whether records are lost.

        It uses no group: the first group makes Kafka create the topic of offsets, and plans would move that topic.
        """
        # Records are compared with what was produced. The client's checksums, in Python, would take 80 ms a megabyte.
        servers = self.cluster.bootstrap_servers
        consumer = KafkaConsumer(bootstrap_servers=servers, group_id=None, check_crcs=False)
        names = [(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in wanted]
        partitions = list(starmap(TopicPartition, names))
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        found: dict[str, set[int]] = defaultdict(set)
        ends = consumer.end_offsets(partitions)
        deadline = time.monotonic() + 180
        while behind := {each: end for each, end in ends.items() if consumer.position(each) < end}:
            assert time.monotonic() < deadline, f"no record in three minutes, still to be read up to: {behind}"
            polled = consumer.poll(1_000, max_records=10_000)
            if polled:
                deadline = time.monotonic() + 180
            for partition, records in polled.items():
                read = found[f"{partition.topic}-{partition.partition}"]
                read.update(int(each.value) for each in records if each.value == _record(int(each.value)))
        consumer.close()
        return found

    def replicas(self) -> Lists:
        """The replica list of every partition, in order."""
        return {name: list(partition.replicas) for name, partition in self._partitions().items()}

    def leaders(self) -> dict[str, int]:
        """The leader of every partition. -1 means none."""
        return {name: partition.leader for name, partition in self._partitions().items()}

    def racks(self) -> dict[int, str]:
        """The rack that every live broker reports."""
        return {node.id: node.rack for node in self.admin.describe_cluster().result(30).nodes}

    def stored(self, broker: int) -> dict[str, int]:
        """Bytes of log segments on a broker's disks by partition, without deleted partitions and Kafka's own topics."""
        found: dict[str, int] = {}
        for log_dir in self.cluster.log_dirs(broker):
            for folder in log_dir.glob("[!_]*-*[0-9]"):
                # Kafka renames a folder before it deletes it. That may happen between any two of these steps.
                with suppress(FileNotFoundError):
                    size = sum(log.stat().st_size for log in folder.glob("*.log"))
                    if folder.is_dir():
                        found[folder.name] = size
        return found

    def isrs(self) -> Lists:
        """The ISR of every partition, sorted by broker."""
        return {name: sorted(partition.isrs) for name, partition in self._partitions().items()}

    def in_sync(self) -> bool:
        """Whether every replica of every partition is in sync."""
        return all(set(p.isrs) == set(p.replicas) for p in self._partitions().values())

    def crash(self, broker: int) -> None:
        """Kill a broker and start it again. Other brokers lead its partitions, and all replicas are in sync again."""
        self.cluster.kill(broker)
        self.await_true(lambda: broker not in self.leaders().values(), f"others to lead in place of broker {broker}")
        self.start(broker)
        self.await_true(self.in_sync, f"broker {broker} to catch up")

    def start(self, *nodes: int) -> None:
        """Start these brokers (or the controller). Wait until every broker has all metadata that the controller has.

        A broker reports that it has started, and answers clients, with the metadata from when it was killed.
        """
        self.cluster.start(*nodes)
        quorum = self._metadata_quorum()
        self.await_true(
            lambda: all(self._metadata_quorum()[node] >= quorum[CONTROLLER] for node in self.cluster.processes),
            f"{nodes} to know what the controller knows",
        )

    def _metadata_quorum(self) -> Counter[int]:
        """The end offset of the controller's metadata log, and the offset up to which each broker has fetched it."""
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers) as client:
            (found,) = client.describe_metadata_quorum()["topics"][0]["partitions"]
        nodes = [*found["current_voters"], *found["observers"]]
        return Counter({node["replica_id"]: node["log_end_offset"] for node in nodes})

    def moving(self) -> list[str]:
        """The partitions that Kafka is reassigning. Uses a new client each time, because any broker may have died."""
        with KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap_servers) as client:
            return [f"{topic}-{number}" for topic, number in sorted(client.list_partition_reassignments())]

    def reassign(self, lists: Lists, *options: object) -> None:
        """Reassign partitions with Kafka's tool, as somebody else would do outside of the plan."""
        names = ((*name.rpartition("-")[::2], replicas) for name, replicas in lists.items())
        moves = [{"topic": topic, "partition": int(number), "replicas": to} for topic, number, to in names]
        path = self.folder / "others.json"
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        self.cluster.tool("kafka-reassign-partitions", "--execute", "--reassignment-json-file", path, *options)

    def await_moved(self, lists: Lists) -> None:
        """Wait until nothing moves and these lists are reached. Brokers learn of it shortly after the controller."""
        self.await_true(lambda: [] == self.moving() and lists.items() <= self.replicas().items(), f"moves to {lists}")

    def lift_throttle(self) -> None:
        """Remove the throttle rates from all brokers, so that replicas move at full speed."""
        rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
        entries = [ConfigEntry(rate, None, incremental_operation=AlterConfigOpType.DELETE) for rate in rates]
        for broker in self._metadata().brokers:
            asked = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=entries)
            self.admin.incremental_alter_configs([asked])[asked].result()

    def cordons(self) -> dict[int, str]:
        """The cordoned log dirs of each live broker. Empty if there are none."""
        asked = {broker: ConfigResource(ResourceType.BROKER, str(broker)) for broker in self._metadata().brokers}
        set_on = {broker: {entry.name: entry.value for entry in self._config(each)} for broker, each in asked.items()}
        return {broker: value for broker, found in sorted(set_on.items()) if (value := found[CORDONED])}

    def lose(self, broker: int) -> None:
        """Kill a broker, and wait until the cluster has noticed."""
        self.cluster.kill(broker)
        self.await_true(lambda: broker not in self._metadata().brokers, f"the loss of broker {broker}")

    def throttles(self) -> str:
        """The throttle settings of live brokers and of topics, one a line. Empty if there are none."""
        seen = self._metadata()
        asked = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in seen.brokers]
        asked += [ConfigResource(ResourceType.TOPIC, topic) for topic in seen.topics]
        entries = ((each.name, entry) for each in asked for entry in self._config(each) if not entry.is_default)
        return "".join(f"{name}: {e.name}={e.value} \n" for name, e in entries if "throttled" in e.name)

    def plan(self, changes: Mapping[str, Any], brokers: Sequence[int] | None = None, **top: Any) -> Plan:
        """Capture the state with Kafka's tools, write a spec, and run the planner on it."""
        self.capture()
        return self.whatif(self.spec(changes, brokers, **top))

    def capture(self) -> None:
        """Save the cluster's state, as Kafka's tools print it."""
        capture(self.cluster, self.folder / "state")

    def spec(self, changes: Mapping[str, Any], brokers: Sequence[int] | None = None, **top: Any) -> Path:
        """Write a spec for the captured state. `top` has further top-level keys."""
        racks = self.cluster.racks
        cluster = {
            "name": "test",
            "bootstrap_servers": self.cluster.bootstrap_servers,
            "brokers": [{"id": broker, "rack": racks[broker]} for broker in brokers or racks],
            "state": {"assignment": "state/topics-describe.txt", "sizes": "state/log-dirs.txt"},
        } | top.pop("cluster", {})
        execution = {"kafka_bin_dir": str(self.cluster.bin_dir)} | top.pop("execution", {})
        spec = {"version": 1, "cluster": cluster, "changes": dict(changes), "execution": execution, **top}
        path = self.folder / "spec.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return path

    def whatif(self, path: Path) -> Plan:
        """Run the planner on a spec."""
        out = path.with_suffix(".plan")
        command = ["whatif", str(path), "--out", str(out), "--engine", "local", "--candidates", "8"]
        ended = CliRunner().invoke(commands, command, standalone_mode=False)
        if ended.exception:
            raise ended.exception
        return Plan(out, json.loads((out / "plan.json").read_text()))

    def await_true(self, condition: Callable[[], bool], what: str, seconds: float = 180) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.2)

    def await_equal(self, expected: T, see: Callable[[], T], seconds: float = 60) -> None:
        """Assert that `see()` returns `expected`, after waiting until the brokers have learned what the controller did.

        If it doesn't, the message has the runs' journals and output.
        """
        deadline = time.monotonic() + seconds
        while (seen := see()) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        told = [*self.folder.rglob("*.jsonl"), *self.folder.rglob("playing.txt")] if expected != seen else []
        assert expected == seen, "\n".join(path.read_text() for path in told)

    def tidy_up(self) -> None:
        """Start absent brokers, and remove throttles, cordons and topics."""
        absent = [node for node in self.cluster.ports if node not in self.cluster.processes]
        self.start(*absent)
        for broker in self.cluster.racks if "rate" in self.throttles() else ():
            rates = "leader.replication.throttled.rate,follower.replication.throttled.rate"
            options = ("--entity-type", "brokers", "--entity-name", broker, "--alter", "--delete-config", rates)
            self.cluster.tool("kafka-configs", *options)
        for broker in self.cordons():
            options = ("--entity-type", "brokers", "--entity-name", broker, "--alter", "--delete-config", CORDONED)
            self.cluster.tool("kafka-configs", *options)
        self._forget_topics_configs()
        self.await_true(self._is_empty, "an empty cluster")
        # A broker that lags behind may still list topics and their throttles. Its disks show what it really holds.
        self.await_true(lambda: not any(map(self.stored, self.cluster.racks)), "brokers that know that it is empty")

    def _forget_topics_configs(self) -> None:
        """Delete the settings of each topic before the topic itself.

        After a restart, a broker of Kafka 4.3.1 gives a deleted topic's settings to the next topic of that name,
        until the controller's log has a snapshot. The other brokers don't.
        """
        for topic in self._metadata().topics:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            own = [
                each.name for each in self._config(resource) if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            ]
            entries = [ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in own]
            asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
            if own:
                self.admin.incremental_alter_configs([asked])[asked].result()

    def _is_empty(self) -> bool:
        """Delete all listed topics. Return whether none was listed."""
        topics = list(self._metadata().topics)
        for future in (self.admin.delete_topics(topics, operation_timeout=30) if topics else {}).values():
            future.exception()  # Some brokers may not know yet that it was deleted.
        return not topics

    def _config(self, asked: ConfigResource) -> list[ConfigEntry]:
        """The settings of a broker (each answers only for itself) or of a topic. Empty for a topic just deleted."""
        try:
            # On a busy machine, a broker that has just started answers late.
            return list(self.admin.describe_configs([asked])[asked].result(120).values())
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return []

    def _metadata(self) -> ClusterMetadata:
        """The cluster's metadata. Asks again if the asked broker has just died."""
        for _ in range(5):
            with suppress(KafkaException):
                return self.admin.list_topics(timeout=6)
        return self.admin.list_topics(timeout=30)

    def _client(self) -> dict[str, Any]:
        return {"bootstrap.servers": ",".join(self.cluster.bootstrap_servers)}

    def _partitions(self) -> dict[str, Any]:
        topics = self._metadata().topics
        return {
            f"{topic}-{number}": partition
            for topic, described in sorted(topics.items())
            for number, partition in sorted(described.partitions.items())
        }


def _record(number: int) -> bytes:
    """The content that is produced as a partition's record of this number."""
    return str(number).encode().ljust(RECORD_BYTES)


@dataclass(frozen=True)
class Plan:
    """A plan's folder and its document."""

    folder: Path
    document: Mapping[str, Any]

    @property
    def playbooks(self) -> Playbooks:
        """The plan's playbooks."""
        return Playbooks(self.folder / "ansible", self.folder.parent / "home")

    @property
    def impatient_playbooks(self) -> Playbooks:
        """The same playbooks, but their tools wait ten seconds for a broker that is down instead of a minute."""
        properties = self.folder.parent / "impatient.properties"
        properties.write_text("request.timeout.ms=10000\ndefault.api.timeout.ms=10000\n")
        variables = {"kafka_reassign_command_config": properties}
        return replace(self.playbooks, variables=variables)

    @property
    def replicas(self) -> Lists:
        """The plan's replica lists of the partitions that it changes."""
        return {
            f"{partition['topic']}-{partition['partition']}": list(partition["replicas"])
            for partition in self.document["partitions"]
        }

    @property
    def racks(self) -> dict[int, str]:
        """The rack of each broker according to the plan."""
        return {broker["id"]: broker["rack"] for broker in self.document["brokers"]}

    @property
    def bytes_moved(self) -> int:
        """The bytes that brokers copy in this plan."""
        return sum(broker["bytes_in"] for broker in self.document["brokers"])
