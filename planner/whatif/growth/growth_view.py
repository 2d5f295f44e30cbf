"""The document of `planner growth` as people are shown it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from planner.model.formats import size
from planner.plan.document.whatif_types import (
    GrowthAssignmentRow,
    GrowthBrokerRow,
    GrowthLoad,
    GrowthOptionRow,
    GrowthTopicRow,
)
from planner.report.view import Column, Lines, Name, Quantity, Section, Sentence, Table, Value, View, told
from planner.whatif.growth.growth_summary import GrowthDocument
from planner.whatif.growth.lifetime import MOST_TIMES

_TOO_MANY = f"not planned, as it is more than {MOST_TIMES} times as many, or than there are replicas for"
_BROKERS_SHOWN = 24
_TOPICS_SHOWN = 8
_LONGEST_RACK = 20
_LONGEST_TOPIC = 60


def view(document: GrowthDocument) -> View:
    """How long each assignment lasts, when each broker is full, brokers that would help, and what grows."""
    blocks = told(
        Lines(tuple(_verdicts(document))),
        _brokers(document),
        _options(document),
        _topics(document),
        Lines(document.notes, quiet=True),
    )
    return View(f"{document.cluster}: growth", (Section("", blocks),), (document.first_step or "",))


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
            how = f"; up to {max(tried)} don't last so long" if tried else f": {_TOO_MANY}"
            yield f"Of {kind.broker_class} it takes at least {kind.at_least} more{how}."


def _lasts(document: GrowthDocument, row: GrowthAssignmentRow) -> str:
    if row.month is None:
        return f"lasts all {document.months} months"
    return f"lasts until month {row.month}, when broker {row.broker} reaches its {row.limit} limit"


def _brokers(document: GrowthDocument) -> Table[GrowthBrokerRow]:
    """Those that reach a limit first come first."""
    column = Column[GrowthBrokerRow]

    def held(state: GrowthLoad | None) -> Value:
        return None if state is None else Quantity(state.size_bytes, "bytes")

    def month(state: GrowthLoad | None, key: str) -> Value:
        found = None if state is None else getattr(state, key)
        return None if found is None else f"month {found}"

    then = f"In {document.months} months: today's"
    columns = (
        column("Broker", lambda row: str(row.id)),
        column("Rack", lambda row: None if row.rack is None else Name(row.rack, _LONGEST_RACK), numeric=False),
        column("Disk limit", lambda row: Quantity(row.disk_limit_bytes, "bytes"), narrow="disk\nlimit"),
        column(then, lambda row: held(row.today), narrow=then.lower().replace(": ", ":\n")),
        column("planned", lambda row: held(row.planned), narrow="\nplanned"),
        column("Disk full: today's", lambda row: month(row.today, "disk_month"), narrow="disk full:\ntoday's"),
        column("planned", lambda row: month(row.planned, "disk_month"), narrow="\nplanned"),
        column("Network full: today's", lambda row: month(row.today, "network_month"), narrow="network full:\ntoday's"),
        column("planned", lambda row: month(row.planned, "network_month"), narrow="\nplanned"),
    )
    ordered = sorted(document.brokers, key=lambda each: (_soonest(each), each.id))
    return Table("", "", "broker", ordered, columns, most=_BROKERS_SHOWN)


def _soonest(broker: GrowthBrokerRow) -> int:
    states = [state for state in (broker.today, broker.planned) if state]
    months = [month for state in states for month in (state.disk_month, state.network_month) if month is not None]
    return min(months, default=1 << 30)


def _options(document: GrowthDocument) -> Table[GrowthOptionRow]:
    column = Column[GrowthOptionRow]

    def lasts(row: GrowthOptionRow) -> str:
        return "all months" if row.holds else f"until month {row.month}" if row.feasible else "no plan"

    columns = (
        column(
            "Brokers more", lambda row: Sentence(f"{row.option}{' (fewest)' if row.fewest else ''}", 50), numeric=False
        ),
        column("In all", attrgetter("brokers")),
        column("Lasts", lasts, numeric=False),
        column(
            "First limit",
            lambda row: None if row.limit is None else f"broker {row.broker}, {row.limit}",
            numeric=False,
        ),
        column("Copied", lambda row: Quantity(row.bytes_moved, "bytes")),
        column("Replicas", attrgetter("replicas_moved")),
        column("Leaders", attrgetter("leaders_changed")),
        column("Fullest disk", lambda row: Quantity(row.fullest_percent, "%")),
    )
    return Table("", "", "option", document.options, columns)


def _topics(document: GrowthDocument) -> Table[GrowthTopicRow]:
    """Those first that grow by the most bytes."""
    column = Column[GrowthTopicRow]
    columns = (
        column("Topic", lambda row: Name(row.topic, _LONGEST_TOPIC), numeric=False),
        column("A month", lambda row: Quantity(row.per_month_percent, "%")),
        column("Holds", attrgetter("size"), numeric=False),
        column("Today", lambda row: Quantity(row.size_bytes, "bytes")),
        column(f"In {document.months} months", lambda row: Quantity(row.size_bytes_then, "bytes")),
    )
    ordered = sorted(document.topics, key=lambda each: (each.size_bytes - each.size_bytes_then, each.topic))
    return Table("", "", "topic", ordered, columns, most=_TOPICS_SHOWN)
