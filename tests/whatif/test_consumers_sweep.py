"""How many consumers, and which assignor: the combinations that are tried, how they are weighed, and the best one."""

from __future__ import annotations

from dataclasses import replace

from planner.model.spec import Growth
from planner.plan.document.codec import as_json
from planner.whatif.consumers_sweep import evaluate, rows, study, summary
from planner.whatif.group_events_and_keys import Group, assigned, spread

LOADS = {("a", 0): 4, ("a", 1): 2, ("a", 2): 1, ("a", 3): 1, ("b", 0): 10}


def group(assignor: str = "range", counts: dict[str, int] | None = None, members: int = 2) -> Group:
    """A group whose members read everything."""
    read = counts or {"a": 4}
    return Group("g", assignor, read, {f"m{number}": tuple(read) for number in range(members)}, {})


def tried(*groups: Group, **limits: int) -> list[tuple[str, int]]:
    """The assignors and numbers of members that are tried."""
    return [(row["assignor"], row["members"]) for row in rows(groups, **limits)]


def test_members_are_two_to_twice_as_many_and_never_more_than_partitions() -> None:
    """From two members to twice as many, but never more than partitions, because others would have nothing to read;
    members of a share group share partitions.
    """
    assert {2, 3, 4} == {members for _, members in tried(group())}
    assert {2} == {members for _, members in tried(group(members=1))}
    assert {4} == {members for _, members in tried(group(), fewest=6, most=9)}
    assert {6, 7, 8, 9} == {members for _, members in tried(group("simple"), fewest=6, most=9)}


def test_a_groups_own_assignor_is_tried_beside_kafkas() -> None:
    """A group's own assignor is tried besides Kafka's; sticky only if it is the group's, because for a new group
    cooperative-sticky gives the same. So do range and server-range; a share group has one assignor.
    """
    kafkas = {"range", "roundrobin", "cooperative-sticky", "uniform"}
    assert kafkas == {assignor for assignor, _ in tried(group())}
    assert kafkas | {"sticky"} == {assignor for assignor, _ in tried(group("sticky"))}
    assert kafkas | {"server-range"} == {assignor for assignor, _ in tried(group("server-range"))}
    assert {"simple"} == {assignor for assignor, _ in tried(group("simple"))}
    assert kafkas | {"mine:assign"} == {assignor for assignor, _ in tried(group("mine:assign"))}


def test_topic_ids_order_the_topics_as_in_the_group() -> None:
    """The broker's assignor goes through the topics by their ids, so these decide who reads what with whom."""
    loads = {**LOADS, ("b", 0): 7, ("b", 1): 100, ("b", 2): 5}
    base = group("uniform", {"a": 3, "b": 3})
    ids = {"a": "Aq3dv0JfQ2yJw7xqB4n3fA", "b": "zq3dv0JfQ2yJw7xqB4n0eA"}
    named, spreads = replace(base, topic_ids=ids), []
    for each in (base, replace(base, topic_ids={"a": ids["b"], "b": ids["a"]}), named):
        made = study([each], loads, [])
        row = next(row for row in rows([each], 4, 4) if row["assignor"] == "uniform")
        members = {f"consumer-{number}": ("a", "b") for number in range(1, 5)}
        owners = assigned(replace(each, members=members), "uniform", None)
        spreads.append(evaluate(made, row)["most_load"])
        assert spreads[-1] == spread(owners, loads).most_load
    assert len({*spreads}) > 1


def test_the_least_spread_is_best_in_the_scenario_that_is_worst_for_it() -> None:
    """Range gives two members 6 and 2, taking turns 5 and 3: if a's load is three times as large, they are 6 apart."""
    made = study([group()], LOADS, [Growth("more", "a", 3.0), Growth("other", "b", 9.0)])
    found = as_json(summary(made, [evaluate(made, row) for row in rows([group()], 2, 2)]))
    assert ["today", "more", "other"] == found["scenarios"]
    (of,) = found["groups"]
    assert (4, "cooperative-sticky", 6, 1) == (
        of["tried"],
        of["best"]["assignor"],
        of["best"]["widest_spread"],
        of["best"]["widest_in"],
    )
    assert 25.0 == of["best"]["above_share_percent"]
