"""The rows of `planner growth` as one document: the first limit, the brokers that help, and why topics grow."""

from __future__ import annotations

from dataclasses import replace

from clusters import spec_of
from growing_topics import RACKS, rated

from planner.model.spec import BrokerClass, Budget, Changes, Limits, Monthly, Rate
from planner.plan.document.codec import as_json
from planner.whatif.growth import lifetime
from planner.whatif.growth.growth_summary import document


def doubling(disk, **more):
    """Two brokers with such disks; each holds four partitions of 1000 bytes, which double every month."""
    spec = spec_of(RACKS, {"t": [[1], [2]] * 4}, sizes=1000, changes=Changes(), **more)
    brokers = tuple(replace(each, disk_bytes=disk) for each in spec.cluster.brokers)
    growth = Monthly((Rate("t", 1_000_000),))
    return replace(
        spec, cluster=replace(spec.cluster, brokers=brokers), limits=Limits(disk_used_ppm=10**6), growth=growth
    )


def told(spec, months=3):
    """The document of a spec."""
    cases = lifetime.cases(spec, months)
    return as_json(document(spec, cases, lifetime.as_it_is(cases[0]), lifetime.run(cases)))


def test_the_first_limit_has_its_month_and_broker():
    """8000 bytes a broker after one month fit, 16,000 after two don't."""
    found = told(doubling(10_000))

    assert [("today", 2, 1, "disk"), ("as planned", 2, 1, "disk")] == [
        (each["assignment"], each["month"], each["broker"], each["limit"]) for each in found["assignments"]
    ]
    assert [(1, "a", 2, None, 32_000)] == [
        (
            each["id"],
            each["rack"],
            each["today"]["disk_month"],
            each["today"]["network_month"],
            each["today"]["size_bytes"],
        )
        for each in found["brokers"][:1]
    ]


def test_the_fewest_brokers_that_last_are_marked():
    """64,000 bytes after three months: 20,000 fit on today's disks, the rest takes two of 40,000, each in a rack."""
    spec = doubling(10_000)
    found = told(replace(spec, growth=replace(spec.growth, classes=(BrokerClass("big", 40_000),))))

    assert [{"class": "big", "at_least": 2}] == found["classes"]
    (fewest,) = [each for each in found["options"] if each["fewest"]]
    assert ("big", True, None) == tuple(fewest[key] for key in ("class", "holds", "month"))
    assert fewest["added"] + 2 == fewest["brokers"]
    assert 2 <= fewest["added"]
    assert 0 < fewest["fullest_percent"] <= 100
    assert all(not each["holds"] for each in found["options"] if each["added"] < fewest["added"])


def test_why_a_topic_grows_is_told_with_its_bytes():
    """By its retention where something is written to it, else by its rate."""
    (kept,) = told(rated([("retention.ms", "60000"), ("segment.bytes", "1")], size=50, bytes_in=1, ppm=0))["topics"]
    (grown,) = told(rated(size=1_000_000, ppm=80_000), 1)["topics"]

    assert "what is written in 1 min, and a segment" == kept["size"]
    assert ("as it is, growing by its rate", 8.0, 1_000_000, 1_080_000) == tuple(
        grown[key] for key in ("size", "per_month_percent", "size_bytes", "size_bytes_then")
    )


def test_what_the_numbers_rest_on_is_noted():
    """Unknown sizes and rates, and limits that nobody states."""
    notes = told(replace(rated(sizes_known=False), growth=Monthly(())))["notes"]

    assert [
        each for each in notes if each.startswith(("growth has no entry", "sizes are unknown", "1 partition without"))
    ] == notes[:3]
    assert {
        "brokers without capacity.disk have no disk limit",
        "brokers without capacity.network have no network limit",
    } < set(notes)


def test_a_budget_makes_a_plan_a_first_step():
    """Growth is judged of all that there is to do; a budget that all of it is within says nothing."""
    spec = spec_of(RACKS, {"t": [[1]] * 8}, sizes=1000)

    assert "at least 4 steps make all of it" in told(replace(spec, budget=Budget(replicas_moved=1)))["first_step"]
    assert None is told(replace(spec, budget=Budget(replicas_moved=4)))["first_step"]
