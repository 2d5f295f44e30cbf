"""Scores by hand, and what a digest shows."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from clusters import assignment_of, balance_of, no_racks, problem_of, problems, scrambled
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import today
from planner.model.cluster import Broker
from planner.model.document_fields import PlacementRuleRow
from planner.model.problem import Problem
from planner.model.spec import Changes, TopicFilter
from planner.scoring.score import ScoringBasis, digest, score, topic_tallies

RACKS = {1: "a", 2: "a", 3: "b"}
ROWS = {"x": [(1, 3), (2, 3), (1, 3)], "y": [(3,)]}
SIZES = {"x": [10, 20, 30], "y": [100]}
ADD_4 = Changes(add_brokers=(Broker(4, "b"),))


def scored(problem: Problem, rows: list[tuple[int, ...]]) -> dict[str, int]:
    """The scores of replica lists, without the digest."""
    found = score(ScoringBasis.of(problem), assignment_of(problem, rows))
    return {name: int(column[0]) for name, column in asdict(found).items() if name != "digest"}


def test_by_hand() -> None:
    """Four brokers in two racks; three replicas move, one of them from another rack, and two leaders change."""
    problem = problem_of(RACKS, ROWS, sizes=SIZES, changes=ADD_4)
    # x-1 moves from 3 to 4 (20 bytes, leader 2 in another rack), x-2 from 1 to 2 (30, leader 1), y-0 from 3 to 4.
    # Replicas 1, 2, 2, 2 are within 1 to 2, like topic x's 1, 2, 2, 1; y's 0, 0, 0, 1 are within 0 to 1. Leaders 1, 2,
    # 0, 1 are within 1 to 2 except broker 3, at the broker's price. Bytes 10, 50, 40, 120 are 55 on average.
    expected = {
        "violations": 0,
        "excess": 100,
        "bytes_moved": 20 + 30 + 100,
        "replicas_moved": 3,
        "leaders_changed": 2,
        "cross_rack_bytes": 20,
        "rack_violations": 0,
        "replica_spread": 1,
        "leader_spread": 2,
        "topic_replica_spread": 1,
        "replicas_max": 2,
        "leaders_max": 2,
        "size_bytes_max": 120,
        "network_in_max": 0,
        "network_out_max": 0,
        "imbalance_ppm": 1_181_818,
        # The measure is bytes.
        "imbalance_measure": 2,
        # Broker 4 receives 120 bytes; brokers 1, 2 and 3 send 30, 20 and 100.
        "busiest_bytes": 120,
        # Broker 3 has 160 bytes, as today, until all copies are complete.
        "peak_disk_ppm": 2_909_091,
        "scenario_excess": 0,
        "scenarios_missed": 0,
        # No topic has growth.
        "months_until_full": -1,
        # Broker 4 alone has y-0; topic x's leaders are 1, 2 and 2, all in one rack.
        "broker_offline": 1,
        "broker_refused": 1,
        "rack_offline": 1,
        "rack_refused": 1,
        "rack_leaders": 3,
    }
    assert expected == scored(problem, [(1, 3), (2, 4), (2, 3), (4,)])


def test_traffic_and_shares_by_hand() -> None:
    """The busiest broker's traffic; imbalance is relative to capacity; bytes beyond their window cost."""
    balance = balance_of("none", "none", "none", "none", "10%", "none", "none")
    problem = problem_of(no_racks(1, 2), {"x": [(1, 2), (2,)]}, sizes={"x": [1000, 500]}, balance=balance)
    rates, read = np.array([10, 20], dtype=np.int64), np.array([4, 0], dtype=np.int64)
    problem = replace(problem, bytes_in_per_sec=rates, bytes_out_per_sec=read)
    even = scored(problem, [(1, 2), (2,)])
    # Bytes are 1000 and 1500, shares 1250: 125 are within 10 %, 125 are beyond on each broker, in units of 1 byte.
    assert 2 * 125 * 100 == even["excess"]
    # Replicas 1 and 2, leaders 1 and 1, bytes as above, in 10 and 30, out 14 and 0: broker 1 sends twice its share.
    assert (30, 14, 1_000_000) == (even["network_in_max"], even["network_out_max"], even["imbalance_ppm"])
    # With 9 of 10 parts of the network broker 1 is below its share; broker 2 gets 30 of 40, 7.5 times its tenth.
    unlike = replace(problem, network_bytes_per_sec=np.array([9, 1], dtype=np.int64))
    assert 6_500_000 == scored(unlike, [(1, 2), (2,)])["imbalance_ppm"]


def test_do_nothing_by_hand() -> None:
    """Doing nothing moves nothing; windows and spreads show that the new broker is empty."""
    problem = problem_of(RACKS, ROWS, sizes=SIZES, changes=ADD_4, leaders={"x": [1, 3, None]})
    found = scored(problem, [(1, 3), (2, 3), (1, 3), (3,)])
    # Replicas 2, 1, 4, 0 in windows of 1 to 2: broker 3 has two too many (1 + 3), broker 4 one too few.
    # Leaders are 1, 1, 1, 0, within a spread of 1. Topic x has 2, 1, 3, 0 in windows of 1 to 2.
    assert 100 * (1 + 3) + 100 + 1 + 1 == found["excess"]
    # Broker 3 leads x-1 instead of 2; x-2 has no leader, and an election doesn't help.
    assert (0, 0, 1) == (found["bytes_moved"], found["replicas_moved"], found["leaders_changed"])
    assert (4, 1, 3) == (found["replica_spread"], found["leader_spread"], found["topic_replica_spread"])


@pytest.mark.parametrize(
    ("rest", "changed", "spread", "most", "of_rack"),
    [
        ({}, 2, 0, 1, 2),
        ({"topics": TopicFilter(exclude=("y",))}, 1, 2, 2, 3),
        ({"changes": Changes(rebalance="leaders")}, 2, 0, 1, 2),
        ({"changes": Changes(rebalance="none")}, 0, 3, 3, 3),
    ],
)
def test_only_elected_leaders_change(rest: dict[str, Any], changed: int, spread: int, most: int, of_rack: int) -> None:
    """Broker 1 leads what 2 and 3 should, and still does wherever no election is held."""
    rows = {"x": [(1, 3), (2, 1), (4, 3)], "y": [(3, 1)]}
    problem = problem_of({1: "a", 2: "a", 3: "b", 4: "b"}, rows, leaders={"x": [1, 1, 4], "y": [1]}, **rest)
    found = scored(problem, [*rows["x"], *rows["y"]])
    assert (changed, spread, most) == (found["leaders_changed"], found["leader_spread"], found["leaders_max"])
    assert of_rack == found["rack_leaders"]


def test_violations_count_rules_and_rows() -> None:
    """A row that breaks two rules counts twice; violations of the rack rule are also counted separately."""
    problem = problem_of(RACKS, ROWS, sizes=SIZES)
    found = scored(problem, [(1, 1), (1, 2), (1, 3), (3,)])
    assert (3, 2) == (found["violations"], found["rack_violations"])


def test_brokers_that_leave_are_not_counted() -> None:
    """Counts are those of brokers that stay."""
    problem = problem_of(no_racks(1, 2, 3), {"x": [(1,), (2,), (3,)]}, changes=Changes(remove_brokers=(3,)))
    tally = topic_tallies(ScoringBasis.of(problem), today(problem))
    assert [[[1, 1], [1, 1], [1, 1]]] == tally.per_broker.tolist()


def test_topic_leaders_count_where_asked_for() -> None:
    """One of two brokers leads both partitions of a topic: each is outside by one, if topic_leaders is asked for."""
    rows = {"x": [(1, 2), (1, 2)], "y": [(2, 1), (2, 1)]}
    found = [
        scored(problem_of(no_racks(1, 2), rows, balance=balance), [*rows["x"], *rows["y"]])["excess"]
        for balance in (balance_of(1, 1, 1), balance_of(1, 1, 1, 1), balance_of(1, 1, 1, 0))
    ]
    assert [0, 2, 4] == found


def test_leaderless_partitions_copy_from_the_preferred_leader() -> None:
    """If a partition has no leader today, bytes between racks are counted from its first replica."""
    problem = problem_of({1: "a", 2: "b", 3: "b"}, {"x": [(1,)]}, sizes=7, leaders={"x": [None]})
    assert 7 == scored(problem, [(3,)])["cross_rack_bytes"]


@examples(60)
@given(problems(), st.integers(0, 2**16), st.data())
def test_digest_shows_any_change(problem: Problem, seed: int, data: st.DataObject) -> None:
    """Another broker anywhere, another order, a replica less: another digest; an equal copy: the same."""
    assignment = scrambled(problem, seed)
    assert digest(assignment) == digest(assignment.copy())
    row = data.draw(st.integers(0, problem.rows - 1))
    slot = data.draw(st.integers(0, problem.width - 1))
    other = assignment.copy()
    other[row, slot] = data.draw(st.integers(-1, len(problem.broker_ids) - 1))
    assert np.array_equal(assignment, other) == (digest(assignment) == digest(other))
    turned = assignment.copy()
    turned[row] = np.roll(turned[row], 1)
    assert np.array_equal(assignment, turned) == (digest(assignment) == digest(turned))
    swapped = assignment[::-1].copy()
    assert np.array_equal(assignment, swapped) == (digest(assignment) == digest(swapped))


@examples(60)
@given(problems(rebalance=("all", "leaders", "none")), st.integers(0, 2**16))
def test_terms_against_plain_counting(problem: Problem, seed: int) -> None:
    """Bytes, replicas, leaders and spreads of any assignment, counted with sets and dictionaries."""
    assignment = scrambled(problem, seed)
    found = score(ScoringBasis.of(problem), assignment)
    moved = [
        len({b for b in new if b >= 0} - {b for b in old if b >= 0})
        for new, old in zip(assignment.tolist(), problem.replicas.tolist(), strict=True)
    ]
    held = dict.fromkeys(np.flatnonzero(problem.targets).tolist(), 0)
    leads = dict(held)
    may_change = problem.movable & (problem.forced | (problem.rebalance != "none"))
    for row, leader, anew in zip(assignment.tolist(), problem.leaders.tolist(), may_change, strict=True):
        for broker in set(row) & set(held):
            held[broker] += 1
        then = row[0] if anew else leader
        if then in leads:
            leads[then] += 1
    assert sum(moved) == found.replicas_moved[0]
    sizes = problem.size_bytes.tolist()
    assert sum(count * size for count, size in zip(moved, sizes, strict=True)) == found.bytes_moved[0]
    most, fewest = max(held.values()), min(held.values())
    assert (most - fewest, most) == (found.replica_spread[0], found.replicas_max[0])
    most, fewest = max(leads.values()), min(leads.values())
    assert (most - fewest, most) == (found.leader_spread[0], found.leaders_max[0])
    assert int((may_change & (problem.leaders != assignment[:, 0])).sum()) == found.leaders_changed[0]


def test_peaks_are_held_against_disks_where_all_state_theirs() -> None:
    """Peaks are relative to disks if all brokers state one, else to the broker's share of the bytes."""
    problem = problem_of(no_racks(1, 2), {"x": [(1,), (1,), (2,)]}, sizes={"x": [10, 20, 30]})
    stated = replace(problem, disk_bytes=np.array([40, 400]), disk_limit_bytes=np.array([40, 400]))
    moved = [(1,), (2,), (2,)]
    # Broker 1 has 30 until 20 bytes have arrived on broker 2, which then has 50; the shares are 30 each.
    assert 1_666_667 == scored(problem, moved)["peak_disk_ppm"]
    assert 750_000 == scored(stated, moved)["peak_disk_ppm"]


def test_the_busiest_broker_may_be_one_that_leaves() -> None:
    """A broker that leaves and leads sends all its bytes, so it can be the busiest one."""
    rows = {"x": [(3, 1), (3, 2)]}
    problem = problem_of(no_racks(1, 2, 3), rows, sizes=7, changes=Changes(remove_brokers=(3,)))
    assert 14 == scored(problem, [(2, 1), (1, 2)])["busiest_bytes"]


def test_scenarios_by_hand() -> None:
    """Windows and disks under growth: how far outside in each scenario, and how many scenarios are missed."""
    balance = balance_of("none", "none", "none", "none", "20%")
    problem = problem_of(no_racks(1, 2), {"x": [(1,)], "y": [(2,)]}, sizes=1000, balance=balance)
    factors = np.array([[1_000_000, 1_000_000], [2_000_000, 1_000_000], [1_100_000, 1_000_000]])
    problem = replace(problem, scenario_names=("as it is", "x", "a little"), scenario_ppm=factors)
    # In the second scenario shares are 1500, windows 1200 to 1800: each broker is 200 outside, in units of 1 byte.
    assert (2 * 200 * 100, 1) == tuple(
        scored(problem, [(1,), (2,)])[f"scenario{name}"] for name in ("_excess", "s_missed")
    )
    full = replace(problem, disk_limit_bytes=np.array([1050, -1]))
    assert 2 == scored(full, [(1,), (2,)])["scenarios_missed"]


@pytest.mark.parametrize(
    ("rows", "ppm"),
    [
        # Orders may be on any broker: a share of 1 each. Brokers 3 and 4 share 4 of clicks: 2 each, besides the 1.
        ([(3,), (3,), (4,), (4,), (1,), (2,), (3,), (4,)], 0),
        ([(3,), (3,), (4,), (4,), (1,), (1,), (3,), (4,)], 1_000_000),
        ([(3,), (3,), (3,), (4,), (1,), (2,), (3,), (4,)], 333_333),
    ],
)
def test_a_broker_s_share_is_of_the_topics_that_it_may_hold(rows: list[tuple[int, ...]], ppm: int) -> None:
    """Placement rules change shares: without them, every broker's share would be 2 replicas."""
    topics = {"clicks": [(3,)] * 4, "orders": [(1,)] * 4}
    problem = problem_of(
        no_racks(1, 2, 3, 4), topics, placement=(PlacementRuleRow("clicks", "hot", (3, 4), exclusive=False),)
    )
    assert ppm == scored(problem, rows)["imbalance_ppm"]


def test_a_broker_without_any_share_is_not_above_it() -> None:
    """If an exclusive set's topics are all gone, a replica that is left breaks a rule, but isn't above a share."""
    problem = problem_of(
        no_racks(1, 2, 3), {"x": [(1,), (3,)]}, placement=(PlacementRuleRow("gone", "old", (3,), True),)
    )
    found = scored(problem, [(1,), (3,)])
    assert (0, 1) == (found["imbalance_ppm"], found["violations"])
