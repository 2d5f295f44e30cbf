"""The site that is built from docs/, and the error messages that its troubleshooting page explains."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import ROOT


@pytest.mark.docs
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Sphinx builds the site without a warning: all pages are in the contents and all links are right."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert "Ready to apply" in (tmp_path / "tutorial.html").read_text(encoding="utf-8")


def _messages() -> list[str]:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    return re.findall(r"^\| \*\*(.+)\*\* \|", page, re.MULTILINE)


def test_twenty_messages_are_explained() -> None:
    """The page explains at least twenty messages."""
    assert len(_messages()) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("message", _messages())
def test_an_explained_message_is_one_of_the_program_s(message: str) -> None:
    """Each part of an explained message is in the sources or in a playbook."""
    sources = [*ROOT.glob("planner/**/*.py"), *ROOT.glob("spark_jobs/*.py"), *ROOT.glob("templates/**/*.yml*")]
    sources += ROOT.glob("templates/**/*.py")
    text = " ".join(" ".join(each.read_text(encoding="utf-8").split()) for each in sources)
    # In the sources, long messages span several lines.
    text = re.sub(r'" f?"', "", text)

    assert [] == [part for part in message.split("…") if part.strip() not in text]
