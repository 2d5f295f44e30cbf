"""How the candidates of a sweep are split into tasks: by a fixed rule, from their numbers alone.

Candidates that are made one by one are dealt in turn, so that every task gets as many solved plans of each kind as any
other. Kafka's classic placements take next to no time once a problem's tables are made; each task gets neighbours of
them, so that as few tasks as possible make the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from planner.model.problem import LongArray
from planner.sweep.candidates import Candidates

# Candidates evaluated between two reports of progress: from tables, and one by one.
_BLOCK, _BLOCK_ONE_BY_ONE = 16_384, 64


class Piece(NamedTuple):
    """Some candidates of one of the sweeps, and whether they are scored from tables."""

    sweep: int
    numbers: range
    from_tables: bool


def pieces(sweeps: Sequence[tuple[Candidates, bool]], task: int = 0, tasks: int = 1) -> Iterator[Piece]:
    """What one of so many tasks evaluates, by sweep. A sweep's bool: its classic placements are scored from tables."""
    tabled = sum(
        run.count for each, has_tables in sweeps for run in each.runs if _from_tables(run.strategy, has_tables)
    )
    start, end = tabled * task // tasks, tabled * (task + 1) // tasks
    single_before = tabled_before = 0
    for number, (each, has_tables) in enumerate(sweeps):
        first = 0
        for run in each.runs:
            from_tables = _from_tables(run.strategy, has_tables)
            if from_tables:
                low, high = (min(max(bound - tabled_before, 0), run.count) for bound in (start, end))
                mine, tabled_before = range(first + low, first + high), tabled_before + run.count
            else:
                mine = range(first + (task - single_before) % tasks, first + run.count, tasks)
                single_before += run.count
            if mine:
                yield Piece(number, mine, from_tables)
            first += run.count


def _from_tables(strategy: str, has_tables: bool) -> bool:
    return has_tables and strategy == "kafka_classic"


def blocks(dealt: Iterable[Piece]) -> Iterator[tuple[int, LongArray]]:
    """Pieces cut into numbers (C,) to evaluate at once, each with its sweep."""
    for piece in dealt:
        size = _BLOCK if piece.from_tables else _BLOCK_ONE_BY_ONE
        for at in range(0, len(piece.numbers), size):
            part = piece.numbers[at : at + size]
            yield piece.sweep, np.arange(part.start, part.stop, part.step, dtype=np.int64)
