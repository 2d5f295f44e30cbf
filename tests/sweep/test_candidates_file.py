"""Rows as Parquet: tied to plan.json for any pyarrow; and all rows of a sweep, each candidate once."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clusters import no_racks, problem_of

from planner.model.errors import SetupError
from planner.model.spec import Sweep
from planner.sweep import evaluate, sweep_result
from planner.sweep.candidates import candidates
from planner.sweep.candidates_file import ScoresFolder, digest, encoded, folder, is_of

ROWS = pa.table({"name": ["a", None, "c"], "bytes": pa.array([1, 2, 3], pa.int64())})


def test_its_own_bytes_are_of_its_rows() -> None:
    """Equal rows give equal bytes, however they are in memory."""
    parts = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1)])

    assert encoded(ROWS) == encoded(parts)
    assert is_of(encoded(ROWS), 3, digest(parts))


@pytest.mark.parametrize(
    "other",
    [
        ROWS.slice(1),
        ROWS.set_column(1, "bytes", pa.array([1, 2, 4], pa.int64())),
        ROWS.set_column(1, "bytes", pa.array([1, 2, 3], pa.int32())),
        ROWS.rename_columns(["name", "size"]),
        ROWS.select(["bytes", "name"]),
    ],
    ids=["fewer", "another value", "another type", "another name", "another order"],
)
def test_other_rows_are_others(other: pa.Table) -> None:
    """Other values, types, names or another order of columns are other rows."""
    assert not is_of(encoded(other), len(other), digest(ROWS))


def test_other_bytes_of_the_same_rows_pass_only_of_another_pyarrow() -> None:
    """Other bytes of the same rows are accepted only from another pyarrow, because ours would write the same bytes."""
    file = BytesIO()
    pq.write_table(ROWS, file, compression="none")
    theirs = file.getvalue().replace(b"parquet-cpp-arrow version ", b"parquet-cpp-arrow Version ")

    assert not is_of(file.getvalue(), 3, digest(ROWS))
    assert is_of(theirs, 3, digest(ROWS))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, encoded(ROWS)[:-1], encoded(ROWS) + b"\n"])
def test_what_is_no_such_file_is_not_of_it(content: bytes) -> None:
    """Content that isn't the file is rejected without an exception."""
    assert not is_of(content, 3, digest(ROWS))


PROBLEM = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3})
EVERY = candidates(PROBLEM, Sweep(200, solved=3))


def test_every_row_is_written_though_few_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are written, with columns for cluster and variant, although few are kept; the result doesn't change."""
    everything = evaluate.evaluated(PROBLEM, EVERY)
    monkeypatch.setattr(sweep_result, "ALL_ROWS", 20)
    found = evaluate.run(PROBLEM, EVERY, scores=folder("scores", tmp_path, "eu/west 1", "changes"))
    rows = pq.read_table(tmp_path / "scores").sort_by("candidate")
    assert (len(found.scores) < 100, 200) == (True, len(rows))
    assert ["eu/west 1"] == rows["cluster"].unique().to_pylist()
    assert rows.select(everything.column_names).cast(everything.schema).equals(everything)
    assert found == evaluate.run(PROBLEM, EVERY)


def test_an_earlier_sweep_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    """An earlier sweep's files are replaced; other files in the folder stay."""
    where = folder(str(tmp_path), tmp_path, "c", "changes")
    place = Path(where.path)
    place.mkdir(parents=True)
    for name in ("part-00000.parquet", "part-00007.parquet", "notes.txt"):
        (place / name).write_text("old")
    evaluate.run(PROBLEM, EVERY, scores=where)
    assert ["notes.txt", "part-00000.parquet"] == sorted(path.name for path in place.iterdir())
    assert 200 == pq.read_metadata(place / "part-00000.parquet").num_rows


def test_a_sweep_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    """A sweep that ends early leaves no file, because files are renamed when they are complete."""
    where = ScoresFolder(str(tmp_path), "c", "changes")
    where.clear()
    parts = where.copied(EVERY, [evaluate.scored(PROBLEM, EVERY, np.arange(5))] * 2, "00000")
    next(parts)
    parts.close()
    assert [] == list(Path(where.path).iterdir())


@pytest.mark.parametrize("root", ["file", "nowhere://bucket/scores"])
def test_a_folder_that_cannot_be_is_one_sentence(root: str, tmp_path: Path) -> None:
    """If the folder can't be written, the error is one sentence with the key, the path and the system's message."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match=r"sweep\.scores: .*can't be written \("):
        evaluate.run(PROBLEM, EVERY, scores=folder(root, tmp_path, "c", "changes"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which lists the threads of a process")
def test_reading_starts_no_threads(tmp_path: Path) -> None:
    """Reading starts no thread: a pyarrow thread that runs at exit could abort the process."""
    (tmp_path / "rows").write_bytes(encoded(ROWS))
    code = f"""
import os
from pathlib import Path
from planner.sweep.candidates_file import is_of
content, before = Path("rows").read_bytes(), len(os.listdir("/proc/self/task"))
assert is_of(content, 3, {digest(ROWS)!r})
print(len(os.listdir("/proc/self/task")) - before)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "0\n" == ran.stdout
