"""`together`: one broker leads the partitions with the same number; against every plan of tiny clusters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import moved, options, plans_within
from clusters import assignment_of, balance_of, loaded_problems, no_racks, placed_specs, spec_of, specs
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.execution.partition_changes import changes as changes_of
from planner.model.build_problem import build, today
from planner.model.cluster import Broker
from planner.model.document_fields import Apart, ApartBy, PlacementRuleRow
from planner.model.errors import InfeasibleError
from planner.model.problem import Problem, led_by_several
from planner.model.spec import Changes, NewPartitions, Rebalance, Spec
from planner.scoring import independent_check
from planner.scoring.score import Scores, ScoringBasis, score
from planner.scoring.windows import windows
from planner.strategies import common_leaders, optimum
from planner.strategies.optimum import Proposal, solve
from planner.sweep.apart_sides import with_sides

NAMES = ("orders", "clicks")


def solved(spec: Spec) -> tuple[Problem, Proposal, Scores]:
    """The plan for the spec's balance, which is checked to keep every rule, and its scores."""
    problem = build(spec)
    solution = solve(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    assert not (led_by_several(problem, solution.assignment) & problem.movable).any()
    return problem, solution, score(ScoringBasis.of(problem), solution.assignment)


def drawn(rng: np.random.Generator) -> Spec:
    """Two topics with one or two partitions of two replicas each, on three or four brokers; sometimes a third topic."""
    racks = {broker: "abc"[broker % 3] for broker in range(1, int(rng.integers(4, 6)))}
    count = int(rng.integers(1, 3))
    names = (*NAMES, "other")[: int(rng.integers(2, 4)) if count == 1 else 2]
    lists = {name: [rng.choice(list(racks), 2, replace=False).tolist() for _ in range(count)] for name in names}
    sizes = {name: rng.integers(1, 50, count).tolist() for name in names}
    joins = (Broker(9, "c"),) if rng.integers(3) == 0 and len(racks) == 3 else ()
    return spec_of(
        racks if rng.integers(2) else dict.fromkeys(racks),
        lists,
        sizes=sizes,
        together=(NAMES,),
        changes=Changes(add_brokers=joins if rng.integers(2) else ()),
    )


@pytest.mark.parametrize(
    "cases", [10, pytest.param(60, marks=pytest.mark.slow), pytest.param(2000, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("rebalance", ["all", "none"])
def test_common_leaders_are_bounded_by_all_plans(rebalance: str, cases: int) -> None:
    """No plan that keeps the rule copies less than the bound; nearly all plans copy the fewest bytes."""
    rng, tried, within, least_copied = np.random.default_rng(31), 0, 0, 0
    balance = balance_of(1, "none", "none", "none")
    for _ in range(cases):
        spec = drawn(rng)
        problem, solution, scores = solved(
            replace(spec, balance=balance, changes=replace(spec.changes, rebalance=rebalance))
        )
        assert problem.together is not None
        slots = [np.flatnonzero(problem.together == slot).tolist() for slot in set(problem.together.tolist()) - {-1}]
        even = [
            plan
            for plan in (
                product(*options(problem))
                if rebalance == "none"
                else plans_within(problem, windows(problem, problem.balance))
            )
            if all(set.intersection(*(set(plan[row]) for row in rows)) for rows in slots)
        ]
        if not even:
            continue
        tried, least, copied = tried + 1, min(moved(problem, plan)[0] for plan in even), int(scores.bytes_moved[0])
        assert solution.least_bytes <= least, spec
        if rebalance == "none" or not scores.excess[0]:
            within += 1
            assert least <= copied, spec
            least_copied += least == copied
    assert within >= tried * 0.9
    assert least_copied >= tried * 0.95


@examples(150)
@given(
    st.one_of(specs(rebalance=("all", "leaders", "none", "racks")), placed_specs(rebalance=("all", "none", "racks"))),
    st.sampled_from(["t[01]", "*"]),
)
def test_every_plan_keeps_the_rule(spec: Spec, pattern: str) -> None:
    """Whatever else is asked for: fixed topics, brokers that leave, sets, racks, caps, partitions without a leader."""
    spec = replace(spec, together=((pattern,),))
    try:
        _, solution, scores = solved(spec)
    except InfeasibleError:
        assume(False)
    without = build(replace(spec, together=()))
    bound = solve(without, without.balance).least_bytes
    assert solution.least_bytes <= int(scores.bytes_moved[0]) or bound < 0


@examples(60)
@given(loaded_problems())
def test_what_is_counted_follows_the_replicas(problem: Problem) -> None:
    """After slots were brought together, all that is kept beside the replicas is as if it were counted anew."""
    problem = replace(problem, together=np.where(problem.topic_of < 2, problem.partition_ids, -1).astype(np.int32))
    wanted, placed = (
        windows(problem, problem.balance),
        solve(replace(problem, together=None), problem.balance).assignment,
    )
    led = np.full(problem.rows, -1)
    moves = common_leaders._Moves.of(problem, placed.copy(), wanted, led, np.full(problem.rows, -1))
    for slot in np.unique(problem.together[problem.together >= 0]).tolist():
        with suppress(InfeasibleError):
            moves.bring_together(np.flatnonzero(problem.together == slot))
    again = common_leaders._Moves.of(problem, moves.placed, wanted, led, moves.kept)
    for counted in ("on", "loads", "cells", "steps"):
        assert (getattr(moves, counted) == getattr(again, counted)).all(), counted


@pytest.mark.slow
def test_replicas_placed_around_common_brokers_make_no_plan_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placing replicas around common brokers makes no plan's excess larger, nor its bytes at the same excess."""
    rng, better, places = np.random.default_rng(5), 0, optimum.placed_around
    for _ in range(150):
        racks = {broker: "abc"[broker % 3] for broker in range(1, int(rng.integers(5, 9)))}
        count, factor = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        lists = {
            name: [rng.choice(list(racks), factor, replace=False).tolist() for _ in range(count)] for name in NAMES
        }
        sizes = {name: rng.integers(0, 50, count).tolist() for name in NAMES}
        balance = balance_of(*(int(each) for each in rng.integers(1, 3, 3)), "none")
        changes = Changes(add_brokers=(Broker(20, "a"),) if rng.integers(2) else ())
        spec = spec_of(racks, lists, sizes=sizes, together=(NAMES,), changes=changes, balance=balance)
        found = []
        for way in (places, lambda *asked: asked[3]):
            monkeypatch.setattr(optimum, "placed_around", way)
            scores = solved(spec)[2]
            found.append((int(scores.excess[0]), int(scores.bytes_moved[0])))
        assert found[0] <= found[1], spec
        better += found[0] < found[1]
    assert better > 3


@st.composite
def with_brokers_down(draw: st.DrawFn) -> Spec:
    """Any spec with one broker that is in no ISR."""
    spec = draw(specs(rebalance=("all", "leaders", "none")))
    off = draw(st.sampled_from([each.id for each in spec.cluster.brokers]))
    topics = []
    for topic in spec.cluster.topics:
        isrs = [tuple(broker for broker in row.replicas if broker != off) for row in topic.partitions]
        rows = zip(topic.partitions, isrs, strict=True)
        topics.append(replace(topic, partitions=tuple(replace(r, isr=i, leader=i[0] if i else None) for r, i in rows)))
    return replace(spec, cluster=replace(spec.cluster, topics=tuple(topics)))


@examples(100)
@given(with_brokers_down())
def test_every_plan_keeps_the_rule_with_a_broker_down(spec: Spec) -> None:
    """Who is in no ISR stays preferred only where nothing changes."""
    try:
        solved(replace(spec, together=(("t[01]",),)))
    except InfeasibleError:
        assume(False)


@pytest.mark.slow
@examples(40)
@given(specs(rebalance=("all", "leaders", "none")), st.sampled_from(["broker", "broker_leaders"]), st.data())
def test_topics_led_together_may_be_apart_from_others(spec: Spec, by: ApartBy, data: st.DataObject) -> None:
    """The first topic shares no broker, or leader, with the others, and some broker is demoted."""
    assume(len(spec.cluster.topics) == 3)
    demoted = data.draw(
        st.sampled_from([each.id for each in spec.cluster.brokers if each.id not in spec.changes.leaving])
    )
    changes = replace(spec.changes, demote_brokers=data.draw(st.sampled_from([(), (demoted,)])))
    spec = replace(spec, changes=changes, apart=(Apart(("t0", "t[12]"), by=by),), together=(("t[12]",),))
    try:
        solved(with_sides(spec))
    except InfeasibleError:
        assume(False)


def test_a_broker_out_of_sync_leads_nothing_anew() -> None:
    """Another broker that has both partitions leads them, although one of them prefers the broker out of sync."""
    lists = {"orders": [(1, 2, 3)], "clicks": [(2, 1, 3)]}
    spec = spec_of(no_racks(1, 2, 3), lists, together=(NAMES,), changes=Changes(rebalance="leaders"))
    topics = [
        replace(topic, partitions=tuple(replace(row, leader=2, isr=(2, 3)) for row in topic.partitions))
        for topic in spec.cluster.topics
    ]
    spec = replace(spec, cluster=replace(spec.cluster, topics=tuple(topics)))
    _, solution, _ = solved(spec)
    assert {1} == set(solution.assignment[:, 0].tolist())


def test_a_broker_out_of_sync_is_no_common_broker() -> None:
    """Broker 1 alone has both partitions but is down: one replica moves, so that a broker in sync leads both."""
    lists = {"orders": [(1, 2)], "clicks": [(3, 1)]}
    spec = spec_of(no_racks(1, 2, 3), lists, together=(NAMES,), changes=Changes(rebalance="none"))
    rows = [(topic, topic.partitions[0]) for topic in spec.cluster.topics]
    topics = [
        replace(of, partitions=(replace(row, leader=led, isr=(led,)),))
        for (of, row), led in zip(rows, (2, 3), strict=True)
    ]
    problem, solution, scores = solved(replace(spec, cluster=replace(spec.cluster, topics=tuple(topics))))
    assert 0 not in solution.assignment[:, 0].tolist()
    assert problem.forced.all()
    assert 1 == int(scores.replicas_moved[0])


def test_partitions_that_are_made_follow_those_that_are_there() -> None:
    """With `rebalance: none`, a new topic's partitions get the leaders of the old topic, whose leaders stay."""
    lists = {"orders": [(1, 2), (2, 3), (3, 1), (1, 4)]}
    made = NewPartitions("returns", 0, 4, 2, (), 0, 0, 0)
    changes = Changes(new_partitions=(made,), rebalance="none")
    problem, solution, _ = solved(
        spec_of({1: "a", 2: "b", 3: "c", 4: "a"}, lists, changes=changes, together=(("orders", "returns"),))
    )
    assert [0, 1, 2, 0] * 2 == solution.assignment[:, 0].tolist()
    assert () == changes_of(problem, solution.assignment)


def test_caps_on_leaders_are_kept_or_refused() -> None:
    """A broker that may lead only one partition can't lead two together."""

    def capped(most: int, partitions: int) -> Spec:
        lists = {name: [(1, 2)] * partitions for name in NAMES}
        spec = spec_of(no_racks(1, 2), lists, together=(NAMES,), changes=Changes(rebalance="leaders"))
        brokers = tuple(replace(each, max_leaders=most) for each in spec.cluster.brokers)
        return replace(spec, cluster=replace(spec.cluster, brokers=brokers))

    _, solution, _ = solved(capped(3, 2))
    assert [0, 0, 1, 1] == sorted(solution.assignment[:, 0].tolist())
    with pytest.raises(InfeasibleError, match="together: no choice of common leaders keeps max_leaders"):
        solved(capped(1, 1))


def test_where_replicas_may_not_move_for_a_cap_the_refusal_says_what_lets_them() -> None:
    """Broker 2 has both replicas and may lead one of them; only `rebalance: all` moves the second one to broker 1."""
    spec = spec_of(no_racks(1, 2), {"orders": [(1, 2)], "clicks": [(2,)]}, together=(NAMES,))
    brokers = (spec.cluster.brokers[0], replace(spec.cluster.brokers[1], max_leaders=1))
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers))
    _, solution, _ = solved(spec)
    assert [0, 0] == solution.assignment[:, 0].tolist()
    with pytest.raises(InfeasibleError, match=r"rebalance: all moves more\); allowed: a higher cap"):
        solved(replace(spec, changes=Changes(rebalance="none")))


def test_a_slot_moves_where_the_broker_that_has_it_leads_enough() -> None:
    """Broker 1 has both slots and may lead one of them."""
    spec = spec_of(no_racks(1, 2), {name: [(1,)] * 2 for name in NAMES}, together=(NAMES,))
    brokers = (replace(spec.cluster.brokers[0], max_leaders=2), *spec.cluster.brokers[1:])
    problem = build(replace(spec, cluster=replace(spec.cluster, brokers=brokers)))
    placed, led = common_leaders.led_together(problem, today(problem), windows(problem, problem.balance))
    assert [0, 0, 1, 1] == sorted(led.tolist())
    assert placed[:, 0].tolist() == led.tolist()


def test_the_next_best_broker_is_common_where_one_row_takes_the_place_of_another() -> None:
    """Broker 5 has both replicas today, but room for one of them."""
    spec = spec_of(no_racks(1, 2, 3, 4, 5), {"orders": [(1, 5)], "clicks": [(5,)]}, together=(NAMES,))
    brokers = tuple(replace(each, max_replicas=1 + (each.id == 4)) for each in spec.cluster.brokers)
    problem = build(replace(spec, cluster=replace(spec.cluster, brokers=brokers)))
    placed = assignment_of(problem, [(2,), (1, 3)])
    _, led = common_leaders.led_together(problem, placed, windows(problem, problem.balance))
    assert [3, 3] == led.tolist()


def test_a_cap_is_exceeded_while_another_common_broker_is_out_of_sync() -> None:
    """Broker 3 is in no ISR, so broker 1 leads both partitions, one more than it may."""
    spec = spec_of(no_racks(1, 2, 3), {name: [(1, 3)] for name in NAMES}, together=(NAMES,))
    rows = tuple(replace(topic, partitions=(replace(topic.partitions[0], isr=(1,)),)) for topic in spec.cluster.topics)
    brokers = (replace(spec.cluster.brokers[0], max_leaders=1), *spec.cluster.brokers[1:])
    spec = replace(
        spec, cluster=replace(spec.cluster, brokers=brokers, topics=rows), changes=Changes(rebalance="leaders")
    )
    _, solution, _ = solved(spec)
    assert [0, 0] == solution.assignment[:, 0].tolist()


@pytest.mark.parametrize("rebalance", ["all", "none"])
def test_a_cap_holds_while_a_broker_that_leaves_is_out_of_sync(rebalance: Rebalance) -> None:
    """Broker 3 is in no ISR and leaves; broker 1 leads both partitions today, and one afterwards would be its most."""
    spec = spec_of(no_racks(1, 2, 3, 4), {"clicks": [(1, 2)], "orders": [(3, 1)]}, together=(NAMES,))
    led = tuple(replace(each, partitions=(replace(each.partitions[0], leader=1),)) for each in spec.cluster.topics)
    seen = (replace(led[0], partitions=(replace(led[0].partitions[0], isr=(1, 2)),)),
            replace(led[1], partitions=(replace(led[1].partitions[0], isr=(1,)),)))  # fmt: skip
    brokers = (replace(spec.cluster.brokers[0], max_leaders=1), *spec.cluster.brokers[1:])
    spec = replace(
        spec,
        cluster=replace(spec.cluster, brokers=brokers, topics=seen),
        changes=Changes(remove_brokers=(3,), rebalance=rebalance),
    )
    _, solution, _ = solved(spec)
    first, second = solution.assignment[:, 0].tolist()
    assert first == second != 0


def test_topics_without_a_common_broker_have_no_plan() -> None:
    """If sets make a common broker impossible, there is an error instead of a plan."""
    sets = (
        PlacementRuleRow("orders", "one", (1,), exclusive=False),
        PlacementRuleRow("clicks", "two", (2,), exclusive=False),
    )
    spec = spec_of(no_racks(1, 2), {"orders": [(1,)], "clicks": [(2,)]}, together=(NAMES,), placement=sets)
    with pytest.raises(InfeasibleError, match="together: clicks-0 and orders-0 can't have a replica on one broker"):
        solved(spec)


def test_caps_on_replicas_alone_are_not_told_as_caps_on_leaders() -> None:
    """With room for one replica on each broker, none may have both; no broker has a cap on what it leads."""
    brokers = [Broker(number, max_replicas=1) for number in (1, 2, 3)]
    spec = spec_of(no_racks(1, 2, 3), {"orders": [(1,)], "clicks": [(2,)]}, together=(NAMES,))
    spec = replace(spec, cluster=replace(spec.cluster, brokers=tuple(brokers)))
    with pytest.raises(InfeasibleError, match="together: clicks-0 and orders-0 can't have a replica on one broker"):
        solved(spec)


def test_only_leaders_change_where_a_broker_has_both() -> None:
    """Brokers have replicas of both topics already: only leaders change, evenly, and 0 copied bytes are proven."""
    lists = {
        name: [[(at + turn) % 4 + 1, (at + 1 - turn) % 4 + 1] for at in range(8)] for turn, name in enumerate(NAMES)
    }
    spec = spec_of(no_racks(1, 2, 3, 4), lists, together=(NAMES,))
    _, solution, scores = solved(spec)
    assert 0 == solution.least_bytes == scores.bytes_moved[0]
    assert 0 == scores.leader_spread[0]


def test_a_broker_that_is_given_up_keeps_nothing() -> None:
    """Broker 2 has room for one of two partitions that would join b: neither moves there, and b goes to broker 3."""
    lists, sizes = {"a": [(3, 1)], "b": [(2,)], "c": [(4, 3)]}, {"a": [8], "b": [16], "c": [6]}
    stays = Changes(rebalance="none")
    spec = spec_of(no_racks(1, 2, 3, 4), lists, sizes=sizes, together=(("a", "b", "c"),), changes=stays)
    brokers = tuple(replace(each, max_replicas=2 if each.id == 2 else None) for each in spec.cluster.brokers)
    scores = solved(replace(spec, cluster=replace(spec.cluster, brokers=brokers)))[2]

    assert [16] == scores.bytes_moved.tolist()


def test_racks_stay_within_today_and_the_most_even_spread() -> None:
    """With `as_today`, no rack gets more replicas than it has today or with the most even spread."""
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "b", 5: "b", 6: "a"}
    lists = {"orders": [(4, 1, 3), (1, 4, 3)], "clicks": [(6, 4, 5), (2, 6, 5)]}
    sizes, balance = {"orders": [41, 27], "clicks": [6, 6]}, balance_of(1, "none", "none", "none")
    solved(spec_of(racks, lists, sizes=sizes, together=(NAMES,), racks_as_today=True, balance=balance))
