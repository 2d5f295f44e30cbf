"""Spark sessions for the sweep: local, on a cluster, or through Spark Connect.

Everything that Spark takes from the environment is set for the session's start alone and put back afterwards.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from planner.errors import SetupError
from spark_jobs import java as javas
from spark_jobs.java import Java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
LOOPBACK = "127.0.0.1"

# The work is in numpy: the first compiler is enough for Spark's own code, and starts a session in half the time.
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Rows of one Arrow batch: what a worker holds at once, whatever the number of candidates.
BATCH_ROWS = 20_000

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
# PySpark's shell announces its log level unless it is the root's already.
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = error
"""

_SETTINGS = {
    "spark.app.name": "kafka-planner",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Rows are dealt round robin in the order they come in, so that dear ones, which come first, spread evenly.
    "spark.sql.execution.sortBeforeRepartition": "false",
    # A million rows of scores are some 300 MB.
    "spark.driver.maxResultSize": "0",
    "spark.driver.memory": "2g",
    **{f"spark.executorEnv.{name}": "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")},
}


@contextmanager
def open_session(
    *, master: str | None = None, remote: str | None = None, cache: Path | None = None, record: Path | None = None
) -> Iterator[SparkSession]:
    """A session that is stopped at the end of the block; `local[*]` unless a master or a Connect server is named.

    `cache` is where the shim for Java lies, the user's own by default; `record` names a class data archive to make.
    SetupError where there is no usable Java, or the session can't be opened.
    """
    spark = _connect(remote) if remote else _classic(master or LOCAL, cache or javas.cache_folder(), record)
    try:
        yield spark
    finally:
        spark.stop()


def archive_path(java: Java, cache: Path) -> Path:
    """Where the class data archive for this Java and this Spark lies, whether it has been made or not."""
    key = "\n".join((java.build, str(java.executable), pyspark.__version__, str(_spark_home()), *JVM_OPTIONS))
    return cache / "classes" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def _connect(remote: str) -> SparkSession:
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise SetupError(f"--remote needs pyspark's connect extra ({error}): pip install 'pyspark[connect]'") from error
    try:
        spark = ConnectSession.builder.remote(remote).getOrCreate()
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH_ROWS)
    except Exception as error:
        raise SetupError(f"--remote {remote}: no session: {_first_line(error)}") from error
    return spark


def _classic(master: str, cache: Path, record: Path | None) -> SparkSession:
    from pyspark.sql import SparkSession

    java = javas.find()
    settings = {**_SETTINGS, **_addresses(master), "spark.driver.extraJavaOptions": _jvm(java, cache, record)}
    with _environment(_variables(master, javas.shim_home(java, cache))):
        try:
            builder = SparkSession.builder.master(master)
            for name, value in settings.items():
                builder = builder.config(name, value)
            return builder.getOrCreate()
        except Exception as error:
            raise SetupError(f"--master {master}: no Spark session: {_first_line(error)}") from error


def is_local(master: str) -> bool:
    """True where the executors are this machine's own processes."""
    return master.startswith("local")


def _addresses(master: str) -> dict[str, str]:
    """A local session listens on loopback alone."""
    if not is_local(master):
        return {}
    return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}


def _variables(master: str, java_home: Path) -> dict[str, str]:
    variables = {"JAVA_HOME": str(java_home), "SPARK_HOME": str(_spark_home())}
    if is_local(master):
        # Workers take the first python3 on PATH otherwise, which isn't this environment's.
        variables |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    return variables


def _jvm(java: Java, cache: Path, record: Path | None) -> str:
    options = [*JVM_OPTIONS, f"-Dlog4j2.configurationFile={_logging_file(cache).as_uri()}"]
    archive = archive_path(java, cache)
    if record:
        options.append(f"-XX:ArchiveClassesAtExit={record}")
    elif archive.exists():
        options += [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
    return " ".join([*options, "-Xlog:disable"])


def _logging_file(cache: Path) -> Path:
    path = cache / "log4j2.properties"
    if not path.exists() or path.read_text() != _LOGGING:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_LOGGING)
    return path


def _spark_home() -> Path:
    return Path(pyspark.__file__).parent


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables, where the user hasn't set them (Java and Spark's home: always), for the block."""
    forced = {"JAVA_HOME", "SPARK_HOME"}
    before = dict(os.environ)
    os.environ.update({name: value for name, value in variables.items() if name in forced or name not in before})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
