"""Log dirs on a real cluster: plans move replicas inside brokers, and put new replicas into planned log dirs."""

from __future__ import annotations

import pytest
from loop import State, apply, play, roll_back
from operator_at_work import Operator, Plan

pytestmark = pytest.mark.kafka

Where = dict[tuple[str, int], str]


def where(operator: Operator) -> Where:
    """The log dir of each replica, by partition and broker, as the brokers' disks show it."""
    return {
        (folder.name, broker): str(log_dir)
        for broker in operator.cluster.racks
        for log_dir in operator.cluster.log_dirs(broker)
        for folder in log_dir.glob("[!_]*-*[0-9]")
        if "." not in folder.name
    }


def planned(plan: Plan, key: str, lists: str) -> Where:
    """The log dirs that the plan names, for the brokers of a list, by partition and broker."""
    return {
        (f"{row['topic']}-{row['partition']}", broker): path
        for row in plan.document["partitions"]
        for broker, path in zip(row[lists], row[key], strict=True)
        if path != "any"
    }


def fill_unevenly(operator: Operator, lists: list[list[int]], records: int) -> None:
    """Topics of one partition each. Broker 1 has much more data in one of its log dirs than in the other."""
    for number, replicas in enumerate(lists):
        operator.create_topic(f"t{number}", [replicas])
    found = where(operator)
    crowded = found["t0-0", 1]
    for number in range(len(lists)):
        operator.produce(f"t{number}", 1, records if found.get((f"t{number}-0", 1)) == crowded else 10)


def no_throttle(operator: Operator, broker: int) -> bool:
    """Whether no throttle between log dirs is left."""
    options = ("--describe", "--entity-type", "brokers", "--entity-name", broker)
    return "replica.alter.log.dirs" not in operator.cluster.tool("kafka-configs", *options)


def test_moves_inside_brokers_alone(operator: Operator) -> None:
    """With `rebalance: none`, replicas only move between log dirs of a broker. A rollback moves them back."""
    fill_unevenly(operator, [[1, 2], [1, 3]] * 4, 2000)
    before = where(operator)
    plan = operator.plan(
        {"rebalance": "none"}, brokers=[1, 2, 3], balance={"log_dirs": "30%"}, execution={"throttle": "50MB/s"}
    )

    assert 0 == plan.bytes_moved < plan.document["log_dirs"]["bytes_moved"]
    state = apply(operator, plan, checked=True)
    assert before | planned(plan, "log_dirs", "replicas") == where(operator)
    assert no_throttle(operator, 1)
    play(plan, "verify", changes=False)
    roll_back(operator, plan, state)
    assert before == where(operator)
    assert no_throttle(operator, 1)


def test_new_replicas_in_their_log_dirs(operator: Operator) -> None:
    """A new broker's replicas are in the planned log dirs. A rollback puts replicas into their old log dirs."""
    fill_unevenly(operator, [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2, 1000)
    before = where(operator)
    joins = {"add_brokers": [{"id": 4, "rack": operator.cluster.racks[4]}]}
    execution = {"throttle": "50MB/s", "batches": {"moves_per_broker": 2}}
    plan = operator.plan(joins, brokers=[1, 2, 3], balance={"log_dirs": "40%"}, execution=execution)
    state = apply(operator, plan)

    come = planned(plan, "log_dirs", "replicas")
    assert 4 in {broker for _, broker in come}
    assert come == {key: path for key, path in where(operator).items() if key in come}
    assert State.of(operator).replicas | plan.replicas == State.of(operator).replicas
    roll_back(operator, plan, state)
    assert set() == set(before) - set(where(operator))
    assert planned(plan, "log_dirs_before", "replicas_before").items() <= where(operator).items()


def test_a_log_dir_that_is_not_there_stops_the_plan(operator: Operator) -> None:
    """The run stops if a planned log dir is missing. Kafka would start the reassignment and fail only then."""
    fill_unevenly(operator, [[1, 2], [1, 3]] * 4, 2000)
    plan = operator.plan({"rebalance": "none"}, brokers=[1, 2, 3], balance={"log_dirs": "30%"})
    before = where(operator)
    variables = plan.folder / "ansible/roles/kafka_reassign/vars/main/plan.yml"
    text = variables.read_text()
    assert '/d1"' in text or '/d2"' in text
    variables.write_text(text.replace('/d1"', '/d1x"').replace('/d2"', '/d2x"'))
    run = plan.playbooks.play("apply")

    assert 2 == run.code
    assert "aren't there, or have an error. Nothing was started; repair them" in run.text
    assert before == where(operator)


def test_another_rate_for_what_an_interrupted_run_left_moving(operator: Operator) -> None:
    """Moves between log dirs, which --list doesn't show, get the next run's rate after a killed run."""
    fill_unevenly(operator, [[1, 2], [1, 3]] * 4, 6000)
    plan = operator.plan(
        {"rebalance": "none"}, brokers=[1, 2, 3], balance={"log_dirs": "30%"}, execution={"throttle": "50MB/s"}
    )

    def moves_inside() -> bool:
        return any(list(log_dir.glob("*-future")) for log_dir in operator.cluster.log_dirs(1))

    with plan.playbooks.playing("apply", "-e", "kafka_reassign_throttle_bytes_per_sec=1000"):
        operator.await_true(moves_inside, "a move inside broker 1")
    # At the first rate, six megabytes would take an hour and a half.
    run = plan.playbooks.play("apply", "-e", "kafka_reassign_wait_seconds=60")
    assert 0 == run.code, run.output
    assert "The throttle is 50000000 bytes per second from now on." in run.text
    assert planned(plan, "log_dirs", "replicas").items() <= where(operator).items()
    assert no_throttle(operator, 1)
