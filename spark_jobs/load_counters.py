"""From counters (MEASURE_SCHEMA) to samples of partitions (SAMPLE_SCHEMA), with Spark's windows.

Brokers count bytes by topic only. A partition's share of its topic's rate is its share of the growth of log end offsets
in the same hour, or of the sizes where no offsets are known. Without counters of bytes, the rate is the growth of the
log, except between two values where it shrank because old segments were deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.load.profile_statistics import MOST_RATE, MOST_SIZE, SOURCES
from planner.model.load_history import HOUR_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Two values further apart than this are a gap: in which of the hours between them the bytes came is unknown.
GAP_SECONDS = 6 * HOUR_SECONDS
_PARTITION_HOUR = ("topic", "partition", "hour")


def increments(measures: DataFrame) -> DataFrame:
    """The growth of each series in each hour: kind, topic, partition, broker, hour, added, seconds, resets, gaps.

    A counter that falls began again at 0 and has grown by its new value. A log that shrank has no known growth for that
    time. Growth between two values is spread evenly over the time between them; `seconds` is how much of the hour has a
    known growth.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    series = Window.partitionBy("kind", "topic", "partition", "broker").orderBy("at")
    values = measures.groupBy("kind", "topic", "partition", "broker", "at").agg(fn.max("value").alias("value"))
    steps = (
        values.withColumn("since", fn.lag("at").over(series))
        .withColumn("before", fn.lag("value").over(series))
        .where("since IS NOT NULL")
        .withColumn("gap", fn.expr(f"at - since > {GAP_SECONDS}"))
        .withColumn("reset", fn.expr("value < before AND kind <> 'size'"))
        .withColumn("unseen", fn.expr("gap OR (value < before AND kind = 'size')"))
        .withColumn("added", fn.expr("CASE WHEN unseen THEN 0 WHEN reset THEN value ELSE value - before END"))
    )
    begun, ended = f"since div {HOUR_SECONDS}", f"(at - 1) div {HOUR_SECONDS}"
    hours = steps.withColumn("hour", fn.explode(fn.expr(f"sequence({begun}, {ended})")))
    within = f"least(at, (hour + 1) * {HOUR_SECONDS}) - greatest(since, hour * {HOUR_SECONDS})"
    once = f"hour = {begun}"
    return hours.groupBy("kind", *_PARTITION_HOUR, "broker").agg(
        fn.sum(fn.expr(f"added * ({within}) / (at - since)")).alias("added"),
        fn.sum(fn.expr(f"IF(unseen, 0, {within})")).alias("seconds"),
        fn.count_if(fn.expr(f"{once} AND reset")).alias("resets"),
        fn.count_if(fn.expr(f"{once} AND gap")).alias("gaps"),
    )


def samples(measures: DataFrame) -> DataFrame:
    """Samples (SAMPLE_SCHEMA) of each partition and hour with a known growth of offsets or a known size."""
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    grown = increments(measures).where("seconds > 0").withColumn("rate", fn.expr("added / seconds"))
    of_topic = grown.groupBy("topic", "hour").agg(
        *(fn.sum(fn.when(fn.col("kind") == kind, fn.col("rate"))).alias(kind) for kind in ("bytes_in", "bytes_out"))
    )
    # Every replica's log has the same offsets and grows alike; the leader's is ahead.
    of_partition = (
        grown.where("partition >= 0")
        .groupBy(*_PARTITION_HOUR)
        .agg(
            fn.max(fn.when(fn.col("kind") == "offset", fn.col("rate"))).alias("messages"),
            fn.max(fn.when(fn.col("kind") == "size", fn.col("rate"))).alias("grown"),
        )
    )
    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    sizes = measures.where("kind = 'size'").groupBy("topic", "partition", hour).agg(fn.max("value").alias("size"))
    topic = Window.partitionBy("topic", "hour")
    both = of_partition.join(sizes, list(_PARTITION_HOUR), "full").join(of_topic, ["topic", "hour"], "left")
    totals = both.withColumn("all_messages", fn.sum("messages").over(topic)).withColumn(
        "all_sizes", fn.sum("size").over(topic)
    )
    share = "coalesce(IF(all_messages > 0, coalesce(messages, 0) / all_messages, NULL), size / all_sizes)"
    rate_in, rate_out = f"coalesce(bytes_in * ({share}), grown)", f"bytes_out * ({share})"
    by_offsets, by_size = SOURCES.index("offsets"), SOURCES.index("size")
    return totals.select(
        "topic",
        "partition",
        fn.expr(f"hour * {HOUR_SECONDS}").alias("at"),
        fn.expr(_usable(rate_in, MOST_RATE)).alias("bytes_in_per_sec"),
        fn.expr(_usable(rate_out, MOST_RATE)).alias("bytes_out_per_sec"),
        fn.expr(_usable("size", MOST_SIZE)).alias("size_bytes"),
        fn.expr(f"CAST(IF(bytes_in IS NOT NULL AND all_messages > 0, {by_offsets}, {by_size}) AS TINYINT)").alias(
            "source"
        ),
    )


def _usable(value: str, most: int) -> str:
    """A value as a whole number, -1 where it makes no sense."""
    return f"IF({value} < 0 OR {value} > {most}D, -1, CAST(round({value}) AS BIGINT))"


def flaws(measures: DataFrame) -> dict[str, int]:
    """Counts of counters that began again, of gaps, and of partitions that moved to other brokers."""
    from pyspark.sql import functions as fn

    counted = increments(measures).agg(fn.sum("resets"), fn.sum("gaps")).first()
    held = measures.where("kind = 'size' AND broker <> ''").groupBy("topic", "partition", "broker")
    stays = held.agg(fn.min("at").alias("first"), fn.max("at").alias("last"))
    firsts = stays.groupBy("topic", "partition").agg(
        fn.expr("max(first) - min(first)").alias("late"), fn.expr("max(last) - min(last)").alias("early")
    )
    # Scrapes of several brokers aren't made in the same second.
    moved = firsts.where(f"greatest(late, early) > {HOUR_SECONDS}").count()
    resets, gaps = (counted[0] or 0, counted[1] or 0) if counted else (0, 0)
    return {"counter_resets": int(resets), "gaps_in_counters": int(gaps), "moved_partitions": moved}
