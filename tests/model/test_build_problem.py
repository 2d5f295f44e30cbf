"""The flat arrays of a spec."""

from __future__ import annotations

import pytest
from clusters import problem_of, spec_of, specs
from hypothesis import given
from properties import examples

from planner.model.build_problem import brokers_after, build, may_move
from planner.model.cluster import Broker
from planner.model.spec import Changes, ReplicationFactorChange, Spec, TopicFilter


def test_arrays_by_hand() -> None:
    """A cluster with everything: a broker added, one removed, one replaced, racks set, factors changed."""
    spec = spec_of(
        {4: "b", 2: "a", 9: "a"},
        {"z": [(4, 2)], "b": [(9, 4), (2,)]},
        sizes={"z": [7], "b": [5, 0]},
        leaders={"b": [4, None]},
        config={"b": (("min.insync.replicas", "2"),)},
        changes=Changes(
            add_brokers=(Broker(11, "c"), Broker(3, "b")),
            remove_brokers=(2,),
            replace_brokers=((9, 3),),
            set_racks=((4, "d"),),
            set_replication_factor=(ReplicationFactorChange("b", 2),),
        ),
        topics=TopicFilter(exclude=("z*",)),
    )
    problem = build(spec)
    assert [2, 3, 4, 9, 11] == problem.broker_ids.tolist()
    assert ("a", "b", "c", "d") == problem.rack_names
    assert [0, 1, 3, 0, 2] == problem.broker_racks.tolist()
    assert [False, True, True, False, True] == problem.targets.tolist()
    assert ("b", "z") == problem.topic_names
    assert [0, 0, 1] == problem.topic_of.tolist()
    assert [0, 1, 0] == problem.partition_ids.tolist()
    assert [[3, 2], [0, -1], [2, 0]] == problem.replicas.tolist()
    assert [2, -1, 2] == problem.leaders.tolist()
    assert [-1, -1, -1, 1, -1] == problem.replacements.tolist()
    assert [5, 0, 7] == problem.size_bytes.tolist()
    assert [2, 2, 2] == problem.replication_factors.tolist()
    assert [2, 2, 1] == problem.min_insync.tolist()
    assert [True, True, False] == problem.movable.tolist()
    assert [True, True, True] == problem.forced.tolist()
    assert (3, 2, True) == (problem.rows, problem.width, problem.racks_matter)


def test_forced_by_each_change() -> None:
    """A leaving broker, a factor, and racks that make a spread worse force; nothing else does."""
    racks = {1: "a", 2: "b", 3: "c"}
    rows = {"x": [(1, 2), (2, 3), (3, 1)]}
    asked = [
        (Changes(), [False, False, False]),
        (Changes(remove_brokers=(1,), add_brokers=(Broker(7, "a"),)), [True, False, True]),
        (Changes(set_replication_factor=(ReplicationFactorChange("x", 2),)), [False, False, False]),
        (Changes(set_replication_factor=(ReplicationFactorChange("x", 3),)), [True, True, True]),
        (Changes(set_racks=((3, "b"),)), [False, True, False]),
        (Changes(add_brokers=(Broker(7, "d"),)), [False, False, False]),
    ]
    assert [expected for _, expected in asked] == [
        problem_of(racks, rows, changes=changes).forced.tolist() for changes, _ in asked
    ]


def test_set_racks_that_crowd_a_rack_force() -> None:
    """Two racks of two replicas each become three and one: as many racks as before, and yet a worse spread."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "b"}
    problem = problem_of(
        racks, {"x": [(1, 2, 3, 4)]}, changes=Changes(set_racks=((2, "b"), (5, "a")), rebalance="none")
    )
    assert [True] == problem.forced.tolist()


@pytest.mark.parametrize(
    ("name", "include", "exclude", "expected"),
    [
        ("orders", ("*",), (), True),
        ("orders", ("orders-*",), (), False),
        ("orders-eu", ("orders-*",), ("*-eu",), False),
        ("__consumer_offsets", ("*",), ("__*",), False),
        ("Orders", ("orders",), (), False),
    ],
)
def test_may_move(name: str, include: tuple[str, ...], exclude: tuple[str, ...], expected: bool) -> None:
    """Included by any pattern, excluded by none; case counts."""
    assert expected == may_move(TopicFilter(include, exclude), name)


def test_brokers_after_have_their_new_racks() -> None:
    """Today's brokers and the added ones by id; a broker that is added may be given its rack by set_racks too."""
    changes = Changes(add_brokers=(Broker(1, "x"),), set_racks=((1, "y"), (5, "z")))
    spec = spec_of({5: "a", 3: "b"}, {"t": [(5,)]}, changes=changes)
    assert [Broker(1, "y"), Broker(3, "b"), Broker(5, "z")] == brokers_after(spec)


@examples(80)
@given(specs(rebalance=("all", "leaders", "none")))
def test_nothing_is_lost(spec: Spec) -> None:
    """Every partition is there once with its replicas, leader and size, whatever the order of topics and brokers."""
    problem = build(spec)
    ids = problem.broker_ids.tolist()
    found = {
        (problem.topic_names[topic], number, tuple(ids[b] for b in row if b >= 0), size): ids[leader]
        if leader >= 0
        else None
        for topic, number, row, size, leader in zip(
            problem.topic_of.tolist(),
            problem.partition_ids.tolist(),
            problem.replicas.tolist(),
            problem.size_bytes.tolist(),
            problem.leaders.tolist(),
            strict=True,
        )
    }
    expected = {
        (topic.name, part.id, part.replicas, part.size_bytes): part.leader
        for topic in spec.cluster.topics
        for part in topic.partitions
    }
    assert expected == found
