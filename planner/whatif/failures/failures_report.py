"""The document of `planner failures` for people: on a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from planner.model.formats import UNKNOWN, counted, number, printable, size
from planner.model.markup import code, text
from planner.plan.document.failure_types import FailedTopicRow, FailureFigures, FailureStateRow, MovedToRow
from planner.plan.templates import environment
from planner.report.terminal_tables import plain, table
from planner.whatif.failures.cluster_states import PLANNED, TODAY
from planner.whatif.failures.failures_summary import FailuresDocument

_HEADINGS = (
    "Fails",
    "State",
    "with\noffline",
    "Worst",
    "\noffline",
    "writes\nrefused",
    "at\nrisk",
    "data\nlost",
    "leaders\nmoved",
    "most\nleaders",
    "over\ncapacity",
)
_EACH = ("If it fails", "State", "offline", "refused", "at risk", "leaders moved", "to")
_SCENARIOS_SHOWN = 12
_TOPICS_SHOWN = 5
_BROKERS_SHOWN = 6
_LEFT = ("Fails", "State", "Worst", "If it fails", "to")


def show(document: FailuresDocument, console: Console) -> None:
    """Print the document: about 40 lines of 100 columns."""
    if document.first_step:
        console.print(f"[bold red]{plain(document.first_step, 600)}[/]", highlight=False, soft_wrap=True)
    console.print(f"[bold]{plain(document.cluster, 60)}[/]: {plain(_scope(document))}", highlight=False)
    console.print(table(_HEADINGS, _kinds(document), _LEFT), highlight=False)
    for line in _topics(document, lambda name: printable(name, 60)):
        console.print(plain(line), highlight=False)
    if document.scenarios:
        console.print(table(_EACH, _scenarios(document), _LEFT), highlight=False)
    for note in document.notes:
        console.print(f"[dim]{plain(note)}[/]", highlight=False)


def markdown(document: FailuresDocument) -> str:
    """The document as Markdown."""
    template = environment().get_template("failures.md.j2")
    return template.render(
        first_step=text(document.first_step or "", 600),
        cluster=text(document.cluster, 60),
        scope=text(_scope(document)),
        kinds=[[text(cell) for cell in row] for row in _kinds(document)],
        topics=list(_topics(document, code)),
        scenarios=[[text(cell) for cell in row] for row in _scenarios(document)],
        notes=[text(note) for note in document.notes],
    )


def _scope(document: FailuresDocument) -> str:
    of = ", ".join(f"{kind.of}: {kind.explained}" for kind in document.kinds)
    if document.plan_id is None:
        return f"what fails today ({of})"
    batches = counted(document.batches, "batch")
    return f"what fails today, in {batches} of plan {document.plan_id[:12]}, and after it ({of})"


def _kinds(document: FailuresDocument) -> Iterator[list[str]]:
    for kind in document.kinds:
        name = kind.of if not kind.of.isdigit() else f"any {kind.of}"
        for state, shown in _few(kind.states):
            worst = state.worst
            yield [
                name,
                shown,
                f"{number(state.with_offline)} of {number(kind.scenarios)}",
                printable(worst.failed, 30),
                *(number(getattr(worst, key)) for key in ("offline", "writes_refused", "at_risk")),
                _lost(worst),
                number(worst.leaders_moved),
                UNKNOWN if worst.leaders_most is None else number(worst.leaders_most),
                UNKNOWN if worst.over_capacity is None else number(worst.over_capacity),
            ]
            name = ""


def _few(states: Sequence[FailureStateRow]) -> Iterator[tuple[FailureStateRow, str]]:
    """Today, the worst batch, and the plan; each with its name."""
    between = [state for state in states if state.state not in (TODAY, PLANNED)]
    for state in states:
        if state.state in (TODAY, PLANNED):
            yield state, state.state
        elif state is between[0]:
            worst = max(between, key=lambda each: _badness(each.worst))
            more = f", worst of {len(between)}" if len(between) > 1 else ""
            yield worst, f"{worst.state}{more}"


def _badness(worst: FailureFigures) -> tuple[int, ...]:
    return tuple(getattr(worst, key) or 0 for key in ("offline", "lost", "writes_refused", "over_capacity", "at_risk"))


def _lost(worst: FailureFigures) -> str:
    lost, known = number(worst.lost), worst.lost_bytes is not None
    return f"{lost}, {size(worst.lost_bytes)}" if worst.lost and known else lost


def _topics(document: FailuresDocument, named: Callable[[str], str]) -> Iterator[str]:
    """The topics that the worst failures hit, a sentence a kind and state."""
    for kind in document.kinds:
        for state, shown in _few(kind.states):
            hit = [row for row in state.worst.topics if row.offline or row.writes_refused]
            if hit:
                told = "; ".join(f"{named(row.topic)} {_hit(row)}" for row in hit[:_TOPICS_SHOWN])
                more = f"; and {len(hit) - _TOPICS_SHOWN} more topics" if len(hit) > _TOPICS_SHOWN else ""
                yield f"{state.worst.failed}, {shown}: {told}{more}"


def _hit(row: FailedTopicRow) -> str:
    refused = row.writes_refused - row.offline
    parts = ((row.offline, "offline"), (refused, "can't be written with acks=all"))
    return ", ".join(f"{number(count)} {what}" for count, what in parts if count > 0)


def _scenarios(document: FailuresDocument) -> Iterator[list[str]]:
    """Brokers and racks by themselves, the worst first: today and after the plan."""
    ordered = sorted(document.scenarios, key=lambda each: [-value for value in max(map(_badness, each.states))])
    for each in ordered[:_SCENARIOS_SHOWN]:
        name = printable(each.failed, 30)
        for state in each.states:
            if state.state in (TODAY, PLANNED):
                facts = (getattr(state, key) for key in ("offline", "writes_refused", "at_risk", "leaders_moved"))
                yield [name, state.state, *map(number, facts), _to(state.moved_to)]
                name = ""
    if len(ordered) > _SCENARIOS_SHOWN:
        yield [f"and {number(len(ordered) - _SCENARIOS_SHOWN)} more", "", "", "", "", "", ""]


def _to(moved: Sequence[MovedToRow]) -> str:
    """`2: 9, 3: 2`: the brokers that lead more, those with the most first."""
    most = sorted(moved, key=lambda row: (-row.leaders, row.broker))
    told = ", ".join(f"{row.broker}: {number(row.leaders)}" for row in most[:_BROKERS_SHOWN])
    more = len(most) - _BROKERS_SHOWN
    return f"{told}, and {counted(more, 'broker')}" if more > 0 else told or UNKNOWN
