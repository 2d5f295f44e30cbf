"""The tables about what was asked and chosen: gates, windows, terms, the front, variants, and the alternatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import counted
from planner.plan.document.front_types import CandidateFigures, ComparedRow, FrontFigures, ParetoRow, VariantRow
from planner.plan.document.new_partition_types import PlacementRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.term_types import LimitRow, RelaxedRow, TermRow
from planner.report import sentences
from planner.report.sentences import plan_size
from planner.report.view import GAP, SECONDS, STATED, Column, Name, Quantity, Sentence, Strong, Table, Value

_LONGEST_NAME = 60
_THIS = "this plan"


def limits(plan: Plan) -> Table[LimitRow]:
    """The gates, and whether they are kept."""

    def cells(row: LimitRow) -> tuple[str, str]:
        return gate_cells(row.key, row.value, row.limit, row.broker)

    columns = (
        Column[LimitRow]("Gate", lambda row: Name(row.key), numeric=False),
        Column[LimitRow]("Plan", lambda row: cells(row)[0]),
        Column[LimitRow]("Allowed", lambda row: cells(row)[1]),
        Column[LimitRow]("", lambda row: Strong("crossed") if row.crossed else "kept", numeric=False),
    )
    return Table("limits", "Gates", "gate", plan.limits, columns)


def relaxed(plan: Plan) -> Table[RelaxedRow]:
    """The windows that could not be kept, and why."""
    columns = (
        Column[RelaxedRow]("Window", lambda row: formats.words(row.window), numeric=False),
        Column[RelaxedRow]("Topic", lambda row: "all" if row.topic is None else Name(row.topic), numeric=False),
        Column[RelaxedRow]("Asked", lambda row: row.wanted),
        Column[RelaxedRow]("Reached", sentences.reached),
        Column[RelaxedRow]("Why", lambda row: row.why, numeric=False),
    )
    return Table("relaxed", "Balance that could not be kept", "window", plan.balance.relaxed, columns)


def terms(plan: Plan, *, telling: bool = False) -> Table[TermRow]:
    """Every term, or those `telling` something: today, if nothing moves, with the plan, and what it means."""

    def reached(row: TermRow) -> Value:
        value = Quantity(row.plan, row.unit)
        return value if value == Quantity(row.today, row.unit) else Strong(value)

    def limit(row: TermRow) -> Value:
        return Quantity(row.limit, STATED if row.unit == "bytes" else row.unit)

    still = any(row.if_nothing_moves != row.today for row in plan.terms)
    columns = (
        Column[TermRow]("Group", lambda row: Strong(row.group), numeric=False, narrow="\nTerms", grouped=True),
        Column[TermRow]("Term", lambda row: formats.words(row.name), numeric=False, narrow=""),
        Column[TermRow]("Today", lambda row: Quantity(row.today, row.unit), narrow="\ntoday"),
        Column[TermRow](
            "If nothing moves",
            lambda row: Quantity(row.if_nothing_moves, row.unit),
            narrow="if nothing\nmoves",
            wide=not still,
        ),
        Column[TermRow]("Plan", reached, narrow="\nplan"),
        Column[TermRow]("Limit", limit, narrow="\nlimit"),
        Column[TermRow]("Unit", lambda row: formats.unit_of(row.unit), numeric=False, narrow="\nunit"),
        Column[TermRow]("Meaning", lambda row: row.meaning, numeric=False, wide=True),
    )
    rows = [row for row in plan.terms if any(sentences.columns(row))] if telling else plan.terms
    return Table("terms", "Every term, today and with this plan", "term", rows, columns)


def _figures(plan: Plan) -> tuple[Column[Any], ...]:
    """What a candidate that could be chosen moves beside the least for it, and how even it is."""

    def stood(row: FrontFigures) -> str:
        scenarios = len(plan.scenarios)
        return f"{formats.number(scenarios - row.scenarios_missed)} of {formats.number(scenarios)}"

    scenarios = Column[FrontFigures]("Scenarios stood", stood, narrow="\nscenarios")
    return (
        Column[FrontFigures]("Copied", lambda row: plan_size(plan, row.bytes_moved), narrow="\ncopied"),
        Column[FrontFigures]("The least for that", lambda row: plan_size(plan, row.least_bytes_moved), wide=True),
        Column[FrontFigures](
            "Gap", lambda row: Quantity(row.gap_percent if plan.cluster.sizes_known else None, GAP), narrow="\ngap"
        ),
        *_counts(),
        _as_asked(plan),
        *((scenarios,) if plan.scenarios else ()),
    )


def _counts() -> tuple[Column[Any], ...]:
    return (
        Column[CandidateFigures]("Replicas moved", lambda row: row.replicas_moved, narrow="\nreplicas"),
        Column[CandidateFigures]("Leaders changed", lambda row: row.leaders_changed, narrow="\nleaders"),
        Column[CandidateFigures]("Furthest above share", sentences.above, narrow="furthest\nabove share"),
    )


def _as_asked(plan: Plan) -> Column[Any]:
    return Column[CandidateFigures](
        "As asked", lambda row: sentences.completes(plan, row), numeric=False, narrow="as\nasked"
    )


def front(plan: Plan) -> Table[ParetoRow]:
    """The Pareto front: bytes against evenness, each point with its gap to the least for its windows."""

    def named(row: ParetoRow) -> str:
        return f"{sentences.origin(plan, row)}{f' ({_THIS})' if row.chosen else ''}"

    unlike = "Windows unlike this plan's, or strategy"
    columns = (
        Column[ParetoRow](unlike, named, numeric=False, narrow="\nFront"),
        *_figures(plan),
    )
    return Table(
        "front-table",
        "What less, or more, movement would give",
        "point",
        plan.pareto if len(plan.pareto) > 1 else (),
        columns,
        strong=lambda row: row.chosen,
        few=sentences.spread_out,
        rest=lambda rows: f"{counted(len(rows), 'point')} between",
    )


def variants(plan: Plan) -> Table[VariantRow]:
    """The variants side by side, each with its best plan by the rule."""

    def outcome(row: VariantRow) -> Value:
        return row.why_not or (Strong(_THIS) if row.chosen else "")

    columns = (
        Column[VariantRow]("Variant", lambda row: Sentence(row.name, _LONGEST_NAME), numeric=False, narrow="\nVariant"),
        Column[VariantRow]("Asked for", lambda row: sentences.wishes(row.changes, 3), numeric=False, wide=True),
        Column[VariantRow]("Brokers", lambda row: row.brokers, narrow="\nbrokers"),
        *_figures(plan),
        Column[VariantRow]("At least", lambda row: Quantity(row.seconds_at_throttle, SECONDS), narrow="\nat least"),
        Column[VariantRow]("", outcome, numeric=False, wide=True),
    )
    return Table(
        "variants",
        "Beside the variants",
        "variant",
        plan.variants,
        columns,
        strong=lambda row: row.chosen,
    )


def compared(plan: Plan) -> Table[ComparedRow]:
    """This plan, doing nothing, and Kafka's own placements."""
    columns = (
        Column[ComparedRow]("Plan", lambda row: row.label, numeric=False, narrow="\nAlternative"),
        Column[ComparedRow]("Copied", lambda row: plan_size(plan, row.bytes_moved), narrow="\ncopied"),
        *_counts(),
        Column[ComparedRow]("Spread: replicas", lambda row: row.replica_spread, narrow="spread:\nreplicas"),
        Column[ComparedRow]("leaders", lambda row: row.leader_spread, wide=True),
        Column[ComparedRow]("within a topic", lambda row: row.topic_replica_spread, wide=True),
        _as_asked(plan),
    )
    return Table(
        "compared",
        "Beside doing nothing, and beside Kafka's own --generate",
        "alternative",
        plan.compared,
        columns,
        strong=lambda row: row.label == _THIS,
    )


def placed_new(plan: Plan) -> Table[PlacementRow]:
    """How even the cluster is with the new partitions, beside Kafka's own placements of them."""
    keys = zip(sentences.EVENNESS, ("Spread: replicas", "leaders", "Within a topic: replicas", "leaders"), strict=True)
    narrow = ("spread:\nreplicas", "\nleaders", "in a topic:\nreplicas", "\nleaders")
    columns = (
        Column[PlacementRow]("Placed by", lambda row: row.label, numeric=False, narrow="\nNew partitions"),
        *(
            Column[PlacementRow](heading, _field(key), narrow=short)
            for (key, heading), short in zip(keys, narrow, strict=True)
        ),
    )
    rows = sentences.placed_new(plan)
    return Table(
        "placed-new",
        "New partitions beside Kafka's own placement",
        "placement",
        rows,
        columns,
        strong=lambda row: row.label == _THIS,
    )


def _field(key: str) -> Callable[[Any], Value]:
    return lambda row: getattr(row, key)
