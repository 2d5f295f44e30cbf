"""Failures on Spark: chunks of scenarios out to the workers, rows back: the same as `failure_rows.run`.

The study, which knows every stage of the plan, goes to every worker once; a task is a run of chunks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.whatif.failures.failing_brokers import Scenarios
from planner.whatif.failures.failure_rows import CHUNK, ROW_SCHEMA, FailureStudy, evaluate
from spark_jobs.progress import Progress, follow
from spark_jobs.sweep import framed, python_faults_named, received, sent, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `number` is that of the scenarios within those that were asked for.
CHUNK_SCHEMA = pa.schema([("number", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])


def run(
    spark: SparkSession,
    study: FailureStudy,
    wanted: Sequence[Scenarios],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """Every scenario's rows (ROW_SCHEMA), by kind, scenario and stage; reports finished tasks.

    They depend on neither the number of tasks nor that of the workers.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    chunks = _chunks(wanted)
    if not chunks:
        return ROW_SCHEMA.empty_table()
    tasks = max(1, min(partitions or tasks_for(spark), len(chunks)))
    with sent(spark, [(study, tuple(wanted))]) as payload:
        frame = framed(spark, _dealt(chunks, tasks))
        rows = frame.mapInArrow(partial(_evaluate, payload), from_arrow_schema(ROW_SCHEMA))
        with python_faults_named(), follow(spark, progress, tasks):
            table = rows.toArrow().cast(ROW_SCHEMA)
    return pa.concat_tables([_of(each, table) for each in wanted]).combine_chunks()


def _chunks(wanted: Sequence[Scenarios]) -> list[tuple[int, int, int]]:
    return [
        (number, start, min(start + CHUNK, len(each.sets)))
        for number, each in enumerate(wanted)
        for start in range(0, len(each.sets), CHUNK)
    ]


def _dealt(chunks: Sequence[tuple[int, int, int]], tasks: int) -> pa.Table:
    """The chunks as one Arrow chunk a task, dealt in turn."""
    batches = [chunks[task::tasks] for task in range(tasks)]
    tables = [
        pa.Table.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=CHUNK_SCHEMA)
        for rows in batches
    ]
    return pa.concat_tables(tables)


def _evaluate(payload: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    study, wanted = _unpickled(received(payload)[0])
    for batch in batches:
        for row in batch.to_pylist():
            yield from evaluate(study, wanted[row["number"]], row["start"], row["end"]).to_batches()


@lru_cache(maxsize=1)
def _unpickled(data: bytes) -> tuple[FailureStudy, tuple[Scenarios, ...]]:
    """Once a process."""
    values: tuple[FailureStudy, tuple[Scenarios, ...]] = pickle.loads(data)
    return values


def _of(scenarios: Scenarios, table: pa.Table) -> pa.Table:
    """One kind's rows, in whatever order they came back."""
    rows = table.filter(pc.equal(table["of"], scenarios.kind))
    order = np.lexsort([rows["stage"].to_numpy(), rows["scenario"].to_numpy()])
    return rows.take(pa.array(order))
