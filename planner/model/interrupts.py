"""Ctrl-C, SIGTERM and SIGHUP: the work stops, started processes end, and no output is left half-written.

A signal raises `Interrupted` in the main thread, so that temporary folders are removed. `Interrupted` is neither an
`Exception` nor a `KeyboardInterrupt`, because libraries catch those. If the main thread doesn't react, because a solver
or a library waits, another thread ends the process after a few seconds.

Each process is started in a new session, which a terminal's Ctrl-C doesn't reach, so the planner must end it.
Spark's JVM starts Python workers, which start others. They stay in the JVM's session, even after the JVM is killed.

What else a process needs from its system is here, too: a temporary folder, and how it keeps and returns freed memory.
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

# malloc returns arrays above MAPPED_BYTES to the system when they are freed, and keeps KEPT_BYTES of the others.
MAPPED_BYTES, KEPT_BYTES = 32 << 20, 128 << 20
# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_sessions: set[int] = set()
_folders: set[str] = set()
_ROUNDS, _ROUND_SECONDS = 40, 0.05


def remember_session(session: int) -> None:
    """Remembers a session (the id of its leading process), so that `end_all` ends it."""
    _sessions.add(session)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that is removed at the end of the block, or at the end of the process if that comes first."""
    try:
        # Errors are ignored, because other processes may remove their own files in it meanwhile.
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
            _folders.add(folder)
            yield Path(folder)
    finally:
        # What a process that is still to be ended writes meanwhile is removed after that.
        _folders.intersection_update(each for each in tuple(_folders) if Path(each).exists())


def kill_all() -> bool:
    """Kills every process of the remembered sessions; False if none runs."""
    if not _sessions:
        return False
    pids = [pid for pid in _process_ids() if _is_ours(pid)]
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def end_all() -> None:
    """Repeats `kill_all` until no process is left, at most two seconds, because a worker may be starting another."""
    for _ in range(_ROUNDS):
        if not kill_all():
            break
        # A direct child stays a zombie until its exit code is read.
        for session in _sessions:
            with contextlib.suppress(OSError):
                os.waitpid(session, os.WNOHANG)
        time.sleep(_ROUND_SECONDS)
    _sessions.clear()


def _process_ids() -> Iterator[int]:
    """The ids of all processes; from `ps` on a system without /proc."""
    proc = Path("/proc")
    if (proc / "self").exists():
        yield from (int(name) for name in os.listdir(proc) if name.isdigit())  # noqa: PTH208 - half the time
        return
    listed = subprocess.run(["ps", "-axo", "pid="], capture_output=True, text=True, check=False).stdout
    yield from (int(word) for word in listed.split() if word.isdigit())


def _is_ours(pid: int) -> bool:
    """True for a running process of the remembered sessions. A leader counts even before it has begun its session."""
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
    # Z and X: the process has ended, but nobody has read its exit code yet.
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


# glibc reads these when a process starts. They are for processes that Spark starts: its workers.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(MAPPED_BYTES), "MALLOC_TRIM_THRESHOLD_": str(KEPT_BYTES)}


def keep_freed_memory() -> bool:
    """Keeps freed memory for the next array in this process; False if the C library isn't glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows
        return False
    return bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))


def free_memory() -> None:
    """Returns freed memory to the system, before a library needs much memory."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# A normal exit takes far less; some libraries never return.
_PATIENCE_SECONDS = 2.5
_END = b"\0"


class Interrupted(BaseException):
    """A signal asked the process to end."""


class Watch:
    """The first signal that came in a block, if any."""

    def __init__(self) -> None:
        self.signal = 0
        self.is_delayed = False
        self.over = threading.Event()

    @property
    def exit_code(self) -> int:
        """As shells give it: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return 128 + self.signal

    def handle(self, number: int, _: FrameType | None) -> None:
        """The handler. It raises once; later signals change nothing, because the process is already ending."""
        if not self.signal:
            self.signal = number
            if not self.is_delayed:
                _raise()

    def end(self) -> None:
        """Ends the started processes and this one, without Python's normal exit, which may wait."""
        end_all()
        for folder in tuple(_folders):
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.write(2, f"planner: interrupted ({signal.Signals(self.signal).name}); {_NOTHING_LEFT}\n".encode())
        os._exit(self.exit_code)


_watches: list[Watch] = []
_NOTHING_LEFT = "nothing is left half-written"


def ignore_at_exit() -> None:
    """Ignores signals during Python's exit: all work is done then, and the exit code is known."""
    atexit.register(lambda: [signal.signal(each, signal.SIG_IGN) for each in _SIGNALS])


@contextlib.contextmanager
def delayed_signals() -> Iterator[None]:
    """Delays a signal until the end of the block, for steps that must not be interrupted."""
    watch = _watches[-1] if _watches else None
    if watch is None or watch.is_delayed:
        yield
        return
    before, watch.is_delayed = watch.signal, True
    try:
        yield
    finally:
        watch.is_delayed = False
    if watch.signal and not before:
        _raise()


def raise_delayed() -> None:
    """Raises any signal that came within `delayed_signals`. Call it between two steps, where that is safe."""
    if pending():
        _raise()


def _raise() -> NoReturn:
    """Kills the started processes first, because libraries would wait for their answers during the exit."""
    kill_all()
    raise Interrupted


def pending() -> bool:
    """True once a signal has come. Any failure after that is caused by it."""
    return bool(_watches) and bool(_watches[-1].signal)


@contextlib.contextmanager
def interruptible() -> Iterator[Watch]:
    """Signals raise `Interrupted` in the block, except those that were ignored before (nohup, a shell's background).

    In other threads than the main one nothing changes, because Python delivers signals only to the main thread.
    """
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    handled = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old_wakeup_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {each: signal.signal(each, watch.handle) for each in handled}
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
        signal.set_wakeup_fd(old_wakeup_fd)
        watch.over.set()
        os.write(writer, _END)
        guard.join()
        os.close(writer)
        os.close(reader)


def _guard(reader: int, watch: Watch) -> None:
    """Waits for a signal's number, then gives the process some time to end by itself, and ends it after that."""
    numbers = {bytes([each]): each for each in _SIGNALS}
    while (byte := os.read(reader, 1)) != _END:
        if byte in numbers and not watch.over.wait(_PATIENCE_SECONDS):
            watch.signal = watch.signal or numbers[byte]
            watch.end()


def _quiet(watch: Watch, hook: Any) -> Any:
    """The hook, but silent once a signal has come: errors of threads and destructors are expected then."""
    return lambda *arguments: None if watch.signal else hook(*arguments)
