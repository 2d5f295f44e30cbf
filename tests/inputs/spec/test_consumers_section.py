"""`consumers` of a spec: members that share topics or have their own, and groups held against their state files."""

from __future__ import annotations

import pytest

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.consumers_section import described_findings, group_findings, groups, patterns
from planner.inputs.yaml_source import Document, read_yaml
from planner.model.cluster import Partition, Topic
from planner.model.spec import ConsumerMember, DescribedGroup

ORDERS = Assignment((Topic("orders", (Partition(0, (1,), 1),)),), ())
OWNED = DescribedGroup("g", members={"a": (("orders", 0), ("orders", 1))})


def document(text: str) -> Document:
    """A document with these groups, in flow style."""
    return read_yaml(f"consumers: [{text}]\n", "s.yaml")


def test_members_that_are_counted_sort_by_their_names() -> None:
    """With leading zeros, and the group's topics."""
    (group,) = groups(document("{group: g, members: 10, topics: [o*]}"), {})
    assert ["consumer-01", "consumer-10"] == [group.members[0].id, group.members[-1].id]
    assert {("o*",)} == {member.topics for member in group.members}


def test_a_members_own_topics_take_the_place_of_the_groups() -> None:
    """And every pattern has its place."""
    text = document("{group: g, topics: [x], members: [{id: a, rack: r}, {id: b, topics: [y, z]}]}")
    assert (ConsumerMember("a", ("x",), "r"), ConsumerMember("b", ("y", "z"))) == groups(text, {})[0].members
    own = ("consumers", 0, "members", 1, "topics")
    assert [(("consumers", 0, "topics", 0), "x"), ((*own, 0), "y"), ((*own, 1), "z")] == list(patterns(text))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("{group: g}, {group: g, members: 1, topics: [o]}", ["consumers[0]", "consumers[1].group"]),
        ("{group: g, members: 2}", ["consumers[0]"]),
        (
            "{group: g, members: [{id: a}, {id: a, topics: [o]}]}",
            ["consumers[0].members[0]", "consumers[0].members[1].id"],
        ),
        ("{group: g, state: g.txt}", []),
    ],
)
def test_what_a_group_lacks_or_has_twice_is_told(text: str, keys: list[str]) -> None:
    """Members and topics may be missing only where a state file tells them."""
    assert sorted(keys) == sorted(finding.key for finding in group_findings(document(text), ORDERS))


def test_a_state_file_is_of_the_same_group_and_cluster() -> None:
    """Of a file that couldn't be read nothing is said: another finding tells that."""
    text = document("{group: h, state: g.txt}, {group: g, state: g.txt, members: [{id: b}]}, {group: x, state: gone}")
    found = list(described_findings(text, {"g.txt": [OWNED]}, ORDERS))
    assert ["consumers[0].group", "consumers[1].members[0].id", "consumers[1].state"] == [each.key for each in found]
    assert "'a' of 'g.txt' owns orders-1, which the cluster doesn't have" in found[2].message
