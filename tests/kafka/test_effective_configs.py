"""Plans use the settings that a real cluster has for all topics, but don't take them for a topic's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka.admin import ConfigResource, ResourceType
from operator_at_work import Operator

from planner.cli.commands import commands
from planner.model.errors import InfeasibleError, SpecError

pytestmark = pytest.mark.kafka
LEAST = "min.insync.replicas"


@contextmanager
def cluster_wide(operator: Operator, least: int, topic: str) -> Iterator[None]:
    """Sets min.insync.replicas for all topics without their own. Afterwards it is 1, as on a new cluster."""
    try:
        set_for_all(operator, least, topic)
        yield
    finally:
        set_for_all(operator, 1, topic)


def set_for_all(operator: Operator, least: int, topic: str) -> None:
    """Set the value, and wait until every broker reports it."""
    options = ("--entity-type", "brokers", "--entity-default", "--alter", "--add-config", f"{LEAST}={least}")
    operator.cluster.tool("kafka-configs", *options)
    asked = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in operator.cluster.racks]
    asked.append(ConfigResource(ResourceType.TOPIC, topic))
    for each in asked:
        operator.await_true(lambda each=each: value(operator, each) == str(least), f"{LEAST} of {each}")  # type: ignore[misc]


def value(operator: Operator, asked: ConfigResource) -> str:
    """The min.insync.replicas that is in force."""
    found: str = operator.admin.describe_configs([asked])[asked].result(30)[LEAST].value
    return found


def imported(operator: Operator, name: str, *words: object) -> dict[str, Any]:
    """What `planner import` writes, as a document."""
    out = operator.folder / f"{name}.yaml"
    ran = CliRunner().invoke(commands, ["import", *map(str, words), "-o", str(out)], standalone_mode=False)
    assert ran.exception is None, ran.output
    document: dict[str, Any] = yaml.safe_load(out.read_text())
    return document


def with_factor(operator: Operator, name: str, document: dict[str, Any], factor: int) -> Path:
    """A spec that gives the topic orders another replication factor, and moves nothing else."""
    requested = {"set_replication_factor": [{"topics": "orders", "replication_factor": factor}], "rebalance": "none"}
    return changed(operator, f"{name}-{factor}", document, {}, requested)


def configs(plan: Path) -> dict[str, Any]:
    """Each topic's configuration in the tfvars."""
    tfvars = json.loads((plan / "terraform" / "kafka_topics.auto.tfvars.json").read_text())
    return {name: topic["config"] for name, topic in tfvars["kafka_topics"].items()}


def test_what_the_cluster_sets_for_all_topics_counts_and_is_no_topics_own(operator: Operator) -> None:
    """However the state was read, RF 1 is refused with the reason, RF 2 gives a warning, and no tfvars have it."""
    operator.create_topic("orders", [[1, 2, 3], [2, 3, 1]], retention_ms="86400000")
    operator.create_topic("clicks", [[1, 2, 3]])
    with cluster_wide(operator, 2, "orders"):
        operator.capture()
        printed = operator.cluster.tool("kafka-configs", "--describe", "--entity-type", "topics", "--all")
        described, told = (operator.folder / "state" / name for name in ("topics-describe.txt", "topic-configs.txt"))
        told.write_text(printed)
        servers = ",".join(operator.cluster.bootstrap_servers)
        documents = {
            "live": imported(operator, "live", "--bootstrap-servers", servers),
            "described": imported(operator, "described", described),
            "told": imported(operator, "told", described, told),
        }

    inherited = {LEAST: "2", "segment.bytes": "1073741824"}
    assert inherited.items() <= documents["live"]["cluster"]["config_defaults"].items()
    assert inherited == documents["told"]["cluster"]["config_defaults"]
    own = {"orders": {"retention.ms": "86400000"}, "clicks": {}}
    known = {"live": own, "described": dict.fromkeys(own), "told": own}
    for name, document in documents.items():
        with pytest.raises(SpecError, match=rf"1 is below min.insync.replicas of orders \(2, {ORIGIN[name]}\): before"):
            operator.whatif(with_factor(operator, name, document, 1))
        plan = operator.whatif(with_factor(operator, name, document, 2))
        warned = [text for text in plan.document["warnings"] if LEAST in text]
        assert ["1 topic lowered to as many replicas as min.insync.replicas (orders)"] == [
            w.split(":")[0] for w in warned
        ]
        assert known[name] == configs(plan.folder)


ORIGIN = {
    "live": "inherited from the brokers",
    "described": "its own or inherited",
    "told": "inherited from the brokers",
}


def test_a_cordoned_broker_gets_nothing(operator: Operator) -> None:
    """No plan puts a new replica on a cordoned broker, however the state was read, although Kafka would (KIP-1066)."""
    operator.create_topic("orders", [[1, 2, 3], [4, 5, 6]])
    cordon = ("kafka-configs", "--entity-type", "brokers", "--entity-name", 4, "--alter")
    operator.cluster.tool(*cordon, "--add-config", "cordoned.log.dirs=*")
    try:
        operator.capture()
        told = operator.folder / "brokers.txt"
        told.write_text(operator.cluster.tool("kafka-configs", "--describe", "--entity-type", "brokers"))
        servers = ",".join(operator.cluster.bootstrap_servers)
        documents = {
            "live": imported(operator, "live", "--bootstrap-servers", servers),
            "told": imported(operator, "told", operator.folder / "state" / "topics-describe.txt", told),
        }
    finally:
        operator.cluster.tool(*cordon, "--delete-config", "cordoned.log.dirs")

    refused = re.escape("new replicas can't go to broker 4 (cordoned.log.dirs)")
    for name, document in documents.items():
        brokers = document["cluster"]["brokers"]
        assert {4: ["*"]} == {each["id"]: each["cordoned_log_dirs"] for each in brokers if "cordoned_log_dirs" in each}
        # Broker 3's replica needs another broker, if there is one. Broker 4 may let others lead its partitions.
        (topic,) = (each for each in document["cluster"]["topics"] if each["name"] == "orders")
        few = {"brokers": brokers[:4], "topics": [topic | {"partitions": topic["partitions"][:1]}]}
        with pytest.raises(InfeasibleError, match=refused):
            operator.whatif(changed(operator, f"{name}-on", document, few, {"remove_brokers": [3]}))
        around = operator.whatif(
            changed(operator, f"{name}-around", document, {"topics": [topic]}, {"remove_brokers": [3]})
        )
        assert set(around.replicas["orders-0"]) in ({1, 2, 5}, {1, 2, 6})
        off = {"demote_brokers": [4], "rebalance": "leaders"}
        assert operator.whatif(changed(operator, f"{name}-off", document, {"topics": [topic]}, off)).replicas


def changed(
    operator: Operator, name: str, document: dict[str, Any], cluster: dict[str, Any], changes: dict[str, Any]
) -> Path:
    """The spec with another cluster and these changes."""
    path = operator.folder / f"{name}.yaml"
    wanted = {"cluster": document["cluster"] | cluster, "changes": {"rebalance": "none"} | changes}
    path.write_text(yaml.safe_dump({**document, "rack_aware": "disabled", **wanted}))
    return path
