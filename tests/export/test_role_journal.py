"""The journal of a run on the admin host: its entries, and their sum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from role_files import loaded

from planner.report import run_journal

journal, wait = loaded("module_utils/kafka_reassign_journal"), loaded("action_plugins/kafka_reassign")
throttles = loaded("module_utils/kafka_reassign_throttles")

FIRST = {"batch": "01", "seconds": 60, "planned_seconds": 50, "copied_bytes": 2_100, "planned_bytes": 2_000}
SECOND = {"batch": "02", "seconds": 120, "planned_seconds": 100, "copied_bytes": 4_000, "planned_bytes": 4_000}


def begun(folder: Path) -> str:
    """A journal in this folder."""
    return journal.begin({"journal_dir": str(folder), "direction": "apply", "plan_id": "0123456789abcdef"})


def test_a_journal_is_read_by_planner_show(tmp_path: Path) -> None:
    """`planner show` reads the journal. Each entry has its time, and only the owner may read the file."""
    path = Path(begun(tmp_path / "new"))
    journal.append(str(path), [{"event": "run", "said": "A run began."}, {"event": "note", "said": "More."}])
    assert path.name.endswith("Z-apply-0123456789ab.jsonl")
    assert 0o600 == path.stat().st_mode & 0o777
    assert ["A run began.", "More."] == [each.said for each in run_journal.entries(path.read_bytes(), path.name)]


def test_without_a_journal_nothing_is_written(tmp_path: Path) -> None:
    """Without a journal, nothing is written and the sums are empty."""
    journal.append("", [{"event": "run", "said": "A run began."}])
    assert {"seconds": 0, "figures": [], "elections": []} == journal.summary("")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("why", ["Not a directory", "Permission denied", "no home"])
def test_a_folder_that_takes_no_journal_is_told_with_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The home of the user on the admin host may be read-only, or missing. The error names the setting to change."""

    def home() -> Path:
        if why == "no home":
            raise RuntimeError(why)
        return tmp_path

    monkeypatch.setattr(Path, "home", home)
    if why == "Not a directory":
        (tmp_path / ".local").touch()
    monkeypatch.setattr(journal.os, "access", lambda *_: False)
    with pytest.raises(throttles.ToolError, match=f"{why}.*; allowed: in kafka_reassign_journal_dir, the path of a"):
        journal.folder_of("")


@pytest.mark.parametrize("damaged", ["", "[]", '{"rates": ["5'])
def test_a_damaged_record_is_named(tmp_path: Path, damaged: str) -> None:
    """A record of throttles or cordons that can't be read stops the run, which names the file. It isn't ignored."""
    record = tmp_path / "throttles-0123456789ab.json"
    record.write_text(damaged)
    with pytest.raises(throttles.ToolError, match=f"^{record} is damaged. .* move it away; then the throttles or"):
        throttles.Record.found(tmp_path, {"a": ("id-a", {})})


def test_a_run_is_added_up_from_its_batches(tmp_path: Path) -> None:
    """The sum has the batches that this run started. A batch that an earlier run left moving has no figures."""
    path = begun(tmp_path)
    lines = [
        {"time": "2026-11-24T00:00:00Z", "event": "run", "said": ""},
        {"time": "2026-11-24T00:00:09Z", "event": "end", "said": "What an interrupted run left ended"},
        {"time": "2026-11-24T00:01:00Z", "event": "end", "said": "", "figures": FIRST},
        {"time": "2026-11-24T00:03:00Z", "event": "end", "said": "", "figures": SECOND},
        {"time": "2026-11-24T00:03:02Z", "event": "elect", "said": "", "elections": 2},
    ]
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = journal.summary(path)
    assert ([FIRST, SECOND], [2]) == (found["figures"], found["elections"])
    assert 180 <= found["seconds"]


def test_the_end_of_a_run_says_planned_and_measured() -> None:
    """The end has time and bytes of all batches. If one batch lacks a figure, the end leaves it out."""
    assert "The run ended after 12 s. It completed no batch." == wait.summed_up(12, [], [])
    assert (
        "The run ended after 4 min: its 2 batches took 3 min (2 min planned at the throttle), "
        "6.1 kB copied (6 kB planned)."
    ) == wait.summed_up(240, [FIRST, SECOND], [])
    unknown = SECOND | {"copied_bytes": None}
    assert "The run ended after 4 min: its 2 batches took 3 min (2 min planned at the throttle)." == wait.summed_up(
        240, [FIRST, unknown], []
    )
    unthrottled = FIRST | {"planned_seconds": 0, "planned_bytes": 0}
    assert "The run ended after 2 min: its 1 batch took 1 min." == wait.summed_up(120, [unthrottled], [])


def test_the_end_of_a_run_says_what_was_elected() -> None:
    """The number of elected leaders follows the copied bytes, or stands alone if the run moved nothing."""
    said = "The run ended after 12 s. It moved no replica, and elected 3 leaders in 2 batches."
    assert said == wait.summed_up(12, [], [1, 2])
    assert "The run ended after 12 s. It moved no replica, and elected 1 leader in 1 batch." == wait.summed_up(
        12, [], [1]
    )
    assert wait.summed_up(120, [FIRST], [500, 20]).endswith("2.1 kB copied (2 kB planned). It elected 520 leaders.")
