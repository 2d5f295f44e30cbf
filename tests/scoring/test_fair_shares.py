"""Fair shares: by capacity, with the rack rule, and at most one replica of a partition on a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from clusters import loaded_problems, no_racks, problem_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.problem import Problem
from planner.scoring.fair_shares import Shares, disk_weights, fair_shares, rack_rule, sent_by_leader, weights


def fractions(shares: Shares) -> list[list[Fraction]]:
    """Shares as a matrix of exact fractions."""
    rows = zip(shares.count.tolist(), shares.parts.tolist(), strict=True)
    return [[Fraction(count, parts) for count, parts in zip(*row, strict=True)] for row in rows]


def with_disks(problem: Problem, disks: Sequence[int], networks: Sequence[int] | None = None) -> Problem:
    """The problem with these disks, and maybe networks, one for each broker."""
    network = problem.network_bytes_per_sec if networks is None else np.array(networks, dtype=np.int64)
    return replace(problem, disk_bytes=np.array(disks, dtype=np.int64), network_bytes_per_sec=network)


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ([1, 1, 1], [1, 1, 1]),
        ([4 * 1024**4] * 3, [1, 1, 1]),
        ([4 * 1024**4, 8 * 1024**4], [1, 2]),
        ([500_000, 499_999], [500_000, 499_999]),
        ([10**14, 10**14 - 1], [500_000, 500_000]),
        ([3 * 10**14, 10**14 + 1], [750_000, 250_000]),
        ([10**14, 1], [1_000_000, 1]),
    ],
)
def test_weights_by_hand(capacities: list[int], expected: list[int]) -> None:
    """Whole numbers in the ratio of the capacities, about a million in total at most, and never 0."""
    assert expected == weights(np.array(capacities, dtype=np.int64)).tolist()


def test_by_capacity() -> None:
    """Replicas and bytes are shared by disks, leaders and traffic by networks; one disk is four times as large."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1,), (2,), (3,)], "b": [(1,)] * 6}, sizes=4)
    fair = fair_shares(with_disks(problem, [4, 1, 1], [1, 1, 7]))
    sixth, ninth = Fraction(1, 6), Fraction(1, 9)
    assert [[36 * sixth, 9 * sixth, 9 * sixth]] == fractions(fair.replicas)
    assert [[12 * sixth, 3 * sixth, 3 * sixth], [24 * sixth, 6 * sixth, 6 * sixth]] == fractions(fair.topic_replicas)
    assert [[144 * sixth, 36 * sixth, 36 * sixth]] == fractions(fair.disk)
    assert [[9 * ninth, 9 * ninth, 63 * ninth]] == fractions(fair.leaders)
    assert [[3 * ninth, 3 * ninth, 21 * ninth], [6 * ninth, 6 * ninth, 42 * ninth]] == fractions(fair.topic_leaders)


def test_no_broker_has_more_than_one_replica_of_each() -> None:
    """A disk ten times as large has one replica of each of 6 partitions, not 10 of 12; others share the rest."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1, 2)] * 6}, sizes=5)
    fair = fair_shares(with_disks(problem, [10, 1, 1]))
    assert [[6, 3, 3]] == fractions(fair.replicas)
    assert [[30, 15, 15]] == fractions(fair.disk)


def test_racks_hold_what_they_must_whatever_their_disks() -> None:
    """With two racks and two replicas, each rack has half of all bytes, and shares them by its brokers' disks."""
    problem = problem_of({1: "a", 2: "b", 3: "b"}, {"t": [(1, 2), (1, 2)]}, sizes={"t": [10, 90]})
    fair = fair_shares(with_disks(problem, [1, 1, 3]))
    assert [[100, 25, 75]] == fractions(fair.disk)
    assert [[2, Fraction(1, 2), Fraction(3, 2)]] == fractions(fair.replicas)


def test_traffic_by_hand() -> None:
    """Writes count for every replica; a leader sends writes to its followers and reads to consumers."""
    problem = problem_of(no_racks(1, 2), {"t": [(1, 2), (1,)]})
    rates = np.array([10, 7], dtype=np.int64), np.array([1, 5], dtype=np.int64)
    problem = replace(problem, bytes_in_per_sec=rates[0], bytes_out_per_sec=rates[1])
    fair = fair_shares(problem)
    assert [11, 5] == sent_by_leader(problem).tolist()
    assert [[Fraction(27, 2)] * 2] == fractions(fair.network_in)
    assert [[8, 8]] == fractions(fair.network_out)


def test_sums_beyond_what_64_bits_multiply() -> None:
    """Bytes near 2^62 times weights near a million are exact."""
    problem = problem_of(no_racks(1, 2), {"t": [(1,), (2,)]}, sizes=2**61 - 1)
    fair = fair_shares(with_disks(problem, [999_999, 1]))
    assert [[Fraction((2**62 - 2) * part, 1_000_000) for part in (999_999, 1)]] == fractions(fair.disk)


@examples(80)
@given(loaded_problems())
def test_shares_add_up_to_what_there_is(problem: Problem) -> None:
    """Every share is of something that is all shared out: replicas, leaders, bytes and traffic."""
    fair, factors = fair_shares(problem), problem.replication_factors
    sizes, rates = problem.size_bytes, problem.bytes_in_per_sec
    led = problem.may_lead_anew | (problem.leaders >= 0)
    totals = {
        "replicas": factors,
        "leaders": led,
        "disk": factors * sizes,
        "network_in": factors * rates,
    }
    for name, each in (totals | {"network_out": sent_by_leader(problem) * led}).items():
        assert int(each.sum()) == sum(fractions(getattr(fair, name))[0]), name
    for name, each in (("topic_replicas", factors), ("topic_leaders", led)):
        by_topic = np.bincount(problem.topic_of, weights=each, minlength=len(problem.topic_names))
        assert by_topic.tolist() == [sum(row) for row in fractions(getattr(fair, name))], name


@examples(80)
@given(loaded_problems())
def test_shares_can_be_held(problem: Problem) -> None:
    """No broker's share is more than one replica of each partition, no rack's beyond what the rack rule allows."""
    fair, rule, factors = fair_shares(problem), rack_rule(problem), problem.replication_factors
    shares = fractions(fair.disk)[0]
    assert all(share <= int(problem.size_bytes.sum()) for share in shares)
    held = [
        sum(share for share, at in zip(shares, rule.rack_of, strict=True) if at == rack)
        for rack in range(len(rule.sizes))
    ]
    bounds = [(problem.size_bytes[:, None] * side[factors]).sum(axis=0).tolist() for side in (rule.least, rule.most)]
    assert all(low <= share <= high for low, share, high in zip(bounds[0], held, bounds[1], strict=True))


@examples(80)
@given(loaded_problems(), st.data())
def test_brokers_of_one_rack_share_by_capacity(problem: Problem, data: st.DataObject) -> None:
    """Within a rack, a larger disk never has the smaller share, and equal ones have equal shares."""
    shares, rule, by = fractions(fair_shares(problem).disk)[0], rack_rule(problem), disk_weights(problem)
    one, other = (data.draw(st.integers(0, len(by) - 1)) for _ in range(2))
    if rule.rack_of[one] == rule.rack_of[other]:
        assert (by[one] <= by[other]) <= (shares[one] <= shares[other])
        assert (by[one] == by[other]) <= (shares[one] == shares[other])


def test_leaders_are_shared_by_those_that_are_to_lead() -> None:
    """In each topic, the brokers of the lowest rank share its leaders; all brokers share its replicas."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1, 2, 3)] * 6, "b": [(3, 2, 1)] * 3})
    shares = fair_shares(replace(problem, leader_ranks=np.array([[2, 0, 0], [1, 2, 3]])))
    assert [[3, 3, 3]] == fractions(shares.leaders)
    assert [[0, 3, 3], [3, 0, 0]] == fractions(shares.topic_leaders)
    assert [[9, 9, 9]] == fractions(shares.replicas)
