"""Reading files of others: only regular files up to a size, and only JSON that can be written again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from folders import ROOT

from planner.model import file_reading
from planner.model.file_reading import FileKind, UnreadableError, json_value, read_bytes

KIND = FileKind("a test's file", 10)


def test_a_file_up_to_its_limit_is_read(tmp_path: Path) -> None:
    """A file of the maximum size is read; one more byte is refused."""
    (tmp_path / "f").write_bytes(b"0123456789")
    assert b"0123456789" == read_bytes(tmp_path / "f", KIND)
    (tmp_path / "f").write_bytes(b"0123456789a")
    with pytest.raises(UnreadableError, match="has 11 bytes; allowed: at most 10 bytes for a test's file"):
        read_bytes(tmp_path / "f", KIND)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_refused(path: str) -> None:
    """Devices are refused, because /dev/zero never ends."""
    with pytest.raises(UnreadableError, match=f"'{path}' isn't a regular file but a device"):
        read_bytes(Path(path), KIND)


def test_a_pipe_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    """A pipe is refused, because it might never end; with `piped` it is read up to the limit."""
    os.mkfifo(tmp_path / "p")
    with pytest.raises(UnreadableError, match="isn't a regular file but a pipe"):
        read_bytes(tmp_path / "p", KIND)
    reader, writer = os.pipe()
    os.write(writer, b"x" * 11)
    os.close(writer)
    with pytest.raises(UnreadableError, match="has more; allowed: at most 10 bytes"):
        read_bytes(Path(f"/dev/fd/{reader}"), KIND, piped=True)
    os.close(reader)


def test_what_is_not_there_has_the_systems_reason(tmp_path: Path) -> None:
    """A missing file, a folder and an impossible path are refused with the system's reason."""
    for path, reason in ((tmp_path / "x", "No such file"), (tmp_path, "Is a directory"), (Path("a\0b"), "null byte")):
        with pytest.raises(UnreadableError, match=reason):
            read_bytes(path, KIND)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[" * 200_000, "it is nested too deeply"),
        (b'{"a":' * 200_000, "it is nested too deeply"),
        (rb'{"a": "\ud800"}', "a text in it has half a character"),
        (rb'{"\udfff": 1}', "a text in it has half a character"),
        (b'{"a": NaN}', "NaN isn't a number in JSON"),
        (b'{"a": -Infinity}', "-Infinity isn't a number in JSON"),
        (b"9" * 5000, "a number has thousands of digits"),
        (b'{"a"\n 1}', "line 2, column 2: Expecting ':' delimiter"),
        (b'"\xff"', "byte 0xff at 1 isn't UTF-8"),
        (b"", "line 1, column 1: Expecting value"),
    ],
)
def test_what_is_no_json_is_said_in_a_sentence(text: bytes, reason: str) -> None:
    """Invalid or hostile JSON is refused with one sentence."""
    with pytest.raises(ValueError) as caught:
        json_value(text)
    assert str(caught.value).startswith(reason)


def test_json_is_read() -> None:
    """A pair of surrogates is read as one character."""
    assert {"a": "\U0001f600"} == json_value(rb'{"a": "\ud83d\ude00"}')


def test_every_limit_is_said_in_the_docs() -> None:
    """The limit of each kind of file is in docs/import.md."""
    page = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    kinds = [value for value in vars(file_reading).values() if isinstance(value, FileKind)]
    assert kinds
    assert [] == [kind.name for kind in kinds if f"{kind.most_bytes // 2**20:,} MiB" not in page]
