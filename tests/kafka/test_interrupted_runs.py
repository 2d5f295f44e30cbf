"""A run that is ended at any moment, on a real cluster: the next one ends as planned, with throttles from before."""

from __future__ import annotations

import signal

import pytest
from faults import MEGABYTE, SLOWLY, expansion
from operator_at_work import Operator

# Two for each change; all moments take a quarter of an hour.
MOMENTS = [pytest.param(n, marks=() if n in {4, 7} else pytest.mark.long) for n in range(10)]
TASKS_APART = 5
BEFORE = {
    ("brokers", "2"): "leader.replication.throttled.rate=777000000",
    ("brokers", "6"): "follower.replication.throttled.rate=888",
    ("topics", "quiet"): "leader.replication.throttled.replicas=*",
    ("topics", "orders"): "follower.replication.throttled.replicas=[0:1,2:3]",
}

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_run_ended_at_any_moment_is_resumed(operator: Operator, moment: int, ended_by: signal.Signals) -> None:
    """Ended after so many tasks; run again, it reaches the plan, nothing is lost, and the throttles are put back."""
    plan = expansion(operator, MEGABYTE, moves_per_broker=1)
    operator.create_topic("quiet", [[5, 6]])
    for (kind, name), value in BEFORE.items():
        options = ("--entity-type", kind, "--entity-name", name, "--alter", "--add-config", value)
        operator.cluster.tool("kafka-configs", *options)
    operator.await_true(lambda: len(BEFORE) == len(operator.throttles().splitlines()), "the throttles from before")
    set_before, wanted = operator.throttles(), operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY) as running:
        tasks = 2 + TASKS_APART * moment

        def so_far() -> bool:
            if running.text.count("TASK [") > 20:
                operator.lift_throttle()
            return running.text.count("TASK [") >= tasks or running.process.poll() is not None

        operator.await_true(so_far, f"{tasks} tasks")
        running.process.send_signal(ended_by)
        running.process.wait(60)
    run = plan.playbooks.play("apply")
    assert 0 == run.code, run.output
    assert wanted == operator.replicas()
    assert [] == operator.moving()
    operator.await_equal(set_before, operator.throttles)
    kept = operator.folder / "home" / ".local" / "state" / "kafka_reassign"
    assert [] == list(kept.glob("throttles-*")), run.output
    assert {} == operator.lost()
