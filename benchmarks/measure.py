"""Measures one case of the benchmark in this process: the plan, the time of each phase, and the baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks import cases, in_batches
from benchmarks.apart import peak_bytes
from benchmarks.in_batches import InBatches, busiest_bytes
from planner.execution import batch_cutting, partition_changes
from planner.model import build_problem
from planner.model.cluster import PartitionChange
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import BatchRules, Spec, Sweep
from planner.scoring import independent_check, score
from planner.scoring.score import ScoringBasis
from planner.strategies import optimum
from planner.sweep import evaluate
from planner.sweep.candidates import KAFKA_STRATEGIES, Candidates, candidates
from planner.sweep.sweep_result import COLUMNS, first

# How many replicas the sweep of Kafka's seeds places, and the fewest and most candidates. Time is never the limit.
_PLACEMENTS, _FEWEST, _MOST = 20_000_000, 20, 10_000
# A batch of the measured plans copies at most this part of the plan's bytes.
BATCH_SHARE = 10


@dataclass(frozen=True)
class MeasuredPlan:
    """The cost of an assignment and how even it is. `label` says how it was made.

    `violations` counts broken rules, each partition once per rule; spreads are largest minus smallest count over the
    brokers that stay; `topic_replicas_over_ceiling` counts the replicas of a topic on a broker beyond the topic's
    replicas / brokers, rounded up; `size_max_over_mean` is the fullest broker's bytes over the mean.
    """

    label: str
    violations: int
    rack_violations: int
    bytes_moved: int
    replicas_moved: int
    replica_spread: int
    leader_spread: int
    topic_spread: int
    topic_replicas_over_ceiling: int
    size_max_over_mean: float


@dataclass(frozen=True, eq=False)
class Solved:
    """A plan (P, W) with its bound, the least bytes that any plan with its windows moves, its time and its memory.

    Seconds are wall time: `build` from the spec to arrays, `solve` the plan, `check` the independent check and the
    score. `peak_bytes` is the process's peak memory up to the end of the check, including the case's data.
    """

    problem: Problem
    assignment: IntArray
    plan: MeasuredPlan
    least_bytes: int
    build_seconds: float
    solve_seconds: float
    check_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Measured:
    """A case with its plan, as in `Solved`, and the baselines, which are made after the memory is measured.

    `makespans_over_bound` is the plan's time in consecutive batches, as a multiple of the time of its busiest broker,
    by bytes and by moves (see `makespans_over_bound`); `in_batches` measures the default batches.
    """

    case: str
    brokers_before: int
    brokers_after: int
    partitions: int
    replicas: int
    replication_factors: tuple[int, ...]
    plan: MeasuredPlan
    least_bytes: int
    build_seconds: float
    solve_seconds: float
    check_seconds: float
    peak_bytes: int
    makespans_over_bound: tuple[float, float]
    in_batches: InBatches
    baselines: tuple[MeasuredPlan, ...]


def measure(case: str, seed: str, seeds: int | None = None) -> Measured:
    """Make the case, plan it, check the plan, and measure the baselines.

    `seeds` is how many of Kafka's seeds are tried; for None see `seeds_tried`.
    """
    spec = cases.to_spec(cases.make(case, seed))
    solved = solve(spec)
    problem = solved.problem
    return Measured(
        case=case,
        brokers_before=len(spec.cluster.brokers),
        brokers_after=int(problem.targets.sum()),
        partitions=problem.rows,
        replicas=int(problem.replication_factors.sum()),
        replication_factors=tuple(np.unique(problem.replication_factors).tolist()),
        plan=solved.plan,
        least_bytes=solved.least_bytes,
        build_seconds=solved.build_seconds,
        solve_seconds=solved.solve_seconds,
        check_seconds=solved.check_seconds,
        peak_bytes=solved.peak_bytes,
        makespans_over_bound=makespans_over_bound(problem, solved.assignment),
        in_batches=in_batches.measure(spec, problem, solved.assignment),
        baselines=_baselines(problem, seeds),
    )


def solve(spec: Spec) -> Solved:
    """Plan a spec at its own balance, check and score the plan, and time each step."""
    times = [perf_counter()]
    problem = build_problem.build(spec)
    times.append(perf_counter())
    solution = optimum.solve(problem, problem.balance)
    times.append(perf_counter())
    plan = outcome("the plan", problem, solution.assignment)
    times.append(perf_counter())
    peak = peak_bytes()
    build, solving, check = np.diff(times).tolist()
    return Solved(problem, solution.assignment, plan, solution.least_bytes, build, solving, check, peak)


def outcome(label: str, problem: Problem, assignment: IntArray) -> MeasuredPlan:
    """Check and score an assignment (P, W)."""
    broken = independent_check.broken_rules(problem, assignment)
    basis = ScoringBasis.of(problem)
    scores = score.score(basis, assignment)
    replica_counts = (assignment >= 0).sum(axis=1)
    mean = int((problem.size_bytes * replica_counts).sum()) / int(problem.targets.sum())
    return MeasuredPlan(
        label=label,
        violations=sum(int(rows.sum()) for rows in broken.values()),
        rack_violations=int(scores.rack_violations[0]),
        bytes_moved=int(scores.bytes_moved[0]),
        replicas_moved=int(scores.replicas_moved[0]),
        replica_spread=int(scores.replica_spread[0]),
        leader_spread=int(scores.leader_spread[0]),
        topic_spread=int(scores.topic_replica_spread[0]),
        topic_replicas_over_ceiling=_over_ceiling(basis, assignment),
        size_max_over_mean=int(scores.size_bytes_max[0]) / mean if mean else 1.0,
    )


def makespans_over_bound(problem: Problem, assignment: IntArray) -> tuple[float, float]:
    """The time of all batches, as a multiple of the time in which the plan's busiest broker can copy its bytes.

    First for batches of a tenth of the plan's bytes, then for batches of a tenth of the moves of the broker with most
    moves. A batch takes as long as its busiest broker, in or out, and the next one begins when it is complete. The
    bound is the busiest broker's bytes over the whole plan, without any waiting; the result is 1.0 if no byte moves.
    """
    changed = partition_changes.changes(problem, assignment)
    bound = max(int(amounts.max()) for amounts in partition_changes.bytes_in_and_out(problem, assignment))
    bytes_moved = sum(change.size_bytes * len(change.adding) for change in changed)
    rules = (BatchRules(bytes=_share(bytes_moved)), BatchRules(moves_per_broker=_share(_most_moves(changed))))
    by_bytes, by_moves = (sum(map(busiest_bytes, batch_cutting.split(changed, rule))) for rule in rules)
    return (by_bytes / bound, by_moves / bound) if bound else (1.0, 1.0)


def _share(amount: int) -> int:
    return max(-(-amount // BATCH_SHARE), 1)


def _most_moves(changed: Sequence[PartitionChange]) -> int:
    """The most replicas that one broker copies in, or that are copied from it."""
    single = batch_cutting.split(changed, BatchRules())
    steps = [step for batch in single for step in batch.steps]
    received = Counter(broker for step in steps for broker in step.adding)
    sent: Counter[int] = Counter()
    for step in steps:
        sent[step.source] += len(step.adding)
    return max([*received.values(), *sent.values()], default=0)


def seeds_tried(problem: Problem) -> int:
    """The number of candidates of the sweep from which Kafka's seeds are taken."""
    return min(max(_PLACEMENTS // max(int(problem.replication_factors.sum()), 1), _FEWEST), _MOST)


def _over_ceiling(basis: ScoringBasis, assignment: IntArray) -> int:
    """Replicas above their topics' ceilings. Replicas on leaving brokers raise a ceiling, but aren't above it."""
    problem = basis.problem
    counts = score.topic_tallies(basis, assignment).per_broker[:, 0]
    rows, _ = np.nonzero(assignment >= 0)
    totals = np.bincount(problem.topic_of[rows], minlength=len(counts))
    ceiling = -(-totals // counts.shape[1])
    return int(np.maximum(counts - ceiling[:, None], 0).sum())


def _baselines(problem: Problem, seeds: int | None) -> tuple[MeasuredPlan, ...]:
    """Do nothing, the best of Kafka's seeds, and round robin, as candidates of a sweep whose optima aren't solved."""
    all_candidates = candidates(problem, Sweep(candidates=seeds_tried(problem) if seeds is None else _room_for(seeds)))
    kafka = _numbers_of(all_candidates, *KAFKA_STRATEGIES)[:seeds]
    scored = evaluate.scored(problem, all_candidates, kafka)
    return (
        _baseline("do nothing", problem, all_candidates, _numbers_of(all_candidates, "unchanged")[0]),
        _baseline(f"Kafka's seeds, best of {len(kafka):,}", problem, all_candidates, _cheapest(scored)),
        _baseline("round robin", problem, all_candidates, _numbers_of(all_candidates, "round_robin")[0]),
    )


def _room_for(seeds: int) -> int:
    """A number of candidates with room for `seeds` of Kafka's seeds, because at most a fifth of them are optima."""
    return seeds + seeds // 4 + 4


def _numbers_of(all_candidates: Candidates, *strategies: str) -> LongArray:
    """The numbers of the candidates of these strategies."""
    numbers = np.arange(len(all_candidates), dtype=np.int64)
    return numbers[all_candidates.of(numbers, *strategies)]


def _cheapest(scored: LongArray) -> int:
    """The number of the scored candidate (COLUMNS, C) that moves the fewest bytes, of those that break the fewest
    rules: the most favorable choice for a baseline.
    """
    order = [scored[COLUMNS.index(name)] for name in ("violations", "bytes_moved", "candidate")]
    return int(scored[0, first(order, 1)[0]])


def _baseline(label: str, problem: Problem, all_candidates: Candidates, number: int) -> MeasuredPlan:
    return outcome(label, problem, evaluate.propose(problem, all_candidates, int(number)).assignment)
