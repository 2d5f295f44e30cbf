"""What is left of a plan after a run that was interrupted: exactly the rest, as a plan of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from clusters import no_racks, spec_of, specs
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st
from interrupted import (
    after_batches,
    found,
    led,
    moved,
    partition,
    plan_of,
    with_new_partitions,
    without_topic,
)
from jsonschema import Draft202012Validator
from plan_documents import plan_id, typed
from properties import examples

from planner.approval import remaining_plan
from planner.approval.cluster_now import Now
from planner.export.kafka_files import files
from planner.model.cluster import Broker, LogDir, LogDirs, Partition, ReplicaDir, Topic
from planner.model.errors import StalePlanError, UnsafePlanError
from planner.model.spec import BatchRules, Changes, Execution, Limits, NewPartitions, Spec, Sweep, TopicFilter
from planner.plan.document.codec import as_json
from planner.plan.headline import headline

SCHEMA = json.loads((ROOT / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
RULES = st.sampled_from((BatchRules(moves_per_broker=1), BatchRules(replicas_per_partition=1, moves_per_broker=2)))
ROWS = {"x": [(1, 2), (2, 3), (3, 1), (1, 2), (2, 3), (3, 1)], "y": [(1, 2), (1, 3), (2, 1)]}


def keys(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Which partitions are among these."""
    return {(row["topic"], row["partition"]) for row in rows}


def resumed(plan: dict[str, Any], now: Now, **options: Any) -> dict[str, Any]:
    """The rest of a plan, both as JSON values."""
    return as_json(remaining_plan.resumed(typed(plan), now, **options))


def expansion(**rest: Any) -> Spec:
    """Three brokers become five, two replicas a batch."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, sizes={"x": [10, 20, 30, 40, 50, 60], "y": [5, 6, 7]})
    changes = Changes(add_brokers=(Broker(4), Broker(5)))
    execution = Execution(throttle_bytes_per_sec=5, batches=BatchRules(moves_per_broker=1))
    return replace(spec, changes=changes, execution=execution, **rest)


@examples(25)
@given(specs(rebalance=("all", "none", "leaders")), RULES, st.integers(0, 4))
def test_the_rest_is_exactly_what_the_batches_left(spec: Spec, rules: BatchRules, done: int) -> None:
    """After k batches, what the others would do is left, to the same target; the new batches reach it from here."""
    plan = plan_of(replace(spec, execution=Execution(batches=rules)))
    now = after_batches(plan, found(spec), done)

    rest = resumed(plan, now)

    assert [] == [error.message for error in VALIDATOR.iter_errors(rest)]
    later = [row for batch in plan["batches"][done:] for row in (*batch["partitions"], *batch["elect"])]
    assert keys(later) == keys(rest["partitions"])
    targets = {(row["topic"], row["partition"]): row["replicas"] for row in plan["partitions"]}
    assert {key: targets[key] for key in keys(later)} == {
        (row["topic"], row["partition"]): row["replicas"] for row in rest["partitions"]
    }
    end = after_batches(rest, now, len(rest["batches"]))
    assert after_batches(plan, found(spec), len(plan["batches"])).topics == end.topics


@examples(25)
@given(specs(), RULES, st.integers(0, 4))
def test_its_rollback_leads_back_to_where_it_was_resumed_from(spec: Spec, rules: BatchRules, done: int) -> None:
    """Undone from the last batch back, every list is the one that the resumed plan found."""
    plan = plan_of(replace(spec, execution=Execution(batches=rules)))
    now = after_batches(plan, found(spec), done)
    rest = resumed(plan, now)

    back = after_batches(rest, now, len(rest["batches"]))
    for batch in reversed(rest["batches"]):
        for step in batch["partitions"]:
            key = (step["topic"], step["partition"])
            assert tuple(step["replicas"]) == partition(back, key).replicas
            back = moved(back, key, step["replicas_before"])

    assert all(
        each.replicas == partition(now, (topic.name, each.id)).replicas
        for topic in back.topics.values()
        for each in topic.partitions
    )


@examples(10)
@given(specs())
def test_resumed_after_all_of_it_there_is_nothing_to_do(spec: Spec) -> None:
    """No partition, no batch, no byte; all of the plan's partitions count as there."""
    plan = plan_of(spec)
    rest = resumed(plan, after_batches(plan, found(spec), len(plan["batches"])))

    assert ([], [], 0) == (rest["partitions"], rest["batches"], rest["bound"]["bytes_moved"])
    assert len(plan["partitions"]) == rest["resumes"]["partitions_there"]


def test_it_says_which_plan_it_finishes_and_keeps_its_execution() -> None:
    """The plan's id, its throttle, its batch rules and its gates; the id is that of its own content."""
    plan = plan_of(expansion(limits=Limits(bytes_moved=1_000, replicas_moved=50)))
    rest = resumed(plan, after_batches(plan, found(expansion()), 1))

    assert plan["plan_id"] == rest["resumes"]["plan_id"]
    assert plan_id(rest) == rest["plan_id"]
    assert plan["execution"] | {"seconds_at_throttle": 0} == rest["execution"] | {"seconds_at_throttle": 0}
    assert [(gate["key"], gate["limit"]) for gate in plan["limits"]] == [
        (gate["key"], gate["limit"]) for gate in rest["limits"]
    ]
    moved_now = sum(
        row["size_bytes"] * len(set(row["replicas"]) - set(row["replicas_before"])) for row in rest["partitions"]
    )
    assert moved_now == rest["bound"]["bytes_moved"] == rest["limits"][0]["value"] < plan["bound"]["bytes_moved"]
    assert "reassignment.json" in files(typed(rest))


def test_a_plan_resumed_twice_ends_at_the_first_ones_target() -> None:
    """A resumed plan is a plan: it can be interrupted and resumed in its turn."""
    spec = expansion()
    plan = plan_of(spec)
    first = after_batches(plan, found(spec), 1)
    again = resumed(plan, first)
    second = after_batches(again, first, 1)

    last = resumed(again, second)

    assert again["plan_id"] == last["resumes"]["plan_id"]
    end = after_batches(last, second, len(last["batches"]))
    assert after_batches(plan, found(spec), len(plan["batches"])).topics == end.topics


def test_partitions_that_only_get_other_leaders_keep_their_racks() -> None:
    """Both replicas are in one rack, today and in the plan: that is nothing that resuming could be refused for."""
    racks = {1: "a", 2: "a", 3: "b"}
    spec = spec_of(racks, {"t": [(1, 2)] * 4}, changes=Changes(rebalance="leaders"))
    plan = plan_of(spec)

    rest = resumed(plan, found(spec))

    assert plan["partitions"] == rest["partitions"]
    assert [[2, 1], [2, 1]] == [row["replicas"] for row in rest["partitions"]]


def test_topics_that_are_gone_are_dropped_and_listed() -> None:
    """A deleted topic's partitions aren't planned any more; each is named with its reason, and warned of."""
    spec = expansion()
    plan = plan_of(spec)
    of_x = {key for key in keys(plan["partitions"]) if key[0] == "x"}

    rest = resumed(plan, without_topic(found(spec), "x"))

    assert of_x == keys(rest["resumes"]["dropped"])
    assert {"it is gone"} == {each["why"] for each in rest["resumes"]["dropped"]}
    assert keys(plan["partitions"]) - of_x == keys(rest["partitions"])
    assert len(of_x) == sum("is dropped" in warning for warning in rest["warnings"])


def test_partitions_that_others_moved_are_refused_or_left_where_they_are() -> None:
    """Elsewhere than on the plan's way: refused with both lists; asked for, it stays and is listed."""
    spec = expansion()
    plan = plan_of(spec)
    row = next(row for row in plan["partitions"] if set(row["replicas"]) - set(row["replicas_before"]))
    key = (row["topic"], row["partition"])
    lists = [set(row["replicas"]), set(row["replicas_before"])]
    elsewhere = next([a, b] for a in range(1, 6) for b in range(1, 6) if a != b and {a, b} not in lists)
    now = moved(found(spec), key, elsewhere)

    with pytest.raises(StalePlanError) as refused:
        resumed(plan, now)
    rest = resumed(plan, now, leave_moved=True)

    told = f"{key[0]}-{key[1]} has replicas {elsewhere[0]},{elsewhere[1]}; the plan's lists are"
    assert told in str(refused.value)
    assert [key] == [(each["topic"], each["partition"]) for each in rest["resumes"]["dropped"]]
    assert keys(plan["partitions"]) - {key} == keys(rest["partitions"])


def test_the_right_brokers_in_another_order_are_on_the_way() -> None:
    """A cancelled reassignment leaves them so: the rest begins from that order."""
    spec = expansion()
    plan = plan_of(spec)
    row = plan["partitions"][0]
    key = (row["topic"], row["partition"])
    now = moved(found(spec), key, row["replicas_before"][::-1])

    rest = resumed(plan, now)

    found_row = next(each for each in rest["partitions"] if (each["topic"], each["partition"]) == key)
    assert (row["replicas_before"][::-1], row["replicas"]) == (found_row["replicas_before"], found_row["replicas"])


def test_reassignments_of_others_are_refused() -> None:
    """A partition that the plan leaves alone and that is being reassigned: wait for it."""
    spec = replace(expansion(), changes=Changes(add_brokers=(Broker(4), Broker(5)), rebalance="leaders"))
    plan = plan_of(spec)
    key = next(key for key in ((name, at) for name in ROWS for at in range(3)) if key not in keys(plan["partitions"]))

    with pytest.raises(StalePlanError, match=f"{key[0]}-{key[1]} is being reassigned, which isn't the plan's doing"):
        resumed(plan, replace(found(spec), moving=frozenset({key})))


def test_what_the_plan_itself_still_moves_is_planned_from_where_it_will_be() -> None:
    """The state has its target already; a note says that it isn't there yet."""
    spec = expansion()
    plan = plan_of(spec)
    step = plan["batches"][0]["partitions"][0]
    key = (step["topic"], step["partition"])
    now = replace(after_batches(plan, found(spec), 1), moving=frozenset({key}))

    rest = resumed(plan, now)

    assert any("1 partition of the plan still being reassigned" in warning for warning in rest["warnings"])
    assert keys([row for batch in plan["batches"][1:] for row in batch["partitions"]]) <= keys(rest["partitions"])


def test_gates_are_judged_with_todays_sizes() -> None:
    """Data grew: what is left copies more than limits.bytes_moved, so nothing is planned."""
    spec = expansion(limits=Limits(bytes_moved=200))
    plan = plan_of(spec)
    now = found(spec)
    grown = replace(now, sizes={key: 100 * size for key, size in (now.sizes or {}).items()})

    with pytest.raises(UnsafePlanError, match=r"limits\.bytes_moved"):
        resumed(plan, grown)


def test_a_plan_in_bytes_needs_sizes() -> None:
    """Without sizes no gate on bytes could be judged, nor a time be told."""
    spec = expansion()

    with pytest.raises(StalePlanError, match="kafka-log-dirs"):
        resumed(plan_of(spec), replace(found(spec), sizes=None))


def test_brokers_of_the_target_have_to_be_live() -> None:
    """A target on a dead broker can't be reached."""
    spec = expansion()

    with pytest.raises(StalePlanError, match="not live: broker 5"):
        resumed(plan_of(spec), found(spec, racks=dict.fromkeys((1, 2, 3, 4))))


def test_a_disk_limit_is_the_one_that_was_approved() -> None:
    """A gate of plan.json is bytes of one broker; the share that it came from counts for all of them."""
    disks = tuple(Broker(number, disk_bytes=10_000_000_019 + number) for number in (1, 2, 3))
    spec = expansion(limits=Limits(disk_used_ppm=333_333))
    joining = tuple(replace(each, disk_bytes=10_000_000_000) for each in spec.changes.add_brokers)
    spec = replace(
        spec,
        cluster=replace(spec.cluster, brokers=disks),
        changes=replace(spec.changes, add_brokers=joining),
    )
    plan = plan_of(spec)

    assert plan["limits"] == resumed(plan, found(spec))["limits"]


def test_what_the_yaml_asked_for_stays_asked_for() -> None:
    """The rest is made from what the plan says of its spec, without a limit on a gap: it has none."""
    asked = {
        "topics": TopicFilter(("x", "z*"), ("zz",)),
        "resilience": "broker",
        "sweep": Sweep(aims=("makespan",)),
        "limits": Limits(replicas_moved=50, gap_ppm=10_000),
    }
    plan = plan_of(expansion(**asked))
    rest = resumed(plan, after_batches(plan, found(expansion()), 1))

    assert plan["spec"] == {
        "topics": {"include": ["x", "z*"], "exclude": ["zz"]},
        "survive": "broker",
        "aims": ["makespan"],
        "limits": {"replicas_moved": 50, "gap_ppm": 10_000},
    }
    assert {**plan["spec"], "limits": {"replicas_moved": 50}} == rest["spec"]
    assert plan["candidates"]["rule"] == rest["candidates"]["rule"]


def test_what_topics_inherit_is_as_the_state_has_it_or_else_the_plan() -> None:
    """A state without configurations doesn't make them unknown."""
    spec = expansion()
    spec = replace(spec, cluster=replace(spec.cluster, config_defaults=(("min.insync.replicas", "1"),)))
    plan = plan_of(spec)
    now = replace(found(spec), config_defaults=(("min.insync.replicas", "2"),))

    assert {"min.insync.replicas": "1"} == resumed(plan, found(spec))["cluster"]["config_defaults"]
    assert {"min.insync.replicas": "2"} == resumed(plan, now)["cluster"]["config_defaults"]


def test_new_partitions_that_are_made_are_left_out_and_the_others_stay() -> None:
    """Before the first batch all are to be made; once they are there none is; other ones are refused."""
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


def test_a_topic_that_cannot_get_partitions_any_more_is_dropped() -> None:
    """It was deleted, so there is nothing to add to: listed with the partitions of the plan."""
    spec = expansion()
    spec = replace(spec, changes=replace(spec.changes, new_partitions=(NewPartitions("y", 3, 5, 2),)))

    rest = resumed(plan_of(spec), without_topic(found(spec), "y"), leave_moved=True)

    assert ("y", None) in [(each["topic"], each["partition"]) for each in rest["resumes"]["dropped"]]
    assert None is rest["new_partitions"]


def test_log_dirs_that_replicas_lie_in_already_are_not_named_again() -> None:
    """Of a replica that moves inside its broker nothing is left once it lies there; its way back is today's dir."""
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

    (row,) = resumed(plan, now)["partitions"]
    done = replace(now, log_dirs=LogDirs(dirs, (lies[0], replace(lies[1], path="/b"))))

    assert (["any", "/b"], ["any", "/a"]) == (row["log_dirs"], row["log_dirs_before"])
    assert [] == resumed(plan, done)["partitions"]
    with pytest.raises(StalePlanError, match="names log dirs"):
        resumed(plan, found(spec))


def test_leaders_that_nobody_elected_yet_are_left_to_elect() -> None:
    """All lists are reached, a leader isn't: an election is left, and nothing else."""
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
    """The rest is valid for as long, from the new moment on."""
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
    """Rolling the rest back leaves replicas on them, so they have to be live in both directions."""
    spec = expansion()
    plan = plan_of(spec)
    now = after_batches(plan, found(spec), 1)
    holding = {broker for topic in now.topics.values() for each in topic.partitions for broker in each.replicas}

    roles = {broker["id"]: broker["role"] for broker in resumed(plan, now)["brokers"]}

    assert {4, 5} & holding
    assert {number: "stays" if number in holding else "added" for number in (4, 5)} == {
        number: roles[number] for number in (4, 5)
    }


def test_its_headline_claims_no_bound_of_its_own() -> None:
    """Nothing was optimised: the approved plan's bound is the one that was proven."""
    spec = expansion()
    rest = resumed(plan_of(spec), found(spec))

    assert headline(typed(rest)).endswith(": what an approved plan left to do.")
    assert ("target", None) == (rest["bound"]["method"], rest["bound"]["sha256"])
