"""A load profile on Spark: from any number of files with samples to one row for each partition.

Spark reads and shuffles; `planner.inputs.load` adds samples up by hour, block by block as they are read, and judges the
hours of each partition where they come together. A task holds one block, or the hours of a few hundred partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planner.inputs.load import profile_file, profile_statistics
from planner.inputs.load.profile_statistics import BLOCK_FIELDS, BLOCK_SCHEMA, LONGEST_HISTORY_HOURS
from planner.model import interrupts
from planner.model.errors import PlannerError
from planner.model.formats import counted
from planner.model.load_history import HOUR_SECONDS, About, Span
from spark_jobs import load_counters, load_sources
from spark_jobs.carrier import python_faults_named, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows, and bytes of lists, that a worker gets at once. Pieces of files don't depend on how many workers there are, as
# samples of one time are seen to be so only where they are read together.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": "16777216",
    "spark.sql.session.timeZone": "UTC",
    # What pandas writes; Spark has no such type.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}
# Hours of partitions that a task holds at once: 744 partitions of four weeks.
_HOURS_AT_ONCE = 500_000


@dataclass(frozen=True)
class LoadRequest:
    """What `planner load` was asked for: files, what tables call their columns, the cluster's time zone."""

    files: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"


def profile(
    spark: SparkSession, request: LoadRequest, partitions: int | None, phase: Callable[[str], None]
) -> tuple[pa.Table, About]:
    """The rows (JUDGED_SCHEMA) of a profile and what it says of the history. PlannerError where there is no sample."""
    from pyspark.sql import functions as fn

    with _settings(spark), load_sources.read_faults_named(), python_faults_named():
        phase(f"opening {counted(len(request.files), 'file')}")
        sources = load_sources.read(spark, request.files, request.names)
        others: dict[str, int] = {}
        samples = sources.tables
        if sources.measures is not None:
            phase("turning counters into rates")
            every = sources.measures.cache()
            valid = fn.col("topic").rlike(load_sources.VALID_TOPIC) & (fn.col("at") >= 0)
            measures = every.where(valid)
            others = {**load_counters.flaws(measures), "unreadable_rows": every.where(~valid).count()}
            rates = load_counters.samples(measures)
            samples = rates if samples is None else samples.unionByName(rates)
        phase("finding the hours of the history")
        hours, unreadable = ({}, 0) if samples is None else _hours(samples)
        others["unreadable_rows"] = others.get("unreadable_rows", 0) + unreadable
        if samples is None or not hours:
            bad = others["unreadable_rows"]
            why = f", but {counted(bad, 'row')} without a valid topic, partition or time" if bad else ""
            raise PlannerError(
                f"{', '.join(request.files[:3])}: no sample of a partition{why}; "
                "allowed: rates, sizes or offsets of topics"
            )
        span, misdated = profile_statistics.span_of(
            *(np.array([*each], dtype=np.int64) for each in (hours, hours.values()))
        )
        if span.hours > LONGEST_HISTORY_HOURS:
            raise PlannerError(
                f"{', '.join(request.files[:3])}: a history of {span.hours:,} hours; "
                f"allowed: at most {LONGEST_HISTORY_HOURS:,}"
            )
        phase(f"profiling {span.hours:,} hours")
        judged = _profiled(samples, span, partitions or tasks_for(spark)).toArrow()
    found = profile_file.findings(judged, span, {**others, "misdated_samples": misdated})
    return judged, About(span, request.time_zone, found)


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """The session's settings for as long as the block runs."""
    from spark_jobs.progress import is_connect

    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    if not is_connect(spark):
        # What fails in a task fails this job, which says so in one sentence.
        spark.sparkContext.setLogLevel("OFF")
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in () if interrupts.pending() else before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def _hours(samples: DataFrame) -> tuple[dict[int, int], int]:
    """The number of samples (SAMPLE_SCHEMA) in each hour; and of rows without a time, which are no samples."""
    from pyspark.sql import functions as fn

    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    table = samples.groupBy(hour).agg(fn.count("*").alias("samples")).toArrow()
    found = dict(zip(table["hour"].to_pylist(), table["samples"].to_pylist(), strict=True))
    unreadable = found.pop(None, 0)
    return found, unreadable


def _profiled(samples: DataFrame, within: Span, partitions: int) -> DataFrame:
    """Rows of JUDGED_SCHEMA of all partitions; `partitions` is how many tasks judge them."""
    from pyspark.sql import functions as fn
    from pyspark.sql.pandas.types import from_arrow_schema

    blocks = samples.mapInArrow(partial(profile_statistics.blocks, span=within), from_arrow_schema(BLOCK_SCHEMA))
    block = fn.struct(*(field.name for field in BLOCK_FIELDS))
    keys = ("topic", "partition")
    gathered = blocks.repartition(partitions, *keys).groupBy(*keys).agg(fn.collect_list(block).alias("blocks"))
    return gathered.mapInArrow(partial(_judged, within), from_arrow_schema(profile_file.JUDGED_SCHEMA))


def _judged(within: Span, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    at_once = max(1, _HOURS_AT_ONCE // within.hours)
    for batch in batches:
        for start in range(0, len(batch), at_once):
            part = batch.slice(start, at_once)
            yield profile_file.judged(part["topic"], part["partition"], part["blocks"], within)
