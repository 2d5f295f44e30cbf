"""Suggestions: the names that were probably meant."""

from __future__ import annotations

import pytest

from planner.model.errors import did_you_mean


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("logz", ["logs", "orders"], "did you mean 'logs'? "),
        ("LOGS", ["logs", "orders"], "did you mean 'logs'? "),
        ("order-*", ["orders", "logs"], "did you mean 'orders'? "),
        ("orders-1", ["orders-10", "orders-11", "logs"], "did you mean 'orders-11' or 'orders-10'? "),
        ("*pay*", ["eu.payments.v2", "logs"], "did you mean 'eu.payments.v2'? "),
        ("zzz", ["logs"], ""),
        ("*", [], ""),
    ],
)
def test_the_closest_names_are_suggested(word: str, known: list[str], expected: str) -> None:
    """Capitals and the signs of patterns don't count; nothing is suggested where nothing is close."""
    assert expected == did_you_mean(word, known)


def test_among_very_many_names_those_that_begin_alike_are_compared() -> None:
    """A cluster of 300,000 topics gets its suggestion too."""
    assert "did you mean 'logs'? " == did_you_mean("logz", [*(f"t{n}" for n in range(300_000)), "logs"])
