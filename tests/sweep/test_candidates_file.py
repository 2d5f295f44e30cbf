"""candidates.parquet: its rows are bound to plan.json, whoever's pyarrow wrote it."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.sweep.candidates_file import digest, encoded, is_of

ROWS = pa.table({"name": ["a", None, "c"], "bytes": pa.array([1, 2, 3], pa.int64())})


def test_its_own_bytes_are_of_its_rows() -> None:
    """However the rows lie in memory."""
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
    """Values, types, names and order count."""
    assert not is_of(encoded(other), len(other), digest(ROWS))


def test_other_bytes_of_the_same_rows_pass_only_of_another_pyarrow() -> None:
    """Ours would have written them otherwise."""
    file = BytesIO()
    pq.write_table(ROWS, file, compression="none")
    theirs = file.getvalue().replace(b"parquet-cpp-arrow version ", b"parquet-cpp-arrow Version ")

    assert not is_of(file.getvalue(), 3, digest(ROWS))
    assert is_of(theirs, 3, digest(ROWS))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100, encoded(ROWS)[:-1], encoded(ROWS) + b"\n"])
def test_what_is_no_such_file_is_not_of_it(content: bytes) -> None:
    """No error: it isn't the file that was made."""
    assert not is_of(content, 3, digest(ROWS))
