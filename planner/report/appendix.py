"""Pages of other commands as folded sections of a report, each cut at a line's end where it is too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# What a fold's own lines and the sentence on what is left out take, and a little more.
_FRAME_BYTES = 400


@dataclass(frozen=True)
class Page:
    """A heading of running text, Markdown under it, and the command that shows all of it."""

    heading: str
    markdown: str
    command: str


@dataclass(frozen=True)
class AppendixSection:
    """A heading, the lines that fit, and a sentence on those that don't (empty where all do)."""

    heading: str
    lines: tuple[str, ...]
    left_out: str


def folds(pages: Sequence[Page], most_bytes: int) -> tuple[AppendixSection, ...]:
    """The pages in the space that there is, shared alike; what a short one leaves is for those behind it."""
    made = list[AppendixSection]()
    for number, page in enumerate(pages):
        fold = _fold(page, most_bytes // (len(pages) - number) - _FRAME_BYTES)
        most_bytes -= sum(len(line.encode()) + 1 for line in fold.lines) + _FRAME_BYTES
        made.append(fold)
    return tuple(made)


def _fold(page: Page, most_bytes: int) -> AppendixSection:
    lines = page.markdown.strip().splitlines()
    shown = list[str]()
    for line in lines:
        most_bytes -= len(line.encode()) + 1
        if most_bytes < 0:
            break
        shown.append(line)
    rest = len(lines) - len(shown)
    left_out = f"{rest:,} lines left out here: see `{page.command}`." if rest else ""
    return AppendixSection(page.heading, tuple(shown), left_out)
