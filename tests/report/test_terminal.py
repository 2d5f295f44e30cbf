"""Views on a terminal: names that look like markup, numbers that are never cut, and lines that programs read."""

from __future__ import annotations

import io

from rich.console import Console

from planner.report import terminal
from planner.report.view import Column, Facts, Lines, Name, Section, Table, Value, View


def shown(*blocks: Lines | Facts | Table[tuple[Value, ...]], width: int = 60, is_terminal: bool = False) -> list[str]:
    """The lines of a view of these blocks."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=is_terminal, color_system=None)
    terminal.show(View("", (Section("", blocks),)), console)
    return screen.getvalue().splitlines()


def table(*rows: tuple[Value, ...], most: int | None = None) -> Table[tuple[Value, ...]]:
    """A table of names and counts."""
    columns = (Column("Topic", lambda row: row[0], numeric=False), Column("Replicas", lambda row: row[1], narrow="no."))
    return Table("", "", "topic", rows, columns, most=most)  # type: ignore[arg-type]


def test_numbers_are_flush_right_and_lines_end_where_their_text_ends() -> None:
    """Headings are those for a terminal; off one no line is filled up with blanks."""
    assert ["Topic   no.", "orders    1", "x       100"] == shown(table((Name("orders"), 1), (Name("x"), 100)))
    assert ["Topic  no.", "x      100"] == [line.rstrip() for line in shown(table((Name("x"), 100)), is_terminal=True)]


def test_names_are_no_markup() -> None:
    """A topic may not be called so, a rack may."""
    assert ["Topic    no.", "[red]r1    1"] == shown(table((Name("[red]r1"), 1)))
    assert r"\[bold]" == terminal.plain("[bold]")
    assert ["[/] and [bold]"] == shown(Lines(("[/] and [bold]",)))


def test_names_give_way_to_numbers() -> None:
    """However narrow the screen is; and no letter of them is lost."""
    lines = shown(table((Name("t" * 200), 123_456_789)), width=40)
    assert lines[1].endswith("t  123,456,789")
    assert 200 == "".join(lines[1:]).count("t")
    assert 40 == max(map(len, lines))


def test_what_is_left_out_is_counted() -> None:
    """With where it is."""
    lines = shown(table(*((Name(f"t{number}"), number) for number in range(9)), most=2))
    assert "7 topics left out here: see --format json." == lines[-1]


def test_lines_are_wrapped_for_people_alone() -> None:
    """Programs read a line as it is."""
    long = " ".join(["word"] * 40)
    assert [long] == shown(Lines((long,)))
    assert 4 == len(shown(Lines((long,)), is_terminal=True))


def test_facts_have_their_labels() -> None:
    """One a line."""
    assert ["Runs in  3", "Chosen   –"] == shown(Facts((("Runs in", 3), ("Chosen", None))))


def test_long_texts_are_cut() -> None:
    """At as many characters as asked for."""
    assert len(terminal.plain("x" * 500, 60)) <= 60
