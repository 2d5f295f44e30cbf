"""The role's variables, which are made from a plan."""

from __future__ import annotations

import pytest
from plan_documents import change, document, typed

from planner.export import ansible_vars
from planner.model.document_fields import DerivedRow

# a-0 takes two batches, a-1 changes its order, b-0 gets a replica, and b-1 gets only another leader.
A0, A1 = change("a", 0, [1, 2], [3, 4]), change("a", 1, [2, 1], [1, 2])
B0, B1 = change("b", 0, [1], [1, 3]), change("b", 1, [1, 2], [1, 2], leader=2)
STEP, REST = change("a", 0, [1, 2], [1, 4]), change("a", 0, [1, 4], [3, 4])
DOCUMENT = document([A0, A1, B0, B1], [[STEP, B0], [REST, A1, B1]])
PLAN = typed(DOCUMENT)


def test_states_are_the_way_of_each_partition() -> None:
    """A partition's states go from its list today, step by step, to the planned one. One that only elects has none."""
    assert {
        ("a", 0): [(1, 2), (1, 4), (3, 4)],
        ("a", 1): [(2, 1), (1, 2)],
        ("b", 0): [(1,), (1, 3)],
    } == ansible_vars.states(PLAN)


def test_leaders_of_both_directions() -> None:
    """Apply elects each batch's preferred leaders. Rollback restores the old leaders, even if not preferred."""
    assert {
        "apply": {"02": ["a 0 3", "a 1 1", "b 1 1"]},
        "rollback": {"02": ["a 0 1", "a 1 2"]},
        "unpreferred": ["b 1 2"],
    } == ansible_vars.leaders(PLAN)


def test_elections_back_leave_out_what_no_election_brings_back() -> None:
    """Rollback doesn't elect a partition whose old leader wasn't the preferred one."""
    back = [row.key for row in ansible_vars.elections(PLAN).rollback]
    assert [("a", 0), ("a", 1)] == back
    assert [(0, 0), (3, 2)] == [(len(each.apply), len(each.rollback)) for each in ansible_vars.batch_elections(PLAN)]


def test_partition_without_a_leader_is_left_to_kafka() -> None:
    """A partition that had no leader before the plan gets none back from a rollback."""
    orphan = typed(document([change("a", 0, [1, 2], [3, 4], leader=None)]))
    assert [] == ansible_vars.unpreferred(orphan)
    assert {"apply": {"01": ["a 0 3"]}, "rollback": {}, "unpreferred": []} == ansible_vars.leaders(orphan)


def test_a_batch_without_leaders_names_its_partitions() -> None:
    """A batch without leaders lists the partitions that it moves or only elects. No other batch has an entry."""
    assert {} == ansible_vars.leaderless(PLAN)
    first, second = DOCUMENT["batches"]
    waiting = typed(DOCUMENT | {"batches": [first, second | {"leaderless": True}]})
    assert {"02": ["a-0", "a-1", "b-1"]} == ansible_vars.leaderless(waiting)
    assert [False, True] == [batch["leaderless"] for batch in ansible_vars.values(waiting)["batches"]]


def test_what_is_derived_is_a_variable() -> None:
    """The variable has each derived value with the YAML key that changes it. It is empty without derived values."""
    rows = [{"key": "execution.throttle", "value": "50MB/s", "why": "a constant"}]
    told = typed(DOCUMENT | {"execution": DOCUMENT["execution"] | {"derived": rows}})
    assert ((DerivedRow(**rows[0]),), ()) == (
        ansible_vars.values(told)["derived"],
        ansible_vars.values(PLAN)["derived"],
    )


def test_batches_say_where_factors_stay() -> None:
    """Each batch says whether it keeps all replication factors, and whether it moves partitions in steps."""
    told = ansible_vars.values(PLAN)["batches"]
    assert [(False, True), (True, True)] == [(b["keeps_replication_factor"], b["stepwise"]) for b in told]


def test_bytes_of_a_batch_go_by_direction() -> None:
    """A rollback copies the replicas that the batch dropped, but none that it added for a replication factor."""
    told = ansible_vars.values(PLAN)["batches"]
    assert [100, 100] == [batch["bytes"]["rollback"] for batch in told]
    unknown = typed(document([A0], cluster={"sizes_known": False}))
    assert [{"apply": 0, "rollback": 0}] == [batch["bytes"] for batch in ansible_vars.values(unknown)["batches"]]


def test_broker_that_changes_racks_is_not_checked() -> None:
    """A broker that changes racks isn't checked, because that needs a restart at a time that the plan doesn't know."""
    moved = typed(DOCUMENT | {"changes": DOCUMENT["changes"] | {"set_racks": {"2": "b"}}})
    assert {1, 3, 4, 9} == set(ansible_vars.values(moved)["racks_of_broker"])


def test_who_must_be_live_and_who_leaves() -> None:
    """Apply doesn't need brokers that leave, and rollback doesn't need the added ones."""
    told = ansible_vars.values(PLAN)
    assert {"apply": [1, 2, 3, 4], "rollback": [1, 2, 3, 9]} == told["brokers_of_direction"]
    assert {"apply": [9], "rollback": [4]} == told["leaving_in_direction"]


@pytest.mark.parametrize(("ppm", "limit"), [(None, 1_000), (800_000, 800)])
def test_a_broker_may_fill_its_disk_up_to_the_limit(ppm: int | None, limit: int) -> None:
    """The limit of a broker with a known disk size. Without `limits.disk_used` it is the whole disk."""
    plan = document([change("a", 0, [1, 2], [4, 2])])
    plan["spec"]["limits"] = {} if ppm is None else {"disk_used_ppm": ppm}
    plan["brokers"][0]["disk_bytes"] = 1_000
    assert {1: limit} == ansible_vars.disk_limits(typed(plan))


@pytest.mark.parametrize(("held", "limits"), [(800, {1: 800}), (801, {1: 900}), (1_000, {1: 1_000}), (1_001, {})])
def test_a_broker_above_its_limit_may_be_relieved(held: int, limits: dict[int, int]) -> None:
    """A broker that is above its limit when the plan is made doesn't stop the plan that relieves it."""
    plan = document([change("a", 0, [1, 2], [4, 2])])
    plan["spec"]["limits"] = {"disk_used_ppm": 800_000}
    plan["brokers"][0] |= {"disk_bytes": 1_000, "before": plan["brokers"][0]["before"] | {"size_bytes": held}}
    assert limits == ansible_vars.disk_limits(typed(plan))
