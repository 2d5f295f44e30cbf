"""`planner failures` and `planner restart`: what breaks when brokers fail, and what a rolling restart refuses."""

import shlex
from pathlib import Path
from typing import Any

import click

from planner.cli.engine import IN_PROCESS, EngineOptions, computed, engine_options, on_spark
from planner.cli.output import FILE, FOLDER, PATH, Format, echo_line, format_option, refuse_given, say, show_found
from planner.export import folder_check, output_folder, templated_files
from planner.inputs.spec import reading
from planner.model.errors import SetupError, StalePlanError
from planner.plan import plan_file
from planner.plan.document import codec
from planner.plan.document.plan_types import RestartDocument
from planner.report import markdown
from planner.sweep import candidates_file
from planner.whatif import failure_rows, failures_report, restart_steps
from planner.whatif.failing_brokers import KINDS, MOST, RACKS
from planner.whatif.failures_report import Subject


def find(path: Path, plan: Path | None) -> Subject:
    """The spec and the plan to study: a spec with the plan beside it, if there is one, or a plan with its spec.

    StalePlanError if the files that a plan was made from have changed; a plan that was only found beside the spec is
    left out then.
    """
    if path.is_dir() or path.name == "plan.json":
        if plan is not None:
            raise SetupError(f"{path} is a plan already; allowed: a plan, or a spec with --plan")
        return _of_plan(_spec_of(path), path, None)
    beside = path.with_suffix(".plan")
    if plan is None and not (beside / "plan.json").is_file():
        note = f"there is no plan beside the spec, so only today is shown; planner whatif {path.name} makes one"
        return Subject.of(reading.load(path), None, (note,))
    return _of_plan(path, plan or beside, beside if plan is None else None)


def _spec_of(path: Path) -> Path:
    """The spec that a plan was made from: the plan has its name, and it has to be beside the plan's folder."""
    folder = path if path.is_dir() else path.parent
    name = plan_file.read(path).inputs[0].path
    found = folder.resolve().parent / name
    if not found.is_file():
        raise SetupError(f"{path}: its spec {name!r} isn't beside it; allowed: planner failures SPEC --plan {path}")
    return folder.parent / name if folder.parent != folder else found


def _of_plan(path: Path, plan: Path, found: Path | None) -> Subject:
    """The spec with its plan. One `found` beside it is left out, with a note, if it was made from other files."""
    spec, made = reading.load(path), plan_file.read(plan)
    if plan_file.of_same_files(made, spec):
        return Subject.of(spec, made)
    if found is None:
        raise StalePlanError(f"{plan}: isn't made from {path} and its state as they are now; make the plan again")
    note = (
        f"{found.name} was made from files that have changed, so only today is shown; "
        f"planner whatif {path.name} makes it again"
    )
    return Subject.of(spec, None, (note,))


class _Kind(click.ParamType[str]):
    """A value of `--of`: `brokers`, `racks`, `pairs`, or a number of brokers."""

    name = "KIND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text in KINDS or (text.isdecimal() and text.isascii() and 1 <= int(text) <= 1000):
            return text if text in KINDS else str(int(text))
        return self.fail(
            f"{text!r} isn't possible here; allowed: {', '.join(KINDS)}, or a number of brokers", param, ctx
        )


@click.command()
@click.argument("path", metavar="SPEC|PLAN", type=PATH)
@click.option("--plan", type=PATH, help="SPEC's plan. [default: SPEC's folder, with .plan]")
@click.option(
    "--of",
    multiple=True,
    type=_Kind(),
    help="brokers, racks, pairs, or how many brokers fail together. May be repeated. [default: the first three]",
)
@click.option(
    "--scenarios",
    type=click.IntRange(min=1, max=50_000_000),
    default=MOST,
    show_default=True,
    help="With --of a number: the most sets to simulate; more are sampled.",
)
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), default=0, help="Seed of the random sample.")
@click.option("--rows", type=FILE, help="Parquet file to write every row to.")
@engine_options(f"spark with --of a number, else {IN_PROCESS}")
@format_option
def failures(
    path: Path,
    plan: Path | None,
    of: tuple[str, ...],
    scenarios: int,
    seed: int,
    rows: Path | None,
    engine: EngineOptions,
    form: Format,
) -> int:
    """Show what breaks when brokers or racks of SPEC fail.

    Today, in each batch of its plan, and afterwards.
    """
    if not any(kind.isdecimal() for kind in of):
        refuse_given("is for sets of any number of brokers; allowed: with --of 3, for example", "scenarios", "seed")
    if rows is not None:
        _require_free(rows, path, plan)
    subject = find(path, plan)
    if RACKS in of and not subject.problem.rack_names:
        raise SetupError(f"--of racks: no broker of {path} has a rack; allowed: brokers, pairs, or a number of brokers")
    if rows is not None:
        of_spec = _spec_of(path) if path.is_dir() or path.name == "plan.json" else path
        output_folder.require_unread("--rows", rows, reading.files_read(of_spec, subject.spec))
    # A single broker has no pairs.
    kinds = of or KINDS[: 3 if len(subject.problem.broker_ids) > 1 else 2]
    wanted = failure_rows.all_scenarios(subject.problem, kinds, scenarios, seed)
    study = failure_rows.study(subject.spec, subject.problem, subject.batches, wanted)
    found = computed(
        engine,
        # Many scenarios are worked out on Spark.
        on_spark(engine, otherwise=any(each.kind not in KINDS for each in wanted)),
        lambda whatif, spark: whatif.failures(spark, study, wanted, partitions=engine.partitions),
        lambda: failure_rows.run(study, wanted),
    )
    if rows is not None:
        try:
            output_folder.replace_file(rows, candidates_file.encoded(found))
        except OSError as error:
            raise SetupError(f"{rows}: can't be written: {error.strerror}") from error
    document = failures_report.document(subject, wanted, found)
    show_found(form, lambda: codec.as_json(document), lambda: failures_report.view(document))
    return 0


def _require_free(rows: Path, path: Path, plan: Path | None) -> None:
    """SetupError for a file of rows that can't be written, or that holds something else, or what is to be read."""
    output_folder.require_writable("--rows", rows)
    folder = path.parent if path.name == "plan.json" else path
    of_spec = plan or path.with_suffix(".plan")
    read = (folder, _spec_of(path) if folder.is_dir() else of_spec)
    output_folder.require_unread("--rows", rows, read, output_folder.PARQUET)


def rendered(made: RestartDocument, states: bytes = b"") -> dict[str, bytes]:
    """The files of a restart's folder but for their digests; `states` are today's replica lists."""
    return {
        **templated_files.restart_files(made, states),
        "report.md": markdown.render(restart_steps.view(made)).encode(),
    }


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option("-o", "--out", type=FOLDER, help="Folder to write, with a playbook.")
@click.option("--at-most", type=click.IntRange(min=1), help="Brokers in a step at most. [default: those of a rack]")
@format_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if a step refuses writes or has no leader.")
def restart(path: Path, out: Path | None, at_most: int | None, form: Format, detailed_exitcode: bool) -> int:
    """Show in which order to restart the brokers of SPEC.

    Goes rack by rack. Brokers restart together if that takes no partition below its min.insync.replicas. For each
    step, shows which partitions refuse writes with acks=all or have no leader, and which are one failure from that.

    The folder has a playbook that restarts the brokers with your own tasks, waits until all replicas are in sync
    again, and elects the preferred leaders.
    """
    spec = reading.load(path)
    if out is not None:
        output_folder.check(out, output_folder.RESTART)
    made = restart_steps.document(spec, at_most)
    if out is not None:
        output_folder.write(out, folder_check.with_sums(rendered(made, restart_steps.states(spec))), say)
    show_found(form, lambda: codec.as_json(made), lambda: restart_steps.view(made))
    if out is not None:
        tasks = "-e kafka_reassign_restart_tasks=FILE_WITH_YOUR_TASKS"
        echo_line(f"next: cd {shlex.quote(str(out / 'ansible'))} && ansible-playbook restart.yml {tasks}", err=True)
    return 2 if detailed_exitcode and made.refusing else 0
