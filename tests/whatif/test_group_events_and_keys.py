"""The members of a group, the loads of partitions, and the moves if members or partitions change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from clusters import no_racks, spec_of

from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.spec import ConsumerGroup, ConsumerMember, DescribedGroup, NewPartitions
from planner.whatif import assignors, group_events_and_keys
from planner.whatif.assignors import assign
from planner.whatif.group_events_and_keys import (
    Group,
    changed,
    events,
    load_unit,
    loads,
    read_in_rack,
    reassigned,
    resolve_groups,
    seen_by_brokers,
    spread,
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key, expected):
    """The hashes that Kafka's own tests expect."""
    assert expected % 2**32 == group_events_and_keys.murmur2(key.encode())


@pytest.mark.parametrize(("before", "after"), [(1, 2), (12, 24), (12, 18), (7, 5), (3, 3), (10, 11)])
def test_the_share_of_keys_that_move(before, after):
    """Against counting every hash up to a common multiple."""
    hashes = range(before * after)
    moving = sum(value % before != value % after for value in hashes)

    assert Fraction(moving, len(hashes)) == group_events_and_keys.moved_share(before, after)


def group(assignor, members=2):
    """A group whose members read four partitions of a and two of b."""
    counts, read = {"a": 4, "b": 2}, {f"m{number}": ("a", "b") for number in range(members)}
    return Group("g", assignor, counts, read, assignors.assign(assignor, counts, read), {"m0": "r"})


def test_a_spread_is_the_most_and_the_fewest():
    """A spread has the most and the fewest partitions and load; a share is the average."""
    found = spread({"m": [("a", 0), ("a", 1)], "n": [("a", 2)]}, {("a", 0): 1, ("a", 1): 2, ("a", 2): 9})
    assert (2, 1, 9, 3, 12) == (
        found.most_partitions,
        found.fewest_partitions,
        found.most_load,
        found.fewest_load,
        found.total_load,
    )
    assert 50.0 == found.above_share_percent


PAUSED = [("cooperative-sticky", 3), ("uniform", 3), ("server-range", 3), ("sticky", 6), ("range", 6), ("simple", 0)]


@pytest.mark.parametrize(("assignor", "paused"), PAUSED)
def test_who_leaves_hands_its_partitions_on(assignor, paused):
    """A member that leaves hands its partitions on; with some assignors others keep reading, in share groups all do."""
    leaves = next(each for each in events(group(assignor), {}, {}) if each.what == "m1 leaves")
    assert (3, 0, 0, paused) == (leaves.moved, leaves.from_staying, leaves.new, leaves.paused)


def test_added_partitions_are_new_to_the_group():
    """Added partitions are new to the group; a number of partitions that doesn't grow is no event."""
    told = {each.what: each for each in events(group("sticky"), {"a": 6, "b": 2, "c": 9}, {})}
    assert ["m0 leaves", "m1 leaves", "a member joins", "a 4 → 6 partitions"] == list(told)
    assert 2 == told["a 4 → 6 partitions"].new


def test_added_partitions_have_the_racks_of_their_topic():
    """Where all of a topic's partitions are in all racks, so are new ones: racks then don't decide who gets them."""
    topic = Topic("t", tuple(Partition(number, (1, 2), 1) for number in range(2)))
    cluster = Cluster("c", (Broker(1, "a"), Broker(2, "b")), (topic,))
    members = (ConsumerMember("x", ("t",), "far"), ConsumerMember("y", ("t",), "a"))
    (near,) = resolve_groups([ConsumerGroup("g", "range", members)], cluster)
    (grows,) = [each for each in events(near, {"t": 4}, {("t", 0): 1, ("t", 1): 5}) if "→" in each.what]
    assert ({"x": [("t", 0)], "y": [("t", 1)]}, 5) == (near.owners, grows.moved_load)


def test_of_a_large_group_some_members_leave():
    """In a large group, 32 members leave, one at a time, the first and the last among them."""
    left = [each.what for each in events(group("range", 200), {}, {}) if each.what.endswith(" leaves")]
    assert (32, "m0 leaves", "m99 leaves") == (len(left), left[0], left[-1])


def test_racks_count_as_sets():
    """A replica that moves within its rack doesn't change who reads in the rack."""
    racks, before = {1: "r", 2: "r", 3: "s", 4: None}, {("a", 0): (1, 3), ("a", 1): (3,), ("b", 0): (4,)}
    after = {("a", 0): (3, 2), ("a", 1): (1,), ("b", 0): (4,)}
    assert {("a", 1)} == changed((before, racks), (after, racks))
    assert {("b", 0)} == changed((before, racks), (before, {**racks, 4: "s"}))
    owners = Group("g", "range", {"a": 2}, {"m0": ("a",), "m1": ("a",)}, {"m0": [("a", 0), ("a", 1)]}, {"m0": "r"})
    assert (1, None) == (read_in_rack(owners, "m0", before, racks), read_in_rack(owners, "m1", before, racks))


def test_the_coordinator_counts_the_racks_of_all_replicas():
    """The coordinator counts the racks of all replicas, also for moves within a rack; their order doesn't count."""
    racks, before = {1: "r", 2: "r", 3: "s", 4: None, 5: None}, {("a", 0): (1, 3), ("a", 1): (3, 1), ("b", 0): (4,)}
    after = {("a", 0): (2, 3), ("a", 1): (1, 3), ("b", 0): (5,)}
    assert {("a", 0)} == seen_by_brokers((before, racks), (after, racks))
    assert {("b", 0)} == seen_by_brokers((before, racks), (before, {**racks, 4: "s"}))


def test_members_of_a_share_group_carry_parts_of_a_partition():
    """Members of a share group have equal parts of a partition; a new member pauses nobody."""
    shared = spread({"m": [("a", 0), ("a", 1)], "n": [("a", 0)]}, {("a", 0): 4, ("a", 1): 1})
    assert (3, 2, 5) == (shared.most_load, shared.fewest_load, shared.total_load)
    joins = next(each for each in events(group("simple", 6), {}, {}) if each.what == "a member joins")
    assert (0, 0) == (joins.paused, joins.new)
    alone = Group("g", "simple", {"a": 1}, {"m": ("a",), "n": ("a",)}, {"m": [("a", 0)], "n": []})
    joins = next(each for each in events(alone, {}, {("a", 0): 6}) if each.what == "a member joins")
    assert (2, 4) == (joins.moved, joins.moved_load)


SPEC = spec_of(no_racks(1, 2), {"a": [[1], [2]], "b": [[1]]}, sizes={"a": [5, 7], "b": [9]})
TOPICS = SPEC.cluster.topics


@pytest.mark.parametrize(
    ("sizes_known", "rate", "unit"), [(True, 3, "bytes/s"), (True, 0, "bytes"), (False, 0, "partitions")]
)
def test_partitions_weigh_what_is_known_of_them(sizes_known: bool, rate: int, unit: str) -> None:
    """Loads are rates if they are known, else sizes, else numbers of partitions."""
    rated = replace(TOPICS[1], partitions=(replace(TOPICS[1].partitions[0], bytes_in_per_sec=rate),))
    cluster = replace(SPEC.cluster, topics=(TOPICS[0], rated), sizes_known=sizes_known)
    assert unit == load_unit(cluster)
    weight = {"bytes/s": (0, 0, 3), "bytes": (5, 7, 9), "partitions": (1, 1, 1)}[unit]
    assert dict(zip((("a", 0), ("a", 1), ("b", 0)), weight, strict=True)) == loads(cluster.topics, load_unit(cluster))


def test_partitions_to_be_made_weigh_what_is_said_of_them() -> None:
    """New partitions have the load that is stated for them, from the first new one on."""
    found = loads(TOPICS, "bytes", [NewPartitions("b", 1, 3, 1, size_bytes=4)])
    assert {("b", 0): 9, ("b", 1): 4, ("b", 2): 4} == {key: load for key, load in found.items() if key[0] == "b"}


def test_declared_groups_read_what_their_patterns_match() -> None:
    """A declared group reads the topics that match its patterns; other topics aren't part of it."""
    declared = [
        ConsumerGroup("h", "", (ConsumerMember("m", ("*",)),)),
        ConsumerGroup("g", "roundrobin", (ConsumerMember("m", ("a*",), "r"), ConsumerMember("n", ("a",)))),
    ]
    first, second = resolve_groups(declared, SPEC.cluster)
    assert ("g", {"a": 2}, {"m": [("a", 0)], "n": [("a", 1)]}, {"m": "r"}) == (
        first.name,
        first.counts,
        first.owners,
        first.racks,
    )
    assert ("h", "range", {"a": 2, "b": 1}, False) == (second.name, second.assignor, second.counts, second.observed)


def test_a_described_groups_owners_are_the_clusters_own() -> None:
    """A described group has the cluster's members and owners, and declared topics; else the assignor's owners."""
    found = DescribedGroup("g", "uniform", {"m": (("a", 1),), "n": (("a", 0), ("b", 0))}, ("a", "b", "gone"))
    members = (ConsumerMember("m", ("a",), "r"), ConsumerMember("gone", ("b",)))
    (group,) = resolve_groups([ConsumerGroup("g", "", members, found)], SPEC.cluster)
    assert {"m": ("a",), "n": ("a", "b")} == group.members
    assert (True, "uniform", {"m": "r"}) == (group.observed, group.assignor, group.racks)
    assert {"m": [("a", 1)], "n": [("a", 0), ("b", 0)]} == group.owners
    (racked,) = resolve_groups([ConsumerGroup("g", "", (ConsumerMember("m", (), "r"),), found)], SPEC.cluster)
    assert ({"m": ("a", "b"), "n": ("a", "b")}, {"m": "r"}) == (racked.members, racked.racks)
    (owning_a,) = resolve_groups([ConsumerGroup("g", "", (), replace(found, topics=("a",)), (), ("*",))], SPEC.cluster)
    assert {"m": ("a", "b"), "n": ("a", "b")} == owning_a.members
    (other,) = resolve_groups([ConsumerGroup("g", "", (), replace(found, assignor="streams"))], SPEC.cluster)
    assert "range" == other.assignor
    (begun,) = resolve_groups([ConsumerGroup("g", "", (), replace(found, members={"m": (), "n": ()}))], SPEC.cluster)
    assert (False, 3) == (begun.observed, sum(map(len, begun.owners.values())))


def test_topic_ids_and_static_members_count_in_the_brokers_assignors() -> None:
    """A group's topic ids and static members reach the broker's assignors; their effect has its own tests."""
    topics = [Topic(name, tuple(Partition(number, (1,), 1) for number in range(3))) for name in ("a", "b")]
    members = (ConsumerMember("m1", ("*",)), ConsumerMember("m2", ("*",), None, "first"))
    listed = (members[0], replace(members[1], instance=None))
    cluster = Cluster("c", (), tuple(topics))
    plain, static = (
        resolve_groups([ConsumerGroup("g", "server-range", each)], cluster)[0] for each in (listed, members)
    )
    more, fewer = [("a", 0), ("a", 1), ("b", 0), ("b", 1)], [("a", 2), ("b", 2)]
    assert [more, fewer] == [sorted(plain.owners[member]) for member in ("m1", "m2")]
    assert [fewer, more] == [sorted(static.owners[member]) for member in ("m1", "m2")]
    ids = (("a", "zzzzzzzzzzzzzzzzzzzzzA"), ("b", "AAAAAAAAAAAAAAAAAAAAAg"))
    (told,) = resolve_groups([ConsumerGroup("g", "uniform", members, None, ids)], cluster)
    expected = assign("uniform", told.counts, told.members, topic_ids=dict(ids))
    assert dict(ids) == told.topic_ids
    assert expected == told.owners
    assert assign("uniform", told.counts, told.members, told.owners, topic_ids=dict(ids)) == reassigned(told).owners


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_get_partitions_of_their_rack(assignor: str) -> None:
    """A group with client.rack owns what lies in its members' racks, from the beginning and after a member joins."""
    topic = Topic("t", (Partition(0, (1,), 1), Partition(1, (2,), 2)))
    members = (ConsumerMember("x", ("t",), "b"), ConsumerMember("y", ("t",), "a"))
    cluster = Cluster("c", (Broker(1, "a"), Broker(2, "b")), (topic,))
    (group,) = resolve_groups([ConsumerGroup("g", assignor, members)], cluster)

    assert {"x": [("t", 1)], "y": [("t", 0)]} == group.owners == reassigned(group).owners
    assert [1, 1] == [each.moved for each in events(group, {}, {}) if each.what.endswith("leaves")]
