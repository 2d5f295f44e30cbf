"""Shared functions for printing: a plan or a view as text, JSON or Markdown, lines on stdout and stderr, progress."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from planner.approval import plan_check
from planner.cli import one_spec
from planner.model.errors import DEBUG, PlannerError, StalePlanError, UnsafePlanError, one_line
from planner.model.formats import number, printable
from planner.model.generated_text import json_text, page
from planner.plan.build import RefusedPlanError
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.report import markdown, terminal
from planner.report.terminal import Detail
from planner.report.view import View

Format = Literal["text", "json", "markdown"]

# The width if stdout isn't a terminal, because programs read the lines and paths may be long.
_UNWRAPPED = 1000

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
SEED = click.IntRange(min=0, max=2**31 - 1)

format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="What stdout shows."
)


def live_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds `--bootstrap-servers` and `--command-config`."""
    servers = "Ask a running cluster; needs the extra 'live'."
    settings = "Client properties for TLS and SASL, as for Kafka's tools."
    command = click.option("--command-config", type=FILE, help=settings)(command)
    return click.option("--bootstrap-servers", metavar="HOST:PORT,...", help=servers)(command)


def detail_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds `-q` and `-v`. The command gets them as `detail`."""
    for short, long, detail, help_text in (
        ("-v", "--verbose", "everything", "Show everything in the report; with markdown the whole report.md."),
        ("-q", "--quiet", "verdict", "Show only the verdict."),
    ):
        command = click.option(short, long, "detail", flag_value=detail, default=None, help=help_text)(command)

    @wraps(command)
    def with_detail(**options: Any) -> int:
        if f"{options['form']} {options['detail']}" in ("json verdict", "json everything", "markdown verdict"):
            raise click.UsageError("--quiet works only with --format text, and --verbose only with text or markdown")
        return command(**options)

    return with_detail


def refuse_given(reason: str, *names: str) -> None:
    """Raises UsageError if an option of these names is on the command line although it has no effect."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[-1]} {reason}")


def show(plan: Plan, form: Format, detail: Detail | None, folder: Path | None = None, files: int = 0) -> None:
    """Prints a plan. `folder` is its folder, and `files` is the number of files just written there."""
    path_text = None if folder is None else str(folder)
    ended = plan_check.expired(plan, datetime.now(UTC))
    match form:
        case "json":
            echo_json(codec.as_json(plan))
        case "markdown":
            is_full = detail == "everything"
            echo_page(markdown.report(plan, one_spec.pages_of(plan)) if is_full else markdown.comment(plan, path_text))
        case _:
            terminal.first_step(f"Expired: {ended}: apply.yml refuses it." if ended else "", screen())
            terminal.show_plan(plan, screen(), path_text, files, detail or "summary")
    if ended and form != "text":
        say(f"warning: {ended}: apply.yml refuses it")


def shows_refused(command: Callable[..., int]) -> Callable[..., int]:
    """Prints the plan that a command refuses, as text or Markdown, before the error says why."""

    @wraps(command)
    def showing(**options: Any) -> int:
        try:
            return command(**options)
        except RefusedPlanError as error:
            if options["form"] != "json":
                show(error.plan, options["form"], options["detail"])
            raise
        except UnsafePlanError as error:
            # Here, no plan was chosen, so none can be shown.
            if options["form"] == "markdown":
                echo_page(markdown.refusal(error.lines))
            raise

    return showing


def show_found(form: Format, document: Callable[[], Mapping[str, Any]], view: Callable[[], View]) -> None:
    """Prints a command's result: its document as JSON, or its view."""
    if form == "json":
        echo_json(document())
    else:
        show_view(view(), form)


def show_view(view: View, form: Literal["text", "markdown"]) -> None:
    """Prints a view. If stdout isn't a terminal, lines aren't wrapped."""
    if form == "markdown":
        echo_page(markdown.render(view))
    else:
        terminal.show(view, screen())


def echo_json(value: Mapping[str, Any]) -> None:
    """Prints JSON on one line, with its keys sorted."""
    click.echo(json_text(value))


def say(line: str) -> None:
    """Prints a line about the progress on stderr. Control characters are replaced like in `echo_line`."""
    click.echo(printable(line, len(line)), err=True)


def echo_line(line: str) -> None:
    """Prints one line. Line breaks and control characters in its names are replaced."""
    click.echo(printable(line, len(line)))


def echo_page(text: str) -> None:
    """Prints lines; the last one must end with a line break. Control characters are replaced."""
    click.echo(page(text), nl=False)


def screen() -> Console:
    """A console as wide as the terminal. If stdout is a pipe, a file or closed, lines aren't wrapped."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    # Without `emoji=False`, a name like `:fire:` would be printed as a picture.
    return _Screen(emoji=False, width=None if on_terminal else _UNWRAPPED)


class _Screen(Console):
    """A console that prints nothing more if the reader of stdout ends, like `head`. The command keeps its exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # Otherwise, Python would write to it again when it exits, and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def reads_plan(command: Callable[..., int]) -> Callable[..., int]:
    """Turns any unexpected error of a command into StalePlanError, because parts of the plan contradict each other.

    The plan's id fits its content, or reading would have failed. So either somebody changed the plan and computed a
    new id, or the planner has a bug.
    """

    @wraps(command)
    def reading(**options: Any) -> int:
        try:
            return command(**options)
        except (PlannerError, click.ClickException, click.exceptions.Exit, OSError, MemoryError):
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            raise StalePlanError(
                f"the plan's content contradicts itself ({type(error).__name__}: {one_line(error)}): it was changed "
                "after it was made, and its plan_id made anew, or the planner has a bug. Make it again (planner "
                "whatif); planner --debug shows where it fails"
            ) from error

    return reading


@dataclass(frozen=True)
class Phases:
    """The progress line: the phase's name, its progress if known, and the time since the command began."""

    progress: Progress
    line: TaskID

    def begin(self, name: str) -> None:
        """Shows the next phase, whose length is unknown."""
        self.progress.update(self.line, description=name, completed=0, total=None)

    def count(self, name: str, done: int, total: int) -> None:
        """Shows how many items are done."""
        text = f"{name}: {number(done)} of {number(total)}"
        self.progress.update(self.line, description=text, completed=done, total=total)


@contextmanager
def phases_shown(console: Console) -> Iterator[Phases]:
    """Shows the progress line during the block."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Phases(progress, progress.add_task("", total=None))
