"""The content of outputs as values: sections of lines, facts, tables and plots, not yet as text.

A value keeps its unit, and a name from the cluster stays a name, until a renderer (`terminal`, `markdown`, `html`)
writes it. A table defines each column once, with the function that takes the column's value from a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from planner.model import formats
from planner.model.formats import UNKNOWN, amount, arrow, counted, duration, gap_shown

T = TypeVar("T")

# Units besides those of `formats.amount`: a gap is rounded up, a limit is in the unit in which it was written.
GAP, SECONDS, STATED = "% gap", "seconds", "stated bytes"


@dataclass(frozen=True)
class Name:
    """A name from the cluster; at most `longest` characters are shown."""

    value: str
    longest: int = 250


@dataclass(frozen=True)
class Sentence:
    """A text that may be longer than other texts: at most `longest` characters."""

    value: str
    longest: int


@dataclass(frozen=True)
class Quantity:
    """A number with its unit; None is unknown."""

    value: float | None
    unit: str


@dataclass(frozen=True)
class Change:
    """A value today and with the plan, shown once if both are written alike."""

    before: Value
    after: Value


@dataclass(frozen=True)
class Joined:
    """Values one after the other, with the text `between` them."""

    parts: tuple[Value, ...]
    between: str = ""


@dataclass(frozen=True)
class Strong:
    """A value that stands out."""

    value: Value


# A text, a count, or one of the types above; None is unknown.
Value = str | int | None | Name | Sentence | Quantity | Change | Joined | Strong


@dataclass(frozen=True)
class Writer:
    """A renderer's functions that escape texts, shorten them to a number of characters, and highlight them."""

    name: Callable[[str, int], str]  # for a name from the cluster
    text: Callable[[str, int], str]  # for running text, which may contain names
    strong: Callable[[str], str]  # highlights a text that one of these returned


_LONGEST_TEXT = 300


def written(value: Value, writer: Writer) -> str:
    """A value as the text of a renderer."""
    match value:
        case Name(name, longest):
            return writer.name(name, longest)
        case Sentence(text, longest):
            return writer.text(text, longest)
        case Change(before, after):
            return arrow(written(before, writer), written(after, writer))
        case Joined(parts, between):
            return between.join(written(part, writer) for part in parts)
        case Strong(inner):
            shown = written(inner, writer)
            return writer.strong(shown) if shown else shown
        case Quantity(number, unit):
            in_unit = _OF_UNIT.get(unit, partial(amount, unit=unit))
            return writer.text(UNKNOWN if number is None else in_unit(number), _LONGEST_TEXT)
        case str():
            return writer.text(value, _LONGEST_TEXT)
        case _:
            return UNKNOWN if value is None else formats.number(value)


_OF_UNIT: dict[str, Callable[[float], str]] = {
    GAP: gap_shown,
    SECONDS: lambda value: duration(round(value)),
    STATED: lambda value: formats.as_stated(round(value)),
}


def sort_key(value: Value) -> str | float:
    """The key by which a column is sorted: amounts as numbers of any unit, texts as they are, changes by `after`."""
    match value:
        case Name(name) | Sentence(name):
            return name
        case Quantity(number):
            return -1 if number is None else number
        case Change(_, after):
            return sort_key(after)
        case Joined(parts):
            return sort_key(parts[0])
        case Strong(inner):
            return sort_key(inner)
        case _:
            return -1 if value is None else value


@dataclass(frozen=True)
class Column(Generic[T]):
    """A heading, and the function for a row's value under it."""

    name: str  # the heading; only a terminal keeps its line break, and then writes it in lowercase
    value: Callable[[T], Value]
    numeric: bool = True  # aligned right
    narrow: str | None = None  # the heading on a terminal, if it is another one
    wide: bool = False  # left out on a terminal, because there is no room
    grouped: bool = False  # shown once for consecutive rows with the same value

    @property
    def heading(self) -> str:
        """The heading on one line."""
        return " ".join(self.name.split())

    @property
    def on_terminal(self) -> str:
        """The heading on a terminal, on one or two lines."""
        return self.narrow if self.narrow is not None else self.name.lower() if "\n" in self.name else self.name


@dataclass(frozen=True)
class Table(Generic[T]):
    """Rows of one kind under columns; a renderer shows as many rows as it has room for, and says what it leaves out."""

    row: str  # the noun for a row, in the singular
    rows: Sequence[T]
    columns: tuple[Column[T], ...]
    name: str = ""  # the table's id on a page; empty if nothing refers to it
    title: str = ""  # empty if the section's title is enough
    strong: Callable[[T], bool] | None = None  # whether a row is highlighted
    # Picks at most that many rows, in order, if not all are shown; None: the first rows
    few: Callable[[Sequence[T], int], Sequence[T]] | None = None
    rest: Callable[[Sequence[T]], str] | None = None  # the text on rows that are left out; None: their count
    most: int | None = None  # the most rows that any renderer shows; None: all
    sortable: bool = False  # whether readers of a page can sort the table

    def shown(self, at_most: int | None) -> Sequence[T]:
        """The rows to show if there is room for `at_most`; None is any number."""
        most_rows = min((each for each in (at_most, self.most) if each is not None), default=len(self.rows))
        if len(self.rows) <= most_rows:
            return self.rows
        return self.few(self.rows, most_rows) if self.few else self.rows[:most_rows]

    def left_out(self, shown: Sequence[T], at_most: int | None = None) -> str:
        """The beginning of a sentence on rows that aren't shown; empty if all are, only the count if it is too long."""
        if len(shown) == len(self.rows):
            return ""
        shown_ids = set(map(id, shown)) if self.few else set()
        hidden_rows = [row for row in self.rows if id(row) not in shown_ids] if self.few else self.rows[len(shown) :]
        text = self.rest(hidden_rows) if self.rest else ""
        fits = text and (at_most is None or len(text) <= at_most)
        return text if fits else counted(len(hidden_rows), self.row)


def left_out_here(description: str, source: str) -> str:
    """The sentence on content that isn't shown."""
    return f"{description} left out here: see {source}."


def written_rows(rows: Sequence[T], columns: Sequence[Column[T]], writer: Writer) -> Iterator[list[str]]:
    """The cells of rows under columns; a grouped column's cell is empty if it repeats the cell above."""
    cells_above: list[str | None] = [None] * len(columns)
    for row in rows:
        cells = [written(column.value(row), writer) for column in columns]
        yield [
            "" if column.grouped and cells[index] == cells_above[index] else cells[index]
            for index, column in enumerate(columns)
        ]
        cells_above = [*cells]


@dataclass(frozen=True)
class Lines:
    """Sentences, as items of a list or as paragraphs. `line` is the noun for one; `quiet` is True for notes."""

    lines: Sequence[Value]
    line: str = "line"
    bulleted: bool = True
    quiet: bool = False


@dataclass(frozen=True)
class Facts:
    """Pairs of a label and a value."""

    facts: tuple[tuple[str, Value], ...]


Block = Lines | Facts | Table[Any]


@dataclass(frozen=True)
class ViewSection:
    """A part with a title (empty for none), its id on a page, and the name of the plot whose numbers it has.

    Markdown folds it if `folded`, because only some readers want it.
    """

    title: Value
    blocks: tuple[Block, ...]
    name: str = ""
    plot: str = ""
    folded: bool = False


@dataclass(frozen=True)
class View:
    """The whole output of a command: a title, sections, and `first_steps`, which are shown first (empty ones aren't).

    `source` says where to find the rows that are left out.
    """

    title: Value
    sections: tuple[ViewSection, ...]
    first_steps: tuple[str, ...] = ()
    source: str = "--format json"


def visible(*blocks: Block) -> tuple[Block, ...]:
    """The blocks with content: tables with rows, lists with lines, and all facts."""
    return tuple(
        block
        for block in blocks
        if isinstance(block, Facts) or (block.rows if isinstance(block, Table) else block.lines)
    )
