"""The candidate space: which candidates a sweep evaluates, as a function of their numbers; and how each is made.

The budget is spent by a fixed rule, never by the clock: do nothing; the optimum at the balance asked for; the optimum
at other points of the knobs' grid, those first that differ in the fewest knobs; further optima of equal cost, by their
tie-break seeds, until there are `sweep.solved` of both; then Kafka's own placements: every (start index, shift) where
the budget holds them all, the KRaft placer's seeds, and classic placements with a start index and a shift drawn for
every topic. Any worker makes any candidate from its number alone, so no table of them is ever made as a whole.
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
from planner.model.spec import Sweep
from planner.strategies import kafka_classic, kafka_striped, optimum, work_limits
from planner.strategies.optimum import Proposal
from planner.sweep import budget_steps


class Candidate(NamedTuple):
    """A strategy's name with its seeds and knobs: all that is needed to make the assignment again.

    `start_index` and `next_replica_shift` are Kafka's, -1: drawn for each topic from the seed.
    """

    strategy: str
    seed: int = 0
    start_index: int = -1
    next_replica_shift: int = -1
    balance: Balance = Balance()


Strategy = Callable[[Problem, Candidate], Proposal]


def _optimum(problem: Problem, candidate: Candidate, *, certify: bool) -> Proposal:
    """The plan that was asked for is worth more work than those that a sweep tries beside it."""
    asked = candidate.seed == 0 and candidate.balance == problem.balance
    worth = work_limits.ASKED if asked else work_limits.OTHERS
    return optimum.solve(problem, candidate.balance, candidate.seed, certify=certify, worth=worth)


def prove(problem: Problem, candidate: Candidate) -> Proposal:
    """What the candidate's strategy proposes, with the certificate of its bound where it has one."""
    if candidate.strategy != "optimum":
        return STRATEGIES[candidate.strategy](problem, candidate)
    return _optimum(problem, candidate, certify=True)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        # Do nothing: the baseline that every plan is held against.
        "unchanged": lambda problem, candidate: Proposal(today(problem)),
        "optimum": lambda problem, candidate: _optimum(problem, candidate, certify=False),
        "round_robin": lambda problem, it: Proposal(kafka_classic.assign_round_robin(problem, it.seed, it.start_index)),
        "kafka_classic": lambda problem, it: Proposal(
            kafka_classic.assign(problem, it.seed, it.start_index, it.next_replica_shift)
        ),
        "kafka_striped": lambda problem, it: Proposal(kafka_striped.assign(problem, it.seed)),
    }
)


# What `scenarios` of a row says: plan for today's bytes alone, or so that the windows hold in every scenario too.
NO_SCENARIOS, ALL_SCENARIOS = "none", "all"

CANDIDATE_SCHEMA = pa.schema(
    [
        ("candidate", pa.int64()),
        ("strategy", pa.string()),
        ("seed", pa.int64()),
        ("start_index", pa.int32()),
        ("next_replica_shift", pa.int32()),
        *((knob, pa.string()) for knob in WINDOWS),
        ("scenarios", pa.string()),
    ]
)

DEFAULT_CANDIDATES = 5000
# Placements (replicas × candidates) that the default budget is worth, and those that solved plans may be.
_PLACEMENTS, _SOLVED_PLACEMENTS, _STRIPED_PLACEMENTS = 50_000_000, 1_000_000, 500_000
# Placements that a comparison with Kafka's own is worth where the sweep has none, and the most it takes.
_COMPARED_PLACEMENTS, _MOST_COMPARED = 2_000_000, 100
# A solved plan counts as at least so many placements; one with windows of bytes or common leaders takes many times as
# long.
_LEAST_SOLVED, _LEAST_SOLVED_BYTES, _TIMES_BYTES = 5_000, 50_000, 10
# A placement that is scored from tables takes so many times less than one that is made.
_IN_TABLES = 1_000
# What a grid of our own leaves of the solved plans to tie-break seeds.
_OWN_GRID = 0.6
# Steps of a budget's ladder that are tried however large the cluster and few the candidates: without its last one,
# nothing may fit.
_LEAST_OF_LADDER = 3
# A budget's ladder may take so much more than what other solved plans are worth.
_OF_LADDER = 1.3
# Tolerances tried beside the ones asked for where the YAML gives no grid.
_LOOSER = (Tolerance("percent", 5), Tolerance("percent", 10), Tolerance("percent", 25))
_OF_DISK = (Tolerance("percent", 2), *_LOOSER, NO_TOLERANCE)
_OF_TRAFFIC = (Tolerance("percent", 10), NO_TOLERANCE)

# The strategies that are Kafka's own placements, and the number of the plan that was asked for.
KAFKA_STRATEGIES = ("kafka_classic", "kafka_striped")
ASKED = 1


class _NoPandas:
    """While it finds modules, there is no pandas."""

    @staticmethod
    def find_spec(name: str, _: object = None, __: object = None) -> ModuleSpec | None:
        """Nothing for any other module, so that the next finder is asked."""
        if name == "pandas":
            raise ImportError(name)
        return None


def without_pandas() -> None:
    """Let pyarrow know that its arrays aren't made of pandas' objects.

    Otherwise it imports pandas when it makes its first one, to see whether they are: a third of a second. Whoever needs
    pandas later gets it.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


@dataclass(frozen=True)
class CandidateRun:
    """Neighboring candidates that differ in their seed alone, or in start index and shift.

    Seeds count up from `first_seed` where that is above 0, else all are 0. Where `brokers` is above 0, candidate i of
    the run has start index i // brokers and shift i % brokers; else both are -1: drawn for every topic, or not used.
    """

    strategy: str
    count: int
    balance: Balance
    scenarios: str = NO_SCENARIOS
    first_seed: int = 0
    brokers: int = 0

    def seeds(self, at: LongArray) -> LongArray:
        """(C,): the seeds of these candidates (C,) of the run, counted from 0."""
        return at + self.first_seed if self.first_seed else np.zeros_like(at)

    def pairs(self, at: LongArray) -> tuple[LongArray, LongArray]:
        """Start indices and shifts, both (C,), of these candidates (C,) of the run."""
        unset = np.full_like(at, -1)
        return np.divmod(at, self.brokers) if self.brokers else (unset, unset)


@dataclass(frozen=True)
class Candidates:
    """The candidates 0 to n - 1 of a sweep."""

    runs: tuple[CandidateRun, ...]

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.runs else 0

    @cached_property
    def ends(self) -> LongArray:
        """(runs,): the number after each run's last."""
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
        named = np.array([run.strategy in strategies for run in self.runs], dtype=bool)
        return named[np.searchsorted(self.ends, numbers, side="right")]

    def parts(self, numbers: LongArray) -> Iterator[tuple[CandidateRun, LongArray, LongArray]]:
        """The runs of numbers (C,): each with its places in `numbers`, and its candidates there counted from 0."""
        runs = np.searchsorted(self.ends, numbers, side="right")
        for number in np.unique(runs).tolist():
            places = np.flatnonzero(runs == number)
            run = self.runs[number]
            yield run, places, numbers[places] - (self.ends[number] - run.count)

    def candidate(self, number: int) -> tuple[Candidate, str]:
        """A candidate, and which scenarios it plans for: ALL_SCENARIOS or NO_SCENARIOS."""
        ((run, _, at),) = self.parts(np.array([number], dtype=np.int64))
        (seed,), (start,), (shift,) = run.seeds(at).tolist(), *(each.tolist() for each in run.pairs(at))
        return Candidate(run.strategy, seed, start, shift, run.balance), run.scenarios

    def rows(self, numbers: LongArray) -> pa.Table:
        """These candidates (C,), whose numbers rise, as rows of CANDIDATE_SCHEMA."""
        tables = [_rows(run, numbers[places], at) for run, places, at in self.parts(numbers)]
        return pa.concat_tables([CANDIDATE_SCHEMA.empty_table(), *tables]).combine_chunks()


def _rows(run: CandidateRun, numbers: LongArray, at: LongArray) -> pa.Table:
    starts, shifts = run.pairs(at)
    words = [str(getattr(run.balance, knob)) for knob in WINDOWS]
    columns = [numbers, run.strategy, run.seeds(at), starts, shifts, *words, run.scenarios]
    arrays = [
        pa.repeat(pa.scalar(column, field.type), len(at)) if isinstance(column, str) else pa.array(column, field.type)
        for column, field in zip(columns, CANDIDATE_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=CANDIDATE_SCHEMA)


def candidate_budget(problem: Problem, asked: int | None) -> int:
    """How many candidates to evaluate: as asked, else fewer the larger the cluster, at most 5,000, at least 20."""
    if asked is not None:
        return asked
    replicas = max(1, int(problem.replication_factors.sum()))
    return min(max(_PLACEMENTS // replicas, 20), DEFAULT_CANDIDATES)


def candidates(problem: Problem, sweep: Sweep, among: int = 1) -> Candidates:
    """The candidates for a problem: never more than the budget, never fewer than two.

    `among` is how many problems share the budget.
    """
    count = max(candidate_budget(problem, sweep.candidates) // among, 2)
    certain = [CandidateRun("unchanged", 1, problem.balance), *_solved(problem, sweep, count, among)]
    left = count - sum(run.count for run in certain)
    placed = _kafka(problem, sweep, left) if rows_to_place(problem).any() and left > 0 else []
    return Candidates(tuple(run for run in (*certain, *placed) if run.count))


def generated(problem: Problem, sweep: Sweep) -> Candidates:
    """A few of Kafka's own placements alone, to compare with."""
    replicas = max(1, int(problem.replication_factors.sum()))
    count = min(max(_COMPARED_PLACEMENTS // replicas, 5), _MOST_COMPARED)
    if not rows_to_place(problem).any():
        return Candidates(())
    return Candidates((CandidateRun("kafka_classic", count, problem.balance, first_seed=_seed(sweep, 1)),))


def of_row(values: Mapping[str, Any]) -> Candidate:
    """A row's values, scores or not, as a candidate."""
    balance = Balance(**{knob: Tolerance.parse(values[knob]) for knob in WINDOWS})
    return Candidate(values["strategy"], values["seed"], values["start_index"], values["next_replica_shift"], balance)


def _solved(problem: Problem, sweep: Sweep, count: int, among: int) -> list[CandidateRun]:
    """Optima: the grid of knobs first, what is asked for at its head, then tie-break seeds at that."""
    most = _most_solved(problem, sweep, count, among)
    given = budget_steps.asked(problem.budget) or any(sweep.grid.values())
    scenarios = (ALL_SCENARIOS, NO_SCENARIOS) if problem.scenario_names else (NO_SCENARIOS,)
    grid = _grid(problem, sweep.grid)
    asked, *others = dict.fromkeys(CandidateRun("optimum", 1, each, of) for each in grid for of in scenarios)
    worth = _SOLVED_PLACEMENTS // among
    if sweep.solved is not None:
        worth = most * max(_price(problem, each.balance) for each in (asked, *others))
    left = max(0, worth - _price(problem, asked.balance))
    kept = left * (_OF_LADDER if budget_steps.asked(problem.budget) else 1 if given else _OWN_GRID)
    chosen, sure = [asked], _LEAST_OF_LADDER if budget_steps.asked(problem.budget) else 1
    for each in others:
        price = _price(problem, each.balance)
        if len(chosen) < most and (price <= kept or len(chosen) < sure):
            chosen, kept, left = [*chosen, each], kept - price, left - price
    seeds = max(0, min(most - len(chosen), int(left) // _price(problem, asked.balance)))
    return [*chosen, replace(asked, count=seeds, first_seed=_seed(sweep, 1))]


def _most_solved(problem: Problem, sweep: Sweep, count: int, among: int) -> int:
    """As many as asked for, at least one and never all; else a fifth, and the least of a budget's ladder."""
    if sweep.solved is not None:
        return max(1, min(sweep.solved // among, count - 1))
    least = min(_LEAST_OF_LADDER, count - 1) if budget_steps.asked(problem.budget) else 1
    return max(least, count // 5)


def work(problem: Problem, run: CandidateRun, *, from_tables: bool) -> float:
    """How many placements (a replica of a candidate) one of Kafka's candidates, or a solved plan, counts as."""
    if run.strategy == "optimum":
        return _price(problem, run.balance)
    return int(problem.replication_factors.sum()) / (_IN_TABLES if from_tables else 1)


def _price(problem: Problem, balance: Balance) -> int:
    size = int(problem.replication_factors.sum()) + len(problem.topic_names) * int(problem.targets.sum())
    slow = problem.together is not None or any(getattr(balance, knob) != NO_TOLERANCE for knob in BYTE_WINDOWS)
    if slow or bool((problem.disk_limit_bytes[problem.targets] >= 0).any()):
        return max(_TIMES_BYTES * size, _LEAST_SOLVED_BYTES)
    return max(size, _LEAST_SOLVED)


def _seed(sweep: Sweep, number: int) -> int:
    """Numbers of one sweep seed never meet those of another."""
    return (sweep.seed << 32) + number


def _grid(problem: Problem, grid: BalanceGrid) -> Iterable[Balance]:
    """The balance asked for, then every combination of the knobs, those first that differ from it in the fewest."""
    wanted = problem.balance
    if budget_steps.asked(problem.budget):
        steps = budget_steps.ladder(wanted, problem.budget, budget_steps.affordable(problem))
        return budget_steps.spread_out(steps)
    if problem.rebalance != "all":
        return [wanted]
    axes = [(getattr(wanted, knob), *_filled(problem, grid).get(knob, ())) for knob in WINDOWS]
    points = [Balance(*point) for point in product(*axes)]
    return sorted(points, key=lambda point: sum(getattr(point, knob) != getattr(wanted, knob) for knob in WINDOWS))


def _filled(problem: Problem, grid: BalanceGrid) -> BalanceGrid:
    """The YAML's grid; one of our own where it gives none."""
    if any(grid.values()):
        return grid
    sized = problem.sizes_known and bool(problem.size_bytes.any())
    written = bool(problem.bytes_in_per_sec.any())
    sent = written or bool(problem.bytes_out_per_sec.any())
    return {
        "replicas": _LOOSER,
        "topic_replicas": (NO_TOLERANCE,),
        "disk": _OF_DISK if sized else (),
        "network_in": _OF_TRAFFIC if written else (),
        "network_out": _OF_TRAFFIC if sent else (),
    }


def _kafka(problem: Problem, sweep: Sweep, count: int) -> list[CandidateRun]:
    """Kafka's own placements: exhaustive where n² fits, KRaft's seeds, and draws for the rest."""
    brokers, balance = int(problem.targets.sum()), problem.balance
    replicas = max(1, int(problem.replication_factors.sum()))
    fixed = brokers**2 if brokers**2 <= count else 0
    striped = min(count - fixed, max(1, count // 10), max(1, _STRIPED_PLACEMENTS // replicas))
    left = count - fixed - striped
    round_robin = min(left, 1)
    return [
        CandidateRun("round_robin", round_robin, balance),
        CandidateRun("kafka_classic", fixed, balance, brokers=brokers),
        CandidateRun("kafka_striped", striped, balance, first_seed=_seed(sweep, 1)),
        CandidateRun("kafka_classic", left - round_robin, balance, first_seed=_seed(sweep, 1 + round_robin)),
    ]
