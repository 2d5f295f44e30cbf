"""What changed on the cluster since a plan was made, outside the plan: replicas, and configuration of topics.

The plan's own partitions are `staleness`'s. Where others changed, the plan's moves still hold, but its figures are of
the cluster as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from planner.approval.cluster_now import Now
from planner.model.cluster import Topic
from planner.model.effective_config import MIN_INSYNC, in_force
from planner.model.formats import counted, printable, size
from planner.plan import state_fingerprint

Plan = Mapping[str, Any]

CONFIG_MEANING = (
    "the plan counted with the configuration as it was (min.insync.replicas decides what may be taken away at a time), "
    "and its tfvars hold a topic's own as it was; plan anew for today's"
)
_SHOWN, _LONGEST = 3, 60


Key = tuple[str, int]


@dataclass(frozen=True)
class Since:
    """Partitions outside the plan that changed, by what changed; topics by name; bytes of one replica of everything.

    `bytes_before` and `bytes_now` are of the topics that are in both, None where either doesn't know sizes.
    `unnamed` is True where the digest over everything says that something else changed, too small to be found.
    `configs` are of all topics, those of the plan among them.
    """

    replicas: tuple[Key, ...] = ()
    leaders: tuple[Key, ...] = ()
    more: int = 0
    fewer: int = 0
    topics_new: tuple[str, ...] = ()
    topics_gone: tuple[str, ...] = ()
    bytes_before: int | None = None
    bytes_now: int | None = None
    unnamed: bool = False
    configs: tuple[Reconfigured, ...] = ()

    @property
    def partitions(self) -> int:
        """How many partitions outside the plan aren't as they were, those that came and went among them."""
        return len(self.replicas) + len(self.leaders) + self.more + self.fewer

    @property
    def resized(self) -> bool:
        """True where sizes are known on both sides, and differ."""
        return self.bytes_now is not None and self.bytes_before != self.bytes_now

    @property
    def changed(self) -> bool:
        """True where anything outside the plan isn't as it was, sizes apart: those change all the time."""
        return self._replaced or bool(self.configs)

    @property
    def _replaced(self) -> bool:
        return bool(self.partitions) or self.unnamed

    def sentences(self) -> Iterator[str]:
        """What changed, then what that means; one line where nothing did."""
        if not self._replaced:
            yield "outside the plan no partition changed since it was made"
        else:
            yield f"outside the plan {counted(self.partitions, 'partition')} changed since it was made: {self._kinds()}"
        if self.resized:
            yield _resized(self.bytes_before or 0, self.bytes_now or 0)
        if self._replaced or self.resized:
            yield MEANING
        if self.configs:
            yield from (sentence(self.configs), CONFIG_MEANING)

    def _kinds(self) -> str:
        kinds = [
            f"{len(keys):,} with {what} ({_some(keys)})"
            for keys, what in ((self.replicas, "other replicas"), (self.leaders, "another leader"))
            if keys
        ]
        kinds += [f"{self.more:,} new"] if self.more else []
        kinds += [f"{self.fewer:,} gone"] if self.fewer else []
        return "; ".join([*kinds, *(["something that the plan's checksums can't name"] if self.unnamed else [])])


def since(plan: Plan, now: Now) -> Since | None:
    """The state that a plan was made from beside the cluster now; None for plans of a format that doesn't hold it."""
    state = plan.get("state")
    if state is None:
        return None
    before = {row["topic"]: row for row in state["topics"]}
    own = {(row["topic"], row["partition"]) for row in plan["partitions"]}
    made = {row["topic"]: row["partitions"] for row in (plan.get("new_partitions") or {"topics": ()})["topics"]}
    both = sorted(before.keys() & now.topics.keys())
    unlike = {name: state_fingerprint.unlike(before[name], now.topics[name]) for name in both}
    counts = {name: len(topic.partitions) for name, topic in now.topics.items()}
    were = {name: len(row["leaders"]) for name, row in before.items()}
    sizes = _bytes(before, now, both)
    found = Since(
        replicas=tuple((name, at) for name in both for at in unlike[name][0] if (name, at) not in own),
        leaders=tuple((name, at) for name in both for at in unlike[name][1] if (name, at) not in own),
        more=sum(max(counts[name] - max(were.get(name, 0), made.get(name, 0)), 0) for name in counts),
        fewer=sum(max(were[name] - counts.get(name, 0), 0) for name in were),
        topics_new=tuple(sorted(counts.keys() - were.keys() - made.keys())),
        topics_gone=tuple(sorted(were.keys() - counts.keys())),
        bytes_before=sizes[0],
        bytes_now=sizes[1],
        configs=reconfigured(plan, now),
    )
    return _with_unnamed(found, plan, now, any(key for pair in unlike.values() for key in pair))


def _with_unnamed(found: Since, plan: Plan, now: Now, any_unlike: bool) -> Since:
    """The same, with what only the digest knows: told where nothing at all was found to have changed."""
    if any_unlike or found.partitions or plan.get("new_partitions"):
        return found
    same = state_fingerprint.digest([now.topics[name] for name in sorted(now.topics)]) == plan["state"]["sha256"]
    return found if same else replace(found, unnamed=True)


def _bytes(before: Mapping[str, Any], now: Now, both: list[str]) -> tuple[int | None, int | None]:
    """One replica of each partition of the topics that are in both, then and now."""
    if now.sizes is None or any(before[name]["size_bytes"] is None for name in both):
        return None, None
    today = sum(now.sizes.get((name, each.id), 0) for name in both for each in now.topics[name].partitions)
    return sum(before[name]["size_bytes"] for name in both), today


def _some(keys: tuple[Key, ...], most: int = 3) -> str:
    names = [f"{topic}-{partition}" for topic, partition in keys[:most]]
    return ", ".join([*names, *(["…"] if len(keys) > most else [])])


def _resized(before: int, now: int) -> str:
    change = f" ({100 * (now - before) / before:+.1f} %)" if before else ""
    return f"one replica of every partition was {size(before)} when the plan was made, now {size(now)}{change}"


# Set and taken away again while replicas move, by whatever moves them.
_PASSING = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})


class Reconfigured(NamedTuple):
    """A key of a topic, and its values then and now; None: not set, so that it has Kafka's default."""

    topic: str
    key: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        before, now = ("not set" if value is None else printable(value, _LONGEST) for value in self[2:])
        return f"{printable(self.topic, _LONGEST)} {printable(self.key, _LONGEST)} {before} → {now}"


def reconfigured(plan: Plan, now: Now) -> tuple[Reconfigured, ...]:
    """What changed of the topics that are in both, by topic and key."""
    inherited = plan["cluster"].get("config_defaults") or {}
    rows = {row["name"]: row for row in plan["topics"]}
    return tuple(
        each
        for name in sorted(rows.keys() & now.topics.keys())
        for each in _of_topic(rows[name], inherited, now.topics[name], now)
    )


def sentence(found: tuple[Reconfigured, ...]) -> str:
    """How many topics, and the first keys."""
    more = len(found) - _SHOWN
    shown = ", ".join([*map(str, found[:_SHOWN]), *([f"and {counted(more, 'more key')}"] if more > 0 else [])])
    topics = counted(len({each.topic for each in found}), "topic")
    return f"the configuration of {topics} changed since it was made: {shown}"


def _of_topic(row: Mapping[str, Any], inherited: Mapping[str, str], topic: Topic, now: Now) -> Iterator[Reconfigured]:
    own = dict(row["config"])
    before = {**inherited, **row.get("effective_config", {}), **own}
    today = in_force(topic, now.config_defaults)
    told = before.keys() & today.keys()
    # A topic's own is told whole, where any of it is.
    told |= own.keys() if topic.config else set()
    told |= dict(topic.config).keys() if own else set()
    # Without it, Kafka's default counts; a plan that knows any configuration would know it.
    told |= {MIN_INSYNC} if before and MIN_INSYNC in today else set()
    for key in sorted(told - _PASSING):
        if before.get(key) != today.get(key):
            yield Reconfigured(topic.name, key, before.get(key), today.get(key))


MEANING = (
    "the plan's own moves still hold, but its figures (spreads, bytes and leaders of brokers, racks and topics, times) "
    "are of the cluster as it was; plan anew for today's"
)
