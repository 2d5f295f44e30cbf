"""The README is what a newcomer pastes and reads: its commands are CI's, its screen is the program's own."""

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
    """The lines to paste: set up and plan, then set up and test."""
    return re.findall(r"^(?:python3 -m venv|\.venv/bin/pip install).*$", README, re.MULTILINE)


def test_ci_runs_the_readmes_own_commands():
    """Nothing more clever than what a newcomer types."""
    ci = (ROOT / ".ci" / "run").read_text()

    assert 2 == len(commands())
    assert commands() == [line for line in ci.splitlines() if ".venv/bin/" in line]


def test_ci_installs_what_debian_has_of_the_tools_and_lets_nothing_be_missing():
    """What a skipped test tells a person to type, as far as it is apt's."""
    ci = (ROOT / ".ci" / "run").read_text()
    told = [tool.install.removeprefix(APT) for needed in NEEDED.values() for tool in needed if APT in tool.install]
    installed = re.search(r"^apt-get .* install -y -q (.*)$", ci, re.MULTILINE)[1]

    assert set(" ".join(told).split()) == set(installed.split())
    assert "\nexport CI=1 " in ci


def test_the_yaml_shown_is_the_examples():
    """Every line of the README's YAML but its comments stands in the example."""
    shown = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)[1]
    example = (ROOT / "examples" / "expand.yaml").read_text()

    assert all(line in example for line in shown.splitlines() if not line.strip().startswith("#"))


@pytest.mark.spark
def test_the_screen_shown_is_what_the_command_prints():
    """The first screen's output and the picture, byte for byte, from the first command and its default engine."""
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "whatif", "examples/expand.yaml"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert ran.stdout.rstrip("\n") in README
    drawn = (ROOT / "examples" / "expand.plan" / "plots" / "front.svg").read_text()
    assert drawn == (ROOT / "docs" / "pictures" / "expand-front.svg").read_text()


def test_the_first_page_is_short():
    """What to know before the first command, and links to the rest."""
    assert len((ROOT / "README.md").read_bytes()) <= 8_192


def test_every_command_named_exists():
    """No command is promised that isn't there."""
    named = set(re.findall(r"`planner ([a-z]+)", README))

    assert named <= set(COMMANDS)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_leads_somewhere(page):
    """Links into the checkout."""
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert (ROOT / link).exists(), link
