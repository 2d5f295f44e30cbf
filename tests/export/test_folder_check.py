"""The check of a plan's folder: its digests, the differences from them, and what a changed file could do."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from planner.export import templated_files
from planner.export.folder_check import (
    SUMS,
    FolderCheck,
    FolderEntry,
    compare_folder,
    compare_with_list,
    digest,
    effect,
    entries,
    is_operators,
    listed,
    sums,
)
from planner.model.errors import SetupError, StalePlanError

MADE = {"plan.json": "1", "ansible/inventory/hosts.yml": "2", "terraform/kafka_topics.auto.tfvars.json": "3"}


def of(digests: dict[str, str]) -> dict[str, FolderEntry]:
    """Entries of plain files with these digests."""
    return {path: FolderEntry("file", False, sha256) for path, sha256 in digests.items()}


def test_what_is_as_it_was_made_is_counted() -> None:
    """An unchanged folder has no differences and no files of the operator."""
    assert FolderCheck(files=3) == compare_folder(MADE, of(MADE))


def test_the_operators_files_do_not_count_as_differences() -> None:
    """The operator's edited, added or missing files are no differences, but a change of the plan's tfvars file is."""
    now = of(MADE | {"ansible/inventory/hosts.yml": "9", "terraform/main.tf": "4"})
    now |= of({"terraform/kafka_topics.auto.tfvars.json": "5"})
    found = compare_folder(MADE, now)

    assert ["terraform/kafka_topics.auto.tfvars.json"] == [each.path for each in found.differences]
    assert ["ansible/inventory/hosts.yml", "terraform/main.tf"] == [each.path for each in found.own]
    gone = compare_folder(MADE, of({path: sha256 for path, sha256 in MADE.items() if "hosts" not in path}))
    assert ((), ["is missing"]) == (gone.differences, [each.what for each in gone.own])


def test_a_link_above_the_plans_files_is_never_the_operators() -> None:
    """A link above plan files is one difference. The inventory's folder may be a link."""
    now = {"plan.json": FolderEntry("file", False, "1"), "terraform": FolderEntry("link", False, "8")}
    found = compare_folder(MADE, now | {"ansible/inventory": FolderEntry("link", False, "9")})

    assert ["terraform"] == [each.path for each in found.differences]
    assert ["ansible/inventory"] == [each.path for each in found.own]


def test_a_folder_in_the_place_of_a_file_is_found() -> None:
    """If a folder has the path of a file, the folder's content is extra and the file is missing."""
    now = of({path: sha256 for path, sha256 in MADE.items() if path != "plan.json"} | {"plan.json/x": "1"})

    assert ["plan.json is missing", "plan.json/x isn't part of the plan"] == list(
        map(str, compare_folder(MADE, now).differences)
    )


FILES = {"plan.json": b"{}\n", "batches/01/reassignment.json": b"[]\n"}


def summed(files: dict[str, bytes]) -> bytes:
    """The SHA256SUMS of these files."""
    return sums({path: digest(content) for path, content in files.items()})


def test_coreutils_reads_it(tmp_path: Path) -> None:
    """`sha256sum --check` accepts every unchanged file, and names the changed one."""
    for path, content in (FILES | {SUMS: summed(FILES)}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)

    def ran() -> subprocess.CompletedProcess[str]:
        command = ["sha256sum", "--check", "--quiet", SUMS]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (0, "") == (ran().returncode, ran().stdout)
    (tmp_path / "plan.json").write_bytes(b"[]\n")
    assert (1, "plan.json: FAILED\n") == (ran().returncode, ran().stdout)


def test_it_is_read_back() -> None:
    """SHA256SUMS is read back as path to digest, also for names with blanks."""
    files = FILES | {"a name": b""}
    assert summed(files).decode().splitlines() == [
        f"{digest}  {path}" for path, digest in listed(summed(files).decode(), "").items()
    ]
    assert sorted(files) == list(listed(summed(files).decode(), ""))


def test_a_line_that_is_no_digest_is_refused_with_its_number() -> None:
    """A line that isn't a digest, after an edit or a truncation, is refused with its number."""
    with pytest.raises(StalePlanError, match="SHA256SUMS:3: 'abc' isn't a digest and a path"):
        listed(summed(FILES).decode() + "abc\n", "SHA256SUMS")


def test_a_folder_beside_its_own_list(tmp_path: Path) -> None:
    """Changed, missing and added files are found, and the operator's. SHA256SUMS itself doesn't count as added."""
    made = {"a": b"1", "b": b"2", "c": b"3", "ansible/inventory/hosts.yml": b"4"}
    now = made | {"c": b"9", "z": b"5", "ansible/inventory/hosts.yml": b"9", "terraform/main.tf": b"6"}
    del now["b"]
    for path, content in (now | {SUMS: summed(made)}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    found = compare_with_list(tmp_path)

    assert ["b is missing", "c isn't the file that was made", "z isn't part of the plan"] == [
        f"{each.path} {each.what}" for each in found.differences
    ]
    assert ["ansible/inventory/hosts.yml", "terraform/main.tf"] == [each.path for each in found.own]
    (tmp_path / SUMS).unlink()
    unlisted = compare_with_list(tmp_path)
    assert ((), [each.path for each in found.own]) == (unlisted.differences, [each.path for each in unlisted.own])


def test_files_links_and_pipes_are_told_apart(tmp_path: Path) -> None:
    """Links aren't followed, pipes aren't opened, and names may have any bytes."""
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
    """A file or folder that can't be read is an error with the path and the reason."""
    (tmp_path / "a").write_bytes(b"x")

    def refused(self: Path, *_: object) -> object:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SetupError, match=r"/a: can't be read: Permission denied"):
        entries(tmp_path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ansible/group_vars/all/x.yml", "Ansible variables: kafka_reassign_bin_dir chooses which programs run"),
        ("ansible/inventory/host_vars/admin-1.yml", "Ansible variables"),
        ("ansible/inventory/aws_ec2.yml", "the machine that the commands run on"),
        ("ansible/roles/x/defaults/main/y.yml", "default variables of the role"),
        ("ansible/roles/kafka_reassign/templates/x", "part of an Ansible role"),
        ("terraform/zz.auto.tfvars.json", "Terraform variables: a later file takes precedence over the plan's"),
        ("terraform/terraform.tfstate", "Terraform's state"),
        ("terraform/terraform.tfstate.backup", "Terraform's state"),
        ("terraform/.terraform/providers/x", "providers and modules that Terraform runs"),
        ("terraform/.terraform.lock.hcl", "which providers Terraform accepts"),
        ("terraform/override.tf.json", "Terraform configuration"),
    ],
)
def test_each_kind_of_file_says_what_it_could_do(path: str, said: str) -> None:
    """In a phrase; see also what `planner check` prints."""
    assert effect(path).startswith(said)


def test_what_nothing_reads_does_nothing() -> None:
    """Pages, plots and notes do nothing."""
    assert ["", "", ""] == [effect(path) for path in ("report.md", "plots/front.svg", "terraform/notes.txt")]


def test_an_executable_file_in_an_inventory_is_run() -> None:
    """Ansible runs executable files only in an inventory."""
    assert effect("ansible/inventory/x", executable=True).startswith("an executable file in an inventory")
    assert effect("ansible/inventory/x") == effect("ansible/inventory/x", executable=False)


def test_of_the_planners_own_files_only_the_inventory_may_be_edited() -> None:
    """The templates' other files belong to the plan."""
    shipped = [f"ansible/{path.removesuffix('.j2')}" for path in templated_files.template_paths("ansible")]

    assert ["ansible/inventory/hosts.yml"] == [path for path in shipped if is_operators(path, added=False)]


def test_beside_terraforms_variables_everything_added_is_the_operators() -> None:
    """The plan's own tfvars file doesn't belong to the operator."""
    assert is_operators("terraform/main.tf", added=True)
    assert not is_operators("terraform/kafka_topics.auto.tfvars.json", added=False)
