"""Prints any view on a terminal, and a plan on one screen, which is enough for a decision.

The library rich prints it, and leaves out the colors if the output isn't a terminal.
"""

from collections.abc import Sequence
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from planner.model import formats
from planner.model.formats import number, printable
from planner.plan import headline
from planner.plan.document.plan_types import Plan
from planner.report import sentences, summary, verdict
from planner.report.plan_sections_and_next_steps import SOURCE, details, next_steps_on_screen
from planner.report.view import (
    Column,
    Facts,
    Lines,
    Table,
    Value,
    View,
    ViewSection,
    Writer,
    left_out_here,
    visible,
    written,
    written_rows,
)

# Text columns don't wrap up to this width. The first column has another, because it holds names.
_NEVER_WRAPPED, _NAMES = 16, 24
_LONGEST_REST = 60
_LONGEST_TEXT = 1_000
# The most notes of a kind on a plan's screen, unless everything is asked for.
_NOTES_SHOWN = 4
_ROWS_SHOWN = 30
_MORE = "planner show --verbose lists them"

Detail = Literal["verdict", "summary", "everything"]


def plain(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A text for rich: printable, at most `at_most` characters, with markup escaped."""
    shown = escape(printable(value, at_most))
    # rich doubles a backslash at the end, and removes one if markup follows it.
    return f"[none]{shown}[/]" if shown.endswith("\\") else shown


# Names and texts are printed without markup and control characters.
_WRITER = Writer(plain, plain, lambda written: f"[bold]{written}[/]")
# The screen shows these terms only if the plan makes one of them worse.
_FAILURES = ("broker_offline", "broker_refused", "rack_offline", "rack_refused")


def line(value: Value) -> str:
    """A value as rich's markup."""
    return written(value, _WRITER)


def show(view: View, console: Console) -> None:
    """Print a view; a table that leaves out rows says where they are."""
    for step in view.first_steps:
        first_step(step, console)
    if view.title:
        say(f"[bold]{line(view.title)}[/]", console)
    sections(view.sections, view.source, console)


def sections(shown: Sequence[ViewSection], source: str, console: Console, *, most_rows: int | None = None) -> None:
    """Print sections with a blank line between them; tables have at most `most_rows` rows."""
    for index, section in enumerate(shown):
        if index:
            console.print()
        if section.title:
            say(f"[bold]{line(section.title)}[/]", console)
        for block_index, block in enumerate(section.blocks):
            if block_index:
                console.print()
            match block:
                case Lines():
                    for each in block.lines:
                        say(f"[dim]{line(each)}[/]" if block.quiet else line(each), console)
                case Facts(facts):
                    _facts(facts, console)
                case _:
                    table(block, console, source=source, most_rows=most_rows)


def first_step(sentence: str, console: Console) -> None:
    """Print what is left to do, always on one line, so that programs don't cut it off."""
    if sentence:
        console.print(f"[bold red]{plain(sentence)}[/]", highlight=False, soft_wrap=True)


def say(markup: str, console: Console) -> None:
    """Print a line. Only a terminal wraps it, so that programs read whole lines."""
    console.print(markup, highlight=False, soft_wrap=not console.is_terminal)


def _print(rich_table: RichTable, console: Console) -> None:
    """Print a table; if the output isn't a terminal, without trailing blanks."""
    if console.is_terminal:
        console.print(rich_table, highlight=False)
        return
    with console.capture() as captured:
        console.print(rich_table, highlight=False)
    console.out("\n".join(each.rstrip() for each in captured.get().splitlines()), highlight=False)


def _facts(facts: Sequence[tuple[str, Value]], console: Console) -> None:
    """Print labels in one column and their values in another; only a terminal wraps the values."""
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold", no_wrap=not console.is_terminal)
    for label, value in facts:
        grid.add_row(escape(label), line(value))
    _print(grid, console)


def table(block: Table[Any], console: Console, *, source: str, most_rows: int | None = None) -> None:
    """Print a table without borders, and what it leaves out; nothing if it has no rows.

    If the terminal is too narrow, columns are left out from the right, so that no number is cut.
    """
    if not block.rows:
        return
    shown = block.shown(most_rows)
    columns = [column for column in block.columns if not column.wide]
    rows = list(written_rows(shown, columns, _WRITER))
    full_widths = [
        max(map(cell_len, (*column.on_terminal.split("\n"), *(Text.from_markup(cells[index]).plain for cells in rows))))
        for index, column in enumerate(columns)
    ]
    widths = _widths(columns, full_widths, console.width)
    fitting = len(widths)
    rich_table = RichTable(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for column, width, full_width in zip(columns[:fitting], widths, full_widths, strict=False):
        justify: Literal["left", "right"] = "right" if column.numeric else "left"
        rich_table.add_column(
            escape(column.on_terminal), justify=justify, no_wrap=width == full_width, width=width, overflow="fold"
        )
    for row, cells in zip(shown, rows, strict=True):
        rich_table.add_row(*cells[:fitting], style="bold" if block.strong and block.strong(row) else None)
    _print(rich_table, console)
    left_out = block.left_out(shown, _LONGEST_REST)
    if left_out:
        console.print(f"[dim]{plain(left_out_here(left_out, source))}[/]", highlight=False)
    if fitting < len(columns):
        # Names the columns by their full headings: a short heading may be unclear without its left neighbor's.
        names = ", ".join(column.heading.lower() or column.on_terminal.strip() for column in columns[fitting:])
        console.print(f"[dim]Columns that need a wider terminal: {plain(names)}[/]", highlight=False)


def _widths(columns: Sequence[Column[Any]], full_widths: Sequence[int], total_width: int) -> list[int]:
    """The widths of the columns that fit into `total_width`, at least two; at `full_widths`, none of them wraps.

    Numbers never wrap. Names and sentences may wrap; spare room goes to the columns from left to right.
    """
    least = [
        width if column.numeric else min(width, _NEVER_WRAPPED if index else _NAMES)
        for index, (column, width) in enumerate(zip(columns, full_widths, strict=True))
    ]
    if not columns[0].numeric:
        # Names get narrower before a column is left out.
        excess = sum(least) + 2 * (len(least) - 1) - total_width
        least[0] = min(least[0], max(_NEVER_WRAPPED, least[0] - max(excess, 0)))
    while len(least) > 2 and sum(least) + 2 * (len(least) - 1) > total_width:
        least.pop()
    spare = total_width - sum(least) - 2 * (len(least) - 1)
    widths = []
    for narrow, wide in zip(least, full_widths, strict=False):
        extra = max(0, min(spare, wide - narrow))
        spare -= extra
        widths.append(narrow + extra)
    return widths


def show_plan(
    plan: Plan, console: Console, folder: str | None = None, files: int = 0, detail: Detail = "summary"
) -> None:
    """Print a plan.json document: only the verdict, about 25 lines of 80 columns, or all but single partitions.

    `folder` is the plan's folder, if it has one; `files` is the number of files just written there. Sizes are decimal.
    """
    first_step(headline.first_step(plan), console)
    style = "bold red" if plan.refused else "bold green" if headline.all_clear(plan) else "bold yellow"
    say(f"[{style}]{plain(verdict.verdict(plan))}[/]", console)
    say(f"[bold]{plain(headline.headline(plan))}[/]", console)
    if detail == "verdict":
        return
    # Of most notes, the rest is only counted.
    notes = (
        *_note_lines("not met", sentences.not_met(plan)),
        *(f"hours: {line}" for line in sentences.hours(plan)),
        *(f"traffic: {line}" for line in verdict.cross_rack(plan, stated=True)),
        *_note_lines("scenario", [sentences.scenario(row) for row in plan.scenarios]),
        *_note_lines("variant", [f"{row.name}: {row.why_not}" for row in plan.variants if row.why_not]),
        *_note_lines("warning", plan.warnings),
    )
    more_sections = details(plan) if detail == "everything" else (ViewSection("", visible(Lines(notes))),)
    shown = [section for section in (*more_sections, next_steps_on_screen(plan, folder, files)) if section.blocks]
    extras = [("Writes", verdict.writes(plan))] if plan.partitions else []
    if any(term.name in _FAILURES and (term.plan or 0) > (term.today or 0) for term in plan.terms):
        extras += [("Failures", " ".join(verdict.failures(plan)))]
    # The first section needs no title.
    untitled = (ViewSection("", visible(Facts((*summary.facts(plan).facts, *extras)), summary.measures(plan))), *shown)
    console.print()
    sections(untitled, SOURCE, console, most_rows=_ROWS_SHOWN)


def _note_lines(kind: str, notes: Sequence[str]) -> list[str]:
    # One more note takes no more room than the line that would count it.
    most = len(notes) if len(notes) == _NOTES_SHOWN + 1 else _NOTES_SHOWN
    shown = [f"{kind}: {formats.printable(note)}" for note in notes[:most]]
    hidden_count = len(notes) - len(shown)
    return [*shown, *([f"{kind}: {number(hidden_count)} more; {_MORE}"] if hidden_count else [])]
