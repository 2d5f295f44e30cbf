"""Chooses a plan from all alternatives and their candidates by a stated rule, and says why in a sentence.

The alternatives are `changes` and each of `sweep.variants`. Each has a name, a problem and a sweep.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model import build_problem
from planner.model.balance import exact
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.formats import as_stated, number, percent, size, size_and_bytes
from planner.model.problem import Problem
from planner.model.spec import Budget, Changes, Choice, Spec
from planner.scoring.broker_loads import MEASURES
from planner.strategies.optimum import UNKNOWN
from planner.sweep import apart_sides, budget_steps
from planner.sweep.candidates import ASKED, PART, SOLVED, Candidates, candidates
from planner.sweep.sweep_result import SURVIVE_COLUMNS, SweepResult, front, fronts, moved_column, ranking, ranking_of

Row = Mapping[str, Any]

# The name of `changes` itself, beside the names of its variants.
BASE = "changes"


@dataclass(frozen=True, eq=False)
class Alternative:
    """One alternative: the spec with its changes in place of `changes`, its problem and its candidates."""

    name: str
    spec: Spec
    problem: Problem
    candidates: Candidates


@dataclass(frozen=True, eq=False)
class Swept:
    """An alternative with the result of its sweep."""

    name: str
    spec: Spec
    problem: Problem
    result: SweepResult


def alternatives(spec: Spec) -> tuple[Alternative, ...]:
    """`changes` (unless it is empty and there are variants), then the variants. They share the candidates equally."""
    only_variants = bool(spec.sweep.variants) and spec.changes == Changes()
    changes_of = [] if only_variants else [(BASE, spec.changes)]
    changes_of += [(variant.name, variant.changes) for variant in spec.sweep.variants]
    built = []
    for name, changes in changes_of:
        its_spec = apart_sides.with_sides(replace(spec, changes=changes))
        problem = budget_steps.first_step(build_problem.build(its_spec))
        built.append(Alternative(name, its_spec, problem, candidates(problem, spec.sweep, len(changes_of))))
    return tuple(built)


def with_variant(spec: Spec, variant: str) -> Spec:
    """The spec with the changes of a variant."""
    changes = next((each.changes for each in spec.sweep.variants if each.name == variant), spec.changes)
    return replace(spec, changes=changes)


def swept(alternatives: Sequence[Alternative], results: Sequence[SweepResult]) -> tuple[Swept, ...]:
    """The alternatives with their results."""
    pairs = zip(alternatives, results, strict=True)
    return tuple(Swept(each.name, each.spec, each.problem, result) for each, result in pairs)


def scores(sweeps: Sequence[Swept]) -> pa.Table:
    """All rows that are kept, one alternative after the other; the first column is the alternative's name."""
    tables = []
    for each in sweeps:
        table = each.result.scores
        names = pa.DictionaryArray.from_arrays(np.zeros(len(table), dtype=np.int32), pa.array([each.name]))
        tables.append(table.add_column(0, "variant", names.cast(pa.string())))
    return pa.concat_tables(tables)


# The scores of a ranking, in words.
_WORDS = {
    "replicas_moved": "replicas moved",
    "leaders_changed": "leaders changed",
    "partitions_touched": "partitions touched",
    "arrivals_squared": "unevenness of copying",
    "cross_rack_bytes": "cross-rack bytes",
    "busiest_bytes": "bytes of the busiest broker",
    "peak_disk_ppm": "peak disk",
}


# The score that each rule limits to its amount.
_WITHIN = {
    "most_even_within_bytes": "bytes_moved",
    "lowest_worst_hour_within_bytes": "bytes_moved",
    "fewest_bytes_within_imbalance": "imbalance_ppm",
    "fewest_bytes_within_worst_hour": "worst_hour",
    "most_months_within_bytes": "bytes_moved",
}
_OVER_CAPS = "no plan was found that keeps max_leaders at this balance"


class BestCandidate(NamedTuple):
    """The row of an alternative that the rule prefers, and why it can't be chosen (None if it can)."""

    row: Row
    why_not: str | None


class Chosen(NamedTuple):
    """The alternative's number, its row, why it was chosen, and the best of each alternative."""

    row_index: int
    row: Row
    reason: str
    best: tuple[BestCandidate, ...]


def choose(sweeps: Sequence[Swept]) -> Chosen:
    """The plan that `sweep.choose` asks for.

    UnsafePlanError if no plan keeps within the rule's amount or the budget; InfeasibleError if `changes` has no valid
    plan but a variant has, or if no plan keeps max_leaders.
    """
    rule = rule_of(sweeps[0].spec)
    best = tuple(_best(each, rule) for each in sweeps)
    asked_base = rule.rule in ("asked", "within_budget") and sweeps[0].name == BASE
    eligible = [0] if asked_base else [index for index, each in enumerate(best) if each.why_not is None]
    if rule.rule == "within_budget" and (best[0].why_not if asked_base else not eligible):
        _refuse_spending(sweeps[:1] if asked_base else sweeps)
    if asked_base and (why_not := best[0].why_not):
        possible = [each.name for each, candidate in zip(sweeps, best, strict=True) if candidate.why_not is None]
        if possible:
            raise InfeasibleError(
                f"changes: no candidate keeps every rule; variants that have a valid plan: {', '.join(possible)}; "
                "allowed: one of them as changes, or another sweep.choose"
            )
        if why_not == _OVER_CAPS:
            raise InfeasibleError(
                f"{_OVER_CAPS}: too many partitions have all of their replicas on capped brokers; allowed: a higher "
                "max_leaders, max_replicas on the same brokers, or a looser balance"
            )
    if not eligible and rule.rule not in ("asked", "within_budget"):
        _refuse(sweeps, rule)
    index = min(eligible or range(len(sweeps)), key=lambda each: (_key(sweeps[each], rule, best[each].row), each))
    nearest = len({_excess(best[each].row) for each in eligible}) > 1
    return Chosen(index, best[index].row, _why(sweeps, index, best[index].row, nearest=nearest), best)


def rule_text(aims: Iterable[str], survive: str = "none", *, sizes_known: bool = True) -> str:
    """The ranking in words."""
    first = "" if survive == "none" else f"fewest partitions lost to one {survive}; "
    names = ", ".join(_WORDS[name] for name in ranking(aims, sizes_known=sizes_known) if name in _WORDS)
    return (
        f"valid, with a proof for the balance asked for; {first}least outside it, today and in the scenarios; then "
        f"fewest bytes copied, {names}; then the most even"
    )


def rule_of(spec: Spec) -> Choice:
    """The rule in use: with a budget, `asked` means `within_budget`."""
    rule = spec.sweep.choice
    return Choice("within_budget") if rule.rule == "asked" and spec.budget != Budget() else rule


def _best(sweep: Swept, rule: Choice) -> BestCandidate:
    first = sweep.result.top.slice(0, 1).to_pylist()[0]
    if first["violations"]:
        return BestCandidate(first, "no candidate keeps every rule")
    scores = sweep.result.scores
    solved = pc.and_(pc.equal(scores["strategy"], "optimum"), pc.equal(scores["violations"], 0))
    if sweep.problem.caps is not None and first["strategy"] == "unchanged" and not pc.any(solved).as_py():
        # Doing nothing is valid, but is not the plan that was asked for.
        return BestCandidate(first, _OVER_CAPS)
    if rule.rule == "asked":
        return BestCandidate(first, None)
    fitting = [row for row in _pool(sweep) if _fits(sweep.spec, rule, row)]
    if not fitting:
        limit = "the budget" if rule.rule == "within_budget" else "sweep.choose"
        return BestCandidate(first, f"no plan within {limit}")
    return BestCandidate(min(fitting, key=lambda row: _key(sweep, rule, row)), None)


def _pool(sweep: Swept) -> list[Row]:
    """Valid rows to choose from: those with a proof, doing nothing, a budget's part, and the Pareto fronts."""
    result, problem = sweep.result, sweep.problem
    scores = result.scores
    needs_none = pc.is_in(scores["strategy"], pa.array(["unchanged", PART]))
    proven = pc.or_(pc.not_equal(scores["least_bytes"], UNKNOWN), needs_none)
    valid = scores.filter(pc.and_(proven, pc.equal(scores["violations"], 0))).to_pylist()
    order, moved = ranking_of(problem), moved_column(problem)
    tables = [result.front, *(front(scores, order, moved, measure) for measure in [*fronts(problem)][1:])]
    rows = {row["candidate"]: row for row in [*valid, *(row for each in tables for row in each.to_pylist())]}
    # Other strategies also move replicas that can stay, of partitions that must change.
    strategies = ("unchanged", *SOLVED)
    return [row for row in rows.values() if problem.rebalance == "all" or row["strategy"] in strategies]


def _fits(spec: Spec, rule: Choice, row: Row) -> bool:
    unbounded = row["strategy"] == PART and spec.limits.gap_ppm is not None
    if unbounded or not budget_steps.within(spec.budget, row):
        return False
    if rule.rule == "within_budget":
        return True
    if rule.rule == "fewest_bytes_lasting_months":
        return bool(row["months_until_full"] >= rule.value)
    if rule.of_hours and row["worst_hour"] == UNKNOWN:
        return False
    return bool(row[_WITHIN[rule.rule]] <= rule.value)


def _key(sweep: Swept, rule: Choice, row: Row) -> tuple[int, ...]:
    """Sorts rows of one or several alternatives by the rule. If rows tie, the ranking decides, proven ones first."""
    order = [row[name] for name in ranking_of(sweep.problem)]
    survival = [row[name] for name in SURVIVE_COLUMNS[sweep.problem.survive]]
    match rule.rule:
        case "within_budget":
            # After what survives: what was asked for, if the budget pays for it; else a part of it, which later steps
            # needn't copy again.
            spends = any(row[term] for term in budget_steps.TERMS if getattr(sweep.spec.budget, term) is not None)
            rank = 0 if row["candidate"] == ASKED else 1 if row["strategy"] == PART and spends else 2
            return (*survival, rank, *_excess(row), row["imbalance_ppm"], row["bytes_moved"], *order)
        case "most_even_within_bytes":
            return (*survival, row["imbalance_ppm"], row["bytes_moved"], *order)
        case "lowest_worst_hour_within_bytes":
            return (*survival, row["hours_above_capacity"], row["worst_hour"], row["bytes_moved"], *order)
        case "most_months_within_bytes":
            return (*survival, -row["months_until_full"], row["bytes_moved"], *order)
        case "fewest_bytes_within_imbalance" | "fewest_bytes_within_worst_hour" | "fewest_bytes_lasting_months":
            # If sizes are unknown, no plan moves bytes, so the replicas decide.
            return (*survival, row["bytes_moved"], row["replicas_moved"], *order)
        case _:
            return tuple(order)


def _excess(row: Row) -> tuple[int, int]:
    return row["excess"], row["scenario_excess"]


def _why(sweeps: Sequence[Swept], index: int, row: Row, *, nearest: bool) -> str:
    """The rule with a row's numbers; `nearest` if alternatives miss the targets by different amounts."""
    rule, others = rule_of(sweeps[0].spec), f" of {len(sweeps)} alternatives" if len(sweeps) > 1 else ""
    sized = sweeps[index].spec.cluster.sizes_known
    moved, unit = (size(row["bytes_moved"]), "bytes") if sized else (f"{row['replicas_moved']} replicas", "replicas")
    measure = MEASURES[row["imbalance_measure"]].replace("size_bytes", "bytes").replace("_", " ")
    above_share = percent(row["imbalance_ppm"] / 10_000)
    above = (
        f"no broker is more than {above_share} above its share of {measure} (by capacity, racks ignored)"
        if row["imbalance_ppm"]
        else "no broker is above its share"
    )
    hour = f"at most {size(row['worst_hour'])}/s in or out of any broker in any hour of the week"
    month, ahead = row["months_until_full"], sweeps[index].problem.sizes_ahead
    full = ahead is None or month < ahead.shape[1]
    lasts = f"the first disk is full in month {month}" if full else f"no disk is full within {month - 1} months"
    match rule.rule:
        case "within_budget":
            paid = f"the most even plan tried{others} within the budget"
            paid = "the part of the whole change that the budget pays for" if row["strategy"] == PART else paid
            return f"{paid}: copies {moved}, {above}"
        case "most_even_within_bytes":
            allowed = f"at most {as_stated(rule.value)} (sweep.choose)"
            return f"the most even plan tried{others} that copies {allowed}: copies {moved}, {above}"
        case "lowest_worst_hour_within_bytes":
            aim = f"the lowest worst hour{others} of the plans that copy at most {as_stated(rule.value)}"
            return f"{aim}: copies {moved}, {hour}"
        case "fewest_bytes_within_worst_hour":
            aim = f"the fewest {unit}{others} with no broker above {as_stated(rule.value)}/s in any hour of the week"
            return f"{aim}: {moved}, {hour}"
        case "most_months_within_bytes":
            aim = f"the most months until a disk is full{others} of the plans that copy at most {as_stated(rule.value)}"
            return f"{aim}: copies {moved}, {lasts}"
        case "fewest_bytes_lasting_months":
            return f"the fewest {unit}{others} with no disk full before month {rule.value}: {moved}, {lasts}"
        case "fewest_bytes_within_imbalance":
            return (
                f"the fewest {unit}{others} with no broker more than {percent(rule.value / 10_000)} above its share: "
                f"{moved}, {above}"
            )
        case _ if nearest:
            return f"the nearest{others} to the balance asked for: copies {moved}"
        case _:
            tail = " of changes; its variants are for comparison" if others and sweeps[index].name == BASE else others
            return f"the fewest bytes at the balance asked for: {moved}{tail}"


def _refuse_spending(sweeps: Sequence[Swept]) -> None:
    """UnsafePlanError if there are valid plans; called when none of them keeps within the budget.

    The message names the least that the tried plans take, not all possible plans: a sweep may try only some balances of
    the ladder.
    """
    sound = [(each.name, row) for each in sweeps for row in _pool(each)]
    lines = []
    for term in budget_steps.TERMS:
        if (allowed := getattr(sweeps[0].spec.budget, term)) is not None and sound:
            name, row = min(sound, key=lambda each: int(each[1][term]))
            subject, of_whom = ("the changes", "") if len(sweeps) == 1 else ("the alternatives", f" ({name})")
            least, most = budget_steps.amounts(term, row[term], allowed)
            line = f"budget.{term}: in these plans {subject} take at least {least}{of_whom}; the budget allows {most}"
            lines.append((row[term] > allowed, line))
    if lines:
        candidates = sum(each.result.evaluated for each in sweeps)
        head = f"nothing was written: none of {number(candidates)} candidates is within the budget; raise it:"
        # If no term alone is beyond the budget in every plan, all are named.
        raise UnsafePlanError(head, *([line for exceeds, line in lines if exceeds] or [line for _, line in lines]))


def _refuse(sweeps: Sequence[Swept], rule: Choice) -> None:
    """UnsafePlanError if there are valid plans, but none within the budget or the amount of `sweep.choose`."""
    sound = [(each, row) for each in sweeps for row in _pool(each)]
    rows = [row for each, row in sound if budget_steps.within(each.spec.budget, row)]
    if sound and not rows:
        _refuse_spending(sweeps)
    if not rows:
        return
    if rule.rule == "fewest_bytes_lasting_months":
        raise UnsafePlanError(
            f"nothing was written: sweep.choose.{rule.rule}: plans tried have a full disk before month {rule.value}; "
            f"allowed: at most {max(row['months_until_full'] for row in rows)}"
        )
    # The amount is not rounded, so that it can be copied into the YAML.
    column = _WITHIN[rule.rule]
    limit, least = as_stated(rule.value), size_and_bytes(least_of := min(row[column] for row in rows))
    if column == "imbalance_ppm":
        limit, least = percent(rule.value / 10_000), f"{exact(least_of / 10_000)}%"
    elif column == "worst_hour":
        limit, least = f"{limit}/s", f"{size(least_of)}/s ({least_of} bytes/s)"
    raise UnsafePlanError(
        f"nothing was written: sweep.choose.{rule.rule}: {limit} is below what each plan tried needs; "
        f"allowed: at least {least}"
    )
