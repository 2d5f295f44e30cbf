"""`planner seeds`: which start index and shift explain the topics of a spec or of a state file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from planner.cli.brokers import broker_options, given, of_file
from planner.cli.shown import echo_json, echo_page
from planner.model.errors import did_you_mean
from planner.model.formats import UNKNOWN, counted, number, printable, ranges
from planner.model.markup import code, text
from planner.report import terminal_tables
from planner.whatif.seeds import explain
from planner.whatif.seeds.explain import Explanation, Verdict

HEADER = ("Topic", "Partitions", "RF", "Placed by", "Start index", "Shift", "On", "Differ")
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
    """Find the start index and the next replica shift that explain each topic's assignment.

    Where a shift stands as a list, each of them gives the same assignment. A plain round robin has no shift: replica j
    of partition i is on broker (start index + i + j) mod n. The brokers are those of SPEC, or of
    --brokers; with neither, those that hold replicas.
    """
    topics, brokers, rack_aware = of_file(file)
    stated = given(options["brokers"], options["racks"]) or brokers
    found = explain.explain(topics, stated, rack_aware=rack_aware and not options["disable_rack_aware"])
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
            echo_page(_page(shown, terminal_tables.markdown, code, text, None))
        case _:
            echo_page(_page(shown, terminal_tables.aligned, printable, printable, _DIFFERENCES_SHOWN))
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


def _page(
    found: Sequence[Explanation],
    table: Callable[..., str],
    name: Callable[[str], str],
    say: Callable[[str], str],
    at_most: int | None,
) -> str:
    """The table, a line for each partition that differs, and the count of each verdict."""
    rows = [_row(each, name, say) for each in found]
    differ = [(each, difference) for each in found for difference in each.differences]
    lines = [
        f"{name(f'{each.topic}-{difference.partition}')}: {_ids(difference.replicas)}, "
        f"where the pair gives {_ids(difference.expected)}"
        for each, difference in differ[:at_most]
    ]
    if len(lines) < len(differ):
        lines.append(f"and {counted(len(differ) - len(lines), 'more partition')} that differ; --format json has all")
    bullet = "- " if table is terminal_tables.markdown else ""
    body = "".join(f"{bullet}{line}\n" for line in lines)
    return f"{table(HEADER, rows, right=(1, 2, 4, 7))}{chr(10) if lines else ''}{body}\n{_summary(found)}\n"


def _row(found: Explanation, name: Callable[[str], str], say: Callable[[str], str]) -> tuple[str, ...]:
    verdict = _VERDICTS[found.verdict][0]
    if found.grown_from is not None:
        verdict += f"; {found.grown_from} grew to {found.partitions}"
    return (
        name(found.topic),
        number(found.partitions),
        str(found.replication_factor),
        say(verdict),
        str(found.start_index) if found.start_index >= 0 else UNKNOWN,
        ranges(found.shifts) if found.shifts else UNKNOWN,
        say(found.brokers.name) if found.brokers else UNKNOWN,
        number(len(found.differences)) if found.shifts else UNKNOWN,
    )


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


def _summary(found: Sequence[Explanation]) -> str:
    counts = Counter(each.verdict for each in found)
    told = [f"{counts[verdict]} {words}" for verdict, (_, words) in _VERDICTS.items() if counts[verdict]]
    return f"{counted(len(found), 'topic')}: {', '.join(told)}"
