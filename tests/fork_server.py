"""Answers callers in forks of one process that has imported what they need, because imports take most of their time."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable


def serve(address: str, answer: Callable[[socket.socket], object]) -> None:
    """Give each caller of a local socket to `answer`, in a fork. Ends with the process that holds standard input open.

    It must lead a session of its own. It prints `ready` once callers may connect.
    """
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
