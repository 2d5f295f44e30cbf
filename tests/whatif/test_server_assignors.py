"""The broker's assignors against Kafka's own classes, step by step, and their guarantees."""

from __future__ import annotations

import json

import pytest
from consumer_groups import DATA, groups, sizes
from hypothesis import given

from planner.whatif.assignors import assign

# tests/kafka/test_asked_assignors.py asks Kafka's own classes again.
STEPS = json.loads((DATA / "server-assignments.json").read_text())


def owned(step, name) -> dict[str, list[tuple[str, int]]]:
    """The owners after a step, in the form of `assign`."""
    members = sorted(step["subscriptions"])
    held: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
    for topic, owners in step[name].items():
        for partition, owner in enumerate(owners):
            for number in owner if isinstance(owner, list) else [owner]:
                held[members[number]].append((topic, partition))
    return {member: sorted(each) for member, each in held.items()}


@pytest.mark.parametrize(
    ("assignor", "name"), [("uniform", "uniform"), ("server-range", "range"), ("simple", "simple")]
)
def test_the_brokers_assignors_are_kafkas(assignor, name):
    """The same as Kafka to the last partition, as members, subscriptions and topics change; some members are static."""
    before: dict[str, list[tuple[str, int]]] = {}
    for number, step in enumerate(STEPS):
        found = assign(
            assignor,
            step["topics"],
            step["subscriptions"],
            before if step["step"] else None,
            topic_ids=step["ids"],
            instances=step["instances"],
        )
        before = owned(step, assignor.removeprefix("server-"))
        assert before == {member: sorted(held) for member, held in found.items()}, (number, step)


def test_the_vectors_have_what_can_differ():
    """The vectors have equal and different subscriptions, static members, and shared partitions."""
    unlike = [step for step in STEPS if len({*map(tuple, step["subscriptions"].values())}) > 1]
    assert min(len(unlike), len(STEPS) - len(unlike)) > 100
    assert sum(bool(step["instances"]) for step in STEPS) > 100
    assert sum(any(isinstance(each, list) for of in step["simple"].values() for each in of) for step in STEPS) > 50


@given(groups())
def test_uniform_is_even_and_moves_nothing_without_a_reason(group):
    """Nobody has two partitions more than another one who could read one of them; assigning again changes nothing."""
    topics, members = group
    alike = {member: sorted(topics) for member in members}
    found = assign("uniform", topics, alike)

    assert max(sizes(found)) - min(sizes(found)) <= 1
    assert found == assign("uniform", topics, alike, found)


@given(groups())
def test_simple_leaves_no_partition_without_a_reader(group):
    """Where anybody subscribes to it: a group that begins reads everything, however many members share it."""
    topics, members = group
    wanted = {(t, number) for listed in members.values() for t in listed for number in range(topics[t])}

    assert wanted == {each for held in assign("simple", topics, members).values() for each in held}


def test_more_members_than_partitions_share_them():
    """Three members of one partition: with `simple` each reads it, with `uniform` only one does."""
    members = {member: ["t"] for member in ("a", "b", "c")}

    assert [1, 1, 1] == sizes(assign("simple", {"t": 1}, members))
    assert [0, 0, 1] == sizes(assign("uniform", {"t": 1}, members))


def test_a_partition_that_two_members_claim_is_given_once():
    """A partition claimed by two members, as during a rebalance, goes to one of them."""
    held = {"a": [("t", 0), ("t", 1)], "b": [("t", 1)]}
    found = assign("uniform", {"t": 2}, {"a": ["t"], "b": ["t"]}, held)

    assert {"a": [("t", 0)], "b": [("t", 1)]} == found


def test_topic_ids_decide_who_is_first():
    """Without ids, topics are in the order of their names; with ids, in the order of Java's hash maps."""
    topics, members = {"t": 1, "u": 1}, {"a": ["t", "u"], "b": ["t", "u"]}

    assert {"a": [("t", 0)], "b": [("u", 0)]} == assign("uniform", topics, members)
    ids = {"t": "AAAAAAAAAAAAAAAAAAAACQ", "u": "AAAAAAAAAAAAAAAAAAAAAg"}
    assert {"a": [("u", 0)], "b": [("t", 0)]} == assign("uniform", topics, members, topic_ids=ids)
