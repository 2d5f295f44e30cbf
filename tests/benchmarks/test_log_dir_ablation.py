"""The ablation of log dirs: drawn brokers are reproducible, parts come back, and each measurement has a row."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import log_dir_ablation
from benchmarks.benchmark import Scope, lines
from benchmarks.log_dir_ablation import CP_SAT, EVERY_PART, EXCHANGES, PackedBroker, drawn, measure
from planner.execution import log_dir_packing


def test_a_broker_is_the_same_everywhere() -> None:
    """A broker is the same whatever was drawn before it. A new dir is empty today."""
    first, again = (drawn(40, 3, 1.0, "a new dir") for _ in range(2))
    assert first.sizes.tolist() == again.sizes.tolist()
    assert first.homes.tolist() == again.homes.tolist()
    assert {0, 1} == set(first.homes.tolist())
    assert 0.6 < np.mean(drawn(900, 4, 2.0, "most in one dir").homes == 0) < 0.9


@pytest.mark.slow
def test_all_parts_are_nearest_and_their_bound_is_kept() -> None:
    """Without a part, no result is nearer to the windows, or as near with fewer bytes. The parts come back."""
    improved, choices = log_dir_packing._improved, log_dir_packing._MOST_CHOICES
    found = measure(40, 3)
    assert (improved, choices) == (log_dir_packing._improved, log_dir_packing._MOST_CHOICES)
    assert [EVERY_PART, CP_SAT, EXCHANGES] * 6 == [each.part for each in found]
    for whole, *others in (found[at : at + 3] for at in range(0, len(found), 3)):
        assert whole.least_bytes <= whole.bytes_moved
        for other in others:
            nearer = whole.outside_bytes < other.outside_bytes
            # A gap of a millionth counts as none.
            assert nearer or (
                whole.outside_bytes == other.outside_bytes and whole.bytes_moved <= other.bytes_moved * (1 + 1e-6)
            )


def test_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are there only if no case is named, because these brokers belong to no case."""
    made = PackedBroker(40, 3, 1.0, "anywhere", CP_SAT, 202 * 10**9, 200 * 10**9, 0, 0.5)
    monkeypatch.setattr(log_dir_ablation, "apart", lambda _, *of: (made,))
    monkeypatch.setattr("benchmarks.ablation.entries", lambda *_: iter(()))

    row = "| 40 | 3 | σ 1 | anywhere | CP-SAT | 202.000 | 200.000 | 1.0000 % | 0.000 | 0.50 |"
    assert [row] * len(log_dir_ablation.SHAPES) == [
        line for line in lines(Scope((), ("ablate",))) if line.startswith("| 40")
    ]
    assert [] == list(lines(Scope(("no-racks",), ("ablate",))))
