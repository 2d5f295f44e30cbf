"""Compares plans of small random clusters with an exact solver: whether a claim is false, and each plan's true gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

from benchmarks.apart import apart
from benchmarks.exact import Judge, Least
from benchmarks.exact_clusters import cluster
from benchmarks.table import UNKNOWN, Entries, Figures, head, row
from planner.model.errors import InfeasibleError
from planner.scoring import independent_check
from planner.strategies import lagrangian_bound
from planner.strategies.optimum import Proposal, solve

CLUSTERS = 200
# How many clusters one process judges.
_AT_ONCE = 100


@dataclass(frozen=True)
class Verdict:
    """The exact solver's verdict on the plan of one cluster.

    windows        "hold", "relaxed", or "aside" if only partitions that must move may move
    moved, told    bytes that the plan moves, and its bound on the bytes of any such plan
    least          the true minimum of these bytes; None if the solver didn't finish
    outside        how far the plan is outside of its windows: the weight of replicas, and that of loads
    told_outside   its bound on how far any plan is outside at least
    least_outside  the true minimum of each, None if unknown
    faults         sentences on false claims and broken rules
    """

    number: int
    windows: str
    moved: int
    told: int
    least: int | None
    outside: tuple[int, int]
    told_outside: tuple[int, int]
    least_outside: tuple[int | None, int | None]
    seconds: float
    faults: tuple[str, ...]

    @property
    def gap(self) -> float | None:
        """How far the plan is above the true minimum, as a fraction of the plan's bytes."""
        return None if self.least is None else _part(self.moved, self.least)

    @property
    def told_gap(self) -> float:
        """How far the plan is above its own bound, as a fraction of the plan's bytes."""
        return _part(self.moved, self.told)


def judged(number: int) -> Verdict | None:
    """The verdict on a cluster's plan; None if the cluster has no plan."""
    problem = cluster(number)
    started = perf_counter()
    try:
        solution = solve(problem, problem.balance, certify=True)
    except InfeasibleError:
        return None
    seconds = perf_counter() - started
    judge = Judge(problem)
    outside, moved = judge.outside(solution.assignment), judge.copied(solution.assignment)
    is_free = problem.rebalance == "all"
    least = judge.least_bytes(outside if is_free else None)
    faults = [str(violation) for violation in independent_check.check(problem, solution.assignment)]
    reached, told_outside = (outside.replicas, outside.loads), _told_outside(solution)
    truth: tuple[Least, Least] | None = None
    # If only partitions that must move may move, the windows don't matter.
    default_least = (0, 0) if is_free else (None, None)
    if is_free and any(reached):
        truth = judge.least_replicas(), judge.least_loads(outside.replicas)
        faults += _faults("outside", told_outside, truth)
    # If nothing may move there is only one plan, and no certificate. Windows that gave way to a disk limit are wider
    # than those that the judge knows.
    if is_free and solution.certificate is not None and not solution.widened_windows and _allowed(solution) != reached:
        faults.append(f"the bound is for plans outside by {_allowed(solution)}, this one is by {reached}")
    return Verdict(
        number=number,
        windows="aside" if not is_free else "relaxed" if any(reached) else "hold",
        moved=moved,
        told=solution.least_bytes,
        least=least.exact,
        outside=reached,
        told_outside=told_outside,
        least_outside=default_least if truth is None else (truth[0].exact, truth[1].exact),
        seconds=seconds,
        faults=(*faults, *_faults("moved", (solution.least_bytes,), (least,))),
    )


def entries(clusters: int) -> Entries:
    """The figures of the first `clusters` clusters, and every fault."""
    yield from (f"## Beside an exact solver, {clusters:,} small random clusters", "")
    verdicts: list[Verdict] = []
    for first in range(0, clusters, _AT_ONCE):
        for verdict in apart(_judge_range, first, min(first + _AT_ONCE, clusters)):
            yield Figures("exact", {**asdict(verdict), "faults": list(verdict.faults)})
            yield from (f"- cluster {verdict.number}: {fault}" for fault in verdict.faults)
            verdicts.append(verdict)
    yield from head(("windows", "plans", "false claims", "exactly the least", *_GAPS, "least outside, of those known"))
    for windows in ("hold", "relaxed", "aside"):
        of_them = [verdict for verdict in verdicts if verdict.windows == windows]
        if of_them:
            yield row((windows, *_cells(of_them)))
    yield from ("", _LEGEND)


_GAPS = ("gap to the least: median / worst", "gap that is told: median / worst")
_LEGEND = (
    "`relaxed`: windows don't all hold, and the claim is about all plans that are no further outside of them. `aside`: "
    "only what must move may. `least outside`: of replicas, and of loads, the plans with the least that there is. "
    "A false claim is one above what some plan does, or a plan that breaks a rule."
)


def _judge_range(first: int, end: int) -> list[Verdict]:
    verdicts = (judged(number) for number in range(first, end))
    return [verdict for verdict in verdicts if verdict is not None]


def _cells(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    gaps = [verdict.gap for verdict in verdicts if verdict.gap is not None]
    exact = sum(gap <= 0 for gap in gaps)
    return (
        f"{len(verdicts):,}",
        f"{sum(bool(verdict.faults) for verdict in verdicts):,}",
        f"{exact:,} of {len(gaps):,}",
        _median_and_worst(gaps),
        _median_and_worst([verdict.told_gap for verdict in verdicts]),
        " / ".join(_least_outside(verdicts, side) for side in (0, 1)),
    )


def _least_outside(verdicts: Sequence[Verdict], side: int) -> str:
    known_verdicts = [verdict for verdict in verdicts if verdict.least_outside[side] is not None]
    return (
        f"{sum(each.outside[side] == each.least_outside[side] for each in known_verdicts):,} of {len(known_verdicts):,}"
    )


def _median_and_worst(gaps: Sequence[float]) -> str:
    if not gaps:
        return UNKNOWN
    return f"{100 * sorted(gaps)[len(gaps) // 2]:.3f} % / {100 * max(gaps):.3f} %"


def _told_outside(solution: Proposal) -> tuple[int, int]:
    certificate = solution.certificate
    if certificate is None or certificate.outside is None:
        return 0, 0
    least = lagrangian_bound.least_outside(certificate.facts, certificate.outside)
    return least.replicas, least.loads


def _allowed(solution: Proposal) -> tuple[int, int]:
    certificate = solution.certificate
    if certificate is None or certificate.outside is None:
        return 0, 0
    return certificate.outside.slack.replicas, certificate.outside.slack.loads


def _faults(subject: str, claims: Sequence[int], minima: Sequence[Least]) -> list[str]:
    """A sentence for each claimed minimum above the amount of a plan that the solver found."""
    return [
        f"{subject}: at least {claim:,} is told, {least.best} is possible"
        for claim, least in zip(claims, minima, strict=True)
        if least.best is not None and claim > least.best
    ]


def _part(moved: int, least: int) -> float:
    return (moved - least) / moved if moved else 0.0
