"""Sentences on what a plan was asked for, which every output shares.

Plain text: the code that prints it escapes it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from planner.model.document_fields import LEADERS, ApartBy
from planner.model.formats import brokers, counted, first_lines, printable, size
from planner.plan import bound_section
from planner.plan.document.plan_types import Plan
from planner.plan.document.request_types import ChangesSection
from planner.report.view import Sentence


def changes(section: ChangesSection, at_most: int = 12) -> str:
    """The changes asked for, as one sentence without a full stop; changes beyond `at_most` are only counted."""
    new_by_rack: dict[str | None, list[int]] = {}
    replacing = set(section.replace_brokers.values())
    for broker in (row for row in section.add_brokers if row.id not in replacing):
        new_by_rack.setdefault(broker.rack, []).append(broker.id)
    requests = [
        *(f"add {brokers(ids)}" + ("" if rack is None else f" in rack {rack}") for rack, ids in new_by_rack.items()),
        *([f"remove {brokers(section.remove_brokers)}"] if section.remove_brokers else []),
        *([f"move all leaders off {brokers(section.demote_brokers)}"] if section.demote_brokers else []),
        *(f"replace broker {old} with {new}" for old, new in _by_broker(section.replace_brokers)),
        *(f"set the rack of broker {broker} to {rack}" for broker, rack in _by_broker(section.set_racks)),
        *(
            f"replication factor {row.replication_factor} for topics {row.topics}"
            for row in section.set_replication_factor
        ),
        *(
            f"create {topic.name} ({counted(topic.partitions, 'partition')}, "
            f"replication factor {topic.replication_factor})"
            for topic in section.create_topics
        ),
        *(f"grow {topic.topic} to {counted(topic.partitions, 'partition')}" for topic in section.add_partitions),
        f"rebalance: {section.rebalance}",
    ]
    return "; ".join(first_lines([printable(text, 120) for text in requests], at_most))


def asked_for(plan: Plan, at_most: int) -> str:
    """The changes asked for; without a balance target, they end with `keep the caps` or `keep the rules`."""
    changes_text = changes(plan.changes, at_most)
    if plan.changes.rebalance != "all" or bound_section.asks_for_balance(plan):
        return changes_text
    kept_rules = "the caps" if caps(plan) else "the rules"
    return f"{changes_text.removesuffix('rebalance: all')}keep {kept_rules} (no balance targets)"


def rules(plan: Plan, longest: int) -> Iterator[tuple[str, Sentence]]:
    """The rules and caps that the plan keeps, as pairs of a label and a sentence of at most `longest` characters."""
    spec = plan.spec
    for label, rule, describe in (
        ("Placement", spec.placement, placement),
        ("Apart", spec.apart, apart),
        ("Together", spec.together, together),
    ):
        if rule:
            yield label, Sentence(describe(plan), longest)
    if caps_text := caps(plan):
        yield "Caps", Sentence(caps_text, longest)


def caps(plan: Plan) -> str:
    """The caps of brokers: `at most 1,500 replicas on each broker`; empty if no broker states one."""
    by_caps = dict[str, list[int]]()
    staying = [broker for broker in plan.brokers if broker.role != "removed"]
    for broker in staying:
        limits = (broker.max_replicas, "replica"), (broker.max_leaders, "leader")
        parts = [counted(cap, noun) for cap, noun in limits if cap is not None]
        parts += [] if broker.max_disk_bytes is None else [size(broker.max_disk_bytes)]
        by_caps.setdefault(" and ".join(parts), []).append(broker.id)

    def where(ids: Sequence[int]) -> str:
        if len(ids) == len(staying):
            return "each broker"
        return f"each of {brokers(ids)}" if len(ids) > 1 else brokers(ids)

    return "; ".join(f"at most {caps_text} on {where(ids)}" for caps_text, ids in by_caps.items() if caps_text)


def placement(plan: Plan) -> str:
    """Which topics may use which brokers: `click* on streams (brokers 7 to 9), no other topic there`."""
    rules = [
        f"{rule.topics} on {rule.broker_set} ({brokers(sorted(rule.brokers))})"
        + (", no other topic there" if rule.exclusive else "")
        for rule in plan.spec.placement or ()
    ]
    return "; ".join(printable(text, 120) for text in rules)


def leader_racks(plan: Plan) -> str:
    """The racks that topics prefer for their leaders: `* in a, else b`."""
    rules = [f"{rule.topics} in {', else '.join(rule.prefer)}" for rule in plan.spec.leader_racks or ()]
    return "; ".join(printable(text, 120) for text in rules)


_HAVE: Mapping[ApartBy, str] = {"broker": "on", "rack": "in", "broker_leaders": "led by", "rack_leaders": "led in"}


def apart(plan: Plan) -> str:
    """Topics that are apart, with their brokers or racks: `orders on brokers 1, 2; payments on brokers 3, 4`. Also says
    if other splits may copy less, and what a first step leaves.
    """
    racks = {row.id: row.rack or "" for row in plan.brokers}
    # If the plan copies the proven minimum of all plans, no other split of the leaders copies less.
    bound = plan.bound
    is_least = bound.bytes_moved <= bound.least_bytes_moved and not bound.gap_percent and bound.method != "none"

    def places(by: ApartBy, ids: Sequence[int]) -> str:
        names = sorted({racks[each] for each in ids})
        return f"rack{'s' if len(names) > 1 else ''} {', '.join(names)}" if "rack" in by else brokers(sorted(ids))

    groups = []
    for rule in plan.spec.apart or ():
        sides = zip(rule.topics, rule.sides, strict=True)
        text = "; ".join(f"{topics} {_HAVE[rule.by]} {places(rule.by, ids)}" for topics, ids in sides)
        if not rule.proven and not (is_least and rule.by.endswith(LEADERS)):
            text += f" (other splits of the {rule.by.removesuffix(LEADERS)}s may copy less)"
        groups.append(text)
    return _groups(plan, groups)


def together(plan: Plan) -> str:
    """Topics that are led together, and what a first step leaves: `orders, clicks: one leader for each partition …`."""
    groups = [f"{', '.join(topics)}: one leader for each partition number" for topics in plan.spec.together or ()]
    return _groups(plan, groups)


def _groups(plan: Plan, groups: Iterable[str]) -> str:
    """A rule's groups of topics, and what a first step leaves."""
    waiting = plan.unfinished.partitions if plan.unfinished else 0
    not_yet = f" (not yet: {counted(waiting, 'partition')} left to change)" if waiting else ""
    return "; ".join(printable(text, 240) for text in groups) + not_yet


def _by_broker(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(mapping.items(), key=lambda item: int(item[0]))
