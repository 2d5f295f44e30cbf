"""The summary of a load profile: sums by topic and hour, weighted growth, and the list of flaws."""

from __future__ import annotations

import pyarrow as pa
import pytest

from planner.inputs import load_profile_file
from planner.inputs.cluster_load import cluster_load
from planner.model.load_history import Findings, HistoryFacts, Span
from planner.report import markdown
from planner.whatif import load_report

ABOUT = HistoryFacts(Span(498_216, 498_216 + 672))


def row(topic: str, partition: int, rate: int | None, growth: float | None = None, peak: int = 0) -> dict[str, object]:
    """A partition with this rate in each hour, and twice of it in the hour `peak`; reads equal writes."""
    found: dict[str, object] = dict.fromkeys(load_profile_file.PROFILE_SCHEMA.names, rate)
    week = [None if rate is None else float(rate * (2 if hour == peak else 1)) for hour in range(168)]
    found |= {"topic": topic, "partition": partition, "size_bytes": 10, "hours_in": week, "hours_out": week}
    return found | {"growth_per_month": growth, "coverage": 1.0, "source": "measured"}


def summary(*rows: dict[str, object], about: HistoryFacts = ABOUT) -> load_report.LoadSummary:
    """The summary of these rows."""
    return load_report.summary(pa.Table.from_pylist(list(rows), load_profile_file.PROFILE_SCHEMA), about)


def test_topics_and_hours_are_sums_with_the_busiest_first() -> None:
    """Topics and hours are sums, the busiest first; a sum without known values is unknown, like its busiest hour."""
    found = summary(row("idle", 0, None), row("small", 0, 100, peak=5), row("big", 0, 300, peak=9), row("big", 1, 200))

    assert [("big", 2, 20, 500.0, 9), ("small", 1, 10, 100.0, 5), ("idle", 1, 10, None, None)] == [
        (each.topic, each.partitions, each.size_bytes, each.mean_in, each.busiest_hour) for each in found.topics
    ]
    assert (4, 40, 600.0) == (found.partitions, found.size_bytes, found.mean_in)
    assert [(9, 900.0), (0, 800.0), (5, 700.0), (1, 600.0)] == [(each.hour, each.rate_in) for each in found.hours[:4]]


def test_sizes_that_are_unknown_are_said_to_be() -> None:
    """Without any size there is no sum; if some are known, a line counts the others."""
    unsized = row("a", 0, 100) | {"size_bytes": None}
    none, some = summary(unsized), summary(unsized, row("b", 0, 100))

    assert (None, None, {"size_bytes": 1, "bytes_in_per_sec_mean": 0, "bytes_out_per_sec_mean": 0}) == (
        none.size_bytes,
        none.topics[0].size_bytes,
        none.lacking,
    )
    assert 10 == some.size_bytes
    assert "1 partition without a size, which the sums leave out" in load_report.blocks(some)[0][1].lines
    assert not any("without" in line for line in load_report.blocks(none)[0][1].lines)


def test_growth_is_weighted_by_rates() -> None:
    """The mean growth of partitions with known growth, weighted by rate; None if none is known."""
    known, unknown = summary(row("a", 0, 300, 0.1), row("a", 1, 100, 0.5), row("a", 2, 900), row("b", 0, 1)).topics

    assert known.growth_per_month == pytest.approx(0.2)
    assert unknown.growth_per_month is None


def test_growth_is_shown_with_the_digits_of_planner_growth() -> None:
    """Three significant digits: rounded to 0.1 % before, 3.83 % would be shown as 3.80 %, and 0.04 % as 0 %."""
    found = summary(row("a", 0, 300, 0.03834), row("b", 0, 200, 0.0004))
    text = markdown.render(load_report.view(found))

    assert "3.83 %" in text
    assert "0.04 %" in text


def test_a_topic_grew_in_its_known_hours_alone() -> None:
    """Rates at the end are those that a forecast begins with, also for a topic that appeared later."""
    about, late = HistoryFacts(Span(0, 90 * 24)), row("late", 0, 100, 1.0) | {"coverage": 0.1}
    rows = pa.Table.from_pylist([late, row("old", 0, 100, 1.0), row("b", 0, 1)], load_profile_file.PROFILE_SCHEMA)
    found, joined = load_report.summary(rows, about), cluster_load(rows, about)

    assert {"late": joined.at_end["late"], "old": joined.at_end["old"], "b": 1_000_000} == {
        each.topic: round(1_000_000 * each.at_end) for each in found.topics
    }
    assert any("faster (old): planner growth" in line for line in load_report.blocks(found)[0][1].lines)


def test_flaws_are_listed_with_their_number() -> None:
    """Flaws have numbers with singular or plural; ten topics that can't be trusted are listed, more are counted."""
    untrusted = {f"t{number:02}": "only 10 % of the history is known" for number in range(12)}
    counts = {"repeated_samples": 1, "counter_resets": 1200, "gaps_in_counters": 0}
    (facts, lines), _, _ = load_report.blocks(
        summary(row("a", 0, 1), about=HistoryFacts(Span(0, 24), "UTC", Findings(counts, untrusted)))
    )

    shown = list(lines.lines)
    assert ("History", "1970-01-01 00:00 to 1970-01-02 00:00 UTC (24 hours)") == facts.facts[0]
    assert shown[0].startswith("the history has 24 hours: hours of the week")
    assert "1 sample with the same time as another one (their mean counts)" in shown
    assert "1,200 counters that began again at 0" in shown
    assert not any("gap" in line for line in shown)
    assert "topic t09 can't be trusted: only 10 % of the history is known" in shown
    assert "2 more topics can't be trusted" == shown[-1]
