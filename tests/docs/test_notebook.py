"""The example notebook runs on a plan's own table of candidates, and on all rows of `sweep.scores`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import Run
from folders import ROOT

pytestmark = pytest.mark.docs

NOTEBOOK = ROOT / "examples" / "notebooks" / "scores.ipynb"


def test_it_reads_both_and_draws(tmp_path: Path, planner: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells run in order, both plots are drawn, and both tables give the same rows."""
    # Imported here, because it takes half a second in each process that only collects tests.
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    spec = tmp_path / "spec.yaml"
    text = (ROOT / "examples" / "expand.yaml").read_text(encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "state", tmp_path / "state")
    spec.write_text(text + "sweep: {candidates: 80, scores: scores}\n")
    assert 0 == planner("whatif", spec, "--engine", "local").code
    mpl.use("Agg")
    monkeypatch.chdir(NOTEBOOK.parent)
    written = "../expand.plan/candidates.parquet"
    found = []
    for table in (tmp_path / "spec.plan" / "candidates.parquet", tmp_path / "scores"):
        names: dict[str, object] = {}
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]).replace(written, table.as_posix()), names)
        rows, cost = names["rows"], names["cost"]
        assert [80, True] == [len(rows), len(cost) > 3]  # type: ignore[arg-type]
        assert 2 == len(plt.get_fignums())
        found.append(rows.sort_values("candidate")["digest"].tolist())  # type: ignore[attr-defined]
        plt.close("all")
    assert found[0] == found[1]
