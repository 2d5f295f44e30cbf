"""Carries work to Spark's workers and the answers back: each worker gets the values once, and a task is a number.

A task makes everything it needs from its number and those values, so the driver makes no rows. A task that restarts on
another worker gives the same answer.

While a block runs, a callback gets Spark's progress; the caller decides how to show it.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import os
import pickle
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model import interrupts
from planner.model.errors import SetupError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from spark_jobs.session import Session

POLL_SECONDS = 0.1

Progress = Callable[[int, int], None]


def is_connect(spark: Session) -> bool:
    """True for a Spark Connect session, which has no `sparkContext`. Reads only the class: grpc may be missing."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def context(spark: Session) -> SparkContext:
    """The context of a session that isn't Spark Connect's; `spark` may be the context itself."""
    return cast("SparkContext", getattr(spark, "sparkContext", None) or spark)


def frames(spark: Session) -> SparkSession:
    """The session as one with data frames, which every Spark Connect session has."""
    return cast("SparkSession", spark)


@contextmanager
def follow(spark: Session, progress: Progress | None, total: int) -> Iterator[None]:
    """While the block runs, calls `progress(done_tasks, total_tasks)` whenever the number of done tasks has grown.

    `total` is the number of tasks of the block; it is needed because Spark forgets a stage before it shows its last
    task as done. The callback gets (0, total) first and, unless the block raised, (total, total) last; in between it
    runs in another thread.
    """
    if progress is None:
        yield
        return
    lock, last_done = threading.Lock(), -1

    def report(done: int) -> None:
        """Reports a number only if it is larger than the one before."""
        nonlocal last_done
        with lock:
            if (done := min(done, total)) > last_done:
                last_done = done
                progress(done, total)

    report(0)
    with _handler(spark, report) if is_connect(spark) else _poller(spark, report):
        yield
    report(total)


@contextmanager
def _poller(spark: Session, report: Callable[[int], None]) -> Iterator[None]:
    stop = threading.Event()
    tracker = context(spark).statusTracker()

    def poll() -> None:
        # A dead JVM raises many kinds of errors; the code that waits for the result reports it.
        with suppress(Exception):
            while not stop.wait(POLL_SECONDS):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                report(sum(stage.numCompletedTasks for stage in stages if stage is not None))

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _handler(spark: Any, report: Callable[[int], None]) -> Iterator[None]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


# More tasks would spread the work more evenly, but every task costs about 0.1 s.
PARTITIONS_PER_CORE = 2
# A cluster's executors may not all be there when they are counted, and some start only when tasks wait for them.
LEAST_ON_A_CLUSTER = 16
# Up to this many bytes, the values go with each task, because making and ending a broadcast takes longer.
_WITH_A_TASK = 500_000
# Compressed, so that Java has less to copy from one process to the other.
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
# Rows of an answer that travel together: about 10 MB, because a message of Spark Connect may have at most 128 MB.
ROWS_A_PIECE = 50_000


class SentValues:
    """On a worker: the values that were sent, each unpickled when it is used."""

    def __init__(self, pickled: Sequence[bytes]) -> None:
        self._pickled = pickled

    def __getitem__(self, index: int) -> Any:
        return _unpickled(self._pickled[index])


# A process unpickles each value once while it is one of the last two: the job's description and one problem. What is
# derived from a problem is cached by the identity of this object.
_unpickled = lru_cache(maxsize=2)(pickle.loads)

# Makes a task's answer from the values sent and the task's number.
Answer = Callable[[SentValues, int], Iterable[pa.Table]]


def task_answers(
    spark: Session, values: Sequence[Any], answer: Answer, tasks: int, progress: Progress | None = None
) -> list[pa.Table]:
    """The answers of the tasks 0 to `tasks` - 1, in any order; reports finished tasks.

    Spark gets each answer as bytes, because Java would otherwise take it apart row by row and join it again.
    """
    with python_faults_named(), _sent(spark, values) as payload, follow(spark, progress, tasks):
        if is_connect(spark):
            numbers = frames(spark).range(0, tasks, 1, tasks)
            frame = numbers.mapInArrow(partial(_in_arrow, payload, answer), "answer binary")
            answers = frame.toArrow()["answer"].to_pylist()
        else:
            # Without Spark SQL a job starts in a quarter of the time.
            answers = context(spark).range(0, tasks, 1, tasks).mapPartitions(partial(_run, payload, answer)).collect()
    return [pa.ipc.open_stream(each).read_all() for each in answers]


def cancel(spark: Session) -> None:
    """Asks Spark to cancel the session's jobs; ignores a session that has ended."""
    with suppress(Exception):
        cast("Any", spark).interruptAll() if is_connect(spark) else context(spark).cancelAllJobs()


def start_workers(spark: Session) -> None:
    """Starts the Python workers of a local session and loads the sweep in them: seconds the first time."""
    if _is_local(spark):
        task_answers(spark, (), _loaded, cores(spark))


def _loaded(_: SentValues, __: int) -> Iterable[pa.Table]:
    import_module("planner.sweep.evaluate")
    # It returns an answer, so that the code that writes and reads answers is loaded too.
    return [pa.table({"loaded": [True]})]


def _run(payload: Any, answer: Answer, tasks: Iterable[int]) -> Iterator[bytes]:
    """What tasks do: their answers in Arrow's stream format, ROWS_A_PIECE rows each.

    `payload`: the pickled values, or a reference to them: Spark's broadcast, or the name of a file.
    """
    pickled = (
        payload if isinstance(payload, tuple) else _read_values(payload) if isinstance(payload, str) else payload.value
    )
    for task in tasks:
        for table in answer(SentValues(pickled), task):
            for part in table.to_batches(max_chunksize=ROWS_A_PIECE):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, part.schema, options=_PACKED) as writer:
                    writer.write_batch(part)
                yield sink.getvalue().to_pybytes()


def _in_arrow(payload: Any, answer: Answer, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same as `_run` for Spark Connect, which has only data frames."""
    for batch in batches:
        for piece in _run(payload, answer, batch["id"].to_pylist()):
            yield pa.record_batch([pa.array([piece], pa.binary())], ["answer"])


@lru_cache(maxsize=1)
def _read_values(name: str) -> tuple[bytes, ...]:
    """The pickled values in a file that was sent to the workers; a process reads it once."""
    from pyspark import SparkFiles

    pickled: tuple[bytes, ...] = pickle.loads(Path(SparkFiles.get(name)).read_bytes())
    return pickled


@contextmanager
def python_faults_named() -> Iterator[None]:
    """Turns an error whose text matches one of _FAULTS into a SetupError; raises any other error unchanged."""
    try:
        yield
    except Exception as error:  # Spark's errors are of many kinds: Python's, py4j's, grpc's
        text = str(error)
        fault = next(
            (message.format(*match.groups()) for sign, message in _FAULTS if (match := re.search(sign, text))), None
        )
        if fault is None:
            raise
        raise SetupError(f"the work failed on Spark's workers: {fault}") from error


# Patterns in the text of Spark's errors, and the message for each.
_FAULTS = (
    # Our own errors, raised by a worker.
    (r"planner\.model\.errors\.SetupError: (.+)", "{0}"),
    (r"No space left on device", "the disk of Spark's scratch folder is full; SPARK_LOCAL_DIRS names another folder"),
    (
        # A worker that is killed during communication leaves only a broken connection.
        r"MemoryError\b|bad_alloc|failed to map segment|Cannot allocate memory|Python worker exited unexpectedly"
        r"|Lost task .*: java\.(?:io\.EOFException|\w+\.\w+Exception: (?:Connection reset|Broken pipe))",
        "a worker ended again and again, most often for lack of memory; allowed: fewer workers at once, such as "
        "--master 'local[1]', or more memory",
    ),
    (
        r"ModuleNotFoundError: No module named '([\w.]+)'",
        "their Python has no module {0}; install what kafka-planner depends on for every worker, "
        "and let PYSPARK_PYTHON name that Python",
    ),
    (r'Cannot run program "([^"]+)"', "there is no Python {0}; let PYSPARK_PYTHON name one that every worker has"),
    (
        r"PYTHON_VERSION_MISMATCH|different version in worker",
        f"their Python isn't {sys.version_info.major}.{sys.version_info.minor}, as this one is; "
        "let PYSPARK_PYTHON name one that is",
    ),
)


def tasks_for(spark: Session) -> int:
    """A job's default number of tasks: PARTITIONS_PER_CORE per core, on a cluster at least LEAST_ON_A_CLUSTER."""
    return max(PARTITIONS_PER_CORE * cores(spark), 1 if _is_local(spark) else LEAST_ON_A_CLUSTER)


def _is_local(spark: Session) -> bool:
    # Imported here, because that module imports packages that executors may not have.
    from spark_jobs.session import is_local

    return not is_connect(spark) and is_local(str(context(spark).master))


def cores(spark: Session) -> int:
    """How many tasks run at once; a Connect session doesn't tell, but it cuts a range into as many pieces."""
    if not is_connect(spark):
        return int(context(spark).defaultParallelism)
    from pyspark.sql import functions as fn

    # More rows than any cluster has cores, so that no piece is empty.
    return len(pc.unique(frames(spark).range(4096).select(fn.spark_partition_id().alias("piece")).toArrow()["piece"]))


@contextmanager
def _sent(spark: Session, values: Sequence[Any]) -> Iterator[Any]:
    """The pickled values in a form that a function sent to the workers may hold; bytes are pickled already.

    Spark Connect has no broadcasts. What a function holds goes over the wire in one message of at most 128 MB, but a
    file goes in pieces. A session accepts a file name only once, so the name is a hash of the content.
    """
    pickled = tuple(value if isinstance(value, bytes) else pickle.dumps(value) for value in values)
    if sum(map(len, pickled)) <= _WITH_A_TASK:
        yield pickled
        return
    if is_connect(spark):
        data = pickle.dumps(pickled)
        name = f"planner-problems-{hashlib.sha256(data).hexdigest()}"
        with interrupts.temporary_folder("planner-spark-") as folder:
            (folder / name).write_bytes(data)
            frames(spark).addArtifacts(str(folder / name), file=True)
        yield name
        return
    # pyspark writes the values to a file first, and would print a traceback if the disk is full.
    if shutil.disk_usage(str(context(spark)._temp_dir)).free < sum(map(len, pickled)):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    broadcast = context(spark).broadcast(pickled)
    try:
        yield broadcast
    finally:
        # If executors answer only after the session has ended, Java prints a stack trace on stderr.
        if not interrupts.pending():
            broadcast.destroy(blocking=True)


def answers(
    spark: Session,
    questions: Sequence[Callable[[], Any]],
    partitions: int | None = None,
    *,
    tasks_each: int = 1,
    assignors: Iterable[str] = (),
    progress: Progress | None = None,
) -> list[Any]:
    """The questions' answers, in the order of the questions: a large table in pieces, an empty one not at all.

    A question is a function without arguments. Each worker gets all of them once, and a task answers its share.

    Tasks get questions in turn. There are `partitions` tasks, or `tasks_each` as many as Spark has slots. The modules
    of the user's own `assignors` go to the workers with the job; SetupError if one has no file.
    """
    for assignor in sorted(assignors):
        file = inspect.getsourcefile(import_module(assignor.partition(":")[0]))
        if file is None:
            raise SetupError(f"assignor {assignor!r} has no source file to send; allowed: a module in one .py file")
        if is_connect(spark):
            frames(spark).addArtifacts(file, pyfile=True)
        else:
            context(spark).addPyFile(file)
    if not questions:
        return []
    tasks = min(partitions or tasks_each * tasks_for(spark), len(questions))
    tables = task_answers(spark, [(questions, tasks)], _share, tasks, progress)
    ordered = sorted(tables, key=lambda table: table["asked"][0].as_py())
    return [
        pickle.loads(table["row"][0].as_py()) if "row" in table.column_names else table.drop_columns("asked")
        for table in ordered
    ]


def _share(received: SentValues, task: int) -> Iterator[pa.Table]:
    """The answers of one task: tables, or rows in tables of their own; each also has the number of its question."""
    questions, tasks = received[0]
    for number in range(task, len(questions), tasks):
        answer = questions[number]()
        table = answer if isinstance(answer, pa.Table) else pa.table({"row": [pickle.dumps(answer)]})
        yield table.append_column("asked", pa.array(np.full(len(table), number)))
