"""The benchmark of the sweep: the same candidates without Spark, and through Spark with one worker and with two.

Three jobs on one cluster: a million of Kafka's own placements, with a start index and a shift drawn for every topic,
which cost almost nothing each; the 5,000 candidates of a what-if; and 5,000 candidates of which a fifth are solved.
Each engine is measured in a separate process, and all must name the same best candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter, process_time

from benchmarks import cases
from benchmarks.apart import SparkCost, apart, on_cores, on_spark, peak_bytes
from benchmarks.table import Entries, Figures, head, megabytes, ratio, row
from planner.model import build_problem
from planner.model.problem import Problem
from planner.model.spec import Sweep
from planner.sweep import candidates as space
from planner.sweep import evaluate
from planner.sweep.candidates import CandidateRun, Candidates, without_pandas
from planner.sweep.evaluate import Search
from planner.sweep.sweep_result import SweepResult

CASE, SEED = "expand-small", "public"
DRAWN, WHATIF, SOLVED = "Kafka's placements", "a what-if", "a fifth solved"
JOBS = ((DRAWN, 1_000_000), (WHATIF, 5_000), (SOLVED, 5_000))
WORKERS = (1, 2)

_COLUMNS = (
    "candidates",
    "engine",
    "s with the session's start",
    "s without",
    "CPU s without",
    "CPU s one after the other",
    "candidates/s with",
    "candidates/s without",
    "× one worker, with",
    "× one worker, without",
    "peak memory MB of a Python worker",
    "best candidate",
)


@dataclass(frozen=True)
class Timing:
    """One engine's sweep: wall seconds, those of the start of its session and workers, the peak memory of any one
    worker and of the Python driver, 0 if unknown; the best candidate's number and its bytes moved. `workers` is 0
    without Spark.

    `cpu_seconds` are of all processes, without the start; `chain_seconds` only of the driver, Java and the busiest
    worker, which run one after the other: the time that the sweep would take on an idle machine.
    """

    job: str
    candidates: int
    workers: int
    seconds: float
    session_seconds: float
    peak_bytes: int
    best_candidate: int
    best_bytes_moved: int
    driver_peak_bytes: int = 0
    cpu_seconds: float = 0
    chain_seconds: float = 0

    @property
    def sweep_seconds(self) -> float:
        """Seconds without the session's start."""
        return self.seconds - self.session_seconds


def entries(jobs: Sequence[tuple[str, int]] = JOBS, workers: Sequence[int] = WORKERS) -> Entries:
    """The sweep's Markdown, each line as soon as it is measured."""
    yield f"## Sweep of {CASE}, seed `{SEED}`"
    yield ""
    yield from head(_COLUMNS)
    for job, count in jobs:
        yield from _entries(job, count, workers)
    yield ""
    yield (
        f"`{DRAWN}`: a start index and a shift drawn for every topic, scored from tables. `{WHATIF}`: the candidates "
        "that `planner whatif` tries by itself, about a hundred solved plans among them; "
        f"`{SOLVED}`: the same with `sweep.solved: 1000`. Candidates a second are wall time's; `× one worker` is "
        "how many times faster than Spark with one worker. All processes share as many cores as there are "
        "workers, one without Spark. CPU time is the user's and the system's of all processes; "
        "one after the other: the driver's, Java's and the busiest worker's alone, what a machine would take that has "
        "nothing else to do."
    )


def _entries(job: str, count: int, workers: Sequence[int]) -> Entries:
    first_timing = None
    for worker_count in (0, *workers):
        timing = apart(through_spark, job, count, worker_count) if worker_count else apart(in_this_process, job, count)
        first_timing = first_timing or (timing if worker_count else None)
        yield Figures("sweep", asdict(timing))
        yield row(_cells(timing, first_timing))


def rows(problem: Problem, job: str, count: int) -> Candidates:
    """The candidates of a job, `count` of them."""
    if job == DRAWN:
        return drawn(problem, count)
    return space.candidates(problem, Sweep(candidates=count, solved=count // 5 if job == SOLVED else None))


def drawn(problem: Problem, count: int) -> Candidates:
    """Kafka's classic placements with seeds 1 to `count`; start index and shift are drawn for every topic."""
    return Candidates((CandidateRun("kafka_classic", count, problem.balance, first_seed=1),))


def in_this_process(job: str, count: int) -> Timing:
    """The sweep on one core without Spark, to measure Spark's overhead. Call it in a separate process."""
    on_cores(1)
    problem = _problem()
    candidates = rows(problem, job, count)
    started, cpu = perf_counter(), process_time()
    result = evaluate.run(problem, candidates)
    ended, cpu = perf_counter(), process_time() - cpu
    return _timing(job, 0, SparkCost(ended - started, 0, cpu, cpu, peak_bytes()), result)


def through_spark(job: str, count: int, workers: int) -> Timing:
    """The sweep in a local Spark session with `workers` workers, opened and closed here."""
    # Imported here, so that the other benchmarks run without pyspark.
    from spark_jobs import sweep

    problem = _problem()
    candidates = rows(problem, job, count)
    result, cost = on_spark(workers, lambda spark: sweep.run_fleet(spark, [Search(problem, candidates)])[0])
    return _timing(job, workers, cost, result)


def _problem() -> Problem:
    # The command does the same.
    without_pandas()
    return build_problem.build(cases.to_spec(cases.make(CASE, SEED)))


def _timing(job: str, workers: int, cost: SparkCost, result: SweepResult) -> Timing:
    best = result.top.slice(0, 1).to_pylist()[0]
    seconds, cpu = (cost.seconds, cost.session_seconds), (cost.cpu_seconds, cost.chain_seconds)
    best_figures = best["candidate"], best["bytes_moved"], peak_bytes()
    return Timing(job, result.evaluated, workers, *seconds, cost.worker_peak_bytes, *best_figures, *cpu)


def _cells(timing: Timing, first_timing: Timing | None) -> tuple[str, ...]:
    """The cells of a row; `first_timing` is with one worker, None in the row without Spark."""
    scaled = first_timing or timing
    return (
        f"{timing.candidates:,}, {timing.job}",
        f"Spark local[{timing.workers}]" if timing.workers else "this process, no Spark",
        f"{timing.seconds:.2f}",
        f"{timing.sweep_seconds:.2f}",
        f"{timing.cpu_seconds:.2f}",
        f"{timing.chain_seconds:.2f}",
        f"{timing.candidates / timing.seconds:,.0f}",
        f"{timing.candidates / timing.sweep_seconds:,.0f}",
        ratio(scaled.seconds, timing.seconds) if first_timing else "–",
        ratio(scaled.sweep_seconds, timing.sweep_seconds) if first_timing else "–",
        megabytes(timing.peak_bytes),
        f"{timing.best_candidate:,} ({timing.best_bytes_moved / 1e9:,.3f} GB)",
    )
