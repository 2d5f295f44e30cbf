"""The generated playbooks, run by real Ansible with everything that it keeps inside the test's own folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

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
        """The output with every run of blanks made one, for looking a sentence up."""
        return " ".join(self.output.split())


@dataclass(frozen=True)
class Playbooks:
    """The `ansible/` folder of a plan, a home for what Ansible writes beside it, and the Ansible that runs.

    `variables` are given to each play.
    """

    folder: Path
    home: Path
    programs: Path = VENV_BIN
    variables: Mapping[str, object] = field(default_factory=dict)

    def play(self, playbook: str, *options: str, delay: int = 0) -> Run:
        """Run a playbook to its end."""
        ended = self._ended(*self._command(playbook, delay), *options)
        return _run(ended.returncode, ended.stdout + ended.stderr)

    @contextmanager
    def playing(self, playbook: str, *options: str, delay: int = 1) -> Iterator[Playing]:
        """A playbook while it runs; killed if it still does at the end."""
        environment = self.environment()
        command = [*self._command(playbook, delay), *options]
        with (self.home / "playing.txt").open("w+") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            running = Playing(process, Path(output.name))
            try:
                yield running
            finally:
                running.kill()

    def tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of Ansible's commands."""
        return self._ended(str(self.programs / name), *arguments)

    def _ended(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )

    def set_host_vars(self) -> None:
        """Write what `play` adds to a command into the operator's own file, for commands that a page has."""
        path = self.folder / "host_vars" / "localhost.yml"
        path.parent.mkdir()
        path.write_text("".join(f"{name}: {value}\n" for name, value in self._variables(0).items()))

    def _variables(self, delay: int) -> dict[str, object]:
        python = interpreter(self.programs / "python")
        return {**self.variables, "kafka_reassign_verify_delay": delay, "ansible_python_interpreter": python}

    def _command(self, playbook: str, delay: int) -> list[str]:
        given = (f"{name}={value}" for name, value in self._variables(delay).items())
        program = quick_ansible.command(self.programs / "python", self.programs / "ansible-playbook")
        return [*program, f"{playbook}.yml", *(word for each in given for word in ("-e", each))]

    def environment(self) -> dict[str, str]:
        """What Ansible runs in: its own programs first on PATH, and everything it keeps below `home`."""
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

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def text(self) -> str:
        """What it has printed so far, with every run of blanks made one."""
        return " ".join(self.output.read_text().split())

    def kill(self) -> None:
        """End it at once with all that it started, as a lost terminal or a reboot does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self, seconds: float = 900) -> Run:
        """Wait for its own end."""
        code = self.process.wait(seconds)
        return _run(code, self.output.read_text())


@cache
def _short_folder() -> tempfile.TemporaryDirectory[str]:
    """Where Ansible makes its sockets: a socket's path has 107 characters at most, and a test's folder may have 80."""
    return tempfile.TemporaryDirectory(prefix="plays-")


def _run(code: int, output: str) -> Run:
    changed = re.search(r"changed=(\d+)", output)
    return Run(code, int(changed[1]) if changed else 0, output)
