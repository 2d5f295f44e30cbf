"""`report`: which other what-ifs the plan tells of, from the YAML to values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.model import ReportSections
from planner.yaml_source import Document

_MONTHS = 12


def sections(document: Document) -> ReportSections:
    """`report`; nothing is told where it isn't there."""
    growth = document.get("report", "growth")
    return ReportSections(
        tuple(dict.fromkeys(map(str, kinds(document)))),
        None if growth is None else growth.get("months", _MONTHS),
        document.get("report", "consumers") or False,
    )


def kinds(document: Document) -> Sequence[Any]:
    """`report.failures` as a list: one kind, or several."""
    asked = document.get("report", "failures")
    if asked is None:
        return ()
    return asked if isinstance(asked, list) else (asked,)
