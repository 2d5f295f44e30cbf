"""Nobody plans an election for a broker that is in no ISR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusters import assignment_of, ids_of, spec_of

from planner.execution.change_reasons import changes
from planner.model.build_problem import build, today
from planner.model.problem import Problem
from planner.model.spec import Changes, Rebalance, ReplicationFactorChange, Spec
from planner.scoring.broker_loads import leaders_after
from planner.strategies.leaders import led_in_sync
from planner.strategies.optimum import solve

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def with_isr(spec: Spec, *in_sync: tuple[int, ...]) -> Spec:
    """The spec's one topic with these in-sync replicas."""
    (topic,) = spec.cluster.topics
    parts = tuple(replace(part, isr=isr) for part, isr in zip(topic.partitions, in_sync, strict=True))
    return replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=parts),)))


def down(rebalance: Rebalance = "none", **wish: Any) -> Problem:
    """Broker 4 is in no ISR, though it is the preferred leader of both partitions."""
    rows, leaders = {"t": [(4, 1), (4, 3)]}, {"t": [1, 3]}
    spec = spec_of(RACKS, rows, leaders=leaders, changes=Changes(rebalance=rebalance, **wish))
    return build(with_isr(spec, (1,), (3,)))


def test_brokers_in_no_isr_are_known() -> None:
    """Where sources tell who is in sync; a broker that holds nothing may be elected once it does."""
    assert [4] == ids_of(down(), down().out_of_sync.nonzero()[0][None].astype(int))[0]  # type: ignore[union-attr]
    unknown = build(spec_of(RACKS, {"t": [(4, 1)]}, leaders={"t": [1]}))
    assert unknown.out_of_sync is not None
    assert not unknown.out_of_sync.any()


def test_a_change_puts_somebody_in_front_who_can_lead() -> None:
    """`set_racks` moves t-0 off a rack: whoever is planned beside broker 4 leads it, and is elected."""
    problem = down(set_racks=((4, "a"),))
    lists = ids_of(problem, solve(problem, problem.balance).assignment)
    assert 4 != lists[0][0]
    assert [4, 3] == lists[1]


def test_todays_leader_stays_in_front_where_it_stays() -> None:
    """Before others that can lead too."""
    problem = down("all", set_replication_factor=(ReplicationFactorChange("t", 3),))
    plan = assignment_of(problem, [(4, 2, 1), (4, 2)])
    assert [[1, 4, 2], [2, 4]] == ids_of(problem, led_in_sync(problem, plan))


def test_nothing_else_to_change_is_nothing_to_elect() -> None:
    """The preferred leader is down: its partitions keep their order and their leaders, until it is back."""
    problem = down("all")
    still = today(problem)
    assert still.tolist() == led_in_sync(problem, still).tolist()
    assert problem.leaders.tolist() == leaders_after(problem, still).tolist()
    assert () == changes(problem, still)


def test_a_spread_that_is_the_best_possible_is_not_forced() -> None:
    """Three racks become two by `set_racks`: two replicas in one rack are as few as can be then."""
    wish = Changes(set_racks=((3, "b"),), rebalance="none")
    problem = build(spec_of({1: "a", 2: "b", 3: "c"}, {"t": [(1, 2, 3)]}, changes=wish))
    assert not problem.forced.any()
    worse = build(spec_of(RACKS, {"t": [(1, 4)]}, changes=Changes(set_racks=((4, "a"),), rebalance="none")))
    assert worse.forced.all()
