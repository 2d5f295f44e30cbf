"""Writes a Markdown table row by row, so that a slow benchmark shows each row as soon as it is known.

A section of the benchmark yields lines of text, and for every row also its figures as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN = "–"


@dataclass(frozen=True)
class Figures:
    """One row of `table` as numbers by name: bytes, seconds and counts, as JSON values."""

    table: str
    values: Mapping[str, Any]


Entries = Iterator[str | Figures]


def head(columns: Sequence[str]) -> Iterator[str]:
    """The line of column names and the rule below it."""
    yield row(columns)
    yield row(["---"] * len(columns))


def row(cells: Sequence[str]) -> str:
    """One line of the table; a vertical bar in a cell is escaped."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def gigabytes(size_bytes: float) -> str:
    """Bytes as GB, to the megabyte."""
    return f"{size_bytes / 1e9:,.3f}"


def megabytes(size_bytes: int) -> str:
    """Bytes as whole MB; 0 is unknown."""
    return f"{size_bytes / 1e6:,.0f}" if size_bytes else UNKNOWN


def gap(moved: int, least: int) -> str:
    """How much more than the least was moved, in percent; four decimals, because gaps are small."""
    if least:
        return f"{(moved - least) / least * 100:.4f} %"
    return UNKNOWN if moved else "0.0000 %"


def ratio(amount: float, ours: float) -> str:
    """An amount as a multiple of ours."""
    return f"{amount / ours:.3f}" if ours else UNKNOWN
