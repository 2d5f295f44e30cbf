"""The release lines of ansible-core with which the playbooks are tested, each in its own virtual environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from tools import lacking


@dataclass(frozen=True)
class Line:
    """One release of ansible-core, and the oldest Python that it runs on."""

    release: str
    python: tuple[int, int]


LINES = (
    Line("2.17.14", (3, 10)),
    Line("2.18.19", (3, 11)),
    Line("2.19.14", (3, 11)),
    Line("2.20.10", (3, 12)),
    Line("2.21.5", (3, 12)),
)
_PYTHONS = ("python3.14", "python3.13", "python3.12")


@dataclass(frozen=True)
class _Python:
    """A Python: its command, and the variables that it needs in addition to this process's environment."""

    command: str
    extra: tuple[tuple[str, str], ...] = ()

    def run(self, *arguments: str) -> bool:
        """Whether it ran without an error."""
        environment = os.environ | dict(self.extra)
        try:
            ended = subprocess.run([self.command, *arguments], env=environment, capture_output=True, check=False)
        except OSError:
            return False
        return ended.returncode == 0


def programs(line: Line, folder: Path) -> Path:
    """The folder of a line's programs. If they aren't in `folder` yet, they are installed there.

    If the line can't be installed, the test is skipped, or fails under CI.
    """
    # Several processes may run tests of the same line.
    with FileLock(folder / "lock"):
        if not (folder / "made").exists():
            _install(line, folder)
            (folder / "made").touch()
    return folder / "venv" / "bin"


def _install(line: Line, folder: Path) -> None:
    python = next(_pythons(line.python), None)
    if python is None:
        oldest = ".".join(map(str, line.python))
        lacking(
            f"Python {oldest}, for ansible-core {line.release}, isn't installed: pyenv install {oldest} installs it"
        )
    shutil.rmtree(folder / "venv", ignore_errors=True)
    if not python.run("-m", "venv", "--without-pip", str(folder / "venv")):
        lacking(f"{python.command} can't make a virtual environment for ansible-core {line.release}")
    inside = str(folder / "venv" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", inside, "install", "-q", f"ansible-core=={line.release}"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode:
        lacking(f"ansible-core {line.release} can't be installed: {installed.stderr.strip()[-200:]}")


def oldest_on_a_host() -> str:
    """The path of the oldest Python that an admin host may have. Skips the test if it isn't installed."""
    name, asked = "python3.8", ["-c", "import sys; print(sys.executable)"]
    for extra in ({}, *({"PYENV_VERSION": version} for version in _pyenv_versions(name))):
        with suppress(OSError):
            found = subprocess.run([name, *asked], env=os.environ | extra, capture_output=True, text=True, check=False)
            if found.returncode == 0:
                return found.stdout.strip()
    return lacking(f"{name}, the oldest on an admin host, isn't installed: pyenv install 3.8 installs it")


def _pythons(oldest: tuple[int, int]) -> Iterator[_Python]:
    """Pythons that work and are new enough: first this one, then those on PATH and of pyenv."""
    if sys.version_info[:2] >= oldest:
        yield _Python(sys.executable)
    test = ("-c", f"import sys, venv; sys.exit(sys.version_info[:2] < {oldest})")
    for name in filter(shutil.which, _PYTHONS):
        # A pyenv command works only if a version that has it is selected.
        chosen = [(("PYENV_VERSION", version),) for version in _pyenv_versions(name)]
        yield from (python for extra in [(), *chosen] if (python := _Python(name, extra)).run(*test))


def _pyenv_versions(command: str) -> list[str]:
    if shutil.which("pyenv") is None:
        return []
    found = subprocess.run(["pyenv", "whence", command], capture_output=True, text=True, check=False)
    return found.stdout.split()
