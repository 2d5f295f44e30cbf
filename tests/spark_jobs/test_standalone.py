"""The sweep on a standalone cluster on loopback, whose executors don't have the planner."""

from __future__ import annotations

import io
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from spark_servers import ROOT, Cluster, Machine, Server, machine, standalone, worker

from planner.cli import whatif_fleet

pytestmark = pytest.mark.spark

EXAMPLES = [ROOT / "examples" / f"{name}.yaml" for name in ("expand", "leaders-only", "raise-rf")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """The cluster. After the module's tests, it and all that it started are killed."""
    with standalone(machine(tmp_path_factory.mktemp("standalone"))) as started:
        yield started


def files(folder: Path) -> dict[str, bytes]:
    """The path and content of every file in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def planned_here(spec: Path, out: Path, candidates: int) -> dict[str, bytes]:
    """What `--engine local` writes for a single spec."""
    options = whatif_fleet.WhatifOptions(out=out, candidates=candidates, engine="local")
    whatif_fleet.whatif(spec, options, Console(file=io.StringIO()))
    return files(out)


def test_the_executors_python_has_no_planner(cluster, tmp_path):
    """The executors' Python has all that the planner needs, but not the planner. The other tests rely on that."""
    for code, ends in (
        ("import numpy, pandas, pyarrow, scipy, ortools.graph.python.min_cost_flow", 0),
        ("import planner", 1),
    ):
        command, environment = [cluster.machine.python, "-c", code], cluster.machine.environment
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert ends == ran.returncode, ran.stderr.decode()


def test_a_fleet_on_two_workers_gets_the_bytes_of_each_planned_here_alone(cluster, tmp_path):
    """One job plans three clusters. Each folder, winner and candidates' table is the same as from one process."""
    options = ("--out", tmp_path / "fleet", "--candidates", 60, "--format", "json")
    fleet = cluster.start(*EXAMPLES, *options, settings=tmp_path / "conf")
    alone = {spec.stem: planned_here(spec, tmp_path / "alone" / spec.stem, 60) for spec in EXAMPLES}
    shown, said = fleet.communicate(timeout=300)

    assert (0, "") == (fleet.returncode, said)
    assert alone == {folder.name: files(folder) for folder in (tmp_path / "fleet").iterdir()}
    told = {Path(row["folder"]).name: row["plan_id"] for row in json.loads(shown)["clusters"]}
    assert {stem: json.loads(made["plan.json"])["plan_id"] for stem, made in alone.items()} == told


def test_a_worker_killed_during_the_sweep_and_another_that_joins_change_nothing(cluster, tmp_path):
    """A worker, its executor and its task are killed. The remaining worker and a new one do its work."""
    spec = tmp_path / "long.yaml"
    spec.write_text(yaml.safe_dump(long_sweep()))
    with worker(cluster.machine, "worker-3", cluster.master) as victim:
        ran = cluster.start(spec, "--out", tmp_path / "plan", "--candidates", 600, settings=tmp_path / "conf")
        wait_for_a_task_of(victim, cluster.machine, ran)
        victim.kill()
    with worker(cluster.machine, "worker-4", cluster.master) as joined:
        wait_for_a_task_of(joined, cluster.machine, ran)
        alone = planned_here(spec, tmp_path / "alone", 600)
        _, said = ran.communicate(timeout=300)

    assert 0 == ran.returncode, said
    assert alone == files(tmp_path / "plan")
    (events,) = (tmp_path / "conf" / "events").iterdir()
    assert '"Reason":"ExecutorLostFailure"' in events.read_text()


def test_python_workers_over_their_memory_are_one_sentence(cluster, tmp_path):
    """If Python workers exceed the cluster's memory limit, the error is one sentence, without a stack."""
    out = tmp_path / "plan"
    ran = cluster.start(
        EXAMPLES[0], "--out", out, settings=tmp_path / "conf", more="spark.executor.pyspark.memory 60m\n"
    )
    shown, said = ran.communicate(timeout=300)

    assert (1, "") == (ran.returncode, shown)
    assert said.startswith(
        "planner: the work failed on Spark's workers: a worker ended again and again, most often for"
    )
    assert 1 == said.count("\n")
    assert not out.exists()


def long_sweep() -> dict[str, object]:
    """A spec whose sweep takes tens of seconds of one core: 800 partitions, 12 brokers, 4 added ones."""
    racks = {broker: f"r{broker % 4}" for broker in range(1, 17)}
    brokers = [{"id": broker, "rack": rack} for broker, rack in racks.items()]
    topics = [
        {
            "name": f"t{topic}",
            "partitions": [
                {"replicas": [(topic * 5 + number + step) % 12 + 1 for step in range(3)]} for number in range(40)
            ],
        }
        for topic in range(20)
    ]
    cluster = {"name": "long", "brokers": brokers[:12], "topics": topics}
    return {"version": 1, "cluster": cluster, "changes": {"add_brokers": brokers[12:]}}


def wait_for_a_task_of(victim: Server, of: Machine, sweep: subprocess.Popen[str]) -> None:
    """Wait until an executor in this worker's process group has started its Python, and one more second."""
    while not any(group_of(int(file.name)) == victim.process.pid for file in of.started.iterdir()):
        assert sweep.poll() is None, sweep.communicate()
        time.sleep(0.05)
    time.sleep(1)


def group_of(process: int) -> int:
    """The process group of a process, or 0 if it has ended."""
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return 0
