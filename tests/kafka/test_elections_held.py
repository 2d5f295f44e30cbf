"""On a real cluster, a run is held before a batch that elects leaders and moves nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from operator_at_work import Operator, Plan

pytestmark = pytest.mark.kafka

WATCHED = ("-e", "kafka_reassign_guard_seconds=1")


@dataclass(frozen=True)
class Pause:
    """A guard command that waits until `go` exists, and then passes. It delays the check before the first batch."""

    asked: Path
    go: Path

    @property
    def options(self) -> tuple[str, ...]:
        """The options that give the command to a playbook."""
        command = ["sh", "-c", f"touch {self.asked}; until [ -e {self.go} ]; do sleep 0.2; done"]
        return "-e", json.dumps({"kafka_reassign_guard_command": command})


@pytest.fixture
def pause(operator: Operator) -> Pause:
    """A pause whose files are in the operator's folder."""
    return Pause(operator.folder / "asked", operator.folder / "go")


def elections(operator: Operator) -> Plan:
    """A plan of two batches, with one election each, after a crash. Another topic is on other brokers."""
    operator.create_topic("led", [[2, 3, 4], [3, 4, 2], [4, 2, 3]] * 2)
    operator.produce("led", 6, 10)
    operator.crash(2)
    plan = operator.plan({"rebalance": "leaders"}, brokers=[2, 3, 4], execution={"batches": {"elections": 1}})
    assert 2 == len(plan.document["batches"])
    operator.create_topic("others", [[5, 6]])
    return plan


def test_somebody_elses_partition_holds_elections_until_it_is_in_sync(operator: Operator, pause: Pause) -> None:
    """An under-replicated partition of a topic outside of the plan holds elections; they go on once it is in sync."""
    plan = elections(operator)
    preferred = {name: replicas[0] for name, replicas in operator.replicas().items()}
    with plan.playbooks.playing("apply", *WATCHED, *pause.options) as running:
        operator.await_true(pause.asked.exists, "the look before the first batch")
        operator.cluster.kill(6)
        operator.await_true(lambda: [5] == operator.isrs()["others-0"], "a partition out of sync")
        pause.go.touch()
        held = "HELD, Before the elections of batch 02: 1 partition under-replicated: others-0. "
        operator.await_true(lambda: held in running.text, "the hold")
        operator.await_equal(1, lambda: sum(leader != preferred[name] for name, leader in operator.leaders().items()))
        operator.start(6)
        run = running.wait()
    assert 0 == run.code, run.output
    assert 1 == run.text.count("HELD, ")
    assert (
        "GOES ON, Before the elections of batch 02, no longer held: 1 partition under-replicated: others-0." in run.text
    )
    operator.await_equal(preferred, operator.leaders)
    assert {} == operator.lost()


def test_a_dead_broker_stops_elections_and_the_next_run_resumes(operator: Operator, pause: Pause) -> None:
    """If a broker isn't back within the hold, the run stops and says why. The next run elects the other leader."""
    plan = elections(operator)
    given = (*WATCHED, *pause.options, "-e", "kafka_reassign_hold_seconds=4")
    with plan.playbooks.playing("apply", *given) as running:
        operator.await_true(pause.asked.exists, "the look before the first batch")
        operator.lose(4)
        pause.go.touch()
        run = running.wait()
    assert 2 == run.code, run.output
    assert "HELD, Before the elections of batch 02: not live: broker 4. " in run.text
    assert "Stopped before the elections of batch 02: held for " in run.text
    assert "None of them was started. Run the playbook again to go on, or rollback.yml to go back." in run.text
    operator.await_equal({"led-0": 2, "led-3": 3}, lambda: led(operator))
    operator.start(4)
    operator.await_true(operator.in_sync, "broker 4 to be back")

    assert 0 == (run := plan.playbooks.play("apply", *given)).code, run.output
    operator.await_equal({"led-0": 2, "led-3": 2}, lambda: led(operator))
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    assert {} == operator.lost()


def led(operator: Operator) -> dict[str, int]:
    """The leaders of the partitions that the plan elects."""
    return {name: operator.leaders()[name] for name in ("led-0", "led-3")}
