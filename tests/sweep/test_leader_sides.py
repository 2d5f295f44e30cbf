"""Topics that no broker, or rack, leads both of: the bytes that this copies, against every plan of tiny clusters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, permutations, product
from operator import attrgetter

import numpy as np
import pytest
from apart_plans import NAMES, apart_specs, solved
from brute_force import moved
from clusters import balance_of, no_racks, spec_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build
from planner.model.cluster import Partition
from planner.model.document_fields import Apart, ApartBy, LeaderRacksRow
from planner.model.errors import InfeasibleError
from planner.model.spec import Changes, Spec
from planner.plan.cluster_warnings import of_assignment
from planner.scoring import independent_check
from planner.scoring.score import ScoringBasis, score
from planner.strategies import optimum
from planner.strategies.optimum import solve
from planner.strategies.work_limits import WorkLimit
from planner.sweep import apart_sides
from planner.sweep.apart_sides import sides_of

DRAWN = [15, pytest.param(150, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.long)]


@pytest.mark.slow
@pytest.mark.parametrize("cases", DRAWN)
@pytest.mark.parametrize("by", ["broker_leaders", "rack_leaders"])
def test_who_leads_is_bounded_by_all_plans(by: ApartBy, cases: int) -> None:
    """If only forced moves are allowed, the bound is at most the fewest bytes of all plans that keep the rule; nearly
    all plans found copy exactly that, and every proven one does.
    """
    rng, found, least_copied = np.random.default_rng(23), 0, 0
    for _ in range(cases):
        racks = {broker: "abc"[broker % 3] for broker in range(1, int(rng.integers(4, 6)))}
        rows = [(side, int(rng.integers(1, 3))) for side in (0, 1) for _ in range(int(rng.integers(1, 3)))]
        before = [rng.choice(list(racks), factor, replace=False).tolist() for _, factor in rows]
        sizes = rng.integers(1, 50, len(rows)).tolist()
        lists = {n: [b for b, (s, _) in zip(before, rows, strict=True) if s == at] for at, n in enumerate(NAMES)}
        of = {n: [z for z, (s, _) in zip(sizes, rows, strict=True) if s == at] for at, n in enumerate(NAMES)}
        spec = spec_of(
            racks,
            lists,
            sizes=of,
            apart=(Apart(NAMES, by=by),),
            changes=Changes(rebalance="none"),
            rack_aware=False,
        )
        units = racks if by == "rack_leaders" else {broker: str(broker) for broker in racks}
        sided, solution = solved(spec)
        names = sorted(set(units.values()))
        least = min(
            sum(
                size * (not {units[broker] for broker in brokers} & (mine if side == 0 else set(names) - mine))
                for brokers, size, (side, _) in zip(before, sizes, rows, strict=True)
            )
            for count in range(1, len(names))
            for mine in map(set, combinations(names, count))
        )
        moved = int(score(ScoringBasis.of(build(sided)), solution.assignment).bytes_moved[0])
        assert solution.least_bytes <= least <= moved, spec
        least_copied += least == moved
        found += 1
        assert not sided.apart[0].proven or moved == least
    assert least_copied >= found * 0.95


@pytest.mark.parametrize("cases", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_who_leads_is_bounded_where_everything_may_move(cases: int) -> None:
    """No plan within the windows that keeps the rule on leaders copies less than the bound, or than a proven plan."""
    rng, least_copied = np.random.default_rng(24), 0
    for _ in range(cases):
        before = [tuple(rng.choice((1, 2, 3, 4), 2, replace=False).tolist()) for _ in range(3)]
        sizes = {"orders": rng.integers(1, 50, 2).tolist(), "payments": rng.integers(1, 50, 1).tolist()}
        lists = {"orders": before[:2], "payments": before[2:]}
        apart = (Apart(NAMES, by="broker_leaders"),)
        spec = spec_of(no_racks(1, 2, 3, 4), lists, sizes=sizes, apart=apart, balance=balance_of(1, "none", 1, "none"))
        sided, solution = solved(spec)
        problem = build(spec)
        basis, least = ScoringBasis.of(problem), 10**9
        # In order of bytes, so that the first valid plan within the windows copies least.
        for plan_of in sorted(product(permutations(range(4), 2), repeat=3), key=partial(moved, problem)):
            if plan_of[2][0] not in {plan_of[0][0], plan_of[1][0]}:
                scored = score(basis, np.array(plan_of, dtype=np.int32))
                if not (scored.violations[0] or scored.excess[0]):
                    least = int(scored.bytes_moved[0])
                    assert least == moved(problem, plan_of)[0]
                    break
        copied = int(score(ScoringBasis.of(build(sided)), solution.assignment).bytes_moved[0])
        assert solution.least_bytes <= least <= copied, spec
        assert sided.apart[0].proven == (copied == solution.least_bytes)
        least_copied += copied == least
    assert least_copied >= cases * 0.9


def test_leaders_of_large_clusters_are_apart_for_nothing() -> None:
    """With a replica in each rack and large sides, keeping leaders apart copies no more than without the rule."""
    brokers: dict[int, str | None] = {broker: "abc"[broker % 3] for broker in range(18)}
    lists = {name: [[at, (at + 1) % 18, (at + 2) % 18] for at in range(12)] for name in NAMES}
    spec = spec_of(brokers, lists)
    without = solve(build(spec), spec.balance).least_bytes
    sided, solution = solved(replace(spec, apart=(Apart(NAMES, by="broker_leaders"),)))
    assert without == score(ScoringBasis.of(build(sided)), solution.assignment).bytes_moved[0]
    assert sided.apart[0].proven


@pytest.mark.slow
def test_replicas_are_placed_once_for_all_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """If windows of bytes can't hold, placing replicas once gives the same sides and proofs as solving each split."""
    rng, placements, of_splits = np.random.default_rng(25), list[int](), list[int]()
    placed, tried = optimum._cheapest_position, apart_sides._plan_split
    monkeypatch.setattr(optimum, "_cheapest_position", lambda *asked: placements.append(1) or placed(*asked))
    monkeypatch.setattr(apart_sides, "LITTLE_WORK", WorkLimit(4_000, 0))
    for _ in range(5):
        lists = {name: [rng.choice((1, 2, 3, 4), 2, replace=False).tolist() for _ in range(3)] for name in NAMES}
        sizes = {name: rng.integers(1, 50, 3).tolist() for name in NAMES}
        wide = [int(each) for each in rng.integers(1, 3, 3)]
        spec = spec_of(no_racks(1, 2, 3, 4), lists, sizes=sizes, balance=balance_of(*wide, "none", "2%", "none", "5%"))
        spec = replace(spec, apart=(Apart(NAMES, by="broker_leaders"),))
        placements.clear()
        once = apart_sides.with_sides(spec)
        assert 1 == len(placements), spec
        with monkeypatch.context() as patched:
            patched.setattr(optimum._Replicas, "serves", lambda *_: False)
            patched.setattr(apart_sides, "_plan_split", lambda *split: max([tried(*split)], key=attrgetter("least")))
            placements.clear()
            assert apart_sides.with_sides(spec) == once
        of_splits.append(len(placements))
    assert max(of_splits) > 8, of_splits


@examples(50)
@given(apart_specs(), st.sampled_from(["broker_leaders", "rack_leaders"]), st.booleans())
def test_every_plan_keeps_the_rule_on_leaders(spec: Spec, by: ApartBy, down: bool) -> None:
    """No broker, or rack, is preferred to lead both, though one of the brokers is down; sides found in the plan alone
    let it be.
    """
    racks = {broker.rack for broker in spec.cluster.brokers + spec.changes.add_brokers}
    assume(by == "broker_leaders" or None not in racks)
    spec = replace(spec, apart=(Apart(("t0", "t[12]"), by=by),))
    spec = without_broker(spec, spec.cluster.topics[0].partitions[0].replicas[0]) if down else spec
    try:
        _, solution = solved(spec)
    except InfeasibleError:
        assume(False)
    again = sides_of(spec, build(spec), solution.assignment)
    assert () == independent_check.check(build(again), solution.assignment)


def without_broker(spec: Spec, down: int) -> Spec:
    """The spec with a broker in no ISR: another replica leads, or the partition has no leader."""

    def left(part: Partition) -> Partition:
        alive = tuple(broker for broker in part.replicas if broker != down)
        return replace(part, leader=alive[0], isr=alive) if alive else replace(part, leader=None, isr=(down,))

    topics = tuple(replace(topic, partitions=tuple(map(left, topic.partitions))) for topic in spec.cluster.topics)
    return replace(spec, cluster=replace(spec.cluster, topics=topics))


@pytest.mark.parametrize("by", ["broker_leaders", "rack_leaders"])
@pytest.mark.parametrize("prefer", [("a",), ("a", "b")])
def test_a_topic_gets_the_racks_that_its_leaders_prefer(by: ApartBy, prefer: tuple[str, ...]) -> None:
    """The planner chooses the sides, so a side that prefers a rack gets it, although the leaders of today are there."""
    one, other = NAMES
    spec = spec_of(
        {1: "a", 2: "a", 3: "b", 4: "b"},
        {one: [[3, 1], [4, 2]], other: [[1, 3], [2, 4]]},
        sizes=10,
        apart=(Apart(NAMES, by=by),),
        changes=Changes(rebalance="leaders"),
        leader_racks=(LeaderRacksRow(one, prefer),),
    )
    sided, solution = solved(spec)
    problem = build(sided)
    leaders = problem.broker_ids[solution.assignment[:, 0]]
    assert [1, 2, 3, 4] == leaders.tolist()
    assert [] == list(of_assignment(sided, problem, solution.assignment))


def test_a_rack_that_both_sides_prefer_is_told() -> None:
    """A rack with one broker leads only one of two topics, and a warning names the partitions of the other."""
    one, other = NAMES
    rules = (LeaderRacksRow("*", ("a",)),)
    lists = {one: [[1, 2], [1, 3]], other: [[1, 2], [1, 3]]}
    apart = (Apart(NAMES, by="broker_leaders"),)
    spec = spec_of({1: "a", 2: "b", 3: "b"}, lists, sizes=10, apart=apart, leader_racks=rules)
    sided, solution = solved(replace(spec, changes=Changes(rebalance="leaders")))
    (said,) = of_assignment(sided, build(sided), solution.assignment)
    assert said.startswith("2 partitions (")
    assert said.endswith(") not led in the rack that leader_racks prefers: apart leaves it to other topics")
