"""A long command says on a terminal what it is doing."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from planner.cli import workflow


@pytest.mark.parametrize("terminal", [True, False])
def test_phases_are_told_on_a_terminal_alone(terminal: bool) -> None:
    """Each by its name, and how far it is; a pipe gets nothing."""
    out = StringIO()
    with workflow.phases_shown(Console(file=out, force_terminal=terminal, width=120)) as phase:
        phase.begin("reading the [state]")
        phase.progress.refresh()
        phase.count("sweeping candidates", 1_200, 5_000)
        phase.progress.refresh()

    told = ["reading the [state]", "sweeping candidates: 1,200 of 5,000"]
    assert told == [each for each in told if each in out.getvalue()] if terminal else not out.getvalue()
