"""Opens Spark sessions: local, on a cluster's master, or on a Spark Connect server.

Whatever the machine has set for Spark is put aside or filled in while the session is open, and put back afterwards.
The driver's JVM only steers, the work is in numpy; so it compiles little (C1), collects serially and starts from an
archive of classes where `planner spark warm` has made one.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from planner.model import interrupts
from planner.model.errors import DEBUG, SetupError
from planner.model.file_reading import resource
from spark_jobs import java, launch
from spark_jobs.java import Recording, class_archive

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Spark Connect's sessions are of another class of the same name.
    Session = SparkSession | SparkContext

T = TypeVar("T")

LOCAL = "local[*]"
LOOPBACK = "127.0.0.1"
CONNECT_PORT, MASTER_PORT, CONNECT_SECONDS = 15002, 7077, 10
# Spark's own number for clusters. Its local masters would give up when a worker process dies for the first time.
TASK_FAILURES = 4
# What Spark takes for a master. Of anything else Java would print a stack.
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")
_MASTERS = "spark://host:7077, k8s://https://host:6443, yarn or local[*]"
_PACKAGES = ("planner", "spark_jobs")
_CONNECT_PACKAGES = ("grpc", "grpc_status", "zstandard")

# Some warnings of the JVM go to stdout, which is the result's: only errors, and to stderr.
LEAN_JVM = "-XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xlog:disable -Xlog:all=error:stderr"
# Java's second compiler takes a second of a short session, and saves two fifths of the time where Java itself reads,
# sorts and groups tens of millions of rows. Without it, Java's own size of the code cache is a fifth of that above,
# which some fifty jobs fill; then nothing more would be compiled.
ONE_COMPILER = "-XX:TieredStopAtLevel=1"

# The gateway's logger has a level of its own: Spark announces the one it would choose on stderr.
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n%ex{STACK}
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
# A task that fails is started again, and where it always fails the command says why in a sentence. The first two of
# these loggers would print the stacks of Java and Python each time; the next two, each folder that can't be made; the
# last, a message of an executor that comes when the driver has stopped listening.
NO_STACKS = """\
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.folders.name = org.apache.spark.network.util.JavaUtils
logger.folders.level = off
logger.blocks.name = org.apache.spark.storage.DiskBlockManager
logger.blocks.level = off
logger.messages.name = org.apache.spark.network.server.TransportRequestHandler
logger.messages.level = off
"""
# On a cluster this one warns where no executor takes the tasks; otherwise the sweep would wait without a message.
CLUSTER_LOGGING = """\
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = warn
"""

# Spark starts its workers with `python -m`, which looks for modules where the planner was started, and there first of
# all: a json.py beside the spec would be run.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}

# A million score rows on their way to Python fit into 2 GB.
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.driver.maxResultSize": "0",
    "spark.task.maxDirectResultSize": "64m",
    # Spark already runs one task a core; threads of BLAS would only fight over them.
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.MKL_NUM_THREADS": "1",
    **{f"spark.executorEnv.{name}": value for name, value in (interrupts.ENVIRONMENT | SAFE_PATH).items()},
}
LOOPBACK_OPTIONS = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}

# Settings of a shell that would turn our session into another one.
_NEVER = ("MASTER", "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
_NOT_LOCAL = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


@contextmanager
def open_session(
    *,
    master: str | None = None,
    remote: str | None = None,
    recording: Recording | None = None,
    frames: bool = False,
    many_rows: bool = False,
) -> Iterator[Any]:
    """A session on `master` (default `local[*]`) or on the Spark Connect server `remote` (`sc://host:port`).

    With `frames` a SparkSession; else a SparkContext, which is there in half the time, but on a Connect server. With
    `many_rows` both of Java's compilers work (ONE_COMPILER). Where a local session has no archive of classes yet,
    `recording` makes one at its end. Stops the session and restores `os.environ` at the end of the block.
    SetupError where there is no Java, no server, or Spark doesn't start.
    """
    if master and remote:
        raise SetupError(f"a session is either on a master or remote, not both: {master}, {remote}")
    with _environment_restored(), _no_logging_of_libraries(), interrupts.temporary_folder("planner-spark-") as scratch:
        if remote:
            with _connected(remote, scratch) as spark:
                yield spark
            return
        from pyspark import SparkContext

        launch.forget_ended()
        # A process has one context: whoever has opened it stops it.
        shared = SparkContext._active_spark_context is not None
        try:
            with launch.launched() as jvm:
                with launch.own_session(jvm, scratch):
                    options = _classic_options(master or LOCAL, scratch, recording, many_rows)
                    spark = _classic(master or LOCAL, options, scratch, frames=frames)
                jvm.stop = None if shared else spark.stop
                jvm.output.pass_on()
                yield spark
        except BaseException:
            # The archive is made as Java ends, which takes seconds: the command would be over before.
            if recording is not None and recording.made is not None:
                jvm.kill()
            raise
        if recording is not None and recording.made is not None:
            recording.java = jvm.retire()


def is_local(master: str) -> bool:
    """True where the driver's own JVM does the work, and code needn't be sent anywhere."""
    return master == "local" or master.startswith("local[")


def local_cores(master: str) -> int:
    """How many tasks run at once on a local master."""
    threads = re.match(r"local\[(\*|\d+)", master)
    if threads is None:
        return 1
    return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1])


def is_on_loopback(master: str) -> bool:
    """True where all that talks to the driver runs on this machine, so that no other machine needs to reach it."""
    hosts = {urlsplit(f"//{address}").hostname for address in _addresses(master)}
    return is_local(master) or set() < hosts <= {"localhost", LOOPBACK, "::1"}


def spark_home() -> Path:
    """The Spark within the installed pyspark package."""
    import pyspark

    return Path(pyspark.__file__).parent


def code_archives(folder: Path) -> tuple[str, ...]:
    """Zips of our packages and templates, for workers that don't have them; the same bytes whenever these are the same.

    Spark unpacks each into the folder that stands behind its #, which workers import from: templates are read as files.
    """
    root, templates = _code_root(), resource("templates")
    packed = {name: {file: file.relative_to(root / name) for file in (root / name).rglob("*.py")} for name in _PACKAGES}
    shipped = (file for file in templates.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    packed["planner"] |= {file: Path("_data", file.relative_to(templates.parent)) for file in shipped}
    for package, files in packed.items():
        with zipfile.ZipFile(folder / f"{package}.zip", "w") as archive:
            for file, name in sorted(files.items()):
                archive.writestr(zipfile.ZipInfo(name.as_posix()), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return tuple(f"{folder / package}.zip#{package}" for package in packed)


def _classic_options(master: str, scratch: Path, recording: Recording | None, many_rows: bool) -> dict[str, str]:
    """All options of a session on a master, once a Java is found and the environment is set for it."""
    if not _MASTER.fullmatch(master):
        raise SetupError(f"--master {master}: no Spark master; allowed: {_MASTERS}")
    if master.startswith("spark://"):
        _any_answers(f"--master {master}", "Spark master", _addresses(master), MASTER_PORT)
    found = java.find()
    cache = java.cache_folder()
    _set_environment(master, java.shim_home(found, cache))
    archive = class_archive(found, spark_home(), cache)
    options = f'"-XX:SharedArchiveFile={archive.spark}"' if archive.spark.is_file() else ""
    if recording is not None:
        if not options and is_local(master):
            options = recording.begin(found, archive)
        recording.settled = True
    logging = scratch / "log4j2.properties"
    debug = bool(os.environ.get(DEBUG))
    settings = LOGGING.replace("STACK", "full" if debug else "none") + ("" if debug else NO_STACKS)
    logging.write_text(settings if is_local(master) else settings + CLUSTER_LOGGING)
    compilers = "" if many_rows else f"{ONE_COMPILER} "
    # What Java and Spark put into the temporary folder stays there when they are killed, and some of it always.
    files = f'"-Dlog4j2.configurationFile={logging}" "-Djava.io.tmpdir={scratch}"'
    return {
        **OPTIONS,
        **(LOOPBACK_OPTIONS if is_on_loopback(master) else {}),
        **({"spark.local.dir": str(scratch)} if is_local(master) else {}),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"{LEAN_JVM} {files} {compilers}{options}".strip(),
    }


def _classic(master: str, options: dict[str, str], scratch: Path, *, frames: bool) -> Session:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf().setMaster(_patient(master)).setAppName("planner").setAll(list(options.items()))
    start = SparkSession.builder.config(conf=conf).getOrCreate if frames else partial(SparkContext.getOrCreate, conf)
    spark: Any = _started(start, f"Spark doesn't start on {master}")
    if not is_local(master):
        for archive in code_archives(scratch):
            (spark.sparkContext if frames else spark).addArchive(archive)
    return spark


@contextmanager
def _connected(remote: str, scratch: Path) -> Iterator[Any]:
    """A session on a server, stopped at the end of the block; after a signal the server is asked to cancel its work."""
    # pyspark ends the process where one of these is missing, so they are looked for first.
    missing = [name for name in _CONNECT_PACKAGES if find_spec(name) is None]
    if missing:
        raise SetupError(
            f"--remote {remote} needs Spark Connect, of which packages are missing ({', '.join(missing)}): "
            "install kafka-planner[connect]."
        )
    from pyspark.sql.connect.session import SparkSession

    # Spark's own client would go on trying for minutes where no server listens.
    url = urlsplit(remote)
    if url.scheme != "sc" or not url.hostname:
        raise SetupError(f"--remote {remote}: not the address of a Spark Connect server, which is sc://host:port")
    _any_answers(f"--remote {remote}", "Spark Connect server", [url.netloc], CONNECT_PORT)
    # pyspark.sql.functions looks here to see which of the two kinds of session it works for.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    builder = SparkSession.builder.remote(remote)
    spark: Any = _started(builder.getOrCreate, f"Spark Connect at {remote} gives no session")
    _started(lambda: spark.addArtifacts(*code_archives(scratch), archive=True), f"{remote} doesn't take our code")
    try:
        yield spark
    finally:
        if interrupts.pending():
            with suppress(Exception):
                spark.interruptAll()
        spark.stop()


def _patient(master: str) -> str:
    """A local master that starts a task again when its worker process was killed, as every cluster does."""
    threads = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{threads[1] or 1},{TASK_FAILURES}]" if threads else master


def _addresses(master: str) -> list[str]:
    """The `host:port`s of a standalone cluster's masters, of which there may be several; none of any other."""
    return master.removeprefix("spark://").split(",") if master.startswith("spark://") else []


def _set_environment(master: str, java_home: Path) -> None:
    """What Spark's scripts and workers read. On a cluster, the user's own choice of Spark and Python is kept."""
    for name in _NEVER + (_NOT_LOCAL if is_local(master) else ()):
        os.environ.pop(name, None)
    os.environ.update(SAFE_PATH, JAVA_HOME=str(java_home))
    ours = {"SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if is_local(master):
        # Workers must find our packages even where they aren't installed, in a checkout.
        python_path = os.pathsep.join(filter(None, (str(_code_root()), os.environ.get("PYTHONPATH", ""))))
        os.environ.update(ours, SPARK_LOCAL_IP=LOOPBACK, PYTHONPATH=python_path)
    else:
        os.environ.update(ours | {name: os.environ[name] for name in ours if name in os.environ})


def _code_root() -> Path:
    return Path(__file__).resolve().parent.parent


def _any_answers(option: str, what: str, addresses: list[str], default_port: int) -> None:
    """SetupError unless somebody listens at one of the addresses (`host:port`)."""
    for address in addresses:
        try:
            place = urlsplit(f"//{address}")
            socket.create_connection((place.hostname, place.port or default_port), timeout=CONNECT_SECONDS).close()
            return
        except (OSError, ValueError) as error:  # ValueError: a port that is no number
            refused = error
    raise SetupError(f"{option}: no {what} answers there ({refused})") from refused


def _started(start: Callable[[], T], complaint: str) -> T:
    try:
        return start()
    except Exception as error:  # Spark's causes are of many kinds: Python's, py4j's, grpc's
        # The one line that matters: py4j puts it, behind a colon, below a line on how it got there.
        lines = str(error).splitlines() or [type(error).__name__]
        reason = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
        if "Failed to create" in reason:
            reason = launch.NO_SCRATCH
        raise SetupError(f"{complaint}: {reason}") from error


@contextmanager
def _no_logging_of_libraries() -> Iterator[None]:
    """py4j logs a traceback when the JVM has ended; the command prints one sentence instead."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _environment_restored() -> Iterator[None]:
    before, path = dict(os.environ), list(sys.path)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.path[:] = path  # Spark puts the code that it sends to workers on the driver's own, too
