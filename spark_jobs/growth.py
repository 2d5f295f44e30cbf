"""Growth on Spark: cases out to the workers, their rows back. The same rows as `lifetime.run`."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from planner.whatif.growth.lifetime import Case, Row, evaluate
from spark_jobs.progress import Progress, follow
from spark_jobs.sweep import framed, python_faults_named, received, sent, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE_SCHEMA = pa.schema([("number", pa.int32())])
ROW_SCHEMA = pa.schema([("number", pa.int32()), ("row", pa.string())])


def run(
    spark: SparkSession,
    cases: Sequence[Case],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Every case's row, in their order, whatever the number of tasks; reports finished tasks."""
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = max(1, min(partitions or tasks_for(spark), len(cases)))
    numbers = [list(range(task, len(cases), tasks)) for task in range(tasks)]
    dealt = pa.concat_tables([pa.table({"number": pa.array(each, pa.int32())}) for each in numbers])
    with sent(spark, cases) as payload:
        frame = framed(spark, dealt.cast(CASE_SCHEMA))
        rows = frame.mapInArrow(partial(_evaluate, payload), from_arrow_schema(ROW_SCHEMA))
        with python_faults_named(), follow(spark, progress, tasks):
            table = rows.toArrow()
    return [json.loads(row["row"]) for row in table.sort_by("number").to_pylist()]


def _evaluate(payload: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    pickled = received(payload)
    for batch in batches:
        numbers = batch["number"].to_pylist()
        rows = [json.dumps(evaluate(pickle.loads(pickled[number]))) for number in numbers]
        yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), pa.array(rows)], schema=ROW_SCHEMA)
