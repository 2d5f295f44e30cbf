"""The sweep on Spark: candidate rows out to the workers, rows with scores back. Same result as `evaluate.run`.

A fleet is many clusters in one Spark job: one table of candidates, with a column that says to which of them a row
belongs. Only rows travel. The problems go to every worker once; a worker keeps the one it works on, and what `evaluate`
derives from it, for as long as its process lives.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
import tempfile
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.scoring.score import ScoringBasis
from planner.sweep import classic_tables, evaluate
from planner.sweep.candidates import CANDIDATE_SCHEMA, KNOBS
from spark_jobs.progress import Progress, follow, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows a worker holds at once, whatever the number of candidates.
BATCH_ROWS = 10_000
# More would even out the work better, but every task costs about 0.1 s.
PARTITIONS_PER_CORE = 2
# A cluster's executors may still be on their way when they are counted, and some start only where tasks wait for them.
LEAST_ON_A_CLUSTER = 16
# Rows that are alike in these cost about the same.
COST_COLUMNS = (*KNOBS, "scenarios")
EXPENSIVE = ("optimum", "kafka_striped")

# `spec` is the number of a candidate's problem within the fleet.
SPEC = pa.field("spec", pa.int32())
ROW_SCHEMA = pa.schema([SPEC, *CANDIDATE_SCHEMA])
SCORED_SCHEMA = pa.schema([SPEC, *evaluate.SCORE_SCHEMA])

ROWS_PER_BATCH, SLICES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.leafNodeDefaultParallelism"


def run(
    spark: SparkSession,
    problem: Problem,
    candidates: pa.Table,
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> evaluate.SweepResult:
    """Evaluates `candidates` (CANDIDATE_SCHEMA) in `partitions` tasks; see `run_fleet`."""
    return run_fleet(spark, [(problem, candidates)], partitions=partitions, progress=progress)[0]


def run_fleet(
    spark: SparkSession,
    fleet: Sequence[tuple[Problem, pa.Table]],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> tuple[evaluate.SweepResult, ...]:
    """Evaluates the candidates (CANDIDATE_SCHEMA) of every problem, all in one job; reports finished tasks.

    The job has `partitions` tasks: by default two a core, on a cluster at least 16. The results, one a problem, depend
    on neither their number, nor that of the workers, nor on which of them die meanwhile, nor on what else is in the
    fleet.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    problems = [problem for problem, _ in fleet]
    rows = pa.concat_tables([_numbered(number, table) for number, (_, table) in enumerate(fleet)])
    tasks = max(1, min(partitions or tasks_for(spark), len(rows)))
    with settings(spark, {ROWS_PER_BATCH: str(BATCH_ROWS), SLICES: str(tasks)}), sent(spark, problems) as payload:
        frame = framed(spark, deal(rows, tasks, _with_tables(problems)))
        scores = frame.mapInArrow(partial(_evaluate, payload), from_arrow_schema(SCORED_SCHEMA))
        with python_faults_named(), follow(spark, progress, tasks):
            table = scores.toArrow()
    return tuple(_result(each, table.filter(pc.equal(table["spec"], at))) for at, each in enumerate(problems))


@contextmanager
def python_faults_named() -> Iterator[None]:
    """A SetupError where a job failed as the workers' Python isn't one that can run it; any other error as it is."""
    try:
        yield
    except Exception as error:  # Spark's errors are of many kinds: Python's, py4j's, grpc's
        text = str(error)
        fault = next((told.format(*found.groups()) for sign, told in _FAULTS if (found := re.search(sign, text))), None)
        if fault is None:
            raise
        raise SetupError(f"the sweep failed on Spark's workers: {fault}") from error


_FAULTS = (
    (
        r"ModuleNotFoundError: No module named '([\w.]+)'",
        "their Python has no module {0}; install what kafka-planner depends on for every worker, "
        "and let PYSPARK_PYTHON name that Python",
    ),
    (
        r'Cannot run program "([^"]+)"',
        "there is no Python {0}; let PYSPARK_PYTHON name one that every worker has",
    ),
    (
        r"PYTHON_VERSION_MISMATCH|different version in worker",
        f"their Python isn't {sys.version_info.major}.{sys.version_info.minor}, as this one is; "
        "let PYSPARK_PYTHON name one that is",
    ),
)


def deal(rows: pa.Table, partitions: int, with_tables: Container[int] = ()) -> pa.Table:
    """The rows (ROW_SCHEMA) dealt to `partitions`, one chunk each, so that every one gets as much work as the others.

    Rows of like cost are dealt in turn, the dearest first; within a chunk a problem's rows are neighbours. Kafka's
    placements of a problem in `with_tables` cost next to nothing once its tables are made, so they fill up what is left
    in runs: as few workers as can be make the tables. The chunks' bounds are those at which Spark cuts a local table
    itself (as a Spark Connect server does, which doesn't see the chunks).
    """
    bounds = np.arange(partitions + 1, dtype=np.int64) * len(rows) // partitions
    specs = np.asarray(rows["spec"], dtype=np.int32)
    filling = np.isin(specs, [spec for spec in np.unique(specs) if spec in with_tables]) & _is(rows, "kafka_classic")
    by_cost = _by_cost(rows, filling)
    hands = _hands(np.diff(bounds), int((~filling).sum()))
    dealt = rows.take(pa.array(by_cost[np.lexsort((specs[by_cost], hands))])).combine_chunks()
    return pa.concat_tables([dealt.slice(start, end - start) for start, end in pairwise(bounds)])


def _is(rows: pa.Table, *strategies: str) -> BoolArray:
    return np.isin(rows["strategy"].to_numpy(zero_copy_only=False), strategies)


def _by_cost(rows: pa.Table, last: BoolArray) -> LongArray:
    """Row numbers by falling cost, those marked at the end; rows that cost the same are neighbours, by candidate."""
    keys = {"last": pa.array(last), "cheap": pa.array(~_is(rows, *EXPENSIVE))}
    names = ("spec", "strategy", *COST_COLUMNS, "candidate")
    table = pa.table({**keys, **{name: rows[name] for name in names}})
    return np.asarray(pc.sort_indices(table, [(name, "ascending") for name in (*keys, *names)]), dtype=np.int64)


def _hands(sizes: LongArray, in_turn: int) -> IntArray:
    """The partition of each row: the first `in_turn` rows go round, the others fill one partition after the other.

    `sizes` differ by one at most, the larger ones get a last round.
    """
    least = int(sizes.min())
    rounds = np.concatenate([np.tile(np.arange(len(sizes)), least), np.flatnonzero(sizes > least)])[:in_turn]
    left = sizes - np.bincount(rounds, minlength=len(sizes))
    return np.concatenate([rounds, np.repeat(np.arange(len(sizes)), left)])


def _with_tables(problems: Sequence[Problem]) -> frozenset[int]:
    """The problems whose classic placements are scored by adding up tables."""
    return frozenset(n for n, problem in enumerate(problems) if classic_tables.worthwhile(ScoringBasis.of(problem)))


def _numbered(number: int, table: pa.Table) -> pa.Table:
    """A table of candidates or scores with its problem's number in front."""
    return table.add_column(0, SPEC, pa.array(np.full(len(table), number, dtype=np.int32)))


def framed(spark: SparkSession, dealt: pa.Table) -> DataFrame:
    """A DataFrame of one partition a chunk: a classic session makes a partition of every batch that it is given."""
    largest = max(chunk.num_rows for chunk in dealt.to_batches())
    with settings(spark, {ROWS_PER_BATCH: str(largest)}):
        return spark.createDataFrame(dealt)


def _evaluate(payload: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does. `payload` leads to the pickled problems: Spark's broadcast of them, or the name of a file."""
    pickled = received(payload)
    for batch in batches:
        specs = np.asarray(batch["spec"])
        cuts = [0, *(np.flatnonzero(np.diff(specs)) + 1), len(specs)]
        for start, end in pairwise(cuts):
            rows = batch.slice(start, end - start).select(CANDIDATE_SCHEMA.names)
            scored = evaluate.evaluate(_unpickled(pickled[specs[start]]), rows)
            yield from _numbered(specs[start], pa.Table.from_batches([scored])).to_batches()


def received(payload: Any) -> tuple[bytes, ...]:
    """On a worker: what `sent` has sent, still pickled."""
    pickled: tuple[bytes, ...] = _read(payload) if isinstance(payload, str) else payload.value
    return pickled


@lru_cache(maxsize=1)
def _read(name: str) -> tuple[bytes, ...]:
    """The pickled problems in a file that was sent to the workers; once a process."""
    from pyspark import SparkFiles

    pickled: tuple[bytes, ...] = pickle.loads(Path(SparkFiles.get(name)).read_bytes())
    return pickled


@lru_cache(maxsize=1)
def _unpickled(data: bytes) -> Problem:
    """Once a process and problem: `evaluate` keeps what it derives from a problem for this very object."""
    problem: Problem = pickle.loads(data)
    return problem


def _result(problem: Problem, table: pa.Table) -> evaluate.SweepResult:
    """One problem's rows, in whatever order they came back, as the result of its sweep."""
    scores = table.select(evaluate.SCORE_SCHEMA.names).cast(evaluate.SCORE_SCHEMA).sort_by("candidate").combine_chunks()
    return evaluate.result(problem, scores)


def tasks_for(spark: SparkSession) -> int:
    """How many tasks a job has unless told otherwise: two a core, on a cluster at least 16."""
    # Not above: that module takes packages which executors needn't have.
    from spark_jobs.session import is_local

    local = not is_connect(spark) and is_local(str(spark.sparkContext.master))
    return max(PARTITIONS_PER_CORE * _cores(spark), 1 if local else LEAST_ON_A_CLUSTER)


def _cores(spark: SparkSession) -> int:
    """How many tasks run at once; a Connect session can't say, but cuts a range into as many pieces."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as fn

    return len(pc.unique(spark.range(4096).select(fn.spark_partition_id().alias("piece")).toArrow()["piece"]))


@contextmanager
def sent(spark: SparkSession, problems: Sequence[Any]) -> Iterator[Any]:
    """The pickled problems, or other values, as something that a function on its way to the workers may hold.

    Spark Connect has no broadcasts, and what a function itself holds goes over the wire in one message, which may be
    128 MB at most; a file goes in pieces.
    """
    pickled = tuple(pickle.dumps(problem) for problem in problems)
    if is_connect(spark):
        yield _sent_as_file(spark, pickle.dumps(pickled))
        return
    broadcast = spark.sparkContext.broadcast(pickled)
    try:
        yield broadcast
    finally:
        # Executors that answer only after the session has ended make Java print a stack of its own on stderr.
        if not interrupts.pending():
            broadcast.destroy(blocking=True)


def _sent_as_file(spark: SparkSession, data: bytes) -> str:
    """The name under which the workers find the data; a session takes a name only once, so it is the content's."""
    name = f"planner-problems-{hashlib.sha256(data).hexdigest()}"
    with tempfile.TemporaryDirectory(prefix="planner-spark-") as folder:
        file = Path(folder) / name
        file.write_bytes(data)
        spark.addArtifacts(str(file), file=True)
    return name


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """The session's settings for as long as the block runs."""
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in () if interrupts.pending() else before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
