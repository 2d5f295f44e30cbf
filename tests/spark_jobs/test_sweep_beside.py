"""A session opens in another thread: submitted work is done, errors are raised, and nobody waits in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from clusters import no_racks, problem_of

from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.spec import Sweep
from planner.sweep import candidates_file, evaluate
from planner.sweep.candidates import ASKED, candidates
from planner.sweep.evaluate import Search
from spark_jobs import java, spark_jvm, sweep

PROBLEM = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3})
EVERY = candidates(PROBLEM, Sweep(40))


@contextmanager
def opening_session(log: list[str], ready: Callable[[], object] = lambda: None) -> Iterator[Any]:
    """Stands for a session that opens once `ready` returns."""
    log.append("opens")
    ready()
    try:
        yield "spark"
    finally:
        log.append("closed")


def test_the_answer_comes_before_the_session_is_closed() -> None:
    """The result comes while the session is open. Only the end of the block waits for the session's end."""
    log: list[str] = []
    with spark_jvm.opened(opening_session(log)) as opens:
        opens.submit(lambda spark: [spark, *log])
        assert ["spark", "opens"] == opens.result()
    assert ["opens", "closed"] == log


def test_a_session_is_prepared_while_its_work_is_waited_for() -> None:
    """The session is prepared once, before its work."""
    log: list[str] = []
    prepared = threading.Event()
    with spark_jvm.opened(
        opening_session(log), lambda spark: (log.append(f"{spark} prepared"), prepared.set())
    ) as opens:
        assert prepared.wait(20)
        opens.submit(lambda _: log.append("works"))
        opens.result()
    assert ["opens", "spark prepared", "works", "closed"] == log


def refuse() -> None:
    """Stands for a Java that can't be started."""
    raise SetupError("no Java")


@pytest.mark.parametrize("ready", [refuse, lambda: None])
def test_an_error_of_the_session_or_the_work_is_raised_where_it_is_waited_for(ready: Callable[[], None]) -> None:
    """The error is raised unchanged in `result`."""
    with spark_jvm.opened(opening_session([], ready)) as opens:
        opens.submit(lambda _: refuse())
        with pytest.raises(SetupError, match="no Java"):
            opens.result()


def test_a_session_that_nobody_needs_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the spec is wrong, starting processes are killed, and the spec's error is raised."""
    started, killed = threading.Event(), threading.Event()
    monkeypatch.setattr(interrupts, "end_all", killed.set)

    def ready() -> None:
        started.set()
        killed.wait(20)
        refuse()

    def read() -> None:
        with spark_jvm.opened(opening_session([], ready)):
            started.wait(20)
            raise ValueError("the spec")

    with pytest.raises(ValueError, match="the spec"):
        read()
    assert killed.is_set()
    assert "spark-session" not in {thread.name for thread in threading.enumerate()}


def test_a_session_without_work_is_closed() -> None:
    """The session ends with the block."""
    log: list[str] = []
    with spark_jvm.opened(opening_session(log)):
        pass
    assert ["opens", "closed"] == log


def parts(spark: Any, fleet: Any, done: sweep.Done, *_: Any) -> Any:
    """What the tasks would keep of each sweep, computed in this process."""
    numbers = [
        [each for each in range(first, len(search.candidates)) if number not in done.asked_sweeps or each != ASKED]
        for number, (search, first) in enumerate(zip(fleet, done.done_counts, strict=True))
    ]
    return [evaluate.scored(*each[:2], np.array(left, dtype=int)) for each, left in zip(fleet, numbers, strict=True)]


def test_the_plan_asked_for_is_solved_while_the_session_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver solves it, no task does, and the result is the same as from one process."""
    monkeypatch.setattr(sweep, "_parts", parts)
    may_open = threading.Event()
    asked_for = evaluate.asked_for

    def solved(*asked: Any) -> Any:
        may_open.set()
        return asked_for(*asked)

    monkeypatch.setattr(evaluate, "asked_for", solved)
    with spark_jvm.opened(opening_session([], lambda: may_open.wait(20))) as opens:
        (found,) = sweep.run_beside(opens, [Search(PROBLEM, EVERY)])
    assert [ASKED] == list(found.proposals)
    assert evaluate.run(PROBLEM, EVERY) == found


@pytest.mark.slow
def test_tasks_solve_what_the_driver_had_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fleet's plans, the driver solves as many as it can before the session opens. Tasks solve the rest."""
    monkeypatch.setattr(sweep, "_parts", parts)
    may_open, swept = threading.Event(), threading.Event()
    asked_for = evaluate.asked_for

    def slow(*asked: Any) -> Any:
        may_open.set()
        swept.wait(20)
        return asked_for(*asked)

    def told(*asked: Any) -> Any:
        swept.set()
        return parts(*asked)

    monkeypatch.setattr(evaluate, "asked_for", slow)
    monkeypatch.setattr(sweep, "_parts", told)
    with spark_jvm.opened(opening_session([], lambda: may_open.wait(20))) as opens:
        found = sweep.run_beside(opens, [Search(PROBLEM, EVERY)] * 3)
    assert [[ASKED], [], []] == [list(each.proposals) for each in found]
    monkeypatch.undo()
    assert [evaluate.run(PROBLEM, EVERY)] * 3 == list(found)


@pytest.mark.slow
@pytest.mark.parametrize("ready_after", [0, 7, 35])
def test_the_driver_evaluates_candidates_until_the_workers_are_ready(
    ready_after: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tasks evaluate the candidates that the driver hasn't begun. No row is evaluated twice, at any moment."""
    left = list[sweep.Done]()
    may_open, swept = threading.Event(), threading.Event()

    def told(spark: Any, fleet: Any, done: sweep.Done, *_: Any) -> Any:
        left.append(done)
        swept.set()
        return parts(spark, fleet, done)

    def count(done: int, total: int) -> None:
        assert 80 == total
        if done > ready_after:
            may_open.set()
            swept.wait(20)

    monkeypatch.setattr(sweep, "_parts", told)
    written = [candidates_file.folder(name, tmp_path, "c", "changes") for name in "ab"]
    with spark_jvm.opened(opening_session([], lambda: may_open.wait(20))) as opens:
        found = sweep.run_beside(opens, [Search(PROBLEM, EVERY, each) for each in written], helps=count)
    assert [evaluate.run(PROBLEM, EVERY)] * 2 == list(found)
    assert frozenset({0, 1}) == left[0].asked_sweeps
    assert left[0].done_counts[0] > ready_after or left[0].done_counts[0] == 40
    # The tasks are replaced and write no rows, so these are the driver's.
    rows = [sorted(pq.read_table(tmp_path / name)["candidate"].to_pylist()) for name in "ab"]
    assert [sorted({*range(first), ASKED}) for first in left[0].done_counts] == rows


def test_a_session_that_came_too_late_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the driver does everything, nobody waits for the session. At the end, it is killed with its processes."""
    log, killed = list[str](), threading.Event()
    monkeypatch.setattr(interrupts, "end_all", killed.set)
    with spark_jvm.opened(opening_session(log, lambda: killed.wait(20))) as opens:
        (found,) = sweep.run_beside(opens, [Search(PROBLEM, EVERY)], helps=lambda *_: None)
    assert evaluate.run(PROBLEM, EVERY) == found
    assert ["opens"] == log
    opens.close(failed=False)
    assert ["opens", "closed"] == log


def test_a_small_sweep_needs_java_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing Java is always an error, whether the driver or the session is faster."""
    killed = threading.Event()
    monkeypatch.setattr(interrupts, "end_all", killed.set)
    monkeypatch.setattr(java, "find", refuse)
    with (
        pytest.raises(SetupError, match="no Java"),
        spark_jvm.opened(opening_session([], lambda: killed.wait(20))) as opens,
    ):
        sweep.run_beside(opens, [Search(PROBLEM, EVERY)], helps=lambda *_: None)
    assert killed.is_set()


def test_a_session_that_fails_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's error is raised at once, and the driver evaluates no further candidate."""
    begun, done = threading.Event(), list[int]()

    def ready() -> None:
        begun.wait(20)
        refuse()

    def count(number: int, _: int) -> None:
        done.append(number)
        begun.set()
        while opens.error is None:
            pass

    with spark_jvm.opened(opening_session([], ready)) as opens, pytest.raises(SetupError, match="no Java"):
        sweep.run_beside(opens, [Search(PROBLEM, EVERY)], helps=count)
    assert [1] == done
