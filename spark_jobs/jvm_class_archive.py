"""Makes a class data archive (AppCDS) of what the sweep's sessions load, so that they start in about half the time.

The archive fits one Java and one Spark (see `java.class_archive`); sessions use it if it exists, and start without it
if it doesn't.
"""

import subprocess

from planner.model import build_problem
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.errors import SetupError
from planner.model.spec import Changes, Spec, Sweep
from planner.strategies import kafka_classic
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import Search
from spark_jobs import java, session, sweep

# Making the archive takes tens of seconds on two cores.
_MOST_SECONDS = 600


def warm() -> str:
    """Makes the archive for the Java that sessions will use; returns its path and size as a sentence."""
    usable_java = java.find()
    archive = java.class_archive(usable_java, session.spark_home(), java.cache_folder())
    archive.spark.parent.mkdir(parents=True, exist_ok=True)
    base = archive.base.with_suffix(".making")
    # Not every Java has the archive of its own classes that ours builds on.
    dump = [str(usable_java.executable), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={base}"]
    ran = subprocess.run(dump, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
    if not base.exists():
        raise SetupError(f"{base}: not made: {' '.join((ran.stderr + ran.stdout)[-500:].split())}")
    base.replace(archive.base)
    # The archive built on the old base is now useless, and a session that has an archive doesn't record one.
    archive.spark.unlink(missing_ok=True)
    recording, small = java.Recording(), build_problem.build(_small_spec())
    with session.open_session(master="local[2]", recording=recording, frames=True) as opened:
        sweep.run_fleet(opened, [Search(small, candidates(small, Sweep(candidates=200)))])
    if not recording.finish(_MOST_SECONDS):
        raise SetupError(f"{archive.spark}: not made: Java ended without it")
    return f"{archive.spark}: {archive.spark.stat().st_size / 1e6:.0f} MB; local sessions start from it now"


def _small_spec() -> Spec:
    """Six brokers, and three more to be added: enough for a sweep to load every class that it needs."""
    brokers = tuple(Broker(number, f"rack-{number % 3}") for number in range(9))
    today = [(broker.id, broker.rack) for broker in brokers[:6]]
    topics = []
    for number in range(20):
        lists = kafka_classic.place(today, 10, 3, start_index=number % 6, next_replica_shift=number % 5)
        rows = (Partition(index, replicas, replicas[0], size_bytes=10**9) for index, replicas in enumerate(lists))
        topics.append(Topic(f"topic-{number:02d}", tuple(rows)))
    return Spec(Cluster("small", brokers[:6], tuple(topics)), Changes(add_brokers=brokers[6:]))
