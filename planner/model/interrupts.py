"""Ctrl-C, SIGTERM and SIGHUP: the work stops, the processes that were started end, and no output is left half-written.

A signal raises `Interrupted` in the main thread, so that temporary folders go on the way out. It is no `Exception`, and
no `KeyboardInterrupt` either: libraries have answers of their own to those. Where the main thread doesn't hear of it,
inside a solver or a library that waits, another thread ends the process after a few seconds.

Processes are started in sessions of their own, which a terminal's Ctrl-C doesn't reach: whoever started one ends it.
Spark's JVM starts Python workers, which start others; when the JVM is killed, their session is still the same.
"""

import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

# Larger arrays are given back when they are freed; of the others, so much is kept.
MAPPED_BYTES, KEPT_BYTES = 32 << 20, 128 << 20
# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_sessions: set[int] = set()
_folders: set[str] = set()
_ROUNDS, _ROUND_SECONDS = 40, 0.05


def own(session: int) -> None:
    """Remember a session (the id of the process that leads it), to be ended by `end_all`."""
    _sessions.add(session)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that goes at the end of the block, and at the end of the process where that comes before it."""
    # Other processes may still remove what is their own.
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        _folders.add(folder)
        try:
            yield Path(folder)
        finally:
            _folders.discard(folder)


def kill_all() -> bool:
    """Kill every process of the sessions that were started here; False where none runs."""
    if not _sessions:
        return False
    left = [pid for pid in _all() if _is_ours(pid)]
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return bool(left)


def end_all() -> None:
    """As `kill_all`, again until none is left, for at most two seconds: a worker may just be starting another one."""
    for _ in range(_ROUNDS):
        if not kill_all():
            break
        # Those that were started directly are gone once their exit codes are taken.
        for session in _sessions:
            with contextlib.suppress(OSError):
                os.waitpid(session, os.WNOHANG)
        time.sleep(_ROUND_SECONDS)
    _sessions.clear()


def _all() -> Iterator[int]:
    """The ids of all processes; of a system without /proc, as `ps` lists them."""
    proc = Path("/proc")
    if (proc / "self").exists():
        yield from (int(name) for name in os.listdir(proc) if name.isdigit())  # noqa: PTH208 - half the time
        return
    listed = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=False).stdout
    yield from (int(word) for word in listed.split() if word.isdigit())


def _is_ours(pid: int) -> bool:
    """True for a process of the sessions that still runs; the leader of one may not have begun it yet."""
    try:
        session = os.getsid(pid)
    except OSError:
        return False
    if not _sessions & {session, pid}:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    # Z and X: it has ended, and nobody has taken its exit code yet.
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


# What glibc reads when a process starts, for processes that others start for us: Spark's workers.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(MAPPED_BYTES), "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES)}


def keep_freed() -> bool:
    """Keep freed memory for the next array in this process; False where the C library isn't glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return False
    return bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))


def give_back() -> None:
    """Give back to the system what is freed and was kept, before a library needs much memory of its own."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


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
        end_all()
        for folder in tuple(_folders):
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.write(2, f"planner: interrupted ({signal.Signals(self.signal).name}); {_LEFT}\n".encode())
        os._exit(self.exit_code)


_watches: list[Watch] = []
_LEFT = "nothing is left half-written"


def ignore_at_exit() -> None:
    """Let signals come to nothing while Python takes its modules down: all is done then, and the exit code is known."""
    atexit.register(lambda: [signal.signal(each, signal.SIG_IGN) for each in _SIGNALS])


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
    kill_all()
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
