"""The file of a load profile: a row a partition, Parquet, the same bytes for the same history.

Rates are whole bytes a second. Hours of the week are rounded to seven significant bits (less than 0.8 % off), so that a
profile of 50,000 partitions stays small enough to be committed; every other column is exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from planner.inputs.load.hourly_sums import SOURCES, added_up, noted
from planner.inputs.load.profile_statistics import (
    PERCENTILES,
    Statistics,
    growth,
    hourly_means,
    statistics,
)
from planner.model.errors import PlannerError
from planner.model.formats import percent
from planner.model.load_history import HOURS_OF_WEEK, About, Findings, Span
from planner.model.problem import FloatArray

VERSION = 1
_ABOUT = b"kafka-planner.load"
_RATE_FIELDS = ("mean", *(f"p{each}" for each in PERCENTILES), "max")
RATE_COLUMNS = tuple(f"bytes_{way}_per_sec_{name}" for way in ("in", "out") for name in _RATE_FIELDS)
_HOURS = pa.list_(pa.float32())
PROFILE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("size_bytes", pa.int64()),
        *((name, pa.int64()) for name in RATE_COLUMNS),
        ("hours_in", _HOURS),
        ("hours_out", _HOURS),
        ("growth_per_month", pa.float64()),
        ("growth_low", pa.float64()),
        ("growth_high", pa.float64()),
        ("coverage", pa.float64()),
        ("source", pa.string()),
    ]
)
# What is known of the samples themselves, for the findings; it isn't in the file.
FLAW_FIELDS = (
    pa.field("samples", pa.int64()),
    pa.field("repeated", pa.int64()),
    pa.field("unusable", pa.int64()),
    pa.field("first_hour", pa.int64()),
    pa.field("last_hour", pa.int64()),
)
JUDGED_SCHEMA = pa.schema([*PROFILE_SCHEMA, *FLAW_FIELDS])

_MANTISSA_BITS = 7
_GROWTH_DIGITS, _COVERAGE_DIGITS = 5, 4


def judged(topics: pa.Array, partitions: pa.Array, parts: pa.ListArray, span: Span) -> pa.RecordBatch:
    """Rows (JUDGED_SCHEMA) of K partitions from their blocks (see `hourly_sums`)."""
    in_sums, in_counts, out_sums, out_counts = added_up(parts, span)
    also = noted(parts)
    hourly_in, hourly_out = hourly_means(in_sums, in_counts), hourly_means(out_sums, out_counts)
    known = (in_counts + out_counts) > 0
    first, last = known.argmax(axis=1), span.hours - 1 - known[:, ::-1].argmax(axis=1)
    coverage = np.where(known.any(axis=1), known.mean(axis=1), 0)
    of_in, of_out = statistics(hourly_in, span), statistics(hourly_out, span)
    columns = [
        topics,
        partitions,
        pa.array(also.sizes, mask=also.sizes < 0),
        *_rates(of_in),
        *_rates(of_out),
        _hours(of_in.week),
        _hours(of_out.week),
        *(_fractions(each, _GROWTH_DIGITS) for each in growth(hourly_in, span)),
        _fractions(coverage, _COVERAGE_DIGITS),
        pa.array(np.array(SOURCES)[also.source]),
        *map(pa.array, (also.samples, also.repeated, also.unusable, span.first + first, span.first + last)),
    ]
    return pa.record_batch(
        [each.cast(column.type) for each, column in zip(columns, JUDGED_SCHEMA, strict=True)], JUDGED_SCHEMA
    )


def _rates(of: Statistics) -> tuple[pa.Array, ...]:
    return tuple(_whole(each) for each in (of.mean, *of.percentiles.T, of.highest))


def _whole(values: FloatArray) -> pa.Array:
    unknown = np.isnan(values)
    return pa.array(np.rint(np.where(unknown, 0, values)).astype(np.int64), mask=unknown)


def _fractions(values: FloatArray, digits: int) -> pa.Array:
    # An infinite end of an interval says no more than that it is unknown.
    unknown = ~np.isfinite(values)
    return pa.array(np.round(np.where(unknown, 0, values), digits) + 0.0, mask=unknown)


def _hours(week: FloatArray) -> pa.Array:
    mantissa, exponent = np.frexp(np.nan_to_num(week))
    rounded = np.ldexp(np.rint(mantissa * 2**_MANTISSA_BITS) / 2**_MANTISSA_BITS, exponent).astype(np.float32)
    flat = pa.array(rounded.ravel(), mask=np.isnan(week).ravel())
    return pa.ListArray.from_arrays(np.arange(len(week) + 1, dtype=np.int32) * HOURS_OF_WEEK, flat)


def encoded(rows: pa.Table, about: About) -> bytes:
    """The file of a profile's rows (PROFILE_SCHEMA, in any order)."""
    order = [("topic", "ascending"), ("partition", "ascending")]
    text = json.dumps({"version": VERSION, **asdict(about)}, sort_keys=True, separators=(",", ":"))
    table = rows.select(PROFILE_SCHEMA.names).cast(PROFILE_SCHEMA).sort_by(order).combine_chunks()
    sink = BytesIO()
    pq.write_table(
        table.replace_schema_metadata({_ABOUT: text.encode()}),
        sink,
        compression="zstd",
        compression_level=12,
        use_dictionary=["topic", "source"],
        # Bytes of one significance together compress better: neighbours have like exponents.
        use_byte_stream_split=["hours_in.list.element", "hours_out.list.element"],
        write_statistics=False,
    )
    return sink.getvalue()


def decoded(content: bytes, file: str) -> tuple[pa.Table, About]:
    """The rows (PROFILE_SCHEMA) of a profile's file, and what it says. PlannerError where it is none."""
    try:
        table = pq.read_table(BytesIO(content))
    except (OSError, pa.ArrowException) as error:
        raise PlannerError(f"{file}: can't be read as a load profile ({error}); {_ALLOWED}") from None
    about = about_of(table.schema.metadata)
    if about is None:
        raise PlannerError(f"{file}: is a Parquet file, but no load profile of version {VERSION}; {_ALLOWED}")
    lacking = [field.name for field in PROFILE_SCHEMA if field.name not in table.schema.names]
    if lacking:
        raise PlannerError(f"{file}: lacks the columns {', '.join(lacking)}; {_ALLOWED}")
    try:
        return table.select(PROFILE_SCHEMA.names).cast(PROFILE_SCHEMA), about
    except pa.ArrowException as error:
        raise PlannerError(f"{file}: has a column of another type ({error}); {_ALLOWED}") from None


_ALLOWED = "allowed: what planner load writes"


def about_of(metadata: Mapping[bytes, bytes] | None) -> About | None:
    """What a file's metadata says; None where it is no profile of this version."""
    try:
        found: dict[str, Any] = json.loads((metadata or {})[_ABOUT])
        findings = Findings(dict(found["findings"]["counts"]), dict(found["findings"]["untrusted"]))
        span = Span(int(found["span"]["first"]), int(found["span"]["end"]))
        return About(span, str(found["time_zone"]), findings) if found["version"] == VERSION else None
    except (KeyError, TypeError, ValueError):
        return None


# A topic is trusted if at least so much of the history is known of it, and at most so much of it makes no sense.
LEAST_COVERAGE, MOST_UNUSABLE = 0.5, 0.05


def findings(judged: pa.Table, span: Span, others: Mapping[str, int]) -> Findings:
    """The findings of rows of JUDGED_SCHEMA; `others` are counts that only the reading of the samples knows."""
    samples, repeated, unusable, first, last = (
        np.asarray(judged[name], dtype=np.int64)
        for name in ("samples", "repeated", "unusable", "first_hour", "last_hour")
    )
    coverage = np.asarray(judged["coverage"].fill_null(0), dtype=np.float64)
    known = np.rint(coverage * span.hours).astype(np.int64)
    counts = {
        "samples": int(samples.sum()),
        "repeated_samples": int(repeated.sum()),
        "unusable_values": int(unusable.sum()),
        "hours_without_samples": int((last + 1 - first - known).clip(min=0).sum()),
        "appeared_partitions": int((first > span.first).sum()),
        "vanished_partitions": int((last < span.end - 1).sum()),
        **others,
    }
    return Findings(counts, _untrusted(judged["topic"], coverage, unusable / samples.clip(min=1)))


def _untrusted(topics: pa.ChunkedArray, coverage: FloatArray, unusable: FloatArray) -> dict[str, str]:
    encoded = topics.combine_chunks().dictionary_encode()
    of = np.asarray(encoded.indices, dtype=np.int64)
    names: list[str] = encoded.dictionary.to_pylist()
    partitions = np.bincount(of, minlength=len(names)).clip(min=1)
    covered, bad = (np.bincount(of, weights=each, minlength=len(names)) / partitions for each in (coverage, unusable))
    found: dict[str, str] = {}
    for at in np.flatnonzero((covered < LEAST_COVERAGE) | (bad > MOST_UNUSABLE)).tolist():
        if bad[at] > MOST_UNUSABLE:
            found[names[at]] = f"{percent(round(100 * float(bad[at]), 1))} of its values make no sense"
        else:
            found[names[at]] = f"only {percent(round(100 * float(covered[at]), 1))} of the history is known"
    return dict(sorted(found.items()))
