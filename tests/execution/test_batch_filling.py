"""Batches while they are being filled: what each holds, and for what it has room."""

from __future__ import annotations

from batch_loads import loads_of

from planner.execution.batch_filling import BatchFilling
from planner.model.spec import BatchRules


def test_what_was_taken_out_leaves_nothing_behind() -> None:
    """A batch that a load was put into and taken from is as empty as before, and has room for it again."""
    loads = loads_of([{0: 50, 1: 50}], 2)
    filling = BatchFilling(loads, BatchRules(100, 1))
    filling.open(1)
    filling.put(0, 0)
    assert [False] == filling.has_room(0, 0, 1).tolist()

    filling.take(0)

    assert [True] == filling.has_room(0, 0, 1).tolist()
    assert (0, 0, 0, -1) == (filling.length_bytes(0), filling.bytes_moved[0], filling.moves.sum(), filling.batch_of[0])
