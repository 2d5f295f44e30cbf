"""The smallest and largest value of each type, and rules that all sections share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from planner.model.document_fields import (
    LARGEST,
    BrokerId,
    BrokerKey,
    Count,
    NotNegative,
    Number,
    Percentage,
    Positive,
    Replicas,
    Section,
    Sha256,
    UtcTime,
)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Count, (0, LARGEST)),
        (Positive, (1, LARGEST)),
        (BrokerId, (0, 2**31 - 1)),
        (BrokerKey, ("0", "12")),
        (Number, (-LARGEST, 0.5)),
        (NotNegative, (0, 0.5)),
        (Percentage, ("5%", "0.5%", "1e-05%")),
        (Sha256, ("0" * 64,)),
        (UtcTime, ("2026-11-20T10:00:00Z",)),
    ],
)
def test_values_that_are_allowed(kind: Any, values: tuple[Any, ...]) -> None:
    """Allowed values are accepted, up to the limits."""
    assert values == tuple(msgspec.convert(value, kind) for value in values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Count, (-1, LARGEST + 1, 1.5, True)),
        (Positive, (0,)),
        (BrokerId, (-1, 2**31)),
        (BrokerKey, ("", "-1", "a")),
        (Number, ("1", LARGEST + 1)),
        (NotNegative, (-1, -0.5)),
        (Percentage, ("5", "%", "-5%")),
        (Sha256, ("0" * 63, "A" * 64)),
        (UtcTime, ("2026-11-20T10:00:00+01:00", "2026-11-20")),
        (Replicas, ([], [-1])),
    ],
)
def test_values_that_are_refused(kind: Any, values: tuple[Any, ...]) -> None:
    """Values just beyond the limits and of other types are refused."""
    for value in values:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


class Example(Section, frozen=True, kw_only=True):
    """A section with an optional key."""

    known: int | None
    left_out: int | None = None


def test_sections_leave_out_what_is_not_known_and_know_all_their_keys() -> None:
    """A required key is written as null, an optional one isn't; unknown keys are refused, and sections are frozen."""
    assert {"known": None} == msgspec.to_builtins(Example(known=None))
    with pytest.raises(msgspec.ValidationError, match="unknown"):
        msgspec.convert({"known": 1, "other": 2}, Example)
    with pytest.raises(AttributeError):
        Example(known=1).known = 2  # type: ignore[misc]
