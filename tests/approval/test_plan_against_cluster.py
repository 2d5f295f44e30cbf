"""Whether a plan still fits the cluster: which partitions changed, how, and which changes refuse the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plan_documents import change, document, new_partitions, typed

from planner.approval.changes_since_plan import ClusterNow, Sources, read_now
from planner.approval.plan_against_cluster import Fit, Standing, fit
from planner.model.cluster import LogDir, LogDirs, Partition, Topic

# a-0 moves in two batches, a-1 changes its order, b-0 gets a replica, c-0 only another leader; broker 9 leaves.
A0, A1 = change("a", 0, [1, 9], [3, 4]), change("a", 1, [2, 1], [1, 2])
B0, C0 = change("b", 0, [1], [1, 3]), change("c", 0, [1, 2], [1, 2], leader=2)
STEP, REST = change("a", 0, [1, 9], [1, 4]), change("a", 0, [1, 4], [3, 4])
LISTS = {"a": [[1, 9], [2, 1]], "b": [[1]], "c": [[1, 2]]}


def plan(**top: Any) -> dict[str, Any]:
    """The plan of the changes above, with the replica counts that brokers had when it was made."""
    made = document([A0, A1, B0, C0], [[STEP, B0], [REST, A1, C0]], **top)
    held = {1: 4, 2: 2, 9: 1}
    for broker in made["brokers"]:
        broker["before"] = broker["before"] | {"replicas": held.get(broker["id"], 0)}
    return made


def now(
    *, racks: dict[int, str | None] | None = None, leaders: dict[str, int] | None = None, **lists: Any
) -> ClusterNow:
    """The cluster of LISTS with some lists replaced; None removes a topic."""
    led = {"c-0": 2} | (leaders or {})
    topics = {
        name: Topic(name, tuple(Partition(at, tuple(r), led.get(f"{name}-{at}", r[0])) for at, r in enumerate(rows)))
        for name, rows in (LISTS | lists).items()
        if rows is not None
    }
    return ClusterNow(topics, racks=racks)


def fitted(made: dict[str, Any], state: ClusterNow) -> Fit:
    """Compares a plan document with the cluster."""
    return fit(typed(made), state)


def stale(found: Fit) -> list[str]:
    """The changes that refuse the plan."""
    return [f"{each.kind}: {each}" for each in found.stale]


def told(found: Fit) -> list[str]:
    """The changes that are reported, but don't refuse the plan."""
    return [f"{each.kind}: {each}" for each in found.notes]


def test_where_the_plan_found_it_it_fits() -> None:
    """Before the first batch nothing differs from the plan."""
    found = fitted(plan(), now())

    assert () == found.differences
    assert {Standing.FOUND} == set(found.standings.values())
    assert "all 4 partitions as the plan found them" == found.progress()


def test_on_its_own_way_it_fits() -> None:
    """The plan fits between its batches and after the last one."""
    between = fitted(plan(), now(a=[[1, 4], [2, 1]], b=[[1, 3]]))
    end = fitted(plan(), now(a=[[3, 4], [1, 2]], b=[[1, 3]], leaders={"c-0": 1}))

    assert ([], []) == (stale(between), stale(end))
    assert "4 partitions: 2 as the plan found them, 1 on its way, 1 as the plan wants it" == between.progress()
    assert {Standing.THERE} == set(end.standings.values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"a": [[1, 2], [2, 1]]}, "replicas: a-0: has replicas 1,2; the plan was made from 1,9"),
        (
            {"a": [[9, 1], [2, 1]]},
            "order: a-0: has its replicas in the order 9,1; the plan's lists are 1,9 → 1,4 → 3,4",
        ),
        ({"b": None}, "topic: b: is gone; the plan has 1 partition of it"),
        ({"a": [[1, 9]]}, "partitions: a: has 1 partition, 2 when the plan was made"),
        (
            {"b": [[1], [2]]},
            "partitions: b: has 2 partitions, 1 when the plan was made; those keep another replication factor than 2",
        ),
        (
            {"new": [[9, 1]]},
            "topic: new: is new; it has replicas on broker 9, which the change removes",
        ),
        ({"racks": {1: "a", 2: "a", 3: "a"}}, "broker: broker 4: isn't live; the plan counts on it"),
        (
            {"racks": {1: "a", 2: "b", 3: "a", 4: None}},
            "rack: broker 2: is in rack b; the plan counts on rack a|"
            "rack: broker 4: is in no rack; the plan counts on rack a",
        ),
    ],
)
def test_what_changed_otherwise_refuses_the_plan(changed: dict[str, Any], said: str) -> None:
    """Other replicas, orders, topics, brokers or racks refuse the plan; the message has both values."""
    found = fitted(plan(), now(**changed))
    assert said.split("|") == stale(found)
    assert found.resumable == ("racks" not in changed)


def test_what_does_no_harm_is_only_told() -> None:
    """Other leaders, new topics and new brokers are reported, but don't refuse the plan."""
    found = fitted(plan(), now(new=[[1]], leaders={"a-0": 9}, racks=dict.fromkeys((1, 2, 3, 4, 9, 12), "a")))

    assert [] == stale(found)
    assert [
        "broker: broker 12: is new; the plan doesn't know it",
        "leader: a-0: is led by broker 9, not by broker 1",
        "topic: new: is new",
    ] == told(found)


def test_reassignments_are_told_apart_by_where_they_go() -> None:
    """A reassignment to one of the plan's own lists is the plan's; any other one refuses the plan."""
    own = replace(now(a=[[1, 4], [2, 1]]), moving=frozenset({("a", 0)}))
    other = replace(now(a=[[1, 2], [2, 1]], new=[[1]]), moving=frozenset({("a", 0), ("new", 0)}))

    assert ([], 1) == (stale(fitted(plan(), own)), fitted(plan(), own).moving)
    last = replace(now(a=[[3, 4], [2, 1]]), moving=frozenset({("a", 0)}))
    said = "4 partitions: 3 as the plan found them, 1 on its way; 1 partition being reassigned by the plan now"
    assert [said, said] == [fitted(plan(), each).progress() for each in (own, last)]
    assert [
        "reassignment: a-0: is being reassigned to 1,2, but not by the plan",
        "reassignment: new-0: is being reassigned to 1, but not by the plan",
    ] == stale(fitted(plan(), other))


def test_replicas_out_of_sync_refuse_it_unless_their_broker_leaves() -> None:
    """A replica out of sync refuses the plan, unless its broker is to be removed; the role checks the same."""

    def behind(*isr: int) -> ClusterNow:
        rows = now().topics["a"].partitions
        topic = Topic("a", (replace(rows[0], isr=isr), rows[1]))
        return replace(now(), topics={**now().topics, "a": topic})

    assert [] == stale(fitted(plan(), behind(1)))
    assert ["isr: a-0: has replicas 1,9, in sync: 9; wait for the others"] == stale(fitted(plan(), behind(9)))


def test_partitions_that_wait_for_a_leader_may_be_out_of_sync() -> None:
    """A plan fits the state that it was made from: apply.yml skips batches without leaders instead of stopping."""
    rows = now().topics["a"].partitions
    down = Topic("a", (replace(rows[0], leader=None, isr=(9,)), replace(rows[1], isr=(2,))))
    made, state = plan(), replace(now(), topics={**now().topics, "a": down})
    other = "isr: a-1: has replicas 2,1, in sync: 2; wait for the others"
    assert ["isr: a-0: has replicas 1,9, in sync: 9; wait for the others", other] == stale(fitted(made, state))
    made["batches"][0]["leaderless"] = True
    assert [other] == stale(fitted(made, state))


def test_a_topic_about_to_be_deleted_is_gone() -> None:
    """A topic that is marked for deletion counts as gone, because it can't be reassigned."""
    topics = {**now().topics, "b": replace(now().topics["b"], deleting=True)}
    found = fitted(plan(), replace(now(), topics=topics))

    assert ["topic: b: is marked for deletion; the plan has 1 partition of it"] == stale(found)
    assert Standing.GONE is found.standings["b", 0]


def test_new_partitions_are_missing_or_as_planned() -> None:
    """New partitions are absent or exactly as planned; anything else refuses the plan."""
    topic = {
        "topic": "n", "partitions_before": 0, "partitions": 2, "replication_factor": 1, "config": {},
        "replicas": [[1], [2]], "replica_assignment": "1,2",
    }  # fmt: skip
    made = plan(new_partitions=new_partitions(topic))

    assert [] == stale(fitted(made, now())) == stale(fitted(made, now(n=[[1], [2]])))
    assert ["new partitions: n: has 1 partition, planned from 0 to 2"] == stale(fitted(made, now(n=[[1]])))
    assert ["new partitions: n: has 2 partitions, with other replicas than planned"] == stale(
        fitted(made, now(n=[[1], [3]]))
    )


def test_log_dirs_that_are_not_reached_yet_are_still_to_do() -> None:
    """If only log dirs change, the partition still counts as to do, although its replicas are equal."""
    row = change("b", 0, [1], [1]) | {"reason": "balance_log_dirs", "log_dirs": ["/d"], "log_dirs_before": ["/c"]}

    assert {("b", 0): Standing.FOUND} == fitted(document([row]), now()).standings


def test_log_dirs_of_the_plan_that_are_gone_or_broken_refuse_it() -> None:
    """A log dir that is gone or broken refuses the plan, because the playbook would not start."""
    row = change("b", 0, [1, 3], [1, 3]) | {"reason": "balance_log_dirs", "log_dirs": ["/d", "/d"]}
    row |= {"log_dirs_before": ["/c", "/c"]}
    for dirs in ((LogDir("/c"),), (LogDir("/c"), LogDir("/d", error="KAFKA_STORAGE_ERROR"))):
        found = fitted(document([row]), replace(now(a=None, b=[[1, 3]]), log_dirs=LogDirs(((1, dirs),))))
        assert ["log_dir: broker 1: has no usable log dir /d; the plan counts on it"] == stale(found)


def test_the_state_is_read_from_what_kafkas_tools_print(tmp_path: Path) -> None:
    """A running reassignment and the live brokers are read from Kafka's tools; a broker with an error isn't live."""
    described = (
        "Topic: a\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,4,9\tIsr: 1,9\tAdding Replicas: 4\tRemoving Replicas: 9\n"
    )
    versions = "".join(f"h{each}:9092 (id: {each} rack: a isFenced: false) -> (\n)\n" for each in (1, 4))
    (tmp_path / "topics.txt").write_text(described)
    (tmp_path / "brokers.txt").write_text(versions + "h5:9092 (id: 5 rack: a) -> ERROR: x.DisconnectException\n")
    seen = read_now(Sources((tmp_path,)), with_log_dirs=False)

    assert ((1, 4), frozenset({("a", 0)})) == (seen.topics["a"].partitions[0].replicas, seen.moving)
    assert {1: "a", 4: "a"} == seen.racks
    assert 1 == fitted(document([A0], [[STEP], [REST]]), seen).moving
