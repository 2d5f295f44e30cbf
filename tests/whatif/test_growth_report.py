"""The report of `planner growth`: the first limit, brokers that help, why topics grow, and the order of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import spec_of
from growing_topics import RACKS, rated
from plan_documents import row

from planner.model.document_fields import SpecLimits
from planner.model.load_history import HOURS_OF_WEEK, WeekOfLoad
from planner.model.spec import BrokerClass, Budget, Changes, Choice, Monthly, Rate
from planner.plan.document.codec import as_json
from planner.report import markdown
from planner.whatif import brokers_for_growth
from planner.whatif.growth_report import GrowthDocument, document, section, view


def doubling(disk, **more):
    """Two brokers with these disks and four partitions of 1000 bytes each, which double every month."""
    spec = spec_of(RACKS, {"t": [[1], [2]] * 4}, sizes=1000, changes=Changes(), **more)
    brokers = tuple(replace(each, disk_bytes=disk) for each in spec.cluster.brokers)
    growth = Monthly((Rate("t", 1_000_000),))
    return replace(
        spec, cluster=replace(spec.cluster, brokers=brokers), limits=SpecLimits(disk_used_ppm=10**6), growth=growth
    )


def told(spec, months=3):
    """The document for a spec."""
    cases = brokers_for_growth.cases(spec, months)
    rows = [brokers_for_growth.evaluate(each) for each in cases]
    return as_json(document(spec, cases, brokers_for_growth.today_row(cases[0]), rows))


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


def test_the_network_is_judged_by_rates_at_the_end_of_the_history():
    """With the rates at the end, 200 bytes/s instead of 100, the limit is reached after one month of growth."""
    spec = rated(size=1, bytes_in=100, ppm=200_000)
    brokers = tuple(replace(each, network_bytes_per_sec=700) for each in spec.cluster.brokers)
    known = replace(spec, cluster=replace(spec.cluster, brokers=brokers))
    ended = replace(known, growth=replace(known.growth, at_end={"t": 2_000_000}))

    # For 100 bytes written, 300 are sent: 233 written reach the limit of 700, after 5 and after 1 months.
    assert [5, 1] == [told(each, 6)["assignments"][0]["month"] for each in (known, ended)]


def test_the_fewest_brokers_that_last_are_marked():
    """64,000 bytes after three months: 20,000 fit on today's disks, the rest needs two of 40,000, each in a rack."""
    spec = doubling(10_000)
    found = told(replace(spec, growth=replace(spec.growth, classes=(BrokerClass("big", 40_000),))))

    assert [{"class": "big", "at_least": 2}] == found["classes"]
    (fewest,) = [each for each in found["options"] if each["fewest"]]
    assert ("big", True, None) == tuple(fewest[key] for key in ("class", "holds", "month"))
    assert fewest["added"] + 2 == fewest["brokers"]
    assert 2 <= fewest["added"]
    assert 0 < fewest["fullest_percent"] <= 100
    assert all(not each["holds"] for each in found["options"] if each["added"] < fewest["added"])


def test_brokers_of_hundreds_of_petabytes_are_full_to_a_percentage_above_zero():
    """A hundred times their bytes doesn't fit into 64 bits."""
    spec = doubling(2**58)
    topics = tuple(
        replace(topic, partitions=tuple(replace(each, size_bytes=2**50) for each in topic.partitions))
        for topic in spec.cluster.topics
    )
    spec = replace(spec, cluster=replace(spec.cluster, topics=topics))
    found = told(replace(spec, growth=replace(spec.growth, classes=(BrokerClass("big", 2**59),))), 7)
    assert min(each["fullest_percent"] for each in found["options"]) > 0


def test_why_a_topic_grows_is_told_with_its_bytes():
    """A topic with writes grows to its retention, other topics grow by their rate; bytes are stated for both."""
    (kept,) = told(rated([("retention.ms", "60000"), ("segment.bytes", "1")], size=50, bytes_in=1, ppm=0))["topics"]
    (grown,) = told(rated(size=1_000_000, ppm=80_000), 1)["topics"]

    assert "what is written in 1 min, and a segment" == kept["size"]
    assert ("today's bytes", 8.0, 1_000_000, 1_080_000) == tuple(
        grown[key] for key in ("size", "per_month_percent", "size_bytes", "size_bytes_then")
    )


def test_what_the_numbers_rest_on_is_noted():
    """Notes say if sizes or rates are unknown, and if limits aren't stated."""
    notes = told(replace(rated(sizes_known=False), growth=Monthly(())))["notes"]

    assert [
        each for each in notes if each.startswith(("neither growth nor", "sizes are unknown", "1 partition without"))
    ] == notes[:3]
    assert "counts as 0 %" in notes[0], "unknown growth is said to be no more than a default"
    assert {
        "brokers without capacity.disk have no disk limit",
        "brokers without capacity.network have no network limit",
    } < set(notes)


def test_partitions_without_a_size_are_noted():
    """They count as empty, so that brokers are full sooner than the months say."""
    spec = rated(size=1)
    noted = told(replace(spec, cluster=replace(spec.cluster, unsized=2)))["notes"]
    assert "2 partitions without a size, counted as empty: brokers hold more than shown" in noted
    assert not any("without a size" in each for each in told(spec)["notes"])


def test_what_is_stored_is_held_against_rates_and_retention():
    """A minute at a byte a second plus a segment of a byte are 61 bytes: about a third, or three times, has a note."""
    notes = []
    for size in (15, 25, 180, 190):
        kept = rated([("retention.ms", "60000"), ("segment.bytes", "1")], size=size, bytes_in=1)
        notes.append(any("of what rates and retention give; check both: t" in note for note in told(kept)["notes"]))
    assert [True, False, False, True] == notes
    outgrown = "the profile's rates are means over 180 days; …"
    spec = rated(size=1)
    noted = replace(spec, cluster=replace(spec.cluster, notes=("another",), outgrown=(outgrown,)))
    assert outgrown in told(noted)["notes"]
    assert "another" not in told(noted)["notes"]


def test_a_plan_for_mean_rates_is_said_to_be_one():
    """If busiest hours are planned for, a note says that growth's plan is for mean rates; else there is none."""
    week = WeekOfLoad({}, np.zeros((2, 0)), np.zeros((2, 0, HOURS_OF_WEEK)))
    said = [
        any(note.startswith("planned for mean rates here") for note in told(replace(rated(size=1), week=each))["notes"])
        for each in (week, replace(week, planned_for=False), None)
    ]
    assert [True, False, False] == said


def test_a_plan_that_a_rule_chooses_may_be_another():
    """With a rule, a note says that whatif may choose another plan, but not in a plan's own report."""
    rule = Choice("most_months_within_bytes", 10)
    spec = rated(size=1)
    chosen = replace(spec, sweep=replace(spec.sweep, choice=rule))
    said = "planned by balance here; with sweep.choose, planner whatif may choose another plan"
    base = brokers_for_growth.cases(chosen, 2)[:1]
    of_plan = section(chosen, base, brokers_for_growth.today_row(base[0]), [brokers_for_growth.evaluate(base[0])])
    assert [False, True, False] == [
        said in notes for notes in (told(spec)["notes"], told(chosen)["notes"], of_plan.notes)
    ]


def test_a_budget_makes_a_plan_a_first_step():
    """Growth judges the whole change: a budget too small for it is named with the steps; a larger one isn't."""
    spec = spec_of(RACKS, {"t": [[1]] * 8}, sizes=1000)

    assert "all of it takes at least 4 steps" in told(replace(spec, budget=Budget(replicas_moved=1)))["first_step"]
    assert None is told(replace(spec, budget=Budget(replicas_moved=4)))["first_step"]


STATE = {"disk_month": None, "network_month": None, "size_bytes": 1, "network_in": 0, "network_out": 0}
LASTS = {"feasible": True, "bytes_moved": 0, "month": None, "broker": None, "limit": None}
OPTION = {
    "option": "2 of big", "class": "big", "added": 2, "brokers": 4, "feasible": True, "holds": True, "fewest": True,
    "month": None, "broker": None, "limit": None, "bytes_moved": 10**9, "replicas_moved": 3, "leaders_changed": 1,
    "fullest_percent": 50.0,
}  # fmt: skip


def broker(number, month=None):
    """A broker that is full in this month."""
    state = {**STATE, "disk_month": month}
    return {"id": number, "rack": None, "disk_limit_bytes": None, "today": state, "planned": None}


def made(**parts):
    """A document with these parts."""
    return row(GrowthDocument, {"cluster": "c", "months": 6, **parts})


def page_of(found):
    """The document as Markdown."""
    return markdown.render(view(found))


def test_a_verdict_for_each_assignment():
    """Each assignment has a sentence with its first limit, and with the bytes copied for it."""
    rows = [
        {**LASTS, "assignment": "today", "month": 2, "broker": 7, "limit": "disk"},
        {**LASTS, "assignment": "as planned", "bytes_moved": 10**9},
    ]
    page = page_of(made(assignments=rows))
    impossible = page_of(made(assignments=[{**LASTS, "assignment": "as planned", "feasible": False}]))

    assert "Today's assignment lasts until month 2, when broker 7 reaches its disk limit." in page
    assert "The planned assignment lasts all 6 months, after copying " in page
    assert "The planned assignment isn't possible: no plan keeps every rule." in impossible


def test_what_is_above_a_limit_today_is_said_so():
    """A limit exceeded today is `from the start`, not `month 0`."""
    rows = [{**LASTS, "assignment": "today", "month": 0, "broker": 7, "limit": "disk"}]
    page = page_of(made(assignments=rows, brokers=[{**broker(7, 0), "disk_limit_bytes": 1}]))

    assert "Today's assignment is above a limit from the start: broker 7, disk." in page
    assert "| now |" in page
    assert "month 0" not in page


def test_brokers_that_would_help_are_told_or_why_there_are_none():
    """The words name the fewest brokers of a class that last; else the minimum and how many were tried."""
    least = [{"class": "big", "at_least": 2}]
    lasting = page_of(made(classes=least, options=[OPTION]))
    tried = {**OPTION, "holds": False, "fewest": False, "month": 4, "broker": 1, "limit": "disk"}

    assert "With 2 of big more it lasts all 6 months; its plan copies " in lasting
    assert "at least" not in lasting
    assert "| 2 of big (fewest) |" in lasting
    skips = page_of(made(classes=[{"class": "big", "at_least": 1}], options=[OPTION]))
    assert "| 2 of big (fewest tried) |" in skips, "1 more was not tried"
    short = page_of(made(classes=least, options=[tried]))
    assert "Class big: no plan made with 2 more lasts that long, and fewer than 2 can't." in short
    uneven = page_of(made(classes=[{"class": "big", "at_least": 0}], options=[tried]))
    assert "Class big: no plan made with 2 more lasts that long.\n" in uneven
    planned = {**LASTS, "assignment": "as planned"}
    lasts = page_of(made(assignments=[planned], classes=least, options=[OPTION]))
    assert "more it lasts" not in lasts
    assert "| 2 of big |" in lasts, "the fewest that are needed are none"
    assert "Class big: it takes at least 2 more: not planned: more than" in page_of(made(classes=least))


def test_brokers_that_are_full_first_come_first():
    """Brokers that are full first come first, then by id; the rest is counted."""
    found = [broker(number) for number in range(40, 2, -1)] + [broker(41, 5), broker(42, 1)]
    page = page_of(made(brokers=found))
    rows = [line for line in page.splitlines() if line.startswith("|")]
    cells = [row.split("|")[1].strip() for row in rows]
    shown = [cell for cell in cells if cell.isdigit()]

    assert ["42", "41", "3", "4"] == shown[:4]
    assert 24 == len(shown)
    assert "16 brokers left out here: see --format json." in page


def test_growth_that_nobody_knows_is_not_said_to_be_none():
    """Without `growth` and a load profile, growth is a dash, not 0."""
    found = told(spec_of(RACKS, {"t": [[1], [2]]}, sizes=1000, changes=Changes()))

    assert [None] == [each["per_month_percent"] for each in found["topics"]]
    assert "| – | today's bytes |" in page_of(row(GrowthDocument, found))


def test_a_size_beyond_what_is_counted_is_said_to_be_more():
    """A hundredfold a month ends at the largest number that is counted: a note says that the truth is more."""
    spec, said = doubling(10_000), "so these topics and their brokers have more than is shown"
    beyond = told(replace(spec, growth=Monthly((Rate("t", 99_000_000),))), months=12)

    assert beyond["notes"][0].endswith(f"sizes and rates are counted up to 288 PB (or 288 PB/s) a replica, {said}: t")
    assert not [each for each in told(spec)["notes"] if said in each]


def test_topics_that_grow_by_most_bytes_come_first():
    """Topics that grow by most bytes come first, and names are never markup."""
    topics = [
        {"topic": name, "per_month_percent": 8.0, "size": "as it is", "size_bytes": 5, "size_bytes_then": then}
        for name, then in (("a", 6), ("b_*|", 99), ("c", 4))
    ]
    page = page_of(made(topics=topics))

    assert page.index("99 B") < page.index("6 B") < page.index("4 B")
    assert "b_*|" not in page
