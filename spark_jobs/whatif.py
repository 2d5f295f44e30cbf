"""What-if questions on Spark: each worker gets the question once, and each task answers a share of its rows.

Each function answers as its counterpart in `planner.whatif` does in one process, whatever the number of tasks.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planner.model.errors import SetupError
from planner.model.spec import Spec
from planner.whatif import assignors, consumers_sweep, failure_rows, growth_cases, sizing
from planner.whatif.consumers_sweep import ConsumersStudy
from planner.whatif.failing_brokers import FailureSets
from planner.whatif.failure_rows import FailureStudy
from planner.whatif.growth_cases import GrowthCase, Row
from planner.whatif.sizing import Combination, SizingStudy
from spark_jobs.carrier import Received, add_module, carried, tasks_for

if TYPE_CHECKING:
    from spark_jobs.session import Session

NUMBERED_ROWS = pa.schema([("number", pa.int32()), ("row", pa.string())])
# `number` is that of the scenarios within those that were asked for.
CHUNK_SCHEMA = pa.schema([("number", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])
_TASKS_OF_SIZES = 8
_SCORES = [("group", "ascending"), ("assignor", "ascending"), ("members", "ascending")]

# What a task makes of the question and of its share of the rows.
RowsAnswer = Callable[[Any, Iterable[Mapping[str, Any]]], Iterable[pa.Table]]


def failures(
    spark: Session, study: FailureStudy, wanted: Sequence[FailureSets], *, partitions: int | None = None
) -> pa.Table:
    """Every scenario's rows (failure_rows.ROW_SCHEMA), by kind, scenario and stage."""
    chunks = [dict(zip(CHUNK_SCHEMA.names, each, strict=True)) for each in failure_rows.chunks(wanted)]
    asked = (study, tuple(wanted)), pa.Table.from_pylist(chunks, schema=CHUNK_SCHEMA)
    rows = _answered(spark, *asked, _failed, failure_rows.ROW_SCHEMA, partitions)
    # Nothing is wanted where racks may fail and no broker has one.
    return pa.concat_tables([rows.slice(0, 0), *(_of(each, rows) for each in wanted)]).combine_chunks()


def _failed(
    asked: tuple[FailureStudy, Sequence[FailureSets]], chunks: Iterable[Mapping[str, Any]]
) -> Iterator[pa.Table]:
    study, wanted = asked
    for each in chunks:
        yield failure_rows.evaluate(study, wanted[each["number"]], each["start"], each["end"])


def _of(scenarios: FailureSets, table: pa.Table) -> pa.Table:
    """One kind's rows, in whatever order they came back."""
    rows = table.filter(pc.equal(table["of"], scenarios.kind))
    order = np.lexsort([rows["stage"].to_numpy(), rows["scenario"].to_numpy()])
    return rows.take(pa.array(order))


def growth(spark: Session, cases: Sequence[GrowthCase], *, partitions: int | None = None) -> list[Row]:
    """Every case's row, in their order."""
    return _in_order(spark, [partial(growth_cases.evaluate, case) for case in cases], partitions)


def sizes(spark: Session, spec: Spec, wanted: Sequence[Combination], *, partitions: int | None = None) -> list[Row]:
    """Every combination's row, in their order."""
    study = SizingStudy.of(spec)
    asked = [partial(sizing.evaluate, study, each) for each in wanted]
    # A cluster takes far longer than a task, and some take many times as long as others.
    return _in_order(spark, asked, partitions or _TASKS_OF_SIZES * tasks_for(spark))


def _in_order(spark: Session, asked: Sequence[Callable[[], Row]], partitions: int | None) -> list[Row]:
    """What each of these functions gives, in their order."""
    numbers = pa.table({"number": pa.array(range(len(asked)), pa.int32())})
    table = _answered(spark, asked, numbers, _called, NUMBERED_ROWS, partitions)
    return [json.loads(row["row"]) for row in table.sort_by("number").to_pylist()]


def _called(asked: Sequence[Callable[[], Row]], numbers: Iterable[Mapping[str, Any]]) -> Iterator[pa.Table]:
    for each in numbers:
        row = {"number": each["number"], "row": json.dumps(asked[each["number"]]())}
        yield pa.Table.from_pylist([row], schema=NUMBERED_ROWS)


def consumers(spark: Session, study: ConsumersStudy, rows: pa.Table, *, partitions: int | None = None) -> pa.Table:
    """The scores (consumers_sweep.SCORE_SCHEMA) of all rows (ROW_SCHEMA), sorted.

    A module with an assignor of the user's own goes to the workers with the job. SetupError where it has no file.
    """
    for assignor in sorted(set(rows["assignor"].to_pylist()) - {*assignors.ASSIGNORS, assignors.SHARE_ASSIGNOR}):
        file = inspect.getsourcefile(importlib.import_module(assignor.partition(":")[0]))
        if file is None:
            raise SetupError(f"assignor {assignor!r} has no source file to send; allowed: a module in one .py file")
        add_module(spark, file)
    table = _answered(spark, study, rows, _scored, consumers_sweep.SCORE_SCHEMA, partitions)
    return table.sort_by(_SCORES).combine_chunks()


def _scored(study: ConsumersStudy, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.Table]:
    yield consumers_sweep.evaluate(study, rows)


def _answered(
    spark: Session, asked: Any, rows: pa.Table, answer: RowsAnswer, schema: pa.Schema, partitions: int | None
) -> pa.Table:
    """What `answer` makes of the rows, which are dealt to the tasks in turn; in whatever order they come back."""
    if not len(rows):
        return schema.empty_table()
    tasks = max(1, min(partitions or tasks_for(spark), len(rows)))
    return pa.concat_tables([schema.empty_table(), *carried(spark, [(asked, rows, answer, tasks)], _share, tasks)])


def _share(received: Received, task: int) -> Iterable[pa.Table]:
    """What one task answers: `answer` for its share of the rows."""
    asked, rows, answer, tasks = received[0]
    mine = rows.take(list(range(task, len(rows), tasks)))
    yield from answer(asked, mine.to_pylist())
