"""The driver reads and plans a fleet's whole specs until the workers are ready, and then the workers do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from folders import copy_examples

from planner.cli import one_spec
from planner.cli.main import main
from planner.model.errors import SetupError
from spark_jobs import fleet, java, session, spark_jvm

COUNT = 3
GOOD = ("expand", "leaders-only", "no-racks", "remove-brokers")


@contextmanager
def opening_session(ready: Callable[[], object]) -> Iterator[str]:
    """Stands for a session that opens once `ready` returns."""
    ready()
    yield "spark"


def called(_: Any, step: Callable[[int], Any], numbers: Sequence[int], *__: Any) -> dict[int, Any]:
    """What the workers would answer, computed in this process."""
    return {number: step(number) for number in numbers}


@pytest.mark.parametrize("ready_after", range(2 * COUNT + 1))
def test_every_step_of_every_spec_is_taken_once(ready_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each spec is read and planned once, whenever the workers are ready. Planning starts after all were checked."""
    monkeypatch.setattr(fleet, "called", called)
    monkeypatch.setattr(java, "find", lambda: None)
    may_open, begun, taken = threading.Event(), threading.Event(), list[tuple[str, int]]()
    if not ready_after:
        may_open.set()
        begun.wait(0.1)

    def step(name: str, number: int) -> str:
        taken.append((name, number))
        if len(taken) >= ready_after:
            may_open.set()
        return f"{name} {number}"

    def checked(found: Sequence[str]) -> None:
        assert [f"read {number}" for number in range(COUNT)] == list(found)
        taken.append(("checked", 0))

    steps = (lambda number: step("read", number)), (lambda number: step("planned", number))
    with spark_jvm.opened(opening_session(lambda: may_open.wait(20))) as opens:
        found = fleet.specs_beside(opens, steps, COUNT, checked, progress=lambda *_: None)
    assert [f"planned {number}" for number in range(COUNT)] == found
    kinds = [name for name, _ in taken]
    assert sorted(taken) == sorted({*taken})
    assert ["read"] * COUNT == kinds[:COUNT]
    assert "checked" == kinds[COUNT]
    assert ["planned"] * COUNT == [kind for kind in kinds[COUNT:] if kind != "checked"]


def test_nothing_is_planned_where_a_spec_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a check refuses what was read, that error is raised and nothing is planned."""
    monkeypatch.setattr(fleet, "called", called)
    planned = list[int]()

    def checked(_: Sequence[str]) -> None:
        raise SetupError("one of them is refused")

    for helps in (True, False):
        with (
            pytest.raises(SetupError, match="one of them is refused"),
            spark_jvm.opened(opening_session(lambda: None)) as opens,
        ):
            fleet.specs_beside(opens, (str, planned.append), COUNT, checked, progress=lambda *_: None, helps=helps)
    assert [] == planned


def test_cores_of_a_local_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of tasks that run at the same time."""
    monkeypatch.setattr(session.os, "cpu_count", lambda: 7)
    assert [1, 3, 7, 7] == [session.local_cores(f"local{many}") for many in ("", "[3]", "[*]", "[*,2]")]


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four good specs. Commands run in its parent folder."""
    folder = tmp_path / "clusters"
    copy_examples(folder, GOOD)
    monkeypatch.chdir(tmp_path)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """The path and content of every file in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def whatif(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Plan the fleet. Return exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(["whatif", "clusters/*.yaml", "--candidates", "40", *options])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


@pytest.mark.spark
def test_workers_read_plan_and_render_whole_specs(
    clusters: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers write and print the same as this process does, and the driver reads no spec."""
    here = whatif(capsys, "--out", "here", "--engine", "local", "--format", "json")

    def read_here(*_: object) -> None:
        raise AssertionError("a spec was read by the driver")

    monkeypatch.setattr(one_spec, "alternatives", read_here)
    there = whatif(capsys, "--out", "there", "--master", "local[2]", "--format", "json")
    assert ((0, ""), (0, "")) == (here[::2], there[::2])
    assert json.loads(here[1].replace('"here/', '"there/')) == json.loads(there[1])
    assert files(clusters.parent / "here") == files(clusters.parent / "there")


@pytest.mark.spark
def test_workers_refuse_specs_as_this_process_does(clusters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Faults that reading finds, and a limit that planning finds, give the same output as in this process."""
    expand = clusters / "expand.yaml"
    good = expand.read_text()
    for old, new in (("id: 4", "id: 1"), ("bytes_moved: 300MB", "bytes_moved: 1MB")):
        assert old in good
        expand.write_text(good.replace(old, new))
        here = whatif(capsys, "--engine", "local")
        assert 0 != here[0]
        assert here == whatif(capsys, "--master", "local[2]")
        assert not list(clusters.glob("*.plan"))
