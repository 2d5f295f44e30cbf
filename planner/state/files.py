"""Opens the files of a cluster's state: the only module that does. What stands in them is read by `planner.importers`.

Files are read, never written, and only regular ones, so `..` in a path can't do harm. A long output of
`kafka-topics --describe` goes through line by line; everything else is JSON, or short, and is read as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from planner.errors import Finding, ImportStateError, Place, PlannerError
from planner.importers import HEAD_CHARACTERS, Expected, is_read_by_line, read_lines, read_part, require
from planner.importers.parts import StatePart
from planner.model import InputFile
from planner.yaml_source import decode

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# A longer line is no line of Kafka's tools: a topic's configuration has a few dozen keys.
_LONGEST_LINE_BYTES = 2**24


class UnreadableError(PlannerError):
    """There is no file to read under a path; the text names the path."""


@dataclass(frozen=True)
class StateFile:
    """A file that was read: what it says, and its digest under the path as written."""

    part: StatePart
    input: InputFile


def files_in(path: Path) -> tuple[Path, ...]:
    """The file itself, or for a folder every file in it, sorted by path; names that begin with a dot are passed over.

    Links to folders aren't followed. UnreadableError where there is nothing.
    """
    try:
        if not path.is_dir():
            return (path,)
    except OSError as error:  # a name that is too long, for example
        raise _unreadable(path, error) from None
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in names if not name.startswith(".")]
    if not found:
        raise UnreadableError(f"{path.as_posix()!r} is an empty folder; allowed: a file, or a folder with files")
    return tuple(sorted(found))


def read_file(
    path: Path, written: str, topic: str | None = None, *, expected: Expected = "state", piped: bool = False
) -> StateFile:
    """What a file says. `written` names it in the plan and in notes; `topic` is for formats that don't name theirs.

    UnreadableError where there is no such file; ImportStateError for what is wrong in it. Pipes are read where `piped`.
    """
    digest = hashlib.sha256()
    try:
        _require_file(path, piped)
        with path.open("rb") as handle:
            part = require(_read(handle, digest, path.as_posix(), topic, expected), expected)
    except OSError as error:
        raise _unreadable(path, error) from None
    return StateFile(replace(part, file=written), InputFile(written, digest.hexdigest()))


def read_text(path: Path, written: str) -> tuple[str, InputFile]:
    """A file's text, and its digest under the path as written; UnreadableError and ImportStateError as `read_file`."""
    try:
        _require_file(path, piped=False)
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    _refuse_utf_16(data, path.as_posix())
    return decode(data, path.as_posix()), InputFile(written, hashlib.sha256(data).hexdigest())


def _unreadable(path: Path, error: OSError) -> UnreadableError:
    return UnreadableError(f"{path.as_posix()!r} can't be read: {error.strerror}; allowed: a readable file")


def _require_file(path: Path, piped: bool) -> None:
    """A device would never end, and a pipe may wait for ever."""
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not (stat.S_ISREG(kind) or (piped and stat.S_ISFIFO(kind))):
        raise UnreadableError(f"{path.as_posix()!r} isn't a regular file; allowed: a readable file")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _read(handle: BinaryIO, digest: _Digest, file: str, topic: str | None, expected: Expected) -> StatePart:
    head = handle.read(4 * HEAD_CHARACTERS)
    _refuse_utf_16(head, file)
    if is_read_by_line(head.removeprefix(_BOM).decode("utf-8", errors="replace")):
        return read_lines(_lines(head, handle, digest, file), file)
    data = head + handle.read()
    digest.update(data)
    return read_part(decode(data, file), file, topic, expected)


def _refuse_utf_16(head: bytes, file: str) -> None:
    if head.startswith(_UTF_16):
        message = "the file is in UTF-16, as Windows' PowerShell writes it; allowed: text in UTF-8"
        raise ImportStateError([Finding(Place(file, 1, 1), "", message)])


def _lines(head: bytes, handle: BinaryIO, digest: _Digest, file: str) -> Iterator[str]:
    """The lines, without their ends; the last one that `head` has is completed from the rest of the file."""
    first = head.removeprefix(_BOM)
    *whole, begun = first.split(b"\n")
    digest.update(head)
    for number, raw in enumerate(whole, start=1):
        yield _decoded(raw, number, file)
    number = len(whole) + 1
    for raw in _raw_lines(begun, handle, digest):
        yield _decoded(raw, number, file)
        number += 1


def _raw_lines(begun: bytes, handle: BinaryIO, digest: _Digest) -> Iterator[bytes]:
    while more := handle.readline(_LONGEST_LINE_BYTES):
        digest.update(more)
        begun += more
        if not begun.endswith(b"\n") and len(more) < _LONGEST_LINE_BYTES:
            continue
        yield begun.removesuffix(b"\n")
        begun = b""
    if begun:
        yield begun


def _decoded(raw: bytes, number: int, file: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8")) + 1
        message = f"byte 0x{raw[error.start]:02x} isn't UTF-8; allowed: text in UTF-8"
        raise ImportStateError([Finding(Place(file, number, column), "", message)]) from None
