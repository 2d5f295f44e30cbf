"""A full disk is relieved on a real cluster: so many bytes leave the broker, as many are copied, nothing else moves."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from operator_at_work import Operator, Plan

from planner.cli.commands import commands

pytestmark = pytest.mark.kafka

FREED = 1_000_000


def test_a_broker_holds_as_much_less_as_was_asked(operator: Operator) -> None:
    """Carried out like any plan, and taken back."""
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
