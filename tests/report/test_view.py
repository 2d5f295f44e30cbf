"""Values with units, and tables with columns: what every renderer gets, and what is left out."""

from __future__ import annotations

import pytest

from planner.report import html, markdown, terminal
from planner.report.view import (
    GAP,
    SECONDS,
    STATED,
    Change,
    Column,
    Joined,
    Lines,
    Name,
    Quantity,
    Sentence,
    Strong,
    Table,
    Value,
    Writer,
    sort_key,
    visible,
    written_rows,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("", ""),
        (1234, "1,234"),
        (Quantity(24_000_000_000, "bytes"), "24.0 GB"),
        (Quantity(3_000_000, "bytes/s"), "3.00 MB/s"),
        (Quantity(None, "bytes"), "–"),
        (Quantity(12.345, "%"), "12.3 %"),
        (Quantity(0.0, GAP), "0 %"),
        (Quantity(5.0001, GAP), "5.01 %"),
        (Quantity(240, SECONDS), "4 min"),
        (Quantity(20 * 2**30, STATED), "20 GiB"),
        (Change(1, 2), "1 → 2"),
        (Change(Quantity(1000, "bytes"), Quantity(1001, "bytes")), "1.00 kB"),
        (Joined(("a ", 3, None), "/"), "a /3/–"),
        (Sentence("abcdef", 4), "abc…"),
        (Strong(""), ""),
    ],
)
def test_a_value_is_written_with_its_unit(value: Value, text: str) -> None:
    """All renderers write a value alike; HTML has no line break before a unit."""
    assert text == markdown.line(value) == terminal.line(value) == html.line(value).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (Quantity(2e9, "bytes"), 2e9),
        (Quantity(None, "bytes"), -1),
        (Change(3, Quantity(7, "%")), 7),
        (Strong(Name("b")), "b"),
        (Joined(("x", 1)), "x"),
        (None, -1),
    ],
)
def test_values_are_sorted_by_what_they_are(value: Value, key: str | float) -> None:
    """Values are sorted by amount (24 GB after 5 MB), and a change by its result."""
    assert key == sort_key(value)


def numbers(count: int, **more: object) -> Table[int]:
    """A table of the numbers below a count."""
    return Table("number", range(count), (Column("n", str),), **more)  # type: ignore[arg-type]


def test_a_table_says_what_it_leaves_out() -> None:
    """A table shows as many rows as fit, up to its own maximum; it counts the rest, or uses its own words for it."""
    plain = numbers(10)
    assert (0, 1, 2) == tuple(plain.shown(3))
    assert "7 numbers" == plain.left_out(plain.shown(3))
    assert "" == plain.left_out(plain.shown(None))
    assert 4 == len(numbers(10, most=4).shown(9))
    named = numbers(10, rest=lambda rows: f"those from {rows[0]} on")
    assert "those from 3 on" == named.left_out(named.shown(3))
    assert "7 numbers" == named.left_out(named.shown(3), at_most=5)


def test_some_tables_choose_their_rows() -> None:
    """A table may choose its rows; the rest is what it didn't choose."""
    rows = [{"n": number} for number in range(5)]
    table = Table("row", rows, (), few=lambda all_rows, most: all_rows[-most:], rest=lambda left: str(left[0]["n"]))
    assert rows[3:] == table.shown(2)
    assert "0" == table.left_out(table.shown(2))


def test_a_grouped_column_says_a_thing_once() -> None:
    """A grouped column writes a value once for consecutive rows, and again after another value."""
    columns = (Column[tuple[str, int]]("group", lambda row: row[0], grouped=True), Column("n", lambda row: row[1]))
    rows = [("a", 1), ("a", 1), ("b", 1), ("a", 2)]
    shown = list(written_rows(rows, columns, Writer(lambda name, _: name, lambda text, _: text, str)))
    assert [["a", "1"], ["", "1"], ["b", "1"], ["a", "2"]] == shown


def test_what_has_nothing_to_show_is_no_block() -> None:
    """Tables without rows and lists without lines are left out."""
    assert (Lines(("x",)),) == visible(numbers(0), Lines(()), Lines(("x",)))
