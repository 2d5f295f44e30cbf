"""A fleet that workers plan, while a signal or a killed process interrupts: the same bytes, or one sentence."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from folders import copy_examples
from test_fleet import GOOD, files
from test_spark_jvm import (
    INTERRUPTED,
    SOON_SECONDS,
    Tree,
    a_jvm_starts,
    act_when,
    assert_nothing_is_left,
    descendants,
    processes,
    start,
)

WORKERS = "--master local[2]"
MOMENTS = 10


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four specs."""
    folder = tmp_path_factory.mktemp("clusters")
    copy_examples(folder, GOOD)
    return folder


@pytest.fixture(scope="module")
def made_here(clusters: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that an undisturbed run without Spark writes."""
    folder = tmp_path_factory.mktemp("here")
    assert 0 == fleet(folder, clusters, "--engine local", stdout=subprocess.DEVNULL).wait()
    return files(folder / "plans")


def fleet(folder: Path, clusters: Path, options: str, **streams: object) -> subprocess.Popen[str]:
    """Start planning all specs. Their folders are written to `plans`."""
    return start(folder, f"whatif {clusters}/*.yaml --out {{}}/plans --candidates 300 {options}", **streams)


def piped(folder: Path, clusters: Path, options: str = WORKERS) -> subprocess.Popen[str]:
    """The same as `fleet`, with its output kept."""
    return fleet(folder, clusters, options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def read(folder: Path) -> int:
    """The number of specs that have been read."""
    return len(list(folder.glob("planner-fleet-*/*.read")))


def workers(planner: int) -> list[int]:
    """The Python workers' ids: children of the Python daemon that a process of Spark has started."""
    known = processes()
    below = descendants(planner)
    daemons = {pid for pid in below if known.get(pid, (0, ""))[0] in below and below[pid].startswith("python")}
    return [pid for pid in below if known.get(pid, (0, ""))[0] in daemons]


def assert_whole(folder: Path, made: dict[str, bytes]) -> None:
    """Assert that every plan's folder that exists is complete."""
    there = {path.name for path in (folder / "plans").iterdir()} if (folder / "plans").exists() else set()
    wanted = {name: data for name, data in made.items() if name.split("/")[0] in there}
    assert wanted == (files(folder / "plans") if there else {})
    shutil.rmtree(folder / "plans", ignore_errors=True)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "moment", "number"),
    [
        (WORKERS, "java starts", signal.SIGINT),
        (WORKERS, "all are read", signal.SIGTERM),
        ("", "some are read", signal.SIGINT),
        ("", "all are read", signal.SIGTERM),
    ],
)
def test_a_signal_ends_all(
    options: str, moment: str, number: signal.Signals, clusters: Path, made_here: dict[str, bytes], tmp_path: Path
) -> None:
    """A signal gives one line and leaves nothing, whether the driver or the workers read and plan."""
    phases: dict[str, Callable[[Tree], bool]] = {
        "java starts": a_jvm_starts,
        "some are read": lambda _: read(tmp_path) > 0,
        "all are read": lambda _: read(tmp_path) == len(GOOD),
    }
    planner = piped(tmp_path, clusters, options)
    seen = act_when(planner, phases[moment], lambda _: os.killpg(planner.pid, number))
    out, said = planner.communicate(timeout=SOON_SECONDS)
    assert (128 + number, "", INTERRUPTED.replace("SIGINT", number.name)) == (planner.returncode, out, said)
    assert_whole(tmp_path, made_here)
    assert_nothing_is_left(seen, tmp_path)


@pytest.mark.spark
def test_a_worker_that_is_killed_is_replaced(clusters: Path, made_here: dict[str, bytes], tmp_path: Path) -> None:
    """A killed worker's spec is planned again, and the bytes are the same."""
    planner, killed = piped(tmp_path, clusters), list[int]()
    seen: Tree = {}
    while planner.poll() is None:
        seen |= descendants(planner.pid)
        if not killed and read(tmp_path) == len(GOOD) and (now := workers(planner.pid)):
            os.kill(now[0], signal.SIGKILL)
            killed.append(now[0])
        time.sleep(0.02)
    _, said = planner.communicate(timeout=SOON_SECONDS)
    assert (0, "", 1) == (planner.returncode, said, len(killed))
    assert made_here == files(tmp_path / "plans")
    shutil.rmtree(tmp_path / "plans")
    assert_nothing_is_left(seen, tmp_path)


@pytest.mark.spark
def test_workers_that_are_always_killed_are_one_error(clusters: Path, tmp_path: Path) -> None:
    """If workers are killed again and again, as without memory, the error says so, and nothing is written."""
    planner, seen = piped(tmp_path, clusters), dict[int, str]()
    while planner.poll() is None:
        seen |= descendants(planner.pid)
        for pid in workers(planner.pid) if read(tmp_path) == len(GOOD) else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    out, said = planner.communicate(timeout=SOON_SECONDS)
    assert (1, "", 1) == (planner.returncode, out, said.count("\n"))
    assert said.startswith("planner: the work failed on Spark's workers: a worker ended again and again")
    assert_nothing_is_left(seen, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("count", [1, len(GOOD)])
def test_a_jvm_that_is_killed_is_one_error(count: int, clusters: Path, tmp_path: Path) -> None:
    """Killing Java while specs are read or planned gives one error, and no plan is written."""
    planner = piped(tmp_path, clusters)

    def kill(tree: Tree) -> None:
        for pid in (pid for pid, name in tree.items() if name == "java"):
            os.kill(pid, signal.SIGKILL)

    seen = act_when(planner, lambda _: read(tmp_path) >= count, kill)
    out, said = planner.communicate(timeout=SOON_SECONDS)
    expected = "planner: Spark's Java process ended before its work was done (killed by SIGKILL); nothing was written\n"
    assert (1, "", expected) == (planner.returncode, out, said)
    assert_nothing_is_left(seen, tmp_path)


@pytest.fixture
def one_wrong(clusters: Path, tmp_path: Path) -> Iterator[Path]:
    """The same specs, but the second one has an unknown key."""
    folder = tmp_path / "wrong"
    shutil.copytree(clusters, folder)
    spec = sorted(folder.glob("*.yaml"))[1]
    text = spec.read_text()
    spec.write_text(f"{text}clutser: {{}}\n")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.spark
@pytest.mark.parametrize("options", [WORKERS, ""])
def test_a_wrong_spec_among_good_ones(options: str, one_wrong: Path, tmp_path: Path) -> None:
    """The wrong spec's faults are reported with their places, and no other spec's plan is written."""
    (tmp_path / "run").mkdir()
    planner, seen = piped(tmp_path / "run", one_wrong, options), dict[int, str]()
    while planner.poll() is None:
        seen |= descendants(planner.pid)
        time.sleep(0.02)
    out, said = planner.communicate(timeout=SOON_SECONDS)
    assert (1, "") == (planner.returncode, out)
    assert f"{sorted(one_wrong.glob('*.yaml'))[1]}:" in said
    assert "Traceback" not in said
    assert_nothing_is_left(seen, tmp_path / "run")


@pytest.fixture(scope="module")
def whole_seconds(clusters: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """The seconds that the fleet takes without interruption."""
    started = time.monotonic()
    assert 0 == fleet(tmp_path_factory.mktemp("whole"), clusters, "", stdout=subprocess.DEVNULL).wait()
    return time.monotonic() - started


@pytest.mark.long
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_ctrl_c_at_any_moment(
    moment: int, whole_seconds: float, clusters: Path, made_here: dict[str, bytes], tmp_path: Path
) -> None:
    """Ctrl-C at any moment gives one line and exit code 130, or all plans. A folder is never incomplete."""
    planner = piped(tmp_path, clusters, "")
    # Before the command's first line runs, Python itself handles Ctrl-C.
    end, seen = time.monotonic() + max(1.0, whole_seconds * moment / (MOMENTS - 1)), dict[int, str]()
    while planner.poll() is None and time.monotonic() < end:
        seen |= descendants(planner.pid)
        time.sleep(0.05)
    planner.send_signal(signal.SIGINT)
    _, said = planner.communicate(timeout=2 * SOON_SECONDS)
    assert (planner.returncode, said) in ((130, INTERRUPTED), (0, ""))
    assert_whole(tmp_path, made_here)
    assert_nothing_is_left(seen, tmp_path)
