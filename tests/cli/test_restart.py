"""`planner restart` from start to end: what it prints, the folder it writes, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
import yaml
from click.testing import CliRunner
from folders import ROOT, TESTS

from planner.cli.commands import commands
from planner.cli.main import main
from planner.model.errors import SetupError

DATA = TESTS / "data" / "restart"
EXPAND = ROOT / "examples" / "expand.yaml"


def run(*arguments):
    """What `planner restart` prints on stdout; its errors are raised."""
    ended = CliRunner().invoke(commands, ["restart", *map(str, arguments)], standalone_mode=False)
    if ended.exception:
        raise ended.exception
    return ended.stdout


@pytest.fixture
def spec(tmp_path):
    """A cluster with shared racks, a single replica, an ISR that has shrunk, and an unknown value."""
    path = tmp_path / "spec.yaml"
    path.write_bytes((TESTS / "data" / "failures" / "spec.yaml").read_bytes())
    return path


@pytest.mark.parametrize(("form", "ending"), [("text", "txt"), ("markdown", "md"), ("json", "json")])
def test_what_is_printed(spec, form, ending, request):
    """The output is the golden file, byte for byte."""
    shown = run(spec, "--format", form)
    if form == "json":
        shown = json.dumps(json.loads(shown), indent=1, sort_keys=True) + "\n"
    golden = DATA / f"restart.{ending}"
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)

    assert golden.read_text() == shown


def test_the_folder_is_listed_whole_and_the_same_each_time(tmp_path):
    """SHA256SUMS lists all other files, and a second run replaces the folder with the same bytes."""
    out = tmp_path / "a.restart"
    shown = run(EXPAND, "-o", out)
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    listed = re.findall(r"^(\S+)  (\S+)$", files.pop("SHA256SUMS").decode(), re.MULTILINE)
    run(EXPAND, "-o", out)

    assert {path: digest for digest, path in listed} == {
        path: hashlib.sha256(content).hexdigest() for path, content in files.items()
    }
    assert all((out / path).read_bytes() == content for path, content in files.items())
    assert shown == run(EXPAND)
    assert json.loads(files["restart.json"]) == json.loads(run(EXPAND, "--format", "json"))
    assert "| 2 | `r1` | 2 | 13 | 1 | 1 | 16 | 16 |" in files["report.md"].decode()


def test_each_setting_of_the_playbook_is_specified(tmp_path):
    """Each default of the role has an argument specification with its type."""
    out = tmp_path / "a.restart"
    run(EXPAND, "-o", out)
    role = out / "ansible" / "roles" / "kafka_reassign"
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text().replace("!unsafe ", ""))
    specified = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]

    assert {key: type(value).__name__ for key, value in defaults.items()} == {
        key: option["type"] for key, option in specified.items()
    }


def test_another_folder_is_not_replaced(tmp_path):
    """A folder that isn't a restart's, for example a plan's, isn't replaced."""
    (tmp_path / "some.plan").mkdir()
    (tmp_path / "some.plan" / "plan.json").write_text('{"format_version": "2.0", "plan_id": "x"}')

    with pytest.raises(SetupError, match="isn't empty and holds no restart that planner wrote; name a new folder"):
        run(EXPAND, "-o", tmp_path / "some.plan")


@pytest.mark.parametrize(
    ("options", "code"), [((), 0), (("--detailed-exitcode",), 2), (("--at-most", "1", "--detailed-exitcode"), 2)]
)
def test_the_exit_code_says_whether_producers_notice(options, code):
    """With --detailed-exitcode the exit code is 2 if producers notice the restart."""
    with pytest.raises(SystemExit) as ended:
        main(["restart", str(EXPAND), *options])

    assert code == ended.value.code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((str(EXPAND), "--at-most", "0"), "Invalid value for '--at-most': 0 is not in the range x>=1."),
        (("nowhere.yaml",), "nowhere.yaml: "),
    ],
)
def test_what_makes_no_sense_is_refused(options, said, capsys):
    """A wrong option exits with 1, and stderr names it."""
    with pytest.raises(SystemExit) as ended:
        main(["restart", *options])

    assert 1 == ended.value.code
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_spec_that_is_wrong_is_refused_by_line_and_key(spec, capsys):
    """A fault in the spec is refused with its line, key and what is allowed."""
    spec.write_text(spec.read_text().replace("min.insync.replicas: 2", "min.insync.replicas: two"))
    with pytest.raises(SystemExit) as ended:
        main(["restart", str(spec)])

    assert 1 == ended.value.code
    assert re.search(r"spec\.yaml:\d+:\d+: cluster\.topics\[0\]\.config.*'two'.*allowed: ", capsys.readouterr().err)
