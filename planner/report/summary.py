"""The facts for a decision: what is asked for, what moves, why that is the least, and the measures.

Every output of a plan begins with them, after the verdict. They are plain values; a renderer writes them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.execution.limits_and_safety import bound_of, gate_cells
from planner.model import formats
from planner.model.formats import counted, number, replica_list, size
from planner.plan import bound_section, headline
from planner.plan.document.cluster_types import HeldLoad
from planner.plan.document.comparison_types import DO_NOTHING, TermRow
from planner.plan.document.partition_types import PartitionRow
from planner.plan.document.plan_types import Plan
from planner.report import choice_tables, cluster_tables, requested, sentences, verdict
from planner.report.view import (
    STATED,
    Change,
    Column,
    Facts,
    Joined,
    Name,
    Quantity,
    Sentence,
    Strong,
    Table,
    Value,
    ViewSection,
    visible,
)

_LONGEST_WISHES = 300
_LONGEST_REASON = 600
_MOVES_NAMED = 2
_MISSED, _EXCEEDED = "missed", "exceeded"
_LIMITED = {
    "broker_offline": "offline if a broker fails",
    "broker_refused": "no writes if a broker fails",
    "rack_offline": "offline if a rack fails",
    "rack_refused": "no writes if a rack fails",
    "hours_above_capacity": "hours above capacity",
    "worst_hour": "worst hour of any broker",
    "p99_hour": "99 % of brokers' hours",
    "months_until_full": "months until a disk is full",
    "gap": "above minimum, of copied",
    "eta": "duration",
    "capacity.max_disk": "bytes on a capped broker",
}
_OF_LEADERS = ("leaders", "network_out")
_MOVED = {
    "bytes_moved": "copied",
    "cross_rack_bytes": "copied between racks",
    "replicas_moved": "replicas copied",
    "leaders_changed": "leaders changed",
}
# The name in the YAML, the name in the table, a broker's amount, and the unit.
_LOADS: tuple[tuple[str, str, Callable[[HeldLoad], float | None], str], ...] = (
    ("replicas", "replicas per broker", lambda load: load.replicas, "replicas"),
    ("leaders", "leaders per broker", lambda load: load.leaders, "leaders"),
    ("disk", "bytes per broker", lambda load: load.size_bytes, "bytes"),
    ("network_in", "network in per broker", lambda load: load.network_in, "bytes/s"),
    ("network_out", "network out per broker", lambda load: load.network_out, "bytes/s"),
)


@dataclass(frozen=True)
class Measure:
    """One measure that a plan is judged by: today, with the plan, and its target or limit."""

    name: str
    today: Value
    plan: Value
    allowed: Value
    remark: str = ""  # `missed`, `exceeded`, or what waits


def section(plan: Plan) -> ViewSection:
    """The facts and the measures."""
    return ViewSection("In short", visible(facts(plan), measures(plan)), "facts")


def facts(plan: Plan) -> Facts:
    """Pairs of a label and a sentence; empty ones are left out."""
    has_changes = bool(plan.partitions)
    # The rule had more candidates to choose from than those at the balance asked for.
    had_a_choice = bool(plan.variants) or (has_changes and plan.choice.rule != "asked")
    chosen = headline.choice_phrase(plan)
    if plan.unfinished and plan.choice.rule == "within_budget":
        # The figures are left out, because the headline has them.
        chosen = chosen.partition(": copies ")[0] if has_changes else ""
    duration = sentences.pace(plan)
    if plan.execution.throttle_bytes_per_sec is not None and "/s" in duration:
        default = next((row.why for row in plan.execution.derived if row.key == "execution.throttle"), None)
        duration = f"{duration} ({f'default: {default}' if default else 'your throttle'})"
    duration_text = f"{duration}{verdict.busiest(plan)}"
    fullest_label = "Fullest disk" if verdict.by_disk(plan) else "Fullest broker"
    fullest = ((fullest_label if plan.cluster.sizes_known else "Most replicas", verdict.fullest(plan)),)
    if plan.changes.rebalance == "leaders" and has_changes and not plan.replicas_copied:
        fullest = (("Most leaders", verdict.holds_most(plan, "leaders")),)
    dirs_move = bool(plan.log_dirs and plan.log_dirs.moves)
    pairs: tuple[tuple[str, Value], ...] = (
        ("Cluster", _cluster(plan)),
        ("Asked for", Sentence(requested.asked_for(plan, 6), _LONGEST_WISHES)),
        *(("Unsafe", Sentence(reason, _LONGEST_REASON)) for reason in plan.unsafe or ()),
        *requested.rules(plan, _LONGEST_WISHES),
        ("Leader racks", Sentence(requested.leader_racks(plan), _LONGEST_WISHES) if plan.spec.leader_racks else ""),
        ("Changes", _changes(plan)),
        ("Leaders", sentences.elections(plan) if plan.replicas_copied or dirs_move else ""),
        ("Chosen", chosen if had_a_choice else ""),
        ("Adopted", _adopted(plan)),
        ("Alternative", _alternative(plan) if has_changes else ""),
        ("Proof", choice_tables.proof(plan) if plan.replicas_copied else choice_tables.proof_in_brokers(plan)),
        ("Kafka's tool", choice_tables.kafkas_tool(plan)),
        (
            "Duration",
            Sentence(duration_text, _LONGEST_REASON) if has_changes else "nothing to copy" if plan.new_topics else "",
        ),
        *fullest,
        ("Removed", verdict.leaving(plan)),
    )
    return Facts(tuple((label, value) for label, value in pairs if value))


def _cluster(plan: Plan) -> Value:
    """The cluster today, how many brokers and racks it has afterwards if that differs, and when it was captured."""

    def brokers_and_racks(absent_role: str) -> tuple[int, int]:
        present = [broker for broker in plan.brokers if broker.role != absent_role]
        return len(present), len({broker.rack for broker in present if broker.rack is not None})

    brokers, racks = brokers_and_racks("added")
    brokers_after, racks_after = brokers_and_racks("removed")
    after_text = ""
    if (brokers, racks) != (brokers_after, racks_after):
        # The racks are counted again only if their number changes.
        in_racks = f" in {counted(racks_after, 'rack')}" if racks_after != racks else ""
        after_text = f" ({number(brokers_after)}{in_racks} afterwards)"
    added = sum(topic.partitions - topic.partitions_before for topic in plan.new_topics)
    stored_bytes = sum(broker.before.size_bytes for broker in plan.brokers if broker.role != "added")
    parts = (
        counted(brokers, "broker") + (f" in {counted(racks, 'rack')}" if racks else "") + after_text,
        counted(sum(topic.partitions for topic in plan.topics) - added, "partition"),
        size(stored_bytes) if plan.cluster.sizes_known else "sizes unknown",
        f"captured {plan.validity.captured_at}" if plan.validity else "capture time unknown: no expiry",
    )
    return Joined((Name(plan.cluster.name, 60), f": {', '.join(parts)}"))


def _adopted(plan: Plan) -> Value:
    """Which reassignment the plan carries out."""
    adopted = plan.adopted
    if not adopted:
        return ""
    in_place = f", {number(adopted.partitions_there)} of them already in place" if adopted.partitions_there else ""
    details = f", {adopted.format}: {counted(adopted.partitions, 'partition')}{in_place}; SHA-256 {adopted.sha256[:12]}"
    return Joined((Name(adopted.file, 60), details))


def _alternative(plan: Plan) -> str:
    """How much less a plan that is as even copies; empty if the adopted plan copies no more."""
    adopted, excess_bytes = plan.adopted, headline.more_than_needed(plan)
    if not adopted or adopted.enough_bytes_moved is None or adopted.enough_replicas_moved is None or not excess_bytes:
        return ""
    copies = f"{size(adopted.enough_bytes_moved)} ({counted(adopted.enough_replicas_moved, 'replica')})"
    reached = plan.balance.wanted.unlike(plan.balance.asked)
    looser = ", ".join(f"{window}: {value}" for window, value in reached.items())
    advice = "planner whatif finds it"
    if looser:
        advice = f"to get it, run planner whatif with balance: {{{looser}}}; otherwise it plans for the targets above"
    return f"a plan as even as this one copies {copies}, {size(excess_bytes)} less: {advice}"


def _changes(plan: Plan) -> Value:
    """How many partitions change for which reason, and examples: those that copy most, or else new leaders."""

    def copied(row: PartitionRow) -> int:
        return len(row.added) * (row.size_bytes or 1)

    def example(row: PartitionRow, before: str, after: str) -> Value:
        return Joined((Name(row.name, 60), " ", Change(before, after)))

    if not plan.partitions:
        # The brokers of the first new partition of each topic.
        new_partitions = tuple(
            Joined((Name(f"{topic.topic}-{topic.partitions_before}", 60), f" on {replica_list(topic.replicas[0])}"))
            for topic in plan.new_topics[:_MOVES_NAMED]
        )
        return Joined(("the first new ones: ", Joined(new_partitions, "; "))) if new_partitions else ""
    moved = sorted(filter(copied, plan.partitions), key=lambda row: (-copied(row), row.topic, row.partition))
    kind = "most copied" if plan.cluster.sizes_known else "first"
    examples = [example(row, *map(replica_list, (row.replicas_before, row.replicas))) for row in moved[:_MOVES_NAMED]]
    if not moved:
        kind, examples = "largest", cluster_tables.largest_log_dir_moves(plan, _MOVES_NAMED)
    if not examples:
        kind = "new leaders"
        for row in [row for row in plan.partitions if row.leader_before != row.replicas[0]][:_MOVES_NAMED]:
            before = "none" if row.leader_before is None else str(row.leader_before)
            examples.append(example(row, before, str(row.replicas[0])))
    reasons = sentences.reasons(plan)
    return Joined((reasons, f"; {kind}: ", Joined(tuple(examples), "; "))) if examples else reasons


def measures(plan: Plan) -> Table[Measure]:
    """How even the cluster is and how much moves, each with its target or limit."""
    column = Column[Measure]

    def allowed(row: Measure) -> Value:
        return Joined((row.allowed, f"({row.remark})"), " ") if row.remark else row.allowed

    columns = (
        column("Measure", lambda row: row.name, numeric=False),
        column("Today", lambda row: row.today),
        column("Plan", lambda row: row.plan if row.plan == row.today else Strong(row.plan)),
        column("Target or limit", allowed, numeric=False),
    )
    balance = list(_balance(plan))
    if plan.changes.rebalance == "none":
        # Then no balance of brokers is asked for: no target is missed, and measures that don't change are left out.
        balance = [replace(row, allowed="not asked", remark="") for row in balance if row.today != row.plan]
    rows = [*balance, *_log_dir_measures(plan), *_change_measures(plan)]
    today = {term.name: Quantity(term.today, term.unit) for term in plan.terms if term.name in _LIMITED}
    until_full = next((row.months_until_full for row in plan.compared if row.label == DO_NOTHING), None)
    today["months_until_full"] = Quantity(until_full, "months")
    for gate in plan.limits:
        key, exceeded = gate.key.removeprefix("limits."), _EXCEEDED if gate.crossed else ""
        if key == "disk_used":
            _, most_percent = choice_tables.disk_used(plan, gate)
            at_most = f"at most {most_percent}{' (default)' if plan.spec.limits.disk_used_ppm is None else ''}"
            remark = exceeded or choice_tables.above_disk_limit(plan)
            rows.append(Measure("fullest disk", *choice_tables.fullest_disk(plan), at_most, remark))
        elif key not in _MOVED:
            value, limit = gate_cells(gate.key, gate.value, gate.limit, gate.broker)
            if key.endswith(("_offline", "_refused")):
                limit = formats.counted(gate.limit, "partition")
            name = _LIMITED.get(key, formats.words(key))
            if key == "capacity.max_disk":
                capped_bytes = next((each.before.size_bytes for each in plan.brokers if each.id == gate.broker), None)
                today[key] = Quantity(capped_bytes, "bytes")
            rows.append(Measure(name, today.get(key, ""), value, f"{bound_of(gate.key)} {limit}", exceeded))
    return Table("measure", rows, columns, "measures", "Today and with the plan")


def _balance(plan: Plan) -> Iterator[Measure]:
    """The range of each load over the brokers; only leaders and network out if only leaders may change."""
    windows = plan.balance.asked
    # If the plan was made for other windows, its `relaxed` rows are about those; only the windows asked for count here.
    relaxed = () if bound_section.looser(plan) else plan.balance.relaxed
    missed = {*plan.balance.missed, *(row.window for row in relaxed)}
    only_leaders = plan.changes.rebalance == "leaders" and not plan.replicas_copied
    ranked, has_caps = plan.spec.leader_racks or plan.changes.demote_brokers, bool(requested.caps(plan))
    by_capacity = sentences.windows_by_capacity(plan)
    for window, name, amount_of, unit in _LOADS:
        if (unit == "bytes" and not plan.cluster.sizes_known) or (only_leaders and window not in _OF_LEADERS):
            continue
        today = [amount_of(broker.before) for broker in plan.brokers if broker.role != "added"]
        after = [amount_of(broker.after) for broker in plan.brokers if broker.role != "removed"]
        if None not in today:
            # Shares differ because of placement rules or caps, and shares of leaders also because of rules on leaders.
            has_rules = bool(plan.spec.placement or plan.spec.apart or has_caps or ("leaders" in window and ranked))
            share_row = next((row for row in plan.balance.shares or () if row.window == window), None)
            shares = f"shares of {_range([share_row.least, share_row.most], unit)}" if share_row else ""
            by_share = has_rules or window in by_capacity or (bool(shares) and window not in missed)
            allowed = sentences.target(getattr(windows, window), by_share=by_share, shares=shares)
            remark = sentences.missed_in_hours([row for row in relaxed if row.window == window])
            remark = remark or (_MISSED if window in missed else "")
            if remark and shares and not by_share and not getattr(windows, window).endswith("%"):
                # Brokers with different shares can't all be within the spread.
                remark = f"missed, with {shares}"
            yield Measure(name, _range(today, unit), _range(after, unit), allowed, remark)
        if window == "leaders" and not only_leaders:
            yield from _topic_measures(plan, missed, by_share=has_caps)


def _topic_measures(plan: Plan, missed: Collection[str], *, by_share: bool) -> Iterator[Measure]:
    """How evenly each topic's replicas are spread; nothing if no target asks for that."""
    spread, target = plan.terms_by_name.get("topic_replica_spread"), plan.balance.asked.topic_replicas
    if spread is None or target == "none":
        return
    by_racks = any(row.window == "replicas" for row in plan.balance.shares or ())
    is_unlike = "replicas" in sentences.windows_by_capacity(plan) or ("topic_replicas" not in missed and by_racks)
    today, after = (f"differ by {number(value or 0)}" for value in (spread.today, spread.plan))
    allowed = sentences.target(target, by_share=by_share or is_unlike)
    yield Measure("replicas of one topic", today, after, allowed, _MISSED if "topic_replicas" in missed else "")


def _log_dir_measures(plan: Plan) -> Iterator[Measure]:
    """How many log dirs are outside their target, and the fullest one; nothing if log dirs aren't planned."""
    if plan.log_dirs is None:
        return
    # A log dir with an error has no target, and its contents are unknown. What is in a cordoned one stays there.
    rows = [log_dir for _, log_dir in sentences.log_dirs(plan) if log_dir.most_bytes is not None]
    targets = [(row, row.least_bytes or 0, row.most_bytes or 0) for row in rows]
    before = sum(not least <= row.before.size_bytes <= most for row, least, most in targets)
    after = sum(not least <= row.after.size_bytes <= most for row, least, most in targets)
    within = f"0, within {plan.log_dirs.wanted.removesuffix('%')} % of share"
    yield Measure("log dirs outside target", before, after, within, _MISSED if after else "")
    disks = [(row, row.disk_bytes) for row in rows if row.disk_bytes]
    if disks and len(disks) == len(rows):
        today = max(100 * row.before.size_bytes / disk_bytes for row, disk_bytes in disks)
        fullest = max(100 * row.after.size_bytes / disk_bytes for row, disk_bytes in disks)
        yield Measure("fullest log dir", formats.percent(today), formats.percent(fullest), "")


def _range(values: Sequence[float | None], unit: str) -> Value:
    known_values = [value for value in values if value is not None]
    if not known_values:
        return None
    least, most = (formats.amount(end, unit) for end in (min(known_values), max(known_values)))
    if least == most:
        return most
    # The unit is written once if both ends have the same.
    value, _, unit_text = least.partition(" ")
    return f"{value if unit_text and most.endswith(f' {unit_text}') else least} to {most}"


def _change_measures(plan: Plan) -> Iterator[Measure]:
    """Partitions that aren't as asked, and partitions that a failure takes offline, if the plan changes the number;
    then what moves.
    """
    names = {
        "left_to_change": "partitions still to change",
        "rack_spread_broken": "breaking the rack rule",
        **{name: _LIMITED[name] for name in ("broker_offline", "rack_offline")},
    }
    terms = plan.terms_by_name
    rack_term, left_term = terms.get("rack_spread_broken"), terms.get("left_to_change")
    if rack_term and left_term and not rack_term.plan and left_term.today:
        # These partitions also count as still to change, and two counts of the same partitions would confuse.
        del names["rack_spread_broken"]
    limited = {row.key.removeprefix("limits.") for row in plan.limits}
    for term in plan.terms:
        if term.name in names.keys() - limited and term.today != term.plan:
            before, after = (Quantity(value, term.unit) for value in (term.today, term.plan))
            waiting = sum(row.leader_before is None for row in plan.partitions) * (term.name == "left_to_change")
            remark = f"{waiting} without a leader wait" if waiting else ""
            yield Measure(names[term.name], before, after, _limit(term), remark)
    crossed = {row.key for row in plan.limits if row.crossed}
    for term in plan.terms if plan.partitions else ():
        if term.name in _MOVED and (term.limit is not None or (term.plan and term.name == "cross_rack_bytes")):
            remark = _EXCEEDED if f"limits.{term.name}" in crossed else ""
            allowed = "" if term.limit is None else Joined(("at most ", _limit(term)))
            yield Measure(_MOVED[term.name], "", Quantity(term.plan, term.unit), allowed, remark)


def _limit(term: TermRow) -> Value:
    """The limit in the unit in which it was written; empty if there is none, because None would mean unknown."""
    return "" if term.limit is None else Quantity(term.limit, STATED if term.unit == "bytes" else term.unit)
