"""`replace_brokers` moves every replica one to one, `set_racks` repairs what it breaks, and neither does more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import RACK_NAMES, ids_of, no_racks, problem_of, specs
from hypothesis import given
from hypothesis import strategies as st

from planner.model.balance import Tolerance
from planner.model.build_problem import build, today
from planner.model.spec import Changes, Spec, TopicFilter
from planner.scoring import independent_check
from planner.strategies.optimum import solve


@st.composite
def replacing(draw: st.DrawFn, rack_aware: bool) -> Spec:
    """A spec that only replaces some brokers by new ones in the same racks."""
    spec = draw(specs())
    leaving = draw(st.lists(st.sampled_from(spec.cluster.brokers), min_size=1, unique=True))
    joining = tuple(replace(broker, id=50 + at) for at, broker in enumerate(leaving))
    pairs = tuple((old.id, new.id) for old, new in zip(leaving, joining, strict=True))
    changes = Changes(add_brokers=joining, replace_brokers=pairs, rebalance="none")
    balance = replace(spec.balance, disk=Tolerance.parse(draw(st.sampled_from(("none", "0%", "25%")))))
    return replace(spec, changes=changes, topics=TopicFilter(), rack_aware=rack_aware, balance=balance)


@given(replacing(rack_aware=False))
def test_every_replica_goes_to_the_replacement_in_its_place(spec: Spec) -> None:
    """Replica lists are today's with one id in the place of another, so leaders are too."""
    problem = build(spec)
    successor = dict(spec.changes.replace_brokers)
    expected = [[successor.get(broker, broker) for broker in row] for row in ids_of(problem, today(problem))]
    assert expected == ids_of(problem, solve(problem, problem.balance).assignment)


@given(replacing(rack_aware=True))
def test_racks_that_are_even_stay_so(spec: Spec) -> None:
    """With racks the same holds for every partition that they let it: those that are spread as evenly as can be."""
    problem = build(spec)
    index = {broker: at for at, broker in enumerate(problem.broker_ids.tolist())}
    moved = today(problem).copy()
    for old, new in spec.changes.replace_brokers:
        moved[moved == index[old]] = index[new]
    even = ~independent_check.broken_rules(problem, moved)["rack spread"]
    after = solve(problem, problem.balance).assignment
    assert moved[even].tolist() == after[even].tolist()


def test_a_replacement_that_has_the_partition_leaves_it_to_another() -> None:
    """Broker 2 can't have a partition twice: if it has a replica already, another broker takes over from broker 1."""
    problem = problem_of(
        no_racks(1, 2, 3), {"t": [[1, 2], [3, 1]]}, changes=Changes(replace_brokers=((1, 2),), rebalance="none")
    )
    first, second = ids_of(problem, solve(problem, problem.balance).assignment)
    assert ([2, 3], [3, 2]) == (sorted(first), second)


@st.composite
def reracked(draw: st.DrawFn) -> Spec:
    """A spec that only gives some brokers other racks; all brokers have a rack."""
    spec = draw(specs())
    rack = st.sampled_from(RACK_NAMES)
    brokers = tuple(replace(broker, rack=draw(rack)) for broker in spec.cluster.brokers)
    moved = draw(st.lists(st.sampled_from([broker.id for broker in brokers]), min_size=1, max_size=2, unique=True))
    changes = Changes(set_racks=tuple((broker, draw(rack)) for broker in moved), rebalance="none")
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers), changes=changes, rack_aware=True)


@given(reracked())
def test_set_racks_repairs_what_it_breaks(spec: Spec) -> None:
    """Partitions that it crowds are spread as evenly as can be again; all others stay."""
    problem = build(spec)
    after = solve(problem, problem.balance).assignment
    racks = {broker.id: broker.rack for broker in spec.cluster.brokers}
    now = racks | dict(spec.changes.set_racks)
    crowded = np.array([_pairs(row, now) > _pairs(row, racks) for row in ids_of(problem, today(problem))], dtype=bool)
    repaired = crowded & problem.movable
    assert () == independent_check.check(problem, after)
    assert today(problem)[~repaired].tolist() == after[~repaired].tolist()
    assert not independent_check.broken_rules(replace(problem, forced=repaired), after)["rack spread"].any()


def _pairs(row: list[int], racks: dict[int, str | None]) -> int:
    """The number of pairs of a partition's replicas that share a rack."""
    return sum(racks[one] == racks[other] for at, one in enumerate(row) for other in row[:at])


def test_set_racks_by_hand() -> None:
    """Broker 2 joins broker 1's rack: the partition on both moves a replica to the rack that is now empty."""
    problem = problem_of(
        {1: "a", 2: "b", 3: "b"},
        {"t": [[1, 2], [1, 3], [3, 2]]},
        changes=Changes(set_racks=((2, "a"),), rebalance="none"),
    )
    assert [[1, 3], [1, 3], [3, 2]] == ids_of(problem, solve(problem, problem.balance).assignment)
