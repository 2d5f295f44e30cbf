"""The cluster as it is now, from whatever its tools print: what plans are held against, and resumed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.importers.parts import StatePart
from planner.log_dirs_values import NO_LOG_DIRS, LogDirs
from planner.model import Config, InputFile, Topic
from planner.state.merge import merge, moving_now

Key = tuple[str, int]


@dataclass(frozen=True)
class Now:
    """A cluster now. Topics by name; partitions that are being reassigned have the replicas of their target.

    `moving` are those partitions; `racks` are the racks of the live brokers by id, None where no source tells who is
    live; `sizes` are bytes of one replica, None where no source has any. `inputs` are the files all this was read from.
    """

    topics: Mapping[str, Topic]
    moving: frozenset[Key] = frozenset()
    racks: Mapping[int, str | None] | None = None
    sizes: Mapping[Key, int] | None = None
    log_dirs: LogDirs = NO_LOG_DIRS
    inputs: tuple[InputFile, ...] = field(default=())
    config_defaults: Config = ()


def now_of(parts: Sequence[StatePart], log_dirs: LogDirs = NO_LOG_DIRS, inputs: tuple[InputFile, ...] = ()) -> Now:
    """The sources as one state; ImportStateError where they hold no partition, or contradict themselves."""
    merged = merge(parts, to_targets=True)
    return Now(
        topics={topic.name: topic for topic in merged.assignment.topics},
        moving=frozenset(moving_now(parts)),
        racks={broker.id: broker.rack for broker in merged.brokers} if merged.brokers else None,
        sizes=merged.sizes,
        log_dirs=log_dirs,
        inputs=inputs,
        config_defaults=merged.config_defaults,
    )
