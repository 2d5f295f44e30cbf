"""Spark's own servers on loopback, from the classes of the pip package: a standalone master, workers, Spark Connect.

All ports are free ones that the servers choose themselves. Their Python has what ours has but for our packages, and
they run in folders of their own: what they know of the planner is what a session sends them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from spark_jobs import java, session

ROOT = Path(__file__).parent.parent
OURS = ("planner", "spark_jobs", "kafka_planner")
START_SECONDS = 120
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"

# What the user of a cluster writes into spark-defaults.conf.
DEFAULTS = """\
spark.executor.memory 512m
spark.executor.extraJavaOptions {lean}
spark.eventLog.enabled true
spark.eventLog.dir file:{events}
spark.eventLog.rolling.enabled false
spark.eventLog.compress false
"""

BARE_PYTHON = """\
#!/bin/sh
# Who starts a Python leaves its process id.
: > "{started}/$PPID"
PYTHONPATH={path}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} -S "$@"
"""


@cache
def lean() -> str:
    """Options for a server's Java: it compiles little, and starts from the archive of classes where sessions have one.

    Java goes without an archive that isn't there.
    """
    archive = java.class_archive(java.find(), session.spark_home(), java.cache_folder())
    return f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-XX:SharedArchiveFile={archive.spark}"'


@dataclass(frozen=True)
class Server:
    """A running server: where it answers, and its process, which leads a process group of its own."""

    address: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it and the processes that it started, as a machine that loses its power would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass(frozen=True)
class Machine:
    """A folder for servers' files, and what their processes have of the environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """The executors' Python."""
        return self.folder / "python"

    @property
    def started(self) -> Path:
        """An empty file for each process that has started a Python, named by its id."""
        return self.folder / "started"

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment without anything of Spark's or Python's, then the servers' own settings."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK", "PYTHON"))
        }
        return kept | {
            "JAVA_HOME": str(java.shim_home(java.find(), java.cache_folder())),
            "SPARK_HOME": str(session.spark_home()),
            "SPARK_LOCAL_IP": session.LOOPBACK,
            "SPARK_DAEMON_MEMORY": "1g",
            "SPARK_DAEMON_JAVA_OPTS": f"{lean()} -Dspark.master.rest.enabled=false",
            "PYSPARK_PYTHON": str(self.python),
        }


def machine(folder: Path) -> Machine:
    """A machine whose Python lacks our packages."""
    made = Machine(folder)
    made.started.mkdir(parents=True)
    path = os.pathsep.join(map(str, _without_ours(folder / "packages")))
    made.python.write_text(BARE_PYTHON.format(started=made.started, path=path, python=sys.executable))
    made.python.chmod(0o755)
    return made


@contextmanager
def master(made: Machine) -> Iterator[Server]:
    """A standalone master."""
    command = ("spark-class", MASTER, "--host", session.LOOPBACK, "--port", "0", "--webui-port", "0")
    with _running(made, "master", *command) as log:
        yield _answering(*log, r"Starting Spark master at (\S+)")


@contextmanager
def worker(made: Machine, name: str, of: Server) -> Iterator[Server]:
    """A worker of a standalone master, with one core."""
    place = ("--host", session.LOOPBACK, "--port", "0", "--webui-port", "0", "--work-dir", str(made.folder / name))
    command = ("spark-class", WORKER, *place, "--cores", "1", "--memory", "1g", of.address)
    with _running(made, name, *command) as log:
        yield _answering(*log, r"Successfully registered with master (\S+)")


@dataclass(frozen=True)
class Cluster:
    """A master with two workers of one core each."""

    machine: Machine
    master: Server
    workers: tuple[Server, ...]

    def start(self, *arguments: object, settings: Path, more: str = "", cwd: Path = ROOT) -> subprocess.Popen[str]:
        """`planner whatif … --master` in a process of its own, with the settings in a folder of that name."""
        events = settings / "events"
        events.mkdir(parents=True)
        (settings / "spark-defaults.conf").write_text(DEFAULTS.format(events=events, lean=lean()) + more)
        command = [sys.executable, "-c", "from planner.cli.main import main; main()", "whatif", *map(str, arguments)]
        return subprocess.Popen(
            [*command, "--master", self.master.address],
            env=self.machine.environment | {"SPARK_CONF_DIR": str(settings)},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def standalone(made: Machine) -> Iterator[Cluster]:
    """A cluster that is ended, with everything that it started, at the end of the block."""
    with master(made) as of, worker(made, "worker-1", of) as first, worker(made, "worker-2", of) as second:
        yield Cluster(made, of, (first, second))


@contextmanager
def connect(made: Machine) -> Iterator[Server]:
    """A Spark Connect server on two cores of its own."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": session.LOOPBACK,
        "spark.driver.bindAddress": session.LOOPBACK,
        "spark.driver.extraJavaOptions": lean(),
        "spark.connect.grpc.binding.address": session.LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = ("spark-submit", "--class", CONNECT, "--master", "local[2]", *given, "spark-internal")
    with _running(made, "connect", *command) as log:
        found = _answering(*log, r"Spark Connect server started at: (\S+)")
        yield Server(f"sc://{found.address}", found.process)


def _without_ours(folder: Path) -> Iterator[Path]:
    """Folders of links to everything in ours that holds packages, but for our own and what leads to a checkout."""
    for number, site in enumerate(path for path in map(Path, sys.path) if path.name.endswith("-packages")):
        links = folder / str(number)
        links.mkdir(parents=True)
        for entry in site.iterdir():
            if not entry.name.startswith(OURS) and entry.suffix != ".pth":
                (links / entry.name).symlink_to(entry)
        yield links


@contextmanager
def _running(made: Machine, name: str, script: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """One of Spark's scripts, which becomes the Java it starts; ended, with all it started, at the end of the block."""
    log = made.folder / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [session.spark_home() / "bin" / script, *arguments],
            cwd=made.folder,
            env=made.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        Server("", process).kill()


def _answering(process: subprocess.Popen[bytes], log: Path, told: str) -> Server:
    """The server once it has told its address."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(told, log.read_text(errors="replace"))
        if found:
            return Server(found[1], process)
        time.sleep(0.1)
    raise AssertionError(f"not started:\n{log.read_text(errors='replace')[-3000:]}")
