"""On a cluster with TLS, SASL/SCRAM and an authorizer: the needed ACLs, and the errors when one is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster import running
from folders import ROOT
from operator_at_work import Operator, Plan
from resident_tools import resident
from secured_cluster import MOVER, SecuredCluster

pytestmark = pytest.mark.kafka

# docs/apply.md says that these ACLs are enough.
ACLS = [("cluster", "Alter"), ("cluster", "AlterConfigs"), ("topic", "Describe"), ("topic", "AlterConfigs")]


@pytest.fixture(scope="module")
def secured(folder_with_jars: Callable[[str], Path]) -> Iterator[SecuredCluster]:
    """Four brokers in three racks, and a user who has only the rights in ACLS."""
    racks = {1: "r0", 2: "r1", 3: "r2", 4: "r0"}
    with running(folder_with_jars("secured"), racks, kind=SecuredCluster) as started:
        assert isinstance(started, SecuredCluster)
        with resident(started):
            started.add_user(MOVER)
            for acl in ACLS:
                change(started, "--add", acl)
            yield started


def change(cluster: SecuredCluster, how: str, acl: tuple[str, str]) -> None:
    """Add an ACL for the mover, or remove it."""
    resource, operation = acl
    on = ("--cluster",) if resource == "cluster" else ("--topic", "*")
    force = ("--force",) if how == "--remove" else ()
    cluster.tool("kafka-acls", how, "--allow-principal", f"User:{MOVER}", "--operation", operation, *on, *force)


@contextmanager
def without(cluster: SecuredCluster, acl: tuple[str, str]) -> Iterator[None]:
    """The mover lacks this ACL inside the block."""
    change(cluster, "--remove", acl)
    try:
        yield
    finally:
        change(cluster, "--add", acl)


@pytest.fixture(scope="module")
def plan(secured: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Broker 4 joins three brokers that hold a topic. Each test leaves the topic as it found it."""
    lists = ",".join(["1:2:3", "2:3:1", "3:1:2"] * 2)
    secured.tool("kafka-topics", "--create", "--topic", "orders", "--replica-assignment", lists)
    batches = {"moves_per_broker": 1}
    operator = Operator(secured, tmp_path_factory.mktemp("operator"))
    changes = {"add_brokers": [{"id": 4, "rack": "r0"}]}
    return operator.plan(changes, brokers=[1, 2, 3], execution={"throttle": "100MB/s", "batches": batches})


def seen(cluster: SecuredCluster) -> dict[str, list[int]]:
    """The replica lists. Also asserts that no topic has a throttle."""
    text = cluster.tool("kafka-topics", "--describe")
    assert "throttled" not in text
    rows = re.findall(r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: \d+\tReplicas: ([0-9,]+)", text)
    return {f"{topic}-{number}": [int(each) for each in replicas.split(",")] for topic, number, replicas in rows}


def assert_no_rates(cluster: SecuredCluster) -> None:
    """Assert that no broker has a throttle."""
    assert "throttled" not in cluster.tool("kafka-configs", "--describe", "--entity-type", "brokers")


def as_user(properties: Path) -> tuple[str, str]:
    """Options of a playbook that give its tools these properties."""
    return "-e", f"kafka_reassign_command_config={properties}"


@pytest.mark.parametrize("acl", ACLS, ids=" ".join)
def test_each_acl_that_is_missing_is_told(secured: SecuredCluster, plan: Plan, acl: tuple[str, str]) -> None:
    """Without one of the ACLs, nothing moves, no throttle is left, and the run says that access is denied."""
    before, mover = seen(secured), as_user(secured.client(MOVER))
    with without(secured, acl):
        run = plan.playbooks.play("apply", *mover)
    assert 2 == run.code, run.output
    assert re.search("uthoriz|may not Describe", run.text), run.output
    assert before == seen(secured)
    assert_no_rates(secured)


def test_a_wrong_password_is_told(secured: SecuredCluster, plan: Plan) -> None:
    """With a wrong password the run shows Kafka's error, before anything starts."""
    before = seen(secured)
    run = plan.playbooks.play("apply", *as_user(secured.client(MOVER, "wrong")))
    assert 2 == run.code, run.output
    assert "uthentication" in run.text, run.output
    assert before == seen(secured)
    assert_no_rates(secured)


def test_the_least_acls_are_enough(secured: SecuredCluster, plan: Plan) -> None:
    """The ACLs of docs/apply.md are enough to apply the plan that was refused before, verify it and roll it back."""
    before, mover = seen(secured), as_user(secured.client(MOVER))
    for playbook, wanted in (
        ("apply", before | plan.replicas),
        ("verify", before | plan.replicas),
        ("rollback", before),
    ):
        run = plan.playbooks.play(playbook, *mover)
        assert 0 == run.code, run.output
        assert wanted == seen(secured)
        assert_no_rates(secured)
    page = (ROOT / "docs" / "apply.md").read_text()
    assert [] == [acl for acl in ACLS if f"| {acl[0]} | `{acl[1]}` |" not in page]
