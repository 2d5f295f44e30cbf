"""Runs the commands of docs/apply.md, docs/tutorial.md and docs/restart.md as written, on a real cluster."""

from __future__ import annotations

import os
import subprocess

import pytest
from docs_pages import ROOT, commands, missing
from loop import State, assert_as_planned, assert_well
from operator_at_work import Operator, Plan
from test_loop import added, fill, ring
from test_rolling_restart import SPREAD, Restarts, made

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("page", ["apply", "tutorial"])
def test_a_page_carries_a_plan_out_and_back(page: str, operator: Operator) -> None:
    """The page's commands check, apply, verify and roll back a plan, and print what the page shows."""
    fill(operator, {"orders": ring([1, 2, 3], 6, 2)})
    plan = operator.plan({"add_brokers": added(operator, 4)}, brokers=[1, 2, 3])
    (operator.folder / "expand.plan").symlink_to(plan.folder)
    plan.playbooks.set_host_vars()
    before = State.of(operator)
    *steps, back = [each for each in commands(ROOT / "docs" / f"{page}.md") if each.where == "on a cluster"]

    for command in steps:
        assert [] == missing(command, _typed(command.script, operator, plan))
    assert_as_planned(operator, plan, before)
    assert [] == missing(back, _typed(back.script, operator, plan))
    operator.await_equal(before, lambda: State.of(operator))
    assert_well(operator)


def test_a_page_restarts_the_brokers(operator: Operator) -> None:
    """The page's command restarts all six brokers, with tasks in the place that the page names."""
    operator.create_topic("orders", SPREAD, min_insync_replicas="2")
    operator.await_true(operator.in_sync, "all in sync")
    _, document = made(operator)
    plan = Plan(operator.folder / "restart", document)
    (operator.folder / "orders.restart").symlink_to(plan.folder)
    plan.playbooks.set_host_vars()
    [command] = [each for each in commands(ROOT / "docs" / "restart.md") if each.where == "on a cluster"]

    restarts = Restarts(operator)
    with restarts.obeyed() as tasks:
        (operator.folder / "home").mkdir(exist_ok=True)
        (operator.folder / "home" / "restart-tasks.yml").symlink_to(tasks)
        assert [] == missing(command, _typed(command.script, operator, plan))
    assert [[1, 4], [2, 5], [3, 6]] == [brokers for brokers, _, _ in restarts.done]


def _typed(script, operator, plan) -> str:
    environment = plan.playbooks.environment()
    environment["PATH"] = f"{operator.cluster.bin_dir}{os.pathsep}{environment['PATH']}"
    environment["BOOTSTRAP"] = ",".join(operator.cluster.bootstrap_servers)
    ran = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=operator.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert 0 == ran.returncode, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
