"""State files: opened, and read in the format that their content tells.

Files are read, never written, and only regular ones, so `..` in a path can't do harm.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

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
from planner.model.errors import Finding, ImportStateError, Place, SetupError, SpecError
from planner.model.file_reading import UnreadableError
from planner.model.recorded import InputRow

Expected = Literal["state", "assignment", "sizes"]

# So much of a text tells its format; what a terminal or a logger printed may stand above.
_HEAD_CHARACTERS = 262_144
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
    data, text = _read(path, file_reading.STATE_LINES, piped=piped)
    if len(data) > file_reading.STATE.most_bytes and not _is_described(text):
        raise file_reading.too_large(path, file_reading.STATE)
    part = read_part(text, path.as_posix(), topic, expected)
    return StateFile(replace(part, file=written), InputRow(written, hashlib.sha256(data).hexdigest()))


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
    data, text = _read(path, file_reading.GROUPS)
    return text, InputRow(written, hashlib.sha256(data).hexdigest())


def _read(path: Path, kind: file_reading.FileKind, *, piped: bool = False) -> tuple[bytes, str]:
    file_reading.require_text_name(path)
    data = file_reading.read_bytes(path, kind, piped=piped)
    try:
        return data, decode(data, path.as_posix())
    except SpecError as error:
        raise ImportStateError(error.findings) from None


def _is_described(text: str) -> bool:
    head = text[:_HEAD_CHARACTERS]
    return topics_describe.recognizes(head) and not head.lstrip().startswith("{")


def read_part(text: str, file: str, topic: str | None = None, expected: Expected = "state") -> StatePart:
    """What a text of any known format says; `topic` for formats that don't name theirs.

    ImportStateError where the format isn't known, or not one of those expected, with all that are; and for each fault.
    """
    for recognizes, read in _READERS:
        if recognizes(text):
            part = read(text, file, topic)
            if (expected == "assignment" and not part.entries) or (expected == "sizes" and part.sizes is None):
                has = "an assignment" if part.entries else "sizes" if part.sizes is not None else "neither"
                raise _unknown(file, expected, f"has {has}")
            return part
    begin = text.strip().split("\n")[0][:60]
    raise _unknown(file, expected, f"begins with {begin!r}" if begin else "is empty")


def _unknown(file: str, expected: Expected, what: str) -> ImportStateError:
    message = f"no {expected} in a known format: the file {what}; allowed: {_ALLOWED[expected]}"
    return ImportStateError([Finding(Place(file, 1, 1), "", message)])


_Reader = Callable[[str, str, str | None], StatePart]


def _unnamed(read: Callable[[str, str], StatePart]) -> _Reader:
    """A reader of a format that names its topics itself."""
    return lambda text, file, _: read(text, file)


# The order matters where a format's mark may be inside another one: the most specific marks come first.
_READERS: tuple[tuple[Callable[[str], bool], _Reader], ...] = (
    (_is_described, _unnamed(topics_describe.read_part)),
    (terraform_show.recognizes, _unnamed(terraform_show.read_part)),
    (cruise_control.recognizes, _unnamed(cruise_control.read_part)),
    (log_dirs_describe.recognizes, _unnamed(log_dirs_describe.read_part)),
    (reassign_partitions.is_list, _unnamed(reassign_partitions.read_list)),
    (brokers_and_configs.recognizes_configs, _unnamed(brokers_and_configs.read_configs)),
    (brokers_and_configs.recognizes_brokers, _unnamed(brokers_and_configs.read_brokers)),
    (reassign_partitions.is_topics_to_move, _unnamed(reassign_partitions.read_topics_to_move)),
    (znodes.recognizes, znodes.read_part),
    (reassign_partitions.is_reassignment, _unnamed(reassign_partitions.read_reassignment)),
    (reassign_partitions.is_replica_assignment, reassign_partitions.read_replica_assignment),
)
