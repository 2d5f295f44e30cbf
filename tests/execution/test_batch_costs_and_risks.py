"""The time and the disk space that batches take, and the writes that are refused meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from batch_changes import busiest_bytes
from clusters import no_racks, spec_of
from hypothesis import given
from hypothesis import strategies as st

from planner.execution import batch_costs_and_risks
from planner.execution.batch_costs_and_risks import (
    CopyFlow,
    Costs,
    Peak,
    RisksSection,
    costs,
    endless,
    flows,
    seconds_at_throttle,
)
from planner.execution.batch_cutting import Batch, split
from planner.execution.partition_changes import Step
from planner.model.cluster import PartitionChange, Reason
from planner.model.spec import BatchRules, Spec

Lists = tuple[int, ...]


def step(before: Lists, after: Lists, size_bytes: int = 100, rate: int = 0, *, partition: int = 0) -> Step:
    """A step of a partition that is led by its preferred leader."""
    return Step("t", partition, before, after, size_bytes, before[0], rate)


def batch(*steps: Step, number: int = 1) -> Batch:
    """A batch without elections."""
    return Batch(number, steps, ())


def cost_of(
    batches: Sequence[Batch],
    held: Mapping[int, int],
    throttle: int | None = None,
    disks: Mapping[int, int] | None = None,
) -> Costs:
    """The costs of batches whose sizes are known."""
    return costs(batches, throttle, held, disks or {}, sizes_known=True)


@st.composite
def plans(draw: st.DrawFn) -> list[PartitionChange]:
    """Changes of partitions of one topic, each with its own produce rate."""
    lists = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)
    return [
        PartitionChange(
            "t", number, draw(lists), draw(lists), None, draw(st.integers(0, 99)), Reason.BALANCE_REPLICAS,
            draw(st.integers(0, 9)),
        )
        for number in range(draw(st.integers(0, 12)))
    ]  # fmt: skip


rules = st.builds(BatchRules, st.none() | st.integers(1, 200), st.none() | st.integers(1, 3), st.none() | st.just(1))


def today_of(changes: Sequence[PartitionChange]) -> dict[int, int]:
    """The bytes that brokers 0 to 5 hold before the changes."""
    return {b: sum(each.size_bytes for each in changes if b in each.before) for b in range(6)}


def test_seconds_are_those_of_the_busiest_broker() -> None:
    """Broker 1 sends 300 bytes to brokers 2 and 3: at 70 bytes/s that takes 5 seconds, rounded up."""
    moves = batch(step((1,), (1, 2, 3)), step((1,), (2,), partition=1))

    assert 5 == seconds_at_throttle(moves, 70)
    assert seconds_at_throttle(moves, None) is None


def test_bytes_are_sent_by_the_source() -> None:
    """Broker 2 leads and sends 300 bytes, although broker 1 is preferred; no broker receives more than 200."""
    moves = batch(*(Step("t", n, (1, 2), (1, 2, 3 + n % 2), 100, 2) for n in range(3)))

    assert 30 == seconds_at_throttle(moves, 10)


@given(plans(), rules, st.integers(1, 50))
def test_without_rates_the_throttle_alone_counts(
    changes: list[PartitionChange], given_rules: BatchRules, throttle: int
) -> None:
    """Each batch takes the busiest broker's bytes ÷ throttle, rounded up; nothing is endless."""
    idle = [PartitionChange(c.topic, c.partition, c.before, c.after, None, c.size_bytes, c.reason) for c in changes]
    batches = split(idle, given_rules)

    assert [-(-busiest_bytes(each.steps) // throttle) for each in batches] == [
        seconds_at_throttle(each, throttle) for each in batches
    ]
    assert [] == endless(batches, throttle)


def test_producers_take_their_part_of_the_throttle_where_replicas_arrive() -> None:
    """Broker 9 copies 2 partitions of 100 bytes, each written at 20 bytes/s: 200 bytes at 100 − 40 bytes/s."""
    moves = batch(step((1,), (9,), rate=20), step((2,), (9,), rate=20, partition=1))

    assert CopyFlow(1, 9, "copies in", 200, 40) == next(flows(moves))
    assert 4 == seconds_at_throttle(moves, 100)
    assert 2 == seconds_at_throttle(batch(step((1,), (9,)), step((2,), (9,), partition=1)), 100)


def test_a_leader_sends_what_is_produced_to_every_follower() -> None:
    """Broker 1 sends 10 bytes/s to each of 2, 3 and the new 4, in sync or not: 100 bytes at 40 − 30 bytes/s."""
    moves = batch(step((1, 2, 3), (1, 2, 4), rate=10))

    assert [CopyFlow(1, 4, "copies in", 100, 10), CopyFlow(1, 1, "leads", 100, 30)] == list(flows(moves))
    assert 10 == seconds_at_throttle(moves, 40)


def test_reorders_are_not_throttled() -> None:
    """A change of order copies nothing and takes no time, whatever producers write."""
    moves = batch(step((1, 2), (2, 1), rate=10**9))

    assert [] == list(flows(moves))
    assert 0 == seconds_at_throttle(moves, 1)


@pytest.mark.parametrize(
    ("throttle", "seconds", "sides"), [(31, 100, 0), (30, None, 1), (10, None, 2), (None, None, 0)]
)
def test_a_throttle_not_above_the_produce_rate_never_ends(
    throttle: int | None, seconds: int | None, sides: int
) -> None:
    """A throttle that equals the produce rate leaves no room to catch up; the leader sends three times that rate."""
    moves = batch(step((1, 2, 3), (1, 2, 4), rate=10))

    assert seconds == seconds_at_throttle(moves, throttle)
    assert sides == len(endless([moves], throttle))


def test_partitions_without_bytes_have_to_keep_up_too() -> None:
    """An empty partition never gets in sync if producers write to it as fast as the throttle."""
    assert [CopyFlow(1, 2, "copies in", 0, 9), CopyFlow(1, 1, "leads", 0, 9)] == endless(
        [batch(step((1,), (2,), 0, 9))], 9
    )


def test_the_total_is_that_of_all_batches() -> None:
    """The total is the sum of all batches, 0 for none; None without a throttle or sizes, or if a batch never ends."""
    moves = [batch(step((1,), (2,))), batch(step((1,), (2,), rate=8, partition=1), number=2)]
    held = {1: 200, 2: 0}

    assert ((10, 50), 60) == (cost_of(moves, held, 10).seconds, cost_of(moves, held, 10).total_seconds)
    assert ((13, None), None) == (cost_of(moves, held, 8).seconds, cost_of(moves, held, 8).total_seconds)
    assert ((None, None), None) == (cost_of(moves, held).seconds, cost_of(moves, held).total_seconds)
    assert costs(moves, 10, held, {}, sizes_known=False).total_seconds is None
    assert (0, None) == (cost_of([], held, 10).total_seconds, cost_of([], held).total_seconds)


def test_both_copies_exist_until_a_batch_is_complete() -> None:
    """Broker 1 gets 60 bytes before its 100 bytes are deleted, so its peak in batch 1 is 160 bytes."""
    first = batch(step((1,), (2,)), step((2,), (1,), 60, partition=1))
    second = batch(step((2,), (3,), partition=0), number=2)
    found = cost_of([first, second], {1: 100, 2: 60, 3: 0, 4: 7})

    assert (Peak(1, 160, 1, None), Peak(2, 160, 1, None), Peak(3, 100, 2, None), Peak(4, 7, 0, None)) == found.peaks
    assert (Peak(1, 160, 1, None), Peak(2, 100, 2, None)) == found.fullest


def test_the_fullest_is_by_share_where_disks_are_stated() -> None:
    """The fullest broker is the one with the highest share of its disk; brokers with unknown disks aren't compared."""
    moves = [batch(step((1,), (1, 2)))]
    found = cost_of(moves, {1: 500, 2: 0, 3: 900}, disks={1: 1000, 2: 150})

    assert (Peak(2, 100, 1, 150),) == found.fullest
    assert [1000, 150, None] == [peak.disk_bytes for peak in found.peaks]


def test_without_sizes_no_broker_is_the_fullest() -> None:
    """Without sizes the fullest broker is unknown."""
    assert (None,) == costs([batch(step((1,), (2,), 0))], 5, {1: 0, 2: 0}, {}, sizes_known=False).fullest


@given(plans(), rules)
def test_peaks_are_the_most_of_a_replay(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Replicas held one by one: everything a batch adds on top of what is there, then without what it removes."""
    held: dict[int, dict[int, int]] = {
        b: {c.partition: c.size_bytes for c in changes if b in c.before} for b in range(6)
    }
    most = {b: sum(rows.values()) for b, rows in held.items()}
    batches = split(changes, given_rules)
    for each in batches:
        for move in each.steps:
            for broker in move.after:
                held[broker][move.partition] = move.size_bytes
        most = {b: max(most[b], sum(rows.values())) for b, rows in held.items()}
        for move in each.steps:
            for broker in set(move.before) - set(move.after):
                del held[broker][move.partition]
    found = cost_of(batches, today_of(changes))

    assert most == {peak.broker: peak.size_bytes for peak in found.peaks}
    assert all(peak.size_bytes <= most[peak.broker] for peak in found.fullest if peak)
    assert max(most.values()) >= max((peak.size_bytes for peak in found.fullest if peak), default=0)


@given(plans())
def test_smaller_batches_never_need_more_disk(changes: list[PartitionChange]) -> None:
    """All at once is the worst for each broker: what is removed stays until the end."""
    whole = cost_of(split(changes, BatchRules()), today_of(changes))
    parts = cost_of(split(changes, BatchRules(moves_per_broker=1)), today_of(changes))

    assert all(part.size_bytes <= one.size_bytes for part, one in zip(parts.peaks, whole.peaks, strict=True))


def test_sums_beyond_32_bits_are_exact() -> None:
    """Bytes are summed exactly beyond 32 bits."""
    big = 3 * 10**18 + 1
    found = cost_of([batch(step((1,), (2,), big))], {1: big, 2: big}, 7, {2: 9 * 10**18})

    assert 2 * big == found.peaks[1].size_bytes
    assert -(-big // 7) == found.total_seconds


def spec(in_sync: tuple[int, ...] | None) -> Spec:
    """Two partitions on brokers 1 and 2 that need both in sync; the first has these in sync, the second all."""
    made = spec_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)]}, config={"x": (("min.insync.replicas", "2"),)})
    first, second = made.cluster.topics[0].partitions
    parts = (replace(first, isr=in_sync), replace(second, isr=(2, 1)))
    return replace(made, cluster=replace(made.cluster, topics=(replace(made.cluster.topics[0], partitions=parts),)))


def found(in_sync: tuple[int, ...] | None, first: tuple[int, ...] = (3, 2)) -> RisksSection:
    """The risks of moving the first partition and then the second."""
    changes = [
        PartitionChange("x", 0, (1, 2), first, 1, 1, Reason.BALANCE_REPLICAS),
        PartitionChange("x", 1, (2, 1), (3, 1), 2, 1, Reason.BALANCE_REPLICAS),
    ]
    return batch_costs_and_risks.refused_writes(spec(in_sync), split(changes, BatchRules(moves_per_broker=1), {}))


def test_replicas_in_sync_are_enough() -> None:
    """No partition is under its min ISR if both replicas are in sync, because no batch takes one out of sync."""
    assert RisksSection(True, (0, 0), 2, (2, 2)) == found((1, 2))


def test_too_few_in_sync_are_counted_in_their_batch() -> None:
    """A partition with one replica in sync, which needs two, is counted in its batch."""
    assert [1] == [count for count in found((2,)).under_min_isr if count]


def test_what_is_inherited_counts() -> None:
    """An inherited min.insync.replicas counts like a topic's own."""
    made = spec((2,))
    (topic,) = made.cluster.topics
    cluster = replace(made.cluster, topics=(replace(topic, config=()),), config_defaults=topic.config)
    move = [PartitionChange("x", 0, (1, 2), (3, 2), 1, 1, Reason.BALANCE_REPLICAS)]
    batches = split(move, BatchRules(), {})
    assert (1,) == batch_costs_and_risks.refused_writes(replace(made, cluster=cluster), batches).under_min_isr


def test_fewer_wanted_than_min_insync_replicas_are_enough() -> None:
    """Since Kafka 3.7, a partition with fewer replicas than min.insync.replicas needs only those in sync."""
    assert (0, 0) == found((1, 2), (3,)).under_min_isr


def test_a_later_batch_begins_with_what_the_earlier_one_left() -> None:
    """A partition of one replica gets two more, one a batch: with two required, only the first batch lacks one."""
    move, counts = [PartitionChange("x", 0, (1,), (1, 2, 3), 1, 1, Reason.REPLICATION_FACTOR)], []
    for least in ("2", "3"):
        made = spec_of(no_racks(1, 2, 3), {"x": [(1,)]}, config={"x": (("min.insync.replicas", least),)})
        risks = batch_costs_and_risks.refused_writes(made, split(move, BatchRules(replicas_per_partition=1), {}))
        counts.append((risks.under_min_isr, risks.under_min_isr_once))

    assert [((1, 0), None), ((1, 1), 1)] == counts


def test_where_nobody_says_who_is_in_sync_all_count() -> None:
    """If ISRs are unknown, all replicas count as in sync, and the result says that ISRs are unknown."""
    assert RisksSection(False, (0, 0), 2, (2, 2)) == found(None)


def test_one_failure_follows_a_partition_through_all_of_its_batches() -> None:
    """One partition moves one replica in each of four batches; after each, a failure refuses writes to exactly one."""
    config = {"x": (("min.insync.replicas", "2"),)}
    made = spec_of(no_racks(1, 2, 3, 4), {"x": [(1, 2)]}, config=config)
    steps = [step((1, 2), (1, 3)), step((1, 3), (4, 3)), step((4, 3), (4, 2)), step((4, 2), (1, 2))]
    batches = [batch(replace(each, topic="x"), number=at) for at, each in enumerate(steps, 1)]

    assert (1, 1, 1, 1) == batch_costs_and_risks.refused_writes(made, batches).refused_by_failure


def test_one_failure_counts_both_states_of_what_a_batch_moves() -> None:
    """In a batch that moves a partition, a failure counts for its old and its new brokers."""
    config = (("min.insync.replicas", "2"),)
    made = spec_of(no_racks(1, 2, 3, 4), {"x": [(1, 2), (3, 4)], "y": [(3, 4, 2)]}, config={"x": config, "y": config})
    moves = [
        PartitionChange("x", 1, (3, 4), (1, 4), 2, 1, Reason.BALANCE_REPLICAS),
        PartitionChange("y", 0, (3, 4, 2), (3, 4), 1, 1, Reason.REPLICATION_FACTOR),
    ]
    each = [batch_costs_and_risks.refused_writes(made, split([move], BatchRules(), {})) for move in moves]
    assert [(1, (2,)), (1, (2,))] == [
        (refused.refused_by_failure_today, refused.refused_by_failure) for refused in each
    ]
