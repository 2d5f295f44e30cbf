"""SHA256SUMS: the digests of a plan's files, and how a folder differs from them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from planner.export.digests import FILE, DigestCheck, compare, listed, sums
from planner.model.errors import StalePlanError

FILES = {"plan.json": b"{}\n", "batches/01/reassignment.json": b"[]\n"}


def test_coreutils_reads_it(tmp_path: Path) -> None:
    """`sha256sum --check` finds every file as it was made, and names the one that isn't."""
    for path, content in (FILES | {FILE: sums(FILES)}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)

    def ran() -> subprocess.CompletedProcess[str]:
        command = ["sha256sum", "--check", "--quiet", FILE]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (0, "") == (ran().returncode, ran().stdout)
    (tmp_path / "plan.json").write_bytes(b"[]\n")
    assert (1, "plan.json: FAILED\n") == (ran().returncode, ran().stdout)


def test_it_is_read_back() -> None:
    """Path to digest, for names with blanks too."""
    files = FILES | {"a name": b""}
    assert sums(files).decode().splitlines() == [
        f"{digest}  {path}" for path, digest in listed(sums(files).decode(), "").items()
    ]
    assert sorted(files) == list(listed(sums(files).decode(), ""))


def test_a_line_that_is_no_digest_is_refused_with_its_number() -> None:
    """The file was edited, or cut."""
    with pytest.raises(StalePlanError, match="SHA256SUMS:3: 'abc' isn't a digest and a path"):
        listed(sums(FILES).decode() + "abc\n", "SHA256SUMS")


def test_what_changed_is_missing_or_extra_is_named() -> None:
    """Each path once, sorted; the list itself isn't extra."""
    found = compare({"a": "1", "b": "2", "c": "3"}, {"a": "1", "c": "4", "z": "5", FILE: "6"})

    assert DigestCheck(changed=("c",), missing=("b",), extra=("z",)) == found


def test_what_is_the_operators_own_is_not_judged() -> None:
    """The inventory is an example to be edited, and Terraform keeps files beside its variables."""
    made = {"ansible/inventory/hosts.yml": "1", "terraform/kafka_topics.auto.tfvars.json": "2"}
    now = {
        "ansible/inventory/hosts.yml": "9",
        "ansible/group_vars/kafka_admin.yml": "3",
        "terraform/main.tf": "4",
        "terraform/kafka_topics.auto.tfvars.json": "5",
    }
    found = compare(made, now)

    assert ("terraform/kafka_topics.auto.tfvars.json",) == found.changed
    assert ("ansible/group_vars/kafka_admin.yml", "ansible/inventory/hosts.yml", "terraform/main.tf") == found.own
    assert DigestCheck() == compare(made, made)
