"""Batches contain exactly the plan's changes, keep every limit, and can be rolled back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from batch_changes import busiest_bytes, change, limiting, plans, replica_lists, rules, steps
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from properties import examples

from planner.execution.batch_costs_and_risks import CopyFlow, flows
from planner.execution.batch_cutting import Batch, listable, split
from planner.execution.partition_changes import Step
from planner.model.cluster import PartitionChange, Reason
from planner.model.spec import BatchRules

NO_RULES = BatchRules()
AT_RISK = (Reason.RACK_RULE, Reason.BROKER_LEAVES)
RACKS = {broker: "abc"[broker % 3] for broker in range(9)}


def lists(batches: tuple[Batch, ...]) -> list[tuple[int, ...]]:
    """The lists that a plan's only partition has after each step."""
    return [step.after for batch in batches for step in batch.steps]


@given(plans(), rules)
def test_all_steps_in_order_turn_before_into_after(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Every reassigned partition ends in exactly its new list, each step begins where the last one ended."""
    reached = {(c.topic, c.partition): c.before for c in changes if c.reassigned}
    for batch in split(changes, given_rules, RACKS):
        assert len(batch.steps) == len({(step.topic, step.partition) for step in batch.steps})
        for step in batch.steps:
            assert reached[step.topic, step.partition] == step.before
            assert step.before != step.after
            reached[step.topic, step.partition] = step.after

    assert {(c.topic, c.partition): c.after for c in changes if c.reassigned} == reached


@given(plans(), rules)
def test_undoing_the_batches_in_reverse_restores_the_start(
    changes: list[PartitionChange], given_rules: BatchRules
) -> None:
    """Each batch's own lists of before, last batch first, lead back to today's lists in today's order."""
    reached = {(c.topic, c.partition): c.after for c in changes if c.reassigned}
    for batch in reversed(split(changes, given_rules)):
        for step in batch.steps:
            assert reached[step.topic, step.partition] == step.after
            reached[step.topic, step.partition] = step.before

    assert {(c.topic, c.partition): c.before for c in changes if c.reassigned} == reached


@given(plans(), rules)
def test_a_batch_keeps_its_limits(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Bytes unless one replica alone is larger, replicas to and from a broker, replicas added to a partition."""
    for batch in split(changes, given_rules):
        received = Counter(broker for step in batch.steps for broker in step.adding)
        sent = Counter(step.source for step in batch.steps for _ in step.adding)

        assert sum(step.size_bytes * len(step.adding) for step in batch.steps) == batch.bytes_moved
        assert received.total() == sent.total() == batch.replicas_moved
        if given_rules.bytes is not None and batch.bytes_moved > given_rules.bytes:
            (alone,) = [step for step in batch.steps if step.bytes_moved > 0]
            assert 1 == len(alone.adding)
        if given_rules.moves_per_broker is not None:
            assert max([*received.values(), *sent.values()], default=0) <= given_rules.moves_per_broker
        if given_rules.replicas_per_partition is not None:
            assert all(len(step.adding) <= given_rules.replicas_per_partition for step in batch.steps)
        if given_rules.elections is not None:
            assert len(batch.elect) <= given_rules.elections
        if given_rules.seconds is not None:
            assert all(
                sum(sizes) <= given_rules.seconds or 1 == len(sizes)
                for sizes in copied_on_each_side(batch.steps).values()
            )


def copied(step: Step) -> dict[tuple[str, int], int]:
    """The bytes that a step copies, by direction and broker."""
    return {("out", step.source): step.bytes_moved} | {("in", broker): step.size_bytes for broker in step.adding}


def copied_on_each_side(steps: Iterable[Step]) -> dict[tuple[str, int], list[int]]:
    """The bytes of each partition that is copied, by direction and broker."""
    sides = defaultdict[tuple[str, int], list[int]](list)
    for step in (step for step in steps if step.bytes_moved):
        for side, size_bytes in copied(step).items():
            sides[side].append(size_bytes)
    return sides


@given(plans(), rules)
def test_partitions_without_a_leader_come_last_and_by_themselves(
    changes: list[PartitionChange], given_rules: BatchRules
) -> None:
    """A batch of them holds those that wait for the same brokers, and nobody waits for such a batch."""
    brokers = {(c.topic, c.partition): frozenset(c.before) for c in changes if c.leader_before is None}
    batches = split(changes, given_rules)
    for batch in batches:
        names = {(step.topic, step.partition) for step in batch.steps} | {*batch.elect}
        assert (names <= brokers.keys()) == batch.leaderless != bool(names - brokers.keys())
        assert not batch.leaderless or 1 == len({brokers[name] for name in names})
    assert sorted(batches, key=lambda batch: batch.leaderless) == list(batches)
    assert list(range(1, len(batches) + 1)) == [batch.number for batch in batches]


@given(plans(leaderless=False), rules, st.integers(0, 40))
def test_what_producers_write_makes_batches_smaller(
    changes: list[PartitionChange], given_rules: BatchRules, rate: int
) -> None:
    """With what they take of the rate, each side of a broker is done in time, or copies one replica alone."""
    timed = structs.replace(given_rules, seconds=100, bytes_per_sec=50, moves_per_broker=None)
    written = [replace(change, bytes_in_per_sec=rate) for change in changes]
    for batch in split(written, timed):
        crowded = [flow for flow in flows(batch) if 1 < _partitions(batch, flow)]
        assert all(flow.size_bytes <= 100 * (50 - flow.produced_bytes_per_sec) for flow in crowded)


def _partitions(batch: Batch, flow: CopyFlow) -> int:
    """The number of partitions with bytes or producers that a broker copies in one direction."""
    steps = [step for step in batch.steps if step.adding and (step.size_bytes or step.bytes_in_per_sec)]
    return sum(flow.broker in (step.adding if flow.side == "copies in" else (step.source,)) for step in steps)


@given(plans(), rules)
def test_a_step_copies_from_the_leader_while_that_has_a_replica(
    changes: list[PartitionChange], given_rules: BatchRules
) -> None:
    """Else from the preferred leader; and each step knows what producers write to its partition."""
    written = [replace(change, bytes_in_per_sec=number) for number, change in enumerate(changes)]
    of = {(c.topic, c.partition): c for c in written}
    for step in (step for batch in split(written, given_rules) for step in batch.steps):
        change = of[step.topic, step.partition]
        expected = change.leader_before if change.leader_before in step.before else step.before[0]
        assert (expected, change.bytes_in_per_sec) == (step.source, step.bytes_in_per_sec)


def risk_of(changes: list[PartitionChange]) -> dict[tuple[str, int], int]:
    """0 is at risk, 1 a new replication factor, 2 balance; a topic with a new factor counts as its most urgent part."""
    own = {
        (c.topic, c.partition): 0 if c.reason in AT_RISK else 1 if len(c.before) != len(c.after) else 2 for c in changes
    }
    grown = [c for c in changes if len(c.before) != len(c.after)]
    together = {c.topic: min(own[d.topic, d.partition] for d in grown if d.topic == c.topic) for c in grown}
    return own | {(c.topic, c.partition): together[c.topic] for c in grown}


def has_room(steps: list[Step], step: Step, given_rules: BatchRules) -> bool:
    """True if the rules let a batch of these steps take one more step."""
    held = sum(each.bytes_moved for each in steps)
    received = Counter(broker for each in (*steps, step) for broker in each.adding)
    sent = Counter(each.source for each in (*steps, step) for _ in each.adding)
    fits = given_rules.bytes is None or not held or not step.bytes_moved or held + step.bytes_moved <= given_rules.bytes
    most, elected, seconds = given_rules.moves_per_broker, given_rules.elections, given_rules.seconds
    fits = fits and (elected is None or sum(each.elects for each in (*steps, step)) <= elected or not step.elects)
    if seconds is not None:
        sides = copied_on_each_side(steps)
        loads = [(sum(sides[side]), size_bytes) for side, size_bytes in copied(step).items()]
        fits = fits and all(not each or not more or each + more <= seconds for each, more in loads)
    return fits and (most is None or max([*received.values(), *sent.values()], default=0) <= most)


@given(plans(leaderless=False), rules)
def test_no_step_at_risk_waits_where_there_is_room(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Every batch between a partition's last step and the next one is full, be it of other steps at risk alone."""
    batches, risks = split(changes, given_rules), risk_of(changes)
    resized = {(c.topic, c.partition) for c in changes if len(c.before) != len(c.after)}
    at_risk = [[s for s in b.steps if s.adding and risks[s.topic, s.partition] == 0] for b in batches]
    earliest: dict[tuple[str, int], int] = {}
    for number, moving in enumerate(at_risk):
        for step in moving:
            name = (step.topic, step.partition)
            if name not in resized:
                waited = at_risk[earliest.get(name, 0) : number]
                assert not any(has_room(others, step, given_rules) for others in waited)
            earliest[name] = number + 1


@given(plans(leaderless=False), limiting)
def test_what_can_wait_makes_no_riskier_batch_longer(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Less risky steps in a batch of riskier ones leave its busiest broker's bytes as they are."""
    risks = risk_of(changes)
    for batch in split(changes, given_rules):
        moving = [(risks[step.topic, step.partition], step) for step in batch.steps if step.adding]
        riskiest = min((risk for risk, _ in moving), default=0)
        assert busiest_bytes(step for risk, step in moving if risk == riskiest) == busiest_bytes(batch.steps)


@given(replica_lists, replica_lists, st.integers(1, 4))
def test_lists_in_between_are_never_worse_than_both_ends(
    before: tuple[int, ...], after: tuple[int, ...], at_once: int
) -> None:
    """No broker twice, no stranger, as many replicas as one end at least, and the leader stays first to the last."""
    reached = lists(split([change(0, before, after)], BatchRules(replicas_per_partition=at_once), RACKS))

    for replicas in reached:
        assert len(replicas) == len(set(replicas))
        assert set(replicas) <= {*before, *after}
        assert min(len(before), len(after)) <= len(replicas) <= max(len(before), len(after))
    assert all(replicas[0] == before[0] for replicas in reached[:-1])
    added = len(set(after) - set(before))
    assert (max(1, -(-added // at_once)) if before != after else 0) == len(reached)


@given(plans(), rules, st.randoms())
def test_the_order_of_the_changes_does_not_matter(
    changes: list[PartitionChange], given_rules: BatchRules, random: object
) -> None:
    """The same changes in any order give the same batches, numbered from 1, none of them empty."""
    shuffled = list(changes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    batches = split(changes, given_rules, RACKS)

    assert batches == split(shuffled, given_rules, RACKS)
    assert list(range(1, len(batches) + 1)) == [batch.number for batch in batches]
    assert all(batch.steps or batch.elect for batch in batches)


def test_nothing_to_change_needs_no_batch() -> None:
    """Without changes there are no batches; an unchanged list makes none either."""
    assert split([], NO_RULES) == ()
    assert split([change(0, (1, 2), (1, 2))], NO_RULES) == ()


def test_without_rules_one_batch_holds_everything() -> None:
    """Without rules there is one batch, however large."""
    batches = split([change(p, (1, 2), (3, 2), size_bytes=10**15) for p in range(50)], NO_RULES)

    assert [50] == [len(batch.steps) for batch in batches]


def test_what_is_throttled_of_a_topic_fits_into_its_settings() -> None:
    """Kafka's throttle settings take at most 32,767 bytes; a batch is split until they fit for apply and rollback."""
    many = [change(p, (1001, 1002), (1003, 1004, 1001), topic=topic) for topic in "ab" for p in range(3000)]
    [whole] = split([*many, change(0, (1, 2), (1, 2), leader=2, topic="c")], NO_RULES)
    batches = listable([whole])

    assert [1, 2, 3] == [batch.number for batch in batches]
    for batch in batches:
        for topic in "ab":
            moved = [step for step in batch.steps if step.topic == topic]
            for end in ("before", "after"):
                pairs = [f"{step.partition}:{broker}" for step in moved for broker in getattr(step, end)]
                assert 0 < len(",".join(pairs)) <= 32_767
        assert {step.key for step in batch.steps if step.elects} <= set(batch.elect)
    assert set(whole.steps) == {step for batch in batches for step in batch.steps}
    assert sorted(whole.elect) == sorted(key for batch in batches for key in batch.elect)
    assert batches == listable(batches)


def test_a_partition_larger_than_a_batch_moves_alone() -> None:
    """A partition larger than the limit of bytes moves in its own batch, without other copies."""
    changes = [change(p, (1,), (2,), size_bytes=size) for p, size in enumerate((60, 500, 40))]

    assert [[("t", 1)], [("t", 0), ("t", 2)]] == steps(split(changes, BatchRules(bytes=100)))


def test_risk_goes_first() -> None:
    """Order of the batches: the rack rule and leaving brokers, the replication factor, balance; then by partition."""
    changes = [
        change(0, (1,), (2,)),
        change(1, (1,), (1, 2), reason=Reason.REPLICATION_FACTOR),
        change(2, (1,), (2,), reason=Reason.RACK_RULE),
        change(3, (1,), (2,), reason=Reason.BROKER_LEAVES),
    ]
    batches = split(changes, BatchRules(moves_per_broker=1))

    assert [[("t", 2)], [("t", 3)], [("t", 1)], [("t", 0)]] == steps(batches)


def test_a_topic_that_changes_its_replication_factor_stays_together() -> None:
    """A topic with a new replication factor isn't split to fill up another topic's batch."""
    grown = [change(p, (1,), (1, 2), topic=topic, reason=Reason.REPLICATION_FACTOR) for topic in "ab" for p in range(3)]

    assert [[("a", 0), ("a", 1), ("a", 2)], [("b", 0), ("b", 1), ("b", 2)]] == steps(split(grown, BatchRules(bytes=50)))


def test_a_topic_grows_in_step() -> None:
    """With one new replica per step, all partitions of a topic reach the same factor in the same batch."""
    grown = [change(p, (1,), (1, 2 + p, 5), reason=Reason.REPLICATION_FACTOR) for p in range(2)]
    batches = split(grown, BatchRules(replicas_per_partition=1))

    assert [[2, 2], [3, 3]] == [[len(step.after) for step in batch.steps] for batch in batches]


def test_racks_stay_apart_in_between() -> None:
    """A replica replaces the one in its own rack, so that no intermediate list has two replicas in a rack."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    batches = split([change(0, (1, 2), (3, 4))], BatchRules(replicas_per_partition=1), racks)

    assert [(1, 4), (3, 4)] == lists(batches)


def test_reorders_are_spread_over_the_batches() -> None:
    """Changes of order copy no bytes; they are spread over the batches, so that elections are spread too."""
    moves = [change(p, (1,), (2,)) for p in range(2)]
    reorders = [change(p, (1, 2), (2, 1), reason=Reason.BALANCE_LEADERS) for p in range(2, 6)]
    batches = split([*moves, *reorders], BatchRules(moves_per_broker=1))

    assert [[("t", 0), ("t", 2), ("t", 3)], [("t", 1), ("t", 4), ("t", 5)]] == steps(batches)
    assert [10, 10] == [batch.bytes_moved for batch in batches]


def test_no_more_replicas_are_copied_from_a_broker_than_to_one() -> None:
    """The limit on moves counts sending too: broker 1 sends at most two replicas a batch, of one or two partitions."""
    single = [change(p, (1,), (2 + p,)) for p in range(4)]
    double = [change(0, (1, 4, 5), (1, 2, 3))]

    assert [2, 2] == [len(batch.steps) for batch in split(single, BatchRules(moves_per_broker=2))]
    assert [2] == [batch.replicas_moved for batch in split(double, BatchRules(moves_per_broker=2))]
    assert [1, 1] == [batch.replicas_moved for batch in split(double, BatchRules(moves_per_broker=1))]


def test_a_partition_whose_replicas_together_are_too_large_moves_them_one_by_one() -> None:
    """A partition whose three replicas exceed the limit together is copied in two batches."""
    batches = split([change(0, (1, 2, 3), (4, 5, 6), size_bytes=60)], BatchRules(bytes=130))

    assert [120, 60] == [batch.bytes_moved for batch in batches]


def test_what_can_wait_fills_up_a_batch_of_riskier_ones() -> None:
    """Partition 1 can wait but is copied beside partition 0, for as long; partition 2 would make that batch longer."""
    changes = [
        change(0, (1,), (2,), size_bytes=100, reason=Reason.BROKER_LEAVES),
        change(1, (3,), (4,), size_bytes=100),
        change(2, (5,), (6,), size_bytes=101),
    ]

    assert [[("t", 0), ("t", 1)], [("t", 2)]] == steps(split(changes, BatchRules(bytes=1000, moves_per_broker=1)))


def test_the_busiest_broker_may_receive_or_send() -> None:
    """Broker 1 sends 300 bytes as the leader of both; from other sources, broker 2 receives the most, 200 bytes."""
    changes = [change(0, (1,), (1, 2, 3), size_bytes=100), change(1, (1,), (2,), size_bytes=100)]
    (batch,) = split(changes, NO_RULES)

    assert 300 == busiest_bytes(batch.steps)
    assert 200 == busiest_bytes(replace(step, source=10 + step.partition) for step in batch.steps)
    assert 0 == busiest_bytes([])


def test_bytes_are_sent_by_the_leader_of_today() -> None:
    """Broker 2 leads and sends 300 bytes, although broker 1 is preferred; no broker receives more than 200."""
    changes = [change(p, (1, 2), (1, 2, 3 + p % 2), size_bytes=100, leader=2) for p in range(3)]

    assert [300] == [busiest_bytes(batch.steps) for batch in split(changes, NO_RULES)]


def expansion(partitions: int, reason: Reason) -> list[PartitionChange]:
    """Six brokers become nine: partitions of different sizes, each of which moves one or two replicas."""
    random = Random(5)
    changes = []
    for partition in range(partitions):
        before = tuple(random.sample(range(6), 3))
        moved = random.choice((1, 1, 2))
        after = (*before[moved:], *random.sample(range(6, 9), moved))
        size_bytes = int(random.lognormvariate(0, 1) * 10**9)
        changes.append(change(partition, before, after, size_bytes=size_bytes, reason=reason))
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("reason", [Reason.BALANCE_REPLICAS, Reason.BROKER_LEAVES])
@pytest.mark.parametrize(
    ("share", "moves", "at_once"), [(10, None, None), (30, None, None), (30, None, 1), (None, 8, None), (15, 20, 1)]
)
def test_the_batches_take_hardly_longer_than_the_busiest_broker_must(
    reason: Reason, share: int | None, moves: int | None, at_once: int | None
) -> None:
    """The sum of the batches' busiest brokers is at most 10 % above the busiest broker of the whole plan."""
    changes = expansion(500, reason)
    (whole,) = split(changes, NO_RULES)
    limit = whole.bytes_moved // share if share else None

    batches = split(changes, BatchRules(limit, moves, at_once))

    assert sum(busiest_bytes(batch.steps) for batch in batches) <= 1.1 * busiest_bytes(whole.steps)


@examples(20)
@given(st.integers(1, 6), st.integers(1, 40))
def test_batches_are_as_few_as_one_broker_allows(limit: int, partitions: int) -> None:
    """Where every partition goes to one broker, its limit alone sets the number of batches."""
    changes = [change(p, (1,), (2,)) for p in range(partitions)]

    assert -(-partitions // limit) == len(split(changes, BatchRules(moves_per_broker=limit)))
