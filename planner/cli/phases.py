"""What a long command is doing: one line of the terminal, gone at its end; nothing where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from planner.model.formats import number


@dataclass(frozen=True)
class Phases:
    """The line: the name of the phase, how far it is where that is known, and the time since the command began."""

    progress: Progress
    line: TaskID

    def begin(self, name: str) -> None:
        """The next phase; how long it takes is unknown."""
        self.progress.update(self.line, description=name, completed=0, total=None)

    def count(self, name: str, done: int, total: int) -> None:
        """So many of all are done."""
        text = f"{name}: {number(done)} of {number(total)}"
        self.progress.update(self.line, description=text, completed=done, total=total)


@contextmanager
def shown(console: Console) -> Iterator[Phases]:
    """The line, for as long as the block lasts."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Phases(progress, progress.add_task("", total=None))
