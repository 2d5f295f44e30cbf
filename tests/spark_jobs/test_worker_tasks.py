"""Work that fails on Spark's workers gives one sentence, without a stack of Java or Python on stderr."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from planner.model.errors import SetupError
from spark_jobs import worker_tasks

pytestmark = pytest.mark.spark


def raising(error: BaseException) -> Callable[[Any, int], Any]:
    """A task that fails with this error. The function is sent to the workers by value."""

    def answer(_: Any, __: int) -> Any:
        raise error

    return answer


def dying() -> Callable[[Any, int], Any]:
    """A task whose process ends at once, as if the kernel had killed it."""

    def answer(_: Any, task: int) -> Any:
        if task:
            os._exit(9)
        return []

    return answer


LACKING = "a worker ended again and again, most often for lack of memory"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (raising(MemoryError()), LACKING),
        (raising(ImportError("libortools.so.9: failed to map segment from shared object")), LACKING),
        (dying(), LACKING),
        (raising(OSError(28, "No space left on device")), "the disk of Spark's scratch folder is full"),
        (
            raising(SetupError("sweep.scores: x: can't be written (why)")),
            r"workers: sweep\.scores: x: can't be written",
        ),
    ],
    ids=["over its memory", "over it as it starts", "killed each time", "disk full", "a refusal of ours"],
)
def test_a_task_that_always_fails_is_one_sentence(
    answer: Callable[[Any, int], Any], said: str, spark: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """The error is one sentence, nothing else is printed, and the session still works."""
    with pytest.raises(SetupError, match=said):
        worker_tasks.task_answers(spark, ["sent"], answer, 2)
    assert ("", "") == capfd.readouterr()
    assert 7 == spark.range(7).count()


@pytest.mark.parametrize("letters", [3, 2_000_000], ids=["with each task", "as a broadcast"])
def test_a_task_makes_its_answer_of_its_number_and_of_what_was_sent(letters: int, spark: Any) -> None:
    """Each task number is answered once from the number and the sent data, sent with the task or as a broadcast."""

    def answer(received: Any, task: int) -> list[pa.Table]:
        return [pa.table({"task": [task * received[1]], "letters": [len(received[0])]})]

    found = worker_tasks.task_answers(spark, ["a" * letters, 10], answer, 5)
    assert [letters] * 5 == [number for table in found for number in table["letters"].to_pylist()]
    assert [0, 10, 20, 30, 40] == sorted(number for table in found for number in table["task"].to_pylist())
