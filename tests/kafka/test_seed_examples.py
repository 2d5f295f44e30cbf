"""Replays the three well-known examples of reassignments and elections with Kafka's own tools and the playbooks.

Their brokers 0 and 1 are 1 and 2 here.
"""

from __future__ import annotations

import json
import re

import pytest
from loop import State, apply, assert_as_planned, assert_well, play, roll_back, walk
from operator_at_work import Operator, Plan

pytestmark = pytest.mark.kafka

COMPLETED = re.compile(r"Reassignment of partition (\S+) is completed")


def listed(partitions: str) -> set[str]:
    """The names of the partitions in a JSON text of Kafka's tools."""
    return {f"{each['topic']}-{each['partition']}" for each in json.loads(partitions)["partitions"]}


def reassign(operator: Operator, plan: Plan, file: str) -> None:
    """Execute one of the plan's files by hand, and wait until Kafka's tool says that all of it is complete."""
    wanted = listed((plan.folder / file).read_text())

    def told(command: str) -> str:
        options = (command, "--reassignment-json-file", plan.folder / file)
        return operator.cluster.tool("kafka-reassign-partitions", *options)

    started = told("--execute")
    assert "Successfully started partition reassignments" in started, started
    operator.await_true(lambda: wanted == set(COMPLETED.findall(told("--verify"))), f"{file} to be complete")


def elect(operator: Operator, plan: Plan) -> str:
    """Elect the plan's preferred leaders by hand. Return what Kafka's tool prints."""
    options = ("--election-type", "preferred", "--path-to-json-file", plan.folder / "preferred-replica.json")
    return operator.cluster.tool("kafka-leader-election", *options)


def test_tp_re_01(operator: Operator) -> None:
    """Five partitions of a topic on one broker spread over two: generated, executed, verified and undone by hand."""
    operator.create_topic("tp_re_01", [[1]] * 5)
    operator.produce("tp_re_01", 5, 100)
    before = State.of(operator)
    plan = operator.plan({"add_brokers": [{"id": 2, "rack": "r1"}]}, brokers=[1])
    topics = ("--topics-to-move-json-file", plan.folder / "topics-to-move.json", "--broker-list", "1,2")
    told = operator.cluster.tool("kafka-reassign-partitions", "--generate", *topics)

    assert before.replicas.keys() == listed(told.partition("Proposed partition reassignment configuration")[2])
    reassign(operator, plan, "reassignment.json")
    assert_as_planned(operator, plan, before)
    play(plan, "verify", changes=False)
    play(plan, "apply", changes=False)
    reassign(operator, plan, "rollback.json")
    operator.await_equal(before, lambda: State.of(operator))
    assert_well(operator)


def test_tp_re_02(operator: Operator) -> None:
    """One replica becomes two. Terraform's variables have the same replication factor as Kafka."""
    operator.create_topic("tp_re_02", [[2], [1], [2]])
    operator.produce("tp_re_02", 3, 100)
    requested = {"set_replication_factor": [{"topics": "tp_re_02", "replication_factor": 2}]}
    plan = operator.plan(requested, brokers=[1, 2])
    before = apply(operator, plan)

    topics = json.loads((plan.folder / "terraform" / "kafka_topics.auto.tfvars.json").read_text())["kafka_topics"]
    assert {"tp_re_02": 2} == {name: topic["replication_factor"] for name, topic in topics.items()}
    assert {2} == {len(replicas) for replicas in operator.replicas().values()}
    roll_back(operator, plan, before)


def test_tp_demo_03(operator: Operator) -> None:
    """After a crash one broker leads all. An election, by hand and by playbook, restores the preferred leaders."""
    operator.create_topic("tp_demo_03", [[1, 2], [2, 1], [1, 2]])
    operator.produce("tp_demo_03", 3, 100)
    led = operator.leaders()
    operator.crash(1)
    displaced = State.of(operator)
    plan = operator.plan({"rebalance": "leaders"}, brokers=[1, 2])

    assert {2} == set(displaced.leaders.values())
    assert set() == listed((plan.folder / "reassignment.json").read_text())
    assert "Successfully completed leader election (PREFERRED) for partitions" in elect(operator, plan)
    operator.await_true(lambda: led == operator.leaders(), "the preferred leaders")
    operator.crash(1)
    operator.await_equal(displaced, lambda: State.of(operator))
    walk(operator, plan)
