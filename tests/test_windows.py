"""Windows: fair shares under the rack rule, tolerances around them, and the price of being outside."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.balance import Balance, Tolerance
from planner.model import Problem
from planner.windows import excess, rack_rule, windows

OPEN = np.iinfo(np.int32).max


def one_topic(brokers: int, partitions: int, tolerance: str) -> list[list[int]]:
    """The window of replicas on brokers without racks: lows and highs."""
    problem = problem_of(no_racks(*range(brokers)), {"a": [(0,)] * partitions})
    return windows(problem, balance_of(tolerance)).replicas.tolist()


@pytest.mark.parametrize(
    ("brokers", "partitions", "tolerance", "low", "high"),
    [
        (2, 4, "1", 2, 3),
        (2, 5, "1", 2, 3),
        (3, 5, "1", 1, 2),
        (2, 4, "0", 2, 2),
        (2, 5, "0", 3, 3),
        (5, 18, "2", 2, 4),
        (5, 17, "2", 2, 4),
        (4, 1, "2", 0, 2),
        (2, 200, "10%", 90, 110),
        (2, 200, "15%", 85, 115),
        (2, 20, "70%", 3, 17),
        (2, 200, "7%", 93, 107),
        (3, 200, "0%", 66, 67),
        (3, 200, "1%", 66, 67),
        (2, 4, "300%", 0, 8),
        (2, 4, "none", 0, OPEN),
    ],
)
def test_window_by_hand(brokers: int, partitions: int, tolerance: str, low: int, high: int) -> None:
    """Equal shares, tolerances in all forms; percentages that floating point would miss by one."""
    assert [[low] * brokers, [high] * brokers] == one_topic(brokers, partitions, tolerance)


def test_unequal_racks_share_what_the_rack_rule_lets_them() -> None:
    """Two replicas over racks of 1 and 3 brokers: the lone broker holds one of every partition, the others a third."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1, 2)] * 6})
    found = windows(problem, balance_of(0, 0, 0))
    assert [[6, 2, 2, 2]] * 2 == found.replicas.tolist()
    assert [[[6, 2, 2, 2]]] * 2 == found.topic_replicas.tolist()


def test_racks_that_have_room_share_equally() -> None:
    """One replica over racks of 1 and 3 brokers: nothing binds, all four brokers share alike."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1,)] * 8})
    assert [[2] * 4, [2] * 4] == windows(problem, balance_of(0, 0, 0)).replicas.tolist()


def test_leaders_share_equally_whatever_the_racks() -> None:
    """Leaders aren't bound by racks: 8 partitions, 4 brokers, 2 leaders each; by topic only where asked for."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1, 2)] * 8})
    found = windows(problem, balance_of(1, 0, 1))
    assert [[2] * 4, [2] * 4] == found.leaders.tolist()
    assert found.topic_leaders is None
    asked = windows(problem, balance_of(1, 0, 1, 0)).topic_leaders
    assert asked is not None
    assert [[[2] * 4]] * 2 == asked.tolist()


@pytest.mark.parametrize(
    ("racks", "factor", "least", "most"),
    [
        ("aab", 2, [1, 1], [1, 1]),
        ("aaab", 3, [2, 1], [2, 1]),
        ("aabb", 3, [1, 1], [2, 2]),
        ("aabbc", 2, [0, 0, 0], [1, 1, 1]),
        ("aabbc", 4, [1, 1, 1], [2, 2, 1]),
        ("aabbc", 5, [2, 2, 1], [2, 2, 1]),
    ],
)
def test_rack_rule_by_hand(racks: str, factor: int, least: list[int], most: list[int]) -> None:
    """What each rack holds of one partition at the best spread."""
    problem = problem_of(dict(enumerate(racks)), {"t": [tuple(range(factor))]})
    rule = rack_rule(problem)
    assert (least, most) == (rule.least[factor].tolist(), rule.most[factor].tolist())


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=7), st.data())
def test_rack_rule_against_all_sets(racks: list[str], data: st.DataObject) -> None:
    """The bounds are the least and the most that any of the most even sets has in a rack."""
    factor = data.draw(st.integers(1, len(racks)))
    problem = problem_of(dict(enumerate(racks)), {"t": [tuple(range(factor))]})
    names = sorted(set(racks))
    sets = combinations(racks, factor)
    by_rack = np.array([[each.count(name) for name in names] for each in sets])
    crowding = (by_rack**2).sum(axis=1)
    even = by_rack[crowding == crowding.min()]
    rule = rack_rule(problem)
    assert (np.min(even, axis=0).tolist(), np.max(even, axis=0).tolist()) == (
        rule.least[factor].tolist(),
        rule.most[factor].tolist(),
    )


@settings(max_examples=80)
@given(problems())
def test_shares_add_up(problem: Problem) -> None:
    """With a spread of 1 the lows together are at most what there is, and the highs at least; also by topic."""
    found = windows(problem, Balance(topic_leaders=Tolerance("spread", 1)))
    replicas = int(problem.replication_factors.sum())
    assert found.replicas[0].sum() <= replicas <= found.replicas[1].sum()
    assert found.leaders[0].sum() <= problem.rows <= found.leaders[1].sum()
    by_topic = np.bincount(problem.topic_of, weights=problem.replication_factors)
    assert (found.topic_replicas[0].sum(axis=1) <= by_topic).all()
    assert (found.topic_replicas[1].sum(axis=1) >= by_topic).all()


@pytest.mark.parametrize(("counts", "price", "expected"), [
    ([2, 3], 1, 0),
    ([4, 2], 1, 1),
    ([1, 2], 1, 1),
    ([6, 2], 1, 1 + 2 * 3),
    ([8, 2], 1, 1 + 3 * 3 + 10),
    ([5, 0], 100, 100 * (1 + 3 + 1 + 3)),
])  # fmt: skip
def test_excess_by_hand(counts: list[int], price: int, expected: int) -> None:
    """The first unit outside costs the price, the next three three times, each further one ten times."""
    assert expected == int(excess(np.array([[2, 2], [3, 3]]), np.array(counts), price))
