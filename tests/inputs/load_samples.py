"""Samples and blocks for the tests of load profiles."""

from __future__ import annotations

import pyarrow as pa

from planner.inputs import load_profile_file
from planner.inputs.load_profile_statistics import BLOCK_FIELDS, SAMPLE_SCHEMA
from planner.model.load_history import Span

# Monday, 2 November 2026, 00:00 UTC, in hours since 1970.
MONDAY = 498_216

Sample = tuple[str, int, int, int | None, int | None, int | None]


def sample_batch(*rows: Sample) -> pa.RecordBatch:
    """A batch of measured samples: topic, partition, second, bytes in, bytes out, size."""
    columns = [list(column) for column in zip(*((*row, 0) for row in rows), strict=True)]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SAMPLE_SCHEMA, strict=True)], SAMPLE_SCHEMA)


def gathered(batches: list[pa.RecordBatch]) -> tuple[list[tuple[str, int]], pa.ListArray]:
    """The sorted partitions and the blocks of each, grouped as Spark does it."""
    by_key: dict[tuple[str, int], list[dict[str, object]]] = {}
    for each in batches:
        for row in pa.Table.from_batches([each]).to_pylist():
            by_key.setdefault((row["topic"], row["partition"]), []).append({f.name: row[f.name] for f in BLOCK_FIELDS})
    keys = sorted(by_key)
    return keys, pa.array([by_key[key] for key in keys], pa.list_(pa.struct(list(BLOCK_FIELDS))))


def rows_of(batches: list[pa.RecordBatch], span: Span) -> pa.RecordBatch:
    """The rows of a profile (JUDGED_SCHEMA) made from these blocks."""
    keys, parts = gathered(batches)
    topics, partitions = zip(*keys, strict=True)
    return load_profile_file.judged(pa.array(topics), pa.array(partitions, pa.int32()), parts, span)
