"""Tables on a terminal: which side columns keep to, and names that look like markup."""

from __future__ import annotations

import io

from rich.console import Console

from planner.report.terminal_tables import plain, table


def shown(*headings: str, rows: list[list[str]], left: tuple[str, ...] = ()) -> list[str]:
    """The lines of a table."""
    screen = io.StringIO()
    Console(file=screen, width=60).print(table(headings, rows, left))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def test_columns_are_flush_right_unless_named() -> None:
    """Words are named, figures aren't."""
    rows = [["orders", "1"], ["x", "100"]]
    assert ["Topic  Count", "orders     1", "x        100"] == shown("Topic", "Count", rows=rows, left=("Topic",))


def test_names_are_no_markup() -> None:
    """A topic may not be called so, a rack may."""
    assert ["Rack", "[red]r1"] == shown("Rack", rows=[["[red]r1"]], left=("Rack",))
    assert r"\[bold]" == plain("[bold]")


def test_long_texts_are_cut() -> None:
    """At as many characters as asked for."""
    assert len(plain("x" * 500, 60)) <= 60
