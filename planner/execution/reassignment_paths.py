"""The replica lists that a partition goes through where its change takes more than one reassignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from planner.model.partition_changes import PartitionChange


def replica_lists(
    change: PartitionChange, at_most: int | None, racks: Mapping[int, str]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of lists from `change.before` to exactly `change.after` that add `at_most` replicas each.

    No list has fewer replicas than the shorter end or more than the longer one. `racks` (broker id → rack) keeps the
    lists in between as spread as possible.
    """
    adding = len(change.adding)
    size = at_most or adding or 1
    current = change.before
    for _ in range(size, adding, size):
        reached = current
        for _ in range(size):
            reached = _one_replica_on(reached, change, racks)
        yield current, reached
        current = reached
    yield current, change.after


def _one_replica_on(current: tuple[int, ...], change: PartitionChange, racks: Mapping[int, str]) -> tuple[int, ...]:
    """`current` with one more broker of `change.after`, in the place of one that leaves where there is no room.

    The first broker stays: until the last step a leader that leaves stays preferred, so clients move once.
    """
    added = [broker for broker in change.after if broker not in current]
    if len(current) < max(len(change.before), len(change.after)):
        return min(((*current, broker) for broker in added), key=lambda replicas: _crowding(replicas, racks))
    leaving = [slot for slot in range(len(current) - 1, 0, -1) if current[slot] not in change.after]
    options = [(slot, broker) for slot in leaving for broker in added]
    return min(
        ((*current[:slot], broker, *current[slot + 1 :]) for slot, broker in options),
        key=lambda replicas: (_crowding(replicas, racks), change.leader_before not in replicas),
    )


def _crowding(replicas: Sequence[int], racks: Mapping[int, str]) -> int:
    """Grows with every pair of replicas in one rack; a broker without a rack is in none."""
    return sum(number * number for number in Counter(racks[b] for b in replicas if b in racks).values())
