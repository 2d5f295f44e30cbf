"""The folder of a plan is replaced while its playbook runs: nothing that wasn't reviewed is executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playbooks import Run
from test_ansible import ORIGIN, STEP, TARGET, Site, plan, staged

pytestmark = pytest.mark.ansible

CHANGED = "isn't the file that was planned and reviewed: it was changed after the run had begun, so it isn't used."


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, plan)


def exchanged(site: Site, playbook: str, hook: str, batch: str, one: str, other: str) -> Run:
    """Run a playbook during which the folder's files `one` and `other` are exchanged at a batch, and put them back."""
    files = site.folder / "ansible" / "roles" / "kafka_reassign" / "files"
    moves = ((one, "kept"), (other, one), ("kept", other))
    tasks = [
        {
            "name": "Exchange two files",
            "ansible.builtin.command": {"argv": ["mv", str(files / was), str(files / now)]},
            "when": f"kafka_reassign_event.batch == '{batch}'",
        }
        for was, now in moves
    ]
    (site.folder.parent / "exchange.yml").write_text(json.dumps(tasks))
    given = {f"kafka_reassign_{hook}": str(site.folder.parent / "exchange.yml")}
    run = site.play(playbook, "-e", json.dumps(given))
    for was, now in moves:
        (files / was).rename(files / now)
    return run


def test_a_batch_that_was_replaced_is_not_started(site: Site) -> None:
    """apply.yml stops before a batch whose file is another one than at the start, and can go on with the file."""
    run = exchanged(site, "apply", "after_batch", "01", "batches/01/reassignment.json", "batches/02/reassignment.json")
    assert (2, 1, STEP) == (run.code, site.calls("--execute"), site.replicas()), run.output
    assert f"batches/02/reassignment.json {CHANGED} Put the reviewed files back. Run the playbook again" in run.text
    assert None is site.cluster["throttle"]
    assert 0 == (again := site.play("apply")).code, again.output
    assert TARGET == site.replicas()


def test_a_batch_that_was_replaced_is_not_rolled_back(site: Site) -> None:
    """rollback.yml doesn't start a batch whose file is another one than at its start."""
    assert 0 == (run := site.play("apply")).code, run.output
    started = site.calls("--execute")
    run = exchanged(site, "rollback", "after_batch", "02", "batches/01/rollback.json", "batches/02/rollback.json")
    assert (2, started + 1, STEP) == (run.code, site.calls("--execute"), site.replicas()), run.output
    assert f"batches/01/rollback.json {CHANGED}" in run.text
    assert 0 == (again := site.play("rollback")).code, again.output
    assert ORIGIN == site.replicas()


def test_elections_that_were_replaced_are_not_started(site: Site) -> None:
    """A batch's elections aren't started if their file is another one than at the start."""
    names = (f"batches/{number}/preferred-replica.json" for number in ("02", "03"))
    run = exchanged(site, "apply", "after_batch", "02", *names)
    assert (2, 2, 3) == (run.code, site.leaders()["a-1"], site.leaders()["b-0"]), run.output
    assert f"batches/02/preferred-replica.json {CHANGED}" in run.text
    assert 0 == (again := site.play("apply")).code, again.output
    assert (3, 2) == (site.leaders()["a-1"], site.leaders()["b-0"])
