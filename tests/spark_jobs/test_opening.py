"""A session that opens in another thread: what is handed over is done, errors come back, and nobody waits in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from clusters import no_racks, problem_of

from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.spec import Sweep
from planner.sweep import evaluate
from planner.sweep.candidates import ASKED, candidates
from planner.sweep.evaluate import Search
from spark_jobs import session, sweep

PROBLEM = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3})
EVERY = candidates(PROBLEM, Sweep(40))


@contextmanager
def opening_session(log: list[str], ready: Callable[[], object] = lambda: None) -> Iterator[Any]:
    """Stands for a session; `ready` is waited for."""
    log.append("opens")
    ready()
    try:
        yield "spark"
    finally:
        log.append("closed")


def test_the_answer_comes_once_the_session_is_closed() -> None:
    """The work gets the session."""
    log: list[str] = []
    with session.opened(opening_session(log)) as opens:
        opens.submit(lambda spark: [spark, *log])
        assert ["spark", "opens"] == opens.result()
        assert ["opens", "closed"] == log


def test_a_session_is_prepared_while_its_work_is_waited_for() -> None:
    """Once, before the work; where the work was there first, it isn't kept waiting."""
    log: list[str] = []
    prepared = threading.Event()
    with session.opened(opening_session(log), lambda spark: (log.append(f"{spark} prepared"), prepared.set())) as opens:
        assert prepared.wait(20)
        opens.submit(lambda _: log.append("works"))
        opens.result()
    assert ["opens", "spark prepared", "works", "closed"] == log


def refuse() -> None:
    """A Java that can't be started."""
    raise SetupError("no Java")


@pytest.mark.parametrize("ready", [refuse, lambda: None])
def test_an_error_of_the_session_or_the_work_is_raised_where_it_is_waited_for(ready: Callable[[], None]) -> None:
    """As it is."""
    with session.opened(opening_session([], ready)) as opens:
        opens.submit(lambda _: refuse())
        with pytest.raises(SetupError, match="no Java"):
            opens.result()


def test_a_session_that_nobody_needs_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the spec is wrong: the processes that still start are killed, and the error is the spec's."""
    started, killed = threading.Event(), threading.Event()
    monkeypatch.setattr(interrupts, "end_all", killed.set)

    def ready() -> None:
        started.set()
        killed.wait(20)
        refuse()

    def read() -> None:
        with session.opened(opening_session([], ready)):
            started.wait(20)
            raise ValueError("the spec")

    with pytest.raises(ValueError, match="the spec"):
        read()
    assert killed.is_set()
    assert "spark-session" not in {thread.name for thread in threading.enumerate()}


def test_a_session_without_work_is_closed() -> None:
    """It ends with the block."""
    log: list[str] = []
    with session.opened(opening_session(log)):
        pass
    assert ["opens", "closed"] == log


def parts(spark: Any, fleet: Any, without_asked: frozenset[int], *_: Any) -> Any:
    """What the tasks would keep of each sweep, in this process."""
    return [
        evaluate.scored(
            *each[:2], np.array([n for n in range(len(each[1])) if number not in without_asked or n != ASKED])
        )
        for number, each in enumerate(fleet)
    ]


def test_the_plan_asked_for_is_solved_while_the_session_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and by no task; the result is that of one process."""
    monkeypatch.setattr(sweep, "_parts", parts)
    may_open = threading.Event()
    asked_for = evaluate.asked_for

    def solved(*asked: Any) -> Any:
        may_open.set()
        return asked_for(*asked)

    monkeypatch.setattr(evaluate, "asked_for", solved)
    with session.opened(opening_session([], lambda: may_open.wait(20))) as opens:
        (found,) = sweep.run_beside(opens, [Search(PROBLEM, EVERY)])
    assert [ASKED] == list(found.proposals)
    assert evaluate.run(PROBLEM, EVERY) == found


def test_tasks_solve_what_the_driver_had_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fleet the driver solves as many plans as it can until the session is there."""
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
    with session.opened(opening_session([], lambda: may_open.wait(20))) as opens:
        found = sweep.run_beside(opens, [Search(PROBLEM, EVERY)] * 3)
    assert [[ASKED], [], []] == [list(each.proposals) for each in found]
    monkeypatch.undo()
    assert [evaluate.run(PROBLEM, EVERY)] * 3 == list(found)
