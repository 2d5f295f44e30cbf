"""A session that is opened by another thread, while this one reads what is asked for and solves the first plan.

Opening takes seconds, most of them Java's. The work for the session is submitted meanwhile; the thread does it as soon
as the session is open, closes the session, and keeps the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from planner.model import interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

Prepare = Callable[[Any], None]

# A session that is no longer needed has 5 s to end; this is how often it is checked.
_ROUND_SECONDS, _ROUNDS = 0.05, 100


class Opening(Generic[T]):
    """A session on its way; `submit` says what to do in it, `result` waits for that."""

    def __init__(self, session: AbstractContextManager[SparkSession], prepare: Prepare) -> None:
        self._session, self._prepare = session, prepare
        self._work: SimpleQueue[Callable[[SparkSession], T] | None] = SimpleQueue()
        self._answered = threading.Event()
        self._open = False
        self._answer: list[T] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="spark-session", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[SparkSession], T]) -> None:
        """What to do in the session, once."""
        self._work.put(work)

    def result(self) -> T:
        """What the work has answered, the session being closed; its error, or that of the session, is raised here."""
        self._answered.wait()
        if self.error is not None:
            raise self.error
        return self._answer[0]

    def close(self, *, failed: bool) -> None:
        """Wait for the thread's end; where `failed`, a session that still opens isn't needed and is killed."""
        self._work.put(None)
        for _ in range(_ROUNDS):
            if (failed and not self._open) or interrupts.pending():
                interrupts.end_all()
            elif not failed:
                self._thread.join()
            self._thread.join(_ROUND_SECONDS)
            if not self._thread.is_alive():
                return

    def _run(self) -> None:
        try:
            with self._session as spark:
                self._open = True
                if self._work.empty():
                    self._prepare(spark)
                work = self._work.get()
                if work is not None:
                    self._answer.append(work(spark))
        except BaseException as error:  # `result` raises it in the thread that waits
            self.error = error
        finally:
            self._answered.set()


@contextmanager
def opened(session: AbstractContextManager[SparkSession], prepare: Prepare = lambda _: None) -> Iterator[Opening[Any]]:
    """The session as it opens; gone at the end of the block. It is prepared where it is there before its work is."""
    opening: Opening[Any] = Opening(session, prepare)
    try:
        yield opening
    except BaseException:
        opening.close(failed=True)
        raise
    opening.close(failed=False)
