"""Which candidates a sweep keeps: the best by the ranking, the Pareto fronts, and a sample of the rest.

A small sweep keeps all rows. Parts of a sweep are reduced where they are scored, and merged in any order: the result
doesn't depend on how the candidates were dealt. A part is an array of numbers (COLUMNS, candidates); at the end it
becomes rows for people. On a Pareto front is what no other candidate beats both in what it moves and in evenness:
the imbalance, and, if a load profile is given, the worst hour and the months until a disk is full.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from planner.model.problem import BoolArray, LongArray, Problem, hash64
from planner.model.spec import AIMS
from planner.scoring.broker_loads import HOURS
from planner.scoring.score import Scores
from planner.strategies.optimum import Proposal
from planner.sweep.candidates import CANDIDATE_SCHEMA, KAFKA_STRATEGIES, SOLVED, Candidates

# Two tie-breaks, counted only for solved plans (UNKNOWN for Kafka's): partitions that gain or lose a replica, and the
# sum over brokers of the squared number of replicas that arrive.
TIES = ("partitions_touched", "arrivals_squared")

# The scores of each of `spec.AIMS`, most important first.
AIM_COLUMNS = {
    "leaders_changed": ("leaders_changed", *TIES),
    "cross_rack_bytes": ("cross_rack_bytes",),
    "makespan": ("busiest_bytes",),
    "peak_disk": ("peak_disk_ppm",),
}
# What `resilience.survive` asks for ranks before the balance: the partitions lost to the worst single failure.
SURVIVE_COLUMNS: dict[str, tuple[str, ...]] = {
    "none": (),
    "broker": ("broker_offline", "broker_refused"),
    "rack": ("rack_offline", "rack_refused"),
}


def ranking(aims: Iterable[str], survive: str = "none", *, sizes_known: bool = True) -> tuple[str, ...]:
    """The columns that rank plans, most important first; the candidate's number breaks the last ties.

    Aims that aren't named follow those that are, in their usual order. Replicas moved follow all aims, unless no sizes
    are known: then they replace the bytes moved.
    """
    first = ("violations", "unproven", *SURVIVE_COLUMNS[survive], "excess", "scenario_excess", "bytes_moved")
    by_aims = [column for aim in dict.fromkeys((*aims, *AIMS)) for column in AIM_COLUMNS[aim]]
    moved = (*by_aims, "replicas_moved") if sizes_known else ("replicas_moved", *by_aims)
    return (*first, *moved, "imbalance_ppm", "candidate")


def ranking_of(problem: Problem) -> tuple[str, ...]:
    """The columns that rank a problem's plans."""
    return ranking(problem.aims, problem.survive, sizes_known=problem.sizes_known)


RANKING = ranking(AIMS)


def first(columns: Sequence[LongArray], count: int, among: LongArray | None = None) -> LongArray:
    """The places of the first `count` rows, sorted by these columns (each (C,)), in this order.

    `among` (places): only of these rows.
    """
    chosen, undecided = np.zeros(0, dtype=np.int64), np.arange(len(columns[0])) if among is None else among
    # Sorting all rows by all columns takes longer than scoring them, so each further column looks only at the ties.
    for column in columns:
        missing = count - len(chosen)
        if len(undecided) <= missing or not missing:
            break
        values = column[undecided]
        limit = np.partition(values, missing - 1)[missing - 1]
        chosen = np.concatenate([chosen, undecided[values < limit]])
        undecided = undecided[values == limit]
    places = np.concatenate([chosen, undecided[: count - len(chosen)]])
    return places[np.lexsort([column[places] for column in reversed(columns)])]


# The scores compared with what a plan moves. 1: more is worse; -1: more is better.
FRONTS = {"imbalance_ppm": 1, "worst_hour": 1, "months_until_full": -1}


def fronts(problem: Problem) -> Iterator[str]:
    """The columns that have a Pareto front: imbalance first, then the worst hour and the months ahead, if known."""
    conditions = (True, problem.week is not None, problem.sizes_ahead is not None)
    yield from (name for name, is_known in zip(FRONTS, conditions, strict=True) if is_known)


def moved_column(problem: Problem) -> str:
    """The score for what a plan moves: replicas if sizes are unknown, because then every plan moves 0 bytes."""
    return "bytes_moved" if problem.sizes_known else "replicas_moved"


def unbeaten(moved: LongArray, imbalance: LongArray, order: Sequence[LongArray], valid: LongArray) -> LongArray:
    """The places, among `valid`, that no other row beats in both `moved` and `imbalance` (each (C,)), sorted by those.

    Of rows that are equal in both, the first by the columns of `order`.
    """
    if not len(valid):
        return valid
    # Sorting takes longest, so first drop the rows that one good row beats in both: nearly all of them.
    x, y = moved[valid], imbalance[valid]
    good = np.argmin(x / (abs(int(x.max())) + 1) + y / (abs(int(y.max())) + 1))
    valid = valid[(x <= x[good]) | (y <= y[good])]
    by_moved = valid[np.lexsort([imbalance[valid], moved[valid]])]
    so_far = np.minimum.accumulate(imbalance[by_moved])
    # A row is on the front, or equal to one on it, if its imbalance is below that of all rows that move less.
    starts = np.ones(len(by_moved), dtype=bool)
    starts[1:] = so_far[1:] < so_far[:-1]
    step_row = by_moved[np.maximum.accumulate(np.where(starts, np.arange(len(by_moved)), 0))]
    equal_rows = by_moved[(moved[by_moved] == moved[step_row]) & (imbalance[by_moved] == imbalance[step_row])]
    ordered = equal_rows[np.lexsort([column[equal_rows] for column in (*reversed(order), imbalance, moved)])]
    firsts = np.ones(len(ordered), dtype=bool)
    firsts[1:] = moved[ordered][1:] != moved[ordered][:-1]
    return ordered[firsts]


# `unproven` is 1 if there is no bound for the balance asked for: such a row is a baseline and never wins. HOURS are
# UNKNOWN if no load profile has the hours of the week.
SCORE_COLUMNS = (*(each.name for each in fields(Scores)), *TIES, "least_bytes", "unproven", *HOURS)
SCORE_SCHEMA = pa.schema([*CANDIDATE_SCHEMA, *((name, pa.int64()) for name in SCORE_COLUMNS)])
# The rows of a part: the candidate's number, then its scores.
COLUMNS = ("candidate", *SCORE_COLUMNS)
_ROW = {name: row for row, name in enumerate(COLUMNS)}


TOP = 10
# A sweep with at most this many candidates keeps all rows; a larger sweep keeps about this many as a sample. A row
# takes about 300 bytes of memory.
ALL_ROWS = 100_000
# All rows of these strategies are kept: a solved plan takes at least a millisecond, so there are never many.
_ALWAYS = ("unchanged", *SOLVED)
# Parts are merged once they hold this many candidates (or as many as are kept already, if that is more).
_MERGE_AT = 50_000


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep; all tables have SCORE_SCHEMA.

    `by_strategy`: how many candidates were evaluated. `scores`: the kept rows, by candidate. `front`: the Pareto front
    by what moves. `top`: the best rows by `ranking`. `proposals`: the plans made in this process, by candidate.
    """

    by_strategy: Mapping[str, int]
    scores: pa.Table
    front: pa.Table
    top: pa.Table
    proposals: Mapping[int, Proposal] = field(default_factory=dict, compare=False, repr=False)

    @property
    def evaluated(self) -> int:
        """How many candidates were evaluated."""
        return sum(self.by_strategy.values())

    def kafka(self) -> pa.Table:
        """The kept rows of Kafka's own placements."""
        names = self.scores["strategy"].to_numpy(zero_copy_only=False)
        return self.scores.filter(pa.array(np.isin(names, KAFKA_STRATEGIES)))


def sampled(numbers: LongArray, count: int) -> BoolArray:
    """(C,): True for the sample of a sweep of `count` candidates: all of them, or one in each block of neighbors.

    A hash of the block's number picks the candidate, so that the sample shares no period with the candidates.
    """
    stride = -(-count // ALL_ROWS)
    block, index = np.divmod(numbers, max(stride, 1))
    return index == (hash64(block.astype(np.uint64)) % np.uint64(max(stride, 1))).astype(np.int64)


def kept_of_part(problem: Problem, candidates: Candidates, part: LongArray) -> LongArray:
    """The candidates of a part (COLUMNS, C) that the result needs, in the same order.

    Parts may be cut anywhere: what is kept of two parts' kept candidates is what is kept of both parts, in any order.
    """
    if len(candidates) <= ALL_ROWS:
        return part
    numbers = part[0]
    order = [part[_ROW[name]] for name in ranking_of(problem)]
    is_kept = sampled(numbers, len(candidates)) | candidates.of(numbers, *_ALWAYS)
    is_kept[first(order, TOP)] = True
    kafka = np.flatnonzero(candidates.of(numbers, *KAFKA_STRATEGIES))
    is_kept[first(order, 1, kafka)] = True
    valid = np.flatnonzero(part[_ROW["violations"]] == 0)
    for score in fronts(problem):
        is_kept[unbeaten(part[_ROW[moved_column(problem)]], FRONTS[score] * part[_ROW[score]], order, valid)] = True
    return part[:, is_kept]


def merged_parts(problem: Problem, candidates: Candidates, parts: Iterable[LongArray]) -> LongArray:
    """The candidates that are kept of all these parts (COLUMNS, C), merged as the parts arrive."""
    merged, waiting, size = _joined(problem, candidates, []), list[LongArray](), 0
    for part in parts:
        waiting.append(kept_of_part(problem, candidates, part))
        size += waiting[-1].shape[1]
        # Merge only when the size has doubled, so that rows that are kept for certain aren't copied many times.
        if size > max(_MERGE_AT, merged.shape[1]):
            merged, waiting, size = _joined(problem, candidates, [merged, *waiting]), [], 0
    return _joined(problem, candidates, [merged, *waiting])


def _joined(problem: Problem, candidates: Candidates, parts: Sequence[LongArray]) -> LongArray:
    """Merges parts that have each been reduced already; a single part is kept whole."""
    filled = [part for part in parts if part.shape[1]]
    if len(filled) > 1:
        return kept_of_part(problem, candidates, np.concatenate(filled, axis=1))
    return filled[0] if filled else np.zeros((len(COLUMNS), 0), dtype=np.int64)


def most_rows(by_strategy: Mapping[str, int]) -> int:
    """The most rows that a sweep of these candidates keeps: the best rows are far fewer than the sample."""
    solved = sum(by_strategy.get(name, 0) for name in _ALWAYS)
    return min(sum(by_strategy.values()), 2 * ALL_ROWS + solved)


def rows(candidates: Candidates, part: LongArray) -> pa.Table:
    """The candidates of a part (COLUMNS, C) as rows of SCORE_SCHEMA, sorted by candidate."""
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
    """The result of the kept rows, sorted by candidate; without `by_strategy`, these rows were all there were."""
    order = ranking_of(problem)
    counts = by_strategy or {row["values"]: row["counts"] for row in scores["strategy"].value_counts().to_pylist()}
    front_rows, top = front(scores, order, moved_column(problem)), best(scores, TOP, order)
    return SweepResult(counts, scores, front_rows, top, proposals or {})


def best(scores: pa.Table, count: int, order: Sequence[str] = RANKING) -> pa.Table:
    """The first `count` rows, sorted by these columns."""
    return scores.take(pa.array(first([_column(scores, name) for name in order], count)))


def front(scores: pa.Table, order: Sequence[str], moved: str = "bytes_moved", even: str = "imbalance_ppm") -> pa.Table:
    """Valid rows that no other row beats in both `moved` and `even`, sorted by those; of equal rows, the first.

    `moved` is `moved_column(problem)`; `even` is one of `fronts(problem)`.
    """
    columns = [_column(scores, name) for name in (moved, even, *order)]
    valid = np.flatnonzero(_column(scores, "violations") == 0)
    return scores.take(pa.array(unbeaten(columns[0], FRONTS[even] * columns[1], columns[2:], valid)))


def _column(scores: pa.Table, name: str) -> LongArray:
    return np.asarray(scores[name], dtype=np.int64)
