"""Clusters in every condition, as Kafka's tools print them, planned with the CLI; for test_real_world_conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from planner.cli.whatif_fleet import WhatifOptions, whatif

Racks = Mapping[int, str | None]
SIX: Racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
THREE: Racks = {1: "a", 2: "b", 3: "c"}
NONE = "none"


@dataclass(frozen=True)
class Described:
    """A topic as `kafka-topics --describe` shows it; leaders and ISRs are stated if they aren't all replicas."""

    rows: Sequence[Sequence[int]]
    configs: str = ""
    leaders: Mapping[int, int | str] = field(default_factory=dict)
    isrs: Mapping[int, Sequence[int]] = field(default_factory=dict)
    deleting: bool = False
    size_bytes: Callable[[int], int] = lambda _: 1_000_000


Topics = Mapping[str, Described]


def describe(topics: Topics) -> str:
    """The output of `kafka-topics --describe`."""
    return "".join(f"{line}\n" for name, topic in topics.items() for line in _lines(name, topic))


def _lines(name: str, topic: Described) -> Iterable[str]:
    mark = "\tMarkedForDeletion: true" if topic.deleting else ""
    counts = f"PartitionCount: {len(topic.rows)}\tReplicationFactor: {len(topic.rows[0])}"
    yield f"Topic: {name}\tTopicId: x\t{counts}\tConfigs: {topic.configs}{mark}"
    for at, row in enumerate(topic.rows):
        leader, isr = topic.leaders.get(at, row[0]), topic.isrs.get(at, row)
        replicas, in_sync = (",".join(map(str, brokers)) for brokers in (row, isr))
        yield f"\tTopic: {name}\tPartition: {at}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {in_sync}{mark}"


def log_dirs(topics: Topics) -> str:
    """The output of `kafka-log-dirs --describe`: every broker with its replicas in one log dir."""
    held: dict[int, list[dict[str, object]]] = {}
    for name, topic in topics.items():
        for at, row in enumerate(topic.rows):
            replica = {"partition": f"{name}-{at}", "size": topic.size_bytes(at), "offsetLag": 0, "isFuture": False}
            for broker in row:
                held.setdefault(broker, []).append(replica)
    brokers = [
        {"broker": broker, "logDirs": [{"partitions": replicas, "error": None, "logDir": "/d"}]}
        for broker, replicas in sorted(held.items())
    ]
    return f"Querying brokers for log directories information\n{json.dumps({'version': 1, 'brokers': brokers})}\n"


def spec_in(folder: Path, racks: Racks, topics: Topics, rest: str = "", more: Mapping[str, str] | None = None) -> Path:
    """Writes a spec with the printed state; `rest` is added below it, and `more` has further state files."""
    files = {"describe.txt": describe(topics), "log-dirs.txt": log_dirs(topics), **(more or {})}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    brokers = "".join(
        f"    - {{id: {broker}}}\n" if rack is None else f"    - {{id: {broker}, rack: {rack}}}\n"
        for broker, rack in racks.items()
    )
    path = folder / "spec.yaml"
    head = f"version: 1\ncluster:\n  name: odd\n  brokers:\n{brokers}"
    path.write_text(f"{head}  state: {{files: [{', '.join(files)}]}}\n{rest}", encoding="utf-8")
    return path


@dataclass(frozen=True)
class Outcome:
    """The plan as written, and its report."""

    plan: Mapping[str, Any]
    report: str

    def lists(self, topic: str) -> list[list[int]]:
        """The replicas of each partition of a topic that changes."""
        return [each["replicas"] for each in self.plan["partitions"] if each["topic"] == topic]

    def held(self, when: str = "after", what: str = "replicas") -> dict[int, int]:
        """The number of replicas, or of `what`, on each broker."""
        return {broker["id"]: broker[when][what] for broker in self.plan["brokers"]}

    def term(self, name: str) -> tuple[float, float]:
        """The values of a term today and with the plan."""
        found = next(each for each in self.plan["terms"] if each["name"] == name)
        return found["today"], found["plan"]

    def relaxed(self) -> dict[tuple[str, str | None], str]:
        """The windows that couldn't be kept, (name, topic), each with its reason."""
        return {(each["window"], each["topic"]): each["why"] for each in self.plan["balance"]["relaxed"]}

    def warns(self, sentence: str) -> bool:
        """True if the plan has this warning and the report shows it."""
        shown = self.report.replace("\\", "")
        return sentence in self.plan["warnings"] and sentence in shown


def plan_of(
    folder: Path, racks: Racks, topics: Topics, rest: str = "", more: Mapping[str, str] | None = None
) -> Outcome:
    """The plan for a cluster that its tools describe like this."""
    out = folder / "plan"
    options = WhatifOptions(out=out, engine="local", candidates=8)
    whatif(spec_in(folder, racks, topics, rest, more), options, Console(file=StringIO()))
    return Outcome(json.loads((out / "plan.json").read_bytes()), (out / "report.md").read_text(encoding="utf-8"))
