"""The benchmark: bytes, balance, time and memory, compared with baselines and published figures, and how they grow.

Every measurement has a separate process. The result is Markdown; it asserts no limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    ablation,
    adopt,
    candidates,
    corners,
    exact_table,
    files,
    hours,
    load,
    log_dir_ablation,
    plans,
    rules,
    scale,
    sizes,
    sweep,
    sweep_pairs,
    whole_commands,
    windows,
)
from benchmarks.cases import CASES
from benchmarks.table import Entries, Figures
from planner.model.errors import SetupError


@dataclass(frozen=True)
class Scope:
    """What to measure; without `cases`, a section's default cases; without `sections`, see `sections_of`.

    `seed` is the cases' seed, `seeds` how many of Kafka's placements are tried as a baseline (None: fewer for larger
    clusters), `out` a folder for the numbers and plots, `clusters` how many the exact solver judges (None: 200).
    With `long`, the sweep also has its long cases, and all clusters are sized. `partitions` is the number of partitions
    in the load profile's history, which has a sample of each every `step` seconds.
    """

    cases: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    seed: str = "public"
    seeds: int | None = None
    out: Path | None = None
    clusters: int | None = None
    long: bool = False
    partitions: int = load.PARTITIONS
    step: int = load.STEP_SECONDS


def lines(scope: Scope) -> Iterator[str]:
    """The benchmark's Markdown, line by line as it is measured; the files of `out` are written at the end.

    Before any measurement, SetupError for an unknown case, a folder that can't be made, or a missing plot library.
    """
    unknown = [case for case in scope.cases if case not in CASES]
    if unknown:
        raise SetupError(f"unknown benchmark case {', '.join(unknown)}; allowed: {', '.join(CASES)}")
    if scope.out:
        files.check(scope.out)
    return _lines(scope)


def sections_of(scope: Scope) -> tuple[str, ...]:
    """The sections asked for; if none, `OF_CASES` if cases are named, else all."""
    chosen = scope.sections or (OF_CASES if scope.cases else SECTIONS)
    return tuple(section for section in SECTIONS if section in chosen)


def _lines(scope: Scope) -> Iterator[str]:
    text_lines, figures = [], []
    for entry in _entries(scope):
        if isinstance(entry, Figures):
            figures.append(entry)
        else:
            text_lines.append(entry)
            yield entry
    if scope.out:
        files.write(scope.out, text_lines, figures)


def _entries(scope: Scope) -> Entries:
    for index, section in enumerate(sections_of(scope)):
        if index:
            yield ""
        yield from SECTIONS[section](scope)


def _plans(scope: Scope) -> Entries:
    return plans.entries(tuple(dict.fromkeys(scope.cases)) or CASES, scope.seed, scope.seeds)


def _windows(scope: Scope) -> Entries:
    return windows.entries(tuple(dict.fromkeys(scope.cases)), scope.seed)


def _ablate(scope: Scope) -> Entries:
    """The optimum's parts; if no case is named, also those of log dirs, whose brokers belong to no case."""
    yield from ablation.entries(tuple(dict.fromkeys(scope.cases)), scope.seed)
    if not scope.cases:
        yield ""
        yield from log_dir_ablation.entries()


def _sweep(scope: Scope) -> Entries:
    yield from sweep.entries()
    yield ""
    yield from sweep_pairs.entries(long=scope.long)
    yield ""
    yield from whole_commands.entries(tuple(whole_commands.COMMANDS)[: None if scope.long else 1])
    if scope.long:
        yield ""
        yield from whole_commands.fleet_entries()


# All cases except those whose optimum takes a minute or more.
RULED = tuple(name for name in CASES if name not in ("expand-big", "huge"))

SECTIONS: Mapping[str, Callable[[Scope], Entries]] = {
    "plans": _plans,
    "windows": _windows,
    "candidates": lambda scope: candidates.entries(),
    "sweep": _sweep,
    "load": lambda scope: load.entries(scope.partitions, step_seconds=scope.step),
    "sizes": lambda scope: sizes.entries(one_in=1 if scope.long else sizes.EVERY),
    "scale": lambda scope: scale.entries(),
    "corners": lambda scope: corners.entries(),
    "exact": lambda scope: exact_table.entries(scope.clusters or exact_table.CLUSTERS),
    "ablate": _ablate,
    "adopt": lambda scope: adopt.entries(tuple(dict.fromkeys(scope.cases)), scope.seed),
    "hours": lambda scope: hours.entries(),
    "rules": lambda scope: rules.entries(tuple(dict.fromkeys(scope.cases)) or RULED, scope.seed),
}
# The sections that run if cases are named, but no sections.
OF_CASES = ("plans", "windows")
