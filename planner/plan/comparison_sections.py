"""The sections of the plan document that compare the plan with its alternatives, and the Pareto front."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from msgspec import structs

from planner.model.balance import WINDOWS
from planner.model.build_problem import build, today
from planner.model.formats import number
from planner.model.problem import Problem
from planner.model.spec import Budget, Spec
from planner.plan import bound_section, cluster_sections, score_terms
from planner.plan.document import comparison_types
from planner.scoring.broker_loads import MEASURES
from planner.scoring.growth_scenarios import without
from planner.strategies.optimum import UNKNOWN, Proposal
from planner.sweep import candidates_file
from planner.sweep.candidates import CANDIDATE_SCHEMA, KAFKA_STRATEGIES, generated
from planner.sweep.candidates import candidates as candidates_of
from planner.sweep.choice import Chosen, Row, Swept, rule_of, rule_text, scores
from planner.sweep.evaluate import evaluated
from planner.sweep.sweep_result import best, moved_column, ranking_of, sampled

_COMPARED = (
    "candidate",
    "strategy",
    "violations",
    "bytes_moved",
    "replicas_moved",
    "leaders_changed",
    "replica_spread",
    "leader_spread",
    "topic_replica_spread",
)


def sections(sweeps: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> dict[str, Any]:
    """By name, the sections that compare the alternatives; `proposal` is that of the chosen row, made again."""
    sweep = sweeps[chosen.row_index]
    return {
        "choice": choice(sweeps, chosen),
        "compared": compared(sweep, chosen.row),
        "variants": variants(sweeps, chosen, proposal),
        "pareto": pareto(sweeps, chosen, proposal),
        "candidates": candidates_section(sweeps, chosen),
    }


def compared(sweep: Swept, winner: Row) -> tuple[comparison_types.ComparedRow, ...]:
    """Do nothing, the plan, and Kafka's own --generate: the best by our ranking and the median by bytes moved."""
    full_problem, goal = whole_problem(sweep.spec, sweep.problem), Goal.of(sweep)
    nothing_row = {**sweep.result.scores.slice(0, 1).to_pylist()[0], **score_terms.if_nothing_moves(full_problem)}
    # Imbalance is by the plan's own shares: a first step's don't count replicas that a higher factor adds later.
    nothing_row |= {
        name: value
        for name, value in score_terms.if_nothing_moves(sweep.problem).items()
        if name.startswith("imbalance")
    }
    left_count = score_terms.left_to_change(full_problem, today(full_problem))
    at_once: Row | None = None
    if sweep.problem is not full_problem:
        # The plan is a first step: it is compared with the whole change at once, without the budget.
        unbudgeted = replace(without(full_problem), budget=Budget())
        rows = evaluated(unbudgeted, candidates_of(unbudgeted, replace(sweep.spec.sweep, candidates=2)))
        at_once = rows.slice(1, 1).to_pylist()[0]
    whole_goal = Goal(0, goal.excess if at_once is None else at_once["excess"])
    return (
        structs.replace(comparison(comparison_types.DO_NOTHING, nothing_row, whole_goal), left_to_change=left_count),
        comparison(comparison_types.THIS_PLAN, winner, goal),
        *(() if at_once is None else (comparison("all at once, over budget", at_once, whole_goal),)),
        *_generated(sweep, full_problem, whole_goal),
    )


def _generated(sweep: Swept, full_problem: Problem, goal: "Goal") -> Iterator[comparison_types.ComparedRow]:
    """The best and the median of Kafka's placements of everything asked for: the sweep's, or a few made here."""
    is_swept = sweep.problem is full_problem and full_problem.rebalance == "all"
    seeds, count = sweep.result.kafka(), sweep.result.evaluated
    total = sum(sweep.result.by_strategy.get(name, 0) for name in KAFKA_STRATEGIES)
    if not is_swept or not len(seeds):
        everything = replace(without(full_problem), rebalance="all")
        seeds = evaluated(everything, generated(everything, sweep.spec.sweep))
        count = total = len(seeds)
    if not len(seeds):
        return
    # The best is of all placements; the median of a large sweep is that of its sample.
    sample = seeds.filter(pa.array(sampled(seeds["candidate"].to_numpy(), count)))
    by_moved = sample.sort_by([(name, "ascending") for name in ("bytes_moved", "replicas_moved", "candidate")])
    middle = by_moved.slice((len(sample) - 1) // 2, 1).to_pylist()[0]
    first = best(seeds, 1, ranking_of(full_problem)).to_pylist()[0]
    # Kafka's tool places every partition, even those that `rebalance` keeps where they are.
    for label, row in ((f"best of {number(total)}", first), (f"median of {number(len(sample))}", middle)):
        row_of_label = comparison(f"Kafka --generate, {label}", row, goal)
        yield structs.replace(row_of_label, moves_unforced=full_problem.rebalance != "all")


@dataclass(frozen=True)
class Goal:
    """What a row must reach to do all that is asked for.

    `waiting` counts the partitions that wait for a later step; no row of the sweep changes them. `excess` is the
    smallest possible excess over the balance asked for.
    """

    waiting: int
    excess: int

    @classmethod
    def of(cls, sweep: Swept) -> Self:
        """The goal of a sweep's own rows."""
        waiting = sweep.problem.deferred
        return cls(0 if waiting is None else int(waiting.sum()), sweep.result.top["excess"][0].as_py())


def whole_problem(spec: Spec, problem: Problem) -> Problem:
    """The problem of everything that a spec asks for; `problem` may be only its first step."""
    return problem if problem.deferred is None else build(spec)


def pareto(sweeps: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> tuple[comparison_types.ParetoRow, ...]:
    """The Pareto front of all alternatives, by bytes moved; the plan is in it even if another candidate beats it."""
    moved = moved_column(sweeps[0].problem)
    points = ((index, row) for index, each in enumerate(sweeps) for row in each.result.front.to_pylist())
    # Keeps the points that no other point beats in both bytes and imbalance; the first of equal ones.
    front: list[tuple[int, Row]] = []
    for index, row in sorted(points, key=lambda each: (each[1][moved], each[1]["imbalance_ppm"], each[0])):
        if not front or row["imbalance_ppm"] < front[-1][1]["imbalance_ppm"]:
            front.append((index, row))
    winner = (chosen.row_index, chosen.row["candidate"])
    rows = {(index, row["candidate"]): row for index, row in front} | {winner: _proven(chosen.row, proposal)}
    ordered = sorted(rows, key=lambda key: (rows[key][moved], rows[key]["imbalance_ppm"], *key))
    goals = [Goal.of(each) for each in sweeps]
    return tuple(
        point(sweeps[index].name, sweeps[index].spec, rows[index, key], goals[index], chosen=(index, key) == winner)
        for index, key in ordered
    )


def variants(sweeps: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> tuple[comparison_types.VariantRow, ...]:
    """Every alternative with its best plan by the rule; empty if there is only one alternative."""
    if len(sweeps) < 2:
        return ()
    rows = []
    for index, (each, candidate) in enumerate(zip(sweeps, chosen.best, strict=True)):
        is_plan = index == chosen.row_index
        row = _proven(candidate.row, proposal) if is_plan else candidate.row
        rows.append(
            comparison_types.VariantRow(
                name=each.name,
                changes=cluster_sections.changes(each.spec.changes),
                brokers=int(each.problem.targets.sum()),
                why_not=candidate.why_not,
                **_front_figures(each.spec, row, Goal.of(each), chosen=is_plan),
            )
        )
    return tuple(rows)


def candidates_section(sweeps: Sequence[Swept], chosen: Chosen) -> comparison_types.CandidatesSection:
    """How many candidates of each strategy were tried, and the winner, from which the plan can be made again."""
    counts = Counter[str]()
    for each in sweeps:
        counts.update(each.result.by_strategy)
    return searched(sweeps[chosen.row_index].problem, dict(counts), chosen.row, candidates_file.digest(scores(sweeps)))


def searched(
    problem: Problem, counts: Mapping[str, int], winner: Row, rows_sha256: str | None
) -> comparison_types.CandidatesSection:
    """The `candidates` of plan.json; `counts` has the number of rows of each strategy."""
    return comparison_types.CandidatesSection(
        evaluated=sum(counts.values()),
        by_strategy=counts,
        winner=comparison_types.Winner(**{name: winner[name] for name in CANDIDATE_SCHEMA.names}),
        digest=f"{winner['digest'] % (1 << 64):016x}",
        rows_sha256=rows_sha256,
        rule=rule_text(problem.aims, problem.survive, sizes_known=problem.sizes_known),
    )


def choice(sweeps: Sequence[Swept], chosen: Chosen) -> comparison_types.ChoiceSection:
    """Which alternative was chosen, by which rule, and why."""
    rule = rule_of(sweeps[chosen.row_index].spec)
    value = None if rule.rule in ("asked", "within_budget") else rule.value
    return comparison_types.ChoiceSection(
        rule=rule.rule, value=value, variant=sweeps[chosen.row_index].name, why=chosen.reason
    )


def _proven(row: Row, proposal: Proposal) -> Row:
    """The plan's row with the bound that its certificate proves."""
    return row if proposal.least_bytes == UNKNOWN else {**row, "least_bytes": proposal.least_bytes}


def point(variant: str, spec: Spec, row: Row, goal: Goal, *, chosen: bool) -> comparison_types.ParetoRow:
    """One entry of `pareto`."""
    return comparison_types.ParetoRow(
        **_front_figures(spec, row, goal, chosen=chosen),
        variant=variant,
        balance=comparison_types.BalanceWindows(**{window: row[window] for window in WINDOWS}),
        scenarios=row["scenarios"],
    )


def _front_figures(spec: Spec, row: Row, goal: Goal, *, chosen: bool) -> dict[str, Any]:
    """A row's figures, with its bound, its gap to the bound, the least seconds of copying, and the scenarios missed."""
    least = None if row["least_bytes"] == UNKNOWN else row["least_bytes"]
    throttle = spec.execution.throttle_bytes_per_sec if spec.cluster.sizes_known else None
    return {
        **_candidate_figures(comparison_types.THIS_PLAN if chosen else row["strategy"], row, goal),
        "chosen": chosen,
        "least_bytes_moved": least,
        "gap_percent": None if least is None else bound_section.gap_percent(row["bytes_moved"], least),
        "seconds_at_throttle": -(-row["busiest_bytes"] // throttle) if throttle else None,
        "scenarios_missed": row["scenarios_missed"],
        "targets_missed": row["excess"] > 0,
        **{name: None if row[name] == UNKNOWN else row[name] for name in ("worst_hour", "hours_above_capacity")},
    }


def comparison(label: str, row: Row, goal: Goal) -> comparison_types.ComparedRow:
    """One entry of `compared`: a candidate's scores under a label, and whether it does all that is asked for."""
    return comparison_types.ComparedRow(**_candidate_figures(label, row, goal))


def _candidate_figures(label: str, row: Row, goal: Goal) -> dict[str, Any]:
    return {
        "label": label,
        **{name: row[name] for name in _COMPARED},
        "imbalance_percent": round(row["imbalance_ppm"] / 10_000, 2),
        "imbalance_measure": MEASURES[row["imbalance_measure"]],
        "left_to_change": row["violations"] + goal.waiting,
        "balance_kept": row["excess"] <= goal.excess,
        "moves_unforced": False,
        "months_until_full": None if row["months_until_full"] == UNKNOWN else row["months_until_full"],
    }
