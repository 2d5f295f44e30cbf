"""The sweep on Spark: a task is a number, and its answer is the rows that the result keeps. Same as `evaluate.run`.

A fleet is many sweeps in one Spark job. A worker makes, scores and reduces the candidates of its tasks by itself. As
long as its process lives, it keeps the problem it works on, and what `evaluate` derives from the problem.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from planner.model.problem import LongArray
from planner.sweep import evaluate, sweep_result
from planner.sweep.candidates import ASKED, Candidates, without_pandas
from planner.sweep.candidates_file import ScoresFolder
from planner.sweep.evaluate import Proposals, Search
from planner.sweep.sweep_result import COLUMNS, SweepResult
from spark_jobs import java
from spark_jobs.spark_jvm import Opening
from spark_jobs.worker_tasks import Progress, SentValues, task_answers, tasks_for

if TYPE_CHECKING:
    from spark_jobs.session import Session

# A task with more candidates takes minutes; if its executor dies, the whole task is repeated.
MOST_A_TASK = 20_000_000


class Done(NamedTuple):
    """What no task has to evaluate: the number of candidates done at the start of each sweep; and the sweeps whose plan
    asked for is done.
    """

    done_counts: tuple[int, ...]
    asked_sweeps: frozenset[int]


class _SweepWork(NamedTuple):
    """The input of every task: the sweeps, whether each has tables, where all rows go, what is done, how many tasks."""

    sweeps: tuple[tuple[Candidates, bool], ...]
    scores: tuple[ScoresFolder | None, ...]
    done: Done
    tasks: int


def run_fleet(
    spark: Session, fleet: Sequence[Search], *, partitions: int | None = None, progress: Progress | None = None
) -> tuple[SweepResult, ...]:
    """Evaluates the candidates of all sweeps in one job; reports finished tasks.

    The job has `partitions` tasks: by default two per core, on a cluster at least 16, and enough that none is long. The
    results, one per sweep, don't depend on the number of tasks or workers, on workers that die meanwhile, or on other
    sweeps in the fleet.
    """
    _clear(fleet)
    parts = _parts(spark, fleet, Done((0,) * len(fleet), frozenset()), partitions, progress)
    return tuple(evaluate.result(*each[:2], iter([part])) for each, part in zip(fleet, parts, strict=True))


def run_beside(
    opening: Opening[list[LongArray]],
    fleet: Sequence[Search],
    *,
    partitions: int | None = None,
    progress: Progress | None = None,
    helps: Progress | None = None,
) -> tuple[SweepResult, ...]:
    """Does the same as `run_fleet` in a session that is still opening. Until its workers are ready, this thread solves
    the plans that were asked for; it finishes the last one while the workers evaluate the rest.

    With `helps`, which is told how many candidates are done, this thread then evaluates other candidates too. It
    releases the session if it has evaluated all of them before the workers are ready.
    """
    share = _OwnShare(fleet, helps)

    def job(spark: Session) -> list[LongArray]:
        return _parts(spark, fleet, share.end(), partitions, progress)

    _clear(fleet)
    opening.submit(job)
    proposals, own_parts = share.evaluated(lambda: opening.error is not None)
    if share.is_complete and helps is not None:
        java.find()  # A missing Java is an error, even for a small sweep.
        opening.release()
        worker_parts = [part[:, :0] for part in own_parts]
    else:
        worker_parts = opening.result()
    return tuple(
        evaluate.result(*each[:2], iter(parts), proposals.get(number))
        for number, (each, *parts) in enumerate(zip(fleet, worker_parts, own_parts, strict=True))
    )


class _OwnShare:
    """The candidates that the driver evaluates until it is told to stop.

    First the plans that were asked for, because the driver needs the certificates of their bounds. Then, if `progress`
    is given, all others, sweep by sweep, in the order of their numbers.
    """

    def __init__(self, fleet: Sequence[Search], progress: Progress | None) -> None:
        self._fleet, self._progress = fleet, progress
        self._lock, self._over = threading.Lock(), False
        self._done_counts, self._asked_sweeps = [0] * len(fleet), set[int]()
        self._ends = tuple(len(each.candidates) for each in fleet)
        self._count, self._total = 0, sum(self._ends)

    @property
    def is_complete(self) -> bool:
        """True if the driver evaluates all candidates."""
        return tuple(self._done_counts) == self._ends

    def end(self) -> Done:
        """Starts no more candidates. Returns those that no task has to evaluate."""
        with self._lock:
            self._over = True
            return Done(tuple(self._done_counts), frozenset(self._asked_sweeps))

    def evaluated(self, has_failed: Callable[[], bool]) -> tuple[dict[int, Proposals], list[LongArray]]:
        """The plans that were asked for, by sweep, and the rows kept of each sweep's candidates (COLUMNS, C)."""
        proposals: dict[int, Proposals] = {}
        for number, each in enumerate(self._fleet):
            with self._lock:
                self._over = self._over or has_failed()
                if self._over:
                    break
                self._asked_sweeps.add(number)
            proposals[number] = evaluate.asked_for(*each[:2])
        kept_rows = []
        for number, (problem, candidates, scores) in enumerate(self._fleet):
            parts = self._parts(number, proposals.get(number), has_failed)
            if scores is not None and (number in proposals or not self._over):
                parts = scores.copied(candidates, parts, "driver")
            kept_rows.append(sweep_result.merged_parts(problem, candidates, parts))
        return proposals, kept_rows

    def _parts(self, sweep: int, proposals: Proposals | None, has_failed: Callable[[], bool]) -> Iterator[LongArray]:
        problem, candidates, _ = self._fleet[sweep]
        if proposals is not None:
            yield evaluate.scored(problem, candidates, np.array([ASKED]), proposals)
        if self._progress is None:
            return
        for _, numbers in evaluate.blocks(evaluate.pieces([(candidates, evaluate.has_tables(problem))])):
            with self._lock:
                self._over = self._over or has_failed()
                if self._over:
                    return
                self._done_counts[sweep] = int(numbers[-1]) + 1
            yield evaluate.scored(problem, candidates, numbers[numbers != ASKED] if proposals is not None else numbers)
            self._count += len(numbers)
            self._progress(self._count, self._total)


def _clear(fleet: Sequence[Search]) -> None:
    for each in fleet:
        if each.scores is not None:
            each.scores.clear()


def _parts(
    spark: Session, fleet: Sequence[Search], done: Done, partitions: int | None, progress: Progress | None
) -> list[LongArray]:
    """(COLUMNS, C) for every sweep: the rows that its tasks have kept."""
    count = sum(len(each.candidates) - done_count for each, done_count in zip(fleet, done.done_counts, strict=True))
    if not count:
        return [np.zeros((len(COLUMNS), 0), dtype=np.int64)] * len(fleet)
    tasks = max(1, min(partitions or max(tasks_for(spark), -(-count // MOST_A_TASK)), count))
    sweeps = tuple((each.candidates, evaluate.has_tables(each.problem)) for each in fleet)
    values = [_SweepWork(sweeps, tuple(each.scores for each in fleet), done, tasks), *(each.problem for each in fleet)]
    tables = task_answers(spark, values, _evaluated, tasks, progress)
    of_sweep: list[list[pa.Table]] = [[] for _ in fleet]
    for table in tables:
        of_sweep[table["sweep"][0].as_py()].append(table)
    return [_widened(each) for each in of_sweep]


def _widened(tables: Sequence[pa.Table]) -> LongArray:
    """(COLUMNS, C): all rows of these tables. Writes each number once, because fresh memory takes the most time."""
    rows, position = np.empty((len(COLUMNS), sum(map(len, tables))), dtype=np.int64), 0
    for table in tables:
        for row, name in zip(rows, COLUMNS, strict=True):
            row[position : position + len(table)] = table[name]
        position += len(table)
    return rows


def _narrowed(column: LongArray) -> pa.Array:
    """Numbers (C,), at least one, in the smallest integer type that holds them."""
    low, high = column.min(), column.max()
    kinds = (np.int8, np.int16, np.int32)
    fits = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return pa.array(column.astype(next(fits, np.int64), copy=False))


def _evaluated(received: SentValues, task: int) -> Iterator[pa.Table]:
    """The answer of one task: the rows of its share that each sweep's result keeps."""
    without_pandas()
    job: _SweepWork = received[0]
    for sweep, pieces in groupby(
        evaluate.pieces(job.sweeps, task, job.tasks, job.done.done_counts), attrgetter("sweep")
    ):
        problem, candidates = received[1 + sweep], job.sweeps[sweep][0]
        skipped = ASKED if sweep in job.done.asked_sweeps else -1
        shares = (numbers[numbers != skipped] for _, numbers in evaluate.blocks(pieces))
        parts: Iterator[LongArray] = (evaluate.scored(problem, candidates, numbers) for numbers in shares)
        if (scores := job.scores[sweep]) is not None:
            parts = scores.copied(candidates, parts, f"{task:05d}")
        rows = sweep_result.merged_parts(problem, candidates, parts)
        if rows.shape[1]:
            columns = [np.full(rows.shape[1], sweep), *rows]
            yield pa.table([*map(_narrowed, columns)], names=["sweep", *COLUMNS])
