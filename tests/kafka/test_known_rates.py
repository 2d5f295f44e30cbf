"""With producers of known rates, `planner load` finds those rates from Kafka's tools and from the JMX exporter.

The exporter is the real one from Maven Central, loaded into the running brokers.
"""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner
from cluster import reserved_ports
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Offset
from operator_at_work import Operator

from planner.cli.commands import commands
from planner.inputs import load_profile_file

pytestmark = pytest.mark.kafka

SECONDS, OFF_BY = 90, 0.05
RECORD = b"x" * 4000
# Bytes/s of each partition. Both topics have leaders on several brokers, whose counters are only for a whole topic.
RATES = {("calm", 0): 12_000, ("calm", 1): 12_000, ("busy", 0): 160_000, ("busy", 1): 80_000, ("busy", 2): 40_000}
LISTS = {"calm": [(1, 2), (2, 3)], "busy": [(3, 4), (4, 5), (5, 6)]}
EXPORTER = "io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1"
# The beans that the documentation of load profiles names, with common rules.
RULES = r"""lowercaseOutputName: true
rules:
  - pattern: kafka.server<type=BrokerTopicMetrics, name=(Bytes\w+)PerSec, topic=(.+)><>Count
    name: kafka_server_brokertopicmetrics_$1_total
    labels: {topic: "$2"}
  - pattern: kafka.log<type=Log, name=(Size|LogEndOffset), topic=(.+), partition=(.+)><>Value
    name: kafka_log_log_$1
    labels: {topic: "$2", partition: "$3"}
"""


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exporter's jar, with its rules in the same folder."""
    folder = tmp_path_factory.mktemp("exporter")
    goal = ["dependency:copy", f"-Dartifact={EXPORTER}", f"-DoutputDirectory={folder}"]
    subprocess.run(["mvn", "-q", "-B", *goal], check=True, capture_output=True, cwd=folder)
    (folder / "rules.yaml").write_text(RULES)
    (jar,) = folder.glob("*.jar")
    return jar


def exporting(operator: Operator, jar: Path) -> Mapping[int, str]:
    """Runs the exporter in every broker inside the block. Gives each broker's address."""
    brokers = list(operator.cluster.racks)
    with reserved_ports(len(brokers)) as ports:
        free = dict(zip(brokers, ports, strict=True))
    for broker, port in free.items():
        pid, agent = operator.cluster.processes[broker].pid, f'"{port}:{jar.parent / "rules.yaml"}"'
        ended = subprocess.run(
            ["jcmd", str(pid), "JVMTI.agent_load", str(jar), agent], capture_output=True, text=True, check=True
        )
        assert "return code: 0" in ended.stdout, ended.stdout
    return {broker: f"http://127.0.0.1:{port}/metrics" for broker, port in free.items()}


@contextmanager
def traffic(operator: Operator) -> Iterator[None]:
    """Producers write every partition at its rate, and a consumer reads `busy` as it is written."""
    done, servers = Event(), {"bootstrap.servers": ",".join(operator.cluster.bootstrap_servers)}

    def write() -> None:
        # Batches are large, because a batch adds bytes to its records and the known rates don't include them.
        producer = Producer(servers | {"linger.ms": 1000, "acks": "all"})
        begun, sent = time.monotonic(), dict.fromkeys(RATES, 0)
        while not done.wait(0.1):
            for key, rate in RATES.items():
                while sent[key] * len(RECORD) < rate * (time.monotonic() - begun):
                    producer.produce(key[0], RECORD, partition=key[1])
                    sent[key] += 1
            producer.poll(0)
        assert producer.flush(60) == 0

    def read() -> None:
        # For the group, Kafka creates the topic of offsets. A profile can't share that topic's bytes.
        consumer = Consumer(servers | {"group.id": "none", "enable.auto.commit": False})
        consumer.assign([Offset(topic, number, 0) for topic, number in RATES if topic == "busy"])
        while not done.is_set():
            consumer.consume(1000, 0.5)
        consumer.close()

    threads = [Thread(target=each) for each in (write, read)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        done.set()
        for each in threads:
            each.join()


def capture(operator: Operator, served: Mapping[int, str], folder: Path) -> None:
    """Capture Kafka's tools and each broker's exporter once, with the time in each file's name."""

    def keep(kind: str, name: str, text: str, at: datetime) -> None:
        (folder / kind).mkdir(exist_ok=True)
        (folder / kind / f"{name}-{at:%Y-%m-%dT%H:%M:%SZ}.txt").write_text(text)

    for broker, address in served.items():
        with urllib.request.urlopen(address) as answer:  # loopback
            at = datetime.now(UTC)
            keep("exporter", f"kafka-{broker}", answer.read().decode(), at)
    run_class, servers = operator.cluster.bin_dir / "kafka-run-class.sh", ",".join(operator.cluster.bootstrap_servers)
    command = [str(run_class), "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", servers]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    keep("tools", "offsets", ended.stdout, datetime.now(UTC))
    dirs = operator.cluster.tool("kafka-log-dirs", "--describe")
    keep("tools", "log-dirs", dirs, datetime.now(UTC))


def profiled(folder: Path) -> dict[tuple[str, int], tuple[float | None, float | None]]:
    """Bytes/s in and out of every partition, from the profile that `planner load` makes of a folder."""
    out = folder.with_suffix(".parquet")
    ended = CliRunner().invoke(commands, ["load", str(folder), "-o", str(out)], standalone_mode=False)
    if ended.exception:
        raise ended.exception
    rows, _ = load_profile_file.decoded(out.read_bytes(), out.name)
    columns = ("topic", "partition", "bytes_in_per_sec_mean", "bytes_out_per_sec_mean")
    values = [rows[each].to_pylist() for each in columns]
    return {(topic, number): (way_in, out) for topic, number, way_in, out in zip(*values, strict=True)}


def test_known_rates_are_found(operator: Operator, exporter: Path, tmp_path: Path) -> None:
    """Both sources give write rates within 5 %. Only the exporter gives read rates, also within 5 %."""
    for topic, lists in LISTS.items():
        operator.create_topic(topic, lists)
    served = exporting(operator, exporter)
    with traffic(operator):
        # A counter exists only after something was counted.
        time.sleep(10)
        capture(operator, served, tmp_path)
        time.sleep(SECONDS)
        capture(operator, served, tmp_path)
    for kind in ("tools", "exporter"):
        found = profiled(tmp_path / kind)
        assert RATES.keys() <= found.keys(), kind
        assert {key: pytest.approx(rate, rel=OFF_BY) for key, rate in RATES.items()} == {
            key: found[key][0] for key in RATES
        }, kind
    read = {key: rate for key, rate in RATES.items() if key[0] == "busy"}
    assert {key: pytest.approx(rate, rel=OFF_BY) for key, rate in read.items()} == {key: found[key][1] for key in read}
