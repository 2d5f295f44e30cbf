"""The replicas, leaders, bytes and traffic of brokers under an assignment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, loaded_problems, no_racks, problem_of, problems, scrambled
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.execution.batch_cutting import split
from planner.execution.partition_changes import changes
from planner.model import build_problem
from planner.model.build_problem import today
from planner.model.problem import Problem
from planner.model.spec import BatchRules, Changes, TopicFilter
from planner.scoring.broker_loads import (
    HOURS,
    MEASURES,
    Week,
    by_group,
    leaders_after,
    loads,
    measure_count,
    on_all_brokers,
)
from planner.scoring.score import ScoringBasis, score
from planner.strategies.optimum import solve


def example(changes: Changes | None = None) -> Problem:
    """Two topics on three brokers; writes are 10 and 20 bytes/s to x, reads are 5 bytes/s from y."""
    problem = problem_of(
        no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)], "y": [(3,)]}, sizes={"x": [100, 200], "y": [7]}, changes=changes
    )
    rates = np.array([10, 20, 0], dtype=np.int64), np.array([1, 0, 5], dtype=np.int64)
    return replace(problem, bytes_in_per_sec=rates[0], bytes_out_per_sec=rates[1])


def test_loads_by_hand() -> None:
    """Each replica has all bytes and writes; a leader sends all writes once to each follower, and all reads."""
    problem = example()
    assert [[100, 300, 207], [10, 30, 20], [11, 20, 5]] == loads(problem, today(problem)).tolist()


def test_other_leaders_send() -> None:
    """Leaders decide which broker sends, not which holds; a partition without a leader is sent by no broker."""
    problem = example()
    leaders = np.array([1, -1, 2], dtype=np.int32)
    assert [[100, 300, 207], [10, 30, 20], [0, 11, 5]] == loads(problem, today(problem), leaders).tolist()


def test_who_leads_is_whom_the_plan_elects() -> None:
    """If the plan may change a leader, it elects the preferred leader; else today's leader stays, or there is none."""
    rows = {"a": [(1, 2), (1, 2), (3, 1)], "b": [(1, 2)]}
    led = {"a": [2, None, 3], "b": [2]}
    for rebalance, expected in (("all", [0, -1, 0, 1]), ("leaders", [0, -1, 0, 1]), ("none", [1, -1, 0, 1])):
        changes = Changes(remove_brokers=(3,), rebalance=rebalance)
        problem = problem_of(no_racks(1, 2, 3), rows, leaders=led, changes=changes, topics=TopicFilter(exclude=("b",)))
        after = assignment_of(problem, [(1, 2), (1, 2), (1, 2), (1, 2)])
        assert expected == leaders_after(problem, after).tolist(), rebalance


@examples(60)
@given(problems(rebalance=("all", "leaders", "none")))
def test_who_leads_is_what_the_batches_elections_say(problem: Problem) -> None:
    """The leaders after, from today's and the elections of the plan's own batches."""
    assignment = solve(problem, problem.balance).assignment
    changed = changes(problem, assignment)
    elected = {name for batch in split(changed, BatchRules()) for name in batch.elect}
    names = [problem.topic_names[topic] for topic in problem.topic_of]
    told = [name in elected for name in zip(names, problem.partition_ids.tolist(), strict=True)]
    assert np.where(told, assignment[:, 0], problem.leaders).tolist() == leaders_after(problem, assignment).tolist()
    assert len(elected) == score(ScoringBasis.of(problem), assignment).leaders_changed[0]


def test_more_followers_are_sent_more() -> None:
    """Three replicas have two followers, so the leader sends the writes twice."""
    problem = example()
    assignment = assignment_of(replace(problem, replication_factors=np.array([3, 2, 1])), [(1, 2, 3), (2, 3), (3,)])
    assert [2 * 10 + 1, 20, 5] == loads(problem, assignment)[2].tolist()


def test_brokers_that_leave_count_where_all_are_asked_for() -> None:
    """`loads` has only target brokers; `on_all_brokers` has all brokers, with replicas and leaders too."""
    problem = example(Changes(remove_brokers=(3,)))
    assert [[100, 300], [10, 30], [11, 20]] == loads(problem, today(problem)).tolist()
    everything = on_all_brokers(problem, today(problem), problem.leaders)
    assert [[1, 2, 2], [1, 1, 1], [100, 300, 207], [10, 30, 20], [11, 20, 5]] == everything.tolist()


def test_groups_are_kept_apart() -> None:
    """Each topic has its own sums, with as many measures as asked for."""
    problem = example()
    found = by_group(problem, today(problem), problem.leaders, problem.topic_of, 2, 3)
    assert [[[1, 2, 1], [1, 1, 0], [100, 300, 200]], [[0, 0, 1], [0, 0, 1], [0, 0, 7]]] == found.tolist()


def test_traffic_is_measured_where_rates_are_known() -> None:
    """Without rates there are three measures, with at least one rate there are five."""
    quiet = problem_of(no_racks(1), {"x": [(1,)]})
    assert (3, 5, 5) == (measure_count(quiet), measure_count(example()), len(MEASURES))


def test_bytes_beyond_floating_point_are_exact() -> None:
    """Sums are exact, because they are of integers, not of floats."""
    problem = problem_of(no_racks(1), {"x": [(1,), (1,)]}, sizes={"x": [2**60, 1]})
    assert 2**60 + 1 == loads(problem, today(problem))[0, 0]


@examples(60)
@given(loaded_problems(), st.integers(0, 2**16))
def test_loads_against_plain_counting(problem: Problem, seed: int) -> None:
    """Any assignment, counted partition by partition."""
    assignment = scrambled(problem, seed)
    held, written, sent = (dict.fromkeys(np.flatnonzero(problem.targets).tolist(), 0) for _ in range(3))
    for row, brokers in enumerate(assignment.tolist()):
        replicas = [broker for broker in brokers if broker >= 0]
        for broker in set(replicas) & set(held):
            held[broker] += int(problem.size_bytes[row])
            written[broker] += int(problem.bytes_in_per_sec[row])
        leader = replicas[0] if problem.may_lead_anew[row] else int(problem.leaders[row])
        if leader in sent:
            fetched = int(problem.bytes_in_per_sec[row]) * (len(replicas) - 1)
            sent[leader] += fetched + int(problem.bytes_out_per_sec[row])
    assert [list(held.values()), list(written.values()), list(sent.values())] == loads(problem, assignment).tolist()


@examples(25)
@given(problems(brokers=5, topics=2), st.integers(0, 1000))
def test_consumers_fetch_from_the_nearest_replica_in_each_hour(problem: Problem, seed: int) -> None:
    """From the leader where it is in their rack, else from the first replica there, else from the leader (KIP-392)."""
    random = np.random.default_rng(seed)
    hours = random.integers(0, 1000, (2, problem.rows, 168))
    shares = random.integers(0, 1_000_000 // max(1, len(problem.rack_names)), len(problem.rack_names))
    judged = replace(problem, week=hours.astype(np.int32), read_in_racks=shares)
    week = Week.of(judged)
    assert week is not None
    assignment, leaders = build_problem.today(judged), judged.leaders
    expected = build_problem.hours_of_brokers(judged, np.stack([hours[0], 0 * hours[1]]), assignment, leaders)
    # In millionths, as shares are stated.
    consumed = np.zeros_like(expected[1])
    for row, leader in enumerate(leaders.tolist()):
        if leader < 0:
            continue
        left = hours[1, row] * 1_000_000
        for rack, share in enumerate(shares.tolist()):
            held = [broker for broker in assignment[row].tolist() if broker >= 0]
            there = [broker for broker in held if judged.broker_racks[broker] == rack]
            if there and judged.broker_racks[leader] != rack:
                consumed[there[0]] += hours[1, row] * share
                left -= hours[1, row] * share
        consumed[leader] += left
    expected[1] += consumed // 1_000_000
    assert np.array_equal(expected, week.loads(assignment, leaders))


@examples(25)
@given(problems(brokers=5, topics=2, rebalance=("all", "leaders", "none")), st.integers(0, 1000))
def test_the_hours_of_the_week_are_as_by_definition(problem: Problem, seed: int) -> None:
    """Loads as counted one by one, of any assignment and leaders; then the highest, the p99, and hours above limits."""
    random = np.random.default_rng(seed)
    hours = random.integers(0, 1000, (2, problem.rows, 168))
    limits = random.integers(-1, 2, len(problem.broker_ids)) * 400
    judged = replace(problem, week=hours.astype(np.int32), network_limit=np.maximum(limits, -1))
    week = Week.of(judged)
    assert week is not None
    assert Week.of(problem) is None
    assignment = random.integers(-1, len(problem.broker_ids), (problem.rows, problem.width))
    assignment = np.where((assignment >= 0).any(axis=1, keepdims=True), assignment, 0)
    leaders = leaders_after(judged, assignment)
    expected = build_problem.hours_of_brokers(judged, hours, assignment, leaders)
    assert np.array_equal(expected, week.loads(assignment, leaders))

    found = dict(zip(HOURS, week.judged(assignment, leaders), strict=True))
    worst = expected.max(axis=(1, 2))
    above = [
        max(expected[0, broker, hour], expected[1, broker, hour]) > limit
        for broker, limit in enumerate(limits.tolist())
        for hour in range(168)
        if limit >= 0
    ]
    usual = []
    for held in expected[:, problem.targets].reshape(2, -1):
        usual.append(next(value for value in sorted(held) if (held <= value).sum() >= 0.99 * len(held)))
    assert found == {
        "worst_hour": worst.max(),
        "worst_hour_in": worst[0],
        "worst_hour_out": worst[1],
        "p99_hour_in": usual[0],
        "p99_hour_out": usual[1],
        "hours_above_capacity": sum(above) if above else -1,
    }
