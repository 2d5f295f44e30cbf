"""Client assignors with racks (KIP-881) against the answers of Kafka 4.3.1's classes for groups drawn at random."""

from __future__ import annotations

import json
from typing import Any

import pytest
from folders import ROOT

from planner.model.cluster import PartitionKey
from planner.whatif.assignors import Racks, assign
from planner.whatif.own_assignors import Ownership

VECTORS: list[dict[str, Any]] = json.loads(
    (ROOT / "tests" / "data" / "consumer-assignments-with-racks.json").read_text(encoding="utf-8")
)


def key(name: str) -> PartitionKey:
    """The partition of a name like `t0-1`."""
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def owners(told: dict[str, list[str]]) -> Ownership:
    """Kafka's answer: each member's partitions."""
    return {member: [key(name) for name in held] for member, held in told.items()}


def assigned(assignor: str, vector: dict[str, Any], members: str, owned: Ownership | None = None) -> Ownership:
    """What an assignor gives to a vector's members; each member's partitions are sorted."""
    topics = {topic: sum(key(name)[0] == topic for name in vector["racks"]) for topic, _ in map(key, vector["racks"])}
    listed = vector[members]
    stated = {member: each["rack"] for member, each in listed.items() if each["rack"]}
    racks = Racks(stated, {key(name): held for name, held in vector["racks"].items()})
    found = assign(assignor, topics, {member: each["topics"] for member, each in listed.items()}, owned, racks=racks)
    return {member: sorted(held) for member, held in sorted(found.items())}


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("assignor", ["range", "sticky"])
def test_a_new_group_is_kafkas(assignor: str, vector: dict[str, Any]) -> None:
    """Members get what has a replica in their rack as Kafka gives it, also of co-partitioned topics."""
    assert owners(vector[assignor]) == assigned(assignor, vector, "members")


@pytest.mark.parametrize("vector", VECTORS)
def test_sticky_after_a_change_is_kafkas(vector: dict[str, Any]) -> None:
    """If a member leaves or joins, partitions without a replica in their owner's rack are dealt out again."""
    before = owners(vector["sticky"])
    held = {member: before[member] for member in before if member in vector["members_after"]}

    assert owners(vector["sticky_after"]) == assigned("sticky", vector, "members_after", held)


def test_racks_matter_only_if_members_share_some_and_partitions_differ() -> None:
    """Racks without brokers, and partitions with replicas in all racks, change nothing."""
    topics, members = {"t": 2}, {"x": ["t"], "y": ["t"]}
    plain = assign("range", topics, members)
    for of_partitions, of_members in (
        ({("t", 0): "a", ("t", 1): "b"}, {"x": "c"}),
        ({("t", 0): "ab", ("t", 1): "ab"}, {"x": "b", "y": "a"}),
    ):
        assert plain == assign("range", topics, members, racks=Racks(of_members, of_partitions))
    apart = assign("range", topics, members, racks=Racks({"x": "b", "y": "a"}, {("t", 0): "a", ("t", 1): "b"}))
    assert {"x": [("t", 1)], "y": [("t", 0)]} == apart
