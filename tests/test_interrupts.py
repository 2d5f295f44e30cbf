"""Signals: one exception in the main thread, deferred where a step must be whole, and an end that nothing can stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner import interrupts, processes
from planner.interrupts import Interrupted, held, pending, watched


@pytest.fixture(autouse=True)
def _own_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal ends all sessions that this process has started: those of a test alone, not the run's one Spark."""
    monkeypatch.setattr(processes, "_sessions", set())


def test_a_signal_is_raised_once_and_counted_as_shells_do() -> None:
    """Later ones change nothing, whatever they are."""
    before = signal.getsignal(signal.SIGTERM)
    with watched() as watch:
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert (143, True) == (watch.exit_code, pending())
    assert before == signal.getsignal(signal.SIGTERM)
    assert not pending()


def test_a_step_that_must_be_whole_ends_first() -> None:
    """The signal is raised behind it."""
    steps = []

    def whole() -> None:
        with held():
            signal.raise_signal(signal.SIGINT)
            steps.append("done")

    with watched(), pytest.raises(Interrupted):
        whole()
    assert ["done"] == steps


def test_a_signal_that_was_ignored_stays_so() -> None:
    """As nohup asks for SIGHUP, and a shell for the SIGINT of what runs in the background."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with watched():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def run(code: str, number: int) -> tuple[int, str]:
    """Exit code and stderr of a program that prints a line when it is to get a signal."""
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert program.stdout is not None
    assert "ready\n" == program.stdout.readline()
    program.send_signal(number)
    _, said = program.communicate(timeout=30)
    return program.returncode, said


SWALLOWS = """
import time
from planner.interrupts import watched
with watched() as watch:
    while True:
        try:
            print("ready", flush=True)
            time.sleep(60)
        except BaseException:
            pass
"""


def test_a_library_that_swallows_the_exception_can_not_go_on_for_ever() -> None:
    """Another thread ends the process, with the line and the exit code of a signal."""
    assert (129, "planner: interrupted (SIGHUP); nothing is left half-written\n") == run(SWALLOWS, signal.SIGHUP)


FAILS = """
from planner.cli import main
def command(_):
    print("ready", flush=True)
    try:
        import time; time.sleep(60)
    finally:
        raise RuntimeError("the connection has gone")
main._command = command
main.main()
"""


def test_what_fails_on_the_way_out_is_not_told() -> None:
    """It fails because of the signal."""
    assert (130, "planner: interrupted (SIGINT); nothing is left half-written\n") == run(FAILS, signal.SIGINT)


def test_all_processes_of_a_session_are_ended() -> None:
    """Those as well whose parents are dead."""
    script = "sleep 60 & echo $!; (sleep 60 & echo $!) ; exec sleep 60"
    started = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None
    others = [int(started.stdout.readline()) for _ in range(2)]
    processes.own(started.pid)
    processes.end_all()
    assert [] == [pid for pid in (started.pid, *others) if runs(pid)]


def runs(pid: int) -> bool:
    """True for a process that is there and hasn't ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("phase", ["click", "numpy", "ortools"])
def test_whatif_can_be_interrupted_in_any_phase(phase: str, tmp_path: Path) -> None:
    """While modules are imported, and while candidates are swept: one line, exit code 130, nothing written."""
    example = Path(__file__).parent.parent / "examples" / "expand.yaml"
    code = (
        "import builtins, os, signal\n"
        "real = builtins.__import__\n"
        "def traced(name, *rest):\n"
        f"    if name.split('.')[0] == {phase!r}:\n"
        "        builtins.__import__ = real\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = traced\n"
        "from planner.cli.main import main\n"
        f"main(['whatif', {str(example)!r}, '--engine', 'local', '--candidates', '50', '--out', 'plan'])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (130, "", f"planner: interrupted (SIGINT); {interrupts._LEFT}\n") == (ran.returncode, ran.stdout, ran.stderr)
    assert [] == list(tmp_path.iterdir())
