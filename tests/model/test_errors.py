"""Messages with many findings, and suggestions of similar names."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, cast

import pytest

from planner.model.errors import Finding, ImportStateError, Place, SpecError, did_you_mean
from planner.plan.build import RefusedPlanError

if TYPE_CHECKING:
    from planner.plan.document.plan_types import Plan


def test_a_hundred_findings_are_shown_and_the_others_counted() -> None:
    """The first 100 findings by place are shown, the others counted; the error keeps all."""
    error = SpecError(Finding(Place("s.yaml", number, 1), "k", "wrong") for number in range(1250, 0, -1))
    lines = str(error).splitlines()
    assert (1250, 101) == (len(error.findings), len(lines))
    assert ["s.yaml:1:1: k: wrong", "s.yaml:100:1: k: wrong", "… and 1,150 more"] == [lines[0], lines[99], lines[100]]


def test_a_hundred_findings_are_all() -> None:
    """With exactly 100 findings no line counts others."""
    assert 100 == len(str(SpecError(Finding(Place("s", n), "", "x") for n in range(100))).splitlines())


@pytest.mark.parametrize("kind", [SpecError, ImportStateError])
def test_findings_travel(kind: type[SpecError]) -> None:
    """An error can be pickled, as Spark's workers do, and keeps its findings."""
    error = kind([Finding(Place("s.yaml", 2, 1), "k", "wrong")])
    back = pickle.loads(pickle.dumps(error))
    assert (kind, str(error), error.lines, error.findings) == (type(back), str(back), back.lines, back.findings)


def test_a_refused_plan_travels() -> None:
    """A pickled RefusedPlanError keeps its plan."""
    error = RefusedPlanError(cast("Plan", "the plan"), "too much", "raise it")
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, RefusedPlanError)
    assert ("the plan", "too much\nraise it", ("too much", "raise it")) == (back.plan, str(back), back.lines)


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
    """Similar names are suggested, regardless of case and wildcards; without a similar name there is no suggestion."""
    assert expected == did_you_mean(word, known)


def test_among_very_many_names_those_that_begin_alike_are_compared() -> None:
    """Among 300,000 names a suggestion is still found, because only names that begin alike are compared."""
    assert "did you mean 'logs'? " == did_you_mean("logz", [*(f"t{n}" for n in range(300_000)), "logs"])
