"""Kafka's range and round-robin assignors against Kafka's own answers, what all promise, and a user's own."""

from __future__ import annotations

from collections import Counter

import pytest
from consumer_groups import VECTORS, groups, owners, sizes
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import PlannerError
from planner.whatif.consumers.assignors import ASSIGNORS, assign


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_are_kafkas(assignor, vector):
    """What Kafka 4.1's classes gave, in their order."""
    assert owners(vector[assignor]) == assign(assignor, vector["topics"], vector["subscriptions"])


@given(groups(), st.sampled_from(ASSIGNORS))
def test_every_partition_has_one_owner_who_subscribes(group, assignor):
    """No partition is lost or given twice, whatever the assignor."""
    topics, members = group
    given_to = assign(assignor, topics, members)
    wanted = {topic for listed in members.values() for topic in listed}

    assert set(members) == set(given_to)
    assert {(topic, number): 1 for topic in wanted for number in range(topics[topic])} == Counter(
        each for held in given_to.values() for each in held
    )
    assert all(topic in members[member] for member, held in given_to.items() for topic, _ in held)


def test_range_gives_the_first_members_more():
    """4 partitions for 3 members: the first has one more; with each further topic like it, one more still."""
    members = {member: ["t0", "t1"] for member in ("C0", "C1", "C2")}
    one = assign("range", {"t0": 4}, {member: ["t0"] for member in members})
    two = assign("range", {"t0": 4, "t1": 4}, members)

    assert {"C0": [("t0", 0), ("t0", 1)], "C1": [("t0", 2)], "C2": [("t0", 3)]} == one
    assert [4, 2, 2] == [len(two[member]) for member in members]


def test_round_robin_is_uneven_where_subscriptions_differ():
    """C0 reads 4 of 5 partitions although C1 could read one more; sticky sees it."""
    topics, members = {"T1": 3, "T2": 2}, {"C0": ["T1", "T2"], "C1": ["T2"]}

    assert [4, 1] == [len(held) for held in assign("roundrobin", topics, members).values()]
    assert {"C0": [("T1", 0), ("T1", 1), ("T1", 2)], "C1": [("T2", 0), ("T2", 1)]} == assign("sticky", topics, members)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a module with an assignor, to be named by it."""

    def write(module: str, body: str) -> str:
        (tmp_path / f"{module}.py").write_text(f"def assign(topics, subscriptions, owned):\n    {body}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        return f"{module}:assign"

    return write


def test_a_users_own_assignor(own):
    """It gets the three mappings and decides; the result comes in order."""
    name = own("everything_to_the_last", "return {max(subscriptions): [('t', 1), ('t', 0)]}")

    assert {"a": [], "b": [("t", 0), ("t", 1)]} == assign(name, {"t": 2}, {"a": ["t"], "b": ["t"]})


def test_the_examples_assignor(monkeypatch):
    """examples/consumers/custom_assignor.py is one, and as even as it can be."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "consumers"))
    members = {f"C{number}": ["t0", "t1"] for number in range(4)}

    assert [3, 3, 4, 4] == sizes(assign("custom_assignor:assign", {"t0": 7, "t1": 7}, members))


@pytest.mark.parametrize(
    ("module", "body", "said"),
    [
        ("gives_to_nobody", "return {}", "gives t-0 to nobody"),
        ("gives_twice", "return {'a': [('t', 0), ('t', 0)]}", "gives t-0 to 'a'"),
        ("gives_a_stranger", "return {'c': [('t', 0)]}", "gives t-0 to 'c'"),
        ("gives_unread", "return {'b': [('t', 0)]}", "gives t-0 to 'b'"),
    ],
)
def test_an_own_assignor_is_checked(own, module, body, said):
    """Each partition once, with a member that subscribes to its topic; anything else is refused, named."""
    with pytest.raises(PlannerError, match=said):
        assign(own(module, body), {"t": 1, "u": 0}, {"a": ["t"], "b": ["u"]})


@pytest.mark.parametrize("name", ["fair", "nowhere_at_all:assign", "json:nothing", "json:", "os.system(1):x"])
def test_an_assignor_that_there_is_not(name):
    """Named, with those that there are."""
    with pytest.raises(
        PlannerError, match="allowed: range, roundrobin, sticky, cooperative-sticky, or module:function"
    ):
        assign(name, {"t": 1}, {"a": ["t"]})
