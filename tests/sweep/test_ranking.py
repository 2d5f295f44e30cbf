"""The ranking against its plain definition, as tables and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from clusters import no_racks, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build
from planner.model.spec import AIMS, Sweep
from planner.sweep.sweep_result import AIM_COLUMNS, RANKING, SCORE_SCHEMA, best, ranking, result

Row = dict[str, Any]


def score_table(points: Sequence[tuple[int, ...]]) -> pa.Table:
    """Rows of SCORE_SCHEMA with these terms in the order of RANKING, without the candidate's number."""
    empty = {field.name: "" if field.type == pa.string() else 0 for field in SCORE_SCHEMA}
    rows = [empty | dict(zip(RANKING, (*point, number), strict=True)) for number, point in enumerate(points)]
    return pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)


points = st.lists(st.tuples(*[st.integers(0, 3)] * (len(RANKING) - 1)), min_size=1, max_size=25)


@examples(150)
@given(points, st.integers(1, 12))
def test_best_is_the_sorted_head(rows: list[tuple[int, ...]], count: int) -> None:
    """The first rows by every term of the ranking, the candidate's number last."""
    expected = sorted((*row, number) for number, row in enumerate(rows))[:count]
    found = best(score_table(rows), count)
    assert expected == [tuple(row[name] for name in RANKING) for row in found.to_pylist()]


@examples(50)
@given(points, st.permutations(AIMS), st.integers(0, 4))
def test_aims_come_after_bytes(rows: list[tuple[int, ...]], aims: list[str], named: int) -> None:
    """In the order given, those that aren't named behind in their usual order; whatever the aims, bytes come first."""
    order = ranking(aims[:named])
    every = [*aims[:named], *(aim for aim in AIMS if aim not in aims[:named])]
    columns = [column for aim in every for column in AIM_COLUMNS[aim]]
    assert [*RANKING[:5], *columns, *RANKING[-3:]] == list(order)
    without_sizes = ranking(aims[:named], sizes_known=False)
    assert [*RANKING[:5], "replicas_moved", *columns, *RANKING[-2:]] == list(without_sizes)
    table = score_table(rows)
    expected = sorted(tuple(row[name] for name in order) for row in table.to_pylist())
    assert expected == [tuple(row[name] for name in order) for row in best(table, len(rows), order).to_pylist()]


def test_the_problems_aims_rank_its_result() -> None:
    """A sweep's best rows are ordered by its spec's aims."""
    names = ("bytes_moved", "leaders_changed", "busiest_bytes", "peak_disk_ppm")
    empty = {field.name: "" if field.type == pa.string() else 0 for field in SCORE_SCHEMA}
    points = [(1, 0, 9, 9), (1, 9, 0, 9), (1, 9, 9, 0), (0, 9, 9, 9)]
    rows = [empty | {"candidate": at} | dict(zip(names, row, strict=True)) for at, row in enumerate(points)]
    table = pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)]})
    tops = [
        result(build(replace(spec, sweep=Sweep(aims=aims))), table).top["candidate"].to_pylist()
        for aims in (AIMS, ("makespan", "peak_disk"), ("peak_disk",))
    ]
    assert [[3, 0, 1, 2], [3, 1, 2, 0], [3, 2, 0, 1]] == tops
