"""What people are shown on a terminal, by rich, which leaves the colors out by itself where there is no terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from planner.model.formats import printable
from planner.report.view import Facts, Lines, Section, Table, Value, View, Writer, left_out_here, written, written_rows

_NEVER_WRAPPED = 12
_LONGEST_REST = 60
_LONGEST_TEXT = 1_000


def plain(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A text as rich takes it: printable, not too long, and no markup."""
    return escape(printable(value, at_most))


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
        _say(f"[bold]{line(view.title)}[/]", console)
    for at, section in enumerate(view.sections):
        if at:
            console.print()
        _section(section, view.source, console)


def first_step(sentence: str, console: Console) -> None:
    """What is left to do, on one line wherever it is read: it must not be cut off."""
    if sentence:
        console.print(f"[bold red]{plain(sentence)}[/]", highlight=False, soft_wrap=True)


def _say(markup: str, console: Console) -> None:
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


def _section(section: Section, source: str, console: Console) -> None:
    if section.title:
        _say(f"[bold]{line(section.title)}[/]", console)
    for at, block in enumerate(section.blocks):
        if at:
            console.print()
        match block:
            case Lines():
                for each in block.lines:
                    shown = line(each)
                    _say(f"[dim]{shown}[/]" if block.quiet else shown, console)
            case Facts(facts):
                for label, value in facts:
                    _say(f"{label}: {line(value)}", console)
            case _:
                table(block, console, source=source)


def table(of: Table[Any], console: Console, *, source: str, most_rows: int | None = None) -> None:
    """Print a table without borders, and what it leaves out; nothing where it has no rows."""
    if not of.rows:
        return
    shown = of.shown(most_rows)
    columns = [column for column in of.columns if not column.wide]
    drawn = RichTable(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    rows = list(written_rows(shown, columns, _WRITER))
    for at, column in enumerate(columns):
        heading = escape(column.heading if column.narrow is None else column.narrow)
        # Names and sentences give way to a second line, so that no number is ever cut.
        whole = column.numeric or max(len(cells[at]) for cells in rows) <= _NEVER_WRAPPED
        drawn.add_column(heading, justify="right" if column.numeric else "left", no_wrap=whole, overflow="ellipsis")
    for row, cells in zip(shown, rows, strict=True):
        drawn.add_row(*cells, style="bold" if of.strong and of.strong(row) else None)
    _print(drawn, console)
    left_out = of.left_out(shown, _LONGEST_REST)
    if left_out:
        console.print(f"[dim]{plain(left_out_here(left_out, source))}[/]", highlight=False)
