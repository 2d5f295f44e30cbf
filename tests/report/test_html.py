"""Views as a page takes them: escaped, bounded, and sorted by what values are."""

from __future__ import annotations

from planner.report import html
from planner.report.view import Column, Facts, Lines, Name, Quantity, Section, Strong, Table


def test_every_text_is_escaped_once() -> None:
    """Names, sentences, and what stands out."""
    assert "&lt;b&gt; &amp;" == html.line(Name("<b> &"))
    assert "<b>&lt;i&gt;</b>" == html.line(Strong("<i>"))


def test_cells_have_what_they_are_sorted_by() -> None:
    """Numbers alone, and only where a table can be sorted."""
    columns = (
        Column[int]("name", lambda n: Name(f"t{n}"), numeric=False),
        Column[int]("size", lambda n: Quantity(n, "bytes")),
    )
    table = html.table(Table("t", "", "row", [5], columns, sortable=True), "plan.json")
    plain = html.table(Table("t", "", "row", [5], columns, strong=lambda _: True), "plan.json")

    assert [("t5", None), ("5 B", 5)] == [(cell.text, cell.key) for cell in table.rows[0]]
    assert {None} == {cell.key for cell in plain.rows[0]}
    assert ({0}, ()) == (plain.strong, tuple(table.strong))
    assert (("name", False), ("size", True)) == table.headings


def test_what_is_left_out_is_said() -> None:
    """Of rows and of lines."""
    table = Table("", "", "row", range(html.MOST_ROWS + 7), (Column("n", str),))
    section = html.section(Section("s", (table, Lines(["x"] * 105, "warning"))), "name", "plan.json")

    rows, lines = section.blocks
    assert "7 rows left out here: see plan.json." == rows.left_out  # type: ignore[union-attr]
    assert "5 warnings left out here: see plan.json." == lines.lines[-1]  # type: ignore[union-attr]


def test_blocks_say_what_they_are() -> None:
    """A list, paragraphs, facts."""
    blocks = (Lines(("a",)), Lines(("a",), bulleted=False), Facts((("label", 1),)))
    section = html.section(Section("s", blocks), "name", "plan.json")
    assert ["list", "paragraphs", "facts"] == [block.kind for block in section.blocks]
