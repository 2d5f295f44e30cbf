"""What people are shown in a pull request: GitHub's and GitLab's Markdown, in which no name is markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.formats import counted
from planner.model.markup import code, text
from planner.report.view import (
    Block,
    Facts,
    Lines,
    Section,
    Table,
    Value,
    View,
    Writer,
    left_out_here,
    written,
    written_rows,
)

# A name is code, running text has no markup of its own.
_WRITER = Writer(code, text, lambda written: f"**{written}**")
_LONGEST_REST = 600


@dataclass(frozen=True)
class Room:
    """How many bytes and rows a table or a list may take, and whether it is folded."""

    most_bytes: int | None = None
    most_rows: int | None = None
    folded: bool = False


def line(value: Value) -> str:
    """A value as Markdown's running text or table cell."""
    return written(value, _WRITER)


def render(view: View) -> str:
    """A page: the title, then every section under a heading of its own."""
    steps = (f"**{text(step, _LONGEST_REST)}**" for step in view.first_steps if step)
    title = [f"# {line(view.title)}"] if view.title else []
    return "\n\n".join([*steps, *title, *body(view.sections, view.source, heading="## {}")]) + "\n"


def body(
    sections: Iterable[Section], source: str, rooms: Mapping[str, Room] | None = None, heading: str = "**{}**"
) -> Iterator[str]:
    """The sections as paragraphs, lists and tables.

    With `rooms` only those tables and lists that have one, by the name of the table or of the list's section.
    """
    for section in sections:
        blocks = list(_blocks(section, source, rooms))
        if section.plot and blocks:
            blocks.insert(0, f"![Plot: {line(section.title)}](plots/{section.plot}.svg)")
        if section.folded:
            if blocks:
                yield folded(line(section.title), "\n\n".join(blocks))
            continue
        # A table that bears a title needs no heading above it.
        if blocks and section.title and not (isinstance(section.blocks[0], Table) and section.blocks[0].title):
            yield heading.format(line(section.title))
        yield from blocks


def _blocks(section: Section, source: str, rooms: Mapping[str, Room] | None) -> Iterator[str]:
    for block in section.blocks:
        name = block.name if isinstance(block, Table) else section.name
        if rooms is None or name in rooms:
            yield _block(block, source, rooms[name] if rooms else Room())


def _block(block: Block, source: str, room: Room) -> str:
    match block:
        case Lines():
            return _list(block, source, room)
        case Facts(facts):
            return "\n".join(f"- {label}: {line(value)}" for label, value in facts)
        case _:
            return table(block, source, room)


def _list(block: Lines, source: str, room: Room) -> str:
    bullet = "- " if block.bulleted else ""
    shown = list(fitting((f"{bullet}{line(each)}" for each in block.lines), room.most_bytes))
    rest = len(block.lines) - len(shown)
    more = [f"{bullet}{_rest(counted(rest, block.line), source)}"] if rest else []
    return ("\n" if block.bulleted else "\n\n").join([*shown, *more])


def _rest(what: str, source: str) -> str:
    return text(left_out_here(what, source), _LONGEST_REST)


def fitting(lines: Iterable[str], most_bytes: int | None) -> Iterator[str]:
    """The first lines that fit with their newlines; those behind are never made, there may be a million."""
    for each in lines:
        if most_bytes is not None:
            most_bytes -= len(each.encode()) + 1
            if most_bytes < 0:
                return
        yield each


def table(of: Table[Any], source: str, room: Room) -> str:
    """A table under its title; folded where its room says so, with how many rows there are."""
    shown = of.shown(room.most_rows)
    lines = list(fitting(_rows(of, shown), room.most_bytes))
    rules = ("--:" if column.numeric else ":--" for column in of.columns)
    head = [_row(column.heading for column in of.columns), f"|{'|'.join(rules)}|"]
    left_out = of.left_out(shown[: len(lines)])
    made = "\n".join([*head, *lines]) + (f"\n\n{_rest(left_out, source)}" if left_out else "")
    if room.folded:
        return folded(f"{of.title} ({counted(len(of.rows), of.row)})", made)
    return f"**{of.title}**\n\n{made}" if of.title else made


def _rows(of: Table[Any], shown: Sequence[Any]) -> Iterator[str]:
    for row, cells in zip(shown, written_rows(shown, of.columns, _WRITER), strict=True):
        yield _row([f"**{cells[0]}**", *cells[1:]] if of.strong and of.strong(row) else cells)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def folded(summary: str, lines: str) -> str:
    """Something to unfold; the blank lines make its content Markdown again."""
    return f"<details>\n<summary>{summary}</summary>\n\n{lines}\n\n</details>"
