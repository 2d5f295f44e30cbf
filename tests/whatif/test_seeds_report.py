"""What explains topics' assignments, as a document and as a table with the partitions that differ."""

from __future__ import annotations

from planner.model.cluster import Partition, Topic
from planner.report import markdown
from planner.strategies import kafka_classic
from planner.whatif import explain_seeds, seeds_report
from planner.whatif.explain_seeds import Explanation

BROKERS = tuple((broker, None) for broker in range(4))


def explained(*, edited: int | None) -> Explanation:
    """Eight partitions at start index 1 and shift 2; one of them edited by hand."""
    lists = kafka_classic.place(BROKERS, 8, 2, start_index=1, next_replica_shift=2)
    rows = [
        Partition(at, tuple(reversed(each)) if at == edited else tuple(each), None) for at, each in enumerate(lists)
    ]
    (found,) = explain_seeds.explain([Topic("orders", tuple(rows))], BROKERS)
    return found


def test_a_document_has_the_pair_and_what_differs() -> None:
    """The pair as numbers; each partition that isn't where the pair would put it, with both lists."""
    document = seeds_report.document(explained(edited=3))

    assert ("orders", "nearest", 1, [2]) == tuple(
        document[key] for key in ("topic", "verdict", "start_index", "next_replica_shifts")
    )
    (difference,) = document["differences"]
    assert 3 == difference["partition"]
    assert difference["replicas"] == difference["expected"][::-1]


def test_a_table_counts_the_verdicts() -> None:
    """A row for each topic, a line for each partition that differs, and how many there are of each verdict."""
    page = markdown.render(seeds_report.view([explained(edited=None), explained(edited=3)]))

    assert "2 topics: 1 explained by a start index and a shift, 1 nearly explained by a start index and a shift" in page
    assert "where the seeds give" in page
