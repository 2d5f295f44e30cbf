"""A fleet on Spark: each worker, on this machine or on another one, plans whole specs.

Workers on this machine read specs themselves. For other machines the driver reads each spec and sends it as a separate
job, so that this process and Java hold only the specs and answers that are at work.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_jobs import java, worker_tasks
from spark_jobs.spark_jvm import Opening
from spark_jobs.worker_tasks import Progress, SentValues

if TYPE_CHECKING:
    from spark_jobs.session import Session

# How often executors are counted, so that new ones get specs too.
_COUNTED_SECONDS = 5.0
# An answer travels in pieces of this many bytes, because a message of Spark Connect may have at most 128 MB.
_PIECE_BYTES = 16 << 20
# A canceled job ends within this time, or with its session.
_END_SECONDS = 5.0


def specs_beside(
    opening: Opening[dict[int, Any]],
    steps: tuple[Callable[[int], Any], Callable[[int], Any]],
    count: int,
    check: Callable[[Sequence[Any]], object],
    *,
    partitions: int | None = None,
    progress: Progress,
    helps: bool = True,
) -> list[Any]:
    """The results of the second step for all specs; `check` gets the results of the first step before it begins.

    A spec is a task, or `partitions` tasks get them in turn. If it `helps`, this thread takes the first specs until the
    workers of the session, which is still opening, are ready.
    """
    own_steps = _OwnSteps(steps, count, check, progress)

    def job(spark: Session) -> dict[int, Any]:
        started_count, idle = own_steps.end()
        tasks = partitions or count
        read_results = called(spark, steps[0], range(started_count, count), tasks)
        if started_count <= count:
            idle.wait()
            check([*own_steps.done, *(read_results[number] for number in range(started_count, count))])
        first_number = max(started_count - count, 0)
        return called(spark, steps[1], range(first_number, count), tasks, progress)

    opening.submit(job)
    if own_steps.take_all(lambda: opening.error is not None or not helps):
        java.find()  # A missing Java is an error, even if there are few specs.
        opening.release()
        return own_steps.done[count:]
    results = opening.result()
    return [*own_steps.done[count:], *(results[number] for number in range(len(own_steps.done[count:]), count))]


class _OwnSteps:
    """The steps that the driver takes until it is told to stop: first the first step of all specs, then the second."""

    def __init__(
        self,
        steps: tuple[Callable[[int], Any], Callable[[int], Any]],
        count: int,
        check: Callable[[Sequence[Any]], object],
        progress: Progress,
    ) -> None:
        self._steps, self._count, self._check, self._progress = steps, count, check, progress
        self._lock, self._over, self._idle = threading.Lock(), False, threading.Event()
        self._begun, self.done = 0, list[Any]()

    def end(self) -> tuple[int, threading.Event]:
        """Starts no more steps; returns how many were started, and an event for the end of the last one."""
        with self._lock:
            self._over = True
            return self._begun, self._idle

    def take_all(self, has_failed: Callable[[], bool]) -> bool:
        """Takes steps; True if it took all of them."""
        try:
            while len(self.done) < 2 * self._count:
                if len(self.done) == self._count:
                    self._check(self.done)
                with self._lock:
                    if self._over or has_failed():
                        return False
                    self._begun += 1
                second, number = divmod(len(self.done), self._count)
                self.done.append(self._steps[second](number))
                self._progress(number + 1 if second else 0, self._count)
            return True
        finally:
            self._idle.set()


def called(
    spark: Session, step: Callable[[int], Any], numbers: Sequence[int], tasks: int, progress: Progress | None = None
) -> dict[int, Any]:
    """The results of a picklable function for each of these numbers, in this process's current folder."""
    folder = Path.cwd()
    questions = [partial(_called_in, folder, step, number) for number in numbers]
    return dict(zip(numbers, worker_tasks.answers(spark, questions, tasks, progress=progress), strict=True))


def _called_in(folder: Path, step: Callable[[int], Any], number: int) -> Any:
    # A worker's current folder is the one where Java was started.
    os.chdir(folder)
    return step(number)


def sent(
    spark: Session,
    step: Callable[[Any], Any],
    numbers: Sequence[int],
    pickled: Callable[[int], bytes],
    at_once: int | None = None,
) -> Iterator[tuple[int, Any]]:
    """Each of these numbers with the result of `step` for its `pickled` value, in any order.

    `at_once` of them are at work at a time: by default as many as a job has tasks. An error ends them all.
    """

    def ask(number: int) -> Any:
        tables = worker_tasks.task_answers(spark, [step, pickled(number)], _stepped, 1)
        return pickle.loads(b"".join(table["piece"][0].as_py() for table in tables))

    asking, remaining, counted = _Asking(ask, numbers), len(numbers), -_COUNTED_SECONDS
    try:
        while remaining:
            if monotonic() >= counted + _COUNTED_SECONDS:
                asking.grow(min(at_once or worker_tasks.tasks_for(spark), len(numbers)))
                counted = monotonic()
            try:
                number, answer, error = asking.answers.get(timeout=_COUNTED_SECONDS)
            except Empty:
                continue
            if error is not None:
                raise error
            remaining -= 1
            yield number, answer
    finally:
        asking.over.set()
        if remaining:
            worker_tasks.cancel(spark)
            asking.end()


class _Asking:
    """Threads that ask for answers, each for one number after the other. They end with the process."""

    def __init__(self, ask: Callable[[int], Any], numbers: Sequence[int]) -> None:
        self._ask, self._waiting, self._lock = ask, iter(numbers), threading.Lock()
        self._threads, self.over = list[threading.Thread](), threading.Event()
        self.answers = SimpleQueue[tuple[int, Any, Exception | None]]()

    def grow(self, most: int) -> None:
        """Starts threads until there are `most`."""
        while len(self._threads) < most:
            self._threads.append(threading.Thread(target=self.take, name="spark-spec", daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        """Waits a short time for the threads, whose jobs are canceled."""
        deadline = monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def take(self) -> None:
        """The work of one thread."""
        while True:
            with self._lock:
                number = None if self.over.is_set() else next(self._waiting, None)
            if number is None:
                return
            try:
                self.answers.put((number, self._ask(number), None))
            except Exception as error:  # raised by the code that waits for the answer
                with self._lock:
                    self.over.set()
                self.answers.put((number, None, error))


def _stepped(received: SentValues, _: int) -> Iterator[pa.Table]:
    answer = pickle.dumps(received[0](received[1]))
    for start in range(0, len(answer), _PIECE_BYTES):
        yield pa.table({"piece": [answer[start : start + _PIECE_BYTES]]})
