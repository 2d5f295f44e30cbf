"""Plans that expire. Real Ansible runs them against stand-ins for Kafka's tools, with the real clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from plan_documents import Document
from test_ansible import TARGET, at, plan, staged

from planner.plan.build import validity
from planner.plan.document.codec import as_json

pytestmark = pytest.mark.ansible


def ending(captured_at: str, seconds: int) -> Document:
    """The part of a plan that limits its validity to that many seconds."""
    return {"validity": as_json(validity(captured_at, seconds))}


def test_an_expired_plan_is_not_applied_but_rolled_back(tmp_path: Path) -> None:
    """The first task of apply refuses an expired plan, before any tool is called. Rollback still works."""
    site = staged(tmp_path, lambda bin_dir: plan(bin_dir) | ending("2020-01-01T00:00:00Z", 3600))
    before = site.cluster

    late = site.play("apply")

    assert 2 == late.code, late.output
    assert "was valid until 2020-01-01T01:00:00Z, now it is 20" in late.text
    assert "Nothing was started" in late.text
    assert before == site.cluster
    site.set_cluster(partitions=at(TARGET))
    back = site.play("rollback")
    assert 0 == back.code, back.output


def test_a_plan_that_has_not_expired_is_applied(tmp_path: Path) -> None:
    """Long before the plan expires, the check passes."""
    site = staged(tmp_path, lambda bin_dir: plan(bin_dir) | ending("2020-01-01T00:00:00Z", 3600 * 24 * 365 * 500))

    run = site.play("apply", "--tags", "precheck")

    assert 0 == run.code, run.output
    assert "Require a plan that hasn't expired" in run.output
