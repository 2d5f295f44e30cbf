"""Faults that take long to strike, on a real cluster: no loss, no throttle left, and one sentence says why."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest
from cluster import CONTROLLER
from confluent_kafka.admin import NewTopic
from faults import MEGABYTE, SLOWLY, assert_unharmed, await_move, expansion
from operator_at_work import Operator

pytestmark = [pytest.mark.kafka, pytest.mark.long]

WATCHED = ("-e", "kafka_reassign_guard_seconds=1")


def test_two_brokers_of_a_rack_die(operator: Operator) -> None:
    """A source and the destination die: the run is held, says so, and goes on once both are back."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY, *WATCHED) as running:
        await_move(operator)
        for broker in (1, 4):
            operator.cluster.kill(broker)
        operator.await_true(lambda: "not live: brokers 1, 4" in running.text, "the hold")
        operator.start(1, 4)
        operator.await_true(lambda: "GOES ON, Batch 01 of 1" in running.text, "the end of the hold")
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)


def test_a_hold_begins_within_a_minute(operator: Operator) -> None:
    """With default settings, a run is held within a minute after the destination dies."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY, delay=10) as running:
        await_move(operator)
        operator.cluster.kill(4)
        died = time.monotonic()
        operator.await_true(lambda: "HELD, Batch 01 of 1: not live: broker 4" in running.text, "the hold")
        seconds = time.monotonic() - died
        operator.start(4)
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)
    assert seconds <= 60
    print(f"held {seconds:.0f} s after the death of the destination")  # noqa: T201


def test_a_disk_fills_past_its_limit(operator: Operator) -> None:
    """If a disk passes its limit, the batch is canceled, and the destination deletes what was copied."""
    plan = expansion(operator, 4 * MEGABYTE)
    before = operator.replicas()
    variables = plan.folder / "ansible/roles/kafka_reassign/vars/main/plan.yml"
    limited = variables.read_text().replace(
        "kafka_reassign_disk_limits: {}", "kafka_reassign_disk_limits: {4: 2500000}"
    )
    variables.write_text(limited)
    rate = ("-e", "kafka_reassign_throttle_bytes_per_sec=200000")
    with plan.playbooks.playing("apply", *rate, *WATCHED) as running:
        await_move(operator)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "MB, its limit is 2.5 MB. Its moves were canceled. Run the playbook" in run.text
    assert {name: set(lists) for name, lists in before.items()} == {
        name: set(lists) for name, lists in operator.replicas().items()
    }
    operator.await_true(lambda: 0 == sum(operator.stored(4).values()), "an empty broker 4")
    assert 0 == (run := plan.playbooks.play("rollback")).code, run.output
    assert_unharmed(operator, before)


def test_a_consumer_group_is_behind(operator: Operator) -> None:
    """If a consumer group is further behind than its limit, nothing starts. Within the limit, the plan is applied."""
    plan = expansion(operator, 30)
    wanted = operator.replicas() | plan.replicas
    operator.commit("billing", "orders", 6, 10)
    given = {"kafka_reassign_lag_limits": {"billing": 119}, "kafka_reassign_hold_seconds": 1}
    run = plan.playbooks.play("apply", *WATCHED, "-e", json.dumps(given))
    assert 2 == run.code, run.output
    assert "consumer group billing is 120 records behind, its limit is 119. Nothing of it was started." in run.text
    given["kafka_reassign_lag_limits"] = {"billing": 120}
    assert 0 == (run := plan.playbooks.play("apply", *WATCHED, "-e", json.dumps(given))).code, run.output
    operator.await_moved(wanted)
    operator.await_equal("", operator.throttles)


def test_the_window_closes_in_the_middle_of_a_batch(operator: Operator) -> None:
    """If the window closes during a batch, that batch finishes and no other starts. A later run finishes the plan."""
    plan = expansion(operator, 12 * MEGABYTE, moves_per_broker=1)
    wanted = operator.replicas() | plan.replicas
    now = datetime.now(UTC)
    window = "-".join(each.strftime("%H:%M") for each in (now - timedelta(hours=1), now + timedelta(seconds=90)))
    with plan.playbooks.playing("apply", *SLOWLY, *WATCHED, "-e", f"kafka_reassign_window={window}") as running:
        await_move(operator)
        said = f"then the run stops: outside the maintenance window {window}"
        operator.await_true(lambda: said in running.text, "the end of the window")
        assert operator.moving()
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert f"Stopped before batch 02: outside the maintenance window {window}. Nothing of it was started." in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    assert 0 == (run := plan.playbooks.play("apply")).code, run.output
    assert_unharmed(operator, wanted)


def test_somebody_else_reassigns_between_two_batches(operator: Operator) -> None:
    """The run stops before the next batch and names the partition. Once that move is done, the plan is applied."""
    plan = expansion(operator, 4 * MEGABYTE, moves_per_broker=1)
    operator.create_topic("others", [[5, 2]])
    wanted = operator.replicas() | plan.replicas | {"others-0": [5, 6]}
    with plan.playbooks.playing("apply", *SLOWLY, *WATCHED) as running:
        await_move(operator)
        operator.cluster.processes[6].send_signal(signal.SIGSTOP)  # Copies to broker 6 never complete.
        operator.reassign({"others-0": [5, 6]}, "--additional")
        operator.lose(6)
        operator.await_true(lambda: "reassigned by somebody else: others-0" in running.text, "the word on it")
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Stopped before batch 02: 1 partition reassigned by somebody else: others-0." in run.text
    assert ["others-0"] == operator.moving()
    operator.await_equal("", operator.throttles)
    operator.start(6)
    operator.await_moved({"others-0": [5, 6]})
    assert 0 == (run := plan.playbooks.play("apply")).code, run.output
    assert_unharmed(operator, wanted)


@pytest.mark.parametrize("moment", range(10))
def test_the_controller_restarts_at_any_step(operator: Operator, moment: int) -> None:
    """The controller is killed after some number of tasks and starts again. The run still applies the plan."""
    plan = expansion(operator, moves_per_broker=1)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply") as running:
        tasks = 2 + 5 * moment
        operator.await_true(
            lambda: running.text.count("TASK [") >= tasks or running.process.poll() is not None, f"{tasks} tasks"
        )
        operator.cluster.kill(CONTROLLER)
        operator.start(CONTROLLER)
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)


def test_a_thousand_topics_in_a_batch(operator: Operator) -> None:
    """For a batch of a thousand topics, the run starts Kafka's tools at most six times."""
    names = [f"t{number:04}" for number in range(1_000)]
    made = [NewTopic(name, 1, replica_assignment=[[1]]) for name in names]
    for future in operator.admin.create_topics(made, operation_timeout=120, request_timeout=120).values():
        future.result(120)
    operator.await_true(lambda: len(names) == len(operator.replicas()), "the topics")
    limits = {"elections": "none", "duration": "none"}
    plan = operator.plan(
        {"remove_brokers": [1], "add_brokers": [{"id": 4, "rack": "r0"}]},
        brokers=[1, 2, 3],
        execution={"throttle": "100MB/s", "batches": limits},
    )
    wanted = operator.replicas() | plan.replicas
    started = time.monotonic()
    run = plan.playbooks.play("apply")
    seconds = time.monotonic() - started
    assert 0 == run.code, run.output
    operator.await_equal(wanted, operator.replicas)
    operator.await_equal("", operator.throttles)
    [said] = [line for line in run.output.splitlines() if "Kafka's tools were started" in line]
    assert int(said.partition("were started ")[2].partition(" ")[0]) <= 6
    print(f"{len(plan.replicas)} partitions of as many topics: {seconds:.0f} s in all; {said}")  # noqa: T201
