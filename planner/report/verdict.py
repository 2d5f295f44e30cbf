"""What a reviewer decides on, as sentences: the verdict, how even it gets, the risks, and what Terraform will see.

Plain text; whoever prints it escapes what comes from the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.model import formats
from planner.model.formats import amount, counted, number, percent, size
from planner.plan import headline
from planner.plan.document.cluster_types import TopicRow
from planner.plan.document.comparison_types import TermRow
from planner.plan.document.plan_types import Plan

_GROUPS_NAMED = 3
_DOMAINS = ("broker", "rack")


def verdict(plan: Plan) -> str:
    """Whether it can be applied, and what asks for a second look; the first thing to read."""
    lead = "Ready to apply as a first step" if plan.unfinished else "Ready to apply"
    if any(gate.crossed for gate in plan.limits):
        lead = "Refused"
    elif not headline.has_something_to_do(plan):
        lead = "Nothing to apply"
    met = headline.balance_met(plan)
    parts = [
        *_limits(plan),
        *([met] if met else []),
        counted(len(plan.warnings), "warning") if plan.warnings else "no warnings",
        *([f"valid until {plan.valid_until}"] if plan.valid_until else []),
    ]
    # What a plan leaves as it is gets a sentence of its own: it is no reason not to apply the plan.
    missed = [headline.balance_missed(plan), *headline.racks(plan)]
    return " ".join([f"{lead}: {'; '.join(parts)}.", *(f"{each[0].upper()}{each[1:]}." for each in missed if each)])


def _limits(plan: Plan) -> Iterator[str]:
    """Whether the limits are kept; nothing where none are set."""
    gates = plan.limits
    crossed = [gate.key for gate in gates if gate.crossed]
    if crossed:
        verb = "is" if len(crossed) == 1 else "are"
        yield f"{len(crossed)} of {counted(len(gates), 'limit')} {verb} crossed, {', '.join(crossed)}"
    elif gates:
        kept = {1: "within its limit", 2: "within both limits"}
        yield kept.get(len(gates), f"within all {len(gates)} limits")


def risks(plan: Plan) -> Iterator[str]:
    """A sentence for each thing that may hurt while the plan runs or after it, good news included."""
    if plan.partitions:
        yield f"Writes: {writes(plan)}."
        crossing = next((term.plan for term in plan.terms if term.name == "cross_rack_bytes"), None)
        moved = plan.bound.bytes_moved
        if plan.racks and moved and crossing is not None and plan.cluster.sizes_known:
            share = percent(100 * crossing / moved)
            yield f"Copied to another rack: {size(int(crossing))} of {size(moved)} ({share})."
        yield from _groups(plan)
    yield from _failures(plan)


def terraform(plan: Plan) -> str:
    """What the tfvars say that Terraform doesn't know yet, and what they leave out; empty without news."""
    grown = {topic.topic for topic in plan.new_topics}
    told = plan.declared_topics
    changed = sum(topic.name in told and (_resized(topic) or topic.name in grown) for topic in plan.topics)
    left_out = len(plan.topics) - len(told)
    if not changed:
        return ""
    new = sum(not topic.partitions_before for topic in plan.new_topics)
    resized = sum(topic.name in told and _resized(topic) and topic.name not in grown for topic in plan.topics)
    kinds = ((resized, "with another replication factor"), (len(grown) - new, "with more partitions"), (new, "new"))
    said = ", ".join(f"{counted(count, 'topic')} {what}" for count, what in kinds if count)
    missing = f"; {counted(left_out, 'topic')} left out (internal to Kafka, or with mixed replication factors)"
    unknown = sum(topic["config"] is None for topic in told.values())
    unsaid = (
        f"; the config of {counted(unknown, 'topic')} is null, because the state doesn't say what is inherited: "
        "write it, or add the output of kafka-configs --describe --entity-type topics --all to the state"
    )
    return f"{said}{missing if left_out else ''}{unsaid if unknown else ''}"


def _resized(topic: TopicRow) -> bool:
    return topic.replication_factor_before != (topic.replication_factor,)


def writes(plan: Plan) -> str:
    """Whether any batch makes partitions refuse writes, without a full stop."""
    found = plan.risks
    unknown = "" if found.isr_known else " (replicas whose state is unknown are assumed to be in sync)"
    worst = max(found.under_min_isr, default=0)
    if not worst:
        return f"acks=all keeps working while the plan runs, unless a broker fails{unknown}"
    batches = [number + 1 for number, count in enumerate(found.under_min_isr) if count]
    where = f"{'batch' if len(batches) == 1 else 'batches'} {formats.ranges(batches)}"
    total = counted(sum(found.under_min_isr), "partition")
    return f"REFUSED with acks=all: {total} under min.insync.replicas in {where}{unknown}"


def _failures(plan: Plan) -> Iterator[str]:
    terms = {term.name: term for term in plan.terms}
    of_each = [(of, [terms[key] for key in (f"{of}_offline", f"{of}_refused") if key in terms]) for of in _DOMAINS]
    shown = [
        f"If the worst {of} fails: {_failed(found)}."
        for of, found in of_each
        if any(term.today or term.plan for term in found)
    ]
    yield from shown
    if not shown and any(found for _, found in of_each):
        of = "broker or rack" if any(row.rack is not None for row in plan.brokers) else "broker"
        yield f"After the plan, the failure of one {of} takes no partition offline and blocks no acks=all writes."


def _failed(found: Sequence[TermRow]) -> str:
    """`1 partition offline, 2 refusing acks=all writes, as today`; where the plan changes a number, both of them."""
    words = {"offline": "offline", "refused": "refusing acks=all writes"}
    unchanged = all(term.plan == term.today for term in found)
    told = [
        f"{amount(term.plan, term.unit) if at else counted(round(term.plan or 0), 'partition')} "
        f"{words[term.name.rpartition('_')[2]]}{'' if unchanged else f' (today {amount(term.today, term.unit)})'}"
        for at, term in enumerate(found)
    ]
    return f"{', '.join(told)}{', as today' if unchanged else ''}"


def _groups(plan: Plan) -> Iterator[str]:
    """Consumer groups that read topics whose leaders change, where the plan tells of groups."""
    section = plan.consumers
    if section is None:
        return
    moved = {row.topic for row in plan.partitions if row.leader_before != row.replicas[0]}
    found = [group.group for group in section.groups if moved & group.topics.keys()]
    shown = [formats.printable(name, 60) for name in found[:_GROUPS_NAMED]]
    more = f" and {number(len(found) - len(shown))} more" if len(found) > len(shown) else ""
    told = f": {', '.join(shown)}{more}" if found else ""
    of = f"{number(len(found))} of {counted(len(section.groups), 'group')}"
    yield f"Consumers: {of} read topics whose leaders change{told}."
