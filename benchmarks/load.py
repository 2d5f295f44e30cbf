"""The benchmark of load profiles: how close they are to a generated month, their time, and their memory.

The history (`load_history`) is made once; each number of workers profiles it in a separate process, and both must
write the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks import load_history
from benchmarks.apart import apart, on_cores, watched_children
from benchmarks.load_history import HOUR, History, HistoryRecipe
from benchmarks.table import Entries, Figures, head, megabytes, ratio, row
from planner.inputs import load_profile_file
from planner.model.load_history import HOURS_OF_WEEK, HistoryFacts, topic_growth
from planner.model.problem import FloatArray

PARTITIONS, DAYS, STEP_SECONDS = 5_000, 28, HOUR
WORKERS = (1, 2)
# Smaller growth per month is no larger than the noise, so an error relative to it says nothing.
LEAST_GROWTH = 0.05
_COLUMNS = (
    "rows",
    "engine",
    "s with the session's start",
    "s without",
    "× one worker, without",
    "peak memory MB of the JVM",
    "peak memory MB of a Python worker",
    "profile MB",
)
# Each flaw of the generator, and its name in the profile.
_FLAWS = {
    "repeated": "repeated_samples",
    "negative": "unusable_values",
    "misdated": "misdated_samples",
    "missing": "hours_without_samples",
    "late_partitions": "appeared_partitions",
}


@dataclass(frozen=True)
class Profiled:
    """One run: wall seconds, those of the session's start, peak memory in bytes, and the profile's file."""

    rows: int
    workers: int
    seconds: float
    session_seconds: float
    java_peak_bytes: int
    worker_peak_bytes: int
    content: bytes

    @property
    def job_seconds(self) -> float:
        """Seconds without the session's start."""
        return self.seconds - self.session_seconds


def entries(partitions: int = PARTITIONS, days: int = DAYS, step_seconds: int = STEP_SECONDS) -> Entries:
    """The Markdown for a history of `partitions` partitions, each line as soon as it is measured."""
    recipe = HistoryRecipe(partitions, days, step_seconds)
    yield f"## Load profile of {partitions:,} partitions, {days} days, a sample every {step_seconds:,} s"
    yield ""
    yield from head(_COLUMNS)
    with TemporaryDirectory(prefix="planner-load-") as folder:
        truth = apart(load_history.write, Path(folder), recipe)
        first_run, content = None, b""
        for workers in WORKERS:
            run = apart(profiled, folder, workers)
            first_run = first_run or run
            difference = "" if run.content == first_run.content else ", other bytes than with one worker"
            figures = {name: getattr(run, name) for name in Profiled.__dataclass_fields__ if name != "content"}
            yield Figures("load", {**figures, "profile_bytes": len(run.content)})
            yield row(_cells(run, first_run, difference))
            content = run.content
    yield ""
    yield "Java and Python share as many cores as there are workers."
    yield ""
    # If an hour has several samples, a missing one leaves others in its hour, so the profile finds no gap.
    flaws = {flaw: profile_name for flaw, profile_name in _FLAWS.items() if step_seconds == HOUR or flaw != "missing"}
    yield from _accuracy(truth, *load_profile_file.decoded(content, "load.parquet"), flaws)


def profiled(folder: str, workers: int) -> Profiled:
    """Profile a folder's history in a local Spark session with a core per worker, opened and closed here."""
    # Imported here, so that the other benchmarks run without pyspark.
    from spark_jobs import load_profile, session

    on_cores(workers)
    with watched_children() as children:
        started = perf_counter()
        with session.open_session(master=f"local[{workers}]", frames=True, many_rows=True) as spark:
            opened = perf_counter()
            rows, about = load_profile.profile(spark, load_profile.LoadRequest((folder,)), None, lambda _: None, print)
            content = load_profile_file.encoded(rows, about)
            ended = perf_counter()
            children.look()
    read = about.findings.counts["samples"] + about.findings.counts["misdated_samples"]
    memory = children.java_peak_bytes, children.peak_bytes
    return Profiled(read, workers, ended - started, opened - started, *memory, content)


def _cells(run: Profiled, first_run: Profiled, difference: str) -> tuple[str, ...]:
    return (
        f"{run.rows:,}",
        f"Spark local[{run.workers}]{difference}",
        f"{run.seconds:.1f}",
        f"{run.job_seconds:.1f}",
        ratio(first_run.job_seconds, run.job_seconds),
        megabytes(run.java_peak_bytes),
        megabytes(run.worker_peak_bytes),
        f"{len(run.content) / 1e6:.1f}",
    )


def errors(truth: History, rows: pa.Table) -> dict[str, FloatArray]:
    """How far each partition's mean, busiest hour and growth (if known) are from the truth, as fractions.

    Also the growth of each topic, which plans use. The rows must be sorted by topic and partition, like the truth.
    """
    hours = np.asarray(rows["hours_in"].combine_chunks().flatten(), dtype=np.float64).reshape(-1, HOURS_OF_WEEK)
    growth = np.asarray(rows["growth_per_month"], dtype=np.float64)
    has_growth = ~np.isnan(growth) & (np.abs(truth.growth_per_month) >= LEAST_GROWTH)
    true_growth = truth.growth_per_month[has_growth]
    mean = np.asarray(rows["bytes_in_per_sec_mean"], dtype=np.float64)
    topics = len(truth.topic_names)
    true_topics, of_topics = (
        topic_growth(truth.topic_of, topics, each, mean) for each in (truth.growth_per_month, growth)
    )
    is_told = ~np.isnan(of_topics) & (np.abs(true_topics) >= LEAST_GROWTH)
    return {
        "mean": np.abs(mean / truth.mean_in - 1),
        "busiest hour": np.abs(np.nanmax(hours, axis=1) / truth.hours_in.max(axis=1) - 1),
        "growth of topics, of its value": np.abs(of_topics[is_told] / true_topics[is_told] - 1),
        "growth, of its value": np.abs(growth[has_growth] / true_growth - 1),
        "growth, by one who knows the curves": np.abs(truth.best_growth[has_growth] / true_growth - 1),
    }


def interval(truth: History, rows: pa.Table) -> tuple[float, float]:
    """Of the partitions with a 95 % interval, the share whose true growth is within it; and the median width of
    these intervals, as a fraction.
    """
    low, high = (np.asarray(rows[name], dtype=np.float64) for name in ("growth_low", "growth_high"))
    has_interval = ~np.isnan(low) & ~np.isnan(high)
    holds = (low <= truth.growth_per_month) & (truth.growth_per_month <= high)
    return float(holds[has_interval].mean()), float(np.median((high - low)[has_interval]))


def _accuracy(truth: History, rows: pa.Table, about: HistoryFacts, flaws: Mapping[str, str]) -> Iterator[str | Figures]:
    yield from head(("off by, %", "p50", "p95", "max"))
    for name, error in errors(truth, rows).items():
        values = [float(each) for each in np.percentile(error, (50, 95, 100))]
        yield Figures("load errors", {"of": name, **dict(zip(("p50", "p95", "max"), values, strict=True))})
        yield row((name, *(f"{100 * each:.2f}" for each in values)))
    yield ""
    share, width = interval(truth, rows)
    yield Figures("growth interval", {"holds": share, "width": width})
    yield (
        f"Growth is that of topics and partitions that grow or shrink by at least {LEAST_GROWTH:.0%} a month. Plans "
        "use that of topics: the mean of their partitions' by rate. One who knows each topic's curve and the kind of "
        "noise fits a line to all samples of a partition: no estimate without bias is closer. The 95 % "
        f"interval of growth holds the true value for {share:.1%} of the partitions; half of the intervals are wider "
        f"than {width:.1%} of the traffic."
    )
    yield ""
    yield from head(("flaw", "put in", "found"))
    for flaw, profile_name in flaws.items():
        found_count = about.findings.counts[profile_name]
        yield Figures("load flaws", {"flaw": flaw, "put_in": truth.counted[flaw], "found": found_count})
        yield row((profile_name.replace("_", " "), f"{truth.counted[flaw]:,}", f"{found_count:,}"))
