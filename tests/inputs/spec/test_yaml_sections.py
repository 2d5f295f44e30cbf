"""Sections of a spec as values: `execution` with its defaults, and `consumers` with members and topics."""

from __future__ import annotations

import pytest

from planner.inputs.spec.yaml_sections import execution, groups
from planner.inputs.yaml_source import Document, read_yaml
from planner.model.spec import UNSTATED, BatchRules, ConsumerMember, Execution

THROTTLE, DURATION, MOVES, REPLICAS, ELECTIONS = UNSTATED.unset


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", UNSTATED),
        ("execution: {}", UNSTATED),
        ("execution: {throttle: none, batches: none}", Execution()),
        ("execution: {throttle: 5MB/s, batches: none}", Execution(5_000_000)),
        ("execution: {throttle: none}", Execution(unset=(DURATION, MOVES, REPLICAS, ELECTIONS))),
        ("execution: {batches: none, kafka_bin_dir: /k}", Execution(kafka_bin_dir="/k", unset=(THROTTLE,))),
    ],
)
def test_only_none_rules_out_a_throttle_and_batches(text: str, wanted: Execution) -> None:
    """Only `none` switches a throttle or batches off; a missing key has its default."""
    assert wanted == stated(text)


@pytest.mark.parametrize(
    ("batches", "rules", "unset"),
    [
        ("bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: 4", BatchRules(moves_per_broker=4), (REPLICAS, ELECTIONS)),
        ("duration: 2h", BatchRules(seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: 2h, bytes: 1GB", BatchRules(bytes=10**9, seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: none", BatchRules(), (REPLICAS, ELECTIONS)),
        ("duration: none, bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("bytes: none", BatchRules(), (DURATION, MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: none", BatchRules(), (DURATION, REPLICAS, ELECTIONS)),
        ("replicas_per_partition: none", BatchRules(), (DURATION, MOVES, ELECTIONS)),
        ("replicas_per_partition: 2", BatchRules(replicas_per_partition=2), (DURATION, MOVES, ELECTIONS)),
        ("elections: none", BatchRules(), (DURATION, MOVES, REPLICAS)),
        ("elections: 50", BatchRules(elections=50), (DURATION, MOVES, REPLICAS)),
    ],
)
def test_each_limit_has_a_default_of_its_own(batches: str, rules: BatchRules, unset: tuple[str, ...]) -> None:
    """Each missing limit has its own default; a batch limited in bytes or replicas has no default limit in time."""
    found = stated(f"execution: {{throttle: none, batches: {{{batches}}}}}")
    assert (rules, unset) == (found.batches, found.unset)


def stated(text: str) -> Execution:
    """The `execution` of this text."""
    return execution(read_yaml(f"version: 1\n{text}\n", "spec.yaml"))


def document(text: str) -> Document:
    """A document with these consumer groups."""
    return read_yaml(f"consumers: [{text}]\n", "s.yaml")


def test_members_that_are_counted_sort_by_their_names() -> None:
    """A number of members becomes ids with leading zeros, and each member has the group's topics."""
    (group,) = groups(document("{group: g, members: 10, topics: [o*]}"), {})
    assert ["consumer-01", "consumer-10"] == [group.members[0].id, group.members[-1].id]
    assert {("o*",)} == {member.topics for member in group.members}


def test_a_members_own_topics_take_the_place_of_the_groups() -> None:
    """A member's own topics replace the group's; a member without its own has the group's."""
    text = document("{group: g, topics: [x], members: [{id: a, rack: r}, {id: b, topics: [y, z]}]}")
    assert (ConsumerMember("a", ("x",), "r"), ConsumerMember("b", ("y", "z"))) == groups(text, {})[0].members
