"""Runs the command line inside a test's own process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

# A command that takes this long waits forever or never ends, even on a busy machine.
FAR_TOO_LONG_SECONDS = 120.0


class Ran(NamedTuple):
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


class TooLongError(BaseException):
    """The command waits forever or never ends. A BaseException, so that the program doesn't catch it."""


def run(folder: Path, typed: str) -> Ran:
    """Run a command in a folder."""
    from planner.cli.main import main

    out, err = StringIO(), StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err), _not_for_ever(), pytest.raises(SystemExit) as ended:
            main(typed.split())
    finally:
        os.chdir(before)
    return Ran(int(ended.value.code or 0), out.getvalue(), err.getvalue())


@contextmanager
def _not_for_ever() -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, FAR_TOO_LONG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
