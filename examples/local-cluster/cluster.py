"""A real Kafka cluster on this machine: six brokers in three racks with two log dirs each, and one controller.

`python cluster.py` starts it with topics and data, writes a spec beside it, and stops it at Ctrl-C. Needs Java 17 or
newer and Maven, which brings Kafka's jars. The project's own tests start their cluster from here too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTROLLER = 100
RACKS = {1: "r0", 2: "r1", 3: "r2", 4: "r0", 5: "r1", 6: "r2"}
START_SECONDS, STOP_SECONDS = 120, 60
LOG_LINES = 20

TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-server-start": "kafka.Kafka",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}

# Tools live for a second or two: the fast compiler and collector, and no more heap than a broker of tests needs.
# An archive of loaded classes, where there is one, halves a start: `record_classes` makes that of the tools.
RUN_CLASS = """#!/bin/sh
exec java ${{KAFKA_HEAP_OPTS:--Xmx256m}} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto $KAFKA_ARCHIVE_OPT \\
  -Dorg.slf4j.simpleLogger.defaultLogLevel=warn $KAFKA_OPTS -cp "{libs}/*" "$@"
"""
RUN_TOOL = """#!/bin/sh
export KAFKA_ARCHIVE_OPT="${{KAFKA_ARCHIVE_OPT:--XX:SharedArchiveFile={archive}}}"
exec "$(dirname "$0")/kafka-run-class.sh" {java_class} "$@"
"""
# A server loads other classes than a tool does.
SERVERS = ("kafka-server-start", "kafka-storage")


class ClusterError(Exception):
    """The cluster can't be brought up; the message says what to look at."""


def install(folder: Path, version: str | None = None) -> Path:
    """Kafka's jars and a `bin/` like that of Kafka's own archive in `folder`; the path of `bin`."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise ClusterError(f"{program} isn't on PATH; allowed: Java 17 or newer, and Maven, which brings Kafka")
    if not (folder / "libs").is_dir():
        _fetch_jars(folder / "libs", version)
    bin_dir, libs = folder / "bin", (folder / "libs").resolve()
    bin_dir.mkdir(exist_ok=True)
    _write_script(bin_dir / "kafka-run-class.sh", RUN_CLASS.format(libs=libs))
    for tool, java_class in TOOLS.items():
        archive = libs / ("servers.jsa" if tool in SERVERS else "tools.jsa")
        _write_script(bin_dir / f"{tool}.sh", RUN_TOOL.format(java_class=java_class, archive=archive))
    return bin_dir


def _fetch_jars(libs: Path, version: str | None) -> None:
    options = [f"-Dkafka.version={version}"] if version else []
    # That of Kafka 3 writes no log without a file of settings.
    other_logger = "-DexcludeArtifactIds=slf4j-reload4j"
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={libs}", other_logger]
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *options, *goal]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ClusterError(f"Maven couldn't bring Kafka's jars:\n{ended.stdout}{ended.stderr}")


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@contextmanager
def reserved_ports(count: int) -> Iterator[list[int]]:
    """Ports on loopback that nobody listens on, all different, and kept from other programs until the end.

    The sockets stay bound and may be shared: a broker can listen on its port, now and after a restart, and the system
    gives the port to no other program and to no connection.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True)
class Cluster:
    """A cluster in a folder: `racks` by broker id, `ports` by process id in Kafka's sense (brokers, controller).

    `processes` holds what this object started and hasn't stopped.
    """

    folder: Path
    bin_dir: Path
    racks: Mapping[int, str]
    ports: Mapping[int, int]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> list[str]:
        """Addresses of three brokers, so that one may be down."""
        return [f"127.0.0.1:{self.ports[broker]}" for broker in list(self.racks)[:3]]

    def tool(self, name: str, *arguments: object, **environment: str) -> str:
        """Run one of Kafka's tools against the cluster; what it prints. ClusterError where it fails."""
        command = [str(self.bin_dir / f"{name}.sh"), "--bootstrap-server", ",".join(self.bootstrap_servers)]
        command += map(str, arguments)
        ended = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise ClusterError(f"{' '.join(command)}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def record_classes(self) -> None:
        """Make the archive of classes that Kafka's tools load, if it isn't there."""
        archive = self.bin_dir.parent / "libs" / "tools.jsa"
        if not archive.exists():
            self.tool("kafka-topics", "--describe", KAFKA_ARCHIVE_OPT=f"-XX:ArchiveClassesAtExit={archive.resolve()}")

    def start(self, *nodes: int) -> None:
        """Start these brokers (or the controller) and wait until each says that it has started."""
        for node in nodes:
            self.processes[node] = self._spawn(node)
        for node in nodes:
            self._await(node)

    def kill(self, node: int) -> None:
        """End a broker (or the controller) at once, as a crash does."""
        process = self.processes.pop(node)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End everything that this object started; the controller last, since brokers take their leave of it."""
        self._end([node for node in self.processes if node != CONTROLLER])
        self._end(list(self.processes))

    def _end(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self.processes[node].terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for node in nodes:
            process = self.processes.pop(node)
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log_dirs(self, node: int) -> list[Path]:
        """Where a broker keeps its replicas: two log dirs, as on a machine with two disks."""
        return [self.folder / f"broker-{node}" / name for name in ("d1", "d2")]

    def _spawn(self, node: int) -> subprocess.Popen[bytes]:
        environment = os.environ | {"KAFKA_OPTS": "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"}
        command = [str(self.bin_dir / "kafka-server-start.sh"), str(self._properties(node))]
        with self._log(node).open("wb") as log:
            # A session of its own: Ctrl-C is for this program, which then stops the brokers in order.
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def _await(self, node: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while b"Kafka Server started" not in self._log(node).read_bytes():
            if self.processes[node].poll() is not None or time.monotonic() > deadline:
                last = "".join(self._log(node).read_text(errors="replace").splitlines(keepends=True)[-LOG_LINES:])
                raise ClusterError(f"process {node} of the cluster didn't start; the end of {self._log(node)}:\n{last}")
            time.sleep(0.1)

    def _log(self, node: int) -> Path:
        return self.folder / f"broker-{node}.log"

    def _properties(self, node: int) -> Path:
        return self.folder / f"broker-{node}.properties"

    def write_properties(self) -> None:
        """One properties file a process."""
        for node in self.ports:
            own = self._controller_settings() if node == CONTROLLER else self._broker_settings(node)
            lines = [f"{key}={value}\n" for key, value in (SETTINGS | self._quorum() | own).items()]
            self._properties(node).write_text("".join(lines))

    def _quorum(self) -> dict[str, object]:
        return {"controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.ports[CONTROLLER]}"}

    def _controller_settings(self) -> dict[str, object]:
        return {
            "process.roles": "controller",
            "node.id": CONTROLLER,
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[CONTROLLER]}",
            "log.dirs": self.log_dirs(CONTROLLER)[0],
        }

    def _broker_settings(self, broker: int) -> dict[str, object]:
        return {
            "process.roles": "broker",
            "node.id": broker,
            "broker.rack": self.racks[broker],
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]}",
            "log.dirs": ",".join(map(str, self.log_dirs(broker))),
        }

    def format(self, *options: str) -> None:
        """Give every log dir the cluster's id, as KRaft wants it before the first start; with these options besides."""
        storage = str(self.bin_dir / "kafka-storage.sh")
        made = subprocess.run([storage, "random-uuid"], capture_output=True, text=True, check=True).stdout.strip()
        with ThreadPoolExecutor(2) as two:
            commands = [
                [storage, "format", "-t", made, "-c", str(self._properties(node)), *options] for node in self.ports
            ]
            for ended in two.map(lambda command: subprocess.run(command, capture_output=True, text=True), commands):
                if ended.returncode:
                    raise ClusterError(f"a log dir can't be formatted:\n{ended.stdout}{ended.stderr}")


# No election behind the operator's back, and as few threads, partitions of Kafka's own and idle requests as a small
# machine likes: a replica that gets nothing new waits twice as long as by default, the controller is silent for longer.
# Segments are as large as by default; that the brokers' files say so makes it a value that topics inherit.
SETTINGS: dict[str, object] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 6000,
    "controller.listener.names": "CONTROLLER",
    "group.initial.rebalance.delay.ms": 0,
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.segment.bytes": 2**30,
    "metadata.max.idle.interval.ms": 5000,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "replica.fetch.wait.max.ms": 1000,
    "replica.lag.time.max.ms": 5000,
    "transaction.state.log.replication.factor": 1,
}


@contextmanager
def running(
    folder: Path, racks: Mapping[int, str] = RACKS, version: str | None = None, kind: type[Cluster] = Cluster
) -> Iterator[Cluster]:
    """A cluster in an empty `folder`, started; at the end everything that was started is stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = [CONTROLLER, *racks]
    with reserved_ports(len(nodes)) as ports:
        cluster = kind(folder, install(folder, version), racks, dict(zip(nodes, ports, strict=True)))
        cluster.write_properties()
        cluster.format()
        try:
            cluster.start(*nodes)
            cluster.record_classes()
            yield cluster
        finally:
            cluster.stop()


TOPICS = {"orders": 12, "clicks": 9}
RECORDS, RECORD_BYTES = 20_000, 1_000


def fill(cluster: Cluster) -> None:
    """Topics with two replicas a partition and data in them, all on the first three brokers."""
    for topic, partitions in TOPICS.items():
        lists = ",".join(f"{1 + p % 3}:{1 + (p + 1) % 3}" for p in range(partitions))
        cluster.tool("kafka-topics", "--create", "--topic", topic, "--replica-assignment", lists)
        size = ("--num-records", RECORDS, "--record-size", RECORD_BYTES, "--throughput", -1)
        cluster.tool("kafka-producer-perf-test", "--topic", topic, *size)


def capture(cluster: Cluster, folder: Path) -> None:
    """The cluster's state, as Kafka's tools print it."""
    folder.mkdir(exist_ok=True)
    (folder / "topics-describe.txt").write_text(cluster.tool("kafka-topics", "--describe"))
    (folder / "log-dirs.txt").write_text(cluster.tool("kafka-log-dirs", "--describe"))


def write_spec(cluster: Cluster) -> Path:
    """expand.yaml with the addresses, which a file holds too, and the folder of this cluster's tools."""
    text = (HERE / "expand.yaml").read_text()
    servers = ",".join(cluster.bootstrap_servers)
    (cluster.folder / "bootstrap-servers").write_text(servers + "\n")
    path = cluster.folder / "expand.yaml"
    path.write_text(text.replace("BOOTSTRAP_SERVERS", servers).replace("KAFKA_BIN_DIR", str(cluster.bin_dir)))
    return path


def main() -> int:
    """Start the cluster with data, say what to do with it, and wait for Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE / "run", help="where all of it lies; replaced")
    folder = parser.parse_args().folder.resolve()
    if folder.exists() and not (folder / "libs").is_dir() and any(folder.iterdir()):
        parser.error(f"--folder {folder}: holds something else; allowed: an empty folder, or an earlier cluster's")
    shutil.rmtree(folder, ignore_errors=True)
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    try:
        _serve(folder)
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stdout.write("stopped\n")
    return 0


def _serve(folder: Path) -> None:
    sys.stdout.write("bringing Kafka and starting six brokers; half a minute or so\n")
    sys.stdout.flush()
    with running(folder) as cluster:
        fill(cluster)
        capture(cluster, folder / "state")
        sys.stdout.write(
            f"ready; the next step, in another terminal:\n  .venv/bin/planner whatif {write_spec(cluster)}\n"
        )
        sys.stdout.write("Ctrl-C stops the cluster\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
