"""Traffic out of leaders: brought into its window by exchanges, at the fewest changes, with counts as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from clusters import assignment_of, balance_of, no_racks, problem_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Tolerance
from planner.model.build_problem import today
from planner.model.problem import IntArray, Problem
from planner.scoring.broker_loads import loads
from planner.scoring.windows import windows
from planner.strategies.leader_loads import even_out

NETWORK_OUT = 2


def out_within(problem: Problem, share: int, **rest: Any) -> Problem:
    """The problem with a window of traffic out, in per cent."""
    balance = replace(problem.balance, network_out=Tolerance("percent", share))
    return replace(problem, balance=balance, **rest)


def led(problem: Problem, placed: IntArray, leaders: IntArray, free: IntArray | None = None) -> list[int]:
    """The leaders that come of these, as Kafka's ids; all rows are free where nothing else is said."""
    mask = np.ones(problem.rows, dtype=bool) if free is None else free
    found = even_out(problem, placed, leaders, mask, windows(problem, problem.balance))
    return problem.broker_ids[found].tolist()


def two_brokers(*reads: int, leaders: object = 1, topic_leaders: object = "none") -> Problem:
    """Partitions on both of two brokers, that broker 1 leads but for the last half; consumers read so much of each."""
    half = len(reads) // 2
    rows = [(1, 2)] * half + [(2, 1)] * (len(reads) - half)
    balance = balance_of("none", leaders, "none", topic_leaders)
    return out_within(problem_of(no_racks(1, 2), {"a": rows}, balance=balance), 10, bytes_out_per_sec=np.array(reads))


def test_nothing_asked_nothing_changed() -> None:
    """Without a window on traffic out leaders stay, however unlike their traffic is; also where no row is free."""
    problem = two_brokers(90, 90, 10, 10)
    plain = replace(problem, balance=replace(problem.balance, network_out=Tolerance("none")))
    assert [1, 1, 2, 2] == led(plain, today(plain), plain.leaders)
    assert [1, 1, 2, 2] == led(problem, today(problem), problem.leaders, np.zeros(4, dtype=bool))


def test_two_leaders_change_places() -> None:
    """90 and 90 against 10 and 10: one of each changes, and both brokers send 100."""
    problem = two_brokers(90, 90, 10, 10)
    found = led(problem, today(problem), problem.leaders)
    assert [[100, 100], 2] == [sent(problem, found), sum(a != b for a, b in zip(found, [1, 1, 2, 2], strict=True))]


def test_followers_fetches_count() -> None:
    """A leader sends what is written to each of its followers, too: 90 of writes are as much as 90 of reads."""
    problem = replace(two_brokers(0, 0, 0, 0), bytes_in_per_sec=np.array([90, 90, 10, 10]))
    assert [100, 100] == sent(problem, led(problem, today(problem), problem.leaders))


def test_counts_stay_in_their_windows() -> None:
    """One leader of 100 against 50 and 50: three leaders are two and one, or, where not asked for, as traffic wants."""
    even = two_brokers(100, 50, 50)
    assert [1, 2, 2] == led(even, today(even), even.leaders)
    spread = [100, 60, 20, 20]
    tied, free = two_brokers(*spread), two_brokers(*spread, leaders="none")
    wanted = [led(each, today(each), np.array([0, 0, 1, 1])) for each in (tied, free)]
    assert [2, 1] == [wanted[0].count(1), wanted[1].count(1)]


def test_leaders_within_topics_stay_even() -> None:
    """With a window on each topic's leaders a leader only changes for another of its topic."""
    rows = {"a": [(1, 2), (2, 1)], "b": [(1, 2), (2, 1)]}
    problem = problem_of(no_racks(1, 2), rows, balance=balance_of("none", 1, "none", 0))
    asked = out_within(problem, 10, bytes_out_per_sec=np.array([90, 60, 90, 60]))
    found = led(asked, today(asked), asked.leaders)
    assert [[150, 150], {1, 2}, {1, 2}] == [sent(asked, found), set(found[:2]), set(found[2:])]


def test_no_exchange_across_topics_where_both_are_to_stay_even() -> None:
    """180 against 120: a leader of 80 for one of 40 in the other topic would do, but leaves both topics uneven."""
    rows, reads = {"a": [(1, 2), (2, 1)], "b": [(1, 2), (2, 1)]}, np.array([80, 80, 100, 40])
    free, tied = (
        out_within(problem_of(no_racks(1, 2), rows, balance=balance_of("none", 1, "none", within)), 10)
        for within in ("none", 0)
    )
    free, tied = replace(free, bytes_out_per_sec=reads), replace(tied, bytes_out_per_sec=reads)
    found = [led(each, today(each), each.leaders) for each in (free, tied)]
    assert [[140, 160], {1, 2}, {1, 2}] == [sent(free, found[0]), set(found[1][:2]), set(found[1][2:])]


def test_rows_that_may_not_change_count() -> None:
    """What a broker sends for good is in its window: the free rows make up for it."""
    problem = two_brokers(80, 80, 20, 20)
    found = led(problem, today(problem), problem.leaders, np.array([False, True, True, True]))
    assert [1, [100, 100]] == [found[0], sent(problem, found)]


def test_what_nobody_leads_is_sent_by_nobody() -> None:
    """The last broker is as free as it is where a partition that may not change has no leader."""
    problem = two_brokers(80, 20, 100, 0)
    leaders = np.array([0, 0, -1, 1])
    found = led(replace(problem, leaders=leaders), today(problem), leaders, np.array([True, True, False, True]))
    assert [1, 2] == sorted(found[:2])


def test_only_replicas_lead() -> None:
    """Broker 3 sends nothing and may lead nothing, as no partition is on it."""
    problem = out_within(
        problem_of(no_racks(1, 2, 3), {"a": [(1, 2)] * 4}, balance=balance_of("none", "none", "none")),
        10,
        bytes_out_per_sec=np.array([10, 10, 10, 10]),
    )
    found = led(problem, assignment_of(problem, [(1, 2)] * 4), problem.leaders)
    assert [20, 20, 0] == sent(problem, found)


def test_todays_preferred_leader_is_taken_where_it_fits() -> None:
    """Of two rows that could change, the one whose preferred leader is on the other broker does."""
    problem = out_within(
        problem_of(no_racks(1, 2), {"a": [(1, 2), (2, 1), (1, 2), (1, 2)]}, balance=balance_of("none", "none", "none")),
        10,
        bytes_out_per_sec=np.array([10, 10, 10, 10]),
    )
    found = led(problem, today(problem), np.array([0, 0, 0, 1]))
    assert [20, 20] == sent(problem, found)
    assert 2 == found[1]


def sent(problem: Problem, leaders: list[int]) -> list[int]:
    """Bytes/s that each broker sends under these leaders."""
    numbers = np.searchsorted(problem.broker_ids, leaders)
    return loads(problem, today(problem), numbers)[NETWORK_OUT].tolist()


@examples(60)
@given(st.integers(0, 10**6))
def test_promises(seed: int) -> None:
    """Leaders are replicas; fixed ones stay; no broker's count leaves the wider of its window and what it had; and
    traffic out is nearer to its windows, or as it was.
    """
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.arange(1, 6))[: rng.integers(1, 4)].tolist() for _ in range(rng.integers(2, 20))]
    asked = balance_of("none", str(rng.choice(["0", "1", "2", "none"])), "none")
    traffic = {name: rng.integers(0, 100, len(rows)) for name in ("bytes_in_per_sec", "bytes_out_per_sec")}
    problem = out_within(problem_of(no_racks(*range(1, 6)), {"a": rows}, balance=asked), 10, **traffic)
    wanted, free = windows(problem, problem.balance), rng.integers(0, 4, len(rows)) > 0
    before, placed = problem.replicas[:, 0], today(problem)
    after = even_out(problem, placed, before, free, wanted)
    assert (placed == after[:, None]).any(axis=1).all()
    assert before[~free].tolist() == after[~free].tolist()
    counts = [np.bincount(each, minlength=5) for each in (before, after)]
    low, high = np.minimum(wanted.leaders[0], counts[0]), np.maximum(wanted.leaders[1], counts[0])
    assert ((counts[1] >= low) & (counts[1] <= high)).all()
    assert beyond(problem, after) <= beyond(problem, before)


def beyond(problem: Problem, leaders: IntArray) -> int:
    """Bytes/s out outside the windows, of all brokers."""
    window, held = windows(problem, problem.balance).network_out, loads(problem, today(problem), leaders)[NETWORK_OUT]
    assert window is not None
    return int((np.maximum(window[0] - held, 0) + np.maximum(held - window[1], 0)).sum())
