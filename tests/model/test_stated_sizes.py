"""Sizes beside those that somebody wrote."""

from __future__ import annotations

import pytest
from plan_documents import typed

from planner.model.formats import beside, exactly, stated
from planner.report import choice_tables, markdown


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
    """In binary units where it is whole in those, and rounded only where nobody can have written it."""
    assert written == stated(size_bytes)


def test_what_is_held_against_it_has_units_of_its_kind() -> None:
    """18.3 GB of 20 GiB would be two kinds of units in one sentence."""
    limit = 20 * 1024**3
    assert ("17.0 GiB", "512 MiB", "1.00 KiB") == tuple(beside(each, limit) for each in (17 * 1024**3 + 9, 2**29, 1024))
    assert ("18.3 GB", "12 B") == (beside(18_300_000_000, 20 * 10**9), beside(12, limit))


def test_a_terms_limit_reads_as_it_was_written() -> None:
    """That of bytes; others are as the term is."""
    limits = (("bytes", 20 * 2**30), ("bytes", None), ("%", 5.0), ("replicas", 1))
    terms = [{"group": "movement", "name": "n", "unit": unit, "limit": limit} for unit, limit in limits]
    table = choice_tables.terms(typed({"terms": terms}))
    shown = next(column for column in table.columns if column.heading == "Limit")
    assert ["20 GiB", "–", "5 %", "1"] == [markdown.line(shown.value(term)) for term in table.rows]


def test_exactly_is_for_reading_and_for_the_yaml() -> None:
    """Small ones say both at once."""
    assert ("88.1 MB (88100000 bytes)", "60 B") == (exactly(88_100_000), exactly(60))
