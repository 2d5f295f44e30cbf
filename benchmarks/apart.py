"""Runs each measurement in a separate process, so that earlier ones can't affect it, and measures memory and CPU."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ParamSpec, TypeVar

from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.interrupts import keep_freed_memory

_PROCESSES = Path("/proc")
_SAMPLE_SECONDS = 0.2
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

Given = ParamSpec("Given")
Result = TypeVar("Result")


def apart(function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Calls the function in a new process, and returns or raises the same; SetupError if the process was killed."""
    # The process starts with `python -c`, which would look for modules in the current folder first.
    os.environ["PYTHONSAFEPATH"] = "1"
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"), initializer=_begin) as pool:
        try:
            with interrupts.delayed_signals():
                future = pool.submit(function, *args, **kwargs)
                for process in active_children():
                    interrupts.remember_session(process.pid or 0)
            return future.result()
        except BrokenProcessPool as error:
            raise SetupError(
                f"the process measuring {', '.join(map(str, args))} was killed before it was done; "
                "most likely this machine has too little memory for it"
            ) from error


def _begin() -> None:
    """Starts a new session, so that signals reach only the waiting process, which then ends the whole session."""
    os.setsid()
    keep_freed_memory()


def peak_bytes() -> int:
    """The peak memory of this process.

    Linux's own high-water mark is preferred, because getrusage counts the parent's memory from before the start.
    """
    marked = _high_water_bytes(_PROCESSES / "self")
    if marked:
        return marked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class PythonChildren:
    """Samples the processes below this one. `peak_bytes` is the peak memory of any one Python process, 0 if unknown.

    `java_peak_bytes` is the same for Java; `cpu_seconds` has the CPU seconds of every process, by id.
    """

    def __init__(self) -> None:
        self.peak_bytes = self.java_peak_bytes = 0
        self.cpu_seconds: dict[str, float] = {}

    def look(self) -> None:
        """Samples once; one sample after the peak is enough, because the system keeps a high-water mark."""
        for process in _descendants():
            self.cpu_seconds[process.name] = max(_cpu_seconds(process), self.cpu_seconds.get(process.name, 0))
            program = _program(process)
            if program.startswith("python"):
                self.peak_bytes = max(self.peak_bytes, _high_water_bytes(process))
            elif program == "java":
                self.java_peak_bytes = max(self.java_peak_bytes, _high_water_bytes(process))

    def cpu_since(self, before: Mapping[str, float]) -> list[float]:
        """CPU seconds of each process below this one since `cpu_seconds` was `before`, most first."""
        return sorted((now - before.get(name, 0) for name, now in self.cpu_seconds.items()), reverse=True)


@contextmanager
def watched_children() -> Iterator[PythonChildren]:
    """Samples the processes below this one while the block runs."""
    children, stop = PythonChildren(), threading.Event()

    def look() -> None:
        while not stop.wait(_SAMPLE_SECONDS):
            children.look()

    thread = threading.Thread(target=look, name="bench-memory", daemon=True)
    thread.start()
    try:
        yield children
        children.look()
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class SparkCost:
    """The cost of work in a Spark session: wall seconds with the session's start, and of the start alone; CPU seconds
    of driver, Java and all workers, and of driver, Java and the busiest worker (`chain`); a worker's peak memory.
    """

    seconds: float
    session_seconds: float
    cpu_seconds: float
    chain_seconds: float
    worker_peak_bytes: int


def on_cores(count: int) -> None:
    """Lets this process and all processes that it starts from now on share `count` cores, if the system can do that.

    Then a worker is a core, as in a container. Otherwise Java would use a second core beside a single Python worker.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def on_spark(workers: int, work: Callable[[Any], Result]) -> tuple[Result, SparkCost]:
    """The result and the cost of `work` in a local Spark session with `workers` workers, opened and closed here.

    This process stays restricted to that many cores, so call this function in a separate process.
    """
    # Imported here, so that the other benchmarks run without pyspark.
    from spark_jobs import session, worker_tasks

    on_cores(workers)
    with watched_children() as children:
        started = perf_counter()
        with session.open_session(master=f"local[{workers}]") as spark:
            worker_tasks.start_workers(spark)
            children.look()
            before = dict(children.cpu_seconds)
            opened, cpu = perf_counter(), process_time()
            result = work(spark)
            ended, cpu = perf_counter(), process_time() - cpu
            children.look()
            child_seconds = children.cpu_since(before)
    spent = cpu + sum(child_seconds)
    # All other workers run in parallel with the busiest one.
    chain = spent - sum(child_seconds[1:workers])
    return result, SparkCost(ended - started, opened - started, spent, chain, children.peak_bytes)


def _descendants() -> list[Path]:
    """The folders of all processes below this one."""
    parents = {folder: _parent(folder) for folder in _PROCESSES.glob("[0-9]*")}
    descendants, parent_names = [], [(_PROCESSES / "self").resolve().name]
    while parent_names:
        children = [folder for folder, parent in parents.items() if parent in parent_names]
        descendants += children
        parent_names = [folder.name for folder in children]
    return descendants


def _parent(folder: Path) -> str:
    """The id of a process's parent, empty if it has ended; the name before the id may have spaces and parentheses."""
    stat = _text(folder / "stat")
    return stat.rpartition(")")[2].split()[1] if stat else ""


def _program(folder: Path) -> str:
    return Path(_text(folder / "cmdline").split("\0")[0]).name


def _cpu_seconds(folder: Path) -> float:
    """A process's own CPU seconds, user and system; 0 if it has ended."""
    fields = _text(folder / "stat").rpartition(")")[2].split()[11:13]
    return sum(map(int, fields)) / _TICKS if fields else 0


def _high_water_bytes(folder: Path) -> int:
    """`VmHWM` of a process; 0 if it has ended or the system has no such mark."""
    line = _text(folder / "status").partition("VmHWM:")[2].split("\n")[0].split()
    return int(line[0]) * 1024 if line else 0


def _text(file: Path) -> str:
    """A file's text, empty if it can't be read, because processes end at any time."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
