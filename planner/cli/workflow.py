"""What the commands do, step by step: read, sweep, choose, render, write. Files and processes are touched here.

A command computes on Spark or in this process, with the same result. `whatif` runs on Spark. The other commands run in
this process, unless an option of Spark's is given; `failures` of any K brokers at once are so many that they run on
Spark, too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from planner.approval import plan_check, remaining_plan
from planner.approval.cluster_now import Sources, read_now, with_load
from planner.cli import fleet
from planner.cli.fleet import FleetPlan, Job
from planner.cli.one_spec import (
    Asked,
    Made,
    Steps,
    alternatives,
    files_of,
    rendered_files,
    search,
    value,
    with_sections,
)
from planner.export import folder_check, output_folder
from planner.export.folder_swap import Say
from planner.inputs.spec import reading
from planner.model import interrupts
from planner.model.errors import PlannerError, SetupError
from planner.model.file_reading import BOUND, read_bytes
from planner.model.formats import counted, number
from planner.plan import bound_file, build, plan_file
from planner.plan.document.plan_types import Plan
from planner.report import markdown as report_markdown
from planner.sweep import candidates_file, choice, evaluate
from planner.sweep.candidates import without_pandas
from planner.sweep.evaluate import Search
from planner.sweep.sweep_result import SweepResult
from planner.whatif import in_plan


@dataclass(frozen=True)
class EngineOptions:
    """The options that say where a command computes; with `engine` None the command decides."""

    engine: Literal["spark", "local"] | None = None
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def spark_options(command: Callable[..., int]) -> Callable[..., int]:
    """`--master`, `--remote` and `--partitions`."""
    for option in (
        click.option(
            "--partitions", type=click.IntRange(min=1), help="Spark partitions; the result doesn't depend on it."
        ),
        click.option("--remote", help="Spark Connect server, such as sc://host:15002."),
        click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]"),
    ):
        command = option(command)
    return command


def engine_options(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """`--engine`, with what it is by default, and the options of Spark."""
    engine = click.option("--engine", type=click.Choice(["spark", "local"]), help=f"[default: {default}]")
    return lambda command: engine(spark_options(command))


IN_PROCESS = "local, or spark with one of the next options"


def on_spark(options: EngineOptions, *, otherwise: bool) -> bool:
    """True where a command computes on Spark; `otherwise` decides where no option does. SetupError: conflicts."""
    given: list[tuple[str, Any]] = [(name, getattr(options, name)) for name in ("master", "remote", "partitions")]
    named = [name for name, value in given if value is not None]
    if options.engine == "local" and named:
        raise SetupError(f"--{named[0]} is Spark's; allowed: --engine spark, or leave it out")
    if options.master and options.remote:
        raise SetupError("--master and --remote exclude each other; allowed: one of them")
    return options.engine == "spark" or (options.engine is None and (otherwise or bool(named)))


Sweeper = Callable[[Sequence[Search]], Sequence[SweepResult]]


@dataclass(frozen=True)
class WhatifOptions(EngineOptions):
    """The options of `whatif`, as given on the command line."""

    out: Path | None = None
    candidates: int | None = None
    seed: int | None = None


def validate(arguments: Sequence[Path]) -> tuple[Path, ...]:
    """The files of the specs, all of them valid; SpecError with every finding of all of them."""
    specs = fleet.specs(arguments)
    fleet.each(specs, lambda number: reading.load(specs[number]))
    return specs


def whatif(path: Path, options: WhatifOptions, errors: Console) -> tuple[Plan, tuple[str, ...]]:
    """Plan a spec and write the output folder: the plan, and the paths written."""
    (planned,) = whatif_fleet([path], options, errors)
    return planned.plan, planned.files


def whatif_fleet(arguments: Sequence[Path], options: WhatifOptions, errors: Console) -> tuple[FleetPlan, ...]:
    """Plan all specs in one sweep, and write their output folders: all of them, or none where any spec is refused."""
    without_pandas()
    spark = on_spark(options, otherwise=True)
    jobs = fleet.jobs(arguments, options.out)
    asked = Asked(options.candidates, options.seed)
    say = partial(errors.print, markup=False, emoji=False, highlight=False, soft_wrap=True)
    with phases_shown(errors) as phase:
        if spark and _for_workers(options, len(jobs)):
            return _written(jobs, _made_by_workers(jobs, asked, options, phase), say)
        with closing(_made(jobs, asked, options, phase, spark=spark)) as made:
            return _written(jobs, made, say)


def _made(
    jobs: Sequence[Job], asked: Asked, options: WhatifOptions, phase: Phases, *, spark: bool
) -> Generator[Made, None, None]:
    """Every spec read and planned by this process, with one sweep for all of their candidates."""
    specs = [job.spec for job in jobs]
    with _sweeper(options, phase, spark=spark) as sweep:
        phase.begin("reading the state")
        tried = fleet.each(specs, lambda number: alternatives(jobs[number], asked))
        # All alternatives of all specs are swept in one go.
        wanted = [search(job, each) for job, of_job in zip(jobs, tried, strict=True) for each in of_job]
        _require_different([each.scores.path for each in wanted if each.scores is not None])
        results = iter(sweep(wanted))
        swept = [choice.swept(of_job, list(islice(results, len(of_job)))) for of_job in tried]
        phase.begin("choosing the plan and proving its bound")
        plans = fleet.each(specs, lambda at: with_sections(specs[at], swept[at][0].spec, build.planned(swept[at])))
        phase.begin("writing the files")
        for planned, of_job in zip(plans, swept, strict=True):
            yield Made(planned.plan, files_of(planned, choice.scores(of_job)))


def _for_workers(options: WhatifOptions, specs: int) -> bool:
    """True where Spark's workers take whole specs: they are on this machine, and have two each at the least.

    Of fewer the candidates are dealt to the workers, as these take equally long then.
    """
    from spark_jobs import session

    master = options.master or session.LOCAL
    return options.remote is None and session.is_local(master) and specs >= 2 * session.local_cores(master)


def _made_by_workers(jobs: Sequence[Job], asked: Asked, options: WhatifOptions, phase: Phases) -> Sequence[Made]:
    """Every spec read and planned as a whole by one of Spark's workers, or by this process until they are ready."""
    from spark_jobs import sweep as spark_sweep

    specs = [job.spec for job in jobs]
    with interrupts.temporary_folder("planner-fleet-") as folder, _opened(options) as opened:
        steps = Steps(jobs, asked, folder)

        def checked(found: Sequence[tuple[str, ...] | PlannerError]) -> None:
            _require_different([path for paths in fleet.each(specs, lambda at: value(found[at])) for path in paths])

        made = spark_sweep.specs_beside(
            opened,
            (steps.read, steps.plan),
            len(jobs),
            checked,
            partitions=options.partitions,
            progress=partial(phase.count, "planning specs"),
            helps=not (options.master or options.partitions),
        )
        phase.begin("writing the files")
        return fleet.each(specs, lambda at: value(made[at]))


def _require_different(paths: Sequence[str]) -> None:
    """SetupError where two sweeps would write their candidates' rows into the same folder."""
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise SetupError(f"sweep.scores: {twice} is that of two clusters of one name; allowed: a folder for each")


def require_beside(out: Path, spec: Path) -> None:
    """SetupError for a spec to be written that isn't in the folder of the one that it is made of."""
    if out.resolve().parent != spec.resolve().parent:
        allowed = f"allowed: {spec.parent / out.name}"
        raise SetupError(f"--output {out}: isn't beside {spec}, whose paths are relative; {allowed}")


def _written(jobs: Sequence[Job], made: Iterable[Made], say: Say) -> tuple[FleetPlan, ...]:
    """Write every plan's folder; each is all or nothing, and where the disk ends between two the error says so."""
    done: list[FleetPlan] = []
    for job, (plan, files) in zip(jobs, made, strict=True):
        try:
            done.append(FleetPlan(job, plan, _write(job.folder, files, say)))
        except SetupError as error:
            before = f"; written before that: {', '.join(str(each.job.folder) for each in done)}" if done else ""
            raise SetupError(*error.lines[:-1], f"{error.lines[-1]}{before}") from error
    return tuple(done)


def write_planned(folder: Path, planned: build.Planned, rows: pa.Table, say: Say) -> tuple[str, ...]:
    """Write a plan's files, those of its bound and of the candidates' `rows` too; the paths written."""
    return _write(folder, files_of(planned, rows), say)


def write_plan(
    folder: Path, plan: Plan, others: Mapping[str, bytes], say: Say = output_folder.quiet
) -> tuple[str, ...]:
    """Write a plan's files, others that only its making knows, and the digests of all; the paths written.

    `say` gets a line where another writer is waited for, and where an earlier one was killed.
    """
    return _write(folder, folder_check.with_sums(rendered_files(plan) | dict(others)), say)


def _write(folder: Path, files: Mapping[str, bytes], say: Say) -> tuple[str, ...]:
    output_folder.write(folder, dict(files), say)
    return tuple(str(folder / name) for name in sorted(files))


def render(path: Path, out: Path, say: Say = output_folder.quiet) -> tuple[str, ...]:
    """Write a plan's files into a folder; the paths written."""
    beside = {name: _beside(path, name) for name in (bound_file.FILE, candidates_file.FILE)}
    others = {name: read_bytes(file, BOUND) for name, file in beside.items() if file.is_file()}
    return write_plan(out, plan_file.read(path), others, say)


def check_bound(path: Path) -> bound_file.CheckedBound:
    """The bound of a plan, or of the one in a folder, worked out again; PlannerError where it doesn't hold."""
    plan, file = plan_file.read(path), _beside(path, bound_file.FILE)
    if plan.bound.sha256 is None:
        why = "the plan moves nothing, so it has no bound to check"
        if plan.resumes:
            why = f"the plan finishes plan {plan.resumes.plan_id[:12]}, whose bound is to be checked"
        raise PlannerError(f"{path}: {why}")
    try:
        return bound_file.check(plan, read_bytes(file, BOUND), str(file))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise PlannerError(f"{file}: can't be read as the bound of a plan: {error}") from error


def _beside(path: Path, name: str) -> Path:
    """Another file of the folder of a plan.json, or of that folder."""
    return (path if path.is_dir() else path.parent) / name


def markdown(plan: Plan, folder: str | None = None, *, whole: bool) -> str:
    """The plan as the whole of report.md, or as the short comment that report.md begins with, on a plan in `folder`."""
    return report_markdown.report(plan, in_plan.pages(plan)) if whole else report_markdown.comment(plan, folder)


def warm_spark(errors: Console) -> str:
    """Make the class data archive of local Spark sessions; what was made."""
    from spark_jobs import warm  # the only door to Spark, opened when it is needed

    with errors.status("starting Spark to record which classes it loads"):
        return warm.warm()


@contextmanager
def _sweeper(options: WhatifOptions, phase: Phases, *, spark: bool) -> Iterator[Sweeper]:
    """A function that runs all sweeps, on Spark or in this process."""
    if not spark:
        yield partial(_swept_here, phase=phase)
        return
    from spark_jobs import sweep as spark_sweep

    with _opened(options) as opened:

        def swept(wanted: Sequence[Search]) -> Sequence[SweepResult]:
            # Where Spark's workers are asked for, they do the work, however little it is.
            named = options.master or options.remote or options.partitions
            name = f"sweeping {counted(sum(len(each.candidates) for each in wanted), 'candidate')}, tasks"
            return spark_sweep.run_beside(
                opened,
                wanted,
                partitions=options.partitions,
                progress=partial(phase.count, name),
                helps=None if named else partial(phase.count, "sweeping candidates"),
            )

        yield swept


@contextmanager
def _opened(options: EngineOptions) -> Iterator[Any]:
    """A session that starts at once, while the caller still reads the specs; where that fails, Spark is ended."""
    from spark_jobs import carrier, java, launch, session

    record = java.Recording()
    opens = session.open_session(master=options.master, remote=options.remote, recording=record)
    try:
        with launch.opened(opens, carrier.start_workers) as opened:
            yield opened
    except BaseException:
        record.finish(0)
        raise
    context = click.get_current_context(silent=True)
    end = partial(record.finish, close=partial(opened.close, failed=False))
    # Java may still write its archive of classes: after the answer is printed.
    context.call_on_close(end) if context else end()


def _swept_here(wanted: Sequence[Search], phase: Phases) -> Sequence[SweepResult]:
    """The sweeps one after the other, with one count of all candidates."""
    results, before, total = list[SweepResult](), 0, sum(len(each.candidates) for each in wanted)
    for problem, rows, scores in wanted:

        def progress(done: int, _: int, before: int = before) -> None:
            phase.count("sweeping candidates", before + done, total)

        results.append(evaluate.run(problem, rows, progress, scores))
        before += len(rows)
    return results


def resume(
    path: Path,
    sources: Sources,
    out: Path,
    captured_at: str | None,
    load: Path | None = None,
    *,
    leave_moved: bool,
    say: Say,
) -> tuple[Plan, tuple[str, ...]]:
    """Write what is left of a plan, from the cluster as `sources` and a load profile show it, as a whole plan's folder.

    The plan, and the paths written. StalePlanError where the plan was changed, or the cluster isn't on its way;
    UnsafePlanError where a gate is crossed. A plan that has expired may be resumed: what is left is a plan of its own,
    to be approved anew.
    """
    if not sources.any:
        raise SetupError("the cluster's state is missing; allowed: --state, --bootstrap-servers, or both")
    plan_check.parse_now(captured_at)
    checked = plan_check.check(path, Sources(), rendered_files, plan_check.Wanted(now=datetime.min.replace(tzinfo=UTC)))
    checked.require_approved()
    output_folder.check(out)
    now = read_now(sources, with_log_dirs=any(row.log_dirs for row in checked.plan.partitions))
    if load is not None:
        now = with_load(now, load)
    rest = remaining_plan.resumed(checked.plan, now, captured_at=captured_at, leave_moved=leave_moved)
    return rest, write_plan(out, rest, {}, say)


@dataclass(frozen=True)
class Phases:
    """The line: the name of the phase, how far it is where that is known, and the time since the command began."""

    progress: Progress
    line: TaskID

    def begin(self, name: str) -> None:
        """The next phase; how long it takes is unknown."""
        self.progress.update(self.line, description=name, completed=0, total=None)

    def count(self, name: str, done: int, total: int) -> None:
        """So many of all are done."""
        text = f"{name}: {number(done)} of {number(total)}"
        self.progress.update(self.line, description=text, completed=done, total=total)


@contextmanager
def phases_shown(console: Console) -> Iterator[Phases]:
    """The line, for as long as the block lasts."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Phases(progress, progress.add_task("", total=None))
