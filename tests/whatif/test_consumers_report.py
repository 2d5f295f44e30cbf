"""The report of `planner consumers`: owners, racks that change, keys that move; names are never markup."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from clusters import no_racks, spec_of
from msgspec import structs
from plan_documents import typed
from rich.console import Console

from planner.model.spec import Changes, ConsumerGroup, ConsumerMember, DescribedGroup, Growth, NewPartitions, Spec
from planner.plan.document.codec import as_json
from planner.report import markdown, terminal
from planner.whatif import consumers_sweep
from planner.whatif.assignors import ASSIGNORS
from planner.whatif.consumers_report import ConsumersQuestion, document, view
from planner.whatif.group_events_and_keys import loads, resolve_groups

SPEC = spec_of({1: "r", 2: "r", 3: "s"}, {"a": [[1], [2], [3], [1]]}, sizes={"a": [4, 2, 1, 1]})
MEMBERS = (ConsumerMember("m", ("a",), "r"), ConsumerMember("n", ("a",)))
OWNED = DescribedGroup("g", "range", {"m": (("a", 2), ("a", 3)), "n": (("a", 0), ("a", 1))}, ("a",))


def told(spec: Spec = SPEC, described: DescribedGroup | None = None, assignor: str = "range", **more):
    """The document for one group."""
    groups = resolve_groups([ConsumerGroup("g", assignor, MEMBERS, described)], spec.cluster)
    return as_json(document(ConsumersQuestion(spec, groups, more.pop("grown", {}), **more)))


def test_members_have_what_they_own_and_its_load():
    """Without rates loads are in bytes; a member with a rack reads partitions that have a replica there."""
    found = told()
    (group,) = found["groups"]

    assert ("bytes", False, True) == (found["unit"], group["observed"], group["as_assigned"])
    assert [("m", 2, 6, 2), ("n", 2, 2, None)] == [
        tuple(member[key] for key in ("id", "partitions", "load", "read_in_rack")) for member in group["members"]
    ]
    assert [{"topic": "a", "partitions": [0, 1]}] == group["members"][0]["owns"]
    assert [*ASSIGNORS] == [each["assignor"] for each in group["assignors"]]


def test_owners_that_the_assignor_would_not_give_are_told():
    """If the cluster's owners differ from the assignor's, the report says so and keeps them until a rebalance."""
    (group,) = told(described=OWNED)["groups"]

    assert (True, False) == (group["observed"], group["as_assigned"])
    assert [2, 6] == [member["load"] for member in group["members"]]


def test_only_a_group_with_racks_rebalances_where_a_plan_changes_them():
    """A group whose members have racks rebalances only if replicas change racks; moves within a rack don't count."""
    moves = [{"topic": "a", "partition": at, "replicas_before": [1], "replicas": [to]} for at, to in ((0, 2), (1, 3))]
    after = typed({"partitions": moves})
    (group,) = told(plan=after)["groups"]
    brokers = tuple(replace(each, rack=None) for each in SPEC.cluster.brokers)
    bare = replace(SPEC, cluster=replace(SPEC.cluster, brokers=brokers))

    assert [{"topic": "a", "partition": 1}] == group["rebalances"]["partitions_in_other_racks"]
    assert group["rebalances"]["rebalances"]
    assert not told(bare, plan=after)["groups"][0]["rebalances"]["rebalances"]
    assert not told()["groups"][0]["rebalances"]["rebalances"]


def test_partitions_that_follow_their_racks_to_other_members_are_paused():
    """With racks swapped by a plan, a cooperative group gives one member's partitions to the other meanwhile."""
    spec = spec_of({1: "r", 2: "s"}, {"a": [[1], [2], [1], [2]]})
    members = (ConsumerMember("m", ("a",), "r"), ConsumerMember("n", ("a",), "s"))
    swapped = ((0, 1, 2), (1, 2, 1))
    moves = [{"topic": "a", "partition": at, "replicas_before": [old], "replicas": [new]} for at, old, new in swapped]
    groups = resolve_groups([ConsumerGroup("g", "cooperative-sticky", members)], spec.cluster)
    found = as_json(document(ConsumersQuestion(spec, groups, {}, plan=typed({"partitions": moves}))))
    assert 2 == found["groups"][0]["rebalances"]["paused"]


@pytest.mark.parametrize("assignor", ["uniform", "server-range", "simple"])
def test_a_group_that_the_broker_assigns_rebalances_where_replicas_move(assignor):
    """A broker's assignor also rebalances for moves within a rack, but moves no partition, so no member is paused."""
    moves = [{"topic": "a", "partition": at, "replicas_before": [1], "replicas": [to]} for at, to in ((0, 2), (1, 3))]
    (group,) = told(assignor=assignor, plan=typed({"partitions": moves}))["groups"]

    assert [0, 1] == [each["partition"] for each in group["rebalances"]["partitions_in_other_racks"]]
    assert (True, 0) == (group["rebalances"]["rebalances"], group["rebalances"]["paused"])


def test_members_that_share_a_partition_each_carry_their_part():
    """Members that share a partition share its load; the spread uses these loads, and they add up to the total."""
    members = tuple(ConsumerMember(f"m{number}", ("a",)) for number in range(8))
    shared = resolve_groups([ConsumerGroup("g", "simple", members)], SPEC.cluster)
    (group,) = as_json(document(ConsumersQuestion(SPEC, shared, {})))["groups"]
    loads, spread = [member["load"] for member in group["members"]], group["spread"]
    assert (spread["fewest_load"], spread["most_load"], spread["total_load"]) == (min(loads), max(loads), sum(loads))


def test_more_partitions_move_keys():
    """More partitions, from the spec or as asked for, move keys: half of them if the number doubles."""
    changes = Changes(new_partitions=(NewPartitions("a", 4, 8, 1), NewPartitions("new", 0, 3, 1)))
    found = told(replace(SPEC, changes=changes), keys=("order",))
    (count,) = found["partition_counts"]

    assert ("a", 4, 8, 50.0) == tuple(count[key] for key in ("topic", "before", "after", "keys_moved_percent"))
    assert count["keys"][0]["before"] == count["keys"][0]["after"] % 4
    assert ["a"] == found["groups"][0]["rebalances"]["topics_with_more_partitions"]
    assert 6 == told(grown={"a": 6})["partition_counts"][0]["after"]


UNEVEN = spec_of(no_racks(1), {"a_b": [[1]] * 4}, sizes={"a_b": [4, 2, 1, 1]})


def groups(members=2):
    """A group whose members read the topic."""
    listed = tuple(ConsumerMember(f"m|{number:02}", ("*",)) for number in range(members))
    return resolve_groups([ConsumerGroup("g*", "range", listed)], UNEVEN.cluster)


def page_of_group(members=2, **more):
    """The document for the group."""
    return document(ConsumersQuestion(UNEVEN, groups(members), more.pop("grown", {}), **more))


def text(found):
    """The document as text, as a program reads it."""
    console = Console(file=StringIO(), width=1000)
    terminal.show(view(found), console)
    return console.file.getvalue()


def test_a_groups_sentences():
    """The text says how even the group is, and that nothing makes it rebalance."""
    page = " ".join(text(page_of_group()).split())

    assert "g*: range, 2 members, 4 partitions of 1 topic" in page
    assert "2 partitions per member; 2 B to 6 B each; the most loaded is 50 % above its share." in page
    assert "The changes don't make it rebalance." in page
    assert "3 members without any partition: more members than partitions to read." in text(page_of_group(7))
    spare = DescribedGroup("g*", "range", {"m|00": (("a_b", 0),), "m|01": ()}, ("a_b",))
    found = resolve_groups([ConsumerGroup("g*", "", (), spare)], UNEVEN.cluster)
    assert "1 member without any partition." in text(document(ConsumersQuestion(UNEVEN, found, {})))


def test_partitions_that_no_member_owns_are_counted():
    """They aren't read, although the group is there; where all are owned, nothing is said."""
    partly = DescribedGroup("g*", "range", {"m|00": (("a_b", 0),), "m|01": ()}, ("a_b",))
    found = resolve_groups([ConsumerGroup("g*", "", (), partly)], UNEVEN.cluster)

    assert "No member owns 3 partitions." in text(document(ConsumersQuestion(UNEVEN, found, {})))
    assert "No member owns" not in text(page_of_group())


def test_names_are_no_markup():
    """In text, names are as they are; in Markdown they are code, and don't end a cell."""
    assert "m|00" in text(page_of_group())
    page = markdown.render(view(page_of_group()))
    assert "`g*`" in page
    assert "| `m\\|00` | 2 | 6 B | `a_b` 0–1 |" in page


def test_members_and_events_of_a_large_group_are_bounded():
    """Of a large group, some members are listed and the rest counted; only the costliest departures are shown."""
    page = text(page_of_group(40))

    assert "8 members left out here" in page
    assert 12 == page.count(" leaves")


def test_departures_that_are_not_shown_are_counted():
    """The other events are all shown, also below the departures."""
    page = text(page_of_group(20))

    assert 12 == page.count(" leaves")
    assert "a member joins" in page
    assert "8 events left out here" in page


def test_keys_and_the_sweep_are_sections_of_their_own():
    """Keys and the sweep have sections only if they are asked for."""
    assert "Least spread" not in text(page_of_group())
    weights = loads(UNEVEN.cluster.topics, "bytes")
    study = consumers_sweep.study(groups(), weights, [Growth("more", "a*", 3.0)])
    scores = [consumers_sweep.evaluate(study, row) for row in consumers_sweep.rows(groups())]
    asked = page_of_group(grown={"a_b": 8}, keys=("k",))
    found = structs.replace(asked, sweep=consumers_sweep.summary(study, scores))
    page = " ".join(text(found).split())

    assert "a_b from 4 to 8 partitions: 50 % of all keys go to another partition" in page
    assert "Key k " in page
    assert "Least spread of 12 combinations: 2 members with cooperative-sticky" in page
