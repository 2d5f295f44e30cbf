"""Consumer groups as values: what the YAML declares of them, and what Kafka describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DescribedGroup:
    """A group as Kafka describes it. `assignor` is empty where it isn't told.

    `members` are the ids of the consumers, each with the partitions that it owns, (topic, partition), sorted; `topics`
    are those that the group has offsets for, or owns partitions of.
    """

    name: str
    assignor: str = ""
    members: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConsumerMember:
    """A consumer of a group: its id, shell-style patterns of the topics that it reads, its `client.rack`."""

    id: str
    topics: tuple[str, ...]
    rack: str | None = None


@dataclass(frozen=True)
class ConsumerGroup:
    """A consumer group of the YAML. `assignor` is empty where it isn't said; `described`: what its state file says."""

    name: str
    assignor: str = ""
    members: tuple[ConsumerMember, ...] = ()
    described: DescribedGroup | None = None
