"""Tables: of `rich` for a terminal, and of text, aligned or with pipes for Markdown. Names are never read as markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.markup import escape
from rich.table import Table

from planner.model.formats import printable

Rows = Sequence[Sequence[str]]


def aligned(header: Sequence[str], rows: Rows, right: Sequence[int] = ()) -> str:
    """Lines of columns, two blanks between them; the columns numbered in `right` are flush right. Ends in a newline."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "".join(_line(row, widths, right) for row in (header, *rows))


def markdown(header: Sequence[str], rows: Rows, right: Sequence[int] = ()) -> str:
    """The same as a Markdown table."""
    rules = ["--:" if column in right else "---" for column in range(len(header))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rules, *rows))


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip() + "\n"


_LONGEST_TEXT = 400


def table(headings: Iterable[str], rows: Iterable[Sequence[str]], left: Collection[str] = ()) -> Table:
    """Columns without lines between them; those headed by one of `left` are flush left, the others right."""
    made = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        made.add_row(*map(plain, row))
    return made


def plain(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A text as cell or line: printable, not too long, and no markup."""
    return escape(printable(value, at_most))
