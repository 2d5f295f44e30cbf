"""Candidates' rows as Parquet: candidates.parquet beside plan.json, and all of a sweep's in a folder for notebooks.

candidates.parquet is bound to plan.json by a digest of its rows. In the folder, cluster=NAME/variant=NAME, each task
writes a file of its own, renamed into place when it is whole, so a task that is started again replaces what it has
written. Which rows are in which file depends on the number of tasks; the rows don't.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from planner.model.errors import SetupError
from planner.model.problem import LongArray
from planner.sweep import sweep_result
from planner.sweep.candidates import Candidates

FILE = "candidates.parquet"


def encoded(rows: pa.Table) -> bytes:
    """The file; no metadata but the schema's, so equal rows are equal bytes."""
    buffer = BytesIO()
    pq.write_table(rows.replace_schema_metadata(None).combine_chunks(), buffer, compression="zstd")
    return buffer.getvalue()


def digest(rows: pa.Table) -> str:
    """SHA-256 over the names, types and values of the columns, in their order."""
    found = hashlib.sha256(f"{len(rows)}\n".encode())
    for field, column in zip(rows.schema, rows.columns, strict=True):
        head = f"{field.name} {field.type}\n"
        found.update(head.encode() + json.dumps(column.to_pylist(), separators=(",", ":")).encode() + b"\n")
    return found.hexdigest()


def is_of(content: bytes, most_rows: int, sha256: str) -> bool:
    """True where a file of no more rows holds those of this digest, as this pyarrow or another version writes them."""
    try:
        # Without threads of pyarrow's, which may abort the process when it ends (apache/arrow#34314).
        file = pq.ParquetFile(BytesIO(content), pre_buffer=False)
        # The number first: a small file may claim to hold rows without end.
        if file.metadata.num_rows > most_rows:
            return False
        rows = file.read(use_threads=False)
        if digest(rows) != sha256:
            return False
        ours = encoded(rows)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return content == ours or file.metadata.created_by != pq.ParquetFile(BytesIO(ours)).metadata.created_by


# Rows of a row group: some 5 MB in memory.
_GROUP_ROWS = 16_384


@dataclass(frozen=True)
class ScoresFolder:
    """Where the rows of one sweep go: `root` is an absolute path, or a URI that pyarrow can write to."""

    root: str
    cluster: str
    variant: str

    @property
    def path(self) -> str:
        """The sweep's folder, with its names quoted as in a URI."""
        return f"{self.root.rstrip('/')}/cluster={quote(self.cluster, safe='')}/variant={quote(self.variant, safe='')}"

    def clear(self) -> None:
        """Make the folder, without what an earlier sweep has written there; SetupError where that can't be."""
        with self._opened() as (files, path):
            files.create_dir(path, recursive=True)
            for entry in files.get_file_info(fs.FileSelector(path)):
                if entry.is_file and entry.base_name.startswith("part-") and entry.extension == "parquet":
                    files.delete_file(entry.path)

    def copied(self, candidates: Candidates, parts: Iterable[LongArray], name: str) -> Iterator[LongArray]:
        """The parts (COLUMNS, C) as they come, their rows being written to part-`name`.parquet; SetupError as above."""
        with self._opened() as (files, path):
            whole = f"{path}/part-{name}.parquet"
            making = f"{path}/.{uuid4().hex}.making"
            try:
                yield from _written(files, making, candidates, parts)
                files.move(making, whole)
            finally:
                with suppress(OSError):
                    files.delete_file(making)

    @contextmanager
    def _opened(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """The file system, and the folder's path in it."""
        try:
            if "://" in self.root:
                yield fs.FileSystem.from_uri(self.path)
            else:
                yield fs.LocalFileSystem(), self.path
        except (OSError, pa.ArrowException) as error:
            raise SetupError(f"sweep.scores: {self.path}: can't be written ({' '.join(str(error).split())})") from error


def folder(root: str, beside: Path, cluster: str, variant: str) -> ScoresFolder:
    """The folder that `sweep.scores` names; a path is meant from where the YAML lies."""
    return ScoresFolder(root if "://" in root else str((beside / root).resolve()), cluster, variant)


def _written(
    files: fs.FileSystem, path: str, candidates: Candidates, parts: Iterable[LongArray]
) -> Iterator[LongArray]:
    waiting, size = list[LongArray](), 0
    with pq.ParquetWriter(path, sweep_result.SCORE_SCHEMA, filesystem=files, compression="zstd") as writer:
        for part in parts:
            waiting.append(part)
            size += part.shape[1]
            if size >= _GROUP_ROWS:
                writer.write_table(sweep_result.rows(candidates, np.concatenate(waiting, axis=1)))
                waiting, size = [], 0
            yield part
        if size:
            writer.write_table(sweep_result.rows(candidates, np.concatenate(waiting, axis=1)))
