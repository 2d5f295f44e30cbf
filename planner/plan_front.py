"""The sections of the plan document that compare: the plan beside its alternatives, and the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from planner import candidates_file, certified, plan_sections
from planner.candidates import CANDIDATE_SCHEMA, KNOBS
from planner.choice import Best, Chosen, rule_of, rule_text
from planner.model import Problem, Spec
from planner.strategies import UNKNOWN, Proposal
from planner.sweep import SweepResult, best, ranking
from planner.variants import Swept, scores

Row = Mapping[str, Any]

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


def sections(tried: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> dict[str, Any]:
    """All of them, of the alternatives, the plan chosen, and the proposal that it is."""
    each = tried[chosen.at]
    return {
        "choice": choice(tried, chosen),
        "compared": compared(each.problem, each.result, chosen.row),
        "variants": variants(tried, chosen, proposal),
        "pareto": pareto(tried, chosen, proposal),
        "candidates": candidates(tried, chosen),
    }


def compared(problem: Problem, result: SweepResult, winner: Row) -> list[dict[str, Any]]:
    """Do nothing, the plan, and Kafka's own seeds: the best by our ranking and the median by bytes moved."""
    nothing = {**result.scores.slice(0, 1).to_pylist()[0], **plan_sections.as_it_is(problem)}
    rows = [comparison("do nothing", nothing), comparison("this plan", winner)]
    names = result.scores["strategy"].to_numpy(zero_copy_only=False)
    seeds = result.scores.filter(pa.array(np.isin(names, ("kafka_classic", "kafka_striped"))))
    if len(seeds):
        by_bytes = seeds.sort_by([("bytes_moved", "ascending"), ("candidate", "ascending")])
        middle = by_bytes.slice((len(seeds) - 1) // 2, 1).to_pylist()[0]
        first = best(seeds, 1, ranking(problem.aims, problem.survive)).to_pylist()[0]
        rows.append(comparison(f"Kafka seed, best of {len(seeds)}", first))
        rows.append(comparison(f"Kafka seed, median of {len(seeds)}", middle))
    return rows


def pareto(tried: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> list[dict[str, Any]]:
    """The front of all alternatives by bytes moved, with the plan in its place even where another beats it."""
    moved = "bytes_moved" if tried[0].spec.cluster.sizes_known else "replicas_moved"
    kept = _unbeaten(((at, row) for at, each in enumerate(tried) for row in each.result.front.to_pylist()), moved)
    winner = (chosen.at, chosen.row["candidate"])
    rows = {(at, row["candidate"]): row for at, row in kept} | {winner: _proven(chosen.row, proposal)}
    ordered = sorted(rows, key=lambda key: (rows[key][moved], rows[key]["imbalance_ppm"], *key))
    return [point(tried[key[0]].name, tried[key[0]].spec, rows[key], chosen=key == winner) for key in ordered]


def variants(tried: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> list[dict[str, Any]]:
    """Every alternative with the best plan it has by the rule; empty where there is only one."""
    if len(tried) < 2:
        return []
    return [
        _variant(each, found, proposal if at == chosen.at else None)
        for at, (each, found) in enumerate(zip(tried, chosen.best, strict=True))
    ]


def candidates(tried: Sequence[Swept], chosen: Chosen) -> dict[str, Any]:
    """How many were tried of what, and from which of them the plan can be made again."""
    counts: dict[str, int] = {}
    for each in tried:
        for row in each.result.scores["strategy"].value_counts().to_pylist():
            counts[row["values"]] = counts.get(row["values"], 0) + row["counts"]
    return {
        "evaluated": sum(counts.values()),
        "by_strategy": counts,
        "winner": {name: chosen.row[name] for name in CANDIDATE_SCHEMA.names},
        "digest": f"{chosen.row['digest'] % (1 << 64):016x}",
        "rows_sha256": candidates_file.digest(scores(tried)),
        "rule": rule_text(tried[chosen.at].problem.aims, tried[chosen.at].problem.survive),
    }


def choice(tried: Sequence[Swept], chosen: Chosen) -> dict[str, Any]:
    """Which of the alternatives was chosen, by which rule, and why."""
    rule = rule_of(tried[chosen.at].spec)
    return {
        "rule": rule.rule,
        "value": None if rule.rule in ("asked", "within_budget") else rule.value,
        "variant": tried[chosen.at].name,
        "why": chosen.why,
    }


def _unbeaten(points: Iterable[tuple[int, Row]], moved: str) -> list[tuple[int, Row]]:
    """The points that no other beats in both bytes and imbalance; of equal ones, the first."""
    kept: list[tuple[int, Row]] = []
    for at, row in sorted(points, key=lambda each: (each[1][moved], each[1]["imbalance_ppm"], each[0])):
        if not kept or row["imbalance_ppm"] < kept[-1][1]["imbalance_ppm"]:
            kept.append((at, row))
    return kept


def _proven(row: Row, proposal: Proposal) -> Row:
    """The plan's row with the bound that its certificate proves."""
    return row if proposal.least_bytes == UNKNOWN else {**row, "least_bytes": proposal.least_bytes}


def point(variant: str, spec: Spec, row: Row, *, chosen: bool) -> dict[str, Any]:
    """One entry of `pareto`."""
    return {
        **comparison("this plan" if chosen else row["strategy"], row),
        **_figures(spec, row),
        "variant": variant,
        "balance": {knob: row[knob] for knob in KNOBS},
        "scenarios": row["scenarios"],
        "chosen": chosen,
    }


def _variant(tried: Swept, found: Best, proposal: Proposal | None) -> dict[str, Any]:
    row = found.row if proposal is None else _proven(found.row, proposal)
    return {
        "name": tried.name,
        "changes": plan_sections.changes(tried.spec.changes),
        "brokers": int(tried.problem.targets.sum()),
        "why_not": found.why_not,
        "chosen": proposal is not None,
        **comparison("this plan" if proposal is not None else row["strategy"], row),
        **_figures(tried.spec, row),
    }


def _figures(spec: Spec, row: Row) -> dict[str, Any]:
    """The bound of a row, the gap to it, what copying takes at least, and the scenarios it doesn't stand."""
    least = None if row["least_bytes"] == UNKNOWN else row["least_bytes"]
    throttle = spec.execution.throttle_bytes_per_sec
    known = throttle is not None and spec.cluster.sizes_known
    return {
        "least_bytes_moved": least,
        "gap_percent": None if least is None else certified.gap_percent(row["bytes_moved"], least),
        "seconds_at_throttle": -(-row["busiest_bytes"] // throttle) if known and throttle else None,
        "scenarios_missed": row["scenarios_missed"],
    }


def comparison(label: str, row: Row) -> dict[str, Any]:
    """One entry of `compared`: a candidate's scores under a label."""
    return {
        "label": label,
        **{name: row[name] for name in _COMPARED},
        "imbalance_percent": round(row["imbalance_ppm"] / 10_000, 2),
    }
