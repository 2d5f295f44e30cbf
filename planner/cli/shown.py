"""How commands read a plan and show it on stdout: on a screen, as JSON, or as the report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console

from planner.cli import workflow
from planner.model.errors import PlannerError, StalePlanError
from planner.model.formats import printable
from planner.model.quoting import json_text, page
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.report import markdown, terminal
from planner.report.terminal import Detail
from planner.report.view import View

Format = Literal["text", "json", "markdown"]

# Paths may be of any length, and programs read them.
_UNWRAPPED = 1000

format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="What stdout shows."
)


def detail_options(command: Callable[..., int]) -> Callable[..., int]:
    """`-q` and `-v`, as `detail`."""
    for short, long, detail, said in (
        ("-v", "--verbose", "everything", "Show all that the report has; with markdown the whole report.md."),
        ("-q", "--quiet", "verdict", "Show the verdict alone."),
    ):
        command = click.option(short, long, "detail", flag_value=detail, default=None, help=said)(command)
    return command


def show(plan: Plan, form: Format, detail: Detail | None, folder: Path | None = None, files: int = 0) -> None:
    """A plan; `folder` is where it is, and `files` how many were written there just now."""
    match form:
        case "json":
            echo_json(codec.as_json(plan))
        case "markdown":
            echo_page(workflow.markdown(plan, whole=detail == "everything"))
        case _:
            at = None if folder is None else str(folder)
            terminal.show_plan(plan, screen(_UNWRAPPED), at, files, detail or "summary")


def show_view(view: View, form: Literal["text", "markdown"]) -> None:
    """What a command shows, to be read; off a terminal it is as wide as it needs to be."""
    if form == "markdown":
        echo_page(markdown.render(view))
    else:
        terminal.show(view, screen(_UNWRAPPED))


def echo_json(value: Mapping[str, Any]) -> None:
    """One line, keys sorted."""
    click.echo(json_text(value))


def say(line: str) -> None:
    """A line about what happens meanwhile, on stderr."""
    echo_line(line, err=True)


def echo_line(text: str, *, err: bool = False) -> None:
    """One line, whatever it repeats of a name: no line break, and nothing that a terminal would obey."""
    click.echo(printable(text, len(text)), err=err)


def echo_page(text: str) -> None:
    """A page of lines, which ends its last line itself; what a terminal would obey is replaced."""
    click.echo(page(text), nl=False)


def screen(columns: int) -> Console:
    """As wide as the terminal; off one as wide as given."""
    # A name such as `:fire:` is no picture.
    return _Screen(emoji=False, width=None if _on_terminal() else columns)


class _Screen(Console):
    """A console that takes it that what reads it has ended, as `head` does: the exit code stays the command's."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # Python would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def _on_terminal() -> bool:
    """False where stdout is a pipe, a file, or closed."""
    return sys.stdout is not None and sys.stdout.isatty()


_DEBUG = "PLANNER_DEBUG"


def reads_plan(command: Callable[..., int]) -> Callable[..., int]:
    """The command, refusing a plan whose parts don't fit together.

    Its id fits, or it wouldn't have been read: somebody has made that anew after a change, or we have a defect.
    """

    @wraps(command)
    def reading(**options: Any) -> int:
        try:
            return command(**options)
        except (PlannerError, click.ClickException, click.exceptions.Exit, OSError, MemoryError):
            raise
        except Exception as error:
            if os.environ.get(_DEBUG):
                raise
            about = " ".join(str(error).split())[:200]
            raise StalePlanError(
                f"the plan's content contradicts itself ({type(error).__name__}: {about}): it was changed after it was "
                f"made, and its plan_id made anew; make it again (planner whatif). {_DEBUG}=1 shows where it fails"
            ) from error

    return reading
