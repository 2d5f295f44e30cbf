"""plan.json → the topics as Terraform's `kafka_topic` has to declare them once the plan is carried out."""

from __future__ import annotations

from typing import TypedDict

from planner.plan.document.plan_types import Plan

# Kafka creates these itself; Terraform must not.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})

# What Kafka's tools set on topics while a throttle is on (KIP-73), and clear afterwards: no wish of anybody's.
THROTTLE_CONFIGS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class DeclaredTopic(TypedDict):
    """A topic as the provider declares it; `config` is None where it isn't known whole."""

    partitions: int
    replication_factor: int
    config: dict[str, str] | None


def topics(plan: Plan) -> dict[str, DeclaredTopic]:
    """Topic to partitions, replication factor and its own configuration: None where that isn't known whole.

    Kafka's own topics aren't there, nor are those whose partitions go on differing in their replication factor: that
    can't be told to Terraform.
    """
    return {
        topic.name: {
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "config": None
            if topic.effective_config
            else {key: value for key, value in topic.config.items() if key not in THROTTLE_CONFIGS},
        }
        for topic in plan.topics
        if topic.name not in INTERNAL_TOPICS and topic.replication_factor is not None
    }
