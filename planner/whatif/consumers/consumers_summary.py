"""What `planner consumers` says, as one document: canonical JSON, from which text and Markdown are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from planner.model.spec import Spec
from planner.plan.document.plan_types import Plan
from planner.whatif.consumers import assignors, group_events, group_loads
from planner.whatif.consumers.assignors import TopicPartition
from planner.whatif.consumers.group_events import (
    COOPERATIVE,
    Event,
    Racks,
    Replicas,
    Spread,
    differing,
    events,
    moved_share,
    partition_of,
    reassigned,
    spread,
)
from planner.whatif.consumers.group_loads import Group, Loads, Measure

Document = dict[str, Any]


@dataclass(frozen=True)
class ConsumersQuestion:
    """What is asked: the spec, its groups, more partition counts than its changes have, keys to follow, and the plan.

    `replicas_after` are those that the plan changes, as (topic, partition) to brokers.
    """

    spec: Spec
    groups: tuple[Group, ...]
    grown: Mapping[str, int]
    keys: tuple[str, ...] = ()
    replicas_after: Replicas | None = None


def replicas_of(plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that a plan.json gives, of the partitions that it changes."""
    return {row.key: row.replicas for row in plan.partitions}


@dataclass(frozen=True)
class _Facts:
    """What all groups are reckoned against."""

    loads: Loads
    unit: Measure
    today: tuple[Replicas, Racks]
    moving: frozenset[TopicPartition]
    grown: Mapping[str, int]


def document(question: ConsumersQuestion) -> Document:
    """The answer for all groups. Loads are whole numbers of `unit`: bytes/s, bytes, or partitions where none is known.

    Partitions to be made weigh what the spec's changes say of them, else nothing.
    """
    spec = question.spec
    unit = group_loads.measure(spec.cluster)
    today = group_events.replicas_today(spec), group_events.racks_today(spec)
    after = {**today[0], **(question.replicas_after or {})}, group_events.racks_after(spec)
    grown = {**{new.topic: new.count for new in spec.changes.new_partitions if new.first}, **question.grown}
    loads = group_loads.loads(spec.cluster.topics, unit, spec.changes.new_partitions)
    if unit == "partitions":
        loads |= {(topic, number): 1 for topic, count in grown.items() for number in range(count)}
    facts = _Facts(loads, unit, today, group_events.changed(today, after), grown)
    return {
        "cluster": spec.cluster.name,
        "unit": unit,
        "groups": [_group(group, facts) for group in question.groups],
        "partition_counts": _partition_counts(spec, grown, question.keys),
    }


def _group(group: Group, facts: _Facts) -> Document:
    happened = events(group, facts.grown, facts.loads)
    anew = reassigned(group)
    return {
        "group": group.name,
        "assignor": group.assignor,
        "observed": group.observed,
        "as_assigned": _sorted(anew) == _sorted(group),
        "topics": dict(group.counts),
        "differing": differing(group),
        "members": [_member(group, member, facts) for member in group.members],
        "spread": _spread(spread(group.owners, facts.loads)),
        "events": [_event(each, facts.loads) for each in happened],
        "assignors": [_assignor(group, name, facts) for name in _assignors(group)],
        "rebalances": _rebalances(group, facts),
    }


def _sorted(group: Group) -> dict[str, list[TopicPartition]]:
    return {member: sorted(held) for member, held in group.owners.items()}


def _member(group: Group, member: str, facts: _Facts) -> Document:
    held = sorted(group.owners.get(member, ()))
    return {
        "id": member,
        "rack": group.racks.get(member),
        "topics": list(group.members[member]),
        "partitions": len(held),
        "load": sum(facts.loads.get(each, 0) for each in held),
        "read_in_rack": group_events.read_in_rack(group, member, *facts.today),
        "owns": [
            {"topic": topic, "partitions": [partition for _, partition in of_topic]}
            for topic, of_topic in groupby(held, key=lambda each: each[0])
        ],
    }


def _spread(found: Spread) -> Document:
    return {
        "most_partitions": found.most,
        "fewest_partitions": found.fewest,
        "most_load": found.most_load,
        "fewest_load": found.fewest_load,
        "total_load": found.total_load,
        "above_share_percent": round(found.above_share_percent, 3),
    }


def _event(event: Event, loads: Loads) -> Document:
    return {
        "what": event.what,
        "moved": event.moved,
        "moved_load": event.moved_load,
        "from_staying": event.from_staying,
        "paused": event.paused,
        "new": event.new,
        "spread": _spread(spread(event.after.owners, loads)),
    }


def _assignors(group: Group) -> tuple[str, ...]:
    own = () if group.assignor in assignors.ASSIGNORS else (group.assignor,)
    return (*assignors.ASSIGNORS, *own)


def _assignor(group: Group, name: str, facts: _Facts) -> Document:
    """The group under another assignor, from its beginning: how even, and what its worst event moves."""
    owners = assignors.assign(name, group.counts, group.members)
    other = replace(group, assignor=name, owners=owners, observed=False)
    happened = [each for each in events(other, {}, facts.loads) if each.what.endswith((" leaves", " joins"))]
    return {
        "assignor": name,
        "spread": _spread(spread(owners, facts.loads)),
        "most_moved": max((each.moved for each in happened), default=0),
        "most_paused": max((each.paused for each in happened), default=0),
        "cooperative": name == COOPERATIVE,
    }


def _rebalances(group: Group, facts: _Facts) -> Document:
    """Whether the spec's changes make the group assign anew, and why."""
    moving = sorted(each for each in facts.moving if each[0] in group.counts) if group.racks else []
    more = sorted(topic for topic, count in facts.grown.items() if count > group.counts.get(topic, count))
    return {
        "partitions_in_other_racks": [{"topic": topic, "partition": number} for topic, number in moving],
        "topics_with_more_partitions": more,
        "rebalances": bool(moving or more),
    }


def _partition_counts(spec: Spec, grown: Mapping[str, int], keys: Sequence[str]) -> list[Document]:
    """What more partitions do to the partitions of keys."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    return [
        {
            "topic": topic,
            "before": counts[topic],
            "after": grown[topic],
            "keys_moved_percent": round(float(100 * moved_share(counts[topic], grown[topic])), 3),
            "keys": [_key(key, counts[topic], grown[topic]) for key in keys],
        }
        for topic in _known(grown, counts)
    ]


def _known(grown: Mapping[str, int], counts: Mapping[str, int]) -> Iterable[str]:
    return sorted(topic for topic, count in grown.items() if count != counts.get(topic, count))


def _key(key: str, before: int, after: int) -> Document:
    # What a shell passes on needn't be text.
    data = key.encode("utf-8", "surrogateescape")
    return {"key": key, "before": partition_of(data, before), "after": partition_of(data, after)}
