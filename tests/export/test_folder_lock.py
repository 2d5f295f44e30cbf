"""Writers of one folder take turns."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from planner.export import folder_lock
from planner.export.folder_lock import turn
from planner.model.errors import SetupError


def nothing(line: str) -> None:
    """Who need not wait hears nothing."""
    raise AssertionError(line)


def test_the_lock_is_gone_afterwards(tmp_path: Path) -> None:
    """While it is held there is a file beside the folder."""
    with turn(tmp_path / "out", nothing) as alone:
        assert alone
        assert [".out.lock"] == [path.name for path in tmp_path.iterdir()]
    assert [] == list(tmp_path.iterdir())


def test_who_waits_says_so_once_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file that is held."""
    monkeypatch.setattr(folder_lock, "_PATIENCE_SECONDS", 0.1)
    said: list[str] = []
    with (
        turn(tmp_path / "out", nothing),
        pytest.raises(SetupError, match=r"out: another process still holds .*\.out\.lock; nothing was changed"),
        turn(tmp_path / "out", said.append),
    ):
        pass
    assert [f"{tmp_path / 'out'}: another planner writes it; waiting up to 0 s"] == said


def test_the_file_of_a_dead_process_does_not_lock(tmp_path: Path) -> None:
    """The system gave its lock up; another folder's lock is another one."""
    (tmp_path / ".out.lock").touch()
    with turn(tmp_path / "out", nothing), turn(tmp_path / "other", nothing) as alone:
        assert alone
    assert [] == list(tmp_path.iterdir())


def test_a_lock_on_a_file_that_was_taken_away_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder before took it away between our opening and locking it: two would think they are alone."""
    flock, opened = fcntl.flock, []

    def raced(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        if not opened:
            (tmp_path / ".out.lock").unlink()
        opened.append(descriptor)

    monkeypatch.setattr(fcntl, "flock", raced)
    with turn(tmp_path / "out", nothing):
        assert 2 == len(opened)
        assert (tmp_path / ".out.lock").exists()


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is written all the same; no file stays."""

    def refused(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with turn(tmp_path / "out", nothing) as alone:
        assert not alone
    assert [] == list(tmp_path.iterdir())
