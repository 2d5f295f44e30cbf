"""The rest of an interrupted plan: exactly what its batches left, as a plan with its own id."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from clusters import balance_of, no_racks, spec_of, specs
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st
from interrupted import (
    ROWS,
    after_batches,
    expansion,
    found,
    keys,
    led,
    moved,
    partition,
    plan_of,
    resumed,
    without_topic,
)
from jsonschema import Draft202012Validator
from plan_documents import plan_id, typed
from properties import examples

from planner.export.templated_files import files
from planner.model.balance import Tolerance
from planner.model.cluster import Broker, Partition, Topic
from planner.model.document_fields import ReplicationFactorRow, SpecLimits
from planner.model.errors import StalePlanError, UnsafePlanError
from planner.model.spec import BatchRules, Budget, Changes, Execution, Spec, Sweep, TopicFilter

SCHEMA = json.loads((ROOT / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
RULES = st.sampled_from((BatchRules(moves_per_broker=1), BatchRules(replicas_per_partition=1, moves_per_broker=2)))


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
    assert plan["balance"] == rest["balance"]


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
    """The rest names the plan and keeps its throttle, batch rules and limits; its id is the hash of its own content."""
    plan = plan_of(expansion(limits=SpecLimits(bytes_moved=1_000, replicas_moved=50)))
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
    """The rest can be interrupted and resumed again, and still ends at the first plan's target."""
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
    """A partition whose replicas share a rack only gets another leader; the rest isn't refused for the rack rule."""
    racks = {1: "a", 2: "a", 3: "b"}
    spec = spec_of(racks, {"t": [(1, 2)] * 4}, changes=Changes(rebalance="leaders"))
    plan = plan_of(spec)

    rest = resumed(plan, found(spec))

    assert plan["partitions"] == rest["partitions"]
    assert [[2, 1], [2, 1]] == [row["replicas"] for row in rest["partitions"]]


@pytest.mark.parametrize("done", [0, 1])
def test_partitions_that_are_only_reordered_for_another_keep_their_racks(done: int) -> None:
    """With `rebalance: none`, x-0 stays in one rack and only changes its leader to y-0's; the rest isn't refused."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    requested = Changes(add_brokers=(Broker(5, "b"),), replace_brokers=((4, 5),), rebalance="none")
    spec = spec_of(racks, {"x": [(1, 2)], "y": [(4, 2)]}, changes=requested, together=(("x", "y"),))
    plan = plan_of(replace(spec, execution=Execution(batches=BatchRules(moves_per_broker=1))))
    assert {("x", 0): [2, 1], ("y", 0): [2, 5]} == {(row["topic"], 0): row["replicas"] for row in plan["partitions"]}

    rest = resumed(plan, led(after_batches(plan, found(spec), done), ("x", 0), 1))

    assert [2, 1] == next(row["replicas"] for row in rest["partitions"] if row["topic"] == "x")


@pytest.mark.parametrize("done", [0, 1])
def test_the_rest_of_a_first_step_leaves_slots_of_what_waits_for_later(done: int) -> None:
    """The budget pays for x-0 but not for y-0, so they get a common leader in a later step; the rest isn't refused."""
    requested = Changes(remove_brokers=(2,), set_replication_factor=(ReplicationFactorRow("x", 2),), rebalance="none")
    spec = spec_of(no_racks(1, 2, 3, 4), {"x": [(1,)], "y": [(3, 2)]}, sizes={"x": [10], "y": [90]}, changes=requested)
    plan = plan_of(replace(spec, together=(("x", "y"),), budget=Budget(bytes_moved=50)))
    assert not plan["complete"]
    assert [("x", 0)] == [(row["topic"], row["partition"]) for row in plan["partitions"]]

    rest = resumed(plan, after_batches(plan, found(spec), done))

    assert 1 - done == len(rest["partitions"])
    assert [1] == [row["plan"] for row in rest["terms"] if row["name"] == "left_to_change"], "y-0 waits"


def test_the_rest_of_a_first_step_counts_the_factor_that_it_waits_for() -> None:
    """The rest of a first step counts the partitions left to change, and has the shares of the approved plan."""
    raised = Changes(set_replication_factor=(ReplicationFactorRow("x", 2),), rebalance="none")
    rows, sizes = {"x": [(1,), (2,), (3,)]}, {"x": [10, 90, 90]}
    plan = plan_of(spec := spec_of(no_racks(1, 2, 3), rows, sizes=sizes, changes=raised, budget=Budget(50)))
    rest, shares = resumed(plan, found(spec)), ("bytes_above_share", "replicas_above_share", "left_to_change")
    both = [[row["plan"] for row in each["terms"] if row["name"] in shares] for each in (plan, rest)]
    assert both == [[0.0, 0.0, 2]] * 2
    assert [35.0, 35.0] == [each["compared"][0]["imbalance_percent"] for each in (plan, rest)], "by what there is"


def test_topics_that_are_gone_are_dropped_and_listed() -> None:
    """Partitions of a deleted topic are left out; each is listed with its reason and a warning."""
    spec = expansion()
    plan = plan_of(spec)
    of_x = {key for key in keys(plan["partitions"]) if key[0] == "x"}

    rest = resumed(plan, without_topic(found(spec), "x"))

    assert of_x == keys(rest["resumes"]["dropped"])
    assert {"it is gone"} == {each["why"] for each in rest["resumes"]["dropped"]}
    assert keys(plan["partitions"]) - of_x == keys(rest["partitions"])
    assert len(of_x) == sum("is dropped" in warning for warning in rest["warnings"])


def test_partitions_that_others_moved_are_refused_or_left_where_they_are() -> None:
    """A partition that somebody moved elsewhere is refused with its lists; with `leave_moved` it is left and listed."""
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


def test_targets_that_dropped_partitions_or_other_sizes_miss_are_said_to_be_missed() -> None:
    """Targets that the rest misses, because a partition was dropped or data grew, are listed with the reason."""
    spec = spec_of(no_racks(1, 2), {"x": [(1,)] * 6}, sizes=10, changes=Changes(add_brokers=(Broker(3),)))
    plan = plan_of(replace(spec, balance=replace(spec.balance, disk=Tolerance.parse("10%"))))
    assert [] == plan["balance"]["missed"]
    now = found(spec)
    row = next(row for row in plan["partitions"] if row["replicas"] == [3])

    rest = resumed(plan, moved(now, (row["topic"], row["partition"]), [2]), leave_moved=True)
    grown = resumed(plan, replace(now, sizes={key: 10 + 90 * (key == ("x", 0)) for key in now.sizes or {}}))

    assert ["disk", "leaders", "replicas", "topic_replicas"] == rest["balance"]["missed"]
    told = {"the approved plan met it; since then partitions were created or dropped, or sizes or rates changed"}
    assert told == {each["why"] for each in rest["balance"]["relaxed"]}
    assert ["disk"] == grown["balance"]["missed"]

    created = Topic("z", tuple(Partition(number, (1,), 1) for number in range(3)))
    more = resumed(plan, replace(now, topics={**now.topics, "z": created}))
    assert told == {each["why"] for each in more["balance"]["relaxed"]}


def test_the_right_brokers_in_another_order_are_on_the_way() -> None:
    """After a canceled reassignment the replicas may have another order; the rest begins from that order."""
    spec = expansion()
    plan = plan_of(spec)
    row = plan["partitions"][0]
    key = (row["topic"], row["partition"])
    now = moved(found(spec), key, row["replicas_before"][::-1])

    rest = resumed(plan, now)

    found_row = next(each for each in rest["partitions"] if (each["topic"], each["partition"]) == key)
    assert (row["replicas_before"][::-1], row["replicas"]) == (found_row["replicas_before"], found_row["replicas"])


def test_reassignments_of_others_are_refused() -> None:
    """A partition that is being reassigned, but not by the plan, refuses the rest."""
    spec = replace(expansion(), changes=Changes(add_brokers=(Broker(4), Broker(5)), rebalance="leaders"))
    plan = plan_of(spec)
    key = next(key for key in ((name, at) for name in ROWS for at in range(3)) if key not in keys(plan["partitions"]))

    with pytest.raises(StalePlanError, match=f"{key[0]}-{key[1]} is being reassigned, but not by the plan"):
        resumed(plan, replace(found(spec), moving=frozenset({key})))


def test_what_the_plan_itself_still_moves_is_planned_from_where_it_will_be() -> None:
    """A partition that the plan is still moving counts as moved, and a warning says that the move isn't complete."""
    spec = expansion()
    plan = plan_of(spec)
    step = plan["batches"][0]["partitions"][0]
    key = (step["topic"], step["partition"])
    now = replace(after_batches(plan, found(spec), 1), moving=frozenset({key}))

    rest = resumed(plan, now)

    assert any("1 partition of the plan still being reassigned" in warning for warning in rest["warnings"])
    assert keys([row for batch in plan["batches"][1:] for row in batch["partitions"]]) <= keys(rest["partitions"])


def test_gates_are_judged_with_todays_sizes() -> None:
    """If data grew and the rest copies more than limits.bytes_moved, it is refused."""
    spec = expansion(limits=SpecLimits(bytes_moved=200))
    plan = plan_of(spec)
    now = found(spec)
    grown = replace(now, sizes={key: 100 * size for key, size in (now.sizes or {}).items()})

    with pytest.raises(UnsafePlanError, match=r"limits\.bytes_moved"):
        resumed(plan, grown)


def test_what_may_stay_spread_as_it_is_may_when_resumed() -> None:
    """With `racks_as_today`, partitions that break the rack rule may break it in the rest too."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
    topics, nothing = TopicFilter(on_brokers=(1,)), balance_of("none", "none", "none")
    spec = spec_of(racks, {"x": [(1, 2, 4)] * 6}, sizes=10, topics=topics, balance=nothing, racks_as_today=True)
    capped = (replace(each, max_replicas=3 if each.id == 1 else None) for each in spec.cluster.brokers)
    spec = replace(
        spec,
        cluster=replace(spec.cluster, brokers=tuple(capped)),
        execution=Execution(batches=BatchRules(moves_per_broker=1)),
    )
    plan = plan_of(spec)
    assert [3, 30] == [len(plan["partitions"]), plan["bound"]["bytes_moved"]]
    rest = resumed(plan, after_batches(plan, found(spec), 1))
    assert (2, True) == (len(rest["partitions"]), rest["spec"]["racks_as_today"])


def test_a_plan_in_bytes_needs_sizes() -> None:
    """A plan in bytes is refused without sizes, because limits and times can't be computed."""
    spec = expansion()

    with pytest.raises(StalePlanError, match="kafka-log-dirs"):
        resumed(plan_of(spec), replace(found(spec), sizes=None))


def test_a_disk_limit_is_the_one_that_was_approved() -> None:
    """The limit on disk use is the same number of bytes as in the plan, although the disks differ by single bytes."""
    disks = tuple(Broker(number, disk_bytes=10_000_000_019 + number) for number in (1, 2, 3))
    spec = expansion(limits=SpecLimits(disk_used_ppm=333_333))
    joining = tuple(replace(each, disk_bytes=10_000_000_000) for each in spec.changes.add_brokers)
    spec = replace(
        spec,
        cluster=replace(spec.cluster, brokers=disks),
        changes=replace(spec.changes, add_brokers=joining),
    )
    plan = plan_of(spec)

    assert plan["limits"] == resumed(plan, found(spec))["limits"]


def test_what_the_yaml_asked_for_stays_asked_for() -> None:
    """The rest keeps the spec that plan.json records, except the limit on the gap, because it has no proof."""
    asked = {
        "topics": TopicFilter(("x", "z*"), ("zz",)),
        "resilience": "broker",
        "sweep": Sweep(aims=("makespan",)),
        "limits": SpecLimits(replicas_moved=50, gap_ppm=10_000),
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
    """Inherited configurations come from the state, or from the plan if the state has none."""
    spec = expansion()
    spec = replace(spec, cluster=replace(spec.cluster, config_defaults=(("min.insync.replicas", "1"),)))
    plan = plan_of(spec)
    now = replace(found(spec), config_defaults=(("min.insync.replicas", "2"),))

    assert {"min.insync.replicas": "1"} == resumed(plan, found(spec))["cluster"]["config_defaults"]
    assert {"min.insync.replicas": "2"} == resumed(plan, now)["cluster"]["config_defaults"]


def test_what_an_assignment_cannot_make_better_is_told_again() -> None:
    """The rest repeats the plan's warnings on demoted brokers that still lead and on partitions that don't survive."""
    spec = expansion(resilience="broker")
    lone = Topic("z", (Partition(0, (1,), 1, size_bytes=1),))
    cluster = replace(spec.cluster, topics=(*spec.cluster.topics, lone))
    spec = replace(spec, cluster=cluster, changes=replace(spec.changes, demote_brokers=(1,), rebalance="none"))
    plan = plan_of(spec)
    told = [line for line in plan["warnings"] if "demoted broker 1" in line or "resilience.survive" in line]

    assert len(told) == 2
    assert resumed(plan, found(spec))["warnings"][1:] == plan["warnings"]
