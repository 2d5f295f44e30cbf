"""State files: opened, and read in the format that their content tells.

Files are read, never written, and only regular ones, so `..` in a path can't do harm. A long output of
`kafka-topics --describe` goes through line by line; everything else is JSON, or short, and is read as a whole.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from planner.inputs.importers import (
    brokers_and_configs,
    cruise_control,
    log_dirs_describe,
    reassign_partitions,
    terraform_show,
    topics_describe,
    znodes,
)
from planner.inputs.importers.state_parts import StatePart
from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.errors import Finding, ImportStateError, Place, SetupError
from planner.model.file_reading import UnreadableError
from planner.model.recorded import InputRow

Expected = Literal["state", "assignment", "sizes"]

# So much of a text tells its format; what a terminal or a logger printed may stand above.
_HEAD_CHARACTERS = 65_536
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# A longer line is no line of Kafka's tools: a topic's configuration has a few dozen keys.
_LONGEST_LINE_BYTES = 2**24
# What version control, editors and file managers leave behind. Any other name that begins with a dot may be a topic's.
_NOT_STATE = frozenset({".git", ".gitattributes", ".gitignore", ".gitkeep", ".hg", ".keep", ".svn", ".DS_Store"})
# A cluster's capture has a few files, one of znodes two a topic and one a partition.
_MOST_FILES = 1_000_000


_ASSIGNMENT = (
    "the output of kafka-topics --describe or kafka-reassign-partitions (--generate, --execute), a reassignment JSON, "
    "a znode, a replica assignment such as 0:1,1:0, Cruise Control's kafka_cluster_state"
)
_ALLOWED: dict[Expected, str] = {
    "assignment": _ASSIGNMENT,
    "sizes": f"the output of {log_dirs_describe.TITLE}",
    "state": f"{_ASSIGNMENT} or proposals, the output of {log_dirs_describe.TITLE}, {brokers_and_configs.TITLE}, "
    "kafka-broker-api-versions or kafka-reassign-partitions --list, a topics-to-move JSON, terraform show -json",
}


@dataclass(frozen=True)
class StateFile:
    """A file that was read: what it says, and its digest under the path as written."""

    part: StatePart
    input: InputRow


def files_in(path: Path) -> tuple[Path, ...]:
    """The file itself, or for a folder every file in it, sorted by path, but what version control leaves behind.

    UnreadableError where there is nothing, and where any part of a folder can't be read: half a state is a wrong one.
    Links to folders are refused, as nobody knows whether what they lead to is meant, or read already.
    """
    file_reading.require_text_name(path)
    try:
        if not path.is_dir():
            return (path,)
        found = tuple(sorted(_walked(path)))
    except (OSError, ValueError) as error:  # a name that is too long, for example
        raise file_reading.unreadable(path, error) from None
    if not found:
        raise UnreadableError(f"{path.as_posix()!r} is an empty folder; allowed: a file, or a folder with files")
    return found


def _walked(folder: Path) -> Iterator[Path]:
    """Every file under a folder, in no order."""
    count = 0
    for inside, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if name not in _NOT_STATE]
        for name in folders:
            if (linked := Path(inside, name)).is_symlink():
                message = f"{linked.as_posix()!r} is a link to a folder; allowed: folders and files themselves"
                raise UnreadableError(message)
        for name in names:
            if name not in _NOT_STATE:
                count += 1
                file_reading.require_text_name(Path(inside, name))
                yield Path(inside, name)
        if count > _MOST_FILES:
            raise UnreadableError(f"{folder.as_posix()!r} has more than {_MOST_FILES:,} files; allowed: fewer")


def _refuse(error: OSError) -> None:
    raise file_reading.unreadable(Path(error.filename), error)


def read_file(
    path: Path, written: str, topic: str | None = None, *, expected: Expected = "state", piped: bool = False
) -> StateFile:
    """What a file says. `written` names it in the plan and in notes; `topic` is for formats that don't name theirs.

    UnreadableError where there is no such file; ImportStateError for what is wrong in it. Pipes are read where `piped`.
    """
    digest = hashlib.sha256()
    file_reading.require_text_name(path)
    try:
        with file_reading.open_file(path, file_reading.STATE_LINES, piped=piped) as handle:
            part = _require(_read(handle, digest, path, topic, expected), expected)
    except OSError as error:
        raise file_reading.unreadable(path, error) from None
    return StateFile(replace(part, file=written), InputRow(written, digest.hexdigest()))


def read_all(
    files: Iterable[Path], written: Callable[[Path, Path], str], topic: str | None = None, *, piped: bool = False
) -> list[tuple[Path, StateFile]]:
    """Every file, and of a folder all in it, with its path; `written` names a path, of what was given, for the plan.

    ImportStateError with every fault of every file; SetupError where there is no such file.
    """
    read: list[tuple[Path, StateFile]] = []
    findings: list[Finding] = []
    try:
        for given, path in ((each, path) for each in files for path in files_in(each)):
            try:
                # A pipe named by itself, such as <(ssh …), is read; one in a folder may wait for ever.
                read.append((path, read_file(path, written(given, path), topic, piped=piped and path == given)))
            except ImportStateError as error:
                findings += error.findings
    except UnreadableError as error:
        raise SetupError(str(error)) from None
    if findings:
        raise ImportStateError(findings)
    return read


def read_text(path: Path, written: str) -> tuple[str, InputRow]:
    """A file's text, and its digest under the path as written; UnreadableError and ImportStateError as `read_file`."""
    file_reading.require_text_name(path)
    data = file_reading.read_bytes(path, file_reading.GROUPS)
    _refuse_utf_16(data, path.as_posix())
    return decode(data, path.as_posix()), InputRow(written, hashlib.sha256(data).hexdigest())


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _read(handle: BinaryIO, digest: _Digest, path: Path, topic: str | None, expected: Expected) -> StatePart:
    file, most = path.as_posix(), file_reading.STATE.most_bytes
    head = handle.read(4 * _HEAD_CHARACTERS)
    file_reading.refuse_compressed(head, path)
    _refuse_utf_16(head, file)
    if _is_read_by_line(head.removeprefix(_BOM).decode("utf-8", errors="replace")):
        return topics_describe.read_part(_lines(head, handle, digest, path), file)
    data = head + handle.read(most + 1 - len(head))
    if len(data) > most:
        raise file_reading.too_large(path, file_reading.STATE)
    digest.update(data)
    return read_part(decode(data, file), file, topic, expected)


def _refuse_utf_16(head: bytes, file: str) -> None:
    if head.startswith(_UTF_16):
        message = "the file is in UTF-16, as Windows' PowerShell writes it; allowed: text in UTF-8"
        raise ImportStateError([Finding(Place(file, 1, 1), "", message)])


def _lines(head: bytes, handle: BinaryIO, digest: _Digest, path: Path) -> Iterator[str]:
    """The lines, without their ends; the last one that `head` has is completed from the rest of the file."""
    *whole, begun = head.removeprefix(_BOM).split(b"\n")
    digest.update(head)
    for number, raw in enumerate(chain(whole, _raw_lines(begun, handle, digest, path)), start=1):
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode("utf-8")) + 1
            message = f"byte 0x{raw[error.start]:02x} isn't UTF-8; allowed: text in UTF-8"
            raise ImportStateError([Finding(Place(path.as_posix(), number, column), "", message)]) from None


def _raw_lines(begun: bytes, handle: BinaryIO, digest: _Digest, path: Path) -> Iterator[bytes]:
    """The rest of the file, of which `begun` is the first line's beginning; UnreadableError for too large a file."""
    left = file_reading.STATE_LINES.most_bytes
    while more := handle.readline(_LONGEST_LINE_BYTES):
        left -= len(more)
        if left < 0:
            raise file_reading.too_large(path, file_reading.STATE_LINES)
        digest.update(more)
        begun += more
        if not begun.endswith(b"\n") and len(more) < _LONGEST_LINE_BYTES:
            continue
        yield begun.removesuffix(b"\n")
        begun = b""
    if begun:
        yield begun


def _is_read_by_line(head: str) -> bool:
    """True where a text that begins so is read line by line, by `topics_describe`."""
    return topics_describe.recognises(head) and not head.lstrip().startswith("{")


def read_part(text: str, file: str, topic: str | None = None, expected: Expected = "state") -> StatePart:
    """What a text of any known format says; `topic` for formats that don't name theirs.

    ImportStateError where the format isn't known, or not one of those expected, with all that are; and for each fault.
    """
    if _is_read_by_line(text[:_HEAD_CHARACTERS]):
        return _require(topics_describe.read_part(text.split("\n"), file), expected)
    for recognises, read in _READERS:
        if recognises(text):
            return _require(read(text, file, topic), expected)
    begin = text.strip().split("\n")[0][:60]
    raise _unknown(file, expected, f"begins with {begin!r}" if begin else "is empty")


def _require(part: StatePart, expected: Expected) -> StatePart:
    """The part, where it says what is expected of it: an assignment, sizes, or anything. Else ImportStateError."""
    if (expected == "assignment" and not part.entries) or (expected == "sizes" and part.sizes is None):
        has = "an assignment" if part.entries else "sizes" if part.sizes is not None else "neither"
        raise _unknown(part.file, expected, f"has {has}")
    return part


def _unknown(file: str, expected: Expected, what: str) -> ImportStateError:
    message = f"no {expected} in a known format: the file {what}; allowed: {_ALLOWED[expected]}"
    return ImportStateError([Finding(Place(file, 1, 1), "", message)])


_Reader = Callable[[str, str, str | None], StatePart]


def _unnamed(read: Callable[[str, str], StatePart]) -> _Reader:
    """A reader of a format that names its topics itself."""
    return lambda text, file, _: read(text, file)


# The order matters where a format's mark may be inside another one: the most specific marks come first.
_READERS: tuple[tuple[Callable[[str], bool], _Reader], ...] = (
    (terraform_show.recognises, _unnamed(terraform_show.read_part)),
    (cruise_control.recognises, _unnamed(cruise_control.read_part)),
    (log_dirs_describe.recognises, _unnamed(log_dirs_describe.read_part)),
    (reassign_partitions.is_list, _unnamed(reassign_partitions.read_list)),
    (brokers_and_configs.recognises_configs, _unnamed(brokers_and_configs.read_configs)),
    (brokers_and_configs.recognises_brokers, _unnamed(brokers_and_configs.read_brokers)),
    (reassign_partitions.is_topics_to_move, _unnamed(reassign_partitions.read_topics_to_move)),
    (znodes.recognises, znodes.read_part),
    (reassign_partitions.is_reassignment, _unnamed(reassign_partitions.read_reassignment)),
    (reassign_partitions.is_replica_assignment, reassign_partitions.read_replica_assignment),
)
