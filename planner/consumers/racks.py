"""Which partitions have replicas in other racks after a change: groups with `client.rack` rebalance for them.

A consumer that leads its group notices, where it has a `client.rack`, that the racks of a partition's replicas are no
longer those of the last assignment, and asks for a new one (KIP-881); without a rack only partition counts matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planner.consumers.assignors import TopicPartition
from planner.consumers.groups import Group
from planner.model import Spec

Replicas = Mapping[TopicPartition, Collection[int]]
Racks = Mapping[int, str | None]


def replicas_today(spec: Spec) -> dict[TopicPartition, tuple[int, ...]]:
    """Every partition's replicas."""
    return {(topic.name, each.id): each.replicas for topic in spec.cluster.topics for each in topic.partitions}


def racks_today(spec: Spec) -> dict[int, str | None]:
    """Every broker's rack."""
    return {broker.id: broker.rack for broker in spec.cluster.brokers}


def racks_after(spec: Spec) -> dict[int, str | None]:
    """Every broker's rack once the spec's changes are carried out."""
    added = {broker.id: broker.rack for broker in spec.changes.add_brokers}
    return {**racks_today(spec), **added, **dict(spec.changes.set_racks)}


def changed(before: tuple[Replicas, Racks], after: tuple[Replicas, Racks]) -> frozenset[TopicPartition]:
    """The partitions whose replicas lie in another set of racks."""
    return frozenset(
        partition
        for partition, replicas in after[0].items()
        if _racks(replicas, after[1]) != _racks(before[0].get(partition, ()), before[1])
    )


def _racks(replicas: Collection[int], racks: Racks) -> frozenset[str | None]:
    return frozenset(racks.get(broker) for broker in replicas) - {None}


def read_in_rack(group: Group, member: str, replicas: Replicas, racks: Racks) -> int | None:
    """How many of a member's partitions have a replica in its rack, to read from (KIP-392); None without a rack."""
    rack = group.racks.get(member)
    if rack is None:
        return None
    return sum(rack in _racks(replicas.get(each, ()), racks) for each in group.owners.get(member, ()))
