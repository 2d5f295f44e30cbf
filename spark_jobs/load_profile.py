"""A load profile on Spark: files with samples in any number, a row a partition out.

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

from planner.inputs.load import hourly_sums, profile_file
from planner.inputs.load.hourly_sums import BLOCK_FIELDS, BLOCK_SCHEMA, HOUR_SECONDS
from planner.model import interrupts
from planner.model.errors import PlannerError
from planner.model.load_history import About, Span
from spark_jobs import load_counters, load_sources
from spark_jobs.carrier import python_faults_named, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows that a worker gets at once; and pieces of files, so that a block's rows fit in 300 MB.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
}


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
    with _settings(spark), python_faults_named():
        phase(f"opening {len(request.files)} files")
        sources = load_sources.read(spark, request.files, request.names)
        others: dict[str, int] = {}
        samples = sources.tables
        if sources.measures is not None:
            phase("turning counters into rates")
            measures = sources.measures.cache()
            others = load_counters.flaws(measures)
            counted = load_counters.samples(measures)
            samples = counted if samples is None else samples.unionByName(counted)
        phase("finding the hours of the history")
        hours = None if samples is None else _span(samples)
        if samples is None or hours is None:
            raise PlannerError(
                f"{', '.join(request.files[:3])}: no sample of a partition; allowed: rates, sizes or offsets of topics"
            )
        span, misdated = hours
        phase(f"profiling {span.hours:,} hours")
        judged = _profiled(samples, span, partitions or tasks_for(spark)).toArrow()
    found = profile_file.findings(judged, span, {**others, "misdated_samples": misdated})
    return judged, About(span, request.time_zone, found)


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """The session's settings for as long as the block runs."""
    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in () if interrupts.pending() else before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


# Partitions whose hours a task holds at once: 256 times a year of hours is 70 MB a measure.
_PARTITIONS_AT_ONCE = 256


def _span(samples: DataFrame) -> tuple[Span, int] | None:
    """The hours of the samples (SAMPLE_SCHEMA), and how many lie outside of them; None where there is no sample."""
    from pyspark.sql import functions as fn

    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    counted = samples.groupBy(hour).agg(fn.count("*").alias("samples")).toArrow()
    if not len(counted):
        return None
    hours, counts = (np.asarray(counted[name], dtype=np.int64) for name in ("hour", "samples"))
    return hourly_sums.span_of(hours, counts)


def _profiled(samples: DataFrame, within: Span, partitions: int) -> DataFrame:
    """Rows of JUDGED_SCHEMA of all partitions; `partitions` is how many tasks judge them."""
    from pyspark.sql import functions as fn
    from pyspark.sql.pandas.types import from_arrow_schema

    blocks = samples.mapInArrow(partial(_blocks, within), from_arrow_schema(BLOCK_SCHEMA))
    block = fn.struct(*(field.name for field in BLOCK_FIELDS))
    keys = ("topic", "partition")
    gathered = blocks.repartition(partitions, *keys).groupBy(*keys).agg(fn.collect_list(block).alias("blocks"))
    return gathered.mapInArrow(partial(_judged, within), from_arrow_schema(profile_file.JUDGED_SCHEMA))


def _blocks(within: Span, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from hourly_sums.blocks(batches, within)


def _judged(within: Span, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, len(batch), _PARTITIONS_AT_ONCE):
            part = batch.slice(start, _PARTITIONS_AT_ONCE)
            yield profile_file.judged(part["topic"], part["partition"], part["blocks"], within)
