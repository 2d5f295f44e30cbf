"""Samples become sums by hour, however they are cut into batches and blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from load_samples import Sample, gathered, sample_batch

from planner.inputs.load import hourly_sums
from planner.model.load_history import Span

HOUR = 3600
SPAN = Span(10, 14)


def test_samples_of_an_hour_are_added_up() -> None:
    """Samples of an hour are added up."""
    rows = sample_batch(
        ("a", 0, 10 * HOUR, 100, 7, 5), ("a", 0, 10 * HOUR + 60, 300, None, 6), ("a", 0, 12 * HOUR, 50, 1, 9)
    )
    keys, parts = gathered(list(hourly_sums.blocks([rows], SPAN)))
    in_sums, in_counts, out_sums, out_counts, seen = hourly_sums.added_up(parts, SPAN)

    assert [("a", 0)] == keys
    assert [[400, 0, 50, 0]] == in_sums.tolist()
    assert [[2, 0, 1, 0]] == in_counts.tolist()
    assert [[7, 0, 1, 0]] == out_sums.tolist()
    assert [[1, 0, 1, 0]] == out_counts.tolist()
    assert [[True, False, True, False]] == seen.tolist()
    assert [9] == hourly_sums.noted(parts).sizes.tolist()


def test_samples_of_the_same_time_count_once_with_their_mean() -> None:
    """Samples of the same time count once with their mean."""
    rows = sample_batch(("a", 0, 10 * HOUR, 100, None, None), ("a", 0, 10 * HOUR, 300, None, None))
    _, parts = gathered(list(hourly_sums.blocks([rows], SPAN)))

    assert 200 == hourly_sums.added_up(parts, SPAN)[0][0, 0]
    assert (2, 1) == (hourly_sums.noted(parts).samples[0], hourly_sums.noted(parts).repeated[0])


def test_a_value_below_zero_is_left_out_and_counted() -> None:
    """A value below zero is left out and counted."""
    rows = sample_batch(("a", 0, 10 * HOUR, -1, 5, None), ("a", 0, 10 * HOUR + 1, 300, -1, None))
    _, parts = gathered(list(hourly_sums.blocks([rows], SPAN)))
    in_sums, in_counts, out_sums, out_counts, _ = hourly_sums.added_up(parts, SPAN)

    assert (300, 1, 5, 1) == (in_sums[0, 0], in_counts[0, 0], out_sums[0, 0], out_counts[0, 0])
    assert 2 == hourly_sums.noted(parts).unusable[0]


def test_a_partition_without_a_size_has_none() -> None:
    """A partition without a size has none."""
    _, parts = gathered(list(hourly_sums.blocks([sample_batch(("a", 0, 10 * HOUR, 1, 1, None))], SPAN)))

    assert [-1] == hourly_sums.noted(parts).sizes.tolist()


def test_samples_outside_of_the_span_are_left_out() -> None:
    """Samples outside of the span are left out."""
    rows = sample_batch(("a", 0, 9 * HOUR, 1, 1, 1), ("a", 0, 14 * HOUR, 1, 1, 1))

    assert [] == list(hourly_sums.blocks([rows], SPAN))


def test_the_span_is_the_run_of_hours_with_most_samples() -> None:
    """The span is the run of hours with most samples."""
    hours = np.array([498_300, 3, 498_301, 498_302, 499_000])
    samples = np.array([10, 1, 10, 10, 2])

    assert (Span(498_300, 498_303), 3) == hourly_sums.span_of(hours, samples)


rows_of_samples = st.lists(
    st.tuples(
        st.sampled_from(["a", "b.c"]),
        st.integers(0, 2),
        st.integers(9 * HOUR, 15 * HOUR),
        st.one_of(st.none(), st.integers(-1, 10**9)),
        st.one_of(st.none(), st.integers(-1, 10**9)),
        st.one_of(st.none(), st.integers(0, 10**12)),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[:3],
)


@given(rows_of_samples, st.integers(1, 40))
def test_how_samples_are_cut_into_blocks_does_not_show(rows: list[Sample], cut: int) -> None:
    """How samples are cut into blocks does not show."""
    parts = [rows[:cut], rows[cut:]]
    whole = gathered(list(hourly_sums.blocks([sample_batch(*rows)], SPAN)))
    apart = gathered([each for part in parts if part for each in hourly_sums.blocks([sample_batch(*part)], SPAN)])

    assert whole[0] == apart[0]
    if whole[0]:
        for one, other in zip(
            (*hourly_sums.added_up(whole[1], SPAN), *hourly_sums.noted(whole[1])),
            (*hourly_sums.added_up(apart[1], SPAN), *hourly_sums.noted(apart[1])),
            strict=True,
        ):
            assert one.tolist() == other.tolist()
