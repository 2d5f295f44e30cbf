"""A fleet on a cluster that can't see its files: specs are read here and planned there, with the same bytes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from folders import EXAMPLES, copy_examples
from spark_servers import Cluster, Server, connect, machine, standalone
from test_fleet import GOOD, files
from test_spark_jvm import processes

pytestmark = pytest.mark.spark

OWN = ("what-if", "\n    assignor: cooperative-sticky\n", "\n    assignor: custom_assignor:assign\n")
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with five specs. One of them names an assignor that is in the same folder."""
    folder = tmp_path_factory.mktemp("fleet") / "clusters"
    name, theirs, own = OWN
    copy_examples(folder, (*GOOD, name))
    shutil.copytree(EXAMPLES / "consumers", folder / "consumers")
    shutil.copy(EXAMPLES / "consumers" / "custom_assignor.py", folder)
    text = (folder / f"{name}.yaml").read_text()
    assert theirs in text
    (folder / f"{name}.yaml").write_text(text.replace(theirs, own))
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers with one core each."""
    with standalone(machine(tmp_path_factory.mktemp("standalone"))) as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Spark Connect server with two cores."""
    with connect(machine(tmp_path_factory.mktemp("connect"))) as started:
        yield started


@pytest.fixture(params=["standalone", "connect"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    """Starts `planner whatif` for a fleet on the cluster or the server. The plans are written to `plans`."""

    def started(clusters: Path, *options: object) -> subprocess.Popen[str]:
        typed = (f"{clusters}/*.yaml", "--out", tmp_path / "plans", *options)
        if request.param == "connect":
            return here(*typed, "--remote", request.getfixturevalue("server").address, cwd=tmp_path)
        of: Cluster = request.getfixturevalue("cluster")
        return of.start(*typed, settings=tmp_path / "conf", cwd=tmp_path)

    return started


def here(*typed: object, cwd: Path) -> subprocess.Popen[str]:
    """Start `planner whatif` in its own process."""
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", "whatif", *map(str, typed)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, text=True, **streams)  # type: ignore[call-overload,no-any-return]


@cache
def made_here(clusters: Path, *options: object) -> tuple[int, str, dict[str, bytes]]:
    """The exit code, the stderr and the files of `--engine local`, which runs once for each folder of specs."""
    folder = Path(mkdtemp(dir=clusters.parent))
    ran = here(f"{clusters}/*.yaml", "--out", folder / "plans", "--engine", "local", *options, cwd=folder)
    _, said = ran.communicate(timeout=300)
    return ran.returncode, said, files(folder / "plans")


def test_a_clusters_workers_plan_the_specs_that_were_read_here(start: Start, clusters: Path, tmp_path: Path) -> None:
    """The workers write the same bytes as this process, whatever files the specs name."""
    ran = start(clusters, "--candidates", 40)
    alone = made_here(clusters, "--candidates", 40)
    _, said = ran.communicate(timeout=300)

    assert (0, "", 5) == (ran.returncode, said, len({name.split("/")[0] for name in alone[2]}))
    assert alone[2] == files(tmp_path / "plans")


@pytest.mark.parametrize(
    ("start", "old", "new", "code"),
    [("standalone", "id: 4", "id: 1", 1), ("connect", "bytes_moved: 300MB", "bytes_moved: 1MB", 3)],
    indirect=["start"],
)
def test_a_wrong_spec_among_good_ones(
    start: Start, old: str, new: str, code: int, clusters: Path, tmp_path: Path
) -> None:
    """A spec that reading or planning refuses gives the same error as in this process, and no plan is written.

    Both kinds of servers run the same tasks, so each kind has one of the two cases.
    """
    wrong = clusters.parent / f"wrong-{code}"
    shutil.copytree(clusters, wrong, dirs_exist_ok=True)
    text = (wrong / "expand.yaml").read_text()
    assert old in text
    (wrong / "expand.yaml").write_text(text.replace(old, new))
    ran = start(wrong, "--candidates", 10)
    _, said = ran.communicate(timeout=300)

    assert code == ran.returncode, said
    assert (code, said, {}) == made_here(wrong, "--candidates", 10)
    assert not (tmp_path / "plans").exists()


def workers(cluster: Cluster) -> list[int]:
    """The Python workers' ids: Pythons whose parent is a Python in the session of a Spark worker."""
    known, sessions = processes(), {each.process.pid for each in cluster.workers}
    pythons = {pid for pid, (_, name) in known.items() if name.startswith("python")}
    with suppress(ProcessLookupError):
        pythons = {pid for pid in pythons if os.getsid(pid) in sessions}
        return [pid for pid in pythons if known[pid][0] in pythons]
    return []


def kill_workers(cluster: Cluster, most: int, ran: subprocess.Popen[str]) -> int:
    """Kill up to `most` Python workers while the command runs. Return the number. Kill the command after 5 minutes."""
    killed, last = set[int](), time.monotonic() + 300
    while ran.poll() is None:
        if time.monotonic() > last:
            ran.kill()
        for pid in workers(cluster)[: max(0, most - len(killed))]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.02)
    return len(killed)


@pytest.mark.parametrize("start", ["standalone"], indirect=True)
def test_a_worker_that_is_killed_is_replaced(start: Start, cluster: Cluster, clusters: Path, tmp_path: Path) -> None:
    """A killed worker's spec is planned again, and the bytes are the same."""
    alone = made_here(clusters, "--candidates", 40)
    ran = start(clusters, "--candidates", 40)
    killed = kill_workers(cluster, 1, ran)
    _, said = ran.communicate(timeout=300)

    assert (0, "", 1) == (ran.returncode, said, killed)
    assert alone[2] == files(tmp_path / "plans")


@pytest.mark.parametrize("start", ["standalone"], indirect=True)
def test_workers_that_are_always_killed_are_one_sentence(
    start: Start, cluster: Cluster, clusters: Path, tmp_path: Path
) -> None:
    """If workers are killed again and again, as without memory, the error is one sentence and nothing is written."""
    ran = start(clusters)
    kill_workers(cluster, 1000, ran)
    shown, said = ran.communicate()

    assert (1, "", 1) == (ran.returncode, shown, said.count("\n")), said
    assert said.startswith("planner: the work failed on Spark's workers: a worker ended again and again")
    assert not (tmp_path / "plans").exists()
