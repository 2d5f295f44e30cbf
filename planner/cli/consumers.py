"""`planner consumers`: how a consumer group shares its partitions, and what a change does to that."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from msgspec import structs, to_builtins

from planner.cli.engine import IN_PROCESS, EngineOptions, computed, engine_options, on_spark
from planner.cli.output import FILE, PATH, Format, format_option, show_found
from planner.inputs.spec import reading
from planner.model.errors import PlannerError, StalePlanError, did_you_mean
from planner.model.spec import Spec
from planner.plan import headline, plan_file
from planner.whatif import consumers_report, consumers_sweep, group_events
from planner.whatif.assignors import importable
from planner.whatif.consumers_report import ConsumersDocument, ConsumersQuestion
from planner.whatif.consumers_sweep import ConsumersSweep
from planner.whatif.group_events import Group


@dataclass(frozen=True)
class ConsumersOptions:
    """The options of the command; `grown` are partition counts by topic."""

    engine: EngineOptions
    plan: Path | None
    groups: tuple[str, ...]
    grown: tuple[tuple[str, int], ...]
    keys: tuple[str, ...]
    sweep: bool
    consumers: tuple[int, int] | None


def answer(path: Path, options: ConsumersOptions) -> ConsumersDocument:
    """The document for a spec. SpecError or PlannerError if the spec or an option is wrong."""
    spec = reading.load(path)
    if not spec.consumers:
        raise PlannerError(f"{path}: no consumer group is declared; allowed: the key consumers with at least one group")
    plan = None if options.plan is None else plan_file.read(options.plan)
    if plan is not None and not plan_file.of_same_files(plan, spec):
        said = f"isn't made from {path} and its state as they are now; make the plan again"
        raise StalePlanError(f"{options.plan}: {said}")
    replicas = None if plan is None else consumers_report.replicas_of(plan)
    with importable(path.resolve().parent, spec.consumers):
        groups = group_events.resolve(spec.consumers, spec.cluster.topics)
        known = {group.name for group in groups}
        for name in options.groups:
            if name not in known:
                guess = did_you_mean(name, known)
                raise PlannerError(f"--group {name!r} isn't in consumers; {guess}allowed: {', '.join(sorted(known))}")
        groups = tuple(group for group in groups if not options.groups or group.name in options.groups)
        question = ConsumersQuestion(spec, groups, _partition_counts(spec, options.grown), options.keys, replicas)
        document = consumers_report.document(question, (headline.first_step(plan) if plan else "") or None)
        return structs.replace(document, sweep=_swept(spec, groups, options)) if options.sweep else document


def _partition_counts(spec: Spec, grown: Sequence[tuple[str, int]]) -> Mapping[str, int]:
    """The partition counts of `--add-partitions`, by topic. PlannerError for one that isn't higher than today's."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    for topic, count in grown:
        if count <= counts.get(topic, count):
            unknown = f"{did_you_mean(topic, counts)}allowed: a topic of the cluster"
            allowed = f"allowed: more than its {counts[topic]} partitions" if topic in counts else unknown
            raise PlannerError(f"--add-partitions {topic}={count} isn't possible; {allowed}")
    return dict(grown)


def _swept(spec: Spec, groups: Sequence[Group], options: ConsumersOptions) -> ConsumersSweep:
    """What `--sweep` adds to the document: each number of consumers with each assignor, here or on Spark."""
    unit = group_events.measure(spec.cluster)
    loads = group_events.loads(spec.cluster.topics, unit)
    study = consumers_sweep.study(groups, loads, spec.sweep.growth)
    rows = consumers_sweep.rows(groups, *(options.consumers or (None, None)))
    scores = computed(
        options.engine,
        on_spark(options.engine, otherwise=False),
        lambda whatif, spark: whatif.consumers(spark, study, rows, partitions=options.engine.partitions),
        lambda: consumers_sweep.evaluate(study, rows.to_pylist()),
    )
    return consumers_sweep.summary(study, scores)


_COUNTS = re.compile(r"([0-9]{1,6})-([0-9]{1,6})", re.ASCII)
_TOPIC = re.compile(r"([A-Za-z0-9._-]{1,249})=([0-9]{1,6})", re.ASCII)


def _grown(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The topics and their new partition counts, of `orders=24`."""
    found = list[tuple[str, int]]()
    for value in values:
        if (match := _TOPIC.fullmatch(value)) is None:
            raise click.BadParameter(f"{value!r} isn't a topic and its partitions; allowed: such as orders=24")
        found.append((match[1], int(match[2])))
    if twice := next((topic for topic, _ in found if [each for each, _ in found].count(topic) > 1), None):
        raise click.BadParameter(f"{twice} is here twice; allowed: each topic once")
    return tuple(found)


def _range(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """The fewest and the most consumers, of `2-12`."""
    if value is None:
        return None
    match = _COUNTS.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{value!r} isn't a range of consumers; allowed: such as 2-12")
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
@click.option("--consumers", callback=_range, metavar="2-12", help="The numbers of consumers that --sweep tries.")
@engine_options(IN_PROCESS)
@format_option
def consumers(path: Path, form: Format, **options: Any) -> int:
    """Show what each member of SPEC's groups reads.

    How even that is, and what moves when a member leaves, a partition is added, or a rack changes.

    Groups are listed in SPEC's `consumers`: written there, or as kafka-consumer-groups --describe prints them.
    """
    if options["consumers"] and not options["sweep"]:
        raise click.UsageError("--consumers says what --sweep tries; allowed: with --sweep")
    if on_spark(options["engine"], otherwise=False) and not options["sweep"]:
        raise click.UsageError("Spark is for what --sweep tries; allowed: with --sweep, or without Spark's options")
    found = answer(path, ConsumersOptions(**options))
    # Not by the codec: a key needn't be text.
    show_found(
        form, lambda: to_builtins(found), lambda: consumers_report.view(found, planned=options["plan"] is not None)
    )
    return 0
