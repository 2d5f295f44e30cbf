"""`planner failures`, `restart` and `consumers`: how failures, restarts and changed groups affect clients."""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import structs, to_builtins

from planner.cli.engine import IN_PROCESS, EngineOptions, compute, engine_options, uses_spark
from planner.cli.output import FILE, FOLDER, PATH, SEED, Format, format_option, refuse_given, say, show_found
from planner.export import folder_check, output_folder, templated_files
from planner.inputs.spec import reading
from planner.model.errors import PlannerError, SetupError, StalePlanError, did_you_mean
from planner.model.spec import Spec
from planner.plan import plan_file
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan, RestartDocument
from planner.report import markdown
from planner.sweep import candidates_file
from planner.whatif import (
    consumers_report,
    consumers_sweep,
    failure_simulation,
    failures_report,
    group_events_and_keys,
    restart_steps,
)
from planner.whatif.consumers_report import ConsumersQuestion
from planner.whatif.consumers_sweep import ConsumersSweep
from planner.whatif.failure_sets import KINDS, MOST, RACKS
from planner.whatif.failures_report import Subject
from planner.whatif.group_events_and_keys import Group
from planner.whatif.own_assignors import importable


def find(path: Path, plan: Path | None) -> Subject:
    """The spec and the plan to study: a spec with the plan beside it, if there is one, or a plan with its spec.

    StalePlanError if the files that a plan was made from have changed. A plan that was only found beside the spec is
    left out instead.
    """
    if _is_plan(path):
        if plan is not None:
            raise SetupError(f"{path} is a plan already; allowed: a plan, or a spec with --plan")
        path, plan = _spec_of(path), path
    spec, plan_folder = reading.load(path), path.with_suffix(".plan")
    if plan is not None:
        return Subject.of(spec, _plan_of(path, spec, plan))
    reason, makes = "there is no plan beside the spec", "makes one"
    if (plan_folder / "plan.json").is_file():
        if plan_file.of_same_files(plan_beside := plan_file.read(plan_folder), spec):
            return Subject.of(spec, plan_beside)
        reason, makes = f"{plan_folder.name} was made from files that have changed", "makes it again"
    return Subject.of(spec, None, (f"{reason}, so only today is shown; planner whatif {path.name} {makes}",))


def _is_plan(path: Path) -> bool:
    """True for a plan.json or a plan's folder, False for a spec."""
    return path.is_dir() or path.name == "plan.json"


def _spec_of(path: Path) -> Path:
    """The spec that a plan was made from. The plan has its file name, and the file must be beside the plan's folder."""
    folder = plan_file.folder_of(path)
    name = plan_file.read(path).inputs[0].path
    spec_file = folder.resolve().parent / name
    if not spec_file.is_file():
        raise SetupError(f"{path}: its spec {name!r} isn't beside it; allowed: planner failures SPEC --plan {path}")
    # If the folder is named by `..` or a link, its parent by name may be another folder.
    by_name = folder.parent / name
    return by_name if by_name.exists() and by_name.samefile(spec_file) else spec_file


def _plan_of(path: Path, spec: Spec, plan_path: Path) -> Plan:
    """The plan; StalePlanError if it was made from another spec or state than those in `path` now."""
    plan = plan_file.read(plan_path)
    if not plan_file.of_same_files(plan, spec):
        raise StalePlanError(f"{plan_path}: isn't made from {path} and its state as they are now; make the plan again")
    return plan


def _kind(text: str) -> str:
    """A value of `--of`: `brokers`, `racks`, `pairs`, or a number of brokers."""
    if text in KINDS:
        return text
    if text.isdecimal() and text.isascii() and 1 <= int(text) <= 1000:
        return str(int(text))
    raise click.BadParameter(f"{text!r} isn't possible here; allowed: {', '.join(KINDS)}, or a number of brokers")


@click.command()
@click.argument("path", metavar="SPEC|PLAN", type=PATH)
@click.option("--plan", type=PATH, help="SPEC's plan. [default: SPEC's name with .plan]")
@click.option(
    "--of",
    multiple=True,
    type=_kind,
    metavar="KIND",
    help="brokers, racks, pairs, or how many brokers fail together. May be repeated. [default: the first three]",
)
@click.option(
    "--scenarios",
    type=click.IntRange(min=1, max=50_000_000),
    default=MOST,
    show_default=True,
    help="With --of a number: the most sets to simulate; more are sampled.",
)
@click.option("--seed", type=SEED, default=0, help="With --of a number: seed of the sample.")
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
        output_folder.require_writable("--rows", rows)
        folder = path.parent if path.name == "plan.json" else path
        inputs = (folder, _spec_of(path) if folder.is_dir() else plan or path.with_suffix(".plan"))
        output_folder.require_unread("--rows", rows, inputs)
        has_rows = partial(candidates_file.has_columns, schema=failure_simulation.ROW_SCHEMA)
        output_folder.require_own("--rows", rows, "a file of failures --rows", has_rows)
    subject = find(path, plan)
    if RACKS in of and not subject.problem.rack_names:
        raise SetupError(f"--of racks: no broker of {path} has a rack; allowed: brokers, pairs, or a number of brokers")
    if rows is not None:
        of_spec = _spec_of(path) if _is_plan(path) else path
        output_folder.require_unread("--rows", rows, reading.files_read(of_spec, subject.spec))
    # A single broker has no pairs.
    kinds = of or KINDS[: 3 if len(subject.problem.broker_ids) > 1 else 2]
    failure_sets = failure_simulation.all_scenarios(subject.problem, kinds, scenarios, seed)
    study = failure_simulation.study(subject.spec, subject.problem, subject.batches, failure_sets)
    # Many scenarios are computed on Spark.
    spark = uses_spark(engine, otherwise=any(each.kind not in KINDS for each in failure_sets))
    results = failure_simulation.join_rows(compute(engine, spark, failure_simulation.questions(study, failure_sets)))
    if rows is not None:
        try:
            output_folder.replace_file(rows, candidates_file.encoded(results))
        except OSError as error:
            raise SetupError(f"{rows}: can't be written: {error.strerror}") from error
    document = failures_report.document(subject, failure_sets, results)
    show_found(form, lambda: codec.as_json(document), lambda: failures_report.view(document))
    return 0


def rendered(document: RestartDocument, states: bytes = b"") -> dict[str, bytes]:
    """The files of a restart's folder without their digests; `states` are today's replica lists."""
    return {
        **templated_files.restart_files(document, states),
        "report.md": markdown.render(restart_steps.view(document)).encode(),
    }


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option("-o", "--out", type=FOLDER, help="Folder to write, with a playbook.")
@click.option("--at-most", type=click.IntRange(min=1), help="Brokers in a step at most. [default: those of a rack]")
@format_option
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit 2 if partitions refuse writes or have no leader in a step."
)
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
    document = restart_steps.document(spec, at_most)
    if out is not None:
        output_folder.write(out, folder_check.with_sums(rendered(document, restart_steps.states(spec))), say)
    show_found(form, lambda: codec.as_json(document), lambda: restart_steps.view(document))
    if out is not None:
        tasks = "-e kafka_reassign_restart_tasks=FILE_WITH_YOUR_TASKS"
        say(f"next: cd {shlex.quote(str(out / 'ansible'))} && ansible-playbook restart.yml {tasks}")
    return 2 if detailed_exitcode and document.refusing else 0


def _groups(spec: Spec, names: Sequence[str]) -> tuple[Group, ...]:
    """The groups of these names, or all if there are none. PlannerError for a name that isn't in `consumers`."""
    groups = group_events_and_keys.resolve_groups(spec.consumers, spec.cluster)
    group_names = {group.name for group in groups}
    for name in names:
        if name not in group_names:
            guess = did_you_mean(name, group_names)
            raise PlannerError(f"--group {name!r} isn't in consumers; {guess}allowed: {', '.join(sorted(group_names))}")
    return tuple(group for group in groups if not names or group.name in names)


def _partition_counts(spec: Spec, grown: Sequence[tuple[str, int]]) -> Mapping[str, int]:
    """The partition counts of `--add-partitions`, by topic. PlannerError for one that isn't higher than today's."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    for topic, count in grown:
        if count <= counts.get(topic, count):
            unknown = f"{did_you_mean(topic, counts)}allowed: a topic of the cluster"
            allowed = f"allowed: more than its {counts[topic]} partitions" if topic in counts else unknown
            raise PlannerError(f"--add-partitions {topic}={count} isn't possible; {allowed}")
    return dict(grown)


def _swept(
    spec: Spec, groups: Sequence[Group], consumers: tuple[int, int] | None, engine: EngineOptions
) -> ConsumersSweep:
    """The section of `--sweep`: each number of consumers with each assignor, computed here or on Spark."""
    unit = group_events_and_keys.load_unit(spec.cluster)
    loads = group_events_and_keys.loads(spec.cluster.topics, unit)
    study = consumers_sweep.study(groups, loads, spec.sweep.growth)
    rows = consumers_sweep.rows(groups, *(consumers or (None, None)))
    questions = [partial(consumers_sweep.evaluate, study, row) for row in rows]
    own_assignors = {row["assignor"] for row in rows if ":" in row["assignor"]}
    return consumers_sweep.summary(
        study, compute(engine, uses_spark(engine, otherwise=False), questions, assignors=own_assignors)
    )


_TOPIC = re.compile(r"([A-Za-z0-9._-]{1,249})=([0-9]{1,6})", re.ASCII)


def _grown(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The topics and their new partition counts from values like `orders=24`."""
    counts = list[tuple[str, int]]()
    for value in values:
        if (match := _TOPIC.fullmatch(value)) is None:
            raise click.BadParameter(f"{value!r} isn't a topic and its partitions; allowed: such as orders=24")
        if match[1] in dict(counts):
            raise click.BadParameter(f"{match[1]} is here twice; allowed: each topic once")
        counts.append((match[1], int(match[2])))
    return tuple(counts)


def _range(text: str) -> tuple[int, int]:
    """The fewest and the most consumers from a value like `2-12`."""
    match = re.fullmatch(r"([0-9]{1,6})-([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{text!r} isn't a range of consumers; allowed: such as 2-12")
    return int(match[1]), int(match[2])


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option("--plan", type=PATH, help="A plan of SPEC: which partitions change racks.")
@click.option("--group", "groups", multiple=True, help="Only this group. May be repeated.")
@click.option(
    "--add-partitions",
    "grown",
    multiple=True,
    callback=_grown,
    metavar="TOPIC=COUNT",
    help="Add partitions to this topic, up to this total.",
)
@click.option("--key", "keys", multiple=True, help="Show which partition this key maps to, before and after.")
@click.option("--sweep", is_flag=True, help="Try every number of consumers with every assignor.")
@click.option("--consumers", type=_range, metavar="2-12", help="The numbers of consumers that --sweep tries.")
@engine_options(IN_PROCESS)
@format_option
def consumers(
    path: Path,
    plan: Path | None,
    groups: tuple[str, ...],
    grown: tuple[tuple[str, int], ...],
    keys: tuple[str, ...],
    sweep: bool,
    consumers: tuple[int, int] | None,
    engine: EngineOptions,
    form: Format,
) -> int:
    """Show what each member of SPEC's groups reads.

    How even that is, and what moves when a member leaves, a partition is added, or a rack changes.

    Groups are listed in SPEC's `consumers`: written there, or as kafka-consumer-groups --describe prints them.
    """
    if consumers and not sweep:
        raise click.UsageError("--consumers says what --sweep tries; allowed: with --sweep")
    if uses_spark(engine, otherwise=False) and not sweep:
        raise click.UsageError("Spark is for what --sweep tries; allowed: with --sweep, or without Spark's options")
    spec = reading.load(path)
    if not spec.consumers:
        raise PlannerError(f"{path}: no consumer group is declared; allowed: the key consumers with at least one group")
    read_plan = None if plan is None else _plan_of(path, spec, plan)
    with importable(path.resolve().parent, spec.consumers):
        chosen_groups = _groups(spec, groups)
        question = ConsumersQuestion(spec, chosen_groups, _partition_counts(spec, grown), keys, read_plan)
        document = consumers_report.document(question)
        if keys and not document.partition_counts:
            raise PlannerError(
                f"{path}: no topic gets more partitions, so each --key stays where it is; allowed: --key with "
                "--add-partitions TOPIC=COUNT, or changes.add_partitions"
            )
        if sweep:
            document = structs.replace(document, sweep=_swept(spec, chosen_groups, consumers, engine))
    # Not with the codec, because a record's key may have bytes that aren't UTF-8, which it can't encode.
    show_found(
        form, lambda: to_builtins(document), lambda: consumers_report.view(document, planned=read_plan is not None)
    )
    return 0
