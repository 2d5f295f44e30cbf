"""Puts a new folder in an old one's place: by an exchange of their names where the system can, else by two renames.

The new folder is built in a staging folder beside the old one. A journal in it says which folder is the new one, and
what lay in the old one: enough to tell, after a kill at any moment, what was done and what was changed meanwhile.
`settle` brings every such state to an end; it also ends each swap that isn't killed. Writers of one folder take turns:
a lock on a file beside it, which the system gives up when its holder dies.
"""

from __future__ import annotations

import ctypes
import errno
import filecmp
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.export.folder_check import digest, is_operators, listed_in
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


NEW, OLD, DONE, JOURNAL = "new", "old", "done", "journal.json"

# Size, time of the last change in nanoseconds, inode: a file that was written since differs in one of them.
Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Journal:
    """The inode of the new folder, and what lay in the old one when it was read."""

    new: int
    seen: Mapping[str, Signature]


def signatures(folder: Path) -> dict[str, Signature]:
    """Everything below a folder but folders, by relative path; nothing of a folder that isn't there."""
    found: dict[str, Signature] = {}
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for path in (Path(root, name) for name in (*files, *links)):
            found[path.relative_to(folder).as_posix()] = _signature(path)
    return found


def _signature(path: Path) -> Signature:
    stat = path.lstat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def replace(
    target: Path, files: Mapping[str, bytes], own: Iterable[str], seen: Mapping[str, Signature], say: Say
) -> None:
    """Make `target` hold `files`, and what is the operator's `own` in it, of which all were `seen` when it was read."""
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        new, old = staging / NEW, staging / OLD
        new.mkdir()
        for path, content in files.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(content)
            interrupts.let_in()
        for path in own:
            _carry(target / path, new / path)
        journal = {"new": new.stat().st_ino, "seen": seen}
        (staging / JOURNAL).write_text(json.dumps(journal), encoding="utf-8")
        if not target.exists():
            new.rename(target)
        elif not exchange(new, target):
            target.rename(old)
            new.rename(target)
    finally:
        settle(staging, target, say)


def _carry(source: Path, goal: Path) -> None:
    """The same file under both names, so that whoever writes to it meanwhile writes to both; else a copy."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    goal.unlink(missing_ok=True)
    try:
        os.link(source, goal, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(source, goal, follow_symlinks=False)


# What systems and file systems that can't exchange names answer.
_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV})


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step: nobody finds either missing. False where the system can't."""
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        here, exchange_names = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        failed = library.renameat2(here, first, here, second, exchange_names)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(first, second, 2)  # RENAME_SWAP
    else:
        return False
    if failed and ctypes.get_errno() not in _CANNOT:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not failed


def left_behind(target: Path) -> Iterator[Path]:
    """The staging folders of runs that were killed; to be asked by the holder of the lock alone."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}")
    for path in sorted(target.parent.iterdir()):
        inside = {NEW, OLD, DONE, JOURNAL}
        if name.fullmatch(path.name) and path.is_dir() and {each.name for each in path.iterdir()} <= inside:
            yield path


def settle(staging: Path, target: Path, say: Say, *, killed: bool = False) -> None:
    """Bring a swap to its end, wherever it was interrupted; `say` gets a line for what isn't the usual course.

    The old folder is put back where there is none in its place. What somebody changed in it while it was replaced is
    taken over; where that can't be decided the old folder stays in the staging folder.
    """
    why = f"{target}: an earlier run was killed while it wrote here"
    journal, old = _journal(staging), _old(staging)
    if old is None:
        shutil.rmtree(staging, ignore_errors=True)
        if killed:
            say(f"{why}; the folder is as it was, what the run left was removed")
        return
    if not target.exists():
        old.rename(target)
        shutil.rmtree(staging, ignore_errors=True)
        if killed:
            say(f"{why}; the folder from before was put back")
        return
    # The folder there may be another one than this run wrote, such as one that came out of version control since.
    seen = journal.seen if journal is not None and target.stat().st_ino == journal.new else {}
    undecided = list(_take_over(old, target, seen, say))
    if undecided:
        shown = ", ".join(repr(path) for path in undecided[:3])
        say(f"{target}: {shown} changed while the folder was replaced: the folder from before is kept as {old}")
        return
    old.rename(staging / DONE)
    shutil.rmtree(staging, ignore_errors=True)
    if killed:
        say(f"{why}; the folder is the one that it wrote, what the run left was removed")


def _journal(staging: Path) -> Journal | None:
    try:
        found: Any = json.loads((staging / JOURNAL).read_text(encoding="utf-8"))
        return Journal(found["new"], {path: tuple(each) for path, each in found["seen"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _old(staging: Path) -> Path | None:
    """The folder from before; it is still called the new one where the exchange was the last that was done."""
    if (staging / OLD).exists():
        return staging / OLD
    journal, new = _journal(staging), staging / NEW
    return new if journal is not None and new.exists() and new.stat().st_ino != journal.new else None


def _take_over(old: Path, target: Path, seen: Mapping[str, Signature], say: Say) -> Iterator[str]:
    """Carry over what is the operator's and changed after it was seen; the paths where nobody can say what counts."""
    made = listed_in(old)
    for path, signature in signatures(old).items():
        if signature == seen.get(path) or (path in made and not is_operators(path, added=False)):
            continue
        here, there = old / path, target / path
        if _same(here, there):
            continue
        if is_operators(path, added=path not in made) and _untouched(path, target, seen):
            _carry(here, there)
            say(f"{target}: {path!r} changed while the folder was replaced: the change was taken over")
        else:
            yield path


def _same(one: Path, other: Path) -> bool:
    """True for the same bytes, or links that lead to the same place."""
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and one.is_file() and filecmp.cmp(one, other, shallow=False)


def _untouched(path: str, target: Path, seen: Mapping[str, Signature]) -> bool:
    """True where a file of the new folder is as it was put there: made with the plan, carried over, or not there."""
    file = target / path
    if not os.path.lexists(file):
        return True
    if file.is_file() and not file.is_symlink() and digest(file.read_bytes()) == listed_in(target).get(path):
        return True
    return path in seen and _signature(file)[:2] == seen[path][:2]
