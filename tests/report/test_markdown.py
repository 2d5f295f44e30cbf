"""Views as Markdown: headings, what is folded, what fits, and rows that keep their cells whatever a name holds."""

from __future__ import annotations

from markdown_it import MarkdownIt

from planner.report import markdown
from planner.report.markdown import Room
from planner.report.view import Column, Facts, Lines, Name, Section, Strong, Table, View


def table(count: int = 2, title: str = "") -> Table[int]:
    """A table of the numbers below a count."""
    columns = (
        Column[int]("Name", lambda n: Name(f"a|b{n}"), numeric=False),
        Column[int]("Twice", lambda n: Strong(2 * n)),
    )
    return Table("numbers", title, "number", range(count), columns, strong=lambda n: n == 1)


def test_a_page_has_headings_lists_and_tables() -> None:
    """First what must be read first; a table's heading is its own where it has a title."""
    sections = (
        Section(Name("g*"), (Lines(("said_",)), Lines(("a paragraph",), bulleted=False))),
        Section("Not shown", (table(title="Numbers"),)),
        Section("", (Facts((("Runs in", "2 batches"),)),)),
    )
    page = markdown.render(View("c: title", sections, ("FIRST STEP", "")))

    assert page == (
        "**FIRST STEP**\n\n# c: title\n\n## `g*`\n\n- said\\_\n\na paragraph\n\n**Numbers**\n\n"
        "| Name | Twice |\n|:--|--:|\n| `a\\|b0` | **0** |\n| **`a\\|b1`** | **2** |\n\n- Runs in: 2 batches\n"
    )


def test_rows_keep_their_cells() -> None:
    """Two a row, whatever a name holds."""
    tokens = [
        token.type for token in MarkdownIt("commonmark").enable("table").parse(markdown.table(table(), "x", Room()))
    ]
    assert (2, 4) == (tokens.count("th_open"), tokens.count("td_open"))


def test_what_does_not_fit_is_counted() -> None:
    """Bytes and rows are bounded, each by itself; no row is made that isn't needed."""
    by_bytes = markdown.table(table(1_000_000), "plan.json", Room(most_bytes=100))
    by_rows = markdown.table(table(10), "plan.json", Room(most_rows=3))

    assert "999,996 numbers left out here: see plan.json." == by_bytes.splitlines()[-1]
    assert "7 numbers left out here: see plan.json." == by_rows.splitlines()[-1]
    lines = Lines([f"line {number}" for number in range(9)], "line")
    shown = list(markdown.body([Section("", (lines,), "lines")], "plan.json", {"lines": Room(25)}))
    assert ["- line 0\n- line 1\n- 7 lines left out here: see plan.json."] == shown


def test_what_is_folded_says_how_much_it_is() -> None:
    """A table of a room that is folded, and a section; the blank lines make their content Markdown."""
    folded = "<details>\n<summary>Numbers (2 numbers)</summary>\n\n| Name"
    assert markdown.table(table(title="Numbers"), "x", Room(folded=True)).startswith(folded)
    (section,) = markdown.body([Section("All (1)", (Lines(("a",)),), folded=True)], "x")
    assert "<details>\n<summary>All (1)</summary>\n\n- a\n\n</details>" == section


def test_only_what_has_a_room_is_shown_where_rooms_are_given() -> None:
    """By the name of a table, or of a list's section."""
    sections = [Section("A", (Lines(("a",)), table()), "a"), Section("B", (Lines(("b",)),), "b")]
    assert ["**A**", "- a"] == list(markdown.body(sections, "x", {"a": Room()}))
