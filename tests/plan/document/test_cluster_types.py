"""The declaration of a plan's topics for Terraform."""

from __future__ import annotations

from plan_documents import row

from planner.plan.document.cluster_types import INTERNAL_TOPICS, THROTTLE_CONFIGS, DeclaredTopic, TopicRow


def declared(name: str = "t", **values: object) -> DeclaredTopic | None:
    """The declaration of a topic with two partitions of two replicas each."""
    return row(TopicRow, {"name": name, "partitions": 2, "replication_factor": 2, **values}).declared


def test_a_topic_is_declared_with_its_own_configuration_but_no_throttle() -> None:
    """A topic is declared with its configuration, except the two throttle keys, which are set only during moves."""
    config = {"retention.ms": "1", **dict.fromkeys(THROTTLE_CONFIGS, "0:1")}
    assert {"partitions": 2, "replication_factor": 2, "config": {"retention.ms": "1"}} == declared(config=config)


def test_a_configuration_of_unknown_origin_is_not_declared() -> None:
    """A configuration of unknown origin is null, because an empty one would remove what the topic has."""
    found = declared(config={"a": "1"}, effective_config={"min.insync.replicas": "2"})
    assert found is not None
    assert None is found["config"]


def test_what_terraform_cannot_declare() -> None:
    """Kafka's own topics, and topics with different replication factors, aren't declared."""
    assert {None} == {declared(name) for name in INTERNAL_TOPICS}
    assert None is declared(replication_factor=None)
