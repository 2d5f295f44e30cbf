"""The benchmark's other half: a million candidates through Spark, with one core and with two, and without Spark.

The candidates are Kafka's own placements with a start index and a shift drawn for every topic; each engine is measured
in a process of its own, and all must name the same best candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from planner import bench_cases, sweep
from planner import problem as problems
from planner.bench_process import apart, peak_bytes, watched_children
from planner.bench_table import head, row
from planner.candidates import CANDIDATE_SCHEMA, KNOBS
from planner.model import Problem

CASE, SEED = "expand-small", "public"
CANDIDATES = 1_000_000
MASTERS = ("local[1]", "local[2]")

_COLUMNS = (
    "engine",
    "s with the session's start",
    "s without",
    "µs a candidate with",
    "µs a candidate without",
    "× this process",
    "peak memory MB of a Python worker",
    "best candidate",
)


@dataclass(frozen=True)
class Timing:
    """One engine's sweep: wall seconds with and without the start of its session; the most memory of any one worker,
    0 where unknown; the best candidate's number and its bytes moved.
    """

    engine: str
    seconds: float
    session_seconds: float
    peak_bytes: int
    best_candidate: int
    best_bytes_moved: int


def lines(count: int, masters: tuple[str, ...] = MASTERS) -> Iterator[str]:
    """The sweep's Markdown, a line as soon as it is measured."""
    yield f"## Sweep: {count:,} of Kafka's placements of {CASE}, a start index and a shift drawn for every topic"
    yield ""
    yield from head(_COLUMNS)
    alone = apart(in_this_process, count)
    yield row(_cells(alone, alone, count))
    timings = []
    for master in masters:
        timings.append(apart(through_spark, master, count))
        yield row(_cells(timings[-1], alone, count))
    if len(timings) > 1:
        yield ""
        yield _comparison(timings[0], timings[-1])


def candidates(problem: Problem, count: int) -> pa.Table:
    """`count` rows of CANDIDATE_SCHEMA: Kafka's classic placements, seeds 1..count, everything drawn."""
    drawn = pa.array(np.full(count, -1), pa.int32())
    knobs = {knob: _repeated(str(getattr(problem.balance, knob)), count) for knob in KNOBS}
    columns = {
        "candidate": np.arange(count, dtype=np.int64),
        "strategy": _repeated("kafka_classic", count),
        "seed": np.arange(1, count + 1, dtype=np.int64),
        "start_index": drawn,
        "next_replica_shift": drawn,
        **knobs,
    }
    return pa.table(columns, schema=CANDIDATE_SCHEMA)


def in_this_process(count: int) -> Timing:
    """The sweep without Spark: what Spark's overhead is measured against."""
    problem = _problem()
    rows = candidates(problem, count)
    started = perf_counter()
    result = sweep.run(problem, rows)
    ended = perf_counter()
    return _timing("this process, no Spark", (started, started, ended), peak_bytes(), result)


def through_spark(master: str, count: int) -> Timing:
    """The sweep in a Spark session of that master, opened and closed here."""
    # Here and not above: planner never imports pyspark, and only who benches the sweep needs it.
    from spark_jobs import session
    from spark_jobs import sweep as job

    problem = _problem()
    rows = candidates(problem, count)
    with watched_children() as children:
        started = perf_counter()
        with session.open_session(master=master) as spark:
            opened = perf_counter()
            result = job.run(spark, problem, rows)
            ended = perf_counter()
            children.look()
    return _timing(f"Spark {master}", (started, opened, ended), children.peak_bytes, result)


def _problem() -> Problem:
    return problems.build(bench_cases.to_spec(bench_cases.make(CASE, SEED)))


def _repeated(word: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(word, pa.string()), count)


def _timing(engine: str, times: tuple[float, float, float], peak: int, result: sweep.SweepResult) -> Timing:
    started, opened, ended = times
    best = result.top.slice(0, 1).to_pylist()[0]
    return Timing(engine, ended - started, opened - started, peak, best["candidate"], best["bytes_moved"])


def _cells(timing: Timing, alone: Timing, count: int) -> tuple[str, ...]:
    without = timing.seconds - timing.session_seconds
    return (
        timing.engine,
        f"{timing.seconds:.2f}",
        f"{without:.2f}",
        f"{timing.seconds / count * 1e6:.2f}",
        f"{without / count * 1e6:.2f}",
        f"{timing.seconds / alone.seconds:.2f}",
        f"{timing.peak_bytes / 1e6:,.0f}" if timing.peak_bytes else "–",
        f"{timing.best_candidate:,} ({timing.best_bytes_moved / 1e9:,.3f} GB)",
    )


def _comparison(one: Timing, more: Timing) -> str:
    without = (more.seconds - more.session_seconds) / (one.seconds - one.session_seconds)
    ratio = more.seconds / one.seconds
    return f"{more.engine} ÷ {one.engine}: {ratio:.2f} of the wall time, {without:.2f} without the session's start."
