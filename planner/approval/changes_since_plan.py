"""Reads the cluster as it is now, from files or from the cluster itself, and finds what changed outside a plan.

`plan_against_cluster` checks the plan's own partitions. If other partitions changed, the plan's moves are still valid,
but its figures describe the cluster as it was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from planner.inputs import cluster_load, load_profile_file
from planner.inputs.state.live_cluster import live_parts
from planner.inputs.state.merge import merge, moving_now
from planner.inputs.state.state_files import read_all
from planner.model import file_reading
from planner.model.cluster import (
    MIN_INSYNC,
    NO_LOG_DIRS,
    Config,
    LogDirs,
    PartitionKey,
    Topic,
    in_force,
    merge_log_dirs,
)
from planner.model.document_fields import InputRow
from planner.model.errors import SetupError
from planner.model.formats import counted, first_lines, printable, size
from planner.model.load_history import WeekOfLoad
from planner.plan import cluster_sections
from planner.plan.document.cluster_types import THROTTLE_CONFIGS
from planner.plan.document.plan_types import Plan


@dataclass(frozen=True)
class Sources:
    """Where the state is read from: files and folders, a running cluster, or both."""

    files: tuple[Path, ...] = ()
    bootstrap_servers: str | None = None
    command_config: Path | None = None

    @property
    def any(self) -> bool:
        """True if any source is given, or an option that needs one."""
        return bool(self.files) or (self.bootstrap_servers, self.command_config) != (None, None)


def read_now(sources: Sources, *, with_log_dirs: bool) -> "ClusterNow":
    """The cluster as the sources show it; `with_log_dirs`, also the log dir of each replica.

    SpecError with every fault of every file, or if they hold no partition or contradict each other; SetupError if the
    cluster can't be reached, or a file doesn't exist.
    """
    parts = live_parts(sources.bootstrap_servers, sources.command_config)
    # Plans and notes name files relative to the given folder, so that they don't reveal paths of a machine.
    files = read_all(sources.files, lambda given, path: path.relative_to(given.parent).as_posix())
    parts += files
    state = merge(parts, to_targets=True)
    return ClusterNow(
        topics={topic.name: topic for topic in state.assignment.topics},
        moving=frozenset(moving_now(parts)),
        racks={broker.id: broker.rack for broker in state.brokers if broker.answers} if state.brokers else None,
        sizes=state.sizes,
        log_dirs=merge_log_dirs(part.log_dirs() for part in parts if with_log_dirs and part.log_dirs),
        inputs=tuple(InputRow(part.file, part.sha256) for part in files),
        config_defaults=state.config_defaults,
        cordoned=state.cordoned,
        disagreements=state.disagreements,
    )


@dataclass(frozen=True)
class ClusterNow:
    """A cluster now. Topics by name; partitions that are being reassigned have the replicas of their target.

    `moving` are those partitions; `racks` are the racks of the live brokers by id, None if no source says which brokers
    are live; `sizes` are bytes of one replica, None if no source has any. `inputs` are the files that were read.
    `cordoned` are each broker's log dirs that get no new replicas, `*` for all (KIP-1066). A load profile gives `rates`
    (bytes/s in and out), `week` (their hours) and `at_end`. `disagreements` say how sources differ.
    """

    topics: Mapping[str, Topic]
    moving: frozenset[PartitionKey] = frozenset()
    racks: Mapping[int, str | None] | None = None
    sizes: Mapping[PartitionKey, int] | None = None
    log_dirs: LogDirs = NO_LOG_DIRS
    inputs: tuple[InputRow, ...] = field(default=())
    config_defaults: Config = ()
    cordoned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    rates: Mapping[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    week: WeekOfLoad | None = None
    at_end: Mapping[str, int] = field(default_factory=dict)
    disagreements: tuple[str, ...] = ()

    @cached_property
    def tells_configs(self) -> bool:
        """True if any topic has configuration: then the topics' own configuration is known completely."""
        return any(topic.config or topic.effective_config for topic in self.topics.values())


def with_load(now: ClusterNow, path: Path) -> ClusterNow:
    """The cluster with the rates and the hours of the week of a load profile.

    SetupError if the profile isn't of this cluster; PlannerError if it can't be read.
    """
    content = file_reading.read_bytes(path, file_reading.LOAD)
    rows, facts = load_profile_file.decoded(content, path.as_posix())
    load, topics = cluster_load.cluster_load(rows, facts), tuple(now.topics.values())
    # `sized` is False because the topics of a state have no sizes; `now.sizes` has them.
    if reason := cluster_load.mismatch_message(topics, load, sized=False):
        raise SetupError(f"--load: {path.as_posix()!r} {reason}")
    loads, week = load.partitions.items(), cluster_load.week_of_load(rows, facts)
    return replace(
        now,
        inputs=(*now.inputs, InputRow(path.name, file_reading.digest(content))),
        rates={key: (each.bytes_in_per_sec or 0, each.bytes_out_per_sec or 0) for key, each in loads},
        week=None if cluster_load.without_hours(topics, week, ()) else replace(week, planned_for=False),
        at_end=load.at_end,
    )


MEANING = (
    "the plan's moves still fit, but its figures (spreads, bytes, leaders, times) describe the cluster as it was; "
    "plan again for today's"
)
CONFIG_MEANING = (
    "the plan and its tfvars use the old configuration (min.insync.replicas decides how many replicas may be "
    "removed at a time); plan again for today's"
)
_SHOWN, _LONGEST = 3, 60


class ChangedConfig(NamedTuple):
    """A configuration key of a topic with its old and new value; None means not set, so Kafka's default applies."""

    topic: str
    key: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        before, now = ("not set" if value is None else printable(value, _LONGEST) for value in self[2:])
        return f"{printable(self.topic, _LONGEST)} {printable(self.key, _LONGEST)} {before} → {now}"


@dataclass(frozen=True)
class ChangesSincePlan:
    """What changed since the plan was made, apart from the plan's own partitions.

    `replicas` and `leaders` are partitions; `added` and `removed` count partitions. Of `topics_gone`, some
    partitions aren't the plan's.
    `bytes_before` and `bytes_now` sum one replica of each partition of the topics in both states, None if either has no
    sizes. `unnamed` is True if the whole state's digest differs although the short checksums found no change. `configs`
    are of all topics, including the plan's.
    """

    replicas: tuple[PartitionKey, ...] = ()
    leaders: tuple[PartitionKey, ...] = ()
    added: int = 0
    removed: int = 0
    topics_new: tuple[str, ...] = ()
    topics_gone: tuple[str, ...] = ()
    bytes_before: int | None = None
    bytes_now: int | None = None
    unnamed: bool = False
    configs: tuple[ChangedConfig, ...] = ()

    @property
    def partitions(self) -> int:
        """How many partitions outside the plan were changed, added or removed."""
        return len(self.replicas) + len(self.leaders) + self.added + self.removed

    @property
    def resized(self) -> bool:
        """True if sizes are known in both states and differ."""
        return self.bytes_now is not None and self.bytes_before != self.bytes_now

    @property
    def changed(self) -> bool:
        """True if anything outside the plan changed, apart from sizes, which change all the time."""
        return bool(self.partitions or self.unnamed or self.configs)

    def sentences(self) -> Iterator[str]:
        """What changed, then what that means; one sentence if nothing changed."""
        replaced = self.partitions or self.unnamed
        if replaced:
            changed = counted(self.partitions, "partition")
            yield f"outside the plan: {changed} changed since it was made: {self._kinds()}"
        else:
            yield "outside the plan: no partition changed since it was made"
        if self.resized:
            before, now = self.bytes_before or 0, self.bytes_now or 0
            change = f" ({100 * (now - before) / before:+.1f} %)" if before else ""
            yield f"one replica of every partition was {size(before)} when the plan was made, now {size(now)}{change}"
        if replaced or self.resized:
            yield MEANING
        if self.configs:
            keys = ", ".join(first_lines([*map(str, self.configs)], _SHOWN, "key"))
            topics = counted(len({each.topic for each in self.configs}), "topic")
            yield f"the configuration of {topics} changed since it was made: {keys}"
            yield CONFIG_MEANING

    def _kinds(self) -> str:
        kinds = []
        for keys, description in ((self.replicas, "other replicas"), (self.leaders, "a different leader")):
            names = [f"{topic}-{partition}" for topic, partition in keys[:_SHOWN]]
            ellipsis = ["…"] if len(keys) > _SHOWN else []
            kinds += [f"{len(keys):,} with {description} ({', '.join([*names, *ellipsis])})"] if keys else []
        kinds += [f"{self.added:,} new"] if self.added else []
        kinds += [f"{self.removed:,} gone"] if self.removed else []
        return "; ".join([*kinds, *(["something that the plan's checksums can't name"] if self.unnamed else [])])


def compare_states(plan: Plan, now: ClusterNow) -> ChangesSincePlan:
    """Compares the state that a plan was made from with the cluster now."""
    before = {row.topic: row for row in plan.state.topics}
    planned = {row.key for row in plan.partitions}
    created = {row.topic: row.partitions for row in plan.new_topics}
    both = sorted(before.keys() & now.topics.keys())
    unlike = {name: cluster_sections.unlike_state(before[name], now.topics[name]) for name in both}
    counts = {name: len(topic.partitions) for name, topic in now.topics.items()}
    old_counts = {name: len(row.leaders) for name, row in before.items()}
    sizes = now.sizes if all(before[name].size_bytes is not None for name in both) else None
    keys = ((name, each.id) for name in both for each in now.topics[name].partitions)
    removed = [(name, number) for name, count in old_counts.items() for number in range(counts.get(name, 0), count)]
    others_lost = [key for key in removed if key not in planned]
    changes = ChangesSincePlan(
        replicas=tuple((name, number) for name in both for number in unlike[name][0] if (name, number) not in planned),
        leaders=tuple((name, number) for name in both for number in unlike[name][1] if (name, number) not in planned),
        added=sum(max(counts[name] - max(old_counts.get(name, 0), created.get(name, 0)), 0) for name in counts),
        removed=len(others_lost),
        topics_new=tuple(sorted(counts.keys() - old_counts.keys() - created.keys())),
        topics_gone=tuple(sorted({name for name, _ in others_lost} - counts.keys())),
        bytes_before=None if sizes is None else sum(before[name].size_bytes or 0 for name in both),
        bytes_now=None if sizes is None else sum(sizes.get(key, 0) for key in keys),
        configs=tuple(changed_configs(plan, now)),
    )
    if any(key for pair in unlike.values() for key in pair) or removed or changes.partitions or created:
        return changes
    # If no change was found, the digest of the whole state decides.
    digest = cluster_sections.state_digest([now.topics[name] for name in sorted(now.topics)])
    return replace(changes, unnamed=digest != plan.state.sha256)


def changed_configs(plan: Plan, now: ClusterNow) -> Iterator[ChangedConfig]:
    """Configuration keys that changed since the plan was made, of topics that are in both, by topic and key."""
    inherited = plan.cluster.config_defaults or {}
    had_config = any(row.config or row.effective_config for row in plan.topics)
    created = {row.topic for row in plan.new_topics if not row.partitions_before}
    for row in sorted(plan.topics, key=lambda row: row.name):
        if (topic := now.topics.get(row.name)) is None:
            continue
        before = {**inherited, **(row.effective_config or {}), **row.config}
        today = in_force(topic, now.config_defaults)
        keys = before.keys() & today.keys()
        keys |= row.config.keys() if now.tells_configs else set()
        keys |= dict(topic.config).keys() if had_config else set()
        # A plan that knows any configuration would also know this key, except of topics that it creates.
        keys |= {MIN_INSYNC} if (had_config or inherited) and MIN_INSYNC in today and row.name not in created else set()
        for key in sorted(keys.difference(THROTTLE_CONFIGS)):
            if before.get(key) != today.get(key):
                yield ChangedConfig(row.name, key, before.get(key), today.get(key))
