"""The candidate space: which rows a sweep evaluates, as a table. A row can be evaluated anywhere, by anyone.

The budget is spent by a fixed rule, never by the clock: do nothing; the optimum at the balance asked for; the optimum
at the other points of the knobs' grid; further optima of equal cost, by their tie-break seeds; then Kafka's own
placements: every (start index, shift) where the budget holds them all, the KRaft placer's seeds, and classic placements
with a start index and a shift drawn for every topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from planner.balance import NO_TOLERANCE, Balance, BalanceGrid, Tolerance
from planner.model import LongArray, Problem, Sweep
from planner.problem import rows_to_place
from planner.strategies.candidate import Candidate

KNOBS = ("replicas", "leaders", "topic_replicas", "topic_leaders", "disk", "network_in", "network_out")

CANDIDATE_SCHEMA = pa.schema(
    [
        ("candidate", pa.int64()),
        ("strategy", pa.string()),
        ("seed", pa.int64()),
        ("start_index", pa.int32()),
        ("next_replica_shift", pa.int32()),
        *((knob, pa.string()) for knob in KNOBS),
    ]
)

DEFAULT_CANDIDATES = 5000
# Placements (replicas × candidates) that the default budget is worth, and those that solved plans may be.
_PLACEMENTS, _SOLVED_PLACEMENTS, _STRIPED_PLACEMENTS = 50_000_000, 1_000_000, 500_000
_MOST_SOLVED = 200
# Tolerances tried beside the ones asked for where the YAML gives no grid.
_LOOSER = (Tolerance("percent", 5), Tolerance("percent", 10), Tolerance("percent", 25))


def candidate_budget(problem: Problem, asked: int | None) -> int:
    """How many candidates to evaluate: as asked, else fewer the larger the cluster, at most 5,000, at least 20."""
    if asked is not None:
        return asked
    replicas = max(1, int(problem.replication_factors.sum()))
    return min(max(_PLACEMENTS // replicas, 20), DEFAULT_CANDIDATES)


def candidates(problem: Problem, sweep: Sweep) -> pa.Table:
    """The table of CANDIDATE_SCHEMA for a problem; never more rows than the budget, never fewer than two."""
    budget = max(candidate_budget(problem, sweep.candidates), 2)
    certain = [Candidate("unchanged", balance=problem.balance), *_solved(problem, sweep, budget)]
    left = budget - len(certain)
    placed = _kafka(problem, sweep, left) if rows_to_place(problem).any() and left > 0 else []
    parts = [_table(certain), *placed]
    table = pa.concat_tables(parts)
    return table.set_column(0, "candidate", pa.array(np.arange(len(table)), pa.int64())).combine_chunks()


def row(table: pa.Table, number: int) -> Candidate:
    """A row of the table as a candidate."""
    values = table.slice(number, 1).to_pylist()[0]
    balance = Balance(**{knob: Tolerance.parse(values[knob]) for knob in KNOBS})
    return Candidate(values["strategy"], values["seed"], values["start_index"], values["next_replica_shift"], balance)


def _solved(problem: Problem, sweep: Sweep, budget: int) -> list[Candidate]:
    """Optima: the grid of knobs first, the balance asked for at its head, then tie-break seeds at that balance."""
    size = max(1, int(problem.replication_factors.sum()) + len(problem.topic_names) * int(problem.targets.sum()))
    most = max(1, min(_MOST_SOLVED, budget // 5, _SOLVED_PLACEMENTS // size))
    grid = list(dict.fromkeys(_grid(problem, sweep.grid)))[:most]
    points = [Candidate("optimum", balance=balance) for balance in grid]
    seeds = range(1, most - len(points) + 1)
    return points + [Candidate("optimum", _seed(sweep, number), balance=problem.balance) for number in seeds]


def _seed(sweep: Sweep, number: int) -> int:
    """Numbers of one sweep seed never meet those of another."""
    return (sweep.seed << 32) + number


def _grid(problem: Problem, grid: BalanceGrid) -> Iterable[Balance]:
    """The balance asked for, then every combination of the knobs; a grid of our own where the YAML gives none."""
    wanted = problem.balance
    if problem.rebalance != "all":
        return [wanted]
    given = [getattr(grid, knob) for knob in KNOBS]
    if not any(given):
        given = [_LOOSER, (), (NO_TOLERANCE,), *[()] * (len(KNOBS) - 3)]
    axes = [(getattr(wanted, knob), *values) for knob, values in zip(KNOBS, given, strict=True)]
    return [wanted, *(Balance(*point) for point in product(*axes))]


def _kafka(problem: Problem, sweep: Sweep, count: int) -> list[pa.Table]:
    """Kafka's own placements: exhaustive where n² fits, KRaft's seeds, and draws for the rest."""
    brokers = int(problem.targets.sum())
    replicas = max(1, int(problem.replication_factors.sum()))
    fixed = brokers**2 if brokers**2 <= count else 0
    striped = min(count - fixed, max(1, count // 10), max(1, _STRIPED_PLACEMENTS // replicas))
    numbers = np.arange(1, count - fixed - striped + 1, dtype=np.int64)
    pairs = np.arange(fixed, dtype=np.int64)
    round_robin = [Candidate("round_robin", balance=problem.balance)] if len(numbers) else []
    return [
        _table(round_robin),
        _columns(problem, "kafka_classic", np.zeros(fixed, dtype=np.int64), pairs // brokers, pairs % brokers),
        _columns(problem, "kafka_striped", _seeds(sweep, np.arange(1, striped + 1, dtype=np.int64))),
        _columns(problem, "kafka_classic", _seeds(sweep, numbers[len(round_robin) :])),
    ]


def _seeds(sweep: Sweep, numbers: LongArray) -> LongArray:
    return (np.int64(sweep.seed) << np.int64(32)) + numbers


def _columns(
    problem: Problem,
    strategy: str,
    seeds: LongArray,
    starts: LongArray | None = None,
    shifts: LongArray | None = None,
) -> pa.Table:
    """Rows that differ in their seeds, or their start index and shift, alone."""
    count = len(seeds)
    drawn = np.full(count, -1, dtype=np.int64)
    knobs = [pa.array([str(getattr(problem.balance, knob))] * count, pa.string()) for knob in KNOBS]
    numbers = [pa.array(drawn if column is None else column, pa.int32()) for column in (starts, shifts)]
    names = pa.array([strategy] * count, pa.string())
    return pa.Table.from_arrays([pa.array(drawn), names, pa.array(seeds), *numbers, *knobs], schema=CANDIDATE_SCHEMA)


def _table(rows: Sequence[Candidate]) -> pa.Table:
    """The candidates as rows, not numbered yet."""
    return pa.Table.from_pylist([_values(candidate) for candidate in rows], schema=CANDIDATE_SCHEMA)


def _values(candidate: Candidate) -> dict[str, object]:
    knobs = {knob: str(getattr(candidate.balance, knob)) for knob in KNOBS}
    return {"candidate": -1, **candidate._asdict(), **knobs}
