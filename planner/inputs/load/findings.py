"""The flaws of a history, from what is known of each partition's samples: counts, and topics not to be trusted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from planner.inputs.load.hourly_sums import Span
from planner.inputs.load.profile_file import Findings
from planner.model.formats import percent
from planner.model.problem import FloatArray

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


def doubts(span: Span) -> tuple[str, ...]:
    """What a history is too short for."""
    days = span.hours / 24
    if span.hours < 7 * 24:
        return (
            f"the history has {days:.3g} days: hours of the week that it doesn't have are unknown, and so is growth",
        )
    if span.hours < 14 * 24 + 12:
        return (f"the history has {days:.3g} days: growth needs more than two weeks, and is unknown",)
    return ()
