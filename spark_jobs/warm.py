"""A class data archive (AppCDS) of what the sweep's sessions load, so that they start in about half the time.

The archive fits one Java and one Spark (see `class_archive`); sessions use it where it exists and do without it
where it doesn't.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.errors import SetupError
from spark_jobs import java, session
from spark_jobs.java import class_archive

if TYPE_CHECKING:
    from planner.model.spec import Spec

# Making the archive takes some tens of seconds on two cores.
_MOST_SECONDS = 600


def warm() -> str:
    """Make the archive for the Java that sessions will use; says where it lies and how large it is."""
    found = java.find()
    archive = class_archive(found, session.spark_home(), java.cache_folder())
    archive.spark.parent.mkdir(parents=True, exist_ok=True)
    base, spark = (path.with_suffix(".making") for path in (archive.base, archive.spark))
    # Not every Java brings the archive of its own classes that ours is laid on top of.
    _run(base, [str(found.executable), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={base}"])
    base.replace(archive.base)
    _run(spark, [sys.executable, "-m", "spark_jobs.warm", str(archive.base), str(spark)])
    spark.replace(archive.spark)
    return f"{archive.spark}: {archive.spark.stat().st_size / 1e6:.0f} MB; local sessions start from it now"


def _run(made: Path, command: list[str]) -> None:
    """Run a command that makes a file; SetupError with the end of what it said where it doesn't."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
    if not made.exists():
        raise SetupError(f"{made}: not made: {' '.join((ran.stderr + ran.stdout)[-500:].split())}")


def record(base: Path, spark: Path) -> None:
    """Run a small sweep in a session whose Java writes down what it loaded when it ends, and wait for that end."""
    from pyspark import SparkContext

    from planner.model import build_problem
    from planner.model.spec import Sweep
    from planner.sweep.candidates import candidates
    from planner.sweep.evaluate import Search
    from spark_jobs import sweep

    small = build_problem.build(_small_spec())
    options = f'"-XX:SharedArchiveFile={base}" "-XX:ArchiveClassesAtExit={spark}"'
    with session.open_session(master="local[2]", java_options=options, frames=True) as opened:
        sweep.run_fleet(opened, [Search(small, candidates(small, Sweep(candidates=200)))])
        gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def _small_spec() -> Spec:
    """Six brokers, and three more to be added: enough for a sweep to load every class that it needs."""
    from planner.model.cluster import Broker, Cluster, Partition, Topic
    from planner.model.spec import Changes, Spec
    from planner.strategies import kafka_classic

    brokers = tuple(Broker(number, f"rack-{number % 3}") for number in range(9))
    today = [(broker.id, broker.rack) for broker in brokers[:6]]
    topics = []
    for number in range(20):
        lists = kafka_classic.place(today, 10, 3, start_index=number % 6, next_replica_shift=number % 5)
        rows = (Partition(at, replicas, replicas[0], size_bytes=10**9) for at, replicas in enumerate(lists))
        topics.append(Topic(f"topic-{number:02d}", tuple(rows)))
    return Spec(Cluster("small", brokers[:6], tuple(topics)), Changes(add_brokers=brokers[6:]))


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
