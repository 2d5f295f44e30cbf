"""Signs of problems in a state: brokers that seem to be down, and partitions that may be being reassigned."""

from __future__ import annotations

import pytest

from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic, a_few, brokers_down, possible_reassignments
from planner.model.spec import Changes, Spec


def test_a_broker_in_no_leaders_isr_seems_to_be_down() -> None:
    """A broker that is in no ISR of a led partition seems to be down; without ISRs nothing is reported."""
    rows = [Partition(0, (1, 2), 1, (1,)), Partition(1, (2, 3), None, (3,)), Partition(2, (1, 3), 1, (1,))]
    assert [
        "broker 2 is in no ISR of its 2 replicas: it seems to be down",
        "broker 3 is in no ISR of its 2 replicas, leaderless partitions aside: it seems to be down",
    ] == [sentence for _, sentence in brokers_down(rows)]
    assert [2, 3] == [broker for broker, _ in brokers_down(rows)]
    assert [] == list(brokers_down([Partition(0, (1, 2), 1, None), Partition(1, (2, 1), 2, (2, 1))]))
    assert [] == list(brokers_down([Partition(0, (1, 2), 1, (2,))])), "a leader is live"


@pytest.mark.parametrize("other", [Partition(1, (2, 3), 2, None), Partition(1, (3, 2), 3, None)])
def test_a_broker_whose_isr_is_unknown_elsewhere_may_be_live(other: Partition) -> None:
    """A broker out of one ISR isn't said to be down if another partition's ISR, perhaps with it, is unknown."""
    rows = Partition(0, (1, 2), 1, (1,)), other, Partition(2, (1, 3), 1, (1,))
    assert [] == list(brokers_down(rows))
    cluster = Cluster("small", (Broker(1), Broker(2), Broker(3)), (Topic("t", rows),))
    assert build(Spec(cluster, Changes())).out_of_sync is None


def test_more_replicas_than_usual_may_be_a_reassignment() -> None:
    """More replicas than in the topic's other partitions are reported if not all are in sync and there is a leader."""
    usual, wider = Partition(0, (1, 2), 1, (1, 2)), (1, 2, 3)
    told = list(possible_reassignments([Topic("t", (usual, Partition(1, wider, 1, (1, 2))))]))
    assert 1 == len(told)
    assert told[0].startswith("partition t-1 with more replicas than others of the topic, and not all in sync")
    for other in (Partition(1, wider, 1, wider), Partition(1, wider, None, (1,)), Partition(1, wider, 1, None)):
        assert [] == list(possible_reassignments([Topic("t", (usual, other))]))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "topic a"),
        (["a", "b", "c"], "topics a, b, c"),
        ([f"t{number}" for number in range(1_203)], "topics t0, t1, t2 and 1,200 more"),
    ],
)
def test_a_few_names_stand_for_many(names: list[str], text: str) -> None:
    """At most three names are listed, and the others are counted."""
    assert text == a_few(names)
