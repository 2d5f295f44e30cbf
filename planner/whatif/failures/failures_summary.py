"""The rows of a study as one document: of each kind of failure and each state the worst, how many, and which topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from planner.model.build_problem import build
from planner.model.effective_config import in_force
from planner.model.formats import counted
from planner.model.problem import LongArray, Problem
from planner.model.spec import Spec
from planner.plan import headline
from planner.plan.document.partition_types import BatchRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import (
    FailedTopicRow,
    FailureEffectRow,
    FailureKindRow,
    FailureRow,
    FailuresSection,
    FailureStateRow,
    MovedToRow,
    WorstFailure,
)
from planner.sweep.variants import chosen
from planner.whatif.failures.cluster_states import FACTS, Stage, outcome, stages, worse
from planner.whatif.failures.failing_brokers import BROKERS, CONFIDENCE, RACKS, Scenarios, explained
from planner.whatif.failures.offline_sums import failed_slots

FORMAT_VERSION = "1.0"
# What makes one failure worse than another, most important first.
_WORSE = ("offline", "lost", "writes_refused", "over_capacity", "at_risk", "leaders_moved", "leaders_most")
_COUNTED = ("offline", "writes_refused", "lost", "over_capacity")
_SHOWN = (*FACTS, "leaders_most", "leaders_most_broker", "network_in_most", "network_out_most", "size_bytes_most")
_OF_TOPICS = ("offline", "writes_refused", "lost")


@dataclass(frozen=True, eq=False)
class Subject:
    """What is looked at: a spec, its problem without partitions to be made, and a plan (None: today alone)."""

    spec: Spec
    problem: Problem
    plan: Plan | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Spec, plan: Plan | None, notes: tuple[str, ...] = ()) -> Self:
        """A spec with its plan; the changes are those of the variant that the plan is of.

        Partitions to be made aren't there to fail.
        """
        changes = chosen(spec, plan.choice.variant).changes if plan else spec.changes
        if changes.new_partitions:
            notes = (*notes, "partitions that the plan makes anew aren't counted")
        spec = replace(spec, changes=replace(changes, new_partitions=()))
        return cls(spec, build(spec), plan, notes)

    @property
    def batches(self) -> Sequence[BatchRow]:
        """The plan's batches."""
        return self.plan.batches if self.plan else ()


class FailuresDocument(FailuresSection, frozen=True, kw_only=True):
    """What `planner failures` says: the section of a plan, and what that is about."""

    format_version: str
    cluster: str
    plan_id: str | None
    first_step: str | None

    @classmethod
    def of(cls, section: FailuresSection, cluster: str, plan: Plan | None) -> Self:
        """The section, of a cluster of this name, and of a plan (None: today alone)."""
        step = headline.first_step(plan) if plan else ""
        return cls(
            **structs.asdict(section),
            format_version=FORMAT_VERSION,
            cluster=cluster,
            plan_id=plan.plan_id if plan else None,
            first_step=step or None,
        )


def section(subject: Subject, wanted: Sequence[Scenarios], rows: pa.Table) -> FailuresSection:
    """Everything that is shown, of rows (failures.ROW_SCHEMA) by kind, scenario and stage."""
    of_kind = {each.kind: rows.filter(pc.equal(rows["of"], each.kind)) for each in wanted}
    worst = {
        (kind, state): _worst(found.filter(pc.equal(found["state"], state)))
        for kind, found in of_kind.items()
        for state in pc.unique(found["state"]).to_pylist()
    }
    hit = dict(_topics_hit(subject, wanted, {key: row["scenario"] for key, row in worst.items()}))
    return FailuresSection(
        batches=len(subject.batches),
        kinds=tuple(
            FailureKindRow(
                of=each.kind,
                scenarios=len(each.sets),
                possible=each.possible,
                drawn=each.drawn,
                confidence=CONFIDENCE if each.drawn else None,
                worse_at_most=each.worse_at_most,
                explained=explained(each),
                states=tuple(
                    _state(of_kind[kind].filter(pc.equal(of_kind[kind]["state"], state)), row, hit.get((kind, state)))
                    for (kind, state), row in worst.items()
                    if kind == each.kind
                ),
            )
            for each in wanted
        ),
        scenarios=_scenarios(rows.filter(pc.is_in(rows["of"], pa.array([BROKERS, RACKS])))),
        notes=(*subject.notes, *_notes(subject)),
    )


Row = Mapping[str, Any]


def _worst(rows: pa.Table) -> Row:
    """The worst scenario of one state; of equally bad ones the first."""
    columns = [-rows[name].fill_null(0).to_numpy() for name in reversed(_WORSE)]
    found: Row = rows.slice(int(np.lexsort([rows["scenario"].to_numpy(), *columns])[0]), 1).to_pylist()[0]
    return found


def _state(rows: pa.Table, worst: Row, hit: tuple[FailedTopicRow, ...] | None) -> FailureStateRow:
    """How many scenarios of one state do what, and the worst."""
    counts = {f"with_{name}": int(pc.sum(pc.greater(rows[name], 0)).as_py() or 0) for name in _COUNTED}
    figures = {name: worst[name] for name in ("failed", *_SHOWN, "over_capacity")}
    return FailureStateRow(
        state=worst["state"],
        **counts,
        worst=WorstFailure(**figures, brokers=tuple(worst["brokers"]), topics=hit or ()),
    )


def _scenarios(rows: pa.Table) -> tuple[FailureRow, ...]:
    """Every broker and rack by itself, with all states."""
    grouped: dict[tuple[str, int], list[Row]] = {}
    for row in rows.to_pylist():
        grouped.setdefault((row["of"], row["scenario"]), []).append(row)
    return tuple(
        FailureRow(
            of=found[0]["of"],
            failed=found[0]["failed"],
            brokers=tuple(found[0]["brokers"]),
            states=tuple(map(_effect, found)),
        )
        for found in grouped.values()
    )


def _effect(row: Row) -> FailureEffectRow:
    moved = zip(row["moved_to"] or (), row["moved_leaders"] or (), strict=True)
    return FailureEffectRow(
        state=row["state"],
        **{name: row[name] for name in (*_SHOWN, "over_capacity")},
        moved_to=tuple(MovedToRow(broker=broker, leaders=leaders) for broker, leaders in moved),
    )


def _topics_hit(
    subject: Subject, wanted: Sequence[Scenarios], worst: Mapping[tuple[str, str], int]
) -> Iterator[tuple[tuple[str, str], tuple[FailedTopicRow, ...]]]:
    """The topics that the worst scenario of each kind and state hits."""
    for stage in stages(subject.spec, subject.problem, subject.batches):
        for scenarios in wanted:
            key = scenarios.kind, stage.name
            if key in worst:
                yield key, tuple(_topics(subject.problem, stage, scenarios, scenarios.sets[worst[key]]))


def _topics(problem: Problem, stage: Stage, scenarios: Scenarios, failed: Sequence[int]) -> Iterator[FailedTopicRow]:
    facts = outcome(stage.first, failed_slots(stage.first.replicas, scenarios.domains, failed)).facts
    if stage.second is not stage.first:
        other = outcome(stage.second, failed_slots(stage.second.replicas, scenarios.domains, failed)).facts
        facts = worse(facts, other)
    columns = [facts[:, FACTS.index(name)] for name in _OF_TOPICS]
    counts = np.stack([_by_topic(problem, column) for column in columns], axis=1)
    for at in np.flatnonzero(counts.any(axis=1)).tolist():
        offline, refused, lost = counts[at].tolist()
        yield FailedTopicRow(topic=problem.topic_names[at], offline=offline, writes_refused=refused, lost=lost)


def _by_topic(problem: Problem, column: LongArray) -> LongArray:
    return np.bincount(problem.topic_of[column > 0], minlength=len(problem.topic_names))


def _notes(subject: Subject) -> Iterable[str]:
    """What the numbers rest on."""
    topics = subject.spec.cluster.topics
    partitions = [part for topic in topics for part in topic.partitions]
    told = sum(part.isr is not None for part in partitions)
    behind = sum(1 for part in partitions if part.isr is not None and set(part.isr) != set(part.replicas))
    configs = [in_force(topic, subject.spec.cluster.config_defaults) for topic in topics]
    unclean = sum(config.get("unclean.leader.election.enable") == "true" for config in configs)
    rf_1 = int(((subject.problem.replicas >= 0).sum(axis=1) == 1).sum())
    if told < len(partitions):
        yield f"no ISR is known of {counted(len(partitions) - told, 'partition')}: all replicas are taken to be in sync"
    if behind:
        yield f"replicas of {counted(behind, 'partition')} are out of sync today: those don't count as live ones"
    if rf_1:
        yield f"{counted(rf_1, 'partition')} with a single replica today: offline without that broker"
    if unclean:
        yield f"unclean.leader.election.enable is true for {counted(unclean, 'topic')}: what is behind may lead"
    if subject.batches:
        yield (
            "while a batch runs each partition is judged by the worse of two states: copying, when the replicas that "
            "it adds are not in sync, and complete; loads are those while copying, with both copies"
        )
    yield "replicas in the ELR (KIP-966) count as out of sync, though those that live may lead too"
