"""Kafka's classic placement, compared with Kafka's own answers, with itself for many candidates, and on problems."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.errors import InfeasibleError
from planner.model.problem import Problem
from planner.model.spec import Changes, Spec, TopicFilter
from planner.strategies import kafka_classic

VECTORS = json.loads((DATA / "kafka-classic-assignments.json").read_text(encoding="utf-8"))
SEED = 5
NO_CHANGES = Changes()
ALL_TOPICS = TopicFilter()


def unracked(count: int) -> list[tuple[int, str | None]]:
    """Brokers 0, 1, … without racks."""
    return [(broker, None) for broker in range(count)]


def small_problem(changes: Changes = NO_CHANGES, topics: TopicFilter = ALL_TOPICS, rack_aware: bool = True) -> Problem:
    """Brokers 1-6 in racks a, b, c; topic "one" with factor 3 and 5 partitions, "two" with factors 1 and 2."""
    brokers = tuple(Broker(i, "abc"[i % 3]) for i in range(1, 7))
    one = Topic("one", tuple(Partition(i, (1, 2, 3), 1) for i in range(5)))
    two = Topic("two", (Partition(0, (1,), 1), Partition(1, (1, 2), 1), Partition(2, (2, 3), 2)))
    return build(Spec(Cluster("c", brokers, (one, two)), changes, topics, rack_aware))


def ids(problem: Problem, assignment: np.ndarray[Any, Any]) -> list[tuple[int, ...]]:
    """The rows of an assignment as broker ids, without the padding."""
    return [tuple(int(problem.broker_ids[at]) for at in row if at >= 0) for row in assignment]


@pytest.mark.parametrize("vector", VECTORS)
def test_answers_of_kafka(vector: dict[str, Any]) -> None:
    """Every replica is the same as in the answers of Kafka 3.9.1's AdminUtils."""
    got = kafka_classic.place(
        [(broker["id"], broker["rack"]) for broker in vector["brokers"]],
        vector["partitions"],
        vector["replication_factor"],
        start_index=vector["start_index"],
        next_replica_shift=vector["next_replica_shift"],
        start_partition_id=vector["start_partition_id"],
    )
    first = vector["start_partition_id"]
    assert vector["assignment"] == {str(first + i): list(replicas) for i, replicas in enumerate(got)}


@pytest.mark.parametrize(
    ("brokers", "start", "shift", "expected"),
    [
        (4, 3, 2, [(3, 2, 0), (0, 3, 1), (1, 0, 2)]),
        (4, 3, 1, [(3, 1, 2), (0, 2, 3), (1, 3, 0), (2, 0, 1), (3, 2, 0)]),
        (
            4,
            1,
            2,
            [(1, 0, 2), (2, 1, 3), (3, 2, 0), (0, 3, 1), (1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 3, 0)],
        ),
        (3, 2, 0, [(2, 0, 1), (0, 1, 2), (1, 2, 0), (2, 1, 0), (0, 2, 1), (1, 0, 2)]),
    ],
)
def test_published_examples(brokers: int, start: int, shift: int, expected: list[tuple[int, ...]]) -> None:
    """Assignments seen on real clusters without racks, replication factor 3."""
    got = kafka_classic.place(unracked(brokers), len(expected), 3, start_index=start, next_replica_shift=shift)
    assert expected == got


def test_published_example_with_racks() -> None:
    """Two racks of three brokers: 4, 2, 5 is followed by 2, 5, 0."""
    brokers = [(broker, "a" if broker < 3 else "b") for broker in range(6)]
    assert [(4, 2, 5), (2, 5, 0)] == kafka_classic.place(brokers, 2, 3, start_index=3, next_replica_shift=0)


def test_rack_alternated() -> None:
    """One broker of each rack in turn; racks sorted by name as in Java, brokers by id."""
    nine = [(broker, f"rack{broker // 3}") for broker in reversed(range(9))]
    assert [0, 3, 6, 1, 4, 7, 2, 5, 8] == kafka_classic.rack_alternated(nine)
    assert [0, 2, 1, 3] == kafka_classic.rack_alternated([(0, "a"), (1, "a"), (2, "b"), (3, "b")])
    assert [2, 1] == kafka_classic.rack_alternated([(1, "\uf000"), (2, "😀")])
    assert [5, 1, 2, 3] == kafka_classic.rack_alternated([(1, "b"), (2, "b"), (3, "b"), (5, "a")])


def test_broker_ids_need_not_be_contiguous() -> None:
    """Positions count, not ids; without racks, brokers stay in the order given."""
    brokers = [(8, None), (2, None), (5, None)]
    assert [(5, 8, 2), (8, 2, 5)] == kafka_classic.place(brokers, 2, 3, start_index=2, next_replica_shift=0)


@pytest.mark.parametrize(
    ("partitions", "factor", "message"),
    [(0, 1, "partitions is 0"), (1, 0, "replication factor is 0"), (1, 4, "factor is 4: .* from 1 to 3")],
)
def test_refuses_what_kafka_refuses(partitions: int, factor: int, message: str) -> None:
    """The error names the value and what is allowed."""
    with pytest.raises(InfeasibleError, match=message):
        kafka_classic.place(unracked(3), partitions, factor, start_index=0, next_replica_shift=0)


def test_racks_on_some_brokers_only() -> None:
    """If only some brokers have racks, the error names the others, unless racks are ignored."""
    brokers = [(1, "a"), (2, None), (4, None), (3, "b")]
    with pytest.raises(InfeasibleError, match=r"broker 2, 4 .*rack_aware: disabled"):
        kafka_classic.place(brokers, 1, 2, start_index=0, next_replica_shift=0)
    got = kafka_classic.place(brokers, 1, 2, start_index=0, next_replica_shift=0, rack_aware=False)
    assert [(1, 2)] == got


@pytest.mark.parametrize(("start", "shift"), [(-1, 0), (0, -1)])
def test_negative_start_or_shift(start: int, shift: int) -> None:
    """A negative start index or shift is refused with its value, because nothing is drawn here."""
    with pytest.raises(InfeasibleError, match=f"start index {start}, next replica shift {shift}"):
        kafka_classic.place(unracked(3), 1, 1, start_index=start, next_replica_shift=shift)


@given(st.data())
def test_place_rows_is_place(data: st.DataObject) -> None:
    """Many candidates at once give what each alone gives, with and without racks, from any first partition."""
    racks = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    aware = data.draw(st.booleans())
    n = len(racks)
    brokers = [(10 + i, f"r{rack}" if aware else None) for i, rack in enumerate(racks)]
    order = kafka_classic.rack_alternated([(b, r) for b, r in brokers if r]) if aware else [b for b, _ in brokers]
    numbers = [racks[broker - 10] if aware else -1 for broker in order]
    factor, partitions = data.draw(st.integers(1, n)), data.draw(st.integers(1, 25))
    first = data.draw(st.integers(0, 20))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=4))
    starts, shifts = np.array(pairs, dtype=np.int32).T
    # place_rows counts the rounds of shifts from partition 0: those before the first partition are taken off again.
    before = max(first - 1, 0) // n
    ids = np.arange(first, first + partitions, dtype=np.int32)
    arrays = (np.array(each, dtype=np.int32) for each in (order, numbers))
    got = kafka_classic.place_rows(*arrays, factor, ids, starts[:, None], shifts[:, None] - before)
    expected = [
        kafka_classic.place(
            brokers, partitions, factor, start_index=start, next_replica_shift=shift, start_partition_id=first
        )
        for start, shift in pairs
    ]
    assert expected == [[tuple(row) for row in rows] for rows in got.tolist()]


@pytest.mark.parametrize("rack_aware", [True, False])
def test_assign_places_each_topic_as_place_does(rack_aware: bool) -> None:
    """With a given start index and shift, every topic has the lists of `place`, each row with its own factor."""
    problem = small_problem(rack_aware=rack_aware)
    brokers = [(i, "abc"[i % 3]) for i in range(1, 7)]

    def placed(factor: int) -> list[tuple[int, ...]]:
        return kafka_classic.place(brokers, 5, factor, start_index=4, next_replica_shift=1, rack_aware=rack_aware)

    got = kafka_classic.assign(problem, SEED, start_index=4, next_replica_shift=1)
    assert [*placed(3), placed(1)[0], placed(2)[1], placed(2)[2]] == ids(problem, got)
    assert ("int32", (8, 3)) == (str(got.dtype), got.shape)


def test_assign_draws_for_each_topic() -> None:
    """With -1, each topic begins on a broker of its own, and another seed begins elsewhere."""
    problem = small_problem()
    drawn = [kafka_classic.assign(problem, seed) for seed in range(50)]
    begins = {(int(rows[0, 0]), int(rows[5, 0])) for rows in drawn}
    assert len(begins) > 20
    assert any(one != two for one, two in begins)


def test_assign_uses_target_brokers_only() -> None:
    """A broker that leaves gets no replicas; a broker that is added gets some."""
    problem = small_problem(Changes(add_brokers=(Broker(9, "a"),), remove_brokers=(1,)))
    used = {broker for row in ids(problem, kafka_classic.assign(problem, SEED)) for broker in row}
    assert {9} == used & {1, 9}


def test_assign_keeps_what_may_not_move() -> None:
    """Topics outside the filter keep their replicas in today's order."""
    problem = small_problem(topics=TopicFilter(exclude=("two",)))
    got = ids(problem, kafka_classic.assign(problem, SEED))
    assert [(1,), (1, 2), (2, 3)] == got[5:]
    assert [(1, 2, 3)] * 5 != got[:5]


@pytest.mark.parametrize("rebalance", ["leaders", "none"])
def test_assign_places_only_forced_partitions_unless_all_may_move(rebalance: Any) -> None:
    """Without `rebalance: all`, only partitions that a change forces are placed again."""
    problem = small_problem(Changes(remove_brokers=(3,), rebalance=rebalance), TopicFilter(include=("two",)))
    got = ids(problem, kafka_classic.assign(problem, SEED))
    assert [(1, 2, 3)] * 5 + [(1,), (1, 2)] == got[:7]
    assert 3 not in got[7]


def test_assign_with_too_few_brokers() -> None:
    """A replication factor above the number of target brokers is refused."""
    problem = small_problem(Changes(remove_brokers=(1, 2, 3, 4)))
    with pytest.raises(InfeasibleError, match="factor is 3: it must be from 1 to 2"):
        kafka_classic.assign(problem, SEED)


def test_assign_of_no_partitions() -> None:
    """A cluster without topics has an empty assignment."""
    problem = build(Spec(Cluster("c", (Broker(1),), ())))
    assert (0, 1) == kafka_classic.assign(replace(problem, replicas=np.empty((0, 1), np.int32)), SEED).shape
