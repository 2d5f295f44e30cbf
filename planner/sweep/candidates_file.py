"""candidates.parquet: rows with their scores as a file, bound to plan.json by a digest of the rows."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

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
        file = pq.ParquetFile(BytesIO(content))
        # The number first: a small file may claim to hold rows without end.
        if file.metadata.num_rows > most_rows:
            return False
        rows = file.read()
        if digest(rows) != sha256:
            return False
        ours = encoded(rows)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return content == ours or file.metadata.created_by != pq.ParquetFile(BytesIO(ours)).metadata.created_by
