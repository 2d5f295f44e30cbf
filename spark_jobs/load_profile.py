"""A load profile on Spark: samples in any number, a row a partition out.

Spark reads and shuffles; `planner.inputs.load` adds samples up by hour, block by block as they are read, and judges the
hours of each partition where they come together. A task holds one block, or the hours of a few hundred partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planner.inputs.load import hourly_sums, profile_file
from planner.inputs.load.hourly_sums import BLOCK_FIELDS, BLOCK_SCHEMA, HOUR_SECONDS, Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Partitions whose hours a task holds at once: 256 times a year of hours is 70 MB a measure.
_PARTITIONS_AT_ONCE = 256


def span(samples: DataFrame) -> tuple[Span, int] | None:
    """The hours of the samples (SAMPLE_SCHEMA), and how many lie outside of them; None where there is no sample."""
    from pyspark.sql import functions as fn

    hour = fn.expr(f"at div {HOUR_SECONDS}").alias("hour")
    counted = samples.groupBy(hour).agg(fn.count("*").alias("samples")).toArrow()
    if not len(counted):
        return None
    hours, counts = (np.asarray(counted[name], dtype=np.int64) for name in ("hour", "samples"))
    return hourly_sums.span_of(hours, counts)


def profiled(samples: DataFrame, within: Span, partitions: int) -> DataFrame:
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
