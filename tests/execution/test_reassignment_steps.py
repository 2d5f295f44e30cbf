"""Replica lists on the way: from today's to the new one, a few replicas at a time, racks apart as long as possible."""

from __future__ import annotations

from planner.execution.reassignment_steps import replica_lists
from planner.model.cluster import PartitionChange, Reason


def lists(
    before: tuple[int, ...], after: tuple[int, ...], at_most: int | None, racks: str = ""
) -> list[tuple[int, ...]]:
    """The lists that are reached one after the other; broker n is in the n-th of the racks."""
    change = PartitionChange("t", 0, before, after, before[0], 1, Reason.BALANCE_REPLICAS)
    pairs = list(replica_lists(change, at_most, dict(enumerate(racks))))
    assert [before, *(reached for _, reached in pairs)] == [*(start for start, _ in pairs), after]
    return [reached for _, reached in pairs]


def test_without_a_limit_there_is_one_step() -> None:
    """However many replicas it adds."""
    assert [(4, 5, 6)] == lists((1, 2, 3), (4, 5, 6), None)


def test_a_list_that_shrinks_or_turns_takes_one_step() -> None:
    """Nothing is copied, so nothing is limited."""
    assert [(2,)] == lists((1, 2, 3), (2,), 1)
    assert [(3, 2, 1)] == lists((1, 2, 3), (3, 2, 1), 1)


def test_the_last_step_adds_what_is_left() -> None:
    """Three replicas, two at a time; the first broker stays until then."""
    assert [2, 1] == [
        len(set(b) - set(a)) for a, b in [((1, 2, 3), lists((1, 2, 3), (4, 5, 6), 2)[0]), ((4, 5), (4, 6))]
    ]
    assert 1 == lists((1, 2, 3), (4, 5, 6), 2)[0][0]


def test_a_list_that_grows_gets_the_rack_that_is_missing_first() -> None:
    """Broker 2's rack is new, broker 1's is the first broker's."""
    assert [(0, 2), (0, 1, 2)] == lists((0,), (0, 1, 2), 1, "aab")


def test_a_replica_takes_the_place_of_the_one_in_its_rack() -> None:
    """Broker 3 comes for broker 1, both in rack b; broker 2, in the first broker's rack, only when that goes."""
    assert [(0, 3), (2, 3)] == lists((0, 1), (2, 3), 1, "abab")


def test_the_leader_of_today_goes_last() -> None:
    """Of two brokers that might leave first, the one that leads keeps its replica."""
    change = PartitionChange("t", 0, (1, 2, 3), (1, 4, 5), 3, 1, Reason.BALANCE_REPLICAS)

    assert [(1, 4, 3), (1, 4, 5)] == [reached for _, reached in replica_lists(change, 1, {})]
