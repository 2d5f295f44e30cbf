"""Faults that stop a run before anything moves: nothing changes, and the run says what to do. Real cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from faults import MEGABYTE, assert_refused, assert_unharmed, expansion
from operator_at_work import Operator
from playbooks import Run

from planner.cli.main import main

pytestmark = pytest.mark.kafka


def commands(run: Run, option: str) -> Iterator[list[str]]:
    """The calls of Kafka's tools with this option, by the playbook and its module, in the output of a run with -v."""
    found = [json.loads(cmd) for cmd in re.findall(r'"cmd": (\[.*?\])', run.output)]
    found += [cmd for calls in re.findall(r'"calls": (\[\[.*?\]\])', run.output) for cmd in json.loads(calls)]
    return (cmd for cmd in found if option in cmd)


def assert_given(run: Run, config: Path, *tools: str) -> None:
    """Assert that exactly these tools were called, each with the client's properties."""
    calls = list(commands(run, "--bootstrap-server"))
    assert set(tools) == {cmd[0].rpartition("/kafka-")[2].removesuffix(".sh") for cmd in calls}
    assert [] == [cmd for cmd in calls if ("--command-config", str(config)) not in pairwise(cmd)]


@pytest.fixture
def config(operator: Operator) -> Path:
    """Properties of Kafka's admin client that change little."""
    path = operator.folder / "client.properties"
    path.write_text("client.id=the-operator\nrequest.timeout.ms=10000\ndefault.api.timeout.ms=10000\n")
    return path


@pytest.mark.parametrize(
    ("broker", "rack", "message"),
    [
        (99, "r0", "Not live: broker 99. Nothing was started; start it,"),
        (4, "r9", "as it is now. They are broker 4 in r0, planned for r9"),
    ],
    ids=["never existed", "other rack"],
)
def test_broker_that_is_not_as_planned(operator: Operator, broker: int, rack: str, message: str) -> None:
    """The run names a broker that the cluster doesn't know, or that is in another rack than planned."""
    operator.create_topic("orders", [[1, 2], [2, 3], [3, 1]])
    operator.produce("orders", 3, 10)
    before = operator.replicas()
    plan = operator.plan({"add_brokers": [{"id": broker, "rack": rack}]}, brokers=[1, 2, 3])
    assert_refused(operator, plan.playbooks.play("apply"), before, message)
    assert_unharmed(operator, before)


def test_reassignments_of_others(operator: Operator) -> None:
    """The run names partitions that somebody else moves. Both playbooks leave these moves and their throttles alone."""
    plan = expansion(operator, 2 * MEGABYTE)
    operator.create_topic("others", [[5, 4]])
    operator.produce("others", 1, 2 * MEGABYTE)
    operator.reassign({"others-0": [5, 6], "orders-0": [1, 2, 6]}, "--throttle", 1)
    operator.lose(6)  # Without broker 6, neither move completes before the playbooks have run.
    before, throttles = operator.replicas(), operator.throttles()
    message = (
        "Reassignments that aren't this plan's are running. Nothing was started. The partitions are orders-0, others-0"
    )
    for playbook in ("apply", "rollback"):
        assert_refused(operator, plan.playbooks.play(playbook), before, message)
        assert ["orders-0", "others-0"] == operator.moving()
    assert throttles == operator.throttles() != ""


def test_state_changed_since(operator: Operator) -> None:
    """If somebody has moved a partition of a later batch, the first batch doesn't start."""
    plan = expansion(operator, moves_per_broker=1)
    assert 2 <= len(plan.document["batches"])
    last = plan.document["batches"][-1]["partitions"][0]
    name = f"{last['topic']}-{last['partition']}"
    operator.reassign({name: [4, 5, 6]})
    operator.await_moved({name: [4, 5, 6]})
    before = operator.replicas()
    planned = ",".join(map(str, last["replicas_before"]))
    message = (
        "1 partition isn't as the plan was made from. Nothing was started; make a new plan from the cluster as it is "
        f"now. It is {name} (replicas 4,5,6, planned from {planned})"
    )
    assert_refused(operator, plan.playbooks.play("apply"), before, message)
    assert_unharmed(operator, before)


def test_file_edited_after_approval(operator: Operator) -> None:
    """An edited reassignment file stops the run, in the role's files or in the plan's own folder. The run names it."""
    plan = expansion(operator)
    before = operator.replicas()
    for folder in ("ansible/roles/kafka_reassign/files", "."):
        path = plan.folder / folder / "batches/01/reassignment.json"
        approved = path.read_text()
        path.write_text(approved.replace('"replicas":[', '"replicas":[6,', 1))
        assert approved != path.read_text()
        message = "batches/01/reassignment.json isn't the file that was planned and reviewed"
        assert_refused(operator, plan.playbooks.play("apply"), before, message)
        path.write_text(approved)
    assert_unharmed(operator, before)


def test_higher_replication_factor_with_a_broker_down(operator: Operator) -> None:
    """A plan that raises a replication factor stops if a broker is down. Once it is back, the plan applies."""
    operator.create_topic("orders", [[1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 1]])
    operator.produce("orders", 6, 10)
    requested = {"set_replication_factor": [{"topics": "orders", "replication_factor": 3}]}
    plan = operator.plan(requested, execution={"throttle": "100MB/s"})
    operator.lose(6)
    before = operator.replicas()
    assert_refused(operator, plan.playbooks.play("apply"), before, "Not live: broker 6. Nothing was started;")
    operator.await_equal("", operator.throttles)

    operator.start(6)
    operator.await_true(operator.in_sync, "broker 6 to catch up")
    run = plan.playbooks.play("apply", "-v")
    assert 0 == run.code, run.output
    assert [] == [cmd for cmd in commands(run, "--execute") if "--disallow-replication-factor-change" in cmd]
    assert_unharmed(operator, before | plan.replicas)


def test_partitions_without_a_leader_hold_nothing_up(operator: Operator) -> None:
    """If a dead broker leaves, only the partitions without a leader wait. Once it is back, the same plan finishes."""
    operator.create_topic("orders", [[1, 3], [3, 1], [2, 3]])
    operator.create_topic("single", [[3], [1], [3]])
    for topic in ("orders", "single"):
        operator.produce(topic, 3, 10)
    operator.lose(3)
    before = operator.replicas()
    plan = operator.plan({"remove_brokers": [3], "add_brokers": [{"id": 6, "rack": "r2"}]}, brokers=[1, 2, 3])
    assert [False, True] == [batch["leaderless"] for batch in plan.document["batches"]]
    assert ["50MB/s"] == [each["value"] for each in plan.document["execution"]["derived"] if "throttle" in each["key"]]

    run = plan.impatient_playbooks.play("apply")
    assert 2 == run.code, run.output
    assert "Left out: batch 02." in run.text
    assert "Without a leader: single-0, single-2" in run.text
    waiting = {name: before[name] for name in ("single-0", "single-2")}
    operator.await_equal(before | plan.replicas | waiting, operator.replicas)
    operator.await_equal("", operator.throttles)

    operator.start(3)
    operator.await_true(operator.in_sync, "broker 3 to be back")
    run = plan.playbooks.play("apply")
    assert 0 == run.code, run.output
    assert_unharmed(operator, before | plan.replicas)


def test_under_replicated_partitions(operator: Operator, config: Path) -> None:
    """Under-replicated partitions stop a plan. A plan that removes the dead broker from them applies, throttled."""
    plan = expansion(operator)
    operator.lose(3)
    before = operator.replicas()
    expected = ("-e", json.dumps({"kafka_reassign_expected_brokers": [1, 2, 4]}))
    message = (
        "6 partitions are under-replicated. Nothing was started; wait until they are in sync, or set "
        "kafka_reassign_allow_under_replicated."
    )
    assert_refused(operator, plan.playbooks.play("apply", *expected), before, message)
    operator.await_equal("", operator.throttles)

    replaced = {"remove_brokers": [3], "add_brokers": [{"id": 6, "rack": "r2"}]}
    plan = operator.plan(replaced, brokers=[1, 2, 3], execution={"throttle": "100MB/s"})
    run = plan.playbooks.play("apply", "-v", "-e", f"kafka_reassign_command_config={config}")
    assert 0 == run.code, run.output
    throttled, started = commands(run, "--execute")
    assert ("--throttle", "100000000") in pairwise(throttled)
    assert "--additional" in started
    assert_given(
        run,
        config,
        "reassign-partitions",
        "broker-api-versions",
        "topics",
        "leader-election",
        "configs",
        "metadata-quorum",
    )
    assert_unharmed(operator, before | plan.replicas)


def test_a_broker_that_leaves_is_down(operator: Operator) -> None:
    """One of two leaving brokers is down: a plan that keeps it for a batch is refused; a new one removes it first."""
    operator.create_topic("orders", [[3, 1, 2]])
    operator.produce("orders", 1, 10)
    leaves = {"remove_brokers": [2, 3], "add_brokers": [{"id": 5, "rack": "r1"}, {"id": 6, "rack": "r2"}]}
    plan = operator.plan(leaves, brokers=[1, 2, 3])
    operator.lose(3)
    before = operator.replicas()
    message = "1 partition keeps a broker that isn't live until a later batch, and Kafka refuses such lists."
    assert_refused(operator, plan.playbooks.play("apply"), before, message, "It is orders-0 (broker 3)")

    plan = operator.plan(leaves, brokers=[1, 2, 3])
    run = plan.impatient_playbooks.play("apply")
    assert (0, 2) == (run.code, len(plan.document["batches"])), run.output
    assert_unharmed(operator, before | plan.replicas)


def test_what_the_tools_are_given(operator: Operator, config: Path) -> None:
    """Each tool gets the client's properties. A batch that keeps replication factors makes Kafka refuse other ones."""
    plan = expansion(operator, moves_per_broker=1)
    wanted = operator.replicas() | plan.replicas
    run = plan.playbooks.play("apply", "-v", "-e", f"kafka_reassign_command_config={config}")
    assert 0 == run.code, run.output
    assert_given(run, config, "reassign-partitions", "broker-api-versions", "topics", "leader-election", "configs")
    executed = list(commands(run, "--execute"))
    assert len(plan.document["batches"]) == len(executed)
    assert [] == [cmd for cmd in executed if "--disallow-replication-factor-change" not in cmd]
    assert_unharmed(operator, wanted)


def test_disk_gate(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan beyond limits.disk_used isn't written, and the exit code is 3. With a higher limit it is written."""
    operator.create_topic("orders", [[1, 2], [2, 3], [3, 1], [2, 1], [3, 2], [1, 3]])
    operator.produce("orders", 6, MEGABYTE)
    operator.capture()
    racks = operator.cluster.racks
    brokers = [{"id": broker, "rack": racks[broker], "capacity": {"disk": "7MB"}} for broker in (1, 2, 3)]
    codes = []
    for limit in ("80%", "95%"):
        path = operator.spec({"remove_brokers": [3]}, cluster={"brokers": brokers}, limits={"disk_used": limit})
        with pytest.raises(SystemExit) as ended:
            main(["whatif", str(path), "--engine", "local", "--candidates", "20"])
        codes.append((ended.value.code, path.with_suffix(".plan").exists()))
    assert [(3, False), (0, True)] == codes
    refusal = " ".join(capsys.readouterr().err.split())
    assert "nothing was written, because the plan exceeds these limits: limits.disk_used: broker 1 holds 6" in refusal
