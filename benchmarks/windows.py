"""Windows on bytes: plans every case with even disks, and at the balance that each published plan reached.

Only a few figures of a published plan are known. Its replica spread becomes the spread asked for, its fullest broker's
bytes the size of every broker's disk; if it keeps topics about even, ours must too. Other figures ask for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from benchmarks import cases as bench_cases
from benchmarks import peers
from benchmarks.apart import apart
from benchmarks.cases import BenchCase
from benchmarks.measure import Solved, solve
from benchmarks.peers import Peer
from benchmarks.table import UNKNOWN, Entries, Figures, gap, gigabytes, head, megabytes, ratio, row
from planner.model.balance import NO_TOLERANCE, SPREAD_1, Balance, Tolerance
from planner.model.spec import Spec
from planner.scoring.missed_targets import relaxed
from planner.scoring.score import ScoringBasis

EVEN_DISKS = Balance(disk=Tolerance("percent", 2))
# The cases that are measured if none is named. The others would take hours with every peer.
CASES = tuple(case for case in bench_cases.CASES if case != "huge")
PEER_CASES = tuple(case for case in CASES if case != "expand-big")
# Published figures of bytes max ÷ mean have three decimals.
_HALF_A_DIGIT = 0.0005
# If at most this part of the replicas is above topics' ceilings, topics are about even: a window of 2 instead of 1.
_FEW = 0.01

_EVEN = (
    "case",
    "GB moved",
    "bound GB",
    "gap",
    "bytes ÷ mean: least / most",
    "spread: replicas / leaders / topic",
    "windows not kept",
    "solve s",
    "peak memory MB",
)
_AT_PEERS = (
    "case",
    "peer",
    "balance: replicas / topic replicas / bytes max ÷ mean",
    "peer's GB",
    "our GB",
    "peer's ÷ ours",
    "our bound GB",
    "gap",
    "above topics' ceilings: peer's / ours",
    "windows not kept",
    "solve s",
)


@dataclass(frozen=True)
class BalancedPlan:
    """A case planned at a balance: the windows of replicas, of topics' replicas and of disks, as in the YAML.

    `not_kept` counts missed windows; `size_over_mean` is the emptiest and the fullest broker's bytes, as multiples of
    the mean; seconds and memory as in `Solved`.
    """

    case: str
    balance: tuple[str, str, str]
    bytes_moved: int
    least_bytes: int
    violations: int
    spreads: tuple[int, int, int]
    topic_replicas_over_ceiling: int
    size_over_mean: tuple[float, float]
    not_kept: int
    solve_seconds: float
    peak_bytes: int


def entries(cases: Sequence[str], seed: str) -> Entries:
    """Both tables as Markdown, each line as soon as it is measured; the second only for clusters that peers planned."""
    yield from (f"## Disks within {EVEN_DISKS.disk}, replicas, leaders and topics within 1, seed `{seed}`", "")
    yield from head(_EVEN)
    for case in cases or CASES:
        planned = apart(measure, case, seed, EVEN_DISKS)
        yield Figures("windows", asdict(planned))
        yield row(_even_cells(planned))
    if seed == peers.SEED:
        yield from ("", "## At each published plan's own balance", "", *head(_AT_PEERS))
        for case in cases or PEER_CASES:
            yield from _at_peers(case, seed)


def balance_of(peer: Peer, replicas: int) -> Balance:
    """The balance that a published plan with `replicas` replicas reached, as windows (see the module's docstring)."""
    return Balance(
        replicas=Tolerance("spread", max(1, peer.replica_spread)),
        topic_replicas=_topics(peer.topic_replicas_over_ceiling, replicas, peer.only_ceilings),
    )


def measure(case: str, seed: str, balance: Balance, size_max_over_mean: float | None = None) -> BalancedPlan:
    """Make the case and plan it at the balance, in this process; `size_max_over_mean` limits each broker's bytes."""
    bench_case = bench_cases.make(case, seed)
    spec = replace(bench_cases.to_spec(bench_case), balance=balance)
    solved = solve(spec if size_max_over_mean is None else _with_room(spec, bench_case, size_max_over_mean))
    plan = solved.plan
    return BalancedPlan(
        case=case,
        balance=(str(balance.replicas), str(balance.topic_replicas), str(balance.disk)),
        bytes_moved=plan.bytes_moved,
        least_bytes=solved.least_bytes,
        violations=plan.violations,
        spreads=(plan.replica_spread, plan.leader_spread, plan.topic_spread),
        topic_replicas_over_ceiling=plan.topic_replicas_over_ceiling,
        size_over_mean=_size_over_mean(solved),
        not_kept=len(relaxed(ScoringBasis.of(solved.problem), solved.assignment)),
        solve_seconds=solved.solve_seconds,
        peak_bytes=solved.peak_bytes,
    )


def _with_room(spec: Spec, case: BenchCase, size_max_over_mean: float) -> Spec:
    """The spec with disks of that many times the mean bytes, plus half a digit, because published ones are rounded."""
    factor = case.replica_count // len(case.size_bytes)
    mean = int(case.size_bytes.sum()) * factor / len(case.brokers_after)
    disk_bytes = int(mean * (size_max_over_mean + _HALF_A_DIGIT))
    present, added = (
        tuple(replace(broker, disk_bytes=disk_bytes) for broker in brokers)
        for brokers in (spec.cluster.brokers, spec.changes.add_brokers)
    )
    return replace(
        spec, cluster=replace(spec.cluster, brokers=present), changes=replace(spec.changes, add_brokers=added)
    )


def _topics(over_ceiling: int | None, replicas: int, only_ceilings: bool) -> Tolerance:
    if over_ceiling is None or over_ceiling > replicas * _FEW:
        return NO_TOLERANCE
    return Tolerance("spread", 2) if over_ceiling or only_ceilings else SPREAD_1


def _size_over_mean(solved: Solved) -> tuple[float, float]:
    problem, assignment = solved.problem, solved.assignment
    rows, slots = np.nonzero(assignment >= 0)
    size_bytes = np.zeros(len(problem.targets), dtype=np.int64)
    np.add.at(size_bytes, assignment[rows, slots], problem.size_bytes[rows])
    target_bytes = size_bytes[problem.targets]
    return (
        (float(target_bytes.min() / target_bytes.mean()), float(target_bytes.max() / target_bytes.mean()))
        if target_bytes.any()
        else (1.0, 1.0)
    )


def _at_peers(case: str, seed: str) -> Entries:
    replicas = bench_cases.make(case, seed).replica_count
    for peer in peers.peers(case):
        planned = apart(measure, case, seed, balance_of(peer, replicas), peer.size_max_over_mean)
        yield Figures("at peers' balance", {**asdict(planned), "peer": peer.name, "peer_bytes_moved": peer.bytes_moved})
        yield row(_at_peer_cells(peer, planned))


def _even_cells(planned: BalancedPlan) -> tuple[str, ...]:
    return (
        planned.case,
        gigabytes(planned.bytes_moved),
        gigabytes(planned.least_bytes),
        gap(planned.bytes_moved, planned.least_bytes),
        " / ".join(f"{each:.4f}" for each in planned.size_over_mean),
        " / ".join(f"{spread:,}" for spread in planned.spreads),
        _not_kept(planned),
        f"{planned.solve_seconds:.2f}",
        megabytes(planned.peak_bytes),
    )


def _at_peer_cells(peer: Peer, planned: BalancedPlan) -> tuple[str, ...]:
    over = peer.topic_replicas_over_ceiling
    return (
        planned.case,
        peer.name,
        " / ".join(
            [*planned.balance[:2], UNKNOWN if peer.size_max_over_mean is None else f"{peer.size_max_over_mean:.3f}"]
        ),
        _published(peer),
        gigabytes(planned.bytes_moved),
        ratio(peer.bytes_moved, planned.bytes_moved),
        gigabytes(planned.least_bytes),
        gap(planned.bytes_moved, planned.least_bytes),
        f"{UNKNOWN if over is None else f'{over:,}'} / {planned.topic_replicas_over_ceiling:,}",
        _not_kept(planned),
        f"{planned.solve_seconds:.2f}",
    )


def _published(peer: Peer) -> str:
    """The published gigabytes, with the rounding error if it is above half a gigabyte."""
    amount = f"{peer.bytes_moved / 1e9:,.0f}"
    return amount if peer.rounding_bytes <= 10**9 else f"{amount} ± {peer.rounding_bytes / 2e9:.0f}"


def _not_kept(planned: BalancedPlan) -> str:
    broken = f", {planned.violations:,} rules broken" if planned.violations else ""
    return f"{planned.not_kept:,}{broken}"
