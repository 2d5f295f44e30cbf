"""Answers callers in forks of one process that has imported what they need, because imports take most of their time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def start(python: Path, script: str, folder: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a script of the tests that calls `serve`, in a session of its own. It ends with this process.

    The script finds its neighbors whatever Python's own variables are here: `PYTHONSAFEPATH` would hide them.
    """
    own = {"HOME": folder, "ANSIBLE_HOME": folder, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    own["PYTHONPATH"] = str(Path(script).parent)
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [python, script, *arguments], cwd=folder, env=own, stdin=pipe, stdout=pipe, start_new_session=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return server


def serve(address: str, answer: Callable[[socket.socket], object]) -> None:
    """Give each caller of a local socket to `answer`, in a fork. Ends with the process that holds standard input open.

    It must lead a session of its own. It prints `ready` once callers may connect.
    """
    here = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]  # Plays and modules must not find those of the tests.
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
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(caller)
            os._exit(0)
        caller.close()
