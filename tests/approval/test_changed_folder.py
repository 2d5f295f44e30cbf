"""`planner check` finds every change to a plan's folder, even if somebody computed new digests for it."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from command_line import Run
from folders import ROOT
from jsonschema import Draft202012Validator
from plan_documents import plan_id
from rich.console import Console

from planner.approval import plan_check
from planner.approval.changes_since_plan import Sources
from planner.cli import one_spec, whatif_fleet
from planner.export.folder_check import SUMS, entries, sums
from planner.plan.document.plan_types import Plan

ROLE = "ansible/roles/kafka_reassign"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an example's plan; tests use copies of it."""
    out = tmp_path_factory.mktemp("folder") / "expand.plan"
    options = whatif_fleet.WhatifOptions(out=out, candidates=20, engine="local")
    whatif_fleet.whatif(ROOT / "examples" / "expand.yaml", options, Console(file=io.StringIO()))
    return out


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the plan's folder."""
    return Path(shutil.copytree(made, tmp_path / "expand.plan"))


RENDERED: dict[str, dict[str, bytes]] = {}


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renders each plan's files only once for all tests."""
    render = one_spec.rendered_files

    def remembered(plan: Plan) -> dict[str, bytes]:
        if plan.plan_id not in RENDERED:
            RENDERED[plan.plan_id] = render(plan)
        return RENDERED[plan.plan_id]

    monkeypatch.setattr(one_spec, "rendered_files", remembered)


def summed_anew(folder: Path) -> None:
    """Writes SHA256SUMS for the files that are there now, as an attacker would."""
    (folder / SUMS).unlink(missing_ok=True)
    (folder / SUMS).write_bytes(sums({path: each.sha256 or "" for path, each in entries(folder).items()}))


def test_a_folder_as_it_was_made_passes(planner: Run, folder: Path) -> None:
    """An unchanged folder passes, and all of its files are counted."""
    files = sum(path.is_file() for path in folder.rglob("*"))
    ran = planner("check", folder)

    assert (0, "") == (ran.code, ran.err)
    assert f"is unchanged, with all of its {files} files\n" in ran.out


@pytest.mark.slow
def test_no_file_may_differ_whatever_the_digests_say(folder: Path) -> None:
    """Each file of the plan, except the inventory, gets one more byte in turn; each is found despite new digests."""
    plans = sorted(entries(folder).keys() - {"plan.json", "SHA256SUMS", "ansible/inventory/hosts.yml"})
    for path in plans:
        before = (folder / path).read_bytes()
        (folder / path).write_bytes(before + b"\n")
        summed_anew(folder)
        (found,) = plan_check.check(folder, Sources(), one_spec.rendered_files).refusals

        assert any(line.startswith(f"{path} isn't the file that was made") for line in found.lines), path
        (folder / path).write_bytes(before)
    assert len(plans) > 60


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (f"{ROLE}/vars/main/zz.yml", "variables of the role: Ansible loads every file of vars/main/"),
        (f"{ROLE}/tasks/more.yml", "tasks, which run whatever they name"),
        (f"{ROLE}/handlers/main.yml", "tasks, which run whatever they name"),
        (f"{ROLE}/meta/more.yml", "the role's dependencies: roles that run before it"),
        (f"{ROLE}/library/command.py", "Python code that Ansible loads and runs"),
        (f"{ROLE}/module_utils/x.py", "Python code that Ansible loads and runs"),
        (f"{ROLE}/filter_plugins/x.py", "Python code that Ansible loads and runs"),
        (f"{ROLE}/files/batches/99/reassignment.json", "a file that the role can hand to Kafka's tools"),
        ("ansible/roles/other/tasks/main.yml", "tasks, which run whatever they name"),
        ("ansible/library/command.py", "Python code that Ansible loads and runs"),
        ("ansible/callback_plugins/x.py", "Python code that Ansible loads and runs"),
        ("ansible/collections/ansible_collections/a/b/plugins/modules/c.py", "Ansible collections"),
        ("ansible/more.yml", "a playbook, which runs whatever it names"),
        ("ansible/.ansible.cfg", ""),
        (".git/hooks/post-checkout", ""),
        ("batches/99/reassignment.json", "a file that could be handed to Kafka's tools by hand"),
        ("reports.md", ""),
    ],
)
def test_a_file_more_is_refused_with_what_it_could_do(planner: Run, folder: Path, path: str, said: str) -> None:
    """Wherever Ansible, Kafka's tools or a person would find it."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("x\n")
    summed_anew(folder)
    ran = planner("check", folder)

    assert (1, "") == (ran.code, ran.out)
    assert f"  {path} isn't part of the plan{f': {said}' if said else ''}" in ran.err


def test_settings_of_ansible_are_the_plans(planner: Run, folder: Path) -> None:
    """A changed ansible.cfg is refused: it could load roles and plugins from elsewhere."""
    with (folder / "ansible" / "ansible.cfg").open("a") as file:
        file.write("callbacks_enabled = x\n")
    summed_anew(folder)
    ran = planner("check", folder)

    assert (1, True) == (ran.code, "ansible/ansible.cfg isn't the file that was made: Ansible's settings" in ran.err)


def test_a_link_to_the_same_bytes_is_another_thing(planner: Run, folder: Path, tmp_path: Path) -> None:
    """Links to files and folders are refused, even with the same bytes: their targets can change after the check."""
    outside = tmp_path / "outside"
    shutil.copytree(folder, outside)
    for path in (f"{ROLE}/tasks/main.yml", "report.md"):
        (folder / path).unlink()
        (folder / path).symlink_to(outside / path)
    for path in (f"{ROLE}/vars", "terraform"):
        shutil.rmtree(folder / path)
        (folder / path).symlink_to(outside / path)
    ran = planner("check", folder)

    assert 1 == ran.code
    assert f"  {ROLE}/tasks/main.yml is a link, not the file that was made: tasks, which" in ran.err
    assert "  report.md is a link, not the file that was made\n" in ran.err
    assert f"  {ROLE}/vars is a link that isn't part of the plan: variables of the role" in ran.err
    assert "  terraform is a link that isn't part of the plan: everything below it comes from elsewhere\n" in ran.err
    assert "missing" not in ran.err


def test_pipes_and_executable_files_are_not_opened_or_passed(planner: Run, folder: Path) -> None:
    """A pipe in the place of a file isn't opened, because reading it would never end; executable files are refused."""
    (folder / "report.md").unlink()
    os.mkfifo(folder / "report.md")
    (folder / "reassignment.json").chmod(0o755)
    ran = planner("check", folder)

    assert 1 == ran.code
    assert "  report.md is a device, not the file that was made\n" in ran.err
    assert "  reassignment.json is executable, which no file of a plan is" in ran.err


def test_what_is_the_operators_is_listed_with_what_it_could_do(planner: Run, folder: Path) -> None:
    """The operator's own files are listed with what each could change, in text and in JSON; --strict refuses them."""
    (folder / "ansible/inventory/hosts.yml").write_text("kafka_admin: {hosts: {admin-1: {}}}\n")
    for path in ("ansible/group_vars/kafka_admin.yml", "ansible/inventory/dynamic.py", "terraform/main.tf"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x\n")
    (folder / "ansible/inventory/dynamic.py").chmod(0o755)
    ran, strict = planner("check", folder), planner("check", folder, "--strict")
    found = json.loads(planner("check", folder, "--format", "json").out)

    assert (0, 1) == (ran.code, strict.code)
    for line in (
        "not checked: 4 of the folder's files are your own; each could change what runs:\n",
        "  ansible/group_vars/kafka_admin.yml isn't part of the plan: Ansible variables: kafka_reassign",
        "  ansible/inventory/dynamic.py isn't part of the plan: an executable file in an inventory: Ansible runs it",
        "  ansible/inventory/hosts.yml isn't the file that was made: the machine that the commands run on",
        "  terraform/main.tf isn't part of the plan: Terraform configuration: what it changes, and programs",
    ):
        assert line in ran.out
    assert (
        "expand.plan: contains files of your own, which can't be checked (--strict):\n  ansible/group_vars"
        in strict.err
    )
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")] == [
        row["path"] for row in found["operators_files"]
    ]
    assert (True, [], None) == (found["approved"], found["differences"], found["state"])


def test_json_is_written_of_what_is_refused_too(planner: Run, folder: Path) -> None:
    """`--format json` prints a document that fits its schema for a refused folder too, with exit code 1."""
    schema = json.loads((ROOT / "schemas" / "plan-check.schema.json").read_text())
    (folder / "ansible/apply.yml").write_text("[]\n")
    state = ROOT / "examples" / "state" / "six-brokers"
    ran = planner("check", folder, "--format", "json", "--state", state, "--strict", "--strict-state")
    found = json.loads(ran.out)

    assert [] == [error.message for error in Draft202012Validator(schema).iter_errors(found)]
    assert (1, False) == (ran.code, found["approved"])
    assert ["ansible/apply.yml"] == [row["path"] for row in found["differences"]]
    assert 0 == found["state"]["outside"]["partitions_changed"]


def test_an_approval_is_of_one_plan(planner: Run, folder: Path) -> None:
    """`--plan-id` refuses another valid plan. It takes no shortened id, because that could be forged."""
    approved = json.loads((folder / "plan.json").read_text())["plan_id"]
    other = json.loads((folder / "plan.json").read_text()) | {"warnings": ["approve me"]}
    other["plan_id"] = plan_id(other)
    (folder.parent / "other.json").write_text(json.dumps(other))
    planner("render", folder.parent / "other.json", "--out", folder.parent / "other.plan")

    assert 0 == planner("check", folder, "--plan-id", approved).code
    assert 0 == planner("check", folder.parent / "other.plan").code
    ran = planner("check", folder.parent / "other.plan", "--plan-id", approved)
    assert (1, True) == (ran.code, f"is plan {other['plan_id']}, approved was plan {approved}" in ran.err)
    assert "allowed: all 64 characters of a plan_id" in planner("check", folder, "--plan-id", approved[:12]).err


@pytest.mark.parametrize("name", ["bound.json", "candidates.parquet"])
def test_what_cannot_be_made_again_is_not_copied_changed(planner: Run, folder: Path, name: str) -> None:
    """`planner render` refuses to copy a changed bound.json or candidates.parquet; a missing one is no obstacle."""
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    ran = planner("render", folder, "--out", folder.parent / "again")
    assert (1, False) == (ran.code, (folder.parent / "again").exists())
    assert f"/{name}: isn't the file that was made; allowed: that file, or none" in ran.err
    (folder / name).unlink()
    assert 0 == planner("render", folder, "--out", folder.parent / "again").code


def test_a_plan_of_another_planner_is_not_called_changed(planner: Run, folder: Path) -> None:
    """If another planner version made the plan and its files differ, the error names that version; equal files pass."""
    document = json.loads((folder / "plan.json").read_text()) | {"planner_version": "9.8.7"}
    document["plan_id"] = plan_id(document)
    (folder / "plan.json").write_text(json.dumps(document))
    planner("render", folder / "plan.json", "--out", folder.parent / "theirs.plan")
    theirs = folder.parent / "theirs.plan"
    equal = planner("check", theirs)
    (theirs / ROLE / "tasks" / "main.yml").write_text("---\n[]\n")
    changed = planner("check", theirs)
    summed_anew(theirs)
    ran = planner("check", theirs)

    assert (0, 1, 1) == (equal.code, changed.code, ran.code)
    assert "was made by planner 9.8.7; this is planner" in ran.err
    assert "check with planner 9.8.7, or write the files again with this one (planner render)" in ran.err
    assert "isn't the file that was made" not in ran.err
    assert f"  {ROLE}/tasks/main.yml isn't the file that was made" in changed.err


def test_other_versions_of_what_draws_are_named(planner: Run, folder: Path) -> None:
    """If only plots and pages differ, the refusal names other library versions as a possible reason."""
    plot = next((folder / "plots").iterdir())
    plot.write_bytes(plot.read_bytes() + b"\n")
    ran = planner("check", folder)

    assert (1, True) == (ran.code, "other versions of matplotlib, jinja2, markdown-it-py, pyarrow" in ran.err)
    plot.unlink()
    assert "other versions of matplotlib" not in planner("check", folder).err


def test_what_cannot_be_read_is_not_approved(planner: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that can't be listed is refused, because it could hold anything."""
    scandir = os.scandir

    def refused(path: str | Path) -> object:
        if Path(path).name == "kafka_reassign":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    ran = planner("check", folder)

    assert (1, True) == (ran.code, "ansible/roles/kafka_reassign: can't be read: Permission denied" in ran.err)


def test_a_cluster_that_changed_outside_the_plan_is_told(planner: Run, folder: Path, tmp_path: Path) -> None:
    """A change outside the plan is reported with its meaning; --strict-state refuses it, --strict doesn't."""
    described = (ROOT / "examples" / "state" / "six-brokers" / "topics-describe.txt").read_text()
    new = "Topic: new\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    row = "\tTopic: new\tPartition: 0\tLeader: 4\tReplicas: 4\tIsr: 4\n"
    (tmp_path / "now.txt").write_text(described + new + row)
    ran = planner("check", folder, "--state", tmp_path / "now.txt", "--strict")
    refused = planner("check", folder, "--state", tmp_path / "now.txt", "--strict-state")

    assert (0, 1) == (ran.code, refused.code)
    assert "note: new: is new\noutside the plan: 1 partition changed since it was made: 1 new\n" in ran.out
    assert "the plan's moves still fit, but its figures (spreads, bytes" in ran.out
    assert "the cluster isn't as it was when the plan was made (--strict-state):\n  new: is new\n" in refused.err
