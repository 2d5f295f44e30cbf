"""The sweep on Spark: candidates as a DataFrame in, scores as a DataFrame out, the front and the best found by Spark.

Rows and scores travel, assignments never do. The problem is broadcast once, each worker process reads it once, and
evaluates Arrow batches of bounded size. What a row's scores are depends on the row and the problem alone, so neither
the master nor the number of partitions can change the result.
"""

from __future__ import annotations

import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import planner
import spark_jobs
from planner.model import Problem
from planner.sweep import FRONT_ORDER, RANKING, SCORE_SCHEMA, TOP, SweepResult
from spark_jobs.progress import Progress, follow, is_connect
from spark_jobs.session import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterable[pa.RecordBatch]

# Tasks a core: enough to even out, few enough that starting them costs nothing.
_TASKS_A_CORE = 2
# Rows that are worth a task of their own.
_ROWS_A_TASK = 50


def run(
    spark: SparkSession,
    problem: Problem,
    candidates: pa.Table,
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Evaluate a table of CANDIDATE_SCHEMA; `progress` is told tasks done and in all."""
    ship_code(spark)
    tasks = partitions or _tasks(spark, len(candidates))
    rows = spark.createDataFrame(candidates).repartition(tasks)
    scores = rows.mapInArrow(_evaluator(_source(spark, problem)), _schema()).persist()
    try:
        with follow(spark, progress, tasks):
            table = scores.toArrow()
        table = table.cast(SCORE_SCHEMA).sort_by("candidate").combine_chunks()
        return SweepResult(table, table.take(_front(scores)), table.take(_top(scores)))
    finally:
        scores.unpersist()


def ship_code(spark: SparkSession) -> None:
    """Send our own code to executors that aren't this machine's."""
    if is_connect(spark):
        spark.addArtifacts(zipped_code(), pyfile=True)
    elif not is_local(spark.sparkContext.master):
        spark.sparkContext.addPyFile(zipped_code())


def _tasks(spark: SparkSession, rows: int) -> int:
    cores = 2 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return max(1, min(cores * _TASKS_A_CORE, rows // _ROWS_A_TASK))


def _source(spark: SparkSession, problem: Problem) -> Callable[[], bytes]:
    """How a worker gets at the pickled problem: a broadcast; with Connect, which has none, the job carries it."""
    pickled = pickle.dumps(problem)
    if is_connect(spark):
        return lambda: pickled
    broadcast = spark.sparkContext.broadcast(pickled)
    return lambda: broadcast.value


def _evaluator(source: Callable[[], bytes]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def evaluate(batches: Batches) -> Iterator[pa.RecordBatch]:
        # Imported in the worker, by name: nothing of ours is pickled by value.
        from planner import sweep as evaluating
        from spark_jobs import sweep as job

        problem = job.unpickled(source())
        for batch in batches:
            yield evaluating.evaluate(problem, batch)

    return evaluate


@lru_cache(maxsize=1)
def unpickled(pickled: bytes) -> Problem:
    """The problem, unpickled once in each worker process: everything that is worked out from it is kept with it."""
    problem: Problem = pickle.loads(pickled)
    return problem


def _schema() -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(SCORE_SCHEMA)


def _top(scores: DataFrame) -> pa.Array:
    """Candidates of the best rows by RANKING."""
    return _candidates(scores.orderBy(*RANKING).limit(TOP))


def _front(scores: DataFrame) -> pa.Array:
    """Candidates of the Pareto front, by bytes moved: of equal bytes the most even, and only what is more even than
    everything cheaper.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rest = [name for name in FRONT_ORDER if name != "bytes_moved"]
    cheapest = scores.filter("violations = 0").groupBy("bytes_moved").agg(f.min(f.struct(*rest)).alias("row"))
    points = cheapest.select("bytes_moved", "row.imbalance_ppm", "row.candidate")
    cheaper = Window.orderBy("bytes_moved").rowsBetween(Window.unboundedPreceding, -1)
    seen = points.withColumn("least", f.min("imbalance_ppm").over(cheaper))
    return _candidates(seen.filter("least IS NULL OR imbalance_ppm < least").orderBy("bytes_moved"))


def _candidates(rows: DataFrame) -> pa.Array:
    """Candidate numbers are places in the sorted table of scores."""
    return rows.select("candidate").toArrow()["candidate"].combine_chunks()


def zipped_code() -> str:
    """A zip of our packages' Python files, the same bytes for the same code."""
    target = Path(tempfile.mkdtemp(prefix="kafka-planner-")) / "kafka_planner_code.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for package in (planner, spark_jobs):
            root = Path(str(package.__file__)).parent
            for file in sorted(root.rglob("*.py")):
                archive.writestr(zipfile.ZipInfo(f"{root.name}/{file.relative_to(root).as_posix()}"), file.read_bytes())
    return str(target)
