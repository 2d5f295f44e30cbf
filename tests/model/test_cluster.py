"""A cluster's values, and one partition's change: who copies, who drops, and whether a leader is elected."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.cluster import ANY, LogDir, LogDirs, PartitionChange, Reason, ReplicaDir, merged


def test_of_two_descriptions_the_first_counts() -> None:
    """Brokers that only the second one names are taken from there."""
    one = LogDirs(((1, (LogDir("/a"),)),), (ReplicaDir("t", 0, 1, "/a", 1),))
    two = LogDirs(
        ((1, (LogDir("/b"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/b", 2), ReplicaDir("t", 0, 2, "/b", 2))
    )
    assert LogDirs(
        ((1, (LogDir("/a"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/a", 1), ReplicaDir("t", 0, 2, "/b", 2))
    ) == merged([one, two])


def change(before: tuple[int, ...], after: tuple[int, ...], **more: Any) -> PartitionChange:
    """A change of t-0, led by broker 1."""
    return PartitionChange(
        "t", 0, before, after, **{"leader_before": 1, "size_bytes": 5, "reason": Reason.RACK_RULE, **more}
    )


def test_who_copies_and_who_drops() -> None:
    """In the order of the new list, and of the old one."""
    moved = change((1, 2, 3), (4, 1, 5))
    assert ((4, 5), (2, 3), True, True) == (moved.adding, moved.removing, moved.reassigned, moved.elects)


def test_another_order_is_a_reassignment_without_copies() -> None:
    """It elects the new first replica."""
    turned = change((1, 2), (2, 1))
    assert ((), (), True, True) == (turned.adding, turned.removing, turned.reassigned, turned.elects)


@pytest.mark.parametrize(("leader", "elects"), [(1, False), (2, True), (None, True)])
def test_an_election_alone_is_no_reassignment(leader: int | None, elects: bool) -> None:
    """It is one where another broker leads than the preferred one, or none."""
    led = change((1, 2), (1, 2), leader_before=leader)
    assert (False, elects) == (led.reassigned, led.elects)


def test_a_replica_moves_between_log_dirs_of_a_broker_that_keeps_it() -> None:
    """A new replica has a log dir too, but doesn't move; where only log dirs change, nobody is elected."""
    dirs = {"log_dirs_before": ("/a", "/a"), "log_dirs": ("/b", "/b", ANY)}
    both = change((1, 2), (1, 4, 2), **dirs)
    assert ((1,), True) == (both.dir_moves, both.reassigned)
    alone = change((1,), (1,), log_dirs=("/b",), leader_before=2, reason=Reason.BALANCE_LOG_DIRS)
    assert (True, False) == (alone.reassigned, alone.elects)
