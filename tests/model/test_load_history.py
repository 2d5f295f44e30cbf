"""Doubts about a load history, and the traffic of partitions in each hour of the week."""

from __future__ import annotations

import numpy as np
import pytest

from planner.model.load_history import (
    HOURS_OF_WEEK,
    Span,
    WeekOfLoad,
    at_end,
    busiest_hours,
    history_warnings,
    hour_name,
    hours_ahead,
    outgrown,
    topic_growth,
)


@pytest.mark.parametrize(
    ("hours", "why"),
    [
        (1, ("the history has 1 hour: hours of the week that it doesn't have are unknown, and so is growth",)),
        (24, ("the history has 24 hours: hours of the week that it doesn't have are unknown, and so is growth",)),
        (10 * 24, ("the history has 10 days: growth needs more than two weeks, and is unknown",)),
        (28 * 24, ()),
    ],
)
def test_a_short_history_has_named_doubts(hours: int, why: tuple[str, ...]) -> None:
    """A history of a day lacks hours of the week, and one of ten days can't show growth; both give a sentence."""
    assert why == history_warnings(Span(498_216, 498_216 + hours))


def test_a_long_history_of_topics_that_grow_is_no_picture_of_today() -> None:
    """If topics grew during a long history, its means are below their last values; the note says by how much."""
    months = np.arange(180 * 24) / 730.5
    faster = 1.2 ** months[-1] / (1.2**months).mean() - 1
    growth = {"slow": 0.02, "fast": 0.2, "shrinks": -0.5, "faster": 0.2, "gone": -1.0}
    times = {topic: at_end(180 * 24, rate) for topic, rate in growth.items()}
    (told,) = outgrown(Span(0, 180 * 24), times)
    assert times["shrinks"] == pytest.approx(0.5 ** months[-1] / (0.5**months).mean(), rel=1e-3)
    assert 0 < times["gone"] < times["shrinks"] < at_end(180 * 24, 0.0) == 1
    assert (
        f"means over 180 days; at their end topics are written up to {100 * faster:.1f} % faster (fast, faster)" in told
    )
    assert () == outgrown(Span(0, 28 * 24), {"fast": at_end(28 * 24, 0.2)})


def test_hours_follow_the_rate_that_counts() -> None:
    """Hours have the profile's shape, scaled to the stated rate; without known hours they are the mean."""
    hours = np.full((2, 2, HOURS_OF_WEEK), 10.0)
    hours[:, 0, 3] = 30
    hours[0, 1, 4] = np.nan
    week = WeekOfLoad({("x", 0): 0, ("x", 1): 1}, np.array([[10.0, 10.0], [10.0, 0.0]]), hours)

    found = week.hours_of([("x", 0), ("x", 1), ("y", 0)], np.array([[10, 20, 7], [20, 5, 0]]))

    assert [10, 30, 10] == found[0, 0, 2:5].tolist()
    assert [20, 60, 20] == found[1, 0, 2:5].tolist()
    assert [20, 20, 20] == found[0, 1, 2:5].tolist()
    # A mean of 0 has no shape, so each hour is the stated rate.
    assert [5, 5, 5] == found[1, 1, 2:5].tolist()
    assert ([7] * 3, [0] * 3) == (found[0, 2, 2:5].tolist(), found[1, 2, 2:5].tolist())


def test_a_topic_grows_as_its_partitions_do_weighted_by_rates() -> None:
    """A topic's growth is its partitions' mean, weighted by rates if there are any; unknown growth is left out."""
    growth = np.array([0.1, 0.5, np.nan, 0.1, 0.3, np.nan, 1e14])
    rates = np.array([3.0, 1.0, 9.0, np.nan, 0.0, 7.0, 5.0])

    found = topic_growth(np.array([0, 0, 0, 1, 1, 2, 3]), 4, growth, rates)

    assert [0.2, 0.2] == pytest.approx(found[:2].tolist())
    assert np.isnan(found[2])
    assert 99.0 == found[3], "a topic that began in the history"


def test_the_hours_with_the_highest_loads_are_chosen_each_once() -> None:
    """The cluster's busiest hours are chosen, then each broker's, by load, without repeats; of ties the earlier."""
    loads = np.ones((2, 3, HOURS_OF_WEEK), dtype=np.int64)
    loads[0, 0, [7, 9]] = 50
    loads[0, 1, 20] = 40
    loads[1, 2, 30] = 90
    # The cluster's hours are 30 (out, 92) and 7 (in, 52). Brokers' are 30, 7, 20, and 0 if no hour differs.
    assert (30, 7, 20, 0) == busiest_hours(loads)


def test_no_more_than_a_few_hours_are_chosen() -> None:
    """Only the hours with the highest loads are chosen, and none without traffic."""
    loads = np.zeros((2, 20, HOURS_OF_WEEK), dtype=np.int64)
    assert () == busiest_hours(loads)
    loads[0, range(20), range(20)] = np.arange(100, 120)
    assert (19, 18, 17, 16, 15, 14) == busiest_hours(loads)


@pytest.mark.parametrize(
    ("zone", "ahead", "name"),
    [
        ("UTC", 0, "Monday 09:00 UTC"),
        ("Asia/Kolkata", 5.5, "Monday 14:30 Asia/Kolkata"),
        ("America/Los_Angeles", -8, "Monday 01:00 America/Los_Angeles"),
    ],
)
def test_hours_have_the_names_of_a_zone_by_its_offset_in_january(zone: str, ahead: float, name: str) -> None:
    """An hour of UTC is named by the clocks of the zone, which may be ahead by half an hour or be behind."""
    assert (ahead, name) == (hours_ahead(zone), hour_name(9, zone))
