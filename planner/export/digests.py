"""SHA256SUMS: the digest of every file of a plan's folder, in the format of `sha256sum --check`.

It ties the files that were reviewed to those that are carried out, for whoever has no planner at hand as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.export.folder_check import entries, is_operators
from planner.model.errors import StalePlanError

FILE = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True)
class DigestCheck:
    """How a folder differs from its digests, as relative paths, sorted; `own` are the operator's, changed or added."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def sums(files: Mapping[str, bytes]) -> bytes:
    """The file, a line for each of the others, by path."""
    return sums_of({path: digest(content) for path, content in files.items()})


def sums_of(digests: Mapping[str, str]) -> bytes:
    """The file from digests by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests)).encode()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """The digests of the files in a folder, by relative path; a link's is that of where it leads."""
    return {path: entry.sha256 or "" for path, entry in entries(folder).items()}


def listed(text: str, shown: str) -> dict[str, str]:
    """Path to digest; StalePlanError for a line that is no such pair."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise StalePlanError(f"{shown}:{number}: {line[:60]!r} isn't a digest and a path; allowed: as it was made")
        found[match[2]] = match[1]
    return found


def compare(made: Mapping[str, str], now: Mapping[str, str]) -> DigestCheck:
    """The digests of a folder's files now, by path, held against those that were made."""
    changed = {path for path in made if path in now and made[path] != now[path]}
    extra = {path for path in now if path not in made and path != FILE}
    own = {path for path in changed if is_operators(path, added=False)}
    own |= {path for path in extra if is_operators(path, added=True)}
    missing = (path for path in made if path not in now and not is_operators(path, added=False))
    return DigestCheck(_sorted(changed - own), _sorted(missing), _sorted(extra - own), _sorted(own))


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths))
