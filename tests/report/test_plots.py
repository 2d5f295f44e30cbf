"""The plots show what the plan says, and stay small for large plans."""

from __future__ import annotations

import pytest
from drawn_plots import by_name, draw, marks
from large_plans import large
from plan_documents import change, document
from report_documents import GB, small, with_traffic

NAMES = ["front", "brokers", "racks", "movement", "batches", "held"]


def test_all_plots_of_a_plan_that_copies_in_their_order():
    """There are six plots in order, and each one states its number of marks."""
    found = by_name(small())

    assert NAMES == list(found)
    assert {name: len(marks(plot)) for name, plot in found.items()} == {
        name: plot.marks for name, plot in found.items()
    }


def test_the_front_has_a_point_for_each_plan_and_for_kafkas_own():
    """Each plan and Kafka's own placement have a point with their name and both values."""
    assert {
        "point-1": "Kafka --generate, best of 900: 70.0 GB copied, +2.50 % leaders above share",
        "point-2": "do nothing: 0 B copied, +60 % leaders above share",
        "point-3": "this plan: 24.0 GB copied, +3.25 % leaders above share",
        "point-4": "replicas 5%, leaders 5%: 30.0 GB copied, +1 % leaders above share",
    } == marks(by_name(small())["front"])


def test_the_same_plan_is_drawn_as_the_same_bytes():
    """Drawing twice gives the same bytes; the other tests draw a plan only once."""
    assert [plot.file for plot in draw(small())] == [plot.file for plot in draw(small())]


def test_two_bars_for_each_broker_and_measure():
    """Four brokers with three measures have two bars each, today and with the plan; the new broker is named so."""
    found = marks(by_name(small())["brokers"])

    assert 4 * 3 * 2 == len(found)
    assert "broker 1, today: 40.0 GB bytes stored" == found["size_bytes-before-1"]
    assert "broker +4, plan: 2 replicas" == found["replicas-after-4"]


def test_traffic_has_panels_where_rates_are_known():
    """With rates, there are five measures instead of three."""
    found = marks(by_name(with_traffic())["brokers"])

    assert 4 * 5 * 2 == len(found)
    assert "broker 1, plan: 58.5 MB/s network in" == found["network_in-after-1"]


def test_many_brokers_are_a_heat_map_with_a_cell_for_each_measure_today_and_after():
    """Many brokers have a heat map: each cell says how far it is from the mean; a new broker has no cell today."""
    plan = large(49, 1, 2, 20, 2)
    plan["brokers"][0]["after"]["replicas"] = 40
    found = marks(by_name(plan)["brokers"])

    assert (49 + 50) * 3 == len(found)
    assert "broker 1, today: 90.0 GB bytes stored, at the mean" == found["size_bytes-before-1"]
    assert "broker 1, plan: 40 replicas, 32.9 % below the mean" == found["replicas-after-1"]
    assert not [each for each in found if each.endswith("before-50")]


def test_a_plan_that_copies_nothing_has_no_map_and_no_batches():
    """If only leaders change, there is no map and no batches."""
    plan = document([change("t", 0, [1, 2], [2, 1])])

    assert ["brokers", "racks"] == [plot.name for plot in draw(plan)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_large_plan_has_few_marks_and_says_whom_it_sums_up(name):
    """With 400 brokers and 900 batches each plot stays small; all 100 new brokers are shown, the rest as a mean."""
    plan = large(300, 100, 40, 50, 900, racks=[_rack(number) for number in range(80)])
    plot = by_name(plan)[name]

    assert plot.marks <= 1_600
    assert len(plot.svg) < 400_000
    if name == "brokers":
        added = {title.partition(",")[0] for title in marks(plot).values()} & {f"broker {n}" for n in range(301, 401)}
        assert 100 == len(added)
        assert "mean of the other 161" in plot.description


def _rack(number: int):
    load = {"replicas": number, "leaders": 1, "size_bytes": GB, "network_in": None, "network_out": None}
    return {"rack": f"r{number}", "brokers_before": 3, "brokers_after": 4, "before": load, "after": load}
