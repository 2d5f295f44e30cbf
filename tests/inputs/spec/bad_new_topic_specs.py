"""Specs with new partitions that Kafka would refuse: data for test_schema_errors."""

from __future__ import annotations

from bad_cluster_specs import Case, after


def create(**rest: object) -> str:
    """The sound spec with one topic to create; `rest` overrides its keys."""
    item = {"name": "refunds", "partitions": 3, "replication_factor": 3} | rest
    listed = ", ".join(f"{key}: {value}" for key, value in item.items())
    return after(f"changes: {{create_topics: [{{{listed}}}]}}\n")


# As in bad_cluster_specs.
NEW_TOPIC_CASES: list[Case] = [
    # names
    ("create_illegal", create(name="a/b"), "11:28 changes.create_topics[0].name", "'a/b' isn't possible here"),
    ("create_dots", create(name="'..'"), "11:28 changes.create_topics[0].name", "'..' isn't possible here"),
    ("create_too_long", create(name="a" * 250), "11:28 changes.create_topics[0].name", "1 to 249 of the characters"),
    # numbers
    ("create_none", create(partitions=0), "11:43 changes.create_topics[0].partitions", "from 1 to 2147483647"),
]
