"""What lies in a folder: each file with its kind, whether it is executable, and its digest. Links aren't followed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planner.errors import SetupError

Kind = Literal["file", "link", "device"]


@dataclass(frozen=True)
class Entry:
    """One thing that is no folder. `sha256` is of a file's bytes, or of where a link leads; of a device there is none.

    `kind` device: a device, a pipe or a socket, which nothing here opens.
    """

    kind: Kind
    executable: bool
    sha256: str | None


def entries(folder: Path) -> dict[str, Entry]:
    """Everything below a folder but the folders themselves, by relative POSIX path; links to folders are links.

    SetupError where something can't be read: what nobody has seen is nothing to approve.
    """
    return dict(sorted(_below(folder, folder)))


def _below(folder: Path, top: Path) -> Iterator[tuple[str, Entry]]:
    try:
        with os.scandir(folder) as found:
            for each in found:
                path = Path(each.path)
                if each.is_dir(follow_symlinks=False):
                    yield from _below(path, top)
                else:
                    yield path.relative_to(top).as_posix(), _entry(path)
    except OSError as error:
        raise SetupError(f"{error.filename or folder}: can't be read: {error.strerror}") from error


def _entry(path: Path) -> Entry:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Entry("link", False, hashlib.sha256(b"link to " + os.fsencode(path.readlink())).hexdigest())
    if not stat.S_ISREG(mode):
        return Entry("device", False, None)
    with path.open("rb") as file:
        return Entry("file", bool(mode & 0o111), hashlib.file_digest(file, "sha256").hexdigest())
