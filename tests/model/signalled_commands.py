"""Commands that get a signal at different moments, each in its own process; test_interrupts.py runs this file.

`python signalled_commands.py FOLDER SIGNAL STEPS ARGUMENT...` runs the command in copies of FOLDER. It prints a line of
JSON for the run without a signal, and one for each moment of a signal; at most STEPS of them are writing steps.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from benchmarks.__main__ import benchmarks
from planner.cli import main

# At these shares of all function calls, a signal comes.
SHARES = (0.0, 0.6)
SOON_SECONDS = 15
# CPython's audit events that announce a change of files.
WRITES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
OPENS_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Moment(NamedTuple):
    """The function call or writing step at which, or after which, the signal comes; without both there is no signal."""

    call: int | None = None
    step: int | None = None


class Counts:
    """Counts function calls and writing steps, and sends the signal at its moment."""

    def __init__(self, moment: Moment, number: int) -> None:
        self.moment, self.number = moment, number
        self.calls = self.steps = 0

    def called(self, _: Any, event: str, __: Any) -> None:
        """Python's profiler reports a function call."""
        if event == "call":
            self.calls += 1
            if self.calls - 1 == self.moment.call:
                self.send()

    def touched(self, event: str, about: tuple[Any, ...]) -> None:
        """An audit event announces a writing step; the signal comes right after that step."""
        if event in WRITES or (event == "open" and about[2] & OPENS_TO_WRITE):
            self.steps += 1
            if self.steps - 1 == self.moment.step:
                sys.setprofile(self.done)

    def done(self, frame: FrameType, _: str, __: Any) -> None:
        """The writing step is done, because the next profiler event is here."""
        if frame.f_code is not Counts.touched.__code__:
            self.send()

    def send(self) -> None:
        """Sends the signal once: SIGINT to the process group, as a terminal does, others to this process only."""
        sys.setprofile(None)
        os.killpg(0, self.number) if self.number == signal.SIGINT else os.kill(os.getpid(), self.number)


class Counted:
    """A command watched from its import to its end; without a moment, its counts are written to a file."""

    def __init__(self, load: Callable[[], Any], counts: Counts, file: Path) -> None:
        self._counts, self._file = counts, file
        sys.addaudithook(counts.touched)
        if counts.moment.step is None:
            sys.setprofile(counts.called)
        self._command = load()

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Runs the command's own main."""
        try:
            return self._command.main(*arguments, **options)
        finally:
            sys.setprofile(None)
            if self._counts.moment == Moment():
                found = self._counts.calls, self._counts.steps
                self._file.write_text(json.dumps(found), encoding="utf-8")


def ran(folder: Path, arguments: list[str], moment: Moment, number: int) -> dict[str, Any]:
    """How a command ends in a copy of a folder: exit code, stderr, files, leftovers, and processes that still run."""
    work = Path(tempfile.mkdtemp())
    shutil.copytree(folder, work / "in", symlinks=True)
    (work / "tmp").mkdir()
    process = os.fork()
    if not process:
        _run(work, arguments, Counts(moment, number))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    said = (work / "stderr").read_text(encoding="utf-8")
    counted = json.loads((work / "counts").read_text(encoding="utf-8")) if (work / "counts").exists() else None
    left, running = [path.name for path in (work / "tmp").iterdir()], left_running(process, work.name)
    found = {
        "code": code,
        "said": said,
        "files": digests(work / "in"),
        "left": left,
        "running": running,
    }
    shutil.rmtree(work)
    return found | {"counts": counted, "moment": moment}


def _run(work: Path, arguments: list[str], counts: Counts) -> None:
    os.setsid()
    os.chdir(work / "in")
    # Also in the environment of the processes that the command starts.
    os.environ["TMPDIR"] = tempfile.tempdir = str(work / "tmp")
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(work / name, os.O_WRONLY | os.O_CREAT), number)
    commands = main._commands
    setattr(main, "_commands", lambda: Counted(commands, counts, work / "counts"))  # noqa: B010  mypy: a function
    try:
        if arguments[0] == "bench":
            main.run(lambda: Counted(lambda: benchmarks, counts, work / "counts"), "bench", arguments[1:])
        main.main(arguments)
    except SystemExit as ended:
        sys.stdout.flush()
        os._exit(int(ended.code or 0))
    except BaseException as error:
        os.write(2, f"\nescaped: {error!r}\n".encode())
        os._exit(99)


def left_running(session: int, mark: str) -> list[str]:
    """The processes of a session, or with this mark in their environment, that still run after SOON_SECONDS."""
    until = time.monotonic() + SOON_SECONDS
    while True:
        found = [path.name for path in Path("/proc").glob("[0-9]*") if _is_of(int(path.name), session, mark)]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.02)


def _is_of(process: int, session: int, mark: str) -> bool:
    try:
        return os.getsid(process) == session or mark.encode() in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False


def digests(folder: Path) -> dict[str, str]:
    """Each path below a folder, with the digest of its content."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


def moments(calls: int, steps: int, most: int) -> Iterator[Moment]:
    """Moments at some function calls, and at up to `most` writing steps."""
    yield from (Moment(call=round(calls * share)) for share in SHARES)
    count = min(steps, most)
    yield from (Moment(step=round(at * (steps - 1) / max(1, count - 1))) for at in range(count))


if __name__ == "__main__":
    where, how, most, *typed = sys.argv[1:]
    from planner.cli.commands import COMMANDS, command

    for name in COMMANDS:
        command(name)  # loaded once for all of them

    # Compiled modules would count as files that the command writes, in its first run only.
    sys.dont_write_bytecode = True
    whole = ran(Path(where), typed, Moment(), int(how))
    sys.stdout.write(f"{json.dumps(whole)}\n")
    for each in moments(*whole["counts"], int(most)):
        sys.stdout.write(f"{json.dumps(ran(Path(where), typed, each, int(how)))}\n")
        sys.stdout.flush()
