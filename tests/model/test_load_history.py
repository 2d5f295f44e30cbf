"""What a history is too short for."""

from __future__ import annotations

import pytest

from planner.model.load_history import Span, doubts


@pytest.mark.parametrize(
    ("hours", "why"),
    [
        (24, ("the history has 1 days: hours of the week that it doesn't have are unknown, and so is growth",)),
        (10 * 24, ("the history has 10 days: growth needs more than two weeks, and is unknown",)),
        (28 * 24, ()),
    ],
)
def test_a_short_history_has_named_doubts(hours: int, why: tuple[str, ...]) -> None:
    """A day has no week, a week no trend."""
    assert why == doubts(Span(498_216, 498_216 + hours))
