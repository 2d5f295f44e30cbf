"""Measures Spark's cost and gain as pairs: the same work twice, one after the other on the same machine.

Only the ratio of a pair says anything, because a busy machine slows both. The CPU time shows the time on an idle
machine: for a sweep it is `Timing.chain_seconds`, for a whole command that of all its processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from benchmarks import candidates, sweep
from benchmarks.apart import apart, watched_children
from benchmarks.sweep import DRAWN, SOLVED, Timing
from benchmarks.table import UNKNOWN, Entries, Figures, head, ratio, row
from planner.model.errors import SetupError

EXAMPLE, BIG = Path("examples/expand.yaml"), "expand-big"
MILLION = 1_000_000
_COLUMNS = ("what", "first", "second", "first ÷ second", "CPU s, first", "second", "first ÷ second", "to reach")
_LONGEST_SECONDS = 1800


@dataclass(frozen=True)
class Pair:
    """Two amounts in `unit`; `to_reach` is the goal for first ÷ second; `cpu` has the CPU seconds of both."""

    what: str
    first: float
    second: float
    unit: str
    to_reach: str
    cpu: tuple[float, float] | None = None


def entries(*, long: bool) -> Entries:
    """The pairs as Markdown, each line as soon as both are measured; with `long` also a sweep of 10^8 placements."""
    yield from ("### Pairs", "", *head(_COLUMNS))
    for pair in _pairs(long=long):
        yield Figures("pairs", asdict(pair))
        shown = (f"{amount:,.2f} {pair.unit}" for amount in (pair.first, pair.second))
        cpu = (f"{pair.cpu[0]:.2f}", f"{pair.cpu[1]:.2f}", ratio(*pair.cpu)) if pair.cpu else (UNKNOWN,) * 3
        yield row((pair.what, *shown, ratio(pair.first, pair.second), *cpu, pair.to_reach))


def _pairs(*, long: bool) -> Iterator[Pair]:
    yield from _whole_command()
    yield from _placements(MILLION)
    one_worker, two_workers = (apart(sweep.through_spark, SOLVED, 5_000, workers) for workers in (1, 2))
    yield _timed("5,000 candidates, 1,000 solved: one worker, two", one_worker, two_workers, "≥ 1.8")
    speed = apart(candidates.measure, BIG)
    per_second = speed.per_second * speed.replicas / MILLION
    yield Pair(f"placements a second and core, {speed.replicas:,} replicas", per_second, 20, "million", "≥ 1")
    if long:
        yield from _long()


def _placements(count: int) -> Iterator[Pair]:
    """Kafka's placements, without the session's start: one worker and two, and each compared with no Spark."""
    one_worker, two_workers = (apart(sweep.through_spark, DRAWN, count, workers) for workers in (1, 2))
    in_process = apart(sweep.in_this_process, DRAWN, count)
    yield _timed(f"{count:,} placements: one worker, two", one_worker, two_workers, "≥ 1.6")
    yield _timed(
        f"{count:,} placements: Spark with two workers, in process on one core", two_workers, in_process, "≤ 1.0"
    )
    yield _timed(
        f"{count:,} placements: Spark with one worker, in process on one core", one_worker, in_process, UNKNOWN
    )


def _long() -> Iterator[Pair]:
    ten, hundred = (apart(sweep.through_spark, DRAWN, count, 2) for count in (10 * MILLION, 100 * MILLION))
    yield _timed("10^8 placements, 10^7", hundred, ten, "10")
    for whose, peak, most in (("the driver", hundred.driver_peak_bytes, 600), ("a worker", hundred.peak_bytes, 300)):
        yield Pair(f"10^8 placements, peak memory of {whose}", peak / 1e6, most, "MB", "≤ 1")


def _timed(label: str, first: Timing, second: Timing, to_reach: str) -> Pair:
    cpu = first.chain_seconds, second.chain_seconds
    return Pair(label, first.sweep_seconds, second.sweep_seconds, "s", to_reach, cpu)


def _whole_command() -> Iterator[Pair]:
    """The example planned by the whole command: on Spark the first time, and after Java's classes are archived."""
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        cache = {"XDG_CACHE_HOME": f"{folder}/cache"}
        first, in_process = _whatif(folder, cache), _whatif(folder, cache, "--engine", "local")
        yield _commands(f"whatif {EXAMPLE}: Spark the first time, in process", first, in_process, "≤ 1.5")
        _run(cache, "spark", "warm")
        warm, in_process = _whatif(folder, cache), _whatif(folder, cache, "--engine", "local")
        yield _commands(f"whatif {EXAMPLE}: Spark with the archive, in process", warm, in_process, "≤ 1.2")


def _commands(label: str, first: tuple[float, float], second: tuple[float, float], to_reach: str) -> Pair:
    return Pair(label, first[0], second[0], "s", to_reach, (first[1], second[1]))


def _whatif(folder: str, environment: Mapping[str, str], *options: str) -> tuple[float, float]:
    """Wall seconds of the whole command, and CPU seconds of all its processes."""
    with watched_children() as children:
        started = perf_counter()
        _run(environment, "whatif", str(EXAMPLE), "--out", f"{folder}/plan", *options)
        seconds = perf_counter() - started
    return seconds, sum(children.cpu_since({}))


def _run(environment: Mapping[str, str], *arguments: str) -> None:
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", *arguments]
    completed = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False
    )
    if completed.returncode:
        raise SetupError(f"planner {' '.join(arguments)} ended with {completed.returncode}: {completed.stderr[-500:]}")
