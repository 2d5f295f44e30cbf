"""Batches: nothing lost, nothing invented, every limit kept, and every way back."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.batches import Batch, Step, split, to_document
from planner.model import BatchRules, PartitionChange, Reason

NO_RULES = BatchRules()
RACKS = {broker: "abc"[broker % 3] for broker in range(9)}


def change(
    partition: int,
    before: tuple[int, ...],
    after: tuple[int, ...],
    *,
    topic: str = "t",
    size_bytes: int = 10,
    leader: int | None = -1,
    reason: Reason = Reason.BALANCE_REPLICAS,
) -> PartitionChange:
    """A change of a topic's partition; `leader` -1 means the preferred one leads today."""
    return PartitionChange(topic, partition, before, after, before[0] if leader == -1 else leader, size_bytes, reason)


def steps(batches: tuple[Batch, ...]) -> list[list[tuple[str, int]]]:
    """The partitions of each batch."""
    return [[(step.topic, step.partition) for step in batch.steps] for batch in batches]


def lists(batches: tuple[Batch, ...]) -> list[tuple[int, ...]]:
    """The replica lists that the only partition goes through."""
    return [step.after for batch in batches for step in batch.steps]


replica_lists = st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True).map(tuple)
limits = st.none() | st.integers(1, 4)
rules = st.builds(BatchRules, st.none() | st.integers(1, 300), limits, limits)


@st.composite
def plans(draw: st.DrawFn) -> list[PartitionChange]:
    """Changes of unlike partitions, each topic-partition once."""
    names = draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), unique=True, max_size=25))
    return [
        change(
            partition,
            draw(replica_lists),
            draw(replica_lists),
            topic=topic,
            size_bytes=draw(st.integers(0, 200)),
            leader=draw(st.integers(0, 8) | st.none()),
            reason=draw(st.sampled_from(Reason)),
        )
        for topic, partition in names
    ]


@given(plans(), rules)
def test_all_steps_in_order_turn_before_into_after(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Every reassigned partition ends in exactly its new list, each step begins where the last one ended."""
    reached = {(c.topic, c.partition): c.before for c in changes if c.reassigned}
    for batch in split(changes, given_rules, None, RACKS):
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
    for batch in reversed(split(changes, given_rules, None)):
        for step in batch.steps:
            assert reached[step.topic, step.partition] == step.after
            reached[step.topic, step.partition] = step.before

    assert {(c.topic, c.partition): c.before for c in changes if c.reassigned} == reached


@given(plans(), rules)
def test_a_batch_keeps_its_limits(changes: list[PartitionChange], given_rules: BatchRules) -> None:
    """Bytes unless one partition alone is larger, replicas added on a broker, replicas added to a partition."""
    for batch in split(changes, given_rules, None):
        adding = Counter(broker for step in batch.steps for broker in step.adding)

        assert sum(step.size_bytes * len(step.adding) for step in batch.steps) == batch.bytes_moved
        assert adding.total() == batch.replicas_moved
        if given_rules.bytes is not None and batch.bytes_moved > given_rules.bytes:
            assert sum(step.bytes_moved > 0 for step in batch.steps) == 1
        if given_rules.moves_per_broker is not None:
            assert max(adding.values(), default=0) <= given_rules.moves_per_broker
        if given_rules.replicas_per_partition is not None:
            assert all(len(step.adding) <= given_rules.replicas_per_partition for step in batch.steps)


@given(replica_lists, replica_lists, st.integers(1, 4))
def test_lists_in_between_are_never_worse_than_both_ends(
    before: tuple[int, ...], after: tuple[int, ...], at_once: int
) -> None:
    """No broker twice, no stranger, as many replicas as one end at least, and the leader stays first to the last."""
    reached = lists(split([change(0, before, after)], BatchRules(replicas_per_partition=at_once), None, RACKS))

    for replicas in reached:
        assert len(replicas) == len(set(replicas))
        assert set(replicas) <= {*before, *after}
        assert min(len(before), len(after)) <= len(replicas) <= max(len(before), len(after))
    assert all(replicas[0] == before[0] for replicas in reached[:-1])
    added = len(set(after) - set(before))
    assert (max(1, -(-added // at_once)) if before != after else 0) == len(reached)


@given(plans(), rules)
def test_a_partition_is_elected_once_and_when_its_list_is_final(
    changes: list[PartitionChange], given_rules: BatchRules
) -> None:
    """In the batch of its last step, or in the last batch where only its leader is off."""
    batches = split(changes, given_rules, None)
    last = {(step.topic, step.partition): batch.number for batch in batches for step in batch.steps}
    expected = {(c.topic, c.partition): last.get((c.topic, c.partition), len(batches)) for c in changes if c.elects}

    assert sorted(expected) == sorted(name for batch in batches for name in batch.elect)
    assert expected == {name: batch.number for batch in batches for name in batch.elect}


@given(plans(), rules, st.randoms())
def test_the_order_of_the_changes_does_not_matter(
    changes: list[PartitionChange], given_rules: BatchRules, random: object
) -> None:
    """The same changes in any order give the same batches, numbered from 1, none of them empty."""
    shuffled = list(changes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    batches = split(changes, given_rules, 7)

    assert batches == split(shuffled, given_rules, 7)
    assert list(range(1, len(batches) + 1)) == [batch.number for batch in batches]
    assert all(batch.steps or batch.elect for batch in batches)


def test_nothing_to_change_needs_no_batch() -> None:
    """No changes, no batches; and a change that is none makes none either."""
    assert split([], NO_RULES, None) == ()
    assert split([change(0, (1, 2), (1, 2))], NO_RULES, None) == ()


def test_without_rules_one_batch_holds_everything() -> None:
    """No limit is invented."""
    batches = split([change(p, (1, 2), (3, 2), size_bytes=10**15) for p in range(50)], NO_RULES, None)

    assert [50] == [len(batch.steps) for batch in batches]


def test_a_partition_larger_than_a_batch_moves_alone() -> None:
    """The limit of bytes bends for one partition only, and nothing else that copies goes with it."""
    changes = [change(p, (1,), (2,), size_bytes=size) for p, size in enumerate((60, 500, 40))]

    assert [[("t", 0), ("t", 2)], [("t", 1)]] == steps(split(changes, BatchRules(bytes=100), None))


def test_risk_goes_first() -> None:
    """The rack rule and leaving brokers, then the replication factor, then balance; ties by topic and partition."""
    changes = [
        change(0, (1,), (2,)),
        change(1, (1,), (1, 2), reason=Reason.REPLICATION_FACTOR),
        change(2, (1,), (2,), reason=Reason.RACK_RULE),
        change(3, (1,), (2,), reason=Reason.BROKER_LEAVES),
    ]
    batches = split(changes, BatchRules(moves_per_broker=1), None)

    assert [[("t", 2)], [("t", 3)], [("t", 1)], [("t", 0)]] == steps(batches)


def test_a_topic_that_changes_its_replication_factor_stays_together() -> None:
    """A topic that fits into one batch isn't split to fill up another one's rest."""
    grown = [change(p, (1,), (1, 2), topic=topic, reason=Reason.REPLICATION_FACTOR) for topic in "ab" for p in range(3)]

    assert [[("a", 0), ("a", 1), ("a", 2)], [("b", 0), ("b", 1), ("b", 2)]] == steps(
        split(grown, BatchRules(bytes=50), None)
    )


def test_a_topic_grows_in_step() -> None:
    """With one replica a partition at a time, all partitions reach the same factor in the same batch."""
    grown = [change(p, (1,), (1, 2 + p, 5), reason=Reason.REPLICATION_FACTOR) for p in range(2)]
    batches = split(grown, BatchRules(replicas_per_partition=1), None)

    assert [[2, 2], [3, 3]] == [[len(step.after) for step in batch.steps] for batch in batches]


def test_racks_stay_apart_in_between() -> None:
    """A replica that moves step by step takes the place of the one in its own rack."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    batches = split([change(0, (1, 2), (3, 4))], BatchRules(replicas_per_partition=1), None, racks)

    assert [(1, 4), (3, 4)] == lists(batches)


def test_reorders_are_spread_over_the_batches() -> None:
    """They cost no bytes; all elections at once would be one burst for the controller."""
    moves = [change(p, (1,), (2,)) for p in range(2)]
    reorders = [change(p, (1, 2), (2, 1), reason=Reason.BALANCE_LEADERS) for p in range(2, 6)]
    batches = split([*moves, *reorders], BatchRules(moves_per_broker=1), None)

    assert [[("t", 0), ("t", 2), ("t", 3)], [("t", 1), ("t", 4), ("t", 5)]] == steps(batches)
    assert [10, 10] == [batch.bytes_moved for batch in batches]


def test_a_leader_that_is_off_is_elected_last_and_not_reassigned() -> None:
    """Its list stays as it is, so Kafka must not be told to reassign it."""
    changes = [*(change(p, (1,), (2,)) for p in range(2)), change(7, (1, 2), (1, 2), leader=2)]
    batches = split(changes, BatchRules(moves_per_broker=1), None)

    assert [[("t", 0)], [("t", 1)]] == steps(batches)
    assert [(("t", 0),), (("t", 1), ("t", 7))] == [batch.elect for batch in batches]


def test_seconds_are_those_of_the_busiest_broker() -> None:
    """Broker 1 sends as leader what 2 and 3 receive: 300 bytes at 70 bytes/s, rounded up."""
    changes = [change(0, (1,), (1, 2, 3), size_bytes=100), change(1, (1,), (2,), size_bytes=100)]

    assert [5] == [batch.seconds_at_throttle for batch in split(changes, NO_RULES, 70)]
    assert [None] == [batch.seconds_at_throttle for batch in split(changes, NO_RULES, None)]


def test_bytes_are_sent_by_the_leader_of_today() -> None:
    """Not by the preferred leader, where another one leads: 2 sends 300 bytes, no broker receives more than 200."""
    changes = [change(p, (1, 2), (1, 2, 3 + p % 2), size_bytes=100, leader=2) for p in range(3)]

    assert [30] == [batch.seconds_at_throttle for batch in split(changes, NO_RULES, 10)]


def test_the_document_says_what_the_batches_say() -> None:
    """The `batches` of plan.json, as plain data."""
    batch = Batch(1, (Step("t", 0, (1,), (2,), 10),), (("t", 0),), 10, 1, None)

    assert [
        {
            "number": 1,
            "partitions": [{"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [2]}],
            "elect": [{"topic": "t", "partition": 0}],
            "bytes_moved": 10,
            "replicas_moved": 1,
            "seconds_at_throttle": None,
        }
    ] == to_document([batch])


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 40))
def test_batches_are_as_few_as_one_broker_allows(limit: int, partitions: int) -> None:
    """Where every partition goes to one broker, its limit alone sets the number of batches."""
    changes = [change(p, (1,), (2,)) for p in range(partitions)]

    assert -(-partitions // limit) == len(split(changes, BatchRules(moves_per_broker=limit), None))
