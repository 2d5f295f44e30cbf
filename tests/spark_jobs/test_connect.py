"""The sweep through Spark Connect: a server on loopback that knows nothing of the planner."""

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

from planner.cli import workflow
from planner.plan.document import codec

pytestmark = pytest.mark.spark

EXAMPLES = [ROOT / "examples" / f"{name}.yaml" for name in ("remove-brokers", "no-racks")]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """Ended after the module's tests."""
    with connect(machine(tmp_path_factory.mktemp("connect"))) as started:
        yield started


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remote(server: Server, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`planner whatif … --remote` with no Java to be found: the server's is the only one needed."""
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
    """Every folder, winner and candidates' table is what one process makes of one spec."""
    ran = remote(server, *EXAMPLES, "--out", tmp_path / "fleet", "--candidates", 60)

    assert (0, "") == (ran.returncode, ran.stderr)
    for spec in EXAMPLES:
        options = workflow.WhatifOptions(out=tmp_path / spec.stem, candidates=60, engine="local")
        workflow.whatif(spec, options, Console(file=io.StringIO()))
        assert files(tmp_path / spec.stem) == files(tmp_path / "fleet" / spec.stem)


def test_a_second_command_on_the_same_server_gets_the_same_plan(server, tmp_path):
    """Sessions of one server don't meet, and the number of partitions doesn't matter; the plan is on stdout."""
    options = ("--candidates", 40, "--format", "json")
    ran = remote(server, EXAMPLES[0], *options, "--out", tmp_path / "one", "--partitions", 3)

    assert (0, "") == (ran.returncode, ran.stderr)
    alone = workflow.WhatifOptions(out=tmp_path / "alone", candidates=40, engine="local")
    plan = workflow.whatif(EXAMPLES[0], alone, Console(file=io.StringIO())).plan
    assert json.loads(ran.stdout) == json.loads(codec.encode(plan))


LARGE = """
import pickle, sys
from spark_jobs import session, specs
with session.open_session(remote=sys.argv[1]) as spark:
    sizes = [1_000, 2_000_000, 150_000_000]
    sent = specs.sent(spark, len, range(3), lambda number: pickle.dumps(bytes(sizes[number] // 10)))
    given = specs.sent(spark, bytes, range(3), lambda number: pickle.dumps(sizes[number]))
    print(sorted(dict(sent).items()), sorted((number, len(made)) for number, made in given))
"""


def test_specs_and_plans_of_any_size_go_through_connect(server):
    """Small ones within a message, larger ones as a file, and back in pieces: a message has 128 MB at most."""
    ran = subprocess.run(
        [sys.executable, "-c", LARGE, server.address], cwd=ROOT, capture_output=True, text=True, check=False
    )
    there = [(0, 100), (1, 200_000), (2, 15_000_000)]
    assert (f"{there} [(0, 1000), (1, 2000000), (2, 150000000)]\n", "") == (ran.stdout, ran.stderr)
