"""Replaces a folder so that readers never miss it, a kill at any moment is repaired, and nothing is lost."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import killed_writers
import pytest
from command_line import Run
from folders import ROOT
from killed_writers import OWN, contents, files

from planner.export import folder_swap, output_folder

AS_IT_WAS = "the folder is unchanged, and what that run left was removed"
PUT_BACK = "the folder from before was put back"
WRITTEN = "the folder is the one that it wrote, and what else it left was removed"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A plan's folder with files of the operator."""
    output_folder.write(tmp_path / "out", files(1))
    for path, content in OWN.items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(content)
    return tmp_path / "out"


def ran(what: str, how: str, folder: Path) -> list[str]:
    """The lines that killed_writers.py prints. An unexpected line is a fault."""
    command = [sys.executable, Path(killed_writers.__file__), what, how, folder]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said"), [("exchange", [AS_IT_WAS, WRITTEN]), ("renames", [AS_IT_WAS, WRITTEN, PUT_BACK])]
)
def test_a_run_killed_at_any_step_is_mended_by_the_next(how: str, said: list[str], tmp_path: Path) -> None:
    """After a kill at any access to a file, the folder is the old or the new one, and the next run cleans up."""
    if how == "exchange" and not _exchanges(tmp_path):
        pytest.skip("this system exchanges no names")
    (tmp_path / "in").mkdir()
    killed, *lines = ran("kill", how, tmp_path / "in" / "out")

    assert sorted(said) == lines
    assert int(killed.removeprefix("killed at ").removesuffix(" steps")) > 50


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exchange", "renames"])
def test_two_writers_and_a_reader_find_a_whole_folder(how: str, tmp_path: Path) -> None:
    """Two writers and a reader always see a whole folder; with two renames, a reader may miss it. Nothing is lost."""
    if how == "exchange" and not _exchanges(tmp_path):
        pytest.skip("this system exchanges no names")
    (tmp_path / "in").mkdir()

    assert ["raced"] == ran("race", how, tmp_path / "in" / "out")


def _exchanges(folder: Path) -> bool:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / name).touch()
    return folder_swap.exchange(folder / "a", folder / "b")


def test_names_are_exchanged_in_one_step(tmp_path: Path) -> None:
    """Both folders exist afterwards under each other's name. A missing name is an error."""
    if not _exchanges(tmp_path):
        pytest.skip("this system exchanges no names")

    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()
    with pytest.raises(FileNotFoundError):
        folder_swap.exchange(tmp_path / "a", tmp_path / "none")


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Run `change` after the old folder was read and before the new one takes its place."""
    exchange = folder_swap.exchange

    def changed(one: Path, other: Path) -> bool:
        change()
        return exchange(one, other)

    monkeypatch.setattr(folder_swap, "exchange", changed)


@pytest.mark.parametrize("exchange", [True, False])
def test_what_the_operator_changes_meanwhile_is_taken_over(
    out: Path, monkeypatch: pytest.MonkeyPatch, *, exchange: bool
) -> None:
    """Changes to the same file, a new file under its name, and an added file are kept. The run says which it kept."""
    if not exchange:
        monkeypatch.setattr(folder_swap, "exchange", lambda *_: False)

    def change() -> None:
        (out / "terraform/terraform.tfstate").write_bytes(b"written to")
        (out / "ansible/group_vars/all.yml").unlink()
        (out / "ansible/group_vars/all.yml").write_bytes(b"a new file")
        (out / "ansible/group_vars/more.yml").write_bytes(b"one more")

    meanwhile(monkeypatch, change)
    said: list[str] = []
    output_folder.write(out, files(2), said.append)

    assert files(2) | OWN | {
        "terraform/terraform.tfstate": b"written to",
        "ansible/group_vars/all.yml": b"a new file",
        "ansible/group_vars/more.yml": b"one more",
    } == contents(out)
    assert [f"{out}: 'ansible/group_vars/{name}.yml' changed while the folder was replaced: the change was kept"
            for name in ("all", "more")] == sorted(said)  # fmt: skip
    assert ["out"] == [path.name for path in out.parent.iterdir()]


def test_the_example_inventory_edited_meanwhile_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is kept, although it was the plan's own when it was read."""
    out = tmp_path / "out"
    output_folder.write(out, files(1))
    meanwhile(monkeypatch, lambda: (out / "ansible/inventory/hosts.yml").write_bytes(b"mine") and None)
    output_folder.write(out, files(2))

    assert b"mine" == (out / "ansible/inventory/hosts.yml").read_bytes()


def test_what_is_nobodys_meanwhile_is_kept_and_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new folder has no place for the file, so the old folder is kept, and each run says so."""
    with monkeypatch.context() as patched:
        meanwhile(patched, lambda: (out / "notes.txt").write_bytes(b"mine") and None)
        said: list[str] = []
        output_folder.write(out, files(2), said.append)
    (staging,) = (path for path in out.parent.iterdir() if path != out)
    again: list[str] = []
    output_folder.write(out, files(3), again.append)

    assert files(3) | OWN == contents(out)
    assert b"mine" == next(staging.glob("*/notes.txt")).read_bytes()
    for lines in (said, again):
        assert ["'notes.txt' changed while the folder was replaced: the folder from before is kept as"] == [
            line.removeprefix(f"{out}: ").rsplit(" ", 1)[0] for line in lines
        ]


def test_what_an_older_planner_left_is_put_back(out: Path) -> None:
    """The next run repairs what an older planner left, which renamed twice and kept no journal."""
    left = out.parent / ".out.abcd_123"
    (left / "new").mkdir(parents=True)
    out.rename(left / "old")
    said: list[str] = []
    output_folder.write(out, files(2), said.append)

    assert files(2) | OWN == contents(out)
    assert [f"{out}: an earlier run was killed while it wrote here; {PUT_BACK}"] == said


def test_a_folder_that_came_back_otherwise_gets_what_the_old_one_had(out: Path) -> None:
    """If version control restored the folder, the operator's files are added. If both have a file, both are kept."""
    left = out.parent / ".out.abcd_123"
    left.mkdir()
    out.rename(left / "old")
    output_folder.check(out)
    for path, content in (files(1) | {"terraform/terraform.tfstate": b"another"}).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
    said: list[str] = []
    output_folder.write(out, files(2), said.append)

    assert files(2) | OWN | {"terraform/terraform.tfstate": b"another"} == contents(out)
    assert b"my state" == (left / "old/terraform/terraform.tfstate").read_bytes()
    assert "'terraform/terraform.tfstate' changed while the folder was replaced" in said[-1]


def test_an_old_plan_with_a_read_only_folder_is_removed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but root can empty a read-only folder, so it is made writable before it is removed."""

    def removed(folder: Path, *, ignore_errors: bool) -> None:
        closed = [path for path in folder.rglob("*") if path.is_dir() and not path.stat().st_mode & stat.S_IWUSR]
        if not closed or not ignore_errors:
            rmtree(folder)

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", removed)
    folder = next(path for path in out.iterdir() if path.is_dir())
    folder.chmod(0o555)
    output_folder.write(out, files(2))
    assert [out] == [path for path in out.parent.iterdir() if path.is_dir()]


def test_others_folders_are_left_alone(out: Path) -> None:
    """Folders of another plan with a similar name, with another kind of name, or with other content are left alone."""
    strangers = [".out.plan.abcdefgh/old", ".out.abcdefg/old", ".out.ABCDEFGH/old", ".out.abcdefgh/mine"]
    for name in strangers:
        (out.parent / name).mkdir(parents=True)

    assert [] == list(folder_swap.abandoned_staging_folders(out))


def test_without_hard_links_files_are_copied(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hard links, files are copied with their times, and links stay links."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    (out / "ansible/host_vars").symlink_to("group_vars")
    times = {path: (out / path).stat().st_mtime_ns for path in OWN}
    monkeypatch.setattr("os.link", refused)
    output_folder.write(out, files(2))

    assert (out / "ansible/host_vars").is_symlink()
    assert times == {path: (out / path).stat().st_mtime_ns for path in OWN}
    assert files(2) | OWN == {path: content for path, content in contents(out).items() if "host_vars" not in path}


@pytest.mark.slow
def test_the_next_command_says_what_it_mended(out: Path, planner: Run) -> None:
    """The next command says on stderr what it repaired. stdout has only the result."""
    spec = ROOT / "examples" / "tp_re_01.yaml"
    (out.parent / ".plan.abcdefgh" / "new").mkdir(parents=True)
    ran = planner("whatif", spec, "--out", out.parent / "plan", "--engine", "local", "--candidates", "5")

    said = f"{out.parent / 'plan'}: an earlier run was killed while it wrote here; {AS_IT_WAS}\n"
    assert (0, said) == (ran.code, ran.err)
