"""Amounts and sentences as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_documents import typed

from planner.model import formats
from planner.model.formats import as_stated, size_and_bytes, size_like
from planner.report import choice_tables, markdown


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (999_999, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (2**40, "1.10 TB"),
        (-1_500, "-1.50 kB"),
    ],
)
def test_sizes_are_decimal_with_three_digits(size_bytes: int | None, expected: str) -> None:
    """Sizes are in kB, MB, GB, TB, powers of ten, with three digits; below 1 kB in whole bytes."""
    assert expected == formats.size(size_bytes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (100, "100 %"),
        (2.314, "2.31 %"),
        (56.94, "56.9 %"),
        (1250.4, "1,250 %"),
        (0.001, "< 0.01 %"),
        (-0.001, "> −0.01 %"),
    ],
)
def test_percentages_have_three_digits(value: float | None, expected: str) -> None:
    """Percentages have three digits; a value other than 0 is never shown as 0 %."""
    assert expected == formats.percent(value)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3_599, "1 h"),
        (3_725, "1 h 2 min"),
        (90_061, "1 day 1 h"),
        (86_400 * 40, "40 days"),
    ],
)
def test_durations_have_two_units(seconds: int | None, expected: str) -> None:
    """Durations have two units at most; days are the largest, so that 40 days are shown as such."""
    assert expected == formats.duration(seconds)


def test_amounts_follow_their_unit() -> None:
    """Bytes and percentages are shown with their unit; a count's unit is separate."""
    assert "1.50 GB" == formats.amount(1.5e9, "bytes")
    assert "50.0 MB/s" == formats.amount(50_000_000, "bytes/s")
    assert ("9.13 %", "above share") == (formats.amount(9.13, "% above share"), formats.unit_of("% above share"))
    assert ("1,379", "replicas") == (formats.amount(1379, "replicas"), formats.unit_of("replicas"))
    assert "–" == formats.amount(None, "replicas")
    assert "" == formats.unit_of("bytes")


def test_counts_have_a_plural() -> None:
    """Counts have a plural: 1 replica, 1,200 replicas, 2 batches."""
    assert ["1 replica", "1,200 replicas", "2 batches"] == [
        formats.counted(1, "replica"),
        formats.counted(1200, "replica"),
        formats.counted(2, "batch"),
    ]


@given(st.sets(st.integers(0, 40)))
def test_ranges_name_every_broker_once(brokers: set[int]) -> None:
    """Runs are joined, and reading them back gives the brokers."""
    parts = [part.split("–") for part in formats.ranges(brokers).split(", ") if part]

    assert brokers == {broker for part in parts for broker in range(int(part[0]), int(part[-1]) + 1)}
    assert sum(int(part[-1]) - int(part[0]) + 1 for part in parts) == len(brokers)


def test_control_characters_are_not_shown() -> None:
    """Control characters in a name are replaced, so that they can't affect the terminal or break a line."""
    assert "a�[31m�b" == formats.printable("a\x1b[31m\nb")
    assert "abc…" == formats.printable("abcde", 4)


@pytest.mark.parametrize(
    ("size_bytes", "written"),
    [
        (20 * 1024**3, "20 GiB"),
        (20 * 10**9, "20 GB"),
        (1536 * 1024**2, "1.5 GiB"),
        (300_000_000, "300 MB"),
        (64 * 1024, "64 KiB"),
        (40_000_000, "40 MB"),
        (1000, "1 kB"),
        (59, "59 B"),
        (123_456_789, "123 MB"),
    ],
)
def test_a_limit_reads_as_it_was_written(size_bytes: int, written: str) -> None:
    """A limit is shown in binary units if it is whole in them; it is rounded only if no one can have written it so."""
    assert written == as_stated(size_bytes)


def test_what_is_held_against_it_has_units_of_its_kind() -> None:
    """An amount beside a limit is in the limit's kind of unit, so that a sentence doesn't mix GB and GiB."""
    limit = 20 * 1024**3
    assert ("17.0 GiB", "512 MiB", "1.00 KiB") == tuple(
        size_like(each, limit) for each in (17 * 1024**3 + 9, 2**29, 1024)
    )
    assert ("18.3 GB", "12 B") == (size_like(18_300_000_000, 20 * 10**9), size_like(12, limit))


def test_a_terms_limit_reads_as_it_was_written() -> None:
    """A term's limit in bytes is shown as it was written; other limits as the term's value."""
    limits = (("bytes", 20 * 2**30), ("bytes", None), ("%", 5.0), ("replicas", 1))
    terms = [{"group": "movement", "name": "n", "unit": unit, "limit": limit} for unit, limit in limits]
    table = choice_tables.terms(typed({"terms": terms}))
    shown = next(column for column in table.columns if column.heading == "Limit")
    assert ["20 GiB", "–", "5 %", "1"] == [markdown.line(shown.value(term)) for term in table.rows]


def test_exactly_is_for_reading_and_for_the_yaml() -> None:
    """A large amount is shown rounded and in exact bytes; a small one only once."""
    assert ("88.1 MB (88100000 bytes)", "60 B") == (size_and_bytes(88_100_000), size_and_bytes(60))
