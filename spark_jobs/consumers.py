"""The sweep over consumers on Spark: combinations out, scores back. The same as `consumers_sweep.evaluate`."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from planner.model.errors import SetupError
from planner.whatif.consumers import assignors
from planner.whatif.consumers.consumers_sweep import SCORE_SCHEMA, ConsumersStudy, evaluate
from spark_jobs.progress import Progress, follow
from spark_jobs.sweep import framed, python_faults_named, received, sent, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ORDER = [("group", "ascending"), ("assignor", "ascending"), ("members", "ascending"), ("scenario", "ascending")]


def run(
    spark: SparkSession,
    study: ConsumersStudy,
    rows: pa.Table,
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """The scores (SCORE_SCHEMA) of all rows (ROW_SCHEMA), sorted; they don't depend on the number of tasks.

    A module with an assignor of the user's own goes to the workers with the job. SetupError where it has no file.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if not len(rows):
        return SCORE_SCHEMA.empty_table()
    _send_own(spark, rows)
    tasks = max(1, min(partitions or tasks_for(spark), len(rows)))
    dealt = pa.concat_tables([rows.take(list(range(task, len(rows), tasks))).combine_chunks() for task in range(tasks)])
    with sent(spark, [study]) as payload:
        scores = framed(spark, dealt).mapInArrow(partial(_evaluate, payload), from_arrow_schema(SCORE_SCHEMA))
        with python_faults_named(), follow(spark, progress, tasks):
            table = scores.toArrow()
    return table.cast(SCORE_SCHEMA).sort_by(_ORDER).combine_chunks()


def _send_own(spark: SparkSession, rows: pa.Table) -> None:
    """Send the modules of assignors that aren't Kafka's."""
    for assignor in sorted(set(rows["assignor"].to_pylist()) - set(assignors.ASSIGNORS)):
        module = importlib.import_module(assignor.partition(":")[0])
        file = inspect.getsourcefile(module)
        if file is None:
            raise SetupError(f"assignor {assignor!r} has no source file to send; allowed: a module in one .py file")
        spark.addArtifacts(file, pyfile=True)


def _evaluate(payload: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    study = _unpickled(received(payload)[0])
    for batch in batches:
        yield from evaluate(study, batch.to_pylist()).to_batches()


@lru_cache(maxsize=1)
def _unpickled(data: bytes) -> ConsumersStudy:
    """Once a process."""
    study: ConsumersStudy = pickle.loads(data)
    return study
