"""What a reader decides on: the verdict, what is asked for, what moves and why that is the least, and the measures.

Every output of a plan begins with it. Plain values; a renderer writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import counted, number, size
from planner.plan import headline
from planner.plan.document.cluster_types import BrokerRow, HeldLoad
from planner.plan.document.comparison_types import TermRow
from planner.plan.document.partition_types import FullestBroker, PartitionRow
from planner.plan.document.plan_types import Plan
from planner.report import sentences
from planner.report.view import (
    STATED,
    Change,
    Column,
    Facts,
    Joined,
    Name,
    Quantity,
    Section,
    Sentence,
    Strong,
    Table,
    Value,
)

_LONGEST_WISHES = 300
_MOVES_NAMED = 2
_LIMITED = {
    "broker_offline": "partitions offline if a broker fails",
    "broker_refused": "partitions refusing writes if a broker fails",
    "rack_offline": "partitions offline if a rack fails",
    "rack_refused": "partitions refusing writes if a rack fails",
    "gap": "beyond the proven least, part of the copied",
    "eta": "duration",
    "disk_used": "peak disk use",
}
_MEASURED = ("bytes_moved", "cross_rack_bytes", "replicas_moved", "leaders_changed")


@dataclass(frozen=True)
class Measure:
    """One thing that a plan is judged by: today, with the plan, and what is asked for or allowed."""

    name: str
    today: Value
    plan: Value
    allowed: Value
    missed: bool = False


def section(plan: Plan) -> Section:
    """The facts and the measures."""
    table = measures(plan)
    return Section("In short", (facts(plan), *((table,) if table.rows else ())), "facts")


def facts(plan: Plan) -> Facts:
    """A label and a sentence each; a fact that a plan has nothing of is left out."""
    does = bool(plan.partitions)
    # More to choose from than the balance asked for.
    had_a_choice = bool(plan.variants) or plan.choice.rule != "asked"
    duration = sentences.pace(plan)
    if plan.execution.throttle_bytes_per_sec is not None and "/s" in duration:
        default = any(row.key == "execution.throttle" for row in plan.execution.derived)
        duration = f"{duration} ({'default' if default else 'your'} throttle)"
    every: tuple[tuple[str, Value], ...] = (
        ("Cluster", _cluster(plan)),
        ("Asked for", Sentence(sentences.wishes(plan.changes, 6), _LONGEST_WISHES)),
        ("Placement", Sentence(sentences.placement(plan), _LONGEST_WISHES) if plan.spec.placement else ""),
        ("Caps", Sentence(caps, _LONGEST_WISHES) if (caps := sentences.caps(plan)) else ""),
        ("Leader racks", Sentence(sentences.leader_racks(plan), _LONGEST_WISHES) if plan.spec.leader_racks else ""),
        ("Changes", _changes(plan)),
        ("Chosen", _chosen(plan) if had_a_choice else ""),
        ("Adopted", _adopted(plan)),
        ("Needed", _needed(plan) if does else ""),
        ("Proof", _proof(plan) if _replicas_copied(plan) else ""),
        ("Kafka's tool", _kafka(plan) if _replicas_copied(plan) else ""),
        ("Duration", f"{duration}{_receives_most(plan)}" if does else ""),
        ("Fullest broker" if plan.cluster.sizes_known else "Most replicas", _fullest(plan)),
        ("Removed", _leaving(plan)),
    )
    return Facts(tuple((label, value) for label, value in every if value))


def _cluster(plan: Plan) -> Value:
    """The cluster as it is today, how many brokers and racks it has afterwards where that differs, and its age."""

    def brokers_and_racks(absent: str) -> tuple[int, int]:
        there = [broker for broker in plan.brokers if broker.role != absent]
        return len(there), len({broker.rack for broker in there if broker.rack is not None})

    today, after = brokers_and_racks("added"), brokers_and_racks("removed")
    (brokers, racks), (brokers_after, racks_after) = today, after
    then = ""
    if today != after:
        then = f" (then {number(brokers_after)}" + (f" in {number(racks_after)})" if racks_after else ")")
    added = sum(topic.partitions - topic.partitions_before for topic in plan.new_topics)
    held = sum(broker.before.size_bytes for broker in plan.brokers if broker.role != "added")
    parts = (
        counted(brokers, "broker") + (f" in {counted(racks, 'rack')}" if racks else "") + then,
        counted(sum(topic.partitions for topic in plan.topics) - added, "partition"),
        size(held) if plan.cluster.sizes_known else "sizes unknown",
        f"captured {plan.validity.captured_at}" if plan.validity else "capture time unknown",
    )
    return Joined((Name(plan.cluster.name, 60), f": {', '.join(parts)}"))


def _chosen(plan: Plan) -> str:
    """By which rule; of a first step without the figures, which the headline has."""
    if plan.unfinished and plan.choice.rule == "within_budget":
        return headline.chosen(plan).partition(": copies ")[0] if plan.partitions else ""
    return headline.chosen(plan)


def _proof(plan: Plan) -> str:
    """Which plans cannot copy less, and how that is checked."""
    bound = plan.bound
    if plan.cluster.sizes_known and not bound.bytes_moved:
        return ""
    if bound.method == "forced" and not plan.cluster.sizes_known:
        return "only what the changes require is copied"
    if bound.method == "none" or (not plan.cluster.sizes_known and bound.least_replicas_moved is None):
        return "none: the minimum is unknown"
    if bound.method == "target":
        return "finishes an approved plan, whose target assignment needs all of these copies"
    less = f"less than {size(bound.least_bytes_moved)}"
    if not plan.cluster.sizes_known:
        less = f"fewer than {counted(bound.least_replicas_moved or 0, 'replica')}"
    only = "for this step alone, " if plan.unfinished else ""
    if bound.excess:
        return f"{only}no plan that copies {less} comes as close to the balance targets"
    if plan.unfinished or headline.looser(plan):
        return f"{only}no plan that ends as even as this one copies {less}"
    if plan.changes.rebalance != "all":
        repairs = " and repairs what breaks the rack rule" if plan.changes.rebalance == "racks" else ""
        return f"no plan that makes these changes{repairs} copies {less}"
    rule = " and spreads replicas over the racks" if any(row.rack is not None for row in plan.brokers) else ""
    return f"no plan that meets the targets{rule} copies {less}"


def _replicas_copied(plan: Plan) -> int:
    return sum(len(set(row.replicas) - set(row.replicas_before)) for row in plan.partitions)


def _adopted(plan: Plan) -> Value:
    """Which reassignment the plan carries out."""
    given = plan.adopted
    if not given:
        return ""
    there = f", {number(given.partitions_there)} of them as wanted already" if given.partitions_there else ""
    named = f", {given.format}: {counted(given.partitions, 'partition')}{there}; SHA-256 {given.sha256[:12]}"
    return Joined((Name(given.file, 60), named))


def _needed(plan: Plan) -> str:
    """What a plan that is as even copies, where the adopted one copies more."""
    given, above = plan.adopted, headline.more_than_needed(plan)
    if not given or given.enough_bytes_moved is None or given.enough_replicas_moved is None or not above:
        return ""
    copies = f"{size(given.enough_bytes_moved)} ({counted(given.enough_replicas_moved, 'replica')})"
    return f"a plan as even as this one copies {copies}: {size(above)} less"


def _kafka(plan: Plan) -> str:
    """What Kafka's own tool would do, the best of its placements that were tried."""
    best = next((row for row in plan.compared if row.strategy.startswith("kafka")), None)
    if best is None or not plan.cluster.sizes_known:
        return ""
    # A budget pays for one step of what the tool does at once.
    whole = " for the whole change" if plan.unfinished and not best.left_to_change else ""
    # It balances everything; beside a plan that moves only what it must, its balance says nothing.
    falls_short = whole + ("" if best.balance_kept or best.moves_unforced else " and be less even")
    if best.left_to_change:
        falls_short = f" and leave {counted(best.left_to_change, 'partition')} not as asked"
    elif best.moves_unforced:
        falls_short = f"{whole} and also move replicas that can stay"
    return f"--generate would copy {size(best.bytes_moved)}{falls_short} ({_best_of(best.label)})"


def _best_of(label: str) -> str:
    """`best of 4,975 simulated runs`, of a row's label."""
    runs = label.rpartition(" ")[2]
    return f"best of {number(int(runs))} simulated runs" if runs.isdigit() else "simulated"


def _leaving(plan: Plan) -> str:
    """Whether the brokers that leave can be stopped afterwards."""
    leaving = [broker for broker in plan.brokers if broker.role == "removed"]
    if not leaving:
        return ""
    holding = [broker.id for broker in leaving if broker.after.replicas]
    ids = holding or [broker.id for broker in leaving]
    who = f"{'broker' if len(ids) == 1 else 'brokers'} {formats.ranges(ids)}"
    if holding:
        return f"{who}: NOT empty afterwards, don't stop {'it' if len(ids) == 1 else 'them'} yet"
    return f"{who}: empty afterwards, can be stopped after verify.yml"


def _fullest(plan: Plan) -> str:
    """The broker that holds most today, in any batch, and afterwards: of its disk where all of them are stated."""
    if not plan.cluster.sizes_known:
        of_replicas = [
            (max(((getattr(broker, side).replicas, -broker.id) for broker in plan.brokers), default=(0, 0)), when)
            for side, when in (("before", "today"), ("after", "after"))
        ]
        return "; ".join(f"{when} broker {-broker} ({number(held)})" for (held, broker), when in of_replicas)

    by_disk = all(broker.disk_bytes for broker in plan.brokers)

    def fullest(side: str) -> str:
        def fullness(broker: BrokerRow) -> float:
            held: int = getattr(broker, side).size_bytes
            return held / broker.disk_bytes if by_disk and broker.disk_bytes else held

        row = max(plan.brokers, key=lambda broker: (fullness(broker), -broker.id))
        return f"broker {row.id} ({sentences.disk(getattr(row, side).size_bytes, row.disk_bytes)})"

    if not any(batch.replicas_moved for batch in plan.batches):
        return fullest("before")
    return f"today {fullest('before')}; {_peak(plan)}after {fullest('after')}"


def _peak(plan: Plan) -> str:
    """The fullest broker of any batch: by its disk where one is stated."""
    rows = [(batch.fullest_broker, batch.number) for batch in plan.batches if batch.fullest_broker]
    if not rows:
        return ""

    def fullness(row: FullestBroker) -> tuple[bool, float]:
        disk, held = row.disk_bytes, row.peak_size_bytes
        return bool(disk), held / disk if disk else held

    row, batch = max(rows, key=lambda each: fullness(each[0]))
    held = sentences.disk(row.peak_size_bytes, row.disk_bytes)
    return f"peak broker {row.id} ({held}, in batch {batch}); "


def _receives_most(plan: Plan) -> str:
    """The broker that most is copied to, which the duration depends on."""
    if not plan.cluster.sizes_known or not plan.bound.bytes_moved:
        return ""
    to = max(plan.brokers, key=lambda broker: broker.bytes_in)
    return f"; broker {to.id} receives most, {size(to.bytes_in)}"


def _changes(plan: Plan) -> Value:
    """How many partitions change for which reason, and examples: those that copy most, else new leaders."""

    def copied(row: PartitionRow) -> int:
        return len(set(row.replicas) - set(row.replicas_before)) * (row.size_bytes or 1)

    def named(row: PartitionRow, before: str, after: str) -> Value:
        return Joined((Name(f"{row.topic}-{row.partition}", 60), " ", Change(before, after)))

    moved = sorted(filter(copied, plan.partitions), key=lambda row: (-copied(row), row.topic, row.partition))
    examples, kind = list[Value](), "largest" if plan.cluster.sizes_known else "first"
    for row in moved[:_MOVES_NAMED]:
        before, after = (",".join(map(str, replicas)) for replicas in (row.replicas_before, row.replicas))
        examples.append(named(row, before, after))
    if not moved:
        kind = "new leaders"
        for row in [row for row in plan.partitions if row.leader_before != row.replicas[0]][:_MOVES_NAMED]:
            examples.append(
                named(row, "none" if row.leader_before is None else str(row.leader_before), str(row.replicas[0]))
            )
    reasons = sentences.reasons(plan)
    return Joined((reasons, f"; {kind}: ", Joined(tuple(examples), "; "))) if examples else reasons


def measures(plan: Plan) -> Table[Measure]:
    """How even the cluster is, and what that takes, each beside what is asked for or allowed."""
    column = Column[Measure]

    def allowed(row: Measure) -> Value:
        return Joined((row.allowed, "(not met)"), " ") if row.missed else row.allowed

    columns = (
        column("Measure", lambda row: row.name, numeric=False),
        column("Today", lambda row: row.today),
        column("Plan", lambda row: row.plan if row.plan == row.today else Strong(row.plan)),
        column("Target or limit", allowed, numeric=False),
    )
    rows = [*_balance(plan), *_changed(plan), *_movement(plan)]
    for gate in plan.limits:
        key = gate.key.removeprefix("limits.")
        if key not in _MEASURED:
            value, limit = gate_cells(gate.key, gate.value, gate.limit, gate.broker)
            rows.append(Measure(_LIMITED.get(key, formats.words(key)), "", value, f"at most {limit}", gate.crossed))
    return Table("measures", "Today and with the plan", "measure", rows, columns)


def _balance(plan: Plan) -> Iterator[Measure]:
    """The loads that are asked to be even, from the lowest broker to the highest.

    Where only leaders may change, nothing else is asked to be even.
    """
    asked, terms = plan.balance.asked, {term.name: term for term in plan.terms}
    # A plan that was chosen at another balance is relaxed within that one; what was asked for is what counts here.
    relaxed = () if headline.looser(plan) else plan.balance.relaxed
    missed = {*plan.balance.missed, *(row.window for row in relaxed)}
    loads: tuple[tuple[str, str, Callable[[HeldLoad], float | None], str], ...] = (
        ("replicas", "replicas per broker", lambda held: held.replicas, "replicas"),
        ("leaders", "leaders per broker", lambda held: held.leaders, "leaders"),
        ("disk", "bytes per broker", lambda held: held.size_bytes, "bytes"),
        ("network_in", "network in per broker", lambda held: held.network_in, "bytes/s"),
        ("network_out", "network out per broker", lambda held: held.network_out, "bytes/s"),
    )
    if plan.changes.rebalance == "leaders" and not _replicas_copied(plan):
        loads = tuple(load for load in loads if load[0] in ("leaders", "network_out"))
    ranked, capped = plan.spec.leader_racks or plan.changes.demote_brokers, bool(sentences.caps(plan))
    for window, name, of, unit in loads:
        if unit == "bytes" and not plan.cluster.sizes_known:
            continue
        today = [of(broker.before) for broker in plan.brokers if broker.role != "added"]
        after = [of(broker.after) for broker in plan.brokers if broker.role != "removed"]
        if None not in today:
            # Shares are unlike by rules of placement or caps, those of leaders also by rules on who leads.
            unlike = bool(plan.spec.placement or capped or ("leaders" in window and ranked))
            allowed = _window(getattr(asked, window), by_share=unlike)
            if window not in missed:
                allowed += sentences.unlike_shares(plan, getattr(asked, window), after)
            yield Measure(name, _range(today, unit), _range(after, unit), allowed, window in missed)
        spread = terms.get("topic_replica_spread")
        if len(loads) > 2 and window == "leaders" and spread and asked.topic_replicas != "none":
            today_and_after = Quantity(spread.today, "replicas"), Quantity(spread.plan, "replicas")
            allowed = _window(asked.topic_replicas, by_share=capped)
            yield Measure(
                "replicas of one topic, brokers differ by", *today_and_after, allowed, "topic_replicas" in missed
            )


def _range(values: Sequence[float | None], unit: str) -> Value:
    known = [value for value in values if value is not None]
    if not known:
        return None
    least, most = (formats.amount(end, unit) for end in (min(known), max(known)))
    if least == most:
        return most
    # One unit is enough where both have it.
    value, _, of = least.partition(" ")
    return f"{value if of and most.endswith(f' {of}') else least} to {most}"


def _window(asked: str, *, by_share: bool = False) -> str:
    """What a target allows; `by_share`: brokers have unlike shares, as their topics differ."""
    if asked == "none":
        return "no target"
    if asked.endswith("%"):
        return f"within {asked.removesuffix('%')} % of fair share"
    return f"at most {asked} from fair share" if by_share else f"differ by at most {asked}"


def _changed(plan: Plan) -> Iterator[Measure]:
    """What is wrong today or with the plan, and how many partitions a failure takes offline, where that changes."""
    names = {
        "left_to_change": "partitions that must still change",
        "rack_spread_broken": "partitions not spread over racks",
        "broker_offline": "offline partitions if the worst broker fails",
        "rack_offline": "offline partitions if the worst rack fails",
    }
    for term in plan.terms:
        if term.name in names and (term.today, term.plan) != (0, 0) and term.today != term.plan:
            before, after = (Quantity(value, term.unit) for value in (term.today, term.plan))
            yield Measure(names[term.name], before, after, _limit(term))


def _movement(plan: Plan) -> Iterator[Measure]:
    names = {
        "bytes_moved": "copied",
        "cross_rack_bytes": "copied to another rack",
        "replicas_moved": "replicas copied",
        "leaders_changed": "leaders changed",
    }
    if not plan.partitions:
        return
    crossed = {row.key for row in plan.limits if row.crossed}
    for term in plan.terms:
        if term.name in names and (term.limit is not None or (term.plan and term.name == "cross_rack_bytes")):
            missed = f"limits.{term.name}" in crossed
            allowed = "" if term.limit is None else Joined(("at most ", _limit(term)))
            yield Measure(names[term.name], "", Quantity(term.plan, term.unit), allowed, missed)


def _limit(term: TermRow) -> Value:
    """In the unit that it was written in; empty without one, which isn't an unknown one."""
    return "" if term.limit is None else Quantity(term.limit, STATED if term.unit == "bytes" else term.unit)
