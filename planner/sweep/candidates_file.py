"""Candidates' rows as Parquet: candidates.parquet beside plan.json, and all rows of a sweep in a folder for notebooks.

plan.json has a digest of the rows of candidates.parquet. In the folder, cluster=NAME/variant=NAME, each task writes its
own file and renames it when it is complete, so a restarted task replaces what it wrote. The number of tasks decides
which rows are in which file; it doesn't change the rows.
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
    """The file's bytes, without metadata except the schema, so that equal rows give equal bytes."""
    buffer = BytesIO()
    pq.write_table(rows.replace_schema_metadata(None).combine_chunks(), buffer, compression="zstd")
    return buffer.getvalue()


def has_columns(file: Path, schema: pa.Schema) -> bool:
    """True if a file is Parquet with exactly these columns."""
    try:
        return schema.equals(pq.read_schema(file))
    except (OSError, pa.ArrowException):
        return False


def digest(rows: pa.Table) -> str:
    """SHA-256 over the names, types and values of the columns, in their order."""
    sha256 = hashlib.sha256(f"{len(rows)}\n".encode())
    for field, column in zip(rows.schema, rows.columns, strict=True):
        head = f"{field.name} {field.type}\n"
        sha256.update(head.encode() + json.dumps(column.to_pylist(), separators=(",", ":")).encode() + b"\n")
    return sha256.hexdigest()


def is_of(content: bytes, most_rows: int, sha256: str) -> bool:
    """True if the file has at most `most_rows` rows with this digest; the version of pyarrow that wrote it is free."""
    try:
        # Without pyarrow's threads, which may abort the process when it ends (apache/arrow#34314).
        file = pq.ParquetFile(BytesIO(content), pre_buffer=False)
        # The count comes first, because a small file may claim to have any number of rows.
        if file.metadata.num_rows > most_rows:
            return False
        rows = file.read(use_threads=False)
        if digest(rows) != sha256:
            return False
        rewritten = encoded(rows)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return content == rewritten or file.metadata.created_by != pq.ParquetFile(BytesIO(rewritten)).metadata.created_by


# Rows per row group: about 5 MB in memory.
_GROUP_ROWS = 16_384


@dataclass(frozen=True)
class ScoresFolder:
    """The folder for the rows of one sweep; `root` is an absolute path, or a URI that pyarrow can write to."""

    root: str
    cluster: str
    variant: str

    @property
    def path(self) -> str:
        """The sweep's folder; its names are quoted as in a URI."""
        return f"{self.root.rstrip('/')}/cluster={quote(self.cluster, safe='')}/variant={quote(self.variant, safe='')}"

    def clear(self) -> None:
        """Makes the folder and deletes the files of an earlier sweep; SetupError if that fails."""
        with self._opened() as (files, path):
            files.create_dir(path, recursive=True)
            for entry in files.get_file_info(fs.FileSelector(path)):
                if entry.is_file and entry.base_name.startswith("part-") and entry.extension == "parquet":
                    files.delete_file(entry.path)

    def copied(self, candidates: Candidates, parts: Iterable[LongArray], name: str) -> Iterator[LongArray]:
        """Passes the parts (COLUMNS, C) on and writes their rows to part-`name`.parquet; SetupError if that fails."""
        with self._opened() as (files, path):
            final_path = f"{path}/part-{name}.parquet"
            partial_path = f"{path}/.{uuid4().hex}.making"
            try:
                yield from _written(files, partial_path, candidates, parts)
                files.move(partial_path, final_path)
            finally:
                with suppress(OSError):
                    files.delete_file(partial_path)

    @contextmanager
    def _opened(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """The file system, and the folder's path in it; SetupError if it can't be written."""
        try:
            if "://" in self.root:
                yield fs.FileSystem.from_uri(self.path)
            else:
                yield fs.LocalFileSystem(), self.path
        except (OSError, pa.ArrowException) as error:
            raise SetupError(f"sweep.scores: {self.path}: can't be written ({' '.join(str(error).split())})") from error


def folder(root: str, beside: Path, cluster: str, variant: str) -> ScoresFolder:
    """The folder that `sweep.scores` names; a relative path starts at the YAML's folder."""
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
