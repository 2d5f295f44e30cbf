"""`planner consumers`, step by step: the spec, its groups' state files, a plan; and the sweep, here or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from planner.inputs.spec import reading as spec
from planner.model.errors import PlannerError, SetupError, did_you_mean
from planner.model.spec import Spec
from planner.plan import headline, plan_file
from planner.whatif.consumers import consumers_summary, consumers_sweep
from planner.whatif.consumers import group_loads as consumers_groups
from planner.whatif.consumers.assignors import importable
from planner.whatif.consumers.consumers_summary import ConsumersQuestion
from planner.whatif.consumers.group_loads import Group


@dataclass(frozen=True)
class ConsumersOptions:
    """The options of the command; `grown` are partition counts by topic."""

    plan: Path | None = None
    groups: tuple[str, ...] = ()
    grown: tuple[tuple[str, int], ...] = ()
    keys: tuple[str, ...] = ()
    sweep: bool = False
    consumers: tuple[int, int] | None = None
    engine: Literal["spark", "local"] = "spark"
    master: str | None = None
    remote: str | None = None


def consumers(path: Path, options: ConsumersOptions) -> dict[str, Any]:
    """The answer for a spec as a document; SpecError or PlannerError with what is wrong."""
    wish = spec.load(path)
    if not wish.consumers:
        raise PlannerError(f"{path}: no consumer group is declared; allowed: the key consumers with at least one group")
    plan = None if options.plan is None else plan_file.read(options.plan)
    replicas = None if plan is None else consumers_summary.replicas_of(plan)
    with importable(path.resolve().parent, wish.consumers):
        groups = _asked(consumers_groups.resolve(wish.consumers, wish.cluster.topics), options.groups)
        question = ConsumersQuestion(wish, groups, _grown(wish, options.grown), options.keys, replicas)
        answer = {
            "first_step": (headline.first_step(plan) if plan else "") or None,
            **consumers_summary.document(question),
        }
        if options.sweep:
            answer["sweep"] = _swept(wish, groups, options)
    return answer


def _asked(groups: tuple[Group, ...], names: Sequence[str]) -> tuple[Group, ...]:
    known = {group.name for group in groups}
    for name in names:
        if name not in known:
            guess = did_you_mean(name, known)
            raise PlannerError(f"--group {name} isn't in consumers; {guess}allowed: {', '.join(sorted(known))}")
    return tuple(group for group in groups if not names or group.name in names)


def _grown(spec: Spec, grown: Sequence[tuple[str, int]]) -> Mapping[str, int]:
    """The partition counts asked for; a topic only grows."""
    counts = {topic.name: len(topic.partitions) for topic in spec.cluster.topics}
    for topic, count in grown:
        if count <= counts.get(topic, count):
            unknown = f"{did_you_mean(topic, counts)}allowed: a topic of the cluster"
            allowed = f"allowed: more than its {counts[topic]} partitions" if topic in counts else unknown
            raise PlannerError(f"--add-partitions {topic}={count} isn't possible; {allowed}")
    return dict(grown)


def _swept(spec: Spec, groups: Sequence[Group], options: ConsumersOptions) -> dict[str, Any]:
    """The sweep's part of the document."""
    unit = consumers_groups.measure(spec.cluster)
    loads = consumers_groups.loads(spec.cluster.topics, unit)
    study = consumers_sweep.study(groups, loads, spec.sweep.growth)
    rows = consumers_sweep.rows(groups, *(options.consumers or (None, None)))
    if options.engine == "local":
        if options.master or options.remote:
            raise SetupError("--master and --remote are Spark's; allowed: --engine spark, or leave them out")
        return consumers_sweep.document(study, consumers_sweep.evaluate(study, rows.to_pylist()))
    from spark_jobs import consumers as job  # planner never imports pyspark; this is its only door
    from spark_jobs import session

    with session.open_session(master=options.master, remote=options.remote) as spark:
        return consumers_sweep.document(study, job.run(spark, study, rows))
