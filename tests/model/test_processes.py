"""Processes in sessions of their own: all of a session end with it, and no others; freed memory is kept."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.model import processes

TWO_MORE = "sleep 60 & echo $!; (sleep 60 & echo $!) ; exec sleep 60"


@pytest.fixture(autouse=True)
def _own_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a test alone, not the run's one Spark."""
    monkeypatch.setattr(processes, "_sessions", set())


@pytest.fixture
def session() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that leads a session, and two more in it: a child, and one whose parent is dead."""
    leader = subprocess.Popen(["/bin/sh", "-c", TWO_MORE], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert leader.stdout is not None
    others = [int(leader.stdout.readline()) for _ in range(2)]
    yield leader, others
    for pid in (leader.pid, *others):
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
    leader.stdout.close()


def runs(pid: int) -> bool:
    """True for a process that is there and hasn't ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_all_processes_of_a_session_are_ended(session: tuple[subprocess.Popen[str], list[int]]) -> None:
    """Those as well whose parents are dead."""
    leader, others = session
    processes.own(leader.pid)
    processes.end_all()
    assert [] == [pid for pid in (leader.pid, *others) if runs(pid)]


def test_those_of_another_session_go_on(session: tuple[subprocess.Popen[str], list[int]]) -> None:
    """Nothing is killed that wasn't started here; once ended, a session is forgotten, as its number may come again."""
    leader, others = session
    assert not processes.kill_all()
    processes.own(os.getpid() + 10**7)
    processes.end_all()
    assert [leader.pid, *others] == [pid for pid in (leader.pid, *others) if runs(pid)]
    assert set() == processes._sessions


def test_who_has_not_begun_its_session_yet_is_ended_too() -> None:
    """A process is owned from its start, and begins its session a little later."""
    late = subprocess.Popen(["/bin/sh", "-c", "exec sleep 60"])
    assert os.getsid(late.pid) == os.getsid(0)
    processes.own(late.pid)
    processes.end_all()
    assert not runs(late.pid)
    late.wait()


def test_a_system_without_proc_is_asked_by_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As macOS lists them: ids alone, set to the right."""
    ps = tmp_path / "ps"
    ps.write_text("#!/bin/sh\n[ \"$*\" = '-axo pid=' ] && printf '    1\\n  345\\n99999\\n'\n")
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(processes, "Path", lambda _: Path("/nowhere"))
    assert [1, 345, 99999] == list(processes._all())


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
