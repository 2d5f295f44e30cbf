"""The document of `planner failures` as people are shown it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.model.formats import counted, number, size
from planner.plan.document.whatif_types import (
    FailedTopicRow,
    FailureEffectRow,
    FailureFigures,
    FailureKindRow,
    FailureStateRow,
    MovedToRow,
)
from planner.report.view import Column, Joined, Lines, Name, Section, Sentence, Table, Value, View, told
from planner.whatif.failures.cluster_states import PLANNED, TODAY
from planner.whatif.failures.failures_summary import FailuresDocument

_SCENARIOS_SHOWN = 12
_TOPICS_SHOWN = 5
_BROKERS_SHOWN = 6
_LONGEST_FAILED = 30
_LONGEST_SCOPE = 400


def view(document: FailuresDocument) -> View:
    """The worst failure of each kind, the topics that it hits, each broker and rack by itself, and notes."""
    blocks = told(
        Lines((Sentence(_scope(document), _LONGEST_SCOPE),), bulleted=False),
        _worst(document),
        Lines(tuple(_topics(document))),
        _by_themselves(document),
        Lines(document.notes, quiet=True),
    )
    return View(f"{document.cluster}: failures", (Section("", blocks),), (document.first_step or "",))


def _scope(document: FailuresDocument) -> str:
    of = ", ".join(f"{kind.of}: {kind.explained}" for kind in document.kinds)
    if document.plan_id is None:
        return f"what fails today ({of})"
    batches = counted(document.batches, "batch")
    return f"what fails today, in {batches} of plan {document.plan_id[:12]}, and after it ({of})"


class _Worst(NamedTuple):
    """The worst failure of a kind in a state, or in the worst of several batches."""

    kind: FailureKindRow
    state: FailureStateRow
    of: str


def _rows(document: FailuresDocument) -> Iterator[_Worst]:
    """Of each kind today, the worst batch, and the plan."""
    for kind in document.kinds:
        between = [state for state in kind.states if state.state not in (TODAY, PLANNED)]
        for state in kind.states:
            if state.state in (TODAY, PLANNED):
                yield _Worst(kind, state, state.state)
            elif state is between[0]:
                worst = max(between, key=lambda each: _badness(each.worst))
                more = f", worst of {len(between)}" if len(between) > 1 else ""
                yield _Worst(kind, worst, f"{worst.state}{more}")


def _badness(worst: FailureFigures) -> tuple[int, ...]:
    return tuple(getattr(worst, key) or 0 for key in ("offline", "lost", "writes_refused", "over_capacity", "at_risk"))


def _worst(document: FailuresDocument) -> Table[_Worst]:
    column = Column[_Worst]
    columns = (
        column("Fails", lambda row: kind_name(row.kind.of), numeric=False, grouped=True),
        column("State", lambda row: row.of, numeric=False),
        column(
            "With offline",
            lambda row: f"{number(row.state.with_offline)} of {number(row.kind.scenarios)}",
            narrow="with\noffline",
        ),
        column("Worst", lambda row: Sentence(row.state.worst.failed, _LONGEST_FAILED), numeric=False),
        column("Offline", lambda row: row.state.worst.offline, narrow="\noffline"),
        column("Writes refused", lambda row: row.state.worst.writes_refused, narrow="writes\nrefused"),
        column("At risk", lambda row: row.state.worst.at_risk, narrow="at\nrisk"),
        column("Data lost", lambda row: _lost(row.state.worst), narrow="data\nlost"),
        column("Leaders moved", lambda row: row.state.worst.leaders_moved, narrow="leaders\nmoved"),
        column("Most leaders", lambda row: row.state.worst.leaders_most, narrow="most\nleaders"),
        column("Over capacity", lambda row: row.state.worst.over_capacity, narrow="over\ncapacity"),
    )
    return Table("", "", "failure", list(_rows(document)), columns)


def kind_name(of: str) -> str:
    """`brokers`, `racks`, `pairs`, or `any 3`."""
    return f"any {of}" if of.isdigit() else of


def _lost(worst: FailureFigures) -> str:
    lost, known = number(worst.lost), worst.lost_bytes is not None
    return f"{lost}, {size(worst.lost_bytes)}" if worst.lost and known else lost


def _topics(document: FailuresDocument) -> Iterator[Value]:
    """The topics that the worst failures hit, a sentence a kind and state."""
    for _, state, of in _rows(document):
        hit = [row for row in state.worst.topics if row.offline or row.writes_refused]
        if hit:
            names = (Joined((Name(row.topic, 60), f" {_hit(row)}")) for row in hit[:_TOPICS_SHOWN])
            more = (f"and {len(hit) - _TOPICS_SHOWN} more topics",) if len(hit) > _TOPICS_SHOWN else ()
            yield Joined((f"{state.worst.failed}, {of}: ", Joined((*names, *more), "; ")))


def _hit(row: FailedTopicRow) -> str:
    refused = row.writes_refused - row.offline
    parts = ((row.offline, "offline"), (refused, "can't be written with acks=all"))
    return ", ".join(f"{number(count)} {what}" for count, what in parts if count > 0)


_Effect = tuple[str, FailureEffectRow]


def _by_themselves(document: FailuresDocument) -> Table[_Effect]:
    """Brokers and racks by themselves, the worst first: today and after the plan."""
    column = Column[_Effect]
    ordered = sorted(document.scenarios, key=lambda each: [-value for value in max(map(_badness, each.states))])
    rows = [[(each.failed, state) for state in each.states if state.state in (TODAY, PLANNED)] for each in ordered]
    columns = (
        column("If it fails", lambda row: Sentence(row[0], _LONGEST_FAILED), numeric=False, grouped=True),
        column("State", lambda row: row[1].state, numeric=False),
        column("Offline", lambda row: row[1].offline),
        column("Writes refused", lambda row: row[1].writes_refused, narrow="writes\nrefused"),
        column("At risk", lambda row: row[1].at_risk),
        column("Leaders moved", lambda row: row[1].leaders_moved, narrow="leaders\nmoved"),
        column("To", lambda row: _to(row[1].moved_to), numeric=False),
    )
    return Table(
        "",
        "",
        "failure",
        [row for each in rows for row in each],
        columns,
        rest=lambda left: counted(len({failed for failed, _ in left}), "milder failure"),
        most=sum(map(len, rows[:_SCENARIOS_SHOWN])),
    )


def _to(moved: Sequence[MovedToRow]) -> Value:
    """`2: 9, 3: 2`: the brokers that lead more, those with the most first."""
    most = sorted(moved, key=lambda row: (-row.leaders, row.broker))
    shown = ", ".join(f"{row.broker}: {number(row.leaders)}" for row in most[:_BROKERS_SHOWN])
    more = len(most) - _BROKERS_SHOWN
    return f"{shown}, and {counted(more, 'broker')}" if more > 0 else shown or None
