"""Limits that are kept or exceeded, and the windows that a plan can have."""

from __future__ import annotations

import pytest
from msgspec import ValidationError, convert

from planner.execution.limits_and_safety import LimitRow
from planner.plan.document.comparison_types import BalanceWindows

WINDOWS = dict.fromkeys(BalanceWindows.__struct_fields__, "none")


@pytest.mark.parametrize(("value", "crossed"), [(9, False), (10, False), (11, True)])
def test_a_limit_is_crossed_by_more_than_it_allows(value: int, crossed: bool) -> None:
    """A limit is exceeded only by more than it allows; the exact value is kept."""
    assert crossed is LimitRow(key="limits.bytes_moved", limit=10, value=value).crossed


@pytest.mark.parametrize("window", ["none", "0", "1", "5%", "0.5%", "33.33333%", "1e-05%"])
def test_windows_are_spreads_percentages_or_none(window: str) -> None:
    """Windows are spreads, percentages or none, as in the YAML."""
    assert window == convert({**WINDOWS, "replicas": window}, BalanceWindows).replicas


@pytest.mark.parametrize("window", ["", "-1", "1.5", "5 %", "some", "%"])
def test_anything_else_is_no_window(window: str) -> None:
    """Other texts are no windows, for example a fraction without a percent sign."""
    with pytest.raises(ValidationError, match="replicas"):
        convert({**WINDOWS, "replicas": window}, BalanceWindows)
