"""`planner adopt` on the command line: what it prints, writes and refuses, and other commands on its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import Ran, run
from folders import ROOT

from planner.plan import plan_file


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples for adopt, with their state."""
    for name in ("adopt", "state"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    return tmp_path


def _adopt(folder: Path, given: str, more: str = "--quiet") -> Ran:
    return run(folder, f"adopt adopt/{given} adopt/expand.yaml --out out {more}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("generate.txt", "Copies 280 MB (150 replicas of 85 partitions), 160 MB more than needed for the same balance"),
        ("topicmappr.json", "Copies 290 MB (163 replicas of 88 partitions), 169 MB more than needed for the same"),
        ("proposals.json", "Copies 125 MB (72 replicas of 29 partitions), 4.51 MB more than needed for the same"),
        ("by-hand.json", "Copies 7.55 MB (3 replicas of 3 partitions), 357 kB more than needed for the same balance"),
    ],
)
def test_each_format_becomes_a_plan(given: str, said: str, examples: Path) -> None:
    """Its verdict, and a folder as whatif writes it."""
    ran = _adopt(examples, given)

    assert (0, "") == (ran.code, ran.err)
    assert said in ran.out
    names = {path.name for path in (examples / "out").iterdir()}
    assert {"plan.json", "report.md", "ansible", "batches", "bound.json", "candidates.parquet", "SHA256SUMS"} <= names


FULL = """\
version: 1
cluster:
  name: full
  broker_classes: {small: {disk: 100GB}}
  brokers: [{id: 1, class: small}, {id: 2, class: small}, {id: 3, class: small}]
  topics:
    - name: t
      partitions:
        - {replicas: [1], size: 31GB}
        - {replicas: [2], size: 20GB}
        - {replicas: [2], size: 60GB}
limits: {disk_used: 95%}
execution: {throttle: 50MB/s, batches: {bytes: 31GB}}
"""


@pytest.mark.slow
def test_batches_go_in_an_order_that_disks_have_room_for(tmp_path: Path) -> None:
    """The batch that frees broker 2 goes first: before it, the larger batch would fill the broker to 111 GB."""
    (tmp_path / "full.yaml").write_text(FULL)
    moves = [{"topic": "t", "partition": number, "replicas": [to]} for number, to in ((0, 2), (1, 3))]
    (tmp_path / "given.json").write_text(json.dumps({"version": 1, "partitions": moves}))
    ran = run(tmp_path, "adopt given.json full.yaml --out out")

    assert 0 == ran.code, ran.err
    batches = plan_file.read(tmp_path / "out").batches
    assert [[("t", 1)], [("t", 0)]] == [
        [(each.topic, each.partition) for each in batch.partitions] for batch in batches
    ]


@pytest.mark.slow
def test_the_other_commands_take_its_folder(examples: Path) -> None:
    """check with its proof, render, show, diff and resume accept the folder of an adopted plan."""
    _adopt(examples, "proposals.json")
    checked = run(examples, "check out --bound --state state/six-brokers")
    run(examples, "render out --out again")
    shown = run(examples, "show out --format json")
    difference = run(examples, "diff out again --format json")
    rest = run(examples, "resume out --state state/six-brokers --out rest --quiet")

    assert (0, 0) == (checked.code, rest.code), checked.err + rest.err
    assert "verified from" in checked.out
    for path in (examples / "out").rglob("*"):
        again = examples / "again" / path.relative_to(examples / "out")
        assert path.is_dir() or path.read_bytes() == again.read_bytes(), path
    adopted = json.loads(shown.out)["adopted"]
    assert ("proposals.json", 29) == (adopted["file"], adopted["partitions"])
    assert [adopted["sha256"]] * 2 == [head["adopted"] for head in json.loads(difference.out)["plans"]]
    own, left = (plan_file.read(examples / name).partitions for name in ("out", "rest"))
    assert [row.replicas for row in own] == [row.replicas for row in left]


def test_one_that_breaks_a_rule_writes_nothing(examples: Path) -> None:
    """A reassignment that breaks a rule exits with 1, names file, line and column, and writes nothing."""
    ran = _adopt(examples, "two-in-a-rack.json")

    assert (1, "") == (ran.code, ran.out)
    assert "adopt/two-in-a-rack.json:3:3: orders-1: rack spread: replicas [8, 3, 2]; allowed:" in ran.err
    assert not (examples / "out").exists()


@pytest.mark.slow
def test_one_beyond_a_limit_writes_nothing(examples: Path) -> None:
    """A reassignment that exceeds a limit exits with 3 and writes nothing."""
    spec = examples / "adopt" / "expand.yaml"
    spec.write_text(spec.read_text().replace("400MB", "200MB"))
    ran = _adopt(examples, "generate.txt")

    assert 3 == ran.code
    assert ran.out.startswith("Refused: 1 of 1 limit is exceeded (limits.bytes_moved: ")
    assert "limits.bytes_moved: the plan comes to 280 MB" in ran.err
    assert not (examples / "out").exists()


@pytest.mark.slow
def test_detailed_exit_code_and_a_folder_of_its_own(examples: Path) -> None:
    """--detailed-exitcode is 2 if the plan moves something; the default folder is named after the file."""
    ran = run(examples, "adopt adopt/by-hand.json adopt/expand.yaml --quiet --detailed-exitcode")

    assert 2 == ran.code
    assert (examples / "by-hand.adopted.plan" / "plan.json").is_file()
