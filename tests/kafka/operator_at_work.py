"""What an operator does to a cluster: topics, data, the tools that print its state, a plan, the playbooks."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from cluster import Cluster, capture
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from playbooks import Playbooks

from planner.cli import commands

Lists = dict[str, list[int]]
RECORD_BYTES = 1_000


@dataclass
class Operator:
    """One test's view of the cluster. Partitions are named as Kafka's tools name them, `topic-partition`."""

    cluster: Cluster
    folder: Path
    produced: dict[str, int] = field(default_factory=dict)

    @cached_property
    def admin(self) -> AdminClient:
        """A client to look with."""
        return AdminClient(self._client())

    def create_topic(self, topic: str, lists: Sequence[Sequence[int]], **config: str) -> None:
        """A topic with these replica lists, partition by partition; `_` in a config's name stands for a dot."""
        assignment = ",".join(":".join(map(str, replicas)) for replicas in lists)
        options = [word for key, value in config.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
        self.cluster.tool("kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment, *options)
        self.await_true(lambda: all(leader >= 0 for leader in self.leaders().values()), "leaders of a new topic")

    def produce(self, topic: str, partitions: int, records: int) -> None:
        """So many more records of a kilobyte to each partition, acknowledged by all replicas in sync."""
        options = {"acks": "all", "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
        producer = Producer(self._client() | options)
        for partition in range(partitions):
            start = self.produced.get(f"{topic}-{partition}", 0)
            for number in range(start, start + records):
                producer.produce(topic, str(number).ljust(RECORD_BYTES), partition=partition)
            self.produced[f"{topic}-{partition}"] = start + records
        assert 0 == producer.flush(120)

    def lost(self) -> dict[str, int]:
        """Records that were produced and can't be consumed any more, by partition; nothing where all is well."""
        topics = set(self.admin.list_topics(timeout=30).topics)
        kept = {name: count for name, count in self.produced.items() if name.rpartition("-")[0] in topics}
        consumed = self._consumed(kept)
        return {name: count - len(consumed[name]) for name, count in kept.items() if count != len(consumed[name])}

    def _consumed(self, wanted: Mapping[str, int]) -> dict[str, set[int]]:
        """The numbers of the records that each partition gives back, each once."""
        options = {"group.id": "tests", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer(self._client() | options | {"enable.partition.eof": False})
        names = [(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in wanted]
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in names])
        found: dict[str, set[int]] = defaultdict(set)
        deadline = time.monotonic() + 60
        while sum(map(len, found.values())) < sum(wanted.values()) and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 1.0):
                assert message.error() is None, message.error()
                found[f"{message.topic()}-{message.partition()}"].add(int(message.value()))
        consumer.close()
        return found

    def replicas(self) -> Lists:
        """The replica list of every partition, in its order."""
        return {name: list(partition.replicas) for name, partition in self._partitions().items()}

    def leaders(self) -> dict[str, int]:
        """The leader of every partition, -1 where there is none."""
        return {name: partition.leader for name, partition in self._partitions().items()}

    def in_sync(self) -> bool:
        """Whether every replica of every partition is in sync."""
        return all(set(p.isrs) == set(p.replicas) for p in self._partitions().values())

    def moving(self) -> list[str]:
        """The partitions that Kafka is reassigning."""
        lines = self.cluster.tool("kafka-reassign-partitions", "--list").splitlines()
        return [line.split(": ")[0] for line in lines if ": replicas: " in line]

    def throttles(self) -> str:
        """What Kafka says of throttles on brokers and topics; nothing where there are none."""
        kinds = ("brokers", "topics")
        told = "".join(self.cluster.tool("kafka-configs", "--describe", "--entity-type", kind) for kind in kinds)
        return "\n".join(line for line in told.splitlines() if "throttled" in line)

    def plan(self, changes: Mapping[str, Any], brokers: Sequence[int] | None = None, **top: Any) -> Plan:
        """Capture the state with Kafka's tools, write a spec, and run the planner on it."""
        capture(self.cluster, self.folder / "state")
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
        return self.whatif(path)

    def whatif(self, path: Path) -> Plan:
        """Run the planner on a spec."""
        out = path.with_suffix(".plan")
        command = ["whatif", str(path), "--out", str(out), "--engine", "local", "--candidates", "20"]
        ended = CliRunner().invoke(commands, command, standalone_mode=False)
        if ended.exception:
            raise ended.exception
        return Plan(out, json.loads((out / "plan.json").read_text()))

    def await_true(self, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.2)

    def tidy_up(self) -> None:
        """Every broker up again, nothing moving, no throttle, no topic."""
        absent = [node for node in self.cluster.ports if node not in self.cluster.processes]
        self.cluster.start(*absent)
        topics = [topic for topic in self.admin.list_topics(timeout=30).topics if not topic.startswith("__")]
        for future in (self.admin.delete_topics(topics, operation_timeout=30) if topics else {}).values():
            future.result()
        for broker in self.cluster.racks if "rate" in self.throttles() else ():
            rates = "leader.replication.throttled.rate,follower.replication.throttled.rate"
            options = ("--entity-type", "brokers", "--entity-name", broker, "--alter", "--delete-config", rates)
            self.cluster.tool("kafka-configs", *options)
        self.await_true(lambda: not self.replicas(), "an empty cluster")

    def _client(self) -> dict[str, Any]:
        return {"bootstrap.servers": ",".join(self.cluster.bootstrap_servers)}

    def _partitions(self) -> dict[str, Any]:
        topics = self.admin.list_topics(timeout=30).topics
        return {
            f"{topic}-{number}": partition
            for topic, described in sorted(topics.items())
            if not topic.startswith("__")
            for number, partition in sorted(described.partitions.items())
        }


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
    def replicas(self) -> Lists:
        """The replica lists that the plan gives to the partitions it changes."""
        return {f"{p['topic']}-{p['partition']}": list(p["replicas"]) for p in self.document["partitions"]}

    @property
    def bytes_moved(self) -> int:
        """Bytes that brokers copy."""
        return sum(broker["bytes_in"] for broker in self.document["brokers"])
