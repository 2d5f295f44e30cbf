"""New partitions on a real cluster: the playbook creates and adds them exactly where the plan puts them."""

from __future__ import annotations

import pytest
from loop import State, assert_well, play
from operator_at_work import Lists, Operator, Plan

pytestmark = pytest.mark.kafka


def made(plan: Plan) -> Lists:
    """The replica lists of the partitions that the plan creates."""
    return {
        f"{topic['topic']}-{number}": list(replicas)
        for topic in plan.document["new_partitions"]["topics"]
        for number, replicas in enumerate(topic["replicas"], topic["partitions_before"])
    }


def configured(operator: Operator, topic: str) -> str:
    """A topic's own configuration, as Kafka's tool prints it."""
    return operator.cluster.tool("kafka-configs", "--entity-type", "topics", "--entity-name", topic, "--describe")


def test_create_and_alter(operator: Operator) -> None:
    """Apply creates a topic and adds partitions to another. A second apply does nothing; a rollback keeps them."""
    operator.create_topic("orders", [[1, 2], [2, 3], [3, 1], [1, 3]])
    operator.produce("orders", 4, 100)
    config = {"min.insync.replicas": 2, "retention.ms": 86_400_000}
    requested = {
        "create_topics": [{"name": "refunds.v2", "partitions": 6, "replication_factor": 3, "config": config}],
        "add_partitions": [{"topic": "orders", "partitions": 9}],
    }
    plan, before = operator.plan(requested), State.of(operator)

    assert {} == plan.replicas
    play(plan, "apply", "--check", changes=True)
    assert before == State.of(operator)
    play(plan, "apply", changes=True)
    leaders = {name: replicas[0] for name, replicas in made(plan).items()}
    after = State(before.replicas | made(plan), before.leaders | leaders)
    operator.await_equal(after, lambda: State.of(operator))
    assert "min.insync.replicas=2" in configured(operator, "refunds.v2")
    assert "retention.ms=86400000" in configured(operator, "refunds.v2")
    for playbook in ("apply", "rollback"):
        play(plan, playbook, changes=False)
    play(plan, "apply", "--check", changes=False)
    play(plan, "verify", changes=False)
    operator.await_equal(after, lambda: State.of(operator))
    operator.produce("refunds.v2", 6, 100)
    assert_well(operator)


def test_new_partitions_before_moves(operator: Operator) -> None:
    """New partitions avoid the broker that leaves, and the batches move all others away from it."""
    operator.create_topic("orders", [[6, 1], [1, 6], [2, 4]])
    operator.produce("orders", 3, 100)
    plan = operator.plan({"remove_brokers": [6], "add_partitions": [{"topic": "orders", "partitions": 8}]})
    before = State.of(operator)

    play(plan, "apply", changes=True)
    operator.await_equal(before.replicas | plan.replicas | made(plan), operator.replicas)
    assert not any(6 in replicas for replicas in operator.replicas().values())
    play(plan, "rollback", changes=True)
    operator.await_equal(before.replicas | made(plan), operator.replicas)
    assert_well(operator)


def test_a_topic_made_otherwise_stops_the_play(operator: Operator) -> None:
    """If somebody else creates the topic in the meantime, the play stops before it makes or moves anything."""
    operator.create_topic("orders", [[1, 2], [2, 3]])
    topics = [{"name": "refunds", "partitions": 2, "replication_factor": 2}]
    plan = operator.plan({"create_topics": topics, "add_partitions": [{"topic": "orders", "partitions": 3}]})
    operator.create_topic("refunds", [[1, 2], [1, 2]])
    before = State.of(operator)

    run = plan.playbooks.play("apply")
    assert 2 == run.code, run.output
    assert "The topics are refunds" in run.text
    assert before == State.of(operator)
