"""A change of one partition: which brokers copy it, which drop it, and whether it needs an election."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.cluster import (
    ANY,
    LogDir,
    LogDirs,
    Partition,
    PartitionChange,
    Reason,
    ReplicaDir,
    Topic,
    keyed_partitions,
    merge_log_dirs,
)


def test_each_partition_has_the_name_of_its_topic() -> None:
    """The partitions of all topics come in order, each with its topic and number."""
    topics = Topic("a", (Partition(0, (1,)), Partition(1, (2,)))), Topic("b", (Partition(0, (3,)),))
    assert [(("a", 0), 1), (("a", 1), 2), (("b", 0), 3)] == [
        (key, row.replicas[0]) for key, row in keyed_partitions(topics)
    ]


def test_of_two_descriptions_the_first_counts() -> None:
    """If two descriptions have a broker, the first counts; brokers that only the second has are added."""
    one = LogDirs(((1, (LogDir("/a"),)),), (ReplicaDir("t", 0, 1, "/a", 1),))
    two = LogDirs(
        ((1, (LogDir("/b"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/b", 2), ReplicaDir("t", 0, 2, "/b", 2))
    )
    assert LogDirs(
        ((1, (LogDir("/a"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/a", 1), ReplicaDir("t", 0, 2, "/b", 2))
    ) == merge_log_dirs([one, two])


def change(before: tuple[int, ...], after: tuple[int, ...], **more: Any) -> PartitionChange:
    """A change of t-0, which broker 1 leads."""
    return PartitionChange(
        "t", 0, before, after, **{"leader_before": 1, "size_bytes": 5, "reason": Reason.RACK_RULE, **more}
    )


def test_who_copies_and_who_drops() -> None:
    """Replicas to add are in the order of the new list, those to remove in the order of the old one."""
    moved = change((1, 2, 3), (4, 1, 5))
    assert ((4, 5), (2, 3), True, True) == (moved.adding, moved.removing, moved.reassigned, moved.elects)


def test_another_order_is_a_reassignment_without_copies() -> None:
    """Another order copies nothing, but is a reassignment, and elects the new first replica."""
    turned = change((1, 2), (2, 1))
    assert ((), (), True, True) == (turned.adding, turned.removing, turned.reassigned, turned.elects)


@pytest.mark.parametrize(("leader", "elects"), [(1, False), (2, True), (None, True)])
def test_an_election_alone_is_no_reassignment(leader: int | None, elects: bool) -> None:
    """If only the leader is wrong or missing, an election is needed, but no reassignment."""
    led = change((1, 2), (1, 2), leader_before=leader)
    assert (False, elects) == (led.reassigned, led.elects)


def test_a_replica_moves_between_log_dirs_of_a_broker_that_keeps_it() -> None:
    """A replica that stays on its broker moves between log dirs; a new one doesn't. Log dirs alone need no election."""
    dirs = {"log_dirs_before": ("/a", "/a"), "log_dirs": ("/b", "/b", ANY)}
    both = change((1, 2), (1, 4, 2), **dirs)
    assert ((1,), True) == (both.dir_moves, both.reassigned)
    alone = change((1,), (1,), log_dirs=("/b",), leader_before=2, reason=Reason.BALANCE_LOG_DIRS)
    assert (True, False) == (alone.reassigned, alone.elects)
