"""What people are shown on a page: sections as the template `report.html.j2` takes them, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from planner.model.formats import counted, printable
from planner.report.view import Block, Facts, Lines, Section, Table, Value, Writer, left_out_here, sort_key, written

# A page opens at once with that many rows; whoever needs all of them has their source.
MOST_ROWS = 500
_MOST_LINES = 100


def _plain(value: str, longest: int) -> str:
    """A name or text escaped, on one line and without control characters."""
    return escape(printable(value, longest))


_WRITER = Writer(_plain, _plain, lambda written: f"<b>{written}</b>")


@dataclass(frozen=True)
class HtmlCell:
    """A cell, its text escaped; `key` is what its column is sorted by, None where the order stays."""

    text: Markup
    numeric: bool
    key: str | float | None


@dataclass(frozen=True)
class HtmlTable:
    """Headings, each with whether it is of numbers, rows, which of them stand out, and what is said of the rest."""

    name: str
    caption: str
    headings: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    strong: frozenset[int]
    left_out: str
    kind: str = "table"


@dataclass(frozen=True)
class HtmlLines:
    """Paragraphs, or the items of a list."""

    lines: tuple[Markup, ...]
    kind: str


@dataclass(frozen=True)
class HtmlFacts:
    """Labels and what they are of."""

    facts: tuple[tuple[str, Markup], ...]
    kind: str = "facts"


@dataclass(frozen=True)
class HtmlSection:
    """A part of the page with its plot, if it has one, in whose place a reader can unfold the tables."""

    name: str
    title: Markup
    blocks: tuple[HtmlTable | HtmlLines | HtmlFacts, ...]
    plot: Any = None


def line(value: Value) -> Markup:
    """A value as HTML."""
    return Markup(written(value, _WRITER))


def section(of: Section, name: str, source: str, plot: Any = None) -> HtmlSection:
    """A section under a name of the page's."""
    return HtmlSection(name, line(of.title), tuple(_block(block, source) for block in of.blocks), plot)


def _block(block: Block, source: str) -> HtmlTable | HtmlLines | HtmlFacts:
    match block:
        case Lines():
            shown = tuple(line(each) for each in block.lines[:_MOST_LINES])
            rest = len(block.lines) - len(shown)
            more = (Markup(escape(left_out_here(counted(rest, block.line), source))),) if rest else ()
            return HtmlLines((*shown, *more), "list" if block.bulleted else "paragraphs")
        case Facts(facts):
            return HtmlFacts(tuple((label, line(value)) for label, value in facts))
        case _:
            return table(block, source)


def table(of: Table[Any], source: str, most_rows: int = MOST_ROWS) -> HtmlTable:
    """A table of the first rows, or of those that it takes where not all are shown."""
    shown = of.shown(most_rows)
    left_out = of.left_out(shown)
    return HtmlTable(
        of.name,
        of.title,
        tuple((column.heading, column.numeric) for column in of.columns),
        tuple(_row(of, row) for row in shown),
        frozenset(at for at, row in enumerate(shown) if of.strong and of.strong(row)),
        left_out_here(left_out, source) if left_out else "",
    )


def _row(of: Table[Any], row: Any) -> tuple[HtmlCell, ...]:
    values: Sequence[tuple[Value, bool]] = [(column.value(row), column.numeric) for column in of.columns]
    return tuple(
        HtmlCell(line(value), numeric, sort_key(value) if of.sortable and numeric else None)
        for value, numeric in values
    )
