"""Topics that share no broker, or no rack: the brokers that each topic gets, against every plan of tiny clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from apart_plans import apart_specs, copied, solved
from clusters import assignment_of, balance_of, no_racks, spec_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build, today
from planner.model.cluster import Broker
from planner.model.document_fields import Apart
from planner.model.errors import InfeasibleError
from planner.model.problem import like_brokers
from planner.model.spec import Budget, Changes, Spec, Sweep, TopicFilter
from planner.plan import build as plan
from planner.report import requested
from planner.scoring import independent_check
from planner.scoring.fair_shares import fair_shares
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import OptimalAssignment
from planner.sweep import apart_sides, choice
from planner.sweep.apart_sides import every_split, judged, sides_of, split_by, with_sides
from planner.sweep.evaluate import run

GROUP = (Apart(("orders", "payments")),)
BY_RACK = (Apart(("orders", "payments"), by="rack"),)


def test_topics_that_are_apart_stay() -> None:
    """Topics that are already on different brokers stay there; balancing over all brokers would move them."""
    lists = {"orders": ([1, 2], [2, 1]), "payments": ([3, 4], [4, 3])}
    sided, solution = solved(spec_of(no_racks(1, 2, 3, 4), lists, sizes=10, apart=GROUP))
    assert (Apart(("orders", "payments"), sides=((1, 2), (3, 4)), proven=True),) == sided.apart
    assert solution.least_bytes == 0
    assert (np.sort(solution.assignment, axis=1) == np.sort(today(build(sided)), axis=1)).all()


@pytest.mark.parametrize("cases", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_fewest_bytes_of_all_plans(cases: int) -> None:
    """If only forced moves are allowed, no plan that keeps the rule copies fewer bytes."""
    rng, agreed = np.random.default_rng(20), 0
    for _ in range(cases):
        brokers = list(range(1, int(rng.integers(3, 6))))
        factors = [1, int(rng.integers(1, max(len(brokers) - 1, 2)))]
        if sum(factors) > len(brokers):
            continue
        rows = [(side, factors[side]) for side in (0, 1) for _ in range(int(rng.integers(1, 3)))]
        before = tuple(tuple(rng.choice(brokers, factor, replace=False).tolist()) for _, factor in rows)
        sizes = rng.integers(1, 50, len(rows)).tolist()
        names = ("orders", "payments")
        lists = {
            name: [b for b, (s, _) in zip(before, rows, strict=True) if s == side] for side, name in enumerate(names)
        }
        of = {n: [z for z, (s, _) in zip(sizes, rows, strict=True) if s == side] for side, n in enumerate(names)}
        changes = Changes(rebalance="none")
        spec = spec_of(no_racks(*brokers), lists, sizes=of, changes=changes, apart=GROUP)
        sided, solution = solved(spec)
        least = min(
            copied(before, plan, sizes)
            for plan in product(*(combinations(brokers, factor) for _, factor in rows))
            if not set()
            .union(*(b for b, (s, _) in zip(plan, rows, strict=True) if s == 0))
            .intersection(*(set().union(*(b for b, (s, _) in zip(plan, rows, strict=True) if s == 1)),))
        )
        assert least == solution.least_bytes, spec
        assert sided.apart[0].proven
        agreed += 1
    assert agreed > cases * 2 / 3


@pytest.mark.parametrize(
    "cases", [15, pytest.param(150, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.long)]
)
def test_fewest_bytes_of_all_plans_by_rack(cases: int) -> None:
    """The same if no rack may have both topics: no plan that keeps the rule copies fewer bytes."""
    rng, agreed = np.random.default_rng(22), 0
    for _ in range(cases):
        racks = {broker: "abc"[broker % 3] for broker in range(1, int(rng.integers(4, 6)))}
        factors = [1, int(rng.integers(1, 3))]
        rows = [(side, factors[side]) for side in (0, 1) for _ in range(int(rng.integers(1, 3)))]
        before = [rng.choice(list(racks), factor, replace=False).tolist() for _, factor in rows]
        sizes = rng.integers(1, 50, len(rows)).tolist()
        lists = {"orders": [], "payments": []}
        of = {"orders": [], "payments": []}
        for (side, _), replicas, size in zip(rows, before, sizes, strict=True):
            lists[("orders", "payments")[side]].append(replicas)
            of[("orders", "payments")[side]].append(size)
        enforced = bool(rng.integers(2))
        spec = spec_of(racks, lists, sizes=of, apart=BY_RACK, changes=Changes(rebalance="none"), rack_aware=enforced)
        try:
            sided, solution = solved(spec)
        except InfeasibleError:
            continue
        least = min(
            copied(before, plan, sizes)
            for plan in product(*(combinations(racks, factor) for _, factor in rows))
            if not (racks_of(plan, rows, racks, 0) & racks_of(plan, rows, racks, 1))
            # Each side has as many racks as its replicas need, even for partitions that stay.
            and (not enforced or sum(max(factors[s], len(racks_of(plan, rows, racks, s))) for s in (0, 1)) <= 3)
            and all(spread(now, then, racks, enforced) for then, now in zip(before, plan, strict=True))
        )
        assert least == solution.least_bytes, spec
        assert sided.apart[0].proven
        agreed += 1
    assert agreed > cases / 2


def racks_of(
    plan: tuple[tuple[int, ...], ...], rows: list[tuple[int, int]], racks: dict[int, str], side: int
) -> set[str]:
    """The racks with replicas of a side."""
    return {racks[b] for brokers, (of, _) in zip(plan, rows, strict=True) if of == side for b in brokers}


def spread(now: tuple[int, ...], then: list[int], racks: dict[int, str], enforced: bool) -> bool:
    """True if the partition stays, or the rack rule is off, or each of its replicas is in another rack."""
    return not enforced or set(now) == set(then) or len({racks[broker] for broker in now}) == len(now)


def test_check_judges_the_rule() -> None:
    """An assignment that breaks the rule is a violation, without any sides."""
    lists = {"orders": ([1],), "payments": ([2],), "other": ([1],)}
    problem = build(spec_of(no_racks(1, 2), lists, apart=GROUP))
    assert () == independent_check.check(problem, today(problem))
    found = independent_check.check(problem, assignment_of(problem, ([1], [2], [1])))
    assert {"apart"} == {each.rule for each in found}


def test_topics_that_stay_keep_their_brokers() -> None:
    """A topic that may not move keeps its brokers, so the other topic gets the others."""
    lists = {"orders": ([1, 2],), "payments": ([1, 2], [2, 1])}
    spec = spec_of(no_racks(1, 2, 3, 4), lists, apart=GROUP, topics=TopicFilter(exclude=("payments",)))
    sided, solution = solved(spec)
    assert ((3, 4), (1, 2)) == sided.apart[0].sides
    assert solution.least_bytes == 2


def test_large_clusters_have_one_split() -> None:
    """A large cluster has only one split, with brokers of each rack on both sides, and it isn't called proven."""
    brokers = {broker: "abc"[broker % 3] for broker in range(18)}
    lists = {
        "orders": [[at, (at + 1) % 18, (at + 2) % 18] for at in range(18)],
        "payments": [[at, (at + 1) % 18, (at + 2) % 18] for at in range(18)],
    }
    sided, _ = solved(spec_of(brokers, lists, apart=GROUP))
    assert [9, 9] == [len(side) for side in sided.apart[0].sides]
    assert sided.apart[0].proven is False


def test_no_brokers_for_a_side() -> None:
    """If the racks allow no split, there is an error before anything is planned."""
    lists = {"orders": ([1, 2],), "payments": ([1, 2],)}
    with pytest.raises(InfeasibleError, match="apart"):
        with_sides(spec_of({1: "a", 2: "b", 3: "a"}, lists, apart=GROUP))


@pytest.mark.slow
@examples(60)
@given(apart_specs())
def test_every_plan_keeps_the_rule(spec: Spec) -> None:
    """No broker has both; each target broker is on one side; nothing that may not move is in the way."""
    try:
        sided, _ = solved(spec)
    except InfeasibleError:
        assume(False)
    (rule,) = sided.apart
    targets = build(sided).broker_ids[build(sided).targets].tolist()
    assert sorted(targets) == sorted([*rule.sides[0], *rule.sides[1]])


@pytest.mark.slow
@examples(40)
@given(apart_specs(), st.booleans())
def test_every_plan_keeps_the_rule_by_rack(spec: Spec, few: bool) -> None:
    """Each rack is on one side, also where only the likely split is improved."""
    racks = {broker.rack for broker in spec.cluster.brokers + spec.changes.add_brokers}
    assume(None not in racks and len(racks) > 1)
    spec = replace(spec, apart=(Apart(("t0", "t[12]"), by="rack"),), rack_aware=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(apart_sides, "MOST_SPLITS", 1 if few else 40_000)
        try:
            sided, solution = solved(spec)
        except InfeasibleError:
            assume(False)
    problem = build(sided)
    names = np.array([*problem.rack_names, ""])[problem.broker_racks]
    rack_of = dict(zip(problem.broker_ids.tolist(), names.tolist(), strict=True))
    one, other = ({rack_of[broker] for broker in side} for side in sided.apart[0].sides)
    assert not one & other
    again = sides_of(spec, build(spec), solution.assignment)
    found = independent_check.check(build(again), solution.assignment)
    # What has no leader moves only where its side forces it to; the sides of an assignment may be others.
    unled = {(topic.name, row.id) for topic in spec.cluster.topics for row in topic.partitions if row.leader is None}
    assert set() == {(each.topic, each.partition) for each in found if each.rule != "partition that stays"}
    assert unled >= {(each.topic, each.partition) for each in found}


@examples(60)
@given(apart_specs())
def test_splits_are_ranked_by_fair_shares(spec: Spec) -> None:
    """How uneven a split is follows from the fair shares of its own problem, by racks, sets and weights."""
    spec = replace(spec, changes=replace(spec.changes, rebalance="all"))
    problem = build(spec)
    found = judged(problem, every_split(problem, [2]))
    for at in [at for at in range(len(found.side_of)) if not found.lacking[at]][::7]:
        fair = fair_shares(build(split_by(spec, problem, found.side_of[at]))).replicas
        shares = np.asarray(fair.count[0] / fair.parts[0], dtype=float)
        level = shares / max(shares.sum(), 1) * len(shares) * 100
        assert abs(level.max() - found.uneven[at, 0]) <= 0.51
        assert abs(100 - level.min() - found.uneven[at, 1]) <= 0.51


@pytest.mark.slow
def test_fewest_bytes_of_all_as_even() -> None:
    """If everything may move, no plan within the windows of an equally even split copies less than a proven plan."""
    rng, agreed = np.random.default_rng(21), 0
    brokers = (1, 2, 3, 4)
    for _ in range(12):
        before = [tuple(rng.choice(brokers, 2, replace=False).tolist()) for _ in range(4)]
        sizes = {name: rng.integers(1, 50, 2).tolist() for name in ("orders", "payments")}
        lists = {"orders": before[:2], "payments": before[2:]}
        spec = spec_of(no_racks(*brokers), lists, sizes=sizes, apart=GROUP, balance=balance_of(1, 1, 1, "none"))
        sided, solution = solved(spec)
        if not sided.apart[0].proven:
            continue
        problem = build(spec)
        splits = judged(problem, every_split(problem, [2]))
        least = min(
            _least_within(split_by(spec, problem, splits.side_of[at]))
            for at in splits.order()
            if not splits.lacking[at] and (splits.uneven[at] <= splits.uneven[splits.order()[0]]).all()
        )
        assert least == int(score(ScoringBasis.of(build(sided)), solution.assignment).bytes_moved[0]), spec
        agreed += 1
    assert agreed >= 8


@pytest.mark.parametrize(("largest", "asked"), [(10, 1), pytest.param(1000, 0, marks=pytest.mark.slow)])
def test_bounds_are_worked_out_where_they_decide(monkeypatch: pytest.MonkeyPatch, largest: int, asked: int) -> None:
    """Bounds are computed only for splits as even as the best one, and only if that keeps its windows."""
    bounded, proven = [], OptimalAssignment.proven
    monkeypatch.setattr(OptimalAssignment, "proven", lambda found: bounded.append(found) or proven(found))
    lists = {"orders": ([1], [2]), "payments": ([3], [4])}
    sizes = {"orders": [largest, 10], "payments": [10, 10]}
    balance = balance_of(1, "none", "none", "none", "5%")
    sided = with_sides(spec_of(no_racks(1, 2, 3, 4), lists, sizes=sizes, apart=GROUP, balance=balance))
    assert (asked, asked > 0) == (len(bounded), sided.apart[0].proven)


def _least_within(spec: Spec) -> int:
    """The fewest bytes of all plans within the windows, for a spec with given sides."""
    problem = build(spec)
    basis, least = ScoringBasis.of(problem), 10**9
    assert problem.allowed is not None
    usable = [np.flatnonzero(problem.allowed[topic]).tolist() for topic in problem.topic_of]
    for plan_of in product(*([list(p) for p in product(each, repeat=2) if p[0] != p[1]] for each in usable)):
        found = score(basis, np.array(plan_of, dtype=np.int32))
        if not (found.violations[0] or found.excess[0]):
            least = min(least, int(found.bytes_moved[0]))
    return least


def test_a_side_that_cannot_spread_over_racks_loses() -> None:
    """With two brokers in each of two racks, each side gets one of both, although each topic is in one rack today."""
    lists = {"orders": ([1, 2], [2, 1]), "payments": ([3, 4], [4, 3])}
    sided, _ = solved(spec_of({1: "a", 2: "a", 3: "b", 4: "b"}, lists, apart=GROUP))
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert [{"a", "b"}] * 2 == [{racks[broker] for broker in side} for side in sided.apart[0].sides]


def planned(spec: Spec) -> plan.Plan:
    """The plan of a spec."""
    swept = [
        choice.Swept(each.name, each.spec, each.problem, run(each.problem, each.candidates))
        for each in choice.alternatives(replace(spec, sweep=Sweep(candidates=20)))
    ]
    return plan.planned(swept).plan


def test_a_first_step_does_not_claim_to_keep_the_rule() -> None:
    """Partitions that wait for a later step still share brokers: the plan says so, and claims no proof."""
    lists = {"orders": [[1], [1], [2], [2]], "payments": [[1], [1], [2], [2]]}
    spec = spec_of(no_racks(1, 2), lists, sizes=10, apart=GROUP)
    whole = planned(spec)
    assert requested.apart(whole).startswith("orders on ")
    assert "not yet" not in requested.apart(whole)
    step = planned(replace(spec, budget=Budget(bytes_moved=20)))
    assert step.unfinished is not None
    assert "not yet: 2 partitions left to change" in requested.apart(step)
    assert step.spec.apart is not None
    assert [False] == [rule.proven for rule in step.spec.apart]


def test_more_brokers_than_are_compared_are_improved() -> None:
    """Three racks of different sizes and scattered replicas: the only split tried has the racks that a side needs."""
    racks = {**dict.fromkeys(range(10), "a"), **dict.fromkeys(range(10, 14), "b"), 14: "c", 15: "c"}
    lists = {
        "orders": [[at % 10, 10 + at % 4, 14] for at in range(12)],
        "payments": [[(at + 1) % 10, 10 + (at + 1) % 4, 14] for at in range(6)],
    }
    sided, solution = solved(spec_of(racks, lists, apart=GROUP))
    orders, payments = (set(side) for side in sided.apart[0].sides)
    assert (14 in orders) != (15 in orders)
    assert len(payments) >= 3
    assert 0 == score(ScoringBasis.of(build(sided)), solution.assignment).violations[0]


def test_a_broker_that_joins_is_on_a_side_too() -> None:
    """A broker that joins has a side too, and takes over one of two topics that share a broker."""
    lists = {"orders": ([1],), "payments": ([1],)}
    changes = Changes(add_brokers=(Broker(2),))
    sided, solution = solved(spec_of(no_racks(1), lists, apart=GROUP, changes=changes))
    assert {1, 2} == {broker for side in sided.apart[0].sides for broker in side}
    assert solution.least_bytes == 1


def test_like_brokers_are_compared_once() -> None:
    """Equal brokers that join a rack are interchangeable; brokers with replicas, or of different sizes, aren't."""
    added = tuple(Broker(broker, "b") for broker in (5, 6, 7, 8))
    lists = {"orders": [(1, 2)] * 4, "payments": [(3, 4)] * 4}
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
    problem = build(spec_of(racks, lists, apart=GROUP, changes=Changes(add_brokers=added)))
    assert [(4, 5), (5, 6), (6, 7)] == like_brokers(problem)
    assert 2**4 * 5 == len(every_split(problem, [2]))
    assert 3**8 > len(every_split(problem, [3])) > 3**4
    sized = replace(problem, disk_bytes=np.arange(1, 9, dtype=np.int64))
    assert 2**8 == len(every_split(sized, [2]))


def test_sides_of_an_assignment_are_those_that_it_has() -> None:
    """A new broker that the assignment uses is on its topic's side; an unused new broker has a side too."""
    added = tuple(Broker(broker) for broker in (3, 4, 5))
    spec = spec_of(
        no_racks(1, 2), {"orders": [(1,)], "payments": [(2,)]}, apart=GROUP, changes=Changes(add_brokers=added)
    )
    problem = build(spec)
    orders, payments = sides_of(spec, problem, assignment_of(problem, ([5], [3]))).apart[0].sides
    assert 5 in orders
    assert 3 in payments
    assert [1, 2, 3, 4, 5] == sorted([*orders, *payments])
