"""The command line's edges: streams in any state, unexpected errors, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main
from planner.model.errors import PlannerError

SPEC = (
    "version: 1\ncluster:\n  name: Zürich 東京 😀\n  brokers: [{id: 1}, {id: 2}]\n"
    "  topics: [{name: t, partitions: [{replicas: [1, 2]}]}]\n"
)
PLANNER = f"{sys.executable} -c 'from planner.cli.main import main; main()'"


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a shell line in which `planner` is the one of this repository."""
    line = command.replace("planner ", f"{PLANNER} ")
    return subprocess.run(
        ["/bin/bash", "-c", line], cwd=folder, env={**os.environ, **environment}, capture_output=True, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec whose cluster name few encodings can write, and its plan."""
    made = tmp_path_factory.mktemp("edge")
    (made / "s.yaml").write_text(SPEC, encoding="utf-8")
    ran = shell("planner whatif s.yaml --engine local --candidates 2", made)
    assert (0, b"") == (ran.returncode, ran.stderr)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}],
)
def test_characters_that_stdout_lacks_are_written_as_json_does(environment: dict[str, str], folder: Path) -> None:
    """Characters that stdout can't encode are escaped as in JSON, and JSON stays valid."""
    if "LC_ALL" in environment:
        environment["PYTHONUTF8"] = "0"
    ran = shell("planner show s.plan", folder, **environment)
    assert (0, b"") == (ran.returncode, ran.stderr)
    assert rb"\u6771\u4eac \ud83d\ude00" in ran.stdout
    # click itself writes UTF-8 if the terminal supports ASCII only.
    encoding = "latin-1" if "latin-1" in environment.values() else "utf-8"
    ran = shell("planner show s.plan --format markdown", folder, **environment)
    assert (0, b"") == (ran.returncode, ran.stderr)
    ran = shell("planner show s.plan --format json", folder, **environment)
    name = json.loads(ran.stdout.decode(encoding))["cluster"]["name"]
    assert "Zürich 東京 😀" == name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("planner show s.plan >&-", 0, ""),
        ("planner show s.plan --format json >&- 2>&-", 0, ""),
        ("planner validate s.yaml <&- >&-", 0, ""),
        ("planner show s.plan >/dev/full", 1, "planner: stdout can't be written: No space left on device\n"),
        (
            "planner show s.plan --format json >/dev/full",
            1,
            "planner: stdout can't be written: No space left on device",
        ),
        ("planner show s.plan --format markdown | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("planner validate gone.yaml 2>/dev/full", 1, ""),
        ("planner validate gone.yaml 2>&-", 1, ""),
    ],
)
def test_streams_that_are_closed_full_or_unread(command: str, code: int, said: str, folder: Path) -> None:
    """Nobody reads: done. A disk is full: one line. Never a traceback, nor Python's own complaint at its end."""
    ran = shell(command, folder)
    assert (code, said.strip()) == (ran.returncode, ran.stderr.decode().strip())


@pytest.mark.slow
def test_a_closed_stdout_is_not_taken_by_the_next_file(folder: Path) -> None:
    """If stdout is closed, the next opened file doesn't get its descriptor, and so not the output."""
    before = (folder / "s.yaml").read_bytes()
    ran = shell("planner whatif s.yaml --engine local --candidates 2 --out again >&-", folder)
    assert (0, b"") == (ran.returncode, ran.stderr)
    plans = [(folder / name / "plan.json").read_bytes() for name in ("s.plan", "again")]
    assert (before, plans[0]) == ((folder / "s.yaml").read_bytes(), plans[1])


@pytest.mark.slow
def test_what_libraries_print_is_not_in_the_output(tmp_path: Path) -> None:
    """HiGHS may print a line of its own; stdout has the JSON alone, and so it has if a library always prints."""
    disks, caps = {3: 20, 7: 28, 1: 21, 2: 16, 10: 7}, {7: {"max_leaders": 1}, 2: {"max_replicas": 1}}
    caps[10] = {"max_replicas": 2}
    brokers = [{"id": n, "capacity": {"disk": f"{size}MB"} | caps.get(n, {})} for n, size in disks.items()]
    alone = [{"replicas": [n], "size": size} for n, size in ((3, "0B"), (10, "2MB"), (7, "21MB"))]
    topics = [
        {"name": "t0", "partitions": alone},
        {"name": "t1", "partitions": [{"replicas": [3, 7], "size": "0B"}]},
    ]
    cluster = {"name": "c", "brokers": brokers, "topics": topics}
    (tmp_path / "s.yaml").write_text(json.dumps({"version": 1, "cluster": cluster, "limits": {"disk_used": "95%"}}))
    ran = shell("planner drain s.yaml --broker 10 --for disk=734378B --format json", tmp_path)
    assert (0, 2_000_000) == (ran.returncode, json.loads(ran.stdout)["bound"]["bytes_moved"])
    noisy = (
        "import click, os; from planner.cli import main; main.run(lambda: click.Command('x', callback=echo), 'x', [])"
    )
    echo = "import os\ndef echo(): os.write(1, b'noise'); print('own')\n"
    ran = subprocess.run([sys.executable, "-c", echo + noisy], capture_output=True, check=False)
    assert (0, b"own\n", b"noise") == (ran.returncode, ran.stdout, ran.stderr)


def refusing(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What main prints on stderr if a command raises this error."""

    def commands() -> None:
        raise error

    monkeypatch.setattr(main, "_commands", commands)
    with pytest.raises(SystemExit) as ended:
        main.main([])
    assert 1 == ended.value.code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("brokers"), "planner: unexpected KeyError: 'brokers'; this is a bug in planner: run"),
        (RecursionError("too\ndeep"), "planner: unexpected RecursionError: too deep; this is a bug in planner"),
        (MemoryError(), "planner: not enough memory: use a machine with more"),
        (PermissionError(13, "Permission denied", "x/y"), "planner: x/y: Permission denied; allowed: a file or folder"),
        (ConnectionRefusedError(111, "Connection refused"), "planner: unexpected ConnectionRefusedError"),
    ],
)
def test_what_nobody_has_foreseen_is_a_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected error is one line, which says how to see more."""
    found = refusing(error, monkeypatch, capsys)
    assert (1, said) == (found.count("\n"), found[: len(said)])


def test_the_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """With PLANNER_DEBUG set, the traceback is shown."""

    def commands() -> None:
        raise KeyError("brokers")

    monkeypatch.setenv("PLANNER_DEBUG", "1")
    monkeypatch.setattr(main, "_commands", commands)
    with pytest.raises(KeyError):
        main.main([])


def test_debug_shows_the_cause_of_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`--debug` shows the traceback behind a refusal and then the message; without it there is only the message."""
    monkeypatch.setenv("PLANNER_DEBUG", "")
    spec = tmp_path / "spec.yaml"
    spec.write_text("version: 1\ncluster: {name: [}\n", encoding="utf-8")
    said = {}
    for options in ((), ("--debug",)):
        with pytest.raises(SystemExit):
            main.main([*options, "validate", str(spec)])
        said[options] = capsys.readouterr().err
    assert f"{spec}:2" in said[()].splitlines()[0]
    assert "Traceback" not in said[()]
    assert "Traceback" in said["--debug",]
    assert said["--debug",].endswith(said[()])


def test_messages_are_capped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages are limited to 100 lines, and lines to 2,000 characters."""
    lines = refusing(PlannerError(*["x" * 5_000] * 3_000), monkeypatch, capsys).splitlines()
    assert (101, "… and 2,900 more") == (len(lines), lines[-1])
    assert max(map(len, lines)) <= 2_000


def test_a_name_adds_no_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A name in an error stays on its line, and its control characters are replaced."""
    error = PlannerError("a\n~~~~~~~~\x1b[31m\u202e: isn't there", "second")
    assert "planner: a�~~~~~~~~�[31m�: isn't there\nsecond\n" == refusing(error, monkeypatch, capsys)
