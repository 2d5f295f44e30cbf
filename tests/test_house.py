"""The house style that tools can check: lint, format, types."""

from __future__ import annotations

import subprocess
import sys

import pytest
from folders import ROOT

pytestmark = pytest.mark.house


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=lambda command: " ".join(command),
)
def test_tools_find_nothing(command):
    """The commands of CONTRIBUTING.md end with nothing to say."""
    ran = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)

    assert 0 == ran.returncode, ran.stdout + ran.stderr
