"""Configuration of topics that isn't as a plan found it: what it counted with, and what its tfvars would put back.

Only what both sides tell is compared: a source may know all configuration that is in force, a topic's own, or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from planner.approval.cluster_now import Now
from planner.model.cluster import Topic
from planner.model.effective_config import MIN_INSYNC, in_force
from planner.model.formats import counted, printable

Plan = Mapping[str, Any]

MEANING = (
    "the plan counted with the configuration as it was (min.insync.replicas decides what may be taken away at a time), "
    "and its tfvars hold a topic's own as it was; plan anew for today's"
)
_SHOWN, _LONGEST = 3, 60
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
