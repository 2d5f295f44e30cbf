"""A load profile on Spark: from any number of files with samples to one row per partition.

Spark reads and shuffles. `load_profile_statistics` sums each block's samples by hour; `load_profile_file` judges the
hours of each partition once Spark has collected them. A task holds one block, or the hours of a few hundred partitions.

Brokers count bytes only by topic. A partition's share of its topic's rate is its share of the growth of log end offsets
in the same hour, or of the sizes if no offsets are known. Without counters of bytes, the rate is the growth of the log,
except between two values where the log shrank because old segments were deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planner.inputs import load_profile_file, load_profile_statistics
from planner.model import interrupts
from planner.model.errors import PlannerError
from planner.model.formats import counted
from planner.model.load_history import HOUR_SECONDS, HistoryFacts, Span
from spark_jobs import load_sources
from spark_jobs.worker_tasks import is_connect, python_faults_named, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Two values further apart than this are a gap: it is unknown in which of the hours between them the bytes came.
GAP_SECONDS = 6 * HOUR_SECONDS
_NONE_ALLOWED = "; allowed: rates, sizes, or offsets captured twice; metrics with names, which rate() and sum() remove"
_PARTITION_HOUR = ("topic", "partition", "hour")


def _increments(measures: DataFrame) -> DataFrame:
    """The growth of each series in each hour: kind, topic, partition, broker, hour, and the columns below.

    A counter that falls was reset to 0 and has grown by its new value. A fall by at most an eighth is no reset (two
    scrapers, or a truncated log): it then grows from its value before the fall. The growth of a log that shrank, or was
    behind another broker's, is unknown. Growth is spread evenly over the time between two values; `first`, `last`: the
    times in the hour between which the series has values; `seconds`: how much of the hour has known growth; `unknown`:
    above 0 if a part's growth is; `least`: the lowest value; `most`: the highest later one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    series = Window.partitionBy("kind", "topic", "partition", "broker").orderBy("at")
    values = measures.groupBy("kind", "topic", "partition", "broker", "at").agg(fn.max("value").alias("value"))
    counter = "kind <> 'size'"
    steps = (
        values.withColumn("furthest", fn.max("value").over(Window.partitionBy("kind", "topic", "partition", "at")))
        .withColumn("since", fn.lag("at").over(series))
        .withColumn("behind", fn.lag(fn.expr("partition >= 0 AND value < furthest * 7 / 8")).over(series))
        .withColumn("before", fn.lag("value").over(series))
        .withColumn("earlier", fn.lag("value", 2).over(series))
        .where("since IS NOT NULL")
        .withColumn("gap", fn.expr(f"at - since > {GAP_SECONDS}"))
        .withColumn("unseen", fn.expr(f"gap OR behind OR NOT ({counter} OR value >= before)"))
        .withColumn("reset", fn.expr(f"{counter} AND value < before * 7 / 8"))
        .withColumn("unknown", fn.expr("gap AND NOT reset AND value <> before"))
        .withColumn("before", fn.expr(f"IF({counter} AND before BETWEEN earlier * 7 / 8 AND earlier, earlier, before)"))
        .withColumn("added", fn.expr("IF(unseen, 0, IF(reset, value, greatest(value - before, 0)))"))
    )
    first_hour, last_hour = f"since div {HOUR_SECONDS}", f"(at - 1) div {HOUR_SECONDS}"
    hours = steps.withColumn("hour", fn.explode(fn.expr(f"sequence({first_hour}, {last_hour})")))
    start, end = f"greatest(since, hour * {HOUR_SECONDS})", f"least(at, (hour + 1) * {HOUR_SECONDS})"
    covered, in_first_hour = f"{end} - {start}", f"hour = {first_hour}"
    return hours.groupBy("kind", *_PARTITION_HOUR, "broker").agg(
        fn.sum(fn.expr(f"added * ({covered}) / (at - since)")).alias("added"),
        fn.sum(fn.expr(f"IF(unseen, 0, {covered})")).alias("seconds"),
        fn.min(fn.expr(start)).alias("first"),
        fn.max(fn.expr(end)).alias("last"),
        fn.min(fn.expr("least(before, value)")).alias("least"),
        fn.max(fn.expr("IF(gap, NULL, value)")).alias("most"),
        fn.count_if(fn.expr(f"{in_first_hour} AND reset")).alias("resets"),
        fn.count_if(fn.expr(f"{in_first_hour} AND gap")).alias("gaps"),
        # A counter that began again may be of a broker that was down and wrote nothing.
        fn.count_if("unknown").alias("unknown"),
    )


def _growth_and_sizes(measures: DataFrame, grown: DataFrame) -> DataFrame:
    """For each partition and hour: `messages` and `grown`, the growth of its offsets and of its log; `size`, the
    largest size measured in the hour; `stored`, that size or else the next one. NULL: unknown.
    """
    from pyspark.sql import functions as fn

    # Every replica's log has the same offsets and grows equally, but one that is copied is behind and grows faster.
    ahead = "max(IF(kind = '{0}' AND seconds > 0, struct(least, rate), NULL)).rate"
    of_partition = (
        grown.where("partition >= 0")
        .groupBy(*_PARTITION_HOUR)
        .agg(
            *(fn.expr(ahead.format(kind)).alias(name) for kind, name in (("offset", "messages"), ("size", "grown"))),
            fn.max(fn.expr("IF(kind = 'size', most, NULL)")).alias("next_size"),
        )
    )
    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    sizes = measures.where("kind = 'size'").groupBy("topic", "partition", hour).agg(fn.max("value").alias("size"))
    partition_hours = of_partition.join(sizes, list(_PARTITION_HOUR), "full")
    return partition_hours.withColumn("stored", fn.expr("coalesce(size, next_size)")).where(
        "coalesce(messages, stored) IS NOT NULL"
    )


def samples_of_counters(measures: DataFrame) -> DataFrame:
    """Samples (SAMPLE_SCHEMA) of each partition and hour with a known growth of offsets or a known size."""
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    grown = _increments(measures).withColumn("rate", fn.expr("try_divide(added, seconds)"))
    # Without the growth of a broker's counter, the sum of the others' isn't the topic's.
    missing = "bool_or(kind = '{0}' AND rate IS NULL AND unknown > 0)"
    # A broker counts a topic only while it leads one of its partitions, perhaps in a part of the hour.
    of_kind = "FILTER (WHERE kind = '{0}')"
    rate = f"sum(rate * (last - first)) {of_kind} / (max(last) {of_kind} - min(first) {of_kind})"
    of_topic = grown.groupBy("topic", "hour").agg(
        *(fn.expr(f"IF({missing}, NULL, {rate})".format(kind)).alias(kind) for kind in ("bytes_in", "bytes_out"))
    )
    partition_hours = _growth_and_sizes(measures, grown).join(of_topic, ["topic", "hour"], "left")
    topic = Window.partitionBy("topic", "hour")
    usable = partition_hours.where(
        "coalesce(messages, grown, size) IS NOT NULL OR coalesce(bytes_in, bytes_out) IS NOT NULL"
    )
    sums = {"all_messages": fn.sum("messages"), "all_stored": fn.sum("stored"), "partitions": fn.count("*")}
    totals = usable.withColumns({name: each.over(topic) for name, each in sums.items()})
    # What nobody writes has no growth to share it by, but its rate is known.
    share = (
        "CASE WHEN all_messages > 0 THEN coalesce(messages, 0) / all_messages "
        "WHEN all_stored > 0 THEN stored / all_stored ELSE 1 / partitions END"
    )
    rate_in, rate_out = f"coalesce(bytes_in * ({share}), grown)", f"bytes_out * ({share})"
    measured, by_offsets, by_size = map(load_profile_statistics.SOURCES.index, ("measured", "offsets", "size"))
    return totals.select(
        "topic",
        "partition",
        fn.expr(f"hour * {HOUR_SECONDS}").alias("at"),
        fn.expr(_usable(rate_in, load_profile_statistics.MOST_RATE)).alias("bytes_in_per_sec"),
        fn.expr(_usable(rate_out, load_profile_statistics.MOST_RATE)).alias("bytes_out_per_sec"),
        fn.expr(_usable("size", load_profile_statistics.MOST_SIZE)).alias("size_bytes"),
        # An hour with only a size has no rate, so it doesn't count as a source of rates.
        fn.expr(
            f"CAST(CASE WHEN coalesce({rate_in}, {rate_out}) IS NULL THEN {measured} "
            f"WHEN bytes_in IS NOT NULL AND (all_messages > 0 OR all_stored IS NULL) THEN {by_offsets} "
            f"ELSE {by_size} END AS TINYINT)"
        ).alias("source"),
    )


def _usable(value: str, most: int) -> str:
    """A value as a whole number; -1 if it is out of range."""
    return f"IF({value} < 0 OR {value} > {most}D, -1, CAST(round({value}) AS BIGINT))"


# A value outside of this is impossible, such as NaN, which Spark sorts after every number. A counter has 63 bits.
_POSSIBLE = f"value BETWEEN 0 AND IF(kind = 'size', {load_profile_statistics.MOST_SIZE}D, {2**63}D)"


def impossible_values(measures: DataFrame) -> tuple[int, dict[str, float]]:
    """The number of measures with an impossible value, and their share of a topic's, for the topic's worst kind."""
    from pyspark.sql import functions as fn

    counts = measures.groupBy("topic", "kind").agg(fn.count("*"), fn.expr(f"count_if(NOT ({_POSSIBLE}))")).collect()
    shares: dict[str, float] = {}
    for topic, _, values, impossible in counts:
        if impossible:
            shares[topic] = max(shares.get(topic, 0.0), impossible / values)
    return sum(each[-1] for each in counts), shares


def samples_of_metrics(measures: DataFrame) -> tuple[DataFrame, dict[str, int], dict[str, float]]:
    """Samples (SAMPLE_SCHEMA) of the usable measures; counts of flaws; the shares of topics' impossible values."""
    from pyspark.sql import functions as fn

    is_sound = fn.col("topic").rlike(load_sources.VALID_TOPIC) & (fn.col("at") >= 0)
    usable = measures.where(is_sound).where(_POSSIBLE)
    impossible, shares = impossible_values(measures.where(is_sound))
    unreadable = measures.where(~is_sound).count()
    counts = {**flaws(usable), "unreadable_rows": unreadable, "unusable_values": impossible}
    return samples_of_counters(usable), counts, shares


def flaws(measures: DataFrame) -> dict[str, int]:
    """Counts of counter resets, of gaps, and of partitions that moved to other brokers."""
    from pyspark.sql import functions as fn

    counted = _increments(measures).agg(fn.sum("resets"), fn.sum("gaps")).first()
    by_broker = measures.where("kind = 'size' AND broker <> ''").groupBy("topic", "partition", "broker")
    periods = by_broker.agg(fn.min("at").alias("first"), fn.max("at").alias("last"))
    firsts = periods.groupBy("topic", "partition").agg(
        fn.expr("max(first) - min(first)").alias("late"), fn.expr("max(last) - min(last)").alias("early")
    )
    # Scrapes of different brokers have slightly different times, so an hour of difference is ignored.
    moved = firsts.where(f"greatest(late, early) > {HOUR_SECONDS}").count()
    resets, gaps = (counted[0] or 0, counted[1] or 0) if counted else (0, 0)
    return {"counter_resets": int(resets), "gaps_in_counters": int(gaps), "moved_partitions": moved}


# Rows and bytes of lists that a worker gets at once. The pieces of files must not depend on the number of workers,
# because samples with the same time are recognized only if they are read together.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": "16777216",
    # Up to 256 small files are a piece. With Spark's 4 MiB, every four captures of Kafka's tools would be a task.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.session.timeZone": "UTC",
    # pandas writes this type, which Spark doesn't have.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}
# Hours of partitions that a task holds at once: 744 partitions with four weeks each.
_HOURS_AT_ONCE = 500_000


@dataclass(frozen=True)
class LoadRequest:
    """The request to `planner load`: files, the tables' names of columns, and the cluster's time zone."""

    files: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"


def profile(
    spark: SparkSession,
    request: LoadRequest,
    partitions: int | None,
    phase: Callable[[str], None],
    say: Callable[[str], None],
) -> tuple[pa.Table, HistoryFacts]:
    """A profile's rows (JUDGED_SCHEMA) and what it says about the history. PlannerError if there is no sample.

    `say` gets the notes on the files.
    """
    file_names, longest = ", ".join(request.files[:3]), load_profile_statistics.LONGEST_HISTORY_HOURS
    with _settings(spark), load_sources.read_faults_named(spark), python_faults_named():
        phase(f"opening {counted(len(request.files), 'file')}")
        sources = load_sources.read_sources(spark, request.files, request.names)
        for note in sources.notes:
            say(note)
        flaw_counts: dict[str, int] = {}
        bad_metrics: dict[str, float] = {}
        samples = sources.tables
        if sources.measures is not None:
            phase("turning counters into rates")
            rates, flaw_counts, bad_metrics = samples_of_metrics(sources.measures.cache())
            samples = rates if samples is None else samples.unionByName(rates)
        phase("finding the hours of the history")
        hours, unreadable = ({}, 0) if samples is None else _hours(samples)
        flaw_counts["unreadable_rows"] = flaw_counts.get("unreadable_rows", 0) + unreadable
        if samples is None or max(hours, default=0) < load_profile_statistics.FIRST_HOUR:
            bad, impossible = (
                flaw_counts["unreadable_rows"] + sum(hours.values()),
                flaw_counts.get("unusable_values", 0),
            )
            reason = f", but {counted(bad, 'row')} without a valid topic, partition or time" if bad else ""
            reason += f", but {counted(impossible, 'value')} below 0, too large or no number" if impossible else ""
            first_fault = bad and load_sources.fault_of_first_row(spark, request.files, request.names)
            raise PlannerError(f"{file_names}: no sample of a partition{reason}{first_fault or _NONE_ALLOWED}")
        counts = (np.array([*each], dtype=np.int64) for each in (hours, hours.values()))
        span, misdated = load_profile_statistics.span_of(*counts)
        if span.hours > longest:
            raise PlannerError(f"{file_names}: a history of {span.hours:,} hours; allowed: at most {longest:,}")
        phase(f"profiling {span.hours:,} hours")
        judged = _profiled(samples, span, partitions or tasks_for(spark)).toArrow()
    findings = load_profile_file.findings(judged, span, {**flaw_counts, "misdated_samples": misdated}, bad_metrics)
    return judged, HistoryFacts(span, request.time_zone, findings)


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Sets the session's settings while the block runs."""
    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    if not is_connect(spark):
        # No logs: an error in a task fails this job, which reports it in one sentence.
        spark.sparkContext.setLogLevel("OFF")
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old_value in () if interrupts.pending() else before.items():
            spark.conf.unset(key) if old_value is None else spark.conf.set(key, old_value)


def _hours(samples: DataFrame) -> tuple[dict[int, int], int]:
    """The number of samples (SAMPLE_SCHEMA) in each hour, and of rows without a time, which aren't samples."""
    from pyspark.sql import functions as fn

    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    table = samples.groupBy(hour).agg(fn.count("*").alias("samples")).toArrow()
    counts = dict(zip(table["hour"].to_pylist(), table["samples"].to_pylist(), strict=True))
    unreadable = counts.pop(None, 0)
    return counts, unreadable


def _profiled(samples: DataFrame, span: Span, partitions: int) -> DataFrame:
    """Rows of JUDGED_SCHEMA of all partitions; `partitions` is the number of tasks that judge them."""
    from pyspark.sql import functions as fn
    from pyspark.sql.pandas.types import from_arrow_schema

    blocks = samples.mapInArrow(
        partial(load_profile_statistics.blocks, span=span), from_arrow_schema(load_profile_statistics.BLOCK_SCHEMA)
    )
    block = fn.struct(*(field.name for field in load_profile_statistics.BLOCK_FIELDS))
    keys = ("topic", "partition")
    gathered = blocks.repartition(partitions, *keys).groupBy(*keys).agg(fn.collect_list(block).alias("blocks"))
    return gathered.mapInArrow(partial(_judged, span), from_arrow_schema(load_profile_file.JUDGED_SCHEMA))


def _judged(span: Span, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    at_once = max(1, _HOURS_AT_ONCE // span.hours)
    for batch in batches:
        for start in range(0, len(batch), at_once):
            part = batch.slice(start, at_once)
            yield load_profile_file.judged(part["topic"], part["partition"], part["blocks"], span)
