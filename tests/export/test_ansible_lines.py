"""Every supported line of ansible-core applies a plan and rolls it back. Real Ansible, stand-ins for Kafka's tools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import ansible_lines
import pytest
from test_ansible import ORIGIN, TARGET, plan, staged

pytestmark = pytest.mark.ansible


def test_a_plan_is_applied_and_rolled_back(programs: Path, tmp_path: Path) -> None:
    """A run is held, reports that, goes on, and stops after its first batch. Later, apply and rollback complete."""
    site = staged(tmp_path, plan)
    playbooks = replace(site.playbooks, programs=programs)
    told, flag = tmp_path / "told.yml", tmp_path / "flag"
    told.write_text("- name: Tell\n  ansible.builtin.debug:\n    msg: I was told {{ kafka_reassign_event.said }}\n")
    settings = {
        "kafka_reassign_on_hold": str(told),
        "kafka_reassign_guard_command": ["sh", "-c", f"test -e {flag} || {{ touch {flag}; exit 1; }}"],
        "kafka_reassign_guard_seconds": 1,
        "kafka_reassign_batches_at_most": 1,
    }
    run = playbooks.play("apply", "-e", json.dumps(settings))
    assert (2, 1) == (run.code, site.calls("--execute")), run.output
    assert "I was told the guard command ends with exit code 1" in run.text
    assert "Stopped before batch 02: this run has started as many batches as it may." in run.text
    run = playbooks.play("apply", "--check")
    assert (0, 1) == (run.code, site.calls("--execute")), run.output
    assert 1 <= run.changed
    run = playbooks.play("apply")
    assert (0, TARGET) == (run.code, site.replicas()), run.output
    run = playbooks.play("rollback")
    assert (0, ORIGIN) == (run.code, site.replicas()), run.output


def test_the_admin_host_may_have_an_old_python(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The role's module runs on the oldest Python that the oldest line of ansible-core supports."""
    line = ansible_lines.LINES[0]
    programs = ansible_lines.programs(line, request.config.cache.mkdir(f"ansible-core-{line.release}"))
    site = staged(tmp_path, plan)
    playbooks = replace(site.playbooks, programs=programs)
    python = f"ansible_python_interpreter={ansible_lines.oldest_on_a_host()}"
    assert (0, TARGET) == ((run := playbooks.play("apply", "-e", python)).code, site.replicas()), run.output
    assert (0, ORIGIN) == ((run := playbooks.play("rollback", "-e", python)).code, site.replicas()), run.output
