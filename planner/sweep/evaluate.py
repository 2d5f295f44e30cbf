"""Evaluating candidates: rows in, rows with scores out. Pure, so that it runs the same here and in Spark's workers.

A candidate is made, judged and scored where it is evaluated; only its row travels. What is kept is the ranking, by the
problem's aims, the Pareto front (bytes moved, or replicas where sizes are unknown, against imbalance) and every row,
for a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.errors import InfeasibleError
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.seeded_numbers import draws
from planner.model.spec import AIMS
from planner.scoring import growth_scenarios, score
from planner.scoring.score import Scores, ScoringBasis
from planner.strategies.catalog import STRATEGIES, UNKNOWN, Proposal
from planner.sweep import classic_tables
from planner.sweep.candidates import ALL_SCENARIOS, CANDIDATE_SCHEMA, row
from planner.sweep.classic_tables import Tables

# Two tie-breaks that are counted for solved plans alone, UNKNOWN for Kafka's: partitions that gain or lose a replica,
# and the sum over brokers of the squares of the replicas that arrive. `unproven` is 1 where nothing says how few bytes
# would do at the balance asked for: a baseline, never the winner.
_TIES = ("partitions_touched", "arrivals_squared")
SCORE_COLUMNS = (*(field.name for field in fields(Scores)), *_TIES, "least_bytes", "unproven")
SCORE_SCHEMA = pa.schema([*CANDIDATE_SCHEMA, *((name, pa.int64()) for name in SCORE_COLUMNS)])

# The scores that each of `model.AIMS` is about, most important first.
AIM_COLUMNS = {
    "leaders_changed": ("leaders_changed", *_TIES),
    "cross_rack_bytes": ("cross_rack_bytes",),
    "makespan": ("busiest_bytes",),
    "peak_disk": ("peak_disk_ppm",),
}


# What `resilience.survive` asks for comes before the balance: the partitions of the worst single failure.
SURVIVE_COLUMNS: dict[str, tuple[str, ...]] = {
    "none": (),
    "broker": ("broker_offline", "broker_refused"),
    "rack": ("rack_offline", "rack_refused"),
}


def ranking(aims: Iterable[str], survive: str = "none", *, sizes_known: bool = True) -> tuple[str, ...]:
    """What makes one plan better than another, most important first; the row's number settles what is left.

    Aims that aren't named come after those that are, in their usual order. Replicas moved come after all of them,
    unless no sizes are known: then they are what is moved.
    """
    first = ("violations", "unproven", *SURVIVE_COLUMNS[survive], "excess", "scenario_excess", "bytes_moved")
    by_aims = [column for aim in dict.fromkeys((*aims, *AIMS)) for column in AIM_COLUMNS[aim]]
    moved = (*by_aims, "replicas_moved") if sizes_known else ("replicas_moved", *by_aims)
    return (*first, *moved, "imbalance_ppm", "candidate")


def ranking_of(problem: Problem) -> tuple[str, ...]:
    """The ranking of a problem's plans."""
    return ranking(problem.aims, problem.survive, sizes_known=problem.sizes_known)


RANKING = ranking(AIMS)
TOP = 10
# Rows evaluated between two reports of progress.
_BATCH_ROWS = 20_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class SweepResult:
    """All scores by candidate; the Pareto front by what moves; and the best rows by `ranking`. All of SCORE_SCHEMA."""

    scores: pa.Table
    front: pa.Table
    top: pa.Table


def result(problem: Problem, scores: pa.Table) -> SweepResult:
    """The result of all scores, by candidate."""
    order = ranking_of(problem)
    moved = "bytes_moved" if problem.sizes_known else "replicas_moved"
    return SweepResult(scores, front(scores, order, moved), best(scores, TOP, order))


def run(problem: Problem, candidates: pa.Table, progress: Progress | None = None) -> SweepResult:
    """The sweep in this process."""
    done, parts = 0, []
    for batch in candidates.to_batches(max_chunksize=_BATCH_ROWS):
        parts.append(evaluate(problem, batch))
        done += len(batch)
        if progress:
            progress(done, len(candidates))
    scores = pa.Table.from_batches(parts, schema=SCORE_SCHEMA)
    return result(problem, scores)


def evaluated(problem: Problem, candidates: pa.Table) -> pa.Table:
    """The scores of a few candidates, in this process."""
    return pa.Table.from_batches([evaluate(problem, batch) for batch in candidates.to_batches()], schema=SCORE_SCHEMA)


def evaluate(problem: Problem, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch with their scores, in the same order."""
    basis = _yardstick(problem)
    columns = np.empty((len(SCORE_COLUMNS), len(batch)), dtype=np.int64)
    columns[-4:] = [[UNKNOWN], [UNKNOWN], [UNKNOWN], [1]]
    rest = np.ones(len(batch), dtype=bool)
    classic = pc.equal(batch["strategy"], "kafka_classic").to_numpy(zero_copy_only=False)
    if classic.any() and classic_tables.worthwhile(basis):
        columns[:-4, classic] = _columns(_classic(basis, batch, classic))
        rest &= ~classic
    table = pa.Table.from_batches([batch])
    for at in np.flatnonzero(rest):
        columns[:, at] = _one(basis, table, int(at))
    arrays = [*batch.columns, *(pa.array(column) for column in columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCORE_SCHEMA)


def propose(problem: Problem, table: pa.Table, number: int) -> Proposal:
    """The assignment of a row of a table of candidates or scores, made again."""
    candidate = row(table, number)
    return STRATEGIES[candidate.strategy](planned_for(problem, table["scenarios"][number].as_py()), candidate)


def planned_for(problem: Problem, which: str) -> Problem:
    """The problem as a row with these `scenarios` looks at it: with all of its own, or at today's bytes alone."""
    return problem if which == ALL_SCENARIOS or not problem.scenario_names else growth_scenarios.without(problem)


def best(scores: pa.Table, count: int, order: Sequence[str] = RANKING) -> pa.Table:
    """The first `count` rows in the order of these columns."""
    return scores.take(pc.select_k_unstable(scores, count, [(name, "ascending") for name in order]))


def front(scores: pa.Table, order: Sequence[str] = RANKING, moved: str = "bytes_moved") -> pa.Table:
    """Valid rows that no other beats in both what is moved and imbalance, by those; of equal ones, the first in order.

    Where sizes are unknown what is moved are replicas: all rows have the same bytes, none.
    """
    valid = scores.filter(pc.equal(scores["violations"], 0))
    names = dict.fromkeys((moved, "imbalance_ppm", *order))
    by_moved = pc.sort_indices(valid, [(name, "ascending") for name in names])
    imbalance = valid["imbalance_ppm"].to_numpy()[by_moved.to_numpy()]
    so_far = np.minimum.accumulate(imbalance)
    first = np.ones(len(imbalance), dtype=bool)
    first[1:] = imbalance[1:] < so_far[:-1]
    return valid.take(by_moved.filter(pa.array(first)))


@lru_cache(maxsize=1)
def _yardstick(problem: Problem) -> ScoringBasis:
    return ScoringBasis.of(problem)


@lru_cache(maxsize=1)
def _tables(basis: ScoringBasis) -> Tables:
    return classic_tables.make(basis)


def _classic(basis: ScoringBasis, batch: pa.RecordBatch, rows: BoolArray) -> Scores:
    seeds = _numbers(batch, "seed")[rows]
    topics, brokers = len(basis.problem.topic_names), int(basis.problem.targets.sum())
    starts, shifts = draws(seeds, topics, brokers)
    return classic_tables.scores(
        basis,
        _tables(basis),
        _given(_numbers(batch, "start_index")[rows], starts),
        _given(_numbers(batch, "next_replica_shift")[rows], shifts),
    )


def _numbers(batch: pa.RecordBatch, name: str) -> LongArray:
    return np.asarray(batch[name].to_numpy(zero_copy_only=False), dtype=np.int64)


def _given(column: LongArray, drawn: IntArray) -> IntArray:
    """The column's value for every topic where it is one, else what was drawn: (C, T)."""
    return np.where(column[:, None] >= 0, column[:, None], drawn).astype(np.int32)


def _columns(scores: Scores) -> LongArray:
    return np.stack([getattr(scores, field.name) for field in fields(Scores)])


def _one(basis: ScoringBasis, table: pa.Table, number: int) -> LongArray:
    """The score columns of one row; a strategy that has no answer for this problem gets a violation a partition."""
    try:
        proposal = propose(basis.problem, table, number)
    except InfeasibleError:
        failed = {"violations": max(basis.problem.rows, 1), "least_bytes": UNKNOWN, "unproven": 1}
        return np.array([failed.get(name, 0) for name in SCORE_COLUMNS])
    candidate = row(table, number)
    asked = proposal.least_bytes != UNKNOWN and candidate.balance == basis.problem.balance
    unproven = candidate.strategy != "unchanged" and not asked
    scores = _columns(score.score(basis, proposal.assignment))[:, 0]
    solved = candidate.strategy in ("unchanged", "optimum")
    ties = score.ties(basis.problem, proposal.assignment) if solved else (UNKNOWN, UNKNOWN)
    return np.concatenate([scores, ties, [proposal.least_bytes, unproven]])
