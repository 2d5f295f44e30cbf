"""Rules of `report` that no schema can say."""

from __future__ import annotations

from collections.abc import Iterator

from planner.errors import Finding
from planner.spec.balance import knows_sizes, knows_traffic
from planner.spec.build import TARGET_KEYS, brokers_today, target_brokers
from planner.spec.report import kinds
from planner.yaml_source import Document, Path

_FAILURES: Path = ("report", "failures")
# How many brokers fail together, at the least.
_TOGETHER = {"brokers": 1, "racks": 1, "pairs": 2}


def _can_fail(document: Document) -> Iterator[Finding]:
    """Racks fail where there are any; and no more brokers than there are today, whatever a variant adds."""
    racks, brokers = any(each.rack is not None for each in target_brokers(document)), len(brokers_today(document))
    for at, kind in enumerate(kinds(document)):
        path = (*_FAILURES, at) if isinstance(document.get(*_FAILURES), list) else _FAILURES
        if kind == "racks" and not racks:
            yield document.finding(path, "'racks' can't be judged, no broker has a rack; allowed: racks, or brokers")
        if _TOGETHER.get(kind, kind) > brokers:
            yield document.finding(path, f"{kind!r} can't fail of {brokers:,} brokers; allowed: at most as many")


def _can_grow(document: Document) -> Iterator[Finding]:
    """Growth is told of bytes or traffic."""
    if document.get("report", "growth") is None:
        return
    if not knows_sizes(document) and not knows_traffic(document, "network_in"):
        message = "growth can't be judged without sizes or rates; allowed: either of them, or no report.growth"
        yield document.finding(("report", "growth"), message)


def _groups_declared(document: Document) -> Iterator[Finding]:
    if document.get("report", "consumers") and not document.get("consumers"):
        message = "no consumer group is declared; allowed: the key consumers with at least one group, or false here"
        yield document.finding(("report", "consumers"), message)


REPORT_RULES = (
    (("report.failures", *TARGET_KEYS), _can_fail),
    (("report.growth", "cluster.state", "cluster.topics", "cluster.rates"), _can_grow),
    (("report.consumers", "consumers"), _groups_declared),
)
