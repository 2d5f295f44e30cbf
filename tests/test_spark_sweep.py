"""The sweep through Spark: the same rows, front and winner as in process, however the work is cut."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from planner import bench_cases, problem, sweep, workflow
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


def test_a_worker_unpickles_the_problem_once(small):
    """The tables that are worked out from a problem are kept with it, so there must be one problem a process."""
    pickled = pickle.dumps(small[0])

    assert job.unpickled(pickled) is job.unpickled(bytes(pickled))


@pytest.mark.parametrize("master", ["local[1]", "local[2]"])
def test_whatif_writes_the_same_bytes_with_every_engine(master, tmp_path):
    """The whole folder, the candidates' table included, is the same as without Spark, and the same again."""
    spec = ROOT / "examples" / "remove-brokers.yaml"

    def folder(name: str, **options) -> dict[str, bytes]:
        out = tmp_path / name
        workflow.whatif(spec, workflow.Options(out=out, candidates=250, **options), Console(file=io.StringIO()))
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}

    local = folder("local", engine="local")

    assert local == folder("again", engine="local")
    assert local == folder("spark", engine="spark", master=master, partitions=3)


def test_code_is_zipped_the_same_each_time():
    """What is shipped to a cluster's executors depends on the code alone."""
    first, second = (Path(job.zipped_code()).read_bytes() for _ in range(2))

    assert first == second
