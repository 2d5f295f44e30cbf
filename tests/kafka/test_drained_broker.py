"""`planner drain` frees bytes on a broker of a real cluster, and a broker that leaves gets no new topic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import NewTopic
from faults import MEGABYTE, SLOWLY, await_move
from operator_at_work import Lists, Operator, Plan

from planner.cli.commands import commands

pytestmark = pytest.mark.kafka

FREED = 1_000_000


def test_a_broker_holds_as_much_less_as_was_asked(operator: Operator) -> None:
    """Broker 4 holds at least the requested bytes less. Only its replicas move, and the plan can be rolled back."""
    operator.create_topic("orders", [[1, 2, 3], [4, 2, 6], [1, 5, 6], [4, 5, 3], [1, 2, 6], [4, 2, 3]])
    operator.produce("orders", 6, 600)
    operator.capture()
    path, before = operator.spec({}), operator.replicas()
    held = sum(operator.stored(4).values())
    command = ["drain", str(path), "--broker", "4", "--for", f"disk={FREED}"]
    ended = CliRunner().invoke(commands, command, standalone_mode=False)
    if ended.exception:
        raise ended.exception
    folder = operator.folder / "spec-drain-4.plan"
    plan = Plan(folder, json.loads((folder / "plan.json").read_text()))

    assert 0 == (run := plan.playbooks.play("apply")).code, run.output
    operator.await_moved(plan.replicas)
    operator.await_true(lambda: sum(operator.stored(4).values()) <= held - FREED, "the replicas to be deleted")
    after = operator.replicas()
    assert all(4 in before[name] for name in before if before[name] != after[name])
    assert FREED <= plan.bytes_moved < FREED + 600 * 1_200
    assert 0 == (run := plan.playbooks.play("rollback")).code, run.output
    operator.await_equal(before, operator.replicas)
    assert {} == operator.lost()


def brokers_of_new(operator: Operator, topic: str) -> set[int]:
    """The brokers on which Kafka places a new topic of twelve partitions with three replicas each."""
    operator.admin.create_topics([NewTopic(topic, num_partitions=12, replication_factor=3)])[topic].result()
    names = {f"{topic}-{number}" for number in range(12)}
    placed: Lists = {}

    def all_placed() -> bool:
        # Each look may ask another broker, which may not know the topic yet. So the answer is taken from a single look.
        placed.update({name: replicas for name, replicas in operator.replicas().items() if name in names})
        return names == placed.keys()

    operator.await_true(all_placed, f"the partitions of {topic}")
    return {broker for replicas in placed.values() for broker in replicas}


def test_no_new_topic_lands_on_a_broker_that_leaves(operator: Operator) -> None:
    """A leaving broker gets no new topic during a batch or between batches, but does after a rollback (KIP-1066)."""
    operator.create_topic("orders", [[4, 2, 3], [2, 4, 6], [1, 5, 6], [5, 6, 4]])
    operator.produce("orders", 4, 2 * MEGABYTE)
    before = operator.replicas()
    execution = {"throttle": "100MB/s", "batches": {"moves_per_broker": 1}}
    plan = operator.plan({"remove_brokers": [4], "rebalance": "none"}, execution=execution)
    assert {} == operator.cordons()

    with plan.playbooks.playing("apply", *SLOWLY, "-e", "kafka_reassign_batches_at_most=1") as running:
        moving = await_move(operator)
        assert {4: "*"} == operator.cordons()
        assert 4 not in brokers_of_new(operator, "midway")
        assert set(moving) <= set(operator.moving())
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Broker 4 is cordoned: no new topic gets a replica there." in run.text
    left = {name for name, replicas in operator.replicas().items() if 4 in replicas}
    assert 0 < len(left) < 3
    assert 4 not in brokers_of_new(operator, "between")
    resumed = rest_of(operator, plan)
    assert left == {f"{row['topic']}-{row['partition']}" for row in resumed["partitions"]}

    assert 0 == (run := plan.playbooks.play("rollback")).code, run.output
    assert "Broker 4 is no longer cordoned by this plan." in run.text
    assert {} == operator.cordons()
    assert 4 in brokers_of_new(operator, "afterwards")
    operator.await_equal(before, lambda: {name: each for name, each in operator.replicas().items() if name in before})
    assert {} == operator.lost()


def rest_of(operator: Operator, plan: Plan) -> dict[str, Any]:
    """The rest of a plan, by `planner resume`, from the cluster's current state and the brokers' configurations."""
    operator.capture()
    state, out = operator.folder / "state", operator.folder / "rest.plan"
    (state / "brokers.txt").write_text(operator.cluster.tool("kafka-configs", "--describe", "--entity-type", "brokers"))
    command = ["resume", str(plan.folder), "--state", str(state), "--out", str(out)]
    ended = CliRunner().invoke(commands, command, standalone_mode=False)
    if ended.exception:
        raise ended.exception
    found: dict[str, Any] = json.loads((out / "plan.json").read_text())
    return found
