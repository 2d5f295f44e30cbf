"""The examples in `--help`: there for every command, and each of them can be typed."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from planner.cli.commands import COMMANDS, command, commands
from planner.cli.help_examples import EXAMPLES

LINES = [line for lines in EXAMPLES.values() for line in lines]


def test_every_command_has_examples() -> None:
    """Those that do more than one thing of their own are groups."""
    assert set(EXAMPLES) == set(COMMANDS) - {"spark"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_ends_with_them(name: str) -> None:
    """Each on a line of its own, however narrow the terminal."""
    shown = CliRunner().invoke(commands, [name, "--help"], terminal_width=60).output

    assert [] == [line for line in EXAMPLES[name] if f"  {line}\n" not in shown]


@pytest.mark.parametrize("line", LINES)
def test_each_parses(line: str) -> None:
    """Options and values exist; nothing is run."""
    program, name, *words = shlex.split(line)
    context = command(name).make_context(name, words, parent=None)

    assert "planner" == program
    assert [] == context.args


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the docs tell to put into the shell's start-up file."""
    monkeypatch.setenv("_PLANNER_COMPLETE", f"{shell}_source")
    shown = CliRunner().invoke(commands, [], prog_name="planner")

    assert 0 == shown.exit_code
    assert "_PLANNER_COMPLETE" in shown.output
