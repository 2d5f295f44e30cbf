"""The README is right for newcomers: CI runs its commands, and its shown output is the program's own."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from folders import ROOT
from tools import NEEDED

from planner.cli.commands import COMMANDS

APT = "apt-get install -y "
README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """The command lines to paste: those that plan, and those that test."""
    return re.findall(r"^(?:python3 -m venv|\.venv/bin/pip install).*$", README, re.MULTILINE)


def test_ci_runs_the_readmes_own_commands():
    """CI runs exactly the README's commands."""
    ci = (ROOT / ".ci" / "run").read_text()

    assert 2 == len(commands())
    assert commands() == [line for line in ci.splitlines() if ".venv/bin/" in line]


def test_ci_installs_what_debian_has_of_the_tools_and_lets_nothing_be_missing():
    """CI installs all tools that skipped tests name with apt, and sets CI=1, so that none may be missing."""
    ci = (ROOT / ".ci" / "run").read_text()
    told = [tool.install.removeprefix(APT) for needed in NEEDED.values() for tool in needed if APT in tool.install]
    installed = re.search(r"^apt-get .* install -y -q (.*)$", ci, re.MULTILINE)[1]

    assert set(" ".join(told).split()) == set(installed.split())
    assert "\nexport CI=1 " in ci


def test_the_yaml_shown_is_the_examples():
    """Every line of the README's YAML is in the example, except for comments."""
    shown = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)[1]
    example = (ROOT / "examples" / "expand.yaml").read_text()

    assert all(line in example for line in shown.splitlines() if not line.strip().startswith("#"))


@pytest.mark.spark
def test_the_screen_shown_is_what_the_command_prints():
    """The first command, with its default engine, gives the README's output and picture byte for byte."""
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "whatif", "examples/expand.yaml"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert ran.stdout.rstrip("\n") in README
    drawn = (ROOT / "examples" / "expand.plan" / "plots" / "front.svg").read_text()
    assert drawn == (ROOT / "docs" / "pictures" / "expand-front.svg").read_text()


def test_the_first_page_is_short():
    """The README is at most 8 KiB long."""
    assert len((ROOT / "README.md").read_bytes()) <= 8_192


def test_every_command_named_exists():
    """Every command that the README names exists."""
    named = set(re.findall(r"`planner ([a-z]+)", README))

    assert named <= set(COMMANDS)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_leads_somewhere(page):
    """Every link into the checkout leads to a file."""
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert (ROOT / link).exists(), link
