"""The sweep on Spark: a task is a number, and what comes back is what the result keeps. Same result as `evaluate.run`.

A fleet is many sweeps in one Spark job. A worker makes, scores and reduces the candidates of its tasks by itself. It
keeps the problem it works on, and what `evaluate` derives from it, for as long as its process lives.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from planner.model.problem import LongArray, Problem
from planner.sweep import evaluate, sweep_result
from planner.sweep.candidates import ASKED, Candidates
from planner.sweep.candidates_file import ScoresFolder
from planner.sweep.evaluate import Proposals, Search
from planner.sweep.sweep_result import COLUMNS, SweepResult
from spark_jobs.carrier import Progress, Received, carried, tasks_for
from spark_jobs.session import Opening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `sweep` is the number of a candidate's sweep within the fleet.
SCHEMA = pa.schema([("sweep", pa.int32()), *((name, pa.int64()) for name in COLUMNS)])
# A task of more candidates than this takes minutes; when its executor dies, all of it is done again.
MOST_A_TASK = 20_000_000


class Job(NamedTuple):
    """What every task knows: the sweeps, whether each has tables to score from, where all rows go, and those sweeps
    whose plan that was asked for isn't made by a task.
    """

    sweeps: tuple[tuple[Candidates, bool], ...]
    scores: tuple[ScoresFolder | None, ...]
    without_asked: frozenset[int]
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
    return run_fleet(spark, [Search(problem, candidates)], partitions=partitions, progress=progress)[0]


def run_fleet(
    spark: SparkSession,
    fleet: Sequence[Search],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> tuple[SweepResult, ...]:
    """Evaluates the candidates of every sweep, all in one job; reports finished tasks.

    The job has `partitions` tasks: by default two a core, on a cluster at least 16, and so many that none is long. The
    results, one a sweep, depend on neither their number, nor that of the workers, nor on which of them die meanwhile,
    nor on what else is in the fleet.
    """
    _clear(fleet)
    parts = _parts(spark, fleet, frozenset(), partitions, progress)
    return tuple(evaluate.result(*each[:2], iter([part])) for each, part in zip(fleet, parts, strict=True))


def run_beside(
    opening: Opening[list[LongArray]],
    fleet: Sequence[Search],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
) -> tuple[SweepResult, ...]:
    """As `run_fleet`, in a session that still opens. Until it is there this thread solves the plans that were asked
    for, one after the other; it goes on with the last one while the workers sweep.
    """
    lock, mine, full = threading.Lock(), list[int](), threading.Event()

    def job(spark: SparkSession) -> list[LongArray]:
        with lock:
            full.set()
        return _parts(spark, fleet, frozenset(mine), partitions, progress)

    _clear(fleet)
    opening.submit(job)
    made: dict[int, tuple[LongArray, Proposals]] = {}
    for number, each in enumerate(fleet):
        with lock:
            if full.is_set() or opening.error is not None:
                break
            mine.append(number)
        made[number] = _asked(each)
    results = []
    for number, (each, part) in enumerate(zip(fleet, opening.result(), strict=True)):
        own, known = made.get(number, (part[:, :0], {}))
        results.append(evaluate.result(*each[:2], iter([part, own]), known))
    return tuple(results)


def _asked(search: Search) -> tuple[LongArray, Proposals]:
    """The plan that was asked for as a part (COLUMNS, 1), and itself where there is one."""
    problem, candidates, scores = search
    proposals = evaluate.asked_for(problem, candidates)
    part = evaluate.scored(problem, candidates, np.array([ASKED]), proposals)
    if scores is not None:
        list(scores.copied(candidates, [part], "asked"))
    return part, proposals


def _clear(fleet: Sequence[Search]) -> None:
    for each in fleet:
        if each.scores is not None:
            each.scores.clear()


def _parts(
    spark: SparkSession,
    fleet: Sequence[Search],
    without_asked: frozenset[int],
    partitions: int | None,
    progress: Progress | None,
) -> list[LongArray]:
    """(COLUMNS, C) of every sweep: what the tasks have kept."""
    count = sum(len(each.candidates) for each in fleet)
    tasks = max(1, min(partitions or max(tasks_for(spark), -(-count // MOST_A_TASK)), count))
    sweeps = tuple((each.candidates, evaluate.has_tables(each.problem)) for each in fleet)
    values = [
        Job(sweeps, tuple(each.scores for each in fleet), without_asked, tasks),
        *(each.problem for each in fleet),
    ]
    table = carried(spark, values, _evaluated, SCHEMA, tasks, progress)
    kept = np.stack([np.asarray(table[name], dtype=np.int64) for name in SCHEMA.names])
    return [kept[1:, kept[0] == number] for number in range(len(fleet))]


def _evaluated(received: Received, task: int) -> Iterator[pa.Table]:
    """What one task answers: the rows that each sweep's result keeps of the task's share."""
    job: Job = received[0]
    for sweep, pieces in groupby(evaluate.pieces(job.sweeps, task, job.tasks), attrgetter("sweep")):
        problem, candidates = received[1 + sweep], job.sweeps[sweep][0]
        skipped = ASKED if sweep in job.without_asked else -1
        shares = (numbers[numbers != skipped] for _, numbers in evaluate.blocks(pieces))
        parts: Iterator[LongArray] = (evaluate.scored(problem, candidates, numbers) for numbers in shares)
        if (scores := job.scores[sweep]) is not None:
            parts = scores.copied(candidates, parts, f"{task:05d}")
        kept = sweep_result.kept(problem, candidates, parts)
        columns = [np.full(kept.shape[1], sweep), *kept]
        yield pa.table([pa.array(*each) for each in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)
