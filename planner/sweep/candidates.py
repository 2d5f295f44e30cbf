"""The candidate space: which candidates a sweep evaluates, given by their numbers, and how each is made.

Their number is spent by a fixed rule, never by the clock: do nothing; the optimum at the balance asked for; with a
budget, the part of it that is paid for; the optimum at other points of the grid of windows, first those that differ in
the fewest windows; more optima of equal cost, by tie-break seed, until there are `sweep.solved` optima; one round-robin
placement; then Kafka's own placements: every (start index, shift) if the number allows them all, the KRaft placer's
seeds, and classic placements that draw a start index and a shift for every topic. Any worker makes any candidate from
its number, so no table of all candidates is ever made.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.machinery import ModuleSpec
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from planner.model.balance import BYTE_WINDOWS, NO_TOLERANCE, WINDOWS, Balance, BalanceGrid, Tolerance
from planner.model.build_problem import rows_to_place, today
from planner.model.problem import LongArray, Problem
from planner.model.spec import Budget, Sweep
from planner.strategies import kafka_classic, kafka_striped, optimum, work_limits
from planner.strategies.optimum import Proposal
from planner.sweep import budget_steps


class Candidate(NamedTuple):
    """A strategy's name with its seeds and windows: everything needed to make the assignment again.

    `start_index` and `next_replica_shift` are Kafka's; -1: drawn from the seed for each topic.
    """

    strategy: str
    seed: int = 0
    start_index: int = -1
    next_replica_shift: int = -1
    balance: Balance = Balance()


Strategy = Callable[[Problem, Candidate], Proposal]


def _optimum(problem: Problem, candidate: Candidate, *, certify: bool) -> Proposal:
    """The plan that was asked for gets more work than the other plans of a sweep."""
    is_asked = candidate.seed == 0 and candidate.balance == problem.balance
    work = work_limits.FULL_WORK if is_asked else work_limits.LITTLE_WORK
    return optimum.solve(problem, candidate.balance, candidate.seed, certify=certify, work=work)


def prove(problem: Problem, candidate: Candidate) -> Proposal:
    """The proposal of the candidate's strategy, with the certificate of its bound if it has one."""
    if candidate.strategy != "optimum":
        return STRATEGIES[candidate.strategy](problem, candidate)
    return _optimum(problem, candidate, certify=True)


# The strategy that makes the part of the plan asked for that a budget pays for.
PART = "part_of_optimum"
# The name in the row of a reassignment that is adopted; nothing makes it.
ADOPTED = "adopted"
# The strategies that solve.
SOLVED = ("optimum", PART)

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        # Do nothing: the baseline for every plan.
        "unchanged": lambda problem, candidate: Proposal(today(problem)),
        "optimum": lambda problem, candidate: _optimum(problem, candidate, certify=False),
        PART: lambda problem, it: Proposal(
            budget_steps.part_of(problem, _optimum(problem, it, certify=False).assignment)
        ),
        "round_robin": lambda problem, it: Proposal(kafka_classic.assign_round_robin(problem, it.seed, it.start_index)),
        "kafka_classic": lambda problem, it: Proposal(
            kafka_classic.assign(problem, it.seed, it.start_index, it.next_replica_shift)
        ),
        "kafka_striped": lambda problem, it: Proposal(kafka_striped.assign(problem, it.seed)),
    }
)


# Values of a row's `scenarios`: plan for today's bytes only, or so that the windows hold in every scenario too.
NO_SCENARIOS, ALL_SCENARIOS = "none", "all"

CANDIDATE_SCHEMA = pa.schema(
    [
        ("candidate", pa.int64()),
        ("strategy", pa.string()),
        ("seed", pa.int64()),
        ("start_index", pa.int32()),
        ("next_replica_shift", pa.int32()),
        *((window, pa.string()) for window in WINDOWS),
        ("scenarios", pa.string()),
    ]
)

DEFAULT_CANDIDATES = 5000
# Placements (replicas × candidates) that the default budget may take, that solved plans may take, and KRaft's seeds.
_PLACEMENTS, _SOLVED_PLACEMENTS, _STRIPED_PLACEMENTS = 50_000_000, 1_000_000, 500_000
# Placements for a comparison with Kafka's own if the sweep has none, and the most candidates for it.
_COMPARED_PLACEMENTS, _MOST_COMPARED = 2_000_000, 100
# A solved plan counts as at least this many placements. A plan with windows on bytes or with common leaders takes about
# ten times as long; if a partition is larger than such a window is wide, ten times that: 900 partitions on 12 brokers,
# with heavy tails, take 3 to 30 s a plan, not 0.3 s, and 6 on 4 brokers take 1 s.
_LEAST_SOLVED, _LEAST_SOLVED_BYTES, _TIMES_BYTES = 5_000, 50_000, 10
_LEAST_SOLVED_LARGE, _TIMES_LARGE = 200_000, 100
# The part of the work of solved plans that a grid of our own may take; tie-break seeds get the rest.
_OWN_GRID = 0.6
# The first plans for a budget that are always tried, also if the cluster is large or the candidates are few: all that
# is asked for, the part of it that is paid for, and two of the ladder. Without the loosest balance, nothing may fit.
_LEAST_OF_LADDER = 4
# A budget's ladder may take this many times the work that other solved plans may take.
_OF_LADDER = 1.3
# Tolerances tried beside those asked for, if the YAML gives no grid.
_LOOSER = (Tolerance("percent", 5), Tolerance("percent", 10), Tolerance("percent", 25))
_OF_DISK = (Tolerance("percent", 2), *_LOOSER, NO_TOLERANCE)
_OF_TRAFFIC = (Tolerance("percent", 10), NO_TOLERANCE)

# The strategies that are Kafka's own placements; the number of the candidate that was asked for.
KAFKA_STRATEGIES = ("kafka_classic", "kafka_striped")
ASKED = 1


class _NoPandas:
    """A finder of modules that refuses pandas."""

    @staticmethod
    def find_spec(name: str, _: object = None, __: object = None) -> ModuleSpec | None:
        """Returns None for any other module, so that Python asks the next finder."""
        if name == "pandas":
            raise ImportError(name)
        return None


def without_pandas() -> None:
    """Makes pyarrow's first array while pandas can't be imported.

    pyarrow would otherwise import pandas to check whether the values are pandas objects, which takes a third of a
    second. Code that needs pandas later can still import it.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


@dataclass(frozen=True)
class CandidateRun:
    """Consecutive candidates that differ only in their seed, or only in start index and shift.

    Seeds count up from `first_seed` if that is above 0, else all are 0. If `brokers` is above 0, candidate i of the run
    has start index i // brokers and shift i % brokers; else both are -1: drawn for every topic, or not used.
    """

    strategy: str
    count: int
    balance: Balance
    scenarios: str = NO_SCENARIOS
    first_seed: int = 0
    brokers: int = 0

    def seeds(self, indices: LongArray) -> LongArray:
        """(C,): the seeds of these candidates (C,) of the run, counted from 0."""
        return indices + self.first_seed if self.first_seed else np.zeros_like(indices)

    def pairs(self, indices: LongArray) -> tuple[LongArray, LongArray]:
        """Start indices and shifts, both (C,), of these candidates (C,) of the run."""
        unset = np.full_like(indices, -1)
        return np.divmod(indices, self.brokers) if self.brokers else (unset, unset)


@dataclass(frozen=True)
class Candidates:
    """The candidates 0 to n - 1 of a sweep."""

    runs: tuple[CandidateRun, ...]

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.runs else 0

    @cached_property
    def ends(self) -> LongArray:
        """(runs,): one more than the number of each run's last candidate."""
        return np.cumsum([run.count for run in self.runs], dtype=np.int64)

    @property
    def by_strategy(self) -> dict[str, int]:
        """How many candidates each strategy has, in the order of their numbers."""
        counts: dict[str, int] = {}
        for run in self.runs:
            counts[run.strategy] = counts.get(run.strategy, 0) + run.count
        return counts

    def of(self, numbers: LongArray, *strategies: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(C,): True for candidates of these strategies."""
        is_named = np.array([run.strategy in strategies for run in self.runs], dtype=bool)
        return is_named[np.searchsorted(self.ends, numbers, side="right")]

    def parts(self, numbers: LongArray) -> Iterator[tuple[CandidateRun, LongArray, LongArray]]:
        """The runs of numbers (C,): each with its places in `numbers`, and its candidates there counted from 0."""
        runs = np.searchsorted(self.ends, numbers, side="right")
        for number in np.unique(runs).tolist():
            places = np.flatnonzero(runs == number)
            run = self.runs[number]
            yield run, places, numbers[places] - (self.ends[number] - run.count)

    def candidate(self, number: int) -> tuple[Candidate, str]:
        """A candidate, and the scenarios it plans for: ALL_SCENARIOS or NO_SCENARIOS."""
        ((run, _, index),) = self.parts(np.array([number], dtype=np.int64))
        (seed,), (start,), (shift,) = run.seeds(index).tolist(), *(each.tolist() for each in run.pairs(index))
        return Candidate(run.strategy, seed, start, shift, run.balance), run.scenarios

    def rows(self, numbers: LongArray) -> pa.Table:
        """These candidates (C,), in ascending order, as rows of CANDIDATE_SCHEMA."""
        tables = [CANDIDATE_SCHEMA.empty_table()]
        for run, places, indices in self.parts(numbers):
            texts = [str(getattr(run.balance, window)) for window in WINDOWS]
            columns = [numbers[places], run.strategy, run.seeds(indices), *run.pairs(indices), *texts, run.scenarios]
            arrays = [
                pa.repeat(pa.scalar(each, field.type), len(indices))
                if isinstance(each, str)
                else pa.array(each, field.type)
                for each, field in zip(columns, CANDIDATE_SCHEMA, strict=True)
            ]
            tables.append(pa.Table.from_arrays(arrays, schema=CANDIDATE_SCHEMA))
        return pa.concat_tables(tables).combine_chunks()


def candidate_budget(problem: Problem, requested: int | None) -> int:
    """How many candidates to evaluate: as asked, else 20 to 5,000, fewer for a larger cluster."""
    if requested is not None:
        return requested
    replicas = max(1, int(problem.replication_factors.sum()))
    return min(max(_PLACEMENTS // replicas, 20), DEFAULT_CANDIDATES)


def candidates(problem: Problem, sweep: Sweep, among: int = 1) -> Candidates:
    """The candidates for a problem: at most the budget and at least two.

    `among`: how many problems share the budget.
    """
    count = max(candidate_budget(problem, sweep.candidates) // among, 2)
    certain = [CandidateRun("unchanged", 1, problem.balance), *_solved(problem, sweep, count, among)]
    remaining = count - sum(run.count for run in certain)
    placements = _kafka(problem, sweep, remaining) if rows_to_place(problem).any() and remaining > 0 else []
    return Candidates(tuple(run for run in (*certain, *placements) if run.count))


def generated(problem: Problem, sweep: Sweep) -> Candidates:
    """A few of Kafka's own placements for a comparison, without other candidates."""
    replicas = max(1, int(problem.replication_factors.sum()))
    count = min(max(_COMPARED_PLACEMENTS // replicas, 5), _MOST_COMPARED)
    if not rows_to_place(problem).any():
        return Candidates(())
    return Candidates((CandidateRun("kafka_classic", count, problem.balance, first_seed=_seed(sweep, 1)),))


def of_row(values: Mapping[str, Any]) -> Candidate:
    """The candidate of a row; the row may have scores or not."""
    balance = Balance(**{window: Tolerance.parse(values[window]) for window in WINDOWS})
    return Candidate(values["strategy"], values["seed"], values["start_index"], values["next_replica_shift"], balance)


def _solved(problem: Problem, sweep: Sweep, count: int, among: int) -> list[CandidateRun]:
    """Optima: first the grid of windows, starting with the balance asked for; then tie-break seeds at this balance."""
    budgeted, least, grid_part = problem.budget != Budget(), 1, 1 if any(sweep.grid.values()) else _OWN_GRID
    if budgeted:
        least, grid_part = _LEAST_OF_LADDER, _OF_LADDER
    scenarios = (ALL_SCENARIOS, NO_SCENARIOS) if problem.scenario_names else (NO_SCENARIOS,)
    grid = _grid(problem, sweep.grid)
    first, *others = dict.fromkeys(CandidateRun("optimum", 1, each, kind) for each in grid for kind in scenarios)
    if budgeted:
        others = [replace(first, strategy=PART), *others]
    # Without `sweep.solved`, a fifth of the candidates, but no fewer than are always tried.
    most, work = max(min(least, count - 1), count // 5), _SOLVED_PLACEMENTS // among
    if sweep.solved is not None:
        most = max(1, min(sweep.solved // among, count - 1))
        work = most * max(_price(problem, each.balance) for each in (first, *others))
    work_left = max(0, work - _price(problem, first.balance))
    grid_left, chosen = work_left * grid_part, [first]
    for each in others:
        price = _price(problem, each.balance)
        if len(chosen) < most and (price <= grid_left or len(chosen) < least):
            chosen, grid_left, work_left = [*chosen, each], grid_left - price, work_left - price
    seeds = max(0, min(most - len(chosen), int(work_left) // _price(problem, first.balance)))
    return [*chosen, replace(first, count=seeds, first_seed=_seed(sweep, 1))]


def _price(problem: Problem, balance: Balance) -> int:
    size = int(problem.replication_factors.sum()) + len(problem.topic_names) * int(problem.targets.sum())
    slow = problem.together is not None or any(getattr(balance, window) != NO_TOLERANCE for window in BYTE_WINDOWS)
    if _splits_windows(problem, problem.balance) and _splits_windows(problem, balance):
        return max(_TIMES_LARGE * size, _LEAST_SOLVED_LARGE)
    if slow or bool((problem.disk_limit_bytes[problem.targets] >= 0).any()):
        return max(_TIMES_BYTES * size, _LEAST_SOLVED_BYTES)
    return max(size, _LEAST_SOLVED)


def _splits_windows(problem: Problem, balance: Balance) -> bool:
    """True if a partition is larger than the window of bytes around an average broker's share is wide."""
    brokers, factors = int(problem.targets.sum()), problem.replication_factors
    for window in BYTE_WINDOWS:
        if (tolerance := getattr(balance, window)).kind == "percent" and problem.rows:
            amounts = problem.size_bytes if window == "disk" else problem.bytes_in_per_sec
            stored = amounts * factors
            if window == "network_out":
                amounts = stored = problem.bytes_in_per_sec * (factors - 1) + problem.bytes_out_per_sec
            if amounts.max() > tolerance.value * 2 / 100 * float(stored.sum()) / brokers:
                return True
    return False


def _seed(sweep: Sweep, number: int) -> int:
    """Seeds of different sweep seeds never overlap."""
    return (sweep.seed << 32) + number


def _grid(problem: Problem, grid: BalanceGrid) -> Iterable[Balance]:
    """The balance asked for, then every combination of the YAML's grid, or of our own if the YAML gives none; those
    that differ from it in the fewest windows come first.
    """
    balance = problem.balance
    if problem.budget != Budget():
        return budget_steps.ladder(problem)
    if problem.rebalance != "all":
        return [balance]
    if not any(grid.values()):
        written = problem.bytes_in_per_sec.any()
        grid = {
            "replicas": _LOOSER,
            "topic_replicas": (NO_TOLERANCE,),
            "disk": _OF_DISK if problem.sizes_known and problem.size_bytes.any() else (),
            "network_in": _OF_TRAFFIC if written else (),
            "network_out": _OF_TRAFFIC if written or problem.bytes_out_per_sec.any() else (),
        }
    axes = [(getattr(balance, window), *grid.get(window, ())) for window in WINDOWS]
    points = [Balance(*point) for point in product(*axes)]
    return sorted(
        points, key=lambda point: sum(getattr(point, window) != getattr(balance, window) for window in WINDOWS)
    )


def _kafka(problem: Problem, sweep: Sweep, count: int) -> list[CandidateRun]:
    """Kafka's own placements: all pairs if n² fits, KRaft's seeds, draws for the rest; one round-robin placement."""
    brokers, balance = int(problem.targets.sum()), problem.balance
    replicas = max(1, int(problem.replication_factors.sum()))
    fixed = brokers**2 if brokers**2 <= count else 0
    striped = min(count - fixed, max(1, count // 10), max(1, _STRIPED_PLACEMENTS // replicas))
    remaining = count - fixed - striped
    round_robin = min(remaining, 1)
    return [
        CandidateRun("round_robin", round_robin, balance),
        CandidateRun("kafka_classic", fixed, balance, brokers=brokers),
        CandidateRun("kafka_striped", striped, balance, first_seed=_seed(sweep, 1)),
        CandidateRun("kafka_classic", remaining - round_robin, balance, first_seed=_seed(sweep, 1 + round_robin)),
    ]
