"""The benchmark's files: what was said as Markdown, all numbers as JSON, and the curves as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import plot
from benchmarks.table import Figures
from planner.export.output_folder import replace_file
from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.generated_text import canonical_json


def check(folder: Path) -> None:
    """SetupError where the folder can't be made or the plots can't be drawn: known before hours of measuring."""
    plot.check()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"--out {folder}: the folder can't be made: {error.strerror}") from error


def write(folder: Path, said: Sequence[str], figures: Sequence[Figures]) -> None:
    """Write `bench.md`, `bench.json` and the plots of what was measured into a folder that exists."""
    tables = {table: [each.values for each in figures if each.table == table] for table in _names(figures)}
    files = {
        "bench.md": "\n".join([*said, ""]).encode(),
        "bench.json": canonical_json(tables).encode(),
        **{f"{name}.svg": draw(tables[name]) for name, draw in plot.PLOTS.items() if name in tables},
    }
    with interrupts.held():
        for name, content in files.items():
            replace_file(folder / name, content)


def _names(figures: Sequence[Figures]) -> list[str]:
    return sorted({each.table for each in figures})
