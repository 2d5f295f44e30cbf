"""Every command's output for a spec full of hostile names has nothing that a terminal or a comment would obey."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hostile
import pytest
from command_line import Ran, Run

from planner.cli.main import main

SEEN_BY_NOBODY = "".join(f"{character}x" for character in hostile.UNPRINTABLE if character >= "\x80")
FORMATS = ("text", "json", "markdown")
PLACED = ("--partitions", "3", "--replication-factor", "2", "--start-index", "0", "--next-replica-shift", "0")
WRONG = 20


def evil(name: str) -> str:
    """A name with the dangerous characters that a spec accepts, and with text that would end a comment."""
    return f"{name}~~~~~~~~ ``` </details><script> --> @octocat {SEEN_BY_NOBODY}."


def spec(**more: Any) -> dict[str, Any]:
    """A spec in which every free text is hostile."""
    dirs = [{"path": f"/{evil('d')}", "size": "2GB"}, {"path": f"/{evil('e')}", "size": "2GB"}]
    brokers = [{"id": number, "rack": evil(f"r{number}"), "class": evil("class")} for number in (1, 2, 3)]
    lists = [{"replicas": [1, 2], "size": 9_000_000}, {"replicas": [1, 2], "size": 8_000_000}]
    joins = {"id": 4, "rack": evil("r4"), "class": evil("class"), "log_dirs": dirs}
    created = {"name": "n", "partitions": 1, "replication_factor": 2, "config": {"x": evil("config")}}
    return {
        "version": 1,
        "cluster": {
            "name": evil("cluster"),
            "broker_classes": {evil("class"): {"disk": "4GB", "network": "9MB/s"}},
            "brokers": brokers,
            "topics": [{"name": "t", "config": {"y": evil("config")}, "partitions": lists}],
        },
        "changes": {"add_brokers": [joins], "create_topics": [created]},
        "balance": {"disk": "20%"},
        "growth": [{"topics": "*", "per_month": "10%"}],
        "sweep": {
            "candidates": 4,
            "aims": ["makespan"],
            "variants": [{"name": evil("variant"), "changes": {"rebalance": "leaders"}}],
            "scenarios": {"growth": [{"name": evil("scenario"), "topics": "*", "factor": 2}]},
        },
        "consumers": [
            {
                "group": evil("group"),
                "topics": ["t"],
                "members": [{"id": evil("m1"), "rack": evil("r1")}, {"id": evil("m2")}],
            }
        ],
        "report": {"failures": ["brokers", "racks"], "growth": {"months": 3}, "consumers": True},
        "execution": {"throttle": "1MB/s", "kafka_bin_dir": f"/{evil('bin')}"},
    } | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name is hostile, too, with two specs. No part of a name may become a line."""
    made = tmp_path_factory.mktemp("hostile") / f"f\nINJECTED\x1b[31m{SEEN_BY_NOBODY}"
    made.mkdir()
    (made / "spec.yaml").write_text(json.dumps(spec()))
    (made / "bad.yaml").write_text(json.dumps(spec(**{evil("key"): 1, "growth": [{"topics": evil("*")}]})))
    return made


@pytest.fixture(scope="module")
def plan(folder: Path) -> Path:
    """The folder of the spec's plan."""
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(folder / "spec.yaml"), "--engine", "local", "--out", str(folder / "plan")])
    assert not ended.value.code
    return folder / "plan"


def assert_inert(text: str, where: str) -> None:
    """Assert that the text has no control character, no line that starts inside a name, and no command line of CI."""
    found = sorted({f"U+{ord(character):04X}" for character in set(text) & set(hostile.UNPRINTABLE)})
    assert [] == found, where
    assert not re.search(r"^\s*(INJECTED|~{3,}|::)", text, re.MULTILINE), where


def assert_no_markup(text: str, where: str) -> None:
    """Assert that no name becomes a tag, and that Markdown notifies nobody."""
    assert "</details><script" not in text, where
    assert "@octocat" not in text or not where.endswith(".md"), where


@pytest.mark.slow
def test_files(plan: Path) -> None:
    """Every file of a plan's folder is inert: JSON, YAML, Markdown, HTML, SVG, digests."""
    names = [path for path in sorted(plan.rglob("*")) if path.is_file() and path.suffix != ".parquet"]
    for path in names:
        text = path.read_text(encoding="utf-8")
        assert_inert(text, path.name)
        if path.suffix in (".md", ".html", ".svg"):
            assert_no_markup(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text), path.name)
    assert {".json", ".yml", ".md", ".html", ".svg"} <= {path.suffix for path in names}


def commands(folder: Path, plan: Path) -> list[tuple[str, ...]]:
    """Every command that prints something, with right and wrong arguments."""
    good, bad, other = str(folder / "spec.yaml"), str(folder / "bad.yaml"), str(folder / "other.plan")
    local = ("--engine", "local")
    gone = str(folder / f"gone\n~~~~~~~~\n{SEEN_BY_NOBODY}")
    shown = [
        ("show", str(plan)),
        ("diff", str(plan), other),
        ("consumers", good, "--sweep", *local),
        ("failures", good, "--plan", str(plan), *local),
        ("growth", good, *local),
        ("seeds", good),
    ]
    wrong = [
        ("validate", bad),
        ("validate", gone),
        ("whatif", gone),
        ("whatif", good, "--out", good, *local),
        ("show", gone),
        ("show", good),
        ("check", good),
        ("check", str(plan), "--state", gone),
        ("check", str(plan), "--plan-id", gone),
        ("consumers", good, "--group", gone),
        ("consumers", good, "--add-partitions", gone),
        ("failures", good, "--of", gone),
        ("import", gone),
        ("import", "--bootstrap-servers", gone),
        ("place", good, "--topic", gone),
        ("seeds", good, "--topic", gone),
        (gone,),
        ("show", "--format", gone, str(plan)),
        ("show", f"--{gone}"),
        ("render", str(plan), "--out", good),
    ]
    fine = [
        ("validate", good),
        ("check", str(plan)),
        ("check", str(plan), "--format", "json"),
        ("render", str(plan), "--out", other),
        *(("place", good, *PLACED, "--format", form) for form in ("text", "markdown")),
        ("place", good, "--topic", "n", *PLACED, "--format", "json"),
        ("import", str(folder / "brokers.txt"), str(folder / "topics.txt")),
    ]
    return [*fine, *((*each, "--format", form) for each in shown for form in FORMATS), *wrong]


@pytest.mark.slow
def test_every_command(folder: Path, plan: Path, planner: Run) -> None:
    """stdout and stderr of every command are inert, in every format. JSON stays valid."""
    (folder / "brokers.txt").write_text("h:9092 (id: 1 rack: r\u202e~~~~~~~~\x9bx isFenced: false) -> (\n)\n")
    (folder / "topics.txt").write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    codes = []
    for words in commands(folder, plan):
        ran: Ran = planner(*words)
        named = " ".join(word for word in words if len(word) < 30)
        assert_inert(ran.out, named)
        assert_inert(ran.err, named)
        assert not (ran.out and words[-1] == "json") or json.loads(ran.out)
        if words[-1] == "markdown":
            assert_no_markup(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", ran.out), "stdout.md")
        codes.append(ran.code)
    assert {0, 1} == set(codes)
    assert codes.count(1) == WRONG
