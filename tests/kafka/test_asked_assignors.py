"""Kafka's own server-side assignors give the answers with which the quick tests compare this project's.

`ServerAssignors.java` draws groups at random, the same ones each time, and prints what Kafka's classes assign. Its
output is tests/data/server-assignments.json.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from folders import ROOT
from tools import JDK, lacking

pytestmark = pytest.mark.kafka
GROUPS = 75


def test_kafkas_classes_still_give_the_vectors(folder_with_jars):
    """Kafka's classes give exactly the committed answers."""
    if not JDK.is_here():
        lacking(JDK.lack)
    program = Path(__file__).with_name("ServerAssignors.java")
    asked = ["java", "-cp", f"{folder_with_jars('assignors') / 'libs'}/*", str(program), str(GROUPS)]

    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "tests" / "data" / "server-assignments.json").read_text() == found
