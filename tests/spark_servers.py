"""Spark's own servers on loopback, from the classes of the pip package: a standalone master, workers, Spark Connect.

The servers choose free ports. Their Python has the same packages as ours, except for this project's own, and they
run in separate folders. So they know of the planner only what a session sends them.
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

from filelock import FileLock

from spark_jobs import java, session

ROOT = Path(__file__).parent.parent
OURS = ("planner", "spark_jobs", "kafka_planner")
START_SECONDS = 120
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"

# Settings that the user of a cluster would write into spark-defaults.conf.
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
def warm_once() -> None:
    """Make the class archive of this Java and Spark in the user's cache, unless it exists.

    A command makes it only if that takes no longer than the command itself. Without it, a session on a slow machine
    takes three times as long to start, and the tests start more than a hundred.
    """
    cache_folder = java.cache_folder()
    cache_folder.mkdir(parents=True, exist_ok=True)
    with FileLock(cache_folder / "tests.lock"):
        if not java.class_archive(java.find(), session.spark_home(), cache_folder).spark.is_file():
            warm = "from planner.cli.main import main; main(['spark', 'warm'])"
            subprocess.run([sys.executable, "-c", warm], check=True, stdout=subprocess.DEVNULL)


@cache
def lean() -> str:
    """Options for a server's Java: it compiles little, and uses the class archive of sessions if there is one.

    If the archive is missing, Java starts without it.
    """
    archive = java.class_archive(java.find(), session.spark_home(), java.cache_folder())
    return f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-XX:SharedArchiveFile={archive.spark}"'


@dataclass(frozen=True)
class Server:
    """A running server: its address, and its process, which leads its own process group."""

    address: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Kill the server and the processes that it started, as a power loss would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass(frozen=True)
class Machine:
    """A folder for the servers' files, and the environment of their processes."""

    folder: Path

    @property
    def python(self) -> Path:
        """The Python that executors use."""
        return self.folder / "python"

    @property
    def started(self) -> Path:
        """One empty file for each process that has started a Python. The file's name is the process id."""
        return self.folder / "started"

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment without the variables of Spark and Python, plus the servers' own settings."""
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
    """A machine whose Python lacks this project's packages."""
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
        """Start `planner whatif … --master` in its own process, with the settings in a folder of that name."""
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
    """A standalone cluster. At the end of the block, it and all that it started are killed."""
    with master(made) as of, worker(made, "worker-1", of) as first, worker(made, "worker-2", of) as second:
        yield Cluster(made, of, (first, second))


@contextmanager
def connect(made: Machine) -> Iterator[Server]:
    """A Spark Connect server on its own two cores."""
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
    """Folders with links to all installed packages but this project's, without .pth files that lead to a checkout."""
    for number, site in enumerate(path for path in map(Path, sys.path) if path.name.endswith("-packages")):
        links = folder / str(number)
        links.mkdir(parents=True)
        for entry in site.iterdir():
            if not entry.name.startswith(OURS) and entry.suffix != ".pth":
                (links / entry.name).symlink_to(entry)
        yield links


@contextmanager
def _running(made: Machine, name: str, script: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Runs a script of Spark's, which becomes a Java process. It and its children are killed at the block's end."""
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
    """Waits until the server has logged its address, then returns it."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(told, log.read_text(errors="replace"))
        if found:
            return Server(found[1], process)
        time.sleep(0.1)
    raise AssertionError(f"not started:\n{log.read_text(errors='replace')[-3000:]}")
