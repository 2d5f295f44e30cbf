"""`planner whatif` for one spec or a fleet of them: reads, sweeps and plans all specs, writes their folders, sums up.

Either every cluster of a fleet gets its plan, or none does.
"""

import os
import pickle
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from planner.cli import one_spec
from planner.cli.engine import EngineOptions, local_worker_count, session_in_background, uses_spark
from planner.cli.one_spec import FleetSteps, PlanFiles, SpecFacts, SpecJob, plan_spec
from planner.cli.output import Phases, phases_shown
from planner.export import output_folder
from planner.export.folder_swap import Say
from planner.model import formats, interrupts
from planner.model.errors import PlannerError, SetupError, SpecError, UnsafePlanError
from planner.model.formats import counted
from planner.plan import build, headline
from planner.plan.document.plan_types import Plan
from planner.report.view import GAP, Column, Lines, Name, Quantity, Sentence, Table, View, ViewSection
from planner.sweep import choice, evaluate
from planner.sweep.candidates import without_pandas
from planner.sweep.choice import Alternative
from planner.sweep.evaluate import Search
from planner.sweep.sweep_result import SweepResult

T = TypeVar("T")
Sweeper = Callable[[Sequence[Search]], Sequence[SweepResult]]

_LONGEST_NAME = 40
_LONGEST_VERDICT = 400


@dataclass(frozen=True)
class WhatifOptions(EngineOptions):
    """The options of `whatif`, as given on the command line."""

    out: Path | None = None
    candidates: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class FleetPlan:
    """A finished job: the plan, and the paths of the written files."""

    job: SpecJob
    plan: Plan
    files: tuple[str, ...]


def whatif(path: Path, options: WhatifOptions, errors: Console) -> FleetPlan:
    """Plans a spec and writes its output folder."""
    return whatif_fleet([path], options, errors, lambda planned: planned)[0]


def whatif_fleet(
    arguments: Sequence[Path], options: WhatifOptions, errors: Console, summarize: Callable[[FleetPlan], T]
) -> tuple[T, ...]:
    """Plans all specs in one sweep, and writes their output folders: all of them, or none if any spec is refused.

    Returns `summarize` of each plan, called after it is written, so that the plans themselves needn't stay in memory.
    """
    without_pandas()
    spark = uses_spark(options, otherwise=True)
    jobs = jobs_of(arguments, options.out)
    say = partial(errors.print, markup=False, emoji=False, highlight=False, soft_wrap=True)
    with phases_shown(errors) as phase:
        make: Callable[..., Generator[PlanFiles, None, None]] = partial(_make_here, spark=spark)
        # If each worker gets at least two specs, workers take whole specs. With fewer, they share the candidates, so
        # that all take equally long. The number of workers elsewhere is known only once the session is open.
        if spark and len(jobs) >= 2 * ((local_workers := local_worker_count(options)) or 1):
            make = _make_by_workers if local_workers else _make_on_cluster
        try:
            with closing(make(jobs, options, phase)) as plans:
                return _write_all(jobs, plans, say, summarize)
        except UnsafePlanError as error:
            # So that nobody mistakes an older plan for the refused one.
            stale = [job.folder for job in jobs if (job.folder / output_folder.PLAN).is_file()]
            error.lines += tuple(f"{folder} still has the plan made before" for folder in stale)
            raise


def _make_here(
    jobs: Sequence[SpecJob], options: WhatifOptions, phase: Phases, *, spark: bool
) -> Generator[PlanFiles, None, None]:
    """Reads and plans every spec in this process, with one sweep for all their candidates."""
    with ExitStack() as stack:
        sweep: Sweeper = partial(_swept_here, phase=phase)
        if spark:
            sweep = partial(_swept_on, stack.enter_context(session_in_background(options)), options, phase)
        phase.begin("reading the state")
        alternatives = each_of(
            [job.spec for job in jobs],
            lambda number: one_spec.alternatives(jobs[number], options.candidates, options.seed),
        )
        yield from _planned(jobs, alternatives, sweep, phase)


def _planned(
    jobs: Sequence[SpecJob], alternatives: Sequence[Sequence[Alternative]], sweep: Sweeper, phase: Phases
) -> Generator[PlanFiles, None, None]:
    """Sweeps all alternatives of all specs at once. All plans are made before the first one is yielded."""
    searches = [one_spec.search(job, each) for job, of_job in zip(jobs, alternatives, strict=True) for each in of_job]
    _require_different([each.scores.path for each in searches if each.scores is not None])
    results, specs = iter(sweep(searches)), [job.spec for job in jobs]
    swept = [choice.swept(of_job, list(islice(results, len(of_job)))) for of_job in alternatives]
    phase.begin("choosing the plan and proving its bound")
    plans = each_of(
        specs,
        lambda index: one_spec.with_report_sections(specs[index], swept[index][0].spec, build.planned(swept[index])),
    )
    phase.begin("writing the files")
    for each, of_job in zip(plans, swept, strict=True):
        yield one_spec.plan_files(each, choice.scores(of_job))


def _make_by_workers(
    jobs: Sequence[SpecJob], options: WhatifOptions, phase: Phases
) -> Generator[PlanFiles, None, None]:
    """Reads and plans every spec as a whole in one of Spark's workers, or in this process until they are ready."""
    from spark_jobs import fleet

    with interrupts.temporary_folder("planner-fleet-") as folder, session_in_background(options) as session:
        steps = FleetSteps(jobs, options.candidates, options.seed, folder)
        refused = fleet.specs_beside(
            session,
            (steps.read_spec, steps.plan),
            len(jobs),
            partial(_checked, jobs),
            partitions=options.partitions,
            progress=partial(phase.count, "planning specs"),
            helps=not (options.master or options.partitions),
        )
        _values(jobs, refused)
        phase.begin("writing the files")
        yield from steps.plans()


def _make_on_cluster(
    jobs: Sequence[SpecJob], options: WhatifOptions, phase: Phases
) -> Generator[PlanFiles, None, None]:
    """Reads every spec in this process, and plans it as a whole in one of Spark's workers, which lack its files."""
    from spark_jobs import fleet, worker_tasks

    with interrupts.temporary_folder("planner-fleet-") as folder, session_in_background(options) as session:
        session.submit(worker_tasks.cores, more=True)
        phase.begin("reading the state")
        steps, numbers = FleetSteps(jobs, options.candidates, options.seed, folder), range(len(jobs))
        facts = _checked(jobs, [steps.read_spec(number) for number in numbers])
        if len(jobs) < 2 * session.result():
            alternatives = [pickle.loads(steps.pickled(number)).alternatives for number in numbers]
            yield from _planned(jobs, alternatives, partial(_swept_on, session, options, phase), phase)
            return
        remote_numbers = [number for number in numbers if not facts[number].only_here]
        refused = dict[int, PlannerError | None]()

        def plan(spark: Any) -> None:
            for number, outcome in fleet.sent(spark, plan_spec, remote_numbers, steps.pickled, options.partitions):
                refused[number] = steps.keep(number, outcome)
                phase.count("planning specs", len(refused), len(jobs))

        session.submit(plan)
        refused |= {number: steps.plan(number) for number in numbers if facts[number].only_here}
        session.result()
        _values(jobs, refused)
        phase.begin("writing the files")
        yield from steps.plans()


def _checked(jobs: Sequence[SpecJob], results: Sequence[SpecFacts | PlannerError]) -> tuple[SpecFacts, ...]:
    """The facts about each spec that was read; one error with all errors if any spec has one."""
    facts = _values(jobs, results)
    _require_different([path for each in facts for path in each.scores])
    return facts


def _values(
    jobs: Sequence[SpecJob], results: Mapping[int, T | PlannerError] | Sequence[T | PlannerError]
) -> tuple[T, ...]:
    """What was found for each spec; one error with all errors if any spec has one."""

    def value_of(number: int) -> T:
        each = results[number]
        if isinstance(each, PlannerError):
            raise each
        return each

    return each_of([job.spec for job in jobs], value_of)


def _require_different(paths: Sequence[str]) -> None:
    """Raises SetupError if two sweeps would write their candidates' rows into the same folder."""
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise SetupError(f"sweep.scores: {twice} is that of two clusters of one name; allowed: a folder for each")


def _write_all(
    jobs: Sequence[SpecJob], plans: Iterable[PlanFiles], say: Say, summarize: Callable[[FleetPlan], T]
) -> tuple[T, ...]:
    """Writes every plan's folder, each completely or not at all. An error names the folders written before it."""
    summaries, done = list[T](), list[str]()
    for job, (plan, files) in zip(jobs, plans, strict=True):
        try:
            summaries.append(summarize(FleetPlan(job, plan, output_folder.write(job.folder, files, say))))
        except SetupError as error:
            before = f"; written before that: {', '.join(done)}" if done else ""
            raise SetupError(*error.lines[:-1], f"{error.lines[-1]}{before}") from error
        done.append(str(job.folder))
    return tuple(summaries)


def _swept_on(session: Any, options: WhatifOptions, phase: Phases, searches: Sequence[Search]) -> Sequence[SweepResult]:
    """Runs the sweeps on Spark. If an option asks for its workers, only they do the work, even if it is small."""
    from spark_jobs import sweep as spark_sweep

    for_workers = options.master or options.remote or options.partitions
    name = f"sweeping {counted(sum(len(each.candidates) for each in searches), 'candidate')}, tasks"
    return spark_sweep.run_beside(
        session,
        searches,
        partitions=options.partitions,
        progress=partial(phase.count, name),
        helps=None if for_workers else partial(phase.count, "sweeping candidates"),
    )


def _swept_here(searches: Sequence[Search], phase: Phases) -> Sequence[SweepResult]:
    """Runs the sweeps here, one after the other, with one count of all candidates."""
    results, before, total = list[SweepResult](), 0, sum(len(each.candidates) for each in searches)
    for problem, rows, scores in searches:

        def progress(done: int, _: int, before: int = before) -> None:
            phase.count("sweeping candidates", before + done, total)

        results.append(evaluate.run(problem, rows, progress, scores))
        before += len(rows)
    return results


def is_fleet(arguments: Sequence[Path]) -> bool:
    """True for several specs, and for any pattern, so that folders don't depend on how many files it matches."""
    return len(arguments) != 1 or _is_pattern(arguments[0])


def specs_of(arguments: Sequence[Path]) -> tuple[Path, ...]:
    """The files that the command line names, directly or by shell-style patterns; SetupError if a pattern matches none.

    A pattern's files are sorted by name; `**` includes folders inside.
    """
    specs: list[Path] = []
    for argument in arguments:
        if not _is_pattern(argument):
            specs.append(argument)
            continue
        names = glob(str(argument), recursive=True)  # noqa: PTH207  pathlib's takes hidden files, which no shell does
        files = [path for path in map(Path, sorted(names)) if path.is_file()]
        if not files:
            raise SetupError(
                f"{argument}: no file matches; allowed: spec files, or a pattern such as 'clusters/*.yaml'"
            )
        specs += files
    return tuple(specs)


def jobs_of(arguments: Sequence[Path], out: Path | None) -> tuple[SpecJob, ...]:
    """The specs, each with its folder: the spec's path with `.plan`; with `out`, that folder, or for a fleet one in it.

    SetupError if a pattern matches nothing, or if two specs have the same folder.
    """
    fleet = is_fleet(arguments)
    by_folder: dict[str, SpecJob] = {}
    for spec in specs_of(arguments):
        folder = spec.with_suffix(".plan") if out is None else out / spec.stem if fleet else out
        job = SpecJob(spec, folder)
        earlier = by_folder.setdefault(os.path.realpath(folder), job)
        if earlier is not job:
            raise SetupError(
                f"{earlier.spec} and {spec} would both be written to {folder}; allowed: one spec a folder, "
                "so specs of different names, each named once"
            )
    return tuple(by_folder.values())


def each_of(specs: Sequence[Path], step: Callable[[int], T]) -> tuple[T, ...]:
    """The result of `step` for each spec, by number; if any is refused, one error with all errors."""
    results: list[T] = []
    refused: list[tuple[Path, PlannerError]] = []
    for number, spec in enumerate(specs):
        try:
            results.append(step(number))
        except PlannerError as error:
            refused.append((spec, error))
    if refused:
        raise refused[0][1] if len(specs) == 1 else _all_refused(refused, len(specs))
    return tuple(results)


def summary(planned: FleetPlan) -> dict[str, Any]:
    """The row of a cluster: verdict, what moves, the gap to the bound in percent, and the plan's folder."""
    plan, own_row = planned.plan, planned.plan.own_row
    sizes_known = plan.cluster.sizes_known
    done = (plan.changes.rebalance != "none" and headline.balance_missed(plan)) or "as asked"
    # Whether there is something to do, and what needs attention.
    verdict: Iterable[str] = (
        headline.first_step_lead(plan) or (done if plan.has_something_to_do else "nothing to do"),
        *headline.racks(plan),
        counted(len(plan.warnings), "warning") if plan.warnings else "",
    )
    return {
        "cluster": plan.cluster.name,
        "spec": str(planned.job.spec),
        "verdict": ", ".join(filter(None, verdict)),
        "has_something_to_do": plan.has_something_to_do,
        "complete": plan.complete,
        "bytes_moved": own_row.bytes_moved if sizes_known else None,
        "replicas_moved": own_row.replicas_moved,
        "leaders_changed": own_row.leaders_changed,
        "least_bytes_moved": plan.bound.least_bytes_moved if sizes_known else None,
        "gap_percent": plan.bound.gap_percent,
        "candidates": plan.candidates.evaluated,
        "folder": str(planned.job.folder),
        "plan_id": plan.plan_id,
    }


def view(rows: Sequence[dict[str, Any]]) -> View:
    """The summary for people."""
    column = Column[dict[str, Any]]

    def above_least(row: dict[str, Any]) -> Quantity:
        """In percent; unknown if bytes are, or if the plan leaves something to do."""
        moved = row["bytes_moved"]
        is_known = row["complete"] and moved is not None
        return Quantity(formats.above_bound(moved or 0, row["least_bytes_moved"]) if is_known else None, GAP)

    columns = (
        column("Cluster", lambda row: Sentence(row["cluster"], _LONGEST_NAME), numeric=False),
        column("Verdict", lambda row: Sentence(row["verdict"], _LONGEST_VERDICT), numeric=False),
        column("Copied", lambda row: Quantity(row["bytes_moved"], "bytes")),
        column("Replicas", lambda row: row["replicas_moved"]),
        column("Leaders", lambda row: row["leaders_changed"]),
        column("Above the minimum", above_least),
        column("Candidates tried", lambda row: row["candidates"]),
        column("Folder", lambda row: Name(row["folder"]), numeric=False),
    )
    plans = Counter(row["cluster"] for row in rows if row["has_something_to_do"])
    steps = "read report.html in each folder, then cd FOLDER/ansible && ansible-playbook apply.yml --check"
    following = f"Next: {steps if plans else 'nothing to apply'}"
    repeated = [
        Sentence(f"{name} has {count} plans, each made as if the others weren't: apply one of them", _LONGEST_VERDICT)
        for name, count in plans.items()
        if count > 1
    ]
    return View("", (ViewSection("", (Table("cluster", rows, columns), Lines((*repeated, following)))),))


def _is_pattern(argument: Path) -> bool:
    """True for a pattern. A path that exists is a file, even if its name looks like a pattern."""
    return any(sign in str(argument) for sign in "*?[") and not argument.exists()


def _all_refused(refused: Sequence[tuple[Path, PlannerError]], count: int) -> PlannerError:
    """All errors as one. The exit code is that of an exceeded limit only if all errors are of this kind."""
    errors = [error for _, error in refused]
    if all(isinstance(error, SpecError) for error in errors):
        return SpecError(finding for error in errors if isinstance(error, SpecError) for finding in error.findings)
    kind = UnsafePlanError if all(isinstance(error, UnsafePlanError) for error in errors) else PlannerError
    lines: list[str] = []
    for spec, error in refused:
        # Findings already name their files.
        lines += error.lines if isinstance(error, SpecError) else (f"{spec}: {error.lines[0]}", *error.lines[1:])
    which_ones = "one of them is" if len(refused) == 1 else f"{len(refused)} of them are"
    return kind(f"no plan was written for any of the {count} specs, as {which_ones} refused:", *lines)
