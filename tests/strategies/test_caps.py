"""`max_replicas` and `max_leaders` in the optimum, against all plans of tiny clusters: never exceeded, least proven."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import as_plan, countable, moved, options
from clusters import assignment_of, balance_of, ids_of, no_racks, problem_of, problems, spec_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from test_optimum import of_assignment, replica_excess

from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.document_fields import LeaderRacksRow, ReplicationFactorRow
from planner.model.errors import InfeasibleError
from planner.model.problem import UNCAPPED, LongArray, Problem
from planner.model.spec import Changes, NewPartitions, Spec, TopicFilter
from planner.plan import bound_json
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after, on_all_brokers
from planner.scoring.score import ScoringBasis, score
from planner.scoring.windows import windows
from planner.strategies import optimum
from planner.strategies.lagrangian_bound import lower_bound
from planner.strategies.leaders import leadable
from planner.strategies.optimum import solve

JOINING = (Broker(5, "a"), Broker(6, "b"))
MODES = ("all", "all", "all", "leaders", "racks", "none")


@st.composite
def capped(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with caps of replicas on some of its brokers, most of them near a broker's share."""
    share = int(problem.replication_factors.sum()) // max(int(problem.targets.sum()), 1)
    cap = st.sampled_from((UNCAPPED, share, share, share + 1, share + 2, max(share - 1, 0), 2 * share))
    caps = np.full((2, len(problem.broker_ids)), UNCAPPED, dtype=np.int64)
    caps[0] = draw(st.lists(cap, min_size=caps.shape[1], max_size=caps.shape[1]))
    return replace(problem, caps=caps)


def within(problem: Problem, plan: tuple[tuple[int, ...], ...]) -> bool:
    """True if no broker has more replicas than its cap."""
    assert problem.caps is not None
    held = Counter(broker for brokers in plan for broker in brokers)
    return all(held[broker] <= cap for broker, cap in enumerate(problem.caps[0].tolist()) if problem.targets[broker])


CAPPED = problems(brokers=5, topics=2, partitions=3, rebalance=MODES).filter(countable).flatmap(capped)


@examples(250)
@given(CAPPED)
def test_the_best_of_all_plans_within_the_caps(problem: Problem) -> None:
    """Least excess, then fewest bytes, or bytes first where only what must move may; or nothing where no plan fits."""
    wanted = windows(problem, problem.balance)
    plans = [plan for plan in product(*options(problem)) if within(problem, plan)]
    if not plans:
        # What may not move can be over a cap alone: nothing that is placed is to blame then.
        with suppress(InfeasibleError):
            over = solve(problem, problem.balance)
            assert "max_replicas" in {each.rule for each in independent_check.check(problem, over.assignment)}
        return
    costs = [(replica_excess(problem, wanted, plan), moved(problem, plan)[0]) for plan in plans]
    best = min(costs, key=lambda cost: cost if problem.rebalance == "all" else cost[::-1])
    solution = solve(problem, problem.balance)
    found = of_assignment(problem, solution.assignment)
    assert () == independent_check.check(problem, solution.assignment)
    assert best == found if problem.rebalance == "all" else best[1] == found[1]
    # Windows of topics that may begin anywhere have a bound of their own, which isn't always met, with caps or without.
    several = problem.balance.topic_replicas == Tolerance("spread", 2)
    assert solution.least_bytes <= best[1] if several else solution.least_bytes == best[1]


def test_open_windows_end_at_the_caps() -> None:
    """A topic's window may begin anywhere, but not so that a broker exceeds its cap."""
    factor = ReplicationFactorRow("moves", 2)
    problem = problem_of(
        no_racks(0, 1, 2),
        {"kept": [(0,), (0,), (0, 1, 2)], "moves": [(0,), (0,)]},
        sizes=0,
        changes=Changes(add_brokers=(Broker(31),), set_replication_factor=(factor,)),
        topics=TopicFilter(exclude=("kept",)),
        balance=balance_of(0, 0, 2, 0),
    )
    problem = with_caps(problem, {31: 2})
    assert () == independent_check.check(problem, solve(problem, problem.balance).assignment)


@examples(120)
@given(CAPPED, st.sampled_from(("none", "0%", "20%", "60%")))
def test_the_bound_holds_for_every_plan_within_the_caps(problem: Problem, width: str) -> None:
    """As read back from its file, with windows of bytes too; where only what must move may, it is met."""
    problem = replace(problem, balance=replace(problem.balance, disk=Tolerance.parse(width)))
    plans = [plan for plan in product(*options(problem)) if within(problem, plan)]
    assume(plans)
    solution = solve(problem, problem.balance, certify=True)
    assert () == independent_check.check(problem, solution.assignment)
    found, cost = of_assignment(problem, solution.assignment), moved(problem, as_plan(solution.assignment))[0]
    alike = [
        moved(problem, plan)[0]
        for plan in plans
        if width != "none" or replica_excess(problem, windows(problem, problem.balance), plan) <= found[0]
    ]
    if width == "none" or problem.rebalance != "all":
        assert solution.least_bytes <= min(alike)
    if width == "none" and problem.rebalance != "all" and problem.size_bytes.all():
        assert cost == solution.least_bytes
    if solution.certificate is not None and solution.certificate.facts.measure == "bytes":
        document = bound_json.to_document(solution.certificate)
        assert solution.least_bytes == lower_bound(bound_json.from_document(document))


def with_caps(problem: Problem, *rows: dict[int, int]) -> Problem:
    """The problem with caps of replicas and of leaders, each by broker id."""
    caps: LongArray = np.full((2, len(problem.broker_ids)), UNCAPPED, dtype=np.int64)
    for side, stated in zip(caps, rows, strict=False):
        for broker, cap in stated.items():
            side[problem.broker_ids.tolist().index(broker)] = cap
    return replace(problem, caps=caps)


def test_what_a_cap_leaves_over_is_shared_by_the_others() -> None:
    """Broker 1 holds and leads as much as its caps allow; the others share the rest evenly, each topic too."""
    rows = {"t": [(1 + at % 4, 1 + (at + 1) % 4) for at in range(12)], "u": [(1 + at % 4,) for at in range(12)]}
    problem = with_caps(problem_of(no_racks(1, 2, 3, 4), rows), {1: 3}, {1: 3})
    assignment = solve(problem, problem.balance).assignment
    held = on_all_brokers(problem, assignment, assignment[:, 0])
    assert [3, 11, 11, 11] == held[0].tolist()
    assert [3, 7, 7, 7] == held[1].tolist()
    assert 0 == score(ScoringBasis.of(problem), assignment).excess[0]


@examples(100)
@given(problems(brokers=5, topics=2, partitions=4, rebalance=("all", "leaders")), st.data())
def test_leaders_keep_to_their_caps(problem: Problem, data: st.DataObject) -> None:
    """Whoever leads, and however few that leaves to others; where no choice of leaders fits, that is said."""
    led = int(problem.may_lead_anew.sum())
    most = [data.draw(st.integers(0, led)) for _ in problem.broker_ids]
    problem = with_caps(problem, {}, dict(zip(problem.broker_ids.tolist(), most, strict=True)))
    assignment = None
    with suppress(InfeasibleError):
        assignment = solve(problem, problem.balance).assignment
    assume(assignment is not None)
    broken = {violation.rule for violation in independent_check.check(problem, assignment)}
    assert broken <= ({"max_leaders"} if (~problem.may_lead_anew & (problem.leaders >= 0)).any() else set())


def test_a_single_replica_goes_to_a_broker_that_may_still_lead() -> None:
    """Broker 2 leads as much as it may, and has no partition of the topic to exchange; the replica goes to broker 3.

    Broker 1, which it came from, could lead it too, but may not hold its bytes.
    """
    open_ = balance_of("none", "none", "none", "none", "none")
    problem = problem_of(no_racks(1, 2, 3), {"t": [(1,)], "u": [(2,)]}, sizes={"t": [11], "u": [0]}, balance=open_)
    problem = with_caps(replace(problem, movable=np.array([True, False])), {}, {2: 1})
    problem.disk_limit_bytes[:] = 10, 99, 99
    solved = solve(problem, problem.balance)
    assert [[3], [2]] == ids_of(problem, solved.assignment)
    assert 11 == solved.least_bytes


def test_new_partitions_keep_to_the_caps() -> None:
    """New partitions don't exceed the caps; they go to other brokers instead."""
    changes = Changes(new_partitions=(NewPartitions("n", 0, 9, 1),), rebalance="none")
    problem = with_caps(problem_of(no_racks(1, 2, 3), {"t": [(1, 2), (2, 3), (3, 2)]}, changes=changes), {1: 2}, {3: 5})
    assignment = solve(problem, problem.balance).assignment
    assert () == independent_check.check(problem, assignment)
    assert 2 == on_all_brokers(problem, assignment, assignment[:, 0])[0][0]


def test_the_check_names_the_broker() -> None:
    """A violation is at the last partition that moves to the broker, or that it has; the score counts them all."""
    problem = with_caps(problem_of(no_racks(1, 2, 3), {"t": [(1, 2), (2, 3), (3, 1)]}), {1: 2}, {2: 1})
    assignment = assignment_of(problem, [(1, 2), (2, 1), (2, 1)])
    found = [str(violation) for violation in independent_check.check(problem, assignment)]
    assert found == [
        "t-1: max_replicas: broker 1 would have 3; allowed: at most 2",
        "t-2: max_leaders: broker 2 would have 2; allowed: at most 1",
    ]
    assert 2 == score(ScoringBasis.of(problem), assignment).violations[0]
    assert ids_of(problem, assignment)[0] == [1, 2]


def test_a_first_step_may_leave_what_is_there() -> None:
    """Partitions that wait for the budget may exceed a cap, if no more than today."""
    problem = with_caps(problem_of(no_racks(1, 2, 3), {"t": [(1, 2), (1, 3), (1, 2)]}), {1: 1})
    waits = replace(problem, deferred=np.array([True, True, True]), movable=np.zeros(3, dtype=bool))
    assert () == independent_check.check(waits, problem.replicas)
    assert ["max_replicas"] == [each.rule for each in independent_check.check(problem, problem.replicas)]


def test_no_window_is_cut_apart() -> None:
    """If a cap cuts a spread of two, its window ends at the cap, and nothing moves."""
    rows = [(1 + at % 3, 1 + (at + 1) % 3) for at in range(6)]
    problem = with_caps(problem_of(no_racks(1, 2, 3), {"t": rows}, balance=balance_of(2, 1, 2)), {1: 4, 2: 4, 3: 4})
    assert 4 == windows(problem, problem.balance).replicas[1].max()
    assert solve(problem, problem.balance).least_bytes == 0


def test_partitions_change_places_where_too_few_can_be_led_elsewhere() -> None:
    """The fewest bytes put six partitions on capped brokers alone; two exchange a replica with other partitions."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    rows = {"t": [(1, 2), (3, 4)] * 12}
    sizes = {"t": [1] * 6 + [100] * 18}
    problem = with_caps(problem_of(racks, rows, sizes=sizes, changes=Changes(add_brokers=JOINING)), {}, {5: 2, 6: 2})
    free = solve(with_caps(problem, {}), problem.balance)
    alone = np.isin(free.assignment, np.flatnonzero(problem.broker_ids > 4)).all(axis=1)
    assert alone.sum() > 4
    solution = solve(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    held = [on_all_brokers(problem, each, each[:, 0])[0].tolist() for each in (free.assignment, solution.assignment)]
    assert held[0] == held[1]
    assert solution.least_bytes <= moved(problem, as_plan(solution.assignment))[0]


@pytest.mark.parametrize(("limit_bytes", "copied"), [(-1, 100 + 1), (250, 100 + 100)])
def test_partitions_of_two_topics_change_places_if_nothing_else_keeps_the_caps(limit_bytes: int, copied: int) -> None:
    """Brokers 1 and 2 may lead one of three partitions each, and no broker has room for another replica.

    The smallest of brokers 3 and 4 goes, or one as large as the one that comes if their disks have no more room.
    """
    rows = {name: [(1, 2) if name < "d" else (3, 4)] for name in "abcdef"}
    sizes = {name: [1 if name == "d" else 100] for name in rows}
    problem = problem_of(no_racks(1, 2, 3, 4), rows, sizes=sizes)
    problem = with_caps(problem, dict.fromkeys(range(1, 5), 3), {1: 1, 2: 1})
    problem = replace(problem, disk_limit_bytes=np.array([-1, -1, limit_bytes, limit_bytes]))
    solution = solve(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    assert copied == moved(problem, as_plan(solution.assignment))[0]


def test_leaders_that_may_not_change_use_up_a_cap() -> None:
    """Broker 1 leads and broker 4 holds as much as it may, so nothing helps the third partition on brokers 2 and 3."""
    changes = Changes(new_partitions=(NewPartitions("new", 0, 4, 2),), rebalance="none")
    problem = with_caps(problem_of(no_racks(1, 2, 3, 4), {"a": [(1, 2)]}, changes=changes), {4: 1}, {1: 1, 2: 1, 3: 1})
    placed = assignment_of(problem, [(1, 2), (2, 3), (2, 3), (2, 3), (1, 4)])
    assert placed.tolist() == leadable(problem, placed, windows(problem, problem.balance)).tolist()


def test_a_cap_that_cannot_hold_for_now_is_exceeded_by_as_little_as_can_be() -> None:
    """Broker 3 is in no ISR, so broker 1 alone can lead two partitions. It leads no third one."""
    alone, both = ((1, 3), (1,)), ((1, 2), (1, 2))
    rows = tuple(Partition(at, held, 1, isr) for at, (held, isr) in enumerate((alone, alone, *[both] * 8)))
    brokers = (Broker(1, max_leaders=1), Broker(2), Broker(3))
    problem = build(Spec(Cluster("c", brokers, (Topic("t", rows),)), Changes(rebalance="leaders")))
    led = leaders_after(problem, solve(problem, problem.balance).assignment).tolist()
    assert [2, 8, 0] == [led.count(broker) for broker in range(3)]


@pytest.mark.parametrize("racks", [no_racks(1, 2, 3), {1: "a", 2: "b", 3: "c"}])
@pytest.mark.parametrize("demoted", [(), (3,)])
def test_caps_on_leaders_come_before_windows(racks: dict[int, str | None], demoted: tuple[int, ...]) -> None:
    """Broker 1 may lead one partition, so single replicas go from it to another rack and another broker's window."""
    changes = Changes(demote_brokers=demoted)
    problem = problem_of(racks, {"t": [(1,), (1,), (2,), (2,), (3,), (3,)]}, changes=changes)
    problem = with_caps(problem, {}, {1: 1})
    assignment = solve(problem, problem.balance).assignment
    assert () == independent_check.check(problem, assignment)
    assert 1 == np.count_nonzero(assignment == 0)


def test_disk_limits_come_before_windows() -> None:
    """Broker 3 may hold nothing, although targets give it as many replicas and bytes as the others."""
    rows, sizes = {"t": [(1,), (1,), (2,), (3,)]}, {"t": [985, 539, 452, 215]}
    problem = problem_of(no_racks(1, 2, 3), rows, sizes=sizes, balance=balance_of(1, 1, 1, "none", "5%"))
    problem = replace(problem, disk_limit_bytes=np.array([-1, 1000, 0]))
    solution = solve(problem, problem.balance)
    held = on_all_brokers(problem, solution.assignment, solution.assignment[:, 0])[2]
    assert held[1] <= 1000
    assert 0 == held[2]
    assert solution.least_bytes <= moved(problem, as_plan(solution.assignment))[0]


def test_new_partitions_go_where_they_may_be_led() -> None:
    """Broker 3 has room for both replicas of new partitions, but leads nothing: it may be led by brokers 1 and 2."""
    changes = Changes(new_partitions=(NewPartitions("new", 0, 2, 1),), rebalance="none")
    rows = {"a": [(1,), (2,), (1,), (2,)]}
    problem = with_caps(problem_of(no_racks(1, 2, 3), rows, changes=changes), {}, {3: 0})
    assignment = solve(problem, problem.balance).assignment
    assert () == independent_check.check(problem, assignment)
    assert 2 not in assignment[:, 0].tolist()


def test_targets_are_kept_where_disks_have_no_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other targets help, so none are tried."""
    problem = problem_of(no_racks(1, 2), {"t": [(1,), (1,), (1,), (2,)]}, sizes=4, balance=balance_of(0, 1, 1))
    problem = replace(problem, disk_limit_bytes=np.array([12, 3]))
    monkeypatch.setattr(optimum, "_WIDENINGS", None)
    held = on_all_brokers(problem, solve(problem, problem.balance).assignment, problem.leaders)[0]
    assert [2, 2] == held.tolist()


def test_a_cap_that_rules_on_leaders_break_names_them() -> None:
    """Both partitions are led in rack a, where the only broker may lead one: the refusal names such rules."""
    spec = spec_of({1: "a", 2: "b"}, {"t": [(1, 2), (1, 2)]}, changes=Changes(rebalance="leaders"))
    brokers = (Broker(1, "a", max_leaders=1), Broker(2, "b"))
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers), leader_racks=(LeaderRacksRow("*", ("a",)),))
    problem = build(spec)
    with pytest.raises(
        InfeasibleError, match=r"higher max_leaders, or other rules on who leads \(leader_racks, .* all$"
    ):
        solve(problem, problem.balance)
