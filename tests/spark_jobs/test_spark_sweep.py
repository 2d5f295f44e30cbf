"""The sweep through Spark gives the same rows, front and winner as in one process, however the work is split."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import ROOT

from benchmarks import cases
from planner.model import build_problem
from planner.model.errors import SetupError
from planner.model.spec import Changes, Growth, Sweep, Variant
from planner.sweep import candidates_file, choice, evaluate
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import Search
from spark_jobs import sweep, worker_tasks

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def small():
    """A problem, and a table of candidates with every strategy."""
    built = build_problem.build(cases.to_spec(cases.make("no-racks")))
    return built, candidates(built, Sweep(candidates=400, seed=5))


@pytest.fixture(scope="module")
def alone(small):
    """What one process finds among these candidates."""
    return evaluate.run(*small)


@pytest.fixture(scope="module")
def fleet(small):
    """Three problems of different sizes with their candidates."""
    others = [build_problem.build(cases.to_spec(cases.make(name))) for name in ("expand-small", "raise-rf")]
    every = [small, *((built, candidates(built, Sweep(candidates=60))) for built in others)]
    return [Search(*each) for each in every]


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_any_number_of_partitions_gives_what_one_process_gives(spark, small, alone, partitions):
    """Scores, front and best rows are exactly equal with any number of partitions."""
    built, rows = small

    through_spark = sweep.run_fleet(spark, [Search(built, rows)], partitions=partitions)[0]

    assert alone == through_spark


def test_a_large_sweep_keeps_the_same_rows(spark):
    """With more candidates than kept rows, the workers keep the same sample, front and best rows as one process."""
    built = build_problem.build(cases.to_spec(cases.make("no-racks")))
    rows = candidates(built, Sweep(candidates=130_000, solved=3))

    through_spark = sweep.run_fleet(spark, [Search(built, rows)], partitions=5)[0]

    assert evaluate.run(built, rows) == through_spark
    assert 60_000 < len(through_spark.scores) < 70_000


def test_workers_write_every_row(spark, small, tmp_path):
    """Each task writes its own complete file. Together they have the rows that one process writes."""
    built, rows = small
    here, there = (candidates_file.folder(name, tmp_path, "c", "changes") for name in ("here", "there"))
    alone = evaluate.run(built, rows, scores=here)

    (found,) = sweep.run_fleet(spark, [Search(built, rows, there)], partitions=3)

    assert alone == found
    assert 3 == len(list((tmp_path / "there").rglob("part-*.parquet")))
    written = [pq.read_table(tmp_path / name).sort_by("candidate") for name in ("here", "there")]
    assert 400 == len(written[0])
    assert written[0].equals(written[1])


def test_progress_is_told_from_nothing_to_all_and_never_backwards(spark, small):
    """Progress starts at nothing, ends at all, and never goes back."""
    built, rows = small
    told: list[tuple[int, int]] = []

    sweep.run_fleet(spark, [Search(built, rows)], partitions=4, progress=lambda done, total: told.append((done, total)))

    assert [(0, 4), (4, 4)] == [told[0], told[-1]]
    assert sorted(told) == told


def test_a_fleet_gives_what_each_problem_alone_gives(spark, fleet, alone):
    """Many problems in one job give the same results as each problem alone."""
    here = (alone, *(evaluate.run(*each[:2]) for each in fleet[1:]))
    assert here == sweep.run_fleet(spark, fleet, partitions=3)


def test_aims_and_scenarios_go_with_the_problem(spark):
    """Variants with aims and scenarios give the same results as without Spark."""
    spec = cases.to_spec(cases.make("no-racks"))
    growth = (Growth("all twice", "*", 2.0),)
    variant = Variant("drained", Changes(remove_brokers=(spec.cluster.brokers[0].id,)))
    requested = Sweep(candidates=80, aims=("makespan",), variants=(variant,), growth=growth)
    tried = choice.alternatives(replace(spec, sweep=requested))
    fleet = [Search(each.problem, each.candidates) for each in tried]

    assert ["changes", "drained"] == [each.name for each in tried]
    assert tuple(evaluate.run(*each[:2]) for each in fleet) == sweep.run_fleet(spark, fleet, partitions=2)


def test_a_python_worker_killed_during_the_sweep_changes_nothing(spark, small, alone):
    """The results are the same, also in a local session, if a worker is killed, as for lack of memory."""
    built, rows = small

    def process_ids(batches):
        time.sleep(0.2)  # so that both workers get some of it
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": pa.array([os.getpid()] * len(batch), pa.int64())})

    workers = spark.range(8).repartition(8).mapInArrow(process_ids, "id long").distinct().toArrow()["id"].to_pylist()
    killed: list[int] = []

    def kill(done: int, _: int) -> None:
        if done and not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    assert alone == sweep.run_fleet(spark, [Search(built, rows)], partitions=12, progress=kill)[0]
    assert workers[:1] == killed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ModuleNotFoundError: No module named 'ortools'\n", "has no module ortools"),
        ('java.io.IOException: Cannot run program "/opt/py": error=2', "there is no Python /opt/py"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has", "isn't 3."),
        (
            "Lost task 1.3 in stage 2.0 (TID 16) (h executor driver): java.io.EOFException",
            "ended again and again",
        ),
        ("Lost task 0.3 in stage 2.0 (TID 9) (h): java.net.SocketException: Connection reset", "ended again and again"),
    ],
)
def test_a_python_that_cannot_run_the_sweep_is_one_clear_error(text, said):
    """Errors that are likely on a new cluster give one sentence that says what is missing."""
    with pytest.raises(SetupError, match=re.escape(said)), worker_tasks.python_faults_named():
        raise RuntimeError(f"Job aborted due to stage failure\n{text}")


def test_any_other_error_keeps_its_traceback():
    """Any other error keeps its traceback, because it is a defect of the planner."""
    with pytest.raises(RuntimeError, match="what is this"), worker_tasks.python_faults_named():
        raise RuntimeError("what is this")


def test_a_worker_unpickles_the_problem_once(small):
    """A process needs only one copy of the problem, because tables that are computed from it are kept with it."""
    pickled = pickle.dumps(small[0])

    assert worker_tasks._unpickled(pickled) is worker_tasks._unpickled(bytes(bytearray(pickled)))


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """What `planner whatif` writes without Spark. It is the same in a second run."""
    runs = [folder(tmp_path_factory.mktemp(name) / "plan", "--engine", "local") for name in ("local", "again")]
    assert runs[0] == runs[1]
    return runs[0]


@pytest.mark.parametrize(("master", "partitions"), [("local[1]", 3), ("local[2]", 1)])
def test_whatif_writes_the_same_bytes_with_every_engine(master, partitions, local, tmp_path):
    """The whole folder, with the candidates' table, is the same with Spark, without it, and in a second run."""
    assert local == folder(tmp_path / "spark", "--master", master, "--partitions", str(partitions))


def folder(out: Path, *options: str) -> dict[str, bytes]:
    """What `planner whatif` writes. It runs in its own process, because a process can have only one Spark."""
    spec = ROOT / "examples" / "remove-brokers.yaml"
    arguments = ["whatif", str(spec), "--out", str(out), "--candidates", "60", *options]
    command = [sys.executable, "-c", "from planner.cli.main import main; main()", *arguments]
    subprocess.run(command, check=True, capture_output=True)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
