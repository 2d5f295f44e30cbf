"""What breaks when brokers fail: today, after a plan and during each batch. One row per scenario and stage.

A `FailureStudy` holds what all scenarios need; `evaluate` judges some of them. The rows are the same here and on Spark
workers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from planner.model.build_problem import brokers_after, network_limits
from planner.model.problem import IntArray, LongArray, Problem, sums_at
from planner.model.spec import Spec
from planner.plan.document.partition_types import BatchRow
from planner.scoring.broker_loads import measure_count
from planner.whatif import failure_sets
from planner.whatif.cluster_states import FACTS, PLANNED, TODAY, Stage, stages
from planner.whatif.failure_sets import BROKERS, KINDS, LOADS, RACKS, FailureSets, OutcomeSums, SignedRows

# On the live brokers: the most leaders and bytes/s on one of them, and how many are above their capacity.
MOST = ("leaders_most", "network_in_most", "network_out_most")
BATCHES = "batches"
CHUNK = 2_000

ROW_SCHEMA = pa.schema(
    [
        ("of", pa.string()),
        ("scenario", pa.int64()),
        ("failed", pa.string()),
        ("brokers", pa.list_(pa.int32())),
        ("stage", pa.int32()),
        ("state", pa.string()),
        *((name, pa.int64()) for name in FACTS),
        *((name, pa.int64()) for name in MOST),
        ("leaders_most_broker", pa.int32()),
        ("size_bytes_most", pa.int64()),
        ("over_capacity", pa.int64()),
        ("moved_to", pa.list_(pa.int32())),
        ("moved_leaders", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, eq=False)
class FailureStudy:
    """A problem's stages (S) as tables: the first is complete, each later one has the differences to the one before.

    tables (domain kind → S tables); held_bytes (S, B); disk_bytes and network_bytes_per_sec (B,), -1 if not stated.
    """

    problem: Problem
    names: tuple[str, ...]
    tables: Mapping[str, tuple[OutcomeSums, ...]]
    held_bytes: LongArray
    disk_bytes: LongArray
    network_bytes_per_sec: LongArray
    measures: int


def study(spec: Spec, problem: Problem, batches: Sequence[BatchRow], scenarios: Iterable[FailureSets]) -> FailureStudy:
    """The study of a spec and a plan's batches (without batches: only today) for these scenarios."""
    measures = len(LOADS) if measure_count(problem) > len(LOADS) else 1
    orders: dict[str, tuple[IntArray, int]] = {}
    for failing in scenarios:
        key = _domain_kind(failing.kind)
        orders[key] = (failing.domains, max(failing.sets.shape[1], orders.get(key, (None, 0))[1]))
    names, broker_bytes, tables = list[str](), list[LongArray](), {key: list[OutcomeSums]() for key in orders}
    before: Stage | None = None
    for stage in stages(spec, problem, batches):
        parts = [SignedRows(1, stage.first, stage.second).take(stage.rows)]
        if before is not None:
            parts.append(SignedRows(-1, before.first, before.second).take(stage.rows))
        for key, (domain_of, order) in orders.items():
            tables[key].append(failure_sets.table(parts, domain_of, order, measures))
        names.append(stage.name)
        # Incomplete copies count in full.
        replicas, slots = stage.first.replicas, stage.first.replicas >= 0
        sizes = np.broadcast_to(stage.first.size_bytes[:, None], replicas.shape)
        broker_bytes.append(sums_at(len(problem.broker_ids), replicas[slots], sizes[slots]))
        before = stage
    brokers, tables_by_kind = brokers_after(spec), {key: tuple(each) for key, each in tables.items()}
    disks = np.array([-1 if each.disk_bytes is None else each.disk_bytes for each in brokers], dtype=np.int64)
    networks, held_bytes = network_limits(spec), np.stack(broker_bytes)
    return FailureStudy(problem, tuple(names), tables_by_kind, held_bytes, disks, networks, measures)


def _domain_kind(kind: str) -> str:
    """What fails as a unit in scenarios of a kind: racks, or brokers."""
    return RACKS if kind == RACKS else BROKERS


def all_scenarios(problem: Problem, kinds: Sequence[str], most: int, seed: int) -> tuple[FailureSets, ...]:
    """The scenarios of each kind; racks only if there are any."""
    all_sets = (failure_sets.scenarios(problem, kind, most, seed) for kind in dict.fromkeys(kinds))
    return tuple(each for each in all_sets if len(each.sets))


def questions(study: FailureStudy, scenarios: Iterable[FailureSets]) -> list[Callable[[], pa.Table]]:
    """The functions that give the rows of all scenarios, chunk by chunk: by kind, scenario and stage."""
    return [
        partial(evaluate, study, failing, start, min(start + CHUNK, len(failing.sets)))
        for failing in scenarios
        for start in range(0, len(failing.sets), CHUNK)
    ]


def join_rows(answers: Iterable[pa.Table]) -> pa.Table:
    """The rows of all chunks, none without a chunk: racks are to fail, and no broker has one."""
    return pa.concat_tables([ROW_SCHEMA.empty_table(), *answers]).combine_chunks()


def evaluate(study: FailureStudy, scenarios: FailureSets, start: int, end: int) -> pa.Table:
    """The rows (ROW_SCHEMA) of the scenarios start to end - 1, by scenario and stage.

    For a number of brokers all batches are one row, with the worst of each column; for brokers, racks and pairs each
    batch has its own row. For pairs and more, the new leaders' brokers aren't listed while batches run.
    """
    sets = scenarios.sets[start:end]
    states = list(_states(study, scenarios, sets))
    if scenarios.kind not in KINDS and len(states) > 1:
        today, *between, planned = states
        stacked = {name: np.stack([each.columns[name] for each in between]) for name in today.columns}
        worst = {name: columns.max(axis=0) for name, columns in stacked.items()}
        worst_batch = stacked["leaders_most"].argmax(axis=0)
        worst["leaders_most_broker"] = stacked["leaders_most_broker"][worst_batch, np.arange(len(worst_batch))]
        states = [today, _State(between[0].number, BATCHES, worst, None), planned]
    tables = [_table(study, scenarios, sets, start, state) for state in states]
    order = np.arange(len(sets) * len(states)).reshape(len(states), len(sets)).T.ravel()
    return pa.concat_tables(tables).combine_chunks().take(pa.array(order)) if len(sets) else ROW_SCHEMA.empty_table()


class _State(NamedTuple):
    """A stage's numbers for C scenarios: columns (C,) of ROW_SCHEMA, below 0 if unknown; and how many leaders each
    broker gains (C, B), None if not listed.
    """

    number: int
    name: str
    columns: Mapping[str, LongArray]
    gained: LongArray | None


def _states(study: FailureStudy, scenarios: FailureSets, sets: IntArray) -> Iterable[_State]:
    problem, brokers = study.problem, len(study.problem.broker_ids)
    facts = np.zeros((len(sets), len(FACTS)), dtype=np.int64)
    loads = np.zeros((len(sets), brokers, study.measures), dtype=np.int64)
    base_loads = np.zeros((1, brokers, study.measures), dtype=np.int64)
    nobody, no_facts = np.zeros((1, 0), dtype=np.int32), np.zeros((1, len(FACTS)), dtype=np.int64)
    live = ~(scenarios.domains[None, :, None] == sets[:, None, :]).any(axis=2)
    is_single = scenarios.kind in (BROKERS, RACKS)
    disks, networks = (room >= 0 for room in (study.disk_bytes, study.network_bytes_per_sec))
    unknown = [] if problem.sizes_known else ["lost_bytes", "size_bytes_most"]
    if not ((problem.sizes_known and disks.any()) or (study.measures > 1 and networks.any())):
        unknown.append("over_capacity")
    for number, name in enumerate(study.names):
        outcome_sums = study.tables[_domain_kind(scenarios.kind)][number]
        failure_sets.add(outcome_sums, sets, facts, loads)
        failure_sets.add(outcome_sums, nobody, no_facts, base_loads)
        live_loads = np.where(live[:, :, None], loads, -1)
        live_bytes = np.where(live, study.held_bytes[number], -1)
        is_over = disks & (live_bytes > study.disk_bytes)
        if study.measures > 1:
            is_over |= networks & (live_loads[:, :, 1:].max(axis=2) > study.network_bytes_per_sec)
        columns = dict(zip(FACTS, facts.T.copy(), strict=True)) | dict.fromkeys(MOST, np.full(len(sets), -1))
        columns |= dict(zip(MOST, live_loads.max(axis=1).T, strict=False))
        most_loaded = problem.broker_ids[live_loads[:, :, 0].argmax(axis=1)]
        columns["leaders_most_broker"] = np.where(live.any(axis=1), most_loaded, -1)
        columns |= {"size_bytes_most": live_bytes.max(axis=1), "over_capacity": is_over.sum(axis=1)}
        columns |= dict.fromkeys(unknown, np.full(len(sets), -1))
        is_listed = is_single or name in (TODAY, PLANNED)
        gained = np.where(live, loads[:, :, 0] - base_loads[:, :, 0], 0) if is_listed else None
        yield _State(number, name, columns, gained)


def _table(study: FailureStudy, scenarios: FailureSets, sets: IntArray, start: int, state: _State) -> pa.Table:
    """The rows (ROW_SCHEMA) of a state; each ends with the brokers that lead more than before, and how many more."""
    problem, count = study.problem, len(sets)
    lists: list[Any] = [[None] * count] * 2
    if state.gained is not None:
        rows, brokers = np.nonzero(state.gained > 0)
        ends = np.cumsum(np.bincount(rows, minlength=count))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        lists = [
            pa.ListArray.from_arrays(offsets, pa.array(each))
            for each in (problem.broker_ids[brokers], state.gained[rows, brokers])
        ]
    columns = {
        "of": [scenarios.kind] * count,
        "scenario": np.arange(start, start + count),
        "failed": [failure_sets.failure_name(problem, scenarios.kind, each) for each in sets],
        "brokers": [problem.broker_ids[np.isin(scenarios.domains, each)] for each in sets],
        "stage": np.full(count, state.number),
        "state": [state.name] * count,
        **{name: pa.array(column, mask=column < 0) for name, column in state.columns.items()},
        **dict(zip(("moved_to", "moved_leaders"), lists, strict=True)),
    }
    return pa.table(columns, schema=ROW_SCHEMA)
