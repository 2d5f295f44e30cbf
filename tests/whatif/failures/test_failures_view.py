"""The document of `planner failures` for people: which rows are shown, and names that can't be markup."""

from __future__ import annotations

from io import StringIO

from plan_documents import row
from rich.console import Console

from planner.report import markdown, terminal
from planner.whatif.failures.failures_summary import FailuresDocument
from planner.whatif.failures.failures_view import view

FACTS = {"offline": 0, "writes_refused": 0, "at_risk": 1, "lost": 0, "lost_bytes": 0, "leaders_moved": 2}


def state(name, offline=0, topics=(), **more):
    """A state of a kind, with its worst failure."""
    worst = {**FACTS, "failed": "broker 1", "leaders_most": None, "over_capacity": None, "topics": list(topics)}
    return {"state": name, "with_offline": 1, "worst": {**worst, "offline": offline, **more}}


def document(*states, scenarios=()):
    """A document of one kind."""
    kind = {"of": "3", "scenarios": 4, "explained": "all 4", "states": list(states)}
    told = {"cluster": "c", "plan_id": "0123456789abcdef", "notes": ["a_note"]}
    return row(FailuresDocument, told, batches=2, kinds=[kind], scenarios=list(scenarios))


def lines(found, *words):
    """The lines of the Markdown that have all of these words."""
    return [line for line in markdown.render(view(found)).splitlines() if all(word in line for word in words)]


def test_of_the_batches_the_worst_is_shown():
    """Between today and the plan; what nobody knows is a dash and not 0."""
    found = document(state("today"), state("batch 1", 1), state("batch 2", 5), state("planned"))

    assert [] == lines(found, "batch 1")
    (worst,) = lines(found, "batch 2, worst of 2")
    assert "| 5 |" in worst
    assert "any 3" in lines(found, "today", "broker 1")[0]


def test_topics_that_are_hit_are_told_and_are_no_markup():
    """What is offline isn't counted again as refused."""
    rows = [
        {"topic": "a|b*", "offline": 1, "writes_refused": 3, "lost": 0},
        {"topic": "c", "offline": 0, "writes_refused": 0, "lost": 1},
    ]
    found = document(state("today", 1, rows))
    console = Console(record=True, width=100, file=StringIO())
    terminal.show(view(found), console)

    (told,) = lines(found, "can't be written")
    assert "1 offline, 2 can't be written with acks=all" in told
    assert "`a" in told
    assert "a|b* 1 offline, 2 can't be written with acks=all" in " ".join(console.export_text().split())


def test_the_worst_brokers_come_first_and_the_rest_are_counted():
    """Those that lead more afterwards, too."""
    each = [
        {
            "failed": f"broker {number}",
            "states": [
                {
                    "state": "today",
                    **FACTS,
                    "over_capacity": None,
                    "offline": number,
                    "moved_to": [{"broker": to, "leaders": to} for to in range(1, 9)],
                }
            ],
        }
        for number in range(14)
    ]
    found = document(state("today"), scenarios=each)
    shown = [line.split("|")[1].strip() for line in lines(found, "8: 8, 7: 7", "and 2 brokers")]

    assert [f"broker {number}" for number in range(13, 1, -1)] == shown
    assert 1 == len(lines(found, "2 milder failures left out here"))
