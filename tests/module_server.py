"""Runs Ansible's modules in forks of one process that has imported their library; each import takes 0.2 s of CPU.

`interpreter` is a stand-in for `python` in a play. It passes its streams, folder and environment to the server. A fork
of the server runs the module from standard input, as Python does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
if sys.argv[1:]:
    os.execv("{python}", ["{python}", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{address}")
    socket.send_fds(server, [json.dumps([os.getcwd(), dict(os.environ)]).encode() + b"\\n"], [0, 1, 2])
    sys.exit(int(server.recv(16) or b"1"))
"""


def interpreter(python: Path) -> str:
    """The path of a stand-in for a Python that has Ansible. Its server ends with this process."""
    return str(_client(python)[1])


@cache
def _client(python: Path) -> tuple[tempfile.TemporaryDirectory[str], Path, subprocess.Popen[bytes]]:
    """The stand-in, its folder and its server, which are kept until this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="modules-")
    address = Path(folder.name, "server")
    client = Path(folder.name, "python")
    client.write_text(CLIENT.format(python=python, address=address))
    client.chmod(0o755)
    server = subprocess.Popen([python, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return folder, client, server


class _PathWithPayload(list[str]):
    """The folders of a package's modules, including the zip that a play sends, which has the role's own module."""

    def __init__(self, paths: Iterable[str], folder: str) -> None:
        super().__init__(paths)
        self.folder = folder

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from (f"{path}/{self.folder}" for path in sys.path if path.endswith(".zip"))


def _serve(address: str) -> None:
    """Answer requests until the parent process has ended."""
    import ansible
    import ansible.module_utils.basic  # each fork inherits it
    import ansible.modules

    ansible.__path__ = _PathWithPayload(ansible.__path__, "ansible")
    ansible.module_utils.__path__ = _PathWithPayload(ansible.module_utils.__path__, "ansible/module_utils")
    ansible.modules.__path__ = _PathWithPayload(ansible.modules.__path__, "ansible/modules")

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork():
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
        os.killpg(0, signal.SIGTERM)
    while True:
        caller, _ = listener.accept()
        if not os.fork():
            listener.close()
            _run(caller)
        caller.close()


def _run(caller: socket.socket) -> None:
    """Run one module in this fork and send its exit code to the caller."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(caller, 1 << 20, 3)
    while not request.endswith(b"\n"):
        request += caller.recv(1 << 20)
    folder, environment = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [""]
    code = 0
    try:
        exec(
            compile(sys.stdin.buffer.read(), "<stdin>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__}
        )
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    os.setsid()
    _serve(sys.argv[1])
