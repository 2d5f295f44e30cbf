"""Starts Spark's JVM so that it can be ended: in a separate OS session, and without pyspark's signal handlers.

pyspark doesn't say which process the JVM is, and handles Ctrl-C by itself: it asks the JVM to cancel its jobs and
waits. Three names in its modules are replaced while a session is made; nothing else of pyspark is changed.

Opening a session takes seconds, mostly for Java. An `Opening` does it in another thread, while this thread reads the
inputs and begins with the work. Work for the session is submitted meanwhile. The other thread does this work as soon as
the session is open and prepared, keeps the answer, and closes the session unless more work will follow.
"""

import os
import signal
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from planner.model import interrupts
from planner.model.errors import PlannerError, SetupError

T = TypeVar("T")

_EXIT_SECONDS = 2
# How many of the JVM's lines are kept until the session is open: a failed start prints its cause last.
_MOST_KEPT = 200
# The shell's messages about Spark's start script (for example that its process was killed) begin with this.
_SCRIPT = b"/bin/spark-class: line "
# Spark's exit code if it can't make a folder for its blocks.
_NO_FOLDER = 53
NO_SCRATCH = "the disk of its scratch folder is full, or can't be written; SPARK_LOCAL_DIRS names another folder"
_DIED = "Spark's Java process ended before its work was done ({}); nothing was written"


class _JvmOutput:
    """The JVM's output: kept until the session is open, then passed on to stderr line by line."""

    def __init__(self) -> None:
        self._kept: list[bytes] | None = []
        self._lock = threading.Lock()

    def read(self, reader: int) -> None:
        """Reads a pipe to its end, in another thread."""
        threading.Thread(target=self._read, args=(reader,), name="spark-output", daemon=True).start()

    def pass_on(self) -> None:
        """Prints the kept lines, then each line as it comes, except the shell's messages about Spark's start script."""
        with self._lock:
            lines, self._kept = self._kept or [], None
            for line in lines:
                if _SCRIPT not in line:
                    _print(line)

    def _read(self, reader: int) -> None:
        with open(reader, "rb") as lines:
            for line in lines:
                with self._lock:
                    if self._kept is not None:
                        self._kept = [*self._kept[-_MOST_KEPT:], line]
                    elif not interrupts.pending():
                        _print(line)


def _print(line: bytes) -> None:
    with suppress(OSError):
        os.write(2, line)


class Launch:
    """The JVM of a session; `stop` ends the session while the JVM runs."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.stop: Callable[[], None] | None = None
        self.output = _JvmOutput()

    def died(self, *, patient: bool = False) -> str:
        """How the JVM ended; empty while it runs."""
        from pyspark import SparkContext

        # If this is the process's second session, it has a JVM already.
        process = self.process or getattr(SparkContext._gateway, "proc", None)
        if process is None:
            return ""
        with suppress(subprocess.TimeoutExpired):
            # The JVM's connections break some milliseconds before its exit code is available.
            process.wait(_EXIT_SECONDS if patient else 0)
        if (code := process.returncode) is None:
            return ""
        if code == _NO_FOLDER:
            return NO_SCRATCH
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """Kills the JVM and its workers, and makes pyspark forget them, so that the next session starts another JVM."""
        interrupts.end_all()
        self._forget()

    def kill(self) -> None:
        """Kills only the JVM, because another session of this process may be at work."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._forget()

    def retire(self) -> subprocess.Popen[bytes] | None:
        """Lets the JVM, whose session is stopped, end by itself; None if other code started it."""
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        if self.process is None or self.process.stdin is None or gateway is None:
            return None
        gateway.shutdown()
        self._forget()
        self.process.stdin.close()
        return self.process

    def _forget(self) -> None:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def forget_ended() -> None:
    """Makes pyspark forget a JVM that has ended: an earlier session's, which was killed while it stopped."""
    launch = Launch()
    if launch.died():
        launch._forget()


@contextmanager
def launched() -> Iterator[Launch]:
    """A launch whose session is stopped at the end of the block; SetupError if the JVM dies in it.

    After a signal, it kills the JVM and its workers at once.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    launch = Launch()
    try:
        yield launch
    except BaseException as error:
        # A refused or broken connection means that the JVM is ending; a JVM that answers with an error is running.
        lost = isinstance(error.__cause__, (OSError, Py4JError)) and not isinstance(error.__cause__, Py4JJavaError)
        broken = lost or not isinstance(error, PlannerError)
        how = launch.died(patient=broken and not interrupts.pending())
        if how or interrupts.pending() or not isinstance(error, Exception):
            launch.end()
        elif launch.stop is not None:
            launch.stop()
        if isinstance(error, Exception) and not interrupts.pending() and not how.startswith("killed"):
            launch.output.pass_on()
        if how and isinstance(error, Exception) and not interrupts.pending():
            before = f"{error}; " if isinstance(error, SetupError) else ""
            raise SetupError(f"{before}{_DIED.format(how)}") from error
        raise
    if launch.stop is not None:
        launch.stop()


@contextmanager
def own_session(launch: Launch, scratch: Path) -> Iterator[None]:
    """A JVM started in the block leads a separate OS session, so that a terminal's Ctrl-C doesn't reach it.

    pyspark writes the JVM's address to a file in `scratch`.
    """
    from pyspark import accumulators, java_gateway
    from pyspark.core import context

    # A JVM that isn't needed any more is killed, perhaps while its session stops; the user needn't see a warning.
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
    # When the JVM is killed, it breaks these connections, and Python would print a traceback.
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        setattr(server, "handle_error", lambda *_: None)  # noqa: B010  mypy: a method

    gateway: dict[str, Any] = vars(java_gateway)
    spark_context: dict[str, Any] = vars(context)
    popen, signals = gateway["Popen"], spark_context["signal"]

    def started(command: Any, **options: Any) -> Any:
        reader, writer = os.pipe()
        with interrupts.delayed_signals():
            launch.process = popen(command, start_new_session=True, stdout=writer, stderr=writer, **options)
            interrupts.remember_session(launch.process.pid)
        os.close(writer)
        launch.output.read(reader)
        return launch.process

    gateway["Popen"] = started
    files = SimpleNamespace(mkdtemp=partial(tempfile.mkdtemp, dir=scratch), mkstemp=tempfile.mkstemp)
    tempfiles, gateway["tempfile"] = gateway["tempfile"], files
    spark_context["signal"] = SimpleNamespace(signal=lambda *_: None, SIGINT=signal.SIGINT)
    try:
        yield
    finally:
        gateway["Popen"], spark_context["signal"], gateway["tempfile"] = popen, signals, tempfiles


Prepare = Callable[[Any], None]

# A session that is no longer needed has 5 s to end; this is how often it is checked.
_ROUND_SECONDS, _ROUNDS = 0.05, 100


class Opening(Generic[T]):
    """A session that is being opened; `submit` gives it work, `result` waits for the answer."""

    def __init__(self, session: AbstractContextManager[Any], prepare: Prepare) -> None:
        self._session, self._prepare = session, prepare
        self._work: SimpleQueue[tuple[Callable[[Any], T], bool] | None] = SimpleQueue()
        self._answers: SimpleQueue[T] = SimpleQueue()
        self._answered = threading.Semaphore(0)
        self._open = self.needless = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="spark-session", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Any], T], *, more: bool = False) -> None:
        """Adds work for the session: the last one, unless `more` will be submitted."""
        self._work.put((work, more))

    def result(self) -> T:
        """The answer of the next work; raises the error of the work or of the session."""
        self._answered.acquire()
        if self.error is not None:
            raise self.error
        return self._answers.get()

    def release(self) -> None:
        """The session isn't needed any more: `close` will ignore its errors and not wait for its end."""
        self.needless = True

    def close(self, seconds: float = 0, *, failed: bool) -> None:
        """Waits for the thread's end.

        If `failed`, kills a session that is still opening, because nobody needs it. Kills a released session after
        these seconds.
        """
        self._work.put(None)
        if self.needless and not failed:
            self._thread.join(seconds)
        for _ in range(_ROUNDS):
            if not self._thread.is_alive():
                return
            if self.needless or (failed and not self._open) or interrupts.pending():
                interrupts.end_all()
            elif not failed:
                self._thread.join()
            self._thread.join(_ROUND_SECONDS)

    def _run(self) -> None:
        try:
            with self._session as spark:
                self._open = True
                self._prepare(spark)
                more = True
                while more and (job := self._work.get()) is not None:
                    work, more = job
                    self._answers.put(work(spark))
                    self._answered.release()
        except BaseException as error:  # `result` raises it in the waiting thread
            self.error = error
            self._answered.release()


@contextmanager
def opened(session: AbstractContextManager[Any], prepare: Prepare = lambda _: None) -> Iterator[Opening[Any]]:
    """The session while it opens and is prepared; closed at the end of the block, unless it was released."""
    opening: Opening[Any] = Opening(session, prepare)
    try:
        yield opening
    except BaseException:
        opening.close(failed=True)
        raise
    if not opening.needless:
        opening.close(failed=False)
