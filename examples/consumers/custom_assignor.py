"""An assignor of one's own, for `assignor: custom_assignor:assign` in the spec beside this file.

It runs as part of the planner, with the rights of whoever plans. The module stands in one file, and is sent to Spark's
workers; modules beside it can't be imported from it. It is a function of three mappings, and gives one:

    topics          {topic: number of partitions}, those that any member subscribes to
    subscriptions   {member: [topic, ...]}
    owned           {member: [(topic, partition), ...]}, who owns what before; empty where the group begins
    result          {member: [(topic, partition), ...]}: each partition once, with a member that subscribes to its topic
"""

from __future__ import annotations


def assign(
    topics: dict[str, int], subscriptions: dict[str, list[str]], owned: dict[str, list[tuple[str, int]]]
) -> dict[str, list[tuple[str, int]]]:
    """Each topic's partitions in turn, every topic beginning one member further: no member gets all the first ones."""
    owners: dict[str, list[tuple[str, int]]] = {member: [] for member in subscriptions}
    for offset, topic in enumerate(sorted(topics)):
        readers = sorted(member for member, listed in subscriptions.items() if topic in listed)
        for partition in range(topics[topic]):
            owners[readers[(partition + offset) % len(readers)]].append((topic, partition))
    return owners
