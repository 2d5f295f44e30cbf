"""The plain round robin that introductions to Kafka describe, read backwards.

Replica j of partition i is on broker (i + j) mod n. Kafka itself shifts the followers once more after each round of the
brokers, so it gives this for one round only.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model import Partition


def start_of(order: Sequence[int], partitions: Sequence[Partition]) -> int | None:
    """The position in a list of brokers at which partition 0 begins; None where the partitions aren't placed so."""
    if len({len(partition.replicas) for partition in partitions}) != 1:
        return None
    place = {broker: at for at, broker in enumerate(order)}
    start: int | None = None
    for partition in partitions:
        for distance, broker in enumerate(partition.replicas):
            if broker not in place:
                return None
            begins = (place[broker] - partition.id - distance) % len(order)
            if start not in (None, begins):
                return None
            start = begins
    return start
