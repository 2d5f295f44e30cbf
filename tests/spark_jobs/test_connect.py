"""The sweep through Spark Connect: a server on loopback that doesn't have the planner."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from spark_servers import ROOT, Server, connect, machine

from planner.cli import whatif_fleet
from planner.plan.document import codec

pytestmark = pytest.mark.spark

EXAMPLES = [ROOT / "examples" / f"{name}.yaml" for name in ("remove-brokers", "no-racks")]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """A Spark Connect server, which ends after the module's tests."""
    with connect(machine(tmp_path_factory.mktemp("connect"))) as started:
        yield started


def files(folder: Path) -> dict[str, bytes]:
    """The path and content of every file in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remote(server: Server, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `planner whatif … --remote` where no Java can be found, because only the server needs one."""
    code = "from planner.cli.main import main; main()"
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    return subprocess.run(
        [sys.executable, "-c", code, "whatif", *map(str, arguments), "--remote", server.address],
        env=environment | {"PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_fleet_through_connect_gets_the_bytes_of_each_planned_here_alone(server, tmp_path):
    """Each spec's folder, winner and candidates' table are the same as from one process without Spark."""
    ran = remote(server, *EXAMPLES, "--out", tmp_path / "fleet", "--candidates", 60)

    assert (0, "") == (ran.returncode, ran.stderr)
    for spec in EXAMPLES:
        options = whatif_fleet.WhatifOptions(out=tmp_path / spec.stem, candidates=60, engine="local")
        whatif_fleet.whatif(spec, options, Console(file=io.StringIO()))
        assert files(tmp_path / spec.stem) == files(tmp_path / "fleet" / spec.stem)


def test_a_second_command_on_the_same_server_gets_the_same_plan(server, tmp_path):
    """Sessions on one server are independent, the number of partitions doesn't matter, and stdout has the plan."""
    options = ("--candidates", 40, "--format", "json")
    ran = remote(server, EXAMPLES[0], *options, "--out", tmp_path / "one", "--partitions", 3)

    assert (0, "") == (ran.returncode, ran.stderr)
    alone = whatif_fleet.WhatifOptions(out=tmp_path / "alone", candidates=40, engine="local")
    plan = whatif_fleet.whatif(EXAMPLES[0], alone, Console(file=io.StringIO())).plan
    assert json.loads(ran.stdout) == json.loads(codec.encode(plan))


LARGE = """
import pickle, sys
from spark_jobs import fleet, session
with session.open_session(remote=sys.argv[1]) as spark:
    sizes = [1_000, 2_000_000, 150_000_000]
    sent = fleet.sent(spark, len, range(3), lambda number: pickle.dumps(bytes(sizes[number] // 10)))
    given = fleet.sent(spark, bytes, range(3), lambda number: pickle.dumps(sizes[number]))
    print(sorted(dict(sent).items()), sorted((number, len(made)) for number, made in given))
"""


def test_specs_and_plans_of_any_size_go_through_connect(server):
    """Small specs fit into a message, which has 128 MB at most. Large ones go as a file and return in pieces."""
    ran = subprocess.run(
        [sys.executable, "-c", LARGE, server.address], cwd=ROOT, capture_output=True, text=True, check=False
    )
    there = [(0, 100), (1, 200_000), (2, 15_000_000)]
    assert (f"{there} [(0, 1000), (1, 2000000), (2, 150000000)]\n", "") == (ran.stdout, ran.stderr)
