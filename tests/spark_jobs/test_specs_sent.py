"""Specs are sent to a cluster one by one. Each is answered once, a limited number at a time, and an error ends all."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from planner.model.errors import SetupError
from spark_jobs import fleet, worker_tasks

COUNT = 9


class Workers:
    """Stands for Spark. Counts the specs at work, their maximum, and how many were begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tasks: int = 2) -> None:
        self.tasks, self.now, self.most, self.begun = tasks, 0, 0, 0
        self.wrong, self.canceled = -1, threading.Event()
        self.met = threading.Barrier(1)
        self._lock = threading.Lock()
        monkeypatch.setattr(worker_tasks, "task_answers", self.carried)
        monkeypatch.setattr(worker_tasks, "tasks_for", lambda _: self.tasks)
        monkeypatch.setattr(worker_tasks, "cancel", lambda _: self.canceled.set())

    def carried(self, _: Any, values: Sequence[Any], answer: worker_tasks.Answer, tasks: int) -> list[pa.Table]:
        """What one worker would answer, computed in this process."""
        with self._lock:
            self.now, self.begun = self.now + 1, self.begun + 1
            self.most, begun = max(self.most, self.now), self.begun
        step, value = values[0], pickle.loads(values[1])
        assert 1 == tasks
        if value == self.wrong:
            raise SetupError("a worker ended again and again")
        if self.wrong >= 0 and begun > 1:
            # All others stay at work until they are canceled.
            assert self.canceled.wait(20)
            raise RuntimeError("canceled")
        if begun in (2, 3):
            self.met.wait(20)
        with self._lock:
            self.now -= 1
        return list(answer(worker_tasks.SentValues([pickle.dumps(step), values[1]]), 0))


def sent(at_once: int | None = None) -> list[tuple[int, Any]]:
    """The squares of some numbers, as strings that are sent in pieces."""
    return sorted(fleet.sent("spark", square, range(1, COUNT), pickle.dumps, at_once))  # type: ignore[arg-type]


def square(number: int) -> str:
    """The worker's answer for a number."""
    return str(number * number)


SQUARES = [(number, str(number * number)) for number in range(1, COUNT)]


@pytest.mark.parametrize(("at_once", "most"), [(None, 2), (1, 1), (5, 5)])
@pytest.mark.parametrize("piece", [1, 1000])
def test_each_is_answered_once_and_so_many_are_at_work(
    piece: int, at_once: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default, as many specs are at work as a job has tasks. An answer is joined from its pieces."""
    monkeypatch.setattr(fleet, "_PIECE_BYTES", piece)
    workers = Workers(monkeypatch)
    assert SQUARES == sent(at_once)
    assert (COUNT - 1, False) == (workers.begun, workers.canceled.is_set())
    assert workers.most <= most


def test_executors_that_join_get_specs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are counted again as answers arrive, so executors that join get specs, too."""
    monkeypatch.setattr(fleet, "_COUNTED_SECONDS", 0)
    workers = Workers(monkeypatch, tasks=1)
    answers = fleet.sent("spark", square, range(1, COUNT), pickle.dumps)  # type: ignore[arg-type]
    workers.met = threading.Barrier(2)
    found = [next(answers)]
    workers.tasks = 4
    assert SQUARES == sorted([*found, *answers])
    assert workers.most <= 4


def test_an_error_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised unchanged, the other specs are canceled, and no further one is begun."""
    workers = Workers(monkeypatch, tasks=3)
    workers.wrong = 3
    with pytest.raises(SetupError, match="again and again"):
        sent()
    assert workers.canceled.is_set()
    assert workers.begun <= 4
    assert "spark-spec" not in {thread.name for thread in threading.enumerate()}


def test_who_needs_no_more_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the caller stops reading answers, as when its disk is full, the other specs are canceled."""
    workers = Workers(monkeypatch, tasks=1)
    workers.wrong = COUNT
    answers = fleet.sent("spark", square, range(1, COUNT), pickle.dumps)  # type: ignore[arg-type]
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert workers.canceled.is_set()
    assert workers.begun <= 2
