"""A class data archive (AppCDS) of what the sweep's sessions load, so that they start in about half the time.

The archive fits one Java and one Spark; sessions use it where it exists (see `session.archive_path`) and do without it
where it doesn't.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from planner.errors import SetupError
from spark_jobs import java as javas
from spark_jobs import session

# Making the archive takes some tens of seconds on two cores.
_MOST_SECONDS = 600


def warm(cache: Path | None = None) -> str:
    """Make the archive for the Java that sessions will use; says where it lies and how large it is."""
    folder = cache or javas.cache_folder()
    archive = session.archive_path(javas.find(), folder)
    archive.parent.mkdir(parents=True, exist_ok=True)
    making = archive.with_suffix(".making")
    command = [sys.executable, "-m", "spark_jobs.warm", str(making), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
    if not making.exists():
        raise SetupError(f"{archive}: not made: {(ran.stderr or ran.stdout).strip()[-500:]}")
    making.replace(archive)
    return f"{archive}: {archive.stat().st_size / 1e6:.0f} MB; local sessions start with it from now on"


def record(archive: Path, cache: Path) -> None:
    """Run a small sweep in a session whose Java writes down what it loaded when it ends, and wait for that end."""
    from pyspark import SparkContext

    from planner import bench_cases, problem
    from planner.candidates import candidates
    from planner.model import Sweep
    from spark_jobs import sweep

    small = problem.build(bench_cases.to_spec(bench_cases.make("expand-small")))
    with session.open_session(master="local[2]", cache=cache, record=archive) as spark:
        sweep.run(spark, small, candidates(small, Sweep(candidates=200)))
        gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
