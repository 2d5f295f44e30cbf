"""What breaks when brokers fail, today, after a plan and at each batch in between: rows, one a scenario and stage.

A `FailureStudy` holds what all scenarios need; `evaluate` judges some of them, here or on Spark workers, with the same
rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from planner.model.build_problem import brokers_after
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import Spec
from planner.plan.document.partition_types import BatchRow
from planner.scoring.broker_loads import measured
from planner.whatif.cluster_states import FACTS, PLANNED, TODAY, Stage, stages
from planner.whatif.failing_brokers import (
    BROKERS,
    KINDS,
    LOADS,
    RACKS,
    Domains,
    Scenarios,
    SignedRows,
    Table,
    add,
    brokers_of,
    named,
    scenarios,
    table,
)

# Of the brokers that live: the most leaders and bytes/s on one of them, and how many have more than they can hold.
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
    """A problem's stages (S) as tables: the first one whole, each other one what is different from the one before.

    tables (domain kind → S tables); held_bytes (S, B); disk_bytes and network_bytes_per_sec (B,), -1 where not stated.
    """

    problem: Problem
    names: tuple[str, ...]
    tables: Mapping[str, tuple[Table, ...]]
    held_bytes: LongArray
    disk_bytes: LongArray
    network_bytes_per_sec: LongArray
    measures: int

    @property
    def states_capacity(self) -> bool:
        """True where any broker's disk or network is stated, and what goes onto it is known."""
        disks = self.problem.sizes_known and (self.disk_bytes >= 0).any()
        return bool(disks or (self.measures > 1 and (self.network_bytes_per_sec >= 0).any()))


def study(spec: Spec, problem: Problem, batches: Sequence[BatchRow], wanted: Iterable[Scenarios]) -> FailureStudy:
    """The study of a spec and a plan's batches (none: today alone) for these scenarios."""
    measures = len(LOADS) if measured(problem) > len(LOADS) else 1
    orders: dict[str, tuple[Domains, int]] = {}
    for each in wanted:
        key = domain_kind(each.kind)
        orders[key] = (each.domains, max(each.sets.shape[1], orders.get(key, (None, 0))[1]))
    names, held, tables = list[str](), list[LongArray](), {key: list[Table]() for key in orders}
    before: Stage | None = None
    for stage in stages(spec, problem, batches):
        parts = [_part(1, stage, stage.rows)]
        if before is not None:
            parts.append(_part(-1, before, stage.rows))
        for key, (domains, order) in orders.items():
            tables[key].append(table(parts, domains, order, measures))
        names.append(stage.name)
        # Copies that aren't complete yet count in full.
        replicas, slots = stage.first.replicas, stage.first.replicas >= 0
        sizes = np.broadcast_to(stage.first.size_bytes[:, None], replicas.shape)
        on_brokers = np.zeros(len(problem.broker_ids), dtype=np.int64)
        np.add.at(on_brokers, replicas[slots], sizes[slots])
        held.append(on_brokers)
        before = stage
    brokers = brokers_after(spec)
    return FailureStudy(
        problem,
        tuple(names),
        {key: tuple(each) for key, each in tables.items()},
        np.stack(held),
        _stated(each.disk_bytes for each in brokers),
        _stated(each.network_bytes_per_sec for each in brokers),
        measures,
    )


def domain_kind(kind: str) -> str:
    """What fails as one in scenarios of a kind: racks, or brokers."""
    return RACKS if kind == RACKS else BROKERS


def all_scenarios(problem: Problem, kinds: Sequence[str], most: int, seed: int) -> tuple[Scenarios, ...]:
    """The scenarios of each kind; racks only where there are any."""
    found = (scenarios(problem, kind, most, seed) for kind in dict.fromkeys(kinds))
    return tuple(each for each in found if len(each.sets))


def run(study: FailureStudy, wanted: Iterable[Scenarios]) -> pa.Table:
    """Every scenario's rows, in this process: by kind, scenario and stage."""
    parts = [
        evaluate(study, each, start, min(start + CHUNK, len(each.sets)))
        for each in wanted
        for start in range(0, len(each.sets), CHUNK)
    ]
    return pa.concat_tables([ROW_SCHEMA.empty_table(), *parts]).combine_chunks()


def evaluate(study: FailureStudy, scenarios: Scenarios, start: int, end: int) -> pa.Table:
    """The rows (ROW_SCHEMA) of the scenarios start to end - 1, by scenario and stage.

    Of a number of brokers all batches are one row, with the worst of each column; of brokers, racks and pairs each
    batch has its own. Where leaders move to isn't listed for pairs and more while batches run.
    """
    sets = scenarios.sets[start:end]
    states = list(_states(study, scenarios, sets))
    if scenarios.kind not in KINDS:
        states = _folded(states)
    columns = [_columns(study, scenarios, sets, start, state) for state in states]
    order = np.arange(len(sets) * len(states)).reshape(len(states), len(sets)).T.ravel()
    return pa.concat_tables(columns).combine_chunks().take(pa.array(order)) if len(sets) else ROW_SCHEMA.empty_table()


@dataclass(frozen=True, eq=False)
class _State:
    """A stage's numbers for C scenarios: facts (C, F), most (C, 3), who leads most (C,), size (C,), over (C,), and the
    leaders that each broker gains (C, B), None where not listed.
    """

    number: int
    name: str
    facts: LongArray
    most: LongArray
    leader: LongArray
    size_bytes: LongArray
    over: LongArray
    gained: LongArray | None


def _states(study: FailureStudy, scenarios: Scenarios, sets: IntArray) -> Iterable[_State]:
    brokers = len(study.problem.broker_ids)
    facts = np.zeros((len(sets), len(FACTS)), dtype=np.int64)
    loads = np.zeros((len(sets), brokers, study.measures), dtype=np.int64)
    calm = np.zeros((1, brokers, study.measures), dtype=np.int64)
    nobody, unused = np.zeros((1, 0), dtype=np.int32), np.zeros((1, len(FACTS)), dtype=np.int64)
    live = ~(scenarios.domains.of[None, :, None] == sets[:, None, :]).any(axis=2)
    few = scenarios.kind in (BROKERS, RACKS)
    for number, name in enumerate(study.names):
        each = study.tables[domain_kind(scenarios.kind)][number]
        add(each, sets, facts, loads)
        add(each, nobody, unused, calm)
        listed = few or name in (TODAY, PLANNED)
        gained = np.where(live, loads[:, :, 0] - calm[:, :, 0], 0) if listed else None
        shown = np.where(live[:, :, None], loads, -1)
        held = np.where(live, study.held_bytes[number], -1)
        most = np.full((len(loads), len(MOST)), -1, dtype=np.int64)
        most[:, : study.measures] = shown.max(axis=1)
        over = (study.disk_bytes >= 0) & (held > study.disk_bytes)
        if study.measures > 1:
            over |= (study.network_bytes_per_sec >= 0) & (shown[:, :, 1:].max(axis=2) > study.network_bytes_per_sec)
        leader = np.where(live.any(axis=1), shown[:, :, 0].argmax(axis=1), -1)
        yield _State(
            number, study.names[number], facts.copy(), most, leader, held.max(axis=1), over.sum(axis=1), gained
        )


def _folded(states: Sequence[_State]) -> list[_State]:
    """Today, all batches as one, and the plan carried out."""
    if len(states) < 2:
        return list(states)
    first, *between, last = states
    most = np.stack([each.most for each in between])
    at = most[:, :, 0].argmax(axis=0)
    leaders = np.stack([each.leader for each in between])[at, np.arange(len(at))]
    worst = _State(
        between[0].number,
        BATCHES,
        np.stack([each.facts for each in between]).max(axis=0),
        most.max(axis=0),
        leaders,
        np.stack([each.size_bytes for each in between]).max(axis=0),
        np.stack([each.over for each in between]).max(axis=0),
        None,
    )
    return [first, worst, last]


def _columns(study: FailureStudy, scenarios: Scenarios, sets: IntArray, start: int, state: _State) -> pa.Table:
    """The rows (ROW_SCHEMA) of a state; at the end of each, which brokers lead more than before, and how many more."""
    problem, count = study.problem, len(sets)
    known = [True, study.measures > 1, study.measures > 1]
    lists = [pa.nulls(count, pa.list_(pa.int32())), pa.nulls(count, pa.list_(pa.int64()))]
    if state.gained is not None:
        rows, brokers = np.nonzero(state.gained > 0)
        ends = np.cumsum(np.bincount(rows, minlength=count))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        to, more = problem.broker_ids[brokers].astype(np.int32), state.gained[rows, brokers].astype(np.int64)
        lists = [pa.ListArray.from_arrays(offsets, pa.array(each)) for each in (to, more)]
    columns = [
        pa.array([scenarios.kind] * count, pa.string()),
        pa.array(np.arange(start, start + count, dtype=np.int64)),
        pa.array([named(problem, scenarios.kind, each) for each in sets], pa.string()),
        pa.array([brokers_of(problem, scenarios, each) for each in sets], pa.list_(pa.int32())),
        pa.array(np.full(count, state.number, dtype=np.int32)),
        pa.array([state.name] * count, pa.string()),
        *(
            pa.array(column, mask=np.full(count, name == "lost_bytes" and not problem.sizes_known))
            for name, column in zip(FACTS, state.facts.T, strict=True)
        ),
        *(pa.array(column, mask=(column < 0) | (not told)) for column, told in zip(state.most.T, known, strict=True)),
        pa.array(problem.broker_ids[state.leader].astype(np.int32), mask=state.leader < 0),
        pa.array(state.size_bytes, mask=(state.size_bytes < 0) | (not problem.sizes_known)),
        pa.array(state.over.astype(np.int64), mask=np.full(count, not study.states_capacity)),
        *lists,
    ]
    return pa.Table.from_arrays(columns, schema=ROW_SCHEMA)


def _part(sign: int, stage: Stage, rows: LongArray) -> SignedRows:
    first = stage.first.take(rows)
    return SignedRows(sign, first, first if stage.second is stage.first else stage.second.take(rows))


def _stated(values: Iterable[int | None]) -> LongArray:
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)
