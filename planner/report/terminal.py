"""What people are shown on a terminal, by rich, which leaves the colors out by itself where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from planner.model.formats import printable
from planner.report.view import (
    Column,
    Facts,
    Lines,
    Section,
    Table,
    Value,
    View,
    Writer,
    left_out_here,
    written,
    written_rows,
)

# Columns of text are at least as wide as they need, up to this; the first one holds names.
_NEVER_WRAPPED, _NAMES = 12, 24
_LONGEST_REST = 60
_LONGEST_TEXT = 1_000


def plain(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A text as rich takes it: printable, not too long, and no markup."""
    shown = escape(printable(value, at_most))
    # rich doubles a backslash at the end, and takes one away where markup follows alone.
    return f"[none]{shown}[/]" if shown.endswith("\\") else shown


# No name is read as markup, and no control character is obeyed.
_WRITER = Writer(plain, plain, lambda written: f"[bold]{written}[/]")


def line(value: Value) -> str:
    """A value as rich takes it."""
    return written(value, _WRITER)


def show(view: View, console: Console) -> None:
    """Print a view; a table that has more rows than are worth showing says where they are."""
    for step in view.first_steps:
        first_step(step, console)
    if view.title:
        say(f"[bold]{line(view.title)}[/]", console)
    sections(view.sections, view.source, console)


def sections(shown: Sequence[Section], source: str, console: Console, *, most_rows: int | None = None) -> None:
    """Print sections with a line between two; tables of at most so many rows."""
    for at, section in enumerate(shown):
        if at:
            console.print()
        _section(section, source, console, most_rows)


def first_step(sentence: str, console: Console) -> None:
    """What is left to do, on one line wherever it is read: it must not be cut off."""
    if sentence:
        console.print(f"[bold red]{plain(sentence)}[/]", highlight=False, soft_wrap=True)


def say(markup: str, console: Console) -> None:
    """A line, which only a terminal wraps: programs read lines as they are."""
    console.print(markup, highlight=False, soft_wrap=not console.is_terminal)


def _print(drawn: RichTable, console: Console) -> None:
    """A table, off a terminal without the blanks that fill its lines up."""
    if console.is_terminal:
        console.print(drawn, highlight=False)
        return
    with console.capture() as captured:
        console.print(drawn, highlight=False)
    console.out("\n".join(each.rstrip() for each in captured.get().splitlines()), highlight=False)


def _section(section: Section, source: str, console: Console, most_rows: int | None) -> None:
    if section.title:
        say(f"[bold]{line(section.title)}[/]", console)
    for at, block in enumerate(section.blocks):
        if at:
            console.print()
        match block:
            case Lines():
                for each in block.lines:
                    shown = line(each)
                    say(f"[dim]{shown}[/]" if block.quiet else shown, console)
            case Facts(facts):
                _facts(facts, console)
            case _:
                table(block, console, source=source, most_rows=most_rows)


def _facts(facts: Sequence[tuple[str, Value]], console: Console) -> None:
    """Labels in a column, and beside each what it is of, which only a terminal wraps."""
    drawn = RichTable.grid(padding=(0, 2, 0, 0))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold", no_wrap=not console.is_terminal)
    for label, value in facts:
        drawn.add_row(escape(label), line(value))
    _print(drawn, console)


def table(of: Table[Any], console: Console, *, source: str, most_rows: int | None = None) -> None:
    """Print a table without borders, and what it leaves out; nothing where it has no rows.

    Columns that a terminal has no room for are left out, those on the right first: no number is ever cut.
    """
    if not of.rows:
        return
    shown = of.shown(most_rows)
    columns = [column for column in of.columns if not column.wide]
    rows = list(written_rows(shown, columns, _WRITER))
    wide = [_width(column, [cells[at] for cells in rows]) for at, column in enumerate(columns)]
    # Names and sentences give way to a second line.
    least = [
        width if each.numeric else min(width, _NEVER_WRAPPED if at else _NAMES)
        for at, (each, width) in enumerate(zip(columns, wide, strict=True))
    ]
    fitting = _fitting(least, console.width)
    widths = _shared(least[:fitting], wide, console.width)
    drawn = RichTable(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for column, width, whole in zip(columns[:fitting], widths, wide, strict=False):
        justify: Literal["left", "right"] = "right" if column.numeric else "left"
        drawn.add_column(
            escape(_heading(column)), justify=justify, no_wrap=width == whole, width=width, overflow="fold"
        )
    for row, cells in zip(shown, rows, strict=True):
        drawn.add_row(*cells[:fitting], style="bold" if of.strong and of.strong(row) else None)
    _print(drawn, console)
    left_out = of.left_out(shown, _LONGEST_REST)
    if left_out:
        console.print(f"[dim]{plain(left_out_here(left_out, source))}[/]", highlight=False)
    if fitting < len(columns):
        names = ", ".join(" ".join(_heading(column).split()) for column in columns[fitting:])
        console.print(f"[dim]Columns that need a wider terminal: {plain(names)}[/]", highlight=False)


def _heading(column: Column[Any]) -> str:
    return column.heading if column.narrow is None else column.narrow


def _width(column: Column[Any], cells: Sequence[str]) -> int:
    """The most that a column takes."""
    lines = [*_heading(column).split("\n"), *(Text.from_markup(cell).plain for cell in cells)]
    return max(map(cell_len, lines))


def _shared(least: Sequence[int], wide: Sequence[int], room: int) -> list[int]:
    """The width of each column that fits: what it needs at least, and those on the left first, what is left over."""
    left = room - sum(least) - 2 * (len(least) - 1)
    widths = []
    for narrow, whole in zip(least, wide, strict=False):
        more = max(0, min(left, whole - narrow))
        left -= more
        widths.append(narrow + more)
    return widths


def _fitting(widths: Sequence[int], room: int) -> int:
    """How many columns fit, each whole or, where it may wrap, as narrow as it gets; two at least."""
    taken = -2
    for at, width in enumerate(widths):
        taken += 2 + width
        if taken > room and at >= 2:
            return at
    return len(widths)
