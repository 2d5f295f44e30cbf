"""The sweep on Spark: a task is a number, and what comes back is what the result keeps. Same result as `evaluate.run`.

A fleet is many sweeps in one Spark job. A worker makes, scores and reduces the candidates of its tasks by itself. It
keeps the problem it works on, and what `evaluate` derives from it, for as long as its process lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.problem import LongArray, Problem
from planner.sweep import dealing, evaluate, sweep_result
from planner.sweep.candidates import Candidates
from planner.sweep.evaluate import Proposals
from planner.sweep.sweep_result import COLUMNS, SweepResult
from spark_jobs.carrier import Received, carried, tasks_for
from spark_jobs.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `sweep` is the number of a candidate's sweep within the fleet.
SCHEMA = pa.schema([("sweep", pa.int32()), *((name, pa.int64()) for name in COLUMNS)])
# A task of more candidates than this takes minutes; when its executor dies, all of it is done again.
MOST_A_TASK = 20_000_000


class Sweep(NamedTuple):
    """One of the sweeps of a fleet; `proposals`: plans that were made before, by candidate."""

    problem: Problem
    candidates: Candidates
    proposals: Proposals = {}  # noqa: RUF012  never changed


class Job(NamedTuple):
    """What every task knows: the sweeps, whether each has tables to score from, and the candidates that are scored."""

    sweeps: tuple[tuple[Candidates, bool], ...]
    done: tuple[tuple[int, ...], ...]
    tasks: int


def run(
    spark: SparkSession,
    problem: Problem,
    candidates: Candidates,
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Evaluates all candidates in `partitions` tasks; see `run_fleet`."""
    return run_fleet(spark, [Sweep(problem, candidates)], partitions=partitions, progress=progress)[0]


def run_fleet(
    spark: SparkSession,
    fleet: Sequence[Sweep],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> tuple[SweepResult, ...]:
    """Evaluates the candidates of every sweep, all in one job; reports finished tasks.

    The job has `partitions` tasks: by default two a core, on a cluster at least 16, and so many that none is long. The
    results, one a sweep, depend on neither their number, nor that of the workers, nor on which of them die meanwhile,
    nor on what else is in the fleet. Plans that were made before are scored here, and not made again unless the
    candidate is chosen from another process.
    """
    count = sum(len(each.candidates) for each in fleet)
    tasks = max(1, min(partitions or max(tasks_for(spark), -(-count // MOST_A_TASK)), count))
    dealt = tuple((each.candidates, evaluate.has_tables(each.problem)) for each in fleet)
    job = Job(dealt, tuple(tuple(each.proposals) for each in fleet), tasks)
    values = [job, *(each.problem for each in fleet)]
    table = carried(spark, values, _evaluated, SCHEMA, tasks, progress)
    return tuple(_result(each, table.filter(pc.equal(table["sweep"], at))) for at, each in enumerate(fleet))


def _evaluated(received: Received, task: int) -> Iterator[pa.Table]:
    """What a task answers: of each sweep what the result keeps of the task's share."""
    job: Job = received[0]
    for number, pieces in groupby(dealing.pieces(job.sweeps, task, job.tasks), attrgetter("sweep")):
        problem, candidates = received[1 + number], job.sweeps[number][0]
        parts = (
            evaluate.scored(problem, candidates, numbers[~np.isin(numbers, job.done[number])])
            for _, numbers in dealing.blocks(pieces)
        )
        kept = sweep_result.kept(problem, candidates, parts)
        columns = [np.full(kept.shape[1], number), *kept]
        yield pa.table([pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def _result(sweep: Sweep, table: pa.Table) -> SweepResult:
    """The result of what the tasks have kept of a sweep, and of what was made before."""
    kept = np.stack([np.asarray(table[name], dtype=np.int64) for name in COLUMNS])
    made = np.array(sorted(sweep.proposals), dtype=np.int64)
    parts: list[LongArray] = [kept, evaluate.scored(sweep.problem, sweep.candidates, made, sweep.proposals)]
    return evaluate.result(sweep.problem, sweep.candidates, iter(parts), sweep.proposals)
