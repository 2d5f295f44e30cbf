"""SHA256SUMS: the digest of every file of a plan's folder, in the format of `sha256sum --check`.

It ties the files that were reviewed to those that are carried out, for whoever has no planner at hand as well.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import StalePlanError

FILE = "SHA256SUMS"
# Where operators put what is theirs: inventories and their variables, and what Terraform keeps beside the variables.
_OPERATORS_OWN = ("ansible/inventory/", "ansible/group_vars/", "ansible/host_vars/", "ansible/ansible.cfg")
_OPERATORS_TOO = ("terraform/",)
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True)
class Found:
    """How a folder differs from its digests, as relative paths, sorted; `own` are the operator's, changed or added."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def as_made(self) -> bool:
        """True where nothing but the operator's own differs."""
        return not (self.changed or self.missing or self.extra)

    def sentences(self) -> tuple[str, ...]:
        """What isn't as it was made, a line a file."""
        kinds = (
            ("isn't the file that was made", self.changed),
            ("is missing", self.missing),
            ("isn't part of the plan", self.extra),
        )
        return tuple(f"{path} {what}" for what, paths in kinds for path in paths)


def sums(files: Mapping[str, bytes]) -> bytes:
    """The file, a line for each of the others, by path."""
    return "".join(f"{digest(files[path])}  {path}\n" for path in sorted(files)).encode()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """The digests of the files in a folder, by relative path; of links to folders, or to nothing, their goals'."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix(): digest(_content(path)) for path in files}


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else os.fsencode(path.readlink())


def listed(text: str, shown: str) -> dict[str, str]:
    """Path to digest; StalePlanError for a line that is no such pair."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise StalePlanError(f"{shown}:{number}: {line[:60]!r} isn't a digest and a path; allowed: as it was made")
        found[match[2]] = match[1]
    return found


def compare(made: Mapping[str, str], now: Mapping[str, str]) -> Found:
    """The digests of a folder's files now, by path, held against those that were made."""
    changed = _sorted(path for path in made if path in now and made[path] != now[path])
    extra = _sorted(path for path in now if path not in made and path != FILE)
    own = [path for path in changed if _is_in(path, _OPERATORS_OWN)]
    own += [path for path in extra if _is_in(path, _OPERATORS_OWN + _OPERATORS_TOO)]
    missing = _sorted(path for path in made if path not in now and not _is_in(path, _OPERATORS_OWN))
    others = set(own)
    return Found(
        changed=tuple(path for path in changed if path not in others),
        missing=missing,
        extra=tuple(path for path in extra if path not in others),
        own=_sorted(own),
    )


def _is_in(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path lies in one of these places, or is one."""
    return f"{path}/".startswith(places)


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths))
