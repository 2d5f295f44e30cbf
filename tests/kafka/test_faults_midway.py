"""Faults while a batch moves, on a real cluster: nothing is lost, and the operator is told what to do."""

from __future__ import annotations

import json

import pytest
from cluster import CONTROLLER
from faults import MEGABYTE, SLOWLY, assert_unharmed, await_move, await_second_batch, expansion
from operator_at_work import Operator

pytestmark = pytest.mark.kafka


def test_killed_run_is_resumed_by_waiting(operator: Operator) -> None:
    """A killed run leaves the batch moving, throttled; the next one waits for it, starts nothing twice, clears up."""
    plan = expansion(operator, 5 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY) as killed:
        moving = await_move(operator)
        killed.kill()
    assert moving == operator.moving()
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle that is left")

    with plan.playbooks.playing("apply") as resumed:
        operator.await_true(lambda: "Wait for what an interrupted run left" in resumed.output.read_text(), "the wait")
        assert moving == operator.moving()
        operator.lift_throttle()
        run = resumed.wait()
    assert 0 == run.code, run.output
    assert "Start batch" not in run.output
    assert_unharmed(operator, wanted)


@pytest.mark.parametrize("struck", ["destination", "source", "controller"])
def test_process_that_dies_and_comes_back(operator: Operator, struck: str) -> None:
    """The run goes on waiting while a broker or the controller restarts, and reaches the plan."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY) as running:
        source = operator.leaders()[await_move(operator)[0]]
        if struck == "controller":
            operator.cluster.kill(CONTROLLER)
            operator.cluster.start(CONTROLLER)
        else:
            lost = source if struck == "source" else 4
            operator.lose(lost)
            assert operator.moving()
            operator.cluster.start(lost)
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)


def test_deleted_topic(operator: Operator) -> None:
    """A topic deleted midway is named, the other one's move ends as planned, and a new plan can be applied."""
    operator.create_topic("clicks", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    operator.produce("clicks", 3, 3 * MEGABYTE)
    plan = expansion(operator, 3 * MEGABYTE)
    with plan.playbooks.playing("apply", *SLOWLY) as running:
        moving = await_move(operator)
        gone = [name for name in moving if name.startswith("orders-")]
        assert 0 < len(gone) < len(moving)
        operator.admin.delete_topics(["orders"])["orders"].result()
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert [name for name in gone if f"{name} (gone)" not in run.text] == []
    assert "make a new plan from the cluster as it is now" in run.text
    clicks = {name: replicas for name, replicas in plan.replicas.items() if name.startswith("clicks-")}
    assert_unharmed(operator, operator.replicas() | clicks)

    again = operator.plan({"remove_brokers": [4]}, brokers=[1, 2, 3, 4])
    assert 0 == (run := again.playbooks.play("apply")).code, run.output
    assert_unharmed(operator, operator.replicas() | again.replicas)


def test_rollback_in_the_middle_of_a_batch(operator: Operator) -> None:
    """Killed in its second batch, the plan is rolled back: the lists in their order, the leaders, no throttle."""
    plan = expansion(operator, 5 * MEGABYTE, moves_per_broker=1)
    before, led = operator.replicas(), operator.leaders()
    with plan.playbooks.playing("apply", *SLOWLY) as killed:
        await_second_batch(operator)
        killed.kill()
    run = plan.playbooks.play("rollback")
    assert 0 == run.code, run.output
    assert "Cancel what the plan still moves" in run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)


def test_destination_that_stays_away(operator: Operator) -> None:
    """Timed out, the run says what moves and leaves the throttle; rolled back without the dead broker, all is well."""
    plan = expansion(operator, 5 * MEGABYTE, moves_per_broker=1)
    before, led = operator.replicas(), operator.leaders()
    with plan.playbooks.playing("apply", *SLOWLY, "-e", "kafka_reassign_wait_seconds=10") as running:
        moving = await_second_batch(operator)
        operator.lose(4)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Run the playbook again to wait for it, or rollback.yml to go back." in run.text
    assert f"Still moving: {', '.join(moving)}." in run.text
    assert moving == operator.moving()
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle that is left")

    without = ("-e", json.dumps({"kafka_reassign_expected_brokers": [1, 2, 3]}))
    run = plan.playbooks.play("rollback", *without)
    assert 0 == run.code, run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)


def test_cancel_on_failure(operator: Operator) -> None:
    """If asked for, what isn't complete in time is cancelled, be its broker dead; rolling back restores the order."""
    plan = expansion(operator, 4 * MEGABYTE)
    before, led = operator.replicas(), operator.leaders()
    limits = ("-e", "kafka_reassign_wait_seconds=5", "-e", "kafka_reassign_cancel_on_failure=true")
    with plan.playbooks.playing("apply", *SLOWLY, *limits) as running:
        await_move(operator)
        operator.lose(4)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Its moves were cancelled; rollback.yml restores the order of the replicas." in run.text
    assert "a throttle of theirs couldn't be cleared: broker 4. If one comes back, run the playbook again." in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    reordered = operator.replicas()
    assert before != reordered
    assert {name: set(lists) for name, lists in before.items()} == {name: set(to) for name, to in reordered.items()}

    operator.cluster.start(4)
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle of broker 4")
    run = plan.playbooks.play("rollback")
    assert 0 == run.code, run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)
