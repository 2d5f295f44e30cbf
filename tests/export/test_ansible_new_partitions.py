"""The playbooks create new partitions. Real Ansible runs them against stand-ins for Kafka's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plan_documents import Document, new_partitions
from test_ansible import ORIGIN, TARGET, Site, at, plan, said, staged

pytestmark = pytest.mark.ansible

CREATED = {"n.1-0": [1, 2], "n.1-1": [2, 4]}
ADDED = {"b-1": [4, 2], "b-2": [3, 4]}
CONFIG = {"cleanup.policy": "compact", "x": "{{ 1 + 1 }} '$(id)'"}


def made(topic: str, before: int, lists: dict[str, list[int]], old: str = "", **rest: Any) -> Document:
    """One topic of a plan's `new_partitions`."""
    new = [replicas for name, replicas in lists.items() if name.startswith(topic)]
    texts = [*([old] if old else []), *(":".join(map(str, replicas)) for replicas in new)]
    return {
        "topic": topic,
        "partitions_before": before,
        "partitions": before + len(new),
        "replication_factor": 2,
        "config": {},
        "replicas": new,
        "replica_assignment": ",".join(texts),
    } | rest


def with_new(bin_dir: Path) -> Document:
    """The plan of test_ansible, which also creates a topic and adds partitions to `b`."""
    topics = [made("b", 1, ADDED, "2:3"), made("n.1", 0, CREATED, config=CONFIG)]
    return plan(bin_dir) | {"new_partitions": new_partitions(*topics)}


def altered(site: Site) -> int:
    """How often partitions were added to a topic."""
    return sum(call[0] == "kafka-topics" and "--alter" in call for call in site.cluster["calls"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """The plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, with_new)


def test_lint(site: Site) -> None:
    """ansible-lint's production profile also finds nothing in plans with new partitions."""
    ended = site.playbooks.tool("ansible-lint", "--profile", "production", "--offline")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_apply_and_apply_again(site: Site) -> None:
    """The topic is created with its configuration, the partitions are added, and a second run changes nothing."""
    first = site.play("apply")
    assert (0, 7) == (first.code, first.changed), first.output
    assert TARGET | CREATED | ADDED == site.replicas()
    assert {"n.1": "cleanup.policy=compact,x={{ 1 + 1 }} '$(id)'"} == site.cluster["configs"]
    second = site.play("apply")
    assert (0, 0) == (second.code, second.changed), second.output
    assert (1, 1) == (site.calls("--create"), altered(site))


def test_topic_that_is_there_as_planned_is_left_alone(site: Site) -> None:
    """If an earlier run already created the topic, the next run does only the rest."""
    site.set_cluster(partitions=site.cluster["partitions"] | at(CREATED))
    run = site.play("apply", "--tags", "create")
    assert (0, 1) == (run.code, run.changed), run.output
    assert ORIGIN | CREATED | ADDED == site.replicas()
    assert (0, 1) == (site.calls("--create"), altered(site))


def test_a_run_that_may_not_begin_creates_nothing(site: Site, tmp_path: Path) -> None:
    """Outside the window, or if the stop file exists, no topic is created either; --tags create asks the same."""
    (stop := tmp_path / "stop").touch()
    for given in ((), ("--tags", "create")):
        run = site.play("apply", "-e", f"kafka_reassign_stop_file={stop}", *given)
        assert (2, 0) == (run.code, run.changed), run.output
        assert f"Stopped before anything was changed: the stop file {stop} exists. Run the playbook again" in run.text
    assert (0, 0, ORIGIN) == (site.calls("--create"), altered(site), site.replicas())
    assert any(line.startswith("The run stopped before the first batch: the stop file") for line in said(site))
    stop.unlink()
    assert 0 == (run := site.play("apply", "-e", f"kafka_reassign_stop_file={stop}")).code, run.output


def test_what_kafka_refuses_to_create_is_told(site: Site) -> None:
    """The last lines and the journal say which topic Kafka refused to create, and why. Nothing moves."""
    site.set_cluster(partitions=site.cluster["partitions"] | at({"n_1-0": [1, 2]}))
    run = site.play("apply")
    assert (2, ORIGIN | {"n_1-0": [1, 2]}) == (run.code, site.replicas()), run.output
    reason = (
        "New partitions were not made, of topic n.1: Topic 'n.1' collides with existing topic: n_1. Run the playbook"
    )
    assert f"The run stopped before the first batch: {reason} again" in run.text
    assert any(reason in line for line in said(site))
    site.set_cluster(partitions=at(ORIGIN), failing={"kafka-topics --create": 1})
    assert "were not made, of topic n.1: Error: kafka-topics fails. Run" in site.play("apply").text


def test_a_dot_in_the_name_stands_for_itself(tmp_path: Path) -> None:
    """Kafka takes the topic of --alter as a regular expression: only the plan's topic gets partitions."""
    lists = {"o.1-1": [4, 2]}
    site = staged(
        tmp_path, lambda tools: plan(tools) | {"new_partitions": new_partitions(made("o.1", 1, lists, "1:2"))}
    )
    there = {"o.1-0": [1, 2], "o-1-0": [1, 2], "o11-0": [2, 1]}
    site.set_cluster(partitions=site.cluster["partitions"] | at(there))
    run = site.play("apply", "--tags", "create")
    assert (0, 1) == (run.code, run.changed), run.output
    assert ORIGIN | there | lists == site.replicas()


@pytest.mark.parametrize("there", [{"n.1-0": [1, 2], "n.1-1": [4, 2]}, {"n.1-0": [1, 2]}, {"b-1": [4, 2]}])
def test_partitions_made_otherwise_stop_the_play(site: Site, there: dict[str, list[int]]) -> None:
    """If replicas or the number of partitions differ from the plan, nothing is created and nothing moves."""
    site.set_cluster(partitions=site.cluster["partitions"] | at(there))
    run = site.play("apply")
    assert 2 == run.code, run.output
    assert f"The topics are {next(iter(there)).rpartition('-')[0]}" in run.text
    assert ORIGIN | there == site.replicas()


def test_verify_wants_them(site: Site) -> None:
    """verify.yml fails as long as new partitions are missing, even if all else is reached."""
    site.set_cluster(partitions=at(TARGET | CREATED))
    early = site.play("verify")
    assert 2 == early.code, early.output
    assert "New partitions don't exist as planned. The topics are b" in early.text
    site.set_cluster(partitions=at(TARGET | CREATED | ADDED))
    late = site.play("verify")
    assert (0, 0) == (late.code, late.changed), late.output


def emptying(bin_dir: Path) -> Document:
    """The plan of test_ansible, with broker 9 empty afterwards."""
    made = plan(bin_dir)
    nothing = {"replicas": 0, "leaders": 0, "size_bytes": 0, "network_in": None, "network_out": None}
    return made | {"brokers": [row | ({"after": nothing} if row["id"] == 9 else {}) for row in made["brokers"]]}


def test_a_broker_that_leaves_has_a_partition_that_the_plan_does_not_know(tmp_path: Path) -> None:
    """If somebody created a partition on a leaving broker, apply does all else, and both runs say not to stop it."""
    site = staged(tmp_path, emptying)
    site.set_cluster(partitions=site.cluster["partitions"] | at({"c-0": [9, 1]}))
    run = site.play("apply")
    assert (2, TARGET | {"c-0": [9, 1]}) == (run.code, site.replicas()), run.output
    reason = "but broker 9 isn't empty: the plan doesn't have c-0 (replicas 9,1). Don't stop the broker; capture the"
    assert reason in run.text
    assert any(line.startswith("The run stopped at batch 03") and reason in line for line in said(site))
    late = site.play("verify")
    assert (2, True) == (late.code, reason in late.text), late.output
    site.set_cluster(partitions=at(TARGET))
    assert 0 == (well := site.play("verify")).code, well.output


def test_a_rollback_says_what_stays_on_a_broker_that_the_plan_added(site: Site) -> None:
    """New partitions that a rollback leaves on an added broker are named, by verify.yml too."""
    assert 0 == (run := site.play("apply")).code, run.output
    back = site.play("rollback")
    assert (0, ORIGIN | CREATED | ADDED) == (back.code, site.replicas()), back.output
    reason = "Brokers that the plan added aren't empty. Don't stop them before a new plan removes them. They have"
    rows = "b-1 (replicas 4,2), b-2 (replicas 3,4), n.1-1 (replicas 2,4)."
    late = site.play("verify", "-e", "kafka_reassign_direction=rollback")
    assert (0, 0) == (late.code, late.changed), late.output
    assert f"{reason} {rows}" in back.text
    assert f"{reason} {rows}" in late.text
