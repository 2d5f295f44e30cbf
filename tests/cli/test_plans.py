"""Commands that take a plan: what its content makes fail is said of that content."""

from __future__ import annotations

import pytest

from planner.cli.shown import reads_plan
from planner.model.errors import SetupError, StalePlanError


def failing(error: Exception):
    """A command that fails so."""

    @reads_plan
    def command(plan: str) -> int:
        raise error

    return command


@pytest.mark.parametrize("error", [KeyError("brokers"), StopIteration(), OverflowError("too large"), TypeError("x")])
def test_what_a_plan_makes_fail_is_said_of_it(error, monkeypatch):
    """With the kind of error, and how to see where."""
    monkeypatch.delenv("PLANNER_DEBUG", raising=False)
    with pytest.raises(StalePlanError, match=rf"contradicts itself \({type(error).__name__}: .*PLANNER_DEBUG=1 shows"):
        failing(error)(plan="p")
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    with pytest.raises(type(error)):
        failing(error)(plan="p")


@pytest.mark.parametrize("error", [SetupError("no Java"), PermissionError(13, "x"), MemoryError()])
def test_what_is_no_fault_of_the_plan_stays_what_it_is(error):
    """Ours have their own words, the system's too."""
    with pytest.raises(type(error)):
        failing(error)(plan="p")
