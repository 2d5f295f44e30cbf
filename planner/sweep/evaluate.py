"""Evaluates candidates: numbers in, scores out. It runs the same here and in Spark's workers.

Only a table of all scores, if one is asked for, is written to a folder.

A candidate is made, judged and scored in one process; only the rows that the result needs leave this process.

Tasks get their candidates by a fixed rule, from the candidates' numbers. Candidates that are made one by one are dealt
in turn, so that every task gets the same number of solved plans of each kind. Kafka's classic placements take almost no
time once a problem's tables exist; each task gets a contiguous range of them, so that few tasks make the tables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from planner.model.balance import WINDOWS, Balance
from planner.model.errors import InfeasibleError
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring import growth_scenarios, score
from planner.scoring.broker_loads import HOURS, Week
from planner.scoring.score import Scores, ScoringBasis
from planner.strategies.kafka_classic import draws
from planner.strategies.optimum import UNKNOWN, Proposal
from planner.sweep import kafka_classic_scores, sweep_result
from planner.sweep.candidates import ALL_SCENARIOS, ASKED, SOLVED, STRATEGIES, Candidate, Candidates, prove
from planner.sweep.candidates_file import ScoresFolder
from planner.sweep.sweep_result import COLUMNS, SCORE_COLUMNS, SweepResult

# Called with the number of candidates done and the number of all candidates.
Progress = Callable[[int, int], None]
Proposals = Mapping[int, Proposal]

_SCORES, _UNPROVEN = len(fields(Scores)), COLUMNS.index("unproven")


class Search(NamedTuple):
    """A problem with the candidates to evaluate, and the folder for all of their rows, if they are to be written."""

    problem: Problem
    candidates: Candidates
    scores: ScoresFolder | None = None


def run(
    problem: Problem, candidates: Candidates, progress: Progress | None = None, scores: ScoresFolder | None = None
) -> SweepResult:
    """Runs the sweep in this process."""
    proposals = asked_for(problem, candidates)

    def parts() -> Iterator[LongArray]:
        done = 0
        for _, numbers in blocks(pieces([(candidates, has_tables(problem))])):
            yield scored(problem, candidates, numbers, proposals)
            done += len(numbers)
            if progress:
                progress(done, len(candidates))

    if scores is not None:
        scores.clear()
    all_parts = parts() if scores is None else scores.copied(candidates, parts(), f"{0:05d}")
    return result(problem, candidates, all_parts, proposals)


def result(
    problem: Problem, candidates: Candidates, parts: Iterator[LongArray], proposals: Proposals | None = None
) -> SweepResult:
    """The result of all parts (COLUMNS, C) of a sweep; their order doesn't matter."""
    rows = sweep_result.rows(candidates, sweep_result.merged_parts(problem, candidates, parts))
    return sweep_result.result(problem, rows, candidates.by_strategy, proposals)


def evaluated(problem: Problem, candidates: Candidates) -> pa.Table:
    """The rows of a few candidates, in this process."""
    numbers = np.arange(len(candidates), dtype=np.int64)
    return sweep_result.rows(candidates, scored(problem, candidates, numbers))


def scored(
    problem: Problem, candidates: Candidates, numbers: LongArray, proposals: Proposals | None = None
) -> LongArray:
    """(COLUMNS, C): the scores of these candidates (C,); `proposals` are the plans made before, by candidate number."""
    basis, week = _basis(problem), _week(problem)
    topics, brokers = len(problem.topic_names), int(problem.targets.sum())
    columns = np.full((len(COLUMNS), len(numbers)), UNKNOWN, dtype=np.int64)
    columns[0] = numbers
    # Classic placements are scored together, without tie-breaks and without a bound, so they count as unproven.
    scores, hours = slice(1, 1 + _SCORES), slice(-len(HOURS), None)
    columns[_UNPROVEN] = 1
    for part, places, indices in candidates.parts(numbers):
        if part.strategy == "kafka_classic" and (has_tables(problem) or kafka_classic_scores.has_sums(basis)):
            pairs = part.pairs(indices) if part.brokers else draws(part.seeds(indices), topics, brokers)
            drawn = (
                np.broadcast_to(each.reshape(len(indices), -1), (len(indices), topics)).astype(np.int32)
                for each in pairs
            )
            score_all = kafka_classic_scores.by_tables if has_tables(problem) else kafka_classic_scores.by_sums
            columns[scores, places] = _columns(score_all(basis, *drawn))
            if week is not None:
                remade = (propose(problem, candidates, number) for number in numbers[places].tolist())
                columns[hours, places] = np.transpose([week.judged(each.assignment) for each in remade])
            continue
        for place in places.tolist():
            number = int(numbers[place])
            proposal = proposals.get(number) if proposals else None
            columns[1:, place] = _score_one(basis, *candidates.candidate(number), proposal)
    return columns


def asked_for(problem: Problem, candidates: Candidates) -> dict[int, Proposal]:
    """The plan at the balance asked for, with the certificate of its bound; empty if there is no such plan."""
    if len(candidates) <= ASKED or (candidate := candidates.candidate(ASKED))[0].strategy != "optimum":
        return {}
    try:
        return {ASKED: prove(planned_for(problem, candidate[1]), candidate[0])}
    except InfeasibleError:
        return {}


def propose(problem: Problem, candidates: Candidates, number: int) -> Proposal:
    """Makes the assignment of a candidate again."""
    return _proposal(problem, *candidates.candidate(number))


def planned_for(problem: Problem, scenarios: str) -> Problem:
    """The problem that a row with this value of `scenarios` plans for: with all scenarios, or with none."""
    return problem if scenarios == ALL_SCENARIOS or not problem.scenario_names else growth_scenarios.without(problem)


def has_tables(problem: Problem) -> bool:
    """True if Kafka's classic placements are scored from tables."""
    return kafka_classic_scores.has_tables(_basis(problem))


# One problem is cached, because a sweep scores one problem after the other, each in many parts.
@lru_cache(maxsize=1)
def _basis(problem: Problem) -> ScoringBasis:
    return ScoringBasis.of(problem)


@lru_cache(maxsize=1)
def _week(problem: Problem) -> Week | None:
    return Week.of(problem)


def _columns(scores: Scores) -> LongArray:
    return np.stack([getattr(scores, field.name) for field in fields(Scores)])


def _proposal(problem: Problem, candidate: Candidate, scenarios: str) -> Proposal:
    return STRATEGIES[candidate.strategy](planned_for(problem, scenarios), candidate)


def _score_one(basis: ScoringBasis, candidate: Candidate, scenarios: str, proposal: Proposal | None) -> LongArray:
    """(SCORE_COLUMNS,): one candidate. If its strategy finds no placement, each partition counts as a violation."""
    try:
        proposal = proposal or _proposal(basis.problem, candidate, scenarios)
    except InfeasibleError:
        failed = {"violations": max(basis.problem.rows, 1), "least_bytes": UNKNOWN, "unproven": 1}
        failed |= dict.fromkeys(("months_until_full", *HOURS), UNKNOWN)
        return np.array([failed.get(name, 0) for name in SCORE_COLUMNS])
    has_bound = proposal.least_bytes != UNKNOWN and candidate.balance == basis.problem.balance
    unproven = candidate.strategy != "unchanged" and not has_bound
    scores = _columns(score.score(basis, proposal.assignment))[:, 0]
    solved = candidate.strategy in ("unchanged", *SOLVED)
    ties = score.ties(basis.problem, proposal.assignment) if solved else (UNKNOWN, UNKNOWN)
    week = _week(basis.problem)
    hours = [UNKNOWN] * len(HOURS) if week is None else week.judged(proposal.assignment)
    return np.concatenate([scores, ties, [proposal.least_bytes, unproven], hours])


def row_of_given(
    strategy: str, problem: Problem, assignment: IntArray, balance: Balance, scenarios: str
) -> dict[str, Any]:
    """An assignment (P, W) made elsewhere, as a row of SCORE_SCHEMA without number, bound and tie-breaks.

    `balance` and `scenarios` say what the assignment was made for.
    """
    scores, week = score.score(ScoringBasis.of(problem), assignment), Week.of(problem)
    return {
        "strategy": strategy,
        "seed": 0,
        "start_index": -1,
        "next_replica_shift": -1,
        "scenarios": scenarios,
        **{window: str(getattr(balance, window)) for window in WINDOWS},
        **{field.name: int(getattr(scores, field.name)[0]) for field in fields(scores)},
        **dict(zip(HOURS, [-1] * len(HOURS) if week is None else week.judged(assignment), strict=True)),
    }


# Candidates evaluated between two reports of progress: from tables, or one by one. Solved plans are evaluated singly.
_BLOCK, _BLOCK_ONE_BY_ONE = 16_384, 64


class _Piece(NamedTuple):
    """Some candidates of one sweep, whether they are scored from tables, and how many are evaluated at once."""

    sweep: int
    numbers: range
    from_tables: bool
    at_once: int


def pieces(
    sweeps: Sequence[tuple[Candidates, bool]], task: int = 0, tasks: int = 1, done: Sequence[int] = ()
) -> Iterator[_Piece]:
    """The candidates that one of `tasks` tasks evaluates, by sweep. A sweep's bool: its placements have tables.

    `done`: how many candidates of each sweep, counted from the first, are evaluated already.
    """
    parts = []
    for number, (candidates, has_tables) in enumerate(sweeps):
        for run, end in zip(candidates.runs, candidates.ends.tolist(), strict=True):
            numbers = range(max(end - run.count, done[number] if done else 0), end)
            from_tables = has_tables and run.strategy == "kafka_classic"
            at_once = _BLOCK if from_tables else 1 if run.strategy in SOLVED else _BLOCK_ONE_BY_ONE
            parts.append(_Piece(number, numbers, from_tables, at_once))
    tabled = sum(len(each.numbers) for each in parts if each.from_tables)
    start, end = tabled * task // tasks, tabled * (task + 1) // tasks
    single_before = tabled_before = 0
    for each in parts:
        count = len(each.numbers)
        if each.from_tables:
            low, high = (min(max(bound - tabled_before, 0), count) for bound in (start, end))
            dealt, tabled_before = each.numbers[low:high], tabled_before + count
        else:
            dealt = each.numbers[(task - single_before) % tasks :: tasks]
            single_before += count
        if dealt:
            yield each._replace(numbers=dealt)


def blocks(dealt: Iterable[_Piece]) -> Iterator[tuple[int, LongArray]]:
    """Cuts pieces into numbers (C,) to evaluate at once, each with the number of its sweep."""
    for piece in dealt:
        for start in range(0, len(piece.numbers), piece.at_once):
            part = piece.numbers[start : start + piece.at_once]
            yield piece.sweep, np.arange(part.start, part.stop, part.step, dtype=np.int64)
