"""The Pareto front against its plain definition."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from test_ranking import points, score_table

from planner.sweep.sweep_result import RANKING, front

Row = dict[str, Any]


@examples(150)
@given(points, st.sampled_from(("bytes_moved", "replicas_moved")))
def test_front_is_what_nothing_beats(rows: list[tuple[int, ...]], moved: str) -> None:
    """Valid rows that no valid row beats in bytes or imbalance without losing the other, one a point, by bytes.

    The same of replicas, where sizes are unknown.
    """
    table = score_table(rows).to_pylist()
    valid = [row for row in table if row["violations"] == 0]

    def beaten(row: Row) -> bool:
        mine = (row[moved], row["imbalance_ppm"])
        others = {(other[moved], other["imbalance_ppm"]) for other in valid} - {mine}
        return any(amount <= mine[0] and imbalance <= mine[1] for amount, imbalance in others)

    first: dict[tuple[int, int], Row] = {}
    for row in sorted(valid, key=lambda row: tuple(row[name] for name in RANKING)):
        if not beaten(row):
            first.setdefault((row[moved], row["imbalance_ppm"]), row)
    expected = [first[point]["candidate"] for point in sorted(first)]
    assert expected == front(score_table(rows), RANKING, moved)["candidate"].to_pylist()
