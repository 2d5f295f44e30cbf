"""The steps of the commands: read, sweep, choose, render, write. They use files and processes."""

import pickle
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from planner.approval import plan_check, resumed_plan
from planner.approval.cluster_now import Sources, read_now, with_load
from planner.cli import fleet, one_spec
from planner.cli.engine import EngineOptions, Phases, on_spark, opened, phases_shown, workers_here
from planner.cli.fleet import FleetJob, FleetPlan
from planner.cli.one_spec import Made, SpecFacts, Steps, planned
from planner.export import output_folder
from planner.export.folder_check import FolderEntry, digest
from planner.export.folder_swap import Say
from planner.model import interrupts
from planner.model.errors import PlannerError, SetupError, StalePlanError, UnsafePlanError
from planner.model.file_reading import BOUND, read_bytes
from planner.model.formats import counted
from planner.model.generated_text import is_as_written
from planner.plan import bound_json, build, plan_file
from planner.plan.document.plan_types import Plan
from planner.report import markdown as report_markdown
from planner.sweep import candidates_file, choice, evaluate
from planner.sweep.candidates import without_pandas
from planner.sweep.choice import Alternative
from planner.sweep.evaluate import Search
from planner.sweep.sweep_result import SweepResult

T = TypeVar("T")
Sweeper = Callable[[Sequence[Search]], Sequence[SweepResult]]


@dataclass(frozen=True)
class WhatifOptions(EngineOptions):
    """The options of `whatif`, as given on the command line."""

    out: Path | None = None
    candidates: int | None = None
    seed: int | None = None


def whatif(path: Path, options: WhatifOptions, errors: Console) -> FleetPlan:
    """Plans a spec and writes its output folder."""
    return whatif_fleet([path], options, errors, lambda planned: planned)[0]


def whatif_fleet(
    arguments: Sequence[Path], options: WhatifOptions, errors: Console, told: Callable[[FleetPlan], T]
) -> tuple[T, ...]:
    """Plans all specs in one sweep, and writes their output folders: all of them, or none if any spec is refused.

    Returns `told` of each plan, called after it is written, so that the plans themselves needn't stay in memory.
    """
    without_pandas()
    spark = on_spark(options, otherwise=True)
    jobs = fleet.jobs(arguments, options.out)
    say = partial(errors.print, markup=False, emoji=False, highlight=False, soft_wrap=True)
    with phases_shown(errors) as phase:
        make: Callable[..., Generator[Made, None, None]] = partial(_made, spark=spark)
        # If each worker gets at least two specs, workers take whole specs. With fewer, they share the candidates, so
        # that all take equally long. The number of workers elsewhere is known only once the session is open.
        if spark and len(jobs) >= 2 * ((here := workers_here(options)) or 1):
            make = _made_by_workers if here else _made_on_cluster
        try:
            with closing(make(jobs, options, phase)) as made:
                return _written(jobs, made, say, told)
        except UnsafePlanError as error:
            # So that nobody mistakes an older plan for the refused one.
            old = [
                f"{job.folder} still has the plan made before"
                for job in jobs
                if (job.folder / output_folder.PLAN).is_file()
            ]
            error.lines += tuple(old)
            raise


def _made(
    jobs: Sequence[FleetJob], options: WhatifOptions, phase: Phases, *, spark: bool
) -> Generator[Made, None, None]:
    """Reads and plans every spec in this process, with one sweep for all their candidates."""
    with ExitStack() as stack:
        sweep: Sweeper = partial(_swept_here, phase=phase)
        if spark:
            sweep = partial(_swept_on, stack.enter_context(opened(options)), options, phase)
        phase.begin("reading the state")
        tried = fleet.each(
            [job.spec for job in jobs],
            lambda number: one_spec.alternatives(jobs[number], options.candidates, options.seed),
        )
        yield from _planned(jobs, tried, sweep, phase)


def _planned(
    jobs: Sequence[FleetJob], tried: Sequence[Sequence[Alternative]], sweep: Sweeper, phase: Phases
) -> Generator[Made, None, None]:
    """Sweeps all alternatives of all specs at once. All plans are made before the first one is yielded."""
    wanted = [one_spec.search(job, each) for job, of_job in zip(jobs, tried, strict=True) for each in of_job]
    _require_different([each.scores.path for each in wanted if each.scores is not None])
    results, specs = iter(sweep(wanted)), [job.spec for job in jobs]
    swept = [choice.swept(of_job, list(islice(results, len(of_job)))) for of_job in tried]
    phase.begin("choosing the plan and proving its bound")
    plans = fleet.each(
        specs, lambda at: one_spec.with_report_sections(specs[at], swept[at][0].spec, build.planned(swept[at]))
    )
    phase.begin("writing the files")
    for each, of_job in zip(plans, swept, strict=True):
        yield Made(each.plan, one_spec.files_of(each.plan, one_spec.unrendered_files(each, choice.scores(of_job))))


def _made_by_workers(jobs: Sequence[FleetJob], options: WhatifOptions, phase: Phases) -> Generator[Made, None, None]:
    """Reads and plans every spec as a whole in one of Spark's workers, or in this process until they are ready."""
    from spark_jobs import specs as spark_specs

    with interrupts.temporary_folder("planner-fleet-") as folder, opened(options) as session:
        steps = Steps(jobs, options.candidates, options.seed, folder)
        refused = spark_specs.specs_beside(
            session,
            (steps.read, steps.plan),
            len(jobs),
            partial(_checked, jobs),
            partitions=options.partitions,
            progress=partial(phase.count, "planning specs"),
            helps=not (options.master or options.partitions),
        )
        fleet.each([job.spec for job in jobs], lambda at: one_spec.value(refused[at]))
        phase.begin("writing the files")
        yield from steps.made()


def _made_on_cluster(jobs: Sequence[FleetJob], options: WhatifOptions, phase: Phases) -> Generator[Made, None, None]:
    """Reads every spec in this process, and plans it as a whole in one of Spark's workers, which lack its files."""
    from spark_jobs import carrier
    from spark_jobs import specs as spark_specs

    with interrupts.temporary_folder("planner-fleet-") as folder, opened(options) as session:
        session.submit(carrier.cores, more=True)
        phase.begin("reading the state")
        steps, numbers = Steps(jobs, options.candidates, options.seed, folder), range(len(jobs))
        read = _checked(jobs, [steps.read(number) for number in numbers])
        if len(jobs) < 2 * session.result():
            tried = [pickle.loads(steps.pickled(number)).tried for number in numbers]
            yield from _planned(jobs, tried, partial(_swept_on, session, options, phase), phase)
            return
        there = [number for number in numbers if not read[number].only_here]
        refused = dict[int, PlannerError | None]()

        def plan(spark: Any) -> None:
            for number, made in spark_specs.sent(spark, planned, there, steps.pickled, options.partitions):
                refused[number] = steps.keep(number, made)
                phase.count("planning specs", len(refused), len(jobs))

        session.submit(plan)
        refused |= {number: steps.plan(number) for number in numbers if read[number].only_here}
        session.result()
        fleet.each([job.spec for job in jobs], lambda at: one_spec.value(refused[at]))
        phase.begin("writing the files")
        yield from steps.made()


def _checked(jobs: Sequence[FleetJob], found: Sequence[SpecFacts | PlannerError]) -> tuple[SpecFacts, ...]:
    """The facts about each spec that was read; one error with all errors if any spec has one."""
    told = fleet.each([job.spec for job in jobs], lambda at: one_spec.value(found[at]))
    _require_different([path for each in told for path in each.scores])
    return told


def _require_different(paths: Sequence[str]) -> None:
    """Raises SetupError if two sweeps would write their candidates' rows into the same folder."""
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise SetupError(f"sweep.scores: {twice} is that of two clusters of one name; allowed: a folder for each")


def require_beside(out: Path, spec: Path) -> None:
    """Raises SetupError if a spec would be written to another folder than that of the spec it is made from."""
    if out.resolve().parent != spec.resolve().parent:
        allowed = f"allowed: {spec.parent / out.name}"
        raise SetupError(f"--output {out}: isn't beside {spec}, whose paths are relative; {allowed}")


def require_unchanged(out: Path, command: str, title: str) -> None:
    """Raises SetupError if `out` isn't what the command wrote under this title, because somebody may have edited it."""
    output_folder.require_outside_plans(out.resolve(), str(out))
    if out.exists() and not (out.is_file() and is_as_written(out.read_bytes(), title)):
        raise SetupError(
            f"{out}: isn't what {command} wrote; allowed: a new file, or what it wrote and nobody has changed since"
        )


def _written(jobs: Sequence[FleetJob], made: Iterable[Made], say: Say, told: Callable[[FleetPlan], T]) -> tuple[T, ...]:
    """Writes every plan's folder, each completely or not at all. An error names the folders written before it."""
    found, done = list[T](), list[str]()
    for job, (plan, files) in zip(jobs, made, strict=True):
        try:
            found.append(told(FleetPlan(job, plan, write(job.folder, files, say))))
        except SetupError as error:
            before = f"; written before that: {', '.join(done)}" if done else ""
            raise SetupError(*error.lines[:-1], f"{error.lines[-1]}{before}") from error
        done.append(str(job.folder))
    return tuple(found)


def write(folder: Path, files: Mapping[str, bytes], say: Say) -> tuple[str, ...]:
    """Writes the files of a plan's folder, and returns their paths.

    `say` gets a line if this waits for another writer, and if an earlier writer was killed.
    """
    output_folder.write(folder, files, say)
    return tuple(str(folder / name) for name in sorted(files))


def render(path: Path, out: Path, say: Say = output_folder.quiet) -> tuple[str, ...]:
    """Writes a plan's files to a folder, and returns their paths. StalePlanError if a copied file isn't the plan's."""
    plan, names = plan_file.read(path), (bound_json.FILE, candidates_file.FILE)
    beside = {name: file for name in names if (file := _beside(path, name)).is_file()}
    entries = {name: FolderEntry.of(file) for name, file in beside.items()}
    made = plan_check.bound_by_digest(_beside(path, ""), plan, entries)
    others = {name: read_bytes(file, BOUND) for name, file in beside.items()}
    for name, content in others.items():
        if digest(content) != made.get(name):
            raise StalePlanError(f"{beside[name]}: isn't the file that was made; allowed: that file, or none")
    return write(out, one_spec.files_of(plan, others), say)


def check_bound(path: Path) -> bound_json.CheckedBound | None:
    """Verifies the bound of a plan, or of the plan in a folder; None if it copies nothing. PlannerError if it has none,
    or if it doesn't hold.
    """
    plan, file = plan_file.read(path), _beside(path, bound_json.FILE)
    if plan.bound.sha256 is None:
        if plan.resumes:
            rest_of = plan.resumes.plan_id[:12]
            raise PlannerError(f"{path}: the plan finishes plan {rest_of}, whose bound is to be checked")
        if any(batch.replicas_moved for batch in plan.batches):
            raise PlannerError(f"{path}: the plan has no bound to check: {plan.bound.proof}")
        return None
    try:
        return bound_json.check(plan, read_bytes(file, BOUND), str(file))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        raise PlannerError(f"{file}: can't be read as the bound of a plan: {error}") from error


def _beside(path: Path, name: str) -> Path:
    """Another file of a plan's folder, by the path of its plan.json or of the folder."""
    return (path if path.is_dir() else path.parent) / name


def markdown(plan: Plan, folder: str | None = None, *, whole: bool) -> str:
    """The plan as the `whole` report.md, or as the short comment at its beginning, for a plan in `folder`."""
    return report_markdown.report(plan, one_spec.pages_of(plan)) if whole else report_markdown.comment(plan, folder)


def _swept_on(session: Any, options: WhatifOptions, phase: Phases, wanted: Sequence[Search]) -> Sequence[SweepResult]:
    """Runs the sweeps on Spark. If an option asks for its workers, only they do the work, even if it is small."""
    from spark_jobs import sweep as spark_sweep

    named = options.master or options.remote or options.partitions
    name = f"sweeping {counted(sum(len(each.candidates) for each in wanted), 'candidate')}, tasks"
    return spark_sweep.run_beside(
        session,
        wanted,
        partitions=options.partitions,
        progress=partial(phase.count, name),
        helps=None if named else partial(phase.count, "sweeping candidates"),
    )


def _swept_here(wanted: Sequence[Search], phase: Phases) -> Sequence[SweepResult]:
    """Runs the sweeps here, one after the other, with one count of all candidates."""
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
    """Plans the rest of a plan, from the cluster's state in `sources` and a load profile, and writes its folder.

    Returns the plan and the written paths. StalePlanError if the plan was changed, or if the cluster isn't between the
    plan's start and target; UnsafePlanError if the rest exceeds a limit. An expired plan may be resumed, because the
    rest is a new plan that needs its own approval.
    """
    if not sources.any:
        raise SetupError("the cluster's state is missing; allowed: --state, --bootstrap-servers, or both")
    plan_check.require_past(captured_at, "--captured-at")
    if out.resolve() == (path if path.is_dir() else path.parent).resolve():
        raise SetupError(
            f"--out {out}: has the rollback of what is applied already; allowed: another folder than {path}'s"
        )
    checked = plan_check.check(
        path, Sources(), one_spec.rendered_files, plan_check.Wanted(now=datetime.min.replace(tzinfo=UTC))
    )
    plan_check.require_none(checked.refusals)
    output_folder.check(out)
    now = read_now(sources, with_log_dirs=any(row.log_dirs for row in checked.made.partitions))
    if load is not None:
        now = with_load(now, load)
    rest = resumed_plan.resumed(checked.made, now, captured_at=captured_at, leave_moved=leave_moved)
    return rest, write(out, one_spec.files_of(rest, {}), say)
