"""The journal of a run: read line by line, shown in order, refused where it is none."""

from __future__ import annotations

import json

import pytest

from planner.model.errors import SpecError
from planner.report import markdown, run_journal

LINES = (
    {"time": "2026-11-24T08:00:00Z", "event": "begin", "said": "Batch 01 of 2 began."},
    {"time": "2026-11-24T08:05:00Z", "event": "held", "said": "HELD, Batch 01 of 2: not live: broker 4."},
)
JOURNAL = "".join(f"{json.dumps(line)}\n" for line in LINES).encode()


def test_entries_are_those_of_the_lines_in_order() -> None:
    """A line that a killed run hasn't finished is passed over."""
    entries = run_journal.entries(JOURNAL + b'{"time": "20', "run.jsonl")
    assert list(LINES) == run_journal.document(entries)["entries"]


def test_a_journal_is_shown_as_a_table() -> None:
    """Its times first; an empty one is said to be."""
    shown = markdown.render(run_journal.view("run.jsonl", run_journal.entries(JOURNAL, "run.jsonl")))
    rows = [line for line in shown.splitlines() if line.startswith("| `2026")]
    assert ["2026-11-24T08:00:00Z", "2026-11-24T08:05:00Z"] == [row.split("|")[1].strip(" `") for row in rows]
    assert "not live: broker 4" in rows[1]
    assert "The journal is empty." in markdown.render(run_journal.view("run.jsonl", ()))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"HELD", "run.jsonl:3:1: isn't JSON (line 1, column 1: Expecting value)"),
        (b"[1]", "run.jsonl:3:1: '[1]' isn't a JSON object"),
        (b'{"time": "x", "event": 5}', "run.jsonl:3:1: event: '5' isn't a text"),
    ],
)
def test_another_file_is_refused_with_its_line(line: bytes, said: str) -> None:
    """And with what is allowed."""
    with pytest.raises(SpecError) as refused:
        run_journal.entries(JOURNAL + line + b"\n", "run.jsonl")
    assert [f"{said}; allowed: a line of a journal that the playbooks wrote"] == list(refused.value.lines)
