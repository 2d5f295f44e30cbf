"""A whole profile through Spark: what is true of a generated history is found, whatever the number of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.load_history import History, HistoryRecipe, write
from planner.inputs.load import profile_file
from planner.model.errors import PlannerError
from planner.model.load_history import About
from spark_jobs import load_profile
from spark_jobs.load_profile import LoadRequest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """Three weeks of 120 partitions, with flaws."""
    folder = tmp_path_factory.mktemp("history")
    return folder, write(folder, HistoryRecipe(partitions=120, days=21, seed=3))


def profiled(spark: Any, folder: Path, partitions: int) -> tuple[pa.Table, About]:
    """The rows and what they say of the history."""
    return load_profile.profile(spark, LoadRequest((str(folder),)), partitions, lambda _: None)


@pytest.fixture(scope="module")
def profile(spark: Any, history: tuple[Path, History]) -> tuple[pa.Table, About]:
    """The profile of the history, by three tasks."""
    return profiled(spark, history[0], 3)


def test_what_is_true_is_found(history: tuple[Path, History], profile: tuple[pa.Table, About]) -> None:
    """Means within 1 %, each hour of the week's within 3 % where it was measured, most growth within a point."""
    truth, rows = history[1], profile[0].sort_by([("topic", "ascending"), ("partition", "ascending")])
    hours = np.asarray(rows["hours_in"].combine_chunks().flatten()).reshape(-1, 168)

    assert [*truth.partition_ids.tolist()] == rows["partition"].to_pylist()
    assert np.abs(np.asarray(rows["bytes_in_per_sec_mean"]) / truth.mean_in - 1).max() < 0.01
    assert np.abs(np.asarray(rows["bytes_out_per_sec_mean"]) / truth.mean_out - 1).max() < 0.01
    assert np.nanpercentile(np.abs(hours.max(axis=1) / truth.hours_in.max(axis=1) - 1), 90) < 0.03
    assert np.nanmedian(np.abs(np.asarray(rows["growth_per_month"], dtype=float) - truth.growth_per_month)) < 0.01


def test_every_flaw_that_was_put_in_is_counted(history: tuple[Path, History], profile: tuple[pa.Table, About]) -> None:
    """A sample may have two flaws; of those with a wrong date nothing else is seen."""
    counted, found = history[1].counted, profile[1].findings.counts

    assert counted["misdated"] == found["misdated_samples"]
    assert found["repeated_samples"] == pytest.approx(counted["repeated"], abs=counted["misdated"])
    assert found["unusable_values"] == pytest.approx(counted["negative"], abs=counted["misdated"] + 1)
    assert found["hours_without_samples"] == pytest.approx(counted["missing"], rel=0.05)
    assert found["appeared_partitions"] >= counted["late_partitions"]


def test_the_number_of_tasks_does_not_show(
    spark: Any, history: tuple[Path, History], profile: tuple[pa.Table, About]
) -> None:
    """The same bytes."""
    assert profile_file.encoded(*profile) == profile_file.encoded(*profiled(spark, history[0], 1))


def test_files_without_a_sample_are_refused(spark: Any, tmp_path: Path) -> None:
    """Metrics of something else."""
    (tmp_path / "m.prom").write_text("# HELP x y\nx 1\n")
    (tmp_path / "20261120T100000Z.prom").write_text("# HELP x y\nx 1\n")

    with pytest.raises(PlannerError, match="no sample of a partition"):
        load_profile.profile(spark, LoadRequest((str(tmp_path / "20261120T100000Z.prom"),)), 1, lambda _: None)
