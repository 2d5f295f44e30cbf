"""What the commands do, step by step: read, sweep, choose, render, write. Files and processes are touched here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from planner import output_folder, plan, report, screen, spec, sweep
from planner import problem as problems
from planner.candidates import candidates
from planner.errors import PlannerError, SetupError
from planner.model import Problem, Spec
from planner.quoting import canonical_json
from planner.render import files as rendered
from planner.sweep import SweepResult


@dataclass(frozen=True)
class Options:
    """The options of `whatif`, as given on the command line."""

    out: Path | None = None
    candidates: int | None = None
    seed: int | None = None
    engine: Literal["spark", "local"] = "spark"
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def load(path: Path) -> Spec:
    """The spec at a path, checked; SpecError with every fault of it."""
    return spec.load(path)


def whatif(path: Path, options: Options, errors: Console) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Plan a spec and write the output folder: the plan, and the paths written."""
    _check_engine(options)
    wish = _with_options(load(path), options)
    out = options.out or path.with_suffix(".plan")
    output_folder.check(out)
    problem = problems.build(wish)
    result = _sweep(problem, candidates(problem, wish.sweep), options, errors)
    document = plan.document(wish, problem, result)
    files = {**_files(document), "candidates.parquet": _parquet(result.scores)}
    output_folder.write(out, files)
    return document, tuple(str(out / name) for name in sorted(files))


def read_plan(path: Path) -> dict[str, Any]:
    """A plan.json, or the one in a folder; PlannerError where it isn't one of ours or was changed."""
    file = path / "plan.json" if path.is_dir() else path
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlannerError(f"{file}: can't be read as a plan: {error}") from error
    plan.check_document(document, str(file))
    return dict(document)


def render(path: Path, out: Path) -> tuple[str, ...]:
    """Write a plan's files into a folder; the paths written."""
    files = _files(read_plan(path))
    output_folder.write(out, files)
    return tuple(str(out / name) for name in sorted(files))


def markdown(document: dict[str, Any]) -> str:
    """The plan as report.md."""
    return report.markdown(document)


def show(document: dict[str, Any], files: Sequence[str], console: Console) -> None:
    """The plan on one screen."""
    screen.show(document, files, console)


def warm_spark(errors: Console) -> str:
    """Make the class data archive of local Spark sessions; what was made."""
    from spark_jobs import warm  # the only door to Spark, opened when it is needed

    with errors.status("starting Spark to record which classes it loads"):
        return warm.warm()


def bench(cases: Sequence[str], seed: str, sweep_too: bool) -> Iterator[str]:
    """The benchmark's lines."""
    from planner import bench as benchmark

    return benchmark.lines(cases, seed, sweep_too)


def _check_engine(options: Options) -> None:
    for option in ("master", "remote", "partitions"):
        if options.engine == "local" and getattr(options, option) is not None:
            raise SetupError(f"--{option} is Spark's; allowed: --engine spark, or leave it out")
    if options.master and options.remote:
        raise SetupError("--master and --remote exclude each other; allowed: one of them")


def _with_options(wish: Spec, options: Options) -> Spec:
    """The command line outranks the YAML."""
    count = wish.sweep.candidates if options.candidates is None else options.candidates
    seed = wish.sweep.seed if options.seed is None else options.seed
    return replace(wish, sweep=replace(wish.sweep, candidates=count, seed=seed))


def _sweep(problem: Problem, rows: pa.Table, options: Options, errors: Console) -> SweepResult:
    with _progress(errors) as report_progress:
        if options.engine == "local":
            return sweep.run(problem, rows, report_progress)
        from spark_jobs import session  # planner never imports pyspark; this is its only door
        from spark_jobs import sweep as job

        with session.open_session(master=options.master, remote=options.remote) as spark:
            return job.run(spark, problem, rows, partitions=options.partitions, progress=report_progress)


@contextmanager
def _progress(console: Console) -> Iterator[sweep.Progress]:
    """A bar on a terminal, nothing elsewhere."""
    columns = (TextColumn("sweeping candidates"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("sweep", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _files(document: dict[str, Any]) -> dict[str, bytes]:
    """Everything that is rendered from the plan, by relative path."""
    return {
        **rendered(document),
        "plan.json": canonical_json(document).encode(),
        "report.md": report.markdown(document).encode(),
    }


def _parquet(scores: pa.Table) -> bytes:
    """Every candidate's row; no metadata but the schema's, so equal rows are equal bytes."""
    buffer = BytesIO()
    pq.write_table(scores.replace_schema_metadata(None).combine_chunks(), buffer, compression="zstd")
    return buffer.getvalue()
