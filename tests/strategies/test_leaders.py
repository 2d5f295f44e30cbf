"""Preferred leaders against brute force: evenest first, then the fewest changes."""

from __future__ import annotations

from itertools import product

import numpy as np
from clusters import assignment_of, balance_of, ids_of, no_racks, problem_of, problems
from hypothesis import given
from properties import examples

from planner.model.balance import Balance
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes, TopicFilter
from planner.scoring.broker_loads import leaders_after
from planner.scoring.windows import BROKER_PRICE, TOPIC_PRICE, excess, windows
from planner.strategies.leaders import order
from planner.strategies.optimum import solve


def price(problem: Problem, leaders: tuple[int, ...]) -> tuple[int, int]:
    """Excess over the leaders' windows, and the cost of the changes, of one leader a partition.

    Who replaces a broker, and hasn't the partition yet, is taken for that broker.
    """
    number = {broker: at for at, broker in enumerate(np.flatnonzero(problem.targets).tolist())}
    wanted = windows(problem, problem.balance)
    counts = np.zeros((len(problem.topic_names), len(number)), dtype=np.int64)
    for row, leader in enumerate(leaders):
        if leader in number:
            counts[problem.topic_of[row], number[leader]] += 1
    beyond = excess(wanted.leaders, counts.sum(axis=0), BROKER_PRICE)
    if wanted.topic_leaders is not None:
        beyond = beyond + excess(wanted.topic_leaders, counts, TOPIC_PRICE).sum()
    changes = [
        2 * (leader != now(problem, row, problem.replicas[row, 0]))
        + (leader != now(problem, row, problem.leaders[row]))
        for row, leader in enumerate(leaders)
    ]
    return int(beyond), int(sum(changes))


def now(problem: Problem, row: int, broker: int) -> int:
    """The broker, or who takes over its replica of a partition."""
    successor = int(problem.replacements[broker]) if broker >= 0 else -1
    return int(broker) if successor < 0 or successor in problem.replicas[row] else successor


def best(problem: Problem, assignment: IntArray) -> tuple[int, int]:
    """The best price of all ways to lead the given replicas."""
    free = problem.movable & (problem.forced | (problem.rebalance != "none"))
    choices = [
        [broker for broker in row if broker >= 0] if free[at] else [int(problem.leaders[at])]
        for at, row in enumerate(assignment.tolist())
    ]
    prices = [price(problem, leaders) for leaders in product(*choices)]
    return min(prices, key=lambda pair: pair if problem.rebalance != "none" else pair[::-1])


@examples(120)
@given(problems(brokers=5, topics=2, partitions=3, rebalance=("all", "leaders", "none")))
def test_least_excess_then_fewest_changes(problem: Problem) -> None:
    """Given the replicas, no choice of leaders is more even, nor as even with fewer changes; changes first for none."""
    assignment = solve(problem, problem.balance).assignment
    assert best(problem, assignment) == price(problem, tuple(leaders_after(problem, assignment).tolist()))


@examples(60)
@given(problems(rebalance=("all", "leaders", "none")))
def test_keeps_the_replicas(problem: Problem) -> None:
    """Choosing leaders never changes which brokers a partition is on, and what may not change keeps its order."""
    placed = solve(problem, problem.balance).assignment
    ordered = order(problem, placed, windows(problem, Balance()))
    assert np.sort(placed, axis=1).tolist() == np.sort(ordered, axis=1).tolist()
    fixed = ~problem.movable | (~problem.forced & (problem.rebalance == "none"))
    width = problem.replicas.shape[1]
    assert problem.replicas[fixed].tolist() == ordered[fixed, :width].tolist()


def test_followers_keep_todays_order_and_new_ones_come_last() -> None:
    """Behind the leader: today's replicas in their order, then new ones by broker."""
    problem = problem_of(no_racks(1, 2, 3, 4, 5), {"a": [(3, 2, 1)]})
    placed = assignment_of(problem, [(1, 2, 3)])
    assert [[3, 2, 1]] == ids_of(problem, order(problem, placed, windows(problem, Balance())))
    newer = assignment_of(problem, [(1, 3, 5)])
    assert [[3, 1, 5]] == ids_of(problem, order(problem, newer, windows(problem, Balance())))


def test_leaders_only_by_hand() -> None:
    """Broker 1 leads all three partitions; two of them change their order, no replica moves."""
    rows = [(1, 2, 3), (1, 3, 2), (1, 2, 3)]
    problem = problem_of(no_racks(1, 2, 3), {"a": rows}, changes=Changes(rebalance="leaders"))
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    assert [1, 2, 3] == sorted(row[0] for row in found)
    assert [sorted(row) for row in rows] == [sorted(row) for row in found]


def test_an_election_is_cheaper_than_a_new_order() -> None:
    """Where another than the preferred leader leads, the preferred one stays preferred: an election restores it."""
    problem = problem_of(
        no_racks(1, 2), {"a": [(1, 2), (2, 1)]}, leaders={"a": [2, 2]}, changes=Changes(rebalance="leaders")
    )
    assert [[1, 2], [2, 1]] == ids_of(problem, solve(problem, problem.balance).assignment)


def test_leaders_that_no_election_changes_count_where_they_are() -> None:
    """Broker 2 leads what 1 should of an excluded topic: broker 1 leads the other one, and nobody nobody's."""
    rows, led = {"a": [(2, 1), (2, 1)], "kept": [(1, 2), (1, 2)]}, {"kept": [2, None]}
    problem = problem_of(no_racks(1, 2), rows, leaders=led, topics=TopicFilter(exclude=("kept",)))
    found = solve(problem, problem.balance).assignment
    assert [[1, 2], [2, 1]] == sorted(ids_of(problem, found)[:2])
    assert [-1, 0, 1, 1] == sorted(leaders_after(problem, found).tolist())


def test_topic_leaders() -> None:
    """Leaders that are even over all topics, but not within each, change where topic_leaders asks for it."""
    rows = {"a": [(1, 2), (1, 2)], "b": [(2, 1), (2, 1)]}
    plain = problem_of(no_racks(1, 2), rows)
    assert [[1, 2], [1, 2], [2, 1], [2, 1]] == ids_of(plain, solve(plain, plain.balance).assignment)
    asked = problem_of(no_racks(1, 2), rows, balance=balance_of(1, 1, 1, 1))
    found = ids_of(asked, solve(asked, asked.balance).assignment)
    assert [1, 2] == sorted(row[0] for row in found[:2])
    assert [1, 2] == sorted(row[0] for row in found[2:])
