"""All windows that a plan misses are named, with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, balance_of, no_racks, problem_of, problems, specs
from hypothesis import given
from properties import examples

from planner.model.balance import Tolerance
from planner.model.build_problem import build, today
from planner.model.document_fields import PlacementRuleRow
from planner.model.problem import Problem
from planner.model.spec import Changes, Spec, TopicFilter
from planner.scoring.missed_targets import (
    RelaxedRow,
    SharesRow,
    missed_windows,
    relaxed,
    unlike_shares,
    widened_to_reach,
)
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import solve

NARROW = balance_of(1, 1, 1)


def found(problem: Problem, rows: list[tuple[int, ...]] | None = None) -> tuple[RelaxedRow, ...]:
    """The windows that an assignment misses; without replica lists, those that the optimum misses."""
    plan = solve(problem, problem.balance).assignment if rows is None else assignment_of(problem, rows)
    return relaxed(ScoringBasis.of(problem), plan)


def test_nothing_relaxed() -> None:
    """An even plan misses nothing."""
    assert () == found(problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3), (3, 1)]}))


def test_racks_of_unequal_size() -> None:
    """A broker alone in its rack has a replica of every partition: it is within its window, but is named."""
    problem = problem_of({1: "a", 2: "b", 3: "b"}, {"x": [(1, 2)] * 4}, balance=NARROW)
    why = "brokers in smaller racks hold more: rack a has 1 broker, the other rack 2"
    assert (RelaxedRow("replicas", None, "1", 2, why), RelaxedRow("topic_replicas", "x", "1", 2, why)) == found(problem)


def test_excluded_topics() -> None:
    """If excluded topics overfill a broker, they are the reason."""
    rows = {"kept": [(1,)] * 6, "x": [(2,), (3,)]}
    problem = problem_of(no_racks(1, 2, 3), rows, topics=TopicFilter(exclude=("kept",)), balance=NARROW)
    why = "no plan tried meets this target while partitions that the YAML's topics key excludes keep their replicas"
    assert [
        ("replicas", None, 5, why),
        ("leaders", None, 5, why),
        ("topic_replicas", "kept", 6, why),
    ] == [(each.window, each.topic, each.reached, each.why) for each in found(problem)]


def test_rebalance_is_the_reason() -> None:
    """If only forced moves are allowed, that is the reason."""
    problem = problem_of(no_racks(1, 2), {"x": [(1,)] * 4}, changes=Changes(rebalance="none"), balance=NARROW)
    why = "rebalance: none moves only what has to move"
    assert {why} == {each.why for each in found(problem)}


def test_brokers_in_no_isr_are_the_reason() -> None:
    """A broker in no ISR can't be elected, so others lead more: that is the reason."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3), (3, 1)]}, balance=NARROW)
    problem = replace(problem, out_of_sync=np.array([False, False, True]), leaders=np.array([0, 1, 0]))
    rows = [(1, 2), (2, 3), (1, 3)]
    assert (RelaxedRow("leaders", None, "1", 2, "broker 3 can't lead: in no ISR"),) == found(problem, rows)


def test_leaders_that_alone_may_change_depend_on_where_replicas_are() -> None:
    """With `rebalance: leaders`, the reason is that replicas stay where they are."""
    problem = problem_of(
        no_racks(1, 2, 3), {"x": [(1, 2), (1, 2), (2, 1)]}, balance=NARROW, changes=Changes(rebalance="leaders")
    )
    rows = [(1, 2), (1, 2), (2, 1)]
    why = "not reached with the replicas where they are"
    assert [why] == [each.why for each in found(problem, rows) if each.window == "leaders"]


def test_windows_that_exclude_each_other() -> None:
    """Three replicas on two brokers can't differ by 0: the window is named with the values asked for and reached."""
    problem = problem_of(no_racks(1, 2), {"x": [(1,), (2,), (1,)]}, balance=balance_of(0, "none", "none"))
    why = "no plan tried meets this target together with the other targets, the racks, and the replication factors"
    assert (RelaxedRow("replicas", None, "0", 1, why),) == found(problem)


def test_topic_leaders_are_named_by_topic() -> None:
    """If topic_leaders is asked for, topics with uneven leaders are named."""
    rows = {"x": [(1, 2), (1, 2)], "y": [(2, 1), (1, 2)]}
    problem = problem_of(no_racks(1, 2), rows, balance=balance_of("none", "none", "none", 1))
    assert [("topic_leaders", "x", 2)] == [
        (each.window, each.topic, each.reached) for each in found(problem, [*rows["x"], *rows["y"]])
    ]


def test_windows_of_bytes_are_named_in_per_cent() -> None:
    """Both brokers are 60 % off their share of bytes, and 100 % of traffic, because no partition can be split."""
    balance = balance_of("none", "none", "none", "none", "10%", "20%", "none")
    problem = problem_of(no_racks(1, 2), {"x": [(1,), (2,)]}, sizes={"x": [80, 20]}, balance=balance)
    problem = replace(problem, bytes_in_per_sec=np.array([0, 7], dtype=np.int64))
    why = "a single partition is larger than the target allows"
    expected = (RelaxedRow("disk", None, "10%", 60.0, why), RelaxedRow("network_in", None, "20%", 100.0, why))
    assert expected == found(problem, [(1,), (2,)])


def test_windows_of_bytes_that_other_windows_forbid() -> None:
    """Four equal partitions are on one of two brokers; they could be split evenly, so another target is the reason."""
    balance = balance_of("none", "none", "none", "none", "10%")
    problem = problem_of(no_racks(1, 2), {"x": [(1,)] * 4}, balance=balance)
    why = "no plan tried meets this target together with the other targets, the racks, and the replication factors"
    assert (RelaxedRow("disk", None, "10%", 100.0, why),) == found(problem, [(1,)] * 4)


def test_unlike_brokers_within_their_windows_relax_nothing() -> None:
    """A disk four times as large has four times the replicas: that is as asked for, however wide the spread is."""
    problem = problem_of(no_racks(1, 2), {"x": [(1,)] * 4 + [(2,)]}, balance=balance_of(1, "none", 1))
    problem = replace(problem, disk_bytes=np.array([4, 1]))
    assert () == found(problem, [(1,)] * 4 + [(2,)])
    assert ["replicas", "topic_replicas"] == [each.window for each in found(problem, [(1,)] * 2 + [(2,)] * 3)]


@examples(80)
@given(problems(rebalance=("all", "leaders", "none")))
def test_every_spread_beyond_what_was_asked_is_named(problem: Problem) -> None:
    """A spread is named exactly where it is wider than asked for; doing nothing is judged the same."""
    basis = ScoringBasis.of(problem)
    for plan in (solve(problem, problem.balance).assignment, today(problem)):
        named = relaxed(basis, plan)
        scores = score(basis, plan)
        for window, spread in (("replicas", scores.replica_spread[0]), ("leaders", scores.leader_spread[0])):
            wanted = getattr(problem.balance, window)
            wide = wanted.kind == "spread" and spread > wanted.value
            assert wanted.kind != "spread" or wide == any((window, None) == (each.window, each.topic) for each in named)
        assert all(each.why and each.wanted for each in named)
        assert len({(each.window, each.topic) for each in named}) == len(named)


def test_each_set_is_judged_by_its_own_shares() -> None:
    """A broker set that is even within itself misses nothing, whatever others hold; an uneven set misses windows."""
    rows: list[tuple[int, ...]] = [(1, 2), (2, 1), (3, 4), (4, 3), (3, 4), (4, 3)]
    problem = problem_of(
        no_racks(1, 2, 3, 4, 5),
        {"clicks": rows[:2], "orders": rows[2:]},
        placement=(PlacementRuleRow("clicks", "hot", (1, 2), exclusive=True),),
        balance=NARROW,
    )
    even = [(1, 2), (2, 1), (3, 4), (4, 5), (5, 3), (3, 4)]
    assert () == found(problem, even)
    (score_of,) = score(ScoringBasis.of(problem), assignment_of(problem, even)).topic_replica_spread.tolist()
    assert 1 == score_of
    missed = {(each.window, each.topic, each.reached) for each in found(problem, rows)}
    assert ("topic_replicas", "orders", 4) in missed
    assert {"orders", None} == {topic for _, topic, _ in missed}


def test_no_target_is_missed_where_none_is_asked_for() -> None:
    """An excluded topic stays on a broker that placement forbids. This misses a target only if one is stated."""
    rules = (PlacementRuleRow("kept", "hot", (1, 2), exclusive=False),)
    filtered, rows = TopicFilter(exclude=("kept",)), {"kept": [(1,), (3,)], "free": [(1,), (2,)]}
    asked, none = (
        problem_of(no_racks(1, 2, 3), rows, topics=filtered, placement=rules, balance=balance)
        for balance in (NARROW, balance_of("none", "none", "none"))
    )
    assert ("topic_replicas", "kept") in {(each.window, each.topic) for each in found(asked)}
    assert () == found(none)
    assert 0 == int(score(ScoringBasis.of(none), today(none)).excess[0])


def test_a_broker_whose_share_is_0_is_measured_by_the_mean_share() -> None:
    """Broker 3 may hold nothing, but keeps 30 bytes of an excluded topic: half of the brokers' mean share of 60."""
    problem = problem_of(
        no_racks(1, 2, 3),
        {"kept": [(3,)], "x": [(1,), (2,)]},
        sizes={"kept": [30], "x": [75, 75]},
        topics=TopicFilter(exclude=("kept",)),
        placement=(PlacementRuleRow("*", "all", (1, 2), exclusive=False),),
        balance=balance_of("none", "none", "none", "none", "20%"),
    )
    assert [("disk", 50)] == [(each.window, each.reached) for each in found(problem, [(3,), (1,), (2,)])]


ROWS = {"a": [(1,), (1,), (1,), (1,)], "b": [(1,), (2,)]}


def test_spreads_become_what_is_reached():
    """Spreads become today's: broker 1 has five replicas, four of them of topic a; broker 2 has one, none of a."""
    problem = problem_of(no_racks(1, 2), ROWS, balance=balance_of(1, 1, 1))

    assert {"topic_replicas", "replicas", "leaders"} == set(missed_windows(problem, today(problem)))
    assert balance_of(4, 4, 4) == widened_to_reach(problem, today(problem))


def test_windows_that_are_kept_or_not_asked_for_stay():
    """Windows that are kept, or not asked for, don't change."""
    problem = problem_of(no_racks(1, 2), ROWS, balance=balance_of(9, 1, "none"))

    assert balance_of(9, 4, "none") == widened_to_reach(problem, today(problem))


def test_percentages_are_widened_in_hundredths():
    """Percentages are rounded up to hundredths: 600 of 700 bytes on one of two brokers are 71.43 % above its share."""
    problem = problem_of(
        no_racks(1, 2), {"a": [(1,), (2,)]}, sizes={"a": [600, 100]}, balance=balance_of(1, 1, 1, "none", "10%")
    )

    assert Tolerance("percent", 71.43) == widened_to_reach(problem, today(problem)).disk


def test_brokers_of_unlike_capacity_have_windows_of_their_own():
    """Shares are a third and two thirds of the replicas, and the smaller broker has all of them."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,)] * 6}, balance=balance_of(1, 6, "none"))
    problem = replace(problem, disk_bytes=np.array([100, 200], dtype=np.int64))
    found = widened_to_reach(problem, assignment_of(problem, [(1,)] * 6))

    assert found.replicas.value == 8  # 2 ± 4 and 4 ± 4
    assert () == missed_windows(replace(problem, balance=found), today(problem))


@examples(40)
@given(specs())
def test_what_is_reached_is_kept_and_nothing_narrower_is(spec: Spec):
    """For today's assignment without any change: one step narrower misses the window."""
    spec = replace(spec, changes=Changes(), balance=balance_of(0, 0, 1, 1))
    problem = build(spec)
    found = widened_to_reach(problem, today(problem))

    assert () == missed_windows(replace(problem, balance=found), today(problem))
    for name in missed_windows(problem, today(problem)):
        narrower = Tolerance("spread", getattr(found, name).value - 1)
        tighter = replace(problem, balance=replace(found, **{name: narrower}))
        assert name in missed_windows(tighter, today(problem))


def test_unlike_shares_are_named_with_their_ends():
    """Broker 1 alone in rack a has a share of four replicas, those in rack b of two; leaders' shares are equal."""
    problem = problem_of({1: "a", 2: "b", 3: "b"}, {"x": [(1, 2)] * 4}, sizes={"x": [10, 20, 30, 40]})

    assert [SharesRow("replicas", 2, 4), SharesRow("disk", 50, 100)] == [*unlike_shares(problem)]
    assert [] == [*unlike_shares(problem_of(no_racks(1, 2, 3), {"x": [(1, 2)] * 4}))]
