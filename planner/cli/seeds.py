"""`planner seeds`: which start index and shift explain the topics of a spec or of a state file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import click

from planner.cli.brokers import broker_options, given, of_file
from planner.cli.shown import echo_json, show_view
from planner.model.errors import did_you_mean
from planner.model.formats import counted, ranges
from planner.report.view import Column, Joined, Lines, Name, Section, Table, Value, View, told
from planner.whatif import explain_seeds
from planner.whatif.explain_seeds import Explanation, PlacementDifference, Verdict

# What stands in the table, and what is counted below it.
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "exact": ("a pair, exactly", "explained by a pair"),
    "nearest": ("nearest pair", "near a pair"),
    "round_robin": ("plain round robin", "placed by a plain round robin"),
    "striped": ("KRaft (no pair)", "placed by KRaft"),
    "none": ("none: edited by hand", "edited by hand"),
}
_DIFFERENCES_SHOWN = 20


@click.command()
@click.argument("file", metavar="SPEC|STATE-FILE", type=click.Path(path_type=Path))
@broker_options
@click.option("--topic", "names", multiple=True, help="Only this topic; may be given again.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text")
def seeds(file: Path, names: tuple[str, ...], form: str, **options: Any) -> int:
    """Find the seeds that explain each topic's assignment.

    A start index and the next replica shift, by topic.

    Where a shift stands as a list, each of them gives the same assignment. A plain round robin has no shift: replica j
    of partition i is on broker (start index + i + j) mod n. The brokers are those of SPEC, or of
    --brokers; with neither, those that hold replicas.
    """
    topics, brokers, rack_aware = of_file(file)
    stated = given(options["brokers"], options["racks"]) or brokers
    found = explain_seeds.explain(topics, stated, rack_aware=rack_aware and not options["disable_rack_aware"])
    known = {each.topic for each in found}
    for name in names:
        if name not in known:
            message = f"--topic {name}: {file} has no such topic; {did_you_mean(name, known)}allowed"
            raise click.UsageError(f"{message}: {_some(sorted(known))}")
    shown = [each for each in found if not names or each.topic in names]
    match form:
        case "json":
            document = {"topics": [_document(each) for each in shown]}
            echo_json(document)
        case "markdown":
            show_view(_view(shown), "markdown")
        case _:
            show_view(_view(shown), "text")
    return 0


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {counted(len(names) - 5, 'other')}" if len(names) > 5 else "")


def _document(found: Explanation) -> dict[str, Any]:
    """An explanation as JSON."""
    return {
        "topic": found.topic,
        "partitions": found.partitions,
        "replication_factor": found.replication_factor,
        "verdict": found.verdict,
        "start_index": found.start_index if found.start_index >= 0 else None,
        "next_replica_shifts": list(found.shifts),
        "brokers": list(found.brokers.order) if found.brokers else None,
        "brokers_are": found.brokers.name if found.brokers else None,
        "rack_aware": found.brokers.rack_aware if found.brokers and found.shifts else None,
        "created_with_partitions": found.grown_from,
        "differences": [
            {"partition": each.partition, "replicas": list(each.replicas), "expected": list(each.expected)}
            for each in found.differences
        ],
    }


def _view(found: Sequence[Explanation]) -> View:
    """The table, a line for each partition that differs, and the count of each verdict."""
    column = Column[Explanation]
    columns = (
        column("Topic", lambda row: Name(row.topic), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("RF", lambda row: str(row.replication_factor)),
        column("Placed by", _placed_by, numeric=False),
        column("Start index", lambda row: str(row.start_index) if row.start_index >= 0 else None),
        column("Shift", lambda row: ranges(row.shifts) if row.shifts else None, numeric=False),
        column("On", lambda row: row.brokers.name if row.brokers else None, numeric=False),
        column("Differ", lambda row: len(row.differences) if row.shifts else None),
    )
    differ = [(each.topic, difference) for each in found for difference in each.differences]
    lines = Lines(tuple(starmap(_differs, differ[:_DIFFERENCES_SHOWN])))
    rest = len(differ) - len(lines.lines)
    more = (f"and {counted(rest, 'more partition')} that differ; --format json has all",) if rest else ()
    blocks = told(Table("", "", "topic", found, columns), lines, Lines((*more, _summary(found)), bulleted=False))
    return View("", (Section("", blocks),))


def _differs(topic: str, difference: PlacementDifference) -> Value:
    name = Name(f"{topic}-{difference.partition}")
    return Joined((name, f": {_ids(difference.replicas)}, where the pair gives {_ids(difference.expected)}"))


def _placed_by(found: Explanation) -> str:
    grown = "" if found.grown_from is None else f"; {found.grown_from} grew to {found.partitions}"
    return f"{_VERDICTS[found.verdict][0]}{grown}"


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


def _summary(found: Sequence[Explanation]) -> str:
    counts = Counter(each.verdict for each in found)
    told = [f"{counts[verdict]} {words}" for verdict, (_, words) in _VERDICTS.items() if counts[verdict]]
    return f"{counted(len(found), 'topic')}: {', '.join(told)}"
