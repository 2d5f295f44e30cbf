"""Signals stop the work and end the processes that it started; freed memory is kept for reuse."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import signalled_commands
from folders import ROOT
from rich.console import Console

from planner.cli.whatif_fleet import WhatifOptions, whatif
from planner.model import interrupts
from planner.model.interrupts import Interrupted, delayed_signals, interruptible, pending


@pytest.fixture(autouse=True)
def _own_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal ends all sessions that this process started; here only those of the test, not the shared Spark's."""
    monkeypatch.setattr(interrupts, "_sessions", set())


def test_a_signal_is_raised_once_and_counted_as_shells_do() -> None:
    """The first signal raises Interrupted and sets the exit code 128 + number; later signals change nothing."""
    before = signal.getsignal(signal.SIGTERM)
    with interruptible() as watch:
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert (143, True) == (watch.exit_code, pending())
    assert before == signal.getsignal(signal.SIGTERM)
    assert not pending()


def test_a_step_that_must_be_whole_ends_first() -> None:
    """A signal during a delayed step is raised after the step."""
    steps = []

    def whole() -> None:
        with delayed_signals():
            signal.raise_signal(signal.SIGINT)
            steps.append("done")

    with interruptible(), pytest.raises(Interrupted):
        whole()
    assert ["done"] == steps


def test_a_signal_that_was_ignored_stays_so() -> None:
    """A signal that was ignored before stays ignored, as nohup asks for SIGHUP and a shell for background SIGINT."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def run(code: str, number: int) -> tuple[int, str]:
    """Exit code and stderr of a program that gets this signal after it has printed "ready"."""
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
from planner.model.interrupts import interruptible
with interruptible() as watch:
    while True:
        try:
            print("ready", flush=True)
            time.sleep(60)
        except BaseException:
            pass
"""


@pytest.mark.slow
def test_a_library_that_swallows_the_exception_can_not_go_on_for_ever() -> None:
    """If a library swallows the exception, another thread ends the process with a signal's line and exit code."""
    assert (129, "planner: interrupted (SIGHUP); nothing is left half-written\n") == run(SWALLOWS, signal.SIGHUP)


FAILS = """
from planner.cli import main
def commands():
    print("ready", flush=True)
    try:
        import time; time.sleep(60)
    finally:
        raise RuntimeError("the connection has gone")
main._commands = commands
main.main()
"""


def test_what_fails_on_the_way_out_is_not_told() -> None:
    """An error while the program ends isn't shown, because the signal causes it."""
    assert (130, "planner: interrupted (SIGINT); nothing is left half-written\n") == run(FAILS, signal.SIGINT)


# The files that a command reads, the command, and the maximum number of its writing steps to interrupt.
COMMANDS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "import": (("state",), "import state -o cluster.yaml", 9),
    "import of much": (("state", "many.txt"), "import state many.txt -o cluster.yaml", 16),
    "growth": (("state", "grows.yaml"), "growth grows.yaml --engine local", 0),
    "failures": (("state", "expand.yaml"), "failures expand.yaml --of 2 --engine local --rows rows.parquet", 9),
    "consumers": (("state", "consumers"), "consumers consumers/consumers.yaml --sweep --engine local", 0),
    "place": (
        (),
        "place --brokers 1,2,3 --start-index 0 --next-replica-shift 0 --partitions 9 --replication-factor 3",
        0,
    ),
    "seeds": (("state",), "seeds state/six-brokers/topics-describe.txt", 0),
    "render": (("a.plan",), "render a.plan --out b.plan", 5),
    "resume over a plan": (("state", "a.plan", "b.plan"), "resume a.plan --state state/six-brokers --out b.plan", 5),
    "check": (("state", "a.plan"), "check a.plan --state state/six-brokers", 0),
    "show": (("a.plan",), "show a.plan --format markdown", 0),
    "diff": (("a.plan",), "diff a.plan a.plan", 0),
    "fleet": (
        ("state", "expand.yaml", "leaders-only.yaml"),
        "whatif expand.yaml leaders-only.yaml --out plans --engine local --candidates 2",
        2,
    ),
    "bench": (("measured",), "bench --exact 1 --out measured", 3),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' state, specs and plans, and a topic that is too large to be written into the YAML itself."""
    made = tmp_path_factory.mktemp("inputs")
    shutil.copytree(ROOT / "examples" / "state", made / "state")
    shutil.rmtree(made / "state" / "seeds")
    shutil.rmtree(made / "state" / "log-dirs")
    shutil.copytree(ROOT / "examples" / "consumers", made / "consumers")
    shutil.copy2(ROOT / "examples" / "leaders-only.yaml", made)
    (made / "measured").mkdir()
    spec = (ROOT / "examples" / "expand.yaml").read_text(encoding="utf-8")
    (made / "expand.yaml").write_text(spec, encoding="utf-8")
    (made / "grows.yaml").write_text(f'{spec}growth: [{{topics: "*", per_month: "8%"}}]\n', encoding="utf-8")
    rows = "".join(f"\tTopic: many\tPartition: {at}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n" for at in range(2_100))
    (made / "many.txt").write_text(f"Topic: many\tPartitionCount: 2100\tReplicationFactor: 2\n{rows}", encoding="utf-8")
    whatif(
        made / "expand.yaml", WhatifOptions(out=made / "a.plan", engine="local", candidates=4), Console(file=StringIO())
    )
    shutil.copytree(made / "a.plan", made / "b.plan")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_interrupted_at_any_moment(name: str, inputs: Path, tmp_path: Path) -> None:
    """A command interrupted at any moment prints one line, and leaves no process and nothing half-written."""
    reads, typed, steps = COMMANDS[name]
    for path in reads:
        (shutil.copytree if (inputs / path).is_dir() else shutil.copy2)(inputs / path, tmp_path / path)
    number = signal.SIGTERM if len(name) % 2 else signal.SIGINT
    whole, *interrupted = signalled(tmp_path, number, steps, typed)
    assert 0 == whole["code"], whole["said"]
    line = f"planner: interrupted ({number.name}); {interrupts._NOTHING_LEFT}"
    before, after = signalled_commands.digests(tmp_path), whole["files"]
    parts = by_folder({*before, *after}) if name == "fleet" else [{*before, *after}]
    assert len(interrupted) > 1
    for each in interrupted:
        assert (128 + number, line) == (each["code"], each["said"].removeprefix(whole["said"]).rstrip("\n")), each
        assert ([], []) == (each["left"], each["running"]), each
        for part in parts:
            now, then, done = (same(only(files, part), name) for files in (each["files"], before, after))
            assert now in (then, done), each
            assert each["files"].keys() <= before.keys() | after.keys()


def signalled(folder: Path, number: int, steps: int, typed: str) -> list[dict[str, Any]]:
    """How a command ends without a signal, and with a signal at each moment."""
    command = [sys.executable, signalled_commands.__file__, folder, str(int(number)), str(steps), *typed.split()]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def by_folder(paths: set[str]) -> list[set[str]]:
    """The paths of a fleet, grouped by plan folder."""
    folders = {path for path in paths if path.startswith("plans/") and path.count("/") == 1}
    assert len(folders) == 2
    return [{path for path in paths if path.startswith(folder)} for folder in sorted(folders)]


def only(files: dict[str, str], paths: set[str]) -> dict[str, str]:
    """The files at these paths."""
    return {path: digest for path, digest in files.items() if path in paths}


def same(files: dict[str, str], name: str) -> dict[str, str]:
    """What is compared: for the benchmark only names, because its measured seconds differ."""
    return dict.fromkeys(files, "") if name == "bench" else files


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["click", "numpy", "ortools"])
def test_whatif_can_be_interrupted_in_any_phase(phase: str, tmp_path: Path) -> None:
    """Interrupted during imports or the sweep, whatif prints one line, exits with 130 and writes nothing."""
    example = ROOT / "examples" / "expand.yaml"
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
    assert (130, "", f"planner: interrupted (SIGINT); {interrupts._NOTHING_LEFT}\n") == (
        ran.returncode,
        ran.stdout,
        ran.stderr,
    )
    assert [] == list(tmp_path.iterdir())


TWO_MORE = "sleep 60 & echo $!; (sleep 60 & echo $!) ; exec sleep 60"


@pytest.fixture
def session() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that leads a session, and two more in it: its child, and an orphan."""
    leader = subprocess.Popen(["/bin/sh", "-c", TWO_MORE], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert leader.stdout is not None
    others = [int(leader.stdout.readline()) for _ in range(2)]
    yield leader, others
    for pid in (leader.pid, *others):
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
    leader.stdout.close()


def runs(pid: int) -> bool:
    """True if the process exists and isn't a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_all_processes_of_a_session_are_ended(session: tuple[subprocess.Popen[str], list[int]]) -> None:
    """All processes of an owned session are ended, orphans included."""
    leader, others = session
    interrupts.remember_session(leader.pid)
    interrupts.end_all()
    assert [] == [pid for pid in (leader.pid, *others) if runs(pid)]


def test_those_of_another_session_go_on(session: tuple[subprocess.Popen[str], list[int]]) -> None:
    """Processes of other sessions aren't killed; an ended session is forgotten, because its id may be reused."""
    leader, others = session
    assert not interrupts.kill_all()
    interrupts.remember_session(os.getpid() + 10**7)
    interrupts.end_all()
    assert [leader.pid, *others] == [pid for pid in (leader.pid, *others) if runs(pid)]
    assert set() == interrupts._sessions


def test_who_has_not_begun_its_session_yet_is_ended_too() -> None:
    """An owned process is ended even before it has begun its own session."""
    late = subprocess.Popen(["/bin/sh", "-c", "exec sleep 60"])
    assert os.getsid(late.pid) == os.getsid(0)
    interrupts.remember_session(late.pid)
    interrupts.end_all()
    assert not runs(late.pid)
    late.wait()


def test_a_system_without_proc_is_asked_by_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without /proc, ps lists the processes, as on macOS, with ids aligned to the right."""
    ps = tmp_path / "ps"
    ps.write_text("#!/bin/sh\n[ \"$*\" = '-axo pid=' ] && printf '    1\\n  345\\n99999\\n'\n")
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(interrupts, "Path", lambda _: Path("/nowhere"))
    assert [1, 345, 99999] == list(interrupts._process_ids())


# Like a sweep: arrays of some hundred kilobytes, several at a time, many times.
CHURN = """
import resource, sys
import numpy as np
from planner.model import interrupts
if "keep" in sys.argv:
    interrupts.keep_freed_memory()
def churn(times):
    for _ in range(times):
        several = [np.ones(60_000) for _ in range(8)]
churn(3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
churn(50)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# With another C library only the rest must work.
GLIBC = platform.libc_ver()[0] == "glibc"


def page_faults(*words: str, **environment: str) -> int:
    """The page faults of CHURN in its own process."""
    command = [sys.executable, "-c", CHURN, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return int(ran.stdout)


@pytest.mark.slow
def test_freed_memory_is_kept_for_the_next_array() -> None:
    """With `keep_freed_memory`, freed memory is reused, with less than a tenth of the page faults."""
    assert GLIBC == interrupts.keep_freed_memory()
    assert page_faults("keep") < page_faults() / 10 or not GLIBC


def test_processes_that_others_start_are_told_by_their_environment() -> None:
    """Spark's workers don't call our code at their start, so environment variables do the same for them."""
    assert page_faults(**interrupts.ENVIRONMENT) < page_faults() / 10 or not GLIBC


def test_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another C library, which lacks the function, nothing is changed."""
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not interrupts.keep_freed_memory()


def test_a_folder_in_which_a_process_still_writes_is_removed_later(monkeypatch, tmp_path) -> None:
    """What couldn't be removed at the end of the block stays remembered, so that it is removed with the processes."""
    monkeypatch.setattr(interrupts, "_folders", set())
    monkeypatch.setattr(interrupts.tempfile, "tempdir", str(tmp_path))
    with interrupts.temporary_folder("x-") as removed:
        assert removed.is_dir()
    assert (False, set()) == (removed.exists(), interrupts._folders)
    monkeypatch.setattr(interrupts.tempfile, "TemporaryDirectory", lambda **_: nullcontext(str(tmp_path)))
    with interrupts.temporary_folder("x-"):
        pass
    assert {str(tmp_path)} == interrupts._folders
