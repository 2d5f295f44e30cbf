"""The two profiles of hypothesis: full draws the number that a property states, quick draws a share of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import properties
import pytest
from folders import TESTS
from hypothesis import settings


@pytest.fixture(autouse=True)
def _profile_of_this_run() -> Iterator[None]:
    """Loads the run's own profile again after the test."""
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(
    ("named", "marks", "drawn"),
    [("", "not slow", (6, 18, 3, 2)), ("", "", (100, 300, 12, 2)), ("full", "not slow", (100, 300, 12, 2))],
    ids=["quick", "all tests", "named"],
)
def test_a_property_draws_what_its_profile_gives(
    named: str, marks: str, drawn: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile sets the number of examples, for a property without a number and for those that state 300, 12 and 2."""
    monkeypatch.setenv("HYPOTHESIS_PROFILE", named)
    properties.load(marks)

    assert drawn == (settings.default.max_examples, *(properties.examples(full).max_examples for full in (300, 12, 2)))


def test_no_property_is_outside_of_the_profiles() -> None:
    """Every property states its number of examples through `examples`."""
    outside = [path.name for path in TESTS.rglob("test_*.py") if re.search(r"@settings\(", path.read_text())]

    assert [] == outside
