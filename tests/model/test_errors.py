"""What people see of many findings."""

from __future__ import annotations

from planner.model.errors import Finding, Place, SpecError


def test_a_hundred_findings_are_shown_and_the_others_counted() -> None:
    """Sorted by place; all are kept."""
    error = SpecError(Finding(Place("s.yaml", number, 1), "k", "wrong") for number in range(1250, 0, -1))
    lines = str(error).splitlines()
    assert (1250, 101) == (len(error.findings), len(lines))
    assert ["s.yaml:1:1: k: wrong", "s.yaml:100:1: k: wrong", "… and 1,150 more"] == [lines[0], lines[99], lines[100]]


def test_a_hundred_findings_are_all() -> None:
    """Nothing is said of none more."""
    assert 100 == len(str(SpecError(Finding(Place("s", n), "", "x") for n in range(100))).splitlines())
