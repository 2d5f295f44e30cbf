"""Topics' configurations from several sources: what is a topic's own, what it inherits, and what isn't known.

`kafka-topics --describe` shows what is in force without saying where it comes from. A source that knows topics' own
configurations (`kafka-configs`, znodes, Terraform's state) tells them apart: what it doesn't have is inherited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.inputs.importers.state_parts import StatePart
from planner.model.cluster import Config
from planner.model.effective_config import MIN_INSYNC, TOPIC_ONLY, largest_min_insync
from planner.model.formats import counted


@dataclass(frozen=True)
class Configs:
    """Topics' own configurations, what is in force beside them without a known origin, and what all topics inherit."""

    own: Mapping[str, Config] = field(default_factory=dict)
    effective: Mapping[str, Config] = field(default_factory=dict)
    defaults: Config = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """What is collected while topics go by: by topic, by inherited key, and the topics that sources disagree about."""

    own: dict[str, Config] = field(default_factory=dict)
    effective: dict[str, Config] = field(default_factory=dict)
    inherited: dict[str, set[str]] = field(default_factory=dict)
    unlike: list[str] = field(default_factory=list)


def merged_configs(parts: Sequence[StatePart]) -> Configs:
    """The configurations of all parts; where they differ, the first part of the highest rank counts."""
    ranked = sorted(parts, key=lambda part: part.rank)
    found = _Found()
    for topic in dict.fromkeys(topic for part in ranked for topic in part.configs):
        _merge_topic(topic, [part for part in ranked if topic in part.configs], found)
    stated = [dict(part.config_defaults) for part in ranked]
    defaults = {key: next(iter(values)) for key, values in found.inherited.items() if len(values) == 1}
    for each in reversed(stated):
        defaults |= each
    unlike = found.unlike
    some = ", ".join(unlike[:3]) + (f" and {len(unlike) - 3:,} more" if len(unlike) > 3 else "")
    disagree = f"sources disagree about the configuration of {counted(len(unlike), 'topic')} ({some})"
    seen = [*(each.get(MIN_INSYNC) for each in stated), *found.inherited.get(MIN_INSYNC, ())]
    least, notes = largest_min_insync(seen)
    all_notes = (*notes, disagree) if unlike else notes
    return Configs(found.own, found.effective, tuple(sorted((defaults | least).items())), all_notes)


def _merge_topic(topic: str, parts: Sequence[StatePart], found: _Found) -> None:
    """Add one topic's configuration, from the parts that know something of it."""
    first = parts[0]
    telling = next((part for part in parts if not part.effective_configs.get(topic)), None)
    if telling is None:
        found.own[topic], found.effective[topic] = first.configs[topic], first.effective_configs[topic]
        return
    own = dict(telling.configs[topic])
    shown = next((part for part in parts if part.effective_configs.get(topic)), None)
    if shown is not None:
        in_force = {**dict(shown.configs[topic]), **dict(shown.effective_configs[topic])}
        if any(in_force.get(key) != value for key, value in own.items()):
            found.unlike.append(topic)
        if shown.rank < telling.rank:
            own = {key: in_force[key] for key in own if key in in_force}
        for key in in_force.keys() - own.keys() - TOPIC_ONLY:
            found.inherited.setdefault(key, set()).add(in_force[key])
    found.own[topic] = tuple(sorted(own.items()))


UNKNOWN = (
    "no source tells configurations: min.insync.replicas counts as 1, Kafka's default, unless cluster.config_defaults "
    "says otherwise"
)


def unknown_origin(effective: Mapping[str, Config]) -> Iterator[str]:
    """A note on what is in force without a known origin, and on what would tell."""
    topics = [topic for topic, config in effective.items() if config]
    if topics:
        keys = sorted({key for config in effective.values() for key, _ in config})
        listed = ", ".join(keys[:2]) + (f" and {len(keys) - 2} more" if len(keys) > 2 else "")
        of = f"{listed} ({counted(len(topics), 'topic')})"
        yield (
            f"own or inherited isn't known of {of}: kafka-topics --describe doesn't say; the tfvars leave these topics'"
            " configs out; kafka-configs --describe --entity-type topics --all tells"
        )
