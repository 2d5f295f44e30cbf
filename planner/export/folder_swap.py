"""Replaces a folder by a new one: exchanges their names if the system can, or else renames both.

The new folder is built in a staging folder beside the old one. A journal in the staging folder records which folder is
new, and the files of the old one. With the journal, `complete_swap` completes a swap that was killed at any moment, and
keeps files that were changed meanwhile; it also ends every swap that wasn't killed.
"""

import contextlib
import ctypes
import errno
import filecmp
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.export.folder_check import is_operators, listed_in
from planner.model import interrupts
from planner.model.file_reading import digest

Say = Callable[[str], None]


NEW, OLD, DONE, JOURNAL = "new", "old", "done", "journal.json"

# Size, time of the last change in nanoseconds, inode: writing a file changes at least one of them.
Signature = tuple[int, int, int]


@dataclass(frozen=True)
class Journal:
    """The inode of the new folder, and the signatures of the old folder's files when it was read."""

    new_inode: int
    signatures: Mapping[str, Signature]


def signatures(folder: Path) -> dict[str, Signature]:
    """The signature of everything below a folder except folders, by relative path; empty if there is no folder."""
    by_path: dict[str, Signature] = {}
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for path in (Path(root, name) for name in (*files, *links)):
            by_path[path.relative_to(folder).as_posix()] = _signature(path)
    return by_path


def _signature(path: Path) -> Signature:
    stat = path.lstat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def replace(
    target: Path, files: Mapping[str, bytes], own: Iterable[str], old_signatures: Mapping[str, Signature], say: Say
) -> None:
    """Make `target` hold `files` and the operator's `own` files; `old_signatures`: its files when it was read."""
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        new, old = staging / NEW, staging / OLD
        new.mkdir()
        for path, content in files.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(content)
            interrupts.raise_delayed()
        for path in own:
            _carry(target / path, new / path)
        (staging / JOURNAL).write_text(json.dumps({"new": new.stat().st_ino, "seen": old_signatures}), encoding="utf-8")
        if not target.exists():
            new.rename(target)
        elif not exchange(new, target):
            target.rename(old)
            new.rename(target)
    finally:
        complete_swap(staging, target, say)


def _carry(source: Path, goal: Path) -> None:
    """Link the file into the new folder, so that a concurrent write reaches both folders; copy it if links fail."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    goal.unlink(missing_ok=True)
    try:
        os.link(source, goal, follow_symlinks=False)
    # OSError: a file system without hard links; NotImplementedError: a system that can't link a symbolic link itself.
    except (OSError, NotImplementedError):
        shutil.copy2(source, goal, follow_symlinks=False)


# The errors of systems and file systems that can't exchange names.
_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV})


def exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step, so that neither is ever missing; False if the system can't."""
    library = ctypes.CDLL(None, use_errno=True)
    first_name, second_name = os.fsencode(first), os.fsencode(second)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        at_cwd, exchange_names = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        failed = library.renameat2(at_cwd, first_name, at_cwd, second_name, exchange_names)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(first_name, second_name, 2)  # RENAME_SWAP
    else:
        return False
    if failed and ctypes.get_errno() not in _CANNOT:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(second))
    return not failed


def abandoned_staging_folders(target: Path) -> Iterator[Path]:
    """The staging folders of runs that were killed; only the holder of the lock may call this."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}")
    for path in sorted(target.parent.iterdir()):
        inside = {NEW, OLD, DONE, JOURNAL}
        if name.fullmatch(path.name) and path.is_dir() and {each.name for each in path.iterdir()} <= inside:
            yield path


def complete_swap(staging: Path, target: Path, say: Say, *, killed: bool = False) -> None:
    """Complete a swap, wherever it was interrupted; `say` gets a line for each unusual event.

    If there is no folder at `target`, the old one is put back. Operator's files that changed in the old folder during
    the swap are carried over; if it is unclear which version counts, the old folder is kept in the staging folder.
    """
    reason = f"{target}: an earlier run was killed while it wrote here"
    journal, old = _journal(staging), staging / OLD
    if not old.exists():
        # After an exchange of names, the old folder is at the new folder's name.
        old = staging / NEW
        if journal is None or not old.exists() or old.stat().st_ino == journal.new_inode:
            _remove(staging)
            if killed:
                say(f"{reason}; the folder is unchanged, and what that run left was removed")
            return
    if not target.exists():
        old.rename(target)
        _remove(staging)
        if killed:
            say(f"{reason}; the folder from before was put back")
        return
    # The folder at `target` may not be the one that this run wrote, for example if version control restored another.
    old_signatures = journal.signatures if journal is not None and target.stat().st_ino == journal.new_inode else {}
    if undecided := list(_take_over(old, target, old_signatures, say)):
        names = ", ".join(repr(path) for path in undecided[:3])
        say(f"{target}: {names} changed while the folder was replaced: the folder from before is kept as {old}")
        return
    old.rename(staging / DONE)
    _remove(staging)
    if killed:
        say(f"{reason}; the folder is the one that it wrote, and what else it left was removed")


def _remove(staging: Path) -> None:
    """Remove a folder of the planner's. An old plan's folder may have read-only ones in it."""
    for path, _, _ in os.walk(staging):
        with contextlib.suppress(OSError):
            Path(path).chmod(0o700)
    shutil.rmtree(staging, ignore_errors=True)


def _journal(staging: Path) -> Journal | None:
    try:
        document: Any = json.loads((staging / JOURNAL).read_text(encoding="utf-8"))
        return Journal(document["new"], {path: tuple(each) for path, each in document["seen"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _take_over(old: Path, target: Path, old_signatures: Mapping[str, Signature], say: Say) -> Iterator[str]:
    """Carries over the operator's files that changed after they were seen; yields the paths for which it is unclear."""
    listed_digests = listed_in(old)
    for path, signature in signatures(old).items():
        if signature == old_signatures.get(path) or (path in listed_digests and not is_operators(path, added=False)):
            continue
        old_file, new_file = old / path, target / path
        if _same(old_file, new_file):
            continue
        if is_operators(path, added=path not in listed_digests) and _untouched(path, target, old_signatures):
            _carry(old_file, new_file)
            say(f"{target}: {path!r} changed while the folder was replaced: the change was kept")
        else:
            yield path


def _same(first: Path, second: Path) -> bool:
    """True for files with the same bytes, and for links with the same target."""
    if first.is_symlink() or second.is_symlink():
        return first.is_symlink() and second.is_symlink() and first.readlink() == second.readlink()
    return second.is_file() and first.is_file() and filecmp.cmp(first, second, shallow=False)


def _untouched(path: str, target: Path, old_signatures: Mapping[str, Signature]) -> bool:
    """True if a file of the new folder is absent, or as the swap put it there: written by the plan, or carried over."""
    file = target / path
    if not os.path.lexists(file):
        return True
    if file.is_file() and not file.is_symlink() and digest(file.read_bytes()) == listed_in(target).get(path):
        return True
    return path in old_signatures and _signature(file)[:2] == old_signatures[path][:2]
