"""Measures whole commands: `planner whatif` from YAML and state files to the plan's folder, of large cases and a fleet.

The files have the output of Kafka's tools for the case. For large cases the default candidates are swept, with disks
within 5 %, or within the default 10 %. A fleet is many small clusters of different seeds; both engines must write the
same bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Literal

import yaml
from rich import get_console

from benchmarks import cases
from benchmarks.apart import apart, peak_bytes, watched_children
from benchmarks.cases import BenchCase
from benchmarks.table import Entries, Figures, head, megabytes, row
from planner.cli.whatif_fleet import WhatifOptions, summary, whatif_fleet
from planner.model.errors import SetupError

SEED = "public"
# The cases that are planned, each with the YAML's `balance.disk`; None leaves it out.
COMMANDS: Mapping[str, str | None] = {"expand-big": "5%", "huge": None}
_COLUMNS = ("whatif", "disks", "candidates", "s", "CPU s", "peak memory MB of the driver or a worker", "GB moved")
_LONGEST_SECONDS = 3600


@dataclass(frozen=True)
class CommandCost:
    """One command: wall seconds, CPU seconds of all its processes, and the peak memory of any one Python process."""

    case: str
    disk: str | None
    candidates: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    bytes_moved: int


def entries(names: Sequence[str] = tuple(COMMANDS), options: Sequence[str] = ()) -> Entries:
    """A line for each command, as soon as it has ended."""
    yield from ("### Whole commands", "", *head(_COLUMNS))
    for name in names:
        result = run(name, COMMANDS[name], options)
        yield Figures("whole commands", asdict(result))
        yield row(
            (
                result.case,
                f"within {result.disk}" if result.disk else "default",
                f"{result.candidates:,}",
                f"{result.seconds:.1f}",
                f"{result.cpu_seconds:.1f}",
                megabytes(result.peak_bytes),
                f"{result.bytes_moved / 1e9:,.3f}",
            )
        )


def run(name: str, disk: str | None, options: Sequence[str] = ()) -> CommandCost:
    """Write a case's files and plan them with the command. SetupError if the command fails."""
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        spec, plan = write(cases.make(name, SEED), Path(folder), disk), Path(folder, "plan")
        arguments = ["whatif", str(spec), "--out", str(plan), *options]
        command = [sys.executable, "-c", "from planner.cli.main import main; main()", *arguments]
        with watched_children() as children:
            started = perf_counter()
            process = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False)
            seconds = perf_counter() - started
        if process.returncode:
            raise SetupError(f"planner {' '.join(arguments)} ended with {process.returncode}: {process.stderr[-500:]}")
        plan_document = json.loads((plan / "plan.json").read_bytes())
    moved = next(each["bytes_moved"] for each in plan_document["compared"] if each["label"] == "this plan")
    evaluated = plan_document["candidates"]["evaluated"]
    return CommandCost(name, disk, evaluated, seconds, sum(children.cpu_since({})), children.peak_bytes, moved)


# A fleet's number of specs, their case, and the number of candidates for each.
FLEET, FLEET_CASE, FLEET_CANDIDATES = 200, "expand-small", 60
_FLEET_COLUMNS = ("whatif", "engine", "s", "CPU s", "peak memory MB of the driver", "of a Python worker")


@dataclass(frozen=True)
class FleetCost:
    """A fleet's command: wall seconds, CPU seconds of all its processes, and the peak memory of the driver and of any
    one Python process that it started, 0 if it started none.
    """

    specs: int
    engine: str
    seconds: float
    cpu_seconds: float
    driver_peak_bytes: int
    worker_peak_bytes: int


def fleet_entries(specs: int = FLEET, engines: Sequence[Literal["spark", "local"]] = ("spark", "local")) -> Entries:
    """A line for each engine. SetupError if they don't write the same bytes."""
    yield from ("### A fleet", "", *head(_FLEET_COLUMNS))
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        clusters, plans = Path(folder, "clusters"), [Path(folder, engine) for engine in engines]
        for number in range(specs):
            (cluster_folder := clusters / f"cluster-{number:03d}").mkdir(parents=True)
            write(cases.make(FLEET_CASE, f"{SEED}-{number}"), cluster_folder, None).rename(
                cluster_folder / f"{cluster_folder.name}.yaml"
            )
        for engine, out in zip(engines, plans, strict=True):
            result = apart(planned_fleet, clusters, engine, out)
            yield Figures("fleets", asdict(result))
            peaks = megabytes(result.driver_peak_bytes), megabytes(result.worker_peak_bytes)
            label = f"{result.specs:,} × {FLEET_CASE}, {FLEET_CANDIDATES} candidates each"
            yield row((label, engine, f"{result.seconds:.1f}", f"{result.cpu_seconds:.1f}", *peaks))
        if any(_contents(each) != _contents(plans[0]) for each in plans[1:]):
            raise SetupError("the engines have written different plans of the same fleet")


def planned_fleet(clusters: Path, engine: Literal["spark", "local"], out: Path) -> FleetCost:
    """Plan every spec below a folder with one command, in this process and the processes that it starts."""
    options = WhatifOptions(engine=engine, out=out, candidates=FLEET_CANDIDATES)
    with watched_children() as children:
        started, cpu = perf_counter(), process_time()
        planned = whatif_fleet([clusters / "*" / "*.yaml"], options, get_console(), summary)
        seconds, cpu = perf_counter() - started, process_time() - cpu
    return FleetCost(
        len(planned), engine, seconds, cpu + sum(children.cpu_since({})), peak_bytes(), children.peak_bytes
    )


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(case: BenchCase, folder: Path, disk: str | None) -> Path:
    """Writes the case's YAML and the state files that it names beside it."""
    (folder / "topics-describe.txt").write_text(_topics_text(case))
    (folder / "log-dirs.txt").write_text(_log_dirs_text(case))
    before, spec = {broker.id for broker in case.brokers_before}, folder / "spec.yaml"
    spec_values = {
        "version": 1,
        "cluster": {
            "name": case.name.replace("/", "-"),
            "brokers": [{"id": each.id, "rack": each.rack} for each in case.brokers_before],
            "state": {"assignment": "topics-describe.txt", "sizes": "log-dirs.txt"},
        },
        "changes": {
            "add_brokers": [{"id": each.id, "rack": each.rack} for each in case.brokers_after if each.id not in before]
        },
        **({"balance": {"disk": disk}} if disk else {}),
    }
    spec.write_text(yaml.safe_dump(spec_values, sort_keys=False))
    return spec


def _topics_text(case: BenchCase) -> str:
    """The output of `kafka-topics --describe`: each preferred leader leads, and all replicas are in sync."""
    lines, factor = [], case.replicas.shape[1]
    counts, last = dict.fromkeys(range(len(case.topic_names)), 0), -1
    for topic in case.topic_of.tolist():
        counts[topic] += 1
    for topic, partition, replicas in zip(
        case.topic_of.tolist(), case.partition_ids.tolist(), case.replicas.tolist(), strict=True
    ):
        name, listed = case.topic_names[topic], ",".join(map(str, replicas))
        if topic != last:
            lines.append(f"Topic: {name}\tPartitionCount: {counts[topic]}\tReplicationFactor: {factor}\tConfigs: ")
        lines.append(
            f"\tTopic: {name}\tPartition: {partition}\tLeader: {replicas[0]}\tReplicas: {listed}\tIsr: {listed}"
        )
        last = topic
    return "\n".join((*lines, ""))


def _log_dirs_text(case: BenchCase) -> str:
    """The output of `kafka-log-dirs --describe`."""
    dir_rows: dict[int, list[dict[str, object]]] = {broker.id: [] for broker in case.brokers_before}
    for topic, partition, brokers, size in zip(
        case.topic_of.tolist(),
        case.partition_ids.tolist(),
        case.replicas.tolist(),
        case.size_bytes.tolist(),
        strict=True,
    ):
        name = f"{case.topic_names[topic]}-{partition}"
        for broker in brokers:
            dir_rows[broker].append({"partition": name, "size": size, "offsetLag": 0, "isFuture": False})
    dirs = [
        {"broker": broker, "logDirs": [{"logDir": "/kafka", "error": None, "partitions": rows}]}
        for broker, rows in dir_rows.items()
    ]
    return f"Querying brokers for log directories information\n{json.dumps({'version': 1, 'brokers': dirs})}\n"
