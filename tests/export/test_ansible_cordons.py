"""The playbooks cordon brokers that leave. Real Ansible runs them against stand-ins for Kafka's tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_ansible import ORIGIN, TARGET, Site, plan, said, staged

pytestmark = pytest.mark.ansible

# The plan removes broker 9.
ON = "Broker 9 is cordoned: no new topic gets a replica there."
OFF = "Broker 9 is no longer cordoned by this plan."


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, plan)


def test_apply_cordons_first_and_rollback_undoes_it(site: Site) -> None:
    """Apply cordons before it moves, and a second apply changes nothing. Rollback removes the cordon."""
    assert "Broker 9 would be cordoned" in (trial := site.play("apply", "--check")).text, trial.output
    assert {} == site.cluster["cordons"]

    first = site.play("apply")
    assert (0, {"9": "*"}, TARGET) == (first.code, site.cluster["cordons"], site.replicas()), first.output
    tools = [call for call in site.cluster["calls"] if "--add-config" in call or "--execute" in call]
    assert [["kafka-configs", "kafka-reassign-partitions"]] == [[tool for tool, *_ in tools[:2]]]
    assert ON in said(site)
    again = site.play("apply")
    assert (0, 0) == (again.code, again.changed), again.output
    assert 0 == (verified := site.play("verify")).code, verified.output
    assert {"9": "*"} == site.cluster["cordons"]

    back = site.play("rollback")
    assert (0, {}, ORIGIN) == (back.code, site.cluster["cordons"], site.replicas()), back.output
    assert OFF in back.text
    assert (0, 0) == ((again := site.play("rollback")).code, again.changed), again.output


def test_what_was_cordoned_before_stays_so(site: Site) -> None:
    """If the broker was cordoned before the plan, neither apply nor rollback changes that."""
    site.set_cluster(cordons={"9": "*"})
    for playbook in ("apply", "rollback"):
        run = site.play(playbook)
        assert (0, {"9": "*"}) == (run.code, site.cluster["cordons"]), run.output
        assert not [line for line in (ON, OFF) if line in run.text], run.output


@pytest.mark.parametrize("setting", [True, False])
def test_without_cordons_the_plan_is_applied_all_the_same(site: Site, setting: bool) -> None:
    """On an older Kafka, the run says so once and goes on. With kafka_reassign_cordon off, it doesn't even ask."""
    site.set_cluster(cordons=None)

    run = site.play("apply", "-e", f"kafka_reassign_cordon={str(setting).lower()}")

    assert (0, TARGET) == (run.code, site.replicas()), run.output
    assert setting == ("Broker 9 can't be cordoned, which needs Kafka 4.3" in run.text)
    assert setting == (0 < site.calls("--all"))


def test_a_broker_that_is_cordoned_later_gets_no_replica(site: Site) -> None:
    """A batch that would add replicas to a cordoned broker is held. A rollback, and a reaction, go on."""
    site.set_cluster(cordons={"4": "*"})
    soon = ("-e", "kafka_reassign_hold_seconds=1", "-e", "kafka_reassign_guard_seconds=1")
    held = site.play("apply", *soon)
    assert (2, 0, ORIGIN) == (held.code, site.calls("--execute"), site.replicas()), held.output
    said_of_it = "HELD, Before batch 01: broker 4 is cordoned, and the batch would add replicas there. Nothing of it"
    assert said_of_it in held.text

    assert 0 == site.play("apply", "-e", '{"kafka_reassign_reactions": {"cordoned": "ignore"}}').code
    site.set_cluster(cordons={"1": "*", "4": "*", "9": "*"})
    stuck = site.play("rollback", *soon, "-e", '{"kafka_reassign_guard_command": ["false"]}')
    assert "ends with exit code 1. Run the playbook again to go on. The run ended after" in stuck.text, stuck.output
    back = site.play("rollback", *soon)
    assert (0, ORIGIN) == (back.code, site.replicas()), back.output
