"""The report of `planner size`: prices, the cheapest cluster, those worth comparing, and how long each lasts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import spec_of

from planner.model.balance import Balance, Tolerance
from planner.model.document_fields import ReplicationFactorRow
from planner.model.spec import BrokerClass, Changes, Monthly, NewPartitions, Sizing
from planner.plan.document import codec
from planner.report import markdown
from planner.whatif import sizing_report
from planner.whatif.sizing import combinations

SMALL, LARGE = BrokerClass("small", 100), BrokerClass("large", 300)


def to_size(**options):
    """Two small brokers, and six clusters to buy."""
    base = spec_of({1: "a", 2: "b"}, {"t": [(1, 2)]}, sizes=20)
    brokers = tuple(replace(each, disk_bytes=100) for each in base.cluster.brokers)
    asked = Sizing((SMALL, LARGE), (1, 2), prices=(("small", 1050), ("large", 2500)), months=3, **options)
    cluster = replace(base.cluster, brokers=brokers, sizes_known=True)
    return replace(base, cluster=cluster, growth=Monthly((), (SMALL, LARGE)), sizing=asked)


def row(number, month=None, used=50.0, moved=10):
    """A combination's row, with a plan that reaches its limit in this month."""
    limit = {"month": month, "broker": None if month is None else 1, "limit": None if month is None else "disk"}
    copied = {"bytes_moved": moved, "least_bytes": moved, "replicas_moved": 1, "leaders_changed": 0}
    return {"number": number, "brokers": 2 + number, "holds": month is None, **limit, "used_percent": used, **copied}


TODAY = {"month": 1, "broker": 2, "limit": "disk"}


def made(*rows, spec=None):
    """The document for six rows."""
    spec = spec or to_size()
    wanted = combinations(spec)
    assert len(rows) == len(wanted)
    return sizing_report.document(spec, wanted, TODAY, rows)


def told(document):
    """The lines of the first block."""
    return list(document and sizing_report.view(document).sections[0].blocks[0].lines)


def test_a_price_is_that_of_all_brokers():
    """A price is for all brokers: two small ones cost 21 a month, two large ones in addition 50 more."""
    document = made(*(row(number) for number in range(1, 7)))
    assert [21.0, 42.0, 71.0, 50.0, 121.0, 100.0] == [each.price for each in document.sizes]
    assert 1 == document.chosen


@pytest.mark.parametrize(
    ("balance", "limit", "said"),
    [
        (Balance(), "network", True),
        (Balance(), "network without rack a", True),
        (Balance(), "disk", False),
        (Balance(network_out=Tolerance.parse("10%")), "network", False),
    ],
)
def test_a_network_limit_is_of_a_plan_that_need_not_spread_traffic(balance, limit, said):
    """A note says so where a network is the limit, and nothing asks to spread traffic."""
    rows = [{**row(number, 2), "limit": limit} for number in range(1, 7)]
    notes = made(*rows, spec=replace(to_size(), balance=balance)).notes
    expected = "6 clusters reach a network limit in plans that needn't spread traffic"
    assert said == any(each.startswith(expected) for each in notes)


def test_the_smallest_gap_is_a_bound():
    """A gap that rounds to 0 is at most 0.01 %, not `at most < 0.01 %`."""
    close = row(1, moved=1_000_000) | {"least_bytes": 999_999}
    assert "copies 1.00 MB, at most 0.01 % above the proven minimum." in told(made(close, *map(row, range(2, 7))))[1]


def test_the_cheapest_is_chosen_among_those_that_last():
    """The cheapest cluster that lasts is chosen, and named with its price."""
    document = made(row(1, 1), row(2, 2), row(3), row(4), row(5), row(6))
    assert 4 == document.chosen
    first, second = told(document)
    assert "Today's cluster lasts until month 1: disk, broker 2." == first
    assert "Of 6 clusters, the cheapest that lasts all 3 months: number 4, 1 × large a rack; 6 brokers, 50.00" in second


def test_the_front_has_what_no_other_is_better_than():
    """The front has clusters that last and that no other beats in price, headroom and bytes."""
    rows = (
        row(1, 1),
        row(2, None, 90, 10),
        row(3, None, 90, 10),
        row(4, None, 80, 30),
        row(5, None, 40, 50),
        row(6, None, 85, 5),
    )
    assert [2, 4, 5, 6] == [each.number for each in made(*rows).sizes if each.on_front]


def test_each_horizon_has_its_cheapest():
    """Each number of months has its cheapest cluster: number 1 for one month, because it lasts until month 2."""
    document = made(row(1, 2), row(2, 3), row(3), row(4, 3), row(5), row(6))
    assert [(1, 1), (2, 2), (3, 3)] == [(each.months, each.number) for each in document.horizons]
    table = sizing_report.view(document).sections[0].blocks[2]
    assert ["1 month", "2 months", "3 months"] == [table.columns[0].value(run) for run in table.rows]


def test_nothing_lasts():
    """If no cluster lasts, the one that lasts longest is named."""
    document = made(*(row(number, min(number, 3)) for number in range(1, 7)))
    assert document.chosen is None
    assert "None of 6 clusters lasts all 3 months." == told(document)[1]
    assert told(document)[2].startswith("The longest, number 4 (1 × large a rack), lasts until month 3: disk, broker 1")


def test_what_is_above_a_limit_today_is_said_so(monkeypatch):
    """A limit exceeded today is `from the start`, not `month 0`."""
    monkeypatch.setitem(TODAY, "month", 0)
    lines = told(made(*(row(number, 0) for number in range(1, 7))))
    assert "Today's cluster is above a limit from the start: disk, broker 2." == lines[0]
    assert "is above a limit from the start: disk, broker 1" in lines[2]


def test_unknown_prices_are_unknown():
    """If a price is unknown, the cluster with the fewest brokers that lasts is chosen, and a note says so."""
    spec = to_size()
    spec = replace(spec, sizing=replace(spec.sizing, prices=(("small", 1050),)))
    document = made(row(1, 1), row(2, 1), row(3), row(4), row(5), row(6), spec=spec)
    assert [21.0, 42.0, None, None, None, None] == [each.price for each in document.sizes]
    assert 3 == document.chosen
    assert "price unknown" in told(document)[1]
    assert "the one with the fewest brokers that lasts all 3 months" in told(document)[1]
    assert any("a price is unknown" in note for note in document.notes)


@pytest.mark.slow
def test_the_page_has_a_mark_for_each_cluster_that_lasts():
    """Each cluster that lasts has a mark in both panels, the same bytes each time; without any there is no plot."""
    document = made(row(1, 1), row(2), row(3), row(4), row(5), row(6))
    page = sizing_report.page(document)
    assert page == sizing_report.page(document)
    assert all(f'id="front-{gid}-{at}"'.encode() in page for gid in ("used", "copied") for at in range(1, 6))
    assert b"<svg" not in sizing_report.page(made(*(row(number, 1) for number in range(1, 7))))


def test_what_is_not_planned_is_told_where_all_hold_too_little():
    """A note counts clusters whose disks are too small in all; too few racks are named in the row only."""
    few = {"month": 0, "broker": None, "holds": False, "bytes_moved": None, "least_bytes": None}
    little, racks = few | {"limit": "disk"}, few | {"limit": "too few brokers or racks for the replication factors"}
    document = made(row(1) | little, row(2) | racks, *(row(number) for number in range(3, 7)))
    assert "1 cluster not planned: their brokers together are too small even today" in document.notes


def test_the_document_is_json():
    """The document is JSON with every key of its types."""
    found = codec.as_json(made(*(row(number) for number in range(1, 7))))
    assert {"chosen", "cluster", "format_version", "horizons", "months", "notes", "sizes", "today"} == set(found)
    assert "small" == found["sizes"][0]["class"]


def test_without_racks_a_number_is_that_of_all_brokers():
    """Without racks a number is for all brokers; a limit exceeded today is `not at all`."""
    spec = to_size()
    bare = tuple(replace(each, rack=None) for each in spec.cluster.brokers)
    rackless = replace(spec, cluster=replace(spec.cluster, brokers=bare))
    counts = [(each.per_rack, len(each.added) - len(each.removed)) for each in combinations(rackless)]
    rows = [{**row(number, 0), "brokers": 2 + more} for number, (_, more) in enumerate(counts, 1)]
    view = sizing_report.view(made(*rows, spec=rackless))
    text = markdown.render(view)
    assert " a rack" not in text
    assert "| not at all (disk) |" in text
    assert "until 0" not in text


def test_single_replicas_are_those_of_the_plan_that_is_made():
    """Partitions with one replica count as in the plan: one topic gets a second replica, and one topic is new."""
    base = spec_of({1: "a", 2: "b"}, {"t": [(1,)], "u": [(1, 2), (2,)]}, sizes=20)
    changes = Changes(
        set_replication_factor=(ReplicationFactorRow("t", 2),), new_partitions=(NewPartitions("new", 0, 3, 1),)
    )
    asked = to_size(survive="broker")
    spec = replace(asked, cluster=replace(base.cluster, brokers=asked.cluster.brokers), changes=changes)
    offline = {"month": 0, "broker": None, "limit": "partitions offline without broker 1"}
    rows = [row(number) for number in range(1, 7)]
    document = sizing_report.document(spec, combinations(spec), offline, rows)

    assert "4 partitions with a single replica: offline without the broker, whatever you buy" in document.notes
    assert "Today's cluster is above a limit from the start: partitions offline without broker 1." == told(document)[0]


def test_partitions_without_a_size_are_noted():
    """They count as empty, so that more brokers may be needed than the table says."""
    spec = to_size()
    document = made(
        *(row(number) for number in range(1, 7)), spec=replace(spec, cluster=replace(spec.cluster, unsized=2))
    )
    assert "2 partitions without a size, counted as empty: brokers hold more than shown" in document.notes
