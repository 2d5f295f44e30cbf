"""The sweep on Spark: candidate rows out to the workers, rows with scores back. Same result as `planner.sweep.run`.

Only rows travel. The problem goes to every worker once; a worker keeps it, and what `evaluate` derives from it, for as
long as its process lives.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner import sweep
from planner.model import LongArray, Problem
from spark_jobs.progress import Progress, follow, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows a worker holds at once, whatever the number of candidates.
BATCH_ROWS = 10_000
# More would even out the work better, but every task costs about 0.1 s.
PARTITIONS_PER_CORE = 2
# Costs differ by these columns alone.
COST_COLUMNS = ("strategy", "replicas", "leaders", "topic_replicas", "topic_leaders")
EXPENSIVE = ("optimum", "kafka_striped")

ROWS_PER_BATCH, SLICES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.leafNodeDefaultParallelism"


def run(
    spark: SparkSession,
    problem: Problem,
    candidates: pa.Table,
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> sweep.SweepResult:
    """Evaluates `candidates` (CANDIDATE_SCHEMA) in `partitions` tasks, two a core by default; reports finished tasks.

    The result depends on neither the number of partitions nor that of the workers.
    """
    tasks = max(1, min(partitions or PARTITIONS_PER_CORE * _cores(spark), len(candidates)))
    with _settings(spark, {ROWS_PER_BATCH: str(BATCH_ROWS), SLICES: str(tasks)}), _sent(spark, problem) as payload:
        frame = _frame(spark, candidates, tasks)
        schema = spark.createDataFrame(sweep.SCORE_SCHEMA.empty_table()).schema
        scores = frame.mapInArrow(partial(_evaluate, payload), schema).persist()
        try:
            return _collected(spark, scores, tasks, progress)
        finally:
            scores.unpersist()


def deal(candidates: pa.Table, partitions: int) -> pa.Table:
    """The rows dealt to `partitions`, one chunk each, so that every one gets as much work as the others.

    Rows of like cost are dealt in turn, the dearest first. The chunks' bounds are those at which Spark cuts a local
    table itself (as a Spark Connect server does, which doesn't see the chunks).
    """
    count = len(candidates)
    bounds = np.arange(partitions + 1, dtype=np.int64) * count // partitions
    order = _by_cost(candidates)[np.argsort(_hands(np.diff(bounds)), kind="stable")]
    dealt = candidates.take(pa.array(order)).combine_chunks()
    return pa.concat_tables([dealt.slice(start, end - start) for start, end in pairwise(bounds)])


def _by_cost(candidates: pa.Table) -> LongArray:
    """Row numbers by falling cost; rows that cost the same are neighbours, by candidate."""
    cheap = np.logical_not(np.isin(candidates["strategy"].to_numpy(), EXPENSIVE))
    keyed = candidates.select([*COST_COLUMNS, "candidate"]).append_column("cheap", pa.array(cheap))
    names = ("cheap", *COST_COLUMNS, "candidate")
    return np.asarray(pc.sort_indices(keyed, [(name, "ascending") for name in names]), dtype=np.int64)


def _hands(sizes: LongArray) -> LongArray:
    """The partition of each row in turn; `sizes` differ by one at most, the larger ones get a last round."""
    least = int(sizes.min())
    return np.concatenate([np.tile(np.arange(len(sizes)), least), np.flatnonzero(sizes > least)])


def _frame(spark: SparkSession, candidates: pa.Table, partitions: int) -> DataFrame:
    """A DataFrame of one partition a chunk: a classic session makes a partition of every batch that it is given."""
    largest = -(-len(candidates) // partitions)
    with _settings(spark, {ROWS_PER_BATCH: str(max(largest, 1))}):
        return spark.createDataFrame(deal(candidates, partitions))


def _evaluate(payload: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does. `payload` is the pickled problem, or Spark's broadcast of it."""
    problem = _unpickled(payload if isinstance(payload, bytes) else payload.value)
    for batch in batches:
        yield sweep.evaluate(problem, batch)


@lru_cache(maxsize=1)
def _unpickled(data: bytes) -> Problem:
    """Once a process: `evaluate` keeps what it derives from a problem for this very object."""
    problem: Problem = pickle.loads(data)
    return problem


def _collected(spark: SparkSession, scores: DataFrame, tasks: int, progress: Progress | None) -> sweep.SweepResult:
    with follow(spark, progress, tasks):
        table = scores.toArrow()
    table = table.cast(sweep.SCORE_SCHEMA).sort_by("candidate").combine_chunks()
    return sweep.SweepResult(table, _rows(table, _front(scores)), _rows(table, _top(scores)))


def _rows(table: pa.Table, chosen: DataFrame) -> pa.Table:
    """The rows of the table whose candidates Spark has chosen, in that order."""
    wanted = np.asarray(chosen.toArrow()["candidate"], dtype=np.int64)
    return table.take(pa.array(np.searchsorted(np.asarray(table["candidate"]), wanted)))


def _top(scores: DataFrame) -> DataFrame:
    return scores.orderBy(*sweep.RANKING).limit(sweep.TOP).select("candidate")


def _front(scores: DataFrame) -> DataFrame:
    """Candidates on the Pareto front: the best of all with equal bytes, if more even than any that moves fewer."""
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    first, *rest = sweep.FRONT_ORDER
    best = scores.where("violations = 0").groupBy(first).agg(fn.min(fn.struct(*rest)).alias("best"))
    fewer = Window.orderBy(first).rowsBetween(Window.unboundedPreceding, -1)
    so_far = best.select(first, "best.*").withColumn("so_far", fn.min("imbalance_ppm").over(fewer))
    ahead = fn.col("so_far").isNull() | (fn.col("imbalance_ppm") < fn.col("so_far"))
    return so_far.where(ahead).orderBy(first).select("candidate")


def _cores(spark: SparkSession) -> int:
    """How many tasks run at once; a Connect session can't say, but cuts a range into as many pieces."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as fn

    return int(spark.range(4096).select(fn.spark_partition_id()).distinct().count())


@contextmanager
def _sent(spark: SparkSession, problem: Problem) -> Iterator[Any]:
    """The pickled problem as something that a function on its way to the workers may hold."""
    data = pickle.dumps(problem)
    if is_connect(spark):
        yield data
        return
    broadcast = spark.sparkContext.broadcast(data)
    try:
        yield broadcast
    finally:
        broadcast.destroy()


@contextmanager
def _settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
