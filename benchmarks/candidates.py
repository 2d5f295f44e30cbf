"""Measures how many candidates one core tries per second: Kafka's placements, made, checked and scored.

If a table of all placements of every topic pays off, candidates are sums of its rows; on larger clusters they are sums
over look-ups. For comparison, candidates are also made as assignments one by one, as for every other strategy, and one
plan is solved. Seconds are CPU seconds of one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import process_time

import numpy as np

from benchmarks import cases as bench_cases
from benchmarks import peers, sweep
from benchmarks.apart import apart
from benchmarks.table import UNKNOWN, Entries, Figures, head, ratio, row
from planner.model import build_problem
from planner.model.problem import Problem
from planner.scoring.score import ScoringBasis, score
from planner.sweep import evaluate, kafka_classic_scores
from planner.sweep.candidates import CandidateRun, Candidates

CASES = ("expand-small", "raise-rf", "add-rack", "expand-mid", "expand-big", "huge")
SEED = "public"
# Replicas placed one by one, and replicas of the candidates scored from tables: each takes about a second.
_PLACED, _FROM_TABLES = 2_000_000, 200_000_000
_BLOCK = 16_384

_COLUMNS = (
    "case",
    "replicas",
    "candidates/s",
    "Astraea's (published, not run here)",
    "× Astraea's",
    "tables made in s",
    "candidates/s from tables or sums",
    "candidates/s one by one",
    "ms to place one",
    "ms to check and score it",
    "s to solve and score a plan",
)


@dataclass(frozen=True)
class Speed:
    """Candidates per second, in both ways; `tables_seconds` is the time to make the tables, None if there are none.

    `place_seconds` and `score_seconds` are per candidate, one by one; `solved_seconds` is of a plan as asked for.
    """

    case: str
    replicas: int
    tables_seconds: float | None
    from_tables_per_second: float | None
    place_seconds: float
    score_seconds: float
    solved_seconds: float = 0

    @property
    def one_by_one_per_second(self) -> float:
        """Candidates per second without tables."""
        return 1 / (self.place_seconds + self.score_seconds)

    @property
    def per_second(self) -> float:
        """Candidates per second in a sweep."""
        return self.from_tables_per_second or self.one_by_one_per_second


def entries(cases: Sequence[str] = CASES) -> Entries:
    """The speeds as Markdown, each line as soon as it is measured."""
    yield from (f"## Candidates a second on one core, seed `{SEED}`", "", *head(_COLUMNS))
    for case in cases:
        speed = apart(measure, case)
        yield Figures("candidates", {**asdict(speed), "per_second": speed.per_second})
        yield row(_cells(speed))


def measure(case: str) -> Speed:
    """Tries candidates of a case in this process, as a sweep does, and one by one."""
    problem = build_problem.build(bench_cases.to_spec(bench_cases.make(case, SEED)))
    replicas = int(problem.replication_factors.sum())
    tables, from_tables = _from_tables(problem, _FROM_TABLES // replicas)
    place_seconds, score_seconds = _one_by_one(problem, min(max(_PLACED // replicas, 10), 2_000))
    solved = Candidates((CandidateRun("optimum", 1, problem.balance),))
    # The first run also imports the solver's modules, so only the second one counts.
    for _ in range(2):
        started = process_time()
        evaluate.scored(problem, solved, np.zeros(1, dtype=np.int64))
    return Speed(case, replicas, tables, from_tables, place_seconds, score_seconds, process_time() - started)


def _from_tables(problem: Problem, count: int) -> tuple[float | None, float | None]:
    """Seconds to make the tables or look-ups, with the first candidate, and candidates per second after that."""
    basis = ScoringBasis.of(problem)
    if not (kafka_classic_scores.has_tables(basis) or kafka_classic_scores.has_sums(basis)):
        return None, None
    drawn, numbers = sweep.drawn(problem, count), np.arange(count, dtype=np.int64)
    started = process_time()
    evaluate.scored(problem, drawn, numbers[:1])
    tables_made = process_time()
    for begin in range(0, count, _BLOCK):
        evaluate.scored(problem, drawn, numbers[begin : begin + _BLOCK])
    return tables_made - started, count / (process_time() - tables_made)


def _one_by_one(problem: Problem, count: int) -> tuple[float, float]:
    """Seconds per candidate: to place it, and to check and score it."""
    rows = sweep.drawn(problem, count + 1)
    basis = ScoringBasis.of(problem)
    score(basis, evaluate.propose(problem, rows, 0).assignment)
    started = process_time()
    assignments = [evaluate.propose(problem, rows, number).assignment for number in range(1, count + 1)]
    all_placed = process_time()
    for assignment in assignments:
        score(basis, assignment)
    return (all_placed - started) / count, (process_time() - all_placed) / count


def _cells(speed: Speed) -> tuple[str, ...]:
    peer = peers.candidates_per_second(speed.case)
    return (
        speed.case,
        f"{speed.replicas:,}",
        f"{speed.per_second:,.0f}",
        UNKNOWN if peer is None else f"{peer:,g}",
        UNKNOWN if peer is None else ratio(speed.per_second, peer),
        UNKNOWN if speed.tables_seconds is None else f"{speed.tables_seconds:.2f}",
        UNKNOWN if speed.from_tables_per_second is None else f"{speed.from_tables_per_second:,.0f}",
        f"{speed.one_by_one_per_second:,.0f}",
        f"{speed.place_seconds * 1e3:.2f}",
        f"{speed.score_seconds * 1e3:.2f}",
        f"{speed.solved_seconds:.2f}",
    )
