"""Tables of text: aligned columns for a terminal, pipes for Markdown. Whoever makes the cells escapes them."""

from __future__ import annotations

from collections.abc import Sequence

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
