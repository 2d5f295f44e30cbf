"""Writes a plan's files as one folder, all or nothing: readers find either the old folder or the new one.

The operator's own files in an earlier plan's folder (an inventory, Terraform's state) are kept. Writers of one folder
take turns by a lock on a file beside it. The system releases the lock when its holder dies; the next writer cleans up
after a writer that was killed. Single files that commands write, such as a page, are replaced by the same rules.
"""

import errno
import json
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from planner.export import folder_check, folder_swap
from planner.export.folder_swap import Say
from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.generated_text import is_as_written

FORMATS = ("1", "2")

# This file belongs to the plan, because it says where the roles are. `write` refuses to replace an edited one.
_SETTINGS = "ansible/ansible.cfg"

# The names at the top of a plan's folder; files with other names aren't the planner's.
OWN_NAMES = frozenset(
    {
        "plan.json",
        "restart.json",
        "bound.json",
        "report.md",
        "report.html",
        "plots",
        "reassignment.json",
        "rollback.json",
        "preferred-replica.json",
        "topics-to-move.json",
        "new-partitions.json",
        "SHA256SUMS",
        "candidates.parquet",
        "batches",
        "ansible",
        "terraform",
    }
)


# A folder with one of these files may be replaced: a plan's only by a plan's, a restart's only by a restart's.
PLAN, RESTART = "plan.json", "restart.json"
# Writing the largest plans takes seconds, so a longer wait isn't for another write.
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.02
# The errors of file systems without locks.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})


def check(folder: Path, kind: str = PLAN) -> None:
    """SetupError if `write` would refuse `folder`; call it before hours of work."""
    with _refusal(folder):
        _require_no_template(folder.resolve(), folder)
        _require_replaceable(folder.resolve(), folder, (kind,))
        _operators_own(folder.resolve(), folder)
        existing = next(each for each in folder.resolve().parents if each.exists())
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"no permission to write to {existing}")


def say_nothing(_: str) -> None:
    """Says nothing."""


def write(folder: Path, files: Mapping[str, bytes], say: Say = say_nothing) -> tuple[str, ...]:
    """Make `folder` hold `files` (relative POSIX path → bytes) and the operator's own; replaces an earlier plan.

    Returns the files' paths. `say` gets a line if it waits for another writer, or if an earlier writer was killed.
    SetupError, with nothing changed, if `folder` is a file, holds files that aren't an earlier plan's or the
    operator's, or can't be written; ValueError for a path that would leave the folder.
    """
    for path in files:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise ValueError(f"not a path inside the output folder: {path!r}")
    with interrupts.delayed_signals(), _refusal(folder):
        target = folder.resolve()
        _require_no_template(target, folder)
        _require_replaceable(target, folder, files)
        target.parent.mkdir(parents=True, exist_ok=True)
        with folder_lock(target, say) as has_lock:
            # Without locks, a staging folder may be that of a killed run or of a running one.
            for staging in folder_swap.abandoned_staging_folders(target) if has_lock else ():
                folder_swap.complete_swap(staging, target, say, killed=True)
            _require_replaceable(target, folder, files)
            old_signatures = folder_swap.signatures(target)
            folder_swap.replace(target, files, _operators_own(target, folder), old_signatures, say)
    return tuple(str(folder / name) for name in sorted(files))


@contextmanager
def folder_lock(target: Path, say: Say) -> Iterator[bool]:
    """Hold the lock of a folder, whose parent must exist; yields False if the file system has no locks.

    `say` gets a line if another writer holds the lock. SetupError if that lasts longer than any write.
    """
    file = target.parent / f".{target.name}.lock"
    descriptor = _locked(file, target, say)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # The file is removed while it is locked: a waiting writer finds that it is gone, and creates a new one.
            file.unlink(missing_ok=True)
            os.close(descriptor)


def _locked(file: Path, target: Path, say: Say) -> int | None:
    """Waits for the lock and returns the lock file's descriptor; None if the file system has no locks."""
    until, has_said = time.monotonic() + _PATIENCE_SECONDS, False
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except PermissionError as error:
            if not file.exists():
                raise
            reason = "another user's planner writes there, or was killed; once none does, remove that file"
            raise SetupError(f"{target}: {file} can't be opened: {error.strerror}: {reason}") from None
        is_locked = _try(descriptor)
        if is_locked and _is_still(file, descriptor):
            return descriptor
        os.close(descriptor)
        if is_locked is None:
            file.unlink(missing_ok=True)
            return None
        if is_locked is False and not has_said:
            say(f"{target}: another planner writes it; waiting up to {_PATIENCE_SECONDS:.0f} s")
            has_said = True
        interrupts.raise_delayed()
        if time.monotonic() > until:
            raise SetupError(f"{target}: another process still holds {file}; nothing was changed")
        time.sleep(_PAUSE_SECONDS)


def _try(descriptor: int) -> bool | None:
    """True if the lock is ours now, False if another process has it, None if there are no locks."""
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
    """False if the previous holder removed the file: then our lock is on a file that no other writer can open."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def _refusal(folder: Path) -> Iterator[None]:
    """Turns the system's errors, and pathlib's RuntimeError for a loop of links, into SetupErrors."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"{folder}: can't be written: {reason}; nothing was changed") from error


def _require_no_template(target: Path, folder: Path) -> None:
    """SetupError for a template's braces in the path, because Ansible before 2.19 renders the path of its playbooks."""
    if (opening := next((mark for mark in ("{{", "{%", "{#") if mark in str(target)), None)) is not None:
        raise SetupError(
            f"{folder}: Ansible would run {opening!r} in the folder's path ({target}); name a folder without it"
        )


def _require_replaceable(target: Path, folder: Path, files: Collection[str]) -> None:
    """SetupError if `target` must not be replaced by a folder with `files`; `folder` is its name in the message."""
    if Path.cwd().is_relative_to(target):
        raise SetupError(f"{folder}: is or holds the current folder, and can't be replaced; leave it, or name another")
    require_outside_plans(target, str(folder))
    if target.is_mount():
        raise SetupError(f"{folder}: is a mount point, which can't be replaced; name a folder inside it")
    if not target.exists():
        return
    if not target.is_dir():
        raise SetupError(f"{folder}: is a file; the output goes into a folder, new, empty, or an earlier plan's")
    names = {entry.name for entry in target.iterdir()}
    kind = "restart" if RESTART in files else "plan"
    if names and not _is_ours(target / f"{kind}.json", f"{kind}_id"):
        raise SetupError(
            f"{folder}: isn't empty and holds no {kind} that planner wrote; name a new folder, or an earlier {kind}'s"
        )
    if strange := sorted(names - OWN_NAMES - {PurePosixPath(path).parts[0] for path in files}):
        raise SetupError(f"{folder}: holds {strange[0]!r}, which isn't part of a plan and would be lost; move it away")


def _operators_own(target: Path, folder: Path) -> tuple[str, ...]:
    """The operator's own files in an earlier plan's folder; SetupError for other files that would be lost."""
    if not target.is_dir():
        return ()
    difference, listed_digests = folder_check.compare_with_list(target), folder_check.listed_in(target)
    if extra := [each.path for each in difference.differences if each.path not in listed_digests]:
        raise SetupError(f"{folder}: holds {extra[0]!r}, which isn't part of the plan and would be lost; move it away")
    if any(each.path == _SETTINGS and each.sha256 is not None for each in difference.differences):
        raise SetupError(
            f"{folder}: {_SETTINGS!r} was edited, and the edits would be lost; keep settings of your own in another "
            "file, name it to Ansible (ANSIBLE_CONFIG), and remove this one"
        )
    return tuple(each.path for each in difference.own if each.what != folder_check.MISSING)


def _is_ours(path: Path, key: str) -> bool:
    """True if `path` is a plan of this format or the previous one, or a restart: its folder may be replaced."""
    try:
        # A pipe would be waited for without end.
        document = json.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValueError):
        return False
    version = document.get("format_version") if isinstance(document, dict) else None
    return isinstance(version, str) and version.split(".")[0] in FORMATS and key in document


def require_unread(option: str, out: Path, inputs: Iterable[str | Path]) -> None:
    """SetupError if writing `out` would change one of the `inputs`, which are files or folders."""
    goal = Path(os.path.realpath(out))
    for each in inputs:
        source = Path(os.path.realpath(each))
        if goal == source or (source.is_dir() and source in goal.parents):
            raise SetupError(f"{option} {out}: {each} is read, and would be changed; allowed: a file elsewhere")


def require_two_files(first_option: str, first: Path | None, second_option: str, second: Path | None) -> None:
    """SetupError if two outputs are the same file, which would only have the second one."""
    if first and second and os.path.realpath(first) == os.path.realpath(second):
        raise SetupError(f"{second_option} {second}: is the file of {first_option}, too; allowed: another file")


def require_own(option: str, out: Path, description: str, is_own: Callable[[Path], bool]) -> None:
    """SetupError if `out` exists, isn't empty, and isn't an earlier output, although it may have the same format.

    `description` names the output in the message.
    """
    goal = Path(os.path.realpath(out))
    if goal.is_file() and goal.stat().st_size and not is_own(goal):
        raise SetupError(
            f"{option} {out}: is there already, and isn't {description}; allowed: a new file, or {description}"
        )


def is_page(file: Path) -> bool:
    """True if a file begins as the pages do that commands write."""
    beginning = b"<!DOCTYPE html>"
    with file.open("rb") as page:
        return page.read(len(beginning)) == beginning


def require_outside_plans(goal: Path, name: str) -> None:
    """SetupError for a path in a plan's or restart's folder: Ansible may load it, and `planner check` refuses it."""
    for folder in goal.parents:
        if {PLAN, RESTART} & folder_check.listed_in(folder).keys():
            raise SetupError(f"{name}: is in {folder}, which holds a plan or restart; allowed: a path outside of it")


def require_beside(out: Path, spec: Path) -> None:
    """SetupError if a spec would be written to another folder than that of the spec it is made from."""
    if out.resolve().parent != spec.resolve().parent:
        allowed = f"allowed: {spec.parent / out.name}"
        raise SetupError(f"--output {out}: isn't beside {spec}, whose paths are relative; {allowed}")


def require_unchanged(out: Path, command: str, title: str) -> None:
    """SetupError if `out` isn't what the command wrote under this title, because somebody may have edited it."""
    require_outside_plans(out.resolve(), str(out))
    if out.exists() and not (out.is_file() and is_as_written(out.read_bytes(), title)):
        raise SetupError(
            f"{out}: isn't what {command} wrote; allowed: a new file, or what it wrote and nobody has changed since"
        )


def require_writable(option: str, out: Path) -> None:
    """SetupError if a file can't be written; call it before the minutes of work that produce the file."""
    goal = Path(os.path.realpath(out))
    folder, replaced = goal.parent, goal.is_file() or not goal.exists()
    require_outside_plans(goal, f"{option} {out}")
    if goal.is_dir():
        raise SetupError(f"{option} {out}: is a folder; allowed: a file")
    if not folder.is_dir():
        raise SetupError(f"{option} {out}: {folder} isn't a folder; allowed: a file in a folder that exists")
    if replaced and not os.access(folder, os.W_OK | os.X_OK):
        raise SetupError(f"{option} {out}: {folder} can't be written to; allowed: a file in a folder that can")


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file's content in one step; a link stays, and its target is written. OSError if the system refuses.

    A pipe or a terminal is written to directly.
    """
    goal = Path(os.path.realpath(path))
    try:
        if goal.exists() and not goal.is_file():
            goal.write_bytes(content)
            return
        with interrupts.delayed_signals():
            handle, staged = tempfile.mkstemp(prefix=f".{goal.name}.", dir=goal.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                if goal.exists():
                    mode = goal.stat().st_mode & 0o7777
                else:
                    mask = os.umask(0)
                    os.umask(mask)
                    mode = 0o666 & ~mask
                Path(staged).chmod(mode)
                Path(staged).replace(goal)
            except BaseException:
                Path(staged).unlink(missing_ok=True)
                raise
    except OSError as error:
        # The error names `path`: users don't know the temporary file's name, and a full disk's error has none.
        raise OSError(error.errno, error.strerror, str(path)) from None
