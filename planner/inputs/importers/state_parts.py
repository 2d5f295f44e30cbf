"""What one source says of a cluster, whatever its format: a part of the state, to be merged with others.

Which source is believed where several say different things is told by their rank, and within a rank by their order:
see `planner.inputs.state.merge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from planner.inputs.importers.assignment_entries import AssignmentEntry, Config
from planner.model.errors import Finding, Place


class Rank(IntEnum):
    """Who comes first: what brokers answer, then what ZooKeeper keeps, then documents that others wrote."""

    CLUSTER = 0
    ZNODES = 1
    DOCUMENT = 2


@dataclass(frozen=True, slots=True)
class RunningReassignment:
    """A partition that is being reassigned now.

    `replicas` are all that it has meanwhile, those that will go included; None where the source lists adding and
    removing replicas alone.
    """

    place: Place
    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...] | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Led:
    """Who leads a partition, None for nobody, and its ISR."""

    place: Place
    topic: str
    partition: int
    leader: int | None
    isr: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A broker that is registered, with its `broker.rack`, None without one; `source` is the file, as written."""

    place: Place
    id: int
    rack: str | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """What a topic is declared to be; None where that isn't known."""

    place: Place
    topic: str
    partitions: int | None
    replication_factor: int | None
    config: Config = ()


@dataclass(frozen=True)
class StatePart:
    """One source's share of the state. `title` is what the source is in people's words, `file` its path as
    written, which is what notes name: places may have the path of a machine.

    `entries` are partitions; where `leaders_known` is False their leaders are taken to be the first replicas. Where
    `whole` is False the source may list some partitions of a topic and leave others out. `only_topics` are the topics
    that may move, None where that isn't said.

    `configs` are topics' own. Where `effective_configs` has something for a topic, that is in force for it too, and the
    source doesn't say whether it is the topic's own; all else that it doesn't set has Kafka's default or an inherited
    one. `config_defaults` is what brokers and the cluster set for all topics.
    """

    title: str
    file: str
    rank: Rank = Rank.DOCUMENT
    entries: tuple[AssignmentEntry, ...] = ()
    configs: Mapping[str, Config] = field(default_factory=dict)
    deleting: frozenset[str] = frozenset()
    leaders_known: bool = False
    whole: bool = False
    led: tuple[Led, ...] = ()
    moving: tuple[RunningReassignment, ...] = ()
    brokers: tuple[BrokerSeen, ...] = ()
    sizes: Mapping[tuple[str, int], int] | None = None
    only_topics: tuple[str, ...] | None = None
    targets: tuple[TopicTarget, ...] = ()
    notes: tuple[str, ...] = ()
    effective_configs: Mapping[str, Config] = field(default_factory=dict)
    config_defaults: Config = ()


def moving_finding(moving: RunningReassignment) -> Finding:
    """Why a state with this reassignment in progress isn't planned from."""
    label, brokers = ("Adding", moving.adding) if moving.adding else ("Removing", moving.removing)
    seen = f" ({label} Replicas: {', '.join(map(str, brokers))})" if brokers else ""
    message = (
        f"partition {moving.partition} of {moving.topic} is being reassigned{seen}; "
        "allowed: a state without reassignments in progress; wait for them, or cancel them"
    )
    return Finding(moving.place, moving.key, message)
