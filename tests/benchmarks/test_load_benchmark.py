"""The benchmark of load profiles: errors are shares of the truth, and a small history is profiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import load, load_history
from benchmarks.load_history import NO_FLAWS, History, HistoryRecipe
from planner.inputs import load_profile_file


def truth() -> History:
    """Two partitions with 100 bytes/s, and 200 in the first hour. One grows by a tenth, the other doesn't grow."""
    hours = np.full((2, 168), 100.0)
    hours[:, 0] = 200
    both = np.array([0, 1], dtype=np.int32)
    return History(
        ("a",),
        both * 0,
        both,
        np.full(2, 100.0),
        np.full(2, 100.0),
        np.array([0.1, 0.0]),
        hours,
        np.array([0.11, 0.0]),
        {},
    )


def test_errors_are_shares_of_the_truth() -> None:
    """The mean is 1 % off, the busiest hour 5 %, growth a fifth of its value. Without growth, there is no error."""
    found = {"bytes_in_per_sec_mean": [101, 99], "growth_per_month": [0.12, 0.01]}
    rows = pa.table({**found, "hours_in": [[210.0] + [100.0] * 167, [190.0] + [None] * 167]})

    errors = load.errors(truth(), rows)

    assert [0.01, 0.01] == pytest.approx(errors["mean"].tolist())
    assert [0.05, 0.05] == pytest.approx(errors["busiest hour"].tolist())
    # The topic's true growth is 0.0505, by rate; 0.06555 was found.
    assert [0.06555 / 0.0505 - 1] == pytest.approx(errors["growth of topics, of its value"].tolist())
    assert [0.2] == pytest.approx(errors["growth, of its value"].tolist())
    assert [0.1] == pytest.approx(errors["growth, by one who knows the curves"].tolist())


def test_an_interval_holds_the_truth_or_not() -> None:
    """One of two intervals has the true growth. An unknown interval doesn't count."""
    rows = pa.table({"growth_low": [0.09, 0.01], "growth_high": [0.12, 0.02]})
    assert (0.5, pytest.approx(0.02)) == load.interval(truth(), rows)
    assert 1 == load.interval(truth(), pa.table({"growth_low": [0.09, None], "growth_high": [0.12, 0.02]}))[0]


@pytest.mark.slow
def test_one_who_knows_the_curves_is_close(tmp_path: Path) -> None:
    """With the curves known, growth is exact without noise, and within 0.5 points (median) with four weeks of noise."""
    exact = load_history.write(tmp_path / "exact", HistoryRecipe(20, 15, noise=0, flaws=NO_FLAWS))
    noisy = load_history.write(tmp_path / "noisy", HistoryRecipe(200, 28))

    assert exact.best_growth == pytest.approx(exact.growth_per_month, abs=1e-3)
    off = np.abs(noisy.best_growth - noisy.growth_per_month)
    assert 0 < np.median(off) < 0.005
    assert off.max() < 0.05


@pytest.mark.spark
def test_a_small_history_is_profiled(tmp_path: Path) -> None:
    """All samples are read, memory and seconds are measured, and the file has a profile of every partition."""
    load_history.write(tmp_path, HistoryRecipe(20, 15, flaws=NO_FLAWS))

    run = load.apart(load.profiled, str(tmp_path), 1)

    assert 20 * 15 * 24 == run.rows
    assert 0 < run.session_seconds < run.seconds
    assert min(run.java_peak_bytes, run.worker_peak_bytes) > 20_000_000
    assert 20 == len(load_profile_file.decoded(run.content, "load.parquet")[0])
