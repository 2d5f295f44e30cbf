"""The rules of a spec about who leads: `changes.demote_brokers` and `leader_racks`.

Brokers that are demoted stay and keep their replicas; so each of their partitions needs a replica elsewhere to lead it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.build_spec import TARGET_KEYS, replication_factor_changes, target_brokers, topic_filter
from planner.inputs.spec.rules import DocumentRule, RuleList, TopicRule, listed
from planner.inputs.yaml_source import Document
from planner.model.build_problem import may_move
from planner.model.errors import Finding, did_you_mean

LEADER_RULES: RuleList[DocumentRule] = RuleList()
LEADER_TOPIC_RULES: RuleList[TopicRule] = RuleList()

_DEMOTED = "changes.demote_brokers"
_SHOWN = 3


@LEADER_RULES.reads(*TARGET_KEYS, _DEMOTED)
def _demoted_stay(document: Document) -> Iterator[Finding]:
    """Each is a broker that stays or joins, and some broker is left to lead."""
    targets = {broker.id for broker in target_brokers(document)}
    demoted = list(document.items("changes", "demote_brokers"))
    for path, broker in demoted:
        if broker not in targets:
            yield document.finding(path, f"{broker} doesn't stay in the cluster; allowed: {listed(targets)}")
    if demoted and targets <= {broker for _, broker in demoted}:
        message = "no broker is left to lead; allowed: some of the brokers that stay or join"
        yield document.finding(("changes", "demote_brokers"), message)


@LEADER_RULES.reads(*TARGET_KEYS, "leader_racks")
def _racks_have_brokers(document: Document) -> Iterator[Finding]:
    racks = {broker.rack for broker in target_brokers(document) if broker.rack is not None}
    for path, item in document.items("leader_racks"):
        for at, rack in enumerate(item["prefer"]):
            if rack not in racks:
                allowed = ", ".join(sorted(racks)) or "no rack, as no broker has one"
                message = f"no broker that stays or joins has the rack {rack!r}; {did_you_mean(rack, racks)}"
                yield document.finding((*path, "prefer", at), f"{message}allowed: {allowed}")


@LEADER_TOPIC_RULES.reads(*TARGET_KEYS, _DEMOTED, "topics", "changes.set_replication_factor")
def _others_can_lead(document: Document, assignment: Assignment) -> Iterator[Finding]:
    """Every partition that a demoted broker leads has a replica elsewhere, and may be led by it."""
    demoted = set(document.get("changes", "demote_brokers") or ())
    if not demoted:
        return
    chosen, alone, fixed = topic_filter(document), list[str](), list[str]()
    more = [
        change.topics for change in replication_factor_changes(document) if change.replication_factor > len(demoted)
    ]
    for topic in (each for each in assignment.topics if not each.deleting):
        grows = any(fnmatchcase(topic.name, pattern) for pattern in more)
        for row in topic.partitions:
            if row.replicas and set(row.replicas) <= demoted and not grows:
                alone.append(f"{topic.name}-{row.id}")
            elif row.replicas and row.replicas[0] in demoted and not may_move(chosen, topic.name):
                fixed.append(f"{topic.name}-{row.id}")
    path = ("changes", "demote_brokers")
    if alone:
        message = f"nobody else can lead {_some(alone)}, without a replica elsewhere; allowed: other brokers, "
        yield document.finding(path, f"{message}or first a larger changes.set_replication_factor")
    if fixed:
        message = f"{_some(fixed)} may not change by topics.include or topics.exclude, and is led by one of these"
        yield document.finding(path, f"{message}; allowed: topics that let them change")


def _some(partitions: list[str]) -> str:
    """Up to three partitions, and how many more there are."""
    more = f" and {len(partitions) - _SHOWN:,} more" if len(partitions) > _SHOWN else ""
    return f"{'partition' if len(partitions) == 1 else 'partitions'} {', '.join(partitions[:_SHOWN])}{more}"
