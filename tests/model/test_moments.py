"""The time of a state and the end of its plan's validity, independent of the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.inputs.spec.reading import load
from planner.model.amounts import moment_text, parse_moment, valid_until
from planner.model.errors import SpecError

SPEC = "version: 1\ncluster:\n  name: c\n  brokers: [{id: 1}]\n  topics: [{name: t, partitions: [{replicas: [1]}]}]\n"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"),
        ("2026-11-20T11:30:00+01:30", "2026-11-20T10:00:00Z"),
        ("2026-11-20 10:00Z", "2026-11-20T10:00:00Z"),
        ("2026-12-31T23:59:59-01:00", "2027-01-01T00:59:59Z"),
    ],
)
def test_moments_are_told_in_utc(text: str, moment: str) -> None:
    """Times are shown in UTC, from any time zone."""
    assert moment == moment_text(parse_moment(text))


@pytest.mark.parametrize("text", ["2026-11-20", "2026-11-20T10:00:00", "yesterday", "2026-02-30T10:00:00Z", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    """A date, a time without a zone, and an impossible date are refused."""
    with pytest.raises(ValueError):
        parse_moment(text)


def test_a_plan_ends_so_long_after_its_state() -> None:
    """A plan's validity ends valid_for after its state; without valid_for it doesn't end."""
    assert "2026-11-21T10:00:00Z" == valid_until("2026-11-20T11:00:00+01:00", 86_400)
    assert valid_until("2026-11-20T10:00Z", None) is None


def test_the_yaml_says_both(tmp_path: Path) -> None:
    """captured_at and valid_for are read from the YAML; a time needs no quotes."""
    (tmp_path / "s.yaml").write_text(
        SPEC.replace("  name: c\n", "  name: c\n  captured_at: 2026-11-20T10:00:00Z\n") + "valid_for: 7d\n"
    )
    spec = load(tmp_path / "s.yaml")

    assert ("2026-11-20T10:00:00Z", 7 * 86_400) == (spec.captured_at, spec.valid_for_seconds)


@pytest.mark.parametrize(
    ("captured_at", "valid_for", "said"),
    [
        (
            "",
            "7d",
            "valid_for: '7d' needs a start time; allowed: together with cluster.captured_at, a date and time",
        ),
        ("2026-02-30T10:00:00Z", "7d", "cluster.captured_at: '2026-02-30T10:00:00Z' isn't a moment; allowed: a date"),
        ("9999-12-31T23:59:59Z", "7d", "cluster.captured_at: '9999-12-31T23:59:59Z' isn't a moment; allowed: a date"),
        ("2026-11-20", "", "cluster.captured_at: '2026-11-20' isn't possible here; allowed: a date and time with its"),
        ("2026-11-20T10:00:00Z", "9999d", "valid_for: '9999d' is too long; allowed: at most 3650d"),
        ("2026-11-20T10:00:00Z", "0s", "valid_for: '0s' is below 1"),
        ("2026-11-20T10:00:00Z", "7MB", "valid_for: '7MB' isn't a duration"),
    ],
)
def test_what_the_yaml_cannot_mean_is_refused(tmp_path: Path, captured_at: str, valid_for: str, said: str) -> None:
    """Wrong or missing times and durations are refused with their key and what is allowed."""
    captured = f"  captured_at: {captured_at}\n" if captured_at else ""
    ends = f"valid_for: {valid_for}\n" if valid_for else ""
    (tmp_path / "s.yaml").write_text(SPEC.replace("  name: c\n", f"  name: c\n{captured}") + ends)

    with pytest.raises(SpecError) as refused:
        load(tmp_path / "s.yaml")

    assert f": {said}" in str(refused.value)
    assert 1 == len(refused.value.findings)
