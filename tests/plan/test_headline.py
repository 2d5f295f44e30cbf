"""The first words of every output: the whole change, or a first step and what is left."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_documents import Document, typed
from report_documents import GB, small, term

from planner.model import formats
from planner.plan import headline
from planner.plan.bound_section import gap_percent

LEFT: dict[str, Any] = {
    "limits": {"bytes_moved": 40_000_000, "replicas_moved": None, "leaders_changed": 3},
    "partitions": 20,
    "brokers": [{"id": 6, "replicas": 20, "leaders": 10, "size_bytes": 26_600_000}],
    "windows": ["disk", "leaders"],
    "bytes_moved": 26_600_000,
    "replicas_moved": 20,
    "leaders_changed": 12,
    "steps_at_least": 1,
    "too_large": 0,
}


def first_step(**left: Any) -> dict[str, Any]:
    """The small plan as the first step of a change."""
    return small(complete=False, unfinished=LEFT | left)


def test_a_first_step_says_so_first() -> None:
    """A first step has its budget, what is left and where, and the steps to go; it claims no minimum and no balance."""
    plan = first_step()
    assert (
        "FIRST STEP ONLY (budget: at most 40 MB copied, 3 leaders changed). Broker 6 is NOT empty afterwards "
        "(20 replicas, 26.6 MB); left: 20 partitions to change, 26.6 MB to copy (20 replicas); about 4 more steps."
    ) == headline.first_line(typed(plan))
    assert (
        headline.first_sentences(typed(plan)) == f"{headline.first_line(typed(plan))} {headline.headline(typed(plan))}"
    )
    assert "least" not in headline.headline(typed(plan))
    assert headline.balance_missed(typed(plan)) == (
        "not balanced yet: topic replicas; whether later steps can meet all targets is unknown"
    )
    assert "" == headline.balance_met(typed(plan))
    assert not headline.all_clear(typed(plan))


@pytest.mark.parametrize("there", [0, 13])
def test_a_step_of_which_nothing_is_left_is_done(there: int) -> None:
    """The rest of an applied first step has nothing to do, which isn't the budget's fault."""
    resumes = {"plan_id": "8" * 64, "partitions_there": there, "dropped": []}
    plan = typed(first_step() | {"partitions": [], "batches": [], "resumes": resumes})
    lead, end = ("FIRST STEP DONE", "about 4 more steps.") if there else ("NOTHING FITS THE BUDGET", "found.")
    assert (True, True) == ((line := headline.first_line(plan)).startswith(f"{lead} (budget"), line.endswith(end))


def test_a_budget_of_one_is_singular() -> None:
    """A budget of one replica or one leader is written as one."""
    plan = first_step(limits={"bytes_moved": None, "replicas_moved": 1, "leaders_changed": 1})
    assert "(budget: at most 1 replica copied, 1 leader changed)" in headline.first_step(typed(plan))


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ({"brokers": []}, "). Left: 20 partitions to change"),
        ({"brokers": [], "partitions": 0}, "Left: 26.6 MB to copy (20 replicas), for balance (bytes, leaders); "),
        ({"brokers": [], "replicas_moved": 0}, "Left: 20 partitions to change, 12 leaders to change"),
        ({"bytes_moved": None, "brokers": []}, "20 replicas to copy, sizes unknown"),
        ({"brokers": [{**LEFT["brokers"][0], "size_bytes": None}]}, "afterwards (20 replicas);"),
        ({"brokers": LEFT["brokers"] * 5}, "and 2 more brokers"),
        ({"too_large": 1}, "1 partition larger than the whole budget: raise the budget"),
        ({"steps_at_least": 4}, "; at least 4 more steps."),
        ({"bytes_moved": 810_000_000}, "; about 21 more steps."),
    ],
)
def test_what_is_left(left: dict[str, Any], said: str) -> None:
    """What is left: brokers that aren't empty, partitions, balance, and partitions that no step can move."""
    assert said in headline.first_step(typed(first_step(**left)))


def test_a_budget_that_no_plan_tried_fits_may_be_met_by_more_plans() -> None:
    """If the budget allows nothing that was tried, the words suggest a higher budget or more candidates."""
    nothing = first_step() | {"partitions": []}
    assert headline.first_step(typed(nothing)).endswith("26.6 MB to copy (20 replicas); no step was found.")
    assert headline.headline(typed(nothing)).endswith("even than today; raise the budget, or try more --candidates.")


def test_a_plan_that_does_all_begins_with_what_it_moves() -> None:
    """A plan for the whole change begins with what it copies, also if it has no key about unfinished work."""
    plan = small()
    assert "" == headline.first_step(typed(plan))
    assert headline.headline(typed(plan)) == headline.first_line(typed(plan)) == headline.first_sentences(typed(plan))
    assert headline.first_line(typed(plan)) == headline.first_line(
        typed({k: v for k, v in plan.items() if k != "unfinished"})
    )


def test_missing_sizes_are_said_where_bytes_are() -> None:
    """If partitions have no size, the words say `at least`, and claim no minimum of bytes."""
    plan = small()
    plan["cluster"] = plan["cluster"] | {"partitions_without_size": 2}
    said = headline.headline(typed(plan))
    assert said.startswith("Copies at least 24.0 GB (2 replicas of 2 partitions; 2 partitions without a size, counted")
    assert "least" not in said.removeprefix("Copies at least")


def test_racks_that_stay_uneven_are_said() -> None:
    """Racks that stay uneven are named, with the reason: `rebalance: none` or `rack_aware: as_today`."""
    broken = [term("resilience", "rack_spread_broken", "partitions", 0, 396, 0)]
    plan = small(partitions=[], terms=broken, changes={"rebalance": "none"})
    said = "396 partitions could be spread over the racks more evenly and stay as they are (rebalance: none)"
    nothing = "Nothing to do: with rebalance: none, only replicas that must move are moved, and none must."
    assert nothing == headline.headline(typed(plan))
    assert [said] == [*headline.racks(typed(plan))]
    assert not headline.all_clear(typed(plan))
    plan["spec"] |= {"racks_as_today": True}
    left = said.replace("stay as they are (rebalance: none)", "aren't repaired (rack_aware: as_today)")
    assert [left] == [*headline.racks(typed(plan))]


def test_a_repair_that_has_nothing_to_do_says_so() -> None:
    """A `rebalance: racks` with nothing to repair says so; if uneven topics may not move, the mode isn't named."""
    broken = [term("resilience", "rack_spread_broken", "partitions", 0, 2, 0)]
    plan = small(partitions=[], changes={"rebalance": "racks"})
    assert "Nothing to do: no partition breaks the rack rule." == headline.headline(typed(plan))
    even = plan | {"balance": plan["balance"] | {"relaxed": []}}
    assert "Nothing to do: the cluster is already as asked." == headline.headline(typed(even))
    said = "2 partitions could be spread over the racks more evenly and stay as they are"
    assert [said] == [*headline.racks(typed(plan | {"terms": broken}))]
    one = plan | {"terms": [term("resilience", "rack_spread_broken", "partitions", 0, 1, 0)]}
    assert ["1 partition could be spread over the racks more evenly and stays as it is"] == [
        *headline.racks(typed(one))
    ]


def said(document: Document) -> str:
    """The headline of a plan."""
    return headline.headline(typed(document))


def test_the_headline_compares_with_the_least() -> None:
    """The headline says what is copied, how many leaders change, and how far that is above the proven minimum."""
    plan = small()
    far = {"method": "flow", "least_bytes_moved": 20 * GB, "bytes_moved": 24 * GB, "gap_percent": 16.667, "proof": ""}

    assert "Copies 24.0 GB (2 replicas of 2 partitions), the proven minimum; elects 2 leaders." == headline.headline(
        typed(plan)
    )
    assert ", at most 4.00 GB (20 %) above the proven minimum; elects" in said(plan | {"bound": far})
    unproven = {**far, "method": "none"}
    assert ", the minimum is unknown; elects" in said(plan | {"bound": unproven})


@given(st.integers(2, 10**15), st.integers(1, 10**15))
def test_what_is_within_is_never_too_little(moved: int, least: int) -> None:
    """The part of the bound that the verdict states is rounded up, and by less than a tenth of it."""
    least = min(moved - 1, least)
    stated = gap_percent(moved, least)
    bound = {"method": "flow", "least_bytes_moved": least, "bytes_moved": moved, "gap_percent": stated, "proof": ""}
    text = said(small() | {"bound": bound})
    if not least // 10_000 <= moved - least <= 10 * least:
        assert f"at most {formats.size(moved - least)} above the proven minimum; " in text
        return
    found = re.search(r"at most [0-9.]+ [kMGTPE]?B \(([0-9.,]+|< 0.01) %\) above the proven", text)
    assert found
    gap, shown = 100 * (moved - least) / least, found[1].replace(",", "")
    if gap < 0.005:
        assert shown == "< 0.01"
        return
    assert gap <= float(shown) * (1 + 1e-6)
    assert float(shown) <= gap * 1.1 + 0.01


def test_why_a_plan_was_chosen() -> None:
    """The words give the rule with its numbers, and the variant if that isn't `changes`."""
    choice = {"rule": "most_even_within_bytes", "value": 5, "variant": "six", "why": "the most even plan"}

    assert "variant six: the most even plan" == headline.choice_phrase(typed({"choice": choice}))
    assert "the most even plan" == headline.choice_phrase(typed({"choice": {**choice, "variant": "changes"}}))
    still = small(partitions=[], choice=choice)
    allow_more = "no plan tried that copies at most 5 B is more even than today; allow more in sweep.choose"
    assert f"Nothing to do: {allow_more}." == headline.headline(typed(still))
    fewest = {**still, "choice": {**choice, "rule": "fewest_bytes_within_imbalance"}}
    assert "Nothing to do: that is variant six: the most even plan." == headline.headline(typed(fewest))


def test_the_headline_without_sizes_or_moves() -> None:
    """Without sizes no bytes are claimed, and a plan without moves says why there is nothing to do."""
    plan = small()
    unknown = {**plan["cluster"], "sizes_known": False}
    reorder = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"][:1]]

    assert "Copies 2 replicas of 2 partitions (sizes unknown); elects 2 leaders." == headline.headline(
        typed(plan | {"cluster": unknown})
    )
    assert "Copies no data; reorders 1 replica list and elects 2 leaders." == headline.headline(
        typed(plan | {"partitions": reorder})
    )
    still = plan | {"partitions": []}
    closer = "no plan tried comes closer to the targets"
    assert f"Nothing to do: {closer}." == said(still)
    assert f"{closer} (rebalance: leaders)." in said(still | {"changes": {"rebalance": "leaders"}})
    survivor = still | {"spec": {**plan["spec"], "survive": "rack"}}
    assert f"Nothing to do: {closer} and survives as much (resilience.survive)." == said(survivor)
    rest = {"plan_id": "0" * 64, "partitions_there": 3, "dropped": []}
    assert "Nothing to do: of the approved plan nothing is left to move or elect." == said(still | {"resumes": rest})
    even = still | {"balance": {**plan["balance"], "relaxed": []}}
    assert "Nothing to do: the cluster is already as asked." == said(even)
