"""The change during which faults strike (broker 4 joins three brokers), and the checks after each fault."""

from __future__ import annotations

from operator_at_work import Lists, Operator, Plan
from playbooks import Run

# At this throttle Kafka copies a megabyte of each partition every eleven seconds, so larger partitions keep moving.
SLOWLY = ("-e", "kafka_reassign_throttle_bytes_per_sec=1")
MEGABYTE = 1_000  # records


def expansion(operator: Operator, records: int = 10, **batches: int) -> Plan:
    """Six partitions on brokers 1 to 3. Half of them move from broker 1 to broker 4, by default in one batch."""
    operator.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2)
    operator.produce("orders", 6, records)
    execution = {"throttle": "100MB/s", "batches": batches}
    return operator.plan({"add_brokers": [{"id": 4, "rack": "r0"}]}, brokers=[1, 2, 3], execution=execution)


def await_move(operator: Operator, *past: str) -> list[str]:
    """Wait until partitions other than the `past` ones move. Return their names."""
    found: list[str] = []
    operator.await_true(lambda: bool(found.extend(operator.moving()) or set(found) - set(past)), "a batch that moves")
    return found


def await_second_batch(operator: Operator) -> list[str]:
    """Let the first batch finish quickly, and wait for the second one. Return its partitions."""
    first = await_move(operator)
    operator.lift_throttle()
    return [name for name in await_move(operator, *first) if name not in first]


def assert_refused(operator: Operator, run: Run, before: Lists, *messages: str) -> None:
    """Assert that the run says why it stopped, and that nothing has changed."""
    assert 2 == run.code, run.output
    for message in messages:
        assert message in run.text, run.output
    assert before == operator.replicas()
    assert {} == operator.lost()


def assert_unharmed(operator: Operator, replicas: Lists) -> None:
    """Assert these replica lists, all replicas in sync, every record there, no reassignment and no throttle."""
    operator.await_equal(replicas, operator.replicas)
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    operator.await_true(operator.in_sync, "replicas in sync")
    assert {} == operator.lost()
