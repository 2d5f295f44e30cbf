"""Opens Spark sessions: local, on a cluster's master, or on a Spark Connect server.

While the session is open, the machine's settings for Spark are set aside or completed; afterwards they are restored.
The driver's JVM only coordinates, because the work is in numpy. So it compiles little (C1), collects garbage serially,
and starts from an archive of classes if there is one (`planner spark warm`).
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
from spark_jobs import java, spark_jvm
from spark_jobs.java import Recording, class_archive

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Spark Connect's session class is a different one with the same name.
    Session = SparkSession | SparkContext

T = TypeVar("T")

LOCAL = "local[*]"
LOOPBACK = "127.0.0.1"
CONNECT_PORT, MASTER_PORT, CONNECT_SECONDS = 15002, 7077, 10
# Spark's own number for clusters. Its local masters give up as soon as a worker process dies.
TASK_FAILURES = 4
# The masters that Spark accepts. For any other, Java would print a stack trace.
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")
_MASTERS = "spark://host:7077, k8s://https://host:6443, yarn or local[*]"
_PACKAGES = ("planner", "spark_jobs")
_CONNECT_PACKAGES = ("grpc", "grpc_status", "zstandard")

# Some of the JVM's warnings go to stdout, which is for the result. So log only errors, to stderr.
LEAN_JVM = "-XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xlog:disable -Xlog:all=error:stderr"
# Java's second compiler takes a second of a short session. It saves two fifths of the time if Java itself reads, sorts
# and groups tens of millions of rows. Without it, Java's default code cache is a fifth of the size above; about fifty
# jobs fill it, and then nothing more is compiled.
ONE_COMPILER = "-XX:TieredStopAtLevel=1"

# The gateway needs its own level, because Spark otherwise announces on stderr which level it chooses.
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
# A failed task is started again, and if it always fails, the command says why in a sentence. The first two of these
# loggers would print the stack traces of Java and Python each time; the next two, each folder that can't be made; the
# fifth, a message of an executor that arrives when the driver no longer listens. The last one may speak, but not of a
# task that ends while the session is ending.
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
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = error
logger.scheduler.filter.ending.type = RegexFilter
logger.scheduler.filter.ending.regex = Exception in statusUpdate
logger.scheduler.filter.ending.onMatch = DENY
logger.scheduler.filter.ending.onMismatch = NEUTRAL
"""
# On a cluster this logger warns if no executor takes the tasks; otherwise the sweep would wait without a message.
CLUSTER_LOGGING = """\
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = warn
"""

# Spark starts its workers with `python -m`, which looks for modules first in the folder where the planner was started:
# it would run a json.py beside the spec.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}

# A million score rows on their way to Python fit into 2 GB.
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.driver.maxResultSize": "0",
    "spark.task.maxDirectResultSize": "64m",
    # Spark already runs one task per core; threads of BLAS would only compete for the cores.
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.MKL_NUM_THREADS": "1",
    **{f"spark.executorEnv.{name}": value for name, value in (interrupts.ENVIRONMENT | SAFE_PATH).items()},
}
LOOPBACK_OPTIONS = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}

# Settings of a shell that would change the kind of our session.
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

    With `frames`, or on a Connect server, a SparkSession; else a SparkContext, which starts in half the time. With
    `many_rows`, both of Java's compilers work (ONE_COMPILER). If a local session has no archive of classes yet,
    `recording` makes one when it ends. Stops the session and restores `os.environ` at the end of the block. SetupError
    if there is no Java or no server, or if Spark doesn't start.
    """
    if master and remote:
        raise SetupError(f"a session is either on a master or remote, not both: {master}, {remote}")
    with _process_restored(), interrupts.temporary_folder("planner-spark-") as scratch:
        if remote:
            with _connected(remote, scratch) as spark:
                yield spark
            return
        from pyspark import SparkContext

        spark_jvm.forget_ended()
        # A process has one context; the code that opened it stops it.
        shared = SparkContext._active_spark_context is not None
        try:
            with spark_jvm.launched() as jvm:
                with spark_jvm.own_session(jvm, scratch):
                    options = _classic_options(master or LOCAL, scratch, recording, many_rows)
                    spark = _classic(master or LOCAL, options, scratch, frames=frames)
                jvm.stop = None if shared else spark.stop
                jvm.output.pass_on()
                yield spark
        except BaseException:
            # Java would write the archive as it ends, which takes seconds longer than the command.
            if recording is not None and recording.made is not None:
                jvm.kill()
            raise
        if recording is not None and recording.made is not None:
            recording.java = jvm.retire()


def is_local(master: str) -> bool:
    """True if the driver's own JVM does the work, so that no code needs to be sent."""
    return master == "local" or master.startswith("local[")


def local_cores(master: str) -> int:
    """How many tasks run at once on a local master."""
    threads = re.match(r"local\[(\*|\d+)", master)
    if threads is None:
        return 1
    return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1])


def is_on_loopback(master: str) -> bool:
    """True if everything that talks to the driver runs on this machine, so that no other machine needs to reach it."""
    hosts = {urlsplit(f"//{address}").hostname for address in _addresses(master)}
    return is_local(master) or set() < hosts <= {"localhost", LOOPBACK, "::1"}


def spark_home() -> Path:
    """The Spark inside the installed pyspark package."""
    import pyspark

    return Path(pyspark.__file__).parent


def code_archives(folder: Path) -> tuple[str, ...]:
    """Zips of our packages and templates, for workers that don't have them; equal contents give equal bytes.

    Spark unpacks each zip into the folder named after its #. Workers import from there, and read templates as files.
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
    """All options of a session on a master; finds a Java and sets the environment first."""
    if not _MASTER.fullmatch(master):
        raise SetupError(f"--master {master}: no Spark master; allowed: {_MASTERS}")
    if master.startswith("spark://"):
        _any_answers(f"--master {master}", "Spark master", _addresses(master), MASTER_PORT)
    usable_java = java.find()
    cache = java.cache_folder()
    _set_environment(master, java.shim_home(usable_java, cache))
    archive = class_archive(usable_java, spark_home(), cache)
    options = f'"-XX:SharedArchiveFile={archive.spark}"' if archive.spark.is_file() else ""
    if recording is not None and not options and is_local(master):
        options = recording.begin(usable_java, archive)
    logging = scratch / "log4j2.properties"
    debug = bool(os.environ.get(DEBUG))
    settings = LOGGING.replace("STACK", "full" if debug else "none") + ("" if debug else NO_STACKS)
    logging.write_text(settings if is_local(master) else settings + CLUSTER_LOGGING)
    compilers = "" if many_rows else f"{ONE_COMPILER} "
    # Java and Spark leave files in the temporary folder: all if they are killed, and some in any case.
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
    """A session on a server, stopped at the end of the block; after a signal, asks the server to cancel its work."""
    # pyspark ends the process if one of these packages is missing, so look for them first.
    missing = [name for name in _CONNECT_PACKAGES if find_spec(name) is None]
    if missing:
        raise SetupError(
            f"--remote {remote} needs Spark Connect, of which packages are missing ({', '.join(missing)}): "
            "install kafka-planner[connect]."
        )
    from pyspark.sql.connect.session import SparkSession

    # Spark's own client would keep trying for minutes if no server listens.
    url = urlsplit(remote)
    if url.scheme != "sc" or not url.hostname:
        raise SetupError(f"--remote {remote}: not the address of a Spark Connect server, which is sc://host:port")
    _any_answers(f"--remote {remote}", "Spark Connect server", [url.netloc], CONNECT_PORT)
    # pyspark.sql.functions reads this to tell which kind of session it works for.
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
    """A local master that restarts a task if its worker process was killed, as every cluster does."""
    threads = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{threads[1] or 1},{TASK_FAILURES}]" if threads else master


def _addresses(master: str) -> list[str]:
    """The `host:port`s of a standalone cluster's masters, of which there may be several; empty for other masters."""
    return master.removeprefix("spark://").split(",") if master.startswith("spark://") else []


def _set_environment(master: str, java_home: Path) -> None:
    """Sets what Spark's scripts and workers read. On a cluster it keeps the user's own choice of Spark and Python."""
    for name in _NEVER + (_NOT_LOCAL if is_local(master) else ()):
        os.environ.pop(name, None)
    os.environ.update(SAFE_PATH, JAVA_HOME=str(java_home))
    ours = {"SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if is_local(master):
        # Workers must find our packages also in a checkout, where they aren't installed.
        python_path = os.pathsep.join(filter(None, (str(_code_root()), os.environ.get("PYTHONPATH", ""))))
        os.environ.update(ours, SPARK_LOCAL_IP=LOOPBACK, PYTHONPATH=python_path)
    else:
        os.environ.update(ours | {name: os.environ[name] for name in ours if name in os.environ})


def _code_root() -> Path:
    return Path(__file__).resolve().parent.parent


def _any_answers(option: str, server: str, addresses: list[str], default_port: int) -> None:
    """SetupError unless a server listens at one of the addresses (`host:port`)."""
    for address in addresses:
        try:
            place = urlsplit(f"//{address}")
            socket.create_connection((place.hostname, place.port or default_port), timeout=CONNECT_SECONDS).close()
            return
        except (OSError, ValueError) as error:  # ValueError: a port that isn't a number
            refused = error
    raise SetupError(f"{option}: no {server} answers there ({refused})") from refused


def _started(start: Callable[[], T], complaint: str) -> T:
    try:
        return start()
    except Exception as error:  # Spark's causes are of many kinds: Python's, py4j's, grpc's
        # The line with the cause: py4j puts it after a colon, below a line on where the error happened.
        lines = str(error).splitlines() or [type(error).__name__]
        reason = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
        if "Failed to create" in reason:
            reason = spark_jvm.NO_SCRATCH
        raise SetupError(f"{complaint}: {reason}") from error


@contextmanager
def _process_restored() -> Iterator[None]:
    """Restores this process's environment, path of modules and logging at the end of the block."""
    before, path = dict(os.environ), list(sys.path)
    # Suppresses py4j's traceback when the JVM has ended; the command prints one sentence instead.
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        os.environ.clear()
        os.environ.update(before)
        sys.path[:] = path  # Spark also adds the code that it sends to workers to the driver's path
