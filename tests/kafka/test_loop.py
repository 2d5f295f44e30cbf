"""The whole loop on a real cluster: capture the state, plan, apply, apply again, roll back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from loop import State, apply, apply_again, play, roll_back, walk
from operator_at_work import Lists, Operator, Plan

pytestmark = pytest.mark.kafka


def ring(brokers: list[int], partitions: int, replicas: int) -> list[list[int]]:
    """Replica lists that go round the brokers, so that each broker leads and follows equally often."""
    return [[brokers[(p + r) % len(brokers)] for r in range(replicas)] for p in range(partitions)]


def fill(operator: Operator, topics: dict[str, list[list[int]]], records: int = 300) -> None:
    """Create topics with these replica lists, and produce that many records to each partition."""
    for topic, lists in topics.items():
        operator.create_topic(topic, lists)
        operator.produce(topic, len(lists), records)


def added(operator: Operator, *brokers: int) -> list[dict[str, Any]]:
    """The brokers in the form of a spec's add_brokers."""
    return [{"id": broker, "rack": operator.cluster.racks[broker]} for broker in brokers]


def held(lists: Iterable[Iterable[int]]) -> Counter[int]:
    """How many replicas each broker holds."""
    return Counter(chain.from_iterable(lists))


def batches_by_topic(plan: Plan) -> dict[str, set[int]]:
    """The numbers of the batches that move a topic."""
    found = defaultdict(set)
    for batch in plan.document["batches"]:
        for partition in batch["partitions"]:
            found[partition["topic"]].add(batch["number"])
    return found


def unordered(lists: Lists) -> dict[str, list[int]]:
    """The set of brokers of each partition, without the order."""
    return {name: sorted(replicas) for name, replicas in lists.items()}


def test_expansion(operator: Operator) -> None:
    """A plan expands three brokers to six."""
    fill(operator, {"orders": ring([1, 2, 3], 12, 2), "clicks.v-1": ring([1, 2, 3], 6, 3)}, records=1000)
    execution = {"throttle": "50MB/s", "batches": {"bytes": "10MB"}}
    plan = operator.plan({"add_brokers": added(operator, 4, 5, 6)}, brokers=[1, 2, 3], execution=execution)

    assert 2 <= len(plan.document["batches"])
    before = apply(operator, plan, checked=True)
    apply_again(operator, plan)
    roll_back(operator, plan, before)


def test_replication_factor(operator: Operator) -> None:
    """A plan raises two replicas to three, and each topic changes in a single batch."""
    fill(operator, {"orders": ring([1, 2, 3, 4, 5, 6], 6, 2), "refunds": ring([2, 3, 4, 5, 6, 1], 6, 2)})
    requested = {"set_replication_factor": [{"topics": "*", "replication_factor": 3}], "rebalance": "none"}
    plan = operator.plan(requested, execution={"throttle": "50MB/s", "batches": {"bytes": "2MB"}})

    assert [{1}, {2}] == sorted(batches_by_topic(plan).values(), key=min)
    roll_back(operator, plan, apply(operator, plan))


def test_new_rack(operator: Operator) -> None:
    """A third rack is added. Its brokers get their share, and no rack has two replicas of a partition."""
    fill(operator, {"orders": ring([1, 2, 4, 5], 12, 2)})
    plan = operator.plan({"add_brokers": added(operator, 3, 6)}, brokers=[1, 2, 4, 5])
    before = apply(operator, plan)

    lists = operator.replicas().values()
    assert dict.fromkeys(range(1, 7), 4) == held(lists)
    assert all(2 == len({operator.racks()[broker] for broker in replicas}) for replicas in lists)
    roll_back(operator, plan, before)


def test_broker_removal(operator: Operator) -> None:
    """A drained broker has no replica, neither in the metadata nor on its disks."""
    fill(operator, {"orders": ring([1, 2, 3, 4, 5, 6], 12, 2), "clicks.v-1": ring([6, 1, 2], 3, 3)})
    plan = operator.plan({"remove_brokers": [6]})
    before = apply(operator, plan)

    operator.await_equal(0, lambda: held(operator.replicas().values())[6])
    operator.await_true(lambda: not operator.stored(6), "broker 6 to delete its replicas")
    roll_back(operator, plan, before)


def test_leaders_only(operator: Operator) -> None:
    """One broker is preferred for a whole topic, and a crash displaced leaders: they become even, no byte moves."""
    piled = [[1, follower] for follower in (2, 3, 5, 6, 2, 3)]
    fill(operator, {"orders": piled, "clicks.v-1": ring([2, 3, 4], 3, 2)})
    operator.crash(2)
    before = State.of(operator)
    plan = operator.plan({"rebalance": "leaders"})
    stored = [operator.stored(broker) for broker in plan.racks]

    assert 0 == plan.bytes_moved
    apply(operator, plan)
    apply_again(operator, plan)
    assert unordered(before.replicas) == unordered(operator.replicas())
    assert stored == [operator.stored(broker) for broker in plan.racks]
    roll_back(operator, plan, before)


def test_demoted_broker(operator: Operator) -> None:
    """A demoted broker leads nothing, so no leader changes when it stops. A rollback lets it lead again."""
    fill(operator, {"orders": ring([1, 2, 3, 4, 5, 6], 12, 2), "clicks.v-1": ring([4, 5, 6], 3, 3)})
    plan = operator.plan({"demote_brokers": [4]})
    stored = [operator.stored(broker) for broker in plan.racks]

    assert 0 == plan.bytes_moved
    before = apply(operator, plan, checked=True)
    assert 3 == list(before.leaders.values()).count(4)
    assert unordered(before.replicas) == unordered(operator.replicas())
    assert stored == [operator.stored(broker) for broker in plan.racks]
    leaders = operator.leaders()
    operator.crash(4)
    assert 4 not in leaders.values()
    operator.await_equal(leaders, operator.leaders)
    apply_again(operator, plan)
    roll_back(operator, plan, before)


def test_rollback_to_leaders_that_are_not_preferred(operator: Operator) -> None:
    """A rollback gives the lead back to leaders that weren't preferred. A second rollback does nothing."""
    fill(operator, {"orders": ring([1, 2], 4, 2)})
    operator.crash(1)
    plan = operator.plan({"add_brokers": added(operator, 4, 5)}, brokers=[1, 2])

    assert {2} == set(operator.leaders().values())
    roll_back(operator, plan, apply(operator, plan))
    play(plan, "rollback", changes=False)


def test_several_batches_for_a_partition(operator: Operator) -> None:
    """If a partition leaves all its brokers, it moves one replica a batch, and a rollback takes as many batches."""
    fill(operator, {"orders": ring([1, 2], 2, 2)})
    requested = {"add_brokers": added(operator, 4, 5), "remove_brokers": [1, 2]}
    plan = operator.plan(requested, brokers=[1, 2], execution={"batches": {"replicas_per_partition": 1}})

    assert {"orders": {1, 2}} == batches_by_topic(plan)
    walk(operator, plan)
