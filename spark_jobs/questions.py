"""Questions on Spark: each worker gets the questions once, and each task answers a share of them.

A question is a function without arguments, so the answers are the same as in this process, with any number of tasks.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from planner.model.errors import SetupError
from spark_jobs.worker_tasks import Progress, Received, add_module, carried, tasks_for

if TYPE_CHECKING:
    from spark_jobs.session import Session


def answers(
    spark: Session,
    asked: Sequence[Callable[[], Any]],
    partitions: int | None = None,
    *,
    tasks_each: int = 1,
    assignors: Iterable[str] = (),
    progress: Progress | None = None,
) -> list[Any]:
    """The questions' answers, in the order of the questions: a large table in pieces, an empty one not at all.

    Tasks get questions in turn. There are `partitions` tasks, or `tasks_each` as many as Spark has slots. The modules
    of the user's own `assignors` go to the workers with the job; SetupError if one has no file.
    """
    for assignor in sorted(assignors):
        file = inspect.getsourcefile(importlib.import_module(assignor.partition(":")[0]))
        if file is None:
            raise SetupError(f"assignor {assignor!r} has no source file to send; allowed: a module in one .py file")
        add_module(spark, file)
    if not asked:
        return []
    tasks = min(partitions or tasks_each * tasks_for(spark), len(asked))
    tables = carried(spark, [(asked, tasks)], _share, tasks, progress)
    ordered = sorted(tables, key=lambda table: table["asked"][0].as_py())
    return [
        pickle.loads(table["row"][0].as_py()) if "row" in table.column_names else table.drop_columns("asked")
        for table in ordered
    ]


def _share(received: Received, task: int) -> Iterator[pa.Table]:
    """The answers of one task: tables, or rows in tables of their own; each also has the number of its question."""
    asked, tasks = received[0]
    for number in range(task, len(asked), tasks):
        answer = asked[number]()
        table = answer if isinstance(answer, pa.Table) else pa.table({"row": [pickle.dumps(answer)]})
        yield table.append_column("asked", pa.array(np.full(len(table), number)))
