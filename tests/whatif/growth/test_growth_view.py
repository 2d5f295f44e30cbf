"""The document of `planner growth` for people: its verdicts, and which rows are shown first."""

from __future__ import annotations

from plan_documents import row

from planner.report import markdown
from planner.whatif.growth.growth_summary import GrowthDocument
from planner.whatif.growth.growth_view import view

STATE = {"disk_month": None, "network_month": None, "size_bytes": 1, "network_in": 0, "network_out": 0}
LASTS = {"feasible": True, "bytes_moved": 0, "month": None, "broker": None, "limit": None}
OPTION = {
    "option": "2 of big", "class": "big", "added": 2, "brokers": 4, "feasible": True, "holds": True, "fewest": True,
    "month": None, "broker": None, "limit": None, "bytes_moved": 10**9, "replicas_moved": 3, "leaders_changed": 1,
    "fullest_percent": 50.0,
}  # fmt: skip


def broker(number, month=None):
    """A broker that is full in a month."""
    state = {**STATE, "disk_month": month}
    return {"id": number, "rack": None, "disk_limit_bytes": None, "today": state, "planned": None}


def document(**parts):
    """A document with these parts."""
    return row(GrowthDocument, {"cluster": "c", "months": 6, **parts})


def page_of(found):
    """The document as Markdown."""
    return markdown.render(view(found))


def test_a_verdict_for_each_assignment():
    """When the first limit is reached, and what was copied for it."""
    rows = [
        {**LASTS, "assignment": "today", "month": 2, "broker": 7, "limit": "disk"},
        {**LASTS, "assignment": "as planned", "bytes_moved": 10**9},
    ]
    page = page_of(document(assignments=rows))
    impossible = page_of(document(assignments=[{**LASTS, "assignment": "as planned", "feasible": False}]))

    assert "Today's assignment lasts until month 2, when broker 7 reaches its disk limit." in page
    assert "The planned one lasts all 6 months, after copying " in page
    assert "The planned one isn't possible: no plan keeps every rule." in impossible


def test_brokers_that_would_help_are_told_or_why_there_are_none():
    """The fewest of a class that last; else how many it takes at the least, and how many were tried."""
    least = [{"class": "big", "at_least": 2}]
    lasting = page_of(document(classes=least, options=[OPTION]))
    tried = {**OPTION, "holds": False, "fewest": False, "month": 4, "broker": 1, "limit": "disk"}

    assert "With 2 of big more it lasts all 6 months, for " in lasting
    assert "at least" not in lasting
    short = page_of(document(classes=least, options=[tried]))
    assert "Of big it takes at least 2 more; up to 2 don't last so long." in short
    assert "Of big it takes at least 2 more: not planned, as it is more than" in page_of(document(classes=least))


def test_brokers_that_are_full_first_come_first():
    """Then by id; the rest is counted."""
    found = [broker(number) for number in range(40, 2, -1)] + [broker(41, 5), broker(42, 1)]
    page = page_of(document(brokers=found))
    rows = [line for line in page.splitlines() if line.startswith("|")]
    cells = [row.split("|")[1].strip() for row in rows]
    shown = [cell for cell in cells if cell.isdigit()]

    assert ["42", "41", "3", "4"] == shown[:4]
    assert 24 == len(shown)
    assert "16 brokers left out here: see --format json." in page


def test_topics_that_grow_by_most_bytes_come_first():
    """Names are no markup."""
    topics = [
        {"topic": name, "per_month_percent": 8.0, "size": "as it is", "size_bytes": 5, "size_bytes_then": then}
        for name, then in (("a", 6), ("b_*|", 99), ("c", 4))
    ]
    page = page_of(document(topics=topics))

    assert page.index("99 B") < page.index("6 B") < page.index("4 B")
    assert "b_*|" not in page
