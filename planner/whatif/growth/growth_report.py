"""The document of `planner growth` for people: on a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from planner.model.formats import UNKNOWN, number, percent, printable, size
from planner.model.markup import text
from planner.plan.document.growth_types import GrowthAssignmentRow, GrowthBrokerRow
from planner.plan.templates import environment
from planner.report.terminal_tables import plain, table
from planner.whatif.growth.growth_summary import GrowthDocument
from planner.whatif.growth.lifetime import MOST_TIMES

_LEFT = ("Broker", "Rack", "Brokers more", "lasts", "first limit", "Topic", "holds")
_OPTIONS = ("Brokers more", "in all", "lasts", "first limit", "copied", "replicas", "leaders", "fullest disk")
_TOO_MANY = f"not planned, as it is more than {MOST_TIMES} times as many, or than there are replicas for"
_BROKERS_SHOWN = 24
_TOPICS_SHOWN = 8


def show(document: GrowthDocument, console: Console) -> None:
    """Print the document: about 40 lines of 100 columns."""
    if document.first_step:
        console.print(f"[bold red]{plain(document.first_step, 600)}[/]", highlight=False, soft_wrap=True)
    console.print(f"[bold]{plain(document.cluster, 60)}[/]", highlight=False)
    for line in _verdicts(document):
        console.print(plain(line), highlight=False)
    months = document.months
    headings = (
        "Broker",
        "Rack",
        "disk\nlimit",
        f"in {months} months:\ntoday's",
        "\nplanned",
        "disk full:\ntoday's",
        "\nplanned",
        "network full:\ntoday's",
        "\nplanned",
    )
    console.print(table(headings, _brokers(document), _LEFT), highlight=False)
    if document.options:
        console.print(table(_OPTIONS, _options(document), _LEFT), highlight=False)
    of_topics = ("Topic", "a month", "holds", "today", f"in {months} months")
    console.print(table(of_topics, _topics(document), _LEFT), highlight=False)
    for note in document.notes:
        console.print(f"[dim]{plain(note)}[/]", highlight=False)


def markdown(document: GrowthDocument) -> str:
    """The document as Markdown."""
    template = environment().get_template("growth.md.j2")
    return template.render(
        first_step=text(document.first_step or "", 600),
        cluster=text(document.cluster, 60),
        months=document.months,
        verdicts=[text(line) for line in _verdicts(document)],
        brokers=_cells(_brokers(document)),
        options=_cells(_options(document)),
        topics=_cells(_topics(document)),
        notes=[text(note) for note in document.notes],
    )


def _cells(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[text(cell) for cell in row] for row in rows]


def _verdicts(document: GrowthDocument) -> Iterator[str]:
    for each in document.assignments:
        name = "Today's assignment" if each.assignment == "today" else "The planned one"
        moved = f", after copying {size(each.bytes_moved)}" if each.bytes_moved else ""
        if not each.feasible:
            yield f"{name} isn't possible: no plan keeps every rule."
        else:
            yield f"{name} {_lasts(document, each)}{moved}."
    fewest = [each for each in document.options if each.fewest]
    for option in fewest:
        copied = size(option.bytes_moved)
        yield f"With {option.option} more it lasts all {document.months} months, for {copied} copied."
    for kind in document.classes:
        if kind.broker_class not in {option.broker_class for option in fewest} and kind.at_least > 0:
            tried = [option.added for option in document.options if option.broker_class == kind.broker_class]
            told = f"; up to {max(tried)} don't last so long" if tried else f": {_TOO_MANY}"
            yield f"Of {kind.broker_class} it takes at least {kind.at_least} more{told}."


def _lasts(document: GrowthDocument, row: GrowthAssignmentRow) -> str:
    if row.month is None:
        return f"lasts all {document.months} months"
    return f"lasts until month {row.month}, when broker {row.broker} reaches its {row.limit} limit"


def _brokers(document: GrowthDocument) -> Iterator[list[str]]:
    """Those that reach a limit first come first."""
    ordered = sorted(document.brokers, key=lambda each: (_soonest(each), each.id))
    for each in ordered[:_BROKERS_SHOWN]:
        states = [each.today, each.planned]
        yield [
            str(each.id),
            printable(each.rack or UNKNOWN, 20),
            size(each.disk_limit_bytes),
            *(UNKNOWN if state is None else size(state.size_bytes) for state in states),
            *(_month(None if state is None else state.disk_month) for state in states),
            *(_month(None if state is None else state.network_month) for state in states),
        ]
    if len(ordered) > _BROKERS_SHOWN:
        yield [f"and {number(len(ordered) - _BROKERS_SHOWN)} more", *[""] * 8]


def _soonest(broker: GrowthBrokerRow) -> int:
    states = [state for state in (broker.today, broker.planned) if state]
    months = [month for state in states for month in (state.disk_month, state.network_month) if month is not None]
    return min(months, default=1 << 30)


def _month(month: int | None) -> str:
    return UNKNOWN if month is None else f"month {month}"


def _options(document: GrowthDocument) -> Iterator[list[str]]:
    for each in document.options:
        lasts = "all months" if each.holds else f"until month {each.month}" if each.feasible else "no plan"
        limit = UNKNOWN if each.limit is None else f"broker {each.broker}, {each.limit}"
        yield [
            printable(f"{each.option}{' (fewest)' if each.fewest else ''}", 50),
            number(each.brokers),
            lasts,
            limit,
            size(each.bytes_moved),
            *(UNKNOWN if count is None else number(count) for count in (each.replicas_moved, each.leaders_changed)),
            percent(each.fullest_percent),
        ]


def _topics(document: GrowthDocument) -> Iterator[list[str]]:
    """Those first that grow by the most bytes."""
    ordered = sorted(document.topics, key=lambda each: (each.size_bytes - each.size_bytes_then, each.topic))
    for each in ordered[:_TOPICS_SHOWN]:
        yield [
            printable(each.topic, 60),
            percent(each.per_month_percent),
            each.size,
            size(each.size_bytes),
            size(each.size_bytes_then),
        ]
    if len(ordered) > _TOPICS_SHOWN:
        yield [f"and {number(len(ordered) - _TOPICS_SHOWN)} more", "", "", "", ""]
