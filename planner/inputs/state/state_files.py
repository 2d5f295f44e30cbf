"""Opens state files and reads them in the format of their content.

Files are only read, never written, and must be regular files, so `..` in a path is harmless.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
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
from planner.model.document_fields import InputRow
from planner.model.errors import Finding, ImportStateError, Place, SpecError
from planner.model.file_reading import UnreadableError

Expected = Literal["state", "assignment", "sizes"]

# The beginning of a text that shows its format; output of a terminal or a logger may come first.
_HEAD_CHARACTERS = 262_144
# Files of version control, editors and file managers, and digests of the others. Any other name that begins with a dot
# may be a topic's.
_NOT_STATE = frozenset(
    {".git", ".gitattributes", ".gitignore", ".gitkeep", ".hg", ".keep", ".svn", ".DS_Store", "SHA256SUMS"}
)
# A capture has a few files; a capture of znodes has two per topic and one per partition.
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


def files_in(path: Path) -> tuple[Path, ...]:
    """The file itself, or every file in a folder, sorted by path, without files of version control.

    UnreadableError if there is no file, or if any part of a folder can't be read, because half a state is a wrong one.
    Links to folders are refused, because their files may not be meant, or may be read twice.
    """
    file_reading.require_text_name(path)
    try:
        if not path.is_dir():
            return (path,)
        files = tuple(sorted(_walked(path)))
    except (OSError, ValueError) as error:  # a name that is too long, for example
        raise file_reading.unreadable(path, error) from None
    if not files:
        raise UnreadableError(f"{path.as_posix()!r} is an empty folder; allowed: a file, or a folder with files")
    return files


def _walked(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise file_reading.unreadable(Path(error.filename), error)

    count = 0
    for inside, folders, names in os.walk(folder, onerror=refuse):
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


def read_file(
    path: Path, name: str, topic: str | None = None, *, expected: Expected = "state", piped: bool = False
) -> StatePart:
    """A file's state. `name` is for the plan and for notes; `topic` is for formats that don't name their topic.

    UnreadableError if there is no such file; ImportStateError for errors in it. A pipe is read only if `piped`.
    """
    data, text = _read(path, file_reading.STATE_LINES, piped=piped)
    if len(data) > file_reading.STATE.most_bytes and not _is_described(text):
        raise file_reading.too_large(path, file_reading.STATE)
    part = read_part(text, path.as_posix(), topic, expected)
    return replace(part, file=name, sha256=file_reading.digest(data))


def read_all(
    files: Iterable[Path], name_of: Callable[[Path, Path], str], topic: str | None = None, *, piped: bool = False
) -> list[StatePart]:
    """Every file, or all files of a folder; `name_of(argument, path)` names a file in the plan.

    ImportStateError with every error of every file; UnreadableError if there is no such file.
    """
    parts: list[StatePart] = []
    findings: list[Finding] = []
    for argument, path in ((each, path) for each in files for path in files_in(each)):
        try:
            # A pipe that is given itself, like <(ssh …), is read; one in a folder may never end.
            parts.append(read_file(path, name_of(argument, path), topic, piped=piped and path == argument))
        except ImportStateError as error:
            findings += error.findings
    if findings:
        raise ImportStateError(findings)
    return parts


def read_text(path: Path, name: str) -> tuple[str, InputRow]:
    """A file's text, and its digest with the path as written; UnreadableError and ImportStateError like `read_file`."""
    data, text = _read(path, file_reading.GROUPS)
    return text, InputRow(name, file_reading.digest(data))


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
    """The state in a text of any known format; `topic` is for formats that don't name their topic.

    ImportStateError for each error in the text, or with all expected formats if it is in none of them.
    """
    for recognizes, read in _READERS:
        if recognizes(text):
            part = read(text, file, topic)
            if (expected == "assignment" and not part.entries) or (expected == "sizes" and part.sizes is None):
                content = "an assignment" if part.entries else "sizes" if part.sizes is not None else "neither"
                raise _format_error(file, expected, f"has {content}")
            return part
    begin = text.strip().split("\n")[0][:60]
    raise _format_error(file, expected, f"begins with {begin!r}" if begin else "is empty")


def _format_error(file: str, expected: Expected, problem: str) -> ImportStateError:
    message = f"no {expected} in a known format: the file {problem}; allowed: {_ALLOWED[expected]}"
    return ImportStateError([Finding(Place(file, 1, 1), "", message)])


_Reader = Callable[[str, str, str | None], StatePart]


def _unnamed(read: Callable[[str, str], StatePart]) -> _Reader:
    """Makes a reader for a format that names its topics."""
    return lambda text, file, _: read(text, file)


# The most specific formats come first, because a text may match several.
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
