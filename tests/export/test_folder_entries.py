"""What lies in a folder: kinds, the executable bit, digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from planner.export.folder_check import FolderEntry, entries
from planner.model.errors import SetupError


def test_files_links_and_pipes_are_told_apart(tmp_path: Path) -> None:
    """Links aren't followed, pipes not opened; names may be any bytes."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x")
    (tmp_path / "a" / "run").write_bytes(b"x")
    (tmp_path / "a" / "run").chmod(0o755)
    (tmp_path / "a" / "link").symlink_to("b")
    (tmp_path / "a" / "nowhere").symlink_to("none")
    os.mkfifo(tmp_path / "pipe")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff.txt")).write_bytes(b"x")
    found = entries(tmp_path)
    x = hashlib.sha256(b"x").hexdigest()

    assert ["a/b/file", "a/link", "a/nowhere", "a/run", os.fsdecode(b"d\xff.txt"), "pipe"] == sorted(found)
    assert (FolderEntry("file", False, x), FolderEntry("file", True, x)) == (found["a/b/file"], found["a/run"])
    assert ("link", "link", FolderEntry("device", False, None)) == (
        found["a/link"].kind, found["a/nowhere"].kind, found["pipe"]
    )  # fmt: skip
    assert found["a/link"].sha256 != found["a/nowhere"].sha256


def test_what_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its path and the reason."""
    (tmp_path / "a").write_bytes(b"x")

    def refused(self: Path, *_: object) -> object:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SetupError, match=r"/a: can't be read: Permission denied"):
        entries(tmp_path)
