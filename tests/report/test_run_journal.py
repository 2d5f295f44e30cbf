"""The journal of a run is read line by line and shown in order; other files are refused."""

from __future__ import annotations

import json

import pytest

from planner.model.errors import SpecError
from planner.report import markdown, run_journal

LINES = (
    {"time": "2026-11-24T08:00:00Z", "event": "begin", "said": "Batch 01 of 2 began."},
    {"time": "2026-11-24T08:05:00Z", "event": "held", "said": "HELD, Batch 01 of 2: not live: broker 4."},
)
END = {
    "time": "2026-11-24T08:09:00Z",
    "event": "end",
    "said": "Batch 01 of 2 ended.",
    "figures": {
        "batch": "01",
        "seconds": 540,
        "planned_seconds": 480,
        "copied_bytes": 2_000_000,
        "planned_bytes": 1_900_000,
    },
}
JOURNAL = "".join(f"{json.dumps(line)}\n" for line in LINES).encode()


def test_entries_are_those_of_the_lines_in_order() -> None:
    """Entries keep the order of their lines; a last line that a killed run didn't finish is skipped."""
    entries = run_journal.entries(JOURNAL + b'{"time": "20', "run.jsonl")
    assert list(LINES) == run_journal.document(entries)["entries"]


def test_a_journal_is_shown_as_a_table() -> None:
    """The table has times first; an empty journal says that it is empty."""
    shown = markdown.render(run_journal.view("run.jsonl", run_journal.entries(JOURNAL, "run.jsonl")))
    rows = [line for line in shown.splitlines() if line.startswith("| `2026")]
    assert ["2026-11-24T08:00:00Z", "2026-11-24T08:05:00Z"] == [row.split("|")[1].strip(" `") for row in rows]
    assert "not live: broker 4" in rows[1]
    assert "The journal is empty." in markdown.render(run_journal.view("run.jsonl", ()))


def test_lines_of_kafkas_tools_are_one_cell() -> None:
    """A message with several lines, for example a stack trace, is one row with blanks instead of line ends."""
    line = {"time": "2026-11-24T08:00:00Z", "event": "stopped", "said": "The run stopped: Error\n\tat kafka.Tool(1)\n"}
    (entry,) = run_journal.entries(json.dumps(line).encode() + b"\n", "run.jsonl")
    assert "The run stopped: Error at kafka.Tool(1)" == entry.said


def test_batches_are_shown_planned_and_measured() -> None:
    """Each batch has planned and measured times and bytes, and a sum, which is unknown if one of them is."""
    second = END | {"figures": END["figures"] | {"batch": "02", "copied_bytes": None}}
    journal = JOURNAL + "".join(f"{json.dumps(line)}\n" for line in (END, second)).encode()
    entries = run_journal.entries(journal, "run.jsonl")
    assert [*LINES, END, second] == run_journal.document(entries)["entries"]
    shown = markdown.render(run_journal.view("run.jsonl", entries)).partition("Planned and measured")[2]
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in shown.splitlines() if line[:1] == "|"]
    assert [
        ["01", "8 min", "9 min", "1.90 MB", "2.00 MB"],
        ["02", "8 min", "9 min", "1.90 MB", "–"],
        ["all", "16 min", "18 min", "3.80 MB", "–"],
    ] == cells[-3:]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"HELD", "run.jsonl:3:1: isn't JSON (line 1, column 1: Expecting value)"),
        (b"[1]", "run.jsonl:3:1: '[1]' isn't an entry (Expected `object`, got `array`)"),
        (
            b'{"event": 5}',
            """run.jsonl:3:1: '{"event": 5}' isn't an entry (Expected `str`, got `int` - at `$.event`)""",
        ),
        (
            b'{"event": "end", "said": "", "time": "", "figures": {"batch": 1}}',
            """run.jsonl:3:1: '{"event": "end", "said": "", "time": "",' """
            "isn't an entry (Expected `str`, got `int` - at `$.figures.batch`)",
        ),
    ],
)
def test_another_file_is_refused_with_its_line(line: bytes, said: str) -> None:
    """A line that is no entry is refused with its number and what is allowed."""
    with pytest.raises(SpecError) as refused:
        run_journal.entries(JOURNAL + line + b"\n", "run.jsonl")
    assert [f"{said}; allowed: a line of a journal that the playbooks wrote"] == list(refused.value.lines)


def test_a_file_that_is_no_journal_is_one_finding() -> None:
    """A file without any entry is refused with one finding, however many lines it has."""
    with pytest.raises(SpecError) as refused:
        run_journal.entries(b"Topic: a\nTopic: b\n", "run.jsonl")
    (said,) = refused.value.lines
    assert said.startswith("run.jsonl:1:1: isn't JSON")
    assert said.endswith("; 2 lines, and none is an entry")


def test_a_journal_says_first_how_the_run_ended() -> None:
    """The view first says why the run stopped and what it did, or that it has no end, and what to do."""
    ends = (
        {"time": "2026-11-24T08:10:00Z", "event": "stopped", "said": "The run stopped before batch 02: not live."},
        {"time": "2026-11-24T08:10:01Z", "event": "summary", "said": "The run ended after 10 min."},
    )
    ended = JOURNAL + "".join(f"{json.dumps(line)}\n" for line in ends).encode()
    shown = markdown.render(run_journal.view("run.jsonl", run_journal.entries(ended, "run.jsonl"))).partition("| Time")
    assert [shown[0].index("before batch 02: not live."), shown[0].index("ended after 10 min.")] == sorted(
        [shown[0].index("before batch 02: not live."), shown[0].index("ended after 10 min.")]
    )
    open_end = markdown.render(run_journal.view("run.jsonl", run_journal.entries(JOURNAL, "run.jsonl")))
    assert "run its playbook again" in open_end.partition("| Time")[0]
