"""How far Spark is, told to a callback while a block runs; drawing is the caller's business."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.1

Progress = Callable[[int, int], None]


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session, which has no `sparkContext`. Asks the class alone: grpc may be missing."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def follow(spark: SparkSession, progress: Progress | None, total: int) -> Iterator[None]:
    """While the block runs, calls `progress(done_tasks, total_tasks)` whenever the number of done tasks has grown.

    `total` is the number of tasks the block will have: Spark forgets a stage before its last task is ever shown as
    done. The callback gets (0, total) first and, unless the block raised, (total, total) last; it runs in another
    thread in between.
    """
    if progress is None:
        yield
        return
    told = _Growing(progress, total)
    told(0)
    with _handler(spark, told) if is_connect(spark) else _poller(spark, told):
        yield
    told(total)


class _Growing:
    """Passes a number on only when it is larger than the last one, and never more than `total`."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._last = progress, total, -1
        self._lock = threading.Lock()

    def __call__(self, done: int) -> None:
        done = min(done, self._total)
        with self._lock:
            if done > self._last:
                self._last = done
                self._progress(done, self._total)


@contextmanager
def _poller(spark: SparkSession, told: Callable[[int], None]) -> Iterator[None]:
    stop = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def poll() -> None:
        # A JVM that has died answers with all kinds of errors, and whoever waits for the result tells of it.
        with suppress(Exception):
            while not stop.wait(POLL_SECONDS):
                told(_completed(tracker))

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _completed(tracker: Any) -> int:
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _handler(spark: SparkSession, told: Callable[[int], None]) -> AbstractContextManager[None]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        told(sum(stage.num_completed_tasks for stage in stages or ()))

    return _registered(spark, handle)


@contextmanager
def _registered(spark: Any, handle: Callable[..., None]) -> Iterator[None]:
    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)
