"""`planner check` of a restart: its folder must be exactly what its restart.json gives, and what was approved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import plan_schemas
import pytest
from command_line import Ran, Run
from folders import ROOT
from jsonschema import Draft202012Validator
from test_plan_check import summed_anew

from planner.cli.main import main
from planner.plan.document import codec
from planner.plan.document.plan_types import RESTART_FILE, STATES_FILE, RestartDocument

ROLE = Path("ansible") / "roles" / "kafka_reassign"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a restart, made once; tests use copies of it."""
    out = tmp_path_factory.mktemp("restart") / "orders.restart"
    with pytest.raises(SystemExit) as ended:
        main(["restart", str(ROOT / "examples" / "expand.yaml"), "-o", str(out)])
    assert 0 == ended.value.code
    return out


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the restart's folder."""
    shutil.copytree(made, tmp_path / made.name)
    return tmp_path / made.name


def said(ran: Ran) -> str:
    """What a refusal prints, joined to one line."""
    assert 1 == ran.code
    return " ".join(ran.err.split())


def test_an_untouched_restart_is_as_it_was_made(planner: Run, folder: Path) -> None:
    """An unchanged restart passes as a folder and as restart.json alone; its id can be checked too."""
    name = codec.decode_restart((folder / RESTART_FILE).read_bytes(), RESTART_FILE).restart_id
    files = sum(path.is_file() for path in folder.rglob("*"))
    whole = planner("check", str(folder), "--strict", "--plan-id", name)
    assert (0, f"{folder}: restart {name[:12]} is unchanged, with all of its {files} files\n") == whole[:2]
    assert (
        f"{folder / RESTART_FILE}: restart {name[:12]} is unchanged\n"
        == planner("check", str(folder / RESTART_FILE)).out
    )


def test_every_changed_missing_or_extra_file_is_named(planner: Run, folder: Path) -> None:
    """Each changed, missing or extra file is named with what it could do, even if SHA256SUMS was computed again."""
    playbook = folder / ROLE / "tasks" / "restart_step.yml"
    playbook.write_text(playbook.read_text() + "# more\n")
    states = folder / ROLE / "files" / STATES_FILE
    states.write_text(states.read_text().replace('"1,', '"9,', 1))
    (folder / ROLE / "files" / "foretold.json").unlink()
    (folder / "ansible" / "more.yml").write_text("---\n")
    summed_anew(folder)
    text = said(planner("check", str(folder)))
    for line in (
        f"{ROLE}/tasks/restart_step.yml isn't the file that was made: tasks, which run whatever they name",
        f"{ROLE}/files/{STATES_FILE} isn't the file that was made",
        f"{ROLE}/files/foretold.json is missing",
        "ansible/more.yml isn't part of the plan: a playbook, which runs whatever it names",
        "planner restart writes the files of a restart.json again",
    ):
        assert line in text


def test_the_operators_own_files_are_listed_or_refused(planner: Run, folder: Path) -> None:
    """Variables of the operator can't be checked: they are listed, and with --strict refused."""
    (folder / "ansible" / "group_vars").mkdir()
    (folder / "ansible" / "group_vars" / "all.yml").write_text("kafka_reassign_from_step: 2\n")
    assert "not checked: 1 of the folder's files are your own" in planner("check", str(folder)).out
    assert "contains files of your own, which can't be checked (--strict)" in said(
        planner("check", str(folder), "--strict")
    )


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"at_most": null', '"at_most": 1', "restart_id doesn't fit the content: the restart was changed after it was"),
        ('"at_most": null', '"at_most": 0', "$.at_most is 0; allowed: at least 1"),
        ('"at_most"', '"most"', "$.most is unknown; allowed: format_version, planner_version, restart_id"),
        ('"1.2"', '"1.0"', "was made by an earlier planner (format 1.0); make the restart again with planner restart"),
        ('"1.2"', '"9.0"', "was made by a newer planner (format 9.0)"),
        ("{", "[", "can't be read as a restart"),
    ],
)
def test_a_changed_restart_is_refused(planner: Run, folder: Path, old: str, new: str, why: str) -> None:
    """A restart.json that was edited, or has another format, is refused with its reason."""
    (folder / RESTART_FILE).write_text((folder / RESTART_FILE).read_text().replace(old, new, 1))
    assert why in said(planner("check", str(folder)))


def test_a_restart_that_was_not_approved_is_refused(planner: Run, folder: Path) -> None:
    """A restart with another id than the approved one is refused."""
    assert f"approved was {'0' * 64}" in said(planner("check", str(folder), "--plan-id", "0" * 64))


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--bound",), "--bound is for plans, and "),
        (("--strict-state",), "--strict-state is for plans, and "),
        (("--now", "2026-01-01T00:00:00Z"), "--now is for plans, and "),
        (("--state", "."), "restart.yml compares the cluster with the steps before anything restarts"),
    ],
)
def test_options_that_are_for_plans(planner: Run, folder: Path, option: tuple[str, ...], why: str) -> None:
    """Options that only plans have, for example --bound and --now, are refused with a reason."""
    assert why in said(planner("check", str(folder), *option))


def test_what_machines_read_has_the_shape_of_its_schema(planner: Run, folder: Path) -> None:
    """restart.json fits its schema; so does the JSON that check prints, whether it approves or refuses."""
    schema = json.loads((ROOT / "schemas" / "restart.schema.json").read_text())
    checks = json.loads((ROOT / "schemas" / "plan-check.schema.json").read_text())
    assert [] == [*Draft202012Validator(schema).iter_errors(json.loads((folder / RESTART_FILE).read_text()))]
    found = [json.loads(planner("check", str(folder), "--format", "json").out)]
    (folder / "report.md").write_text("All is well.\n")
    found.append(json.loads(planner("check", str(folder), "--format", "json").out))
    assert [True, False] == [each["approved"] for each in found]
    assert [] == [error.message for each in found for error in Draft202012Validator(checks).iter_errors(each)]


def test_the_schema_is_made_from_the_types() -> None:
    """The schema of restart.json describes each property in a sentence."""
    whole = plan_schemas.schema(RestartDocument)
    Draft202012Validator.check_schema(whole)
    parts = [whole, *whole["$defs"].values()]
    named = [(name, value) for part in parts for name, value in part["properties"].items()]
    assert [] == [name for name, value in named if not ("$ref" in value or value.get("description", "").endswith("."))]
