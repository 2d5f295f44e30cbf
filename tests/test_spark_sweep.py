"""The sweep through Spark: the same rows, front and winner as in process, however the work is cut."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from planner import bench_cases, problem, sweep
from planner.candidates import candidates
from planner.model import Sweep
from spark_jobs import sweep as job

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def small():
    """A problem and a table with every strategy in it."""
    built = problem.build(bench_cases.to_spec(bench_cases.make("no-racks")))
    return built, candidates(built, Sweep(candidates=400, seed=5))


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_any_number_of_partitions_gives_what_one_process_gives(spark, small, partitions):
    """Scores, front and best rows are equal to the last value."""
    built, rows = small

    through_spark = job.run(spark, built, rows, partitions=partitions)

    assert sweep.run(built, rows) == through_spark


def test_the_order_of_the_rows_does_not_matter(spark, small):
    """Spark may be handed the candidates in any order."""
    built, rows = small
    backwards = rows.take(pa.array(range(len(rows) - 1, -1, -1)))

    assert job.run(spark, built, rows) == job.run(spark, built, backwards)


def test_progress_is_told_from_nothing_to_all_and_never_backwards(spark, small):
    """What a progress bar needs."""
    built, rows = small
    told: list[tuple[int, int]] = []

    job.run(spark, built, rows, partitions=4, progress=lambda done, total: told.append((done, total)))

    assert [(0, 4), (4, 4)] == [told[0], told[-1]]
    assert sorted(told) == told


def test_dear_rows_are_dealt_evenly(small):
    """Each partition gets its share of the solved plans, which take a thousand times as long as a seed."""
    _, rows = small
    chunks = job.deal(rows, 4)["strategy"].chunks

    for strategy in ("optimum", "kafka_striped", "kafka_classic"):
        counts = [chunk.to_pylist().count(strategy) for chunk in chunks]
        assert max(counts) - min(counts) <= 1


def test_a_worker_unpickles_the_problem_once(small):
    """The tables that are worked out from a problem are kept with it, so there must be one problem a process."""
    pickled = pickle.dumps(small[0])

    assert job._unpickled(pickled) is job._unpickled(bytes(bytearray(pickled)))


@pytest.mark.parametrize(("master", "partitions"), [("local[1]", 3), ("local[2]", 1)])
def test_whatif_writes_the_same_bytes_with_every_engine(master, partitions, tmp_path):
    """The whole folder, the candidates' table included, is the same as without Spark, and the same again."""
    local = folder(tmp_path / "local", "--engine", "local")

    assert local == folder(tmp_path / "again", "--engine", "local")
    assert local == folder(tmp_path / "spark", "--master", master, "--partitions", str(partitions))


def folder(out: Path, *options: str) -> dict[str, bytes]:
    """What `planner whatif` writes, run in a process of its own: one process has one Spark."""
    spec = ROOT / "examples" / "remove-brokers.yaml"
    arguments = ["whatif", str(spec), "--out", str(out), "--candidates", "250", *options]
    command = [sys.executable, "-c", "from planner.cli import main; main()", *arguments]
    subprocess.run(command, check=True, capture_output=True)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
