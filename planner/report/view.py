"""What people are shown, as values: sections of lines, facts, tables and plots; nothing here is text yet.

A value keeps its unit, and a name from the cluster stays a name, until a renderer (`terminal`, `markdown`, `html`)
writes it. A table names each column once, with how its value is read off a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from planner.model import formats
from planner.model.formats import UNKNOWN, amount, arrow, counted, duration, gap_shown

T = TypeVar("T")

# Units of a quantity beside those of `formats.amount`: a gap is rounded up, a limit is in the unit it was written in.
GAP, SECONDS, STATED = "% gap", "seconds", "stated bytes"


@dataclass(frozen=True)
class Name:
    """A name from the cluster, of which at most `longest` characters are shown."""

    value: str
    longest: int = 250


@dataclass(frozen=True)
class Sentence:
    """A text that may be longer than a cell's."""

    value: str
    longest: int


@dataclass(frozen=True)
class Quantity:
    """A number with its unit; None is unknown."""

    value: float | None
    unit: str


@dataclass(frozen=True)
class Change:
    """A value today and with the plan, shown once where both read alike."""

    before: Value
    after: Value


@dataclass(frozen=True)
class Joined:
    """Values in a row."""

    parts: tuple[Value, ...]
    between: str = ""


@dataclass(frozen=True)
class Strong:
    """A value that stands out."""

    value: Value


# A text, a count, or one of the above; None is unknown.
Value = str | int | None | Name | Sentence | Quantity | Change | Joined | Strong


@dataclass(frozen=True)
class Writer:
    """How a renderer makes texts safe, each of at most so many characters, and how it makes them stand out.

    name    a name from the cluster
    text    running text, which may repeat names
    strong  what either gave, standing out
    """

    name: Callable[[str, int], str]
    text: Callable[[str, int], str]
    strong: Callable[[str], str]


_LONGEST_TEXT = 300


def written(value: Value, writer: Writer) -> str:
    """A value as a renderer's text."""
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
    STATED: lambda value: formats.stated(round(value)),
}


def sort_key(value: Value) -> str | float:
    """What a column is sorted by: amounts as numbers whatever their unit, texts as they are, changes by the outcome."""
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
    """A heading, and the value that a row has under it.

    name     the heading; only a terminal breaks its line there, and writes one of two lines in small letters
    numeric  flush right
    narrow   the heading on a terminal where it is another one
    wide     left out on a terminal, which has no room for it
    grouped  shown once for consecutive rows that have the same
    """

    name: str
    value: Callable[[T], Value]
    numeric: bool = True
    narrow: str | None = None
    wide: bool = False
    grouped: bool = False

    @property
    def heading(self) -> str:
        """On one line."""
        return " ".join(self.name.split())

    @property
    def on_terminal(self) -> str:
        """On one line or two."""
        return self.narrow if self.narrow is not None else self.name.lower() if "\n" in self.name else self.name


@dataclass(frozen=True)
class Table(Generic[T]):
    """Rows of one kind under columns; a renderer shows as many rows as it has room for, and says what it leaves out.

    row       what one row is, in the singular
    name      what a page calls it; empty where nothing refers to it
    title     empty where the section's is enough
    strong    whether a row stands out
    few       at most so many rows, in order, where not all are shown; the first where it is None
    rest      what is said of rows that are left out; their count where it is None
    most      rows that are worth showing anywhere; None where all are
    sortable  whether a page's reader may sort it
    """

    row: str
    rows: Sequence[T]
    columns: tuple[Column[T], ...]
    name: str = ""
    title: str = ""
    strong: Callable[[T], bool] | None = None
    few: Callable[[Sequence[T], int], Sequence[T]] | None = None
    rest: Callable[[Sequence[T]], str] | None = None
    most: int | None = None
    sortable: bool = False

    def shown(self, at_most: int | None) -> Sequence[T]:
        """The rows to show where there is room for so many."""
        room = min((each for each in (at_most, self.most) if each is not None), default=len(self.rows))
        if len(self.rows) <= room:
            return self.rows
        return self.few(self.rows, room) if self.few else self.rows[:room]

    def left_out(self, shown: Sequence[T], at_most: int | None = None) -> str:
        """What isn't shown, as the beginning of a sentence; empty where all is, the count where that is too long."""
        if len(shown) == len(self.rows):
            return ""
        kept = set(map(id, shown)) if self.few else set()
        rest = [row for row in self.rows if id(row) not in kept] if self.few else self.rows[len(shown) :]
        said = self.rest(rest) if self.rest else ""
        fits = said and (at_most is None or len(said) <= at_most)
        return said if fits else counted(len(rest), self.row)


def left_out_here(what: str, source: str) -> str:
    """The sentence on what isn't shown."""
    return f"{what} left out here: see {source}."


def written_rows(rows: Sequence[T], columns: Sequence[Column[T]], writer: Writer) -> Iterator[list[str]]:
    """The cells of rows under columns; what a grouped column repeats is left empty."""
    above: list[str | None] = [None] * len(columns)
    for row in rows:
        cells = [written(column.value(row), writer) for column in columns]
        yield ["" if column.grouped and cells[at] == above[at] else cells[at] for at, column in enumerate(columns)]
        above = [*cells]


@dataclass(frozen=True)
class Lines:
    """Sentences, each an item of a list or a paragraph; what one is, in the singular; `quiet` where they are notes."""

    lines: Sequence[Value]
    line: str = "line"
    bulleted: bool = True
    quiet: bool = False


@dataclass(frozen=True)
class Facts:
    """Labels and what they are of."""

    facts: tuple[tuple[str, Value], ...]


Block = Lines | Facts | Table[Any]


@dataclass(frozen=True)
class ViewSection:
    """A part with a title (empty for none), what a page calls it, and the plot whose numbers it has.

    In Markdown it is `folded` where only some readers want it.
    """

    title: Value
    blocks: tuple[Block, ...]
    name: str = ""
    plot: str = ""
    folded: bool = False


@dataclass(frozen=True)
class View:
    """All that a command shows: a title, sections, and what must be read first (empty texts are none).

    `source` is where everything is that is left out.
    """

    title: Value
    sections: tuple[ViewSection, ...]
    first_steps: tuple[str, ...] = ()
    source: str = "--format json"


def told(*blocks: Block) -> tuple[Block, ...]:
    """The blocks that have something to show: tables with rows, lists with lines, and all facts."""
    return tuple(
        block
        for block in blocks
        if isinstance(block, Facts) or (block.rows if isinstance(block, Table) else block.lines)
    )
