"""Runs the generated playbooks with real Ansible. All that Ansible keeps is inside the test's own folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO

import quick_ansible
from module_server import interpreter

VENV_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Run:
    """How a playbook ended. `output` is stdout and stderr, wrapped as Ansible wraps them."""

    code: int
    changed: int
    output: str

    @property
    def text(self) -> str:
        """The output with each run of blanks replaced by one blank, so that a test can search for a sentence."""
        return " ".join(self.output.split())


@dataclass(frozen=True)
class Playbooks:
    """A plan's `ansible/` folder, a home for the files that Ansible writes, and the programs of the Ansible that runs.

    Each play gets `variables`.
    """

    folder: Path
    home: Path
    programs: Path = VENV_BIN
    variables: Mapping[str, object] = field(default_factory=dict)

    def play(self, playbook: str, *options: str, delay: int = 0) -> Run:
        """Run a playbook to its end."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code = self._start(playbook, delay, options, out, err).wait(1800)
            out.seek(0)
            err.seek(0)
            return _run(code, out.read() + err.read())

    @contextmanager
    def playing(self, playbook: str, *options: str, delay: int = 1) -> Iterator[Playing]:
        """A running playbook, which is killed if it still runs at the end of the block."""
        self.home.mkdir(exist_ok=True)
        with (self.home / "playing.txt").open("w+") as output:
            running = Playing(self._start(playbook, delay, options, output, output), Path(output.name))
            try:
                yield running
            finally:
                running.kill()

    def tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another of Ansible's commands."""
        return subprocess.run(
            [str(self.programs / name), *arguments],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )

    def set_host_vars(self) -> None:
        """Write the options that `play` passes into the operator's own file, for commands that a page shows."""
        path = self.folder / "host_vars" / "localhost.yml"
        path.parent.mkdir()
        path.write_text("".join(f"{name}: {value}\n" for name, value in self._variables(0).items()))

    def _variables(self, delay: int) -> dict[str, object]:
        python = interpreter(self.programs / "python")
        return {**self.variables, "kafka_reassign_verify_delay": delay, "ansible_python_interpreter": python}

    def _start(
        self, playbook: str, delay: int, options: Sequence[str], out: IO[str], err: IO[str]
    ) -> quick_ansible.Process:
        given = (word for name, value in self._variables(delay).items() for word in ("-e", f"{name}={value}"))
        arguments = [f"{playbook}.yml", *given, *options]
        return quick_ansible.start(self.programs, arguments, self.folder, self.environment(), out, err)

    def environment(self) -> dict[str, str]:
        """Ansible's environment: its programs are first on PATH, and all that it keeps is below `home`."""
        self.home.mkdir(exist_ok=True)
        own = {"HOME": self.home, "ANSIBLE_HOME": self.home, "ANSIBLE_LOCAL_TEMP": self.home / "local"}
        own |= {"TMPDIR": _short_folder().name, "ANSIBLE_REMOTE_TEMP": self.home / "remote"}
        kept = {key: os.environ[key] for key in ("JAVA_HOME",) if key in os.environ}
        return kept | {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            **{key: str(value) for key, value in own.items()},
        }


@dataclass(frozen=True)
class Playing:
    """A running playbook."""

    process: quick_ansible.Process
    output: Path

    @property
    def text(self) -> str:
        """The output so far, with each run of blanks replaced by one blank."""
        return " ".join(self.output.read_text().split())

    def kill(self) -> None:
        """Kill the playbook and all processes that it started, as a lost terminal or a reboot does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self, seconds: float = 900) -> Run:
        """Wait until the playbook ends by itself."""
        code = self.process.wait(seconds)
        return _run(code, self.output.read_text())


@cache
def _short_folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of Ansible's sockets. A socket's path may have 107 characters; a test's folder may already have 80."""
    return tempfile.TemporaryDirectory(prefix="plays-")


def _run(code: int, output: str) -> Run:
    changed = re.search(r"changed=(\d+)", output)
    return Run(code, int(changed[1]) if changed else 0, output)
