"""Preferred leaders: most even first, then fewest changes; traffic out within its window; never a broker in no ISR."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from clusters import assignment_of, balance_of, ids_of, no_racks, problem_of, problems, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.execution.partition_changes import changes
from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build, today
from planner.model.cluster import Broker, Reason
from planner.model.document_fields import LeaderRacksRow, ReplicationFactorRow
from planner.model.problem import IntArray, Problem, badly_led
from planner.model.spec import Changes, Rebalance, Spec, TopicFilter
from planner.scoring.broker_loads import leaders_after, loads
from planner.scoring.independent_check import broken_rules, check
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, excess
from planner.scoring.windows import windows
from planner.strategies.leaders import choose_leaders, even_out
from planner.strategies.optimum import solve


def price(problem: Problem, leaders: tuple[int, ...]) -> tuple[int, int]:
    """The excess over the leaders' windows, and the cost of the changes; `leaders` has one leader a partition.

    A replacement that doesn't have the partition yet counts as the broker that it replaces.
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
    """The broker, or its replacement if that takes over the replica."""
    successor = int(problem.replacements[broker]) if broker >= 0 else -1
    return int(broker) if successor < 0 or successor in problem.replicas[row] else successor


def best(problem: Problem, assignment: IntArray) -> tuple[int, int]:
    """The best price of all choices of leaders for the given replicas."""
    free = problem.movable & (problem.forced | (problem.rebalance != "none") | badly_led(problem, problem.replicas))
    choices = [
        least_ranked(problem, at, [broker for broker in row if broker >= 0]) if free[at] else [int(problem.leaders[at])]
        for at, row in enumerate(assignment.tolist())
    ]
    prices = [price(problem, leaders) for leaders in product(*choices)]
    return min(prices, key=lambda pair: pair if problem.rebalance != "none" else pair[::-1])


def least_ranked(problem: Problem, row: int, brokers: list[int]) -> list[int]:
    """The brokers of a partition that the rules on leaders prefer."""
    if problem.leader_ranks is None:
        return brokers
    ranks = problem.leader_ranks[problem.topic_of[row]]
    return [broker for broker in brokers if ranks[broker] == min(ranks[other] for other in brokers)]


@examples(120)
@given(problems(brokers=5, topics=2, partitions=3, rebalance=("all", "leaders", "none")), st.data())
def test_with_rules_on_who_leads_the_same_of_those_preferred(problem: Problem, data: st.DataObject) -> None:
    """The least excess, then the fewest changes, of all ways to be led as the rules say; and the check agrees."""
    shape = (len(problem.topic_names), len(problem.broker_ids))
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    ruled = replace(problem, leader_ranks=np.array(drawn).reshape(shape))
    assignment = solve(ruled, ruled.balance).assignment
    assert best(ruled, assignment) == price(ruled, tuple(leaders_after(ruled, assignment).tolist()))
    assert not broken_rules(ruled, assignment)["leader"].any()
    assert () == check(ruled, assignment)


def test_a_demoted_broker_leads_nothing_and_keeps_its_replicas() -> None:
    """Only partitions that the demoted broker leads change, and the leaders are as even as that allows."""
    rows = [(1, 2, 3), (1, 3, 2), (2, 1, 3), (3, 2, 1), (2, 3, 1)]
    problem = problem_of(no_racks(1, 2, 3), {"a": rows}, changes=Changes(demote_brokers=(1,), rebalance="none"))
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    assert rows[2:] == [tuple(row) for row in found[2:]]
    assert [2, 2, 3, 3, 3] == sorted(row[0] for row in found)
    assert [sorted(row) for row in rows] == [sorted(row) for row in found]
    assert [Reason.LEADER_RULE] * 2 == [each.reason for each in changes(problem, assignment_of(problem, found))]


def test_a_broker_that_does_not_exist_breaks_the_rules_and_nothing_else() -> None:
    """An unknown broker breaks the rule on live brokers only, also with rules on leaders and brokers in no ISR."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1, 2)]}, changes=Changes(demote_brokers=(1,)))
    problem = replace(problem, out_of_sync=np.array([False, False, True]))
    broken = broken_rules(problem, np.array([[0, 9]]))
    assert [True] == broken["live brokers"].tolist()
    assert [False] == broken["leader"].tolist()


def test_leaders_are_in_the_first_rack_with_a_replica() -> None:
    """Leaders are spread over the first rack named; without a replica there, the next; if none is named, any rack."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    spec = spec_of(racks, {"x": [(3, 1, 5), (3, 1, 5), (4, 2, 5), (4, 2, 5)], "y": [(5, 3)], "z": [(5,)]})
    rules = (LeaderRacksRow("y", ("a", "b")), LeaderRacksRow("*", ("a",)))
    problem = build(replace(spec, leader_racks=rules, changes=Changes(rebalance="leaders")))
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    assert [1, 1, 2, 2, 3, 5] == [row[0] for row in found]


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
    ordered = choose_leaders(problem, placed, windows(problem, Balance()))
    assert np.sort(placed, axis=1).tolist() == np.sort(ordered, axis=1).tolist()
    fixed = ~problem.movable | (~problem.forced & (problem.rebalance == "none"))
    width = problem.replicas.shape[1]
    assert problem.replicas[fixed].tolist() == ordered[fixed, :width].tolist()


def test_followers_keep_todays_order_and_new_ones_come_last() -> None:
    """Behind the leader come today's replicas in their order, then new ones by broker."""
    problem = problem_of(no_racks(1, 2, 3, 4, 5), {"a": [(3, 2, 1)]})
    placed = assignment_of(problem, [(1, 2, 3)])
    assert [[3, 2, 1]] == ids_of(problem, choose_leaders(problem, placed, windows(problem, Balance())))
    newer = assignment_of(problem, [(1, 3, 5)])
    assert [[3, 1, 5]] == ids_of(problem, choose_leaders(problem, newer, windows(problem, Balance())))


def test_leaders_only_by_hand() -> None:
    """Broker 1 leads all three partitions; two of them change their order, and no replica moves."""
    rows = [(1, 2, 3), (1, 3, 2), (1, 2, 3)]
    problem = problem_of(no_racks(1, 2, 3), {"a": rows}, changes=Changes(rebalance="leaders"))
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    assert [1, 2, 3] == sorted(row[0] for row in found)
    assert [sorted(row) for row in rows] == [sorted(row) for row in found]


def test_an_election_is_cheaper_than_a_new_order() -> None:
    """If a follower leads now, the preferred leader stays preferred: an election costs less than a new order."""
    problem = problem_of(
        no_racks(1, 2), {"a": [(1, 2), (2, 1)]}, leaders={"a": [2, 2]}, changes=Changes(rebalance="leaders")
    )
    assert [[1, 2], [2, 1]] == ids_of(problem, solve(problem, problem.balance).assignment)


def test_leaders_that_no_election_changes_count_where_they_are() -> None:
    """An excluded partition counts for its current leader, broker 2, not for its preferred one; one has no leader."""
    rows, led = {"a": [(2, 1), (2, 1)], "kept": [(1, 2), (1, 2)]}, {"kept": [2, None]}
    problem = problem_of(no_racks(1, 2), rows, leaders=led, topics=TopicFilter(exclude=("kept",)))
    found = solve(problem, problem.balance).assignment
    assert [[1, 2], [2, 1]] == sorted(ids_of(problem, found)[:2])
    assert [-1, 0, 1, 1] == sorted(leaders_after(problem, found).tolist())


def test_topic_leaders() -> None:
    """Leaders that are even over all topics but not within each topic change only if topic_leaders asks for it."""
    rows = {"a": [(1, 2), (1, 2)], "b": [(2, 1), (2, 1)]}
    plain = problem_of(no_racks(1, 2), rows)
    assert [[1, 2], [1, 2], [2, 1], [2, 1]] == ids_of(plain, solve(plain, plain.balance).assignment)
    asked = problem_of(no_racks(1, 2), rows, balance=balance_of(1, 1, 1, 1))
    found = ids_of(asked, solve(asked, asked.balance).assignment)
    assert [1, 2] == sorted(row[0] for row in found[:2])
    assert [1, 2] == sorted(row[0] for row in found[2:])


NETWORK_OUT = 2


def out_within(problem: Problem, share: int, **rest: Any) -> Problem:
    """The problem with a window of traffic out, in per cent."""
    balance = replace(problem.balance, network_out=Tolerance("percent", share))
    return replace(problem, balance=balance, **rest)


def led_by(problem: Problem, placed: IntArray, leaders: IntArray, free: IntArray | None = None) -> list[int]:
    """The leaders after evening out, as Kafka's ids; all rows are free unless `free` says otherwise."""
    mask = np.ones(problem.rows, dtype=bool) if free is None else free
    found = even_out(problem, placed, leaders, mask, windows(problem, problem.balance))
    return problem.broker_ids[found].tolist()


def two_brokers(*reads: int, leaders: object = 1, topic_leaders: object = "none") -> Problem:
    """Partitions on two brokers: broker 1 leads the first half, broker 2 the second; `reads` is each one's traffic."""
    half = len(reads) // 2
    rows = [(1, 2)] * half + [(2, 1)] * (len(reads) - half)
    balance = balance_of("none", leaders, "none", topic_leaders)
    return out_within(problem_of(no_racks(1, 2), {"a": rows}, balance=balance), 10, bytes_out_per_sec=np.array(reads))


def test_nothing_asked_nothing_changed() -> None:
    """Leaders stay if traffic out has no window, however uneven it is, or if no row is free."""
    problem = two_brokers(90, 90, 10, 10)
    plain = replace(problem, balance=replace(problem.balance, network_out=Tolerance("none")))
    assert [1, 1, 2, 2] == led_by(plain, today(plain), plain.leaders)
    assert [1, 1, 2, 2] == led_by(problem, today(problem), problem.leaders, np.zeros(4, dtype=bool))


def test_two_leaders_change_places() -> None:
    """Leaders of 90 and 90 against 10 and 10: one of each changes, so that both brokers send 100."""
    problem = two_brokers(90, 90, 10, 10)
    found = led_by(problem, today(problem), problem.leaders)
    assert [[100, 100], 2] == [sent(problem, found), sum(a != b for a, b in zip(found, [1, 1, 2, 2], strict=True))]


def test_followers_fetches_count() -> None:
    """A leader also sends writes to each follower: 90 of writes count like 90 of reads."""
    problem = replace(two_brokers(0, 0, 0, 0), bytes_in_per_sec=np.array([90, 90, 10, 10]))
    assert [100, 100] == sent(problem, led_by(problem, today(problem), problem.leaders))


def test_counts_stay_in_their_windows() -> None:
    """Three leaders stay split as two and one for any traffic; without a window of counts, only traffic decides."""
    even = two_brokers(100, 50, 50)
    assert [1, 2, 2] == led_by(even, today(even), even.leaders)
    spread = [100, 60, 20, 20]
    tied, free = two_brokers(*spread), two_brokers(*spread, leaders="none")
    wanted = [led_by(each, today(each), np.array([0, 0, 1, 1])) for each in (tied, free)]
    assert [2, 1] == [wanted[0].count(1), wanted[1].count(1)]


def test_leaders_within_topics_stay_even() -> None:
    """If each topic's leaders have a window, leaders change places only within their topic."""
    rows = {"a": [(1, 2), (2, 1)], "b": [(1, 2), (2, 1)]}
    problem = problem_of(no_racks(1, 2), rows, balance=balance_of("none", 1, "none", 0))
    asked = out_within(problem, 10, bytes_out_per_sec=np.array([90, 60, 90, 60]))
    found = led_by(asked, today(asked), asked.leaders)
    assert [[150, 150], {1, 2}, {1, 2}] == [sent(asked, found), set(found[:2]), set(found[2:])]


def test_no_exchange_across_topics_where_both_are_to_stay_even() -> None:
    """180 against 120: exchanging leaders of 80 and 40 would help, but would leave both topics uneven."""
    rows, reads = {"a": [(1, 2), (2, 1)], "b": [(1, 2), (2, 1)]}, np.array([80, 80, 100, 40])
    free, tied = (
        out_within(problem_of(no_racks(1, 2), rows, balance=balance_of("none", 1, "none", within)), 10)
        for within in ("none", 0)
    )
    free, tied = replace(free, bytes_out_per_sec=reads), replace(tied, bytes_out_per_sec=reads)
    found = [led_by(each, today(each), each.leaders) for each in (free, tied)]
    assert [[140, 160], {1, 2}, {1, 2}] == [sent(free, found[0]), set(found[1][:2]), set(found[1][2:])]


def test_rows_that_may_not_change_count() -> None:
    """The traffic of rows that may not change counts in the window: the free rows even it out."""
    problem = two_brokers(80, 80, 20, 20)
    found = led_by(problem, today(problem), problem.leaders, np.array([False, True, True, True]))
    assert [1, [100, 100]] == [found[0], sent(problem, found)]


def test_what_nobody_leads_is_sent_by_nobody() -> None:
    """A partition that has no leader, and may not change, adds to no broker's traffic."""
    problem = two_brokers(80, 20, 100, 0)
    leaders = np.array([0, 0, -1, 1])
    found = led_by(replace(problem, leaders=leaders), today(problem), leaders, np.array([True, True, False, True]))
    assert [1, 2] == sorted(found[:2])


def test_only_replicas_lead() -> None:
    """Broker 3 sends nothing, but no partition is on it, so it leads nothing."""
    problem = out_within(
        problem_of(no_racks(1, 2, 3), {"a": [(1, 2)] * 4}, balance=balance_of("none", "none", "none")),
        10,
        bytes_out_per_sec=np.array([10, 10, 10, 10]),
    )
    found = led_by(problem, assignment_of(problem, [(1, 2)] * 4), problem.leaders)
    assert [20, 20, 0] == sent(problem, found)


def test_todays_preferred_leader_is_taken_where_it_fits() -> None:
    """Of two rows that could change, the one whose preferred leader is the other broker changes."""
    problem = out_within(
        problem_of(no_racks(1, 2), {"a": [(1, 2), (2, 1), (1, 2), (1, 2)]}, balance=balance_of("none", "none", "none")),
        10,
        bytes_out_per_sec=np.array([10, 10, 10, 10]),
    )
    found = led_by(problem, today(problem), np.array([0, 0, 0, 1]))
    assert [20, 20] == sent(problem, found)
    assert 2 == found[1]


def sent(problem: Problem, leaders: list[int]) -> list[int]:
    """Bytes/s that each broker sends with these leaders."""
    numbers = np.searchsorted(problem.broker_ids, leaders)
    return loads(problem, today(problem), numbers)[NETWORK_OUT].tolist()


@examples(60)
@given(st.integers(0, 10**6))
def test_exchanges_of_leaders_keep_their_promises(seed: int) -> None:
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
    """Bytes/s of traffic out outside the windows, of all brokers."""
    window, held = windows(problem, problem.balance).network_out, loads(problem, today(problem), leaders)[NETWORK_OUT]
    assert window is not None
    return int((np.maximum(window[0] - held, 0) + np.maximum(held - window[1], 0)).sum())


RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def with_isr(spec: Spec, *in_sync: tuple[int, ...]) -> Spec:
    """The spec's one topic with these in-sync replicas."""
    (topic,) = spec.cluster.topics
    parts = tuple(replace(part, isr=isr) for part, isr in zip(topic.partitions, in_sync, strict=True))
    return replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=parts),)))


def down(rebalance: Rebalance = "none", **requested: Any) -> Problem:
    """Broker 4 is in no ISR, though it is the preferred leader of both partitions."""
    rows, leaders = {"t": [(4, 1), (4, 3)]}, {"t": [1, 3]}
    spec = spec_of(RACKS, rows, leaders=leaders, changes=Changes(rebalance=rebalance, **requested))
    return build(with_isr(spec, (1,), (3,)))


def test_brokers_in_no_isr_are_known() -> None:
    """A broker is out of sync if its partitions' ISRs are known and it is in none; one that holds nothing isn't."""
    assert [4] == ids_of(down(), down().out_of_sync.nonzero()[0][None].astype(int))[0]  # type: ignore[union-attr]
    assert build(spec_of(RACKS, {"t": [(4, 1)]}, leaders={"t": [1]})).out_of_sync is None


def test_a_change_puts_somebody_in_front_who_can_lead() -> None:
    """`set_racks` moves t-0 out of a rack: the other broker of the new list leads it, because broker 4 can't."""
    problem = down(set_racks=((4, "a"),))
    lists = ids_of(problem, solve(problem, problem.balance).assignment)
    assert 4 != lists[0][0]
    assert [4, 3] == lists[1]


def test_todays_leader_stays_in_front_where_it_stays() -> None:
    """Today's leader comes before other brokers that can lead."""
    problem = down("all", set_replication_factor=(ReplicationFactorRow("t", 3),))
    plan = assignment_of(problem, [(4, 2, 1), (4, 2)])
    assert [[1, 4, 2], [2, 4]] == ids_of(problem, choose_leaders(problem, plan, windows(problem, Balance())))


@pytest.mark.parametrize(("most", "held"), [(None, [3, 3, 0]), (2, [2, 4, 0]), (1, [1, 5, 0])])
def test_as_even_as_the_replicas_in_sync_allow(most: int | None, held: list[int]) -> None:
    """Broker 3 is in no ISR: of all choices of the others, none has less excess; a cap on broker 1 is kept."""
    rows, requested = {"t": [(1, 2, 3)] * 3 + [(3, 1, 2)] * 3}, Changes(rebalance="leaders")
    spec = with_isr(spec_of(no_racks(1, 2, 3), rows, leaders={"t": [1] * 6}, changes=requested), *[(1, 2)] * 6)
    brokers = (Broker(1, max_leaders=most), Broker(2), Broker(3))
    problem = build(replace(spec, cluster=replace(spec.cluster, brokers=brokers)))
    led = leaders_after(problem, solve(problem, problem.balance).assignment).tolist()
    assert held == [led.count(broker) for broker in range(3)]
    choices = [each for each in product((0, 1), repeat=6) if most is None or each.count(0) <= most]
    assert price(problem, tuple(led))[0] == min(price(problem, each)[0] for each in choices)


def test_nothing_else_to_change_is_nothing_to_elect() -> None:
    """If nothing else changes, partitions with a preferred leader that is down keep their order and leaders."""
    problem = down("all")
    still = today(problem)
    assert still.tolist() == choose_leaders(problem, still, windows(problem, problem.balance)).tolist()
    assert problem.leaders.tolist() == leaders_after(problem, still).tolist()
    assert () == changes(problem, still)
