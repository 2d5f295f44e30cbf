"""The terms of the plan document: each figure as the cluster is today, if nothing moves, and with the plan.

Each term has one definition and three columns. `today` is the cluster as it is, with its brokers and racks of today.
`if_nothing_moves` is the same placement, judged by what is asked for: with the brokers that are added and without those
that leave. `plan` is the placement after the plan, including partitions that wait for a later step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, Self

import numpy as np

from planner.model import build_problem
from planner.model.build_problem import today
from planner.model.cluster import keyed_partitions
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.rack_spread import uneven_racks
from planner.model.spec import Spec
from planner.plan.document.comparison_types import TermRow
from planner.scoring import broker_loads, failure_costs, independent_check, score
from planner.scoring.broker_loads import MEASURES
from planner.scoring.score import ScoringBasis

TermValue = float | None
TermGroup = Literal["fairness", "safety", "resilience", "movement"]


@dataclass(frozen=True, eq=False)
class _TermColumn:
    """A placement (P, W) with its leaders (P,), the problem that it is judged by, and its scores."""

    problem: Problem
    replicas: IntArray
    leaders: IntArray
    scores: Mapping[str, int]
    above_ppm: LongArray

    @classmethod
    def of(cls, problem: Problem, replicas: IntArray, leaders: IntArray) -> Self:
        basis = ScoringBasis.of(problem)
        one_group = np.zeros_like(problem.topic_of)
        per_broker = broker_loads.by_group(problem, replicas, leaders, one_group, 1, basis.measures)
        scores = _scores(basis, replicas, leaders)
        return cls(problem, replicas, leaders, scores, score.above_shares(basis, per_broker)[0])

    @property
    def racks_known(self) -> bool:
        """True if every broker that the problem keeps or adds has a rack."""
        return bool((self.problem.broker_racks[self.problem.targets] >= 0).all())


def _scores(basis: ScoringBasis, replicas: IntArray, leaders: IntArray) -> dict[str, int]:
    scores = score.score(basis, replicas, leaders)
    return {field.name: int(getattr(scores, field.name)[0]) for field in fields(scores)}


def if_nothing_moves(full_problem: Problem) -> dict[str, int]:
    """The scores of today's placement with today's actual leaders, judged by what is asked for."""
    return _scores(ScoringBasis.of(full_problem), today(full_problem), full_problem.leaders)


def left_to_change(full_problem: Problem, replicas: IntArray) -> int:
    """How many partitions with these replicas (P, W) don't yet satisfy the changes and the rack rule."""
    return int(np.any(list(independent_check.broken_rules(full_problem, replicas).values()), axis=0).sum())


def terms(
    spec: Spec, full_problem: Problem, assignment: IntArray, leaders: IntArray, applied: bool = True, waiting: int = 0
) -> tuple[TermRow, ...]:
    """The terms, by group.

    `applied` is False if no partition of today changes: if none is made either, nothing waits for replicas in sync.
    `full_problem` is that of everything asked for, even if the plan is only a first step. `leaders` (P,) are the
    plan's: partitions that wait for a later step keep theirs. `waiting` counts partitions that an earlier plan of the
    same change left for later; `full_problem` doesn't contain them.
    """
    now = build_problem.problem_today(spec)
    # apply.yml starts once replicas out of sync are back, except those on brokers that leave.
    behind = np.append(~(full_problem.targets & (applied or full_problem.is_new.any())), False)
    columns = (
        _by_isr(spec, _TermColumn.of(now, today(now), now.leaders), np.ones(len(now.broker_ids) + 1, dtype=bool)),
        _by_isr(spec, _TermColumn.of(full_problem, today(full_problem), full_problem.leaders), behind),
        _by_isr(spec, _TermColumn.of(full_problem, assignment, leaders), behind),
    )
    return (*_fairness(columns), *_safety(columns, waiting), *_resilience(spec, columns), *_movement(spec, columns))


def _by_isr(spec: Spec, column: _TermColumn, behind: BoolArray) -> _TermColumn:
    """The column with its worst failures judged without the replicas that are out of sync today, which can't take
    over, and that are on brokers `behind` (B + 1,), by index.
    """
    problem, in_sync, rows = column.problem, column.replicas.copy(), column.problem.row_of
    for key, part in keyed_partitions(spec.cluster.topics):
        if part.leader is not None and part.isr and (lags := set(part.replicas).difference(part.isr)):
            row = in_sync[rows[key]]
            row[np.isin(problem.broker_ids[row], list(lags)) & behind[row]] = -1
    if np.array_equal(in_sync, column.replicas):
        return column
    # Partitions may have fewer replicas in sync than today's and planned factors, so a failure may matter to any.
    fragile = failure_costs.Fragile(np.arange(problem.rows), len(problem.rack_names) + len(problem.broker_ids))
    lost = failure_costs.lost_by_group(problem, fragile, in_sync, np.zeros_like(problem.topic_of), 1)
    losses = {name: int(worst[0]) for name, worst in failure_costs.worst_losses(problem, lost).items()}
    return replace(column, scores={**column.scores, **losses})


def failures(rows: Sequence[TermRow]) -> dict[str, int]:
    """The plan's worst failures by name, for the limits on them; without those that aren't known."""
    return {row.name: int(row.plan) for row in rows if row.name in _FAILURES and row.plan is not None}


TermColumns = tuple[_TermColumn, _TermColumn, _TermColumn]

_ABOVE = ("replicas", "leaders", "bytes", "network_in", "network_out")
_OF_RACKS = ("rack_offline", "rack_refused")
_FAILURES = ("broker_offline", "broker_refused", *_OF_RACKS)
_MEANINGS = {
    "replica_spread": "most minus fewest replicas on a broker",
    "leader_spread": "most minus fewest leaders on a broker",
    "topic_replica_spread": "most minus fewest replicas of one topic on a broker, of the worst topic",
    "left_to_change": "partitions that aren't as the changes and the rack rule ask",
    "without_leader": "partitions without a leader: nobody can read or write them",
    "under_min_insync": "partitions with fewer replicas, in sync or not, than min.insync.replicas",
    "single_replica": "partitions with only one replica",
    "rack_spread_broken": "partitions that could be spread over the racks more evenly, whether they may move or not",
    "on_one_rack": "partitions that go offline with one rack",
    "broker_offline": "partitions that the worst single broker takes offline",
    "broker_refused": "partitions that begin to refuse writes (acks=all) without the worst single broker",
    "rack_offline": "partitions that the worst rack takes offline",
    "rack_refused": "partitions that begin to refuse writes (acks=all) without the worst rack",
    "rack_leaders": "leaders that have to move when the rack with the most of them fails",
    "bytes_moved": "bytes that brokers copy",
    "cross_rack_bytes": "of these, bytes copied from another rack",
    "busiest_broker": "the most bytes that one broker copies in, or sends as a leader",
    "peak_disk": "how full the fullest broker would be if all is copied at once, before anything is deleted",
    "replicas_moved": "replicas that brokers copy",
    "leaders_changed": "partitions that get a different leader",
    "fullest_log_dir": "how far the fullest log dir is above its share",
    "bytes_inside_brokers": "bytes that brokers move between their log dirs, not over the network",
}


def _fairness(columns: TermColumns) -> Iterator[TermRow]:
    problem = columns[2].problem
    balance = problem.balance
    for name, unit, capacities, tolerance in (
        ("replica_spread", "replicas", problem.disk_bytes, balance.replicas),
        ("leader_spread", "leaders", problem.network_bytes_per_sec, balance.leaders),
        ("topic_replica_spread", "replicas", problem.disk_bytes, balance.topic_replicas),
    ):
        values: Sequence[TermValue] = [column.scores[name] for column in columns]
        # Brokers of unlike capacity each have another window, and differ by more than the spread asked for.
        # So do brokers that may hold unlike topics. Then the spread isn't a limit.
        of_sets = problem.allowed is not None and name != "topic_replica_spread"
        of_sets |= problem.leader_ranks is not None and name == "leader_spread"
        is_equal = len(np.unique(capacities[problem.targets])) < 2 and not of_sets
        limit = int(tolerance.value) if tolerance.kind == "spread" and is_equal else None
        yield term("fairness", name, unit, values, limit)
    brokers, brokers_after = (int(column.problem.targets.sum()) for column in columns[::2])
    note = f"; shares are by {brokers} brokers today, else by the {brokers_after} afterwards"
    shares_by = "" if brokers == brokers_after else note
    for index, measure in enumerate(_ABOVE[: broker_loads.measure_count(problem)]):
        if measure != "bytes" or problem.sizes_known:
            values = tuple(
                _percent(column.above_ppm[index]) if index < len(column.above_ppm) else 0.0 for column in columns
            )
            meaning = f"how far the most loaded broker is above its share of {measure.replace('_', ' ')}"
            yield term("fairness", f"{measure}_above_share", "%", values, meaning=meaning + shares_by)


def _safety(columns: TermColumns, waiting: int) -> Iterator[TermRow]:
    problem = columns[1].problem
    before, after = (left_to_change(problem, column.replicas) + waiting for column in columns[1:])
    yield term("safety", "left_to_change", "partitions", (before, before, after), 0)
    leaderless = int(((problem.leaders < 0) & ~problem.is_new).sum())
    yield term("safety", "without_leader", "partitions", (leaderless, leaderless, leaderless))
    counts = [(column.replicas >= 0).sum(axis=1) for column in columns]
    least = [column.problem.min_insync for column in columns]
    under = [int(((count > 0) & (count < minimum)).sum()) for count, minimum in zip(counts, least, strict=True)]
    yield term("safety", "under_min_insync", "partitions", under)
    yield term("safety", "single_replica", "partitions", [int((count == 1).sum()) for count in counts])


def _resilience(spec: Spec, columns: TermColumns) -> Iterator[TermRow]:
    # Counts all partitions, even those that may not move; unknown if brokers have no racks, or racks don't count.
    broken = [
        int(uneven_racks(column.problem, column.replicas).sum()) if column.problem.racks_matter else None
        for column in columns
    ]
    yield term("resilience", "rack_spread_broken", "partitions", broken, 0)
    one_rack = [_on_one_rack(column) if column.racks_known else None for column in columns]
    yield term("resilience", "on_one_rack", "partitions", one_rack)
    for name in _FAILURES:
        values = [None if name in _OF_RACKS and not column.racks_known else column.scores[name] for column in columns]
        yield term("resilience", name, "partitions", values, getattr(spec.limits, name))
    of_rack = [_rack_leaders(column) if column.racks_known else None for column in columns]
    yield term("resilience", "rack_leaders", "leaders", of_rack)


def _movement(spec: Spec, columns: TermColumns) -> Iterator[TermRow]:
    limits, problem, plan = spec.limits, columns[2].problem, columns[2].scores
    sized, racks = problem.sizes_known, all(column.racks_known for column in columns[1:])
    for name, key, is_known, limit in (
        ("bytes_moved", "bytes_moved", sized, limits.bytes_moved),
        ("cross_rack_bytes", "cross_rack_bytes", sized and racks, limits.cross_rack_bytes),
        ("busiest_broker", "busiest_bytes", sized, None),
    ):
        yield term("movement", name, "bytes", (0, 0, plan[key]) if is_known else (None, None, None), limit)
    if sized:
        room = "% of its disk" if (problem.disk_limit_bytes[problem.targets] >= 0).all() else "% of its share"
        yield term("movement", "peak_disk", room, tuple(_percent(each.scores["peak_disk_ppm"]) for each in columns))
    for name, unit in (("replicas_moved", "replicas"), ("leaders_changed", "leaders")):
        yield term("movement", name, unit, (0, 0, plan[name]), getattr(limits, name))


def term(
    group: TermGroup, name: str, unit: str, values: Sequence[TermValue], limit: TermValue = None, meaning: str = ""
) -> TermRow:
    """The row of a term; `values` are today's, those if nothing moves, and the plan's."""
    today, if_nothing_moves, plan = values
    return TermRow(group, name, unit, today, if_nothing_moves, plan, limit, meaning or _MEANINGS[name])


def _percent(ppm: int) -> float:
    return float(round(int(ppm) / 10_000, 2))


def _on_one_rack(column: _TermColumn) -> int:
    """How many partitions have all their replicas in one rack."""
    rack_of, replicas = column.problem.broker_racks, column.replicas
    racks = np.where(replicas >= 0, rack_of[replicas], rack_of[replicas[:, :1]])
    return int(((racks == racks[:, :1]).all(axis=1) & (replicas[:, 0] >= 0)).sum())


def _rack_leaders(column: _TermColumn) -> int:
    """The number of leaders in the rack with the most, including those still on brokers that leave."""
    counts = broker_loads.on_all_brokers(column.problem, column.replicas, column.leaders)[MEASURES.index("leaders")]
    racks = column.problem.broker_racks
    by_rack = np.bincount(racks[racks >= 0], weights=counts[racks >= 0], minlength=1)
    return int(by_rack.max(initial=0))
