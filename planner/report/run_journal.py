"""Reads and shows the journal of a run of the playbooks; the role writes it on the admin host."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct, ValidationError, convert, structs, to_builtins

from planner.model.errors import Finding, Place, SpecError
from planner.model.file_reading import FileKind, json_value
from planner.model.formats import counted
from planner.report.view import SECONDS, Column, Lines, Name, Quantity, Sentence, Table, View, ViewSection, visible

# The limit is generous: one line a minute makes 10 MB in a month.
JOURNAL = FileKind("a journal of the playbooks", 64 * 2**20)

_ALLOWED = "allowed: a line of a journal that the playbooks wrote"
_LONGEST = 2_000


class Figures(Struct, frozen=True, forbid_unknown_fields=True):
    """A batch's time and bytes, measured and planned. A planned 0 and a `copied_bytes` of None mean unknown."""

    batch: str
    seconds: int
    planned_seconds: int
    copied_bytes: int | None
    planned_bytes: int


class Entry(Struct, frozen=True, omit_defaults=True):
    """One line: the UTC time as ISO 8601 to the second, the kind of event, and the sentence that was printed.

    Only the end of a batch has figures.
    """

    time: str
    event: str
    said: str
    figures: Figures | None = None


def entries(journal: bytes, name: str) -> tuple[Entry, ...]:
    """The entries of the journal `name`, in order. SpecError names each line that isn't an entry.

    A killed run may leave an unfinished last line, so a last line without a line break is skipped.
    """
    lines = journal.split(b"\n")[:-1]
    parsed = [_entry(line, Place(name, number, 1)) for number, line in enumerate(lines, start=1)]
    findings = [each for each in parsed if isinstance(each, Finding)]
    if len(findings) > 1 and len(findings) == len(parsed):
        count = counted(len(lines), "line")
        raise SpecError([replace(findings[0], message=f"{findings[0].message}; {count}, and none is an entry")])
    if findings:
        raise SpecError(findings)
    return tuple(each for each in parsed if isinstance(each, Entry))


def document(journal: Sequence[Entry]) -> dict[str, Any]:
    """The entries as JSON values; only entries with figures have that key."""
    return {"entries": [to_builtins(entry) for entry in journal]}


def view(name: str, journal: Sequence[Entry]) -> View:
    """The view: how the run ended, a table of all entries, and the figures of the batches, with their sum last."""
    columns = (
        Column[Entry]("Time (UTC)", lambda entry: Name(entry.time), numeric=False),
        Column[Entry]("What happened", lambda entry: Sentence(entry.said, _LONGEST), numeric=False),
    )
    table = Table("entry", journal, columns, "journal")
    ends = [each.said for each in journal if each.event in ("stopped", "summary")] or [_NO_END]
    lead_lines = tuple(Sentence(sentence, _LONGEST) for sentence in (ends if journal else ["The journal is empty."]))
    sections = [ViewSection("", visible(Lines(lead_lines), table))]
    if batches := [entry.figures for entry in journal if entry.figures]:
        # A figure that is unknown for one batch is unknown for the sum.
        copied = [each.copied_bytes for each in batches if each.copied_bytes is not None]
        total = Figures(
            "all",
            sum(each.seconds for each in batches),
            sum(each.planned_seconds for each in batches) if all(each.planned_seconds for each in batches) else 0,
            sum(copied) if len(copied) == len(batches) else None,
            sum(each.planned_bytes for each in batches) if all(each.planned_bytes for each in batches) else 0,
        )
        sections.append(ViewSection("Planned and measured", visible(_figures([*batches, total]))))
    return View(Name(name), tuple(sections))


_NO_END = (
    "The journal has no end: the run still goes on, or it was killed. If it was killed, run its playbook again to go "
    "on, or rollback.yml to go back."
)


def _figures(rows: Sequence[Figures]) -> Table[Figures]:
    column = Column[Figures]
    columns = (
        column("Batch", lambda each: Name(each.batch), numeric=False),
        column("Time planned", lambda each: Quantity(each.planned_seconds or None, SECONDS)),
        column("Time taken", lambda each: Quantity(each.seconds, SECONDS)),
        column("Bytes planned", lambda each: Quantity(each.planned_bytes or None, "bytes")),
        column("Bytes copied", lambda each: Quantity(each.copied_bytes, "bytes")),
    )
    return Table("batch", rows, columns, "batches")


def _entry(line: bytes, place: Place) -> Entry | Finding:
    try:
        value = json_value(line)
    except ValueError as error:
        return Finding(place, "", f"isn't JSON ({error}); {_ALLOWED}")
    try:
        entry = convert(value, Entry)
    except ValidationError as error:
        return Finding(place, "", f"{line.decode()[:40]!r} isn't an entry ({error}); {_ALLOWED}")
    # Messages of Kafka's tools may have several lines; a table's cell has one.
    return structs.replace(entry, said=" ".join(entry.said.split()))
