"""The candidate space: which rows a sweep evaluates, as a table. A row can be evaluated anywhere, by anyone.

The budget is spent by a fixed rule, never by the clock: do nothing; the optimum at the balance asked for; the optimum
at other points of the knobs' grid, those first that differ in the fewest knobs; further optima of equal cost, by their
tie-break seeds, until there are `sweep.solved` of both; then Kafka's own placements: every (start index, shift) where
the budget holds them all, the KRaft placer's seeds, and classic placements with a start index and a shift drawn for
every topic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from io import BytesIO
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from planner.model.balance import NO_TOLERANCE, Balance, BalanceGrid, Tolerance
from planner.model.build_problem import rows_to_place
from planner.model.problem import LongArray, Problem
from planner.model.spec import Sweep
from planner.strategies.candidate import Candidate
from planner.sweep import budget_steps

KNOBS = ("replicas", "leaders", "topic_replicas", "topic_leaders", "disk", "network_in", "network_out")
_OF_BYTES = ("disk", "network_in", "network_out")
# What `scenarios` of a row says: plan for today's bytes alone, or so that the windows hold in every scenario too.
NO_SCENARIOS, ALL_SCENARIOS = "none", "all"

CANDIDATE_SCHEMA = pa.schema(
    [
        ("candidate", pa.int64()),
        ("strategy", pa.string()),
        ("seed", pa.int64()),
        ("start_index", pa.int32()),
        ("next_replica_shift", pa.int32()),
        *((knob, pa.string()) for knob in KNOBS),
        ("scenarios", pa.string()),
    ]
)

DEFAULT_CANDIDATES = 5000
# Placements (replicas × candidates) that the default budget is worth, and those that solved plans may be.
_PLACEMENTS, _SOLVED_PLACEMENTS, _STRIPED_PLACEMENTS = 50_000_000, 1_000_000, 500_000
# Placements that a comparison with Kafka's own is worth where the sweep has none, and the most it takes.
_COMPARED_PLACEMENTS, _MOST_COMPARED = 2_000_000, 100
# A solved plan counts as at least so many placements; one with windows of bytes takes many times as long.
_LEAST_SOLVED, _LEAST_SOLVED_BYTES, _TIMES_BYTES = 5_000, 50_000, 10
# What a grid of our own leaves of the solved plans to tie-break seeds.
_OWN_GRID = 0.6
# Steps of a budget's ladder that are tried however large the cluster and few the candidates: without its last one,
# nothing may fit.
_LEAST_OF_LADDER = 3
# Tolerances tried beside the ones asked for where the YAML gives no grid.
_LOOSER = (Tolerance("percent", 5), Tolerance("percent", 10), Tolerance("percent", 25))
_OF_DISK = (Tolerance("percent", 2), *_LOOSER, NO_TOLERANCE)


class _Point(NamedTuple):
    """What the optimum is asked for."""

    balance: Balance
    scenarios: str


def candidate_budget(problem: Problem, asked: int | None) -> int:
    """How many candidates to evaluate: as asked, else fewer the larger the cluster, at most 5,000, at least 20."""
    if asked is not None:
        return asked
    replicas = max(1, int(problem.replication_factors.sum()))
    return min(max(_PLACEMENTS // replicas, 20), DEFAULT_CANDIDATES)


def candidates(problem: Problem, sweep: Sweep, among: int = 1) -> pa.Table:
    """The table of CANDIDATE_SCHEMA for a problem; never more rows than the budget, never fewer than two.

    `among` is how many problems share the budget.
    """
    count = max(candidate_budget(problem, sweep.candidates) // among, 2)
    certain = [_values(Candidate("unchanged", balance=problem.balance)), *_solved(problem, sweep, count, among)]
    left = count - len(certain)
    placed = _kafka(problem, sweep, left) if rows_to_place(problem).any() and left > 0 else []
    table = pa.concat_tables([pa.Table.from_pylist(certain, schema=CANDIDATE_SCHEMA), *placed])
    return table.set_column(0, "candidate", pa.array(np.arange(len(table)), pa.int64())).combine_chunks()


def generated(problem: Problem, sweep: Sweep) -> pa.Table:
    """A few of Kafka's own placements alone, to compare with: CANDIDATE_SCHEMA, numbered from 0."""
    replicas = max(1, int(problem.replication_factors.sum()))
    numbers = np.arange(1, min(max(_COMPARED_PLACEMENTS // replicas, 5), _MOST_COMPARED) + 1, dtype=np.int64)
    if not rows_to_place(problem).any():
        numbers = numbers[:0]
    table = _columns(problem, "kafka_classic", _seeds(sweep, numbers))
    return table.set_column(0, "candidate", pa.array(np.arange(len(table)), pa.int64())).combine_chunks()


def row(table: pa.Table, number: int) -> Candidate:
    """A row of the table as a candidate."""
    return of_row(table.slice(number, 1).to_pylist()[0])


def of_row(values: Mapping[str, Any]) -> Candidate:
    """A row's values, scores or not, as a candidate."""
    balance = Balance(**{knob: Tolerance.parse(values[knob]) for knob in KNOBS})
    return Candidate(values["strategy"], values["seed"], values["start_index"], values["next_replica_shift"], balance)


def _solved(problem: Problem, sweep: Sweep, count: int, among: int) -> list[dict[str, object]]:
    """Optima: the grid of knobs first, what is asked for at its head, then tie-break seeds at that."""
    most = _most_solved(problem, sweep, count, among)
    given = budget_steps.asked(problem.budget) or any(getattr(sweep.grid, knob) for knob in KNOBS)
    asked, *others = dict.fromkeys(_points(problem, sweep.grid))
    worth = _SOLVED_PLACEMENTS // among
    if sweep.solved is not None:
        worth = most * max(_price(problem, point.balance) for point in (asked, *others))
    left = max(0, worth - _price(problem, asked.balance))
    kept = left * (1 if given else _OWN_GRID)
    points, sure = [asked], _LEAST_OF_LADDER if budget_steps.asked(problem.budget) else 1
    for point in others:
        price = _price(problem, point.balance)
        if len(points) < most and (price <= kept or len(points) < sure):
            points, kept, left = [*points, point], kept - price, left - price
    seeds = min(most - len(points), int(left) // _price(problem, asked.balance))
    rows = [_values(Candidate("optimum", balance=each.balance), each.scenarios) for each in points]
    again = (Candidate("optimum", _seed(sweep, number), balance=asked.balance) for number in range(1, seeds + 1))
    return rows + [_values(each, asked.scenarios) for each in again]


def _most_solved(problem: Problem, sweep: Sweep, count: int, among: int) -> int:
    """As many as asked for, at least one and never all; else a fifth, and the least of a budget's ladder."""
    if sweep.solved is not None:
        return max(1, min(sweep.solved // among, count - 1))
    least = min(_LEAST_OF_LADDER, count - 1) if budget_steps.asked(problem.budget) else 1
    return max(least, count // 5)


def _price(problem: Problem, balance: Balance) -> int:
    """How many placements a solved plan counts as."""
    size = int(problem.replication_factors.sum()) + len(problem.topic_names) * int(problem.targets.sum())
    if _windows_of_bytes(problem, balance):
        return max(_TIMES_BYTES * size, _LEAST_SOLVED_BYTES)
    return max(size, _LEAST_SOLVED)


def _windows_of_bytes(problem: Problem, balance: Balance) -> bool:
    capped = bool((problem.disk_limit_bytes[problem.targets] >= 0).any())
    return capped or any(getattr(balance, knob) != NO_TOLERANCE for knob in _OF_BYTES)


def _seed(sweep: Sweep, number: int) -> int:
    """Numbers of one sweep seed never meet those of another."""
    return (sweep.seed << 32) + number


def _points(problem: Problem, grid: BalanceGrid) -> Iterable[_Point]:
    """Every balance of the grid, for all scenarios and, where there are any, for none of them."""
    balances = list(_grid(problem, grid))
    if not problem.scenario_names:
        return [_Point(balance, NO_SCENARIOS) for balance in balances]
    return [_Point(balance, each) for balance in balances for each in (ALL_SCENARIOS, NO_SCENARIOS)]


def _grid(problem: Problem, grid: BalanceGrid) -> Iterable[Balance]:
    """The balance asked for, then every combination of the knobs, those first that differ from it in the fewest."""
    wanted = problem.balance
    if problem.rebalance != "all":
        return [wanted]
    if budget_steps.asked(problem.budget):
        return budget_steps.spread_out(budget_steps.ladder(wanted, problem.budget))
    axes = [(getattr(wanted, knob), *getattr(_filled(problem, grid), knob)) for knob in KNOBS]
    points = [Balance(*point) for point in product(*axes)]
    return sorted(points, key=lambda point: sum(getattr(point, knob) != getattr(wanted, knob) for knob in KNOBS))


def _filled(problem: Problem, grid: BalanceGrid) -> BalanceGrid:
    """The YAML's grid; one of our own where it gives none."""
    if any(getattr(grid, knob) for knob in KNOBS):
        return grid
    own = BalanceGrid(replicas=_LOOSER, topic_replicas=(NO_TOLERANCE,))
    sized = problem.sizes_known and bool(problem.size_bytes.any())
    written = bool(problem.bytes_in_per_sec.any())
    sent = written or bool(problem.bytes_out_per_sec.any())
    return replace(
        own,
        disk=_OF_DISK if sized else (),
        network_in=_OF_TRAFFIC if written else (),
        network_out=_OF_TRAFFIC if sent else (),
    )


_OF_TRAFFIC = (Tolerance("percent", 10), NO_TOLERANCE)


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
        pa.Table.from_pylist([_values(each) for each in round_robin], schema=CANDIDATE_SCHEMA),
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
    words = [*(str(getattr(problem.balance, knob)) for knob in KNOBS), NO_SCENARIOS]
    knobs = [pa.array([word] * count, pa.string()) for word in words]
    numbers = [pa.array(drawn if column is None else column, pa.int32()) for column in (starts, shifts)]
    names = pa.array([strategy] * count, pa.string())
    return pa.Table.from_arrays([pa.array(drawn), names, pa.array(seeds), *numbers, *knobs], schema=CANDIDATE_SCHEMA)


def _values(candidate: Candidate, scenarios: str = NO_SCENARIOS) -> dict[str, object]:
    """The candidate as a row, not numbered yet."""
    knobs = {knob: str(getattr(candidate.balance, knob)) for knob in KNOBS}
    return {"candidate": -1, **candidate._asdict(), **knobs, "scenarios": scenarios}


FILE = "candidates.parquet"


def encoded(rows: pa.Table) -> bytes:
    """The file; no metadata but the schema's, so equal rows are equal bytes."""
    buffer = BytesIO()
    pq.write_table(rows.replace_schema_metadata(None).combine_chunks(), buffer, compression="zstd")
    return buffer.getvalue()


def digest(rows: pa.Table) -> str:
    """SHA-256 over the names, types and values of the columns, in their order."""
    found = hashlib.sha256(f"{len(rows)}\n".encode())
    for field, column in zip(rows.schema, rows.columns, strict=True):
        head = f"{field.name} {field.type}\n"
        found.update(head.encode() + json.dumps(column.to_pylist(), separators=(",", ":")).encode() + b"\n")
    return found.hexdigest()


def is_of(content: bytes, row_count: int, sha256: str) -> bool:
    """True where a file holds exactly the rows of this digest, as this pyarrow or another version of it writes them."""
    try:
        file = pq.ParquetFile(BytesIO(content))
        # The number first: a small file may claim to hold rows without end.
        if file.metadata.num_rows != row_count:
            return False
        rows = file.read()
        if digest(rows) != sha256:
            return False
        ours = encoded(rows)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return content == ours or file.metadata.created_by != pq.ParquetFile(BytesIO(ours)).metadata.created_by
