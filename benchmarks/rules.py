"""Compares the optimum of the benchmark cases with each rule and without: bytes, gap and time.

Also measures how much the integer programs of the second objectives change, and their time, compared with flows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import process_time
from unittest.mock import patch

import numpy as np

from benchmarks import cases
from benchmarks.table import Entries
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import Apart, ApartBy, LeaderRacksRow, PlacementRuleRow
from planner.model.formats import counted
from planner.model.problem import IntArray, Problem
from planner.model.spec import Spec
from planner.plan.bound_section import gap_percent
from planner.scoring import independent_check
from planner.scoring.score import ScoringBasis, added_replicas, score
from planner.strategies import optimum
from planner.strategies.flow import tie_breaking
from planner.sweep.apart_sides import with_sides

# A capped broker may hold this percentage of an equal share. Every fourth broker is capped, so that several racks are.
CAPPED_PERCENT, CAPPED_EVERY = 80, 4
# A tenth of the topics, those whose numbers end in 7, are placed on the first half of the brokers.
PLACED = "*7"
# Another tenth, which `apart` separates from the first.
OTHERS = "*3"
_RUNS = 3


def capped(spec: Spec) -> Spec:
    """Every fourth broker may hold and lead no more than a part of an equal share."""
    problem = build(spec)
    brokers, replicas = int(problem.targets.sum()), int(problem.replication_factors.sum())
    caps = [total * CAPPED_PERCENT // (100 * brokers) for total in (replicas, problem.rows)]

    def limited(all_brokers: Sequence[Broker]) -> tuple[Broker, ...]:
        return tuple(
            broker if broker.id % CAPPED_EVERY else replace(broker, max_replicas=caps[0], max_leaders=caps[1])
            for broker in all_brokers
        )

    cluster = replace(spec.cluster, brokers=limited(spec.cluster.brokers))
    return replace(spec, cluster=cluster, changes=replace(spec.changes, add_brokers=limited(spec.changes.add_brokers)))


def placed(spec: Spec) -> Spec:
    """A tenth of the topics may use only the first half of the brokers that stay or join."""
    problem = build(spec)
    targets = problem.broker_ids[problem.targets].tolist()
    return replace(
        spec, placement=(PlacementRuleRow(PLACED, "half", tuple(targets[: -(-len(targets) // 2)]), exclusive=False),)
    )


def apart(spec: Spec) -> Spec:
    """A tenth of the topics share no broker with another tenth; choosing their brokers is part of the time."""
    return replace(spec, apart=(Apart((PLACED, OTHERS)),))


def apart_by_rack(spec: Spec) -> Spec:
    """As `apart`, but by rack and without the rack rule, because one side may have only one of three racks."""
    return replace(spec, apart=(Apart((PLACED, OTHERS), by="rack"),), rack_aware=False)


def leaders_apart(by: ApartBy) -> Callable[[Spec], Spec]:
    """As `apart`, but only for leaders."""
    return lambda spec: replace(spec, apart=(Apart((PLACED, OTHERS), by=by),))


def led_in_first_rack(spec: Spec) -> Spec:
    """All partitions with a replica in the first rack are led there."""
    return replace(spec, leader_racks=(LeaderRacksRow("*", ("r0",)),))


def demoted(spec: Spec) -> Spec:
    """The first broker leads nothing."""
    return replace(spec, changes=replace(spec.changes, demote_brokers=(cases.FIRST_BROKER,)))


def together(spec: Spec) -> Spec:
    """The first two topics of each partition count are led together."""
    names_by_count = dict[int, list[str]]()
    for topic in spec.cluster.topics:
        names_by_count.setdefault(len(topic.partitions), []).append(topic.name)
    return replace(spec, together=tuple(tuple(names[:2]) for names in names_by_count.values() if len(names) > 1))


def only_racks(spec: Spec) -> Spec:
    """Only partitions that break the rack rule or must move are moved."""
    return replace(spec, changes=replace(spec.changes, rebalance="racks"))


RULES: dict[str, Callable[[Spec], Spec]] = {
    "none": lambda spec: spec,
    "max_replicas, max_leaders": capped,
    "placement": placed,
    "apart": apart,
    "apart by rack": apart_by_rack,
    "apart by broker_leaders": leaders_apart("broker_leaders"),
    "apart by rack_leaders": leaders_apart("rack_leaders"),
    "leader_racks": led_in_first_rack,
    "demote_brokers": demoted,
    "together": together,
    "rebalance: racks": only_racks,
}
OF_RACKS = ("apart by rack", "apart by rack_leaders", "leader_racks", "rebalance: racks")


@dataclass(frozen=True)
class Measured:
    """An optimum's bytes, their bound, CPU seconds, broken rules, and excess over the windows."""

    moved: int
    least: int
    seconds: float
    violations: int
    excess: int


def measured(spec: Spec) -> Measured:
    """The optimum of a spec, with the time it takes."""
    problem, solution, seconds = _timed(spec)
    scores = score(ScoringBasis.of(problem), solution.assignment)
    broken = len(independent_check.check(problem, solution.assignment))
    return Measured(int(scores.bytes_moved[0]), solution.least_bytes, seconds, broken, int(scores.excess[0]))


def _timed(spec: Spec) -> tuple[Problem, optimum.Proposal, float]:
    """The optimum, with the least CPU time of several runs, so that other processes matter little."""
    seconds = float("inf")
    for _ in range(1 if spec.apart or spec.together else _RUNS):
        started = process_time()
        problem = build(with_sides(spec))
        solution = optimum.solve(problem, problem.balance)
        seconds = min(seconds, process_time() - started)
    return problem, solution, seconds


def entries(names: Sequence[str], seed: str) -> Entries:
    """A row for each case and rule."""
    yield "## Rules switched on, one at a time"
    yield ""
    yield (
        f"`max_replicas` and `max_leaders` of every fourth broker are {CAPPED_PERCENT} % of a share; `placement` "
        "keeps a tenth of the topics on half of the brokers; `apart` keeps it off the brokers of another tenth, "
        "by rack off its racks, with `rack_aware: disabled`; "
        "`leader_racks` and `demote_brokers` name the first rack and broker; `together` leads two topics of each "
        "number of partitions together. CPU seconds are the least of three runs, of one with "
        "`together` or `apart`, with all splits of the brokers that are planned; broken rules are counted by the "
        "independent check."
    )
    yield ""
    yield "| case | rule | copied | proven minimum | gap | CPU | × without | broken |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for name in names:
        yield from _case_rows(name, cases.to_spec(cases.make(name, seed)))
    yield ""
    yield "## What comes after bytes, by flows alone and with integer programs"
    yield ""
    yield (
        "Partitions that change, and the squares of the replicas that arrive at each broker, summed. CPU seconds are "
        "the least of three runs of the whole plan."
    )
    yield ""
    yield "| case | partitions | with programs | squares | with programs | CPU | with programs | × | proven |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|---|"
    yield from map(_ties_row, names, (cases.to_spec(cases.make(name, seed)) for name in names))


def _case_rows(name: str, spec: Spec) -> Iterator[str]:
    base: Measured | None = None
    has_racks = any(broker.rack is not None for broker in spec.cluster.brokers)
    for rule, apply in RULES.items():
        if rule in OF_RACKS and not has_racks:
            continue
        result = measured(apply(spec))
        base = base or result
        yield (
            f"| {name} | {rule} | {result.moved / 1e9:,.0f} GB | {result.least / 1e9:,.0f} GB | "
            f"{gap_percent(result.moved, result.least):.3f} % | {result.seconds:.2f} s | "
            f"{result.seconds / max(base.seconds, 1e-3):.1f} | {counted(result.violations, 'rule')} |"
        )


def _ties_row(name: str, spec: Spec) -> str:
    """A row on how much integer programs change in a case."""
    _timed(spec)  # so that imports on first use count for neither run
    by_flows_alone = partial(tie_breaking.ties_broken, exactly=False)
    with patch.object(tie_breaking, "ties_broken", lambda *args, exactly: by_flows_alone(*args)):
        problem, by_flows, before = _timed(spec)
    _, solution, seconds = _timed(spec)
    (flows, flow_squares), (changed, squares) = (
        _after_bytes(problem, each.assignment) for each in (by_flows, solution)
    )
    return (
        f"| {name} | {flows:,} | {changed:,} | {flow_squares:,} | {squares:,} | {before:.3f} s | {seconds:.3f} s | "
        f"{seconds / max(before, 1e-3):.1f} | {'yes' if solution.ties_proven else 'no'} |"
    )


def _after_bytes(problem: Problem, assignment: IntArray) -> tuple[int, int]:
    """The number of partitions that change, and the sum of the squares of replicas that arrive at each broker."""
    arriving = added_replicas(problem, assignment)
    return int(arriving.any(axis=1).sum()), int((np.bincount(assignment[arriving]) ** 2).sum())
