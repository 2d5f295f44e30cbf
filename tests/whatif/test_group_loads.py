"""Consumer groups as they are reckoned with: what partitions weigh, and who is in a group."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import no_racks, spec_of

from planner.model.spec import ConsumerGroup, ConsumerMember, DescribedGroup, NewPartitions
from planner.whatif.group_loads import loads, measure, resolve

SPEC = spec_of(no_racks(1, 2), {"a": [[1], [2]], "b": [[1]]}, sizes={"a": [5, 7], "b": [9]})
TOPICS = SPEC.cluster.topics


@pytest.mark.parametrize(
    ("sizes_known", "rate", "unit"), [(True, 3, "bytes/s"), (True, 0, "bytes"), (False, 0, "partitions")]
)
def test_partitions_weigh_what_is_known_of_them(sizes_known: bool, rate: int, unit: str) -> None:
    """What is written to them counts before what they hold."""
    rated = replace(TOPICS[1], partitions=(replace(TOPICS[1].partitions[0], bytes_in_per_sec=rate),))
    cluster = replace(SPEC.cluster, topics=(TOPICS[0], rated), sizes_known=sizes_known)
    assert unit == measure(cluster)
    weight = {"bytes/s": (0, 0, 3), "bytes": (5, 7, 9), "partitions": (1, 1, 1)}[unit]
    assert dict(zip((("a", 0), ("a", 1), ("b", 0)), weight, strict=True)) == loads(cluster.topics, measure(cluster))


def test_partitions_to_be_made_weigh_what_is_said_of_them() -> None:
    """From the first new one on."""
    found = loads(TOPICS, "bytes", [NewPartitions("b", 1, 3, 1, size_bytes=4)])
    assert {("b", 0): 9, ("b", 1): 4, ("b", 2): 4} == {key: load for key, load in found.items() if key[0] == "b"}


def test_declared_groups_read_what_their_patterns_match() -> None:
    """By name; a topic that nobody reads isn't the group's."""
    declared = [
        ConsumerGroup("h", "", (ConsumerMember("m", ("*",)),)),
        ConsumerGroup("g", "roundrobin", (ConsumerMember("m", ("a*",), "r"), ConsumerMember("n", ("a",)))),
    ]
    first, second = resolve(declared, TOPICS)
    assert ("g", {"a": 2}, {"m": [("a", 0)], "n": [("a", 1)]}, {"m": "r"}) == (
        first.name,
        first.counts,
        first.owners,
        first.racks,
    )
    assert ("h", "range", {"a": 2, "b": 1}, False) == (second.name, second.assignor, second.counts, second.observed)


def test_a_described_groups_owners_are_the_clusters_own() -> None:
    """What is declared of a member outranks it, but for who is there; without owners the assignor gives them."""
    found = DescribedGroup("g", "uniform", {"m": (("a", 1),), "n": (("a", 0), ("b", 0))}, ("a", "b", "gone"))
    members = (ConsumerMember("m", ("a",), "r"), ConsumerMember("gone", ("b",)))
    (group,) = resolve([ConsumerGroup("g", "", members, found)], TOPICS)
    assert {"m": ("a",), "n": ("a", "b")} == group.members
    assert (True, "range", {"m": "r"}) == (group.observed, group.assignor, group.racks)
    assert {"m": [("a", 1)], "n": [("a", 0), ("b", 0)]} == group.owners
    (begun,) = resolve([ConsumerGroup("g", "", (), replace(found, members={"m": (), "n": ()}))], TOPICS)
    assert (False, 3) == (begun.observed, sum(map(len, begun.owners.values())))
