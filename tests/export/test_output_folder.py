"""Writes the output folder: all or nothing, without losing other files, and one writer after the other."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner.export import folder_swap, output_folder
from planner.export.folder_check import SUMS, sums, with_sums
from planner.export.output_folder import folder_lock
from planner.model.errors import SetupError
from planner.model.file_reading import digest

PLAN = json.dumps({"format_version": "1.0", "plan_id": "ab"}).encode()
FILES = {"plan.json": PLAN, "batches/01/reassignment.json": b"{}"}


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_new_folder(tmp_path: Path) -> None:
    """A folder that doesn't exist is created with its parents. Nothing is left beside it."""
    output_folder.write(tmp_path / "a" / "out", FILES)
    assert FILES == _contents(tmp_path / "a" / "out")
    assert ["out"] == [path.name for path in (tmp_path / "a").iterdir()]


def test_same_permissions_as_any_new_folder(tmp_path: Path) -> None:
    """The folder has the permissions of any new folder, although temporary folders are private."""
    (tmp_path / "usual").mkdir()
    output_folder.write(tmp_path / "out", FILES)
    assert (tmp_path / "usual").stat().st_mode == (tmp_path / "out").stat().st_mode


def test_a_mount_point_is_refused_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mount point, for example a container's volume, is refused, because no other folder can take its name."""
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "out")
    with pytest.raises(SetupError, match="out: is a mount point, which can't be replaced; name a folder inside it"):
        output_folder.check(tmp_path / "out")


def test_empty_folder(tmp_path: Path) -> None:
    """An empty folder may be filled."""
    (tmp_path / "out").mkdir()
    output_folder.write(tmp_path / "out", FILES)
    assert FILES == _contents(tmp_path / "out")


def test_earlier_plan_is_replaced_whole(tmp_path: Path) -> None:
    """Files that only the earlier plan had are gone."""
    output_folder.write(tmp_path / "out", FILES | {"batches/02/reassignment.json": b"old", "report.md": b"old"})
    output_folder.write(tmp_path / "out", FILES)
    assert FILES == _contents(tmp_path / "out")
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("inside", ["sub", "ansible/inventory/sub", "terraform/a/b"])
def test_no_folder_and_no_file_in_a_plans_folder(inside: str, tmp_path: Path) -> None:
    """Nothing may be written into a plan's folder: Ansible might load it, and the plan would be refused afterwards."""
    output_folder.write(tmp_path / "out", with_sums(FILES))
    why = "out, which holds a plan or restart; allowed: a path outside of it"
    with pytest.raises(SetupError, match=why):
        output_folder.write(tmp_path / "out" / inside, FILES)
    (tmp_path / "out" / "ansible" / "inventory").mkdir(parents=True)
    with pytest.raises(SetupError, match=why):
        output_folder.require_writable("--html", tmp_path / "out" / "ansible" / "inventory" / "page.html")
    assert with_sums(FILES) == _contents(tmp_path / "out")


OWN = {
    "ansible/inventory/hosts.yml": b"mine",
    "ansible/group_vars/all.yml": b"mine",
    "terraform/.terraform/providers/x": b"mine",
}


def _plan_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {SUMS: sums({path: digest(content) for path, content in files.items()})}


def test_what_is_the_operators_own_is_taken_over(tmp_path: Path) -> None:
    """The operator's inventory, variables and Terraform files are kept. All other files are the new plan's."""
    out = tmp_path / "out"
    first = _plan_of(FILES | {"ansible/inventory/hosts.yml": b"made", "ansible/ansible.cfg": b"made"})
    output_folder.write(out, first)
    for path, content in OWN.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
    second = _plan_of(FILES | {"ansible/inventory/hosts.yml": b"new", "ansible/ansible.cfg": b"new"})
    output_folder.write(out, second)
    assert second | OWN == _contents(out)


def test_what_is_in_an_operators_place_survives_without_digests(tmp_path: Path) -> None:
    """Without digests, nobody knows which files the operator edited, so all in the operator's places are kept."""
    output_folder.write(tmp_path / "out", FILES | OWN)
    output_folder.write(tmp_path / "out", FILES)
    assert FILES | OWN == _contents(tmp_path / "out")


def test_links_of_the_operator_are_taken_over_as_links(tmp_path: Path) -> None:
    """Links to files or folders outside stay links, and their targets are unchanged."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "hosts.yml").write_bytes(b"mine")
    out = tmp_path / "out"
    files = _plan_of(FILES | {"ansible/inventory/hosts.yml": b"made"})
    output_folder.write(out, files)
    (out / "ansible/group_vars").symlink_to("../../kept")
    (out / "ansible/inventory/hosts.yml").unlink()
    (out / "ansible/inventory/hosts.yml").symlink_to("../../../kept/hosts.yml")
    output_folder.write(out, files)
    assert (out / "ansible/group_vars").readlink() == Path("../../kept")
    assert b"mine" == (out / "ansible/inventory/hosts.yml").read_bytes()
    assert (out / "ansible/inventory/hosts.yml").is_symlink()


@pytest.mark.parametrize("path", ["batches/notes.txt", "ansible/roles/mine/tasks/main.yml"])
def test_others_files_below_are_refused(tmp_path: Path, path: str) -> None:
    """A foreign file outside of the operator's places is named, before anything is lost."""
    output_folder.write(tmp_path / "out", _plan_of(FILES))
    (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / path).write_bytes(b"mine")
    with pytest.raises(SetupError, match=f"out: holds '{path}', which isn't part of the plan and would be lost"):
        output_folder.check(tmp_path / "out")
    with pytest.raises(SetupError, match="move it away"):
        output_folder.write(tmp_path / "out", _plan_of(FILES))
    assert b"mine" == (tmp_path / "out" / path).read_bytes()


def test_edited_settings_of_ansible_are_not_lost(tmp_path: Path) -> None:
    """An edited ansible.cfg is refused, because it belongs to the plan. An unedited one is replaced."""
    out = tmp_path / "out"
    output_folder.write(out, _plan_of(FILES | {"ansible/ansible.cfg": b"made"}))
    output_folder.write(out, _plan_of(FILES | {"ansible/ansible.cfg": b"new"}))
    (out / "ansible/ansible.cfg").write_bytes(b"mine")
    with pytest.raises(SetupError, match=r"'ansible/ansible.cfg' was edited, .* \(ANSIBLE_CONFIG\)"):
        output_folder.write(out, _plan_of(FILES))
    assert b"mine" == (out / "ansible/ansible.cfg").read_bytes()


def test_symbolic_link_stays(tmp_path: Path) -> None:
    """A link to the folder still points to it."""
    output_folder.write(tmp_path / "out", FILES)
    (tmp_path / "link").symlink_to("out")
    output_folder.write(tmp_path / "link", FILES | {"report.md": b"new"})
    assert b"new" == (tmp_path / "out" / "report.md").read_bytes()
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    "existing",
    [
        {"notes.txt": b"mine"},
        {"plan.json": b'{"format_version": "3.0", "plan_id": "ab"}'},
        {"plan.json": b'{"format_version": "1.0"}'},
        {"plan.json": b"[1]"},
        {"plan.json": b"no JSON \xff"},
        {"plan.json": PLAN, "notes.txt": b"mine"},
        {"plan.json": PLAN, ".git/HEAD": b"mine"},
    ],
    ids=["others", "later format", "not ours", "list", "no JSON", "notes", "repository"],
)
def test_others_folder_is_refused(tmp_path: Path, existing: dict[str, bytes]) -> None:
    """A folder with anything that isn't part of a plan is refused by name and stays unchanged."""
    for path, content in existing.items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(content)
    with pytest.raises(
        SetupError, match=r"out: (isn't empty and holds no plan that planner wrote|holds '(notes.txt|.git)')"
    ):
        output_folder.write(tmp_path / "out", FILES)
    assert existing == _contents(tmp_path / "out")


def test_a_pipe_in_a_plans_place_is_not_waited_for(tmp_path: Path) -> None:
    """A folder whose plan.json is a pipe is refused at once."""
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "plan.json")
    with pytest.raises(SetupError, match="out: isn't empty and holds no plan that planner wrote"):
        output_folder.write(tmp_path / "out", FILES)


def test_file_is_refused(tmp_path: Path) -> None:
    """A file at the folder's path is refused and stays."""
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(SetupError, match="out: is a file"):
        output_folder.write(tmp_path / "out", FILES)
    assert b"mine" == (tmp_path / "out").read_bytes()


def test_failure_while_writing_loses_nothing(tmp_path: Path) -> None:
    """If a file can't be written, the earlier plan is unchanged and nothing is left beside it."""
    output_folder.write(tmp_path / "out", FILES)
    with pytest.raises(SetupError, match=r"out: can't be written: .*nothing was changed"):
        output_folder.write(tmp_path / "out", {"plan.json": b"new", "x" * 300: b""})
    assert FILES == _contents(tmp_path / "out")
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


def test_failure_while_renaming_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the new folder can't be renamed to its place, the earlier plan is put back."""
    output_folder.write(tmp_path / "out", FILES)
    monkeypatch.setattr(folder_swap, "exchange", lambda *_: False)
    rename = Path.rename

    def no_new(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", no_new)
    with pytest.raises(SetupError, match="No space left on device"):
        output_folder.write(tmp_path / "out", FILES | {"report.md": b"new"})
    assert FILES == _contents(tmp_path / "out")
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("path", ["../outside", "/outside", "a/../../outside", ""])
def test_path_outside_is_a_defect(tmp_path: Path, path: str) -> None:
    """A path that leaves the folder is a defect of the planner, so it raises ValueError."""
    with pytest.raises(ValueError, match="not a path inside the output folder"):
        output_folder.write(tmp_path / "out", {path: b""})
    assert [] == list(tmp_path.iterdir())


def test_check_refuses_ahead_what_write_would(tmp_path: Path) -> None:
    """The check gives the same refusal as the write, accepts new and own folders, and creates nothing."""
    output_folder.check(tmp_path / "new")
    output_folder.write(tmp_path / "own", FILES)
    output_folder.check(tmp_path / "own")
    (tmp_path / "own" / "notes.txt").write_bytes(b"mine")
    with pytest.raises(SetupError, match=r"own: holds 'notes.txt', which isn't part of a plan"):
        output_folder.check(tmp_path / "own")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["{{ 1 }}", "{% if x %}", "{# x", "a{{"])
def test_folder_that_ansible_would_run_is_refused(tmp_path: Path, name: str) -> None:
    """Ansible would render a path with `{{` as a template, so check and write refuse it and create nothing."""
    for folder in (tmp_path / name, tmp_path / name / "out"):
        with pytest.raises(SetupError, match=r"Ansible would run '{[{%#]' in the folder's path"):
            output_folder.check(folder)
        with pytest.raises(SetupError, match="name a folder without it"):
            output_folder.write(folder, FILES)
    assert [] == list(tmp_path.iterdir())


def test_a_file_needs_a_folder_to_write_to_and_a_pipe_needs_none(tmp_path: Path, monkeypatch: Any) -> None:
    """A file is replaced by one made beside it, so its folder must be writable. A pipe is written to directly."""
    output_folder.require_writable("--rows", tmp_path / "rows.parquet")
    monkeypatch.setattr(os, "access", lambda *_: False)
    os.mkfifo(tmp_path / "pipe")

    output_folder.require_writable("--rows", tmp_path / "pipe")
    with pytest.raises(SetupError, match=r"rows\.parquet: .* can't be written to; allowed: a file in a folder"):
        output_folder.require_writable("--rows", tmp_path / "rows.parquet")
    with pytest.raises(SetupError, match=r"gone isn't a folder; allowed: a file in a folder that exists"):
        output_folder.require_writable("--rows", tmp_path / "gone" / "x")


def nothing(line: str) -> None:
    """Fails the test if a process reports that it waits."""
    raise AssertionError(line)


def test_the_lock_is_gone_afterwards(tmp_path: Path) -> None:
    """While the lock is held, its file is beside the folder. Afterwards it is gone."""
    with folder_lock(tmp_path / "out", nothing) as alone:
        assert alone
        assert [".out.lock"] == [path.name for path in tmp_path.iterdir()]
    assert [] == list(tmp_path.iterdir())


def test_who_waits_says_so_once_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits says so once, and then gives up with the lock's path."""
    monkeypatch.setattr(output_folder, "_PATIENCE_SECONDS", 0.1)
    said: list[str] = []
    with (
        folder_lock(tmp_path / "out", nothing),
        pytest.raises(SetupError, match=r"out: another process still holds .*\.out\.lock; nothing was changed"),
        folder_lock(tmp_path / "out", said.append),
    ):
        pass
    assert [f"{tmp_path / 'out'}: another planner writes it; waiting up to 0 s"] == said


def test_the_file_of_a_dead_process_does_not_lock(tmp_path: Path) -> None:
    """A lock file without a living holder doesn't lock. Another folder has its own lock."""
    (tmp_path / ".out.lock").touch()
    with folder_lock(tmp_path / "out", nothing), folder_lock(tmp_path / "other", nothing) as alone:
        assert alone
    assert [] == list(tmp_path.iterdir())


def test_a_lock_of_another_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the lock file, because it stays after a kill and its name begins with a dot."""
    (tmp_path / ".out.lock").touch()

    def refuse(file: Path, *_: int) -> int:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SetupError, match=r"\.out\.lock can't be opened: Permission denied: another user's planner"):
        output_folder.write(tmp_path / "out", FILES)


def test_a_folder_that_cannot_be_written_to_is_told_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that can't be created, as the nearest existing one isn't writable, is refused before the work."""
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    with pytest.raises(SetupError, match=r"x: can't be written: no permission to write to .*; nothing was changed"):
        output_folder.check(tmp_path / "a" / "x")


def test_a_lock_on_a_file_that_was_taken_away_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last holder removed the file between opening and locking, the lock is taken again on a new file."""
    flock, opened = fcntl.flock, []

    def raced(descriptor: int, how: int) -> None:
        flock(descriptor, how)
        if not opened:
            (tmp_path / ".out.lock").unlink()
        opened.append(descriptor)

    monkeypatch.setattr(fcntl, "flock", raced)
    with folder_lock(tmp_path / "out", nothing):
        assert 2 == len(opened)
        assert (tmp_path / ".out.lock").exists()


def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is written without a lock, and no file is left."""

    def refused(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with folder_lock(tmp_path / "out", nothing) as alone:
        assert not alone
    assert [] == list(tmp_path.iterdir())
