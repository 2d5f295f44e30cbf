"""Files of every kind give the same samples. An unreadable file gives one error that says what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from planner.model.errors import PlannerError
from spark_jobs import load_sources

pytestmark = pytest.mark.spark

# 2026-11-20T10:00:00Z
AT = 1_795_168_800
ROWS = [
    {"time": "2026-11-20T10:00:00Z", "topic": "a", "partition": 0, "bytes_in_per_sec": 12.4, "size_bytes": 7},
    {"time": "2026-11-20T11:00:00+01:00", "topic": "b", "partition": 3, "bytes_in_per_sec": -4.0, "size_bytes": None},
    {"time": "2026-11-20T10:00:01Z", "topic": "c", "partition": 1, "bytes_in_per_sec": None, "size_bytes": 9},
]
EXPECTED = [("a", 0, AT, 12, None, 7), ("b", 3, AT, -1, None, None), ("c", 1, AT + 1, None, None, 9)]


def samples(spark: Any, file: Path, **names: str) -> list[tuple[object, ...]]:
    """The samples of a table, sorted."""
    tables = load_sources.read_sources(spark, [str(file)], names).tables
    assert tables is not None
    return sorted(tuple(row)[:6] for row in tables.collect())


def written(folder: Path, kind: str) -> Path:
    """Write the rows as a file of this kind."""
    table, path = pa.Table.from_pylist(ROWS), folder / f"rows.{kind}"
    match kind:
        case "parquet":
            pq.write_table(table, path)
        case "csv":
            pa.csv.write_csv(table, path)
        case _:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_table_of_any_format_has_the_same_samples(spark: Any, tmp_path: Path, kind: str) -> None:
    """Parquet, CSV and JSON give the same samples. A rate below 0 is unusable, and an empty value is unknown."""
    assert EXPECTED == samples(spark, written(tmp_path, kind))


@pytest.mark.parametrize(
    "time", [AT, AT * 1000, AT * 10**6, AT * 10**9, f"{AT}", "2026-11-20 10:00:00", "2026-11-20T15:30:00+05:30"]
)
def test_times_in_seconds_to_nanoseconds_and_text(spark: Any, tmp_path: Path, time: object) -> None:
    """Times in seconds to nanoseconds, and as text, give the same second."""
    file = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist([{"ts": time, "topic": "a", "partition": 0, "size": 1}]), file)

    assert [("a", 0, AT, None, None, 1)] == samples(spark, file, time="ts", size_bytes="size")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"time;topic;partition;size_bytes\n", "t.csv: the header's columns are separated by ';'; allowed: commas"),
        (b"time\ttopic\tpartition\tsize_bytes\n", r"t.csv: the header's columns are separated by '\t'"),
        (b"time,topic,partition,size,Size\n", "t.csv: the header names column 'size' 2 times; allowed: each"),
        (
            "time,topic".encode("utf-16"),
            "t.csv: isn't text in UTF-8: it has zero bytes, as UTF-16 does; allowed: UTF-8",
        ),
    ],
)
def test_a_header_that_cannot_be_one_is_refused(spark: Any, tmp_path: Path, content: bytes, why: str) -> None:
    """The header is refused before any column is looked for."""
    (tmp_path / "t.csv").write_bytes(content)

    with pytest.raises(PlannerError) as caught:
        load_sources.read_sources(spark, [str(tmp_path / "t.csv")], {})
    assert why in str(caught.value)


def test_columns_that_are_not_read_are_told_if_a_measured_one_is_missing(spark: Any, tmp_path: Path) -> None:
    """A rate under another name would otherwise be unknown without a word."""
    file = tmp_path / "t.csv"
    file.write_text("time,topic,partition,size_bytes,bytes_in,bytes_out_per_sec\n2026-11-20T10:00:00Z,a,0,7,1,2\n")

    assert [
        f"{file}: no column bytes_in_per_sec; not read: 'bytes_in'; if one of these is meant: "
        "--column bytes_in_per_sec=COLUMN"
    ] == load_sources.read_sources(spark, [str(file)], {}).notes
    assert [] == load_sources.read_sources(spark, [str(file)], {"bytes_in_per_sec": "bytes_in"}).notes
    (tmp_path / "cut.json").write_text('{"time": 1, "topic": "a", "partition": 0, "size_bytes": 1}\n{"time": 2')
    assert [] == load_sources.read_sources(spark, [str(tmp_path / "cut.json")], {}).notes


def test_a_column_without_a_name_is_left_out(spark: Any, tmp_path: Path) -> None:
    """A column without a name is ignored, for example the index that pandas writes."""
    (tmp_path / "t.csv").write_text(",time,topic,partition,size_bytes\n0,2026-11-20T10:00:00Z,a,0,7\n")

    assert [("a", 0, AT, None, None, 7)] == samples(spark, tmp_path / "t.csv")


def test_a_folder_of_parquet_files_is_a_table(spark: Any, tmp_path: Path) -> None:
    """A folder of Parquet files, as Spark writes it, is read as one table."""
    (tmp_path / "history").mkdir()
    written(tmp_path / "history", "parquet")

    assert EXPECTED == samples(spark, tmp_path / "history")


@pytest.mark.parametrize(
    ("row", "names", "why"),
    [
        ({"ts": 1, "topic": "a", "partition": 0, "size_bytes": 1}, {}, "no column 'time' for time; it has 'ts'"),
        ({"time": 1, "topic": "a", "partition": 0}, {}, "none of bytes_in_per_sec, bytes_out_per_sec, size_bytes"),
        (
            {"time": 1, "topic": "a", "partition": 0, "size_bytes": 1},
            {"bytes_in_per_sec": "in"},
            "no column 'in' for bytes_in_per_sec; it has 'time', 'topic', 'partition', 'size_bytes'; allowed: --column",
        ),
    ],
)
def test_a_column_that_lacks_is_named(
    spark: Any, tmp_path: Path, row: dict[str, object], names: dict[str, str], why: str
) -> None:
    """The error names the missing column and the existing ones."""
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")

    with pytest.raises(PlannerError) as caught:
        load_sources.read_sources(spark, [str(tmp_path / "t.parquet")], names)
    assert why in str(caught.value)


def test_a_column_may_have_any_name(spark: Any, tmp_path: Path) -> None:
    """Dots and backticks in a column's name don't end it."""
    file = tmp_path / "t.csv"
    file.write_text("a.time,topic,partition,in`x\n2026-11-20T10:00:00Z,a,0,12\n")

    assert [("a", 0, AT, 12, None, None)] == samples(spark, file, time="a.time", bytes_in_per_sec="in`x")


def test_a_time_of_day_is_no_time(spark: Any, tmp_path: Path) -> None:
    """Spark would take the day on which the planner runs."""
    texts = ["10:00:00", "T10:00", " 10:00", "2026-11-20 10:00:00", " 2026-11-20T10:00:00Z"]
    pq.write_table(
        pa.Table.from_pylist([{"time": each, "topic": "a", "partition": 0, "size_bytes": 1} for each in texts]),
        tmp_path / "t.parquet",
    )

    tables = load_sources.read_sources(spark, [str(tmp_path / "t.parquet")], {}).tables
    assert tables is not None
    assert [None, None, None, AT, AT] == [row["at"] for row in tables.collect()]


def test_an_object_on_several_lines_is_no_json_lines(spark: Any, tmp_path: Path) -> None:
    """The error says what JSON lines are, instead of naming Spark's column for broken lines."""
    (tmp_path / "t.json").write_text(json.dumps(ROWS[0], indent=1))

    with pytest.raises(PlannerError, match=r"t.json: none of its lines is a JSON object; allowed: one object on each"):
        load_sources.read_sources(spark, [str(tmp_path / "t.json")], {})


HOSTILE = ["<script>", "../x", "a b", "x" * 250, "", ".", "..", "a\n", "é", None]


def test_rows_that_are_no_samples_have_no_time(spark: Any, tmp_path: Path) -> None:
    """Rows with an invalid topic, partition or time stay without a time, so that they are counted, too."""
    rows = [{"time": AT, "topic": topic, "partition": 0, "size_bytes": 1} for topic in [*HOSTILE, "ok.A_1-x"]]
    rows += [{"time": AT, "topic": "a", "partition": -1, "size_bytes": 1}]
    rows += [{"time": -5, "topic": "a", "partition": 0, "size_bytes": 1}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")

    tables = load_sources.read_sources(spark, [str(tmp_path / "t.parquet")], {}).tables
    assert tables is not None
    assert [("ok.A_1-x", AT)] == [(row.topic, row["at"]) for row in tables.collect() if row["at"] is not None]


def test_values_that_make_no_sense_are_marked(spark: Any, tmp_path: Path) -> None:
    """Values that are no number, infinite, negative, or more than 1 TiB/s are marked."""
    values = [float("nan"), float("inf"), float("-inf"), -1.0, 1e300, 2.0**40 + 1e6, 2.0**40]
    rows = [{"time": AT + at, "topic": "a", "partition": 0, "bytes_in_per_sec": v} for at, v in enumerate(values)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")

    assert [-1] * 6 + [2**40] == [row[3] for row in samples(spark, tmp_path / "t.parquet")]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"bytes_in_per_sec": [1]}, "column 'bytes_in_per_sec' is array<bigint>; allowed: a number"),
        ({"time": {"a": 1}}, "column 'time' is struct<a:bigint>; allowed: a time"),
        ({"time": True}, "column 'time' is boolean"),
        ({"topic": 1.5}, None),
        ({"partition": b"x"}, "column 'partition' is binary"),
    ],
)
def test_a_column_of_a_wrong_type_is_named(spark: Any, tmp_path: Path, row: dict[str, object], why: str | None) -> None:
    """The type is checked before anything is read. A topic may be named 1.5."""
    whole = {"time": AT, "topic": "a", "partition": 0, "bytes_in_per_sec": 1, **row}
    pq.write_table(pa.Table.from_pylist([whole]), tmp_path / "t.parquet")

    if why is None:
        assert samples(spark, tmp_path / "t.parquet")
        return
    with pytest.raises(PlannerError) as caught:
        load_sources.read_sources(spark, [str(tmp_path / "t.parquet")], {})
    assert f"t.parquet: {why}" in str(caught.value)


def test_a_folder_of_captures_is_read_file_by_file(spark: Any, tmp_path: Path) -> None:
    """A folder may have captures of several tools, with colons in their names. An empty capture has no values."""
    replica = {"partition": "a-0", "size": 7, "offsetLag": 0, "isFuture": False}
    log_dir = {"logDir": "/d", "error": None, "partitions": [replica]}
    described = {"version": 1, "brokers": [{"broker": 1, "logDirs": [log_dir]}]}
    (tmp_path / "log-dirs-2026-11-20T10:00:00Z.json").write_text(json.dumps(described))
    (tmp_path / "offsets-2026-11-20T10:00:00Z.txt").write_text("a:0:100\n")
    (tmp_path / "offsets-2026-11-20T11:00:00Z.txt").write_text("")

    measures = load_sources.read_sources(spark, [str(tmp_path)], {}).measures
    assert measures is not None
    found = sorted((row.kind, row.topic, row.partition, row["at"], row.value) for row in measures.collect())
    assert [("offset", "a", 0, AT, 100.0), ("size", "a", 0, AT, 7.0)] == found


def test_a_folder_of_tables_and_other_files_is_refused(spark: Any, tmp_path: Path) -> None:
    """Spark would read all files as the kind of the first one, so such a folder is refused."""
    written(tmp_path, "parquet")
    (tmp_path / "offsets.txt").write_text("a:0:100\n")

    with pytest.raises(PlannerError, match=r"has files of several kinds, offsets.txt and rows.parquet; allowed"):
        load_sources.read_sources(spark, [str(tmp_path)], {})


@pytest.mark.parametrize("beside", [True, False])
def test_a_folder_in_a_folder_is_refused(spark: Any, tmp_path: Path, beside: bool) -> None:
    """Spark reads only the files beside each other, so months in folders of their own would be missing."""
    (tmp_path / "2026-11").mkdir()
    written(tmp_path / "2026-11", "csv")
    if beside:
        written(tmp_path, "csv")

    with pytest.raises(PlannerError, match=r"the files in its folder '2026-11' wouldn't be read; allowed: files"):
        load_sources.read_sources(spark, [str(tmp_path)], {})


def test_folders_that_spark_writes_are_read(spark: Any, tmp_path: Path) -> None:
    """A folder named COLUMN=VALUE is read; hidden and empty folders don't matter."""
    for name in ("day=1", "day=2", ".old", "_temporary", "empty"):
        (tmp_path / name).mkdir()
    for name in ("day=1", ".old", "_temporary"):
        written(tmp_path / name, "csv")

    assert EXPECTED == samples(spark, tmp_path)


@pytest.mark.parametrize(
    ("lines", "message"), [(1, "b-2026-11-20T10:00:00Z.txt: is no export"), (99, "a.jsonl: is an export")]
)
def test_a_folder_of_an_export_and_other_metrics_is_refused(
    spark: Any, tmp_path: Path, lines: int, message: str
) -> None:
    """Spark begins with the largest file, which says how all are read; the error names one of another kind."""
    metric = {"__name__": "kafka_log_log_size", "topic": "a", "partition": "0", "instance": "k"}
    (tmp_path / "a.jsonl").write_text(json.dumps({"metric": metric, "values": [7], "timestamps": [1000 * AT]}))
    (tmp_path / "b-2026-11-20T10:00:00Z.txt").write_text("".join(f"a:{partition}:100\n" for partition in range(lines)))

    measures = load_sources.read_sources(spark, [str(tmp_path)], {}).measures
    assert measures is not None
    with pytest.raises(PlannerError, match=message), load_sources.read_faults_named(spark):
        measures.collect()


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_file_is_read_whatever_its_name_would_match(spark: Any, tmp_path: Path, kind: str) -> None:
    """A file whose name is a pattern is read itself, and not the files that match; other patterns match files."""
    named = written(tmp_path, kind).rename(tmp_path / f"rows[1]{{a}}.{kind}")
    (tmp_path / f"rows1a.{kind}").write_bytes(named.read_bytes().replace(b"2026", b"2025"))

    assert EXPECTED == samples(spark, named)
    assert {EXPECTED[0][2]} < {row[2] for row in samples(spark, tmp_path / f"rows*.{kind}")}


def test_a_file_given_twice_is_refused(spark: Any, tmp_path: Path) -> None:
    """A file is refused if it is given twice by name, or by name and in its folder."""
    file = written(tmp_path, "parquet")

    with pytest.raises(PlannerError, match=r"rows.parquet: is given twice"):
        load_sources.read_sources(spark, [str(file), str(file)], {})
    with pytest.raises(PlannerError, match=r"rows.parquet: is given twice"):
        load_sources.read_sources(spark, [str(tmp_path), str(file)], {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gone.csv", None),
        ("notes.txt", b"hello\n"),
        ("t.parquet", b"PAR1"),
        ("text.parquet", b"orders:0:17\n"),
        ("empty.csv", b""),
        ("_rows.csv", b"a\n"),
    ],
)
def test_what_cannot_be_read_is_refused(spark: Any, tmp_path: Path, name: str, content: bytes | None) -> None:
    """The error names the file and what is allowed."""
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(PlannerError) as caught:
        load_sources.read_sources(spark, [str(tmp_path / name)], {})
    assert name in str(caught.value)
    assert "allowed: a Parquet, CSV or JSON-lines table" in str(caught.value)
    assert "file:" not in str(caught.value)
