"""Every command with broken, hostile and strange files ends with an exit code and a message; a refusal writes nothing.

As in test_fuzz, the inputs are drawn from seeds, and `PLANNER_FUZZ_INPUTS` sets how many there are.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import TooLongError, run
from fuzz_inputs import mutated
from fuzz_values import SPEC, plan_with_wrong_values
from test_fuzz import INPUTS


class Command(NamedTuple):
    """What is typed, and the files of which one gets broken; for a plan's folder any of its files."""

    typed: str
    files: tuple[str, ...]


SPECS = ("s.yaml", "describe.txt", "log-dirs.txt", "group.txt")
STATE = ("now/describe.txt", "now/log-dirs.txt", "now/versions.txt")
PLAN = ("s.plan",) * 4
COMMANDS = {
    "validate": Command("validate s.yaml", SPECS),
    "place": Command(
        "place s.yaml --partitions 9 --replication-factor 2 --start-index 0 --next-replica-shift 0", SPECS
    ),
    "seeds": Command("seeds s.yaml", SPECS),
    "seeds of a state": Command("seeds describe.txt", ("describe.txt",)),
    "fleet": Command("whatif s.yaml t.yaml --out plans --engine local --candidates 2", (*SPECS, "t.yaml")),
    "growth": Command("growth s.yaml --engine local --months 3", SPECS),
    "failures": Command("failures s.yaml --engine local --rows rows.parquet", (*SPECS, *PLAN)),
    "restart": Command("restart s.yaml -o s.restart", SPECS),
    "failures of a plan": Command("failures s.plan --of 2 --engine local", (*SPECS, *PLAN)),
    "consumers": Command("consumers s.yaml --plan s.plan --engine local", (*SPECS, *PLAN)),
    "consumers swept": Command("consumers s.yaml --sweep --consumers 2-3 --engine local", SPECS),
    "import": Command("import now -o cluster.yaml", STATE),
    "check": Command("check s.plan --state now", (*STATE, *PLAN)),
    "resume": Command("resume s.plan --state now --out rest.plan", (*STATE, *PLAN)),
    "show": Command("show s.plan", PLAN),
    "render": Command("render s.plan --out again.plan", PLAN),
    "diff": Command("diff s.plan s.plan --format markdown", PLAN),
}
STRANGE = (
    b"",
    b"\x00" * 100,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"- " * 100_000,
    b"NaN",
    b'{"brokers": NaN, "version": Infinity}',
    b'"\\ud800"',
    b"version: 1\nversion: 1\n",
    b"a: &a [x, x]\nb: &b [*a, *a]\n" + b"".join(b"c%d: &c%d [*b, *b]\n" % (at, at) for at in range(2_000)),
    "version: 1\n".encode("utf-16"),
    b"\xff\xfe\x00",
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec with state files and a consumer group, another spec, a plan, and the cluster's state now."""
    made = tmp_path_factory.mktemp("inputs")
    (made / "now").mkdir()
    for folder in (made, made / "now"):
        (folder / "describe.txt").write_text(DESCRIBED, encoding="utf-8")
        (folder / "log-dirs.txt").write_text(SIZES, encoding="utf-8")
    (made / "now" / "versions.txt").write_text(VERSIONS, encoding="utf-8")
    (made / "group.txt").write_text(GROUP, encoding="utf-8")
    (made / "s.yaml").write_text(FROM_FILES, encoding="utf-8")
    (made / "t.yaml").write_text(json.dumps(SPEC), encoding="utf-8")
    ran = run(made, "whatif s.yaml --engine local --candidates 4")
    assert ran.code == 0, ran.err
    return made


DESCRIBED = "".join(
    f"Topic: {name}\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
    + "".join(
        f"\tTopic: {name}\tPartition: {at}\tLeader: {one}\tReplicas: {one},{two}\tIsr: {one},{two}\n"
        for at, (one, two) in enumerate([(1, 2), (2, 3), (3, 4)])
    )
    for name in ("a-1", "b")
)
_SIZES = [
    {"partition": f"{name}-{at}", "size": 5 << 20, "offsetLag": 0, "isFuture": False}
    for name in ("a-1", "b")
    for at in range(3)
]
_DIRS = [{"partitions": _SIZES, "error": None, "logDir": "/d"}]
SIZES = json.dumps({"brokers": [{"broker": each, "logDirs": _DIRS} for each in (1, 2, 3, 4)]})
VERSIONS = "".join(f"h:{at} (id: {at} rack: r{at} isFenced: false) -> (\n\tProduce(0): 0\n)\n" for at in (1, 2, 3, 4))
GROUP = (
    "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT\n"
    "g c-1 /10.0.0.1 c 2 a-1(0,1)\ng c-2 /10.0.0.2 c 1 a-1(2)\n"
)
FROM_FILES = """\
version: 1
cluster:
  name: n
  brokers:
    - {id: 1, rack: r1, capacity: {disk: 1GB}}
    - {id: 2, rack: r2, capacity: {disk: 1GB}}
    - {id: 3, rack: r3, capacity: {disk: 1GB}}
    - {id: 4, rack: r4, capacity: {disk: 1GB}}
  state: {assignment: describe.txt, sizes: log-dirs.txt}
changes: {remove_brokers: [1]}
growth: [{topics: "a-*", per_month: 8%}]
consumers: [{group: g, state: group.txt}]
limits: {bytes_moved: 2TiB}
"""


def broken(path: Path, rng: random.Random) -> None:
    """Breaks a file: its content, or its kind."""
    data = path.read_bytes()
    if rng.random() < 0.6:
        path.write_bytes(mutated(data, rng))
        return
    path.unlink()
    match rng.choice(("strange", "strange", "folder", "loop", "nowhere", "endless", "pipe", "gone")):
        case "strange":
            path.write_bytes(rng.choice(STRANGE))
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "nowhere":
            path.symlink_to("nowhere")
        case "endless":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)


def broken_plan(folder: Path, rng: random.Random) -> None:
    """Breaks a plan's folder: wrong values with the matching id, a broken plan.json, or any other file."""
    document = folder / "plan.json"
    draw = rng.random()
    if draw < 0.4:
        wrong = plan_with_wrong_values(json.loads(document.read_bytes()), rng)
        document.write_text(json.dumps(wrong), encoding="utf-8")
    else:
        broken(
            document if draw < 0.7 else rng.choice([path for path in sorted(folder.rglob("*")) if path.is_file()]), rng
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_no_file_makes_a_command_crash(name: str, inputs: Path, tmp_path: Path) -> None:
    """With a broken file the command succeeds, or exits with 1 or 3 and a message, without writing anything."""
    command = COMMANDS[name]
    codes = set()
    for seed in range(max(10, round(INPUTS * 0.01))):
        rng = random.Random(f"{name} {seed}")
        folder = tmp_path / str(seed)
        shutil.copytree(inputs, folder)
        which = rng.choice(command.files)
        (broken_plan if which == "s.plan" else broken)(folder / which, rng)
        before = shape(folder)
        try:
            ran = run(folder, command.typed)
        except TooLongError:
            pytest.fail(f"{name} {seed} ({which}): waits, or never ends")
        about = f"{name} {seed} ({which}): {ran.code}: {ran.err[:3000]}"
        codes.add(ran.code)
        assert ran.code in (0, 1, 3), about
        assert "defect" not in ran.err, about
        assert "Traceback" not in ran.err, about
        assert ran.code == 0 or ran.err.strip(), about
        assert ran.err.count("\n") <= 110, about
        assert ran.code == 0 or before == shape(folder), about
        shutil.rmtree(folder)
    assert codes >= {1}


def shape(folder: Path) -> dict[str, object]:
    """Each path below a folder, with the content of regular files only, because reading a pipe would wait."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }
