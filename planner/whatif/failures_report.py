"""The output of `planner failures`: the rows of a study as one document, and its view for people.

For each kind of failure and each state of the cluster: the worst failure, the number with each effect, the topics hit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from planner.model.build_problem import build
from planner.model.cluster import in_force
from planner.model.formats import counted, first_lines, number, size
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes, Spec
from planner.plan import headline
from planner.plan.document.partition_types import BatchRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import (
    FailedTopicRow,
    FailureEffectRow,
    FailureFigures,
    FailureKindRow,
    FailureRow,
    FailuresSection,
    FailureStateRow,
    MovedToRow,
    WorstFailure,
)
from planner.report.view import Column, Joined, Lines, Name, Sentence, Table, Value, View, ViewSection, visible
from planner.sweep.choice import with_variant
from planner.whatif.cluster_states import FACTS, PLANNED, TODAY, Stage, outcome, stages, worse
from planner.whatif.failure_sets import BROKERS, CONFIDENCE, RACKS, FailureSets, coverage_text, failed_slots

FORMAT_VERSION = "1.0"
# The columns that rank failures, most important first.
_WORSE = ("offline", "lost", "writes_refused", "over_capacity", "at_risk", "leaders_moved", "leaders_most")
_COUNTED = ("offline", "writes_refused", "lost", "over_capacity")
_SHOWN = FailureFigures.__struct_fields__
_OF_TOPICS = ("offline", "writes_refused", "lost")
_SCENARIOS_SHOWN = 12
_TOPICS_SHOWN = 5
_BROKERS_SHOWN = 6
_LONGEST_FAILED = 30
_LONGEST_SCOPE = 400


@dataclass(frozen=True, eq=False)
class Subject:
    """The subject of a study: a spec, its problem without new partitions, and a plan (None: only today)."""

    spec: Spec
    problem: Problem
    plan: Plan | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Spec, plan: Plan | None, notes: tuple[str, ...] = ()) -> Self:
        """A spec with its plan; the changes are those of the plan's variant.

        Without a plan the cluster is as it is today. New partitions are left out, because they don't exist yet.
        """
        changes = with_variant(spec, plan.choice.variant).changes if plan else Changes()
        if changes.new_partitions:
            notes = (*notes, "new partitions of the plan aren't counted")
        if changes.set_racks:
            notes = (*notes, "racks are those that changes.set_racks states, today too")
        spec = replace(spec, changes=replace(changes, new_partitions=()))
        return cls(spec, build(spec), plan, notes)

    @property
    def batches(self) -> Sequence[BatchRow]:
        """The plan's batches."""
        return self.plan.batches if self.plan else ()


class FailuresDocument(FailuresSection, frozen=True, kw_only=True):
    """The document of `planner failures`: the section of a plan, its cluster and its plan."""

    format_version: str
    cluster: str
    plan_id: str | None
    first_step: str | None


def document(subject: Subject, scenarios: Sequence[FailureSets], rows: pa.Table) -> FailuresDocument:
    """The whole document; the arguments are those of `section`."""
    plan = subject.plan
    return FailuresDocument(
        **structs.asdict(section(subject, scenarios, rows)),
        format_version=FORMAT_VERSION,
        cluster=subject.spec.cluster.name,
        plan_id=plan.plan_id if plan else None,
        first_step=(headline.first_step(plan) if plan else "") or None,
    )


def section(subject: Subject, failure_kinds: Sequence[FailureSets], rows: pa.Table) -> FailuresSection:
    """A plan's section on failures, from rows (failure_simulation.ROW_SCHEMA) by kind, scenario and stage."""
    rows = _without_absent(subject, rows)
    of_kind = {each.kind: rows.filter(pc.equal(rows["of"], each.kind)) for each in failure_kinds}
    worst: dict[tuple[str, str], OutcomeRow] = {}
    for kind, kind_rows in of_kind.items():
        for state in pc.unique(kind_rows["state"]).to_pylist():
            table = kind_rows.filter(pc.equal(kind_rows["state"], state))
            # The first of equally bad ones.
            order = [table["scenario"], *(pc.negate(table[name].fill_null(0)) for name in reversed(_WORSE))]
            worst[kind, state] = table.slice(int(np.lexsort([each.to_numpy() for each in order])[0]), 1).to_pylist()[0]
    hit_topics = dict[tuple[str, str], tuple[FailedTopicRow, ...]]()
    for stage in stages(subject.spec, subject.problem, subject.batches):
        for scenarios in failure_kinds:
            key = scenarios.kind, stage.name
            if key in worst:
                failed = scenarios.sets[worst[key]["scenario"]]
                hit_topics[key] = tuple(_failed_topics(subject.problem, stage, scenarios, failed))
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
                explained=coverage_text(each),
                states=tuple(
                    _state_row(
                        of_kind[kind].filter(pc.equal(of_kind[kind]["state"], state)),
                        row,
                        hit_topics.get((kind, state)),
                    )
                    for (kind, state), row in worst.items()
                    if kind == each.kind
                ),
            )
            for each in failure_kinds
        ),
        scenarios=_scenario_rows(rows.filter(pc.is_in(rows["of"], pa.array([BROKERS, RACKS])))),
        notes=(*subject.notes, *notes(subject)),
    )


def _without_absent(subject: Subject, rows: pa.Table) -> pa.Table:
    """The rows without those of absent brokers: today the brokers to be added, after the plan the removed ones."""
    if subject.plan is None:
        return rows
    ids, is_target, brokers = subject.problem.broker_ids, subject.problem.targets, subject.spec.cluster.brokers
    # A first step may leave replicas on a broker that is to be removed.
    holding_ids = [row.id for row in subject.plan.brokers if row.after.replicas]
    absent = {
        TODAY: np.setdiff1d(ids, [broker.id for broker in brokers]),
        PLANNED: np.setdiff1d(ids[~is_target], holding_ids),
    }
    lists, racks = rows["brokers"].combine_chunks(), pc.equal(rows["of"], RACKS).to_numpy()
    row_of_item, sizes = (
        pc.list_parent_indices(lists).to_numpy(),
        pc.list_value_length(lists).to_numpy(zero_copy_only=False),
    )
    is_present = np.ones(len(rows), dtype=bool)
    for state, absent_ids in absent.items():
        is_absent = np.isin(pc.list_flatten(lists).to_numpy(), absent_ids)
        absent_counts = np.bincount(row_of_item[is_absent], minlength=len(rows))
        # In a rack, the other brokers still fail.
        is_present &= ~pc.equal(rows["state"], state).to_numpy() | (absent_counts < np.where(racks, sizes, 1))
    return rows.filter(pa.array(is_present))


OutcomeRow = Mapping[str, Any]


def _state_row(rows: pa.Table, worst: OutcomeRow, hit_topics: tuple[FailedTopicRow, ...] | None) -> FailureStateRow:
    """How many scenarios of one state have each effect, and the worst scenario."""
    counts = {f"with_{name}": int(pc.sum(pc.greater(rows[name], 0)).as_py() or 0) for name in _COUNTED}
    figures = {name: worst[name] for name in ("failed", *_SHOWN)}
    return FailureStateRow(
        state=worst["state"],
        scenarios=len(rows),
        **counts,
        worst=WorstFailure(**figures, brokers=tuple(worst["brokers"]), topics=hit_topics or ()),
    )


def _scenario_rows(rows: pa.Table) -> tuple[FailureRow, ...]:
    """Every single broker and rack, with all states."""
    grouped = [list(same_scenario) for _, same_scenario in groupby(rows.to_pylist(), key=itemgetter("of", "scenario"))]
    return tuple(
        FailureRow(
            of=same_scenario[0]["of"],
            failed=same_scenario[0]["failed"],
            brokers=tuple(same_scenario[0]["brokers"]),
            states=tuple(
                FailureEffectRow(
                    state=row["state"],
                    **{name: row[name] for name in _SHOWN},
                    moved_to=tuple(
                        MovedToRow(broker=broker, leaders=leaders)
                        for broker, leaders in zip(row["moved_to"] or (), row["moved_leaders"] or (), strict=True)
                    ),
                )
                for row in same_scenario
            ),
        )
        for same_scenario in grouped
    )


def _failed_topics(
    problem: Problem, stage: Stage, scenarios: FailureSets, failed: IntArray
) -> Iterator[FailedTopicRow]:
    """The topics that one failure hits at one stage, with the number of their partitions hit."""
    facts = outcome(stage.first, failed_slots(stage.first.replicas, scenarios.domains, failed)).facts
    if stage.second is not stage.first:
        other = outcome(stage.second, failed_slots(stage.second.replicas, scenarios.domains, failed)).facts
        facts = worse(facts, other)
    topics = len(problem.topic_names)
    columns = [problem.topic_of[facts[:, FACTS.index(name)] > 0] for name in _OF_TOPICS]
    counts = np.stack([np.bincount(topic_of, minlength=topics) for topic_of in columns], axis=1)
    for topic_index in np.flatnonzero(counts.any(axis=1)).tolist():
        offline, refused, lost = counts[topic_index].tolist()
        yield FailedTopicRow(topic=problem.topic_names[topic_index], offline=offline, writes_refused=refused, lost=lost)


def notes(subject: Subject) -> Iterable[str]:
    """The assumptions behind the numbers."""
    topics = subject.spec.cluster.topics
    partitions = [partition for topic in topics for partition in topic.partitions]
    stated = sum(partition.isr is not None for partition in partitions)
    behind = sum(
        1 for partition in partitions if partition.isr is not None and set(partition.isr) != set(partition.replicas)
    )
    configs = [in_force(topic, subject.spec.cluster.config_defaults) for topic in topics]
    unclean = sum(config.get("unclean.leader.election.enable") == "true" for config in configs)
    rf_1 = int(((subject.problem.replicas >= 0).sum(axis=1) == 1).sum())
    if stated < len(partitions):
        yield f"ISR unknown of {counted(len(partitions) - stated, 'partition')}: all replicas are assumed to be in sync"
    if behind:
        yield f"replicas of {counted(behind, 'partition')} are out of sync today: those don't count as live ones"
    if rf_1:
        yield f"{counted(rf_1, 'partition')} with a single replica today: offline without that broker"
    if unclean:
        yield f"unclean.leader.election.enable is true for {counted(unclean, 'topic')}: replicas out of sync may lead"
    if subject.batches:
        yield (
            "while a batch runs each partition is judged by the worse of two states: copying, when the replicas that "
            "it adds are not in sync, and complete; loads are those while copying, with both copies"
        )
    yield "replicas in the ELR (KIP-966) count as out of sync, although live ones may become leaders"


def view(document: FailuresDocument) -> View:
    """The view's title, the first step if the plan is only that, and the section."""
    shown = (view_section(document, document.plan_id),)
    return View(f"{document.cluster}: failures", shown, (document.first_step or "",))


def view_section(failures: FailuresSection, plan_id: str | None) -> ViewSection:
    """The worst failure of each kind, the topics that it hits, each single broker and rack, and notes."""
    rows = list(_worst_rows(failures))
    scope = ", ".join(f"{kind_name(kind.of)}: {kind.explained}" for kind in failures.kinds)
    when = "today"
    if plan_id is not None:
        plan = f"plan {plan_id[:12]}"
        in_batches = f", in {counted(failures.batches, 'batch')} of {plan}, and after it"
        when += in_batches if failures.batches else f", as {plan} moves no replica"
    scope = f"Failures simulated {when} ({scope}). Counts are partitions, those of the worst failure."
    blocks = visible(
        Lines((Sentence(scope, _LONGEST_SCOPE),), bulleted=False),
        _worst_table(rows),
        Lines(tuple(_topic_sentences(rows))),
        _scenario_table(failures),
        Lines(failures.notes, quiet=True),
    )
    return ViewSection("", blocks)


class _Worst(NamedTuple):
    """The worst failure of a kind in one state, or in the worst of several batches."""

    kind: FailureKindRow
    state: FailureStateRow
    state_name: str


def _worst_rows(failures: FailuresSection) -> Iterator[_Worst]:
    """For each kind: today, the worst batch, and the plan."""
    for kind in failures.kinds:
        between = [state for state in kind.states if state.state not in (TODAY, PLANNED)]
        for state in kind.states:
            if state.state in (TODAY, PLANNED):
                yield _Worst(kind, state, state.state)
            elif state is between[0]:
                worst = max(between, key=lambda each: _badness(each.worst))
                suffix = f", worst of {len(between)}" if len(between) > 1 else ""
                yield _Worst(kind, worst, f"{worst.state}{suffix}")


def _badness(figures: FailureFigures) -> tuple[int, ...]:
    return tuple(getattr(figures, key) or 0 for key in _WORSE[:5])


def _worst_table(rows: Sequence[_Worst]) -> Table[_Worst]:
    def lost(worst: FailureFigures) -> str:
        copies = f" ({size(worst.lost_bytes)})" if worst.lost and worst.lost_bytes is not None else ""
        return f"{number(worst.lost)}{copies}"

    column = Column[_Worst]
    columns = (
        column("Fails", lambda row: kind_name(row.kind.of), numeric=False, grouped=True),
        column("State", lambda row: row.state_name, numeric=False),
        column(
            "Take any\noffline",
            lambda row: f"{number(row.state.with_offline)} of {number(row.state.scenarios or row.kind.scenarios)}",
        ),
        column("Worst", lambda row: Sentence(row.state.worst.failed, _LONGEST_FAILED), numeric=False),
        column("\nOffline", lambda row: row.state.worst.offline),
        column("Writes\nrefused", lambda row: row.state.worst.writes_refused),
        column("One replica left", lambda row: row.state.worst.at_risk, narrow="one\nreplica"),
        column("Data\nlost", lambda row: lost(row.state.worst)),
        column("Leaders\nmoved", lambda row: row.state.worst.leaders_moved),
        column("Most leaders on a broker", lambda row: row.state.worst.leaders_most, narrow="most on\na broker"),
        column("Brokers over\ncapacity", lambda row: row.state.worst.over_capacity),
    )
    return Table("failure", rows, columns)


def kind_name(kind: str) -> str:
    """`brokers`, `racks`, `pairs`, or `any 3`."""
    return f"any {kind}" if kind.isdigit() else kind


def _topic_sentences(rows: Sequence[_Worst]) -> Iterator[Value]:
    """A sentence for each failure that hits topics: the first of them, and the states in which it hits them."""
    states: dict[tuple[str, Value], list[str]] = {}
    for _, state, state_name in rows:
        hit_rows = [row for row in state.worst.topics if row.offline or row.writes_refused]
        hit_topics = list[Value]()
        for row in hit_rows:
            effects = ((row.offline, "offline"), (row.writes_refused - row.offline, "can't be written with acks=all"))
            words = ", ".join(f"{number(count)} {what}" for count, what in effects if count > 0)
            hit_topics.append(Joined((Name(row.topic, 60), f" {words}")))
        if hit_topics:
            first = Joined(tuple(first_lines(hit_topics, _TOPICS_SHOWN, "topic")), "; ")
            states.setdefault((state.worst.failed, first), []).append(state_name)
    for (failed, topics), of_states in states.items():
        yield Joined((f"{failed} ({'; '.join(of_states)}): ", topics))


_Effect = tuple[str, FailureEffectRow]


def _scenario_table(failures: FailuresSection) -> Table[_Effect]:
    """Single brokers and racks, the worst first: today and after the plan."""
    column = Column[_Effect]

    def new_leaders(moved: Sequence[MovedToRow]) -> Value:
        """`2: 9, 3: 2`: the brokers that lead more, those with the largest increase first."""
        ranked = sorted(moved, key=lambda row: (-row.leaders, row.broker))
        shown = ", ".join(f"{row.broker}: {number(row.leaders)}" for row in ranked[:_BROKERS_SHOWN])
        hidden_count = len(ranked) - _BROKERS_SHOWN
        return f"{shown}, and {counted(hidden_count, 'broker')} more" if hidden_count > 0 else shown or None

    ordered = sorted(failures.scenarios, key=lambda each: [-value for value in max(map(_badness, each.states))])
    rows = [[(each.failed, state) for state in each.states if state.state in (TODAY, PLANNED)] for each in ordered]
    columns = (
        column("If it fails", lambda row: Sentence(row[0], _LONGEST_FAILED), numeric=False, grouped=True),
        column("State", lambda row: row[1].state, numeric=False),
        column("Offline", lambda row: row[1].offline),
        column("Writes\nrefused", lambda row: row[1].writes_refused),
        column("One replica left", lambda row: row[1].at_risk, narrow="one\nreplica"),
        column("Leaders\nmoved", lambda row: row[1].leaders_moved),
        column("New leaders (broker: leaders)", lambda row: new_leaders(row[1].moved_to), numeric=False),
    )
    return Table(
        "failure",
        [row for each in rows for row in each],
        columns,
        rest=lambda left: counted(len({failed for failed, _ in left}), "milder failure"),
        most=sum(map(len, rows[:_SCENARIOS_SHOWN])),
    )
