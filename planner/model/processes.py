"""Processes that are started in a session of their own, so that all of them can be ended, whoever started them there.

A terminal's Ctrl-C doesn't reach such a session: whoever started it ends it. Spark's JVM starts Python workers, which
start others; when the JVM is killed they belong to nobody, but their session is still the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

# Larger arrays are given back when they are freed; of the others, so much is kept.
MAPPED_BYTES, KEPT_BYTES = 32 << 20, 128 << 20
# From glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_sessions: set[int] = set()
_ROUNDS, _ROUND_SECONDS = 40, 0.05


def own(session: int) -> None:
    """Remember a session (the id of the process that leads it), to be ended by `end_all`."""
    _sessions.add(session)


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
