"""Runs the generated playbooks with real Ansible. All that Ansible keeps is inside the test's own folder."""

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
        ended = self._ended(*self._command(playbook, delay), *options)
        return _run(ended.returncode, ended.stdout + ended.stderr)

    @contextmanager
    def playing(self, playbook: str, *options: str, delay: int = 1) -> Iterator[Playing]:
        """A running playbook, which is killed if it still runs at the end of the block."""
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
        """Run another of Ansible's commands."""
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
        """Write the options that `play` passes into the operator's own file, for commands that a page shows."""
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

    process: subprocess.Popen[bytes]
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
