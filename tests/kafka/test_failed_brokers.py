"""`planner failures` predicts a real cluster: after brokers are killed, leaders and ISR are as predicted."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from faults import MEGABYTE
from operator_at_work import Operator
from plan_documents import row

from planner.cli.commands import commands
from planner.inputs.spec.reading import load
from planner.model.build_problem import build
from planner.model.problem import Problem
from planner.plan.document.partition_types import BatchRow
from planner.whatif.cluster_states import FACTS, PartitionStates, outcome, stages
from planner.whatif.failure_sets import BROKERS, failed_slots, scenarios

pytestmark = pytest.mark.kafka

LISTS = {
    "orders": [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1], [6, 1, 2]],
    "clicks": [[2, 5], [5, 2], [2, 4], [4, 2], [1, 3]],
    "single": [[2], [5], [1]],
}


def names(problem: Problem) -> list[str]:
    """The partitions as Kafka's tools name them, in the problem's order."""
    topics = [problem.topic_names[topic] for topic in problem.topic_of]
    return [f"{topic}-{number}" for topic, number in zip(topics, problem.partition_ids, strict=True)]


def foretold(problem: Problem, rows: PartitionStates, *failed: int) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The state predicted after these failures: each partition's leader (-1: none), and the ISR if it has one."""
    ids = problem.broker_ids.tolist()
    slots = failed_slots(rows.replicas, scenarios(problem, BROKERS, 1, 0).domains, [ids.index(each) for each in failed])
    leaders = [ids[leader] if leader >= 0 else -1 for leader in outcome(rows, slots).leaders.tolist()]
    live = rows.in_sync & ~slots
    isr = [sorted(problem.broker_ids[row[alive]].tolist()) for row, alive in zip(rows.replicas, live, strict=True)]
    every = names(problem)
    return dict(zip(every, leaders, strict=True)), {
        name: each for name, each, leader in zip(every, isr, leaders, strict=True) if leader >= 0
    }


def seen(operator: Operator) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The same values, as the cluster reports them."""
    leaders = {name: leader for name, leader in operator.leaders().items() if not name.startswith("__")}
    return leaders, {name: isr for name, isr in operator.isrs().items() if leaders.get(name, -1) >= 0}


def assert_foretold(operator: Operator, problem: Problem, rows: PartitionStates, *failed: int) -> None:
    """Wait until the cluster is exactly as predicted."""
    expected = foretold(problem, rows, *failed)
    operator.await_true(lambda: expected == seen(operator), f"what was foretold of brokers {failed}: {expected}")


def test_one_broker_then_a_second_one(operator: Operator) -> None:
    """One broker dies, then another: leaders, ISR and the number of leaders that each broker gains are as predicted."""
    for topic, lists in LISTS.items():
        operator.create_topic(topic, lists, min_insync_replicas="2")
    operator.capture()
    path = operator.spec({})
    shown = CliRunner().invoke(commands, ["failures", str(path), "--format", "json"], standalone_mode=False)
    of_broker = {each["failed"]: each["states"][0] for each in json.loads(shown.stdout)["scenarios"]}["broker 2"]
    problem = build(spec := load(path))
    (today,) = stages(spec, problem, [])
    before = operator.leaders()

    operator.lose(2)
    assert_foretold(operator, problem, today.first, 2)
    after = operator.leaders()
    moved = [leader for name, leader in after.items() if leader >= 0 and leader != before[name]]
    assert {each["broker"]: each["leaders"] for each in of_broker["moved_to"]} == {
        broker: moved.count(broker) for broker in set(moved)
    }
    assert list(after.values()).count(-1) == of_broker["offline"] == 1

    operator.lose(5)
    assert_foretold(operator, problem, today.first, 2, 5)
    slots = failed_slots(today.first.replicas, scenarios(problem, BROKERS, 1, 0).domains, [1, 4])
    offline = outcome(today.first, slots).facts[:, FACTS.index("offline")].sum()
    assert 4 == offline
    operator.await_equal(offline, lambda: list(operator.leaders().values()).count(-1))


def test_a_broker_dies_while_a_batch_copies(operator: Operator) -> None:
    """While a batch copies, an old replica takes over, in the new list's order. Afterwards, one of the new list."""
    operator.create_topic("orders", [[1, 2, 3]])
    operator.produce("orders", 1, 2 * MEGABYTE)
    operator.capture()
    problem = build(spec := load(operator.spec({})))
    step = {"topic": "orders", "partition": 0, "replicas_before": [1, 2, 3], "replicas": [4, 3, 2]}
    _, batch, planned = stages(spec, problem, [row(BatchRow, {"number": 1, "partitions": [step]})])

    operator.reassign({"orders-0": [4, 3, 2]}, "--throttle", 1)
    union = problem.broker_ids[batch.first.replicas[0]].tolist()
    operator.await_true(lambda: union == operator.replicas()["orders-0"], f"replicas {union}")
    operator.lose(1)
    assert_foretold(operator, problem, batch.first, 1)
    operator.await_equal(3, lambda: operator.leaders()["orders-0"])

    operator.start(1)
    operator.lift_throttle()
    operator.await_moved({"orders-0": problem.broker_ids[planned.first.replicas[0][:3]].tolist()})
    operator.lose(3)
    expected = foretold(problem, planned.first, 3)[1]
    operator.await_true(lambda: expected == seen(operator)[1], "the ISR without broker 3")
    operator.await_equal(4, lambda: operator.leaders()["orders-0"])
