"""The whole way on a real cluster: state captured, planned, applied, applied again, rolled back."""

from __future__ import annotations

import pytest
from operator_at_work import Operator

pytestmark = pytest.mark.kafka


def test_expansion(operator: Operator) -> None:
    """Three brokers become six: the cluster is the plan's to the last replica, no record is lost, and back again."""
    operator.create_topic("orders", [[1 + p % 3, 1 + (p + 1) % 3] for p in range(12)])
    operator.create_topic("clicks.v-1", [[1 + p % 3, 1 + (p + 1) % 3, 1 + (p + 2) % 3] for p in range(6)])
    operator.produce("orders", 12, 1000)
    operator.produce("clicks.v-1", 6, 1000)
    before, led = operator.replicas(), operator.leaders()
    added = [{"id": broker, "rack": operator.cluster.racks[broker]} for broker in (4, 5, 6)]
    plan = operator.plan({"add_brokers": added}, brokers=[1, 2, 3], execution={"batches": {"bytes": "10MB"}})

    assert (0, True) == ((check := plan.playbooks.play("apply", "--check")).code, check.changed > 0), check.output
    assert (before, led) == (operator.replicas(), operator.leaders())
    applied = plan.playbooks.play("apply")
    assert 0 == applied.code, applied.output
    wanted = before | plan.replicas
    assert wanted == operator.replicas()
    assert {name: replicas[0] for name, replicas in wanted.items()} == operator.leaders()
    assert {} == operator.lost()

    for mode in ([], ["--check"]):
        again = plan.playbooks.play("apply", *mode)
        assert (0, 0) == (again.code, again.changed), again.output

    back = plan.playbooks.play("rollback")
    assert 0 == back.code, back.output
    assert (before, led) == (operator.replicas(), operator.leaders())
    assert {} == operator.lost()
    assert "" == operator.throttles()
