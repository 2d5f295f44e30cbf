"""Plain round robin, and how it differs from Kafka's placement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.errors import InfeasibleError
from planner.model.problem import Problem
from planner.model.spec import Changes, Spec, TopicFilter
from planner.strategies import kafka_classic

NO_CHANGES = Changes()
ALL_TOPICS = TopicFilter()


def problem_of(changes: Changes = NO_CHANGES, topics: TopicFilter = ALL_TOPICS) -> Problem:
    """Brokers 1-4 in racks a, a, b, b; topic "one" with 5 partitions on 1 and 2, topic "two" with factors 1 and 3."""
    brokers = (Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b"))
    one = Topic("one", tuple(Partition(i, (1, 2), 1) for i in range(5)))
    two = Topic("two", (Partition(0, (1,), 1), Partition(1, (1, 2, 3), 1)))
    return build(Spec(Cluster("c", brokers, (one, two)), changes, topics))


def assigned(problem: Problem, start: int) -> list[tuple[int, ...]]:
    """The assignment for a start index as broker ids, without the padding."""
    rows = kafka_classic.assign_round_robin(problem, 3, start_index=start).tolist()
    return [tuple(int(problem.broker_ids[at]) for at in row if at >= 0) for row in rows]


def test_formula() -> None:
    """Replica j of partition i is on broker (i + j) mod n of the list, shifted by the start."""
    assert [(5, 7, 9), (7, 9, 5), (9, 5, 7), (5, 7, 9)] == kafka_classic.round_robin([5, 7, 9], 4, 3)
    assert [(9, 5), (5, 7)] == kafka_classic.round_robin([5, 7, 9], 2, 2, start=2)


@given(st.integers(2, 12), st.data())
def test_is_kafkas_placement_without_the_extra_shift(brokers: int, data: st.DataObject) -> None:
    """Up to n partitions, it is Kafka's rack-unaware placement with shift 0."""
    partitions, factor = data.draw(st.integers(1, brokers)), data.draw(st.integers(1, brokers))
    start = data.draw(st.integers(0, brokers - 1))
    unracked = [(broker, None) for broker in range(brokers)]
    kafka = kafka_classic.place(unracked, partitions, factor, start_index=start, next_replica_shift=0)
    assert kafka == kafka_classic.round_robin(range(brokers), partitions, factor, start)


def test_differs_from_kafkas_placement_in_the_second_round() -> None:
    """From partition n on, Kafka shifts the followers, and round robin doesn't."""
    kafka = kafka_classic.place([(i, None) for i in range(3)], 4, 2, start_index=0, next_replica_shift=0)
    assert [(0, 2)] == kafka[3:]
    assert [(0, 1)] == kafka_classic.round_robin(range(3), 4, 2)[3:]


@pytest.mark.parametrize(
    ("partitions", "factor", "message"),
    [(0, 1, "partitions is 0"), (1, 0, "factor is 0: it must be from 1 to 3"), (1, 4, r"factor is 4: .* from 1 to 3")],
)
def test_refusals(partitions: int, factor: int, message: str) -> None:
    """The error names the value and what is allowed."""
    with pytest.raises(InfeasibleError, match=message):
        kafka_classic.round_robin([0, 1, 2], partitions, factor)


def test_assign_over_alternated_racks() -> None:
    """If racks matter, brokers alternate between racks, so that neighbors are in different racks."""
    expected = [(3, 2), (2, 4), (4, 1), (1, 3), (3, 2), (3,), (2, 4, 1)]
    assert expected == assigned(problem_of(), 1)


def test_assign_draws_the_start_of_each_topic() -> None:
    """With start index -1, each topic begins where its seed says, and another seed begins elsewhere."""
    problem = problem_of()
    begins = set()
    for seed in range(200):
        rows = kafka_classic.assign_round_robin(problem, seed)
        begins.add((int(rows[0, 0]), int(rows[5, 0])))
    assert 16 == len(begins)


def test_assign_keeps_what_may_not_move() -> None:
    """Topics outside the filter stay as they are, and without `rebalance: all` also what no change forces."""
    today = [(1, 2)] * 5 + [(1,), (1, 2, 3)]
    assert today[5:] == assigned(problem_of(topics=TopicFilter(include=("one",))), 1)[5:]
    assert today == assigned(problem_of(Changes(rebalance="leaders"), TopicFilter(exclude=("*",))), 1)
    assert today == assigned(problem_of(topics=TopicFilter(exclude=("*",))), 1)


def test_assign_uses_target_brokers_only() -> None:
    """A broker that leaves gets no replicas."""
    rows = assigned(problem_of(Changes(remove_brokers=(1,))), 0)
    assert {2, 3, 4} == {broker for row in rows for broker in row}


def test_assign_with_too_few_brokers() -> None:
    """A replication factor above the number of target brokers is refused."""
    with pytest.raises(InfeasibleError, match="factor is 3: it must be from 1 to 2"):
        assigned(problem_of(Changes(remove_brokers=(1, 2))), 0)
