"""Runs the real `ansible-playbook` in forks of one process that has imported it, and reuses what earlier plays made.

Imports, and the reading of Ansible's own settings and documentation, take most of the CPU of a short play. Each play
packs the same five modules for its host, at 0.2 s of CPU each, and each task is a fork that loads all filters and
tests again. The server of this module does all that once. Packed modules are kept, so that the next play of the same
roles finds them in Ansible's own cache.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, NoReturn

import fork_server

NUMBER_BYTES = 8  # of a process id or an exit code, as the server sends it


@dataclass
class Process:
    """A play that the server has started, in a session of its own. Its methods are those of `subprocess.Popen`."""

    args: Sequence[str]
    pid: int
    caller: socket.socket
    returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None if the play still runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, seconds: float | None = None) -> int:
        """Wait until the play has ended. Return its exit code."""
        if self.returncode is None:
            # A timeout of 0 makes a socket that never blocks, which is what `poll` needs.
            self.caller.settimeout(seconds)
            try:
                self.returncode = _received(self.caller)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, seconds or 0) from None
            self.caller.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the play, but not to the processes that it started."""
        if self.poll() is None:
            os.kill(self.pid, number)


def start(
    programs: Path, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], out: IO[Any], err: IO[Any]
) -> Process:
    """Start a play in a folder, with the `ansible-playbook` of these programs."""
    command = [str(programs / "ansible-playbook"), *arguments]
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(_server(programs)[1])
    request = json.dumps([str(folder), dict(environment), command]).encode() + b"\n"
    socket.send_fds(caller, [request], [out.fileno(), err.fileno()])
    return Process(command, _received(caller), caller)


def _packed(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big", signed=True)


def _received(caller: socket.socket) -> int:
    return int.from_bytes(caller.recv(NUMBER_BYTES), "big", signed=True)


@cache
def _server(programs: Path) -> tuple[tempfile.TemporaryDirectory[str], str, subprocess.Popen[bytes]]:
    """The folder of packed modules, and the address and the process of the server, which ends with this process."""
    kept = tempfile.TemporaryDirectory(prefix="packed-")
    address = str(Path(kept.name, "server"))
    return kept, address, fork_server.start(programs / "python", __file__, kept.name, kept.name, address)


def _answer(kept: str, caller: socket.socket) -> None:
    """Run one play in a fork. Send its process id, and then its exit code."""
    request, streams, _, _ = socket.recv_fds(caller, 1 << 20, 2)
    while not request.endswith(b"\n"):
        request += caller.recv(1 << 20)
    play = os.fork()
    if not play:
        caller.close()
        os.setsid()
        for number, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
            os.dup2(stream, number)
            os.close(stream)
        folder, environment, sys.argv[:] = json.loads(request)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        _play(kept)
    for stream in streams:
        os.close(stream)
    caller.sendall(_packed(play))
    code = os.waitstatus_to_exitcode(os.waitpid(play, 0)[1])
    with suppress(BrokenPipeError):
        caller.sendall(_packed(code))


def _load_ansible() -> None:
    """Import what each play imports, and read what each play reads of Ansible's own files."""
    from ansible import plugins
    from ansible.cli import playbook  # noqa: F401  (each fork inherits it)
    from ansible.config import manager
    from ansible.plugins import loader
    from ansible.utils.collection_loader import _collection_finder as finder

    # This process's own folder for temporary files, which isn't for the forks to remove.
    atexit.unregister(manager.cleanup_tmp_file)
    # The loader of vars isn't among these: once it has listed its plugins, it runs none of them.
    for name in ("become", "cache", "callback", "connection", "filter", "inventory", "shell", "strategy", "test"):
        list(getattr(loader, f"{name}_loader").all(class_only=True))
    finder._meta_yml_to_dict = cache(finder._meta_yml_to_dict)
    path = Path(plugins.__file__).parents[1] / "config" / "ansible_builtin_runtime.yml"
    finder._meta_yml_to_dict(path.read_bytes(), ("ansible.builtin", "runtime.yml"))


def _play(kept: str) -> NoReturn:
    """Be `ansible-playbook` in the folder and with the environment of this play."""
    from ansible import constants, release
    from ansible.cli import playbook

    # The settings are those of this folder's ansible.cfg and of this environment, as if just imported.
    known = constants.config._plugins
    vars(constants.config).update(vars(type(constants.config)()))
    constants.config._plugins = known
    for name in constants.config.get_configuration_definitions():
        constants.set_constant(name, constants.config.get_config_value(name, variables=vars(constants)))

    modules = hashlib.sha256(f"{release.__version__} {sys.version}".encode())
    for path in sorted(Path("roles").glob("*/*/*.py")):
        modules.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    own = Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache")
    _link(Path(kept, modules.hexdigest()), own)
    # atexit runs this before Ansible's own clean-up, because Ansible has already registered that.
    atexit.register(_link, own, Path(kept, modules.hexdigest()))
    gc.disable()  # Tasks are forks that end soon, and looking for garbage would copy the memory of the play.
    sys.exit(playbook.main(sys.argv))


def _link(source: Path, target: Path) -> None:
    """Link the finished files of one folder into another. Files that exist there are kept."""
    target.mkdir(exist_ok=True)
    for path in source.glob("*-ZIP*") if source.is_dir() else ():
        if not path.name.endswith((".lock", "-part")):
            with suppress(FileExistsError):
                os.link(path, target / path.name)


if __name__ == "__main__":
    _load_ansible()
    fork_server.serve(sys.argv[2], partial(_answer, sys.argv[1]))
