"""Writers of one folder take turns: a lock on a file beside it, which the system gives up when its holder dies."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.model import interrupts
from planner.model.errors import SetupError

Say = Callable[[str], None]

# Writing takes seconds for the largest plans; who waits longer waits for something else.
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.02
# What file systems without locks answer.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})


@contextmanager
def turn(target: Path, say: Say) -> Iterator[bool]:
    """Hold the lock of a folder, whose parent exists; False where the file system has no locks.

    `say` gets a line where another writer holds it. SetupError where that takes longer than any writing does.
    """
    file = target.parent / f".{target.name}.lock"
    descriptor = _locked(file, target, say)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # While it is held: who waits for this file finds that it is gone, and takes a new one.
            file.unlink(missing_ok=True)
            os.close(descriptor)


def _locked(file: Path, target: Path, say: Say) -> int | None:
    """The descriptor of the lock file, locked; None without locks."""
    until, told = time.monotonic() + _PATIENCE_SECONDS, False
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        taken = _try(descriptor)
        if taken and _is_still(file, descriptor):
            return descriptor
        os.close(descriptor)
        if taken is None:
            file.unlink(missing_ok=True)
            return None
        if taken is False and not told:
            say(f"{target}: another planner writes it; waiting up to {_PATIENCE_SECONDS:.0f} s")
            told = True
        interrupts.let_in()
        if time.monotonic() > until:
            raise SetupError(f"{target}: another process still holds {file}; nothing was changed")
        time.sleep(_PAUSE_SECONDS)


def _try(descriptor: int) -> bool | None:
    """True where the lock is ours now, False where another has it, None where there are no locks."""
    try:
        import fcntl  # not on every system

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return None
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        os.close(descriptor)
        raise
    return True


def _is_still(file: Path, descriptor: int) -> bool:
    """False where the holder before us took the file away: our lock is on a file that nobody else will find."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
