"""A load profile's page: the week, the busiest topics and the trend as plots, and nothing that could run."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from planner.inputs import load_profile_file
from planner.model.load_history import Findings, HistoryFacts, Span
from planner.whatif import load_report

ABOUT = HistoryFacts(
    Span(498_216, 498_216 + 672), "Europe/Berlin", Findings({"repeated_samples": 2}, {"t3": "<script>"})
)


def rows(topics: int = 7, *, growth: float | None = 0.1, rate: int = 1000) -> pa.Table:
    """Two partitions of each topic; the first topic is three times as busy as the last, and Monday 10:00 is busiest."""
    found = []
    for topic in range(topics):
        for partition in range(2):
            level = rate * (3 * topics - 2 * topic)
            week = [float(level * (2 if hour == 10 else 1)) for hour in range(168)]
            row: dict[str, object] = dict.fromkeys(load_profile_file.PROFILE_SCHEMA.names, level)
            row |= {"topic": f"t{topic}", "partition": partition, "hours_in": week, "hours_out": week}
            wide = None if growth is None else growth + 0.2 * partition
            ends = (None, None) if wide is None else (wide - 0.05, wide + 0.05)
            row |= {"growth_per_month": wide, "growth_low": ends[0], "growth_high": ends[1]}
            found.append({**row, "coverage": 1.0, "source": "measured"})
    return pa.Table.from_pylist(found, load_profile_file.PROFILE_SCHEMA)


def test_the_page_has_the_week_the_topics_and_the_trend() -> None:
    """The page has three plots with a text for each mark and their numbers, and is the same bytes each time."""
    page = load_report.page(rows(), ABOUT)

    assert page == load_report.page(rows(), ABOUT)
    text = page.decode()
    assert "all topics, written: 211 KB/s on average, 420 KB/s on Monday 10:00 UTC" in text.replace("kB", "KB")
    assert "t0: 20 % per month, 15 % to 25 %" in text
    assert ["busiest hours", "busiest topics", "growth per month"] == re.findall(r"In numbers: (.*?)</summary>", text)
    assert all(f'id="topics-topic-{at}"' in text for at in range(1, 6))
    assert 'id="topics-topic-6"' not in text


def test_nothing_on_the_page_can_run() -> None:
    """There is no script, and HTML in names or findings is plain text."""
    text = load_report.page(rows(), ABOUT).decode()

    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri" in text


@pytest.mark.parametrize(
    ("table", "absent"),
    [(rows(growth=None), 'id="growth"'), (rows(rate=0), 'id="week"'), (rows().slice(0, 0), 'id="week"')],
)
def test_what_is_unknown_is_not_drawn(table: pa.Table, absent: str) -> None:
    """A short history has no growth, sizes alone have no week, and an empty profile has no plots."""
    assert absent not in load_report.page(table, ABOUT).decode()


def test_a_trend_is_the_mean_of_the_partitions() -> None:
    """A topic's trend is the mean of its partitions, weighted by rate; topics are in the order asked for."""
    first, second = load_report.trends(rows(), ["t6", "t0"])

    assert ("t6", "t0") == (first.topic, second.topic)
    assert (0.2, 0.15, 0.25) == pytest.approx((first.growth, first.low, first.high))
