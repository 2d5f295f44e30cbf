"""What-if questions on Spark: each worker gets the questions once, and each task answers a share of them.

Each function gives the same answer as its counterpart in `planner.whatif`, with any number of tasks.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from planner.model.errors import SetupError
from planner.model.spec import Spec
from planner.whatif import assignors, consumers_sweep, failure_simulation, growth_cases, sizing
from planner.whatif.consumers_sweep import ConsumersStudy
from planner.whatif.failure_sets import FailureSets
from planner.whatif.failure_simulation import FailureStudy
from planner.whatif.growth_cases import GrowthCase, Row
from planner.whatif.sizing import Combination, SizingStudy
from spark_jobs.carrier import Received, add_module, carried, tasks_for

if TYPE_CHECKING:
    from spark_jobs.session import Session

_TASKS_OF_SIZES = 8


def failures(
    spark: Session, study: FailureStudy, wanted: Sequence[FailureSets], *, partitions: int | None = None
) -> pa.Table:
    """Every scenario's rows (failure_simulation.ROW_SCHEMA), by kind, scenario and stage."""
    chunks = failure_simulation.chunks(wanted)
    asked = [partial(failure_simulation.evaluate, study, wanted[kind], start, end) for kind, start, end in chunks]
    # There may be no scenario: racks are to fail and no broker has one.
    return pa.concat_tables(
        [failure_simulation.ROW_SCHEMA.empty_table(), *_answers(spark, asked, partitions)]
    ).combine_chunks()


def growth(spark: Session, cases: Sequence[GrowthCase], *, partitions: int | None = None) -> list[Row]:
    """Every case's row, in the order of the cases."""
    return _rows(spark, [partial(growth_cases.evaluate, case) for case in cases], partitions)


def sizes(spark: Session, spec: Spec, wanted: Sequence[Combination], *, partitions: int | None = None) -> list[Row]:
    """Every combination's row, in the order of the combinations."""
    study = SizingStudy.of(spec)
    asked = [partial(sizing.evaluate, study, each) for each in wanted]
    # Planning a cluster takes far longer than starting a task, and some clusters take many times as long as others.
    return _rows(spark, asked, partitions or _TASKS_OF_SIZES * tasks_for(spark))


def consumers(
    spark: Session, study: ConsumersStudy, rows: Sequence[Row], *, partitions: int | None = None
) -> list[Row]:
    """Every combination with its score, in the order of `rows`.

    The module of a user's own assignor goes to the workers with the job. SetupError if it has no file.
    """
    for assignor in sorted({row["assignor"] for row in rows} - {*assignors.ASSIGNORS, assignors.SHARE_ASSIGNOR}):
        file = inspect.getsourcefile(importlib.import_module(assignor.partition(":")[0]))
        if file is None:
            raise SetupError(f"assignor {assignor!r} has no source file to send; allowed: a module in one .py file")
        add_module(spark, file)
    return _rows(spark, [partial(consumers_sweep.evaluate, study, row) for row in rows], partitions)


def _rows(spark: Session, asked: Sequence[Callable[[], Row]], partitions: int | None) -> list[Row]:
    """The same as `_answers`, for functions that each give a row."""
    tables = _answers(spark, [partial(_as_table, each) for each in asked], partitions)
    return [table.to_pylist()[0] for table in tables]


def _as_table(asked: Callable[[], Row]) -> pa.Table:
    return pa.Table.from_pylist([asked()])


def _answers(spark: Session, asked: Sequence[Callable[[], pa.Table]], partitions: int | None) -> list[pa.Table]:
    """Each function's answer, in the order of the functions, a large table in pieces. Tasks get functions in turn."""
    if not asked:
        return []
    tasks = min(partitions or tasks_for(spark), len(asked))
    answers = carried(spark, [(asked, tasks)], _share, tasks)
    return [each.drop_columns("asked") for each in sorted(answers, key=lambda answer: answer["asked"][0].as_py())]


def _share(received: Received, task: int) -> Iterator[pa.Table]:
    """The answers of one task; each table also has the number of its function."""
    asked, tasks = received[0]
    for number in range(task, len(asked), tasks):
        table = asked[number]()
        yield table.append_column("asked", pa.array(np.full(len(table), number)))
