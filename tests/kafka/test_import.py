"""`planner import` of a real cluster, which it asks itself or reads from the output of Kafka's own tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from operator_at_work import Lists, Operator

from planner.cli.commands import commands
from planner.model.amounts import parse_amount

pytestmark = pytest.mark.kafka


def imported(operator: Operator, *words: object) -> dict[str, Any]:
    """The `cluster:` part that `planner import` writes."""
    out = operator.folder / "cluster.yaml"
    ran = CliRunner().invoke(commands, ["import", *map(str, words), "-o", str(out)], standalone_mode=False)
    assert ran.exception is None, ran.output
    document = yaml.safe_load(out.read_text())
    assert isinstance(document, dict)
    return document["cluster"]


def lists(cluster: dict[str, Any]) -> Lists:
    """The replica list of each partition."""
    return {
        f"{topic['name']}-{number}": list(partition["replicas"])
        for topic in cluster["topics"]
        for number, partition in enumerate(topic["partitions"])
    }


def sizes(cluster: dict[str, Any]) -> list[Any]:
    """The size of each partition, in the order of the YAML. The YAML may write it with a unit."""
    return [
        parse_amount(partition["size"], "bytes") for topic in cluster["topics"] for partition in topic["partitions"]
    ]


def racks(cluster: dict[str, Any]) -> dict[int, str | None]:
    """The rack of each broker."""
    return {broker["id"]: broker.get("rack") for broker in cluster["brokers"]}


def test_a_running_cluster_is_asked(operator: Operator) -> None:
    """Import from a running cluster gives the same brokers, racks, topics, sizes and configurations as the tools do."""
    operator.create_topic("orders.v2", [[1, 2], [2, 3], [3, 1]], retention_ms="86400000")
    operator.produce("orders.v2", 3, 20_000)
    operator.capture()
    state = operator.folder / "state"
    servers = ",".join(operator.cluster.bootstrap_servers)
    cluster = imported(operator, "--bootstrap-servers", servers)
    printed = imported(operator, state / "topics-describe.txt", state / "log-dirs.txt")

    assert operator.replicas() == lists(cluster)
    assert operator.racks() == racks(cluster)
    assert cluster["bootstrap_servers"]
    assert [{"retention.ms": "86400000"}] == [topic["config"] for topic in cluster["topics"]]
    assert sizes(printed) == sizes(cluster)
    assert all(size > 20_000_000 for size in sizes(cluster))


def test_a_running_reassignment_is_noticed(operator: Operator) -> None:
    """A running reassignment is refused, or its target is used if the option asks for that."""
    operator.create_topic("orders", [[1, 2]])
    operator.produce("orders", 1, 20_000)
    operator.reassign({"orders-0": [3, 4]}, "--throttle", 1)
    asked = ["import", "--bootstrap-servers", ",".join(operator.cluster.bootstrap_servers)]
    refused = CliRunner().invoke(commands, asked, standalone_mode=False)
    cluster = imported(operator, *asked[1:], "--reassigning", "target")
    operator.lift_throttle()

    assert "partition 0 of orders is being reassigned (Adding Replicas: 3, 4)" in str(refused.exception)
    assert {"orders-0": [3, 4]} == lists(cluster)


def test_the_tools_outputs_say_the_same(operator: Operator, tmp_path: Path) -> None:
    """Import from the tools' output gives the cluster's replicas and sizes, and the result can be planned from."""
    operator.create_topic("orders", [[1, 2], [2, 3], [3, 1]])
    operator.produce("orders", 3, 50_000)
    operator.capture()
    state = operator.folder / "state"
    cluster = imported(operator, state / "topics-describe.txt", state / "log-dirs.txt")

    assert operator.replicas() == lists(cluster)
    assert all("size" in partition for topic in cluster["topics"] for partition in topic["partitions"])
    spec = tmp_path / "imported.yaml"
    spec.write_text(yaml.safe_dump({"version": 1, "cluster": cluster, "changes": {"remove_brokers": [3]}}))
    plan = operator.whatif(spec)
    assert not any(3 in replicas for replicas in (operator.replicas() | plan.replicas).values())
