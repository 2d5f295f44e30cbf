"""plan.json → the topics as Terraform's `kafka_topic` has to declare them once the plan is carried out."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

Plan = Mapping[str, Any]

# Kafka creates these itself; Terraform must not.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})

# What Kafka's tools set on topics while a throttle is on (KIP-73), and clear afterwards: no wish of anybody's.
THROTTLE_CONFIGS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def topics(plan: Plan) -> dict[str, dict[str, Any]]:
    """Topic to partitions, replication factor and its own configuration: None where that isn't known whole.

    Kafka's own topics aren't there, nor are those whose partitions go on differing in their replication factor: that
    can't be told to Terraform.
    """
    resized = {(p["topic"], len(p["replicas_before"]), len(p["replicas"])) for p in plan["partitions"]}
    return {
        topic["name"]: {
            "partitions": topic["partitions"],
            "replication_factor": topic["replication_factor"],
            "config": None
            if topic.get("effective_config")
            else {key: value for key, value in topic["config"].items() if key not in THROTTLE_CONFIGS},
        }
        for topic in plan["topics"]
        if topic["name"] not in INTERNAL_TOPICS and _agrees(topic, resized)
    }


def _agrees(topic: Plan, resized: Container[tuple[str, int, int]]) -> bool:
    """True where all partitions end with one replication factor; plans say None where they don't.

    Older plans said the largest: in those one partition that leaves an old one, (topic, old, new), speaks for all.
    """
    name, factor = topic["name"], topic["replication_factor"]
    return factor is not None and all(
        old == factor or (name, old, factor) in resized for old in topic["replication_factor_before"]
    )
