"""Tables of `rich` for what-ifs on a terminal; names from a cluster are shown as they are, never read as markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.markup import escape
from rich.table import Table

from planner.figures import printable

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
