"""Measures the cost of default batches: their time, compared with a single batch at the same throttle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks.table import Entries, head, ratio, row
from planner.execution import batch_costs_and_risks, batch_cutting, partition_changes, throttle_and_batch_defaults
from planner.execution.batch_cutting import Batch
from planner.execution.throttle_and_batch_defaults import ELECTIONS, REPLICAS_PER_PARTITION, THROTTLE_BYTES_PER_SEC
from planner.model.problem import IntArray, Problem
from planner.model.spec import UNSTATED, BatchRules, Spec

_HOUR = 3_600
_COLUMNS = (
    "case",
    "batches",
    "h in one batch",
    "h by default",
    "default ÷ one",
    "longest batch h",
    "largest replica h",
    "elections, most in a batch",
    "cut s",
)
_LEGEND = (
    f"At {THROTTLE_BYTES_PER_SEC // 10**6} MB/s, the throttle without a stated network: a batch of at most an hour for "
    f"its busiest broker, {REPLICAS_PER_PARTITION} replica of a partition and {ELECTIONS} elections at most. A batch "
    "begins when the one before is complete, so all of them "
    "take the bytes of each batch's busiest broker, summed; one batch with everything takes those of the busiest "
    "broker of the plan. `cut s` is the time that making the batches takes.",
)


@dataclass(frozen=True)
class InBatches:
    """A plan in default batches and in a single batch. Copying times are seconds at the default throttle."""

    batches: int
    seconds_in_one: float
    seconds: float
    longest_seconds: float
    largest_replica_seconds: float
    most_elections: int
    cut_seconds: float


def measure(spec: Spec, problem: Problem, assignment: IntArray) -> InBatches:
    """Cut a plan (P, W) of a spec into default batches, and into a single batch."""
    changed = partition_changes.changes(problem, assignment)
    racks = {broker.id: broker.rack for broker in (*spec.cluster.brokers, *spec.changes.add_brokers) if broker.rack}
    execution = throttle_and_batch_defaults.with_defaults(
        replace(spec, execution=UNSTATED), problem, assignment, changed
    )
    started = perf_counter()
    batches = batch_cutting.split(changed, execution.batches, racks)
    cut_seconds = perf_counter() - started
    rate = execution.throttle_bytes_per_sec or 1
    lengths = [busiest_bytes(batch) / rate for batch in batches]
    single = batch_cutting.split(changed, BatchRules(), racks)
    return InBatches(
        batches=len(batches),
        seconds_in_one=sum(map(busiest_bytes, single)) / rate,
        seconds=sum(lengths),
        longest_seconds=max(lengths, default=0.0),
        largest_replica_seconds=max((change.size_bytes for change in changed if change.adding), default=0) / rate,
        most_elections=max((len(batch.elect) for batch in batches), default=0),
        cut_seconds=cut_seconds,
    )


def busiest_bytes(batch: Batch) -> int:
    """The most bytes that one broker copies in, or sends; Kafka throttles both (KIP-73)."""
    return max((flow.size_bytes for flow in batch_costs_and_risks.flows(batch)), default=0)


def entries(measured: Iterable[tuple[str, InBatches]]) -> Entries:
    """The table, a row for each case."""
    yield from ("## By default, in batches", "", *head(_COLUMNS))
    yield from (row(_cells(case, each)) for case, each in measured)
    yield from ("", *_LEGEND)


def _cells(case: str, measured: InBatches) -> tuple[str, ...]:
    return (
        case,
        f"{measured.batches:,}",
        f"{measured.seconds_in_one / _HOUR:.2f}",
        f"{measured.seconds / _HOUR:.2f}",
        ratio(measured.seconds, measured.seconds_in_one),
        f"{measured.longest_seconds / _HOUR:.2f}",
        f"{measured.largest_replica_seconds / _HOUR:.2f}",
        f"{measured.most_elections:,}",
        f"{measured.cut_seconds:.2f}",
    )
