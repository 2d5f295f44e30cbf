"""The wheel works without the checkout, because it includes the templates and schemas."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from folders import ROOT

pytestmark = pytest.mark.house


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the unpacked wheel, without the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def test_an_installed_wheel_plans_from_another_folder(installed, tmp_path):
    """`planner whatif` from the unpacked wheel writes a plan when it runs in another folder."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from planner.cli.main import main; main()"
    spec, out = ROOT / "examples" / "expand.yaml", tmp_path / "plan"
    arguments = ["whatif", str(spec), "--out", str(out), "--engine", "local", "--candidates", "50"]
    command = [sys.executable, "-P", "-c", code, str(installed), *arguments]

    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})

    assert (0, "") == (ran.returncode, ran.stderr)
    assert (out / "ansible" / "apply.yml").exists()


def test_the_wheel_holds_the_templates_and_schemas(installed):
    """The templates and schemas are outside of the package in the checkout, but inside of it in the wheel."""
    for folder in ("templates", "schemas"):
        ours = {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file()}
        theirs = {
            path.relative_to(installed / "planner" / "_data" / folder)
            for path in (installed / "planner" / "_data" / folder).rglob("*")
            if path.is_file()
        }

        assert ours == theirs
