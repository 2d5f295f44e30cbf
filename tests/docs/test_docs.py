"""docs/ describes the real program: reference pages come from the schemas, and shown commands are run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from docs_pages import ROOT, commands, missing
from reference_pages import plan_page, spec_page
from resident_planner import resident

from planner.cli.commands import command as planner_command

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
# The allowed comments of blocks. tests/kafka/test_docs_on_a_cluster.py runs those with `on a cluster`.
RUN_BY = {"everywhere", "on a cluster", "by hand where there is conda", "by hand where there is a webhook"}
REFERENCE = {"yaml.md": spec_page, "plan-json.md": plan_page}


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_page_is_made_from_its_schema(name, request):
    """The reference page has every key of its schema; `--update-goldens` writes it again."""
    made = REFERENCE[name]()
    if request.config.getoption("--update-goldens"):
        (DOCS / name).write_text(made, encoding="utf-8")

    assert (DOCS / name).read_text(encoding="utf-8") == made


def test_the_annotated_example_has_every_section_and_is_valid():
    """The example has each top-level key except for two, which its last line explains."""
    path = ROOT / "examples" / "annotated" / "every-section.yaml"
    ran = CliRunner().invoke(planner_command("validate"), [str(path)])
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema = json.loads((ROOT / "schemas" / "spec.schema.json").read_text(encoding="utf-8"))

    assert {"rack_aware", "budget"} == set(schema["properties"]) - set(written)
    assert (0, f"{path}: valid\n") == (ran.exit_code, ran.stdout)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder with the `planner` that the pages' commands call."""
    with resident(tmp_path_factory.mktemp("planner")) as folder:
        yield folder


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that the pages' commands use."""
    for name in ("examples", "tests/data", "README.md"):
        source, copy = ROOT / name, tmp_path / "clone" / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.plan", "run"))
        else:
            shutil.copy(source, copy)
    return tmp_path / "clone"


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_each_command_of_a_page_does_what_the_page_shows(page, programs, checkout):
    """The page's commands succeed in a shell, in order, and their output has every line that the page shows."""
    for command in commands(page):
        if command.where == "everywhere":
            ran = _typed(command.script, checkout, programs)
            assert 0 == ran.returncode, f"{command.script}{ran.stdout}{ran.stderr}"
            assert [] == missing(command, ran.stdout + ran.stderr), ran.stdout + ran.stderr


def test_each_block_says_where_it_runs_in_words_that_tests_know():
    """Every block of commands has a known comment, so that a test runs it or it says why not."""
    assert {"everywhere"} <= {command.where for page in PAGES for command in commands(page)} <= RUN_BY


def test_each_link_of_a_page_leads_somewhere():
    """Every link to a file inside the checkout leads to a file."""
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_first_page_names_every_page():
    """docs/README.md links to every page."""
    index = (DOCS / "README.md").read_text(encoding="utf-8")

    assert [] == [
        page.name for page in PAGES if page.name not in ("README.md", "index.md") and f"({page.name})" not in index
    ]


def _typed(script: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"])))
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
