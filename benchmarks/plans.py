"""The benchmark's plans: bytes, balance, time and memory, compared with baselines and published plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from benchmarks import in_batches, peers
from benchmarks.apart import apart
from benchmarks.measure import BATCH_SHARE, Measured, MeasuredPlan, measure
from benchmarks.peers import Peer
from benchmarks.table import UNKNOWN, Entries, Figures, gap, gigabytes, head, megabytes, ratio, row

_PLAN_COLUMNS = (
    "case",
    "brokers",
    "partitions × RF",
    "valid",
    "rack violations",
    "spread: replicas / leaders / topic",
    "GB moved",
    "proven minimum GB",
    "gap",
    "replicas moved",
    "build s",
    "solve s",
    "check s",
    "peak memory MB",
    "makespan ÷ bound, by bytes / by moves",
    "Kafka's best seed, × our bytes",
    "best published peer, × our bytes",
)
_BASELINE_COLUMNS = (
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
    "The best published peer is the plan with the fewest bytes of those with a replica spread of at most 1 and at most "
    "1 % of the replicas above their topic's ceiling. Where it moves fewer bytes than ours it is less even, since ours "
    "are proven to be the least; where it moves more, some may have gone into making bytes more even than ours.",
)


def entries(cases: Sequence[str], seed: str, seeds: int | None) -> Entries:
    """The plans, their baselines, and every published plan if `seed` makes the published clusters."""
    is_published = seed == peers.SEED
    yield from (f"## Plans, seed `{seed}`", "", *head(_PLAN_COLUMNS))
    measured = []
    for case in cases:
        measured.append(apart(measure, case, seed, seeds))
        yield Figures("plans", asdict(measured[-1]))
        yield row(_plan_cells(measured[-1], is_published))
    yield ""
    yield from in_batches.entries((result.case, result.in_batches) for result in measured)
    yield from ("", "## Beside them", "", *head(_BASELINE_COLUMNS))
    for result in measured:
        yield from (row(cells) for cells in _baseline_rows(result, is_published))
    yield from ("", *_LEGEND)
    if is_published:
        yield ""
        yield from peers.entries({result.case: result.plan.bytes_moved for result in measured})


def _plan_cells(measured: Measured, is_published: bool) -> tuple[str, ...]:
    plan = measured.plan
    factors = ", ".join(map(str, measured.replication_factors))
    return (
        measured.case,
        f"{measured.brokers_before} → {measured.brokers_after}",
        f"{measured.partitions:,} × {factors}",
        "yes" if plan.violations == 0 else f"no ({plan.violations:,})",
        f"{plan.rack_violations:,}",
        f"{plan.replica_spread:,} / {plan.leader_spread:,} / {plan.topic_spread:,}",
        gigabytes(plan.bytes_moved),
        gigabytes(measured.least_bytes),
        gap(plan.bytes_moved, measured.least_bytes),
        f"{plan.replicas_moved:,}",
        f"{measured.build_seconds:.3f}",
        f"{measured.solve_seconds:.3f}",
        f"{measured.check_seconds:.3f}",
        megabytes(measured.peak_bytes),
        " / ".join(f"{each:.3f}" for each in measured.makespans_over_bound),
        ratio(measured.baselines[1].bytes_moved, plan.bytes_moved),
        _best_published(measured) if is_published else UNKNOWN,
    )


def _best_published(measured: Measured) -> str:
    peer = peers.best(measured.case, measured.replicas)
    return f"{ratio(peer.bytes_moved, measured.plan.bytes_moved)} ({peer.name})" if peer else UNKNOWN


def _baseline_rows(measured: Measured, is_published: bool) -> Iterator[tuple[str, ...]]:
    """The plan, its baselines, and the published figures for the same cluster."""
    our_bytes = measured.plan.bytes_moved
    for outcome in (measured.plan, *measured.baselines):
        yield measured.case, *_outcome_cells(outcome, our_bytes)
    if not is_published:
        return
    peer = peers.best(measured.case, measured.replicas)
    if peer:
        yield measured.case, *_peer_cells(peer, our_bytes)
    least = peers.optimum_bytes(measured.case)
    cells = ("the optimum (published, not run here)", f"{least / 1e9:,.0f}", ratio(least, our_bytes))
    yield measured.case, *cells, *[UNKNOWN] * (len(_BASELINE_COLUMNS) - len(cells) - 1)


def _outcome_cells(outcome: MeasuredPlan, our_bytes: int) -> tuple[str, ...]:
    return (
        outcome.label,
        gigabytes(outcome.bytes_moved),
        ratio(outcome.bytes_moved, our_bytes),
        f"{outcome.replicas_moved:,}",
        f"{outcome.violations:,}",
        f"{outcome.replica_spread:,} / {outcome.leader_spread:,}",
        f"{outcome.topic_replicas_over_ceiling:,}",
        f"{outcome.size_max_over_mean:.3f}",
    )


def _peer_cells(peer: Peer, our_bytes: int) -> tuple[str, ...]:
    max_over_mean = peer.size_max_over_mean
    return (
        f"{peer.name} (published, not run here; {peer.seconds:g} s)",
        f"{peer.bytes_moved / 1e9:,.0f}",
        ratio(peer.bytes_moved, our_bytes),
        peers.count(peer.replicas_moved),
        "0",
        f"{peer.replica_spread:,} / {peer.leader_spread:,}",
        peers.count(peer.topic_replicas_over_ceiling),
        UNKNOWN if max_over_mean is None else f"{max_over_mean:.3f}",
    )
