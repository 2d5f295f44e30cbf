"""The journal of a run of the playbooks, which the role writes on the admin host, and what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from planner.model.errors import Finding, Place, SpecError
from planner.model.file_reading import Kind, json_value
from planner.report.view import Column, Lines, Name, Section, Sentence, Table, View, told

# A line a minute for a month makes 10 MB.
JOURNAL = Kind("a journal of the playbooks", 64 * 2**20)

_ALLOWED = "allowed: a line of a journal that the playbooks wrote"
_LONGEST = 2_000


@dataclass(frozen=True)
class Entry:
    """One line: when in UTC, as ISO 8601 to the second; what kind of event; and the sentence that was printed."""

    time: str
    event: str
    said: str


def entries(journal: bytes, name: str) -> tuple[Entry, ...]:
    """The entries of a journal that is called so, in its order. SpecError names each line that is none.

    A run that is killed may leave its last line unfinished, so one without a line break is passed over.
    """
    lines = journal.split(b"\n")[:-1]
    found = [_entry(line, Place(name, number, 1)) for number, line in enumerate(lines, start=1)]
    wrong = [each for each in found if isinstance(each, Finding)]
    if wrong:
        raise SpecError(wrong)
    return tuple(each for each in found if isinstance(each, Entry))


def document(told_by: Sequence[Entry]) -> dict[str, Any]:
    """The entries as JSON."""
    return {"entries": [asdict(entry) for entry in told_by]}


def view(name: str, told_by: Sequence[Entry]) -> View:
    """Every entry, its time first."""
    table = Table(
        name="journal",
        title="",
        row="entry",
        rows=told_by,
        columns=(
            Column("Time (UTC)", lambda entry: Name(entry.time), numeric=False),
            Column("What happened", lambda entry: Sentence(entry.said, _LONGEST), numeric=False),
        ),
    )
    nothing = Lines(() if told_by else ("The journal is empty.",))
    return View(Name(name), (Section("", told(table, nothing)),))


def _entry(line: bytes, place: Place) -> Entry | Finding:
    try:
        value = json_value(line)
    except ValueError as error:
        return Finding(place, "", f"isn't JSON ({error}); {_ALLOWED}")
    if not isinstance(value, dict):
        return Finding(place, "", f"{str(value)[:40]!r} isn't a JSON object; {_ALLOWED}")
    for key in ("time", "event", "said"):
        if not isinstance(value.get(key), str):
            return Finding(place, key, f"{str(value.get(key))[:40]!r} isn't a text; {_ALLOWED}")
    return Entry(value["time"], value["event"], value["said"])
