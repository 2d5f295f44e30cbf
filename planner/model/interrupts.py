"""Ctrl-C, SIGTERM and SIGHUP: whatever runs is given up, what was started is ended, and nothing is left half-written.

A signal raises `Interrupted` in the main thread, so that temporary folders go on the way out. It is no `Exception`, and
no `KeyboardInterrupt` either: libraries have answers of their own to those. Where the main thread doesn't hear of it,
inside a solver or a library that waits, another thread ends the process after a few seconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from planner.model import processes

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
# Ways out take far less; some libraries' never end.
_PATIENCE_SECONDS = 2.5
_END = b"\0"


class Interrupted(BaseException):
    """A signal asked the process to end."""


class Watch:
    """The signals of a block: which one came first, if any."""

    def __init__(self) -> None:
        self.signal = 0
        self.held = False
        self.over = threading.Event()

    @property
    def exit_code(self) -> int:
        """As shells give it: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + self.signal

    def handle(self, number: int, _: FrameType | None) -> None:
        """The handler: raises once; later signals change nothing, as the way out has begun."""
        if not self.signal:
            self.signal = number
            if not self.held:
                _raise()

    def end(self) -> None:
        """End what was started and the process itself, without the way out of Python's modules, which may wait."""
        processes.end_all()
        with contextlib.suppress(OSError):
            os.write(2, f"planner: interrupted ({signal.Signals(self.signal).name}); {_LEFT}\n".encode())
        os._exit(self.exit_code)


_watches: list[Watch] = []
_LEFT = "nothing is left half-written"


@contextlib.contextmanager
def held() -> Iterator[None]:
    """A signal that comes within the block is raised at its end: for steps that must not be cut in two."""
    watch = _watches[-1] if _watches else None
    if watch is None or watch.held:
        yield
        return
    before, watch.held = watch.signal, True
    try:
        yield
    finally:
        watch.held = False
    if watch.signal and not before:
        _raise()


def let_in() -> None:
    """Raise a signal that came within `held` already here: between two of its steps, where it may end."""
    if pending():
        _raise()


def _raise() -> NoReturn:
    """What was started goes first: libraries wait for its answers on the way out."""
    processes.kill_all()
    raise Interrupted


def pending() -> bool:
    """True once a signal has come: whatever fails from then on fails for that."""
    return bool(_watches) and bool(_watches[-1].signal)


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Signals raise `Interrupted` in the block, except those that were ignored before (nohup, a shell's background).

    In another thread than the main one nothing changes: only the main one hears of signals.
    """
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    asked = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {each: signal.signal(each, watch.handle) for each in asked}
    guard = threading.Thread(target=_guard, args=(reader, watch), name="planner-signals", daemon=True)
    guard.start()
    _watches.append(watch)
    hooks = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = _quiet(watch, hooks[0]), _quiet(watch, hooks[1])
    try:
        yield watch
    finally:
        _watches.remove(watch)
        sys.unraisablehook, threading.excepthook = hooks
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(woken)
        watch.over.set()
        os.write(writer, _END)
        guard.join()
        os.close(writer)
        os.close(reader)


def _guard(reader: int, watch: Watch) -> None:
    """Waits for a signal's number, and then for the process to end by itself, but not for ever."""
    numbers = {bytes([each]): each for each in _SIGNALS}
    while (byte := os.read(reader, 1)) != _END:
        if byte in numbers and not watch.over.wait(_PATIENCE_SECONDS):
            watch.signal = watch.signal or numbers[byte]
            watch.end()


def _quiet(watch: Watch, hook: Any) -> Any:
    """What threads and destructors complain of once the process is on its way out isn't told."""
    return lambda *about: None if watch.signal else hook(*about)
