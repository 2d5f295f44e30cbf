"""The commands of docs/apply.md and docs/tutorial.md, typed as they stand there, on a real cluster."""

from __future__ import annotations

import os
import subprocess

import pytest
from docs_pages import ROOT, commands, missing
from loop import State, assert_as_planned, assert_well
from operator_at_work import Operator
from test_loop import added, fill, ring

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("page", ["apply", "tutorial"])
def test_a_page_carries_a_plan_out_and_back(page: str, operator: Operator) -> None:
    """A plan is looked at, carried out, verified and rolled back by the page's own lines."""
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
