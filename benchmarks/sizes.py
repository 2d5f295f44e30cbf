"""The benchmark of `planner size`: 2,000 clusters that could be bought, through Spark with one worker and with two.

Today's cluster has 12 brokers and a known week of load; 40 classes of brokers, 2 to 26 per rack, with and without
today's brokers, make 2,000 clusters. Each is planned, and tested with 18 months of growth, the busiest hours, and the
loss of each rack. Each number of workers is measured in a separate process, and both must give the same table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks import hours
from benchmarks.apart import apart, on_spark
from benchmarks.table import Entries, Figures, head, megabytes, ratio, row
from planner.model.balance import Balance
from planner.model.spec import BrokerClass, Changes, Monthly, Rate, Sizing, Spec
from planner.whatif import sizing
from planner.whatif.brokers_for_growth import CaseRow
from planner.whatif.sizing import Combination

PARTITIONS, SEED = 5_000, 1
WORKERS = (1, 2)
# Every 11th cluster is enough, in less time: it has clusters with and without today's brokers, of all sizes.
EVERY = 11
_WEEK_SECONDS = 604_800
# The disks and networks of the classes, in quarters of the mean load of a broker today.
_DISKS, _NETWORKS = (2, 4, 6, 8, 12), (4, 6, 8, 10, 12, 16, 20, 24)

_COLUMNS = (
    "clusters",
    "engine",
    "s with the session's start",
    "s without",
    "× one worker, without",
    "CPU s without",
    "CPU s one after the other",
    "clusters that last",
    "peak memory MB of a Python worker",
)


@dataclass(frozen=True)
class Sized:
    """One run: wall seconds, those of the session's start, and CPU seconds as in `sweep.Timing`."""

    clusters: int
    workers: int
    seconds: float
    session_seconds: float
    cpu_seconds: float
    chain_seconds: float
    worker_peak_bytes: int
    rows: tuple[CaseRow, ...]

    @property
    def job_seconds(self) -> float:
        """Seconds without the session's start."""
        return self.seconds - self.session_seconds


def spec(partitions: int = PARTITIONS) -> Spec:
    """The spec of the generated cluster, with the broker classes that may be bought for it."""
    base = hours.spec(SEED, partitions)
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                # Kafka's default retention keeps a week.
                replace(each, size_bytes=each.bytes_in_per_sec * _WEEK_SECONDS)
                for each in topic.partitions
            ),
        )
        for topic in base.cluster.topics
    )
    rows = [each for topic in topics for each in topic.partitions]
    disk = sum(each.size_bytes * hours.FACTOR for each in rows) // hours.BROKERS
    sent = sum(each.bytes_in_per_sec * (hours.FACTOR - 1) + each.bytes_out_per_sec for each in rows) // hours.BROKERS
    classes = tuple(
        BrokerClass(f"disk {of_disk}/4, network {of_network}/4", disk * of_disk // 4, sent * of_network // 4)
        for of_disk in _DISKS
        for of_network in _NETWORKS
    )
    brokers = tuple(
        replace(each, disk_bytes=disk * 2, network_bytes_per_sec=sent * 9 // 4) for each in base.cluster.brokers
    )
    return replace(
        base,
        cluster=replace(base.cluster, brokers=brokers, topics=topics, sizes_known=True),
        changes=Changes(),
        balance=Balance(),
        growth=Monthly((Rate("topic-00*", 60_000), Rate("*", 30_000)), classes),
        sizing=Sizing(classes, (2, 26), months=18, survive="rack", disk_used_ppm=750_000, replicas_per_broker=4_000),
    )


def entries(*, one_in: int = EVERY, partitions: int = PARTITIONS) -> Entries:
    """The Markdown, each line as soon as it is measured; measures `one_in` so many clusters."""
    base = spec(partitions)
    combinations = sizing.combinations(base)[::one_in]
    yield f"## Clusters that could be bought for {partitions:,} partitions"
    yield ""
    yield from head(_COLUMNS)
    first_run = None
    for workers in WORKERS:
        run = apart(through_spark, base, combinations, workers)
        first_run = first_run or run
        yield Figures("sizes", {name: value for name, value in asdict(run).items() if name != "rows"})
        yield row(_cells(run, first_run))
    assert first_run is not None
    limits = Counter(each["limit"].partition(" without")[0] for each in first_run.rows if not each["holds"])
    yield ""
    yield "What binds first: " + ", ".join(f"{limit} {count}" for limit, count in sorted(limits.items())) + "."


def through_spark(base: Spec, combinations: Sequence[Combination], workers: int) -> Sized:
    """The clusters' rows from a local Spark session with `workers` workers, opened and closed here."""
    # Imported here, so that the other benchmarks run without pyspark.
    from spark_jobs import worker_tasks

    rows, cost = on_spark(
        workers,
        lambda spark: worker_tasks.answers(spark, sizing.questions(base, combinations), tasks_each=sizing.TASKS_EACH),
    )
    return Sized(len(rows), workers, **asdict(cost), rows=tuple(rows))


def _cells(run: Sized, first_run: Sized) -> tuple[str, ...]:
    return (
        f"{run.clusters:,}",
        f"Spark local[{run.workers}]" + ("" if run.rows == first_run.rows else ", other rows than with one worker"),
        f"{run.seconds:.1f}",
        f"{run.job_seconds:.1f}",
        ratio(first_run.job_seconds, run.job_seconds),
        f"{run.cpu_seconds:.1f}",
        f"{run.chain_seconds:.1f}",
        f"{sum(each['holds'] for each in run.rows):,}",
        megabytes(run.worker_peak_bytes),
    )
