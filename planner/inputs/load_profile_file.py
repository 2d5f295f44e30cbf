"""The file of a load profile: Parquet with one row for each partition. The same history gives the same bytes.

Rates are whole bytes per second. Hours of the week are rounded to seven significant bits (error below 0.8 %), so that a
profile of 50,000 partitions is small enough to commit. Every other column is exact.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from planner.inputs.importers.state_parts import TOPIC_NAME
from planner.inputs.load_profile_statistics import (
    END_OF_TIME,
    MEASURED,
    PERCENTILES,
    SOURCES,
    VALUE_COUNTS,
    Statistics,
    growth,
    hourly_means,
    sizes_and_counts,
    statistics,
    sums_by_hour,
)
from planner.model.errors import PlannerError, one_line
from planner.model.formats import percent
from planner.model.load_history import HOUR_SECONDS, HOURS_OF_WEEK, Findings, HistoryFacts, Span, topics_of
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
# Counts of samples for making the findings; they aren't in the file.
FLAW_FIELDS = (
    pa.field("samples", pa.int64()),
    pa.field("repeated", pa.int64()),
    *VALUE_COUNTS,
    pa.field("first_hour", pa.int64()),
    pa.field("last_hour", pa.int64()),
    pa.field("longest_gap", pa.int64()),
)
JUDGED_SCHEMA = pa.schema([*PROFILE_SCHEMA, *FLAW_FIELDS])

_MANTISSA_BITS = 7
_GROWTH_DIGITS, _COVERAGE_DIGITS = 5, 4
# A cluster has at most some 200,000 partitions; the limit keeps a manipulated file from using all memory.
MOST_ROWS = 2_000_000
# More than any size or rate. Rates are whole numbers that floats hold exactly.
_MOST_VALUE, _MOST_RATE = 2.0**63, 2.0**53
# A topic is trusted if at least this share of its history is known, and if at most this share of its values of each
# kind (rates in, rates out, sizes) is unusable.
LEAST_COVERAGE, MOST_UNUSABLE = 0.5, 0.05
_ALLOWED = "allowed: what planner load writes"


def judged(topics: pa.Array, partitions: pa.Array, parts: pa.ListArray, span: Span) -> pa.RecordBatch:
    """Rows (JUDGED_SCHEMA) of K partitions from their blocks (see `load_profile_statistics`)."""
    in_sums, in_counts, out_sums, out_counts, sampled = sums_by_hour(parts, span)
    facts = sizes_and_counts(parts)
    hourly_in, hourly_out = hourly_means(in_sums, in_counts), hourly_means(out_sums, out_counts)
    first_hour, last_hour = sampled.argmax(axis=1), span.hours - 1 - sampled[:, ::-1].argmax(axis=1)
    # For each hour with samples, the number of hours without samples since the last hour with some.
    hours = np.arange(span.hours)
    latest = np.maximum.accumulate(np.where(sampled, hours, -1), axis=1)
    gaps = np.where(sampled[:, 1:] & (latest[:, :-1] >= 0), hours[1:] - latest[:, :-1] - 1, 0)
    stats_in, stats_out = statistics(hourly_in, span), statistics(hourly_out, span)
    columns = [
        topics,
        partitions,
        pa.array(facts.sizes, mask=facts.sizes < 0),
        *_rates(stats_in),
        *_rates(stats_out),
        _hours(stats_in.week),
        _hours(stats_out.week),
        *(_fractions(each, _GROWTH_DIGITS) for each in growth(hourly_in, stats_in.week, span)),
        _fractions(sampled.mean(axis=1), _COVERAGE_DIGITS),
        pa.array(np.array(SOURCES)[facts.source]),
        *map(pa.array, (facts.samples, facts.repeated, *facts.values, span.first + first_hour, span.first + last_hour)),
        pa.array(gaps.max(axis=1, initial=0)),
    ]
    typed = [each.cast(column.type) for each, column in zip(columns, JUDGED_SCHEMA, strict=True)]
    return pa.record_batch(typed, JUDGED_SCHEMA)


def _rates(stats: Statistics) -> Iterator[pa.Array]:
    """Columns of _RATE_FIELDS, in whole bytes/s."""
    for values in (stats.mean, *stats.percentiles.T, stats.highest):
        unknown = np.isnan(values)
        yield pa.array(np.rint(np.where(unknown, 0, values)).astype(np.int64), mask=unknown)


def _fractions(values: FloatArray, digits: int) -> pa.Array:
    # An infinite end of an interval counts as unknown.
    unknown = ~np.isfinite(values)
    return pa.array(np.round(np.where(unknown, 0, values), digits) + 0.0, mask=unknown)


def _hours(week: FloatArray) -> pa.Array:
    mantissa, exponent = np.frexp(np.nan_to_num(week))
    rounded = np.ldexp(np.rint(mantissa * 2**_MANTISSA_BITS) / 2**_MANTISSA_BITS, exponent).astype(np.float32)
    flat = pa.array(rounded.ravel(), mask=np.isnan(week).ravel())
    return pa.ListArray.from_arrays(np.arange(len(week) + 1, dtype=np.int32) * HOURS_OF_WEEK, flat)


def encoded(rows: pa.Table, about: HistoryFacts) -> bytes:
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
        # Splitting the streams by byte position compresses better, because neighbors have similar exponents.
        use_byte_stream_split=["hours_in.list.element", "hours_out.list.element"],
        write_statistics=False,
    )
    return sink.getvalue()


def decoded(content: bytes, file: str) -> tuple[pa.Table, HistoryFacts]:
    """The rows (PROFILE_SCHEMA) of a profile's file, and the facts about its history. PlannerError if it isn't one."""
    if not content.startswith(b"PAR1"):
        raise PlannerError(f"{file}: isn't a Parquet file; {_ALLOWED}")
    try:
        # Without pyarrow's threads, because they may abort the process when it ends (apache/arrow#34314).
        parquet = pq.ParquetFile(BytesIO(content), pre_buffer=False)
        about = about_of(parquet.metadata.metadata)
        if about is None:
            raise PlannerError(f"{file}: is a Parquet file, but no load profile of version {VERSION}; {_ALLOWED}")
        names = parquet.schema_arrow.names
        if lacking := [name for name in PROFILE_SCHEMA.names if name not in names]:
            raise PlannerError(f"{file}: lacks the columns {', '.join(lacking)}; {_ALLOWED}")
        row_count, groups = parquet.metadata.num_rows, map(parquet.metadata.row_group, range(parquet.num_row_groups))
        values = (group.column(column).num_values for group in groups for column in range(group.num_columns))
        if row_count > MOST_ROWS or max(values, default=0) > max(1, row_count) * HOURS_OF_WEEK:
            raise PlannerError(f"{file}: has more than {MOST_ROWS:,} partitions or more hours than theirs; {_ALLOWED}")
        table = parquet.read(PROFILE_SCHEMA.names, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise PlannerError(f"{file}: can't be read as a load profile ({one_line(error)}); {_ALLOWED}") from None
    try:
        table = table.select(PROFILE_SCHEMA.names).cast(PROFILE_SCHEMA)
    except pa.ArrowException as error:
        raise PlannerError(f"{file}: has a column of another type ({one_line(error)}); {_ALLOWED}") from None
    if fault := _fault(table):
        raise PlannerError(f"{file}: {fault}; {_ALLOWED}")
    return table, about


def _fault(rows: pa.Table) -> str | None:
    """Why rows of PROFILE_SCHEMA can't be a profile's, as part of an error message; None if they can."""
    if any(rows[name].null_count for name in ("topic", "partition", "hours_in", "hours_out")):
        return "has a row without a topic, a partition or hours"
    if bad_name := next((name for name in rows["topic"].unique().to_pylist() if not TOPIC_NAME.fullmatch(name)), None):
        return f"has the topic {bad_name[:80]!r}, which is no name of a topic in Kafka"
    for name in ("hours_in", "hours_out"):
        lengths = pc.unique(pc.list_value_length(rows[name])).to_pylist()
        if bad_lengths := [each for each in lengths if each != HOURS_OF_WEEK]:
            return f"has {name} of {bad_lengths[0]:,} hours instead of {HOURS_OF_WEEK}"
    numbers = [("partition", rows["partition"]), *((name, rows[name]) for name in ("size_bytes", *RATE_COLUMNS))]
    numbers += [(name, pc.list_flatten(rows[name])) for name in ("hours_in", "hours_out")]
    numbers += [("coverage", rows["coverage"])]
    growths = [(name, pc.add(rows[name], 1)) for name in ("growth_per_month", "growth_low", "growth_high")]
    for name, column in (*numbers, *growths):
        values = np.asarray(column.fill_null(0), dtype=np.float64)
        if not np.all((values >= 0) & (values < (_MOST_RATE if name in RATE_COLUMNS else _MOST_VALUE))):
            return f"has a value of {name} that is negative, endless or no number"
    if len(rows.group_by(["topic", "partition"], use_threads=False).aggregate([])) < len(rows):
        return "has a partition twice"
    return None


def about_of(metadata: Mapping[bytes, bytes] | None) -> HistoryFacts | None:
    """The facts about the history in a file's metadata; None if the file isn't a profile of this version."""
    try:
        document: dict[str, Any] = json.loads((metadata or {})[_ABOUT])
        counts = {str(key): int(count) for key, count in document["findings"]["counts"].items()}
        untrusted = {str(topic): str(reason) for topic, reason in document["findings"]["untrusted"].items()}
        span = Span(int(document["span"]["first"]), int(document["span"]["end"]))
        zone = ZoneInfo(str(document["time_zone"])).key
        usable = document["version"] == VERSION and 0 <= span.first < span.end <= END_OF_TIME // HOUR_SECONDS
        return HistoryFacts(span, zone, Findings(counts, untrusted)) if usable else None
    except (AttributeError, KeyError, OSError, OverflowError, RecursionError, TypeError, ValueError):
        return None


def findings(rows: pa.Table, span: Span, other_counts: Mapping[str, int], bad_metrics: Mapping[str, float]) -> Findings:
    """The findings of rows of JUDGED_SCHEMA; `other_counts` are counts that come from reading the samples.

    `bad_metrics`: the shares of topics' metrics that have unusable values, which aren't in the rows.
    """
    samples, repeated, *values, first_hours, last_hours, longest_gap = (
        np.asarray(rows[field.name], dtype=np.int64) for field in FLAW_FIELDS
    )
    coverage = np.asarray(rows["coverage"].fill_null(0), dtype=np.float64)
    known_hours = np.rint(coverage * span.hours).astype(np.int64)
    # Hours without samples at an end of the history count as a gap, unless there are more of them than in the
    # partition's longest gap, and in the median of all partitions' longest gaps. One hour may have just begun.
    usual = np.maximum(longest_gap, np.median(longest_gap) if len(longest_gap) else 0).clip(min=1)
    late, early = first_hours - span.first, span.end - 1 - last_hours
    appeared, vanished = late > usual, early > usual
    missing = (span.hours - late * appeared - early * vanished - known_hours).clip(min=0)
    unusable = sum(int(each.sum()) for each in values[len(MEASURED) :])
    counts = {
        "samples": int(samples.sum()),
        "repeated_samples": int(repeated.sum()),
        "hours_without_samples": int(missing.sum()),
        "appeared_partitions": int(appeared.sum()),
        "vanished_partitions": int(vanished.sum()),
        **other_counts,
        "unusable_values": unusable + other_counts.get("unusable_values", 0),
    }
    topic_of, names = topics_of(rows)
    covered = np.bincount(topic_of, coverage, minlength=len(names)) / np.bincount(topic_of, minlength=len(names)).clip(
        min=1
    )
    sums = np.array([np.bincount(topic_of, each, minlength=len(names)) for each in values])
    given_counts, unusable_counts = np.split(sums, 2)
    # A topic is as good as its worst kind of value.
    bad = np.maximum(
        (unusable_counts / given_counts.clip(min=1)).max(axis=0), [bad_metrics.get(name, 0) for name in names]
    )
    untrusted: dict[str, str] = {}
    for index in np.flatnonzero((covered < LEAST_COVERAGE) | (bad > MOST_UNUSABLE)).tolist():
        if bad[index] > MOST_UNUSABLE:
            untrusted[names[index]] = f"{percent(round(100 * float(bad[index]), 3))} of its values make no sense"
        else:
            untrusted[names[index]] = f"only {percent(round(100 * float(covered[index]), 3))} of the history is known"
    return Findings(counts, dict(sorted(untrusted.items())))


def is_profile(file: Path) -> bool:
    """True if a file's metadata say that it is a load profile, of any version."""
    try:
        return _ABOUT in (pq.read_metadata(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False
