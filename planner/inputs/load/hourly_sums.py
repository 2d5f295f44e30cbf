"""Samples of partitions' load, added up by hour: the first step of a load profile, done wherever the samples are read.

A sample is what was measured of a partition at one time. A block of samples becomes one row for each partition, so that
Spark shuffles these rows and not the samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.load_history import HOUR_SECONDS, Span
from planner.model.problem import BoolArray, IntArray, LongArray

# What is above makes no sense, and sums of hours must fit in 64 bits: 1 TiB/s, and 1 EiB.
MOST_RATE, MOST_SIZE = 2**40, 2**60
# The year 5138: later times are mistakes, such as milliseconds taken for seconds.
END_OF_TIME = 100_000_000_000
# A longer history is a mistake in its times; so many hours of a partition still fit in memory.
LONGEST_HISTORY_HOURS = 3 * 366 * 24
# Hours that lie apart from the rest by more than this belong to a clock that was wrong.
_APART_HOURS = 7 * 24
# Samples that are added up at once: some 150 MB.
BLOCK_SAMPLES = 1_500_000

_RATES = ("bytes_in_per_sec", "bytes_out_per_sec")
# The columns of a table of samples; of those that are measured it has at least one.
REQUIRED, MEASURED = ("time", "topic", "partition"), (*_RATES, "size_bytes")
TABLE_COLUMNS = (*REQUIRED, *MEASURED)
# `at` is in seconds since 1970, UTC. A value that wasn't measured is null, one that makes no sense is below 0. `source`
# is an index into SOURCES.
SAMPLE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("at", pa.int64()),
        *((name, pa.int64()) for name in MEASURED),
        ("source", pa.int8()),
    ]
)
# How a partition's rates are known: measured by partition, or its topic's rate shared by log end offsets or by sizes.
SOURCES = ("measured", "offsets", "size")

_HOURS = pa.list_(pa.int32())
_SUMS = pa.list_(pa.int64())
# One partition's samples of a block: lists of the same length, by hour since 1970; and the last known size.
BLOCK_FIELDS = (
    pa.field("hours", _HOURS),
    pa.field("in_sums", _SUMS),
    pa.field("in_counts", _HOURS),
    pa.field("out_sums", _SUMS),
    pa.field("out_counts", _HOURS),
    pa.field("sized_at", pa.int64()),
    pa.field("size_bytes", pa.int64()),
    pa.field("source", pa.int8()),
    pa.field("samples", pa.int64()),
    pa.field("repeated", pa.int64()),
    pa.field("unusable", pa.int64()),
)
BLOCK_SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), *BLOCK_FIELDS])
# Stands for null in arrays; every other value below 0 makes no sense.
_UNMEASURED = np.iinfo(np.int64).min


def span_of(hours: LongArray, samples: LongArray) -> tuple[Span, int]:
    """The span of a history and the number of samples outside of it, from distinct hours (N,) and their samples (N,).

    A gap of more than a week separates runs of hours. The span is the run with the most samples; the other runs are
    taken for samples of a wrong clock.
    """
    order = np.argsort(hours)
    hours, samples = hours[order], samples[order]
    run = np.concatenate([[0], np.cumsum(np.diff(hours) > _APART_HOURS)])
    totals = np.bincount(run, weights=samples)
    kept = run == totals.argmax()
    return Span(int(hours[kept][0]), int(hours[kept][-1]) + 1), int(samples[~kept].sum())


def blocks(batches: Iterable[pa.RecordBatch], span: Span) -> Iterator[pa.RecordBatch]:
    """Batches of samples (SAMPLE_SCHEMA) as rows of BLOCK_SCHEMA; samples outside of the span are left out."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count >= BLOCK_SAMPLES:
            yield from _block(pa.Table.from_batches(held), span)
            held, count = [], 0
    if held:
        yield from _block(pa.Table.from_batches(held), span)


def _block(samples: pa.Table, span: Span) -> Iterator[pa.RecordBatch]:
    """The rows of one block of samples; none where all are outside of the span."""
    hours = pc.divide(samples["at"], HOUR_SECONDS)
    samples = samples.filter(pc.and_(pc.greater_equal(hours, span.first), pc.less(hours, span.end)))
    if not len(samples):
        return
    topics = samples["topic"].combine_chunks().dictionary_encode()
    topic_of, partitions = np.asarray(topics.indices, dtype=np.int64), np.asarray(samples["partition"], dtype=np.int64)
    width = int(partitions.max()) + 1
    at = np.asarray(samples["at"], dtype=np.int64)
    pair = topic_of * width + partitions
    # Samples of one partition and time are one: the mean of what was measured.
    order = np.lexsort((at, pair))
    pair, at = pair[order], at[order]
    times = _firsts(pair, at)
    rates = [np.asarray(samples[name].fill_null(_UNMEASURED), dtype=np.int64)[order] for name in _RATES]
    values = [_means(each, times) for each in rates]
    pair_at, hour = pair[times], at[times] // HOUR_SECONDS
    firsts = _firsts(pair_at, hour)
    rows = _firsts(pair_at[firsts])
    offsets = np.append(rows, len(firsts)).astype(np.int32)
    lists = [pa.ListArray.from_arrays(offsets, pa.array(hour[firsts].astype(np.int32)))]
    for means, known in values:
        for sums, kind in ((np.where(known, means, 0), np.int64), (known, np.int32)):
            added = np.add.reduceat(sums.astype(np.int64), firsts).astype(kind)
            lists.append(pa.ListArray.from_arrays(offsets, pa.array(added)))
    pairs = pair_at[firsts][rows]
    groups = np.searchsorted(pair, pairs)
    counts = np.diff(np.append(groups, len(pair)))
    distinct = np.diff(np.append(np.searchsorted(pair_at, pairs), len(pair_at)))
    sized_at, sizes = _last_sizes(samples["size_bytes"], order, at, groups)
    senseless = np.sum([(each < 0) & (each > _UNMEASURED) for each in rates], axis=0)
    unusable = np.add.reduceat(senseless.astype(np.int64), groups)
    sources = np.maximum.reduceat(np.asarray(samples["source"].fill_null(0), dtype=np.int8)[order], groups)
    columns = [
        topics.dictionary.take(pa.array(pairs // width)),
        pa.array((pairs % width).astype(np.int32)),
        *lists,
        *map(pa.array, (sized_at, sizes, sources, counts, counts - distinct, unusable)),
    ]
    yield pa.record_batch(
        [each.cast(field.type) for each, field in zip(columns, BLOCK_SCHEMA, strict=True)], BLOCK_SCHEMA
    )


def _firsts(*sorted_keys: LongArray) -> LongArray:
    """The index at which each run of equal keys begins."""
    changes: BoolArray = np.ones(len(sorted_keys[0]), dtype=bool)
    changes[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in sorted_keys])
    return np.flatnonzero(changes)


def _means(values: LongArray, times: LongArray) -> tuple[LongArray, BoolArray]:
    """For each run of values, which begin at `times`: the mean of those that are at least 0; and False without any."""
    known = values >= 0
    sums = np.add.reduceat(np.where(known, values, 0), times)
    counts = np.add.reduceat(known.astype(np.int64), times)
    return sums // counts.clip(min=1), counts > 0


def _last_sizes(
    column: pa.ChunkedArray, order: LongArray, at: LongArray, groups: LongArray
) -> tuple[LongArray, LongArray]:
    """For each group of sorted samples: when its last size was known, and the largest size then; -1 without any."""
    sizes = np.asarray(column.fill_null(-1), dtype=np.int64)[order]
    times = np.where(sizes >= 0, at, -1)
    last = np.maximum.reduceat(times, groups)
    of_group = np.repeat(np.arange(len(groups)), np.diff(np.append(groups, len(at))))
    return last, np.maximum.reduceat(np.where(times == last[of_group], sizes, -1), groups)


class HourlySums(NamedTuple):
    """Of K partitions (K, H): sums and counts of the rates in and out, and where there is any sample at all."""

    in_sums: LongArray
    in_counts: LongArray
    out_sums: LongArray
    out_counts: LongArray
    seen: BoolArray


def added_up(parts: pa.ListArray, span: Span) -> HourlySums:
    """The hourly sums of K partitions, each with the list of its blocks: structs of BLOCK_FIELDS."""
    flat = parts.flatten()
    partition_of_block = np.asarray(pc.list_parent_indices(parts), dtype=np.int64)
    hours = flat.field("hours")
    row = partition_of_block[np.asarray(pc.list_parent_indices(hours), dtype=np.int64)]
    at = row, np.asarray(hours.flatten(), dtype=np.int64) - span.first
    seen = np.zeros((len(parts), span.hours), dtype=bool)
    seen[at] = True
    sums: list[LongArray] = []
    for name in ("in_sums", "in_counts", "out_sums", "out_counts"):
        total: LongArray = np.zeros(seen.shape, dtype=np.int64)
        np.add.at(total, at, np.asarray(flat.field(name).flatten(), dtype=np.int64))
        sums.append(total)
    in_sums, in_counts, out_sums, out_counts = sums
    return HourlySums(in_sums, in_counts, out_sums, out_counts, seen)


class Noted(NamedTuple):
    """(K,) each, of K partitions: the last size, -1 where unknown; the source; counts of samples and of flawed ones."""

    sizes: LongArray
    source: IntArray
    samples: LongArray
    repeated: LongArray
    unusable: LongArray


def noted(parts: pa.ListArray) -> Noted:
    """The last sizes, sources and counts of K partitions, from the same lists of blocks as in `added_up`."""
    flat, owner = parts.flatten(), np.asarray(pc.list_parent_indices(parts), dtype=np.int64)
    count = len(parts)
    last: LongArray = np.full(count, -1, dtype=np.int64)
    sized_at, size = (np.asarray(flat.field(name), dtype=np.int64) for name in ("sized_at", "size_bytes"))
    np.maximum.at(last, owner, sized_at)
    sizes: LongArray = np.full(count, -1, dtype=np.int64)
    np.maximum.at(sizes, owner, np.where(sized_at == last[owner], size, -1))
    source = np.zeros(count, dtype=np.int8)
    np.maximum.at(source, owner, np.asarray(flat.field("source"), dtype=np.int8))
    counts = (
        np.bincount(owner, weights=np.asarray(flat.field(name)), minlength=count).astype(np.int64)
        for name in ("samples", "repeated", "unusable")
    )
    return Noted(sizes, source, *counts)
