"""The client assignors against Kafka's own answers, their guarantees, and a user's own assignor."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from consumer_groups import DATA, VECTORS, groups, owners, sizes
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import PlannerError
from planner.whatif.assignors import ASSIGNORS, assign


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_are_kafkas(assignor, vector):
    """The same as Kafka 4.1's classes, in the same order."""
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
    """4 partitions for 3 members: the first member has one more, and one more again for each such topic."""
    members = {member: ["t0", "t1"] for member in ("C0", "C1", "C2")}
    one = assign("range", {"t0": 4}, {member: ["t0"] for member in members})
    two = assign("range", {"t0": 4, "t1": 4}, members)

    assert {"C0": [("t0", 0), ("t0", 1)], "C1": [("t0", 2)], "C2": [("t0", 3)]} == one
    assert [4, 2, 2] == [len(two[member]) for member in members]


@pytest.mark.parametrize(("assignor", "most"), [("range", {"c": 3, "b": 2}), ("roundrobin", {"c": 2, "b": 2, "a": 2})])
def test_static_members_come_first(assignor, most):
    """Static members come before the others, by their group.instance.id, as in Kafka 4.3.1's clients."""
    topics, members = {"o": 5, "p": 2}, dict.fromkeys("abcd", ("o", "p"))
    found = assign(assignor, topics, members, instances={"b": "i2", "c": "i1"})

    assert {**dict.fromkeys("abcd", 1), **most} == {member: len(held) for member, held in found.items()}
    assert {("o", 0), ("p", 0)} <= {*found["c"], *found["b"]}
    assert ("o", 0) in found["c"]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_member_that_gives_up_partitions_keeps_the_first_ones_of_each_topic(assignor):
    """A second member gets partition 1 of both topics, not all of the second topic, as in Kafka 4.3.1's clients."""
    topics = {"t0": 2, "t1": 2}
    alone = assign(assignor, topics, {"a": ["t0", "t1"]})
    both = assign(assignor, topics, {"a": ["t0", "t1"], "b": ["t0", "t1"]}, alone)

    assert {"a": [("t0", 0), ("t1", 0)], "b": [("t0", 1), ("t1", 1)]} == both


def test_round_robin_is_uneven_where_subscriptions_differ():
    """C0 reads 4 of 5 partitions, although C1 could read one of them; sticky gives C1 two."""
    topics, members = {"T1": 3, "T2": 2}, {"C0": ["T1", "T2"], "C1": ["T2"]}

    assert [4, 1] == [len(held) for held in assign("roundrobin", topics, members).values()]
    assert {"C0": [("T1", 0), ("T1", 1), ("T1", 2)], "C1": [("T2", 0), ("T2", 1)]} == assign("sticky", topics, members)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a module with an assignor, and returns the assignor's name."""

    def write(module: str, body: str) -> str:
        (tmp_path / f"{module}.py").write_text(f"def assign(topics, subscriptions, owned):\n    {body}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        return f"{module}:assign"

    return write


def test_a_users_own_assignor(own):
    """A user's assignor gets the three mappings and decides; the result is sorted."""
    name = own("everything_to_the_last", "return {max(subscriptions): [('t', 1), ('t', 0)]}")

    assert {"a": [], "b": [("t", 0), ("t", 1)]} == assign(name, {"t": 2}, {"a": ["t"], "b": ["t"]})


def test_the_examples_assignor(monkeypatch):
    """examples/consumers/custom_assignor.py works, and is as even as possible."""
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
        ("raises", "return topics['x']", "doesn't assign: KeyError: 'x'; allowed: a function of topics"),
        ("gives_nothing", "return None", "doesn't assign: AttributeError"),
        ("ends", "raise SystemExit(3)", "doesn't assign: SystemExit: 3; allowed: a function of topics"),
    ],
)
def test_an_own_assignor_is_checked(own, module, body, said):
    """A user's assignor must give each partition once, to a member that subscribes; other results are refused."""
    with pytest.raises(PlannerError, match=said):
        assign(own(module, body), {"t": 1, "u": 0}, {"a": ["t"], "b": ["u"]})


@pytest.mark.parametrize("name", ["fair", "nowhere_at_all:assign", "json:nothing", "json:", "os.system(1):x"])
def test_an_assignor_that_there_is_not(name):
    """An unknown assignor is refused, and the error names the known ones."""
    with pytest.raises(
        PlannerError, match=r"allowed: range, roundrobin, .*uniform, server-range, simple, or module:function"
    ):
        assign(name, {"t": 1}, {"a": ["t"]})


CHANGES = json.loads((DATA / "consumer-assignments-after-changes.json").read_text())
STICKY = ("sticky", "cooperative-sticky")


def by_id(ownership) -> dict[str, list[tuple[str, int]]]:
    """Ownership with each member's partitions sorted: Kafka's order is that in which it gave them away."""
    return {member: sorted(held) for member, held in owners(ownership).items()}


def moved(before, after) -> int:
    """The number of partitions with another owner than before."""
    owner = {partition: member for member, held in before.items() for partition in held}
    return sum(owner.get(each, member) != member for member, held in after.items() for each in held)


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("assignor", STICKY)
def test_sticky_is_kafkas(assignor, vector):
    """A new group gets what Kafka 4.3.1's class gives it."""
    assert by_id(vector["sticky"]) == assign(assignor, vector["topics"], vector["subscriptions"])


@pytest.mark.parametrize("vector", [each for each in VECTORS if each["sticky_after_leave"]])
@pytest.mark.parametrize("assignor", STICKY)
def test_sticky_after_a_member_leaves_is_kafkas(assignor, vector):
    """Starting from Kafka's assignment, the others get what Kafka gives them."""
    left = {member: each for member, each in vector["subscriptions"].items() if member != vector["member_leaves"]}
    held = {member: each for member, each in owners(vector["sticky"]).items() if member in left}

    assert by_id(vector["sticky_after_leave"]) == assign(assignor, vector["topics"], left, held)


@pytest.mark.parametrize("vector", CHANGES)
def test_sticky_after_any_change_is_kafkas(vector):
    """The same as Kafka 4.3.1 for members that leave, join or change topics, and for growing topics.

    Members that own more than their share keep it in the order of Java's hash map: C3, C4, C5, C0, C1, C2.
    """
    assert by_id(vector["sticky"]) == assign("sticky", vector["topics"], vector["subscriptions"])
    held = {
        member: each for member, each in owners(vector["sticky"]).items() if member in vector["subscriptions_after"]
    }
    after = assign("sticky", vector["topics_after"], vector["subscriptions_after"], held)

    assert by_id(vector["sticky_after"]) == after


@given(groups(), st.data())
def test_sticky_moves_nothing_without_a_reason(group, data):
    """Assigning again changes nothing; a member that leaves takes only its own away, if all read the same."""
    topics, members = group
    before = assign("sticky", topics, members)
    assert before == assign("sticky", topics, members, before)

    alike = {member: sorted(topics) for member in members}
    before = assign("sticky", topics, alike)
    gone = data.draw(st.sampled_from(sorted(alike)))
    left = {member: each for member, each in alike.items() if member != gone}
    after = assign("sticky", topics, left, {member: before[member] for member in left})

    assert (len(before[gone]) if left else 0) == moved(before, after)


@given(groups())
def test_sticky_can_not_be_made_more_even_by_a_move(group):
    """No member has two partitions more than another one that could read one of them."""
    topics, members = group
    after = assign("sticky", topics, members)

    for member, held in after.items():
        for other in members:
            if any(topic in members[other] for topic, _ in held):
                assert len(held) <= len(after[other]) + 1, (member, other)


def test_what_two_members_claim_counts_for_neither():
    """A partition claimed by two members counts for neither, as in Kafka; claims of missing partitions don't count."""
    held = {"a": [("t", 0), ("t", 1)], "b": [("t", 1), ("t", 9), ("gone", 0)]}

    assert {"a": [("t", 0)], "b": [("t", 1)]} == assign("sticky", {"t": 2}, {"a": ["t"], "b": ["t"]}, held)


def test_sticky_keeps_what_round_robin_reshuffles():
    """4 topics of 2 partitions, 3 members, C1 leaves: sticky moves the 3 that must move, round robin moves 5."""
    topics = {f"T{number}": 2 for number in range(4)}
    members = {member: sorted(topics) for member in ("C0", "C1", "C2")}
    left = {member: topics_ for member, topics_ in members.items() if member != "C1"}
    dealt = assign("roundrobin", topics, members)
    sticky = assign("sticky", topics, members)

    assert 5 == moved(dealt, assign("roundrobin", topics, left))
    assert len(sticky["C1"]) == moved(sticky, assign("sticky", topics, left, sticky)) == 3


def test_sticky_with_unlike_subscriptions():
    """T0 to T2 have 1, 2, 3 partitions, and each member reads one topic more: only C0's partition moves."""
    topics = {"T0": 1, "T1": 2, "T2": 3}
    members = {"C0": ["T0"], "C1": ["T0", "T1"], "C2": ["T0", "T1", "T2"]}
    left = {"C1": members["C1"], "C2": members["C2"]}
    before = assign("sticky", topics, members)
    dealt = assign("roundrobin", topics, members)

    assert [("T0", 0)] == before["C0"]
    assert [("T1", 0), ("T1", 1)] == before["C1"]
    assert 1 == moved(before, assign("sticky", topics, left, before))
    assert 3 == moved(dealt, assign("roundrobin", topics, left))
