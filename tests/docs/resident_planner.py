"""A `planner` for shells that doesn't import everything on each call: a process with all imports forks each call.

The fork runs the program's own `main`, with the caller's folder, environment and streams.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import planner

# Commands import these where they need them, and most pages need them.
LIBRARIES = ("matplotlib.backends.backend_svg", "matplotlib.figure", "pyarrow.parquet", "scipy.optimize")
LONGEST_REQUEST = 1 << 20

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{address}")
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [request + b"\\n"], [0, 1, 2])
    code = b"".join(iter(lambda: server.recv(16), b""))
sys.exit(int(code or 1))
"""


@contextmanager
def resident(folder: Path) -> Iterator[Path]:
    """A folder to put first on PATH. Its `planner` calls the resident process."""
    address, programs = folder / "s", folder / "bin"
    programs.mkdir()
    program = programs / "planner"
    program.write_text(CLIENT.format(python=sys.executable, address=address))
    program.chmod(0o755)
    with subprocess.Popen([sys.executable, __file__, str(address)], stdout=subprocess.PIPE) as process:
        try:
            assert b"ready\n" == process.stdout.readline()
            yield programs
        finally:
            process.terminate()


def _answer_calls(address: str) -> None:
    for module in pkgutil.walk_packages(planner.__path__, "planner."):
        importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        # The kernel reaps ended forks, because nothing waits for them.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            call, _ = server.accept()
            if os.fork() == 0:
                break
            call.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _run(call)


def _run(call: socket.socket) -> None:
    """Run the command in the fork. Its end ends the fork and the call."""
    from planner.cli.main import main

    request, streams, _, _ = socket.recv_fds(call, LONGEST_REQUEST, 3)
    while not request.endswith(b"\n"):
        request += call.recv(LONGEST_REQUEST)
    arguments, folder, environment = json.loads(request)
    for number, (stream, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(stream, number)
        os.close(stream)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["planner", *arguments]
    try:
        main()
    except SystemExit as ended:
        call.sendall(str(int(ended.code or 0)).encode())


if __name__ == "__main__":
    _answer_calls(sys.argv[1])
