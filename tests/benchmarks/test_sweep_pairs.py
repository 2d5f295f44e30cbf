"""The pairs of the sweep's benchmark: the two sides of each pair, and their ratio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from benchmarks import sweep_pairs
from benchmarks.candidates import Speed
from benchmarks.sweep import Timing
from benchmarks.table import Figures


def test_pairs_are_held_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs: Spark and none, two workers and one, ten times the candidates and one time, memory and limits."""
    typed: list[tuple[str, ...]] = []

    def apart(_: Callable[..., Any], job: str, count: int = 0, workers: int = 0) -> Timing | Speed:
        if not count:
            return Speed(job, 1_000_000, None, 25.0, 1.0, 1.0)
        return Timing(
            job,
            count,
            workers,
            5 + count / 1e6 / (workers or 4),
            5.0,
            200_000_000,
            1,
            1,
            450_000_000,
            9.0,
            3.0 + workers,
        )

    def run(_: Mapping[str, str], *arguments: str) -> None:
        typed.append(arguments)

    monkeypatch.setattr(sweep_pairs, "apart", apart)
    monkeypatch.setattr(sweep_pairs, "_run", run)
    pairs = [each.values for each in sweep_pairs.entries(long=True) if isinstance(each, Figures)]
    ratios = [round(pair["first"] / pair["second"], 2) for pair in pairs[2:]]
    assert [2.0, 2.0, 4.0, 2.0, 1.25, 10.0, 0.75, 0.67] == ratios
    assert [(4.0, 5.0), (5.0, 3.0), (4.0, 3.0), (4.0, 5.0), None] == [pair["cpu"] for pair in pairs[2:7]]
    local = [arguments for arguments in typed if "local" in arguments]
    assert (2, ("spark", "warm")) == (len(local), typed[2])
    assert [("s",) * 6, ("million",), ("s",), ("MB",) * 2] == [
        tuple(pair["unit"] for pair in some) for some in (pairs[:6], pairs[6:7], pairs[7:8], pairs[8:])
    ]


@pytest.mark.slow
def test_a_command_that_fails_ends_the_benchmark() -> None:
    """If a command fails, its output is the benchmark's error."""
    with pytest.raises(sweep_pairs.SetupError, match=r"planner whatif nowhere\.yaml .* ended with 1: nowhere"):
        sweep_pairs._run({}, "whatif", "nowhere.yaml", "--engine", "local")
