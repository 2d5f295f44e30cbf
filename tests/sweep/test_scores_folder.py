"""All rows as Parquet: every candidate once, whole files only, and what an earlier sweep wrote is replaced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clusters import no_racks, problem_of

from planner.model.errors import SetupError
from planner.model.spec import Sweep
from planner.sweep import evaluate, sweep_result
from planner.sweep.candidates import candidates
from planner.sweep.scores_folder import ScoresFolder, folder

PROBLEM = problem_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 1)] * 3})
EVERY = candidates(PROBLEM, Sweep(200, solved=3))


def test_every_row_is_written_though_few_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are those of the sweep, with the cluster and the variant as columns; the result is the same."""
    everything = evaluate.evaluated(PROBLEM, EVERY)
    monkeypatch.setattr(sweep_result, "ALL_ROWS", 20)
    found = evaluate.run(PROBLEM, EVERY, scores=folder("scores", tmp_path, "eu/west 1", "changes"))
    rows = pq.read_table(tmp_path / "scores").sort_by("candidate")
    assert (len(found.scores) < 100, 200) == (True, len(rows))
    assert ["eu/west 1"] == rows["cluster"].unique().to_pylist()
    assert rows.select(everything.column_names).cast(everything.schema).equals(everything)
    assert found == evaluate.run(PROBLEM, EVERY)


def test_an_earlier_sweep_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    """Its files alone: what else lies in the folder stays."""
    where = folder(str(tmp_path), tmp_path, "c", "changes")
    place = Path(where.path)
    place.mkdir(parents=True)
    for name in ("part-00000.parquet", "part-00007.parquet", "notes.txt"):
        (place / name).write_text("old")
    evaluate.run(PROBLEM, EVERY, scores=where)
    assert ["notes.txt", "part-00000.parquet"] == sorted(path.name for path in place.iterdir())
    assert 200 == pq.read_metadata(place / "part-00000.parquet").num_rows


def test_a_sweep_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    """Files are renamed into place when they are whole."""
    where = ScoresFolder(str(tmp_path), "c", "changes")
    where.clear()
    parts = where.copied(EVERY, [evaluate.scored(PROBLEM, EVERY, np.arange(5))] * 2, "00000")
    next(parts)
    parts.close()
    assert [] == list(Path(where.path).iterdir())


@pytest.mark.parametrize("root", ["file", "nowhere://bucket/scores"])
def test_a_folder_that_cannot_be_is_one_sentence(root: str, tmp_path: Path) -> None:
    """Which key, which path, and what the system says."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match=r"sweep\.scores: .*can't be written \("):
        evaluate.run(PROBLEM, EVERY, scores=folder(root, tmp_path, "c", "changes"))
