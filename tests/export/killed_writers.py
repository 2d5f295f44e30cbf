"""Several processes that write one folder, and are killed or race. test_folder_swap.py runs this.

`python killed_writers.py kill|race exchange|renames FOLDER` prints each fault, one a line, and what it did.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from planner.export import folder_swap, output_folder
from planner.export.folder_check import SUMS, sums
from planner.model.file_reading import digest

OWN = {
    "ansible/inventory/hosts.yml": b"my hosts",
    "ansible/group_vars/all.yml": b"my variables",
    "terraform/terraform.tfstate": b"my state",
}
# CPython raises one of these audit events before each access to a file.
EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir"}
EVENTS |= {"ctypes.dlopen", "ctypes.dlsym", "shutil.rmtree", "shutil.copyfile"}


def files(number: int) -> dict[str, bytes]:
    """A plan's files. Each number gives other files."""
    made = {
        "plan.json": json.dumps({"format_version": "1.0", "plan_id": str(number)}).encode(),
        "ansible/inventory/hosts.yml": b"an example",
        "terraform/kafka_topics.auto.tfvars.json": b"{}",
        f"batches/{number % 3}/reassignment.json": b"{}",
    }
    return made | {SUMS: sums({path: digest(content) for path, content in made.items()})}


def furnish(folder: Path, number: int) -> None:
    """Write a plan's folder with files of the operator."""
    output_folder.write(folder, files(number))
    for path, content in OWN.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def contents(folder: Path) -> dict[str, bytes]:
    """The path and content of every file in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def beside(folder: Path) -> list[str]:
    """The names in the folder's parent."""
    return sorted(path.name for path in folder.parent.iterdir())


def say(line: str) -> None:
    """Print a line for the test."""
    sys.stdout.write(f"{line}\n")


def child(work: Callable[[], None]) -> int:
    """Run the work in a new process. Return its process id."""
    number = os.fork()
    if not number:
        try:
            work()
        except BaseException as error:  # the message is printed for the test
            say(f"a writer failed: {error!r}")
            sys.stdout.flush()
            os._exit(1)
        os._exit(0)
    return number


def status(number: int) -> int:
    """The exit status of a process: 0, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def killed_at(step: int, folder: Path) -> int:
    """Run a writer that is killed before its access number `step` to a file. Return its status."""

    def write() -> None:
        left = step

        def count(event: str, _: object) -> None:
            nonlocal left
            if event in EVENTS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        output_folder.write(folder, files(2))

    return status(child(write))


def kill(folder: Path, *, gap: bool) -> None:
    """Kill at every step of replacing a folder. It must always be the old or new one, and the next run repairs it."""
    said: set[str] = set()
    step, ended = 0, -signal.SIGKILL
    furnish(folder, 3)
    while ended == -signal.SIGKILL:
        ended = killed_at(step, folder)
        step += 1
        if not folder.exists() and not gap:
            say(f"step {step}: the folder is gone")
        if folder.exists() and contents(folder) not in (files(3) | OWN, files(2) | OWN):
            say(f"step {step}: a mixture: {sorted(contents(folder))}")
        output_folder.write(folder, files(3), lambda line: said.add(line.split("; ")[-1]))
        if contents(folder) != files(3) | OWN:
            say(f"step {step}: not as it should be: {sorted(contents(folder))}")
        if [folder.name] != beside(folder):
            say(f"step {step}: left behind: {beside(folder)}")
    say(f"killed at {step - 1} steps")
    say("\n".join(sorted(said)))


def watched(folder: Path, writers: list[int]) -> tuple[int, int]:
    """Check for the folder's files until the writers end. Return how often, and how often a file was missing."""
    polls = missed = 0
    while writers:
        polls += 1
        missed += not all((folder / path).exists() for path in ("plan.json", *OWN))
        ended, how = os.waitpid(-1, os.WNOHANG)
        if ended:
            writers.remove(ended)
            if how:
                say("a writer died")
    return polls, missed


def race(folder: Path, *, gap: bool) -> None:
    """Two writers race. A reader must never miss the folder or the operator's files."""
    furnish(folder, 0)

    def writes(first: int) -> None:
        for number in range(first, first + 20):
            output_folder.write(folder, files(number))

    writers = [child(lambda first=first: writes(first)) for first in (100, 200)]  # type: ignore[misc]
    polls, missed = watched(folder, writers)
    if missed and not gap:
        say(f"{missed} of {polls} polls missed a file")
    if {path: contents(folder)[path] for path in OWN} != OWN:
        say("the operator's files are lost")
    if [folder.name] != beside(folder):
        say(f"left behind: {beside(folder)}")
    say("raced")


if __name__ == "__main__":
    what, how, where = sys.argv[1:]
    if how == "renames":
        folder_swap.exchange = lambda *_: False
    {"kill": kill, "race": race}[what](Path(where), gap=how == "renames")
