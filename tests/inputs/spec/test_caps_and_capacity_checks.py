"""Checks of `sizing`, `traffic` and `prices`: their values are read, and each fault is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import findings
from folders import ROOT

from planner.inputs.spec.reading import load
from planner.model.spec import BrokerClass, RackTraffic, Sizing

HEAD = """version: 1
cluster:
  name: c
  broker_classes: {small: {disk: 1GB}, large: {disk: 2GB, network: 1MB/s}}
  brokers: [{id: 1, rack: a, class: small}, {id: 2, rack: b}]
  topics: [{name: t, partitions: [{replicas: [1, 2], size: 5MB}]}]
"""


RATED = HEAD.replace("size: 5MB", "size: 5MB, bytes_in: 1MB/s")


def sized(text: str, head: str = HEAD) -> str:
    """A spec with `sizing` in line 7."""
    return f"{head}sizing: {text}\n"


CASES = [
    (
        "unknown_class",
        sized("{brokers_per_rack: 2, classes: [small, lrage]}"),
        ("7:48 sizing.classes[1]", "'lrage' isn't in cluster.broker_classes; did you mean 'large'?"),
    ),
    (
        "unknown_price",
        sized("{brokers_per_rack: 2, prices: {smal: 3}}"),
        ("7:40 sizing.prices.smal", "'smal' isn't in cluster.broker_classes", "allowed: small, large"),
    ),
    (
        "one_capacity_of_two_prices",
        sized(
            "{brokers_per_rack: 2, prices: {small: 3, twin: 2}}",
            HEAD.replace("{small: {disk: 1GB}", "{small: {disk: 1GB}, twin: {disk: 1000MB}"),
        ),
        (
            "7:50 sizing.prices.twin",
            "2, and 3 for small of the same capacity; allowed: one price, or unlike capacities",
        ),
    ),
    (
        "one_capacity_without_a_price",
        sized(
            "{brokers_per_rack: 2, prices: {small: 3}}",
            HEAD.replace("{small: {disk: 1GB}", "{small: {disk: 1GB}, twin: {disk: 1GB}"),
        ),
        ("7:40 sizing.prices.small", "3, and no price for twin of the same capacity"),
    ),
    (
        "growth_that_is_no_list",
        sized("{brokers_per_rack: 2, prices: {small: 3}}") + "growth: true\n",
        ("8:1 growth", "isn't possible here; allowed: a list"),
    ),
    (
        "no_class",
        sized(
            "{brokers_per_rack: 2}",
            HEAD.replace("{small: {disk: 1GB}, large: {disk: 2GB, network: 1MB/s}}", "{}").replace(
                ", class: small", ""
            ),
        ),
        ("7:1 sizing", "no class of brokers is stated; allowed: cluster.broker_classes"),
    ),
    (
        "backwards",
        sized("{brokers_per_rack: 5..2}"),
        ("7:10 sizing.brokers_per_rack", "'5..2' has no number", "such as 2..5"),
    ),
    (
        "too_many_clusters",
        sized("{brokers_per_rack: 1..9999}"),
        ("7:10 sizing.brokers_per_rack", "'1..9999' of 2 classes are 39,996 clusters", "allowed: at most 2,000"),
    ),
    (
        "price_of_nothing",
        sized("{brokers_per_rack: 2, prices: {small: 0.004}}"),
        ("7:40 sizing.prices.small", "0.004 is less than can be counted; allowed: 0, or 0.01"),
    ),
    (
        "price_of_less",
        RATED + "prices: {cross_rack_per_gib: 0.0000001}\n",
        ("7:10 prices.cross_rack_per_gib", "1e-07 is less than can be counted; allowed: 0, or 0.000001 or more"),
    ),
    (
        "not_a_range",
        sized("{brokers_per_rack: 2-5}"),
        ("7:10 sizing.brokers_per_rack", "'2-5'", "the fewest and the most"),
    ),
    (
        "none",
        sized("{brokers_per_rack: 0}"),
        ("7:10 sizing.brokers_per_rack", "0 isn't possible", "a whole number from 1 to 9999, or"),
    ),
    (
        "one_rack",
        sized("{brokers_per_rack: 2, racks: [a], survive: rack}"),
        ("7:43 sizing.survive", "'rack' can't be survived with 1 rack"),
    ),
    (
        "no_loads",
        sized("{brokers_per_rack: 2}", HEAD.replace(", size: 5MB", "")),
        ("7:1 sizing", "brokers can't be sized without sizes or rates"),
    ),
    (
        "shares",
        RATED + "traffic: {consumers: {a: 50%, b: 49.5%}}\n",
        ("7:11 traffic.consumers", "the shares of all racks together are 99.5%; allowed: 100%"),
    ),
    (
        "traffic_of_no_racks",
        RATED + "traffic: {consumers: {}}\n",
        ("7:11 traffic.consumers", "an empty mapping isn't possible here; allowed: at least one key"),
    ),
    (
        "traffic_without_consumers",
        RATED + "traffic: {fetch_from: nearest replica}\n",
        ("7:11 traffic.fetch_from", "has no effect without traffic.consumers; allowed: state consumers too"),
    ),
    (
        "traffic_without_rates",
        HEAD + "traffic: {fetch_from: leader}\n",
        ("7:1 traffic", "what crosses racks is unknown without rates; allowed: rates"),
    ),
    (
        "prices_without_racks",
        RATED.replace(", rack: b", "").replace(", rack: a", "") + "prices: {cross_rack_per_gib: 0.02}\n",
        ("7:1 prices", "what crosses racks is unknown without a rack for every broker; allowed: racks"),
    ),
    ("price_below_0", RATED + "prices: {cross_rack_per_gib: -1}\n", ("7:10 prices.cross_rack_per_gib", "from 0")),
    (
        "fetch_from",
        RATED + "traffic: {fetch_from: follower}\n",
        ("7:11 traffic.fetch_from", "'follower'", "leader, nearest replica"),
    ),
    ("no_number", sized("{classes: [small]}"), ("7:1 sizing", "brokers_per_rack")),
]


@pytest.mark.parametrize(("text", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_fault_has_its_place_and_what_is_allowed(text: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    """One fault gives one finding, with its place, its key and what is allowed."""
    (found,) = findings(tmp_path, text)
    line = f"{found.place} {found.key}: {found.message}"
    assert all(part in line for part in parts), line


def test_what_is_read(tmp_path: Path) -> None:
    """`sizing` is read with prices in hundredths and shares in millionths; defaults are all classes and 12 months."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        sized("{brokers_per_rack: 2..5, prices: {large: 90.25}, disk_used: 75%, racks: [b, a], survive: broker}")
    )
    small, large = BrokerClass("small", 10**9), BrokerClass("large", 2 * 10**9, 10**6)

    assert Sizing((small, large), (2, 5), ("b", "a"), (("large", 9025),), 12, "broker", 750_000) == load(path).sizing
    path.write_text(sized("{brokers_per_rack: 3, classes: [large], replicas_per_broker: 4000, months: 7}"))
    assert Sizing((large,), (3, 3), months=7, replicas_per_broker=4000) == load(path).sizing


def test_traffic_and_prices_are_read(tmp_path: Path) -> None:
    """`traffic` and `prices` are read in millionths; a named rack may have no brokers."""
    path = tmp_path / "spec.yaml"
    path.write_text(RATED)
    assert RackTraffic() == load(path).traffic
    path.write_text(
        RATED
        + "traffic: {consumers: {z: 40%, a: 60%}, fetch_from: nearest replica}\nprices: {cross_rack_per_gib: 0.02}\n"
    )
    assert RackTraffic({"z": 400_000, "a": 600_000}, "nearest replica", 20_000) == load(path).traffic


def test_other_specs_have_none() -> None:
    """The key `sizing` is optional: a spec without it has None."""
    assert load(ROOT / "examples" / "expand.yaml").sizing is None
