"""What is left of a plan besides moves: new partitions, log dirs, elections, configuration, and its validity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from clusters import spec_of
from interrupted import (
    ROWS,
    after_batches,
    expansion,
    found,
    keys,
    led,
    plan_of,
    resumed,
    with_new_partitions,
    without_topic,
)
from plan_documents import typed

from planner.approval.remaining_changes import changes_left
from planner.approval.remaining_changes import spec_of as spec_of_rest
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker, LogDir, LogDirs, Partition, ReplicaDir, Topic
from planner.model.document_fields import Apart, LeaderRacksRow, PlacementRuleRow, ReplicationFactorRow, SpecLimits
from planner.model.errors import StalePlanError
from planner.model.spec import BatchRules, Changes, Execution, NewPartitions, Spec, Sweep, TopicFilter
from planner.plan.headline import headline


def test_configuration_that_was_deleted_is_not_the_plans() -> None:
    """If the state has own configurations, a key missing there is gone from the rest; otherwise the plan's count."""
    spec = expansion()
    own = {"x": (("retention.ms", "1"),), "y": (("retention.ms", "5"),)}
    topics = tuple(replace(topic, config=own[topic.name]) for topic in spec.cluster.topics)
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, topics=topics)))
    state = found(spec)
    deleted = replace(state, topics={**state.topics, "y": topics[1]})

    assert [{}, {"retention.ms": "5"}] == [row["config"] for row in resumed(plan, deleted)["topics"]]
    assert [dict(each) for each in own.values()] == [row["config"] for row in resumed(plan, state)["topics"]]


def test_new_partitions_that_are_made_are_left_out_and_the_others_stay() -> None:
    """New partitions that are made are left out of the rest, the others stay in it; differing ones are refused."""
    new = (NewPartitions("new", 0, 2, 2), NewPartitions("y", 3, 5, 2, size_bytes=9))
    spec = expansion()
    spec = replace(spec, changes=replace(spec.changes, new_partitions=new))
    plan = plan_of(spec)
    before, after = found(spec), with_new_partitions(plan, found(spec))
    half = replace(after, topics={**after.topics, "y": before.topics["y"]})
    other = replace(after, topics={**after.topics, "new": Topic("new", (Partition(0, (1, 2), 1),))})

    assert plan["new_partitions"]["topics"] == resumed(plan, before)["new_partitions"]["topics"]
    assert None is resumed(plan, after)["new_partitions"]
    assert ["y"] == [topic["topic"] for topic in resumed(plan, half)["new_partitions"]["topics"]]
    with pytest.raises(StalePlanError, match="new has other partitions than the plan wants to make"):
        resumed(plan, other)
    left = resumed(plan, other, leave_moved=True)
    assert [("new", None)] == [(each["topic"], each["partition"]) for each in left["resumes"]["dropped"]]


@pytest.mark.parametrize("leave_moved", [False, True])
@pytest.mark.parametrize("deleting", [False, True])
def test_a_topic_that_cannot_get_partitions_any_more_is_dropped(deleting: bool, leave_moved: bool) -> None:
    """If a topic that should get more partitions was deleted, or is about to be, they are dropped and listed."""
    spec = expansion()
    spec = replace(spec, changes=replace(spec.changes, new_partitions=(NewPartitions("y", 3, 5, 2),)))
    state = found(spec)
    going = replace(state, topics=state.topics | {"y": replace(state.topics["y"], deleting=True)})

    rest = resumed(plan_of(spec), going if deleting else without_topic(state, "y"), leave_moved=leave_moved)

    dropped = {(each["topic"], each["partition"]): each["why"] for each in rest["resumes"]["dropped"]}
    assert "its new partitions: it is gone" == dropped["y", None]
    assert None is rest["new_partitions"]


def test_log_dirs_that_replicas_lie_in_already_are_not_named_again() -> None:
    """A replica that is in its target log dir already is left out; its way back is the log dir of today."""
    spec = expansion()
    plan = plan_of(spec)
    plan["partitions"] = [
        {
            "topic": "y",
            "partition": 0,
            "replicas_before": [1, 2],
            "replicas": [1, 2],
            "leader_before": 1,
            "size_bytes": 5,
            "reason": "balance_log_dirs",
            "log_dirs_before": ["/a", "/a"],
            "log_dirs": ["/b", "/b"],
        }
    ]
    plan["batches"] = []
    dirs = tuple((broker, (LogDir("/a"), LogDir("/b"))) for broker in (1, 2))
    lies = (ReplicaDir("y", 0, 1, "/b", 5), ReplicaDir("y", 0, 2, "/a", 5))
    now = replace(found(spec), log_dirs=LogDirs(dirs, lies))

    rest = resumed(plan, now)
    (row,) = rest["partitions"]
    done = replace(now, log_dirs=LogDirs(dirs, (lies[0], replace(lies[1], path="/b"))))
    said = "also moves 1 replica (5 B) from one log dir to another, and a rollback moves them back;"
    assert 1 == sum(line.startswith(said) for line in rest["warnings"])
    assert not any("log dir" in line for line in resumed(plan, done)["warnings"])

    assert (["any", "/b"], ["any", "/a"]) == (row["log_dirs"], row["log_dirs_before"])
    assert [] == resumed(plan, done)["partitions"]
    with pytest.raises(StalePlanError, match="names log dirs"):
        resumed(plan, found(spec))


def test_leaders_that_nobody_elected_yet_are_left_to_elect() -> None:
    """If only a leader is wrong, the rest is that one election."""
    spec = expansion()
    plan = plan_of(spec)
    end = after_batches(plan, found(spec), len(plan["batches"]))
    row = plan["partitions"][0]
    key = (row["topic"], row["partition"])

    rest = resumed(plan, led(end, key, row["replicas"][1]))

    assert {key} == keys(rest["partitions"])
    assert ([], [key]) == (
        rest["batches"][0]["partitions"],
        [(each["topic"], each["partition"]) for each in rest["batches"][0]["elect"]],
    )


def test_a_plan_that_ends_asks_when_the_state_was_captured() -> None:
    """The rest of a plan that expires needs the time of the new state, and is valid for as long from then on."""
    spec = expansion(captured_at="2026-11-20T10:00:00Z", valid_for_seconds=3600)
    plan = plan_of(spec)

    with pytest.raises(StalePlanError, match="--captured-at"):
        resumed(plan, found(spec))
    rest = resumed(plan, found(spec), captured_at="2026-11-21T10:00:00+01:00")

    assert {
        "captured_at": "2026-11-21T09:00:00Z",
        "valid_for_seconds": 3600,
        "valid_until": "2026-11-21T10:00:00Z",
    } == rest["validity"]


def test_brokers_that_hold_something_by_now_are_no_new_ones() -> None:
    """A new broker that holds replicas already counts as one that stays: a rollback of the rest leaves them there."""
    spec = expansion()
    plan = plan_of(spec)
    now = after_batches(plan, found(spec), 1)
    holding = {broker for topic in now.topics.values() for each in topic.partitions for broker in each.replicas}

    roles = {broker["id"]: broker["role"] for broker in resumed(plan, now)["brokers"]}

    assert {4, 5} & holding
    assert {number: "stays" if number in holding else "added" for number in (4, 5)} == {
        number: roles[number] for number in (4, 5)
    }


def spec_with_everything() -> Spec:
    """A spec that sets every field from which the rest of a plan is made."""
    spec = spec_of({1: "a", 2: "b", 3: None}, ROWS, sizes={"x": [10, 20, 30, 40, 50, 60], "y": [5, 6, 7]})
    brokers = tuple(
        replace(each, disk_bytes=10_000 + each.id, network_bytes_per_sec=99) for each in spec.cluster.brokers
    )
    return replace(
        spec,
        cluster=replace(
            spec.cluster,
            brokers=tuple(brokers),
            bootstrap_servers=("h:1",),
            config_defaults=(("min.insync.replicas", "1"),),
        ),
        changes=Changes(
            add_brokers=(Broker(4, "c", 20_000, 98), Broker(5, "c", 30_000, 97)),
            remove_brokers=(2,),
            replace_brokers=((1, 5),),
            set_racks=((2, "c"), (3, "b")),
            set_replication_factor=(ReplicationFactorRow("y", 3),),
            new_partitions=(
                NewPartitions("new", 0, 2, 2, (("retention.ms", "1"),), 3, 2, 1),
                NewPartitions("y", 3, 5, 2, size_bytes=9),
            ),
            demote_brokers=(3,),
        ),
        topics=TopicFilter(("x", "y*", "new"), ("zz",)),
        rack_aware=False,
        balance=Balance(*map(Tolerance.parse, ("33.33333%", "2", "none", "3", "70.1%", "none", "none"))),
        resilience="broker",
        sweep=Sweep(aims=("makespan", "leaders_changed")),
        limits=SpecLimits(10**6, 10**3, 10**2, 10**9, 900_001, None, 9, 9, None, None),
        execution=Execution(7, BatchRules(100, 1, 1, 50, 7, 3), "/opt/bin"),
        captured_at="2026-11-20T10:00:00Z",
        valid_for_seconds=3600,
        placement=(
            PlacementRuleRow("y*", "of y", (3, 4, 5), exclusive=False),
            PlacementRuleRow("x", "of x", (3, 5), exclusive=False),
        ),
        leader_racks=(LeaderRacksRow("x", ("b", "a")), LeaderRacksRow("*", ("a",))),
        apart=(Apart(("q", "z"), "rack", ((3, 4), (5,))),),
        together=(("x", "y0"),),
    )


def test_of_a_plan_that_nothing_was_done_of_its_whole_spec_is_left() -> None:
    """If no batch has run, the rest is made from the same spec, with every value as the YAML has it."""
    spec = spec_with_everything()
    plan, now = typed(plan_of(spec)), found(spec)

    left = spec_of_rest(plan, now, changes_left(plan, now), spec.captured_at)

    assert replace(spec, inputs=left.inputs) == left


def test_racks_are_those_before_the_change_unless_the_state_says_otherwise() -> None:
    """`set_racks` may be done before or after the interruption: the state's racks count, else those of the plan."""
    spec = replace(spec_with_everything(), limits=SpecLimits())
    plan = plan_of(spec)
    by_rack = [[row["rack"], row["brokers_before"]] for row in plan["racks"]]

    def before(racks: dict[int, str | None] | None) -> list[list[Any]]:
        rest = resumed(plan, found(spec, racks=racks), captured_at=spec.captured_at)
        return [[row["rack"], row["brokers_before"]] for row in rest["racks"]]

    assert [["a", 1], ["b", 1], ["c", 0], [None, 1]] == by_rack == before(None)
    assert [["a", 1], ["b", 1], ["c", 1]] == before({1: "a", 2: "c", 3: "b", 4: "c", 5: "c"})


def test_its_headline_claims_no_bound_of_its_own() -> None:
    """The rest isn't optimized, so its headline and bound claim no proof."""
    spec = expansion()
    rest = resumed(plan_of(spec), found(spec))

    assert headline(typed(rest)).endswith(", the rest of an approved plan; elects 4 leaders.")
    assert ("target", None) == (rest["bound"]["method"], rest["bound"]["sha256"])
