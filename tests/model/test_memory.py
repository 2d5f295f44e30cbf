"""Freed memory is kept, where the C library lets us say so."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from planner.model import processes

# What a sweep does: arrays of some hundred kilobytes, several at a time, again and again.
CHURN = """
import resource, sys
import numpy as np
from planner.model import processes
if "keep" in sys.argv:
    processes.keep_freed()
def churn(times):
    for _ in range(times):
        several = [np.ones(60_000) for _ in range(8)]
churn(3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
churn(50)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# Other C libraries have other ways; there nothing is promised but that all goes on.
GLIBC = platform.libc_ver()[0] == "glibc"


def page_faults(*words: str, **environment: str) -> int:
    """Page faults of that churning in a process of its own."""
    command = [sys.executable, "-c", CHURN, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return int(ran.stdout)


def test_freed_memory_is_kept_for_the_next_array() -> None:
    """The system is asked for it once."""
    assert GLIBC == processes.keep_freed()
    assert page_faults("keep") < page_faults() / 10 or not GLIBC


def test_processes_that_others_start_are_told_by_their_environment() -> None:
    """Spark's workers call nothing of ours when they start."""
    assert page_faults(**processes.ENVIRONMENT) < page_faults() / 10 or not GLIBC


def test_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions have no such knob."""
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not processes.keep_freed()
