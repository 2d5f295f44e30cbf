"""What `planner consumers` says as one document: owners against the assignor, racks that change, and keys that move."""

from __future__ import annotations

from dataclasses import replace

from clusters import spec_of
from plan_documents import typed

from planner.model.spec import Changes, ConsumerGroup, ConsumerMember, DescribedGroup, NewPartitions, Spec
from planner.plan.document.codec import as_json
from planner.whatif.consumers.consumers_summary import ConsumersQuestion, document, replicas_of
from planner.whatif.consumers.group_loads import resolve

SPEC = spec_of({1: "r", 2: "r", 3: "s"}, {"a": [[1], [2], [3], [1]]}, sizes={"a": [4, 2, 1, 1]})
MEMBERS = (ConsumerMember("m", ("a",), "r"), ConsumerMember("n", ("a",)))
OWNED = DescribedGroup("g", "range", {"m": (("a", 2), ("a", 3)), "n": (("a", 0), ("a", 1))}, ("a",))


def told(spec: Spec = SPEC, described: DescribedGroup | None = None, **more):
    """The document of the one group."""
    groups = resolve([ConsumerGroup("g", "range", MEMBERS, described)], spec.cluster.topics)
    return as_json(document(ConsumersQuestion(spec, groups, more.pop("grown", {}), **more)))


def test_members_have_what_they_own_and_its_load():
    """In bytes where no rate is known; a member with a rack reads what has a replica there."""
    found = told()
    (group,) = found["groups"]

    assert ("bytes", False, True) == (found["unit"], group["observed"], group["as_assigned"])
    assert [("m", 2, 6, 2), ("n", 2, 2, None)] == [
        tuple(member[key] for key in ("id", "partitions", "load", "read_in_rack")) for member in group["members"]
    ]
    assert [{"topic": "a", "partitions": [0, 1]}] == group["members"][0]["owns"]
    assert ["range", "roundrobin", "sticky", "cooperative-sticky"] == [each["assignor"] for each in group["assignors"]]


def test_owners_that_the_assignor_would_not_give_are_told():
    """The cluster's own ones stay until the next rebalance."""
    (group,) = told(described=OWNED)["groups"]

    assert (True, False) == (group["observed"], group["as_assigned"])
    assert [2, 6] == [member["load"] for member in group["members"]]


def test_only_a_group_with_racks_rebalances_where_a_plan_changes_them():
    """A replica that goes to another broker of its rack doesn't count."""
    moves = [{"topic": "a", "partition": at, "replicas_before": [1], "replicas": [to]} for at, to in ((0, 2), (1, 3))]
    after = replicas_of(typed({"partitions": moves}))
    (group,) = told(replicas_after=after)["groups"]
    brokers = tuple(replace(each, rack=None) for each in SPEC.cluster.brokers)
    bare = replace(SPEC, cluster=replace(SPEC.cluster, brokers=brokers))

    assert [{"topic": "a", "partition": 1}] == group["rebalances"]["partitions_in_other_racks"]
    assert group["rebalances"]["rebalances"]
    assert not told(bare, replicas_after=after)["groups"][0]["rebalances"]["rebalances"]
    assert not told()["groups"][0]["rebalances"]["rebalances"]


def test_more_partitions_move_keys():
    """Those of the spec's changes, and those that are asked for; half of all keys where the number doubles."""
    changes = Changes(new_partitions=(NewPartitions("a", 4, 8, 1), NewPartitions("new", 0, 3, 1)))
    found = told(replace(SPEC, changes=changes), keys=("order",))
    (count,) = found["partition_counts"]

    assert ("a", 4, 8, 50.0) == tuple(count[key] for key in ("topic", "before", "after", "keys_moved_percent"))
    assert count["keys"][0]["before"] == count["keys"][0]["after"] % 4
    assert ["a"] == found["groups"][0]["rebalances"]["topics_with_more_partitions"]
    assert 6 == told(grown={"a": 6})["partition_counts"][0]["after"]
