"""A file is written completely or not at all. Links and modes stay, and a failed write changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.export.output_folder import is_page, replace_file, require_own
from planner.model.errors import SetupError


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    """Writing to a link writes its target, which keeps its mode. A new file gets the process's usual mode."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    replace_file(tmp_path / "link", b"new")
    assert ((tmp_path / "link").is_symlink(), b"new", 0o640) == (
        True,
        (tmp_path / "file").read_bytes(),
        (tmp_path / "file").stat().st_mode & 0o777,
    )
    (tmp_path / "usual").touch()
    replace_file(tmp_path / "made", b"new")
    assert (tmp_path / "usual").stat().st_mode == (tmp_path / "made").stat().st_mode


def test_what_is_no_file_takes_the_content_as_it_comes(tmp_path: Path) -> None:
    """The content goes directly into a pipe, and the pipe stays a pipe."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    replace_file(tmp_path / "pipe", b"all of it")
    assert b"all of it" == os.read(reader, 100)
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_takes_no_file_is_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    """The error names the given file, and not the temporary one beside it."""
    with pytest.raises(FileNotFoundError) as caught:
        replace_file(tmp_path / "gone" / "file", b"new")
    assert str(tmp_path / "gone" / "file") == caught.value.filename


def test_where_writing_fails_all_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing fails, the old file is unchanged and no temporary file is left."""
    (tmp_path / "file").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "file", b"new")
    assert {"file": b"old"} == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["file", "full"])
def test_a_full_disk_is_told_by_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The system's error has no name when a disk is full. Without a name, the planner would blame stdout."""
    (tmp_path / "full").symlink_to("/dev/full")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        replace_file(tmp_path / name, b"new")
    assert str(tmp_path / name) == caught.value.filename


def test_only_an_earlier_output_is_replaced(tmp_path):
    """A new or an empty file may be written, another one only if it is an earlier output."""
    out = tmp_path / "out"
    require_own("--out", out, "mine", lambda _: False)
    out.touch()
    require_own("--out", out, "mine", lambda _: False)
    out.write_text("mine")
    require_own("--out", out, "mine", lambda file: file.read_text() == "mine")
    with pytest.raises(SetupError, match=r"--out .*out: is there already, and isn't mine; allowed: a new file, or mi"):
        require_own("--out", out, "mine", lambda _: False)


@pytest.mark.parametrize(
    ("there", "expected"), [(b"<!DOCTYPE html><p>", True), (b"<!DOCTYPE", False), (b"version: 1", False)]
)
def test_a_page_is_known_by_its_beginning(tmp_path, there, expected):
    """So a file that isn't a page isn't replaced by one, whatever its name."""
    (tmp_path / "out").write_bytes(there)
    assert expected == is_page(tmp_path / "out")
