"""Reads files that somebody else wrote. Each kind has a maximum size, and nothing is read that might never end.

Every input is first read here, so that a device, a pipe without a writer, a file of 10 GB or a name that isn't text
gives one clear error. The limits leave room for a cluster of some million replicas.
"""

import errno
import hashlib
import json
import math
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from planner.model.errors import SetupError

_MIB = 2**20


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its name in messages, and the most bytes that are read."""

    name: str
    most_bytes: int


# A YAML with 20,000 partitions in it has 0.8 MB and takes some seconds to read; larger states go into state files.
SPEC = FileKind("a YAML specification", 4 * _MIB)
# A million replicas make 30 MB of kafka-topics --describe, and 100 MB of log dirs' JSON.
STATE_LINES = FileKind("a state file of kafka-topics --describe", 1024 * _MIB)
STATE = FileKind("a state file in any other format", 512 * _MIB)
# A plan that moves a million replicas has some 300 MB.
PLAN = FileKind("a plan.json", 1024 * _MIB)
LOAD = FileKind("a load profile", 1024 * _MIB)
BOUND = FileKind("the bound of a plan", 1024 * _MIB)
GROUPS = FileKind("the output of kafka-consumer-groups", 64 * _MIB)
# SHA256SUMS, a client's properties, the query of Terraform's external data source.
SHORT = FileKind("a file of this kind", 16 * _MIB)

_GZIP = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_PATH = 1_000
_NOT_A_FILE = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class UnreadableError(SetupError):
    """A path has no file, or one that can't be read. The message names the path."""


def unreadable(path: Path, error: OSError | ValueError) -> UnreadableError:
    """The system's error for a path, as UnreadableError. Python raises ValueError for a NUL in a path."""
    name = path.as_posix()
    # Long messages are cut at the end, and the reason comes after the path.
    shown = name if len(name) <= _LONGEST_PATH else f"{name[:_LONGEST_PATH]}…"
    reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
    return UnreadableError(f"{shown!r} can't be read: {reason}; allowed: a readable file")


def require_text_name(path: Path) -> None:
    """Raises UnreadableError if the name isn't UTF-8, because plans name their inputs and are UTF-8."""
    if _SURROGATE.search(str(path)):
        raise UnreadableError(f"{path.as_posix()!r} isn't a name in UTF-8; allowed: rename the file")


def too_large(path: Path, kind: FileKind, size_bytes: int | None = None) -> UnreadableError:
    """The error for a file that exceeds its kind's maximum. `size_bytes` is None for a pipe, whose size is unknown."""
    size = "more" if size_bytes is None else f"{size_bytes:,} bytes"
    limit = f"{kind.most_bytes:,} bytes for {kind.name}"
    return UnreadableError(f"{path.as_posix()!r} has {size}; allowed: at most {limit}")


def read_bytes(path: Path, kind: FileKind, *, piped: bool = False) -> bytes:
    """The content of a regular file, or of a pipe if `piped`.

    UnreadableError if it doesn't exist, is anything else, is too large or is compressed.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not (stat.S_ISREG(status.st_mode) or (piped and stat.S_ISFIFO(status.st_mode))):
            description = _NOT_A_FILE.get(stat.S_IFMT(status.st_mode), "something else")
            raise UnreadableError(
                f"{path.as_posix()!r} isn't a regular file but {description}; allowed: a readable file"
            )
        if status.st_size > kind.most_bytes:
            raise too_large(path, kind, status.st_size)
        with path.open("rb") as handle:
            data = handle.read(kind.most_bytes + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if len(data) > kind.most_bytes:
        raise too_large(path, kind)
    if data.startswith(_GZIP):
        raise UnreadableError(f"{path.as_posix()!r} is compressed with gzip; allowed: the text itself, so unpack it")
    return data


def read_plan_file(path: Path, name: str, description: str) -> tuple[Path, bytes]:
    """The path and bytes of a plan.json or restart.json, given by its path or its folder's path; at most a plan's size.

    UnreadableError if it can't be read; `description` names the expected content in the message.
    """
    try:
        file = path / name if path.is_dir() else path
        return file, read_bytes(file, PLAN)
    except OSError as error:
        raise unreadable(path, error) from None
    except UnreadableError as error:
        raise UnreadableError(f"{path}: can't be read as {description}: {error}") from None


def json_value(data: bytes | str) -> Any:
    """The value of a JSON text. ValueError, in one sentence, if it isn't JSON or can't be written again as UTF-8."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(text, parse_constant=no_number, parse_float=_finite)
        # An escape such as "\ud800" is half a character: no file could hold it.
        if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise ValueError("a text in it has half a character, such as \\ud800")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte 0x{error.object[error.start]:02x} at {error.start:,} isn't UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        long = str(error).startswith("Exceeds the limit")
        raise ValueError("a number has thousands of digits" if long else str(error)) from None
    return value


def _finite(text: str) -> float:
    """The number of a JSON text. ValueError if it is too large: Python reads 1e999 as infinity."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def no_number(name: str) -> NoReturn:
    """Raises ValueError for NaN and infinity: Python's JSON parser accepts them, but JSON doesn't have them."""
    raise ValueError(f"{name} isn't a number in JSON")


PACKAGE = Path(__file__).resolve().parents[1]


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def resource(folder: str, name: str = "") -> Path:
    """The path of a file that is shipped with the planner; without `name`, the path of the folder.

    The wheel's own copy comes first, so that an installed planner never reads an unrelated folder beside it.
    Raises SetupError if the file is in neither place.
    """
    roots = (PACKAGE / "_data", PACKAGE.parent)
    for root in roots:
        path = root / folder / name
        if path.exists():
            return path
    missing = Path(folder, name).as_posix()
    raise SetupError(f"{missing} isn't part of this installation; install the kafka-planner wheel again")
