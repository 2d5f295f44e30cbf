"""What `planner seeds` says: the explanation of each topic as a document, and as people are shown it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from planner.model.formats import counted, ranges, replica_list
from planner.report.view import Column, Joined, Lines, Name, Section, Table, View, told
from planner.whatif.explain_seeds import Explanation, Verdict

# By verdict: the words in the table, and those after its count.
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "exact": ("start and shift", "explained by a start index and a shift"),
    "nearest": ("nearest ones", "nearly explained by a start index and a shift"),
    "round_robin": ("plain round robin", "placed by a plain round robin"),
    "striped": ("KRaft, at random", "placed by KRaft"),
    "none": ("no seeds found", "not explained: edited since, or placed with other brokers or racks"),
}
_DIFFERENCES_SHOWN = 20


def document(found: Explanation) -> dict[str, Any]:
    """The explanation of a topic as JSON."""
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


def view(found: Sequence[Explanation]) -> View:
    """A row for each topic, a line for each partition that differs, and how often each verdict was found."""
    column = Column[Explanation]
    columns = (
        column("Topic", lambda row: Name(row.topic), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("RF", lambda row: str(row.replication_factor)),
        column(
            "Placed by",
            lambda row: (
                _VERDICTS[row.verdict][0]
                + ("" if row.grown_from is None else f"; {row.grown_from} grew to {row.partitions}")
            ),
            numeric=False,
        ),
        column("Start index", lambda row: str(row.start_index) if row.start_index >= 0 else None),
        column("Shift", lambda row: ranges(row.shifts) if row.shifts else None, numeric=False),
        column("On", lambda row: row.brokers.name if row.brokers else None, numeric=False),
        column("Differ", lambda row: len(row.differences) if row.shifts else None),
    )
    differ = [(each.topic, difference) for each in found for difference in each.differences]
    lines = [
        Joined(
            (
                Name(f"{topic}-{each.partition}"),
                f": {replica_list(each.replicas)}, where the seeds give {replica_list(each.expected)}",
            )
        )
        for topic, each in differ[:_DIFFERENCES_SHOWN]
    ]
    rest = len(differ) - len(lines)
    more = (f"and {counted(rest, 'more partition')} that differ; --format json has all",) if rest else ()
    counts = Counter(each.verdict for each in found)
    verdicts = [f"{counts[verdict]} {words}" for verdict, (_, words) in _VERDICTS.items() if counts[verdict]]
    summary = f"{counted(len(found), 'topic')}: {', '.join(verdicts)}"
    blocks = told(Table("topic", found, columns), Lines(lines), Lines((*more, summary), bulleted=False))
    return View("", (Section("", blocks),))
