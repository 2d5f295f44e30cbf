"""The benchmark: how few bytes, how even, how fast, and how much memory, beside baselines and published figures.

Every case is measured in a process of its own. The result is Markdown; nothing in it is a limit that is asserted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner import bench_peers, bench_sweep
from planner.bench_cases import CASES
from planner.bench_measure import BATCH_SHARE, Measured, Outcome, measure
from planner.bench_peers import Peer
from planner.bench_process import apart
from planner.bench_table import head, row
from planner.errors import SetupError

UNKNOWN = "–"

_PLANS = (
    "case",
    "brokers",
    "partitions × RF",
    "valid",
    "rack violations",
    "spread: replicas / leaders / topic",
    "GB moved",
    "proven least GB",
    "gap",
    "replicas moved",
    "build s",
    "solve s",
    "check s",
    "peak memory MB",
    "makespan ÷ bound, by bytes / by moves",
)
_BESIDE = (
    "case",
    "plan",
    "GB moved",
    "× ours",
    "replicas moved",
    "rules broken",
    "spread: replicas / leaders",
    "above topics' ceilings",
    "bytes max ÷ mean",
)
_LEGEND = (
    "Seconds are wall time; memory is the process's peak up to the end of the check, the interpreter and the case "
    "included. `× ours` is bytes moved over those of our plan. Of Kafka's seeds, drawn and swept in the same process, "
    "the one counts that moves the fewest bytes without breaking a rule. Above a topic's ceiling are its replicas on a "
    "broker beyond the topic's replicas ÷ brokers, rounded up.",
    "",
    f"`makespan ÷ bound` is of the plan in batches of 1/{BATCH_SHARE} of its bytes at most, then of 1/{BATCH_SHARE} of "
    "the moves of the broker with most of them. A batch begins when the one before is complete, so the makespan is the "
    "bytes of each batch's busiest broker, in or out, summed; the bound is those of the plan's busiest broker, which "
    "no order can beat. Where one partition is nearly as large as a batch, few others fit beside it.",
    "",
    "A published peer is the plan with the fewest bytes of those with a replica spread of at most 1 and at most 1 % of "
    "the replicas above their topic's ceiling. Where it moves fewer bytes than ours it is less even, since ours are "
    "proven to be the least; where it moves more, some may have gone into making bytes more even than ours.",
)


def lines(cases: Sequence[str], seed: str, sweep: bool) -> Iterator[str]:
    """The benchmark's Markdown, line by line as it is measured: all cases where none is named, then the sweep.

    `seed` is the cases' seed. SetupError for a name that isn't a case's.
    """
    unknown = [case for case in cases if case not in CASES]
    if unknown:
        raise SetupError(f"unknown benchmark case {', '.join(unknown)}; allowed: {', '.join(CASES)}")
    return _lines(tuple(dict.fromkeys(cases)) or CASES, seed, sweep)


def _lines(cases: Sequence[str], seed: str, sweep: bool) -> Iterator[str]:
    yield f"## Plans, seed `{seed}`"
    yield ""
    yield from head(_PLANS)
    measured = []
    for case in cases:
        measured.append(apart(measure, case, seed))
        yield row(_plan_cells(measured[-1]))
    yield ""
    yield "## Beside them"
    yield ""
    yield from head(_BESIDE)
    for one in measured:
        yield from (row(cells) for cells in _beside(one, published=seed == bench_peers.SEED))
    yield ""
    yield from _LEGEND
    if sweep:
        yield from ("", *bench_sweep.lines(bench_sweep.CANDIDATES))


def _plan_cells(measured: Measured) -> tuple[str, ...]:
    plan = measured.plan
    factors = ", ".join(map(str, measured.replication_factors))
    return (
        measured.case,
        f"{measured.brokers_before} → {measured.brokers_after}",
        f"{measured.partitions:,} × {factors}",
        "yes" if plan.violations == 0 else f"no ({plan.violations:,})",
        f"{plan.rack_violations:,}",
        f"{plan.replica_spread:,} / {plan.leader_spread:,} / {plan.topic_spread:,}",
        _gigabytes(plan.bytes_moved),
        _gigabytes(measured.least_bytes),
        _gap(plan.bytes_moved, measured.least_bytes),
        f"{plan.replicas_moved:,}",
        f"{measured.build_seconds:.3f}",
        f"{measured.solve_seconds:.3f}",
        f"{measured.check_seconds:.3f}",
        f"{measured.peak_bytes / 1e6:,.0f}",
        " / ".join(f"{each:.3f}" for each in measured.makespans_over_bound),
    )


def _beside(measured: Measured, published: bool) -> Iterator[tuple[str, ...]]:
    """The plan, its baselines, and what was published about the same cluster."""
    ours = measured.plan.bytes_moved
    for outcome in (measured.plan, *measured.baselines):
        yield measured.case, *_outcome_cells(outcome, ours)
    if not published:
        return
    peer = bench_peers.best(measured.case, measured.replicas)
    if peer:
        yield measured.case, *_peer_cells(peer, ours)
    least = bench_peers.optimum_bytes(measured.case)
    cells = ("the optimum (published, not run here)", f"{least / 1e9:,.0f}", _ratio(least, ours))
    yield measured.case, *cells, *[UNKNOWN] * (len(_BESIDE) - len(cells) - 1)


def _outcome_cells(outcome: Outcome, ours: int) -> tuple[str, ...]:
    return (
        outcome.label,
        _gigabytes(outcome.bytes_moved),
        _ratio(outcome.bytes_moved, ours),
        f"{outcome.replicas_moved:,}",
        f"{outcome.violations:,}",
        f"{outcome.replica_spread:,} / {outcome.leader_spread:,}",
        f"{outcome.topic_replicas_over_ceiling:,}",
        f"{outcome.size_max_over_mean:.3f}",
    )


def _peer_cells(peer: Peer, ours: int) -> tuple[str, ...]:
    over, even = peer.topic_replicas_over_ceiling, peer.size_max_over_mean
    return (
        f"{peer.name} (published, not run here; {peer.seconds:g} s)",
        f"{peer.bytes_moved / 1e9:,.0f}",
        _ratio(peer.bytes_moved, ours),
        UNKNOWN if peer.replicas_moved is None else f"{peer.replicas_moved:,}",
        "0",
        f"{peer.replica_spread:,} / {peer.leader_spread:,}",
        UNKNOWN if over is None else f"{over:,}",
        UNKNOWN if even is None else f"{even:.3f}",
    )


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:,.3f}"


def _gap(moved: int, least: int) -> str:
    """How much more than the least was moved; four digits, as gaps are small. Every case forces some moves."""
    return f"{(moved - least) / least * 100:.4f} %"


def _ratio(size_bytes: int, ours: int) -> str:
    return f"{size_bytes / ours:.3f}"
