"""KRaft's placement, compared with Kafka's own answers, and on problems."""

from __future__ import annotations

import json
from typing import Any

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.errors import InfeasibleError
from planner.model.problem import Problem
from planner.model.spec import Changes, Spec, TopicFilter
from planner.strategies import kafka_striped
from planner.strategies.java_random import JavaRandom

VECTORS = json.loads((DATA / "kafka-striped-assignments.json").read_text(encoding="utf-8"))
BROKERS = [(i, "abc"[i % 3], False) for i in range(1, 7)]
NO_CHANGES = Changes()
ALL_TOPICS = TopicFilter()


def problem_of(changes: Changes = NO_CHANGES, topics: TopicFilter = ALL_TOPICS, names: str = "ab") -> Problem:
    """Brokers 1-6 in racks a, b, c, and topics with 8 partitions of factor 2, all on brokers 1 and 2."""
    brokers = tuple(Broker(broker, rack) for broker, rack, _ in BROKERS)
    partitions = tuple(Partition(i, (1, 2), 1) for i in range(8))
    return build(Spec(Cluster("c", brokers, tuple(Topic(name, partitions) for name in names)), changes, topics))


def assigned(problem: Problem, seed: int) -> list[tuple[int, ...]]:
    """The assignment for a seed as broker ids, without the padding."""
    rows = kafka_striped.assign(problem, seed).tolist()
    return [tuple(int(problem.broker_ids[at]) for at in row if at >= 0) for row in rows]


@pytest.mark.parametrize("vector", VECTORS)
def test_answers_of_kafka(vector: dict[str, Any]) -> None:
    """Every replica is the same as in Kafka 4.1.0's StripedReplicaPlacer with a java.util.Random of that seed."""
    got = kafka_striped.place(
        [(broker["id"], broker["rack"], broker["fenced"]) for broker in vector["brokers"]],
        vector["partitions"],
        vector["replication_factor"],
        java_random_seed=vector["java_random_seed"],
        start_partition=vector["start_partition"],
    )
    assert vector["assignment"] == [list(replicas) for replicas in got]


@given(st.data())
def test_placements_are_valid(data: st.DataObject) -> None:
    """No broker twice, the factor as asked, an unfenced leader, and as many racks as there can be without fences."""
    racks = data.draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9))
    fences = data.draw(st.lists(st.booleans(), min_size=len(racks), max_size=len(racks)))
    fences[0] = False
    brokers = [(i, rack, fenced) for i, (rack, fenced) in enumerate(zip(racks, fences, strict=True))]
    factor = data.draw(st.integers(1, len(brokers)))
    got = kafka_striped.place(brokers, 20, factor, java_random_seed=data.draw(st.integers(-(2**63), 2**63 - 1)))
    assert {factor} == {len(set(replicas)) for replicas in got} | {len(replicas) for replicas in got}
    assert not any(fences[replicas[0]] for replicas in got)
    if not any(fences):
        widest = min(factor, len(set(racks)))
        assert {widest} == {len({racks[broker] for broker in replicas}) for replicas in got}


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "message"),
    [
        ([(1, "a", True), (2, "a", True)], 1, 1, "all 2 brokers are fenced"),
        ([(1, "a", False), (2, "a", True)], 1, 3, "factor is 3: it must be from 1 to 2"),
        ([(1, "a", False)], 1, 0, "factor is 0"),
        ([(1, "a", False)], 0, 1, "partitions is 0"),
    ],
)
def test_refuses_what_kafka_refuses(brokers: Any, partitions: int, factor: int, message: str) -> None:
    """The error names the value and what is allowed."""
    with pytest.raises(InfeasibleError, match=message):
        kafka_striped.place(brokers, partitions, factor, java_random_seed=1)


def test_negative_start_partition() -> None:
    """A negative start partition is refused, because partition ids begin at 0."""
    with pytest.raises(InfeasibleError, match="start partition is -1"):
        kafka_striped.place([(1, None, False)], 1, 1, java_random_seed=1, start_partition=-1)


def test_fenced_brokers_come_last() -> None:
    """A fenced broker gets a replica only if no other broker is left, and in the last place."""
    brokers = [(1, None, False), (2, None, True), (3, None, False)]
    two = kafka_striped.place(brokers, 10, 2, java_random_seed=3)
    three = kafka_striped.place(brokers, 10, 3, java_random_seed=3)
    assert {1, 3} == {broker for replicas in two for broker in replicas}
    assert {2} == {replicas[2] for replicas in three}


@pytest.mark.parametrize("seed", range(6))
def test_brokers_without_rack_are_a_rack_of_their_own(seed: int) -> None:
    """Brokers without rack form a rack before the named ones; the third draw says which rack begins."""
    random = JavaRandom(seed)
    offset = [random.next_int(1), random.next_int(1), random.next_int(2)][2]
    got = kafka_striped.place([(2, "a", False), (1, None, False)], 2, 1, java_random_seed=seed)
    assert [[(1,), (2,)], [(2,), (1,)]][offset] == got


def test_assign_begins_as_place() -> None:
    """The first topic by name has the lists of `place` for the candidate's seed."""
    problem = problem_of(names="ba")
    assert kafka_striped.place(BROKERS, 8, 2, java_random_seed=77) == assigned(problem, 77)[:8]


def test_assign_goes_on_with_the_same_random() -> None:
    """The second topic continues the draws of the first, as in a controller."""
    got = assigned(problem_of(), 77)
    assert got[:8] != got[8:]


def test_assign_without_racks_that_matter() -> None:
    """If the rack rule is off, all brokers count as one rack."""
    brokers = tuple(Broker(broker, rack) for broker, rack, _ in BROKERS)
    topic = Topic("a", tuple(Partition(i, (1, 2), 1) for i in range(8)))
    problem = build(Spec(Cluster("c", brokers, (topic,)), rack_aware=False))
    expected = kafka_striped.place([(i, None, False) for i in range(1, 7)], 8, 2, java_random_seed=5)
    assert expected == assigned(problem, 5)


def test_assign_leaves_out_what_may_not_move() -> None:
    """A topic outside the filter keeps its replicas and uses no draw."""
    got = assigned(problem_of(topics=TopicFilter(exclude=("a",))), 77)
    assert [(1, 2)] * 8 + kafka_striped.place(BROKERS, 8, 2, java_random_seed=77) == got


def test_assign_places_only_forced_partitions_unless_all_may_move() -> None:
    """With `rebalance: none`, only partitions that a change forces move."""
    assert [(1, 2)] * 16 == assigned(problem_of(Changes(rebalance="none")), 77)


def test_assign_rows_with_factors_of_their_own() -> None:
    """Different factors in one topic are each met, and the rest of a row is padding."""
    topic = Topic("a", (Partition(0, (1, 2, 3), 1), Partition(1, (1,), 1), Partition(2, (1, 2), 1)))
    brokers = tuple(Broker(broker, rack) for broker, rack, _ in BROKERS)
    problem = build(Spec(Cluster("c", brokers, (topic,))))
    assert [3, 1, 2] == [len(set(row)) for row in assigned(problem, 1)]


def test_assign_with_too_few_brokers() -> None:
    """A replication factor above the number of target brokers is refused."""
    with pytest.raises(InfeasibleError, match="factor is 2: it must be from 1 to 1"):
        assigned(problem_of(Changes(remove_brokers=(1, 2, 3, 4, 5))), 1)
