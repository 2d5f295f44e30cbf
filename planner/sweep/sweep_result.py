"""What a sweep keeps of its candidates, by what makes one plan better than another: the ranking, and the Pareto front.

Of a small sweep all rows are kept; of a large one the best, the front and a sample. Parts of a sweep are reduced where
they are scored, and put together in any order: the result is the same however the candidates were dealt. A part is an
array of numbers, COLUMNS by candidates; rows for people are made of it at the end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from planner.model.problem import BoolArray, LongArray, Problem, mix
from planner.model.spec import AIMS
from planner.scoring.broker_loads import HOURS
from planner.scoring.score import Scores
from planner.strategies.optimum import Proposal
from planner.sweep.candidates import CANDIDATE_SCHEMA, KAFKA_STRATEGIES, Candidates

# Two tie-breaks that are counted for solved plans alone, UNKNOWN for Kafka's: partitions that gain or lose a replica,
# and the sum over brokers of the squares of the replicas that arrive.
TIES = ("partitions_touched", "arrivals_squared")

# The scores that each of `spec.AIMS` is about, most important first.
AIM_COLUMNS = {
    "leaders_changed": ("leaders_changed", *TIES),
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


def fronts(problem: Problem) -> Iterator[str]:
    """The columns with a front of their own: imbalance first, then what is known of hours and of months to come."""
    known = (True, problem.week is not None, problem.sizes_ahead is not None)
    yield from (name for name, there in zip(_FRONTS, known, strict=True) if there)


def moved_column(problem: Problem) -> str:
    """The score that says how much a plan moves: where sizes are unknown, all plans have the same bytes, none."""
    return "bytes_moved" if problem.sizes_known else "replicas_moved"


RANKING = ranking(AIMS)


def first(columns: Sequence[LongArray], count: int, among: LongArray | None = None) -> LongArray:
    """The places of the first `count` rows when they are sorted by these columns (each (C,)), in that order.

    With `among` (places), of these rows only.
    """
    sure, open_to = np.zeros(0, dtype=np.int64), np.arange(len(columns[0])) if among is None else among
    # Sorting all rows by all columns would take longer than scoring them: only those that tie are looked at further.
    for column in columns:
        missing = count - len(sure)
        if len(open_to) <= missing or not missing:
            break
        values = column[open_to]
        limit = np.partition(values, missing - 1)[missing - 1]
        sure = np.concatenate([sure, open_to[values < limit]])
        open_to = open_to[values == limit]
    found = np.concatenate([sure, open_to[: count - len(sure)]])
    return found[np.lexsort([column[found] for column in reversed(columns)])]


def _unbeaten(moved: LongArray, imbalance: LongArray, order: Sequence[LongArray], valid: LongArray) -> LongArray:
    """Of these rows (places) those that no other beats in both what is moved and imbalance (each (C,)), by those.

    Of rows that are equal in both, the first by the columns of `order`.
    """
    if not len(valid):
        return valid
    # Sorting takes longest, so it is done without the rows that one of the good ones beats in both: nearly all.
    x, y = moved[valid], imbalance[valid]
    good = np.argmin(x / (abs(int(x.max())) + 1) + y / (abs(int(y.max())) + 1))
    valid = valid[(x <= x[good]) | (y <= y[good])]
    by_moved = valid[np.lexsort([imbalance[valid], moved[valid]])]
    so_far = np.minimum.accumulate(imbalance[by_moved])
    # A row is on the front, or equal to one that is, where its imbalance is below that of all that move less.
    starts = np.ones(len(by_moved), dtype=bool)
    starts[1:] = so_far[1:] < so_far[:-1]
    leader = by_moved[np.maximum.accumulate(np.where(starts, np.arange(len(by_moved)), 0))]
    alike = by_moved[(moved[by_moved] == moved[leader]) & (imbalance[by_moved] == imbalance[leader])]
    ordered = alike[np.lexsort([column[alike] for column in (*reversed(order), imbalance, moved)])]
    firsts = np.ones(len(ordered), dtype=bool)
    firsts[1:] = moved[ordered][1:] != moved[ordered][:-1]
    return ordered[firsts]


# `unproven` is 1 where nothing says how few bytes would do at the balance asked for: a baseline, never the winner.
# HOURS are UNKNOWN where no load profile has the hours of the week.
SCORE_COLUMNS = (*(each.name for each in fields(Scores)), *TIES, "least_bytes", "unproven", *HOURS)
SCORE_SCHEMA = pa.schema([*CANDIDATE_SCHEMA, *((name, pa.int64()) for name in SCORE_COLUMNS)])
# What is worked out for a candidate, its number first: the rows of a part.
COLUMNS = ("candidate", *SCORE_COLUMNS)
_AT = {name: at for at, name in enumerate(COLUMNS)}

# What is compared with what is moved, each by how much of it counts as worse: of months more are better.
_FRONTS = {"imbalance_ppm": 1, "worst_hour": 1, "months_until_full": -1}

TOP = 10
# A sweep of no more candidates keeps all of its rows; of a larger one about as many are kept as a sample. A row takes
# some 300 bytes of memory.
ALL_ROWS = 100_000
# Of these strategies every row is kept: a solved plan takes a millisecond at the least, so they are never many.
_ALWAYS = ("unchanged", "optimum")
# Parts are put together once they hold so many candidates more than what is kept for certain.
_MERGE_AT = 50_000


@dataclass(frozen=True)
class SweepResult:
    """What is known of all candidates of a sweep; all tables are of SCORE_SCHEMA.

    `by_strategy`: how many were evaluated. `scores`: the rows that are kept, by candidate; `front`: the Pareto front
    by what moves; `top`: the best by `ranking`. `proposals`: the plans that were made here, by candidate.
    """

    by_strategy: Mapping[str, int]
    scores: pa.Table
    front: pa.Table
    top: pa.Table
    proposals: Mapping[int, Proposal] = field(default_factory=dict, compare=False, repr=False)

    @property
    def evaluated(self) -> int:
        """How many candidates there were."""
        return sum(self.by_strategy.values())

    def kafka(self) -> pa.Table:
        """The kept rows of Kafka's own placements."""
        names = self.scores["strategy"].to_numpy(zero_copy_only=False)
        return self.scores.filter(pa.array(np.isin(names, KAFKA_STRATEGIES)))


def sampled(numbers: LongArray, count: int) -> BoolArray:
    """(C,): True for the candidates of the sample of a sweep of `count`: all, or one of each so many neighbors.

    Which one is a hash of where the neighbors stand, so that the sample has no period in common with the candidates.
    """
    stride = -(-count // ALL_ROWS)
    block, at = np.divmod(numbers, max(stride, 1))
    return at == (mix(block.astype(np.uint64)) % np.uint64(max(stride, 1))).astype(np.int64)


def keep(problem: Problem, candidates: Candidates, part: LongArray) -> LongArray:
    """Of a part (COLUMNS, C) the candidates that the result needs, in the same order.

    keep(a + b) is keep(keep(a) + keep(b)) but for the order.
    """
    if len(candidates) <= ALL_ROWS:
        return part
    numbers = part[0]
    order = [part[_AT[name]] for name in ranking_of(problem)]
    kept = sampled(numbers, len(candidates)) | candidates.of(numbers, *_ALWAYS)
    kept[first(order, TOP)] = True
    kafka = np.flatnonzero(candidates.of(numbers, *KAFKA_STRATEGIES))
    kept[first(order, 1, kafka)] = True
    valid = np.flatnonzero(part[_AT["violations"]] == 0)
    for even in fronts(problem):
        kept[_unbeaten(part[_AT[moved_column(problem)]], _FRONTS[even] * part[_AT[even]], order, valid)] = True
    return part[:, kept]


def kept(problem: Problem, candidates: Candidates, parts: Iterable[LongArray]) -> LongArray:
    """What is kept of all these parts (COLUMNS, C), put together as they come."""
    whole, waiting, size = _joined(problem, candidates, []), list[LongArray](), 0
    for part in parts:
        waiting.append(keep(problem, candidates, part))
        size += waiting[-1].shape[1]
        # As much again as there is, so that what is kept for certain isn't copied again and again.
        if size > max(_MERGE_AT, whole.shape[1]):
            whole, waiting, size = _joined(problem, candidates, [whole, *waiting]), [], 0
    return _joined(problem, candidates, [whole, *waiting])


def _joined(problem: Problem, candidates: Candidates, parts: Sequence[LongArray]) -> LongArray:
    """What is kept of parts of which each has been reduced already; of a single one, all of it."""
    some = [part for part in parts if part.shape[1]]
    if len(some) > 1:
        return keep(problem, candidates, np.concatenate(some, axis=1))
    return some[0] if some else np.zeros((len(COLUMNS), 0), dtype=np.int64)


def most_rows(by_strategy: Mapping[str, int]) -> int:
    """How many rows may be kept of a sweep of so many candidates: the best are far fewer than a sample."""
    solved = sum(by_strategy.get(name, 0) for name in _ALWAYS)
    return min(sum(by_strategy.values()), 2 * ALL_ROWS + solved)


def rows(candidates: Candidates, part: LongArray) -> pa.Table:
    """The candidates of a part (COLUMNS, C) as rows of SCORE_SCHEMA, by candidate."""
    if (np.diff(part[0]) < 0).any():
        part = part[:, np.argsort(part[0])]
    columns = [*candidates.rows(part[0]).columns, *(pa.array(column) for column in part[1:])]
    return pa.Table.from_arrays(columns, schema=SCORE_SCHEMA)


def result(
    problem: Problem,
    scores: pa.Table,
    by_strategy: Mapping[str, int] | None = None,
    proposals: Mapping[int, Proposal] | None = None,
) -> SweepResult:
    """The result of the rows that are kept, by candidate; without `by_strategy` they are all there were."""
    order = ranking_of(problem)
    counts = by_strategy or {row["values"]: row["counts"] for row in scores["strategy"].value_counts().to_pylist()}
    return SweepResult(
        counts, scores, front(scores, order, moved_column(problem)), best(scores, TOP, order), proposals or {}
    )


def best(scores: pa.Table, count: int, order: Sequence[str] = RANKING) -> pa.Table:
    """The first `count` rows in the order of these columns."""
    return scores.take(pa.array(first([_column(scores, name) for name in order], count)))


def front(
    scores: pa.Table, order: Sequence[str] = RANKING, moved: str = "bytes_moved", even: str = "imbalance_ppm"
) -> pa.Table:
    """Valid rows that no other beats in both what is moved and imbalance, by those; of equal ones, the first in order.

    `moved` is `ranking.moved_column`, `even` one of `fronts`.
    """
    columns = [_column(scores, name) for name in (moved, even, *order)]
    valid = np.flatnonzero(_column(scores, "violations") == 0)
    return scores.take(pa.array(_unbeaten(columns[0], _FRONTS[even] * columns[1], columns[2:], valid)))


def _column(table: pa.Table, name: str) -> LongArray:
    return np.asarray(table[name], dtype=np.int64)
