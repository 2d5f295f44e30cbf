"""The entry point: runs a command, prints errors as messages on stderr without a traceback, and exits with a code.

Functions import the commands, because that takes most of a second and Ctrl-C must work meanwhile.
"""

from __future__ import annotations

import codecs
import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.model import interrupts

if TYPE_CHECKING:
    import click

_LONGEST_LINE = 2_000
_ESCAPED = "planner-escaped"
_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Runs one of the planner's commands and exits."""
    run(_commands, "planner", arguments)


def run(load: Callable[[], click.Command], name: str, arguments: list[str] | None = None) -> None:
    """Imports a command with `load`, runs it under its name, and exits."""
    _open_closed_streams()
    _keep_streams_readable()
    interrupts.ignore_at_exit()
    with interrupts.interruptible() as watch:
        try:
            interrupts.keep_freed_memory()
            # A large cluster has millions of objects, with hardly any cycles, so garbage collection rarely runs.
            gc.set_threshold(100_000, 50, 100)
            code = int(load().main(arguments, prog_name=name, standalone_mode=False) or 0)
            # Flushed here, so that a full disk can still be reported.
            sys.stdout.flush()
        except BaseException as error:
            # After a signal, anything may fail while the command ends.
            if watch.signal:
                watch.end()
            code = _exit_code(error)
        if watch.signal:
            watch.end()
    sys.exit(code)


def _commands() -> click.Command:
    from planner.cli.commands import commands

    return commands


def _exit_code(error: BaseException) -> int:
    """Prints the message of an error, and returns the exit code."""
    import click

    from planner.model.errors import DEBUG, PlannerError, SpecError
    from planner.model.formats import printable

    if isinstance(error, SystemExit):  # click raises it only if the reader of stdout has ended
        error = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    if isinstance(error, OSError):
        return _unwritable(error)
    if isinstance(error, PlannerError):
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        # Findings already begin with a file's name.
        prefix = "" if isinstance(error, SpecError) else "planner: "
        _say(f"{prefix}{error.lines[0]}", *error.lines[1:])
        return error.exit_code
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, click.ClickException):
        # Since click 8.2, its message without arguments is the help.
        is_help = isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ()))
        vars(error)["message"] = error.message if is_help else printable(error.message, _LONGEST_LINE)
        error.show()
        return 1
    if isinstance(error, Exception):
        return _unexpected(error)
    raise error


def _unexpected(error: Exception) -> int:
    """Reports an error that nothing else handles: too little memory, or a bug of the planner."""
    from planner.model.errors import DEBUG, one_line

    if os.environ.get(DEBUG):
        raise error
    if isinstance(error, MemoryError):
        _say("planner: not enough memory: use a machine with more memory, or a smaller input")
    else:
        message = one_line(error)
        description = f"{type(error).__name__}{': ' if message else ''}{message}"
        todo = "run the same command as planner --debug …, and report the output"
        _say(f"planner: unexpected {description}; this is a bug in planner: {todo}")
    return 1


def _say(*lines: str) -> None:
    """Prints a message on stderr. Line breaks and control characters in names are replaced; long messages are cut."""
    from planner.model.errors import MOST_SHOWN, capped
    from planner.model.formats import printable

    # A list of findings is already cut, and its last line says so.
    shown = lines if len(lines) <= MOST_SHOWN + 1 else capped(lines)
    import click

    try:
        click.echo("\n".join(printable(line, _LONGEST_LINE) for line in shown), err=True)
    except OSError:
        return


def _unwritable(error: OSError) -> int:
    """Reports an error of the operating system. If the reader of stdout has ended, like `head`, that isn't an error."""
    from planner.model.errors import DEBUG

    if error.errno == errno.EPIPE:
        _drop_stdout()
        return 0
    if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF):
        _drop_stdout()
        _say(f"planner: stdout can't be written: {error.strerror}")
    elif error.filename is None or os.environ.get(DEBUG):
        return _unexpected(error)
    else:
        _say(f"planner: {error.filename}: {error.strerror}; allowed: a file or folder that can be used")
    return 1


def _drop_stdout() -> None:
    """Redirects stdout to /dev/null, because Python would write to it again when it exits, and print an error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _open_closed_streams() -> None:
    """Opens stdin, stdout and stderr if the shell closed them. Otherwise the next opened file would get the output."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number, inheritable=True)
            os.close(opened)
        os.set_inheritable(number, True)
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _keep_streams_readable() -> None:
    """Makes streams write characters that their encoding lacks as JSON escapes, instead of failing.

    Libraries and child processes that print to descriptor 1, such as HiGHS, print to stderr instead of into the JSON.
    """
    codecs.register_error(_ESCAPED, _escaped)
    if (stdout := sys.__stdout__) and stdout is sys.stdout and stdout.fileno() == 1:
        stdout.flush()
        sys.stdout = os.fdopen(os.dup(1), "w", encoding=stdout.encoding)
        sys.stdout.reconfigure(line_buffering=stdout.line_buffering, write_through=stdout.write_through)
        os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(lacking[index : index + 2], "big") for index in range(0, len(lacking), 2))
    return "".join(f"\\u{unit:04x}" for unit in units), error.end
