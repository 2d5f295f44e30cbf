"""How commands write to stdout and show their progress, and how they report a plan whose content makes them fail."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from planner.cli.output import phases_shown, reads_plan, screen
from planner.model.errors import SetupError, StalePlanError

SHOWN = """
import sys
from planner.cli.output import screen

sys.stdin.readline()  # By now nobody reads stdout.
console = screen()
for _ in range(3):
    console.print("a line")
print("went on", file=sys.stderr)
sys.exit(2)
"""


@pytest.fixture
def unread() -> subprocess.Popen[bytes]:
    """A program whose stdout was closed by its reader."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SHOWN], **pipes)
    assert process.stdout is not None
    process.stdout.close()
    return process


@pytest.mark.slow
def test_a_reader_that_ends_changes_no_exit_code(unread: subprocess.Popen[bytes]) -> None:
    """If the reader ends, as in `planner whatif … | head`, the exit code stays the same and no error is printed."""
    _, errors = unread.communicate(b"\n")
    assert (2, b"went on\n") == (unread.returncode, errors)


def test_a_name_is_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    """A name like :fire: isn't replaced by an emoji, in a line or in a table."""
    table = Table(box=None)
    table.add_row("rack:heart:1")
    screen().print("broker :fire:", table)
    lines = map(str.strip, capsys.readouterr().out.splitlines())
    assert ["broker :fire:", "rack:heart:1"] == list(filter(None, lines))


def failing(error: Exception):
    """A command that raises this error."""

    @reads_plan
    def command(plan: str) -> int:
        raise error

    return command


@pytest.mark.parametrize("error", [KeyError("brokers"), StopIteration(), OverflowError("too large"), TypeError("x")])
def test_what_a_plan_makes_fail_is_said_of_it(error, monkeypatch):
    """An unexpected error of a command is reported as the plan's contradiction, with its kind and how to see more."""
    monkeypatch.delenv("PLANNER_DEBUG", raising=False)
    with pytest.raises(StalePlanError, match=rf"contradicts itself \({type(error).__name__}: .*planner --debug shows"):
        failing(error)(plan="p")
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    with pytest.raises(type(error)):
        failing(error)(plan="p")


@pytest.mark.parametrize("error", [SetupError("no Java"), PermissionError(13, "x"), MemoryError()])
def test_what_is_no_fault_of_the_plan_stays_what_it_is(error):
    """An error that isn't the plan's fault is raised as it is."""
    with pytest.raises(type(error)):
        failing(error)(plan="p")


@pytest.mark.parametrize("terminal", [True, False])
def test_phases_are_told_on_a_terminal_alone(terminal: bool) -> None:
    """Phases and their counts are shown on a terminal, and not in a pipe."""
    out = StringIO()
    with phases_shown(Console(file=out, force_terminal=terminal, width=120)) as phase:
        phase.begin("reading the [state]")
        phase.progress.refresh()
        phase.count("sweeping candidates", 1_200, 5_000)
        phase.progress.refresh()

    told = ["reading the [state]", "sweeping candidates: 1,200 of 5,000"]
    assert told == [each for each in told if each in out.getvalue()] if terminal else not out.getvalue()
