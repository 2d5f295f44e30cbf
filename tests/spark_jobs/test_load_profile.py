"""A whole profile through Spark finds the truth of a generated history, with any number of tasks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import EXAMPLES

from benchmarks.load_history import HOUR, START, History, HistoryRecipe, write
from planner.inputs import load_profile_file
from planner.model.errors import PlannerError
from planner.model.load_history import HistoryFacts
from spark_jobs import load_profile, load_sources
from spark_jobs.load_profile import LoadRequest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """Three weeks of 120 partitions, with flaws."""
    folder = tmp_path_factory.mktemp("history")
    return folder, write(folder, HistoryRecipe(partitions=120, days=21, seed=3))


def profiled(spark: Any, folder: Path, partitions: int) -> tuple[pa.Table, HistoryFacts]:
    """The profile's rows, and what it says about the history."""
    return load_profile.profile(spark, LoadRequest((str(folder),)), partitions, lambda _: None, print)


@pytest.fixture(scope="module")
def profile(spark: Any, history: tuple[Path, History]) -> tuple[pa.Table, HistoryFacts]:
    """The profile of the history, computed by three tasks."""
    return profiled(spark, history[0], 3)


def test_what_is_true_is_found(history: tuple[Path, History], profile: tuple[pa.Table, HistoryFacts]) -> None:
    """Means are within 1 %, most weeks' busiest hours within 3 %, and median growth within one percentage point."""
    truth, rows = history[1], profile[0].sort_by([("topic", "ascending"), ("partition", "ascending")])
    hours = np.asarray(rows["hours_in"].combine_chunks().flatten()).reshape(-1, 168)

    assert [*truth.partition_ids.tolist()] == rows["partition"].to_pylist()
    assert np.abs(np.asarray(rows["bytes_in_per_sec_mean"]) / truth.mean_in - 1).max() < 0.01
    assert np.abs(np.asarray(rows["bytes_out_per_sec_mean"]) / truth.mean_out - 1).max() < 0.01
    assert np.nanpercentile(np.abs(hours.max(axis=1) / truth.hours_in.max(axis=1) - 1), 90) < 0.03
    assert np.nanmedian(np.abs(np.asarray(rows["growth_per_month"], dtype=float) - truth.growth_per_month)) < 0.01


def test_every_flaw_that_was_put_in_is_counted(
    history: tuple[Path, History], profile: tuple[pa.Table, HistoryFacts]
) -> None:
    """Every generated flaw is counted. A sample may have two, and a wrong date hides the other one."""
    counted, found = history[1].counted, profile[1].findings.counts

    assert counted["misdated"] == found["misdated_samples"]
    assert found["repeated_samples"] == pytest.approx(counted["repeated"], abs=counted["misdated"])
    assert found["unusable_values"] == pytest.approx(counted["negative"], abs=counted["misdated"] + 1)
    assert found["hours_without_samples"] == pytest.approx(counted["missing"], rel=0.05)
    assert found["appeared_partitions"] == pytest.approx(counted["late_partitions"], abs=1)


def test_the_number_of_tasks_does_not_show(
    spark: Any, history: tuple[Path, History], profile: tuple[pa.Table, HistoryFacts]
) -> None:
    """One task and three tasks give the same bytes."""
    assert load_profile_file.encoded(*profile) == load_profile_file.encoded(*profiled(spark, history[0], 1))


def test_the_example_is_what_its_history_makes(spark: Any) -> None:
    """The example's profile, which docs/load.md makes and shows, is the one of its history."""
    folder = EXAMPLES / "load"
    made = load_profile_file.encoded(*profiled(spark, folder / "history.parquet", 3))
    rows, _ = load_profile_file.decoded((folder / "load.parquet").read_bytes(), "load.parquet")

    assert load_profile_file.decoded(made, "made")[0].equals(rows)


def test_many_small_captures_are_one_piece(spark: Any, tmp_path: Path) -> None:
    """A month of hourly captures isn't a task for every few files."""
    for hour in range(24):
        (tmp_path / f"offsets-2026-11-20T{hour:02}:00:00Z.txt").write_text(f"orders:0:{hour}\n")

    with load_profile._settings(spark):
        measures = load_sources.read_sources(spark, [str(tmp_path)], {}).measures

        assert measures is not None
        assert 1 == measures.rdd.getNumPartitions()
        assert 24 == measures.count()


def test_files_without_a_sample_are_refused(spark: Any, tmp_path: Path) -> None:
    """Metrics without a partition's sample are refused."""
    (tmp_path / "20261120T100000Z.prom").write_text("# HELP x y\nx 1\n")

    (tmp_path / "offsets-20261120T100000Z.txt").write_text("a:0:5\n")
    with pytest.raises(PlannerError, match="or offsets captured twice"):
        load_profile.profile(spark, LoadRequest((str(tmp_path),)), 1, lambda _: None, print)
    with pytest.raises(PlannerError, match=r"no sample of a partition; .* names, which rate\(\) and sum\(\) remove"):
        load_profile.profile(spark, LoadRequest((str(tmp_path / "20261120T100000Z.prom"),)), 1, lambda _: None, print)


@pytest.mark.parametrize("labels", [("host", "b1", "b2"), ("kubernetes_pod_name", "kafka-0", "kafka-1")])
def test_brokers_with_any_label_are_added_up(spark: Any, tmp_path: Path, labels: tuple[str, str, str]) -> None:
    """Brokers of 100 and 300 B/s are 400 B/s together, also if their scrapes are 30 s apart."""
    name, *brokers = labels
    metric = {"__name__": "kafka_server_brokertopicmetrics_bytesin_total", "topic": "a"}
    series: list[dict[str, object]] = [
        {
            "metric": {**metric, name: broker},
            "values": [[START + late + at * HOUR, f"{at * HOUR * rate}"] for at in range(5)],
        }
        for broker, rate, late in zip(brokers, (100, 300), (0, 30), strict=True)
    ]
    size = {"__name__": "kafka_log_log_size", "topic": "a", "partition": "0", name: brokers[0]}
    series.append({"metric": size, "values": [[START + at * HOUR, "5"] for at in range(4)] + [[START, "NaN"]]})
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (tmp_path / "a.json").write_text(json.dumps(answer))

    rows, about = profiled(spark, tmp_path, 1)

    assert [pytest.approx(400, rel=0.01)] == rows["bytes_in_per_sec_mean"].to_pylist()
    assert (1, 0) == (about.findings.counts["unusable_values"], about.findings.counts["counter_resets"])
    assert {"a": "20 % of its values make no sense"} == about.findings.untrusted


@pytest.mark.parametrize(("times", "misdated"), [([START, 46_300, 46_301], 2), ([46_300.5, 46_301.5], None)])
def test_times_before_2001_are_of_a_wrong_clock(
    spark: Any, tmp_path: Path, times: list[float], misdated: int | None
) -> None:
    """Excel's days since 1900 would be in 1970: they are counted, and refused if there are no other times."""
    rows = "".join(f"{time},a,0,5\n" for time in times)
    (tmp_path / "a.csv").write_text(f"time,topic,partition,bytes_in_per_sec\n{rows}")

    if misdated is not None:
        assert misdated == profiled(spark, tmp_path, 1)[1].findings.counts["misdated_samples"]
        return
    with pytest.raises(PlannerError) as caught:
        profiled(spark, tmp_path, 1)
    assert (
        f"{tmp_path}: no sample of a partition, but 2 rows without a valid topic, partition or time: the first row's "
        "time is '46300.5'; allowed: ISO 8601 such as 2026-11-20T10:00:00Z, or seconds to nanoseconds since 1970, from "
        "2001 on"
    ) == str(caught.value)


def test_captures_of_another_time_zone(spark: Any, tmp_path: Path) -> None:
    """The offset in a capture's name counts, through all of Spark's spelling of paths."""
    for hour in range(3):
        (tmp_path / f"offsets-2026-11-20T1{hour}:00:00+0200.txt").write_text(f"a:0:{hour}\n")
        (tmp_path / f"sizes-2026-11-20T1{hour}:00:00+02:00.prom").write_text(
            f'kafka_log_log_size{{topic="a",partition="0"}} {hour}\n'
        )

    span = profiled(spark, tmp_path, 1)[1].span

    assert "2026-11-20 08" == f"{datetime.fromtimestamp(span.first * HOUR, UTC):%Y-%m-%d %H}"


def broken(folder: Path, kind: str) -> None:
    """A folder of files, of which the last can't be read. Only a task notices that."""
    rows = [{"time": START + at * HOUR, "topic": "a", "partition": 0, "size_bytes": at} for at in range(50)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
    match kind:
        case "truncated":
            pq.write_table(pa.Table.from_pylist(rows), folder / "b.parquet")
            content = (folder / "b.parquet").read_bytes()
            (folder / "b.parquet").write_bytes(content[: len(content) // 2])
        case "other type":
            pq.write_table(pa.Table.from_pylist([{**row, "size_bytes": "x"} for row in rows]), folder / "b.parquet")
        case _:
            (folder / "a.parquet").unlink()
            (folder / "a-2026-11-20T10:00:00Z.txt").write_text("a:0:100\n")
            (folder / "b-2026-11-20T11:00:00Z.txt").write_text("a:0:100\nboom\n")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("truncated", "/b.parquet: can't be read: "),
        ("other type", "/b.parquet: can't be read: column size_bytes is BINARY in this file, and bigint in others; "),
        ("capture", "/b-2026-11-20T11:00:00Z.txt:2: 'boom' isn't topic:partition:offset; allowed: "),
    ],
)
def test_what_fails_in_a_task_is_one_sentence(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, why: str
) -> None:
    """The error is one sentence with the file's name, and Spark prints nothing."""
    broken(tmp_path, kind)

    with pytest.raises(PlannerError) as caught:
        profiled(spark, tmp_path, 1)

    said = str(caught.value)
    assert said.startswith(f"{tmp_path}{why}")
    assert "\n" not in said
    assert "spark:" not in capfd.readouterr().err


def test_rows_that_are_no_samples_are_counted(spark: Any, tmp_path: Path) -> None:
    """A row with an invalid topic is counted. If there are only such rows, the error says so."""
    rows = [{"time": START, "topic": topic, "partition": 0, "bytes_in_per_sec": 5} for topic in ("a", "<b>")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert 1 == profiled(spark, tmp_path, 1)[1].findings.counts["unreadable_rows"]

    pq.write_table(pa.Table.from_pylist(rows[1:]), tmp_path / "a.parquet")
    with pytest.raises(PlannerError, match="no sample of a partition, but 1 row without a valid topic, partition or"):
        profiled(spark, tmp_path, 1)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("26/10/2026 00:00,a,0,5", ": the first row's time is '26/10/2026 00:00'; allowed: ISO 8601 such as 2026-"),
        ("a,2026-10-26T00:00:00Z,0,5", ": the first row's topic is '2026-10-26T00:00:00Z'; allowed: a name that Kafka"),
        ("2026-10-26T00:00:00Z,a,p0,5", ": the first row's partition is 'p0'; allowed: a whole number from 0"),
        ("2026-10-26T00:00:00Z,a,,5", ": the first row's partition is nothing; allowed: a whole number from 0"),
    ],
)
def test_where_no_row_is_a_sample_the_first_one_is_shown(spark: Any, tmp_path: Path, row: str, why: str) -> None:
    """The error has the first row's unusable value and what is allowed."""
    (tmp_path / "a.csv").write_text(f"time,topic,partition,size_bytes\n{row}\n")

    with pytest.raises(PlannerError) as caught:
        profiled(spark, tmp_path, 1)
    assert f"no sample of a partition, but 1 row without a valid topic, partition or time{why}" in str(caught.value)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("2026-10-26T00:00:00Z,a,0,5,7", ": a row has 5 fields, and the header 4: '2026-10-26T00:00:00Z,a,0,5,7'"),
        ("2026-10-26T00:00:00Z,a,0", ": a row has 3 fields, and the header 4: "),
        ('2026-10-26T00:00:00Z,"a,0,5', ": a row has 2 fields, and the header 4: "),
    ],
)
def test_a_row_of_other_length_than_its_header_is_refused(spark: Any, tmp_path: Path, row: str, why: str) -> None:
    """Such a row, as decimal commas cause it, is refused, because its values would get into other columns."""
    (tmp_path / "a.csv").write_text(f"time,topic,partition,size_bytes\n2026-10-26T00:00:00Z,a,0,5\n{row}\n")

    with pytest.raises(PlannerError) as caught:
        profiled(spark, tmp_path, 1)
    assert str(caught.value).startswith(f"{tmp_path}/a.csv{why}")


def test_files_of_a_folder_have_the_same_header(spark: Any, tmp_path: Path) -> None:
    """Files whose headers have other column names are refused."""
    for name, columns in (("a", "time,topic,partition,size_bytes,x"), ("b", "time,topic,partition,size_bytes,y")):
        (tmp_path / f"{name}.csv").write_text(f"{columns}\n2026-10-26T00:00:00Z,a,0,5,7\n")

    with pytest.raises(PlannerError, match=r"can't be read: its header has '[xy]' where another file's has '[xy]'"):
        profiled(spark, tmp_path, 1)
