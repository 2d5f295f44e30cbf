"""`planner size` from start to end: what it prints, the spec it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner
from folders import ROOT, TESTS

from planner.cli.commands import commands
from planner.cli.main import main
from planner.inputs.spec.reading import load

SPEC, DATA = ROOT / "examples" / "sizing" / "orders.yaml", TESTS / "data" / "sizing"


@pytest.fixture
def example(tmp_path):
    """A copy of the example, beside which files can be written."""
    shutil.copytree(SPEC.parent, tmp_path / "sizing")
    shutil.copytree(ROOT / "examples" / "state", tmp_path / "state")
    return tmp_path / "sizing" / SPEC.name


@pytest.mark.slow
@pytest.mark.parametrize(("form", "file"), [("text", "size.txt"), ("markdown", "size.md"), ("json", "size.json")])
def test_what_is_printed(form, file, request):
    """The output is the golden file, byte for byte."""
    command = ["size", str(SPEC), "--engine", "local", "--format", form]
    ended = CliRunner().invoke(commands, command, standalone_mode=False)
    if ended.exception:
        raise ended.exception
    shown = ended.stdout if form != "json" else json.dumps(json.loads(ended.stdout), indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--update-goldens"):
        DATA.mkdir(exist_ok=True)
        (DATA / file).write_text(shown)

    assert (DATA / file).read_text() == shown
    assert "next: planner size" in ended.stderr


def test_a_row_becomes_a_spec(example):
    """A row becomes a spec with its brokers in `changes`; the cluster stays as it was."""
    out = example.parent / "of eight.yaml"
    ended = CliRunner().invoke(commands, ["size", str(example), "--row", "8", "-o", str(out)])
    assert (0, True) == (ended.exit_code, ended.stderr.endswith(f"next: planner whatif '{out}'\n"))
    made, before = load(out), load(example)
    assert (before.cluster, None) == (made.cluster, made.sizing)
    assert [*range(7, 16)] == [broker.id for broker in made.changes.add_brokers]
    assert 850_000 == made.limits.disk_used_ppm
    assert "warning" not in ended.stderr
    short = CliRunner().invoke(commands, ["size", str(example), "--row", "1", "-o", str(out)])
    assert short.stderr.startswith("warning: number 1 lasts until month 1: disk, broker 1\n")


def refused(capsys, *command):
    """What a command prints on stderr; its exit code is 1."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, command)))
    assert 1 == ended.value.code
    return " ".join(capsys.readouterr().err.split())


def test_what_is_refused(example, capsys):
    """Wrong options and a spec without `sizing` are refused, and nothing is written."""
    out = example.parent / "out.yaml"
    assert "there is no such cluster; allowed: 1 to 15" in refused(capsys, "size", example, "--row", 99, "-o", out)
    other = example.parent.parent / "out.yaml"
    assert "whose paths are relative; allowed" in refused(capsys, "size", example, "--row", 1, "-o", other)
    assert "--row and --output go together" in refused(capsys, "size", example, "--row", 1)
    assert "allowed: without --row" in refused(capsys, "size", example, "--row", 1, "-o", out, "--html", "page.html")
    assert "isn't a folder; allowed: a file in" in refused(capsys, "size", example, "--html", out / "page.html")
    assert "is a folder; allowed: a file" in refused(capsys, "size", example, "--html", "")
    expand = ROOT / "examples" / "expand.yaml"
    assert f"{expand}: the key sizing is missing; allowed: sizing, with" in refused(
        capsys, "size", expand, "--engine", "local"
    )
    assert "allowed: --engine spark" in refused(capsys, "size", example, "--engine", "local", "--partitions", 2)
    assert not out.exists()
    assert not other.exists()


def test_a_spec_that_somebody_has_worked_on_is_not_replaced(example, capsys):
    """A written spec is replaced for another row, unless somebody edited it."""
    out = example.parent / "out.yaml"
    for row in (8, 1):
        main_row = ["size", str(example), "--row", str(row), "-o", str(out)]
        assert 0 == CliRunner().invoke(commands, main_row).exit_code
    for mine in ("version: 1\n", out.read_text() + "# mine\n"):
        out.write_text(mine)
        assert "out.yaml: isn't what planner size of " in refused(capsys, "size", example, "--row", 8, "-o", out)
        assert mine == out.read_text()


@pytest.mark.parametrize("options", [("--html",), ("--row", 1, "-o")])
def test_what_is_read_is_no_output(example, capsys, options):
    """Neither a page nor the spec of a row can replace an input file."""
    for read in (example.name, *(each.path for each in load(example).inputs)):
        before = (example.parent / read).read_bytes()
        said = refused(capsys, "size", example, *options, example.parent / ".." / "sizing" / read)
        # A row's spec must be beside the original spec, and the state is elsewhere.
        assert "is read, and would be changed; allowed: a file elsewhere" in said or "isn't beside" in said
        assert before == (example.parent / read).read_bytes()


def test_a_page_replaces_no_file_of_another_kind(example, capsys):
    """A page doesn't replace a file that isn't a page."""
    other = example.parent / "other.yaml"
    other.write_text("version: 1\n")
    assert "isn't a page; allowed: a new file, or a page" in refused(capsys, "size", example, "--html", other)
    assert "version: 1\n" == other.read_text()


@pytest.mark.slow
def test_a_page_is_written_too(example):
    """--html writes a page with its plot."""
    page = example.parent / "sizes.html"
    assert 0 == CliRunner().invoke(commands, ["size", str(example), "--engine", "local", "--html", str(page)]).exit_code
    assert "Money against headroom and bytes" in page.read_text()
