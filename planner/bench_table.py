"""Rows of a Markdown table, one at a time, so that a slow benchmark shows each as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def head(columns: Sequence[str]) -> Iterator[str]:
    """The line of names and the rule below it."""
    yield row(columns)
    yield row(["---"] * len(columns))


def row(cells: Sequence[str]) -> str:
    """One line of the table; a bar within a cell is escaped."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
