"""Tables of what was asked and chosen: limits, windows, terms, front, variants, alternatives; the proof in words."""

from typing import Any

from planner.execution.limits_and_safety import LimitRow, gate_cells
from planner.model import formats
from planner.model.formats import counted, number, size
from planner.plan import bound_section, headline
from planner.plan.document.comparison_types import (
    THIS_PLAN,
    CandidateFigures,
    ComparedRow,
    FrontFigures,
    ParetoRow,
    TermRow,
    VariantRow,
)
from planner.plan.document.partition_types import PlacementRow
from planner.plan.document.plan_types import Plan
from planner.report import requested, sentences
from planner.report.sentences import plan_size
from planner.report.view import GAP, SECONDS, STATED, Column, Name, Quantity, Sentence, Strong, Table, Value
from planner.scoring.missed_targets import RelaxedRow

_LONGEST_NAME = 60


def fullest_disk(plan: Plan) -> tuple[str, str]:
    """How full the fullest disk is today, and after the plan, with the peak of all batches if it is above both."""
    disks = [(broker, broker.disk_bytes) for broker in plan.brokers if broker.disk_bytes]
    today = max(100 * broker.before.size_bytes / disk_bytes for broker, disk_bytes in disks)
    after = max(100 * broker.after.size_bytes / disk_bytes for broker, disk_bytes in disks)
    peak = max(100 * broker.peak_size_bytes / disk_bytes for broker, disk_bytes in disks)
    peak_text = f", peak {formats.percent(peak)}" if peak > max(today, after) else ""
    return formats.percent(today), f"{formats.percent(after)}{peak_text}"


def disk_of(plan: Plan, gate: LimitRow) -> int:
    """Bytes of the disk of a limit's broker; if no disk is stated, the bytes that the broker would hold."""
    return next((row.disk_bytes for row in plan.brokers if row.id == gate.broker), None) or gate.value or 1


def disk_used(plan: Plan, gate: LimitRow) -> tuple[str, str]:
    """How full the disk of the limit's broker gets, and how full it may get, both in percent."""
    disk_bytes, limit_ppm = disk_of(plan, gate), plan.spec.limits.disk_used_ppm
    most_percent = 100 * gate.limit / disk_bytes if limit_ppm is None else limit_ppm / 10_000
    return formats.percent(100 * gate.value / disk_bytes), formats.percent(most_percent)


def above_disk_limit(plan: Plan) -> str:
    """The brokers that are above `limits.disk_used` today and stay so, which refuses no plan; empty if none is."""
    staying = ((row, row.disk_bytes) for row in plan.brokers if row.role == "stays")
    above_ids = [
        row.id
        for row, disk_bytes in staying
        if disk_bytes and min(row.before.size_bytes, row.after.size_bytes) > plan.spec.limits.on_disk(disk_bytes)
    ]
    return f"{formats.brokers(above_ids)} {'stays' if len(above_ids) == 1 else 'stay'} above" if above_ids else ""


def limit_amounts(plan: Plan, gate: LimitRow) -> tuple[str, str]:
    """The amount that the plan needs and the amount allowed, in the limit's own unit."""
    if gate.key == "limits.disk_used":
        return disk_used(plan, gate)
    return gate_cells(gate.key, gate.value, gate.limit, gate.broker)


def limits(plan: Plan) -> Table[LimitRow]:
    """The limits, and whether they are kept."""
    column = Column[LimitRow]

    def cells(row: LimitRow) -> tuple[str, str]:
        value, most = limit_amounts(plan, row)
        if row.key == "limits.disk_used":
            return f"{value} on broker {row.broker}, {size(row.value)}", f"{most}, {formats.as_stated(row.limit)}"
        return value, most

    def outcome(row: LimitRow) -> str:
        above_text = above_disk_limit(plan) if row.key == "limits.disk_used" else ""
        return f"kept, but {above_text}" if above_text else "kept"

    columns = (
        column("Limit", lambda row: Name(row.key), numeric=False),
        column("Plan", lambda row: cells(row)[0]),
        column("Allowed", lambda row: cells(row)[1]),
        column("", lambda row: Strong("exceeded") if row.crossed else outcome(row), numeric=False),
    )
    return Table("limit", plan.limits, columns, "limits", "Limits")


def relaxed(plan: Plan) -> Table[RelaxedRow]:
    """The windows that are not kept, and why."""
    column, by_capacity = Column[RelaxedRow], sentences.windows_by_capacity(plan)

    def target(row: RelaxedRow) -> str:
        return sentences.target(row.wanted, by_share=row.window.removeprefix("topic_") in by_capacity)

    # A first step's reason for missing a target says nothing about the later steps.
    reason_column = column("Why", lambda row: row.why, numeric=False)
    columns = (
        column("Target", lambda row: headline.target_name(row.window), numeric=False),
        column("Topic", lambda row: "all" if row.topic is None else Name(row.topic), numeric=False),
        column("Asked", target, numeric=False),
        column("Reached", sentences.reached_text, numeric=False),
        *(() if plan.unfinished else (reason_column,)),
    )
    title = "Targets that aren't met"
    if plan.unfinished:
        title = "Targets that this step doesn't meet"
    elif plan.changes.rebalance != "all":
        title = f"Targets that aren't met with rebalance: {plan.changes.rebalance}"
    return Table("target", plan.balance.relaxed, columns, "relaxed", title)


def terms(plan: Plan) -> Table[TermRow]:
    """Every term: its value today, if nothing moves, and with the plan; its limit and its meaning."""
    column = Column[TermRow]

    def reached(row: TermRow) -> Value:
        value = Quantity(row.plan, row.unit)
        return value if value == Quantity(row.today, row.unit) else Strong(value)

    def limit(row: TermRow) -> Value:
        return Quantity(row.limit, STATED if row.unit == "bytes" else row.unit)

    drifts = any(row.if_nothing_moves != row.today for row in plan.terms)
    columns = (
        column("Group", lambda row: Strong(row.group), numeric=False, narrow="\nTerms", grouped=True),
        column("Term", lambda row: formats.term_name(row.name), numeric=False, narrow=""),
        column("\nToday", lambda row: Quantity(row.today, row.unit)),
        column("If nothing\nmoves", lambda row: Quantity(row.if_nothing_moves, row.unit), wide=not drifts),
        column("\nPlan", reached),
        column("\nLimit", limit),
        column("\nUnit", lambda row: formats.unit_of(row.unit), numeric=False),
        column("Meaning", lambda row: row.meaning, numeric=False, wide=True),
    )
    return Table("term", plan.terms, columns, "terms", "Every term, today and with this plan")


def _figure_columns(plan: Plan) -> tuple[Column[Any], ...]:
    """Columns for candidates that could be chosen: bytes moved, their proven least, and how even the cluster gets."""
    column = Column[FrontFigures]

    def scenarios_held(row: FrontFigures) -> str:
        return f"{number(len(plan.scenarios) - row.scenarios_missed)} of {number(len(plan.scenarios))}"

    def above_least(row: FrontFigures) -> Value:
        sizes_known = plan.cluster.sizes_known
        return Quantity(formats.above_bound(row.bytes_moved, row.least_bytes_moved) if sizes_known else None, GAP)

    scenarios = column("Scenarios that hold", scenarios_held, narrow="\nscenarios")
    return (
        column("\nCopied", lambda row: plan_size(plan, row.bytes_moved)),
        column("Proven minimum", lambda row: plan_size(plan, row.least_bytes_moved), wide=True),
        column("Above\nminimum", above_least),
        *_count_columns(),
        _as_asked_column(plan),
        *((scenarios,) if plan.scenarios else ()),
    )


def _count_columns() -> tuple[Column[Any], ...]:
    column = Column[CandidateFigures]
    return (
        column("Replicas copied", lambda row: row.replicas_moved, narrow="\nreplicas"),
        column("Leaders changed", lambda row: row.leaders_changed, narrow="\nleaders"),
        column("Furthest\nabove share", sentences.above_share),
    )


def _as_asked_column(plan: Plan) -> Column[Any]:
    return Column[CandidateFigures]("As\nasked", lambda row: sentences.completes(plan, row), numeric=False)


def front(plan: Plan) -> Table[ParetoRow]:
    """The Pareto front of bytes and balance; each point has its gap to the least for its windows."""

    def label(row: ParetoRow) -> str:
        return f"{sentences.origin(plan, row)}{f' ({THIS_PLAN})' if row.chosen else ''}"

    heading = "How it differs from this plan"
    columns = (Column[ParetoRow](heading, label, numeric=False, narrow="\nFront"), *_figure_columns(plan))
    return Table(
        "point",
        plan.pareto if len(plan.pareto) > 1 else (),
        columns,
        "front-table",
        "What copying less or more would give",
        strong=lambda row: row.chosen,
        few=sentences.spread_out,
        rest=lambda rows: f"{counted(len(rows), 'point')} between",
    )


def variants(plan: Plan) -> Table[VariantRow]:
    """The variants side by side, each with its best plan by the rule."""
    column = Column[VariantRow]

    def outcome(row: VariantRow) -> Value:
        return row.why_not or (Strong(THIS_PLAN) if row.chosen else "")

    columns = (
        column("Variant", lambda row: Sentence(row.name, _LONGEST_NAME), numeric=False, narrow="\nVariant"),
        column("Asked for", lambda row: requested.changes(row.changes, 3), numeric=False, wide=True),
        column("\nBrokers", lambda row: row.brokers),
        *_figure_columns(plan),
        # Several batches take longer, but only this plan's batches are known.
        column("In one\nbatch", lambda row: Quantity(row.seconds_at_throttle, SECONDS)),
        column("", outcome, numeric=False, wide=True),
    )
    title = "Compared with the variants"
    return Table("variant", plan.variants, columns, "variants", title, strong=lambda row: row.chosen)


def compared(plan: Plan) -> Table[ComparedRow]:
    """This plan, doing nothing, and Kafka's own placements."""
    column = Column[ComparedRow]
    columns = (
        column("Plan", lambda row: row.label, numeric=False, narrow="\nAlternative"),
        column("\nCopied", lambda row: plan_size(plan, row.bytes_moved)),
        *_count_columns(),
        column("Spread:\nreplicas", lambda row: row.replica_spread),
        column("leaders", lambda row: row.leader_spread, wide=True),
        column("within a topic", lambda row: row.topic_replica_spread, wide=True),
        _as_asked_column(plan),
    )
    title = "Compared with doing nothing and with Kafka's --generate"
    return Table("alternative", plan.compared, columns, "compared", title, strong=lambda row: row.label == THIS_PLAN)


def new_placements(plan: Plan) -> Table[PlacementRow]:
    """How even the cluster is with the new partitions, compared with Kafka's own placements of them."""
    column = Column[PlacementRow]
    columns = (
        column("Placed by", lambda row: row.label, numeric=False, narrow="\nNew partitions"),
        column("Spread: replicas", lambda row: row.replica_spread, narrow="spread:\nreplicas"),
        column("leaders", lambda row: row.leader_spread, narrow="\nleaders"),
        column("Within a topic: replicas", lambda row: row.topic_replica_spread, narrow="in a topic:\nreplicas"),
        column("leaders", lambda row: row.topic_leader_spread, narrow="\nleaders"),
    )
    rows, title = sentences.new_placements(plan), "New partitions, compared with Kafka's own placement"
    return Table("placement", rows, columns, "placed-new", title, strong=lambda row: row.label == THIS_PLAN)


def proof(plan: Plan) -> str:
    """Which plans cannot copy less than the bound, or why there is no such proof."""
    bound = plan.bound
    if plan.cluster.sizes_known and not bound.bytes_moved:
        return ""
    if bound.method == "forced" and not plan.cluster.sizes_known:
        return "only what the changes require is copied"
    if bound_section.is_part(plan):
        return "none for this step alone: it is a part of a plan that copies more"
    if bound.method == "none" or (not plan.cluster.sizes_known and bound.least_replicas_moved is None):
        return "none: the minimum is unknown"
    if bound.method == "target":
        return "finishes an approved plan, whose target assignment needs all of these copies"
    if plan.cluster.sizes_known and not bound.least_bytes_moved:
        return "none above 0 B: a plan that copies less may exist"
    less = f"less than {size(bound.least_bytes_moved)}"
    if not plan.cluster.sizes_known:
        less = f"fewer than {counted(bound.least_replicas_moved or 0, 'replica')}"
    split = bound_section.split_phrase(plan)
    scope = ("for this step alone, " if plan.unfinished else "") + (f"{split.strip()}, " if split else "")
    return f"{scope}no plan that {bound_section.bounded(plan)} copies {less}"


def proof_in_brokers(plan: Plan) -> str:
    """Which plans cannot move less between log dirs; if no log dir moves either, says that nothing is copied."""
    if not plan.log_dirs or not plan.log_dirs.moves:
        return "nothing is copied, so no plan copies less" if plan.partitions else ""
    least = size(plan.log_dirs.least_bytes_moved)
    return f"no plan that brings the log dirs as close to their targets moves less than {least}"


def kafkas_tool(plan: Plan) -> str:
    """What Kafka's own tool would do, by its best placement of those tried."""
    placed_by_kafka = (row for row in plan.compared if row.strategy.startswith("kafka") and row is not plan.own_row)
    best = next(placed_by_kafka, None)
    if not plan.partitions and (kafka_rows := [row for row in sentences.new_placements(plan) if "best" in row.label]):
        ours, least = sentences.new_placements(plan)[0].replica_spread, min(row.replica_spread for row in kafka_rows)
        comparison = ", as with this plan" if ours == least else f"; with this plan, by {number(ours)}"
        return f"with its best placement, brokers would differ by {counted(least, 'replica')}{comparison}"
    if best is None or (plan.new_topics and not plan.partitions) or not best.replicas_moved:
        return ""
    copies = size(best.bytes_moved) if plan.cluster.sizes_known else counted(best.replicas_moved, "replica")
    # The tool makes the whole change at once; a budget pays for only one step.
    whole_change = " for the whole change" if plan.unfinished and not best.left_to_change else ""
    # The tool balances everything, so its balance can't be compared with a plan that moves only what it must.
    falls_short = whole_change + ("" if best.moves_unforced else _less_or_more_even(plan, best))
    if plan.log_dirs and plan.log_dirs.moves:
        falls_short = f" between brokers{whole_change} and balance no log dirs"
    if best.left_to_change:
        falls_short = f", and {counted(best.left_to_change, 'partition')} would not be as asked"
    elif best.moves_unforced:
        falls_short = f"{whole_change} and also move replicas that can stay"
    simulated = f"{best.label.removeprefix('Kafka --generate, ')} simulated runs"
    action = "--generate would copy"
    if plan.changes.set_replication_factor:
        action = "--generate can't change replication factors; its placement with the new factors would copy"
    return f"{action} {copies}{falls_short} ({simulated})"


def _less_or_more_even(plan: Plan, best: ComparedRow) -> str:
    """Whether another plan is more or less even than this one: by the targets, or by imbalance if both miss some."""
    this_name, own_row = "this step" if plan.unfinished else THIS_PLAN, plan.own_row
    if best.balance_kept:
        return "" if own_row.balance_kept else f" and be more even than {this_name}"
    if own_row.balance_kept or best.imbalance_percent > own_row.imbalance_percent:
        return f" and be less even than {this_name}"
    return f" and be more even than {this_name}" if best.imbalance_percent < own_row.imbalance_percent else ""
