"""Small clusters for tests: a builder that reads like a table, and hypothesis strategies for whole specs.

Every drawn spec keeps the rules that the planner checks in a YAML: all brokers have racks or none do, the remaining
brokers can hold each replication factor, and excluded topics need not move. So each spec has at least one valid plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.document_fields import PlacementRuleRow, ReplicationFactorRow
from planner.model.problem import IntArray, Problem, misplaced
from planner.model.spec import Changes, Monthly, Rate, Spec, TopicFilter

Racks = Mapping[int, str | None]
Rows = Mapping[str, Sequence[Sequence[int]]]

RACK_NAMES = ("a", "b", "c", "d")
TOLERANCES = ("0", "1", "2", "20%", "none")


def no_racks(*brokers: int) -> dict[int, str | None]:
    """Brokers without racks."""
    return dict.fromkeys(brokers)


def spec_of(
    racks: Racks,
    lists: Rows,
    /,
    *,
    sizes: Mapping[str, Sequence[int]] | int = 1,
    leaders: Mapping[str, Sequence[int | None]] | None = None,
    config: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    changes: Changes | None = None,
    **rest: Any,
) -> Spec:
    """A spec of brokers (id → rack) and topics (name → replica lists). Each partition's preferred leader leads it.

    `sizes` are bytes, one for all topics or by topic; `leaders` are today's by topic; `rest` are fields of `Spec`.
    """
    built = []
    for name, rows in lists.items():
        size = [sizes] * len(rows) if isinstance(sizes, int) else sizes[name]
        lead = [row[0] for row in rows] if leaders is None or name not in leaders else leaders[name]
        parts = [Partition(at, tuple(row), lead[at], None, size[at]) for at, row in enumerate(rows)]
        built.append(Topic(name, tuple(parts), (config or {}).get(name, ())))
    cluster = Cluster("small", tuple(Broker(*item) for item in racks.items()), tuple(built))
    return Spec(cluster, changes or Changes(), **rest)


def problem_of(racks: Racks, lists: Rows, /, **rest: Any) -> Problem:
    """The spec of `spec_of` as flat arrays."""
    return build(spec_of(racks, lists, **rest))


def crowded() -> Problem:
    """A problem with a new broker, whose windows of topics and of bytes can't all be met."""
    return problem_of(
        no_racks(1, 2, 3),
        {"a": [(1, 2), (2, 3), (1, 3), (3, 2), (2, 1)], "b": [(1,), (1,), (2,)]},
        sizes={"a": [900, 400, 300, 500, 100], "b": [1_500, 40, 700]},
        changes=Changes(add_brokers=(Broker(4),)),
        balance=balance_of(0, 1, 0, "none", "10%"),
    )


def assignment_of(problem: Problem, rows: Sequence[Sequence[int]]) -> IntArray:
    """Replica lists of broker ids, in the problem's order of partitions, as an assignment (P, W)."""
    at = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}
    matrix = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for row, brokers in enumerate(rows):
        matrix[row, : len(brokers)] = [at[broker] for broker in brokers]
    return matrix


def ids_of(problem: Problem, assignment: IntArray) -> list[list[int]]:
    """An assignment (P, W) as lists of broker ids, without the padding."""
    ids = problem.broker_ids.tolist()
    return [[ids[broker] for broker in row if broker >= 0] for row in assignment.tolist()]


def balance_of(*texts: str | int) -> Balance:
    """A balance from tolerances as the YAML writes them: replicas, leaders, topic_replicas, topic_leaders, bytes."""
    return Balance(*(Tolerance.parse(text) for text in texts))


# Strategies are made once, because hypothesis examines each anew, which takes longer than a draw.
_sampled = cache(st.sampled_from)


@cache
def balances() -> st.SearchStrategy[Balance]:
    """Draws every mix of tolerances."""
    tolerance = st.sampled_from(TOLERANCES).map(Tolerance.parse)
    return st.builds(Balance, tolerance, tolerance, tolerance, tolerance)


@st.composite
def specs(
    draw: st.DrawFn, brokers: int = 7, topics: int = 3, partitions: int = 5, rebalance: Sequence[str] = ("all",)
) -> Spec:
    """A whole spec: racks of unequal size, different factors, sizes of 0, brokers that join and leave, and more."""
    today = draw(st.lists(st.integers(0, 30), min_size=2, max_size=brokers - 1, unique=True))
    racked = draw(st.booleans())
    racks = {broker: draw(_sampled(RACK_NAMES)) if racked else None for broker in sorted(today)}
    leaving = draw(st.lists(st.sampled_from(sorted(today)), max_size=len(today) - 1, unique=True))
    added = draw(st.lists(st.integers(31, 40), max_size=brokers - len(today), unique=True))
    replaced = list(zip(leaving, added, strict=False)) if draw(st.booleans()) else []
    removed = tuple(broker for broker in leaving if broker not in dict(replaced))
    targets = (set(today) | set(added)) - set(leaving)
    rows = {
        f"t{number}": draw(_partitions(sorted(today), partitions)) for number in range(draw(st.integers(1, topics)))
    }
    fixed = [name for name in rows if _may_stay(rows[name], set(leaving)) and draw(st.booleans())]
    factors = _factor_changes(draw, rows, fixed, len(targets))
    sets = draw(st.dictionaries(st.sampled_from(sorted(targets)), st.sampled_from(RACK_NAMES), max_size=2))
    return Spec(
        cluster=Cluster(
            "small",
            tuple(Broker(broker, rack) for broker, rack in racks.items()),
            tuple(Topic(name, parts) for name, parts in rows.items()),
        ),
        changes=Changes(
            add_brokers=tuple(Broker(b, draw(_sampled(RACK_NAMES)) if racked else None) for b in sorted(added)),
            remove_brokers=removed,
            replace_brokers=tuple(replaced),
            set_racks=tuple(sets.items()) if racked else (),
            set_replication_factor=factors,
            rebalance=draw(st.sampled_from(rebalance)),
        ),
        topics=TopicFilter(exclude=tuple(fixed)),
        rack_aware=draw(_sampled((True, True, True, False))),
        balance=draw(balances()),
    )


@st.composite
def placed_specs(draw: st.DrawFn, **options: Any) -> Spec:
    """A spec of `specs` with placement rules that every topic can keep; broker sets may overlap or be exclusive."""
    spec = draw(specs(**options))
    names = [topic.name for topic in spec.cluster.topics]
    leaving = {*spec.changes.remove_brokers, *(old for old, _ in spec.changes.replace_brokers)}
    targets = sorted({each.id for each in (*spec.cluster.brokers, *spec.changes.add_brokers)} - leaving)
    sets = st.lists(st.sampled_from(targets), min_size=1, max_size=len(targets), unique=True).map(tuple)
    rules = tuple(
        PlacementRuleRow(name, f"set {name}", draw(sets), draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    )
    spec = replace(spec, placement=rules)
    reserved = [set(rule.brokers) for rule in rules if rule.exclusive]
    # If a topic's set and another topic's exclusive set contradict each other, the planner refuses the YAML.
    assume(all(not set(rule.brokers) & other for rule in rules for other in reserved if other != set(rule.brokers)))
    problem = build(spec)
    usable = problem.allowed_targets
    assert usable is not None
    assume(bool((usable.sum(axis=1)[problem.topic_of] >= problem.replication_factors).all()))
    assume(not (misplaced(problem, problem.replicas) & ~problem.movable).any())
    return spec


def placed_problems(**options: Any) -> st.SearchStrategy[Problem]:
    """A spec of `placed_specs` as flat arrays."""
    return placed_specs(**options).map(build)


@st.composite
def cordoned(draw: st.DrawFn, drawn: st.SearchStrategy[Spec]) -> Problem:
    """The problem of a drawn spec in which one or two of today's brokers are cordoned."""
    spec = draw(drawn)
    ids = [broker.id for broker in spec.cluster.brokers]
    shut = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=2, unique=True))
    return build(with_cordons(spec, *shut))


def with_cordons(spec: Spec, *shut: int) -> Spec:
    """The spec with these brokers cordoned."""
    brokers = (replace(each, cordoned_log_dirs=("*",) * (each.id in shut)) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, brokers=tuple(brokers)))


@st.composite
def loaded_problems(draw: st.DrawFn, **options: Any) -> Problem:
    """`problems` with rates, growth and windows of bytes. All, some or no brokers state disks and networks."""
    spec = draw(specs(**options))
    rate = st.sampled_from((0, 1, 5, 1000))
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(each, bytes_in_per_sec=draw(rate), bytes_out_per_sec=draw(rate)) for each in topic.partitions
            ),
        )
        for topic in spec.cluster.topics
    )
    room = draw(st.sampled_from(((None,), (1, 2, 4 * 1024**4), (None, 3), (10**14, 10**14 - 7))))
    today, added = (
        tuple(
            replace(each, disk_bytes=draw(st.sampled_from(room)), network_bytes_per_sec=draw(st.sampled_from(room)))
            for each in brokers
        )
        for brokers in (spec.cluster.brokers, spec.changes.add_brokers)
    )
    percent = st.sampled_from(("none", "0%", "10%", "150%")).map(Tolerance.parse)
    grows = draw(st.sampled_from(((), (Rate("t0", 500_000), Rate("*", -100_000)))))
    return build(
        replace(
            spec,
            cluster=replace(spec.cluster, brokers=today, topics=topics),
            changes=replace(spec.changes, add_brokers=added),
            growth=Monthly(grows),
            balance=replace(spec.balance, disk=draw(percent), network_in=draw(percent), network_out=draw(percent)),
        )
    )


def problems(**options: Any) -> st.SearchStrategy[Problem]:
    """A spec of `specs` as flat arrays."""
    return specs(**options).map(build)


@st.composite
def _partitions(draw: st.DrawFn, brokers: Sequence[int], most: int) -> tuple[Partition, ...]:
    """Partitions of one topic. Many have a size of 0, a leader that isn't the preferred one, or no leader."""
    rows, lists = [], st.lists(st.sampled_from(brokers), min_size=1, max_size=3, unique=True)
    for number in range(draw(st.integers(1, most))):
        replicas = tuple(draw(lists))
        leader = draw(_sampled((replicas[0], *replicas, None)))
        rows.append(Partition(number, replicas, leader, None, draw(_sampled((0, 1, 1, 2, 3, 7)))))
    return tuple(rows)


def _may_stay(rows: Sequence[Partition], leaving: set[int]) -> bool:
    return not any(leaving & set(row.replicas) for row in rows)


def _factor_changes(
    draw: st.DrawFn, rows: Mapping[str, Sequence[Partition]], fixed: Sequence[str], targets: int
) -> tuple[ReplicationFactorRow, ...]:
    """New factors for some topics, and for every topic that has more replicas than there are target brokers."""
    found = []
    for name, parts in rows.items():
        too_wide = max(len(part.replicas) for part in parts) > targets
        if too_wide or (name not in fixed and draw(st.booleans())):
            found.append(ReplicationFactorRow(name, draw(st.integers(1, min(3, targets)))))
    return tuple(found)


def scrambled(problem: Problem, seed: int) -> IntArray:
    """A random assignment that keeps only the replication factors and has different brokers in each row."""
    rng = np.random.default_rng(seed)
    count = len(problem.broker_ids)
    assignment = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for row, factor in enumerate(problem.replication_factors.tolist()):
        assignment[row, :factor] = rng.permutation(count)[:factor]
    return assignment
