"""Ctrl-C, a signal or a killed JVM during a command on Spark gives one line, an exit code, and leaves no process."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from folders import ROOT

INTERRUPTED = "planner: interrupted (SIGINT); nothing is left half-written\n"
SOON_SECONDS = 15
Tree = dict[int, str]


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the name of every running process."""
    found = {}
    # This runs fifty times a second. With `Path`, it takes twice as long.
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                file = os.open(f"{entry.path}/stat", os.O_RDONLY)
            except OSError:
                continue
            with suppress(OSError):
                name, _, rest = os.read(file, 4096).decode(errors="replace").partition("(")[2].rpartition(")")
                state, parent, _ = rest.split(maxsplit=2)
                if state != "Z":
                    found[int(entry.name)] = (int(parent), name)
            os.close(file)
    return found


def descendants(root: int) -> Tree:
    """All processes that a process has started, directly or indirectly."""
    known, found = processes(), {root: ""}
    while more := {pid: name for pid, (parent, name) in known.items() if parent in found and pid not in found}:
        found |= more
    return {pid: name for pid, name in found.items() if pid != root}


def a_jvm_starts(tree: Tree) -> bool:
    """Spark's Java has started. Nothing else need be there yet."""
    return "java" in tree.values()


def a_worker_works(tree: Tree) -> bool:
    """The sweep has begun: Java has started the daemon of the Python workers, and the daemon has started a worker."""
    return sum(name.startswith("python") for name in tree.values()) >= 2


def act_when(planner: subprocess.Popen[str], phase: Callable[[Tree], bool], act: Callable[[Tree], None]) -> Tree:
    """Act once the phase has come. Return all processes seen. The command must end soon, else it is killed."""
    seen: Tree = {}
    while planner.poll() is None:
        tree = descendants(planner.pid)
        seen |= tree
        if phase(tree):
            act(tree)
            break
        time.sleep(0.02)
    try:
        planner.wait(SOON_SECONDS)
    except subprocess.TimeoutExpired:
        planner.kill()
    return seen


SWEEP = "whatif examples/expand.yaml --out {}/plan"
# With `--partitions`, workers do the work. Otherwise this process may finish first and end Spark.
LONG_SWEEP = f"{SWEEP} --candidates 10000000 --partitions 8"


def start(folder: Path, typed: str = SWEEP, **options: object) -> subprocess.Popen[str]:
    """Start a command on a local Spark in its own session. Its temporary files are in `folder`."""
    code = "import os, sys; os.chdir(sys.argv.pop(1)); from planner.cli.main import main; main()"
    command = [sys.executable, "-c", code, str(ROOT), *typed.format(folder).split()]
    environment = os.environ | {"TMPDIR": str(folder)}
    return subprocess.Popen(command, text=True, start_new_session=True, env=environment, **options)  # type: ignore[call-overload,no-any-return]


def assert_nothing_is_left(seen: Tree, folder: Path) -> None:
    """Assert that none of the seen processes and no file is left."""
    deadline = time.monotonic() + SOON_SECONDS
    while (left := seen.keys() & processes().keys()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert {} == {pid: seen[pid] for pid in left}
    assert [] == list(folder.iterdir())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("number", "typed"),
    [
        (signal.SIGINT, SWEEP),
        (signal.SIGTERM, SWEEP),
        (signal.SIGTERM, "growth examples/what-if.yaml --engine spark"),
        (signal.SIGINT, "failures examples/expand.yaml --of 2 --rows {}/rows.parquet"),
        (signal.SIGTERM, "consumers examples/consumers/consumers.yaml --sweep --engine spark"),
    ],
)
def test_a_signal_while_spark_starts(number: signal.Signals, typed: str, tmp_path: Path) -> None:
    """A signal while Spark starts kills the JVM and all that it has started."""
    planner = start(tmp_path, typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen = act_when(planner, a_jvm_starts, lambda _: planner.send_signal(number))
    out, said = planner.communicate(timeout=SOON_SECONDS)
    assert (128 + number, "", INTERRUPTED.replace("SIGINT", number.name)) == (planner.returncode, out, said)
    assert_nothing_is_left(seen, tmp_path)


@pytest.mark.spark
def test_ctrl_c_on_a_terminal_while_workers_work(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole foreground group. The terminal shows one line, whatever Java and Python print."""
    terminal, other = pty.openpty()
    log = (tmp_path / "said").open("w+", encoding="utf-8")
    (tmp_path / "run").mkdir()
    planner = start(tmp_path / "run", LONG_SWEEP, stdin=other, stdout=other, stderr=log)
    seen = act_when(planner, a_worker_works, lambda _: os.killpg(planner.pid, signal.SIGINT))
    os.close(other)
    os.close(terminal)
    log.seek(0)
    assert (130, INTERRUPTED) == (planner.returncode, log.read())
    assert_nothing_is_left(seen, tmp_path / "run")


@pytest.mark.spark
def test_a_jvm_that_is_killed_is_one_error(tmp_path: Path) -> None:
    """A killed JVM gives one error, without the tracebacks of Python and Java about broken connections."""
    planner = start(tmp_path, LONG_SWEEP, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def kill(tree: Tree) -> None:
        for pid in (pid for pid, name in tree.items() if name == "java"):
            os.kill(pid, signal.SIGKILL)

    seen = act_when(planner, a_worker_works, kill)
    out, said = planner.communicate(timeout=SOON_SECONDS)
    expected = "planner: Spark's Java process ended before its work was done (killed by SIGKILL); nothing was written\n"
    assert (1, "", expected) == (planner.returncode, out, said)
    assert_nothing_is_left(seen, tmp_path)


@pytest.mark.spark
def test_a_wrong_spec_ends_the_spark_that_starts_beside_it(tmp_path: Path) -> None:
    """Every fault of the spec is reported, nothing of Spark is shown, and no process is left."""
    (tmp_path / "run").mkdir()
    spec = tmp_path / "wrong.yaml"
    spec.write_text("version: 1\nclutser: {}\n", encoding="utf-8")
    planner = start(tmp_path / "run", f"whatif {spec} --out {{}}/plan", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen: Tree = {}
    while planner.poll() is None:
        seen |= descendants(planner.pid)
        time.sleep(0.01)
    out, said = planner.communicate(timeout=SOON_SECONDS)
    assert (1, "") == (planner.returncode, out)
    assert said.splitlines()
    assert all(line.startswith(str(spec)) for line in said.splitlines())
    assert_nothing_is_left(seen, tmp_path / "run")


MOMENTS = 30


@pytest.fixture(scope="module")
def whole_seconds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The seconds that the sweep takes without interruption, by engine."""
    taken = {}
    for engine in ("spark", "local"):
        started = time.monotonic()
        ran = start(tmp_path_factory.mktemp(engine), f"{SWEEP} --engine {engine}", stdout=subprocess.DEVNULL)
        assert 0 == ran.wait()
        taken[engine] = time.monotonic() - started
    return taken


@pytest.mark.long
@pytest.mark.parametrize("engine", ["spark", "local"])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_ctrl_c_at_any_moment(moment: int, engine: str, whole_seconds: dict[str, float], tmp_path: Path) -> None:
    """Ctrl-C at any moment gives one line and exit code 130, or the whole plan. A folder is never incomplete."""
    planner = start(tmp_path, f"{SWEEP} --engine {engine}", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Before the command's first line runs, Python itself handles Ctrl-C.
    end, seen = time.monotonic() + max(1.0, whole_seconds[engine] * moment / (MOMENTS - 1)), dict[int, str]()
    while planner.poll() is None and time.monotonic() < end:
        seen |= descendants(planner.pid)
        time.sleep(0.05)
    planner.send_signal(signal.SIGINT)
    _, said = planner.communicate(timeout=2 * SOON_SECONDS)
    whole = sorted(path.name for path in tmp_path.iterdir())
    assert (planner.returncode, said) in ((130, INTERRUPTED), (0, ""))
    if whole:
        assert ["plan"] == whole
        assert (tmp_path / "plan" / "SHA256SUMS").is_file()
        shutil.rmtree(tmp_path / "plan")
    assert_nothing_is_left(seen, tmp_path)
